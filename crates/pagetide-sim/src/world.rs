//! The simulated world: CPUs, disks, tasks and daemons around one [`Machine`], in virtual time.
//!
//! Everything happens at an event. A CPU executes a *piece* of one thread: the core's state
//! changes when the piece begins, its effects (I/O, wake-ups) take place when it ends, as late as
//! the cost model says. Ties are broken by the order in which events were scheduled, so a run is a
//! pure function of its setup and seed.
//!
//! Invariant: a thread is running on at most one CPU, and a busy CPU has exactly one event.

use crate::cost::CostModel;
use crate::disk::{Disk, IoKind, Request};
use crate::event_queue::{EventId, EventQueue};
use crate::scheduler::{Scheduler, TaskId};
use crate::task::{difference, snapshot, Blocked, PhaseRun, Task, PIECE_NS};
use pagetide_core::call::{Call, Outcome};
use pagetide_core::effect::{Effect, Io, Step, Throttle, Wait};
use pagetide_core::machine::{Machine, Touch};
use pagetide_core::page_table::{Advice, Backing};
use pagetide_core::reclaim::kswapd::KswapdIdle;
use pagetide_core::units::{Cpu, FileId, MmId, Nanos, NodeId, Pfn, PAGE_SIZE};
use pagetide_core::vmstat::Event as Counter;
use pagetide_scenario::model;
use pagetide_scenario::op::{self, Op};
use std::collections::BTreeMap;

/// Something that will happen.
#[derive(Clone, Copy, Debug)]
enum Event {
    /// A CPU's piece ends, or the CPU starts to work.
    Cpu(Cpu),
    /// A disk finishes a request.
    Disk(usize),
    /// A sleep or a throttle times out.
    Timer(Thread),
    /// A task may begin.
    Start(usize),
}

/// Who runs on a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Thread {
    Task(usize),
    Kswapd(NodeId),
    Flusher,
}

/// What happens to a thread when its piece ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum After {
    /// It goes on.
    Runnable,
    /// It sleeps, unless it was woken meanwhile.
    Block,
    /// It is over.
    Exit,
}

#[derive(Debug, Default)]
struct CpuState {
    event: Option<EventId>,
    /// The piece that is being executed.
    piece: Option<(Thread, After, Nanos)>,
    effects: Vec<Effect>,
    /// Who ran last: another thread costs a switch.
    last: Option<Thread>,
    /// Interrupt work to be added to the next piece.
    debt: Nanos,
}

/// A daemon's sleep.
#[derive(Debug, Default)]
struct Daemon {
    timer: Option<EventId>,
    throttled: Option<(NodeId, Throttle)>,
}

/// What the run is about to do with an I/O request when it ends.
#[derive(Clone, Copy, Debug)]
struct Pending {
    io: Io,
    cpu: Cpu,
}

/// The simulated world.
pub struct World {
    /// The memory manager.
    pub machine: Machine,
    /// All tasks, by index in the setup.
    pub tasks: Vec<Task>,
    /// Time now.
    pub now: Nanos,
    cost: CostModel,
    queue: EventQueue<Event>,
    scheduler: Scheduler,
    cpus: Vec<CpuState>,
    disks: Vec<Disk>,
    disk_events: Vec<Option<EventId>>,
    pending: Vec<Option<Pending>>,
    pending_free: Vec<usize>,
    /// First page of each file on its disk; the swap area is at page 0 of its own.
    file_base: Vec<(usize, u64)>,
    swap_disk: usize,
    page_waiters: BTreeMap<u32, Vec<usize>>,
    timers: Vec<Option<EventId>>,
    kswapds: Vec<Daemon>,
    flusher: Daemon,
    /// Files that traces brought, by key.
    trace_files: BTreeMap<u64, FileId>,
    setup: model::Setup,
    /// How much later than its scenario says each task starts.
    start_jitter: Vec<Nanos>,
    nr_over: usize,
}

/// Why a run cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum WorldError {
    /// A task's program failed.
    #[error("task `{task}`: {source}")]
    Program {
        /// The task.
        task: String,
        /// What failed.
        source: pagetide_scenario::workload::ProgramError,
    },
    /// Nothing can happen any more, yet tasks remain.
    #[error("the run is stuck at {at_ns} ns: `{task}` waits for something that never comes")]
    Stuck {
        /// When.
        at_ns: Nanos,
        /// One of the tasks.
        task: String,
    },
}

impl World {
    /// Puts tasks and disks around a machine that has its files, groups and swap.
    pub(crate) fn new(
        machine: Machine,
        setup: &model::Setup,
        tasks: Vec<Task>,
        disks: Vec<Disk>,
        file_base: Vec<(usize, u64)>,
        start_jitter: &[Nanos],
    ) -> World {
        let cpus = setup.machine.cpus;
        let mut scheduler = Scheduler::new(cpus);
        for (id, task) in setup.tasks.iter().enumerate() {
            scheduler.add_task(id as TaskId, task.nice, None);
        }
        let nr_nodes = machine.nr_nodes();
        for i in 0..nr_nodes {
            scheduler.add_task((tasks.len() + i) as TaskId, 0, None);
        }
        scheduler.add_task((tasks.len() + nr_nodes) as TaskId, 0, None);
        let mut world = World {
            machine,
            now: 0,
            cost: CostModel::for_cpus(cpus),
            queue: EventQueue::new(),
            scheduler,
            cpus: (0..cpus).map(|_| CpuState::default()).collect(),
            disk_events: vec![None; disks.len()],
            disks,
            pending: Vec::new(),
            pending_free: Vec::new(),
            file_base,
            swap_disk: setup.machine.swap.as_ref().map_or(0, |swap| swap.disk),
            page_waiters: BTreeMap::new(),
            timers: vec![None; tasks.len()],
            kswapds: (0..nr_nodes).map(|_| Daemon::default()).collect(),
            flusher: Daemon::default(),
            trace_files: BTreeMap::new(),
            setup: setup.clone(),
            start_jitter: start_jitter.to_vec(),
            nr_over: 0,
            tasks,
        };
        for (id, task) in setup.tasks.iter().enumerate() {
            if task.start.after.is_none() {
                world.queue.push(task.start.delay_ns + start_jitter[id], Event::Start(id));
            }
        }
        // The writeback thread's first periodic look.
        let interval = u64::from(world.machine.config.dirty_writeback_centisecs) * 10_000_000;
        if interval > 0 {
            world.flusher.timer = Some(world.queue.push(interval, Event::Timer(Thread::Flusher)));
        }
        world
    }

    /// Runs until all foreground tasks are over, `limit` is reached or `cancelled` says stop.
    /// Returns whether everything finished.
    pub fn run(
        &mut self,
        limit: Nanos,
        mut cancelled: impl FnMut(Nanos) -> bool,
    ) -> Result<bool, WorldError> {
        let mut polls = 0u32;
        while !self.is_finished() {
            polls = polls.wrapping_add(1);
            if polls.is_multiple_of(1024) && cancelled(self.now) {
                return Ok(false);
            }
            let Some((at, event)) = self.queue.pop() else {
                let task = self.tasks.iter().find(|task| !task.is_over() && !task.background);
                let task = task.map_or_else(String::new, |task| task.name.clone());
                return Err(WorldError::Stuck { at_ns: self.now, task });
            };
            if at > limit {
                self.now = limit;
                return Ok(false);
            }
            debug_assert!(at >= self.now, "time runs forward");
            self.now = at;
            match event {
                Event::Cpu(cpu) => self.cpu_event(cpu)?,
                Event::Disk(disk) => self.disk_event(disk),
                Event::Timer(thread) => self.timer_event(thread),
                Event::Start(task) => self.start_task(task),
            }
        }
        Ok(true)
    }

    fn is_finished(&self) -> bool {
        self.nr_over == self.tasks.iter().filter(|task| !task.background).count()
    }

    // ---- threads and CPUs ----

    fn thread_id(&self, thread: Thread) -> TaskId {
        let id = match thread {
            Thread::Task(task) => task,
            Thread::Kswapd(node) => self.tasks.len() + node.idx(),
            Thread::Flusher => self.tasks.len() + self.kswapds.len(),
        };
        id as TaskId
    }

    fn thread_of(&self, id: TaskId) -> Thread {
        let id = id as usize;
        if id < self.tasks.len() {
            Thread::Task(id)
        } else if id < self.tasks.len() + self.kswapds.len() {
            Thread::Kswapd(NodeId((id - self.tasks.len()) as u8))
        } else {
            Thread::Flusher
        }
    }

    /// Makes a thread runnable. If it is in the piece that was going to put it to sleep, it just
    /// does not sleep.
    fn wake(&mut self, thread: Thread) {
        for cpu in &mut self.cpus {
            if let Some((running, after, _)) = &mut cpu.piece {
                if *running == thread {
                    if *after == After::Block {
                        *after = After::Runnable;
                    }
                    return;
                }
            }
        }
        let id = self.thread_id(thread);
        if let Some(cpu) = self.scheduler.wake(self.now, id) {
            let state = &mut self.cpus[cpu.idx()];
            if state.event.is_none() {
                let at = self.now + self.cost.wakeup_ns + self.cost.idle_exit_ns;
                state.event = Some(self.queue.push(at, Event::Cpu(cpu)));
            }
        }
    }

    fn cpu_event(&mut self, cpu: Cpu) -> Result<(), WorldError> {
        self.cpus[cpu.idx()].event = None;
        if let Some((thread, after, ran)) = self.cpus[cpu.idx()].piece.take() {
            let id = self.thread_id(thread);
            self.scheduler.account(cpu, id, ran);
            if let Thread::Task(task) = thread {
                if !self.tasks[task].stalled {
                    self.machine.psi.run_end(self.now);
                }
            }
            // The effects of a piece that ends in sleep may wake it again at once.
            let mut after = after;
            if after == After::Block {
                self.scheduler.block(cpu);
            }
            self.carry_out(cpu);
            if let Thread::Task(task) = thread {
                if self.tasks[task].killed && !self.tasks[task].is_over() {
                    if after == After::Block && !self.scheduler.is_asleep(id) {
                        after = After::Runnable;
                    }
                    self.exit_task(task, cpu);
                    self.carry_out(cpu);
                    if after != After::Block && self.scheduler.current(cpu) == Some(id) {
                        self.scheduler.block(cpu);
                    }
                    after = After::Block;
                }
                if after == After::Exit {
                    self.exit_task(task, cpu);
                    self.carry_out(cpu);
                    self.scheduler.block(cpu);
                }
            }
        }
        self.dispatch(cpu)
    }

    /// Lets the CPU take the thread that should run, and starts its next piece.
    fn dispatch(&mut self, cpu: Cpu) -> Result<(), WorldError> {
        // A wake-up in this very event may have called the CPU already.
        if let Some(event) = self.cpus[cpu.idx()].event.take() {
            self.queue.cancel(event);
        }
        if self.scheduler.current(cpu).is_none() || self.scheduler.should_resched(cpu, self.now) {
            self.scheduler.pick_next(cpu, self.now);
        }
        let Some(id) = self.scheduler.current(cpu) else {
            return Ok(());
        };
        let thread = self.thread_of(id);
        let mut cost = std::mem::take(&mut self.cpus[cpu.idx()].debt);
        if self.cpus[cpu.idx()].last.replace(thread) != Some(thread) {
            cost += self.cost.context_switch_ns;
        }
        if let Thread::Task(task) = thread {
            if !self.tasks[task].stalled {
                self.machine.psi.run_begin(self.now);
            }
        }
        let (after, ran) = match thread {
            Thread::Task(task) => self.run_task(task, cpu)?,
            Thread::Kswapd(node) => self.run_kswapd(node, cpu),
            Thread::Flusher => self.run_flusher(cpu),
        };
        let ran = (ran + cost).max(1);
        let state = &mut self.cpus[cpu.idx()];
        state.piece = Some((thread, after, ran));
        state.event = Some(self.queue.push(self.now + ran, Event::Cpu(cpu)));
        Ok(())
    }

    /// Carries out the effects of the piece that just ended on `cpu`.
    fn carry_out(&mut self, cpu: Cpu) {
        let effects = std::mem::take(&mut self.cpus[cpu.idx()].effects);
        for &effect in &effects {
            self.apply(effect, cpu);
        }
        let mut effects = effects;
        effects.clear();
        let newer = std::mem::replace(&mut self.cpus[cpu.idx()].effects, effects);
        for effect in newer {
            self.apply(effect, cpu);
        }
    }

    fn apply(&mut self, effect: Effect, cpu: Cpu) {
        match effect {
            Effect::Submit(io) => self.submit(io, cpu),
            Effect::WakePage(pfn) => self.wake_page(pfn),
            Effect::WakeKswapd(node) => {
                if let Some(timer) = self.kswapds[node.idx()].timer.take() {
                    self.queue.cancel(timer);
                }
                self.wake(Thread::Kswapd(node));
            }
            // Compaction is not part of this world yet: nobody sleeps on kcompactd.
            Effect::WakeKcompactd(..) => {}
            Effect::WakeFlusher => {
                if let Some(timer) = self.flusher.timer.take() {
                    self.queue.cancel(timer);
                }
                self.wake(Thread::Flusher);
            }
            Effect::WakeThrottled(node, reason) => self.wake_throttled(node, reason),
            Effect::OomKill(mm) => self.oom_kill(mm),
        }
    }

    fn wake_page(&mut self, pfn: Pfn) {
        for task in self.page_waiters.remove(&pfn.0).unwrap_or_default() {
            self.end_page_wait(task);
            self.wake(Thread::Task(task));
        }
    }

    fn end_page_wait(&mut self, id: usize) {
        let task = &mut self.tasks[id];
        if task.blocked == Blocked::Page {
            task.blocked = Blocked::No;
            task.call_page_wait += self.now.saturating_sub(task.wait_began);
        }
        self.update_stall(id, None);
    }

    fn wake_throttled(&mut self, node: NodeId, reason: Throttle) {
        for task in 0..self.tasks.len() {
            if self.tasks[task].blocked == Blocked::Throttled(node, reason) {
                self.end_throttle(Thread::Task(task));
            }
        }
        for i in 0..self.kswapds.len() {
            if self.kswapds[i].throttled == Some((node, reason)) {
                self.end_throttle(Thread::Kswapd(NodeId(i as u8)));
            }
        }
        if self.flusher.throttled == Some((node, reason)) {
            self.end_throttle(Thread::Flusher);
        }
    }

    fn end_throttle(&mut self, thread: Thread) {
        let (timer, throttled) = match thread {
            Thread::Task(task) => {
                let blocked = std::mem::replace(&mut self.tasks[task].blocked, Blocked::No);
                let throttled = match blocked {
                    Blocked::Throttled(node, reason) => Some((node, reason)),
                    _ => None,
                };
                (self.timers[task].take(), throttled)
            }
            Thread::Kswapd(node) => {
                let daemon = &mut self.kswapds[node.idx()];
                (daemon.timer.take(), daemon.throttled.take())
            }
            Thread::Flusher => (self.flusher.timer.take(), self.flusher.throttled.take()),
        };
        if let Some(timer) = timer {
            self.queue.cancel(timer);
        }
        if let Some((node, reason)) = throttled {
            self.machine.throttle_ended(node, reason);
        }
        self.wake(thread);
    }

    fn timer_event(&mut self, thread: Thread) {
        match thread {
            Thread::Task(task) => {
                self.timers[task] = None;
                match self.tasks[task].blocked {
                    Blocked::Throttled(..) => self.end_throttle(thread),
                    Blocked::Sleeping => {
                        self.tasks[task].blocked = Blocked::No;
                        self.wake(thread);
                    }
                    Blocked::No | Blocked::Page | Blocked::Exited => {}
                }
            }
            Thread::Kswapd(node) => {
                self.kswapds[node.idx()].timer = None;
                if self.kswapds[node.idx()].throttled.is_some() {
                    self.end_throttle(thread);
                } else {
                    self.wake(thread);
                }
            }
            Thread::Flusher => {
                self.flusher.timer = None;
                if self.flusher.throttled.is_some() {
                    self.end_throttle(thread);
                } else {
                    self.wake(thread);
                }
            }
        }
    }

    // ---- disks ----

    fn submit(&mut self, io: Io, cpu: Cpu) {
        let (disk, kind, offset, pages) = match io {
            Io::ReadFile { file, index, nr } => {
                let (disk, base) = self.file_base[file.idx()];
                (disk, IoKind::Read, base + u64::from(index), nr)
            }
            Io::WriteFile { file, index, nr } => {
                let (disk, base) = self.file_base[file.idx()];
                (disk, IoKind::Write, base + u64::from(index), nr)
            }
            Io::SwapIn { slot, .. } => (self.swap_disk, IoKind::Read, u64::from(slot.0), 1),
            Io::SwapOut { slot, .. } => (self.swap_disk, IoKind::Write, u64::from(slot.0), 1),
        };
        let pending = Some(Pending { io, cpu });
        let id = match self.pending_free.pop() {
            Some(id) => {
                self.pending[id] = pending;
                id
            }
            None => {
                self.pending.push(pending);
                self.pending.len() - 1
            }
        };
        self.disks[disk].submit(self.now, Request { id: id as u64, kind, offset, pages });
        self.arm_disk(disk);
    }

    fn arm_disk(&mut self, disk: usize) {
        if let Some(event) = self.disk_events[disk].take() {
            self.queue.cancel(event);
        }
        if let Some(at) = self.disks[disk].next_completion() {
            let at = at.max(self.now);
            self.disk_events[disk] = Some(self.queue.push(at, Event::Disk(disk)));
        }
    }

    fn disk_event(&mut self, disk: usize) {
        self.disk_events[disk] = None;
        while let Some(completion) = self.disks[disk].pop_completion(self.now) {
            let id = completion.id as usize;
            let Some(Pending { io, cpu }) = self.pending[id].take() else {
                unreachable!("a request completes once")
            };
            self.pending_free.push(id);
            self.cpus[cpu.idx()].debt += self.cost.io_completion_ns;
            let mut effects = Vec::new();
            self.machine
                .io_done(io, completion.result.is_ok(), cpu, self.now)
                .drain_into(&mut effects);
            self.machine.take_work();
            for effect in effects {
                self.apply(effect, cpu);
            }
        }
        self.arm_disk(disk);
    }

    // ---- daemons ----

    fn run_kswapd(&mut self, node: NodeId, cpu: Cpu) -> (After, Nanos) {
        let (step, effects) = self.machine.kswapd_step(node, cpu, self.now);
        effects.drain_into(&mut self.cpus[cpu.idx()].effects);
        let cost = self.cost.cost(&self.machine.take_work());
        let thread = Thread::Kswapd(node);
        let after = match step {
            Step::Continue => After::Runnable,
            Step::Done(KswapdIdle::Sleep) => After::Block,
            Step::Done(KswapdIdle::Nap(ns)) => {
                let timer = self.queue.push(self.now + ns, Event::Timer(thread));
                self.kswapds[node.idx()].timer = Some(timer);
                After::Block
            }
            Step::Wait(wait) => self.daemon_wait(thread, wait),
        };
        (after, cost)
    }

    fn run_flusher(&mut self, cpu: Cpu) -> (After, Nanos) {
        let (step, effects) = self.machine.flusher_step(cpu, self.now);
        effects.drain_into(&mut self.cpus[cpu.idx()].effects);
        let cost = self.cost.cost(&self.machine.take_work());
        let after = match step {
            Step::Continue => After::Runnable,
            Step::Done(idle) => {
                if idle.timeout != u64::MAX {
                    let at = self.now + idle.timeout;
                    self.flusher.timer = Some(self.queue.push(at, Event::Timer(Thread::Flusher)));
                }
                After::Block
            }
            Step::Wait(wait) => self.daemon_wait(Thread::Flusher, wait),
        };
        (after, cost)
    }

    fn daemon_wait(&mut self, thread: Thread, wait: Wait) -> After {
        let Wait::Throttled { node, reason, timeout } = wait else {
            unreachable!("daemons do not wait for pages")
        };
        let timer = self.queue.push(self.now.saturating_add(timeout), Event::Timer(thread));
        let daemon = match thread {
            Thread::Kswapd(node) => &mut self.kswapds[node.idx()],
            _ => &mut self.flusher,
        };
        daemon.timer = Some(timer);
        daemon.throttled = Some((node, reason));
        After::Block
    }

    // ---- tasks ----

    fn start_task(&mut self, id: usize) {
        let task = &mut self.tasks[id];
        task.began = Some(self.now);
        task.blocked = Blocked::No;
        task.vmstat = snapshot(&self.machine.mem.vmstat);
        self.wake(Thread::Task(id));
    }

    fn exit_task(&mut self, id: usize, cpu: Cpu) {
        self.update_stall(id, None);
        let task = &mut self.tasks[id];
        task.blocked = Blocked::Exited;
        task.ended = Some(self.now);
        task.call = None;
        task.vmstat = difference(&self.machine.mem.vmstat, &task.vmstat);
        if let Some(phase) = task.phases.last().filter(|phase| phase.ended.is_none()) {
            let phase = phase.phase;
            self.end_phase(id, phase);
        }
        let task = &mut self.tasks[id];
        if !task.background {
            self.nr_over += 1;
        }
        let mm = task.mm;
        let mut effects = Vec::new();
        self.machine.exit_mm(mm, cpu).drain_into(&mut effects);
        self.cpus[cpu.idx()].debt += self.cost.cost(&self.machine.take_work());
        self.cpus[cpu.idx()].effects.extend(effects);
        for (other, task) in self.setup.tasks.iter().enumerate() {
            if task.start.after == Some(id) {
                let at = self.now + task.start.delay_ns + self.start_jitter[other];
                self.queue.push(at, Event::Start(other));
            }
        }
    }

    fn oom_kill(&mut self, mm: MmId) {
        let Some(id) = self.tasks.iter().position(|task| task.mm == mm) else { return };
        self.tasks[id].killed = true;
        let thread = Thread::Task(id);
        match self.tasks[id].blocked {
            Blocked::Exited | Blocked::No => {}
            Blocked::Throttled(..) => self.end_throttle(thread),
            Blocked::Page => {
                for waiters in self.page_waiters.values_mut() {
                    waiters.retain(|&waiter| waiter != id);
                }
                self.end_page_wait(id);
                self.wake(thread);
            }
            Blocked::Sleeping => {
                if let Some(timer) = self.timers[id].take() {
                    self.queue.cancel(timer);
                }
                self.tasks[id].blocked = Blocked::No;
                self.wake(thread);
            }
        }
    }

    /// Keeps the pressure accounting in step with what a task does: reclaiming for itself,
    /// throttled, or waiting for a page that was in the working set.
    fn update_stall(&mut self, id: usize, waiting: Option<Wait>) {
        let task = &self.tasks[id];
        let stalled = match (&task.call, waiting) {
            (Some((call, _)), Some(wait @ Wait::Page(_))) => {
                call.is_reclaiming() || call.is_thrashing(&self.machine, wait)
            }
            (_, Some(Wait::Throttled { reason, .. })) => reason != Throttle::Dirty,
            (Some((call, _)), None) => call.is_reclaiming(),
            (None, _) => false,
        };
        if stalled != task.stalled {
            self.tasks[id].stalled = stalled;
            if stalled {
                self.machine.psi.stall_begin(self.now);
            } else {
                self.machine.psi.stall_end(self.now);
            }
        }
    }

    /// Executes one piece of a task.
    fn run_task(&mut self, id: usize, cpu: Cpu) -> Result<(After, Nanos), WorldError> {
        if self.tasks[id].killed {
            return Ok((After::Runnable, 1));
        }
        let running_before = !self.tasks[id].stalled;
        let result = self.run_piece(id, cpu);
        // `run_begin` was told of this piece; keep `run_end` paired with it.
        if running_before && self.tasks[id].stalled {
            self.machine.psi.run_end(self.now);
        } else if !running_before && !self.tasks[id].stalled {
            self.machine.psi.run_begin(self.now);
        }
        result
    }

    fn run_piece(&mut self, id: usize, cpu: Cpu) -> Result<(After, Nanos), WorldError> {
        let mut elapsed: Nanos = 0;
        while elapsed < PIECE_NS && self.cpus[cpu.idx()].effects.is_empty() {
            if self.tasks[id].call.is_some() {
                if let Some(after) = self.step_call(id, cpu, &mut elapsed) {
                    return Ok((after, elapsed));
                }
                continue;
            }
            if self.tasks[id].compute_left > 0 {
                let ns = self.tasks[id].compute_left.min(PIECE_NS - elapsed);
                let task = &mut self.tasks[id];
                task.compute_left -= ns;
                task.usage.user_ns += ns;
                elapsed += ns;
                continue;
            }
            let op = self.tasks[id].program.next_op().map_err(|source| WorldError::Program {
                task: self.tasks[id].name.clone(),
                source,
            })?;
            match op {
                None => return Ok((After::Exit, elapsed)),
                Some(Op::Access { region, page, write }) => {
                    let task = &mut self.tasks[id];
                    let vma = task.regions[region as usize];
                    task.usage.bytes += PAGE_SIZE;
                    task.usage.user_ns += self.cost.access_ns();
                    elapsed += self.cost.access_ns();
                    if self.machine.touch(vma, page, write) == Touch::Fault {
                        let node = self.machine.mem.cpu_node(cpu);
                        let call = Call::fault(task.mm, node, vma, page, write);
                        self.begin_call(id, call, Op::Access { region, page, write }, elapsed);
                    }
                }
                Some(op) => {
                    if let Some(after) = self.other_op(id, op, cpu, &mut elapsed) {
                        return Ok((after, elapsed));
                    }
                }
            }
        }
        Ok((After::Runnable, elapsed))
    }

    fn begin_call(&mut self, id: usize, call: Call, op: Op, elapsed: Nanos) {
        let task = &mut self.tasks[id];
        task.call = Some((call, op));
        task.call_began = self.now + elapsed;
        task.call_page_wait = 0;
    }

    /// One step of a task's call. `Some`: the piece ends.
    fn step_call(&mut self, id: usize, cpu: Cpu, elapsed: &mut Nanos) -> Option<After> {
        let Some((mut call, op)) = self.tasks[id].call.take() else { return None };
        let vmstat = &self.machine.mem.vmstat;
        let faults_before = vmstat.get(Counter::Pgfault);
        let majors_before = vmstat.get(Counter::Pgmajfault);
        let (step, effects) = self.machine.step(&mut call, cpu, self.now + *elapsed);
        effects.drain_into(&mut self.cpus[cpu.idx()].effects);
        let cost = self.cost.cost(&self.machine.take_work());
        *elapsed += cost;
        let vmstat = &self.machine.mem.vmstat;
        let task = &mut self.tasks[id];
        task.usage.system_ns += cost;
        task.usage.pgfault += vmstat.get(Counter::Pgfault) - faults_before;
        task.usage.pgmajfault += vmstat.get(Counter::Pgmajfault) - majors_before;
        match step {
            Step::Continue => {
                task.call = Some((call, op));
                self.update_stall(id, None);
                None
            }
            Step::Wait(wait) => {
                task.call = Some((call, op));
                task.wait_began = self.now + *elapsed;
                match wait {
                    Wait::Page(pfn) => {
                        task.blocked = Blocked::Page;
                        self.page_waiters.entry(pfn.0).or_default().push(id);
                    }
                    Wait::Throttled { node, reason, timeout } => {
                        task.blocked = Blocked::Throttled(node, reason);
                        if timeout != u64::MAX {
                            let at = self.now + *elapsed + timeout;
                            self.timers[id] =
                                Some(self.queue.push(at, Event::Timer(Thread::Task(id))));
                        }
                    }
                }
                self.update_stall(id, Some(wait));
                Some(After::Block)
            }
            Step::Done(outcome) => {
                self.update_stall(id, None);
                self.finish_call(id, &call, op, outcome, *elapsed)
            }
        }
    }

    fn finish_call(
        &mut self,
        id: usize,
        call: &Call,
        op: Op,
        outcome: Outcome,
        elapsed: Nanos,
    ) -> Option<After> {
        let task = &mut self.tasks[id];
        let wall = (self.now + elapsed).saturating_sub(task.call_began);
        task.alloc_latency.record(wall.saturating_sub(task.call_page_wait));
        if let (Op::Read { file, .. }, Some(state)) = (op, call.readahead()) {
            task.readahead[file] = state;
        }
        match outcome {
            Outcome::Minor | Outcome::Major => None,
            Outcome::IoError => {
                // A failed read() is an error code the program may ignore; a failed fault is
                // SIGBUS, which it cannot.
                task.io_errors += 1;
                if matches!(op, Op::Access { .. }) {
                    Some(After::Exit)
                } else {
                    None
                }
            }
            Outcome::NoMemory => {
                task.killed = true;
                Some(After::Runnable)
            }
        }
    }

    /// Everything but accesses.
    fn other_op(&mut self, id: usize, op: Op, cpu: Cpu, elapsed: &mut Nanos) -> Option<After> {
        let node = self.machine.mem.cpu_node(cpu);
        let mm = self.tasks[id].mm;
        match op {
            Op::Access { .. } => unreachable!("handled by the caller"),
            Op::Map { region, backing, pages, advice, executable } => {
                debug_assert_eq!(region as usize, self.tasks[id].regions.len());
                let backing = match backing {
                    op::Backing::Anon => Backing::Anon,
                    op::Backing::File(file) => Backing::File(FileId(file as u32)),
                    op::Backing::TraceFile { key } => Backing::File(self.trace_file(key, pages)),
                };
                let vma = self.machine.mmap(mm, backing, pages, advice_of(advice), executable);
                self.tasks[id].regions.push(vma);
                *elapsed += self.cost.syscall_ns;
            }
            Op::Unmap { region } => {
                let vma = self.tasks[id].regions[region as usize];
                let effects = self.machine.munmap(vma, cpu);
                effects.drain_into(&mut self.cpus[cpu.idx()].effects);
                *elapsed += self.cost.syscall_ns + self.cost.cost(&self.machine.take_work());
            }
            Op::Read { file, offset, len } => {
                let state = self.tasks[id].readahead[file];
                self.tasks[id].usage.bytes += len;
                let call = Call::read(mm, node, FileId(file as u32), offset, len, state);
                self.begin_call(id, call, op, *elapsed);
            }
            Op::Write { file, offset, len } => {
                self.tasks[id].usage.bytes += len;
                let call = Call::write(mm, node, FileId(file as u32), offset, len);
                self.begin_call(id, call, op, *elapsed);
            }
            Op::Compute { ns } => self.tasks[id].compute_left = ns,
            Op::Sleep { ns } => {
                self.tasks[id].blocked = Blocked::Sleeping;
                let at = self.now + *elapsed + ns;
                self.timers[id] = Some(self.queue.push(at, Event::Timer(Thread::Task(id))));
                return Some(After::Block);
            }
            Op::PhaseBegin { phase } => {
                let vmstat = snapshot(&self.machine.mem.vmstat);
                let task = &mut self.tasks[id];
                task.phases.push(PhaseRun {
                    phase,
                    began: self.now + *elapsed,
                    ended: None,
                    usage: task.usage.clone(),
                    vmstat,
                    extra: Vec::new(),
                });
            }
            Op::PhaseEnd { phase } => {
                // Wall time up to the end of what this piece has done so far.
                let now = self.now;
                self.now += *elapsed;
                self.end_phase(id, phase);
                self.now = now;
            }
        }
        None
    }

    fn end_phase(&mut self, id: usize, phase: u32) {
        let extra = self.residency(id, phase);
        let vmstat = &self.machine.mem.vmstat;
        let task = &mut self.tasks[id];
        let usage = task.usage.clone();
        if let Some(run) = task.phases.iter_mut().rev().find(|run| run.phase == phase) {
            run.ended = Some(self.now);
            run.usage = usage.since(&run.usage);
            run.vmstat = difference(vmstat, &run.vmstat);
            run.extra = extra;
        }
    }

    /// Pages of the hot and of the cold part of a working set in memory at the end of its phase.
    fn residency(&self, id: usize, phase: u32) -> Vec<(&'static str, u64)> {
        let model::Workload::WorkingSet(set) =
            &self.setup.tasks[id].phases[phase as usize].workload
        else {
            return Vec::new();
        };
        let task = &self.tasks[id];
        let hot_percent = u64::from(set.hot_page_percent);
        let mut found = Vec::new();
        let mut count = |name: [&'static str; 2], region: &str, pages: u64| {
            let Some(number) = task.program.region_number(region) else { return };
            let Some(&vma) = task.regions.get(number as usize) else { return };
            let hot = pages * hot_percent / 100;
            let mut resident = [0u64; 2];
            for index in 0..pages {
                let page = pagetide_scenario::workload::scatter(index, pages);
                if self.machine.is_in_core(vma, page) {
                    resident[usize::from(index >= hot)] += 1;
                }
            }
            found.push((name[0], resident[0]));
            found.push((name[1], resident[1]));
        };
        if let Some((region, pages)) = &set.anon {
            count(["anon_hot_resident", "anon_cold_resident"], region, *pages);
        }
        if let Some((_, region, pages, _)) = &set.file {
            count(["file_hot_resident", "file_cold_resident"], region, *pages);
        }
        found
    }

    fn trace_file(&mut self, key: u64, pages: u64) -> FileId {
        if let Some(&file) = self.trace_files.get(&key) {
            return file;
        }
        let file = self.machine.create_file(pages * PAGE_SIZE, false);
        let disk = 0;
        let base = self.file_base.iter().filter(|base| base.0 == disk).map(|base| base.1).max();
        self.file_base.push((disk, base.unwrap_or(0) + (1 << 24)));
        self.trace_files.insert(key, file);
        file
    }
}

fn advice_of(advice: model::Advice) -> Advice {
    match advice {
        model::Advice::Normal => Advice::Normal,
        model::Advice::Random => Advice::Random,
        model::Advice::Sequential => Advice::Sequential,
    }
}
