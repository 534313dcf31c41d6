//! Counters of the kernel: exact /proc/vmstat, /proc/buddyinfo, and tracepoints without a counter.
//!
//! Linux: writing to /proc/sys/vm/stat_refresh folds the per-CPU differences into the counters.

use crate::compressed;
use crate::sys::perf::TracepointCounter;
use pagetide_scenario::model::Setup;
use std::cell::{Cell, RefCell};
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::ops::RangeInclusive;
use std::os::unix::fs::FileExt;

/// Tracepoints that are counted in addition, by their names in Linux.
const TRACEPOINTS: [(&str, &str); 3] = [
    ("vmscan", "mm_vmscan_kswapd_wake"),
    ("vmscan", "mm_vmscan_direct_reclaim_begin"),
    ("kmem", "mm_page_alloc_extfrag"),
];

/// Open files and counters, inherited by all processes of the guest.
#[derive(Debug)]
pub struct GuestCounters {
    refresh: Option<File>,
    vmstat: File,
    buddyinfo: File,
    slabinfo: Option<File>,
    /// /proc/pressure/memory, if the kernel accounts for pressure.
    pressure: Option<File>,
    /// /proc/PID/schedstat of each kswapd.
    kswapds: Vec<File>,
    /// /proc/PID/schedstat of the workers that are not bound to a CPU, if they are of interest. The
    /// kernel creates more of them on demand.
    workers: Option<RefCell<Vec<File>>>,
    /// The last process id that was checked.
    newest: Cell<u32>,
    tracepoints: Vec<(&'static str, Vec<TracepointCounter>)>,
    /// Name in the report and path of each file of compressed swap.
    compressed: Vec<(String, String)>,
    /// Tracepoints that this kernel does not offer.
    pub missing: Vec<&'static str>,
}

impl GuestCounters {
    /// Opens all files that describe the setup; /proc/slabinfo only if it has names or pipes.
    pub fn open(setup: &Setup) -> io::Result<GuestCounters> {
        let (cpus, with_slabs) = (setup.machine.cpus, setup.has_objects());
        let mut tracepoints = Vec::new();
        let mut missing = Vec::new();
        for (system, name) in TRACEPOINTS {
            match open_tracepoint(system, name, cpus) {
                Ok(counters) => tracepoints.push((name, counters)),
                Err(_) => missing.push(name),
            }
        }
        let refresh = OpenOptions::new().write(true).open("/proc/sys/vm/stat_refresh").ok();
        if refresh.is_none() {
            missing.push("exact counters (no /proc/sys/vm/stat_refresh)");
        }
        let vmstat = File::open("/proc/vmstat")?;
        let buddyinfo = File::open("/proc/buddyinfo")?;
        let slabinfo = File::open("/proc/slabinfo").ok().filter(|_| with_slabs);
        match &slabinfo {
            None if with_slabs => missing.push("caches of objects (no /proc/slabinfo)"),
            None => {}
            // The kernel charges the buffer of such a file to the group of its first reader, so
            // read it now.
            Some(file) => drop(file.read_at(&mut [0; 64], 0)),
        }
        let pressure = File::open("/proc/pressure/memory").ok();
        // Pressure accounting may be disabled at boot; then a read fails.
        let pressure = pressure.filter(|file| file.read_at(&mut [0; 64], 0).is_ok());
        let newest = newest();
        let kswapds = threads("kswapd", 1..=newest);
        if kswapds.is_empty() {
            missing.push("kswapd's CPU time (no /proc/PID/schedstat of it)");
        }
        Ok(GuestCounters {
            refresh,
            vmstat,
            buddyinfo,
            slabinfo,
            pressure,
            kswapds,
            workers: Some(RefCell::new(threads("kworker/u", 1..=newest))),
            newest: Cell::new(newest),
            tracepoints,
            compressed: compressed::counters(setup),
            missing,
        })
    }

    /// Opens only what every process may read, for a live machine. Nothing is written there, and no
    /// counter of the whole machine describes a single program.
    pub fn of_live() -> io::Result<GuestCounters> {
        Ok(GuestCounters {
            refresh: None,
            vmstat: File::open("/proc/vmstat")?,
            buddyinfo: File::open("/proc/buddyinfo")?,
            slabinfo: None,
            pressure: None,
            kswapds: Vec::new(),
            workers: None,
            newest: Cell::new(0),
            tracepoints: Vec::new(),
            compressed: Vec::new(),
            missing: Vec::new(),
        })
    }

    /// Makes the counters exact. This causes a few counted events itself.
    pub fn refresh(&self) {
        if let Some(mut refresh) = self.refresh.as_ref() {
            // The write fails if a counter is negative, which the kernel logs. It folds the
            // counters nevertheless.
            let _ = refresh.write(b"1");
        }
    }

    /// Reads /proc/vmstat into `buffer`.
    pub fn vmstat<'a>(&self, buffer: &'a mut [u8]) -> io::Result<&'a [u8]> {
        read_all(&self.vmstat, buffer)
    }

    /// Reads /proc/buddyinfo into `buffer`.
    pub fn buddyinfo<'a>(&self, buffer: &'a mut [u8]) -> io::Result<&'a [u8]> {
        read_all(&self.buddyinfo, buffer)
    }

    /// Reads /proc/slabinfo into `buffer`, if it was requested and exists.
    pub fn slabinfo<'a>(&self, buffer: &'a mut [u8]) -> Option<io::Result<&'a [u8]>> {
        self.slabinfo.as_ref().map(|file| read_all(file, buffer))
    }

    /// Reads /proc/pressure/memory into `buffer`, if the kernel accounts for pressure.
    pub fn pressure<'a>(&self, buffer: &'a mut [u8]) -> Option<io::Result<&'a [u8]>> {
        self.pressure.as_ref().map(|file| read_all(file, buffer))
    }

    /// Reads each file of compressed swap into `buffer`, and sends it with its name.
    pub fn compressed(&self, buffer: &mut [u8], mut send: impl FnMut(&str, &[u8])) {
        for (name, path) in &self.compressed {
            let read = File::open(path).and_then(|mut file| file.read(buffer));
            if let Ok(len) = read {
                send(name, &buffer[..len]);
            }
        }
    }

    /// CPU time of all kswapds so far, in nanoseconds, without the time slice in progress.
    pub fn kswapd_ns(&self) -> u64 {
        self.kswapds.iter().filter_map(run_ns).sum()
    }

    /// The same for the workers.
    pub fn writeback_ns(&self) -> u64 {
        let Some(workers) = &self.workers else { return 0 };
        let (seen, newest) = (self.newest.get(), newest());
        let mut workers = workers.borrow_mut();
        workers.extend(threads("kworker/u", seen + 1..=newest));
        self.newest.set(newest.max(seen));
        workers.iter().filter_map(run_ns).sum()
    }

    /// Events of each tracepoint so far.
    pub fn tracepoints(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        self.tracepoints
            .iter()
            .map(|(name, counters)| (*name, counters.iter().map(TracepointCounter::read).sum()))
    }
}

/// Reads `file` from its start into `buffer`, up to the size of the buffer.
pub fn read_all<'a>(file: &File, buffer: &'a mut [u8]) -> io::Result<&'a [u8]> {
    let mut len = 0;
    while len < buffer.len() {
        match file.read_at(&mut buffer[len..], len as u64)? {
            0 => break,
            read => len += read,
        }
    }
    Ok(&buffer[..len])
}

/// CPU time of a thread. Linux: the first number of /proc/PID/schedstat, in nanoseconds.
fn run_ns(schedstat: &File) -> Option<u64> {
    let mut buffer = [0; 64];
    let text = std::str::from_utf8(read_all(schedstat, &mut buffer).ok()?).ok()?;
    text.split(' ').next()?.parse().ok()
}

/// The newest process id. Linux: the last number of /proc/loadavg.
fn newest() -> u32 {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split_whitespace().last().and_then(|pid| pid.parse().ok()).unwrap_or(0)
}

/// /proc/PID/schedstat of kernel threads with this name among these processes.
fn threads(name: &str, pids: RangeInclusive<u32>) -> Vec<File> {
    let has_name = |pid: &u32| {
        std::fs::read_to_string(format!("/proc/{pid}/comm"))
            .is_ok_and(|comm| comm.starts_with(name))
    };
    let found = pids.filter(has_name);
    found.filter_map(|pid| File::open(format!("/proc/{pid}/schedstat")).ok()).collect()
}

fn open_tracepoint(system: &str, name: &str, cpus: u16) -> io::Result<Vec<TracepointCounter>> {
    let path = format!("/sys/kernel/tracing/events/{system}/{name}/id");
    let id = std::fs::read_to_string(path)?;
    let id = id.trim().parse().map_err(|_| io::Error::from(io::ErrorKind::InvalidData))?;
    (0..i32::from(cpus)).map(|cpu| TracepointCounter::open(id, cpu)).collect()
}
