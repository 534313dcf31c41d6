//! Unreasonable policies: the machine must survive any answer of a plug-in.

use pagetide_core::digest::Digest;
use pagetide_core::plugin::{
    GroupPlan, GroupPolicy, GroupVisit, GroupWalk, InitialList, ListSizes, PagePolicy, PageVerdict,
    PageView, PluginChoice, Plugins, ScanBalance, ScanPressure,
};
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

impl PagePolicy for RandomPolicy {
    fn on_new(&mut self, page: &mut PageView<'_>, _: InitialList) -> InitialList {
        page.mark = self.draw() as u8;
        self.one_of(&[InitialList::Inactive, InitialList::Active])
    }

    fn on_referenced(&mut self, _: &mut PageView<'_>, _: bool) -> bool {
        self.one_of(&[false, true])
    }

    fn judge(&mut self, page: &mut PageView<'_>, _: PageVerdict) -> PageVerdict {
        page.mark = page.mark.wrapping_add(1);
        self.one_of(&[
            PageVerdict::Reclaim,
            PageVerdict::ReclaimClean,
            PageVerdict::Keep,
            PageVerdict::Activate,
        ])
    }

    fn stays_active(&mut self, _: &mut PageView<'_>, _: bool) -> bool {
        self.one_of(&[false, true])
    }

    fn inactive_is_low(&self, _: &ListSizes, _: bool) -> bool {
        self.one_of(&[false, true])
    }

    fn balance(&mut self, _: &ScanPressure<'_>, linux: ScanBalance) -> ScanBalance {
        let part = || self.one_of(&[0, 1, 100, u64::MAX]);
        let (anon, file, denominator) = (part(), part(), part());
        self.one_of(&[
            linux,
            ScanBalance::Equal,
            ScanBalance::Anon,
            ScanBalance::File,
            ScanBalance::Fract { anon, file, denominator },
        ])
    }

    fn digest(&self, digest: &mut Digest) {
        digest.write_u64(self.state());
    }
}

/// Spares all groups and pages, always.
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

impl PagePolicy for SparingPolicy {
    fn judge(&mut self, _: &mut PageView<'_>, _: PageVerdict) -> PageVerdict {
        PageVerdict::Keep
    }

    fn stays_active(&mut self, _: &mut PageView<'_>, _: bool) -> bool {
        true
    }

    fn inactive_is_low(&self, _: &ListSizes, _: bool) -> bool {
        false
    }

    fn digest(&self, _: &mut Digest) {}
}

/// No policy, one kind, the other, or both, by number; there are [`KINDS`].
#[allow(dead_code)] // each test file uses its part
pub fn chosen(kind: usize, seed: u64) -> PluginChoice {
    let plugins = Plugins::new()
        .groups("wild", RandomPolicy::new(seed))
        .pages("wild", RandomPolicy::new(seed ^ 0xabc))
        .groups("miser", SparingPolicy)
        .pages("miser", SparingPolicy);
    let (groups, pages) = [
        (Some("wild"), None),
        (None, Some("wild")),
        (Some("wild"), Some("wild")),
        (Some("miser"), Some("wild")),
        (Some("wild"), Some("miser")),
        (Some("miser"), Some("miser")),
    ][kind];
    plugins.choose(groups, pages).unwrap()
}

/// Pairs of unreasonable policies.
#[allow(dead_code)] // each test file uses its part
pub const KINDS: usize = 6;
