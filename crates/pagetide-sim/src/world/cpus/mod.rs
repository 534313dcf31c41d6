//! CPUs: the thread of each, its time slice with the effects to come, and what work costs.
//!
//! Invariant: a thread runs on at most one CPU, and a busy CPU has exactly one event. A thread has
//! at most one time slice, running or preempted. A preempted thread is runnable.

mod effects;
mod groups;
mod slice;

use crate::cost::CostModel;
use crate::event_queue::EventId;
use crate::meter::CostMeter;
use crate::scheduler::{Scheduler, TaskId, WakeSource, TICK_NS};
use crate::task::SimTask;
use crate::world::threads::{cpus_of, nice_of, ThreadNumbers, WorldEvent, WorldQueue, WorldThread};
use pagetide_core::interface::daemon::Daemon;
use pagetide_core::interface::effect::{Effect, Effects};
use pagetide_core::process::Machine;
use pagetide_core::slab::object::Object;
use pagetide_core::stats::work::Work;
use pagetide_core::units::{Cpu, IdVec, Nanos};
use pagetide_scenario::model::costs::Price;
use pagetide_scenario::model::Setup;
use std::collections::BTreeMap;

/// Interval at which a CPU folds its per-CPU differences into the zones' counters
/// (`vm.stat_interval`).
const STAT_INTERVAL: Nanos = 1_000_000_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SliceEnd {
    Runnable,
    /// The thread sleeps, unless it is woken during the slice.
    Block,
    Exit,
}

/// A time slice in execution.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TimeSlice {
    pub thread: WorldThread,
    pub after: SliceEnd,
    /// Time of its start, or of its continuation after a preemption.
    pub since: Nanos,
    /// Time of its end, unless preempted.
    pub until: Nanos,
}

#[derive(Debug)]
struct PreemptedSlice {
    after: SliceEnd,
    left: Nanos,
    effects: Vec<Effect>,
}

#[derive(Debug, Default)]
pub(crate) struct CpuState {
    event: Option<EventId>,
    slice: Option<TimeSlice>,
    /// Effects to carry out at the end of the time slice.
    pub effects: Vec<Effect>,
    /// The thread that ran last; running another one costs a context switch.
    last: Option<WorldThread>,
    /// Time of interrupt work, added to the next time slice.
    pub debt: Nanos,
    idle_since: Option<Nanos>,
    /// Latest time of the next fold of its per-CPU counters (Linux `vmstat_update`).
    vmstat_update: Nanos,
}

#[derive(Debug)]
pub(crate) struct SimCpus {
    pub of: IdVec<Cpu, CpuState>,
    pub scheduler: Scheduler,
    pub meter: CostMeter,
    /// CPU time of all tasks, daemons, context switches and interrupts.
    pub busy_ns: Nanos,
    /// Source of the current wake-ups; `None`: a timer, which wakes a thread on the CPU where it
    /// fell asleep.
    pub waker: Option<WakeSource>,
    /// Objects that wait for a grace period since the current event.
    pub late: Vec<(Object, Cpu)>,
    pub numbers: ThreadNumbers,
    preempted: BTreeMap<TaskId, PreemptedSlice>,
    /// Time of the next search for CPUs that have been idle for a tick.
    idle_look: Nanos,
    /// The CPU controller is on.
    has_groups: bool,
}

impl SimCpus {
    pub fn new(setup: &Setup, machine: &Machine, tasks: &[SimTask]) -> SimCpus {
        let cpus = setup.machine.cpus;
        let numbers = ThreadNumbers { nr_tasks: tasks.len(), nr_nodes: machine.nr_nodes() };
        let mut scheduler = Scheduler::new(cpus, machine.config.scheduler);
        for (id, task) in tasks.iter().enumerate() {
            scheduler.add_task(id as TaskId, setup.tasks[task.leader].settings.nice, None);
        }
        for daemon in Daemon::all(numbers.nr_nodes) {
            let id = numbers.id(WorldThread::Daemon(daemon));
            scheduler.add_sleeper(id, nice_of(daemon), cpus_of(daemon, machine, cpus));
        }
        let model = CostModel::of_machine(&setup.machine.costs, cpus, machine.page_size());
        SimCpus {
            of: (0..cpus).map(|_| CpuState::default()).collect(),
            scheduler,
            meter: CostMeter::new(model)
                .with_init_on_alloc(setup.machine.init_on_alloc == Some(true)),
            busy_ns: 0,
            waker: None,
            late: Vec::new(),
            numbers,
            preempted: BTreeMap::new(),
            idle_look: 0,
            has_groups: false,
        }
    }

    /// Starts to count the operations of tasks and kernel threads, by [`Price`].
    pub fn count_work(&mut self) {
        self.meter.count(self.numbers.nr_tasks, self.of.len());
    }

    /// Keeps the effects of a call until the end of its time slice. Late frees take effect at the
    /// end of the event.
    #[inline]
    pub fn hold(&mut self, effects: Effects<'_>, cpu: Cpu) {
        // Most steps have no effects.
        if !effects.is_empty() {
            drain(effects, &mut self.of[cpu].effects, &mut self.late);
        }
    }

    /// Adds interrupt work to the next time slice of a CPU.
    pub fn owe(&mut self, cpu: Cpu, work: Work) {
        self.meter.at(cpu);
        self.of[cpu].debt += self.meter.work(work);
    }

    /// Adds an operation of an interrupt to the next time slice of a CPU.
    pub fn owe_one(&mut self, cpu: Cpu, price: Price) {
        self.meter.at(cpu);
        self.of[cpu].debt += self.meter.charge(price, 1);
    }

    /// Effects to come, also those of preempted time slices.
    pub fn effects(&self) -> impl Iterator<Item = &Effect> {
        let preempted = self.preempted.values().flat_map(|slice| &slice.effects);
        self.of.iter().flat_map(|cpu| &cpu.effects).chain(preempted)
    }

    /// True if a thread has a time slice, running or preempted.
    pub fn has_slice(&self, thread: WorldThread) -> bool {
        let runs = |slice: &TimeSlice| slice.thread == thread;
        self.is_preempted(thread) || self.of.iter().any(|cpu| cpu.slice.as_ref().is_some_and(runs))
    }

    /// True if the time slice of a thread was preempted.
    pub fn is_preempted(&self, thread: WorldThread) -> bool {
        self.preempted.contains_key(&self.numbers.id(thread))
    }

    pub fn is_asleep(&self, thread: WorldThread) -> bool {
        self.scheduler.is_asleep(self.numbers.id(thread))
    }

    /// The state of a thread after its time slice, if it has one.
    fn slice_end(&mut self, thread: WorldThread) -> Option<&mut SliceEnd> {
        let running = self.of.iter_mut().filter_map(|cpu| cpu.slice.as_mut());
        let running = running.filter(|slice| slice.thread == thread);
        let preempted = self.preempted.get_mut(&self.numbers.id(thread));
        running.map(|slice| &mut slice.after).chain(preempted.map(|slice| &mut slice.after)).next()
    }

    /// Makes a thread runnable. If it is still in the time slice that ends in its sleep, cancels
    /// the sleep.
    pub fn wake(&mut self, thread: WorldThread, now: Nanos, queue: &mut WorldQueue) {
        if let Some(after) = self.slice_end(thread) {
            if *after == SliceEnd::Block {
                *after = SliceEnd::Runnable;
            }
            return;
        }
        if let Some(cpu) = self.scheduler.wake(now, self.numbers.id(thread), self.waker) {
            self.reschedule(cpu, now, queue);
        }
    }

    /// Makes a CPU pick a thread: wakes an idle CPU, or ends the current time slice.
    fn reschedule(&mut self, cpu: Cpu, now: Nanos, queue: &mut WorldQueue) {
        let state = &mut self.of[cpu];
        if state.slice.is_some() {
            if let Some(event) = state.event.take() {
                queue.cancel(event);
            }
            state.event = Some(queue.push(now, WorldEvent::Cpu(cpu)));
        } else if state.event.is_none() {
            let at = now + self.meter.wake_up();
            state.event = Some(queue.push(at, WorldEvent::Cpu(cpu)));
        }
    }

    /// Before a CPU runs, folds its per-CPU counters into the zones' if it has not done so for a
    /// second, or has been idle for a tick (then it stopped its timer tick). On 6.1, a CPU that
    /// waited for a disk for a short time did not fold (kswapd's runs in zone DMA kept their rhythm
    /// over the waits).
    fn refresh_vm_stats(&mut self, cpu: Cpu, now: Nanos, machine: &mut Machine) {
        let state = &mut self.of[cpu];
        let was_idle = state.idle_since.take().is_some_and(|since| now - since >= TICK_NS);
        let is_due = now >= state.vmstat_update;
        if was_idle || is_due {
            state.vmstat_update = (now / STAT_INTERVAL + 1) * STAT_INTERVAL;
            machine.refresh_cpu_vm_stats(cpu, is_due);
        }
        // CPUs that stay idle fold too; searched for once a tick.
        if self.of.len() > 1 && now >= self.idle_look {
            self.idle_look = now + TICK_NS;
            for (at, other) in self.of.iter_mut().enumerate() {
                if other.idle_since.is_some_and(|since| now - since >= TICK_NS) {
                    other.idle_since = None;
                    machine.refresh_cpu_vm_stats(Cpu(at as u16), false);
                }
            }
        }
    }

    /// A kworker preempts the CPU for a moment (it has slept for long), then the CPU picks a thread
    /// again. The worker's own time is negligible compared with the two switches.
    fn run_worker(&mut self, cpu: Cpu) {
        self.owe_one(cpu, Price::ContextSwitch);
        self.of[cpu].last = None;
        self.scheduler.resched(cpu);
    }
}

/// Splits the effects of a call into late frees and others.
pub(crate) fn drain(effects: Effects<'_>, to: &mut Vec<Effect>, late: &mut Vec<(Object, Cpu)>) {
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
