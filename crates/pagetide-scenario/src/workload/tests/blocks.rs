//! Kernel memory by order, and workloads that make holes in memory.

use super::*;
use crate::draws::prng::{sub_seed, SplitMix64};
use crate::op::Op;

/// The operations of the only phase.
fn within(files: Vec<File>, workload: Workload) -> Vec<Op> {
    let ops = run(files, vec![workload]);
    assert_eq!(ops.first(), Some(&Op::PhaseBegin { phase: 0 }));
    assert_eq!(ops.last(), Some(&Op::PhaseEnd { phase: 0 }));
    ops[1..ops.len() - 1].to_vec()
}

#[test]
fn attempts_are_paced_and_held_to_the_end() {
    let request = BlockRequest::KernelHigh;
    let high = HighOrder { order: 9, attempts: 2, interval_ns: 7, request, hold: true };
    let of = |high| within(Vec::new(), Workload::HighOrder(high));
    let (pace, free) = (Op::Pace { ns: 7 }, |slot| Op::FreeBlock { slot });
    let take = |slot| Op::AllocBlock { slot, order: 9, request };
    assert_eq!(of(high), [pace, take(0), pace, take(1), free(0), free(1)]);
    let at_once = HighOrder { interval_ns: 0, hold: false, ..high };
    assert_eq!(of(at_once), [take(0), free(0), take(0), free(0)]);
}

const KERNEL_MEMORY_PINNED: [u32; 4] = [0, 1, 2, 1];

#[test]
fn kernel_memory_replaces_random_blocks() {
    let request = BlockRequest::Atomic;
    let memory =
        KernelMemoryWorkload { order: 1, blocks: 3, count: Some(7), interval_ns: 0, request };
    let of = |memory| within(Vec::new(), Workload::KernelMemory(memory));
    let take = |slot| Op::AllocBlock { slot, order: 1, request };
    let free = |slot| Op::FreeBlock { slot };
    // From splitmix64 with the start value subseed(1, "t#blocks"): high64(draw * 3).
    let mut prng = SplitMix64::new(sub_seed(1, "t#blocks"));
    let drawn: Vec<u32> = (0..4).map(|_| prng.below(3) as u32).collect();
    assert_eq!(drawn, KERNEL_MEMORY_PINNED);
    let mut expected = vec![take(0), take(1), take(2)];
    expected.extend(drawn.into_iter().flat_map(|slot| [free(slot), take(slot)]));
    expected.extend([free(0), free(1), free(2)]);
    assert_eq!(of(memory), expected);
    let few = KernelMemoryWorkload { count: Some(2), interval_ns: 5, ..memory };
    let pace = Op::Pace { ns: 5 };
    assert_eq!(of(few), [pace, take(0), pace, take(1), free(0), free(1)]);
}

#[test]
fn the_generator_of_blocks_goes_on_in_later_phases() {
    let memory = |count| {
        let (order, interval_ns, request) = (0, 0, BlockRequest::Kernel);
        Workload::KernelMemory(KernelMemoryWorkload {
            order,
            blocks: 1000,
            count,
            interval_ns,
            request,
        })
    };
    let drawn = |phases: Vec<Workload>| {
        let ops = run(Vec::new(), phases);
        let pairs = ops.windows(2).filter_map(|pair| match pair {
            [Op::FreeBlock { slot }, Op::AllocBlock { .. }] => Some(*slot),
            _ => None,
        });
        pairs.collect::<Vec<u32>>()
    };
    let twice = drawn(vec![memory(Some(1004)), memory(Some(1003))]);
    assert_eq!(twice, drawn(vec![memory(Some(1007))]));
    assert_eq!(twice.len(), 7);
}

#[test]
fn interleaving_takes_turns_and_unmaps_the_file() {
    let interleave = || {
        Workload::Interleave(Interleave {
            region: "anon".into(),
            pages: 2,
            file: 0,
            keep_mapped: false,
        })
    };
    let files = vec![file("data", 3 * 4096)];
    let ops = run(files, vec![interleave(), interleave()]);
    let map =
        |region, backing, advice| Op::Map { region, backing, pages: 2, advice, executable: false };
    let access = |region, page, write| Op::Access { region, page, write };
    let turns = |file| {
        [access(0, 0, true), access(file, 0, false), access(0, 1, true), access(file, 1, false)]
    };
    let mut expected = vec![
        Op::PhaseBegin { phase: 0 },
        map(0, RegionBacking::Anon, Advice::Normal),
        map(1, RegionBacking::File(0), Advice::Random),
    ];
    expected.extend(turns(1));
    expected.extend([Op::Unmap { region: 1 }, Op::PhaseEnd { phase: 0 }]);
    expected.push(Op::PhaseBegin { phase: 1 });
    expected.push(map(2, RegionBacking::File(0), Advice::Random));
    expected.extend(turns(2));
    expected.extend([Op::Unmap { region: 2 }, Op::PhaseEnd { phase: 1 }]);
    assert_eq!(ops, expected);
    let mut looped = task(vec![interleave()]);
    looped.settings.loops = 2;
    let ops = ops_of(&setup(vec![file("data", 3 * 4096)], vec![looped]), 100);
    assert_eq!(ops.iter().filter(|op| matches!(op, Op::Unmap { .. })).count(), 2);
}

#[test]
fn a_discard_goes_over_the_whole_region() {
    let of = |first, every, pages| {
        let discard = Workload::Discard(DiscardWorkload { region: "a".into(), first, every });
        // The last phase enlarges the region: there is one mapping.
        let phases = vec![
            touch("a", 1, PageOrder::Sequential),
            discard,
            touch("a", pages, PageOrder::Sequential),
        ];
        let pages = |op| match op {
            Op::Discard { region: 0, page, pages } => Some((page, pages)),
            _ => None,
        };
        run(Vec::new(), phases).into_iter().filter_map(pages).collect::<Vec<_>>()
    };
    assert_eq!(of(0, 1, 1100), [(0, 512), (512, 512), (1024, 76)]);
    assert_eq!(of(1, 2, 6), [(1, 1), (3, 1), (5, 1)]);
    assert_eq!(of(5, 1, 6), [(5, 1)]);
    assert_eq!(of(6, 1, 6), []);
}

#[test]
fn advice_stays_with_the_region() {
    let advice = Advice::Huge;
    let sequential = touched("anon", 1, PageOrder::Sequential);
    let huge = Workload::Touch(TouchWorkload { advice, ..sequential });
    let interleave = Workload::Interleave(Interleave {
        region: "anon".into(),
        pages: 1,
        file: 0,
        keep_mapped: false,
    });
    let set = Workload::WorkingSet(working_set(1, 0, 1));
    let ops = run(vec![file("data", 4096)], vec![huge, interleave, set]);
    let maps: Vec<Advice> = ops
        .iter()
        .filter_map(|op| match op {
            Op::Map { advice, .. } => Some(*advice),
            _ => None,
        })
        .collect();
    assert_eq!(maps, [Advice::Huge, Advice::Random]);
}
