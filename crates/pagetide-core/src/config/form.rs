//! The form of the texts that a control file accepts, and the value that was written to it.
//!
//! Linux: `proc_dointvec_minmax` and the like (kernel/sysctl.c), the store functions of sysfs,
//! `simple_attr_write` (fs/libfs.c). The file's parser decides which spellings of a number the file
//! accepts (`control/parse.rs`).
//!
//! Invariant: a [`ControlValue`] is within the bounds of the form it was parsed with.

use super::{Policy, PolicyChoice, Sysctl};
use crate::units::page_size::PageSize;
use crate::units::MAX_NR_ZONES;
use alloc::format;
use alloc::string::String;
use core::fmt;

pub(super) const INT_MIN: i128 = i32::MIN as i128;
pub(crate) const INT_MAX: i128 = i32::MAX as i128;
pub(super) const ULONG_MAX: i128 = u64::MAX as i128;
pub(super) const UINT_MAX: u64 = u32::MAX as u64;
/// `proc_dointvec_jiffies` stores seconds in jiffies, 250 per second.
pub(super) const SECONDS_MAX: i128 = INT_MAX / 250;

/// The texts that a control file accepts, and the kernel's parser for them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ControlForm {
    /// One integer (`proc_dointvec_minmax`, `proc_doulongvec_minmax`).
    Integer {
        /// Minimum.
        min: i128,
        /// Maximum.
        max: i128,
    },
    /// A size in bytes, as one integer. It is at least this number of pages.
    Bytes {
        /// Minimum.
        min_pages: u64,
    },
    /// One integer per zone; omitted zones keep their value.
    Zones,
    /// One decimal number without blanks (`queue_var_store`, `kstrtouint`).
    Sysfs {
        /// Minimum.
        min: u64,
        /// Maximum.
        max: u64,
    },
    /// A sum of bits without blanks, decimal or with a prefix; or a word with `y` for all of them, or
    /// with `n` for none (the store function of `lru_gen/enabled`).
    Bits {
        /// The sum of all bits.
        all: u64,
    },
    /// One number without blanks, decimal or with a prefix (`simple_attr_write`). It is a size in
    /// bytes, rounded down to pages; at most the memory that one page table maps.
    Debugfs,
    /// The name of a policy's variant (`sysfs_streq`). The file reads as all names, with the
    /// variant in force in brackets.
    Policy(Policy),
    /// A number of at least 1 that triggers an action (`proc_dointvec_minmax`).
    Action {
        /// Maximum.
        max: i128,
    },
    /// Any text triggers an action.
    Anything,
    /// One number with optional sign, prefix and blanks around (`kstrtoll` of a stripped text).
    Signed {
        /// Minimum.
        min: i64,
        /// Maximum.
        max: i64,
    },
    /// Bytes with an optional suffix k, m, g, t, p or e (`memparse` of a stripped text).
    Size {
        /// The word that stands for "no limit".
        unlimited: &'static str,
    },
    /// Bytes to reclaim with optional suffix and ` swappiness=N` (0 to 200) (`memory_reclaim`).
    Reclaim,
    /// A quota of CPU time in microseconds, or `max`, and an optional period
    /// (`cpu_period_quota_parse`).
    Bandwidth,
    /// The file is read-only.
    ReadOnly,
}

/// The kernel that has a control file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ControlOrigin {
    /// Linux, since this release; the text also names releases that changed the file.
    Linux(&'static str),
    /// A patch that was not merged, of this date.
    Patch(&'static str),
}

impl fmt::Display for ControlOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ControlOrigin::Linux(release) => write!(f, "Linux {release}"),
            ControlOrigin::Patch(date) => write!(f, "patch of {date}"),
        }
    }
}

/// A control file: its name, form and documentation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ControlFile {
    /// The kernel's name for it; for a cache's file, the last part.
    pub name: &'static str,
    /// The accepted texts.
    pub form: ControlForm,
    /// Unit of its number; empty for a plain number.
    pub unit: &'static str,
    /// The kernel that has it.
    pub since: ControlOrigin,
    /// Its value on a new machine, as text.
    pub default: &'static str,
    /// Its effect.
    pub doc: &'static str,
}

pub(super) const fn from(min: i128) -> ControlForm {
    ControlForm::Integer { min, max: INT_MAX }
}

pub(super) const fn within(min: i128, max: i128) -> ControlForm {
    ControlForm::Integer { min, max }
}

pub(super) const fn sysfs(min: u64, max: u64) -> ControlForm {
    ControlForm::Sysfs { min, max }
}

impl ControlForm {
    /// Minimum and maximum of its number; `None` if it does not take a single number.
    pub const fn bounds(self, page_size: PageSize) -> Option<(i128, i128)> {
        Some(match self {
            ControlForm::Integer { min, max } => (min, max),
            ControlForm::Bytes { min_pages } => (page_size.bytes_of(min_pages) as i128, ULONG_MAX),
            ControlForm::Sysfs { min, max } => (min as i128, max as i128),
            ControlForm::Bits { all } => (0, all as i128),
            ControlForm::Debugfs => {
                let beyond = page_size.bytes_of(page_size.ptrs_per_pte() + 1);
                (0, beyond as i128 - 1)
            }
            ControlForm::Action { max } => (1, max),
            ControlForm::Signed { min, max } => (min as i128, max as i128),
            ControlForm::Zones
            | ControlForm::Policy(_)
            | ControlForm::Anything
            | ControlForm::Size { .. }
            | ControlForm::Reclaim
            | ControlForm::Bandwidth
            | ControlForm::ReadOnly => return None,
        })
    }

    /// Whether a write triggers an action, so that it makes no sense before the machine runs.
    pub const fn is_action(self) -> bool {
        matches!(self, ControlForm::Action { .. } | ControlForm::Anything | ControlForm::Reclaim)
    }

    /// Describes the accepted texts; the text completes "it takes ".
    pub(crate) fn expected_text(self, page_size: PageSize) -> String {
        match (self, self.bounds(page_size)) {
            (_, Some((min, max))) if min == max => format!("{min}"),
            (ControlForm::Sysfs { .. }, Some((min, max))) => {
                format!("a decimal number from {min} to {max}")
            }
            (ControlForm::Bits { .. }, Some((min, max))) => {
                format!("y, n or a number from {min} to {max}")
            }
            (ControlForm::Debugfs, Some((min, max))) => format!("a number from {min} to {max}"),
            (ControlForm::Signed { .. }, Some((min, max))) => format!("{min} to {max}"),
            (_, Some((min, max))) => format!("an integer from {min} to {max}"),
            (ControlForm::Zones, _) => {
                format!("up to {MAX_NR_ZONES} integers (DMA DMA32 Normal Movable); 0 is no reserve")
            }
            (ControlForm::Policy(policy), _) => policy.variant_list(),
            (ControlForm::Size { unlimited }, _) => format!("a size such as 300M, or {unlimited}"),
            (ControlForm::Reclaim, _) => {
                String::from("a size such as 64M, optionally with swappiness=0 to 200")
            }
            (ControlForm::Bandwidth, _) => String::from(
                "max or microseconds (at least 1000), optionally with a period from 1000 to 1000000",
            ),
            (ControlForm::ReadOnly, _) => String::from("nothing"),
            _ => String::from("any text"),
        }
    }
}

/// The value of a text written to a control file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ControlValue {
    /// A number.
    Number(i128),
    /// Numbers for the first zones, and how many numbers there are.
    Zones([i32; MAX_NR_ZONES], usize),
    /// A variant of the file's policy.
    Choice(PolicyChoice),
    /// Any text.
    Anything,
    /// Bytes.
    Size(u64),
    /// No limit; with the word that the file uses for it.
    Unlimited(&'static str),
    /// Bytes to reclaim, and an optional swappiness.
    Reclaim(u64, Option<u32>),
    /// CPU time per period, in microseconds.
    Bandwidth {
        /// The quota; `None`: no limit.
        quota: Option<u64>,
        /// The period; `None`: keep the present one.
        period: Option<u64>,
    },
}

impl ControlValue {
    /// The number; 0 for other values.
    pub(crate) const fn number(self) -> i128 {
        match self {
            ControlValue::Number(number) => number,
            _ => 0,
        }
    }

    /// The bytes of a limit, or the bytes to reclaim; `u64::MAX`: no limit.
    pub const fn bytes(self) -> u64 {
        match self {
            ControlValue::Size(bytes) | ControlValue::Reclaim(bytes, _) => bytes,
            _ => u64::MAX,
        }
    }
}

/// Prints a number of bytes with the largest suffix that leaves an integer.
fn write_size(bytes: u64, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    const SUFFIXES: [(&str, u32); 4] = [("T", 40), ("G", 30), ("M", 20), ("K", 10)];
    let whole = |&(_, shift): &(&str, u32)| bytes > 0 && bytes.trailing_zeros() >= shift;
    let (suffix, shift) = SUFFIXES.into_iter().find(whole).unwrap_or(("", 0));
    write!(f, "{}{suffix}", bytes >> shift)
}

/// Prints the text to write, as the kernel accepts it.
impl fmt::Display for ControlValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ControlValue::Number(number) => write!(f, "{number}"),
            ControlValue::Zones(numbers, count) => {
                numbers.iter().take(*count).enumerate().try_for_each(|(at, number)| {
                    let blank = if at == 0 { "" } else { " " };
                    write!(f, "{blank}{number}")
                })
            }
            ControlValue::Choice(choice) => f.write_str(choice.name()),
            ControlValue::Anything => f.write_str("1"),
            ControlValue::Size(bytes) => write_size(*bytes, f),
            ControlValue::Unlimited(word) => f.write_str(word),
            ControlValue::Reclaim(bytes, swappiness) => {
                write_size(*bytes, f)?;
                swappiness.map_or(Ok(()), |value| write!(f, " swappiness={value}"))
            }
            ControlValue::Bandwidth { quota, period } => {
                match quota {
                    Some(quota) => write!(f, "{quota}")?,
                    None => f.write_str("max")?,
                }
                period.map_or(Ok(()), |period| write!(f, " {period}"))
            }
        }
    }
}

/// Type of a control file's field.
pub(super) trait ControlNumber: Copy {
    fn of_number(number: i128) -> Self;
    fn number(self) -> i128;
}

macro_rules! fields {
    ($($type:ty: $number:ident => $of:expr;)*) => { $(
        impl ControlNumber for $type {
            fn of_number($number: i128) -> $type {
                $of
            }
            fn number(self) -> i128 {
                self.into()
            }
        }
    )* };
}

fields! {
    bool: number => number != 0;
    i32: number => number.clamp(INT_MIN, INT_MAX) as i32;
    u32: number => number.clamp(0, u32::MAX.into()) as u32;
    u64: number => number.clamp(0, ULONG_MAX) as u64;
}

impl Sysctl {
    /// The control file with this name.
    pub fn find(name: &str) -> Option<Sysctl> {
        Sysctl::ALL.iter().copied().find(|sysctl| sysctl.name() == name)
    }

    /// Its path on a machine; `None` if it is not a single file.
    pub fn path(self) -> Option<String> {
        let name = self.name();
        match self {
            Sysctl::FaultAroundBytes => Some("/sys/kernel/debug/fault_around_bytes".into()),
            _ if name.starts_with("transparent_hugepage.") || name.starts_with("lru_gen.") => {
                Some(format!("/sys/kernel/mm/{}", name.replace('.', "/")))
            }
            _ if name.starts_with("vm.") => {
                Some(format!("/proc/sys/{}", name.replacen('.', "/", 1)))
            }
            _ => None,
        }
    }
}
