//! Objects that tasks allocate from slab caches, and frees of objects: at once, or after a grace
//! period.
//!
//! Invariant: a slot has an object exactly while only its task may free it. An object that was left
//! to the kernel (cached) belongs to the machine. While objects wait for a grace period, exactly
//! one event is scheduled, at the next tick.

use super::grace::GracePeriod;
use crate::world::results::slabs::SlabLevels;
use crate::world::{SimWorld, WorldEvent};
use pagetide_core::frames::gfp::Gfp;
use pagetide_core::interface::outcome::Outcome;
use pagetide_core::process::ProcessCall;
use pagetide_core::slab::cached::CachedKind;
use pagetide_core::slab::object::Object;
use pagetide_core::units::{Cpu, Nanos};
use pagetide_scenario::model::costs::Price;
use pagetide_scenario::op::Op;

impl SimWorld {
    /// Allocates an object. Returns the CPU time, and the call that does it if it takes long.
    pub(crate) fn alloc_object(
        &mut self,
        id: usize,
        op: Op,
        cpu: Cpu,
    ) -> (Nanos, Option<ProcessCall>) {
        let Op::AllocObject { cache, account, .. } = op else { return (0, None) };
        let cache = self.objects.caches[cache as usize];
        let meter = &mut self.cpus.meter;
        let price =
            meter.charge(Price::Object, 1) + meter.charge(Price::ObjectCharge, u64::from(account));
        self.spend_in_kernel(id, price);
        let mm = self.tasks[id].mm;
        let memcg = self.machine.mm_memcg(mm).expect("every task has one");
        let object = self.machine.kmem_cache_alloc(cache, memcg, account, cpu);
        let Some(object) = object else {
            let node = self.machine.mem.cpu_node(cpu);
            return (price, Some(ProcessCall::kmem_alloc(mm, node, cache, account, Gfp::KERNEL)));
        };
        self.object_allocated(id, op, Outcome::Object(object));
        (price, None)
    }

    /// Ends an allocation: stores the object, if any, in its slot.
    pub(crate) fn object_allocated(&mut self, id: usize, op: Op, outcome: Outcome) {
        let Op::AllocObject { slot, .. } = op else { return };
        let task = &mut self.tasks[id];
        task.usage.objects_asked += 1;
        let Outcome::Object(object) = outcome else { return };
        task.usage.objects_got += 1;
        let slot = slot as usize;
        if task.objects.len() <= slot {
            task.objects.resize(slot + 1, None);
        }
        let before = task.objects[slot].replace(object);
        assert!(before.is_none(), "a slot is emptied before it is filled again");
    }

    /// Frees an object. Returns the CPU time.
    pub(crate) fn free_object(&mut self, id: usize, slot: u32, cpu: Cpu) -> Nanos {
        let Some(object) = self.take_object(id, slot) else { return 0 };
        self.free_object_of_cache(object, cpu);
        let cost = self.take_work() + self.cpus.meter.charge(Price::Object, 1);
        self.spend_in_kernel(id, cost)
    }

    /// Leaves an object to the kernel as a cached dentry or inode.
    pub(crate) fn cache_object(&mut self, id: usize, slot: u32) {
        let Some(object) = self.take_object(id, slot) else { return };
        let cache = self.machine.cache_of_object(object);
        let kind = self.machine.cached_kind(cache).unwrap_or(CachedKind::Inode);
        let kept = self.machine.cache_object(object, None, kind);
        assert!(kept.is_ok(), "{object:?} was in a slot: {kept:?}");
    }

    fn take_object(&mut self, id: usize, slot: u32) -> Option<Object> {
        self.tasks[id].objects.get_mut(slot as usize).and_then(Option::take)
    }

    /// Frees all objects of a task that exits.
    pub(crate) fn free_all_objects(&mut self, id: usize, cpu: Cpu) {
        for object in std::mem::take(&mut self.tasks[id].objects).into_iter().flatten() {
            self.free_object_of_cache(object, cpu);
        }
    }

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
        for id in self.machine.slabs.kmem_caches().map(|(id, _)| id).collect::<Vec<_>>() {
            self.machine.shrink_cache(id, Cpu(0));
        }
        self.results.shrunk_slabs = SlabLevels::of(&self.machine, &self.setup);
        self.machine = before;
    }
}
