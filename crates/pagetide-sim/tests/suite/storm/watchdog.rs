//! A bound on the time a storm takes, which the simulator has no clock for: who spins without end, or takes a
//! minute for a second, has a defect.
//!
//! On Linux the time is what the thread had of a CPU, so that a busy machine makes nobody late; elsewhere
//! that of the clock on the wall.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{channel, RecvTimeoutError, Sender};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// What a storm may take. Builds with debug assertions take up to three times as long.
const LIMIT: Duration = Duration::from_secs(if cfg!(debug_assertions) { 60 } else { 20 });
/// What it may take to notice that it was cancelled, which it does between two events.
const GRACE: Duration = Duration::from_secs(10);
/// How often it is looked at.
const LOOK: Duration = Duration::from_millis(250);

/// What a thread has had of the CPUs so far.
struct Clock {
    schedstat: PathBuf,
    began: Instant,
}

impl Clock {
    /// The clock of the thread that asks.
    fn of_this_thread() -> Clock {
        let thread = std::fs::read_link("/proc/thread-self").unwrap_or_default();
        let schedstat = PathBuf::from("/proc").join(thread).join("schedstat");
        Clock { schedstat, began: Instant::now() }
    }

    fn now(&self) -> Duration {
        let text = std::fs::read_to_string(&self.schedstat).unwrap_or_default();
        let ns = text.split(' ').next().and_then(|ns| ns.parse().ok());
        ns.map_or_else(|| self.began.elapsed(), Duration::from_nanos)
    }
}

/// A run that is watched.
pub struct Watched {
    /// Set when the run has taken too long.
    pub cancel: Arc<AtomicBool>,
    /// Virtual time of the run.
    pub progress: Arc<AtomicU64>,
    over: Sender<()>,
    watcher: JoinHandle<Duration>,
}

/// Watches what this thread does from now on. A run that spins within a single event cannot be cancelled:
/// then the whole process ends with the seed's number.
pub fn watch(seed: u64) -> Watched {
    let cancel = Arc::new(AtomicBool::new(false));
    let progress = Arc::new(AtomicU64::new(0));
    let (over, is_over) = channel::<()>();
    let (raised, virtual_ns) = (Arc::clone(&cancel), Arc::clone(&progress));
    let clock = Clock::of_this_thread();
    let began = clock.now();
    let watcher = thread::spawn(move || loop {
        let is_running = is_over.recv_timeout(LOOK) == Err(RecvTimeoutError::Timeout);
        let took = clock.now().saturating_sub(began);
        if !is_running {
            return took;
        }
        if took > LIMIT {
            raised.store(true, Ordering::Relaxed);
        }
        if took > LIMIT + GRACE {
            let ns = virtual_ns.load(Ordering::Relaxed);
            eprintln!("seed {seed} spins within one event after {ns} ns of virtual time");
            std::process::abort();
        }
    });
    Watched { cancel, progress, over, watcher }
}

impl Watched {
    /// The run is over: what it took, and what was wrong if it had to be cancelled.
    pub fn end(self) -> (Duration, Option<String>) {
        let Watched { cancel, progress, over, watcher } = self;
        drop(over);
        let took = watcher.join().expect("the watcher only looks");
        let now = progress.load(Ordering::Relaxed);
        let is_late = cancel.load(Ordering::Relaxed);
        (took, is_late.then(|| format!("not over after {LIMIT:?}, at {now} ns of virtual time")))
    }
}
