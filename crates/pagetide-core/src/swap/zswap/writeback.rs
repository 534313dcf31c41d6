//! Writing pages of the pool to their disks, and the worker that does it when the pool is full.
//!
//! Linux: `zswap_writeback_entry`, `shrink_worker`, `shrink_memcg` (mm/zswap.c, 6.1 and 6.12). The
//! page is decompressed into a new page in the swap cache, which is written to the slot and can be
//! freed afterwards. The worker of 6.1 writes one page each time that a store finds the pool full.
//! The worker of 6.12 takes the groups in turn, until the pool is below its threshold or 16 groups
//! in which it has tried gave nothing. An entry that it meets for the first time is passed over.
//!
//! Invariant: between two steps the worker holds no page.

use super::{Zswap, ZswapEntryId};
use crate::frames::gfp::Gfp;
use crate::frames::page::PageFlags;
use crate::frames::page_request::{PageRequest, SlowRequest};
use crate::groups::memcg::{MemcgPosition, ROOT};
use crate::interface::ctx::Ctx;
use crate::interface::daemon::{Daemon, DaemonRest};
use crate::interface::effect::{Effect, Io, Step, Token};
use crate::interface::kernel::Kernel;
use crate::interface::manager::Manager;
use crate::interface::owners::Owners;
use crate::stats::vmstat::{Event, NodeStat};
use crate::units::digest::State;
use crate::units::{Cpu, MemcgId, Nanos, NodeId, Pfn, Requester, SwapSlot};

/// Groups without a page written after which the worker of 6.12 ends (Linux `MAX_RECLAIM_RETRIES`).
const MAX_FAILURES: u32 = 16;
/// Lists without a page to write that a step of the worker passes.
const LISTS_A_STEP: u32 = 32;

/// The worker (Linux `zswap_shrink_work`).
#[derive(Clone, Debug, Default, State)]
pub(crate) struct ZswapWorker {
    /// Requested since the present run began.
    queued: bool,
    run: Option<WorkerRun>,
    slow: Option<SlowRequest>,
    /// The group that it looked at last (6.12: `zswap_next_shrink`).
    last_group: Option<MemcgPosition>,
}

/// A run of the worker.
#[derive(Clone, Copy, Debug, Default, State)]
struct WorkerRun {
    /// The page to write, for which a page in the swap cache is requested.
    target: Option<WritebackTarget>,
    /// The group that is looked at (6.12).
    visit: Option<GroupVisit>,
    /// Groups with entries since the start of the tree.
    attempts: u32,
    failures: u32,
}

/// An entry, also if its slot gets another one in the meantime.
#[derive(Clone, Copy, Debug, PartialEq, Eq, State)]
struct WritebackTarget {
    slot: SwapSlot,
    turn: u64,
}

/// Progress in the lists of one group.
#[derive(Clone, Copy, Debug, State)]
struct GroupVisit {
    memcg: MemcgId,
    next_node: u32,
    has_entries: bool,
    has_shrunk: bool,
}

enum NextWriteback {
    Page(WritebackTarget),
    /// None found in this step.
    Later,
    End,
}

/// Why a page was not written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WritebackFailure {
    /// It is in the swap cache: it is in use (Linux `-EEXIST`).
    Cached,
    /// No page was free, or the entry is gone (Linux `-ENOMEM`).
    NoPage,
}

impl Zswap {
    fn target(&self, id: ZswapEntryId) -> WritebackTarget {
        let entry = self.at(id);
        WritebackTarget { slot: entry.slot, turn: entry.turn }
    }

    fn has(&self, target: WritebackTarget) -> bool {
        self.entry_of(target.slot).is_some_and(|id| self.at(id).turn == target.turn)
    }

    /// The oldest entry of a list, unless it has to be passed over; and whether there is one.
    pub(super) fn oldest_to_write(
        &mut self,
        memcg: MemcgId,
        node: NodeId,
    ) -> (bool, Option<ZswapEntryId>) {
        let Some(id) = self.list(memcg, node).oldest.real() else { return (false, None) };
        let was_referenced = core::mem::replace(&mut self.at_mut(id).referenced, false);
        // An entry that is written is first put out of the way of others.
        self.rotate(id);
        (true, (!was_referenced).then_some(id))
    }
}

impl Kernel {
    /// Requests the worker.
    pub(super) fn wake_zswap_worker(&mut self) {
        if let Some(zswap) = &mut self.swap.zswap {
            if !core::mem::replace(&mut zswap.worker.queued, true) {
                self.step.effects.push(Effect::Wake(Token::Daemon(Daemon::Kworker)));
            }
        }
    }

    /// Writes the page of an entry to its disk, by way of `pfn`, which is charged to `memcg`.
    fn zswap_write_out(&mut self, slot: SwapSlot, pfn: Pfn, memcg: MemcgId, ctx: &Ctx) {
        let flags = PageFlags::SWAPBACKED
            .with(PageFlags::UPTODATE)
            .with(PageFlags::WRITEBACK)
            .with(PageFlags::RECLAIM);
        self.enter_swap_cache(slot, pfn, memcg, flags, ctx);
        self.step.effects.push_contents(Effect::LoadPage { slot, pfn });
        if let Some(entry) = self.zswap_decompress(slot) {
            self.zswap_event(&entry, Event::Zswpwb);
        }
        self.zswap_invalidate(slot, ctx.cpu);
        self.zswap_stat(|stats| stats.written_back_pages += 1);
        self.writeback_stat_inc(pfn, NodeStat::NrWriteback);
        self.count_request(1);
        self.submit_swap(Io::SwapOut { slot, pfn, nr: 1 }, ctx);
    }

    /// Writes the page of an entry, during reclaim: from the reserves and over the limits of its
    /// group.
    pub(super) fn zswap_write_now(
        &mut self,
        slot: SwapSlot,
        ctx: &Ctx,
    ) -> Result<(), WritebackFailure> {
        let written = match self.swap[slot].cached(slot) {
            Some(_) => Err(WritebackFailure::Cached),
            None => self.alloc_in_reclaim(Gfp::KERNEL, ctx).ok_or(WritebackFailure::NoPage),
        };
        match written {
            Ok(pfn) => {
                let memcg = self.slot_memcg(slot, ctx);
                if memcg != ROOT {
                    self.groups.charge_over_limits(memcg, 1);
                }
                self.zswap_write_out(slot, pfn, memcg, ctx);
                Ok(())
            }
            Err(failure) => {
                self.zswap_stat(|stats| stats.reject_reclaim_fail += 1);
                Err(failure)
            }
        }
    }

    /// Makes room below the `memory.zswap.max` of a group (6.12 `shrink_memcg`): looks at the oldest
    /// entry of each of its lists. Returns whether it has written one.
    pub(super) fn zswap_shrink_group(&mut self, memcg: MemcgId, ctx: &Ctx) -> bool {
        if !self.groups.zswap_writeback_enabled(memcg) {
            return false;
        }
        let mut has_shrunk = false;
        for node in (0..self.mem.pgdat.len()).map(|node| NodeId(node as u8)) {
            let Some(zswap) = self.swap.zswap.as_mut() else { break };
            if let (_, Some(id)) = zswap.oldest_to_write(memcg, node) {
                let slot = zswap.at(id).slot;
                has_shrunk |= self.zswap_write_now(slot, ctx).is_ok();
            }
        }
        has_shrunk
    }

    /// The next page for the worker, which 6.1 takes from the oldest entry of all.
    fn next_writeback(&mut self, worker: &mut ZswapWorker, run: &mut WorkerRun) -> NextWriteback {
        if self.era.zswap_by_group {
            return self.next_writeback_by_group(worker, run);
        }
        let Some(zswap) = self.swap.zswap.as_mut() else { return NextWriteback::End };
        match zswap.oldest() {
            Some(id) => {
                zswap.rotate(id);
                NextWriteback::Page(zswap.target(id))
            }
            None => {
                zswap.stats.reject_reclaim_fail += 1;
                NextWriteback::End
            }
        }
    }

    fn next_writeback_by_group(
        &mut self,
        worker: &mut ZswapWorker,
        run: &mut WorkerRun,
    ) -> NextWriteback {
        let total = self.mem.total_ram_pages();
        let nr_nodes = self.mem.pgdat.len() as u32;
        for _ in 0..LISTS_A_STEP {
            let Some(zswap) = self.swap.zswap.as_mut() else { return NextWriteback::End };
            match &mut run.visit {
                Some(visit) if visit.next_node < nr_nodes => {
                    let node = NodeId(visit.next_node as u8);
                    visit.next_node += 1;
                    let (has_entries, found) = zswap.oldest_to_write(visit.memcg, node);
                    visit.has_entries |= has_entries;
                    if let Some(id) = found {
                        return NextWriteback::Page(zswap.target(id));
                    }
                    continue;
                }
                Some(visit) => {
                    run.attempts += u32::from(visit.has_entries);
                    run.failures += u32::from(visit.has_entries && !visit.has_shrunk);
                    run.visit = None;
                }
                None => match self.groups.next_online(worker.last_group) {
                    Some(memcg) => {
                        worker.last_group = Some(self.groups.position_of(memcg));
                        if self.groups.zswap_writeback_enabled(memcg) {
                            run.visit = Some(GroupVisit {
                                memcg,
                                next_node: 0,
                                has_entries: false,
                                has_shrunk: false,
                            });
                            continue;
                        }
                    }
                    // The tree is at its end: a failure if no group had entries.
                    None => {
                        worker.last_group = None;
                        run.failures += u32::from(run.attempts == 0);
                        run.attempts = 0;
                    }
                },
            }
            let is_done =
                self.swap.zswap.as_ref().is_none_or(|zswap| {
                    zswap.pool.nr_pages() <= zswap.accept_threshold_pages(total)
                });
            if is_done || run.failures >= MAX_FAILURES {
                return NextWriteback::End;
            }
        }
        NextWriteback::Later
    }

    /// Whether the page of a target can be written.
    fn check_target(&self, target: WritebackTarget) -> Result<(), WritebackFailure> {
        if !self.swap.zswap.as_ref().is_some_and(|zswap| zswap.has(target)) {
            return Err(WritebackFailure::NoPage);
        }
        match self.swap[target.slot].cached(target.slot) {
            Some(_) => Err(WritebackFailure::Cached),
            None => Ok(()),
        }
    }
}

impl<O: Owners> Manager<O> {
    /// One bounded step of the worker. `None`: it has nothing to do.
    pub(crate) fn zswap_worker_step(&mut self, cpu: Cpu, now: Nanos) -> Option<Step<DaemonRest>> {
        let worker = &mut self.swap.zswap.as_mut()?.worker;
        if worker.run.is_none() && !core::mem::take(&mut worker.queued) {
            return None;
        }
        let mut worker = core::mem::take(worker);
        let ctx =
            Ctx { cpu, node: self.mem.cpu_node(cpu), now, asker: Requester::NONE, memcg: ROOT };
        let mut run = worker.run.take().unwrap_or_default();
        let step = match self.zswap_worker_run(&mut worker, &mut run, &ctx) {
            Some(step) => {
                worker.run = Some(run);
                step
            }
            None => Step::Continue,
        };
        if let Some(zswap) = &mut self.swap.zswap {
            // Its own reclaim may have requested it again.
            worker.queued |= zswap.worker.queued;
            zswap.worker = worker;
        }
        Some(step)
    }

    /// `None`: the run has ended.
    fn zswap_worker_run(
        &mut self,
        worker: &mut ZswapWorker,
        run: &mut WorkerRun,
        ctx: &Ctx,
    ) -> Option<Step<DaemonRest>> {
        let target = match run.target {
            Some(target) => target,
            None => match self.next_writeback(worker, run) {
                NextWriteback::Page(target) => target,
                NextWriteback::Later => return Some(Step::Continue),
                NextWriteback::End => return None,
            },
        };
        let mut written = self.check_target(target);
        if written.is_ok() {
            let memcg = self.slot_memcg(target.slot, ctx);
            let request = PageRequest::page(Gfp::KERNEL, memcg);
            run.target = Some(target);
            match self.request_page(ctx, &mut worker.slow, request) {
                Step::Continue => return Some(Step::Continue),
                Step::Wait(wait) => return Some(Step::Wait(wait)),
                Step::Done(Ok(pfn)) => {
                    // Reclaim for the page may have changed the entry.
                    written = self.check_target(target);
                    match written {
                        Ok(()) => self.zswap_write_out(target.slot, pfn, memcg, ctx),
                        Err(_) => self.discard_charged(ctx.cpu, pfn, memcg),
                    }
                }
                Step::Done(Err(_)) => written = Err(WritebackFailure::NoPage),
            }
        } else if let Some(slow) = worker.slow.take() {
            self.abandon_slow_request(&slow, Requester::NONE, ctx.cpu);
        }
        run.target = None;
        if written.is_err() {
            self.zswap_stat(|stats| stats.reject_reclaim_fail += 1);
        }
        let visit = run.visit.as_mut()?;
        visit.has_shrunk |= written.is_ok();
        Some(Step::Continue)
    }
}
