//! Frees of kernel objects, at once or after a grace period.
//!
//! Invariant: while objects wait, exactly one event is scheduled, at the next tick.

use super::grace::GracePeriod;
use crate::world::results::slab_levels::SlabLevels;
use crate::world::threads::WorldEvent;
use crate::world::SimWorld;
use pagetide_core::slab::object::Object;
use pagetide_core::units::Cpu;
use pagetide_scenario::costs::Price;

impl SimWorld {
    pub(crate) fn free_object_now(&mut self, object: Object, cpu: Cpu) {
        let cache = self.machine.cache_of_object(object);
        let freed = self.machine.kmem_cache_free(cache, object, cpu);
        assert!(freed.is_ok(), "{object:?} was in a slot: {freed:?}");
    }

    pub(crate) fn free_after_grace(&mut self, object: Object, cpu: Cpu) {
        if let Some(decisions) = &mut self.observing.decisions {
            decisions.free_late(self.now, cpu, object);
        }
        if self.objects.grace.is_empty() {
            self.await_tick();
        }
        self.objects.grace.queue(object, cpu, self.now);
    }

    /// Frees the objects of the current event after a grace period.
    pub(crate) fn free_late(&mut self) {
        for (object, cpu) in std::mem::take(&mut self.cpus.late) {
            self.free_after_grace(object, cpu);
        }
    }

    /// Frees an object at once or after a grace period, as its cache requires.
    pub(crate) fn free_object_of_cache(&mut self, object: Object, cpu: Cpu) {
        match self.objects.grace.is_of(self.machine.cache_of_object(object)) {
            true => self.free_after_grace(object, cpu),
            false => self.free_object_now(object, cpu),
        }
    }

    fn await_tick(&mut self) {
        self.queue.push(GracePeriod::next_tick(self.now), WorldEvent::GracePeriod);
    }

    /// Timer tick while objects wait.
    pub(crate) fn grace_period_tick(&mut self) {
        for (object, cpu) in self.objects.grace.tick(self.now, self.cpus.of.len()) {
            self.free_object_now(object, cpu);
            self.cpus.owe(cpu, self.machine.take_work());
            self.cpus.owe_one(cpu, Price::Object);
        }
        if !self.objects.grace.is_empty() {
            self.await_tick();
        }
    }

    /// Notes the slab levels after all grace periods end and all caches are shrunk.
    pub(crate) fn note_shrunk_slabs(&mut self) {
        if !self.setup.has_objects() {
            return;
        }
        // The changes are undone afterwards, as they are not part of the run.
        let before = self.machine.clone();
        for (object, cpu) in self.objects.grace.take_all() {
            self.free_object_now(object, cpu);
        }
        for id in self.machine.kmem_caches().map(|(id, _)| id).collect::<Vec<_>>() {
            self.machine.shrink_cache(id, Cpu(0));
        }
        self.results.shrunk_slabs = SlabLevels::of(&self.machine, &self.setup);
        self.machine = before;
    }
}
