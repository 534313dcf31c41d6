//! The control files of a group, such as `memory.max`.
//!
//! Linux: mm/memcontrol.c (6.1), `memory_files` (cgroup version 2) and `mem_cgroup_legacy_files`
//! (version 1); `memory.global_shrink_priority` is Hui Zhu's patch of December 2019. The files are
//! declared here; the effect of a write is in control/group/write.rs.
//!
//! Differences from Linux, all stricter: a size without digits is refused, where Linux reads 0; a
//! negative shrink priority is refused unless policy `shrink_priority` is `posted`.
//!
//! Invariant: a refused write changes nothing.

mod write;

pub use write::GroupWrite;

use super::error::{quoted, ControlError};
use super::parse::Refusal;
use crate::config::CgroupVersion::{V1, V2};
use crate::config::ControlOrigin::{Linux, Patch};
use crate::config::{CgroupVersion, ControlFile, ControlForm, ControlValue};
use crate::groups::memcg::{MemoryEvent, NR_MEMORY_EVENTS, ROOT};
use crate::groups::page_counter::UNLIMITED;
use crate::groups::Groups;
use crate::interface::kernel::Kernel;
use crate::units::errno::Errno;
use crate::units::page_size::PageSize;
use crate::units::{MemcgId, DEF_PRIORITY};
use alloc::format;
use alloc::string::{String, ToString};
use core::fmt;

macro_rules! group_controls {
    ($(
        $(#[doc = $doc:literal])+
        $variant:ident = $name:literal, $form:expr, $unit:literal, $version:ident, $since:expr,
            default $default:literal;
    )*) => {
        /// A writable file of a group.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
        pub enum GroupControl {
            $( $(#[doc = $doc])+ $variant, )*
        }

        impl GroupControl {
            /// All files, in the order of the documentation.
            pub const ALL: &'static [GroupControl] = &[$(GroupControl::$variant),*];
            const FILES: &'static [ControlFile] = &[$( ControlFile {
                name: $name,
                form: $form,
                unit: $unit,
                since: $since,
                default: $default,
                doc: concat!($($doc),+).trim_ascii(),
            } ),*];

            /// The cgroup version that has the file.
            pub const fn version(self) -> CgroupVersion {
                match self { $(GroupControl::$variant => $version,)* }
            }
        }
    };
}

const MAX: ControlForm = ControlForm::Size { unlimited: "max" };
const MINUS_ONE: ControlForm = ControlForm::Size { unlimited: "-1" };
/// -128 is for policy shrink_priority = posted only.
const SHRINK_PRIORITY: ControlForm =
    ControlForm::Signed { min: i8::MIN as i64, max: DEF_PRIORITY as i64 };

/// Bounds of an 8-bit number.
const SIGNED_8: ControlForm = ControlForm::Signed { min: i8::MIN as i64, max: i8::MAX as i64 };

group_controls! {
    /// Memory that is never reclaimed from the group.
    Min = "memory.min", MAX, "bytes", V2, Linux("4.18"), default "0";
    /// Memory that is reclaimed only if nothing else can be reclaimed.
    Low = "memory.low", MAX, "bytes", V2, Linux("4.5"), default "0";
    /// Above it the group's tasks are throttled and must reclaim.
    High = "memory.high", MAX, "bytes", V2, Linux("4.5"), default "max";
    /// The limit.
    Max = "memory.max", MAX, "bytes", V2, Linux("4.5"), default "max";
    /// The limit of swap (version 2; a scenario must not combine it with files of version 1).
    SwapMax = "memory.swap.max", MAX, "bytes", V2, Linux("4.5"), default "max";
    /// The limit of compressed pages in zswap. Further pages go to the disk.
    ZswapMax = "memory.zswap.max", MAX, "bytes", V2, Linux("5.19"), default "max";
    /// Whether pages may leave zswap for the disk, or go there around it; 0: they stay in memory.
    ZswapWriteback = "memory.zswap.writeback", ControlForm::Signed { min: 0, max: 1 }, "", V2,
        Linux("6.8"), default "1";
    /// Whether the OOM killer kills all tasks of the group and its descendants together. A task
    /// with `oom_score_adj = -1000` is spared.
    OomGroup = "memory.oom.group", ControlForm::Signed { min: 0, max: 1 }, "", V2, Linux("4.19"), default "0";
    /// The limit (version 1).
    LimitInBytes = "memory.limit_in_bytes", MINUS_ONE, "bytes", V1, Linux("2.6.25"), default "-1";
    /// The limit of kernel memory (version 1; refused by later kernels). EBUSY if more is in use.
    KmemLimitInBytes = "memory.kmem.limit_in_bytes", MINUS_ONE, "bytes", V1, Linux("3.8 to 5.15"),
        default "-1";
    /// Groups above their soft limit are reclaimed from first (version 1).
    SoftLimitInBytes = "memory.soft_limit_in_bytes", MINUS_ONE, "bytes", V1, Linux("2.6.31"),
        default "-1";
    /// Like vm.swappiness (version 1).
    Swappiness = "memory.swappiness", ControlForm::Signed { min: 0, max: 200 }, "", V1, Linux("2.6.29"),
        default "the parent's";
    /// Global reclaim skips the group while the scan priority is above this value. Negative values
    /// need shrink_priority = posted.
    GlobalShrinkPriority = "memory.global_shrink_priority", SHRINK_PRIORITY, "reclaim priority", V1,
        Patch("December 2019"), default "12";
    /// The group's share of CPU time, relative to its siblings.
    CpuWeight = "cpu.weight", ControlForm::Signed { min: 1, max: 10_000 }, "", V2, Linux("4.15"), default "100";
    /// CPU time that the group may use in each period, and the period.
    CpuMax = "cpu.max", ControlForm::Bandwidth, "us", V2, Linux("4.15"), default "max 100000";
    /// Reclaims this amount from the group at once (workload write-control only).
    Reclaim = "memory.reclaim", ControlForm::Reclaim, "bytes", V2, Linux("5.19; swappiness since 6.9"),
        default "none (write-only)";
    /// Reclaims everything from the group (version 1; workload write-control only).
    ForceEmpty = "memory.force_empty", ControlForm::Anything, "", V1, Linux("2.6.25"),
        default "none (write-only)";
}

/// Read-only files of a group.
const READ_ONLY: &[&str] = &[
    "memory.kmem.slabinfo",
    "memory.kmem.usage_in_bytes",
    "memory.kmem.max_usage_in_bytes",
    "memory.kmem.failcnt",
    "memory.current",
    "memory.peak",
    "memory.stat",
    "memory.events",
    "memory.events.local",
    "cgroup.stat",
    "memory.pressure",
    "memory.swap.current",
    "memory.swap.events",
    "memory.zswap.current",
    "memory.usage_in_bytes",
    "memory.max_usage_in_bytes",
    "memory.failcnt",
    "memory.oom_control",
];

impl GroupControl {
    /// Its name, form and documentation.
    pub const fn file(self) -> &'static ControlFile {
        &Self::FILES[self as usize]
    }

    /// The kernel's name for it.
    pub const fn name(self) -> &'static str {
        self.file().name
    }

    /// The file with this name.
    pub fn find(name: &str) -> Option<GroupControl> {
        Self::ALL.iter().copied().find(|control| control.name() == name)
    }

    /// Whether the root has it: of version 2 only the request to reclaim.
    const fn is_on_root(self) -> bool {
        matches!((self.version(), self), (V1, _) | (V2, GroupControl::Reclaim))
    }

    /// Whether the file belongs to the CPU controller. The core only checks writes to these files;
    /// the world applies them.
    pub const fn is_of_cpu(self) -> bool {
        matches!(self, GroupControl::CpuWeight | GroupControl::CpuMax)
    }

    /// Parses a text as the kernel does. The write itself checks policies and usage.
    fn read(self, text: &str, page_size: PageSize) -> Result<ControlValue, ControlError> {
        if self == GroupControl::GlobalShrinkPriority {
            // The kernel parses with `kstrtos8` before it checks the bounds.
            if let Err(Refusal::TooLarge | Refusal::OutOfRange) = SIGNED_8.read(text, page_size) {
                return Err(self.refuse(Errno::Erange, text, "does not fit in 8 bits"));
            }
        }
        let read = self.file().form.read(text, page_size);
        let errno = |refusal: &Refusal| match (self, refusal) {
            (GroupControl::CpuWeight, Refusal::OutOfRange) => Errno::Erange,
            _ => Errno::Einval,
        };
        read.map_err(|refusal| self.refuse(errno(&refusal), text, refusal.what()))
    }

    fn refuse(self, errno: Errno, text: &str, what: &str) -> ControlError {
        let takes = match self {
            GroupControl::GlobalShrinkPriority => {
                "0 to 12 (with policy shrink_priority = posted, -128 to 12)".into()
            }
            _ => self.file().form.expected_text(PageSize::default()),
        };
        let name = self.name();
        let message = format!("{} {what} for {name}; it takes {takes}", quoted(text));
        ControlError::new(errno, name, message)
    }
}

fn find(name: &str) -> Result<GroupControl, ControlError> {
    GroupControl::find(name).ok_or_else(|| {
        if READ_ONLY.contains(&name) {
            return ControlError::new(Errno::Eacces, name, format!("{name} can only be read"));
        }
        let message = format!("a group has no control file {}", quoted(name));
        ControlError::new(Errno::Enoent, name, message)
    })
}

/// A write to a file of a group, parsed and checked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct GroupControlWrite {
    /// The file.
    pub control: GroupControl,
    /// The value to write.
    pub value: ControlValue,
}

/// Prints the text to write, as the kernel accepts it.
impl fmt::Display for GroupControlWrite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.value.fmt(f)
    }
}

impl GroupControlWrite {
    /// Parses a text as the kernel does.
    pub fn read(name: &str, text: &str) -> Result<GroupControlWrite, ControlError> {
        let control = find(name)?;
        // No file of a group has bounds in pages.
        let value = control.read(text, PageSize::default())?;
        Ok(GroupControlWrite { control, value })
    }

    /// Checks a value that was not parsed from a text: the value's text must parse to the same
    /// value.
    ///
    /// # Errors
    /// EINVAL, or the error for the value's text.
    pub fn check(&self) -> Result<(), ControlError> {
        let (name, text) = (self.control.name(), self.to_string());
        if GroupControlWrite::read(name, &text)? == *self {
            return Ok(());
        }
        Err(ControlError::wrong_kind(name, &text))
    }
}

/// Prints memory.events or memory.events.local.
fn events_text(events: &[u64; NR_MEMORY_EVENTS]) -> String {
    let [low, high, max, oom, oom_kill, oom_group_kill, ..] = events;
    format!(
        "low {low}\nhigh {high}\nmax {max}\noom {oom}\noom_kill {oom_kill}\n\
         oom_group_kill {oom_group_kill}\n"
    )
}

impl Groups {
    /// Returns ENOENT if the group does not exist, or if it is the root, which does not have the
    /// file.
    fn check_group_control(
        &self,
        memcg: MemcgId,
        control: GroupControl,
    ) -> Result<(), ControlError> {
        let name = control.name();
        self.check_group(memcg, name, "write")?;
        if memcg == ROOT && !control.is_on_root() {
            let message = format!("the root group has no {name}");
            return Err(ControlError::new(Errno::Enoent, name, message));
        }
        Ok(())
    }

    fn check_group(&self, memcg: MemcgId, name: &str, verb: &str) -> Result<(), ControlError> {
        if self.memcg_is_online(memcg) {
            return Ok(());
        }
        let message = format!("unknown group: cannot {verb} {}", quoted(name));
        Err(ControlError::new(Errno::Enoent, name, message))
    }
}

impl Kernel {
    /// Reads a control file of a group, as read(2) returns it.
    ///
    /// # Errors
    /// ENOENT for an unknown group or file, EACCES for a write-only file.
    pub fn read_group_control(
        &self,
        memcg: MemcgId,
        name: &str,
        now: crate::units::Nanos,
    ) -> Result<String, ControlError> {
        self.groups.check_group(memcg, name, "read")?;
        let group = &self.groups.memcgs[memcg];
        let page_size = self.mem.page_size;
        let size = |pages: u64, unlimited: &str| match pages {
            UNLIMITED => format!("{unlimited}\n"),
            pages => format!("{}\n", page_size.bytes_of(pages)),
        };
        // Version 1 prints a number for every limit.
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
            "memory.zswap.current" => format!("{}\n", group.zswap_bytes),
            "memory.failcnt" => format!("{}\n", group.memory.failcnt),
            "memory.stat" => self.memory_stat(memcg),
            "memory.events" => events_text(&group.memory_events),
            "memory.events.local" => events_text(&group.memory_events_local),
            "cgroup.stat" => {
                let (living, dying) = self.nr_descendants(memcg);
                format!("nr_descendants {living}\nnr_dying_descendants {dying}\n")
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
            "memory.pressure" => self.groups.psi_text(memcg, now),
            _ => {
                let control = find(name)?;
                self.groups.check_group_control(memcg, control)?;
                match control {
                    GroupControl::Min => size(group.memory.min, "max"),
                    GroupControl::Low => size(group.memory.low, "max"),
                    GroupControl::High => size(group.memory.high, "max"),
                    GroupControl::Max => size(group.memory.max, "max"),
                    GroupControl::SwapMax => size(group.swap.max, "max"),
                    GroupControl::ZswapMax => size(group.zswap_max, "max"),
                    GroupControl::ZswapWriteback => {
                        format!("{}\n", u8::from(group.zswap_writeback))
                    }
                    GroupControl::OomGroup => format!("{}\n", u8::from(group.oom_group)),
                    GroupControl::LimitInBytes => legacy(group.memory.max),
                    GroupControl::KmemLimitInBytes => legacy(group.kmem.max),
                    GroupControl::SoftLimitInBytes => legacy(group.soft_limit),
                    GroupControl::Swappiness => format!("{}\n", self.memcg_swappiness(memcg)),
                    GroupControl::GlobalShrinkPriority => format!("{}\n", group.shrink_priority),
                    GroupControl::CpuWeight | GroupControl::CpuMax => {
                        let message = format!(
                            "{name} belongs to the CPU controller: the core does not have it"
                        );
                        return Err(ControlError::new(Errno::Enoent, name, message));
                    }
                    GroupControl::Reclaim | GroupControl::ForceEmpty => {
                        let message = format!("{name} can only be written");
                        return Err(ControlError::new(Errno::Eacces, name, message));
                    }
                }
            }
        })
    }

    /// Pages used by a group and its descendants; for the root, those of the whole machine.
    pub fn memcg_usage(&self, memcg: MemcgId) -> u64 {
        let Some(group) = self.groups.memcgs.get(memcg.idx()) else { return 0 };
        match memcg {
            ROOT => group.memory.usage + group.charged,
            _ => group.memory.usage,
        }
    }
}

#[cfg(test)]
mod tests;
