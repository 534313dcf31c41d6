//! The simulated world: CPUs, disks, tasks and daemons around one [`Machine`], in virtual time.
//!
//! State changes only at events. A CPU executes a *time slice* of one thread: the core's state
//! changes at the start of the slice, and its effects (I/O, wake-ups) take place at its end, which
//! the cost model determines. Events of the same time run in the order in which they were
//! scheduled, so a run is a pure function of its setup and seed.
//!
//! Invariant: a thread runs on at most one CPU, and a busy CPU has exactly one event.

mod audit;
pub(crate) mod copies;
mod cpus;
pub(crate) mod daemons;
pub(crate) mod disks;
pub(crate) mod groups;
pub(crate) mod objects;
pub(crate) mod observing;
pub mod outside;
mod pressure;
pub(crate) mod results;
pub(crate) mod tasks;
mod threads;
pub(crate) mod watchers;

pub use observing::decisions::Decisions;

use crate::observe::ObserverError;
use crate::task::SimTask;
use copies::CopyFaults;
use cpus::{SimCpus, SliceEnd};
use daemons::SimDaemons;
use disks::SimDisks;
use groups::SimGroups;
use objects::SimObjects;
use observing::Observing;
use pagetide_core::audit::Violation;
use pagetide_core::interface::effect::Effect;
use pagetide_core::process::Machine;
use pagetide_core::units::{Cpu, Nanos};
use pagetide_scenario::model;
use pagetide_scenario::record::timeline::Timeline;
use pressure::PressureReports;
use results::slabs::SlabLevels;
use results::timeline::{SampledWorld, TimelineSampler};
use results::RunResults;
use threads::waits::ThreadWaits;
use threads::{WorldEvent, WorldQueue, WorldThread};
use watchers::SimWatchers;

/// The simulated world.
pub struct SimWorld {
    /// The memory manager.
    pub machine: Machine,
    /// All tasks, by index in the setup, then the additional threads of multi-threaded tasks.
    pub tasks: Vec<SimTask>,
    pub now: Nanos,
    queue: WorldQueue,
    pub(crate) cpus: SimCpus,
    pub(crate) disks: SimDisks,
    waits: ThreadWaits,
    pub(crate) daemons: SimDaemons,
    pub(crate) groups: SimGroups,
    objects: SimObjects,
    setup: model::Setup,
    /// Seed of the run, for programs that start again.
    seed: u64,
    pub(crate) watchers: SimWatchers,
    pressure: PressureReports,
    pub(crate) observing: Observing,
    pub(crate) results: RunResults,
    pub(crate) copies: CopyFaults,
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
    /// Events follow each other, but time hardly advances.
    #[error("the run does not end: ten million events advanced the time from {since_ns} ns to {at_ns} ns")]
    Endless { since_ns: Nanos, at_ns: Nanos },
    /// An observer cannot write.
    #[error(transparent)]
    Unwritten(#[from] ObserverError),
}

impl SimWorld {
    /// Creates the world of a machine that already has its files, groups and swap. `boot_effects`:
    /// the effects of the setup.
    pub(crate) fn new(
        machine: Machine,
        setup: &model::Setup,
        tasks: Vec<SimTask>,
        disks: SimDisks,
        groups: SimGroups,
        objects: SimObjects,
        (boot_effects, seed): (Vec<Effect>, u64),
    ) -> SimWorld {
        let cpus = SimCpus::new(setup, &machine, &tasks);
        let numbers = cpus.numbers;
        let nr_foreground = tasks.iter().filter(|task| !task.background).count();
        let mut world = SimWorld {
            machine,
            now: 0,
            queue: WorldQueue::new(),
            cpus,
            disks,
            waits: ThreadWaits::new(numbers),
            daemons: SimDaemons::new(numbers.nr_nodes),
            groups,
            objects,
            setup: setup.clone(),
            seed,
            watchers: SimWatchers::new(setup, seed),
            pressure: PressureReports::new(numbers.len()),
            observing: Observing::new(numbers, setup.machine.cpus.into()),
            results: RunResults::new(nr_foreground, setup),
            copies: CopyFaults::default(),
            tasks,
        };
        for (id, task) in setup.tasks.iter().enumerate() {
            if task.start.after.is_none() {
                let at = task.start.delay_ns + world.tasks[id].start_jitter;
                world.queue.push(at, WorldEvent::Start(id));
            }
        }
        if setup.has_cpu_controller() {
            world.cpus.begin_groups(setup, &world.tasks, 0);
        }
        world.start_daemons();
        for effect in boot_effects {
            world.apply(effect, Cpu(0));
        }
        world.results.idle_slabs = SlabLevels::of(&world.machine, setup);
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

    fn run_events(
        &mut self,
        limit: Nanos,
        audit_every: u64,
        mut cancelled: impl FnMut(Nanos) -> bool,
    ) -> Result<bool, WorldError> {
        let mut nr_events = 0u64;
        self.report_pressures();
        while !self.is_complete() {
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
            self.now = at;
            self.observing.deliver_until(at)?;
            match event {
                WorldEvent::Cpu(cpu) => self.cpu_event(cpu)?,
                WorldEvent::Disk(disk) => self.disk_event(disk),
                WorldEvent::Timer(thread) => self.timer_event(thread),
                WorldEvent::Start(task) => self.start_task(task),
                WorldEvent::GracePeriod => self.grace_period_tick(),
                WorldEvent::Arrival(task) => self.arrival_event(task),
                WorldEvent::Period(group) => self.cpus.scheduler.period_ended(group, at),
            }
            self.free_late();
            self.cpus.serve_groups(at, &mut self.queue);
            self.report_pressures();
        }
        Ok(true)
    }

    /// True if all foreground tasks have ended.
    pub fn is_complete(&self) -> bool {
        self.results.nr_unfinished == 0
    }

    fn wake(&mut self, thread: WorldThread) {
        self.cpus.wake(thread, self.now, &mut self.queue);
    }

    /// Takes samples for a timeline from now on.
    pub fn sample(&mut self) {
        self.results.timeline = Some(TimelineSampler::new(&self.setup, self.now));
    }

    #[inline]
    pub(crate) fn sample_until(&mut self, at: Nanos) {
        let watched = SampledWorld {
            machine: &self.machine,
            groups: &self.groups.memcgs,
            tasks: &self.tasks,
            setup: &self.setup,
        };
        self.results.sample_until(at, &watched);
        self.watchers.look_until(at, &self.tasks);
    }

    /// Stops sampling and returns the samples, if any were requested.
    pub fn take_timeline(&mut self) -> Option<Timeline> {
        let watched = SampledWorld {
            machine: &self.machine,
            groups: &self.groups.memcgs,
            tasks: &self.tasks,
            setup: &self.setup,
        };
        self.results.timeline.take().map(|timeline| timeline.end(self.now, &watched))
    }
}
