//! Execution of tasks: one time slice at a time, operation by operation.
//!
//! Invariant: a task has a call in progress exactly while it performs an operation that needs the
//! kernel (the call is taken out during a step). PSI counts the task as stalled exactly while that
//! call reclaims, is throttled in reclaim, or waits for a page of the working set.

use super::memory::gfp_of;
use crate::observe::{ActivitySlice, ObservationKind, WaitReason};
use crate::scheduler::TaskId;
use crate::task::{snapshot, Blocked, MemoryWait, PIECE_NS};
use crate::world::{SimWorld, SliceEnd, WorldError, WorldThread};
use pagetide_core::frames::page::PageFlags;
use pagetide_core::interface::effect::{Sleep, Step, Token};
use pagetide_core::interface::outcome::Outcome;
use pagetide_core::interface::throttle::Throttle;
use pagetide_core::process::page_table::{Backing, VmaId};
use pagetide_core::process::readahead::ReadaheadState;
use pagetide_core::process::{ProcessCall, TouchResult};
use pagetide_core::stats::vmstat::{Event as Counter, Vmstat};
use pagetide_core::units::errno::Errno;
use pagetide_core::units::{Cpu, FileId, Nanos};
use pagetide_scenario::model::costs::Price;
use pagetide_scenario::names::MadviseKind;
use pagetide_scenario::op::{self, Op};

/// Most operations in a time slice: reached if each costs half a nanosecond. With the default costs
/// an access takes 40 times as long, and a step of a call more, so ordinary costs never reach it.
const OPERATIONS_MAX: u64 = 2 * PIECE_NS;
/// Most consecutive steps without cost. A reclaim has one or two.
const DECISIONS_MAX: u32 = 16;

enum CallProgress {
    /// The call needs another step.
    GoesOn,
    Waits,
    /// The call is done. `Some`: the time slice ends too.
    Over(Option<SliceEnd>),
}

/// Pages allocated so far, in all zones.
fn allocated(vmstat: &Vmstat) -> u64 {
    const OF_ZONES: [Counter; 4] = [
        Counter::PgallocDma,
        Counter::PgallocDma32,
        Counter::PgallocNormal,
        Counter::PgallocMovable,
    ];
    OF_ZONES.iter().map(|&event| vmstat.get(event)).sum()
}

impl SimWorld {
    pub(crate) fn start_task(&mut self, id: usize) {
        if std::mem::take(&mut self.tasks[id].will_restart) {
            self.revive(id);
        }
        let task = &mut self.tasks[id];
        if task.is_over() {
            return;
        }
        task.began.get_or_insert(self.now);
        task.blocked = Blocked::No;
        task.vmstat = snapshot(&self.machine.mem.vmstat);
        self.wake(WorldThread::Task(id));
    }

    /// Updates PSI for a task outside the steps of its call.
    pub(crate) fn update_stall(&mut self, id: usize, waiting: Option<Sleep>) {
        let call = self.tasks[id].call.as_ref();
        let stalled = call.is_some_and(|held| held.0.is_stalled(&self.machine, waiting));
        self.set_stalled(id, stalled);
    }

    #[inline]
    fn set_stalled(&mut self, id: usize, stalled: bool) {
        let task = &mut self.tasks[id];
        if stalled != task.stalled {
            task.stalled = stalled;
            self.report_pressure(id as TaskId);
        }
    }

    /// Executes one time slice of a task.
    pub(crate) fn run_task(
        &mut self,
        id: usize,
        cpu: Cpu,
    ) -> Result<(SliceEnd, Nanos), WorldError> {
        if self.tasks[id].must_exit() {
            return Ok((SliceEnd::Runnable, 1));
        }
        let mut elapsed: Nanos = 0;
        let mut operations = 0;
        while elapsed < PIECE_NS
            && self.cpus.of[cpu].effects.is_empty()
            && !self.tasks[id].plug.is_due()
        {
            operations += 1;
            if operations > OPERATIONS_MAX {
                // All costs are 0. Time must advance, or no other thread would run.
                elapsed = PIECE_NS;
                break;
            }
            if let Some(mut held) = self.tasks[id].call.take() {
                let (call, op) = &mut *held;
                let (progress, cost) = self.step_call(id, call, *op, cpu, elapsed);
                elapsed += cost;
                match progress {
                    CallProgress::GoesOn => self.tasks[id].call = Some(held),
                    CallProgress::Waits => {
                        self.tasks[id].call = Some(held);
                        return Ok((SliceEnd::Block, elapsed));
                    }
                    CallProgress::Over(None) => {}
                    CallProgress::Over(Some(after)) => return Ok((after, elapsed)),
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
            if let Some(report) = self.tasks[id].reporting.take() {
                self.finish_report(id, report, elapsed);
                continue;
            }
            if let Some(step) = self.tasks[id].steps.pop_front() {
                elapsed += self.object_step(id, step, cpu, elapsed);
                continue;
            }
            let op = match self.tasks[id].program.next_fast() {
                Some(op) => Some(op),
                None => self.next_rest(id)?,
            };
            let own = self.tasks[id].program_ns;
            self.tasks[id].usage.user_ns += own;
            elapsed += own;
            match op {
                None => return Ok((SliceEnd::Exit, elapsed)),
                Some(Op::Access { region, page, write }) => {
                    let task = &mut self.tasks[id];
                    let vma = task.regions[region as usize];
                    task.usage.bytes += self.machine.mem.page_size.bytes();
                    let ns = self.cpus.meter.access();
                    task.usage.user_ns += ns;
                    elapsed += ns;
                    if self.machine.touch(vma, page, write) == TouchResult::Fault {
                        let node = self.machine.mem.cpu_node(cpu);
                        let mut call = ProcessCall::fault(task.mm, node, vma, page, write);
                        let op = Op::Access { region, page, write };
                        self.note_call(id, op, elapsed);
                        // Fast path: most faults end with their first step, so the call need not be
                        // boxed. The condition is that of the loop; a touch has no effects.
                        if elapsed < PIECE_NS && operations < OPERATIONS_MAX {
                            operations += 1;
                            let (progress, cost) = self.step_call(id, &mut call, op, cpu, elapsed);
                            elapsed += cost;
                            match progress {
                                CallProgress::GoesOn => {}
                                CallProgress::Waits => {
                                    self.tasks[id].call = Some(Box::new((call, op)));
                                    return Ok((SliceEnd::Block, elapsed));
                                }
                                CallProgress::Over(None) => continue,
                                CallProgress::Over(Some(after)) => return Ok((after, elapsed)),
                            }
                        }
                        self.tasks[id].call = Some(Box::new((call, op)));
                    }
                }
                Some(op) => {
                    let (after, cost) = self.other_op(id, op, cpu, elapsed);
                    elapsed += cost;
                    if let Some(after) = after {
                        return Ok((after, elapsed));
                    }
                }
            }
        }
        Ok((SliceEnd::Runnable, elapsed))
    }

    /// The next operation of a task, without the fast path.
    #[inline(never)]
    fn next_rest(&mut self, id: usize) -> Result<Option<Op>, WorldError> {
        let task = &mut self.tasks[id];
        let failed = |source| WorldError::Program { task: task.name.clone(), source };
        task.program.next_slow().map_err(failed)
    }

    /// Accounts for compaction in a step of a task's call. `goes_on`: the next step compacts too.
    fn note_compaction(&mut self, id: usize, goes_on: bool, now: Nanos, cost: Nanos) {
        let since = self.tasks[id].compacting_since.take();
        if let Some(since) = since {
            self.daemons.times.direct_ran(now.saturating_sub(since), cost);
        }
        self.tasks[id].compacting_since = goes_on.then_some(now);
        match (since, goes_on) {
            (None, true) => {
                self.show_began(WorldThread::Task(id), now, ActivitySlice::DirectCompaction)
            }
            (Some(_), false) => {
                let over = ObservationKind::Ended(ActivitySlice::DirectCompaction);
                self.observing.show(WorldThread::Task(id), now, over);
            }
            (None, false) | (Some(_), true) => {}
        }
    }

    pub(crate) fn begin_call(&mut self, id: usize, call: ProcessCall, op: Op, elapsed: Nanos) {
        self.tasks[id].call = Some(Box::new((call, op)));
        self.note_call(id, op, elapsed);
    }

    fn note_call(&mut self, id: usize, op: Op, elapsed: Nanos) {
        let task = &mut self.tasks[id];
        task.call_of = Some(op);
        task.call_began = self.now + elapsed;
        task.call_page_wait = 0;
    }

    /// Performs one step of a task's call, which the caller has taken out of the task, `elapsed`
    /// after the start of the time slice. Returns the CPU time of the step, too.
    fn step_call(
        &mut self,
        id: usize,
        call: &mut ProcessCall,
        op: Op,
        cpu: Cpu,
        elapsed: Nanos,
    ) -> (CallProgress, Nanos) {
        let now = self.now + elapsed;
        let vmstat = &self.machine.mem.vmstat;
        let faults_before = vmstat.get(Counter::Pgfault);
        let majors_before = vmstat.get(Counter::Pgmajfault);
        let allocated_before = allocated(vmstat);
        let [refaults, reads] = [Counter::WorkingsetRefaultFile, Counter::Pgpgin];
        let [refaults_before, reads_before] = [refaults, reads].map(|event| vmstat.get(event));
        let compacting = call.is_compacting();
        if compacting {
            self.machine.set_need_resched(self.cpus.scheduler.should_resched(cpu, now));
        }
        let mut reclaiming;
        let mut steps = 0;
        let step = loop {
            reclaiming = call.is_reclaiming();
            let (step, effects) = self.machine.step(call, cpu, now);
            self.cpus.hold(effects, cpu);
            // A step that only decides takes no time, so the next one follows at once.
            let goes_on = matches!(step, Step::Continue)
                && self.machine.mem.work.is_nothing()
                && self.cpus.of[cpu].effects.is_empty()
                && !call.is_compacting()
                && (self.machine.is_plugged() || self.tasks[id].plug.is_empty());
            steps += 1;
            if !goes_on || compacting || steps == DECISIONS_MAX {
                break step;
            }
        };
        let compacts = call.is_compacting();
        let majors = self.machine.mem.vmstat.get(Counter::Pgmajfault);
        if self.observing.is_observed() && majors > majors_before {
            self.show_major(id, now);
        }
        self.note_events(WorldThread::Task(id), cpu, now);
        let cost = self.take_work();
        let now = now + cost;
        if compacting || compacts {
            self.note_compaction(id, compacts, now, cost);
        }
        let vmstat = &self.machine.mem.vmstat;
        let task = &mut self.tasks[id];
        task.plug.step_ended(self.machine.is_plugged(), cost);
        task.usage.system_ns += cost;
        task.usage.pgfault += vmstat.get(Counter::Pgfault) - faults_before;
        task.usage.pgmajfault += vmstat.get(Counter::Pgmajfault) - majors_before;
        task.lost.allocated += allocated(vmstat) - allocated_before;
        task.has_refaulted |= vmstat.get(refaults) > refaults_before;
        if vmstat.get(reads) > reads_before {
            task.rereads = std::mem::take(&mut task.has_refaulted);
        }
        if reclaiming {
            task.lost.waited[MemoryWait::Reclaim as usize] += cost;
        }
        let progress = match step {
            Step::Continue => {
                self.set_stalled(id, call.is_stalled(&self.machine, None));
                CallProgress::GoesOn
            }
            Step::Wait(sleep) => {
                task.wait_began = now;
                task.waits_for = match sleep.token {
                    Token::Throttled(_, Throttle::Dirty) => Some(MemoryWait::Dirty),
                    Token::Throttled(_, Throttle::GroupDirty) => Some(MemoryWait::GroupDirty),
                    Token::Throttled(_, Throttle::MemoryHigh) => Some(MemoryWait::High),
                    Token::Throttled(..) => Some(MemoryWait::Throttled),
                    _ => {
                        let is_swapped = match sleep.token {
                            Token::Page(pfn) => {
                                let page = self.machine.mem.pages.get(pfn.idx());
                                page.is_some_and(|page| page.has(PageFlags::SWAPCACHE))
                            }
                            Token::Throttled(..) | Token::Daemon(_) => false,
                        };
                        let was_evicted = is_swapped || call.is_thrashing(&self.machine, sleep);
                        match (was_evicted, call.is_reclaiming()) {
                            (true, _) => Some(MemoryWait::Refault),
                            (false, true) => Some(MemoryWait::Reclaim),
                            (false, false) => task.rereads.then_some(MemoryWait::Reread),
                        }
                    }
                };
                match sleep.token {
                    Token::Page(pfn) => {
                        task.blocked = Blocked::Page;
                        self.waits.begin_page(WorldThread::Task(id), pfn);
                    }
                    Token::Throttled(node, reason) => {
                        task.blocked = Blocked::Throttled(node, reason);
                        if reason.is_dirty() {
                            self.disks.of.iter_mut().for_each(|disk| disk.writer_paused(now));
                        }
                        if sleep.timeout != Nanos::MAX {
                            let at = now + sleep.timeout;
                            self.waits.set_timer(WorldThread::Task(id), at, &mut self.queue);
                        }
                    }
                    Token::Daemon(daemon) => unreachable!("a task sleeps on {daemon:?}"),
                }
                self.set_stalled(id, call.is_stalled(&self.machine, Some(sleep)));
                let wait = match sleep.token {
                    Token::Throttled(_, reason) => WaitReason::Throttled(reason),
                    Token::Page(_) | Token::Daemon(_) => WaitReason::Page,
                };
                self.show_began(WorldThread::Task(id), now, ActivitySlice::Wait(wait));
                CallProgress::Waits
            }
            Step::Done(outcome) => {
                self.set_stalled(id, false);
                self.show_call_over(id, op, now);
                CallProgress::Over(self.finish_call(id, call.readahead(), op, outcome, now))
            }
        };
        (progress, cost)
    }

    fn finish_call(
        &mut self,
        id: usize,
        readahead: Option<ReadaheadState>,
        op: Op,
        outcome: Outcome,
        now: Nanos,
    ) -> Option<SliceEnd> {
        let task = &mut self.tasks[id];
        let wall = now.saturating_sub(task.call_began);
        let (cold, out) = (MadviseKind::Cold, MadviseKind::PageOut);
        let frees = matches!(op, Op::Advise { advice, .. } if advice == cold || advice == out);
        if !frees && !matches!(op, Op::Group { .. } | Op::Watch { .. }) {
            task.alloc_latency.record(wall.saturating_sub(task.call_page_wait));
        }
        if let (Op::Read { file, .. }, Some(state)) = (op, readahead) {
            task.readahead[file] = state;
        }
        match outcome {
            Outcome::Got(_) | Outcome::Minor | Outcome::Major => {}
            Outcome::Block(_) | Outcome::NoBlock => self.block_allocated(id, op, outcome),
            Outcome::Object(_) | Outcome::NoObject | Outcome::NoCache if task.step_of.is_some() => {
                self.file_object_allocated(id, outcome);
            }
            Outcome::Object(_) | Outcome::NoObject | Outcome::NoCache => {
                self.object_allocated(id, op, outcome);
            }
            Outcome::IoError => {
                // A failed read() is an error code the program may ignore; a failed fault is
                // SIGBUS, which it cannot.
                task.io_errors += 1;
                if matches!(op, Op::Access { .. }) {
                    task.crashed = true;
                    return Some(SliceEnd::Exit);
                }
                // MADV_POPULATE_READ and _WRITE return an error instead of SIGBUS.
                if matches!(op, Op::Advise { .. }) {
                    task.errno = Errno::Efault.code();
                }
            }
            Outcome::NoMemory | Outcome::BadId(_) => {
                // An OOM victim gets no memory. A thread may see that before the kill is carried
                // out.
                task.refused = !task.killed && !self.machine.is_oom_victim(task.mm);
                task.killed = true;
                if task.refused {
                    self.tasks[id].killed_for = self.out_of_memory();
                }
                return Some(SliceEnd::Runnable);
            }
            Outcome::Refused(errno) if matches!(op, Op::Advise { .. }) => task.errno = errno.code(),
            // A reclaim that found less than asked for: watchers go on.
            Outcome::Refused(_) if matches!(op, Op::Watch { .. }) => {}
            Outcome::Refused(errno) => self.group_write_refused(id, op, errno),
        }
        None
    }

    /// Performs any operation except an access, `elapsed` after the start of the time slice.
    /// Returns its CPU time, too. `Some`: the time slice ends.
    pub(crate) fn other_op(
        &mut self,
        id: usize,
        op: Op,
        cpu: Cpu,
        elapsed: Nanos,
    ) -> (Option<SliceEnd>, Nanos) {
        let node = self.machine.mem.cpu_node(cpu);
        let mm = self.tasks[id].mm;
        let (mut cost, mut call) = (0, None);
        match op {
            Op::Access { .. } => unreachable!("handled by the caller"),
            Op::Map { region, backing, pages, advice, executable } => {
                debug_assert_eq!(region as usize, self.tasks[id].regions.len());
                let grows = backing == op::RegionBacking::Heap;
                let backing = match backing {
                    op::RegionBacking::Anon | op::RegionBacking::Heap => Backing::Anon,
                    op::RegionBacking::File(file) => Backing::File(FileId(file as u32)),
                    op::RegionBacking::TraceFile { key } => {
                        Backing::File(self.disks.trace_file(&mut self.machine, key, pages))
                    }
                };
                let vma = self.machine.mmap(mm, backing, pages, advice, executable);
                let vma = vma.expect("a plan's regions fit");
                if grows {
                    self.machine.grow_on_touch(vma).expect("it was just mapped");
                }
                self.tasks[id].regions.push(vma);
                cost = self.cpus.meter.charge(Price::Syscall, 1);
            }
            Op::Unmap { region } => {
                // Another region may reuse the id.
                let regions = &mut self.tasks[id].regions;
                let vma = core::mem::replace(&mut regions[region as usize], VmaId::NONE);
                if let Ok(effects) = self.machine.munmap(vma, cpu) {
                    self.cpus.hold(effects, cpu);
                }
                cost = self.cpus.meter.charge(Price::Syscall, 1) + self.take_work();
            }
            Op::Discard { region, page, pages } => {
                cost = self.discard(id, region, page, pages, cpu);
            }
            Op::Lock { region, page, pages, how } => {
                (cost, call) = self.lock(id, (region, page..page + pages), how, cpu);
            }
            Op::Advise { region, page, pages, advice } => {
                (cost, call) = self.advise(id, (region, page..page + pages), advice, cpu);
            }
            Op::AllocBlock { order, request, .. } => {
                let ns = self.cpus.meter.charge(Price::Syscall, 1);
                cost = self.spend_in_kernel(id, ns);
                call = Some(ProcessCall::alloc_pages(mm, node, order, gfp_of(request)));
            }
            Op::FreeBlock { slot } => cost = self.free_block(id, slot, cpu),
            Op::AllocObject { .. } => (cost, call) = self.alloc_object(id, op, cpu),
            Op::FreeObject { slot } => cost = self.free_object(id, slot, cpu),
            Op::CacheObject { slot } => self.cache_object(id, slot),
            Op::MakeName { .. }
            | Op::RemoveName { .. }
            | Op::OpenPipe { .. }
            | Op::ClosePipe { .. } => cost = self.begin_file_call(id, op),
            Op::Pace { ns } => return (self.pace(id, ns, elapsed), 0),
            Op::Until { ns } => return (self.until(id, ns, elapsed), 0),
            Op::Serve { .. } => return (self.serve(id, elapsed), 0),
            Op::Read { file, offset, len } => {
                let state = self.tasks[id].readahead[file];
                self.tasks[id].usage.bytes += len;
                let file = FileId(file as u32);
                call = Some(ProcessCall::read(mm, node, file, offset, len, state));
            }
            Op::Write { file, offset, len } => {
                self.tasks[id].usage.bytes += len;
                call = Some(ProcessCall::write(mm, node, FileId(file as u32), offset, len));
            }
            Op::Compute { ns } => self.tasks[id].compute_left = ns,
            Op::Sleep { ns } => return (Some(self.sleep_until(id, self.now + elapsed + ns)), 0),
            Op::Watch { phase } => {
                cost = self.watch(id, phase, cpu, elapsed);
                self.note_events(WorldThread::Task(id), cpu, self.now + elapsed);
            }
            Op::WatchRest => return (self.watch_rest(id, elapsed), 0),
            Op::Group { phase } => {
                cost = self.group_op(id, op, phase, cpu, elapsed);
                // A write to vm.drop_caches shrinks caches at once, without a call.
                self.note_events(WorldThread::Task(id), cpu, self.now + elapsed);
            }
            Op::PhaseBegin { phase } => self.begin_phase(id, phase, elapsed),
            Op::PhaseEnd { phase } => self.leave_phase(id, phase, elapsed),
        }
        if let Some(call) = call {
            self.begin_call(id, call, op, elapsed + cost);
        }
        (None, cost)
    }

    pub(crate) fn sleep_until(&mut self, id: usize, at: Nanos) -> SliceEnd {
        self.tasks[id].blocked = Blocked::Sleeping;
        self.waits.set_timer(WorldThread::Task(id), at, &mut self.queue);
        SliceEnd::Block
    }

    /// Charges a task with kernel CPU time outside its calls. Returns that time.
    pub(crate) fn spend_in_kernel(&mut self, id: usize, ns: Nanos) -> Nanos {
        self.tasks[id].usage.system_ns += ns;
        ns
    }

    /// Sleeps until `ns` after the end of the phase's last pause, unless that time has passed.
    pub(crate) fn pace(&mut self, id: usize, ns: Nanos, elapsed: Nanos) -> Option<SliceEnd> {
        let now = self.now + elapsed;
        let due = self.tasks[id].paced.map_or(now, |last| last.saturating_add(ns));
        self.tasks[id].paced = Some(due.max(now));
        (due > now).then(|| self.sleep_until(id, due))
    }

    /// Sleeps until `ns` after the phase's first operation of this kind, unless that time has
    /// passed.
    pub(crate) fn until(&mut self, id: usize, ns: Nanos, elapsed: Nanos) -> Option<SliceEnd> {
        let now = self.now + elapsed;
        let due = self.tasks[id].until_base.get_or_insert(now).saturating_add(ns);
        (due > now).then(|| self.sleep_until(id, due))
    }
}
