//! Per-group caches (clones): the accounting of slab memory until 5.8.
//!
//! Linux: `memcg_kmem_get_cache`, `memcg_create_kmem_cache`, `memcg_deactivate_kmem_caches`
//! (mm/slab_common.c and mm/memcontrol.c, 5.5). The first object that a group allocates from a
//! cache comes from the cache itself and is not charged. A worker then creates the group's *clone*,
//! a complete cache, and the pages of its slabs are charged to the group. When the group is
//! removed, its clones keep no empty slab; each clone disappears with its last object. Until then
//! the clones keep the removed group in memory (before 5.3) or belong to its parent (since 5.3).
//!
//! Invariant: `clones` of a root cache has, for each group, the clone, [`PENDING`] or nothing. A
//! clone is in its group's list. A group that is `dying` has clones or a descendant with clones.

use super::{CacheShape, CacheSpec, DeferredWork, KmemCache};
use crate::config::SlabAccounting;
use crate::frames::gfp::Gfp;
use crate::groups::memcg::{MemcgPosition, ROOT};
use crate::interface::ctx::Ctx;
use crate::interface::daemon::{Daemon, DaemonRest};
use crate::interface::effect::{Effect, Step, Token};
use crate::interface::kernel::Kernel;
use crate::slab::object::Object;
use crate::slab::Slabs;
use crate::units::{CacheId, Cpu, MemcgId, Nanos, Requester};
use alloc::format;

const PENDING: CacheId = CacheId(u32::MAX - 1);

impl Slabs {
    pub(crate) fn clone_of(&self, root: CacheId, memcg: MemcgId) -> Option<CacheId> {
        let clone = *self.caches[root].clones.get(memcg.idx())?;
        (clone.is_some() && clone != PENDING).then_some(clone)
    }
}

impl Kernel {
    /// Requests a group's clone from the worker, once.
    pub(crate) fn request_clone(&mut self, root: CacheId, memcg: MemcgId) {
        let clones = &mut self.slabs.caches[root].clones;
        if clones.len() <= memcg.idx() {
            clones.resize(memcg.idx() + 1, CacheId::NONE);
        }
        if clones[memcg].is_none() {
            clones[memcg] = PENDING;
            let group = self.groups.position_of(memcg);
            self.defer_slab_work(DeferredWork::Create { root, group });
        }
    }

    fn defer_slab_work(&mut self, work: DeferredWork) {
        self.slabs.deferred.push_back(work);
        self.step.effects.push(Effect::Wake(Token::Daemon(Daemon::Kworker)));
    }

    /// Does one item of deferred work: creates or empties a clone. `Done`: none is left.
    pub(crate) fn kworker_step(&mut self, cpu: Cpu, now: Nanos) -> Step<DaemonRest> {
        match self.slabs.deferred.pop_front() {
            None => Step::Done(DaemonRest::UNTIL_WOKEN),
            Some(work) => {
                match work {
                    DeferredWork::Create { root, group } => {
                        self.create_clone(root, group, cpu, now);
                    }
                    DeferredWork::Shrink { clone } => {
                        // The clone may have been removed, and its id reused.
                        let it = &mut self.slabs.caches[clone];
                        if it.dying {
                            it.shrink(&mut self.slabs.discarded);
                            self.return_discarded(cpu, clone);
                        }
                    }
                }
                Step::Continue
            }
        }
    }

    fn create_clone(&mut self, root: CacheId, group: MemcgPosition, cpu: Cpu, now: Nanos) {
        self.mem.work.caches_created += 1;
        // The group may have been removed since its request.
        let Some(memcg) =
            self.groups.at_position(group).filter(|&id| self.groups.memcg_is_online(id))
        else {
            return;
        };
        let node = self.mem.cpu_node(cpu);
        let ctx = Ctx { cpu, node, now, asker: Requester::NONE, memcg: ROOT };
        let nr_nodes = self.mem.pgdat.len();
        let mut parts = alloc::vec::Vec::with_capacity(1 + nr_nodes);
        let [cache_part, node_part] = self.slabs.clone_parts;
        for at in 0..=nr_nodes {
            let part = if at == 0 { cache_part } else { node_part };
            match self.kmem_alloc_now(part, false, Gfp::NOWAIT, &ctx) {
                Ok(object) => parts.push(object),
                Err(_) => {
                    // The next object that finds no clone requests it again.
                    self.free_parts(parts, cpu);
                    self.slabs.caches[root].clones[memcg] = CacheId::NONE;
                    return;
                }
            }
        }
        let it = &self.slabs.caches[root];
        let spec = CacheSpec {
            name: format!("{}({}:{})", it.name, memcg.0, self.groups.memcgs[memcg].name),
            object_size: it.object_size,
            reclaimable: it.reclaimable,
            account: it.account,
        };
        let shape = CacheShape {
            size: it.size,
            order: it.order,
            min_order: it.min_order,
            policy: it.policy,
            page_size: it.page_size(),
        };
        let (min_partial, cpu_partial) = (it.min_partial, it.cpu_partial);
        let mut clone = KmemCache::new(spec, shape, it.cpus.len() as u16, nr_nodes);
        clone.min_partial = min_partial;
        clone.set_cpu_partial(cpu_partial);
        clone.memcg = memcg;
        clone.self_objects = parts;
        let id = self.slabs.insert(clone);
        self.slabs.caches[id].root = root;
        self.slabs.caches[root].clones[memcg] = id;
        let clones = &mut self.groups.memcgs[memcg].clones;
        self.slabs.caches[id].memcg_at = clones.len() as u32;
        clones.push(id);
    }

    fn free_parts(&mut self, parts: alloc::vec::Vec<Object>, cpu: Cpu) {
        for part in parts {
            let freed = self.kmem_cache_free(part.cache, part, cpu);
            debug_assert_eq!(freed, Ok(()), "a clone's own memory");
        }
    }

    /// Called when a group is removed: its clones are not used any more, and keep only slabs with
    /// objects. With reparenting the clones belong to the parent from now on.
    pub(crate) fn deactivate_clones(&mut self, memcg: MemcgId, parent: MemcgId) {
        for root in self.slabs.roots().collect::<alloc::vec::Vec<_>>() {
            if let Some(clone) = self.slabs.caches[root].clones.get_mut(memcg.idx()) {
                *clone = CacheId::NONE;
            }
        }
        let reparents = self.slabs.accounting == SlabAccounting::PerGroupCachesReparent;
        for clone in self.groups.memcgs[memcg].clones.clone() {
            let it = &mut self.slabs.caches[clone];
            if !it.dying {
                it.dying = true;
                it.min_partial = 0;
                it.set_cpu_partial(0);
                self.defer_slab_work(DeferredWork::Shrink { clone });
            }
            if reparents {
                let it = &mut self.slabs.caches[clone];
                it.memcg = parent;
                let clones = &mut self.groups.memcgs[parent].clones;
                it.memcg_at = clones.len() as u32;
                clones.push(clone);
            }
        }
        if reparents {
            self.groups.memcgs[memcg].clones.clear();
        }
    }

    /// Removes a dying clone if it has no slabs, and then its group if nothing else keeps it.
    pub(crate) fn destroy_if_empty(&mut self, clone: CacheId, cpu: Cpu) {
        let it = &mut self.slabs.caches[clone];
        if !it.dying || it.nr_slabs > 0 {
            return;
        }
        let (memcg, at) = (it.memcg, it.memcg_at as usize);
        let parts = core::mem::take(&mut it.self_objects);
        it.retire();
        self.slabs.free_ids.push(clone.0);
        let clones = &mut self.groups.memcgs[memcg].clones;
        clones.swap_remove(at);
        if let Some(moved) = clones.get(at) {
            self.slabs.caches[*moved].memcg_at = at as u32;
        }
        self.free_parts(parts, cpu);
        self.release_memcg_if_unused(memcg);
    }
}
