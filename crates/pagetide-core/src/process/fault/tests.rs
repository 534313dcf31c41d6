use super::*;
use crate::config::Config;
use crate::frames::node::NodeSpec;
use crate::interface::effect::Token;
use crate::interface::throttle::Throttle;
use crate::process::page_table::Advice;
use crate::process::{MmId, ProcessCall};
use crate::units::{Cpu, NodeId, PAGE_SIZE};

/// Steps a read fault to its end or its first wait.
fn read(machine: &mut Machine, mm: MmId, map: VmaId, page: u64) {
    let mut call = ProcessCall::fault(mm, NodeId(0), map, page, false);
    loop {
        let (step, effects) = machine.step(&mut call, Cpu(0), 0);
        effects.discard();
        if step != Step::Continue {
            return;
        }
    }
}

#[test]
fn neighbours_mapped_before_count_as_hits_of_reading_around() {
    // Within one word of the page cache's bits, and across two.
    for (nr, wanted) in [(16, 7), (128, 7), (128, 63), (128, 64)] {
        let config =
            Config { read_ahead_pages: 0, fault_around_pages: nr as u32, ..Config::default() };
        let mut machine = Machine::new(&[NodeSpec::x86_64(24 << 20, 0, 0)], 1, config).unwrap();
        let mm = machine.create_mm(Machine::ROOT).unwrap();
        let file = machine.create_file(nr * PAGE_SIZE, true).unwrap();
        let map = machine.mmap(mm, Backing::File(file), nr, Advice::Normal, false).unwrap();
        for page in (0..nr).filter(|&page| page != wanted) {
            read(&mut machine, mm, map, page);
        }
        machine.owners.vmas[map].mmap_miss = 500;
        read(&mut machine, mm, map, wanted);
        // The first attempt counts the neighbours; the retry counts them and the page itself.
        let hits = (nr - 1 + nr) as u32;
        assert_eq!(machine.owners.vmas[map].mmap_miss, 500 - hits, "{wanted} of {nr}");
    }
}

#[test]
fn cached_neighbours_in_both_words_are_mapped_along() {
    let config = Config { read_ahead_pages: 0, fault_around_pages: 128, ..Config::default() };
    let mut machine = Machine::new(&[NodeSpec::x86_64(24 << 20, 0, 0)], 1, config).unwrap();
    let mm = machine.create_mm(Machine::ROOT).unwrap();
    // The window ends with the file, in the middle of its second word.
    let file = machine.create_file(100 * PAGE_SIZE, true).unwrap();
    let [first, second] = [(); 2]
        .map(|()| machine.mmap(mm, Backing::File(file), 128, Advice::Normal, false).unwrap());
    for page in [2, 63, 64, 99] {
        read(&mut machine, mm, first, page);
    }
    read(&mut machine, mm, second, 63);
    let is_mapped = |page: &usize| machine.owners.vmas[second].ptes[*page].is_present();
    assert!((0..128).filter(is_mapped).eq([2, 63, 64, 99]));
}

#[test]
fn a_world_without_bytes_is_asked_for_all_but_contents() {
    let asked = |has_bytes: bool| {
        let node = NodeSpec::x86_64(24 << 20, 0, 0);
        let mut machine = Machine::new(&[node], 1, Config::default()).unwrap();
        if !has_bytes {
            machine.without_bytes();
        }
        let mm = machine.create_mm(Machine::ROOT).unwrap();
        let file = machine.create_file(16 * PAGE_SIZE, false).unwrap();
        let map = machine.mmap(mm, Backing::File(file), 16, Advice::Normal, false).unwrap();
        let heap = machine.mmap(mm, Backing::Anon, 16, Advice::Normal, false).unwrap();
        let mut asked = alloc::vec::Vec::new();
        for (map, page) in (0..16).map(|page| (heap, page)).chain([(map, 0)]) {
            let mut call = ProcessCall::fault(mm, NodeId(0), map, page, true);
            loop {
                let (step, effects) = machine.step(&mut call, Cpu(0), 0);
                asked.extend(effects);
                // Stop where the fault waits for the file's page.
                if step != Step::Continue {
                    break;
                }
            }
        }
        asked
    };
    let (with, without) = (asked(true), asked(false));
    let of_contents = with.iter().filter(|effect| effect.is_contents_only()).count();
    assert_eq!(of_contents, 16 + 2, "each page of the heap and two page tables are zeroed");
    assert!(!without.is_empty(), "the file is read");
    assert!(with.iter().filter(|effect| !effect.is_contents_only()).eq(&without));
}

#[test]
fn a_fault_that_may_not_be_charged_for_fails_after_one_look() {
    let mut machine =
        Machine::new(&[NodeSpec::x86_64(24 << 20, 0, 0)], 1, Config::default()).unwrap();
    let memcg = machine.create_memcg("group".into(), Machine::ROOT).unwrap();
    let mm = machine.create_mm(memcg).unwrap();
    let file = machine.create_file(16 * PAGE_SIZE, true).unwrap();
    let map = machine.mmap(mm, Backing::File(file), 16, Advice::Sequential, false).unwrap();
    let fault = |machine: &mut Machine, page| {
        let mut call = ProcessCall::fault(mm, NodeId(0), map, page, false);
        for _ in 0..1000 {
            let (step, effects) = machine.step(&mut call, Cpu(0), 0);
            effects.discard();
            if let Step::Done(outcome) = step {
                return outcome;
            }
        }
        panic!("a fault does not end");
    };
    // The page table exists now.
    assert!(matches!(fault(&mut machine, 0), Outcome::Got(got) if got.major));
    machine.discard(map, 0, 16, Cpu(0)).unwrap().discard();
    machine.write_group_control(memcg, "memory.max", "0").unwrap().1.discard();
    machine.drop_pagecache(Cpu(0)).discard();
    machine.drain_all_stock(memcg);
    // As if the OOM killer had chosen the task just now.
    machine.owners.mms[mm].oom_victim = true;
    machine.owners.dying.push(mm);
    assert_eq!(fault(&mut machine, 0), Outcome::NoMemory);
}

/// Writes to a mapped file until the writer pauses, without writeback.
fn dirty_until_a_pause() -> (Machine, ProcessCall, VmaId, u64) {
    let config = Config { fault_around_pages: 1, ..Config::default() };
    let mut machine = Machine::new(&[NodeSpec::x86_64(24 << 20, 0, 0)], 1, config).unwrap();
    let mm = machine.create_mm(Machine::ROOT).unwrap();
    let pages = 2048;
    let file = machine.create_file(pages * PAGE_SIZE, true).unwrap();
    let map = machine.mmap(mm, Backing::File(file), pages, Advice::Random, false).unwrap();
    for page in 0..pages {
        let mut call = ProcessCall::fault(mm, NodeId(0), map, page, true);
        loop {
            let (step, effects) = machine.step(&mut call, Cpu(0), page * 1000);
            effects.discard();
            match step {
                Step::Continue => {}
                Step::Wait(sleep) => {
                    assert!(matches!(sleep.token, Token::Throttled(_, Throttle::Dirty)));
                    assert!(sleep.timeout > 0);
                    return (machine, call, map, page);
                }
                Step::Done(outcome) => {
                    assert!(matches!(outcome, Outcome::Got(_)), "{outcome:?}");
                    break;
                }
            }
        }
    }
    panic!("the writer never pauses");
}

#[test]
fn a_store_to_a_mapped_file_pauses_like_a_write() {
    let (mut machine, mut call, map, page) = dirty_until_a_pause();
    let (background, limit) = machine.dirty_limits();
    let dirty = machine.mem.global_node_stat(NodeStat::NrDirty);
    assert!(dirty > (background + limit) / 2 && dirty <= limit, "{dirty} of {limit}");
    assert!(machine.is_resident(map, page), "the page is mapped before the pause");
    let faults = machine.mem.vmstat.get(Event::Pgfault);
    let (step, effects) = machine.step(&mut call, Cpu(0), 1 << 30);
    effects.discard();
    assert!(matches!(step, Step::Done(Outcome::Got(_))), "{step:?}");
    assert_eq!(machine.mem.vmstat.get(Event::Pgfault), faults, "the same fault");
}

#[test]
fn a_page_reclaimed_during_the_pause_is_faulted_in_again() {
    let (mut machine, mut call, map, page) = dirty_until_a_pause();
    machine.discard(map, page, 1, Cpu(0)).unwrap().discard();
    let faults = machine.mem.vmstat.get(Event::Pgfault);
    for _ in 0..100 {
        let (step, effects) = machine.step(&mut call, Cpu(0), 1 << 30);
        effects.discard();
        if let Step::Done(outcome) = step {
            assert!(matches!(outcome, Outcome::Got(_)), "{outcome:?}");
            assert!(machine.mem.vmstat.get(Event::Pgfault) > faults);
            return;
        }
    }
    panic!("a fault does not end");
}
