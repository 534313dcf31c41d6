//! What goes out: lines and named texts, over the console port.
//!
//! A line begins with `@` and a word. `@text NAME LENGTH` is followed by that many bytes and a line
//! end. `crates/pagetide-linux/src/console.rs` reads this; the first line, `@pagetide 1`, has the
//! version of the format. Texts in a snapshot are `vmstat`, `buddyinfo`, `pressure` where the kernel has it,
//! `slabinfo` where the setup has names or pipes, and `group NUMBER FILE` of a group of the setup.
//!
//! | line | meaning |
//! |---|---|
//! | `@pagetide 1` | the guest lives |
//! | `@doing WHAT` | a step of the preparation, for messages when it fails |
//! | `@lacks WHAT` | the scenario asks for what this kernel does not have |
//! | `@refuses WHAT` | the kernel has it, and did not take this value; it runs with its default |
//! | `@switch FILE` | the kernel has a control file that chooses a policy and that no release has |
//! | `@note WHAT` | something the reader should know |
//! | `@fail WHAT` | the guest gives up |
//! | `@ready` | prepared; runs begin here |
//! | `@snap KIND TASK PHASE NS` | what follows until `@snapped` was read at this moment |
//! | `@trace NAME COUNT` | events of a tracepoint so far |
//! | `@usage USER_US SYSTEM_US MINOR MAJOR BYTES` | of the task so far |
//! | `@cpu BEFORE AFTER KSWAPD WRITEBACK NOW` | ns: CPU time of the task before and after reporting, of all kswapds, of the workers that write back, and the time after it |
//! | `@program TASK PHASE NS OPS` | after the run: what making the operations of a phase takes, without performing them |
//! | `@blocks ASKED GOT` | blocks of kernel memory that the task asked for so far, and got |
//! | `@resident WHAT PAGES` | pages of a region in memory |
//! | `@errno NUMBER` | what the madvise() of the phase returned, 0 for success |
//! | `@served REQUESTS LATE DROPPED SUM P50 P90 P99 P999 MAX` | of a service: counts, and latencies in ns |
//! | `@snapped` | the end of a snapshot |
//! | `@ended TASK HOW` | a task has ended: `exit CODE` or `signal NUMBER` |
//! | `@done` | the run is over |

use crate::counters::{read_all, Counters};
use crate::groups::Groups;
use crate::shared::Shared;
use crate::sys::memory::Mapping;
use crate::sys::{port, process};
use std::fmt::{self, Write};
use std::fs::File;
use std::io;

/// Pages of the buffer in which texts of the kernel are read.
const BUFFER_PAGES: u64 = 16;

/// Sends reports; one a process.
pub struct Reporter<'a> {
    shared: Shared,
    counters: &'a Counters,
    groups: &'a Groups<'a>,
    buffer: Mapping,
}

/// Formats a line into a fixed buffer, so that nothing is allocated.
struct Line {
    bytes: [u8; 512],
    len: usize,
}

impl Write for Line {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let left = self.bytes.len() - 1 - self.len;
        let text = &text.as_bytes()[..text.len().min(left)];
        self.bytes[self.len..self.len + text.len()].copy_from_slice(text);
        self.len += text.len();
        Ok(())
    }
}

/// Sends one line; line ends within become spaces. While tasks run, see [`line_between`].
pub fn line(arguments: fmt::Arguments<'_>) {
    let mut line = Line { bytes: [0; 512], len: 0 };
    // Writing to `Line` cannot fail: what is too long is cut.
    let _ = line.write_fmt(arguments);
    for byte in &mut line.bytes[..line.len] {
        if *byte == b'\n' {
            *byte = b' ';
        }
    }
    line.bytes[line.len] = b'\n';
    port::write(&line.bytes[..=line.len]);
}

/// Sends one line when nobody else is in the middle of a report.
pub fn line_between(shared: Shared, arguments: fmt::Arguments<'_>) {
    let _console = shared.lock_console();
    line(arguments);
}

fn text(name: fmt::Arguments<'_>, bytes: &[u8]) {
    line(format_args!("@text {name} {}", bytes.len()));
    port::write(bytes);
    port::write(b"\n");
}

/// Sends a text that is no file's, under a name without a slash.
pub fn text_of(name: &str, bytes: &[u8]) {
    text(format_args!("{name}"), bytes);
}

/// What a snapshot is taken of.
#[derive(Clone, Copy, Debug)]
pub struct Moment<'a> {
    /// `run-begin`, `task-end` and so on.
    pub kind: &'a str,
    /// The task, or 0.
    pub task: usize,
    /// Number of the phase in the task, or 0.
    pub phase: u32,
}

impl<'a> Reporter<'a> {
    /// A reporter of this process.
    ///
    /// # Errors
    /// When there is no memory for its buffer.
    pub fn new(
        shared: Shared,
        counters: &'a Counters,
        groups: &'a Groups<'a>,
    ) -> io::Result<Reporter<'a>> {
        Ok(Reporter { shared, counters, groups, buffer: Mapping::locked(BUFFER_PAGES)? })
    }

    /// Sends what is counted now. `more` adds lines of its own.
    pub fn snapshot(&mut self, moment: Moment<'_>, more: impl FnOnce(&mut [u8])) {
        let Moment { kind, task, phase } = moment;
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
        for (name, count) in self.counters.tracepoints() {
            line(format_args!("@trace {name} {count}"));
        }
        if let Some(Ok(pressure)) = self.counters.pressure(self.buffer.bytes()) {
            text(format_args!("pressure"), pressure);
        }
        // Of a task's whole life nothing is said of groups and caches.
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

    /// Sends a file of the kernel under its path.
    pub fn file(&mut self, path: &str) {
        let Ok(file) = File::open(path) else { return };
        if let Ok(bytes) = read_all(&file, self.buffer.bytes()) {
            text(format_args!("{path}"), bytes);
        }
    }
}
