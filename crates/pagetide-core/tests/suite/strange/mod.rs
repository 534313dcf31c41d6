//! Unreasonable policies: the machine must survive any answer of a plug-in.

use pagetide_core::reclaim::plugin::{
    GroupPlan, GroupPolicy, GroupVisit, GroupWalk, NamedPolicy, Plugins,
};
use pagetide_core::units::digest::Digest;
use std::cell::Cell;
use std::sync::Mutex;

/// Answers at random.
#[derive(Debug)]
pub struct RandomPolicy(Mutex<Cell<u64>>);

impl Clone for RandomPolicy {
    fn clone(&self) -> RandomPolicy {
        RandomPolicy(Mutex::new(Cell::new(self.state())))
    }
}

impl RandomPolicy {
    pub fn new(seed: u64) -> RandomPolicy {
        RandomPolicy(Mutex::new(Cell::new(seed)))
    }

    fn state(&self) -> u64 {
        self.0.lock().unwrap().get()
    }

    fn draw(&self) -> u64 {
        let state = self.0.lock().unwrap();
        let next = state.get().wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        state.set(next);
        next >> 17
    }

    fn one_of<T: Copy>(&self, all: &[T]) -> T {
        all[self.draw() as usize % all.len()]
    }
}

impl GroupPolicy for RandomPolicy {
    fn plan(&mut self, _: &GroupVisit<'_>, plan: &mut GroupPlan) {
        plan.skip = self.draw().is_multiple_of(3);
        plan.priority = self.draw() as i8;
        plan.protected = self.one_of(&[0, 1, 7, 1000, u64::MAX]);
    }

    fn another_walk(&mut self, _: &GroupWalk) -> bool {
        !self.draw().is_multiple_of(8)
    }

    fn digest(&self, digest: &mut Digest) {
        digest.write_u64(self.state());
    }
}

/// Spares all groups, always.
#[derive(Clone, Debug)]
pub struct SparingPolicy;

impl GroupPolicy for SparingPolicy {
    fn plan(&mut self, _: &GroupVisit<'_>, plan: &mut GroupPlan) {
        plan.skip = true;
    }

    fn another_walk(&mut self, _: &GroupWalk) -> bool {
        true
    }

    fn digest(&self, _: &mut Digest) {}
}

/// A policy that answers at random, or one that spares everything, by number; there are [`KINDS`].
pub fn chosen(kind: usize, seed: u64) -> Option<NamedPolicy> {
    let plugins =
        Plugins::new().groups("wild", RandomPolicy::new(seed)).groups("miser", SparingPolicy);
    plugins.choose(Some(["wild", "miser"][kind])).unwrap()
}

pub const KINDS: usize = 2;
