//! Sets up the initial state of the scenario: file systems, modules, disks, swap, sysctls. (Groups:
//! `groups`.)
//!
//! Everything that the kernel lacks is reported, so that the comparison lists it as not comparable.

use crate::compressed::{enable_zswap, swap_to_zram};
use crate::config::GuestConfig;
use crate::groups::write_existing;
use crate::perform::{disk_path, file_path};
use crate::report::line;
use crate::sys::memory::{drop_cached_pages, MemoryMapping, PAGE_SIZE};
use crate::sys::mount::{load_module, mount, swap_on};
use pagetide_core::config::{LruPolicy, Sysctl};
use pagetide_core::control::{cache_and_file, ControlWrite};
use pagetide_scenario::model::switches::{needed, of_patches, NeededSwitch};
use pagetide_scenario::model::{swap_serial, Setup};
use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

/// File systems of the kernel: (type, mount point).
const KERNEL_FILE_SYSTEMS: [(&str, &str, bool); 5] = [
    ("proc", "/proc", true),
    ("sysfs", "/sys", true),
    ("devtmpfs", "/dev", true),
    ("debugfs", "/sys/kernel/debug", false),
    ("tracefs", "/sys/kernel/tracing", false),
];

/// Options by which ext4 does not read inode tables and block bitmaps in the background. Kernels
/// before 5.13 do not know the second option, and do not read bitmaps.
const EXT4_OPTIONS: [&str; 2] = ["noinit_itable,no_prefetch_block_bitmaps", "noinit_itable"];

/// Mounts the kernel's own file systems.
pub fn file_systems() -> Result<(), String> {
    for (kind, target, needed) in KERNEL_FILE_SYSTEMS {
        let _ = fs::create_dir_all(target);
        match mount(kind, target, kind, "") {
            Ok(()) => {}
            // The kernel may have mounted it already.
            Err(error) if error.raw_os_error() == Some(libc::EBUSY) => {}
            Err(error) if needed => return Err(format!("mounting {target}: {error}")),
            Err(error) => line(format_args!("@lacks {kind} ({error})")),
        }
    }
    Ok(())
}

/// Loads the modules and removes their files, which would only use memory.
pub fn modules(config: &GuestConfig) -> Result<(), String> {
    for path in &config.modules {
        let name = path.display();
        let file = File::open(path).map_err(|error| format!("{name}: {error}"))?;
        load_module(&file).map_err(|error| format!("module {name}: {error}"))?;
        let _ = fs::remove_file(path);
    }
    Ok(())
}

/// The block device with this serial number.
pub fn device(serial: &str) -> Option<String> {
    let entries = fs::read_dir("/sys/block").ok()?;
    for entry in entries.flatten() {
        let found = fs::read_to_string(entry.path().join("serial")).unwrap_or_default();
        if found.trim_end() == serial {
            return entry.file_name().into_string().ok();
        }
    }
    None
}

fn set_queue(device: &str, file: &str, value: &str) -> io::Result<()> {
    fs::write(format!("/sys/block/{device}/queue/{file}"), value)
}

/// Mounts the disks and enables swap.
pub fn disks(setup: &Setup) -> Result<(), String> {
    let wanted = |serial: &str| device(serial).ok_or_else(|| format!("no disk `{serial}`"));
    let rotational = |disk: usize| if setup.machine.disks[disk].rotational { "1" } else { "0" };
    for (disk, model) in setup.machine.disks.iter().enumerate() {
        if !setup.files.iter().any(|file| file.disk == disk) && disk != 0 {
            continue;
        }
        let device = wanted(&format!("disk{disk}"))?;
        let failed = |error: io::Error| format!("disk `{}`: {error}", model.name);
        set_queue(&device, "rotational", rotational(disk)).map_err(failed)?;
        let target = disk_path(disk);
        fs::create_dir_all(&target).map_err(failed)?;
        let target = target.to_string_lossy();
        let device = format!("/dev/{device}");
        mount(&device, &target, "ext4", EXT4_OPTIONS[0])
            .or_else(|_| mount(&device, &target, "ext4", EXT4_OPTIONS[1]))
            .map_err(failed)?;
    }
    for file in 0..setup.files.len() {
        let path = file_path(setup, file);
        fs::metadata(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    }
    // The kernel gives areas falling priorities below 0, in the order of these calls.
    let priorities = setup.machine.swap_priorities();
    let mut areas: Vec<usize> = (0..priorities.len()).collect();
    areas.sort_by_key(|&at| std::cmp::Reverse(priorities[at]));
    if let Some(zswap) = &setup.machine.zswap {
        enable_zswap(zswap).map_err(|problem| format!("zswap: {problem}"))?;
    }
    let mut nr_zrams = 0;
    for at in areas {
        let area = &setup.machine.swap[at];
        let priority = u16::try_from(priorities[at]).ok();
        if let Some(zram) = &area.zram {
            swap_to_zram(area, zram, priority, nr_zrams)?;
            nr_zrams += 1;
            continue;
        }
        let device = wanted(&swap_serial(at))?;
        let failed = |error: io::Error| format!("swap: {error}");
        set_queue(&device, "rotational", rotational(area.disk)).map_err(failed)?;
        swap_on(&format!("/dev/{device}"), priority).map_err(failed)?;
    }
    Ok(())
}

/// Resets the files of a live machine to their initial size and drops their cached pages.
pub fn files(setup: &Setup) -> Result<(), String> {
    for (file, model) in setup.files.iter().enumerate() {
        let path = file_path(setup, file);
        let begin = || {
            let file = OpenOptions::new().write(true).open(&path)?;
            file.set_len(model.size)?;
            file.sync_all()?;
            drop_cached_pages(&file)
        };
        begin().map_err(|error| format!("{}: {error}", path.display()))?;
    }
    Ok(())
}

/// Paths of a knob outside /proc/sys.
fn special_knob(name: &str) -> Option<Vec<PathBuf>> {
    match name {
        "vm.fault_around_bytes" => Some(vec!["/sys/kernel/debug/fault_around_bytes".into()]),
        "block.read_ahead_kb" => {
            let entries = fs::read_dir("/sys/block").ok()?;
            let queues = entries.flatten().map(|entry| entry.path().join("queue/read_ahead_kb"));
            Some(queues.collect())
        }
        _ if name.starts_with("transparent_hugepage.") || name.starts_with("lru_gen.") => {
            Some(vec![Path::new("/sys/kernel/mm").join(name.replace('.', "/"))])
        }
        _ => {
            let (cache, file) = cache_and_file(name)?;
            Some(vec![Path::new("/sys/kernel/slab").join(cache).join(file)])
        }
    }
}

/// Default path of a knob.
fn sysctl(name: &str) -> PathBuf {
    Path::new("/proc/sys").join(name.replace('.', "/"))
}

/// Writes `text` to the knob `name`, at its path in this kernel.
/// [`io::ErrorKind::NotFound`] if there is no such knob.
pub fn write_knob(name: &str, text: &str) -> io::Result<()> {
    let paths = special_knob(name).unwrap_or_else(|| vec![sysctl(name)]);
    paths.iter().try_for_each(|path| write_existing(path, text))
}

/// Writes the scenario's knobs, and those that configure the kernel as simulated: the two lists
/// unless the scenario has generations, and huge pages only where it requests them.
pub fn sysctls(setup: &Setup) {
    // Large anonymous regions are mapped, but never touched completely.
    let _ = fs::write("/proc/sys/vm/overcommit_memory", "1");
    select_lru(setup);
    policies(setup);
    let refused =
        write_with_retries(&setup.sysctls, |write| write_knob(&write.name(), &write.to_string()));
    for (write, error) in refused {
        let name = write.name();
        match error.kind() {
            io::ErrorKind::NotFound => line(format_args!("@lacks {name}")),
            _ => line(format_args!("@refuses {name} = {write}: {error}")),
        }
    }
}

/// Selects the two lists or generations. A kernel without generations has the two lists.
fn select_lru(setup: &Setup) {
    let wants_generations = setup.policies.of() == Some(LruPolicy::Mglru);
    match write_knob("lru_gen.enabled", if wants_generations { "7" } else { "0" }) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound && !wants_generations => {}
        Err(error) => line(format_args!("@refuses policy lru: {error}")),
    }
}

/// Reports which switches exist, and selects the scenario's policies by them. The runner reports
/// policies without a switch.
fn policies(setup: &Setup) {
    for file in of_patches().filter(|file| sysctl(file).exists()) {
        line(format_args!("@switch {file}"));
    }
    for NeededSwitch { choice, switch, text } in needed(setup) {
        let Some(text) = text else { continue };
        let policy = switch.policy;
        match write_knob(switch.files[0], text) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound && !switch.always => {}
            // A kernel without huge pages has the default of a scenario that does not ask for them.
            Err(_) if setup.policies.get(policy).is_none() && switch.always => {}
            Err(error) => {
                line(format_args!("@refuses policy {} = {choice}: {error}", policy.name()))
            }
        }
    }
}

/// Performs writes in order and returns the rejected ones. A write may be invalid only until a
/// later one: the machine's watermarks must be in order after every write. So the watermarks are
/// written at the position of the last of them, as in the simulator, and invalid writes are retried
/// after each successful one.
fn write_with_retries(
    writes: &[ControlWrite],
    mut make: impl FnMut(&ControlWrite) -> io::Result<()>,
) -> Vec<(&ControlWrite, io::Error)> {
    let is_mark = |write: &ControlWrite| {
        matches!(
            write,
            ControlWrite::Sysctl(
                Sysctl::WmarkMinKbytes | Sysctl::WmarkLowKbytes | Sysctl::WmarkHighKbytes,
                _
            )
        )
    };
    let last = writes.iter().rposition(is_mark);
    let mut order: Vec<&ControlWrite> = Vec::new();
    for (at, write) in writes.iter().enumerate() {
        if last == Some(at) {
            order.extend(writes.iter().filter(|write| is_mark(write)));
        } else if !is_mark(write) {
            order.push(write);
        }
    }
    let mut refused = Vec::new();
    let mut invalid: Vec<(&ControlWrite, io::Error)> = Vec::new();
    for write in order {
        match make(write) {
            Ok(()) => {
                while let Some(at) = invalid.iter().position(|(write, _)| make(write).is_ok()) {
                    invalid.remove(at);
                }
            }
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {
                invalid.push((write, error));
            }
            Err(error) => refused.push((write, error)),
        }
    }
    refused.extend(invalid);
    refused
}

/// Allocates and locks memory until only as much is free as a scenario with exact zones says. In
/// the simulator this memory belongs to the kernel.
pub fn lock_excess_memory(setup: &Setup) -> Option<MemoryMapping> {
    let zones = || setup.machine.nodes.iter().flat_map(|node| &node.zones);
    zones().next()?;
    let wanted: u64 = zones().map(|zone| zone.free).sum();
    let text = fs::read_to_string("/proc/vmstat").ok()?;
    let free = text.lines().find_map(|line| line.strip_prefix("nr_free_pages "))?;
    let surplus = free.trim().parse::<u64>().ok()?.checked_sub(wanted)?;
    if surplus == 0 {
        return None;
    }
    match MemoryMapping::locked(surplus) {
        Ok(mapping) => Some(mapping),
        Err(error) => {
            let kib = surplus * PAGE_SIZE / 1024;
            line(format_args!("@note {kib} kB should be allocated at the start: {error}"));
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pagetide_core::units::page_size::PageSize;
    use std::cell::RefCell;

    fn writes(list: &[(&str, u64)]) -> Vec<ControlWrite> {
        let write = |&(name, value): &(&str, u64)| {
            ControlWrite::read(name, &value.to_string(), PageSize::default()).unwrap()
        };
        list.iter().map(write).collect()
    }

    /// The effective values after a list of writes, on a machine with watermarks 1000, 1250 and
    /// 1500, and the rejected writes.
    fn after(list: &[(&str, u64)]) -> ([u64; 3], Vec<String>) {
        let marks = RefCell::new([1000, 1250, 1500]);
        let writes = writes(list);
        let refused = write_with_retries(&writes, |write| {
            let value: u64 = write.to_string().parse().unwrap();
            let mut new = *marks.borrow();
            match &*write.name() {
                "vm.wmark_min_kbytes" => new[0] = value,
                "vm.wmark_low_kbytes" => new[1] = value,
                "vm.wmark_high_kbytes" => new[2] = value,
                "vm.min_free_kbytes" => new = [value, value + value / 4, value + value / 2],
                _ => return Err(io::ErrorKind::NotFound.into()),
            }
            if !new.is_sorted() {
                return Err(io::Error::from_raw_os_error(libc::EINVAL));
            }
            marks.replace(new);
            Ok(())
        });
        let refused = refused.iter().map(|(write, _)| write.name().into_owned()).collect();
        (marks.into_inner(), refused)
    }

    const MIN: &str = "vm.wmark_min_kbytes";
    const LOW: &str = "vm.wmark_low_kbytes";
    const HIGH: &str = "vm.wmark_high_kbytes";
    const RESERVE: &str = "vm.min_free_kbytes";

    #[test]
    fn marks_in_order_are_accepted_in_any_order() {
        for new in [[4000, 5000, 6000], [100, 200, 300], [1100, 1240, 9000], [900, 8000, 9000]] {
            for [a, b, c] in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
                let marks = [(MIN, new[0]), (LOW, new[1]), (HIGH, new[2])];
                assert_eq!(after(&[marks[a], marks[b], marks[c]]), (new, vec![]));
            }
        }
    }

    #[test]
    fn marks_are_written_where_the_last_of_them_stands() {
        let new = ([2000, 4000, 9000], vec![]);
        assert_eq!(after(&[(LOW, 4000), (RESERVE, 2000), (HIGH, 9000)]), new);
        assert_eq!(after(&[(RESERVE, 2000), (HIGH, 9000), (LOW, 4000)]), new);
        // Writing the reserve recomputes the watermarks.
        let derived = ([2000, 2500, 3000], vec![]);
        assert_eq!(after(&[(LOW, 4000), (HIGH, 9000), (RESERVE, 2000)]), derived);
    }

    #[test]
    fn what_never_is_valid_is_said_and_the_rest_is_made() {
        let said = |name: &str| vec![name.to_owned()];
        assert_eq!(after(&[(LOW, 9000), (MIN, 100)]), ([100, 1250, 1500], said(LOW)));
        let swappiness = "vm.swappiness";
        assert_eq!(after(&[(swappiness, 1), (MIN, 100)]), ([100, 1250, 1500], said(swappiness)));
    }
}
