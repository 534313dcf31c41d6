//! Measures the latencies of the disks after a run, one request at a time and past the page cache.
//!
//! /proc/diskstats has only the mean of the run's own requests. The latencies of these requests show
//! how the host spreads them. They are as large and as far apart as the run's own were on average,
//! because a host answers faster while its threads are still awake.
//!
//! Invariant: it runs after the last snapshot, when only the end of the machine follows. The writes
//! go to the ends of the disks, whose contents are no longer needed.

use crate::prepare::device;
use crate::report::text_of;
use crate::service::GuestLatencies;
use crate::sys::memory::{MemoryMapping, PAGE_SIZE};
use crate::sys::process;
use pagetide_scenario::draws::prng::SplitMix64;
use pagetide_scenario::model::{swap_serial, Setup};
use std::fmt::Write;
use std::fs::OpenOptions;
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::time::Duration;

/// Requests of each direction: enough for a few beyond the percentile 99.9.
const REQUESTS: u32 = 4000;
/// Longest time for them.
const LIMIT_NS: u64 = 4_000_000_000;
/// Longest mean pause between two of them; after it, the threads of a host sleep.
const PAUSE_NS_MAX: u64 = 2_000_000;
/// Pages of the largest request.
const REQUEST_PAGES_MAX: u64 = 32;
/// Pages to which the writes go.
const WRITTEN_PAGES: u64 = 4096;
const SECTOR: u64 = 512;

/// Measures every disk that the run used; it lasted `ran_ns`. Reports a text `latencies SERIAL read`
/// and one with `write` for each, with rows `NS COUNT`.
pub fn report(setup: &Setup, ran_ns: u64) {
    for disk in 0..setup.machine.disks.len() {
        let files = setup.files.iter().filter(|file| file.disk == disk);
        let pages = files.map(|file| file.size.div_ceil(PAGE_SIZE)).sum();
        report_disk(&format!("disk{disk}"), pages, ran_ns);
    }
    for (at, swap) in setup.machine.swap.iter().enumerate().filter(|(_, swap)| swap.zram.is_none())
    {
        report_disk(&swap_serial(at), swap.size / PAGE_SIZE, ran_ns);
    }
}

/// `pages`: pages at the beginning that have contents.
fn report_disk(serial: &str, pages: u64, ran_ns: u64) {
    let Some(device) = device(serial).filter(|_| pages > 0) else { return };
    let text = |file: &str| {
        std::fs::read_to_string(format!("/sys/block/{device}/{file}")).unwrap_or_default()
    };
    let all = text("size").trim().parse::<u64>().unwrap_or(0) * SECTOR / PAGE_SIZE;
    // Linux: Documentation/block/stat.rst.
    let stat = text("stat");
    let stat: Vec<u64> = stat.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    let [reads, _, read_sectors, _, writes, _, written_sectors, ..] = stat[..] else { return };
    let mut options = OpenOptions::new();
    options.read(true).write(true).custom_flags(libc::O_DIRECT);
    let file = options.open(format!("/dev/{device}"));
    let buffer = MemoryMapping::locked(REQUEST_PAGES_MAX);
    let (Ok(file), Ok(mut buffer)) = (file, buffer) else { return };
    let written = WRITTEN_PAGES.min(all);
    let pattern = RequestPattern::new(reads, read_sectors, ran_ns, (0, pages.min(all)));
    measure(serial, "read", &pattern, |at, bytes| {
        file.read_exact_at(&mut buffer.bytes()[..bytes], at)
    });
    let pattern = RequestPattern::new(writes, written_sectors, ran_ns, (all - written, written));
    measure(serial, "write", &pattern, |at, bytes| file.write_all_at(&buffer.bytes()[..bytes], at));
}

/// Requests like those of the run.
struct RequestPattern {
    pages: u64,
    /// Mean time from the end of one to the next.
    pause_ns: u64,
    /// First page and number of pages of the range from which they are drawn.
    range: (u64, u64),
}

impl RequestPattern {
    fn new(requests: u64, sectors: u64, ran_ns: u64, range: (u64, u64)) -> RequestPattern {
        let requests = requests.max(1);
        let pages = (sectors * SECTOR / PAGE_SIZE / requests).clamp(1, REQUEST_PAGES_MAX);
        RequestPattern { pages, pause_ns: (ran_ns / requests).min(PAUSE_NS_MAX), range }
    }
}

/// Makes requests at positions that are drawn.
fn measure(
    serial: &str,
    what: &str,
    pattern: &RequestPattern,
    mut request: impl FnMut(u64, usize) -> io::Result<()>,
) {
    let mut prng = SplitMix64::new(1);
    let mut latencies = GuestLatencies::new();
    let (first, pages) = pattern.range;
    let bytes = (pattern.pages * PAGE_SIZE) as usize;
    let began = process::now_ns();
    for _ in 0..REQUESTS {
        let at = first + prng.below((pages + 1).saturating_sub(pattern.pages).max(1));
        std::thread::sleep(Duration::from_nanos(prng.below(2 * pattern.pause_ns + 1)));
        let start = process::now_ns();
        if request(at * PAGE_SIZE, bytes).is_err() {
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
