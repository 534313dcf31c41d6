//! Shrinking the cached objects of one group on one node, batch by batch.
//!
//! Linux: `do_shrink_slab`, `shrink_slab_memcg` (mm/vmscan.c, 6.1).

use super::{ShrinkSlab, SEEKS};
use crate::frames::gfp::Gfp;
use crate::groups::memcg::ROOT;
use crate::interface::effect::Effects;
use crate::interface::kernel::Kernel;
use crate::interface::manager::Manager;
use crate::interface::owners::Owners;
use crate::slab::cached::{CachedKind, Shrinker};
use crate::stats::event::TraceEvent;
use crate::stats::vmstat::Event;
use crate::units::{Cpu, MemcgId, NodeId};

impl Kernel {
    /// Starts to shrink the cached objects of a group on a node, if there are any.
    pub(crate) fn begin_shrink_slab(
        &mut self,
        memcg: MemcgId,
        node: NodeId,
        priority: i8,
        gfp: Gfp,
    ) -> Option<ShrinkSlab> {
        self.begin_shrinker_from(Some(Shrinker::ShadowNodes), memcg, node, priority, gfp)
    }

    /// Starts the first shrinker, from `first` on, that has work.
    fn begin_shrinker_from(
        &mut self,
        first: Option<Shrinker>,
        memcg: MemcgId,
        node: NodeId,
        priority: i8,
        gfp: Gfp,
    ) -> Option<ShrinkSlab> {
        core::iter::successors(first, |shrinker| shrinker.next())
            .find_map(|shrinker| self.begin_shrinker(shrinker, memcg, node, priority, gfp))
    }

    /// Starts one shrinker, if it has work.
    fn begin_shrinker(
        &mut self,
        shrinker: Shrinker,
        memcg: MemcgId,
        node: NodeId,
        priority: i8,
        gfp: Gfp,
    ) -> Option<ShrinkSlab> {
        // A removed group has no lists.
        let lists = self.groups.memcgs[memcg].cached.get(node.idx())?;
        let freeable = match shrinker {
            Shrinker::ShadowNodes => self.count_shadow_nodes(memcg, node),
            Shrinker::SuperBlock => {
                lists.nr_unused() * u64::from(self.config.vfs_cache_pressure) / 100
            }
            Shrinker::Zsmalloc if memcg == ROOT => self.swap.freeable_pool_pages(),
            Shrinker::Zsmalloc => 0,
            Shrinker::Zswap => self.zswap_shrinker_count(memcg, node, gfp),
        };
        if freeable == 0 {
            return None;
        }
        let lists = self.groups.memcgs[memcg].cached.get(node.idx())?;
        // `deferred` is updated only at the end, so a task that is killed in between does not
        // change it.
        let deferred = lists.deferred[shrinker as usize];
        let shift = priority.clamp(0, 63) as u32;
        let delta = match shrinker {
            Shrinker::ShadowNodes => freeable / 2,
            Shrinker::SuperBlock | Shrinker::Zsmalloc | Shrinker::Zswap => {
                (freeable >> shift) * 4 / SEEKS
            }
        };
        let total_scan = ((deferred >> shift) + delta).min(2 * freeable);
        let owed = deferred + delta;
        self.mem.events.record(TraceEvent::MmShrinkSlabStart {
            shrink: shrinker.name(),
            nid: node,
            memcg,
            nr_objects_to_shrink: deferred,
            cache_items: freeable,
            delta,
            total_scan,
            priority,
        });
        let (scanned, freed) = (0, 0);
        Some(ShrinkSlab {
            shrinker,
            memcg,
            node,
            priority,
            gfp,
            freeable,
            total_scan,
            owed,
            deferred,
            scanned,
            freed,
            freed_before: 0,
        })
    }

    fn super_cache_scan(&mut self, memcg: MemcgId, node: NodeId, nr: u64, cpu: Cpu) -> u64 {
        let lists = &self.groups.memcgs[memcg].cached[node].lists;
        let [dentries, inodes] = [lists[0].len, lists[1].len];
        let total = (dentries + inodes).max(1);
        let mut freed = 0;
        for (kind, len) in [(CachedKind::Dentry, dentries), (CachedKind::Inode, inodes)] {
            // One more than its share, so that short lists are also scanned.
            freed += self.prune_cached(memcg, node, kind, nr * len / total + 1, cpu).1;
        }
        freed
    }
}

impl<O: Owners> Manager<O> {
    /// Scans one batch. Returns whether it was the last batch of the last shrinker.
    pub(crate) fn shrink_slab_step(&mut self, state: &mut ShrinkSlab, cpu: Cpu) -> bool {
        let left = state.total_scan;
        let batch = state.shrinker.batch();
        // To free dentries and inodes is to enter a file system. A request that must not, as one of
        // read-ahead, defers them (`super_cache_scan` returns `SHRINK_STOP`).
        let may_scan = state.shrinker != Shrinker::SuperBlock || state.gfp.has(Gfp::FS);
        if may_scan && (left >= batch || left >= state.freeable && left > 0) {
            let nr = left.min(batch);
            let (memcg, node) = (state.memcg, state.node);
            let (freed, is_stopped) = match state.shrinker {
                Shrinker::ShadowNodes => (self.scan_shadow_nodes(memcg, node, nr, cpu), false),
                Shrinker::SuperBlock => (self.super_cache_scan(memcg, node, nr, cpu), false),
                Shrinker::Zsmalloc => {
                    let freed = self.compact_pools(cpu);
                    // Nothing is left to move.
                    (freed, freed == 0)
                }
                Shrinker::Zswap => self.zswap_shrinker_scan(memcg, node, nr, cpu),
            };
            if is_stopped {
                // Neither counts what was done (`SHRINK_STOP`).
                state.total_scan = 0;
                return false;
            }
            state.freed += freed;
            state.scanned += nr;
            state.total_scan -= nr;
            self.mem.vmstat.add(Event::SlabsScanned, nr);
            self.mem.work.objects_scanned += nr as u32;
            return false;
        }
        let owed = state.owed.saturating_sub(state.scanned).min(2 * state.freeable);
        let lists = &mut self.groups.memcgs[state.memcg].cached[state.node];
        let deferred = &mut lists.deferred[state.shrinker as usize];
        *deferred = deferred.saturating_sub(state.deferred) + owed;
        let new_scan = *deferred;
        self.mem.events.record(TraceEvent::MmShrinkSlabEnd {
            shrink: state.shrinker.name(),
            nid: state.node,
            memcg: state.memcg,
            unused_scan: state.deferred,
            new_scan,
            retval: state.freed - state.freed_before,
            total_scan: state.total_scan,
        });
        let ShrinkSlab { memcg, node, priority, gfp, .. } = *state;
        let next = state.shrinker.next();
        match self.begin_shrinker_from(next, memcg, node, priority, gfp) {
            Some(next) => {
                *state = ShrinkSlab { freed: state.freed, freed_before: state.freed, ..next };
                false
            }
            None => true,
        }
    }

    /// Frees the cached objects of all groups until hardly any more can be freed (`echo 2 >
    /// drop_caches`). Does nothing for an unknown CPU.
    pub fn drop_slab(&mut self, cpu: Cpu) -> Effects<'_> {
        if self.groups.has_cpu(cpu) {
            self.drop_kept_objects(cpu);
        }
        self.take_effects()
    }

    pub(crate) fn drop_kept_objects(&mut self, cpu: Cpu) {
        for round in 0..u64::BITS {
            let mut freed = 0;
            for memcg in self.memcg_ids().collect::<alloc::vec::Vec<_>>() {
                for node in 0..self.mem.pgdat.len() {
                    let node = NodeId(node as u8);
                    let Some(mut state) = self.begin_shrink_slab(memcg, node, 0, Gfp::KERNEL)
                    else {
                        continue;
                    };
                    while !self.shrink_slab_step(&mut state, cpu) {}
                    freed += state.freed;
                }
            }
            if freed >> round <= 1 {
                return;
            }
        }
    }
}
