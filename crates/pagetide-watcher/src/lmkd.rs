//! lmkd: Android's low memory killer, with PSI monitors.
//!
//! AOSP system/memory/lmkd, branch android14: `mp_event_psi`, `mainloop`, `find_and_kill_process`
//! (lmkd.cpp). lmkd asks the kernel for events of two PSI monitors, and after an event polls for a
//! second. It judges the watermarks, the free swap and the share of the page cache that refaulted,
//! and kills the process with the largest `oom_score_adj`.
//!
//! Not modelled: vmpressure and minfree levels, the framework that changes `oom_score_adj` (it is
//! constant here), and the real-time priority (give the watcher `nice = -20`).

use crate::act::{SentSignal, WatcherAct, WatcherDeed, WatcherStep};
use crate::meminfo::MeminfoReading;
use crate::psi_trigger::PsiTrigger;
use crate::{MS, SECOND};

/// `PSI_WINDOW_SIZE_MS`; lmkd also polls for this time after an event.
const WINDOW: u64 = SECOND;
const POLL_SHORT: u64 = 10 * MS;
const POLL_LONG: u64 = 100 * MS;
const THRASHING_RESET_INTERVAL: u64 = SECOND;
const WATERMARK_REFRESH: u64 = 60 * SECOND;
/// `PERCEPTIBLE_APP_ADJ`: processes up to this value are visible to the user.
const PERCEPTIBLE_APP_ADJ: i16 = 200;
const ADJ_MAX: i16 = 1000;

/// The properties `ro.lmk.*`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LmkdOptions {
    pub psi_partial_stall_ns: u64,
    pub psi_complete_stall_ns: u64,
    pub swap_free_low_percentage: u64,
    /// Percent of the page cache.
    pub thrashing_limit: u64,
    pub thrashing_limit_decay: u64,
    pub thrashing_limit_critical: u64,
    pub swap_util_max: u64,
    pub filecache_min_kb: u64,
    pub kill_heaviest_task: bool,
    pub kill_timeout_ns: u64,
}

impl Default for LmkdOptions {
    /// A device that is not `low_ram`.
    fn default() -> LmkdOptions {
        LmkdOptions {
            psi_partial_stall_ns: 70 * MS,
            psi_complete_stall_ns: 700 * MS,
            swap_free_low_percentage: 10,
            thrashing_limit: 100,
            thrashing_limit_decay: 10,
            thrashing_limit_critical: 200,
            swap_util_max: 100,
            filecache_min_kb: 0,
            kill_heaviest_task: false,
            kill_timeout_ns: 100 * MS,
        }
    }
}

/// Sums over all zones, with the largest protection of each: /proc/zoneinfo.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ZoneMarks {
    pub min: u64,
    pub low: u64,
    pub high: u64,
}

/// A process that the framework has registered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LmkdProcess {
    pub pid: u32,
    pub oom_score_adj: i16,
    pub rss_kb: u64,
}

/// The readings of lmkd at a wake-up. Sizes are pages, except in meminfo.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LmkdReading {
    /// Stall time of the machine so far.
    pub some_ns: u64,
    pub full_ns: u64,
    pub meminfo: MeminfoReading,
    pub page_kb: u64,
    pub file_lru: u64,
    pub workingset_refault_file: u64,
    pub pgscan_kswapd: u64,
    pub pgscan_direct: u64,
    pub marks: ZoneMarks,
    /// By age, the oldest first.
    pub processes: Vec<LmkdProcess>,
    /// Whether the process of [`Lmkd::victim`] has not ended.
    pub victim_lives: bool,
}

/// Level of a PSI event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PressureLevel {
    Medium,
    Critical,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum BreachedMark {
    Min,
    Low,
    High,
    None,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ReclaimState {
    None,
    Kswapd,
    Direct,
}

/// Polling after an event.
#[derive(Clone, Copy, Debug)]
struct Polling {
    level: PressureLevel,
    start: u64,
    last: u64,
    interval: u64,
}

/// Statistics between wake-ups of `mp_event_psi`.
#[derive(Clone, Copy, Debug, Default)]
struct ThrashingState {
    init_refault: u64,
    prev_refault: u64,
    base_file_lru: u64,
    init_pgscan_kswapd: u64,
    init_pgscan_direct: u64,
    reset_at: u64,
    prev_growth: u64,
    limit: u64,
    checks_filecache: bool,
    killing: bool,
}

#[derive(Clone, Debug)]
pub struct Lmkd {
    options: LmkdOptions,
    triggers: Option<[PsiTrigger; 2]>,
    next_look: u64,
    polling: Option<Polling>,
    paused: Option<PressureLevel>,
    /// The process that was killed last, if its end has not been noticed, and when.
    waiting: Option<(u32, u64)>,
    thrashing: ThrashingState,
    marks: Option<(ZoneMarks, u64)>,
}

impl Lmkd {
    pub fn new(options: LmkdOptions) -> Lmkd {
        let thrashing =
            ThrashingState { limit: options.thrashing_limit, ..ThrashingState::default() };
        Lmkd {
            options,
            triggers: None,
            next_look: 0,
            polling: None,
            paused: None,
            waiting: None,
            thrashing,
            marks: None,
        }
    }

    /// The process for which it waits.
    pub fn victim(&self) -> Option<u32> {
        self.waiting.map(|(pid, _)| pid)
    }

    /// Whether lmkd itself is at work, and not only the kernel's monitors.
    pub fn is_polling(&self) -> bool {
        self.polling.is_some() || self.waiting.is_some()
    }

    pub fn wake(&mut self, now_ns: u64, read: &LmkdReading) -> WatcherStep {
        let mut deeds = Vec::new();
        let LmkdOptions { psi_partial_stall_ns, psi_complete_stall_ns, .. } = self.options;
        let triggers = self.triggers.get_or_insert_with(|| {
            [(psi_partial_stall_ns, read.some_ns), (psi_complete_stall_ns, read.full_ns)]
                .map(|(threshold, total)| PsiTrigger::new(threshold, WINDOW, now_ns, total))
        });
        let mut events = [false; 2];
        if self.next_look <= now_ns {
            self.next_look = now_ns + triggers[0].period_ns();
            events =
                [triggers[0].look(now_ns, read.some_ns), triggers[1].look(now_ns, read.full_ns)];
        }
        let timeout = self.options.kill_timeout_ns;
        let is_over =
            |(_, at): (u32, u64)| !read.victim_lives || (timeout > 0 && now_ns >= at + timeout);
        if self.waiting.is_some_and(is_over) {
            self.waiting = None;
            if let Some(level) = self.paused.take() {
                self.polling =
                    Some(Polling { level, start: now_ns, last: 0, interval: POLL_SHORT });
            }
        }
        if let Some(polling) = self.polling {
            if now_ns - polling.last >= polling.interval {
                self.handle(polling.level, false, now_ns, read, &mut deeds);
            }
        }
        for (level, is_event) in
            [PressureLevel::Medium, PressureLevel::Critical].into_iter().zip(events)
        {
            if is_event {
                self.handle(level, true, now_ns, read, &mut deeds);
            }
        }
        let poll = self.polling.map_or(u64::MAX, |polling| polling.last + polling.interval);
        let wait = self.waiting.map_or(u64::MAX, |_| now_ns + POLL_SHORT);
        WatcherStep { deeds, wake_ns: self.next_look.min(poll).min(wait).max(now_ns + 1) }
    }

    /// Calls the handler and changes the polling (`call_handler`).
    fn handle(
        &mut self,
        level: PressureLevel,
        is_event: bool,
        now: u64,
        read: &LmkdReading,
        deeds: &mut Vec<WatcherDeed>,
    ) {
        let outcome = if self.waiting.is_some() {
            None
        } else {
            let outcome = self.judge(level, is_event, now, read);
            deeds.extend(outcome.1);
            Some(outcome.0)
        };
        if self.waiting.is_some() {
            // It waits for the death of the process.
            self.paused = Some(level);
            self.polling = None;
            return;
        }
        let Some((extends, interval)) = outcome else { return };
        if is_event || extends {
            self.polling = Some(Polling { level, start: now, last: now, interval });
        } else if let Some(polling) = &mut self.polling {
            (polling.last, polling.interval) = (now, interval);
            if now - polling.start > WINDOW {
                self.polling = None;
            }
        }
    }

    /// `mp_event_psi`: whether polling is extended, its interval, and the kill.
    fn judge(
        &mut self,
        level: PressureLevel,
        is_event: bool,
        now: u64,
        read: &LmkdReading,
    ) -> ((bool, u64), Option<WatcherDeed>) {
        let options = self.options;
        let state = &mut self.thrashing;
        let refault = read.workingset_refault_file;
        let is_cycle_after_kill = std::mem::take(&mut state.killing);
        if is_cycle_after_kill {
            state.base_file_lru = read.file_lru;
            state.init_refault = refault;
            state.reset_at = now;
            state.prev_growth = 0;
        }
        let meminfo = &read.meminfo;
        let low_swap_kb = meminfo.swap_total * options.swap_free_low_percentage / 100;
        let swap_is_low = meminfo.swap_free < low_swap_kb;
        let interval = |is_fast: bool| if is_fast { POLL_SHORT } else { POLL_LONG };
        let reclaim = if read.pgscan_direct > state.init_pgscan_direct {
            state.init_pgscan_direct = read.pgscan_direct;
            state.init_pgscan_kswapd = read.pgscan_kswapd;
            ReclaimState::Direct
        } else if read.pgscan_kswapd > state.init_pgscan_kswapd {
            state.init_pgscan_kswapd = read.pgscan_kswapd;
            ReclaimState::Kswapd
        } else if refault == state.prev_refault {
            return ((is_event, interval(swap_is_low)), None);
        } else {
            ReclaimState::None
        };
        state.prev_refault = refault;
        let thrashing = state.grow(now, read, options.thrashing_limit);
        let is_stale = |at: u64| now - at > WATERMARK_REFRESH;
        if self.marks.is_none_or(|(_, at)| is_stale(at)) {
            self.marks = Some((read.marks, now));
        }
        let mark = breached(self.marks.unwrap_or_default().0, read);
        let is_direct = reclaim == ReclaimState::Direct;
        let facts = LmkdFacts {
            level,
            is_event,
            is_cycle_after_kill,
            swap_is_low,
            is_direct,
            mark,
            thrashing,
        };
        let reason = facts.reason(&options, read, &mut self.thrashing);
        let killed = reason.and_then(|(why, min_adj, cuts_limit)| {
            let process = self.choose(min_adj, read)?;
            Some((process, why, cuts_limit))
        });
        let mut deed = None;
        let is_killing = killed.is_some();
        if let Some((process, why, cuts_limit)) = killed {
            let state = &mut self.thrashing;
            state.killing = true;
            if cuts_limit {
                state.limit = state.limit * (100 - options.thrashing_limit_decay) / 100;
            }
            self.waiting = Some((process.pid, now));
            let act = WatcherAct::SignalProcess { pid: process.pid, signal: SentSignal::Kill };
            let why = format!("{why}; oom_score_adj {}", process.oom_score_adj);
            deed = Some(WatcherDeed { act, why });
        }
        let extends = is_event || is_killing || is_direct;
        ((extends, interval(swap_is_low || is_killing)), deed)
    }

    /// The process with the largest oom_score_adj, at least `min_adj`: the oldest of them, or the
    /// heaviest if the user can perceive it.
    fn choose(&self, min_adj: i16, read: &LmkdReading) -> Option<LmkdProcess> {
        let may_die = |process: &&LmkdProcess| {
            (min_adj..=ADJ_MAX).contains(&process.oom_score_adj) && process.rss_kb >= read.page_kb
        };
        let adj =
            read.processes.iter().filter(may_die).map(|process| process.oom_score_adj).max()?;
        let mut of_adj = read.processes.iter().filter(may_die).filter(|it| it.oom_score_adj == adj);
        if self.options.kill_heaviest_task || adj <= PERCEPTIBLE_APP_ADJ {
            // The first of several equal ones.
            return of_adj.rev().max_by_key(|process| process.rss_kb).copied();
        }
        of_adj.next().copied()
    }
}

impl ThrashingState {
    /// Percent of the page cache that refaulted in this window, with the decayed rest of earlier
    /// windows.
    fn grow(&mut self, now: u64, read: &LmkdReading, limit: u64) -> u64 {
        let refaulted = read.workingset_refault_file.saturating_sub(self.init_refault);
        let percent = refaulted * 100 / (self.base_file_lru + 1);
        let since = now.saturating_sub(self.reset_at);
        if since <= THRASHING_RESET_INTERVAL {
            return percent + self.prev_growth;
        }
        self.prev_growth = percent;
        let windows = since / THRASHING_RESET_INTERVAL;
        if windows > 1 || percent < self.limit {
            self.prev_growth = percent.checked_shr(windows as u32).unwrap_or(0);
        }
        self.base_file_lru = read.file_lru;
        self.init_refault = read.workingset_refault_file;
        self.reset_at = now;
        self.limit = limit;
        self.prev_growth
    }
}

/// The lowest watermark that free memory without CMA is below (`get_lowest_watermark`).
fn breached(marks: ZoneMarks, read: &LmkdReading) -> BreachedMark {
    let free = read.meminfo.mem_free.saturating_sub(read.meminfo.cma_free) / read.page_kb.max(1);
    match free {
        free if free < marks.min => BreachedMark::Min,
        free if free < marks.low => BreachedMark::Low,
        free if free < marks.high => BreachedMark::High,
        _ => BreachedMark::None,
    }
}

/// Findings of `mp_event_psi` before it decides.
struct LmkdFacts {
    level: PressureLevel,
    is_event: bool,
    is_cycle_after_kill: bool,
    swap_is_low: bool,
    is_direct: bool,
    mark: BreachedMark,
    thrashing: u64,
}

impl LmkdFacts {
    /// The reason for a kill, the lowest oom_score_adj, and whether the thrashing limit is cut.
    fn reason(
        &self,
        options: &LmkdOptions,
        read: &LmkdReading,
        state: &mut ThrashingState,
    ) -> Option<(String, i16, bool)> {
        let LmkdFacts { mark, thrashing, .. } = *self;
        let is_critical = thrashing >= options.thrashing_limit_critical;
        let spares = |spares: bool| if spares { PERCEPTIBLE_APP_ADJ + 1 } else { 0 };
        let which = if mark < BreachedMark::Low { "min" } else { "low" };
        let swap_free = read.meminfo.swap_free;
        if self.is_cycle_after_kill && mark < BreachedMark::Low {
            return Some(("min watermark is breached even after kill".into(), 0, false));
        }
        if self.level == PressureLevel::Critical && self.is_event {
            return Some(("device is not responding".into(), 0, false));
        }
        if self.swap_is_low && thrashing > options.thrashing_limit {
            state.checks_filecache = true;
            let why = format!("low on swap ({swap_free} kB) and thrashing ({thrashing} %)");
            return Some((why, spares(mark > BreachedMark::Min && !is_critical), false));
        }
        if self.swap_is_low && mark < BreachedMark::High {
            let why = format!("{which} watermark is breached and swap is low ({swap_free} kB)");
            return Some((why, spares(mark > BreachedMark::Min && !is_critical), false));
        }
        let util = swap_utilization(&read.meminfo);
        if mark < BreachedMark::High && options.swap_util_max < 100 && util > options.swap_util_max
        {
            let why = format!("{which} watermark is breached and swap utilization is {util} %");
            return Some((why, 0, false));
        }
        if mark < BreachedMark::High && thrashing > state.limit {
            state.checks_filecache = true;
            let why = format!("{which} watermark is breached and thrashing ({thrashing} %)");
            return Some((why, spares(!is_critical), true));
        }
        if self.is_direct && thrashing > state.limit {
            state.checks_filecache = true;
            let why = format!("device is in direct reclaim and thrashing ({thrashing} %)");
            return Some((why, spares(!is_critical), true));
        }
        if state.checks_filecache {
            let file_kb = read.file_lru * read.page_kb;
            if file_kb < options.filecache_min_kb {
                let why = format!("filecache is low ({file_kb} kB) after thrashing");
                return Some((why, PERCEPTIBLE_APP_ADJ + 1, false));
            }
            state.checks_filecache = false;
        }
        None
    }
}

/// Percent of the anonymous memory that is swapped out (`calc_swap_utilization`).
fn swap_utilization(meminfo: &MeminfoReading) -> u64 {
    let used = meminfo.swap_total.saturating_sub(meminfo.swap_free);
    let swappable = meminfo.active_anon + meminfo.inactive_anon + meminfo.shmem + used;
    (used * 100).checked_div(swappable).unwrap_or(0)
}
