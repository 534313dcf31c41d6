//! The simulated world: CPUs, disks, tasks and daemons around one [`Machine`], in virtual time.
//!
//! State changes only at events. A CPU executes a *time slice* of one thread: the core's state
//! changes at the start of the slice, and its effects (I/O, wake-ups) take place at its end, which
//! the cost model determines. Events of the same time run in the order in which they were
//! scheduled, so a run is a pure function of its setup and seed.
//!
//! Invariant: a thread runs on at most one CPU, and a busy CPU has exactly one event.

mod audit;
mod cpus;
pub(crate) mod daemons;
pub(crate) mod disks;
mod event;
pub(crate) mod groups;
pub(crate) mod objects;
mod observing;
pub mod outside;
mod pressure;
pub(crate) mod results;
pub(crate) mod tasks;
mod threads;

pub use observing::decisions::Decisions;
pub(crate) use observing::observations::ShownCall;

use crate::cost::CostModel;
use crate::event_queue::{EventId, EventQueue};
use crate::meter::{ChargedThread, CostMeter};
use crate::observe::ObserverError;
use crate::scheduler::{Scheduler, TaskId, WakeSource, TICK_NS};
use crate::task::{MachineCounts, SimTask};
use cpus::slice::{PreemptedSlice, SliceEnd, TimeSlice};
use daemons::SimDaemons;
use disks::{FullDisk, SimDisks};
use event::WorldEvent;
use objects::grace::{self, GracePeriod};
use objects::names::FileCaches;
use observing::decisions::DecisionHashes;
use observing::observations::ObservationQueue;
use pagetide_core::audit::Violation;
use pagetide_core::interface::daemon::Daemon;
use pagetide_core::interface::effect::{Effect, Effects, Io, Token};
use pagetide_core::process::Machine;
use pagetide_core::slab::object::Object;
use pagetide_core::stats::event::TraceEvent;
use pagetide_core::units::{CacheId, Cpu, IdVec, MemcgId, Nanos};
use pagetide_scenario::costs::Price;
use pagetide_scenario::model;
use pressure::PsiReport;
use results::slab_levels::SlabLevels;
use results::slab_samples::SlabSamples;
use results::timeline::TimelineSampler;
use std::collections::{BTreeMap, BTreeSet};
use threads::waits::ThreadWaits;
use threads::{cpus_of, nice_of, ThreadNumbers, WorldThread};

/// Interval at which a CPU folds its per-CPU differences into the zones' counters
/// (`vm.stat_interval`).
const STAT_INTERVAL: Nanos = 1_000_000_000;

#[derive(Debug, Default)]
pub(crate) struct CpuState {
    event: Option<EventId>,
    /// The time slice in execution.
    piece: Option<TimeSlice>,
    /// Effects to carry out at the end of the time slice.
    effects: Vec<Effect>,
    /// The thread that ran last; running another one costs a context switch.
    last: Option<WorldThread>,
    /// Time of interrupt work, added to the next time slice.
    debt: Nanos,
    /// Start of the idle time, if the CPU is idle.
    idle_since: Option<Nanos>,
    /// Latest time of the next fold of its per-CPU counters (Linux `vmstat_update`).
    vmstat_update: Nanos,
}

/// The simulated world.
pub struct SimWorld {
    /// The memory manager.
    pub machine: Machine,
    /// All tasks, by index in the setup, then the additional threads of multi-threaded tasks.
    pub tasks: Vec<SimTask>,
    pub now: Nanos,
    /// CPU time of all tasks, daemons, context switches and interrupts.
    pub busy_ns: Nanos,
    meter: CostMeter,
    queue: EventQueue<WorldEvent>,
    scheduler: Scheduler,
    /// The CPU controller is on. Then the scheduler id of each group is its index in the setup
    /// plus one.
    has_cpu_groups: bool,
    /// Source of the current wake-ups; `None`: a timer, which wakes a thread on the CPU where it
    /// fell asleep.
    waker: Option<WakeSource>,
    cpus: IdVec<Cpu, CpuState>,
    /// Rests of the time slices of preempted threads.
    cut: BTreeMap<TaskId, PreemptedSlice>,
    /// Time of the next search for CPUs that have been idle for a tick.
    idle_look: Nanos,
    pub(crate) disks: SimDisks,
    /// Costs of the model, and number, of the calls whose time was measured: on missing names,
    /// files and pipes.
    costs_of_calls: [(Nanos, u64); 3],
    numbers: ThreadNumbers,
    waits: ThreadWaits,
    pub(crate) daemons: SimDaemons,
    /// Every n-th copy of a frame fails; 0: none.
    pub fail_copies: u64,
    nr_copies: u64,
    /// Memcgs of the existing groups, by index in the setup.
    groups: Vec<Option<MemcgId>>,
    /// Existing groups without a memory controller, by index in the setup.
    groups_without_memory: BTreeSet<usize>,
    /// Counts of groups at their last removal, by index in the setup.
    last_counts: BTreeMap<usize, (crate::task::GroupCounts, Option<crate::task::GroupTotals>)>,
    /// Notes for the record, and how often each occurred.
    pub(crate) notes: BTreeMap<String, u64>,
    /// The machine's slab caches, by index in the setup.
    caches: Vec<CacheId>,
    /// Slab caches for files, dentries and pipes, if tasks use any.
    thing_caches: Option<FileCaches>,
    grace: GracePeriod,
    /// By cache id: objects are freed after a grace period.
    frees_late: Vec<bool>,
    /// Objects that wait for a grace period since the current event.
    late: Vec<(Object, Cpu)>,
    pub(crate) slab_samples: SlabSamples,
    /// Slab levels before the first task starts.
    pub(crate) idle_slabs: SlabLevels,
    /// Slab levels after the run, all grace periods and a shrink of all caches.
    pub(crate) shrunk_slabs: SlabLevels,
    /// Counts at the end of the last foreground task that completed its work.
    pub(crate) done: Option<MachineCounts>,
    setup: model::Setup,
    /// Additional start delay of each task.
    start_jitter: Vec<Nanos>,
    nr_over: usize,
    /// Number of foreground tasks.
    nr_foreground: usize,
    /// Last state of each thread reported to PSI.
    reported: Vec<PsiReport>,
    /// `None` without observers.
    observing: Option<ObservationQueue>,
    /// `None` unless hashes were requested.
    decisions: Option<DecisionHashes>,
    /// Events of the last step.
    fresh_events: Vec<TraceEvent>,
    /// `None` unless a timeline was requested.
    sampler: Option<TimelineSampler>,
}

/// Disks, files, groups and caches of the machine at the start of a run, by index in the setup.
pub(crate) struct WorldParts {
    pub disks: SimDisks,
    /// `None`: the group does not exist yet, or has no memory controller.
    pub groups: Vec<Option<MemcgId>>,
    /// Slab caches of the setup's object mixes.
    pub caches: Vec<CacheId>,
    /// Slab caches for files, dentries and pipes, if tasks use any.
    pub thing_caches: Option<FileCaches>,
    /// Effects of the setup.
    pub boot_effects: Vec<Effect>,
}

/// Error that ends a run.
#[derive(Debug, thiserror::Error)]
pub enum WorldError {
    /// A task's program failed.
    #[error("task `{task}`: {source}")]
    Program { task: String, source: pagetide_scenario::workload::ProgramError },
    /// The event queue is empty, but foreground tasks have not ended.
    #[error("the run is stuck at {at_ns} ns: no event can wake task `{task}`")]
    Stuck { at_ns: Nanos, task: String },
    /// The audit found a violated invariant.
    #[error("at {at_ns} ns: {violation}")]
    Audit { at_ns: Nanos, violation: Violation },
    /// An observer cannot write.
    #[error(transparent)]
    Unwritten(ObserverError),
}

impl SimWorld {
    /// Creates the world of a machine that already has its files, groups and swap.
    pub(crate) fn new(
        machine: Machine,
        setup: &model::Setup,
        tasks: Vec<SimTask>,
        start_jitter: &[Nanos],
        has: WorldParts,
    ) -> SimWorld {
        let WorldParts { disks, groups, caches, thing_caches, boot_effects } = has;
        let cpus = setup.machine.cpus;
        let mut scheduler = Scheduler::new(cpus);
        for (id, task) in tasks.iter().enumerate() {
            scheduler.add_task(id as TaskId, setup.tasks[task.leader].nice, None);
        }
        let nr_nodes = machine.nr_nodes();
        let numbers = ThreadNumbers { nr_tasks: tasks.len(), nr_nodes };
        for (at, daemon) in Daemon::all(nr_nodes).enumerate() {
            let allowed = cpus_of(daemon, &machine, cpus);
            scheduler.add_sleeper((tasks.len() + at) as TaskId, nice_of(daemon), allowed);
        }
        let mut world = SimWorld {
            meter: CostMeter::new(CostModel::of_machine(
                &setup.machine.costs,
                cpus,
                machine.page_size(),
            ))
            .with_init_on_alloc(setup.machine.init_on_alloc == Some(true)),
            frees_late: grace::caches_that_free_late(&machine),
            machine,
            now: 0,
            busy_ns: 0,
            queue: EventQueue::new(),
            scheduler,
            has_cpu_groups: false,
            waker: None,
            idle_look: 0,
            cpus: (0..cpus).map(|_| CpuState::default()).collect(),
            cut: BTreeMap::new(),
            disks,
            costs_of_calls: [(0, 0); 3],
            numbers,
            waits: ThreadWaits::new(numbers),
            daemons: SimDaemons::new(nr_nodes),
            fail_copies: 0,
            nr_copies: 0,
            groups_without_memory: (0..setup.groups.len())
                .filter(|&group| setup.groups[group].at_start && !setup.groups[group].has_memory)
                .collect(),
            groups,
            last_counts: BTreeMap::new(),
            notes: BTreeMap::new(),
            caches,
            thing_caches,
            grace: GracePeriod::default(),
            late: Vec::new(),
            slab_samples: SlabSamples::new(setup.groups.len()),
            idle_slabs: SlabLevels::default(),
            shrunk_slabs: SlabLevels::default(),
            done: None,
            setup: setup.clone(),
            start_jitter: start_jitter.to_vec(),
            nr_over: 0,
            nr_foreground: tasks.iter().filter(|task| !task.background).count(),
            reported: vec![PsiReport::NOTHING; numbers.len()],
            observing: None,
            decisions: None,
            fresh_events: Vec::new(),
            sampler: None,
            tasks,
        };
        for (id, task) in setup.tasks.iter().enumerate() {
            if task.start.after.is_none() {
                world.queue.push(task.start.delay_ns + start_jitter[id], WorldEvent::Start(id));
            }
        }
        if setup.has_cpu_controller() {
            world.begin_cpu_groups();
        }
        world.start_daemons();
        for effect in boot_effects {
            world.apply(effect, Cpu(0));
        }
        world.idle_slabs = world.slab_levels();
        world
    }

    /// Runs until all foreground tasks have ended, `limit` is reached or `cancelled` returns true.
    /// Returns true if all foreground tasks have ended. Calling it again with a later limit
    /// continues the run; stops do not change the result. Audits the world after every
    /// `audit_every` events and at the end; 0: never.
    pub fn run(
        &mut self,
        limit: Nanos,
        audit_every: u64,
        cancelled: impl FnMut(Nanos) -> bool,
    ) -> Result<bool, WorldError> {
        let finished = self.run_events(limit, audit_every, cancelled)?;
        if audit_every > 0 {
            self.audit()?;
        }
        Ok(finished)
    }

    /// Starts to count the operations of tasks and kernel threads, by [`Price`].
    pub(crate) fn count_work(&mut self) {
        self.meter.count(self.tasks.len(), self.cpus.len());
    }

    fn run_events(
        &mut self,
        limit: Nanos,
        audit_every: u64,
        mut cancelled: impl FnMut(Nanos) -> bool,
    ) -> Result<bool, WorldError> {
        let mut nr_events = 0u64;
        self.report_pressures();
        while !self.is_finished() {
            nr_events += 1;
            if nr_events.is_multiple_of(1024) && cancelled(self.now) {
                return Ok(false);
            }
            if audit_every > 0 && nr_events.is_multiple_of(audit_every) {
                self.audit()?;
            }
            let Some(at) = self.queue.peek_time() else {
                let task = self.tasks.iter().find(|task| !task.is_over() && !task.background);
                let task = task.map_or_else(String::new, |task| task.name.clone());
                return Err(WorldError::Stuck { at_ns: self.now, task });
            };
            if at > limit {
                self.now = limit;
                return Ok(false);
            }
            let (_, event) = self.queue.pop().expect("there is an event at its time");
            debug_assert!(at >= self.now, "time runs forward");
            self.sample_until(at);
            self.slab_samples.until(at, &self.machine, &self.groups);
            self.now = at;
            self.deliver_observations()?;
            match event {
                WorldEvent::Cpu(cpu) => self.cpu_event(cpu)?,
                WorldEvent::Disk(disk) => self.disk_event(disk),
                WorldEvent::Timer(thread) => self.timer_event(thread),
                WorldEvent::Start(task) => self.start_task(task),
                WorldEvent::GracePeriod => self.grace_period_tick(),
                WorldEvent::Arrival(task) => self.arrival_event(task),
                WorldEvent::Period(group) => self.scheduler.period_ended(group, at),
            }
            for (object, cpu) in std::mem::take(&mut self.late) {
                self.free_after_grace(object, cpu);
            }
            if self.has_cpu_groups {
                self.serve_cpu_groups();
            }
            self.report_pressures();
        }
        Ok(true)
    }

    fn is_finished(&self) -> bool {
        self.nr_over == self.nr_foreground
    }

    // ---- threads and CPUs ----

    /// Makes a thread runnable. If it is still in the time slice that ends in its sleep, cancels
    /// the sleep.
    fn wake(&mut self, thread: WorldThread) {
        if let Some(after) = self.slice_end(thread) {
            if *after == SliceEnd::Block {
                *after = SliceEnd::Runnable;
            }
            return;
        }
        let id = self.numbers.id(thread);
        if let Some(cpu) = self.scheduler.wake(self.now, id, self.waker) {
            self.reschedule_cpu(cpu);
        }
    }

    /// Makes a CPU pick a thread: wakes an idle CPU, or ends the current time slice.
    fn reschedule_cpu(&mut self, cpu: Cpu) {
        let state = &mut self.cpus[cpu];
        if state.piece.is_some() {
            self.preempt_slice(cpu);
        } else if state.event.is_none() {
            let at = self.now + self.meter.wake_up();
            state.event = Some(self.queue.push(at, WorldEvent::Cpu(cpu)));
        }
    }

    fn cpu_event(&mut self, cpu: Cpu) -> Result<(), WorldError> {
        self.cpus[cpu].event = None;
        self.meter.at(cpu);
        if let Some(piece) = self.ended_piece(cpu) {
            let TimeSlice { thread, after, .. } = piece;
            let id = self.numbers.id(thread);
            if let WorldThread::Daemon(daemon) = thread {
                self.daemon_stalls(daemon, false);
            }
            // Block first: the effects of the time slice may wake the thread again.
            if after == SliceEnd::Block {
                self.scheduler.block(cpu);
            }
            self.waker = Some(WakeSource { cpu, task: Some(id) });
            let has_plug = after == SliceEnd::Runnable && self.plug(thread).is_open;
            let mut full = self.apply_effects(thread, cpu, has_plug);
            if let WorldThread::Task(task) = thread {
                if after == SliceEnd::Exit || self.tasks[task].must_exit() {
                    self.exit_task(task, cpu);
                    self.apply_effects(thread, cpu, false);
                    full = None;
                    // It may be asleep, running, or (if its own effects killed it) on the queue of
                    // any CPU.
                    self.scheduler.remove_task(id);
                }
            }
            // A thread that sleeps for another reason waits for the disk at its next request.
            if let Some(full) = full.filter(|_| after == SliceEnd::Runnable) {
                self.scheduler.block(cpu);
                self.wait_for_disk(thread, full);
            }
            self.waker = None;
        }
        self.dispatch(cpu)
    }

    /// Before a CPU runs, folds its per-CPU counters into the zones' if it has not done so for a
    /// second, or has been idle for a tick (then it stopped its timer tick). On 6.1, a CPU that
    /// waited for a disk for a short time did not fold (kswapd's runs in zone DMA kept their rhythm
    /// over the waits).
    fn refresh_vm_stats(&mut self, cpu: Cpu) {
        let state = &mut self.cpus[cpu];
        let was_idle = state.idle_since.take().is_some_and(|since| self.now - since >= TICK_NS);
        if was_idle || self.now >= state.vmstat_update {
            state.vmstat_update = (self.now / STAT_INTERVAL + 1) * STAT_INTERVAL;
            self.machine.refresh_cpu_vm_stats(cpu);
        }
        // CPUs that stay idle fold too; searched for once a tick.
        if self.cpus.len() > 1 && self.now >= self.idle_look {
            self.idle_look = self.now + TICK_NS;
            for (at, other) in self.cpus.iter_mut().enumerate() {
                if other.idle_since.is_some_and(|since| self.now - since >= TICK_NS) {
                    other.idle_since = None;
                    self.machine.refresh_cpu_vm_stats(Cpu(at as u16));
                }
            }
        }
    }

    /// Picks the next thread of the CPU and starts its time slice.
    fn dispatch(&mut self, cpu: Cpu) -> Result<(), WorldError> {
        // A wake-up in this event may already have scheduled an event for the CPU.
        if let Some(event) = self.cpus[cpu].event.take() {
            self.queue.cancel(event);
        }
        if let Some(idle) = self.scheduler.balance(cpu, self.now) {
            self.reschedule_cpu(idle);
        }
        if self.scheduler.current(cpu).is_none() || self.scheduler.should_resched(cpu, self.now) {
            self.scheduler.pick_next(cpu, self.now);
        }
        let next = self.scheduler.current(cpu).map(|id| self.numbers.thread(id));
        self.show_switch(cpu, next);
        let Some(thread) = next else {
            let state = &mut self.cpus[cpu];
            state.idle_since.get_or_insert(self.now);
            // The idle task runs now: the next thread pays for a switch.
            state.last = None;
            return Ok(());
        };
        self.refresh_vm_stats(cpu);
        let mut cost = std::mem::take(&mut self.cpus[cpu].debt);
        if self.cpus[cpu].last.replace(thread) != Some(thread) {
            cost += self.meter.charge(Price::ContextSwitch, 1);
        }
        // A preempted thread first gets the rest of its time slice.
        let (after, left, ran) = match (self.resume_slice(thread, cpu), thread) {
            (Some((after, left)), _) => (after, left, 0),
            (None, WorldThread::Task(task)) => {
                let (after, ran) = self.run_task(task, cpu)?;
                (after, 0, ran.max(1))
            }
            (None, WorldThread::Daemon(daemon)) => {
                let (after, ran) = self.run_daemon(daemon, cpu);
                (after, 0, ran.max(1))
            }
        };
        let ran = ran + cost;
        self.meter.ran(match thread {
            WorldThread::Task(task) => ChargedThread::Task(task),
            WorldThread::Daemon(Daemon::Kswapd(_)) => ChargedThread::Kswapd,
            WorldThread::Daemon(Daemon::Flusher) => ChargedThread::Flusher,
            WorldThread::Daemon(_) => ChargedThread::Other,
        });
        self.busy_ns += ran;
        match thread {
            WorldThread::Task(task) => self.tasks[task].cpu_ns += ran,
            WorldThread::Daemon(Daemon::Kswapd(node)) => {
                self.daemons.times.kswapd_charged(node, cost)
            }
            WorldThread::Daemon(Daemon::Flusher) => self.daemons.times.flusher_ran(ran),
            WorldThread::Daemon(_) => {}
        }
        let state = &mut self.cpus[cpu];
        let until = self.now + left + ran;
        state.piece = Some(TimeSlice { thread, after, since: self.now, until });
        state.event = Some(self.queue.push(until, WorldEvent::Cpu(cpu)));
        Ok(())
    }

    /// Carries out the effects of the time slice of `thread` that ended on `cpu`. If the thread
    /// has no open plug, it submits its plug, too. Returns a disk that is now full for it, if any.
    fn apply_effects(&mut self, thread: WorldThread, cpu: Cpu, has_plug: bool) -> Option<FullDisk> {
        let mut effects = std::mem::take(&mut self.cpus[cpu].effects);
        let mut full = None;
        loop {
            let ios = effects.iter().filter_map(|effect| match effect {
                Effect::Submit(io) => Some(*io),
                _ => None,
            });
            let ios: Vec<Io> = ios.collect();
            full = self.submit_or_plug(&ios, thread, cpu, has_plug).or(full);
            if effects.is_empty() {
                break;
            }
            for effect in effects.drain(..) {
                self.apply(effect, cpu);
            }
            // Effects caused by these effects.
            std::mem::swap(&mut effects, &mut self.cpus[cpu].effects);
        }
        self.cpus[cpu].effects = effects;
        full
    }

    /// Carries out one effect that is not I/O.
    fn apply(&mut self, effect: Effect, cpu: Cpu) {
        if let Some(decisions) = &mut self.decisions {
            decisions.effect(self.now, cpu, effect);
        }
        match effect {
            // I/O has been submitted. The others concern page contents, which this world does not
            // have (`Machine::without_bytes`); the step includes their time.
            Effect::Submit(_)
            | Effect::Zero { .. }
            | Effect::CollapsePage { .. }
            | Effect::ReadOut { .. }
            | Effect::WriteIn { .. } => {}
            // There are no bytes to copy; the step includes the time.
            Effect::CopyPage { from, .. } => {
                self.nr_copies += 1;
                let fails =
                    self.fail_copies != 0 && self.nr_copies.is_multiple_of(self.fail_copies);
                let effects = self.machine.copy_done(from, !fails, cpu);
                drain(effects, &mut self.cpus[cpu].effects, &mut self.late);
                self.meter.at(cpu);
                self.cpus[cpu].debt += self.meter.work(self.machine.take_work());
            }
            Effect::Wake(Token::Page(pfn)) => self.wake_page(pfn),
            Effect::Wake(Token::Throttled(node, reason)) => self.wake_throttled(node, reason),
            Effect::Wake(Token::Daemon(daemon)) => self.wake_daemon(daemon),
            Effect::FreeLate { object, cpu } => self.late.push((object, cpu)),
            Effect::ScheduleWork => self.run_worker(cpu),
            Effect::OomKill(mm) => self.oom_kill(mm),
        }
    }

    /// A kworker preempts the CPU for a moment (it has slept for long), then the CPU picks a thread
    /// again. The worker's own time is negligible compared with the two switches.
    fn run_worker(&mut self, cpu: Cpu) {
        self.meter.at(cpu);
        self.cpus[cpu].debt += self.meter.charge(Price::ContextSwitch, 1);
        self.cpus[cpu].last = None;
        self.scheduler.resched(cpu);
    }
}

/// Moves the effects of a call to the end of its time slice. Late frees take effect at the call.
#[inline]
fn drain(effects: Effects<'_>, to: &mut Vec<Effect>, late: &mut Vec<(Object, Cpu)>) {
    // Most steps have no effects.
    if !effects.is_empty() {
        drain_some(effects, to, late);
    }
}

fn drain_some(effects: Effects<'_>, to: &mut Vec<Effect>, late: &mut Vec<(Object, Cpu)>) {
    for effect in effects {
        match effect {
            Effect::FreeLate { object, cpu } => late.push((object, cpu)),
            effect => {
                debug_assert!(
                    !effect.is_contents_only(),
                    "content effect in a world without bytes: {effect:?}"
                );
                to.push(effect);
            }
        }
    }
}
