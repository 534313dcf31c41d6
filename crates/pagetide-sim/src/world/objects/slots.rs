//! Objects that tasks allocate from slab caches.
//!
//! Invariant: a slot has an object exactly while only its task may free it. An object that was left
//! to the kernel (cached) belongs to the machine.

use crate::world::SimWorld;
use pagetide_core::frames::gfp::Gfp;
use pagetide_core::interface::outcome::Outcome;
use pagetide_core::process::ProcessCall;
use pagetide_core::slab::cached::CachedKind;
use pagetide_core::slab::object::Object;
use pagetide_core::units::{Cpu, Nanos};
use pagetide_scenario::costs::Price;
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
}
