//! Level of detail of a trace by the size of the file, so that it stays below 20 MB.
//!
//! Invariant: the level depends only on the bytes written, so the same run has the same detail.

/// Upper bound of a trace, in bytes.
pub const SIZE: u64 = 20_000_000;

/// From this per cent of the size on, shorter slices than these nanoseconds are merged. The rest is
/// for the counters at the end.
const STEPS: [(u64, u64); 7] = [
    (30, 1_000_000),
    (50, 10_000_000),
    (65, 100_000_000),
    (70, 1_000_000_000),
    (75, 10_000_000_000),
    (80, 100_000_000_000),
    (85, 1_000_000_000_000),
];

/// From this per cent of the size on, CPU switches are not written.
const SWITCHES_PERCENT: u64 = 60;

/// The detail at one time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceDetail {
    /// Shorter slices are merged with their neighbours; 0: all are written.
    pub least_ns: u64,
    /// Whether CPU switches are written.
    pub has_switches: bool,
}

impl TraceDetail {
    /// The detail after `written` bytes of a file that must stay below `size`.
    pub fn of(written: u64, size: u64) -> TraceDetail {
        let reaches =
            |percent: u64| u128::from(written) * 100 >= u128::from(size) * u128::from(percent);
        let step = STEPS.iter().rev().find(|(percent, _)| reaches(*percent));
        TraceDetail {
            least_ns: step.map_or(0, |&(_, least_ns)| least_ns),
            has_switches: !reaches(SWITCHES_PERCENT),
        }
    }

    /// Whether frequent instants and arrows are written.
    pub fn has_instants(self) -> bool {
        self.least_ns == 0
    }

    /// The longest merged slice.
    pub fn most_ns(self) -> u64 {
        10 * self.least_ns
    }
}
