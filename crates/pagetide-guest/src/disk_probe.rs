//! Measures the latencies of the disks after a run, one request at a time and past the page cache.
//!
//! /proc/diskstats has only the mean of the run's own requests. The latencies of these requests show
//! how the host spreads them.
//!
//! Invariant: it runs after the last snapshot, when only the end of the machine follows. The writes
//! go to the ends of the disks, whose contents are no longer needed.

use crate::prepare::device;
use crate::report::text_of;
use crate::service::GuestLatencies;
use crate::sys::memory::{MemoryMapping, PAGE_SIZE};
use crate::sys::process;
use pagetide_scenario::model::Setup;
use pagetide_scenario::prng::SplitMix64;
use std::fmt::Write;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};

/// Requests of each direction: enough for a few beyond the percentile 99.9.
const REQUESTS: u32 = 4000;
/// Longest time for them.
const LIMIT_NS: u64 = 2_000_000_000;
/// Pages to which the writes go.
const WRITTEN_PAGES: u64 = 4096;

/// Measures every disk that the run used. Reports a text `latencies SERIAL read` and one with
/// `write` for each, with rows `NS COUNT`.
pub fn report(setup: &Setup) {
    for disk in 0..setup.machine.disks.len() {
        let files = setup.files.iter().filter(|file| file.disk == disk);
        let pages = files.map(|file| file.size.div_ceil(PAGE_SIZE)).sum();
        report_disk(&format!("disk{disk}"), pages);
    }
    if let Some(swap) = &setup.machine.swap {
        report_disk("swap", swap.size / PAGE_SIZE);
    }
}

/// `pages`: pages at the beginning that have contents.
fn report_disk(serial: &str, pages: u64) {
    let Some(device) = device(serial).filter(|_| pages > 0) else { return };
    let mut options = OpenOptions::new();
    options.read(true).write(true).custom_flags(libc::O_DIRECT);
    let file = options.open(format!("/dev/{device}"));
    let (Ok(file), Ok(mut page)) = (file, MemoryMapping::locked(1)) else { return };
    let sectors = std::fs::read_to_string(format!("/sys/block/{device}/size")).unwrap_or_default();
    let all = sectors.trim().parse::<u64>().unwrap_or(0) / (PAGE_SIZE / 512);
    let written = WRITTEN_PAGES.min(all);
    let read = |file: &File, at| file.read_exact_at(page.bytes(), at);
    measure(serial, "read", &file, (0, pages.min(all)), read);
    let write = |file: &File, at| file.write_all_at(page.bytes(), at);
    measure(serial, "write", &file, (all - written, written), write);
}

/// Makes requests at pages that are drawn from a range.
fn measure(
    serial: &str,
    what: &str,
    file: &File,
    (first, pages): (u64, u64),
    mut request: impl FnMut(&File, u64) -> io::Result<()>,
) {
    let mut prng = SplitMix64::new(1);
    let mut latencies = GuestLatencies::new();
    let began = process::now_ns();
    for _ in 0..REQUESTS {
        let at = (first + prng.below(pages)) * PAGE_SIZE;
        let start = process::now_ns();
        if request(file, at).is_err() {
            return;
        }
        let end = process::now_ns();
        latencies.record(end - start, None);
        if end - began > LIMIT_NS {
            break;
        }
    }
    let mut rows = String::new();
    for (ns, count) in latencies.rows() {
        let _ = writeln!(rows, "{ns} {count}");
    }
    text_of(&format!("latencies {serial} {what}"), rows.as_bytes());
}
