//! Errors that prevent the import of a system.
//!
//! Few problems are fatal: a missing or malformed file only causes a note. Invariant: each error
//! has a hint.

use std::io;
use std::path::PathBuf;

#[derive(Debug, thiserror::Error)]
pub enum HostError {
    /// The root directory cannot be accessed.
    #[error("cannot read {}: {source}", path.display())]
    Root {
        path: PathBuf,
        /// Error of the system.
        source: io::Error,
    },
    /// The root directory is a copy of /proc alone.
    #[error("{} has no proc/zoneinfo, but zoneinfo", .0.display())]
    ProcDirectory(PathBuf),
    /// The size of memory is unknown.
    #[error("neither {0} nor its meminfo says what memory the machine has")]
    NoMemory(String),
    /// More memory than a scenario can have.
    #[error("the machine has {has}, and a scenario at most {limit}")]
    TooLarge {
        /// The machine's memory, formatted.
        has: String,
        /// The limit, formatted.
        limit: String,
    },
    /// A log without this report.
    #[error("the log has no report {wanted} of a failed allocation or of the OOM killer: it has {found}")]
    NoReport {
        /// Number of the report, from 1.
        wanted: usize,
        /// Reports found.
        found: usize,
    },
    /// A report that cannot be used.
    #[error("line {line}: {message}")]
    BadReport {
        /// From 1.
        line: usize,
        message: String,
    },
    /// The loader rejects the generated scenario, which is a bug.
    #[error("the generated scenario has mistakes:\n{0}")]
    Refused(String),
}

impl HostError {
    /// Advice for the user.
    pub fn hint(&self) -> &'static str {
        match self {
            HostError::Root { .. } | HostError::NoMemory(_) => {
                "DIR must be laid out like `/`: DIR/proc/zoneinfo, DIR/sys/fs/cgroup"
            }
            HostError::ProcDirectory(_) => "give the directory above, whose `proc` this is",
            HostError::NoReport { .. } => {
                "a report begins with `invoked oom-killer` or `page allocation failure`"
            }
            HostError::BadReport { .. } => {
                "give all lines of the report (`dmesg`, `journalctl -k`, or /var/log/kern.log), or \
                 choose another with --report N"
            }
            HostError::TooLarge { .. } => "describe a part of it, for example one node",
            HostError::Refused(_) => {
                "please report this, with /proc/zoneinfo and the options of the command"
            }
        }
    }
}
