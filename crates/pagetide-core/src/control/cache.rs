//! The control files of a cache of kernel objects: `slab.CACHE.FILE`.
//!
//! Linux: /sys/kernel/slab/CACHE/FILE, the `slab_attribute`s of mm/slub.c (6.1). Three of the files
//! are writable. A write to a cache also goes to the groups' clones of it, as in kernels with
//! clones (until 5.8). Clones of a removed group keep their values.
//!
//! Differences from Linux: `min_partial` is a 32-bit number. On a CPU's slab, `objects` counts the
//! objects in use, where the kernel counts every object of that slab.
//!
//! Invariant: a refused write changes nothing.

use super::error::{quoted, ControlError};
use super::parse::Refusal;
use crate::config::{ControlFile, ControlForm, ControlOrigin};
use crate::interface::kernel::Kernel;
use crate::slab::kmem_cache::SlabSeat;
use crate::slab::Slabs;
use crate::slab::{CacheTuning, KmemCache};
use crate::units::errno::Errno;
use crate::units::page_size::PageSize;
use crate::units::{CacheId, Cpu, IdVec, NodeId};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::Write;

const PREFIX: &str = "slab.";

macro_rules! cache_controls {
    ($(
        $(#[doc = $doc:literal])+
        $variant:ident = $name:literal, $form:expr, $unit:literal, default $default:literal;
    )*) => {
        /// A file of a cache.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub enum CacheControl {
            $( $(#[doc = $doc])+ $variant, )*
        }

        impl CacheControl {
            /// All files, in the order of the documentation.
            pub const ALL: &'static [CacheControl] = &[$(CacheControl::$variant),*];
            const FILES: &'static [ControlFile] = &[$( ControlFile {
                name: $name,
                form: $form,
                unit: $unit,
                since: ControlOrigin::Linux("2.6.22, in Linux in /sys/kernel/slab"),
                default: $default,
                doc: concat!($($doc),+).trim_ascii(),
            } ),*];
        }
    };
}

/// `kstrtouint` of a decimal number.
const NUMBER: ControlForm = ControlForm::Sysfs { min: 0, max: u32::MAX as u64 };

cache_controls! {
    /// Empty slabs that a node keeps.
    MinPartial = "min_partial", NUMBER, "slabs", default "half of log2 of the object's size, but 5 to 10";
    /// Limit of free objects on a CPU's chain of slabs.
    CpuPartial = "cpu_partial", NUMBER, "objects", default "6 to 120, by the object's size";
    /// Frees empty slabs (workload write-control only).
    Shrink = "shrink", ControlForm::Action { max: 1 }, "", default "none (write-only)";
    /// log2 of the pages of a slab.
    Order = "order", ControlForm::ReadOnly, "", default "by the object's size";
    /// Capacity of a slab.
    ObjsPerSlab = "objs_per_slab", ControlForm::ReadOnly, "objects", default "by the object's size";
    /// Slabs, in total and per node.
    Slabs = "slabs", ControlForm::ReadOnly, "slabs", default "0";
    /// Objects in use.
    Objects = "objects", ControlForm::ReadOnly, "objects", default "0";
    /// Slabs on the nodes' lists.
    Partial = "partial", ControlForm::ReadOnly, "slabs", default "0";
    /// Slabs of CPUs.
    CpuSlabs = "cpu_slabs", ControlForm::ReadOnly, "slabs", default "0";
}

impl CacheControl {
    /// The writable files.
    pub fn written() -> impl Iterator<Item = CacheControl> {
        Self::ALL.iter().copied().filter(|control| control.file().form != ControlForm::ReadOnly)
    }

    /// Its name, form and documentation.
    pub const fn file(self) -> &'static ControlFile {
        &Self::FILES[self as usize]
    }

    /// The file with this name.
    pub fn find(name: &str) -> Option<CacheControl> {
        Self::ALL.iter().copied().find(|control| control.file().name == name)
    }

    /// The cache and the file of a name like `slab.dentry.min_partial`.
    pub(super) fn of_name(name: &str) -> Result<(&str, CacheControl), ControlError> {
        let refuse = |message| ControlError::new(Errno::Enoent, name, message);
        let Some((cache, file)) = cache_and_file(name) else {
            let message = format!(
                "{} is not the name of a slab cache file; the form is slab.CACHE.FILE",
                quoted(name)
            );
            return Err(refuse(message));
        };
        let Some(control) = CacheControl::find(file) else {
            let names: Vec<&str> = Self::ALL.iter().map(|control| control.file().name).collect();
            let message =
                format!("a cache has no file {}; it has {}", quoted(file), names.join(", "));
            return Err(refuse(message));
        };
        Ok((cache, control))
    }

    pub(super) fn read(self, name: &str, text: &str) -> Result<u32, ControlError> {
        let refuse = |what: &str, takes: &str| {
            let message = format!("{} {what} for {name}; it takes {takes}", quoted(text));
            ControlError::new(Errno::Einval, name, message)
        };
        match self.file().form {
            ControlForm::ReadOnly => {
                let message = format!("{name} can only be read");
                Err(ControlError::new(Errno::Eacces, name, message))
            }
            // Text after the digit is ignored.
            ControlForm::Action { .. } if text.starts_with('1') => Ok(1),
            ControlForm::Action { .. } => Err(refuse("is not a valid command", "1")),
            form => {
                let page_size = PageSize::default();
                let number = form.read(text, page_size).map_err(|refusal| match refusal {
                    Refusal::TooLarge => Refusal::OutOfRange,
                    refusal => refusal,
                });
                match number {
                    Ok(value) => Ok(u32::try_from(value.number()).unwrap_or(u32::MAX)),
                    Err(refusal) => Err(refuse(refusal.what(), &form.expected_text(page_size))),
                }
            }
        }
    }
}

/// A write to a file of a cache, already checked.
#[derive(Clone, Copy, Debug)]
pub(super) enum CacheWrite {
    Tune(CacheTuning),
    Shrink,
}

pub(super) fn is_cache_control(name: &str) -> bool {
    name.starts_with(PREFIX)
}

/// The cache and the file of a name like `slab.dentry.min_partial`; `None` for any other name.
pub fn cache_and_file(name: &str) -> Option<(&str, &str)> {
    name.strip_prefix(PREFIX)?.rsplit_once('.')
}

type NodeSums = IdVec<NodeId, u64>;

/// Levenshtein distance of two names.
fn distance(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (at, letter) in one.chars().enumerate() {
        let mut diagonal = core::mem::replace(&mut row[0], at + 1);
        for (column, &letter_there) in other.iter().enumerate() {
            let exchanged = diagonal + usize::from(letter != letter_there);
            diagonal = row[column + 1];
            row[column + 1] = exchanged.min(diagonal + 1).min(row[column] + 1);
        }
    }
    row[other.len()]
}

impl Slabs {
    pub(super) fn find_cache_control(
        &self,
        name: &str,
    ) -> Result<(CacheId, CacheControl), ControlError> {
        let (cache, control) = CacheControl::of_name(name)?;
        Ok((self.find_cache_of(cache, control)?, control))
    }

    fn find_cache_of(&self, cache: &str, control: CacheControl) -> Result<CacheId, ControlError> {
        self.find_cache(cache).ok_or_else(|| {
            let file = control.file().name;
            let hint = match self.similar_cache(cache) {
                Some(near) => format!("; did you mean slab.{near}.{file}?"),
                None => String::new(),
            };
            let message = format!("there is no cache {}{hint}", quoted(cache));
            ControlError::new(Errno::Enoent, &format!("{PREFIX}{cache}.{file}"), message)
        })
    }

    pub(super) fn check_cache_write(
        &self,
        cache: &str,
        control: CacheControl,
        value: u32,
    ) -> Result<(CacheId, CacheWrite), ControlError> {
        let id = self.find_cache_of(cache, control)?;
        let none = CacheTuning::default();
        let write = match control {
            CacheControl::MinPartial => {
                CacheWrite::Tune(CacheTuning { min_partial: Some(value), ..none })
            }
            CacheControl::CpuPartial => {
                CacheWrite::Tune(CacheTuning { cpu_partial: Some(value), ..none })
            }
            CacheControl::Shrink => CacheWrite::Shrink,
            CacheControl::Order
            | CacheControl::ObjsPerSlab
            | CacheControl::Slabs
            | CacheControl::Objects
            | CacheControl::Partial
            | CacheControl::CpuSlabs => {
                let name = format!("{PREFIX}{cache}.{}", control.file().name);
                let message = format!("{name} can only be read");
                return Err(ControlError::new(Errno::Eacces, &name, message));
            }
        };
        Ok((id, write))
    }

    /// The cache with the most similar name; `None` if no name is similar.
    pub fn similar_cache(&self, name: &str) -> Option<&str> {
        const NAME_MAX: usize = 64;
        if name.len() > NAME_MAX {
            return None;
        }
        let near = name.chars().count() / 3;
        let names = self.roots().map(|id| self.caches[id].name.as_str());
        let measured = names.map(|known| (distance(name, known), known));
        measured.min().filter(|&(distance, _)| distance <= near).map(|(_, known)| known)
    }
}

impl Kernel {
    /// Names of the files of every cache, the last part of `slab.CACHE.FILE`.
    pub fn cache_control_names() -> impl Iterator<Item = &'static str> {
        CacheControl::ALL.iter().map(|control| control.file().name)
    }

    pub(super) fn apply_cache_write(
        &mut self,
        id: CacheId,
        write: CacheWrite,
    ) -> Result<(), ControlError> {
        let tuning = match write {
            CacheWrite::Shrink => {
                self.shrink_cache(id, Cpu(0));
                return Ok(());
            }
            CacheWrite::Tune(tuning) => tuning,
        };
        let all = self.slabs.kmem_caches().filter(|(_, it)| it.root == id && !it.dying);
        let all: Vec<CacheId> = all.map(|(id, _)| id).collect();
        for id in all {
            // The values were checked against the cache, and a clone has the same bounds.
            self.tune_cache(id, tuning).map_err(|errno| {
                let name = &self.slabs.caches[id].name;
                ControlError::new(errno, name, format!("cache {} refuses this value", quoted(name)))
            })?;
        }
        Ok(())
    }

    /// Reads a file of a cache; counts include the groups' clones.
    pub(super) fn read_cache_control(&self, name: &str) -> Result<String, ControlError> {
        let (id, control) = self.slabs.find_cache_control(name)?;
        let it = &self.slabs.caches[id];
        Ok(match control {
            CacheControl::MinPartial => format!("{}\n", it.min_partial),
            CacheControl::CpuPartial => format!("{}\n", it.cpu_partial),
            CacheControl::Shrink => String::new(),
            CacheControl::Order => format!("{}\n", it.order),
            CacheControl::ObjsPerSlab => format!("{}\n", it.objects_per_slab()),
            CacheControl::Slabs
            | CacheControl::Objects
            | CacheControl::Partial
            | CacheControl::CpuSlabs => {
                let mut sums: NodeSums = alloc::vec![0; self.mem.pgdat.len()].into();
                for (_, it) in self.slabs.kmem_caches().filter(|(_, it)| it.root == id) {
                    count(it, control, &mut sums);
                }
                by_node(&sums)
            }
        })
    }

    /// Minimum and maximum of the cache's tunable order, for the message about a refused write.
    pub fn order_bounds(&self, cache: CacheId) -> Option<(u8, u8)> {
        let it = self.slabs.kmem_cache(cache)?;
        let orders = it.min_order..=crate::units::MAX_PAGE_ORDER;
        let most = |order: &u8| {
            (it.page_size() << order) / u64::from(it.size) <= crate::slab::order::MAX_OBJECTS
        };
        let last = orders.take_while(most).last().unwrap_or(it.min_order);
        Some((it.min_order, last))
    }
}

/// Adds a cache's count to the sums.
fn count(it: &KmemCache, control: CacheControl, sums: &mut NodeSums) {
    for (slot, slab) in it.slabs.iter().enumerate() {
        let held = |slot: usize| {
            let mine = it.cpus.iter().filter(move |cpu| cpu.slot as usize == slot);
            mine.map(|cpu| cpu.word.count_ones()).sum::<u32>()
        };
        let of_cpu = matches!(slab.seat, SlabSeat::Active(_) | SlabSeat::CpuPartial);
        let nr = match control {
            _ if slab.seat == SlabSeat::Gone => 0,
            CacheControl::Slabs => 1,
            CacheControl::Objects => {
                u64::from(slab.objects) - u64::from(slab.free) - u64::from(held(slot))
            }
            CacheControl::Partial => u64::from(slab.seat == SlabSeat::Partial),
            CacheControl::CpuSlabs => u64::from(of_cpu),
            CacheControl::MinPartial
            | CacheControl::CpuPartial
            | CacheControl::Shrink
            | CacheControl::Order
            | CacheControl::ObjsPerSlab => 0,
        };
        sums[slab.node] += nr;
    }
}

/// Prints the sum and the part of each node.
fn by_node(sums: &NodeSums) -> String {
    let mut text = format!("{}", sums.iter().sum::<u64>());
    for (node, sum) in sums.iter().enumerate().filter(|(_, &sum)| sum > 0) {
        // Writing to a string does not fail.
        let _ = write!(text, " N{node}={sum}");
    }
    text + "\n"
}

#[cfg(test)]
mod tests;
