//! Writes to a group's control files, and the reclaim that a writer may have to wait for.
//!
//! Linux: the `_write` functions of mm/memcontrol.c (6.1). Some writes reclaim memory, for example
//! if the group uses more than its new limit. Reclaim takes time: [`Kernel::write_group_control`]
//! then returns a [`GroupWrite`], which is stepped like a [`Call`](crate::interface::call::Call).
//!
//! Invariant: a refused write changes nothing.

use super::{GroupControl, GroupControlWrite};
use crate::config::{ControlValue, ShrinkPriorityPolicy};
use crate::control::error::ControlError;
use crate::frames::gfp::Gfp;
use crate::frames::page_alloc::Memory;
use crate::groups::charge::MAX_RECLAIM_RETRIES;
use crate::groups::memcg::{MemcgPosition, MemoryEvent, ROOT};
use crate::groups::page_counter::UNLIMITED;
use crate::groups::Groups;
use crate::interface::ctx::Ctx;
use crate::interface::effect::{Effects, Sleep, Step};
use crate::interface::kernel::Kernel;
use crate::interface::manager::Manager;
use crate::interface::outcome::Outcome;
use crate::interface::owners::Owners;
use crate::interface::throttle::Throttle;
use crate::reclaim::direct::DirectReclaim;
use crate::units::errno::Errno;
use crate::units::{MemcgId, TICK};
use alloc::string::ToString;

/// The part of a write that still has to reclaim.
#[derive(Clone, Debug)]
pub struct GroupWrite {
    memcg: MemcgPosition,
    kind: GroupReclaimGoal,
    reclaim: Option<DirectReclaim>,
    retries_left: u32,
    drained: bool,
    nr_reclaimed: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum GroupReclaimGoal {
    /// `memory.max`, already in force. Reclaims until usage is below it, and at last kills tasks.
    Max,
    /// `memory.high`: reclaims as long as it makes progress.
    High,
    /// `memory.limit_in_bytes`: the limit takes effect once usage is below it.
    Limit(u64),
    /// `memory.reclaim`: reclaims this many pages.
    Reclaim { pages: u64, swappiness: Option<u32> },
    /// `memory.force_empty`: reclaims everything.
    ForceEmpty,
}

impl Groups {
    /// Whether the write must still reclaim, or has yet to set its limit.
    fn group_write_is_due(&mut self, write: &GroupWrite, memcg: MemcgId) -> bool {
        let counter = &mut self.memcgs[memcg].memory;
        match write.kind {
            GroupReclaimGoal::Max => counter.usage > counter.max,
            GroupReclaimGoal::High => counter.usage > counter.high,
            GroupReclaimGoal::Limit(pages) => {
                // A limit that is raised, or that is above the usage, needs no reclaim.
                if counter.usage <= pages {
                    counter.max = pages;
                }
                counter.usage > pages
            }
            GroupReclaimGoal::Reclaim { pages, .. } => write.nr_reclaimed < pages,
            GroupReclaimGoal::ForceEmpty => counter.usage > 0,
        }
    }
}

impl Memory {
    /// A limit in pages, rounded down.
    fn pages_of(&self, value: ControlValue) -> u64 {
        let page_size = self.page_size;
        match page_size.pages_in(value.bytes()) {
            pages if pages < page_size.counter_max() => pages,
            _ => UNLIMITED,
        }
    }
}

impl Kernel {
    /// Writes a text to a control file of a group. If the group uses more than the new value
    /// allows, returns the part of the write that must reclaim.
    ///
    /// # Errors
    /// ENOENT for an unknown group or file, EACCES for a read-only file, EINVAL or ERANGE for a
    /// text that the file does not accept. Nothing has changed.
    pub fn write_group_control(
        &mut self,
        memcg: MemcgId,
        name: &str,
        text: &str,
    ) -> Result<(Option<GroupWrite>, Effects<'_>), ControlError> {
        self.groups.check_group(memcg, name, "write")?;
        self.do_apply_group_write(memcg, GroupControlWrite::read(name, text)?)
    }

    pub(crate) fn do_apply_group_write(
        &mut self,
        memcg: MemcgId,
        write: GroupControlWrite,
    ) -> Result<(Option<GroupWrite>, Effects<'_>), ControlError> {
        self.groups.check_group_control(memcg, write.control)?;
        write.check()?;
        let write = self.begin_group_write(memcg, write)?;
        Ok((write, self.take_effects()))
    }

    fn begin_group_write(
        &mut self,
        memcg: MemcgId,
        write: GroupControlWrite,
    ) -> Result<Option<GroupWrite>, ControlError> {
        let GroupControlWrite { control, value } = write;
        let refuse = |errno, what| Err(control.refuse(errno, &value.to_string(), what));
        let (pages, number) = (self.mem.pages_of(value), value.number());
        let group = &mut self.groups.memcgs[memcg];
        let kind = match control {
            GroupControl::Min => {
                let low = group.memory.low;
                self.groups.set_protection(memcg, pages, low);
                return Ok(None);
            }
            GroupControl::Low => {
                let min = group.memory.min;
                self.groups.set_protection(memcg, min, pages);
                return Ok(None);
            }
            GroupControl::High => {
                group.memory.high = pages;
                GroupReclaimGoal::High
            }
            GroupControl::Max => {
                group.memory.max = pages;
                GroupReclaimGoal::Max
            }
            GroupControl::SwapMax => {
                group.swap.max = pages;
                return Ok(None);
            }
            GroupControl::ZswapMax => {
                group.zswap_max = pages;
                return Ok(None);
            }
            GroupControl::ZswapWriteback => {
                group.zswap_writeback = number != 0;
                self.groups.idle_groups.forget();
                return Ok(None);
            }
            GroupControl::OomGroup => {
                group.oom_group = number != 0;
                return Ok(None);
            }
            GroupControl::LimitInBytes | GroupControl::KmemLimitInBytes if memcg == ROOT => {
                return refuse(Errno::Einval, "is refused: the root group has no limit");
            }
            GroupControl::LimitInBytes => GroupReclaimGoal::Limit(pages),
            GroupControl::KmemLimitInBytes if group.kmem.usage > pages => {
                return refuse(Errno::Ebusy, "is less than the current usage");
            }
            GroupControl::KmemLimitInBytes => {
                group.kmem.max = pages;
                return Ok(None);
            }
            GroupControl::SoftLimitInBytes => {
                group.soft_limit = pages;
                self.groups.idle_groups.forget();
                if pages != UNLIMITED {
                    self.groups.use_soft_limits();
                }
                return Ok(None);
            }
            GroupControl::Swappiness => {
                let value = number as u32;
                if memcg == ROOT {
                    self.config.swappiness = value;
                } else {
                    group.swappiness = Some(value);
                }
                return Ok(None);
            }
            GroupControl::CpuWeight | GroupControl::CpuMax => return Ok(None),
            GroupControl::GlobalShrinkPriority => {
                if number < 0 && self.config.shrink_priority != ShrinkPriorityPolicy::Posted {
                    return refuse(Errno::Einval, "is out of range");
                }
                group.shrink_priority = number as i8;
                self.groups.idle_groups.forget();
                return Ok(None);
            }
            GroupControl::Reclaim => {
                let swappiness = match value {
                    ControlValue::Reclaim(_, swappiness) => swappiness,
                    _ => None,
                };
                GroupReclaimGoal::Reclaim {
                    pages: self.mem.page_size.pages_in(value.bytes()),
                    swappiness,
                }
            }
            GroupControl::ForceEmpty if memcg == ROOT => {
                return refuse(Errno::Einval, "is refused: the root group cannot be emptied");
            }
            GroupControl::ForceEmpty => GroupReclaimGoal::ForceEmpty,
        };
        let write = GroupWrite {
            memcg: self.groups.position_of(memcg),
            kind,
            reclaim: None,
            retries_left: MAX_RECLAIM_RETRIES,
            drained: false,
            nr_reclaimed: 0,
        };
        Ok(self.groups.group_write_is_due(&write, memcg).then_some(write))
    }
}

impl<O: Owners> Manager<O> {
    pub(crate) fn group_write_step(&mut self, write: &mut GroupWrite, ctx: &Ctx) -> Step<Outcome> {
        let Some(memcg) = self.groups.at_position(write.memcg) else {
            return Step::Done(Outcome::Refused(Errno::Enoent));
        };
        if let Some(reclaim) = &mut write.reclaim {
            let swappiness = match write.kind {
                GroupReclaimGoal::Reclaim { swappiness, .. } => swappiness,
                _ => None,
            };
            let step = self.with_swappiness(memcg, swappiness, |machine| {
                machine.direct_reclaim_step(reclaim, ctx)
            });
            match step {
                Step::Continue => return Step::Continue,
                Step::Wait(wait) => return Step::Wait(wait),
                Step::Done(reclaimed) => {
                    write.reclaim = None;
                    write.nr_reclaimed += reclaimed;
                    if reclaimed == 0 {
                        if let Some(step) = self.group_write_stalled(write, memcg, ctx) {
                            return step;
                        }
                    }
                }
            }
        }
        if !self.groups.group_write_is_due(write, memcg) {
            return Step::Done(Outcome::Minor);
        }
        if !core::mem::replace(&mut write.drained, true) {
            self.drain_all_stock(memcg);
            self.lru_add_drain_all();
            return Step::Continue;
        }
        let counter = &self.groups.memcgs[memcg].memory;
        let nr = match write.kind {
            GroupReclaimGoal::Max => counter.usage - counter.max,
            GroupReclaimGoal::High => counter.usage - counter.high,
            GroupReclaimGoal::Limit(_) | GroupReclaimGoal::ForceEmpty => 1,
            GroupReclaimGoal::Reclaim { pages, .. } => {
                let left = pages - write.nr_reclaimed;
                if self.era.reclaims_in_quarters {
                    left / 4
                } else {
                    left
                }
            }
        };
        let reclaim = DirectReclaim::of_group(write.memcg, nr, Gfp::KERNEL);
        write.reclaim = Some(match write.kind {
            GroupReclaimGoal::Reclaim { .. } => reclaim.proactive(),
            GroupReclaimGoal::Max
            | GroupReclaimGoal::High
            | GroupReclaimGoal::Limit(_)
            | GroupReclaimGoal::ForceEmpty => reclaim,
        });
        Step::Continue
    }

    /// Called when reclaim has made no progress. `Some`: the write ends with this result.
    fn group_write_stalled(
        &mut self,
        write: &mut GroupWrite,
        memcg: MemcgId,
        ctx: &Ctx,
    ) -> Option<Step<Outcome>> {
        if let GroupReclaimGoal::Limit(_) = write.kind {
            return Some(Step::Done(Outcome::Refused(Errno::Ebusy)));
        }
        if write.retries_left > 0 {
            write.retries_left -= 1;
            return None;
        }
        match write.kind {
            GroupReclaimGoal::High | GroupReclaimGoal::ForceEmpty => {
                Some(Step::Done(Outcome::Minor))
            }
            GroupReclaimGoal::Reclaim { .. } => Some(Step::Done(Outcome::Refused(Errno::Eagain))),
            GroupReclaimGoal::Limit(_) => None,
            GroupReclaimGoal::Max => {
                self.groups.memory_event(memcg, MemoryEvent::Oom);
                if !O::out_of_memory(self, memcg, ctx.asker) {
                    return Some(Step::Done(Outcome::Minor));
                }
                Some(Step::Wait(Sleep::throttled(ctx.node, Throttle::NoProgress, TICK)))
            }
        }
    }

    /// Calls a function while a group and its descendants have a different swappiness.
    fn with_swappiness<T>(
        &mut self,
        memcg: MemcgId,
        swappiness: Option<u32>,
        work: impl FnOnce(&mut Manager<O>) -> T,
    ) -> T {
        let Some(swappiness) = swappiness else { return work(self) };
        let mut before = alloc::vec::Vec::new();
        let mut at = Some(memcg);
        while let Some(id) = at {
            before.push((id, self.groups.memcgs[id].swappiness.replace(swappiness)));
            at = self.groups.next_memcg(memcg, id);
        }
        let result = work(self);
        for (id, swappiness) in before {
            self.groups.memcgs[id].swappiness = swappiness;
        }
        result
    }
}
