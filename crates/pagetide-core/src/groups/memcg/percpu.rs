//! Memory for the per-CPU counters of a group, charged to its parent.
//!
//! Linux: `mem_cgroup_alloc`, `alloc_mem_cgroup_per_node_info` (mm/memcontrol.c),
//! `pcpu_memcg_pre_alloc_hook`, `pcpu_obj_full_size` (mm/percpu.c) (6.1; since 5.9). The counters
//! are charged like an object of the parent, plus an owner pointer of eight bytes for every four
//! bytes. They are uncharged when the group is gone. The root is never charged. A world asks for
//! this charge when it creates a group; groups of an embedder have no such counters.
//!
//! Differences from Linux: if the parent is at its limit, it is charged beyond the limit; Linux
//! reclaims from it. The counters take no page of free memory.
//!
//! Invariant: an owner's `bytes` include the counters that are charged to it.

use crate::config::SlabAccounting;
use crate::frames::gfp::Gfp;
use crate::interface::ctx::Ctx;
use crate::interface::kernel::Kernel;
use crate::slab::allocate::SlabShortage;
use crate::slab::objcg::NO_OWNER;
use crate::units::{Cpu, IdVec, MemcgId, Nanos, Requester};

/// Words of `struct memcg_vmstats_percpu`: 50 sizes and 15 events, two words for each (the count
/// and the part of it that was already propagated), and 3 counts of events for soft limits.
const GROUP_WORDS: u64 = 2 * (50 + 15) + 3;
/// Words of `struct lruvec_stats_percpu`: 43 sizes, two words for each (as above).
const NODE_WORDS: u64 = 2 * 43;
/// `PCPU_MIN_ALLOC_SIZE`: there is one owner pointer for this many bytes of one CPU.
const BYTES_A_POINTER: u64 = 4;
const WORD: u64 = 8;

fn counters_size(nr_cpus: u64, nr_nodes: u64) -> u64 {
    let bytes = (GROUP_WORDS + NODE_WORDS * nr_nodes) * WORD;
    bytes * nr_cpus + bytes / BYTES_A_POINTER * WORD
}

impl Kernel {
    /// Charges the parent of a new group for the group's counters.
    pub fn charge_counters(&mut self, memcg: MemcgId, cpu: Cpu, now: Nanos) {
        let exists = self.groups.memcg_is_online(memcg) && self.groups.has_cpu(cpu);
        if !exists || self.slabs.accounting != SlabAccounting::PerObject {
            return;
        }
        let parent = self.groups.memcgs[memcg].parent;
        let has_none = self.groups.memcgs[memcg].counters_owner == NO_OWNER;
        if parent.is_none() || parent == super::ROOT || !has_none {
            return;
        }
        let objcg = self.groups.memcgs[parent].objcg;
        let bytes =
            counters_size(self.groups.stocks.len() as u64, self.mem.pgdat.len() as u64) as u32;
        let node = self.mem.cpu_node(cpu);
        let ctx = Ctx { cpu, node, now, asker: Requester::NONE, memcg: parent };
        // The charge may exceed the group's limit. Only a limit of kernel memory (version 1)
        // refuses it.
        match self.obj_charge(&ctx, objcg, bytes, false, Gfp::NOWAIT) {
            Ok(()) => {}
            Err(SlabShortage::Denied) => return,
            Err(_) => self.obj_force_charge(cpu, objcg, bytes, false),
        }
        self.slabs.objcgs.add_counter_bytes(cpu, objcg, bytes);
        let group = &mut self.groups.memcgs[memcg];
        (group.counters_owner, group.counters_bytes) = (objcg, bytes);
    }

    pub(super) fn uncharge_counters(&mut self, memcg: MemcgId) {
        let group = &mut self.groups.memcgs[memcg];
        let objcg = core::mem::replace(&mut group.counters_owner, NO_OWNER);
        let bytes = core::mem::take(&mut group.counters_bytes);
        if objcg != NO_OWNER {
            self.obj_uncharge(Cpu(0), objcg, bytes, false);
            self.slabs.objcgs.remove_counter_bytes(Cpu(0), objcg, bytes);
        }
    }

    /// Bytes of counters charged to groups (`percpu` in memory.stat).
    pub(crate) fn memcg_percpu_bytes(&self, members: &IdVec<MemcgId, bool>) -> u64 {
        let charged = self.groups.memcgs.iter().filter(|group| group.counters_owner != NO_OWNER);
        let of_members =
            charged.filter(|group| members[self.slabs.objcgs.memcg_of(group.counters_owner)]);
        of_members.map(|group| u64::from(group.counters_bytes)).sum()
    }
}
