//! Control files: text written to a knob by its kernel name, checked as the kernel checks it.
//!
//! Linux: the `vm_table` of kernel/sysctl.c and the handlers it names (mm/page_alloc.c,
//! mm/page-writeback.c, mm/compaction.c, fs/drop_caches.c), `fault_around_bytes` (mm/memory.c,
//! debugfs), `read_ahead_kb` (block/blk-sysfs.c, one for all disks here) and the files of transparent
//! huge pages (mm/huge_memory.c, mm/khugepaged.c, sysfs). The three `vm.wmark_*_kbytes` are Satoru
//! Moriya's patch of January 2011, `vm.extra_free_kbytes` is Rik van Riel's. The files of caches have a
//! cache in their names (control/cache.rs). Policies are set by name with [`Manager::set_policy`]; the
//! kernel has no such files.
//!
//! Differences from Linux, all of them stricter: control/parse.rs names two in reading numbers;
//! `vm.page-cluster` is at most 31, which later kernels check and 6.1 does not;
//! `vm.lowmem_reserve_ratio` reports a bad number and changes nothing, where Linux keeps the numbers
//! before it and reports success.
//!
//! Invariant: a refused write changes nothing, and min <= low <= high holds after every write.

mod cache;
mod error;
mod group;
mod handlers;
mod marks;
mod parse;
mod policy;
mod words;

pub use error::{ControlError, Errno};
pub use group::GroupWrite;

use crate::effect::Effects;
use crate::manager::Manager;
use crate::owners::Owners;
use crate::page_size::PageSize;
use crate::units::{CacheId, HPAGE_PMD_NR};
use crate::watermark::{self, WatermarkInputs};
use crate::zone::MAX_NR_ZONES;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use cache::{is_of_cache, CacheWrite};
use error::quoted;
use marks::MarksWrite;
use parse::Malformed;
use policy::{THP, THP_DEFRAG};

/// What a control file takes, and which of the kernel's readers reads it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Form {
    /// One integer (`proc_dointvec_minmax`, `proc_doulongvec_minmax`).
    Integer { min: i128, max: i128 },
    /// One integer, at least so many pages in bytes.
    Bytes { min_pages: u64 },
    /// An integer for each zone; those left out keep their value.
    Zones,
    /// One decimal number without blanks (`queue_var_store`, `kstrtouint`).
    Sysfs { min: u64, max: u64 },
    /// One number without blanks, decimal or with a prefix (`simple_attr_write`): bytes of at most as
    /// many pages as a table of entries maps, and any remainder.
    Debugfs,
    /// One of these words (`sysfs_streq`).
    Words(&'static [&'static str]),
    /// Whatever is written.
    Anything,
}

impl Form {
    /// The least and the greatest number that it takes.
    fn bounds(self, page_size: PageSize) -> (i128, i128) {
        match self {
            Form::Integer { min, max } => (min, max),
            Form::Bytes { min_pages } => (page_size.bytes_of(min_pages).into(), ULONG_MAX),
            Form::Zones => (INT_MIN, INT_MAX),
            Form::Sysfs { min, max } => (min.into(), max.into()),
            Form::Debugfs => {
                let beyond = page_size.bytes_of(page_size.ptrs_per_pte() + 1);
                (0, i128::from(beyond) - 1)
            }
            Form::Words(_) | Form::Anything => (0, INT_MAX),
        }
    }
}

const INT_MIN: i128 = i32::MIN as i128;
const INT_MAX: i128 = i32::MAX as i128;
const ULONG_MAX: i128 = u64::MAX as i128;
const UINT_MAX: u64 = u32::MAX as u64;
/// `proc_dointvec_jiffies` stores seconds in jiffies, 250 a second.
const SECONDS_MAX: i128 = INT_MAX / 250;
/// Pages of a huge page that khugepaged may find missing or in swap: all but one.
const MAX_PTES: u64 = HPAGE_PMD_NR - 1;

const THP_WORDS: [&str; 3] = words::of(&THP);
const THP_DEFRAG_WORDS: [&str; 5] = words::of(&THP_DEFRAG);

const fn from(min: i128) -> Form {
    Form::Integer { min, max: INT_MAX }
}

const fn within(min: i128, max: i128) -> Form {
    Form::Integer { min, max }
}

macro_rules! controls {
    ($($variant:ident = $name:literal, $form:expr;)*) => {
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        enum Control { $($variant,)* }

        impl Control {
            const ALL: &'static [Control] = &[$(Control::$variant),*];

            const fn name(self) -> &'static str {
                match self { $(Control::$variant => $name,)* }
            }

            const fn form(self) -> Form {
                match self { $(Control::$variant => $form,)* }
            }
        }
    };
}

controls! {
    MinFreeKbytes = "vm.min_free_kbytes", from(0);
    // 1000 until Linux 5.16.
    WatermarkScaleFactor = "vm.watermark_scale_factor", within(1, 3000);
    WatermarkBoostFactor = "vm.watermark_boost_factor", from(0);
    WmarkMinKbytes = "vm.wmark_min_kbytes", from(0);
    WmarkLowKbytes = "vm.wmark_low_kbytes", from(0);
    WmarkHighKbytes = "vm.wmark_high_kbytes", from(0);
    ExtraFreeKbytes = "vm.extra_free_kbytes", from(0);
    LowmemReserveRatio = "vm.lowmem_reserve_ratio", Form::Zones;
    Swappiness = "vm.swappiness", within(0, 200);
    PageCluster = "vm.page-cluster", within(0, 31);
    VfsCachePressure = "vm.vfs_cache_pressure", from(0);
    DirtyRatio = "vm.dirty_ratio", within(0, 100);
    DirtyBackgroundRatio = "vm.dirty_background_ratio", within(0, 100);
    DirtyBytes = "vm.dirty_bytes", Form::Bytes { min_pages: 2 };
    DirtyBackgroundBytes = "vm.dirty_background_bytes", within(1, ULONG_MAX);
    // A negative interval is taken as the large unsigned number with the same bits.
    DirtyWritebackCentisecs = "vm.dirty_writeback_centisecs", within(INT_MIN, INT_MAX);
    DirtyExpireCentisecs = "vm.dirty_expire_centisecs", from(0);
    LaptopMode = "vm.laptop_mode", within(-SECONDS_MAX, SECONDS_MAX);
    FaultAroundBytes = "vm.fault_around_bytes", Form::Debugfs;
    ReadAheadKb = "block.read_ahead_kb", Form::Sysfs { min: 0, max: UINT_MAX };
    CompactMemory = "vm.compact_memory", within(1, 1);
    ExtfragThreshold = "vm.extfrag_threshold", within(0, 1000);
    CompactUnevictableAllowed = "vm.compact_unevictable_allowed", within(0, 1);
    CompactionProactiveness = "vm.compaction_proactiveness", within(0, 100);
    // Linux 6.15.
    DefragMode = "vm.defrag_mode", within(0, 1);
    ThpEnabled = "transparent_hugepage.enabled", Form::Words(&THP_WORDS);
    ThpDefrag = "transparent_hugepage.defrag", Form::Words(&THP_DEFRAG_WORDS);
    KhugepagedDefrag = "transparent_hugepage.khugepaged.defrag", Form::Sysfs { min: 0, max: 1 };
    KhugepagedPagesToScan = "transparent_hugepage.khugepaged.pages_to_scan",
        Form::Sysfs { min: 1, max: UINT_MAX };
    KhugepagedScanSleepMillisecs = "transparent_hugepage.khugepaged.scan_sleep_millisecs",
        Form::Sysfs { min: 0, max: UINT_MAX };
    KhugepagedAllocSleepMillisecs = "transparent_hugepage.khugepaged.alloc_sleep_millisecs",
        Form::Sysfs { min: 0, max: UINT_MAX };
    KhugepagedMaxPtesNone = "transparent_hugepage.khugepaged.max_ptes_none",
        Form::Sysfs { min: 0, max: MAX_PTES };
    KhugepagedMaxPtesSwap = "transparent_hugepage.khugepaged.max_ptes_swap",
        Form::Sysfs { min: 0, max: MAX_PTES };
    DropCaches = "vm.drop_caches", within(1, 4);
    StatRefresh = "vm.stat_refresh", Form::Anything;
}

/// Numbers that have passed the checks of their control file. A word is its place among those it
/// takes.
#[derive(Clone, Copy, Debug)]
struct Numbers {
    values: [i128; MAX_NR_ZONES],
    count: usize,
}

impl Control {
    fn find(name: &str) -> Result<Control, ControlError> {
        if let Some(control) = Self::ALL.iter().find(|control| control.name() == name) {
            return Ok(*control);
        }
        // Forgives the directory, and a dash for an underscore.
        let last = |name: &str| {
            String::from(name.rsplit(['.', '/']).next().unwrap_or(name)).replace('_', "-")
        };
        let close = Self::ALL.iter().find(|control| last(control.name()) == last(name));
        let hint = match close {
            Some(control) => format!("; did you mean {}?", control.name()),
            None => String::new(),
        };
        let message = format!("there is no control file {}{hint}", quoted(name));
        Err(ControlError::new(Errno::Enoent, name, message))
    }

    /// What the file takes, to complete "it takes ".
    fn accepts(self, page_size: PageSize) -> String {
        let form = self.form();
        match form {
            Form::Integer { min, max } if min == max => format!("{min}"),
            Form::Integer { .. } | Form::Bytes { .. } => {
                let (min, max) = form.bounds(page_size);
                format!("an integer from {min} to {max}")
            }
            Form::Zones => {
                format!("up to {MAX_NR_ZONES} integers (DMA DMA32 Normal Movable); 0 is no reserve")
            }
            Form::Sysfs { min, max } => format!("a decimal number from {min} to {max}"),
            Form::Debugfs => format!("a number from 0 to {}", form.bounds(page_size).1),
            Form::Words(words) => words::listed(words),
            Form::Anything => String::from("any text"),
        }
    }

    fn refuse(self, errno: Errno, text: &str, what: &str, page_size: PageSize) -> ControlError {
        let name = self.name();
        let takes = self.accepts(page_size);
        let message = format!("{} {what} for {name}; it takes {takes}", quoted(text));
        ControlError::new(errno, name, message)
    }

    /// Reads and checks a text.
    fn parse(self, text: &str, page_size: PageSize) -> Result<Numbers, ControlError> {
        let form = self.form();
        let refuse = |errno, what| self.refuse(errno, text, what, page_size);
        let malformed = |malformed| match malformed {
            Malformed::NotANumber => refuse(Errno::Einval, "is not a number"),
            Malformed::TooMany => refuse(Errno::Einval, "is too many numbers"),
            Malformed::TooLarge => {
                let debugfs = matches!(form, Form::Debugfs);
                let errno = if debugfs { Errno::Erange } else { Errno::Einval };
                refuse(errno, "is too large a number")
            }
        };
        let mut values = [0; MAX_NR_ZONES];
        let count = match form {
            Form::Integer { .. } | Form::Bytes { .. } => {
                parse::sysctl(text, &mut values[..1]).map_err(malformed)?
            }
            Form::Zones => parse::sysctl(text, &mut values).map_err(malformed)?,
            Form::Sysfs { .. } => {
                values[0] = parse::kstrtoull(text, 10).map_err(malformed)?.into();
                1
            }
            Form::Debugfs => {
                values[0] = parse::kstrtoull(text, 0).map_err(malformed)?.into();
                1
            }
            Form::Words(words) => {
                let place = words::find(words, text);
                let place = place.ok_or_else(|| refuse(Errno::Einval, "is no word"))?;
                values[0] = place as i128;
                1
            }
            Form::Anything => 0,
        };
        let (min, max) = form.bounds(page_size);
        if values[..count].iter().any(|value| !(min..=max).contains(value)) {
            return Err(refuse(Errno::Einval, "is out of range"));
        }
        Ok(Numbers { values, count })
    }
}

/// One change that a list of writes makes.
#[derive(Clone, Copy, Debug)]
enum Change {
    Write(Control, Numbers),
    Marks(MarksWrite),
    Cache(CacheId, CacheWrite),
}

/// Checks every text and gathers the writes to the three marks where the last of them stands.
fn plan<O: Owners>(
    machine: &Manager<O>,
    writes: &[(&str, &str)],
) -> Result<Vec<Change>, ControlError> {
    let mut changes = Vec::with_capacity(writes.len());
    let mut marks = MarksWrite::default();
    for (name, text) in writes {
        if is_of_cache(name) {
            let (cache, write) = machine.check_cache_write(name, text)?;
            changes.push(Change::Cache(cache, write));
            continue;
        }
        let control = Control::find(name)?;
        let numbers = control.parse(text, machine.mem.page_size)?;
        match marks.field(control) {
            Some(field) => {
                *field = Some(u64_of(numbers.values[0]));
                changes.retain(|change| !matches!(change, Change::Marks(_)));
                changes.push(Change::Marks(marks));
            }
            None => changes.push(Change::Write(control, numbers)),
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

/// Makes a write that moves the marks. Says whether `control` does.
fn write_inputs(inputs: &mut WatermarkInputs, control: Control, value: i128) -> bool {
    match control {
        Control::MinFreeKbytes => inputs.write_min_free_kbytes(u64_of(value)),
        Control::WatermarkScaleFactor => inputs.watermark_scale_factor = u32_of(value),
        Control::ExtraFreeKbytes => inputs.extra_free_kbytes = u64_of(value),
        _ => return false,
    }
    true
}

impl<O: Owners> Manager<O> {
    /// Names of all control files but those of caches, in the order of the documentation.
    pub fn control_names() -> impl Iterator<Item = &'static str> {
        Control::ALL.iter().map(|control| control.name())
    }

    /// Writes `text` to a control file, as `echo text >/proc/sys/...` does.
    ///
    /// What it costs (freed pages) comes with the next [`Manager::take_work`].
    ///
    /// ```
    /// # use pagetide_core::{config::Config, control::Errno, node::NodeSpec, process::Machine};
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
    /// The kernel's errno and a sentence. Nothing has changed then.
    pub fn write_control(&mut self, name: &str, text: &str) -> Result<Effects<'_>, ControlError> {
        self.write_controls(&[(name, text)])
    }

    /// Writes a list of control files in order, all of them or none.
    ///
    /// The writes to `vm.wmark_min_kbytes`, `vm.wmark_low_kbytes` and `vm.wmark_high_kbytes` in
    /// one list are one write of all three, made where the last of them stands. Only the result
    /// must be in order, so marks can be moved past each other in any order of writing. A write
    /// to `vm.min_free_kbytes` after them computes all three again, as it does on its own.
    ///
    /// # Errors
    /// The first write that is refused, or the three marks if they come out of order.
    pub fn write_controls<N, T>(&mut self, writes: &[(N, T)]) -> Result<Effects<'_>, ControlError>
    where
        N: AsRef<str>,
        T: AsRef<str>,
    {
        let writes: Vec<(&str, &str)> =
            writes.iter().map(|(name, text)| (name.as_ref(), text.as_ref())).collect();
        let changes = plan(self, &writes)?;
        self.check_marks(&changes)?;
        for change in changes {
            match change {
                Change::Write(control, numbers) => self.apply_control(control, numbers),
                Change::Marks(marks) => {
                    marks.apply(&mut self.config.watermarks)?;
                    self.mem.setup_watermarks(&self.config.watermarks);
                }
                Change::Cache(cache, write) => self.apply_cache_write(cache, write)?,
            }
        }
        Ok(self.hand_out())
    }

    /// Only the marks depend on what was written before them: makes the writes that move them, on
    /// copies.
    fn check_marks(&self, changes: &[Change]) -> Result<(), ControlError> {
        if !changes.iter().any(|change| matches!(change, Change::Marks(_))) {
            return Ok(());
        }
        let page_size = self.mem.page_size;
        let mut nodes = self.mem.nodes.clone();
        let (mut inputs, mut thp) = (self.config.watermarks, self.config.thp);
        for change in changes {
            match change {
                Change::Write(Control::ThpEnabled, numbers) => {
                    let new = words::chosen(&THP, numbers.values[0]);
                    let (was_on, is_on) = (thp.is_on(), new.is_on());
                    watermark::switch_thp(&mut nodes, &mut inputs, was_on, is_on, page_size);
                    thp = new;
                }
                Change::Write(control, numbers) => {
                    if write_inputs(&mut inputs, *control, numbers.values[0]) {
                        watermark::setup(&mut nodes, &inputs, page_size);
                    }
                }
                Change::Marks(marks) => {
                    marks.apply(&mut inputs)?;
                    watermark::setup(&mut nodes, &inputs, page_size);
                }
                Change::Cache(..) => {}
            }
        }
        Ok(())
    }

    fn apply_control(&mut self, control: Control, numbers: Numbers) {
        let value = numbers.values[0];
        match control {
            Control::MinFreeKbytes | Control::WatermarkScaleFactor | Control::ExtraFreeKbytes => {
                write_inputs(&mut self.config.watermarks, control, value);
                self.mem.setup_watermarks(&self.config.watermarks);
            }
            // Gathered into a `Change::Marks`.
            Control::WmarkMinKbytes | Control::WmarkLowKbytes | Control::WmarkHighKbytes => {}
            Control::WatermarkBoostFactor => self.set_watermark_boost_factor(u32_of(value)),
            Control::LowmemReserveRatio => {
                let inputs = &mut self.config.watermarks;
                let given = &numbers.values[..numbers.count];
                for (ratio, value) in inputs.lowmem_reserve_ratio.iter_mut().zip(given) {
                    *ratio = u32_of(*value);
                }
                watermark::setup_lowmem_reserve(&mut self.mem.nodes, inputs);
            }
            Control::Swappiness => self.config.swappiness = u32_of(value),
            Control::PageCluster => self.config.page_cluster = u32_of(value),
            Control::VfsCachePressure => self.config.vfs_cache_pressure = u32_of(value),
            Control::DirtyRatio => self.set_dirty_ratio(u32_of(value)),
            Control::DirtyBytes => self.set_dirty_bytes(u64_of(value)),
            Control::DirtyBackgroundRatio => {
                self.config.dirty_background_ratio = u32_of(value);
                self.config.dirty_background_bytes = 0;
            }
            Control::DirtyBackgroundBytes => {
                self.config.dirty_background_bytes = u64_of(value);
                self.config.dirty_background_ratio = 0;
            }
            Control::DirtyWritebackCentisecs => self.set_dirty_writeback_centisecs(value as i32),
            Control::DirtyExpireCentisecs => self.config.dirty_expire_centisecs = u32_of(value),
            Control::LaptopMode => self.config.laptop_mode = value as i32,
            Control::FaultAroundBytes => {
                let pages = u32_of(value) >> self.mem.page_size.shift();
                self.config.fault_around_pages = pages.checked_ilog2().map_or(1, |log| 1 << log);
            }
            Control::ReadAheadKb => {
                self.config.read_ahead_pages = u32_of(value) >> self.mem.page_size.kb_shift();
            }
            Control::CompactMemory => self.request_compaction_of_everything(),
            Control::ExtfragThreshold => self.config.extfrag_threshold = u32_of(value),
            Control::CompactUnevictableAllowed => {
                self.config.compact_unevictable_allowed = value != 0;
            }
            Control::CompactionProactiveness => self.set_compaction_proactiveness(u32_of(value)),
            Control::DefragMode => self.set_defrag_mode(value != 0),
            Control::ThpEnabled => self.set_thp(words::chosen(&THP, value)),
            Control::ThpDefrag => self.config.thp_defrag = words::chosen(&THP_DEFRAG, value),
            Control::KhugepagedDefrag => self.config.khugepaged.defrag = value != 0,
            Control::KhugepagedPagesToScan => {
                self.config.khugepaged.pages_to_scan = u32_of(value);
            }
            Control::KhugepagedScanSleepMillisecs => {
                self.config.khugepaged.scan_sleep_millisecs = u32_of(value);
            }
            Control::KhugepagedAllocSleepMillisecs => {
                self.config.khugepaged.alloc_sleep_millisecs = u32_of(value);
            }
            Control::KhugepagedMaxPtesNone => {
                self.config.khugepaged.max_ptes_none = u32_of(value);
            }
            Control::KhugepagedMaxPtesSwap => {
                self.config.khugepaged.max_ptes_swap = u32_of(value);
            }
            Control::DropCaches => self.drop_caches(u32_of(value)),
            Control::StatRefresh => {}
        }
    }

    /// Reads a control file: its text as read(2) would return it, with the newline.
    ///
    /// # Errors
    /// ENOENT if there is none of this name, EACCES if it can only be written.
    pub fn read_control(&self, name: &str) -> Result<String, ControlError> {
        if is_of_cache(name) {
            return self.read_cache_control(name);
        }
        let control = Control::find(name)?;
        let config = &self.config;
        let inputs = &config.watermarks;
        let page_size = self.mem.page_size;
        let value: i128 = match control {
            Control::MinFreeKbytes => inputs.min_free_kbytes.into(),
            Control::WatermarkScaleFactor => inputs.watermark_scale_factor.into(),
            Control::WatermarkBoostFactor => inputs.watermark_boost_factor.into(),
            Control::WmarkMinKbytes => inputs.wmark_kbytes().min.into(),
            Control::WmarkLowKbytes => inputs.wmark_kbytes().low.into(),
            Control::WmarkHighKbytes => inputs.wmark_kbytes().high.into(),
            Control::ExtraFreeKbytes => inputs.extra_free_kbytes.into(),
            Control::LowmemReserveRatio => {
                let [dma, dma32, normal, movable] = inputs.lowmem_reserve_ratio;
                return Ok(format!("{dma}\t{dma32}\t{normal}\t{movable}\n"));
            }
            Control::Swappiness => config.swappiness.into(),
            Control::PageCluster => config.page_cluster.into(),
            Control::VfsCachePressure => config.vfs_cache_pressure.into(),
            Control::DirtyRatio => config.dirty_ratio.into(),
            Control::DirtyBackgroundRatio => config.dirty_background_ratio.into(),
            Control::DirtyBytes => config.dirty_bytes.into(),
            Control::DirtyBackgroundBytes => config.dirty_background_bytes.into(),
            Control::DirtyWritebackCentisecs => (config.dirty_writeback_centisecs as i32).into(),
            Control::DirtyExpireCentisecs => config.dirty_expire_centisecs.into(),
            Control::LaptopMode => config.laptop_mode.into(),
            Control::FaultAroundBytes => {
                page_size.bytes_of(config.fault_around_pages.into()).into()
            }
            Control::ReadAheadKb => page_size.kbytes_of(config.read_ahead_pages.into()).into(),
            Control::ExtfragThreshold => config.extfrag_threshold.into(),
            Control::CompactUnevictableAllowed => config.compact_unevictable_allowed.into(),
            Control::CompactionProactiveness => config.compaction_proactiveness.into(),
            Control::DefragMode => config.defrag_mode.into(),
            Control::ThpEnabled => return Ok(words::bracketed(&THP, config.thp)),
            Control::ThpDefrag => return Ok(words::bracketed(&THP_DEFRAG, config.thp_defrag)),
            Control::KhugepagedDefrag => config.khugepaged.defrag.into(),
            Control::KhugepagedPagesToScan => config.khugepaged.pages_to_scan.into(),
            Control::KhugepagedScanSleepMillisecs => config.khugepaged.scan_sleep_millisecs.into(),
            Control::KhugepagedAllocSleepMillisecs => {
                config.khugepaged.alloc_sleep_millisecs.into()
            }
            Control::KhugepagedMaxPtesNone => config.khugepaged.max_ptes_none.into(),
            Control::KhugepagedMaxPtesSwap => config.khugepaged.max_ptes_swap.into(),
            Control::DropCaches | Control::CompactMemory => {
                let message = format!("{} can only be written", control.name());
                return Err(ControlError::new(Errno::Eacces, name, message));
            }
            Control::StatRefresh => return Ok(String::new()),
        };
        Ok(format!("{value}\n"))
    }
}

#[cfg(test)]
mod tests;
