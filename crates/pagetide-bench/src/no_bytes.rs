//! A world without bytes, with I/O that ends at once.
//!
//! Invariant: each read of the clock advances it, so that no wait is endless.

use pagetide_core::interface::effect::{Effect, Io};
use pagetide_core::interface::executor::World;
use pagetide_core::units::{Nanos, Requester};

/// Virtual nanoseconds between two reads of the clock.
const TICK: Nanos = 1_000;

/// -
#[derive(Debug, Default)]
pub struct NoBytes {
    now: Nanos,
}

impl World for NoBytes {
    fn now(&mut self) -> Nanos {
        self.now += TICK;
        self.now
    }

    fn submit(&mut self, _io: Io) -> Option<bool> {
        Some(true)
    }

    fn next_completion(&mut self, patience: Nanos) -> Option<(Io, bool)> {
        self.now += patience.min(1_000_000);
        None
    }

    fn move_bytes(&mut self, _effect: Effect) -> bool {
        true
    }

    fn kill(&mut self, asker: Requester) {
        panic!("the machine is too small for the bench: {asker:?} would be killed");
    }
}
