//! Counters that a group has on each CPU: the group in which it is made pays for them.
//!
//! Linux: `mem_cgroup_alloc`, `alloc_mem_cgroup_per_node_info` (mm/memcontrol.c), `pcpu_memcg_pre_alloc_hook`,
//! `pcpu_obj_full_size` (mm/percpu.c) (6.1; since 5.9). They are charged as an object of the parent's would be, with
//! eight bytes for each four that say whose they are, and go back when the group has gone. The root pays for nothing.
//! A world asks for it when it makes a group: groups of an embedder have no kernel.
//!
//! Differences from Linux: where the parent is at its limit it is charged beyond it, and not reclaimed from. The pages
//! that they lie in are not taken from free memory.
//!
//! Invariant: an owner's `bytes` include those of counters that it pays for.

use crate::config::SlabAccounting;
use crate::ctx::Ctx;
use crate::gfp::Gfp;
use crate::manager::Manager;
use crate::owners::Owners;
use crate::slab::allocate::SlabLack;
use crate::slab::objcg::NO_OWNER;
use crate::units::{Asker, Cpu, MemcgId, Nanos};

/// `struct memcg_vmstats_percpu` in words: 50 sizes and 15 events, each with what was passed on of it, and 3 counts of
/// events for soft limits.
const GROUP_WORDS: u64 = 2 * (50 + 15) + 3;
/// `struct lruvec_stats_percpu` in words: 43 sizes, each with what was passed on of it.
const NODE_WORDS: u64 = 2 * 43;
/// `PCPU_MIN_ALLOC_SIZE`: so many bytes of one CPU's have one pointer to who pays.
const BYTES_A_POINTER: u64 = 4;
const WORD: u64 = 8;

/// Bytes that a group's counters are charged as.
fn counters_size(nr_cpus: u64, nr_nodes: u64) -> u64 {
    let bytes = (GROUP_WORDS + NODE_WORDS * nr_nodes) * WORD;
    bytes * nr_cpus + bytes / BYTES_A_POINTER * WORD
}

impl<O: Owners> Manager<O> {
    /// Charges the parent of a new group for the group's counters.
    pub fn charge_counters(&mut self, memcg: MemcgId, cpu: Cpu, now: Nanos) {
        let exists = self.memcg_is_online(memcg) && self.has_cpu(cpu);
        if !exists || self.slabs.accounting != SlabAccounting::PerObject {
            return;
        }
        let parent = self.memcgs[memcg.idx()].parent;
        let has_none = self.memcgs[memcg.idx()].counters_owner == NO_OWNER;
        if parent.is_none() || parent == super::ROOT || !has_none {
            return;
        }
        let objcg = self.memcgs[parent.idx()].objcg;
        let bytes = counters_size(self.stocks.len() as u64, self.nodes.len() as u64) as u32;
        let node = self.mem.cpu_node(cpu);
        let ctx = Ctx { cpu, node, now, asker: Asker::NONE, memcg: parent };
        // Room that is not there is made by force; a limit of kernel memory alone (version 1) refuses it.
        match self.obj_charge(&ctx, objcg, bytes, false, Gfp::NOWAIT) {
            Ok(()) => {}
            Err(SlabLack::Denied) => return,
            Err(_) => self.obj_force_charge(cpu, objcg, bytes, false),
        }
        self.slabs.objcgs.counters_came(cpu, objcg, bytes);
        let group = &mut self.memcgs[memcg.idx()];
        (group.counters_owner, group.counters_bytes) = (objcg, bytes);
    }

    /// Takes a group's counters off the bill of who pays for them.
    pub(super) fn uncharge_counters(&mut self, memcg: MemcgId) {
        let group = &mut self.memcgs[memcg.idx()];
        let objcg = core::mem::replace(&mut group.counters_owner, NO_OWNER);
        let bytes = core::mem::take(&mut group.counters_bytes);
        if objcg != NO_OWNER {
            self.obj_uncharge(Cpu(0), objcg, bytes, false);
            self.slabs.objcgs.counters_gone(Cpu(0), objcg, bytes);
        }
    }

    /// Bytes of counters that groups pay for (`percpu` in memory.stat).
    pub(crate) fn memcg_percpu_bytes(&self, members: &[bool]) -> u64 {
        let charged = self.memcgs.iter().filter(|group| group.counters_owner != NO_OWNER);
        let of_members =
            charged.filter(|group| members[self.slabs.objcgs.memcg_of(group.counters_owner).idx()]);
        of_members.map(|group| u64::from(group.counters_bytes)).sum()
    }
}
