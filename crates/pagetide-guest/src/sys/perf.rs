//! Counts a tracepoint. Linux: perf_event_open(2) with PERF_TYPE_TRACEPOINT, for all processes of a
//! CPU. Events are only counted, not recorded, so there is no ring buffer.

use super::check;
use std::io;

const PERF_TYPE_TRACEPOINT: u32 = 2;
/// Length of the first published version of the structure, which suffices.
const ATTR_SIZE: u32 = 64;

#[repr(C)]
#[derive(Default)]
struct Attr {
    kind: u32,
    size: u32,
    config: u64,
    sample_period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup_events: u32,
    bp_type: u32,
    bp_addr: u64,
}

/// A tracepoint's counter on one CPU.
#[derive(Debug)]
pub struct TracepointCounter(i32);

impl TracepointCounter {
    /// Starts counting the tracepoint with this id on `cpu`.
    pub fn open(id: u64, cpu: i32) -> io::Result<TracepointCounter> {
        let attr =
            Attr { kind: PERF_TYPE_TRACEPOINT, size: ATTR_SIZE, config: id, ..Attr::default() };
        // SAFETY: `attr` has the kernel's layout and outlives the call.
        let fd =
            unsafe { libc::syscall(libc::SYS_perf_event_open, &raw const attr, -1, cpu, -1, 0u64) };
        check(fd).map(|fd| TracepointCounter(fd as i32))
    }

    /// Events so far.
    pub fn read(&self) -> u64 {
        let mut value = 0u64;
        // SAFETY: reads at most the eight bytes of `value`.
        unsafe {
            libc::read(self.0, (&raw mut value).cast(), 8);
        }
        value
    }
}
