//! Compressed swap: sets up zram devices and zswap as the scenario says, and opens their counters.
//!
//! Linux: /sys/block/zram*, /sys/class/zram-control (drivers/block/zram),
//! /sys/module/zswap/parameters, /sys/kernel/debug/zswap (mm/zswap.c).

use crate::sys::mount::swap_on;
use pagetide_core::swap::zswap::ZswapOptions;
use pagetide_scenario::model::{Setup, Swap, ZramSetup};
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

const PAGE_SIZE: u64 = 4096;
const ZSWAP: &str = "/sys/module/zswap/parameters";
const ZSWAP_COUNTERS: &str = "/sys/kernel/debug/zswap";
/// The files of a zram device that are reported.
const ZRAM_FILES: [&str; 2] = ["mm_stat", "io_stat"];
/// The pool of the simulator.
const ZPOOL: &str = "zsmalloc";

/// Writes a value to a file of the kernel. The error names both.
fn set(path: &str, value: &str) -> Result<(), String> {
    fs::write(path, value).map_err(|error| format!("`{value}` to {path}: {error}"))
}

/// Number of the zram device for the next area; the module comes with device 0.
fn add_device(nr_areas: usize) -> io::Result<usize> {
    if nr_areas == 0 {
        return Ok(0);
    }
    let text = fs::read_to_string("/sys/class/zram-control/hot_add")?;
    text.trim().parse().map_err(|_| io::ErrorKind::InvalidData.into())
}

/// The first page of a swap area: mkswap(8), version 1.
fn header(last_page: u32) -> Vec<u8> {
    let mut header = vec![0; PAGE_SIZE as usize];
    header[1024..1028].copy_from_slice(&1u32.to_le_bytes());
    header[1028..1032].copy_from_slice(&last_page.to_le_bytes());
    header[PAGE_SIZE as usize - 10..].copy_from_slice(b"SWAPSPACE2");
    header
}

/// Makes a zram device of the area, and swaps to it. `nr_areas`: devices so far.
pub fn swap_to_zram(
    area: &Swap,
    zram: &ZramSetup,
    priority: Option<u16>,
    nr_areas: usize,
) -> Result<(), String> {
    let number = add_device(nr_areas)
        .map_err(|error| format!("the kernel makes no zram device {nr_areas}: {error}"))?;
    let file = |name: &str| format!("/sys/block/zram{number}/{name}");
    let algorithm = zram.algorithm.name();
    if set(&file("comp_algorithm"), algorithm).is_err() {
        let known = fs::read_to_string(file("comp_algorithm")).unwrap_or_default();
        let known = known.trim();
        return Err(format!("zram of this kernel has no algorithm `{algorithm}`, but: {known}"));
    }
    let slots = area.size / PAGE_SIZE;
    set(&file("disksize"), &((slots + 1) * PAGE_SIZE).to_string())?;
    if let Some(limit) = zram.mem_limit {
        set(&file("mem_limit"), &limit.to_string())?;
    }
    let device = format!("/dev/zram{number}");
    let failed = |error: io::Error| format!("{device}: {error}");
    let last_page = u32::try_from(slots).map_err(|_| format!("{device}: larger than 16 TiB"))?;
    let mut opened = OpenOptions::new().write(true).open(&device).map_err(failed)?;
    opened.write_all(&header(last_page)).and_then(|()| opened.sync_all()).map_err(failed)?;
    drop(opened);
    swap_on(&device, priority).map_err(failed)
}

/// Enables zswap, with the pool of the simulator.
pub fn enable_zswap(options: &ZswapOptions) -> Result<(), String> {
    if !Path::new(ZSWAP).exists() {
        return Err("the kernel has no zswap (CONFIG_ZSWAP), as all cloud kernels of Debian; \
             scripts/kernel.sh fetches another, and --kernel selects it"
            .to_owned());
    }
    let file = |name: &str| format!("{ZSWAP}/{name}");
    set(&file("zpool"), ZPOOL)?;
    set(&file("compressor"), options.compressor.name())?;
    set(&file("max_pool_percent"), &options.max_pool_percent.to_string())?;
    set(&file("accept_threshold_percent"), &options.accept_threshold_percent.to_string())?;
    if options.shrinker {
        set(&file("shrinker_enabled"), "Y")?;
    }
    set(&file("enabled"), "Y")
}

/// The counters of compressed swap: the name of each in a report, and its path. A file of debugfs
/// is read once after it was opened, because it has no positions.
pub fn counters(setup: &Setup) -> Vec<(String, String)> {
    let mut files = Vec::new();
    let mut add = |name: String, path: String| files.push((name, path));
    let nr_zrams = setup.machine.swap.iter().filter(|area| area.zram.is_some()).count();
    for number in 0..nr_zrams {
        for name in ZRAM_FILES {
            add(format!("zram {number} {name}"), format!("/sys/block/zram{number}/{name}"));
        }
    }
    if setup.machine.zswap.is_some() {
        for entry in fs::read_dir(ZSWAP_COUNTERS).into_iter().flatten().flatten() {
            let Ok(name) = entry.file_name().into_string() else { continue };
            add(format!("zswap {name}"), format!("{ZSWAP_COUNTERS}/{name}"));
        }
    }
    files
}
