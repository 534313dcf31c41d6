//! Brings the machine into the state in which the scenario begins: file systems, modules, disks,
//! swap, sysctls. (Groups: `groups`.)
//!
//! What a kernel lacks is reported, never passed over in silence: the comparison then says that
//! this part of the scenario is not comparable.

use crate::config::Config;
use crate::groups::write_existing;
use crate::perform::{disk_path, file_path};
use crate::report::line;
use crate::sys::memory::{forget, Mapping, PAGE_SIZE};
use crate::sys::mount::{load_module, mount, swap_on};
use pagetide_core::config::Policy;
use pagetide_core::control::cache_and_file;
use pagetide_scenario::model::Setup;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

/// File systems of the kernel: (type, where).
const KERNEL_FILE_SYSTEMS: [(&str, &str, bool); 5] = [
    ("proc", "/proc", true),
    ("sysfs", "/sys", true),
    ("devtmpfs", "/dev", true),
    ("debugfs", "/sys/kernel/debug", false),
    ("tracefs", "/sys/kernel/tracing", false),
];

/// Mounts the kernel's own file systems.
///
/// # Errors
/// A sentence, when one that is needed is refused.
pub fn file_systems() -> Result<(), String> {
    for (kind, target, needed) in KERNEL_FILE_SYSTEMS {
        let _ = fs::create_dir_all(target);
        match mount(kind, target, kind, "") {
            Ok(()) => {}
            // The kernel may have mounted it itself.
            Err(error) if error.raw_os_error() == Some(libc::EBUSY) => {}
            Err(error) if needed => return Err(format!("mounting {target}: {error}")),
            Err(error) => line(format_args!("@lacks {kind} ({error})")),
        }
    }
    Ok(())
}

/// Loads the modules and removes their files, which would only take memory.
///
/// # Errors
/// A sentence.
pub fn modules(config: &Config) -> Result<(), String> {
    for path in &config.modules {
        let name = path.display();
        let file = File::open(path).map_err(|error| format!("{name}: {error}"))?;
        load_module(&file).map_err(|error| format!("module {name}: {error}"))?;
        let _ = fs::remove_file(path);
    }
    Ok(())
}

/// The block device with this serial number.
fn device(serial: &str) -> Option<String> {
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

/// Mounts the disks and swaps on.
///
/// # Errors
/// A sentence.
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
        mount(&format!("/dev/{device}"), &target, "ext4", "noinit_itable").map_err(failed)?;
    }
    for file in 0..setup.files.len() {
        let path = file_path(setup, file);
        fs::metadata(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    }
    if let Some(swap) = &setup.machine.swap {
        let device = wanted("swap")?;
        let failed = |error: io::Error| format!("swap: {error}");
        set_queue(&device, "rotational", rotational(swap.disk)).map_err(failed)?;
        swap_on(&format!("/dev/{device}")).map_err(failed)?;
    }
    Ok(())
}

/// Makes the files of a live machine what they are when a run begins: of their first size, and not in memory.
///
/// # Errors
/// A sentence.
pub fn files(setup: &Setup) -> Result<(), String> {
    for (file, model) in setup.files.iter().enumerate() {
        let path = file_path(setup, file);
        let begin = || {
            let file = OpenOptions::new().write(true).open(&path)?;
            file.set_len(model.size)?;
            file.sync_all()?;
            forget(&file)
        };
        begin().map_err(|error| format!("{}: {error}", path.display()))?;
    }
    Ok(())
}

/// Knobs that are not under /proc/sys.
fn special_knob(name: &str) -> Option<Vec<PathBuf>> {
    match name {
        "vm.fault_around_bytes" => Some(vec!["/sys/kernel/debug/fault_around_bytes".into()]),
        "block.read_ahead_kb" => {
            let entries = fs::read_dir("/sys/block").ok()?;
            let queues = entries.flatten().map(|entry| entry.path().join("queue/read_ahead_kb"));
            Some(queues.collect())
        }
        _ if name.starts_with("transparent_hugepage.") => {
            Some(vec![Path::new("/sys/kernel/mm").join(name.replace('.', "/"))])
        }
        _ => {
            let (cache, file) = cache_and_file(name)?;
            Some(vec![Path::new("/sys/kernel/slab").join(cache).join(file)])
        }
    }
}

/// Writes `text` to the knob called `name`, wherever this kernel has it.
///
/// # Errors
/// The kernel's; [`io::ErrorKind::NotFound`] when it has no such knob.
pub fn write_knob(name: &str, text: &str) -> io::Result<()> {
    let path = || vec![Path::new("/proc/sys").join(name.replace('.', "/"))];
    let paths = special_knob(name).unwrap_or_else(path);
    paths.iter().try_for_each(|path| write_existing(path, text))
}

/// Makes the scenario's writes to knobs, and those that make the kernel the one that the simulator
/// stands for: classic LRU lists, and huge pages only where the scenario asks for them.
pub fn sysctls(setup: &Setup) {
    // Large anonymous regions are mapped, never touched whole.
    let _ = fs::write("/proc/sys/vm/overcommit_memory", "1");
    let generations = Path::new("/sys/kernel/mm/lru_gen/enabled");
    if generations.exists() {
        let _ = fs::write(generations, "0");
    }
    let huge = Path::new("/sys/kernel/mm/transparent_hugepage");
    for (policy, file) in [(Policy::Thp, "enabled"), (Policy::ThpDefrag, "defrag")] {
        let wanted = setup.policies.get(policy);
        let name = wanted.unwrap_or(policy.default_variant()).name();
        let written = write_existing(&huge.join(file), name);
        if let (Err(error), Some(wanted)) = (written, wanted) {
            line(format_args!("@lacks policy {} = {wanted}: {error}", policy.name()));
        }
    }
    for write in &setup.sysctls {
        let (name, text) = (write.name(), write.to_string());
        match write_knob(&name, &text) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                line(format_args!("@lacks {name}"));
            }
            Err(error) => line(format_args!("@lacks {name} = {text}: {error}")),
        }
    }
}

/// Takes and locks memory until no more is free than a scenario with exact zones says, which the
/// simulator's machine has as held by the kernel.
pub fn hold(setup: &Setup) -> Option<Mapping> {
    let zones = || setup.machine.nodes.iter().flat_map(|node| &node.zones);
    zones().next()?;
    let wanted: u64 = zones().map(|zone| zone.free).sum();
    let text = fs::read_to_string("/proc/vmstat").ok()?;
    let free = text.lines().find_map(|line| line.strip_prefix("nr_free_pages "))?;
    let surplus = free.trim().parse::<u64>().ok()?.checked_sub(wanted)?;
    if surplus == 0 {
        return None;
    }
    match Mapping::locked(surplus) {
        Ok(mapping) => Some(mapping),
        Err(error) => {
            let kib = surplus * PAGE_SIZE / 1024;
            line(format_args!("@note {kib} kB should be held from the start: {error}"));
            None
        }
    }
}
