//! A world without bytes, whose stores are done before they are asked.
//!
//! Invariant: each look at the clock moves it, so that nothing waits for ever.

use pagetide_core::effect::{Effect, Io};
use pagetide_core::executor::World;
use pagetide_core::units::{Asker, Nanos};

/// Virtual nanoseconds from one look at the clock to the next.
const TICK: Nanos = 1_000;

/// A world without bytes, whose stores are done before they are asked.
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

    fn ended(&mut self, patience: Nanos) -> Option<(Io, bool)> {
        self.now += patience.min(1_000_000);
        None
    }

    fn move_bytes(&mut self, _effect: Effect) -> bool {
        true
    }

    fn kill(&mut self, asker: Asker) {
        panic!("the machine is too small for the bench: {asker:?} is to end");
    }
}
