//! How fine a trace is, by how large it has become: so that a minute of twenty tasks stays below 20 MB.
//!
//! Invariant: it depends on the bytes written and on nothing else, so the same run has the same detail.

/// Bytes from which on detail is given up, and how long then a slice must be to get one of its own.
const STEPS: [(u64, u64); 3] =
    [(6 << 20, 1_000_000), (10 << 20, 10_000_000), (13 << 20, 100_000_000)];

/// Bytes from which on it is not written any more whom CPUs run.
pub const SWITCHES_MAX: u64 = 12 << 20;

/// The detail at one time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Detail {
    /// Shorter slices become one with their neighbours; 0: all are written.
    pub least_ns: u64,
}

impl Detail {
    /// With so many bytes in the file.
    pub fn of(written: u64) -> Detail {
        let step = STEPS.iter().rev().find(|(bytes, _)| written >= *bytes);
        Detail { least_ns: step.map_or(0, |&(_, least_ns)| least_ns) }
    }

    /// The longest slice that short ones become.
    pub fn most_ns(self) -> u64 {
        10 * self.least_ns
    }
}
