//! The control files of a group: text written to `memory.max` and its neighbours.
//!
//! Linux: mm/memcontrol.c (6.1), `memory_files` (cgroup version 2) and `mem_cgroup_legacy_files`
//! (version 1); `memory.global_shrink_priority` is Hui Zhu's patch of December 2019. If a group uses
//! more than the written limit, the write reclaims, which takes time: [`Manager::write_group_control`]
//! then gives a [`GroupWrite`] to be stepped as a [`Call`](crate::call::Call).
//!
//! Differences from Linux, all stricter: a size without digits is refused, where Linux reads 0; a
//! negative shrink priority is refused unless the policy is `posted`.
//!
//! Invariant: a refused write changes nothing.

use super::error::{quoted, ControlError, Errno};
use crate::charge::MAX_RECLAIM_RETRIES;
use crate::config::ShrinkPriorityPolicy;
use crate::ctx::Ctx;
use crate::effect::{Effects, Sleep, Step, Throttle};
use crate::gfp::Gfp;
use crate::manager::Manager;
use crate::memcg::{MemoryEvent, Position, ROOT};
use crate::outcome::Outcome;
use crate::owners::Owners;
use crate::page_counter::UNLIMITED;
use crate::page_size::PageSize;
use crate::reclaim::direct::DirectReclaim;
use crate::reclaim::shrink_node::TICK;
use crate::units::MemcgId;
use alloc::format;
use alloc::string::String;

macro_rules! group_controls {
    ($($variant:ident = $name:literal, $unlimited:expr;)*) => {
        /// A file of a group that can be written.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        enum GroupControl { $($variant,)* }

        impl GroupControl {
            const ALL: &'static [GroupControl] = &[$(GroupControl::$variant),*];

            const fn name(self) -> &'static str {
                match self { $(GroupControl::$variant => $name,)* }
            }

            /// The word that stands for "no limit", for files of sizes.
            const fn unlimited(self) -> Option<&'static str> {
                match self { $(GroupControl::$variant => $unlimited,)* }
            }
        }
    };
}

group_controls! {
    Min = "memory.min", Some("max");
    Low = "memory.low", Some("max");
    High = "memory.high", Some("max");
    Max = "memory.max", Some("max");
    SwapMax = "memory.swap.max", Some("max");
    Reclaim = "memory.reclaim", None;
    LimitInBytes = "memory.limit_in_bytes", Some("-1");
    KmemLimitInBytes = "memory.kmem.limit_in_bytes", Some("-1");
    SoftLimitInBytes = "memory.soft_limit_in_bytes", Some("-1");
    Swappiness = "memory.swappiness", None;
    GlobalShrinkPriority = "memory.global_shrink_priority", None;
    ForceEmpty = "memory.force_empty", None;
}

/// Files of a group that can only be read.
const READ_ONLY: [&str; 15] = [
    "memory.kmem.slabinfo",
    "memory.kmem.usage_in_bytes",
    "memory.kmem.max_usage_in_bytes",
    "memory.kmem.failcnt",
    "memory.current",
    "memory.peak",
    "memory.stat",
    "memory.events",
    "memory.pressure",
    "memory.swap.current",
    "memory.swap.events",
    "memory.usage_in_bytes",
    "memory.max_usage_in_bytes",
    "memory.failcnt",
    "memory.oom_control",
];

/// What a write has asked for that reclaim must still bring about.
#[derive(Clone, Debug)]
pub struct GroupWrite {
    memcg: Position,
    kind: Kind,
    reclaim: Option<DirectReclaim>,
    retries_left: u32,
    drained: bool,
    /// Pages reclaimed so far.
    nr_reclaimed: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// `memory.max`: the limit holds already; reclaim, then kill.
    Max,
    /// `memory.high`: reclaim as long as it helps.
    High,
    /// `memory.limit_in_bytes`: the limit takes effect once it is met.
    Limit(u64),
    /// `memory.reclaim`: so many pages.
    Reclaim { pages: u64, swappiness: Option<u32> },
    /// `memory.force_empty`: everything.
    ForceEmpty,
}

/// Reads a size as `memparse` does: a number, decimal or with prefix, and a suffix. `None`: no size.
fn memparse(text: &str) -> Option<u64> {
    let (digits, base) = match text.as_bytes() {
        [b'0', b'x' | b'X', ..] => (&text[2..], 16),
        [b'0', _, ..] if text.as_bytes()[1].is_ascii_digit() => (&text[1..], 8),
        _ => (text, 10),
    };
    let end = digits.find(|c: char| !c.is_digit(base)).unwrap_or(digits.len());
    let (number, suffix) = digits.split_at(end);
    if number.is_empty() {
        return None;
    }
    // What does not fit in 64 bits is more than any limit.
    let number = u64::from_str_radix(number, base).unwrap_or(u64::MAX);
    let shift = match suffix {
        "" => 0,
        "k" | "K" => 10,
        "m" | "M" => 20,
        "g" | "G" => 30,
        "t" | "T" => 40,
        "p" | "P" => 50,
        "e" | "E" => 60,
        _ => return None,
    };
    Some(number.saturating_mul(1 << shift))
}

impl GroupControl {
    fn refuse(self, errno: Errno, text: &str, what: &str) -> ControlError {
        let takes = match self {
            GroupControl::Swappiness => "0 to 200",
            GroupControl::GlobalShrinkPriority => {
                "0 to 12 (with policy shrink_priority = posted, -128 to 12)"
            }
            GroupControl::Reclaim => "a size such as 64M, and perhaps swappiness=0 to 200",
            GroupControl::ForceEmpty => "any text",
            GroupControl::LimitInBytes
            | GroupControl::KmemLimitInBytes
            | GroupControl::SoftLimitInBytes => "a size such as 300M, or -1",
            _ => "a size such as 300M, or max",
        };
        let name = self.name();
        let message = format!("{} {what} for {name}; it takes {takes}", quoted(text));
        ControlError::new(errno, name, message)
    }

    /// A size in pages, rounded down.
    fn pages(self, text: &str, page_size: PageSize) -> Result<u64, ControlError> {
        if self.unlimited() == Some(text) {
            return Ok(UNLIMITED);
        }
        match memparse(text) {
            Some(bytes) => {
                let pages = page_size.pages_in(bytes);
                Ok(if pages < page_size.counter_max() { pages } else { UNLIMITED })
            }
            None => Err(self.refuse(Errno::Einval, text, "is not a size")),
        }
    }
}

impl<O: Owners> Manager<O> {
    /// Writes a text to a control file of a group. If more is in use than the text allows, the caller
    /// gets what is left to do.
    ///
    /// # Errors
    /// ENOENT if there is no such group or file, EACCES if it can only be read, EINVAL or ERANGE for a
    /// text that it does not take. Nothing has changed then.
    pub fn write_group_control(
        &mut self,
        memcg: MemcgId,
        name: &str,
        text: &str,
    ) -> Result<(Option<GroupWrite>, Effects<'_>), ControlError> {
        let write = self.begin_group_write(memcg, name, text)?;
        Ok((write, self.hand_out()))
    }

    fn begin_group_write(
        &mut self,
        memcg: MemcgId,
        name: &str,
        text: &str,
    ) -> Result<Option<GroupWrite>, ControlError> {
        let control = self.find_group_control(memcg, name)?;
        let text = text.trim();
        let kind = match control {
            GroupControl::Min | GroupControl::Low => {
                let pages = control.pages(text, self.mem.page_size)?;
                let counter = &self.memcgs[memcg.idx()].memory;
                let (min, low) = match control {
                    GroupControl::Min => (pages, counter.low),
                    _ => (counter.min, pages),
                };
                self.set_protection(memcg, min, low);
                return Ok(None);
            }
            GroupControl::High => {
                self.memcgs[memcg.idx()].memory.high = control.pages(text, self.mem.page_size)?;
                Kind::High
            }
            GroupControl::Max => {
                self.memcgs[memcg.idx()].memory.max = control.pages(text, self.mem.page_size)?;
                Kind::Max
            }
            GroupControl::SwapMax => {
                self.memcgs[memcg.idx()].swap.max = control.pages(text, self.mem.page_size)?;
                return Ok(None);
            }
            GroupControl::LimitInBytes => {
                let pages = control.pages(text, self.mem.page_size)?;
                if memcg == ROOT {
                    return Err(control.refuse(Errno::Einval, text, "is no limit of the root"));
                }
                Kind::Limit(pages)
            }
            GroupControl::KmemLimitInBytes => {
                let pages = control.pages(text, self.mem.page_size)?;
                if memcg == ROOT {
                    return Err(control.refuse(Errno::Einval, text, "is no limit of the root"));
                }
                let counter = &mut self.memcgs[memcg.idx()].kmem;
                if counter.usage > pages {
                    return Err(control.refuse(Errno::Ebusy, text, "is less than is in use"));
                }
                counter.max = pages;
                return Ok(None);
            }
            GroupControl::SoftLimitInBytes => {
                let pages = control.pages(text, self.mem.page_size)?;
                self.memcgs[memcg.idx()].soft_limit = pages;
                if pages != UNLIMITED {
                    self.use_soft_limits();
                }
                return Ok(None);
            }
            GroupControl::Swappiness => {
                let value = text.parse::<u32>().ok().filter(|&value| value <= 200);
                let Some(value) = value else {
                    return Err(control.refuse(Errno::Einval, text, "is no swappiness"));
                };
                if memcg == ROOT {
                    self.config.swappiness = value;
                } else {
                    self.memcgs[memcg.idx()].swappiness = Some(value);
                }
                return Ok(None);
            }
            GroupControl::GlobalShrinkPriority => {
                self.memcgs[memcg.idx()].shrink_priority = self.parse_shrink_priority(text)?;
                return Ok(None);
            }
            GroupControl::Reclaim => {
                let mut words = text.split_whitespace();
                let bytes = words.next().and_then(memparse);
                let Some(bytes) = bytes else {
                    return Err(control.refuse(Errno::Einval, text, "is not a size"));
                };
                let mut swappiness = None;
                for word in words {
                    let value = word.strip_prefix("swappiness=").and_then(|v| v.parse().ok());
                    match value {
                        Some(value) if value <= 200 => swappiness = Some(value),
                        _ => {
                            let what = "has a key that is not known";
                            return Err(control.refuse(Errno::Einval, text, what));
                        }
                    }
                }
                Kind::Reclaim { pages: self.mem.page_size.pages_in(bytes), swappiness }
            }
            GroupControl::ForceEmpty => {
                if memcg == ROOT {
                    return Err(control.refuse(Errno::Einval, text, "does not empty the root"));
                }
                Kind::ForceEmpty
            }
        };
        let write = GroupWrite {
            memcg: self.position_of(memcg),
            kind,
            reclaim: None,
            retries_left: MAX_RECLAIM_RETRIES,
            drained: false,
            nr_reclaimed: 0,
        };
        Ok(self.group_write_is_due(&write, memcg).then_some(write))
    }

    fn find_group_control(&self, memcg: MemcgId, name: &str) -> Result<GroupControl, ControlError> {
        if !self.memcg_is_online(memcg) {
            let message = format!("there is no such group to write {} of", quoted(name));
            return Err(ControlError::new(Errno::Enoent, name, message));
        }
        let Some(&control) = GroupControl::ALL.iter().find(|control| control.name() == name) else {
            if READ_ONLY.contains(&name) {
                let message = format!("{name} can only be read");
                return Err(ControlError::new(Errno::Eacces, name, message));
            }
            let message = format!("a group has no control file {}", quoted(name));
            return Err(ControlError::new(Errno::Enoent, name, message));
        };
        let not_on_root = matches!(
            control,
            GroupControl::Min
                | GroupControl::Low
                | GroupControl::High
                | GroupControl::Max
                | GroupControl::SwapMax
        );
        if memcg == ROOT && not_on_root {
            let message = format!("the root group has no {name}");
            return Err(ControlError::new(Errno::Enoent, name, message));
        }
        Ok(control)
    }

    /// A signed 8-bit number, as `kstrtos8` reads it: prefixes 0x and 0 are taken.
    fn parse_shrink_priority(&self, text: &str) -> Result<i8, ControlError> {
        let control = GroupControl::GlobalShrinkPriority;
        let (negative, digits) = match text.strip_prefix('-') {
            Some(digits) => (true, digits),
            None => (false, text.strip_prefix('+').unwrap_or(text)),
        };
        let (digits, base) = match digits.as_bytes() {
            [b'0', b'x' | b'X', ..] => (&digits[2..], 16),
            [b'0', _, ..] => (&digits[1..], 8),
            _ => (digits, 10),
        };
        if digits.is_empty() || !digits.chars().all(|c| c.is_digit(base)) {
            return Err(control.refuse(Errno::Einval, text, "is not a number"));
        }
        let value = i64::from_str_radix(digits, base).unwrap_or(i64::MAX);
        let value = if negative { -value } else { value };
        let Ok(value) = i8::try_from(value) else {
            return Err(control.refuse(Errno::Erange, text, "does not fit in 8 bits"));
        };
        let least = match self.config.shrink_priority {
            ShrinkPriorityPolicy::Posted => i8::MIN,
            _ => 0,
        };
        if !(least..=crate::units::DEF_PRIORITY).contains(&value) {
            return Err(control.refuse(Errno::Einval, text, "is out of range"));
        }
        Ok(value)
    }

    /// Whether there is something to reclaim for a write, or a limit to be set.
    fn group_write_is_due(&mut self, write: &GroupWrite, memcg: MemcgId) -> bool {
        let counter = &mut self.memcgs[memcg.idx()].memory;
        match write.kind {
            Kind::Max => counter.usage > counter.max,
            Kind::High => counter.usage > counter.high,
            Kind::Limit(pages) => {
                // Raising it, or lowering it to what is free, needs nothing.
                if counter.usage <= pages {
                    counter.max = pages;
                }
                counter.usage > pages
            }
            Kind::Reclaim { pages, .. } => write.nr_reclaimed < pages,
            Kind::ForceEmpty => counter.usage > 0,
        }
    }

    /// One bounded step of a write that reclaims.
    pub(crate) fn group_write_step(&mut self, write: &mut GroupWrite, ctx: &Ctx) -> Step<Outcome> {
        let Some(memcg) = self.at_position(write.memcg) else {
            return Step::Done(Outcome::Refused(Errno::Enoent));
        };
        if let Some(reclaim) = &mut write.reclaim {
            let swappiness = match write.kind {
                Kind::Reclaim { swappiness, .. } => swappiness,
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
                        if let Some(step) = self.group_write_in_vain(write, memcg, ctx) {
                            return step;
                        }
                    }
                }
            }
        }
        if !self.group_write_is_due(write, memcg) {
            return Step::Done(Outcome::Minor);
        }
        if !core::mem::replace(&mut write.drained, true) {
            self.drain_all_stock(memcg);
            self.lru_add_drain_all();
            return Step::Continue;
        }
        let counter = &self.memcgs[memcg.idx()].memory;
        let nr = match write.kind {
            Kind::Max => counter.usage - counter.max,
            Kind::High => counter.usage - counter.high,
            Kind::Limit(_) | Kind::ForceEmpty => 1,
            Kind::Reclaim { pages, .. } => pages - write.nr_reclaimed,
        };
        write.reclaim = Some(DirectReclaim::of_group(write.memcg, nr, Gfp::KERNEL));
        Step::Continue
    }

    /// Reclaim has given nothing. `Some`: what becomes of the write.
    fn group_write_in_vain(
        &mut self,
        write: &mut GroupWrite,
        memcg: MemcgId,
        ctx: &Ctx,
    ) -> Option<Step<Outcome>> {
        if let Kind::Limit(_) = write.kind {
            return Some(Step::Done(Outcome::Refused(Errno::Ebusy)));
        }
        if write.retries_left > 0 {
            write.retries_left -= 1;
            return None;
        }
        match write.kind {
            Kind::High | Kind::ForceEmpty => Some(Step::Done(Outcome::Minor)),
            Kind::Reclaim { .. } => Some(Step::Done(Outcome::Refused(Errno::Eagain))),
            Kind::Limit(_) => None,
            Kind::Max => {
                self.memory_event(memcg, MemoryEvent::Oom);
                if !O::out_of_memory(self, memcg, ctx.asker) {
                    return Some(Step::Done(Outcome::Minor));
                }
                Some(Step::Wait(Sleep::throttled(ctx.node, Throttle::NoProgress, TICK)))
            }
        }
    }

    /// Does something while a group and those below it have another swappiness.
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
            before.push((id, self.memcgs[id.idx()].swappiness.replace(swappiness)));
            at = self.next_memcg(memcg, id);
        }
        let result = work(self);
        for (id, swappiness) in before {
            self.memcgs[id.idx()].swappiness = swappiness;
        }
        result
    }

    /// Reads a control file of a group, as read(2) would.
    ///
    /// # Errors
    /// ENOENT if there is no such group or file, EACCES if it can only be written.
    pub fn read_group_control(
        &self,
        memcg: MemcgId,
        name: &str,
        now: crate::units::Nanos,
    ) -> Result<String, ControlError> {
        if !self.memcg_is_online(memcg) {
            let message = format!("there is no such group to read {} of", quoted(name));
            return Err(ControlError::new(Errno::Enoent, name, message));
        }
        let group = &self.memcgs[memcg.idx()];
        let page_size = self.mem.page_size;
        let size = |pages: u64, unlimited: &str| match pages {
            UNLIMITED => format!("{unlimited}\n"),
            pages => format!("{}\n", page_size.bytes_of(pages)),
        };
        // Version 1 has a number for everything.
        let legacy =
            |pages: u64| format!("{}\n", page_size.bytes_of(pages.min(page_size.counter_max())));
        Ok(match name {
            "memory.current" | "memory.usage_in_bytes" => legacy(self.memcg_usage(memcg)),
            "memory.peak" | "memory.max_usage_in_bytes" => legacy(group.memory.peak),
            "memory.kmem.usage_in_bytes" => legacy(group.kmem.usage),
            "memory.kmem.max_usage_in_bytes" => legacy(group.kmem.peak),
            "memory.kmem.failcnt" => format!("{}\n", group.kmem.failcnt),
            "memory.kmem.slabinfo" => self.slabinfo_of_group(memcg),
            "memory.swap.current" => legacy(group.swap.usage),
            "memory.failcnt" => format!("{}\n", group.memory.failcnt),
            "memory.stat" => self.memory_stat(memcg),
            "memory.events" => {
                let [low, high, max, oom, oom_kill, ..] = group.memory_events;
                format!("low {low}\nhigh {high}\nmax {max}\noom {oom}\noom_kill {oom_kill}\n")
            }
            "memory.swap.events" => {
                let max = group.memory_events[MemoryEvent::SwapMax as usize];
                let fail = group.memory_events[MemoryEvent::SwapFail as usize];
                format!("high 0\nmax {max}\nfail {fail}\n")
            }
            "memory.oom_control" => {
                let kills = group.memory_events[MemoryEvent::OomKill as usize];
                format!("oom_kill_disable 0\nunder_oom 0\noom_kill {kills}\n")
            }
            "memory.pressure" => self.psi_text(memcg, now),
            _ => match self.find_group_control(memcg, name) {
                Ok(GroupControl::Min) => size(group.memory.min, "max"),
                Ok(GroupControl::Low) => size(group.memory.low, "max"),
                Ok(GroupControl::High) => size(group.memory.high, "max"),
                Ok(GroupControl::Max) => size(group.memory.max, "max"),
                Ok(GroupControl::SwapMax) => size(group.swap.max, "max"),
                Ok(GroupControl::LimitInBytes) => legacy(group.memory.max),
                Ok(GroupControl::KmemLimitInBytes) => legacy(group.kmem.max),
                Ok(GroupControl::SoftLimitInBytes) => legacy(group.soft_limit),
                Ok(GroupControl::Swappiness) => format!("{}\n", self.memcg_swappiness(memcg)),
                Ok(GroupControl::GlobalShrinkPriority) => format!("{}\n", group.shrink_priority),
                Ok(GroupControl::Reclaim | GroupControl::ForceEmpty) => {
                    let message = format!("{name} can only be written");
                    return Err(ControlError::new(Errno::Eacces, name, message));
                }
                Err(error) => return Err(error),
            },
        })
    }

    /// Pages in use by a group and those below it. The root's are what everybody has.
    pub fn memcg_usage(&self, memcg: MemcgId) -> u64 {
        let Some(group) = self.memcgs.get(memcg.idx()) else { return 0 };
        match memcg {
            ROOT => group.memory.usage + group.charged,
            _ => group.memory.usage,
        }
    }
}

#[cfg(test)]
mod tests;
