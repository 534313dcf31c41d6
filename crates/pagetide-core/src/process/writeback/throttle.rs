//! Throttling of writers: how long a task pauses after it has dirtied pages.
//!
//! Linux: `balance_dirty_pages_ratelimited`, `balance_dirty_pages` in mm/page-writeback.c (6.1). A
//! task checks the limits after a number of pages that depends on how near the limits are. Above
//! the free-run ceiling it pauses, so that it dirties pages at the rate limit multiplied by the
//! position ratio of the stricter domain: the machine, or the group that the writeback is charged to.
//!
//! Difference from Linux: pages that the kernel marks as dirty without a task (reclaim finds a
//! dirty page-table entry) belong to no task.
//!
//! Invariant: a task whose position ratio was 0 checks again after its pause, before it goes on.

use super::bandwidth::{ticks, HZ};
use super::limits::DirtyLevels;
use super::pauses::{DirtyAccount, Pauses, DIRTY_POLL_BYTES};
use super::WbId;
use crate::interface::ctx::Ctx;
use crate::interface::effect::Sleep;
use crate::interface::throttle::Throttle;
use crate::process::Machine;
use crate::process::Processes;
use crate::stats::event::TraceEvent;
use crate::stats::vmstat::NodeStat;
use crate::units::{FileId, Nanos, NodeId, Requester, TICK};

/// Bytes that a task dirties between two checks while the limits are exceeded.
const EXCEEDED_BYTES: u64 = 32 << 10;

impl Processes {
    /// Whether the task must check the limits again after its pause.
    pub(crate) fn is_unbalanced(&self, asker: Requester) -> bool {
        self.mms[asker].dirty.unbalanced.is_some()
    }

    fn update_speed(
        &mut self,
        wb: WbId,
        machine: &DirtyLevels,
        group: Option<&DirtyLevels>,
        now: Nanos,
    ) {
        let memcg = self.domain_of(wb);
        let writeback = &mut self.writeback;
        writeback.machine.update_limit(machine, now);
        if let (Some(group), Some(memcg)) = (group, memcg) {
            writeback.group_domain_mut(memcg).update_limit(group, now);
        }
        let it = &mut writeback.wbs[wb];
        it.speed.update(now, it.nr_dirtied, it.nr_written, [Some(machine), group]);
    }
}

impl Machine {
    /// Called after a task has dirtied a page of a file. Returns the sleep that the task must make.
    pub(crate) fn balance_dirty_pages_ratelimited(
        &mut self,
        file: FileId,
        ctx: &Ctx,
    ) -> Option<Sleep> {
        let bdi = self.owners.files[file].bdi;
        let wb = self.find_wb(bdi, ctx.memcg, ctx.now);
        let account = &self.owners.mms[ctx.asker].dirty;
        if let Some(pages) = account.unbalanced {
            return self.balance_dirty_pages(wb, pages, ctx);
        }
        let mut ratelimit = account.nr_dirtied_pause;
        let own = account.nr_dirtied;
        let page_size = self.mem.page_size;
        let writeback = &mut self.owners.writeback;
        if writeback.wbs[wb].dirty_exceeded {
            ratelimit = ratelimit.min(page_size.pages_in(EXCEEDED_BYTES));
        }
        let of_cpu = &mut writeback.cpus[ctx.cpu];
        if own >= ratelimit {
            of_cpu.nr_dirtied = 0;
        } else if of_cpu.nr_dirtied >= writeback.ratelimit_pages {
            of_cpu.nr_dirtied = 0;
            ratelimit = 0;
        }
        let inherited = of_cpu.leaked.min(ratelimit.saturating_sub(own));
        of_cpu.leaked -= inherited;
        let nr_dirtied = own + inherited;
        self.owners.mms[ctx.asker].dirty.nr_dirtied = nr_dirtied;
        if nr_dirtied < ratelimit {
            return None;
        }
        self.balance_dirty_pages(wb, nr_dirtied, ctx)
    }

    fn balance_dirty_pages(&mut self, wb: WbId, pages_dirtied: u64, ctx: &Ctx) -> Option<Sleep> {
        let now = ticks(ctx.now);
        self.owners.settle_wb(wb, ctx.now);
        let mut machine = self.machine_levels();
        let nr_dirty = machine.dirty;
        machine.dirty += self.mem.global_node_stat(NodeStat::NrWriteback);
        let group = self.owners.domain_of(wb).map(|memcg| {
            let counts = &self.groups.memcgs[memcg];
            self.group_levels(memcg, counts.file_dirty + counts.writeback, &machine)
        });
        if nr_dirty > machine.background && self.config.laptop_mode == 0 {
            self.start_background_writeback(wb);
        }
        let levels = [Some(machine), group];
        let runs_free = |level: &DirtyLevels| level.dirty <= level.freerun();
        if levels.iter().flatten().all(runs_free) {
            let interval = levels.iter().flatten().map(poll_interval).min().unwrap_or(1);
            let account = &mut self.owners.mms[ctx.asker].dirty;
            *account = DirtyAccount {
                nr_dirtied: 0,
                nr_dirtied_pause: interval,
                paused_when: now,
                unbalanced: None,
            };
            return None;
        }
        self.start_background_writeback(wb);
        self.flush_foreign(self.owners.writeback.wbs[wb].memcg, ctx.now);
        let (machine, group) = self.position(wb, machine, group, ctx.now);
        let exceeded =
            |level: &DirtyLevels| level.wb_dirty > level.wb_thresh && level.dirty > level.thresh;
        let all = [Some(&machine), group.as_ref()];
        let all = || all.into_iter().flatten();
        self.owners.writeback.wbs[wb].dirty_exceeded = all().any(exceeded);
        if self.owners.writeback.wbs[wb].speed.is_due(ctx.now) {
            self.owners.update_speed(wb, &machine, group.as_ref(), ctx.now);
        }
        let (stricter, reason) = match group {
            Some(group) if group.pos_ratio < machine.pos_ratio => (group, Throttle::GroupDirty),
            _ => (machine, Throttle::Dirty),
        };
        let speed = &self.owners.writeback.wbs[wb].speed;
        let task_rate = stricter.scaled(speed.dirty_ratelimit);
        let poll_pages = self.mem.page_size.pages_in(DIRTY_POLL_BYTES);
        let pauses = Pauses::new(speed, stricter.wb_dirty, task_rate, poll_pages);
        let dirty_ratelimit = speed.dirty_ratelimit;
        // The error of Linux's counters (`wb_stat_error`): with so few dirty pages a task goes on.
        let nr_cpus = self.groups.stocks.len() as u64;
        let few = nr_cpus * 8 * u64::from(1 + nr_cpus.ilog2());
        let account = &mut self.owners.mms[ctx.asker].dirty;
        let period = (HZ * pages_dirtied).checked_div(task_rate);
        let (pause, until) = match period {
            None => (pauses.longest, now + pauses.longest),
            Some(period) => {
                let thought = match account.paused_when {
                    0 => 0,
                    when => now as i64 - when as i64,
                };
                let pause = period as i64 - thought;
                if pause < pauses.shortest {
                    account.go_on(pause, period, pages_dirtied, now);
                    return None;
                }
                let pause = pause as u64;
                let over = pause.saturating_sub(pauses.longest).min(pauses.longest);
                let pause = pause.min(pauses.longest);
                (pause, now + over + pause)
            }
        };
        *account = DirtyAccount {
            nr_dirtied: 0,
            nr_dirtied_pause: pauses.nr_dirtied_pause,
            paused_when: until,
            unbalanced: (task_rate == 0 && stricter.wb_dirty > few).then_some(pages_dirtied),
        };
        let kbytes_of = |pages| self.mem.page_size.kbytes_of(pages);
        let event = TraceEvent::BalanceDirtyPages {
            limit: machine.limit,
            setpoint: stricter.setpoint(),
            dirty: stricter.dirty,
            dirty_ratelimit: kbytes_of(dirty_ratelimit),
            task_ratelimit: kbytes_of(task_rate),
            dirtied: pages_dirtied,
            pause: pause * TICK / 1_000_000,
        };
        self.mem.events.record(event);
        Some(Sleep::throttled(NodeId(0), reason, pause * TICK))
    }

    /// Adds the writeback's part to the levels of both domains, and finds the position ratios.
    fn position(
        &mut self,
        wb: WbId,
        mut machine: DirtyLevels,
        mut group: Option<DirtyLevels>,
        now: Nanos,
    ) -> (DirtyLevels, Option<DirtyLevels>) {
        self.owners.fill_shares(wb, &mut machine, group.as_mut(), now);
        let it = &self.owners.writeback.wbs[wb];
        let (wb_dirty, bandwidth) = (it.nr_dirty + it.nr_writeback, it.speed.avg_write_bandwidth);
        for level in [Some(&mut machine), group.as_mut()].into_iter().flatten() {
            level.wb_dirty = wb_dirty;
            level.find_position(bandwidth);
        }
        (machine, group)
    }
}

/// Pages after which a task checks again that is below the free-run ceiling.
fn poll_interval(level: &DirtyLevels) -> u64 {
    match level.thresh.saturating_sub(level.dirty) {
        0 => 1,
        room => 1 << (room.ilog2() / 2),
    }
}
