//! Removed groups that only their own caches keep in memory: they have slabs and no other memory.

use super::*;
use crate::process::page_table::{Advice, Backing};

#[test]
fn a_removed_group_is_on_no_soft_limit_tree_whatever_holds_it() {
    let (mut machine, cache, memcg, mm) = with_group(with(SlabAccounting::PerGroupCaches), 2048);
    machine.write_group_control(memcg, "memory.soft_limit_in_bytes", "4K").unwrap().1.discard();
    alloc(&mut machine, mm, cache);
    work_off(&mut machine);
    let objects: Vec<Object> = (0..40).map(|_| alloc(&mut machine, mm, cache)).collect();
    leave(&mut machine, memcg, mm);
    work_off(&mut machine);
    assert!(machine.groups.memcgs[memcg].dying);
    // As after an OOM kill.
    machine.restore_soft_limits();
    machine.audit().unwrap();
    for object in objects {
        free(&mut machine, cache, object);
    }
    machine.audit().unwrap();
    assert_eq!(machine.memcg_ids().count(), 1);
}

#[test]
fn a_removed_group_counts_no_pages_whatever_holds_it() {
    let (mut machine, cache, memcg, mm) = with_group(with(SlabAccounting::PerGroupCaches), 2048);
    let file = machine.create_file(64 * PAGE_SIZE, true).unwrap();
    let map = machine.mmap(mm, Backing::File(file), 64, Advice::Normal, false).unwrap();
    let mut fault = ProcessCall::fault(mm, NodeId(0), map, 0, false);
    loop {
        let (step, effects) = machine.step(&mut fault, CPU, 0);
        effects.discard();
        if let Step::Done(outcome) = step {
            assert!(matches!(outcome, Outcome::Got(got) if got.major), "{outcome:?}");
            break;
        }
    }
    // From the CPU's batch to the list.
    machine.lru_add_drain_all();
    alloc(&mut machine, mm, cache);
    work_off(&mut machine);
    let object = alloc(&mut machine, mm, cache);
    // The page cache outlives the task and goes to the root.
    leave(&mut machine, memcg, mm);
    assert!(machine.groups.memcgs[memcg].dying);
    let here = machine.lru_sizes_below(memcg, NodeId(0)).cold_file();
    assert_eq!(here, 0);
    assert!(machine.mem.global_node_stat(NodeStat::NrInactiveFile) > 0);
    machine.audit().unwrap();
    work_off(&mut machine);
    free(&mut machine, cache, object);
    machine.audit().unwrap();
}
