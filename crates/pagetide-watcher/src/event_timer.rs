//! When a timer of sd-event fires.
//!
//! systemd 254: `sleep_between` and `event_source_time_prioq_reshuffle` (src/libsystemd/sd-event).
//! A timer with the default accuracy may fire up to 250 ms late. sd-event uses that to fire timers
//! of all services together: at the last whole minute, 10 s, second or quarter of a second in the
//! interval, shifted by a constant of the boot.

use crate::{MS, SECOND};

/// Accuracy of a timer that asks for none (`DEFAULT_ACCURACY_USEC`).
const ACCURACY: u64 = 250 * MS;
/// Grids, the coarsest first.
const GRIDS: [u64; 4] = [60 * SECOND, 10 * SECOND, SECOND, 250 * MS];

/// Time at which a timer for `due_ns` fires, if nothing else wakes the service. `perturb_ns`: the
/// shift of the grids, below a minute; the hash of the boot id in systemd.
pub fn fires_at(due_ns: u64, perturb_ns: u64) -> u64 {
    let latest = due_ns.saturating_add(ACCURACY);
    for grid in GRIDS {
        let shift = perturb_ns % grid;
        let mut at = latest / grid * grid + shift;
        if at >= latest {
            match at.checked_sub(grid) {
                Some(before) => at = before,
                None => return latest,
            }
        }
        if at >= due_ns {
            return at;
        }
    }
    latest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timer_of_150_ms_fires_every_quarter_of_a_second() {
        for perturb in [0, 77 * MS, 59_999 * MS] {
            let mut at = fires_at(SECOND * 100 + 1, perturb);
            for _ in 0..20 {
                let next = fires_at(at + 150 * MS, perturb);
                assert_eq!(next - at, 250 * MS);
                at = next;
            }
            let second = fires_at(at + SECOND, perturb);
            assert!(second - at >= SECOND && second - at <= SECOND + ACCURACY);
            assert_eq!(fires_at(second + SECOND, perturb), second + SECOND);
        }
    }
}
