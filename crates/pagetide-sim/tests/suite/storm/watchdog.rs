//! A limit on the real time of a storm: a storm that spins, or takes a minute for a virtual second,
//! has found a defect.
//!
//! On Linux, the limit is on the CPU time of the thread, so that a busy machine causes no failure;
//! elsewhere on wall time.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{channel, RecvTimeoutError, Sender};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Limit for a storm. Builds with debug assertions take up to three times as long.
const LIMIT: Duration = Duration::from_secs(if cfg!(debug_assertions) { 60 } else { 20 });
/// Time after which a cancelled run must have stopped; it checks between two events.
const GRACE: Duration = Duration::from_secs(10);
/// Polling interval.
const LOOK: Duration = Duration::from_millis(250);

/// Clock of a thread's CPU time.
struct ThreadClock {
    schedstat: PathBuf,
    began: Instant,
}

impl ThreadClock {
    /// The clock of the calling thread.
    fn of_this_thread() -> ThreadClock {
        let thread = std::fs::read_link("/proc/thread-self").unwrap_or_default();
        let schedstat = PathBuf::from("/proc").join(thread).join("schedstat");
        ThreadClock { schedstat, began: Instant::now() }
    }

    fn now(&self) -> Duration {
        let text = std::fs::read_to_string(&self.schedstat).unwrap_or_default();
        let ns = text.split(' ').next().and_then(|ns| ns.parse().ok());
        ns.map_or_else(|| self.began.elapsed(), Duration::from_nanos)
    }
}

/// A watched run.
pub struct WatchedRun {
    /// Set when the run has taken too long.
    pub cancel: Arc<AtomicBool>,
    /// Virtual time of the run.
    pub progress: Arc<AtomicU64>,
    over: Sender<()>,
    watcher: JoinHandle<Duration>,
}

/// Starts to watch this thread. A run that spins within a single event cannot be cancelled; then
/// the whole process exits with a message about the seed.
pub fn watch(seed: u64) -> WatchedRun {
    let cancel = Arc::new(AtomicBool::new(false));
    let progress = Arc::new(AtomicU64::new(0));
    let (over, is_over) = channel::<()>();
    let (raised, virtual_ns) = (Arc::clone(&cancel), Arc::clone(&progress));
    let clock = ThreadClock::of_this_thread();
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
    WatchedRun { cancel, progress, over, watcher }
}

impl WatchedRun {
    /// Ends the watch. Returns the time of the run, and a message if it was cancelled.
    pub fn end(self) -> (Duration, Option<String>) {
        let WatchedRun { cancel, progress, over, watcher } = self;
        drop(over);
        let took = watcher.join().expect("the watcher only looks");
        let now = progress.load(Ordering::Relaxed);
        let is_late = cancel.load(Ordering::Relaxed);
        (took, is_late.then(|| format!("not over after {LIMIT:?}, at {now} ns of virtual time")))
    }
}
