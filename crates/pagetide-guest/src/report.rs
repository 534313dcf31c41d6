//! The report: lines and named texts, sent through the console port.
//!
//! A line begins with `@` and a word. `@text NAME LENGTH` is followed by that many bytes and a
//! line end. `crates/pagetide-linux/src/console.rs` parses it; the first line, `@pagetide 1`,
//! has the version of the format. Texts in a snapshot are `vmstat`, `buddyinfo`, `pressure` if
//! the kernel has it, `slabinfo` if the setup has names or pipes, and `group NUMBER FILE` for a
//! group of the setup. With compressed swap there are `zram NUMBER FILE` and `zswap FILE`. After
//! the run come `latencies DISK read` and `write` (`disk_probe`).
//!
//! | line | meaning |
//! |---|---|
//! | `@pagetide 1` | the guest has started |
//! | `@doing WHAT` | a step of the preparation, for messages when it fails |
//! | `@lacks WHAT` | this kernel lacks something that the scenario needs |
//! | `@refuses WHAT` | the kernel rejected this value and uses its default |
//! | `@switch FILE` | the kernel has a control file of a patch that selects a policy |
//! | `@note WHAT` | a note for the reader |
//! | `@fail WHAT` | the guest gives up |
//! | `@ready` | prepared; runs begin here |
//! | `@snap KIND TASK PHASE NS` | start of a snapshot of this time |
//! | `@trace NAME COUNT` | events of a tracepoint so far |
//! | `@usage USER_US SYSTEM_US MINOR MAJOR BYTES` | of the task so far |
//! | `@cpu BEFORE AFTER KSWAPD WRITEBACK NOW` | CPU ns of task, task after the report, kswapd, writeback; time |
//! | `@program TASK PHASE NS OPS` | after the run: time to generate a phase's operations |
//! | `@blocks ASKED GOT` | blocks of kernel memory that the task requested and got so far |
//! | `@resident WHAT PAGES` | pages of a region in memory |
//! | `@errno NUMBER` | result of the phase's madvise(), 0 for success |
//! | `@served REQUESTS LATE DROPPED SUM P50 P90 P99 P999 MAX` | of a service: counts, and latencies in ns |
//! | `@snapped` | the end of a snapshot |
//! | `@ended TASK HOW` | a task ended: `exit CODE` or `signal NUMBER` |
//! | `@done` | the run is finished |

use crate::counters::{read_all, GuestCounters};
use crate::groups::GuestGroups;
use crate::shared::SharedWords;
use crate::sys::memory::MemoryMapping;
use crate::sys::{port, process};
use std::fmt::{self, Write};
use std::fs::File;
use std::io;

/// Pages of the buffer for the kernel's texts.
const BUFFER_PAGES: u64 = 16;

/// Sends reports; one for each process.
pub struct Reporter<'a> {
    shared: SharedWords,
    counters: &'a GuestCounters,
    groups: &'a GuestGroups<'a>,
    buffer: MemoryMapping,
}

/// Formats a line into a fixed buffer, without allocation.
struct LineBuffer {
    bytes: [u8; 512],
    len: usize,
}

impl Write for LineBuffer {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let left = self.bytes.len() - 1 - self.len;
        let text = &text.as_bytes()[..text.len().min(left)];
        self.bytes[self.len..self.len + text.len()].copy_from_slice(text);
        self.len += text.len();
        Ok(())
    }
}

/// Sends one line; line ends within become spaces. While tasks run, use [`line_between`].
pub fn line(arguments: fmt::Arguments<'_>) {
    let mut line = LineBuffer { bytes: [0; 512], len: 0 };
    // Writing to `Line` cannot fail: it truncates.
    let _ = line.write_fmt(arguments);
    for byte in &mut line.bytes[..line.len] {
        if *byte == b'\n' {
            *byte = b' ';
        }
    }
    line.bytes[line.len] = b'\n';
    port::write(&line.bytes[..=line.len]);
}

/// Sends one line, not within another process's report.
pub fn line_between(shared: SharedWords, arguments: fmt::Arguments<'_>) {
    let _console = shared.lock_console();
    line(arguments);
}

fn text(name: fmt::Arguments<'_>, bytes: &[u8]) {
    line(format_args!("@text {name} {}", bytes.len()));
    port::write(bytes);
    port::write(b"\n");
}

/// Sends a text that is not a file, under a name without a slash.
pub fn text_of(name: &str, bytes: &[u8]) {
    text(format_args!("{name}"), bytes);
}

/// The occasion of a snapshot.
#[derive(Clone, Copy, Debug)]
pub struct SnapshotPoint<'a> {
    /// `run-begin`, `task-end` and so on.
    pub kind: &'a str,
    /// The task, or 0.
    pub task: usize,
    /// Number of the phase in the task, or 0.
    pub phase: u32,
}

impl<'a> Reporter<'a> {
    pub fn new(
        shared: SharedWords,
        counters: &'a GuestCounters,
        groups: &'a GuestGroups<'a>,
    ) -> io::Result<Reporter<'a>> {
        Ok(Reporter { shared, counters, groups, buffer: MemoryMapping::locked(BUFFER_PAGES)? })
    }

    /// Sends the current counters. `more` adds lines.
    pub fn snapshot(&mut self, moment: SnapshotPoint<'_>, more: impl FnOnce(&mut [u8])) {
        let SnapshotPoint { kind, task, phase } = moment;
        let _console = self.shared.lock_console();
        self.counters.refresh();
        line(format_args!("@snap {kind} {task} {phase} {}", process::now_ns()));
        let before = process::cpu_ns();
        let (kswapd, writeback) = (self.counters.kswapd_ns(), self.counters.writeback_ns());
        if let Ok(vmstat) = self.counters.vmstat(self.buffer.bytes()) {
            text(format_args!("vmstat"), vmstat);
        }
        if let Ok(blocks) = self.counters.buddyinfo(self.buffer.bytes()) {
            text(format_args!("buddyinfo"), blocks);
        }
        self.counters.compressed(self.buffer.bytes(), |name, bytes| {
            text(format_args!("{name}"), bytes);
        });
        for (name, count) in self.counters.tracepoints() {
            line(format_args!("@trace {name} {count}"));
        }
        if let Some(Ok(pressure)) = self.counters.pressure(self.buffer.bytes()) {
            text(format_args!("pressure"), pressure);
        }
        // Snapshots of a task's whole life do not include groups and caches.
        if !kind.starts_with("task-") {
            if let Some(Ok(caches)) = self.counters.slabinfo(self.buffer.bytes()) {
                text(format_args!("slabinfo"), caches);
            }
        }
        if kind.starts_with("phase-") || kind.starts_with("run-") {
            self.groups.read(self.buffer.bytes(), |group, file, bytes| {
                text(format_args!("group {group} {file}"), bytes);
            });
        }
        more(self.buffer.bytes());
        let (after, now) = (process::cpu_ns(), process::now_ns());
        line(format_args!("@cpu {before} {after} {kswapd} {writeback} {now}"));
        line(format_args!("@snapped"));
    }

    /// Sends a file of the kernel, named by its path.
    pub fn file(&mut self, path: &str) {
        let Ok(file) = File::open(path) else { return };
        if let Ok(bytes) = read_all(&file, self.buffer.bytes()) {
            text(format_args!("{path}"), bytes);
        }
    }
}
