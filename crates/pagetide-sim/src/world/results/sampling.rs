//! Samples of the running world.
//!
//! Invariant: sampling only reads the world and schedules no event, so it does not change a run.

use super::timeline::{SampledWorld, TimelineSampler};
use crate::world::SimWorld;
use pagetide_core::units::Nanos;
use pagetide_scenario::timeline::Timeline;

impl SimWorld {
    /// Takes samples for a timeline from now on.
    pub fn sample(&mut self) {
        self.results.timeline = Some(TimelineSampler::new(&self.setup, self.now));
    }

    #[inline]
    pub(crate) fn sample_until(&mut self, at: Nanos) {
        let watched = SampledWorld {
            machine: &self.machine,
            groups: &self.groups.memcgs,
            tasks: &self.tasks,
            setup: &self.setup,
        };
        self.results.sample_until(at, &watched);
    }

    /// Stops sampling and returns the samples, if any were requested.
    pub fn take_timeline(&mut self) -> Option<Timeline> {
        let watched = SampledWorld {
            machine: &self.machine,
            groups: &self.groups.memcgs,
            tasks: &self.tasks,
            setup: &self.setup,
        };
        self.results.timeline.take().map(|timeline| timeline.end(self.now, &watched))
    }
}
