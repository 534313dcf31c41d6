//! Blocks of kernel memory, holes in memory, advice about huge pages.

use super::*;
use crate::model::{BlockRequest, HighOrder, KernelMemoryWorkload};

/// A second task with its own workload.
fn other(keys: &str) -> String {
    format!("[[task]]\nname = \"other\"\n{keys}")
}

fn workload(keys: &str) -> Workload {
    let mut scenario = sound(&format!("{SOUND}{}", other(keys)));
    scenario.variants.remove(0).setup.tasks.remove(1).phases.remove(0).workload
}

#[test]
fn high_order_has_defaults_and_keys() {
    let request = BlockRequest::KernelHigh;
    let high = HighOrder { order: 9, attempts: 5, interval_ns: 0, request, hold: true };
    assert_eq!(workload("workload = \"high-order\"\nattempts = 5\n"), Workload::HighOrder(high));
    let given = "workload = \"high-order\"\npercent = 50\norder = 10\ninterval = \"1ms\"\n\
        request = \"nowait\"\nhold = false\n";
    // Half of 1 GiB in blocks of 4 MiB.
    let request = BlockRequest::Atomic;
    let high = HighOrder { order: 10, attempts: 128, interval_ns: 1_000_000, request, hold: false };
    assert_eq!(workload(given), Workload::HighOrder(high));
}

#[test]
fn kernel_memory_has_defaults_and_keys() {
    let request = BlockRequest::Kernel;
    let memory = KernelMemoryWorkload { order: 0, blocks: 9, count: None, interval_ns: 0, request };
    let keys = "background = true\nworkload = \"kernel-memory\"\nblocks = 9\n";
    assert_eq!(workload(keys), Workload::KernelMemory(memory));
    for (name, request) in [
        ("kernel", BlockRequest::Kernel),
        ("atomic", BlockRequest::Atomic),
        ("nowait", BlockRequest::Nowait),
        ("reclaimable", BlockRequest::Reclaimable),
    ] {
        let keys = format!(
            "workload = \"kernel-memory\"\nblocks = 9\norder = 3\ncount = 4\n\
            interval = \"2us\"\nrequest = \"{name}\"\n"
        );
        let memory = KernelMemoryWorkload {
            order: 3,
            blocks: 9,
            count: Some(4),
            interval_ns: 2000,
            request,
        };
        assert_eq!(workload(&keys), Workload::KernelMemory(memory));
    }
}

#[test]
fn interleaving_has_keys() {
    let keys = "workload = \"interleave\"\npages = 16384\nfile = \"data\"\n";
    let interleave = Workload::Interleave(Interleave {
        region: "anon".into(),
        pages: 16384,
        file: 0,
        keep_mapped: false,
    });
    assert_eq!(workload(keys), interleave);
}

/// Touches 16 pages of `heap`, then discards with `keys`.
fn discard(keys: &str) -> String {
    other(&format!(
        "[[task.phase]]\nname = \"fill\"\nworkload = \"touch\"\nsize = \"16p\"\n\
        region = \"heap\"\n[[task.phase]]\nname = \"discard\"\nworkload = \"discard\"\n{keys}"
    ))
}

#[test]
fn a_discard_names_a_region() {
    let scenario =
        sound(&format!("{SOUND}{}", discard("region = \"heap\"\nevery = 2\nfirst = 1\n")));
    let phases = &scenario.variants[0].setup.tasks[1].phases;
    assert_eq!(
        phases[1].workload,
        Workload::Discard(DiscardWorkload { region: "heap".into(), first: 1, every: 2 })
    );
}

#[test]
fn advice_about_huge_pages() {
    let of = |keys: &str| match workload(&format!("workload = \"touch\"\nsize = \"2MiB\"\n{keys}"))
    {
        Workload::Touch(TouchWorkload { advice, .. }) => advice,
        other => panic!("{other:?}"),
    };
    assert_eq!(of(""), Advice::Normal);
    assert_eq!(of("advice = \"huge\"\n"), Advice::Huge);
    assert_eq!(of("advice = \"no-huge\"\n"), Advice::NoHuge);
    assert_eq!(of("advice = \"normal\"\n"), Advice::Normal);
}

#[test]
fn a_stride_counts_pages() {
    let touch = "workload = \"touch\"\nsize = \"8MiB\"\n";
    let read = "workload = \"mapped-read\"\nfile = \"data\"\n";
    let of = |keys: &str| match workload(keys) {
        Workload::Touch(TouchWorkload { pages, stride, .. }) => (pages, stride),
        Workload::MappedRead(MappedRead { pages, stride, .. }) => (pages, stride),
        other => panic!("{other:?}"),
    };
    assert_eq!(of(touch), (2048, 1));
    assert_eq!(of(&format!("{touch}stride = \"2MiB\"\n")), (2048, 512));
    assert_eq!(of(&format!("{read}stride = \"3 pages\"\n")), (16_384, 3));
}
