//! Decisions of *watchers*: programs in user space that read the kernel's counters and then kill
//! processes or start reclaim.
//!
//! Each program has one file (two for kubelet). Its type has the options and the state of the
//! program; one method takes what the program reads at one wake-up, and the time, and returns what
//! the program does and when it wakes up next. The types know no machine, so recorded histories
//! test them (`tests/suite`). A world supplies the readings and carries out the acts.
//!
//! Each file names the version of the program that it follows. All arithmetic is on integers; the
//! programs that compute with floating point decide equally, except where the file says otherwise.

#![forbid(unsafe_code)]

pub mod act;
pub mod earlyoom;
pub mod event_timer;
pub mod koordinator;
pub mod kubelet;
pub mod kubelet_rank;
pub mod lmkd;
pub mod meminfo;
pub mod memory_qos;
pub mod psi_trigger;
pub mod senpai;
pub mod systemd_oomd;

/// Nanoseconds of a millisecond and of a second.
pub const MS: u64 = 1_000_000;
pub const SECOND: u64 = 1_000 * MS;
