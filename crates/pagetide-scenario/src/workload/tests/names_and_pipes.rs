//! File names and pipes, and the choice of those that stay.

use super::*;
use crate::model::{KeepShare, MakeNames, Pipes, RemoveObjects};
use crate::names::PickKind;

/// The operations of all phases, without begin and end markers.
fn within(phases: Vec<Workload>) -> Vec<Op> {
    let mut ops = run(Vec::new(), phases);
    ops.retain(|op| !matches!(op, Op::PhaseBegin { .. } | Op::PhaseEnd { .. }));
    ops
}

fn names(make: u32, keep_percent: u32, missing: bool) -> Workload {
    Workload::Names(MakeNames { make, keep: KeepShare::percent(keep_percent), missing })
}

/// Removes the objects that phase `of` keeps, all or all but one in `keep`.
fn remove_of(of: u32, keep: u32, pick: PickKind) -> Workload {
    Workload::Remove(RemoveObjects {
        of,
        keep: KeepShare { part: keep.min(1), of: keep.max(1), pick },
    })
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
    let pipes = |make, keep| Workload::Pipes(Pipes { make, keep: KeepShare::percent(keep) });
    let open = |slot| Op::OpenPipe { slot };
    let ops = within(vec![pipes(2, 100), names(1, 100, false), pipes(1, 0)]);
    assert_eq!(ops, [open(0), open(1), make(0), open(2), Op::ClosePipe { slot: 2 }]);
}

#[test]
fn as_many_stay_as_the_share_rounded_up() {
    let mut shares: Vec<KeepShare> = (0..=100).map(KeepShare::percent).collect();
    shares.push(KeepShare { part: 1, of: 8, pick: PickKind::Evenly });
    for keep in shares {
        for count in [1u32, 7, 99, 1000] {
            let ops =
                within(vec![Workload::Names(MakeNames { make: count, keep, missing: false })]);
            let gone = ops.iter().filter(|op| matches!(op, Op::RemoveName { .. })).count();
            let kept = (u64::from(count) * u64::from(keep.part)).div_ceil(u64::from(keep.of));
            assert_eq!(u64::from(count) - gone as u64, kept, "{keep:?} of {count}");
        }
    }
}

/// Numbers of the names that the phases remove, in order.
fn removed(phases: Vec<Workload>) -> Vec<u32> {
    let name = |op: &Op| match op {
        Op::RemoveName { name } => Some(*name),
        _ => None,
    };
    within(phases).iter().filter_map(name).collect()
}

#[test]
fn a_later_phase_removes_of_what_is_left() {
    let evenly = PickKind::Evenly;
    let kept = |phases: Vec<Workload>| -> Vec<u32> {
        let removed = removed(phases);
        (0..64).filter(|name| !removed.contains(name)).collect()
    };
    let all = names(64, 100, false);
    let eighth = remove_of(0, 8, evenly);
    assert_eq!(kept(vec![all.clone(), eighth.clone()]), [0, 8, 16, 24, 32, 40, 48, 56]);
    assert_eq!(kept(vec![all.clone(), eighth.clone(), remove_of(0, 4, evenly)]), [0, 32]);
    assert_eq!(kept(vec![all.clone(), eighth, remove_of(0, 0, evenly)]), [0; 0]);
    // Every second one exists, and the second of these has number 2.
    assert_eq!(removed(vec![names(8, 50, false), remove_of(0, 2, evenly)]), [1, 3, 5, 7, 2, 6]);
    // Objects of other phases have other numbers.
    let others = vec![names(2, 100, false), names(2, 100, false), remove_of(1, 0, evenly)];
    assert_eq!(removed(others), [2, 3]);
    // Pipes have their own numbers.
    let pipes = Workload::Pipes(Pipes { make: 2, keep: KeepShare::percent(100) });
    let ops = within(vec![names(3, 100, false), pipes, remove_of(1, 2, evenly)]);
    assert_eq!(ops[5..], [Op::ClosePipe { slot: 1 }]);
}

#[test]
fn what_is_drawn_is_removed_once() {
    let random = |keep| remove_of(0, keep, PickKind::Random);
    let all = names(8000, 100, false);
    let first = removed(vec![all.clone(), random(8)]);
    assert!((6900..7100).contains(&first.len()), "{}", first.len());
    assert!(first.is_sorted());
    let rest = removed(vec![all.clone(), random(8), random(2), remove_of(0, 0, PickKind::Evenly)]);
    assert_eq!(rest[..first.len()], first, "a draw is as it was");
    let mut sorted = rest.clone();
    sorted.sort_unstable();
    assert!(sorted.into_iter().eq(0..8000), "each goes, and none twice");
    let keep = KeepShare { part: 1, of: 8, pick: PickKind::Random };
    let names = Workload::Names(MakeNames { make: 8000, keep, missing: false });
    assert!((6900..7100).contains(&removed(vec![names]).len()));
}

#[test]
fn each_loop_removes_its_own() {
    let mut looped = task(vec![names(2, 100, false), remove_of(0, 2, PickKind::Evenly)]);
    looped.settings.loops = 2;
    let mut ops = ops_of(&setup(Vec::new(), vec![looped]), 100);
    ops.retain(|op| !matches!(op, Op::PhaseBegin { .. } | Op::PhaseEnd { .. }));
    assert_eq!(ops, [make(0), make(1), remove(1), make(2), make(3), remove(3)]);
}
