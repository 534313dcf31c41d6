//! Locks and advice on parts of regions.

use super::*;
use crate::names::{LockKind, MadviseKind};

/// A task that touches 16 pages of `heap`, then has a second phase with `keys`.
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

#[test]
fn a_part_is_of_an_existing_region_or_of_one_it_maps() {
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
