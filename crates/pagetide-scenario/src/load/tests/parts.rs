//! Locks and advice on parts of regions.

use super::*;
use crate::names::{LockKind, MadviseKind};

/// A task that touches 16 pages of `heap`, then has a second phase with `keys`, from line 9.
fn phase(keys: &str) -> String {
    format!(
        "[[task]]\nname = \"other\"\n[[task.phase]]\nname = \"first\"\nworkload = \"touch\"\nsize = \"64KiB\"\n\
         region = \"heap\"\n[[task.phase]]\nname = \"second\"\n{keys}"
    )
}

fn workload(keys: &str) -> Workload {
    let mut scenario = sound(&format!("{SOUND}{}", phase(keys)));
    scenario.variants.remove(0).setup.tasks.remove(1).phases.remove(1).workload
}

fn mistake(keys: &str) -> (String, String) {
    let found = told(&format!("{SOUND}{}", phase(keys)));
    let [(_, _, _, message, hint)] = found.as_slice() else { panic!("{found:#?}") };
    (message.clone(), hint.clone())
}

#[test]
fn a_part_is_of_a_region_that_is_there_or_of_one_it_maps() {
    let Workload::Lock(lock) = workload("workload = \"lock\"\nregion = \"heap\"\nfirst = 4\n")
    else {
        panic!("it locks")
    };
    assert_eq!((lock.how, lock.part.maps, lock.part.of(16)), (LockKind::Lock, None, 4..16));
    let new = "workload = \"lock\"\nhow = \"on-fault\"\nsize = \"1MiB\"\nfirst = 1\npages = 7\n";
    let Workload::Lock(lock) = workload(new) else { panic!("it locks") };
    assert_eq!((lock.how, lock.part.maps, lock.part.of(256)), (LockKind::OnFault, Some(256), 1..8));
    assert_eq!(lock.part.region, "anon");
    let file = "workload = \"advise\"\nadvice = \"will-need\"\nfile = \"data\"\n";
    let Workload::Advise(advise) = workload(file) else { panic!("it advises") };
    assert_eq!((advise.advice, advise.part.maps), (MadviseKind::WillNeed, Some(16384)));
    assert_eq!(advise.part.region, "data");
    let part = "workload = \"advise\"\nadvice = \"no-huge\"\nregion = \"heap\"\npages = 1\n";
    let Workload::Advise(advise) = workload(part) else { panic!("it advises") };
    assert_eq!((advise.advice, advise.part.of(16)), (MadviseKind::NoHuge, 0..1));
}

#[test]
fn mistakes_in_parts() {
    let (message, hint) = mistake("workload = \"lock\"\n");
    assert_eq!(message, "no earlier phase maps a region `anon`");
    assert_eq!(hint, "earlier phases map `heap`");
    let (message, hint) =
        mistake("workload = \"lock\"\nregion = \"heap\"\nfirst = 10\npages = 7\n");
    assert_eq!(message, "the part extends beyond the end of the region `heap`");
    assert_eq!(hint, "the region has pages 0 to 15");
    let advise = |keys: &str| mistake(&format!("workload = \"advise\"\nregion = \"heap\"\n{keys}"));
    assert_eq!(advise("advice = \"normal\"\npages = 3\n").0, "this advice needs a whole region");
    assert_eq!(advise("advice = \"will-need\"\n").0, "`will-need` is supported for files only");
    assert!(advise("").0.contains("advice"));
}
