//! earlyoom: kills the process with the largest oom_score when memory and swap are both low.
//!
//! earlyoom 1.7 and 1.8 to 1.9.0: `poll_loop`, `lowmem_sig`, `sleep_time_ms` (main.c), `is_larger`,
//! `kill_process`, `kill_wait` (kill.c), `parse_meminfo` (meminfo.c); options `-m`, `-s`,
//! `--sort-by-rss`, `--prefer`, `--avoid`, `--ignore` (the last and `--sort-by-rss` since 1.8). The
//! percentage of available memory is of MemTotal in 1.7, and of MemAvailable + AnonPages since 1.8.
//! Version 1.7 never chooses a process without resident memory or with a score below 0.
//!
//! Percentages are hundredths of a percent; earlyoom takes any floating-point number. Not modelled:
//! `-g` (process groups), `--ignore-root-user`, hooks and notifications.

use crate::act::{SentSignal, WatcherAct, WatcherStep};
use crate::meminfo::MeminfoReading;
use crate::{MS, SECOND};

/// Added to the oom_score of a process that `--prefer` names, subtracted for `--avoid`.
const SCORE_OF_PREFERENCE: i64 = 300;
/// The same with `--sort-by-rss`, in kB.
const RSS_OF_PREFERENCE: i64 = 3_145_728;
/// Expected fill rates in kB per millisecond, which bound the sleep.
const MEM_FILL_RATE: u64 = 6000;
const SWAP_FILL_RATE: u64 = 800;
/// Bounds of the sleep in milliseconds.
const SLEEP_MIN_MS: u64 = 100;
const SLEEP_MAX_MS: u64 = 1000;
/// Interval at which a victim is looked at, and number of looks before earlyoom gives up.
const VICTIM_POLL_MS: u64 = 100;
const VICTIM_POLLS: u32 = 100;

/// Levels of memory and swap, in hundredths of a percent. A process gets the signal when both are
/// at or below their level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EarlyoomLevels {
    pub mem: u64,
    pub swap: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EarlyoomVersion {
    /// 1.7, as in Debian 12.
    V1_7,
    /// 1.8 to 1.9.0.
    #[default]
    V1_9,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EarlyoomOptions {
    pub version: EarlyoomVersion,
    /// Levels for SIGTERM (`-m`, `-s`).
    pub term: EarlyoomLevels,
    /// Levels for SIGKILL (the second numbers).
    pub kill: EarlyoomLevels,
    /// Takes the process with the largest resident memory.
    pub sort_by_rss: bool,
}

impl Default for EarlyoomOptions {
    fn default() -> EarlyoomOptions {
        EarlyoomOptions {
            version: EarlyoomVersion::default(),
            term: EarlyoomLevels { mem: 1000, swap: 1000 },
            kill: EarlyoomLevels { mem: 500, swap: 500 },
            sort_by_rss: false,
        }
    }
}

/// Effect of the options on a process, by its name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EarlyoomPreference {
    #[default]
    None,
    Prefer,
    Avoid,
    Ignore,
}

/// A directory of /proc.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProcessReading {
    pub pid: u32,
    /// Resident memory in kB.
    pub rss_kb: u64,
    /// /proc/PID/oom_score.
    pub oom_score: i64,
    pub oom_score_adj: i16,
    pub preference: EarlyoomPreference,
}

/// The readings of earlyoom at a wake-up.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EarlyoomReading {
    pub meminfo: MeminfoReading,
    /// All processes except earlyoom by rising pid, if [`Earlyoom::reads_processes`].
    pub processes: Vec<ProcessReading>,
    /// Whether the process of [`Earlyoom::victim`] has not ended.
    pub victim_lives: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum EarlyoomStage {
    Poll,
    /// Memory was low: reads all processes, and the memory again.
    Select,
    /// Waits for the end of a victim.
    Wait {
        pid: u32,
        signal: SentSignal,
        polls: u32,
        then_ms: u64,
    },
}

#[derive(Clone, Debug)]
pub struct Earlyoom {
    options: EarlyoomOptions,
    stage: EarlyoomStage,
}

impl Earlyoom {
    pub fn new(options: EarlyoomOptions) -> Earlyoom {
        Earlyoom { options, stage: EarlyoomStage::Poll }
    }

    /// Whether the next wake-up reads all processes.
    pub fn reads_processes(&self) -> bool {
        self.stage == EarlyoomStage::Select
    }

    /// The process for which it waits.
    pub fn victim(&self) -> Option<u32> {
        match self.stage {
            EarlyoomStage::Wait { pid, .. } => Some(pid),
            EarlyoomStage::Poll | EarlyoomStage::Select => None,
        }
    }

    pub fn wake(&mut self, now_ns: u64, read: &EarlyoomReading) -> WatcherStep {
        let meminfo = &read.meminfo;
        match self.stage {
            EarlyoomStage::Poll => match self.signal(meminfo) {
                None => WatcherStep::rest(now_ns + self.sleep_ms(meminfo) * MS),
                Some(_) => {
                    self.stage = EarlyoomStage::Select;
                    WatcherStep::rest(now_ns)
                }
            },
            EarlyoomStage::Select => self.select(now_ns, read),
            EarlyoomStage::Wait { pid, signal, polls, then_ms } => {
                let mut step = WatcherStep::default();
                let mut sends = signal;
                let escalates = signal == SentSignal::Term && read.victim_lives;
                if escalates && self.is_low(meminfo, self.options.kill) {
                    sends = SentSignal::Kill;
                    let act = WatcherAct::SignalProcess { pid, signal: sends };
                    let why = format!("at or below the SIGKILL limits, {}", self.show(meminfo));
                    step = WatcherStep::act(act, why, 0);
                }
                if !read.victim_lives || polls + 1 == VICTIM_POLLS {
                    let given_up = if read.victim_lives { VICTIM_POLL_MS } else { 0 };
                    self.stage = EarlyoomStage::Poll;
                    step.wake_ns = now_ns + (given_up + then_ms) * MS;
                    return step;
                }
                let polls = polls + 1;
                self.stage = EarlyoomStage::Wait { pid, signal: sends, polls, then_ms };
                step.wake_ns = now_ns + VICTIM_POLL_MS * MS;
                step
            }
        }
    }

    /// Chooses a victim, and sends a signal if memory is still low.
    fn select(&mut self, now_ns: u64, read: &EarlyoomReading) -> WatcherStep {
        let meminfo = &read.meminfo;
        let sleep_ms = self.sleep_ms(meminfo);
        self.stage = EarlyoomStage::Poll;
        let Some(signal) = self.signal(meminfo) else {
            return WatcherStep::rest(now_ns + sleep_ms * MS);
        };
        let Some(pid) = largest(&read.processes, &self.options) else {
            return WatcherStep::rest(now_ns + SECOND + sleep_ms * MS);
        };
        self.stage = EarlyoomStage::Wait { pid, signal, polls: 0, then_ms: sleep_ms };
        let why = format!("at or below the {signal} limits, {}", self.show(meminfo));
        WatcherStep::act(WatcherAct::SignalProcess { pid, signal }, why, now_ns)
    }

    fn signal(&self, meminfo: &MeminfoReading) -> Option<SentSignal> {
        if self.is_low(meminfo, self.options.kill) {
            return Some(SentSignal::Kill);
        }
        self.is_low(meminfo, self.options.term).then_some(SentSignal::Term)
    }

    /// A sleep that ends before memory and swap can have filled up to their levels. Version 1.7
    /// counts 1000 kB in a MiB.
    fn sleep_ms(&self, meminfo: &MeminfoReading) -> u64 {
        let is_old = self.options.version == EarlyoomVersion::V1_7;
        let headroom = |free: u64, total: u64, level: u64| {
            let total = u128::from(total);
            let above = (u128::from(free) * 10_000).saturating_sub(u128::from(level) * total);
            match is_old {
                true => (above * (total >> 10)).checked_div(total * 10).unwrap_or(0),
                false => above / 10_000,
            }
        };
        let levels = self.options.term;
        let mem = headroom(meminfo.mem_available, self.mem_total(meminfo), levels.mem);
        let swap = headroom(meminfo.swap_free, meminfo.swap_total, levels.swap);
        let ms = mem / u128::from(MEM_FILL_RATE) + swap / u128::from(SWAP_FILL_RATE);
        (ms as u64).clamp(SLEEP_MIN_MS, SLEEP_MAX_MS)
    }

    /// The total of the percentage of memory.
    fn mem_total(&self, meminfo: &MeminfoReading) -> u64 {
        match self.options.version {
            EarlyoomVersion::V1_7 => meminfo.mem_total,
            EarlyoomVersion::V1_9 => meminfo.mem_available + meminfo.anon_pages,
        }
    }

    /// Without swap, the percentage of free swap is 0.
    fn is_low(&self, meminfo: &MeminfoReading, levels: EarlyoomLevels) -> bool {
        let at_most = |free: u64, total: u64, level: u64| {
            u128::from(free) * 10_000 <= u128::from(level) * u128::from(total)
        };
        at_most(meminfo.mem_available, self.mem_total(meminfo), levels.mem)
            && at_most(meminfo.swap_free, meminfo.swap_total, levels.swap)
    }

    fn show(&self, meminfo: &MeminfoReading) -> String {
        format!(
            "mem avail {} of {} MiB, swap free {} of {} MiB",
            meminfo.mem_available >> 10,
            self.mem_total(meminfo) >> 10,
            meminfo.swap_free >> 10,
            meminfo.swap_total >> 10
        )
    }
}

/// The victim (`find_largest_process`): a later process must be larger than the one before it.
fn largest(processes: &[ProcessReading], options: &EarlyoomOptions) -> Option<u32> {
    let (sort_by_rss, is_old) = (options.sort_by_rss, options.version == EarlyoomVersion::V1_7);
    let mut victim: Option<(i64, i64, u32)> = None;
    for process in processes {
        let (score_bonus, rss_bonus) = match process.preference {
            EarlyoomPreference::Ignore => continue,
            EarlyoomPreference::None => (0, 0),
            EarlyoomPreference::Prefer => (SCORE_OF_PREFERENCE, RSS_OF_PREFERENCE),
            EarlyoomPreference::Avoid => (-SCORE_OF_PREFERENCE, -RSS_OF_PREFERENCE),
        };
        let (mut score, mut rss) = (process.oom_score, process.rss_kb as i64);
        if sort_by_rss {
            rss += rss_bonus;
        } else {
            score += score_bonus;
        }
        if is_old && (score < 0 || rss == 0) {
            continue;
        }
        let is_larger = match victim {
            // No process: its values are -9999.
            None => true,
            // A process without resident memory is compared by its score.
            Some((most, of_most, _)) if sort_by_rss && rss > 0 && of_most > 0 => {
                (rss, score) > (of_most, most)
            }
            Some((most, of_most, _)) => (score, rss) > (most, of_most),
        };
        if is_larger && process.oom_score_adj != -1000 {
            victim = Some((score, rss, process.pid));
        }
    }
    victim.map(|(_, _, pid)| pid)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(pid: u32, oom_score: i64, rss_kb: u64) -> ProcessReading {
        let preference = EarlyoomPreference::None;
        ProcessReading { pid, rss_kb, oom_score, oom_score_adj: 0, preference }
    }

    fn options(sort_by_rss: bool) -> EarlyoomOptions {
        EarlyoomOptions { sort_by_rss, ..EarlyoomOptions::default() }
    }

    #[test]
    fn the_largest_score_wins_then_the_larger_memory_then_the_first() {
        let mut all =
            [process(10, 700, 5), process(11, 700, 5), process(12, 700, 6), process(13, 1, 99)];
        assert_eq!(largest(&all, &options(false)), Some(12));
        assert_eq!(largest(&all[..2], &options(false)), Some(10));
        assert_eq!(largest(&all, &options(true)), Some(13));
        all[2].oom_score_adj = -1000;
        assert_eq!(largest(&all, &options(false)), Some(10));
        all[0].preference = EarlyoomPreference::Avoid;
        all[1].preference = EarlyoomPreference::Ignore;
        all[3].preference = EarlyoomPreference::Prefer;
        assert_eq!(largest(&all, &options(false)), Some(10), "400 and 301");
        assert_eq!(largest(&[], &options(false)), None);
    }

    #[test]
    fn without_swap_the_memory_decides_alone() {
        let earlyoom = Earlyoom::new(options(false));
        let (term, kill) = (earlyoom.options.term, earlyoom.options.kill);
        let mut meminfo =
            MeminfoReading { mem_available: 1000, anon_pages: 9000, ..MeminfoReading::default() };
        assert!(earlyoom.is_low(&meminfo, term) && !earlyoom.is_low(&meminfo, kill));
        meminfo.swap_total = 1000;
        meminfo.swap_free = 101;
        assert!(!earlyoom.is_low(&meminfo, term));
    }
}
