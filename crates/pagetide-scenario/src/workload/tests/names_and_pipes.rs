//! Names and pipes, and which of them stay.

use super::*;
use crate::model::{is_kept, Names, Pipes};

/// The operations of all phases but their begins and ends.
fn within(phases: Vec<Workload>) -> Vec<Op> {
    let mut ops = run(Vec::new(), phases);
    ops.retain(|op| !matches!(op, Op::PhaseBegin { .. } | Op::PhaseEnd { .. }));
    ops
}

fn names(make: u32, keep_percent: u32, missing: bool) -> Workload {
    Workload::Names(Names { make, keep_percent, missing })
}

fn make(name: u32) -> Op {
    Op::MakeName { name, missing: false }
}

fn remove(name: u32) -> Op {
    Op::RemoveName { name }
}

#[test]
fn all_are_made_before_any_goes_and_numbers_go_on() {
    let looked_for = Op::MakeName { name: 4, missing: true };
    let ops = within(vec![names(4, 50, false), names(1, 0, true), names(2, 0, false)]);
    let first = [make(0), make(1), make(2), make(3), remove(1), remove(3)];
    let then = [looked_for, make(5), make(6), remove(5), remove(6)];
    assert_eq!(ops, [&first[..], &then].concat());
}

#[test]
fn pipes_have_slots_of_their_own() {
    let pipes = |make, keep_percent| Workload::Pipes(Pipes { make, keep_percent });
    let open = |slot| Op::OpenPipe { slot };
    let ops = within(vec![pipes(2, 100), names(1, 100, false), pipes(1, 0)]);
    assert_eq!(ops, [open(0), open(1), make(0), open(2), Op::ClosePipe { slot: 2 }]);
}

#[test]
fn as_many_stay_as_the_share_rounded_up() {
    for percent in 0..=100 {
        for count in [1u32, 7, 99, 1000] {
            let kept = (0..count).filter(|&index| is_kept(index, percent)).count();
            assert_eq!(kept as u64, (u64::from(count) * u64::from(percent)).div_ceil(100));
        }
    }
    assert!(is_kept(u32::MAX, 100) && !is_kept(u32::MAX, 0));
}
