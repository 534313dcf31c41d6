//! Progress on stderr during runs: an updated line on a terminal, else a new line every ten
//! seconds, so that a log shows progress.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use pagetide_lab::execute::{self, JobOutcome, RunProgress, RunResult};
use pagetide_lab::plan::{RunJob, RunPlan};
use pagetide_lab::world::RunBackend;
use std::collections::BTreeMap;
use std::io::{self, IsTerminal, Write};
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Fractions of a run that the bar can show.
const PARTS: u64 = 1000;
const TICK: Duration = Duration::from_millis(200);
/// Time between two lines if stderr is not a terminal.
const LOG_EVERY: Duration = Duration::from_secs(10);

/// A status line for work of unknown duration, such as booting a kernel.
pub struct Spinner {
    bar: ProgressBar,
    /// Present if stderr is not a terminal.
    ticker: Option<Ticker>,
}

impl Spinner {
    pub fn new() -> Spinner {
        let bar = ProgressBar::new_spinner();
        let style = ProgressStyle::with_template("{spinner} {msg}, {elapsed}");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()));
        let ticker = if io::stderr().is_terminal() {
            bar.enable_steady_tick(TICK);
            None
        } else {
            let told = bar.clone();
            Some(Ticker::logging(move || told.message()))
        };
        Spinner { bar, ticker }
    }

    /// Prints a line above the status, or on a log.
    pub fn print(&self, words: &str) {
        print_above(&self.bar, words);
    }

    /// Sets the text.
    pub fn say(&self, words: String) {
        self.bar.set_message(words);
    }
}

impl Drop for Spinner {
    fn drop(&mut self) {
        drop(self.ticker.take());
        self.bar.finish_and_clear();
    }
}

/// Makes the runs of `plan`, and shows their progress.
pub fn execute(
    plan: &RunPlan,
    world: &dyn RunBackend,
    threads: NonZeroUsize,
    cancel: &Arc<AtomicBool>,
) -> Vec<RunResult> {
    let line = ProgressLine::of(plan.jobs().len() as u64, 0);
    execute::execute(plan, world, threads, cancel, &|event| line.on_progress(&event))
}

/// The progress bar, and the thread that updates it.
pub struct ProgressLine {
    state: Arc<Mutex<ProgressState>>,
    ticker: Option<Ticker>,
}

struct ProgressState {
    bar: ProgressBar,
    total: u64,
    /// The total grows: a search does not know the number of its runs in advance.
    grows: bool,
    done: u64,
    failed: u64,
    running: BTreeMap<RunJob, Arc<AtomicU64>>,
    /// Virtual nanoseconds that the last finished run of each variant took, to estimate the
    /// progress of the next one.
    lengths: BTreeMap<usize, u64>,
}

impl ProgressLine {
    /// A bar for `total` runs, of which `done` are finished already.
    pub fn of(total: u64, done: u64) -> ProgressLine {
        let visible = io::stderr().is_terminal();
        let target =
            if visible { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        let bar = ProgressBar::with_draw_target(Some(total * PARTS), target);
        let style = ProgressStyle::with_template("[{bar:24}] {msg}, {elapsed}")
            .unwrap_or_else(|_| ProgressStyle::default_bar());
        bar.set_style(style.progress_chars("=> "));
        let state = ProgressState {
            bar,
            total,
            grows: false,
            done,
            failed: 0,
            running: BTreeMap::new(),
            lengths: BTreeMap::new(),
        };
        let state = Arc::new(Mutex::new(state));
        let told = Arc::clone(&state);
        let ticker = if visible {
            Ticker::new(TICK, move |_| lock(&told).draw())
        } else {
            Ticker::logging(move || lock(&told).message())
        };
        ProgressLine { state, ticker: Some(ticker) }
    }

    /// A bar for an unknown number of runs.
    pub fn growing() -> ProgressLine {
        let line = ProgressLine::of(0, 0);
        lock(&line.state).grows = true;
        line
    }

    /// Prints a line above the bar, or on a log.
    pub fn print(&self, words: &str) {
        print_above(&lock(&self.state).bar, words);
    }

    /// Adds `runs` to the total.
    pub fn grow(&self, runs: usize) {
        let mut state = lock(&self.state);
        state.total += runs as u64;
        state.bar.set_length(state.total * PARTS);
    }

    /// Called by the execution, from any thread.
    pub fn on_progress(&self, progress: &RunProgress<'_>) {
        let mut state = lock(&self.state);
        match progress {
            RunProgress::Started { job, clock } => {
                state.running.insert(*job, Arc::clone(clock));
            }
            RunProgress::Ended { job, outcome } => {
                state.running.remove(job);
                match outcome {
                    JobOutcome::Finished(record) => {
                        state.lengths.insert(job.variant, record.elapsed_ns);
                        state.done += 1;
                    }
                    JobOutcome::Failed(_) => {
                        state.failed += 1;
                        state.done += 1;
                    }
                    JobOutcome::Cancelled => {}
                }
            }
        }
        state.draw();
    }
}

impl Drop for ProgressLine {
    fn drop(&mut self) {
        drop(self.ticker.take());
        lock(&self.state).bar.finish_and_clear();
    }
}

impl ProgressState {
    fn draw(&self) {
        let mut position = self.done * PARTS;
        for (job, clock) in &self.running {
            let clock = clock.load(Ordering::Relaxed);
            // Until a run of this variant has finished, any other variant is the best estimate.
            let length = self.lengths.get(&job.variant).or(self.lengths.values().next());
            if let Some(&length) = length.filter(|length| **length > 0) {
                let part = u128::from(clock) * u128::from(PARTS) / u128::from(length);
                position += u64::try_from(part).unwrap_or(PARTS).min(PARTS - 1);
            }
        }
        self.bar.set_position(position);
        self.bar.set_message(self.message());
    }

    fn message(&self) -> String {
        let clocks = self.running.values().map(|clock| clock.load(Ordering::Relaxed));
        let simulated: u64 = clocks.sum();
        let so_far = if self.grows { " so far" } else { "" };
        let mut message = format!("{} of {} runs{so_far}", self.done, self.total);
        if self.failed > 0 {
            message += &format!(", {} failed", self.failed);
        }
        if !self.running.is_empty() {
            let seconds = simulated as f64 / 1e9 / self.running.len() as f64;
            message += &format!(", {} under way at {seconds:.1} s", self.running.len());
        }
        message
    }
}

/// A thread that calls a function periodically, until this is dropped.
struct Ticker {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Ticker {
    /// Calls `what` every `every`, first after that time, with the elapsed time.
    fn new(every: Duration, what: impl Fn(Duration) + Send + 'static) -> Ticker {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = thread::spawn(move || {
            let began = Instant::now();
            let mut last = began;
            while !stopped.load(Ordering::Relaxed) {
                thread::park_timeout(every.saturating_sub(last.elapsed()));
                if last.elapsed() >= every && !stopped.load(Ordering::Relaxed) {
                    last = Instant::now();
                    what(began.elapsed());
                }
            }
        });
        Ticker { stop, thread: Some(thread) }
    }

    /// Writes a line to stderr periodically.
    fn logging(message: impl Fn() -> String + Send + 'static) -> Ticker {
        Ticker::new(LOG_EVERY, move |since| {
            let line = format!("{}, {} s\n", message(), since.as_secs());
            // If stderr is closed, the line is lost.
            let _ = io::stderr().write_all(line.as_bytes());
        })
    }
}

impl Drop for Ticker {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            let _ = thread.join();
        }
    }
}

fn lock(state: &Mutex<ProgressState>) -> MutexGuard<'_, ProgressState> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

fn print_above(bar: &ProgressBar, words: &str) {
    match io::stderr().is_terminal() {
        true => bar.println(words),
        // If stderr is closed, the line is lost.
        false => drop(io::stderr().write_all(format!("{words}\n").as_bytes())),
    }
}

/// A duration as an estimate: `7.2 s`, `12 min`.
pub fn lasting(seconds: f64) -> String {
    match seconds {
        short if short < 10.0 => format!("{short:.1} s"),
        short if short < 120.0 => format!("{short:.0} s"),
        long => format!("{:.0} min", long / 60.0),
    }
}
