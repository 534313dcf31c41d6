//! One number for the whole state of a machine: equal states give equal numbers.
//!
//! Linux has no such thing. All state that can change the machine's next decisions or its reports is
//! mixed in: frames, zones and counters ([`Memory::digest`]), lists, page tables, page caches, swap,
//! writeback, the daemons, tunables. Not mixed in: names, buffers, the log of events, and calls in
//! progress, which belong to the world.
//!
//! Types with private fields hash themselves, with a pattern that names every field, so that a
//! new field does not compile before it is hashed.
//!
//! [`Memory::digest`]: crate::page_alloc::Memory::digest

use crate::digest::Digest;
use crate::lruvec::Lruvec;
use crate::lruvec::ReclaimStat;
use crate::manager::Manager;
use crate::memcg::{Memcg, MemcgEvents};
use crate::memcg_stock::CpuEvents;
use crate::owners::Owners;
use crate::pgdat::NodeState;
use crate::slab::cached::CachedLists;
use crate::units::Pfn;
use crate::zone::digest_list;

impl<O: Owners> Manager<O> {
    /// Hash of all state. O(frames + page-table entries + pages of files).
    pub fn digest(&self) -> u64 {
        let mut digest = Digest::new();
        self.mem.digest(&mut digest);
        self.config.digest(&mut digest);
        for node in &self.nodes {
            digest_node(node, &mut digest);
        }
        for memcg in &self.memcgs {
            digest_memcg(memcg, &mut digest);
        }
        for id in &self.free_memcgs {
            digest.write_u64(id.0.into());
        }
        for stock in &self.stocks {
            stock.digest(&mut digest);
        }
        self.soft_limit_trees.digest(&mut digest);
        digest.write_option(self.legacy_wait.map(|pfn| pfn.0.into()));
        self.slabs.digest(&mut digest);
        self.swap.digest(&mut digest);
        self.compactions.digest(&mut digest);
        for batches in &self.lru_batches {
            for batch in [&batches.add, &batches.activate, &batches.rotate] {
                digest_pfns(batch, &mut digest);
            }
        }
        self.pins.digest(&mut digest);
        self.plugins.digest(&mut digest);
        self.owners.digest(&mut digest);
        digest.write_u64(self.effects.nr_owed() as u64);
        for (at, counted) in self.daemon_sleeps.iter().enumerate() {
            if let Some((node, reason)) = counted {
                digest.write_all(&[at as u64, node.0.into(), *reason as u64]);
            }
        }
        digest.finish()
    }
}

fn digest_pfns(pfns: &[Pfn], digest: &mut Digest) {
    digest.write_u64(pfns.len() as u64);
    for pfn in pfns {
        digest.write_u64(pfn.0.into());
    }
}

fn digest_node(node: &NodeState, digest: &mut Digest) {
    let NodeState {
        stats,
        zone_lru,
        nr_mlock,
        kswapd,
        kcompactd,
        dirty,
        writeback,
        congested,
        nr_writeback_throttled,
        nr_written_while_throttled,
        nr_reserve_throttled,
    } = node;
    digest.write_all(stats);
    for sizes in zone_lru {
        digest.write_all(sizes);
    }
    if nr_mlock.iter().any(|&nr| nr > 0) {
        digest.write_all(nr_mlock);
    }
    kswapd.digest(digest);
    kcompactd.digest(digest);
    digest.write_all(&[
        u64::from(*dirty),
        u64::from(*writeback),
        u64::from(*congested),
        u64::from(*nr_writeback_throttled),
        *nr_written_while_throttled,
        u64::from(*nr_reserve_throttled),
    ]);
}

fn digest_memcg(memcg: &Memcg, digest: &mut Digest) {
    let Memcg {
        name: _,
        online,
        dying,
        generation,
        parent,
        first_child,
        last_child,
        prev_sibling,
        next_sibling,
        lruvecs,
        charged,
        memory,
        swap,
        soft_limit,
        swappiness,
        shrink_priority,
        nr_tasks,
        events,
        removed_events,
        memory_events,
        psi,
        cpu_events,
        kmem,
        kernel_pages,
        slab_bytes,
        objcg,
        objcgs,
        clones,
        cached,
    } = memcg;
    for link in [parent, first_child, last_child, prev_sibling, next_sibling] {
        digest.write_u64(link.0.into());
    }
    digest.write_all(&[u64::from(*online), u64::from(*generation), *charged, *soft_limit]);
    digest.write_option(swappiness.map(u64::from));
    digest.write_all(&[i64::from(*shrink_priority) as u64, u64::from(*nr_tasks)]);
    memory.digest(digest);
    swap.digest(digest);
    kmem.digest(digest);
    digest.write_all(&[u64::from(*dying), *kernel_pages, u64::from(*objcg)]);
    digest.write_all(&slab_bytes.map(|bytes| bytes as u64));
    objcgs.iter().for_each(|&id| digest.write_u64(id.into()));
    clones.iter().for_each(|id| digest.write_u64(id.0.into()));
    for CachedLists { lists, deferred } in cached {
        digest.write_u64(*deferred);
        lists.iter().for_each(|list| digest.write_u64(list.len));
    }
    digest.write_all(memory_events);
    psi.digest(digest);
    for CpuEvents { nr_page_events, threshold_target, soft_limit_target } in cpu_events {
        digest.write_all(&[*nr_page_events, *threshold_target, *soft_limit_target]);
    }
    for lruvec in lruvecs {
        digest_lruvec(lruvec, digest);
    }
    digest_events(events, digest);
    digest_events(removed_events, digest);
}

fn digest_events(events: &MemcgEvents, digest: &mut Digest) {
    let MemcgEvents {
        pgfault,
        pgmajfault,
        pgscan_kswapd,
        pgscan_direct,
        pgsteal_kswapd,
        pgsteal_direct,
        pgrefill,
        pgactivate,
        pgdeactivate,
        workingset_refault,
        workingset_activate,
        workingset_restore,
        thp_fault_alloc,
        thp_collapse_alloc,
    } = events;
    digest.write_all(&[
        *pgfault,
        *pgmajfault,
        *pgscan_kswapd,
        *pgscan_direct,
        *pgsteal_kswapd,
        *pgsteal_direct,
        *pgrefill,
        *pgactivate,
        *pgdeactivate,
        *thp_fault_alloc,
        *thp_collapse_alloc,
    ]);
    for counts in [workingset_refault, workingset_activate, workingset_restore] {
        digest.write_all(counts);
    }
}

fn digest_lruvec(lruvec: &Lruvec, digest: &mut Digest) {
    let Lruvec {
        lists,
        zone_sizes,
        anon_cost,
        file_cost,
        recent: ReclaimStat { recent_scanned, recent_rotated },
        nonresident_age,
        refaults,
        workingset_activate,
        subtree,
        congested,
        reclaim_position,
        soft_limit_key,
    } = lruvec;
    for list in lists {
        digest_list(list, digest);
    }
    for sizes in zone_sizes {
        digest.write_all(sizes);
    }
    digest.write_all(&[*anon_cost, *file_cost, *nonresident_age]);
    digest.write_all(recent_scanned);
    digest.write_all(recent_rotated);
    digest.write_all(refaults);
    digest.write_all(workingset_activate);
    digest.write_all(subtree);
    digest.write_all(&[u64::from(*congested), reclaim_position.0.into()]);
    let (excess, arrival) = soft_limit_key.unwrap_or((0, 0));
    digest.write_all(&[excess, arrival]);
}

#[cfg(test)]
mod tests {
    use crate::config::Config;
    use crate::effect::{Effect, Step};
    use crate::node::NodeSpec;
    use crate::outcome::Outcome;
    use crate::process::page_table::{Advice, Backing, VmaId};
    use crate::process::Call;
    use crate::process::Machine;
    use crate::process::MmId;
    use crate::units::{Cpu, NodeId};
    use alloc::vec::Vec;

    fn machine() -> Machine {
        let node = NodeSpec::x86_64(8 << 20, 0, 0);
        let mut machine = Machine::new(&[node], 1, Config::default()).unwrap();
        machine.swapon(8192, 8192, false);
        machine
    }

    /// Writes pages in order; the world is a disk that is always done at once.
    fn run(machine: &mut Machine, mm: MmId, vma: VmaId, pages: u64) {
        let mut now = 0;
        for page in 0..pages {
            let mut call = Call::fault(mm, NodeId(0), vma, page, true);
            loop {
                now += 1_000_000;
                let (step, effects) = machine.step(&mut call, Cpu(0), now);
                let mut todo: Vec<Effect> = Vec::new();
                effects.drain_into(&mut todo);
                let mut at = 0;
                while at < todo.len() {
                    if let Effect::Submit(io) = todo[at] {
                        machine.io_done(io, true, Cpu(0), now).drain_into(&mut todo);
                    }
                    at += 1;
                }
                match step {
                    Step::Done(Outcome::Got(_)) => break,
                    Step::Done(outcome) => panic!("page {page}: {outcome:?}"),
                    Step::Continue | Step::Wait(_) => {}
                }
            }
        }
    }

    #[test]
    fn equal_histories_give_equal_digests() {
        let mut digests = [0; 2];
        for digest in &mut digests {
            let mut machine = machine();
            let mm = machine.create_mm(Machine::ROOT).unwrap();
            let vma = machine.mmap(mm, Backing::Anon, 3000, Advice::Normal, false).unwrap();
            run(&mut machine, mm, vma, 3000);
            machine.audit().unwrap();
            assert!(machine.swap().used() > 0, "nothing was swapped out");
            *digest = machine.digest();
        }
        assert_eq!(digests[0], digests[1]);
    }

    #[test]
    fn every_kind_of_state_counts() {
        let mut machine = machine();
        let mut seen: Vec<u64> = Vec::new();
        let mut changed = |machine: &Machine, what: &str| {
            let digest = machine.digest();
            assert!(!seen.contains(&digest), "{what} does not count");
            assert_eq!(digest, machine.digest());
            seen.push(digest);
        };
        changed(&machine, "the beginning");
        machine.write_control("vm.swappiness", "61").unwrap().discard();
        changed(&machine, "a tunable");
        machine.write_control("vm.wmark_high_kbytes", "4000").unwrap().discard();
        changed(&machine, "a mark");
        machine.set_policy("kswapd", "linux-2.6.37").unwrap().discard();
        changed(&machine, "a policy");
        let memcg = machine.create_memcg("group".into(), Machine::ROOT).unwrap();
        changed(&machine, "a group");
        let mm = machine.create_mm(memcg).unwrap();
        changed(&machine, "an address space");
        let vma = machine.mmap(mm, Backing::Anon, 16, Advice::Normal, false).unwrap();
        changed(&machine, "a mapping");
        run(&mut machine, mm, vma, 1);
        changed(&machine, "a fault");
        // Fresh pages are young already.
        let mut pte = machine.owners.vmas[vma.idx()].ptes[0];
        assert!(pte.test_clear_young());
        machine.owners.vmas[vma.idx()].ptes[0] = pte;
        changed(&machine, "a reference bit");
        let file = machine.create_file(1 << 20, true).unwrap();
        changed(&machine, "a file");
        machine.owners.files[file.idx()].writeback_index = 5;
        changed(&machine, "where writeback goes on");
        machine.memcgs[0].psi.stall_begin(5);
        changed(&machine, "a stalled task");
        machine.nodes[0].kswapd.failures = 1;
        changed(&machine, "a failure of kswapd");
        machine.memcgs[0].lruvecs[0].anon_cost = 1;
        changed(&machine, "a cost of reclaim");
        machine.munmap(vma, Cpu(0)).unwrap().discard();
        changed(&machine, "an end");
    }
}
