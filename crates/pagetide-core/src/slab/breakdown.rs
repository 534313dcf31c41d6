//! Slab memory of each group and of each cache.
//!
//! Linux has no such file; tools/cgroup/memcg_slabinfo.py and slabtop(1) are similar.
//!
//! Memory of removed groups has its own rows, after the row of the nearest ancestor that exists. It
//! consists of objects that were charged to removed groups, and of clones that still have objects.
//!
//! Invariant: every object in use is in exactly one row of either table.

use super::cached::CachedKind;
use super::objcg::NO_OWNER;
use super::slabinfo::SlabUsage;
use crate::config::SlabAccounting;
use crate::groups::memcg::ROOT;
use crate::groups::Groups;
use crate::interface::kernel::Kernel;
use crate::units::{CacheId, IdVec, MemcgId};
use alloc::vec::Vec;

/// Slabs of a group itself, or of removed descendants of the group. Sizes are in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupSlabs {
    /// The group, which exists.
    pub memcg: MemcgId,
    /// Whether this is the row of the removed descendants, not of the group itself.
    pub removed: bool,
    /// Kernel memory charged to the group and its descendants.
    pub kmem: u64,
    /// Bytes of reclaimable objects, or of the slabs of its reclaimable clones.
    pub reclaimable: u64,
    /// Bytes of unreclaimable objects, or of the slabs of its unreclaimable clones.
    pub unreclaimable: u64,
    /// Objects in use.
    pub objects: u64,
    /// Its clones of caches.
    pub clones: u64,
    /// Cached dentries.
    pub dentries: u64,
    /// Cached inodes.
    pub inodes: u64,
    /// Removed groups that only their caches keep alive.
    pub dying_groups: u64,
}

impl GroupSlabs {
    fn new(memcg: MemcgId, removed: bool) -> GroupSlabs {
        GroupSlabs {
            memcg,
            removed,
            kmem: 0,
            reclaimable: 0,
            unreclaimable: 0,
            objects: 0,
            clones: 0,
            dentries: 0,
            inodes: 0,
            dying_groups: 0,
        }
    }

    fn add(&mut self, objects: u64, bytes: u64, reclaimable: bool) {
        self.objects += objects;
        match reclaimable {
            true => self.reclaimable += bytes,
            false => self.unreclaimable += bytes,
        }
    }

    fn is_empty(&self) -> bool {
        *self == GroupSlabs::new(self.memcg, self.removed)
    }
}

impl Groups {
    /// The nearest existing group on the path from `memcg` to the root, and whether that is another
    /// group.
    fn nearest_online(&self, memcg: MemcgId) -> (MemcgId, bool) {
        let mut at = memcg;
        while !self.memcgs[at].online {
            at = self.memcgs[at].parent;
        }
        (at, at != memcg)
    }
}

impl Kernel {
    /// The slabs of each group, in walk order. The row of a group's removed descendants follows its
    /// own row. The root's row has the slabs that are not charged. O(objects).
    pub fn slabs_by_group(&self) -> Vec<GroupSlabs> {
        let both = |id| [GroupSlabs::new(id, false), GroupSlabs::new(id, true)];
        let mut rows: IdVec<MemcgId, [GroupSlabs; 2]> =
            (0..self.groups.memcgs.len()).map(|id| both(MemcgId(id as u16))).collect();
        for (_, it) in self.slabs.iter() {
            let usage = SlabUsage::of(it);
            if it.memcg.is_some() {
                let (memcg, gone) = self.groups.nearest_online(it.memcg);
                let row = &mut rows[memcg][usize::from(gone || it.dying)];
                row.add(usage.active_objs, usage.bytes, it.reclaimable);
                row.clones += 1;
                continue;
            }
            let mut owned = 0;
            for &owner in it.owners.iter().filter(|&&owner| owner != NO_OWNER) {
                let (memcg, gone) = self.groups.nearest_online(self.slabs.objcgs.memcg_of(owner));
                let removed = gone || self.groups.memcgs[memcg].objcg != owner;
                rows[memcg][usize::from(removed)].add(1, it.charge_size.into(), it.reclaimable);
                owned += 1;
            }
            let nobodys = usage.active_objs - owned;
            let bytes = match self.slabs.accounting {
                SlabAccounting::PerObject => nobodys * u64::from(it.size),
                SlabAccounting::Off
                | SlabAccounting::PerGroupCaches
                | SlabAccounting::PerGroupCachesReparent => usage.bytes,
            };
            rows[ROOT][0].add(nobodys, bytes, it.reclaimable);
        }
        for id in self.memcg_ids() {
            let group = &self.groups.memcgs[id];
            let (memcg, gone) = self.groups.nearest_online(id);
            let row = &mut rows[memcg][usize::from(gone)];
            row.dying_groups += u64::from(gone);
            // A group's counter includes its descendants.
            if !gone || self.groups.memcgs[group.parent].online {
                row.kmem += self.mem.page_size.bytes_of(group.kmem.usage);
            }
            if !gone {
                row.dentries = self.nr_cached(id, CachedKind::Dentry);
                row.inodes = self.nr_cached(id, CachedKind::Inode);
            }
        }
        let there = self.memcg_ids().filter(|&id| self.groups.memcg_is_online(id));
        there.flat_map(|id| rows[id]).filter(|row| !row.removed || !row.is_empty()).collect()
    }

    /// Every cache, with the slabs of its clones; sorted by size of the slabs (largest first), then
    /// by name.
    pub fn slabs_by_cache(&self) -> Vec<(CacheId, SlabUsage)> {
        let usages = self.slabs.usages_by_root();
        let mut rows: Vec<(CacheId, SlabUsage)> =
            self.slabs.roots().map(|id| (id, usages[id])).collect();
        let name = |id: CacheId| self.slabs.caches[id].name.as_str();
        rows.sort_by(|(one, a), (other, b)| {
            b.bytes.cmp(&a.bytes).then_with(|| name(*one).cmp(name(*other)))
        });
        rows
    }
}
