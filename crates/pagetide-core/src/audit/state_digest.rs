//! One hash of the whole state of a machine: equal states have equal hashes.
//!
//! Linux has no such hash. The hash covers all state that can change the machine's next decisions
//! or its reports: frames, zones, counters, lists, page tables, page caches, swap, writeback,
//! daemons, tunables, plug-ins. It does not cover names, buffers, the event log, and calls, which
//! belong to the world.
//!
//! A type declares its state where it is defined ([`State`]). The machine is generic, so its state
//! is declared here: a pattern names every field, so that a new field does not compile until it is
//! hashed.

use crate::interface::kernel::Kernel;
use crate::interface::manager::Manager;
use crate::interface::owners::Owners;
use crate::units::digest::{Digest, State};

impl<O: Owners> Manager<O> {
    pub(crate) fn do_digest(&self) -> u64 {
        let Manager { owners, kernel } = self;
        let Kernel {
            mem,
            config,
            era: _,              // follows from the config
            leaves_two_lists: _, // follows from the era and the plug-in
            groups,
            slabs,
            swap,
            lru_batches,
            compactions,
            plugin,
            step,
        } = kernel;
        let mut digest = Digest::new();
        let parts: [&dyn State; 10] =
            [owners, mem, config, groups, slabs, swap, lru_batches, compactions, plugin, step];
        parts.iter().for_each(|part| part.digest(&mut digest));
        digest.finish()
    }
}

#[cfg(test)]
mod tests {
    use crate::config::Config;
    use crate::frames::node::NodeSpec;
    use crate::groups::memcg::ROOT;
    use crate::interface::effect::{Effect, Step};
    use crate::interface::outcome::Outcome;
    use crate::process::page_table::{Advice, Backing, VmaId};
    use crate::process::Machine;
    use crate::process::MmId;
    use crate::process::ProcessCall;
    use crate::stats::psi::TaskState;
    use crate::swap::SwapOptions;
    use crate::units::{Cpu, NodeId};
    use alloc::vec::Vec;

    fn machine() -> Machine {
        let node = NodeSpec::x86_64(8 << 20, 0, 0);
        let mut machine = Machine::new(&[node], 1, Config::default()).unwrap();
        machine.swapon(SwapOptions::new(8192));
        machine
    }

    /// Writes pages in order; in this world every I/O ends at once.
    fn run(machine: &mut Machine, mm: MmId, vma: VmaId, pages: u64) {
        let mut now = 0;
        for page in 0..pages {
            let mut call = ProcessCall::fault(mm, NodeId(0), vma, page, true);
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
        // Fresh pages are already young.
        let mut pte = machine.owners.vmas[vma].ptes[0];
        assert!(pte.test_clear_young());
        machine.owners.vmas[vma].ptes[0] = pte;
        changed(&machine, "a reference bit");
        let file = machine.create_file(1 << 20, true).unwrap();
        changed(&machine, "a file");
        machine.owners.files[file].writeback_index = 5;
        changed(&machine, "where writeback goes on");
        let stalls = TaskState { stalled: true, ..TaskState::default() };
        machine.psi_task_change(ROOT, Cpu(0), [TaskState::default(), stalls], 5);
        changed(&machine, "a stalled task");
        machine.mem.pgdat[0].kswapd.failures = 1;
        changed(&machine, "a failure of kswapd");
        machine.groups.memcgs[0].lruvecs[0].nonresident_age = 1;
        changed(&machine, "a cost of reclaim");
        machine.munmap(vma, Cpu(0)).unwrap().discard();
        changed(&machine, "an end");
    }
}
