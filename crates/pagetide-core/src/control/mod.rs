//! Control files: texts written to files with the kernel's names and the kernel's checks.
//!
//! Linux: the `vm_table` of kernel/sysctl.c and its handlers (mm/page_alloc.c, mm/page-writeback.c,
//! mm/compaction.c, fs/drop_caches.c), `fault_around_bytes` (mm/memory.c, debugfs), `read_ahead_kb`
//! (block/blk-sysfs.c; one for all disks here) and the files of transparent huge pages
//! (mm/huge_memory.c, mm/khugepaged.c, sysfs). The three `vm.wmark_*_kbytes` are Satoru Moriya's
//! patch of January 2011, `vm.extra_free_kbytes` is Rik van Riel's. [`crate::config`] declares
//! them. Files of caches have a cache in their names (control/cache.rs). The kernel has no files
//! for policies; [`Manager::choose`] chooses them.
//!
//! A text is parsed once, into a [`ControlWrite`]. control/handlers.rs has the files whose writes
//! do more than set a field.
//!
//! Differences from Linux, all stricter: two in the parsing of numbers (control/parse.rs);
//! `vm.page-cluster` is at most 31, which 6.1 does not check but later kernels do; a write to
//! `vm.lowmem_reserve_ratio` with a bad number is refused and changes nothing, where Linux stores
//! the numbers before the bad one and reports success.
//!
//! Invariant: a refused write changes nothing, and min <= low <= high holds after every write.

pub mod proc;

mod cache;
mod error;
mod group;
mod handlers;
mod lru_gen;
mod marks;
mod parse;
mod policy;
mod write;
mod zram;

pub use cache::{cache_and_file, CacheControl};
pub use error::ControlError;
pub use group::{GroupControl, GroupControlWrite, GroupWrite};
pub use parse::{kernel_number, Refusal};
pub use write::ControlWrite;

use crate::config::{ControlValue, PolicyChoice, Special, Sysctl};
use crate::frames::watermark::{self, WatermarkInputs};
use crate::interface::effect::Effects;
use crate::interface::kernel::Kernel;
use crate::interface::manager::Manager;
use crate::interface::owners::Owners;
use crate::units::CacheId;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use cache::{is_cache_control, CacheWrite};
use marks::MarksWrite;

#[derive(Clone, Copy, Debug)]
enum ControlChange {
    Write(Sysctl, ControlValue),
    Marks(MarksWrite),
    Cache(CacheId, CacheWrite),
}

/// Checks every write. Combines the writes to the three watermarks into one, at the position of the
/// last one.
fn plan(kernel: &Kernel, writes: &[ControlWrite]) -> Result<Vec<ControlChange>, ControlError> {
    let mut changes = Vec::with_capacity(writes.len());
    let mut marks = MarksWrite::default();
    for write in writes {
        write.check(kernel.mem.page_size)?;
        match write {
            ControlWrite::Cache { cache, control, value } => {
                let (cache, write) = kernel.slabs.check_cache_write(cache, *control, *value)?;
                changes.push(ControlChange::Cache(cache, write));
            }
            ControlWrite::Sysctl(sysctl, value) => match marks.field(*sysctl) {
                Some(field) => {
                    *field = Some(u64_of(value.number()));
                    changes.retain(|change| !matches!(change, ControlChange::Marks(_)));
                    changes.push(ControlChange::Marks(marks));
                }
                None => changes.push(ControlChange::Write(*sysctl, *value)),
            },
        }
    }
    Ok(changes)
}

fn u32_of(value: i128) -> u32 {
    u32::try_from(value.max(0)).unwrap_or(u32::MAX)
}

fn u64_of(value: i128) -> u64 {
    u64::try_from(value.max(0)).unwrap_or(u64::MAX)
}

/// Applies a write that affects the watermarks. Returns false if `sysctl` does not affect them.
fn write_inputs(inputs: &mut WatermarkInputs, sysctl: Sysctl, value: i128) -> bool {
    match sysctl.special() {
        Some(Special::MinFreeKbytes) => inputs.write_min_free_kbytes(u64_of(value)),
        Some(Special::WatermarkScaleFactor) => inputs.watermark_scale_factor = u32_of(value),
        Some(Special::ExtraFreeKbytes) => inputs.extra_free_kbytes = u64_of(value),
        _ => return false,
    }
    true
}

impl Kernel {
    /// Parses a text. If `name` is a file of a cache, the cache must exist.
    fn read_write(&self, name: &str, text: &str) -> Result<ControlWrite, ControlError> {
        if is_cache_control(name) {
            self.slabs.find_cache_control(name)?;
        }
        ControlWrite::read(name, text, self.mem.page_size)
    }

    /// Applies the writes that affect the watermarks to copies, because the check of each write
    /// depends on the writes before it.
    fn check_marks(&self, changes: &[ControlChange]) -> Result<(), ControlError> {
        if !changes.iter().any(|change| matches!(change, ControlChange::Marks(_))) {
            return Ok(());
        }
        let page_size = self.mem.page_size;
        let mut nodes = self.mem.nodes.clone();
        let (mut inputs, mut thp) = (self.config.watermarks, self.config.thp);
        for change in changes {
            match change {
                ControlChange::Write(_, ControlValue::Choice(PolicyChoice::Thp(new))) => {
                    let (was_on, is_on) = (thp.is_on(), new.is_on());
                    watermark::switch_thp(&mut nodes, &mut inputs, was_on, is_on, page_size);
                    thp = *new;
                }
                ControlChange::Write(sysctl, value) => {
                    if write_inputs(&mut inputs, *sysctl, value.number()) {
                        watermark::setup(&mut nodes, &inputs, page_size);
                    }
                }
                ControlChange::Marks(marks) => {
                    marks.apply(&mut inputs)?;
                    watermark::setup(&mut nodes, &inputs, page_size);
                }
                ControlChange::Cache(..) => {}
            }
        }
        Ok(())
    }

    /// Reads a control file: its text as read(2) returns it, with the newline.
    ///
    /// # Errors
    /// ENOENT for an unknown name, EACCES for a write-only file.
    pub fn read_control(&self, name: &str) -> Result<String, ControlError> {
        if is_cache_control(name) {
            return self.read_cache_control(name);
        }
        let sysctl = write::find_sysctl(name)?;
        match sysctl.special() {
            Some(special) => self.read_special(sysctl, special),
            None => Ok(format!("{}\n", self.config.number(sysctl).unwrap_or_default())),
        }
    }
}

impl<O: Owners> Manager<O> {
    /// Writes `text` to a control file, as `echo text >/proc/sys/...` does.
    ///
    /// The next [`Kernel::take_work`] includes its cost (freed pages).
    ///
    /// ```
    /// # use pagetide_core::{config::Config, frames::node::NodeSpec};
    /// # use pagetide_core::{process::Machine, units::errno::Errno};
    /// # let node = NodeSpec::x86_64(64 << 20, 0, 0);
    /// # let mut machine = Machine::new(&[node], 1, Config::default()).unwrap();
    /// machine.write_control("vm.swappiness", "0x64\n").unwrap().discard();
    /// assert_eq!(machine.read_control("vm.swappiness").unwrap(), "100\n");
    ///
    /// let error = machine.write_control("vm.swappiness", "201").unwrap_err();
    /// assert_eq!(error.errno, Errno::Einval);
    /// assert_eq!(
    ///     error.to_string(),
    ///     "EINVAL: `201` is out of range for vm.swappiness; it takes an integer from 0 to 200"
    /// );
    /// ```
    ///
    /// # Errors
    /// The kernel's errno and a message. Nothing has changed.
    pub fn write_control(&mut self, name: &str, text: &str) -> Result<Effects<'_>, ControlError> {
        self.write_controls(&[(name, text)])
    }

    /// Writes a list of control files in order, all of them or none.
    ///
    /// The writes to `vm.wmark_min_kbytes`, `vm.wmark_low_kbytes` and `vm.wmark_high_kbytes` in one
    /// list are combined into one write of all three, at the position of the last one. Only the
    /// result must satisfy min <= low <= high, so the writes may come in any order. A later write
    /// to `vm.min_free_kbytes` recomputes all three, as it does on its own.
    ///
    /// # Errors
    /// The first refused write, or the three watermarks if the result is out of order.
    pub fn write_controls<N, T>(&mut self, writes: &[(N, T)]) -> Result<Effects<'_>, ControlError>
    where
        N: AsRef<str>,
        T: AsRef<str>,
    {
        let read = |(name, text): &(N, T)| self.read_write(name.as_ref(), text.as_ref());
        let writes: Result<Vec<ControlWrite>, ControlError> = writes.iter().map(read).collect();
        self.do_apply_writes(&writes?)
    }

    pub(crate) fn do_apply_writes(
        &mut self,
        writes: &[ControlWrite],
    ) -> Result<Effects<'_>, ControlError> {
        let changes = plan(self, writes)?;
        self.check_marks(&changes)?;
        for change in changes {
            match change {
                ControlChange::Write(sysctl, value) => self.apply_sysctl(sysctl, value)?,
                ControlChange::Marks(marks) => {
                    marks.apply(&mut self.config.watermarks)?;
                    self.kernel.mem.setup_watermarks(&self.kernel.config.watermarks);
                }
                ControlChange::Cache(cache, write) => self.apply_cache_write(cache, write)?,
            }
        }
        Ok(self.take_effects())
    }
}

#[cfg(test)]
mod tests;
