//! Why a system cannot become a scenario.
//!
//! Little is fatal: a file that is missing or strange is a note. Invariant: each error has a
//! hint that says what to do.

use std::io;
use std::path::PathBuf;

/// Why there is no scenario.
#[derive(Debug, thiserror::Error)]
pub enum HostError {
    /// The root directory cannot be looked at.
    #[error("cannot read {}: {source}", path.display())]
    Root {
        /// The directory.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// No file says what memory there is.
    #[error("neither {0} nor its meminfo says what memory the machine has")]
    NoMemory(String),
    /// More memory than a scenario can have.
    #[error("the machine has {has}, and a scenario at most {limit}")]
    TooLarge {
        /// The machine's memory, for people.
        has: String,
        /// The limit, for people.
        limit: String,
    },
    /// The scenario was refused by its own loader: a defect of this program.
    #[error("the scenario that was made has mistakes:\n{0}")]
    Refused(String),
}

impl HostError {
    /// What the user can do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            HostError::Root { .. } | HostError::NoMemory(_) => {
                "DIR must be laid out like `/`: DIR/proc/zoneinfo, DIR/sys/fs/cgroup"
            }
            HostError::TooLarge { .. } => "describe a part of it, for example one node",
            HostError::Refused(_) => {
                "please report this, with /proc/zoneinfo and the options of the command"
            }
        }
    }
}
