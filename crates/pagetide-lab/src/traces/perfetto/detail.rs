//! How fine a trace is, by how large it has become: so that it stays below a size, which is 20 MB.
//!
//! Invariant: it depends on the bytes written and on nothing else, so the same run has the same detail.

/// The size that a trace stays below, in bytes.
pub const SIZE: u64 = 20_000_000;

/// Per cent of the size from which on detail is given up, and how long then a slice must be to get one of its own. The
/// rest is for the counters, which come last.
const STEPS: [(u64, u64); 7] = [
    (30, 1_000_000),
    (50, 10_000_000),
    (65, 100_000_000),
    (70, 1_000_000_000),
    (75, 10_000_000_000),
    (80, 100_000_000_000),
    (85, 1_000_000_000_000),
];

/// Per cent of the size from which on it is not written any more whom CPUs run.
const SWITCHES_PERCENT: u64 = 60;

/// The detail at one time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Detail {
    /// Shorter slices become one with their neighbours; 0: all are written.
    pub least_ns: u64,
    /// Whether it is written whom CPUs run.
    pub has_switches: bool,
}

impl Detail {
    /// With so many bytes in a file that is to stay below `size`.
    pub fn of(written: u64, size: u64) -> Detail {
        let reaches =
            |percent: u64| u128::from(written) * 100 >= u128::from(size) * u128::from(percent);
        let step = STEPS.iter().rev().find(|(percent, _)| reaches(*percent));
        Detail {
            least_ns: step.map_or(0, |&(_, least_ns)| least_ns),
            has_switches: !reaches(SWITCHES_PERCENT),
        }
    }

    /// Whether instants that are many, and arrows, are written.
    pub fn has_instants(self) -> bool {
        self.least_ns == 0
    }

    /// The longest slice that short ones become.
    pub fn most_ns(self) -> u64 {
        10 * self.least_ns
    }
}
