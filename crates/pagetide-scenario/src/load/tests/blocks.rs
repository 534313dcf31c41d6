//! Blocks of kernel memory, holes in memory, advice about huge pages.

use super::*;
use crate::model::{BlockRequest, HighOrder, KernelMemoryWorkload};

/// A second task with its own workload; the workload is in line 3.
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
fn mistakes_in_high_order() {
    let of = |keys: &str| other(&format!("workload = \"high-order\"\n{keys}"));
    expect(
        &of(""),
        3,
        12,
        "\"high-order\"",
        "workload high-order has neither `attempts` nor `percent`",
        "add attempts = 1000, or percent = 80",
    );
    expect(
        &of("attempts = 1\npercent = 2\n"),
        5,
        11,
        "2",
        "the workload cannot have both `attempts` and `percent`",
        "remove one of them",
    );
    expect(
        &of("attempts = 1\norder = 11\n"),
        5,
        9,
        "11",
        "11 is out of range",
        "write an integer, from 0 to 10",
    );
    expect(
        &of("attempts = 0\n"),
        4,
        12,
        "0",
        "0 is out of range",
        "write an integer, from 1 to 16777216",
    );
    expect(
        &of("percent = 101\n"),
        4,
        11,
        "101",
        "101 is out of range",
        "write an integer, from 1 to 100",
    );
    expect(
        &of("attempts = 1\nrequest = \"atomic\"\n"),
        5,
        11,
        "\"atomic\"",
        "unknown request `atomic`",
        "it is one of `direct` and `nowait`",
    );
    expect(
        &of("attempts = 1\ninterval = 5\n"),
        5,
        12,
        "5",
        "a time needs a unit",
        units::TIME_FORMS,
    );
    expect(
        &of("attempts = 1\nblocks = 5\n"),
        5,
        1,
        "blocks",
        "workload high-order has no key `blocks`",
        "its keys are order, attempts, percent, interval, request, hold",
    );
    let small = |memory: &str, keys: &str| {
        format!(
            "[machine]\nmemory = \"{memory}\"\n[[task]]\nname = \"t\"\n\
            workload = \"high-order\"\n{keys}"
        )
    };
    expect_in(
        &small("64MiB", "percent = 3\n"),
        6,
        11,
        "3",
        "3 % of 64MiB is less than a block of 2MiB",
        "write attempts = 1, or choose a smaller order",
    );
    expect_in(
        &small("1TiB", "percent = 100\norder = 0\n"),
        6,
        11,
        "100",
        "100 % of 1TiB is 268435456 blocks of 4KiB",
        "at most 16777216 are possible: choose a larger order",
    );
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
fn mistakes_in_kernel_memory() {
    let of = |keys: &str| other(&format!("workload = \"kernel-memory\"\n{keys}"));
    expect(
        &of("count = 1\n"),
        3,
        12,
        "\"kernel-memory\"",
        "workload kernel-memory has no `blocks`",
        "add blocks = 1000",
    );
    expect(
        &of("blocks = 1\n"),
        2,
        8,
        "\"other\"",
        "the task `other` never ends",
        "add count = 1000 to its kernel-memory, or background = true to the task",
    );
    expect(
        &of("blocks = 1\ncount = 0\n"),
        5,
        9,
        "0",
        "0 is out of range",
        "write an integer, 1 or more",
    );
    expect(
        &of("blocks = 1\ncount = 1\nrequest = \"direct\"\n"),
        6,
        11,
        "\"direct\"",
        "unknown request `direct`",
        "it is one of `kernel`, `atomic`, `nowait` and `reclaimable`",
    );
}

#[test]
fn interleaving_needs_a_file_that_is_long_enough() {
    let keys = "workload = \"interleave\"\npages = 16384\nfile = \"data\"\n";
    let interleave =
        Workload::Interleave(Interleave { region: "anon".into(), pages: 16384, file: 0 });
    assert_eq!(workload(keys), interleave);
    let of = |keys: &str| other(&format!("workload = \"interleave\"\n{keys}"));
    expect(
        &of("pages = 16385\nfile = \"data\"\n"),
        4,
        9,
        "16385",
        "16385 pages are more than the file has (64MiB)",
        "make the file larger, or write at most 16384 pages",
    );
    expect(
        &of("file = \"data\"\n"),
        3,
        12,
        "\"interleave\"",
        "workload interleave has no `pages`",
        "add pages = 16384",
    );
    expect(
        &of("pages = 1\n"),
        3,
        12,
        "\"interleave\"",
        "workload interleave has no `file`",
        "add file = \"data\"",
    );
    expect(
        &of("pages = 0\nfile = \"data\"\n"),
        4,
        9,
        "0",
        "0 is out of range",
        "write an integer, from 1 to 2147483648",
    );
}

/// Touches 16 pages of `heap`, maps a file, then discards with `keys`, from line 13.
fn discard(keys: &str) -> String {
    other(&format!(
        "[[task.phase]]\nname = \"fill\"\nworkload = \"touch\"\nsize = \"16p\"\n\
        region = \"heap\"\n[[task.phase]]\nname = \"discard\"\nworkload = \"discard\"\n{keys}"
    ))
}

#[test]
fn a_discard_names_a_region_that_is_there() {
    let scenario =
        sound(&format!("{SOUND}{}", discard("region = \"heap\"\nevery = 2\nfirst = 1\n")));
    let phases = &scenario.variants[0].setup.tasks[1].phases;
    assert_eq!(
        phases[1].workload,
        Workload::Discard(DiscardWorkload { region: "heap".into(), first: 1, every: 2 })
    );
    expect(
        &discard("region = \"hepa\"\n"),
        11,
        10,
        "\"hepa\"",
        "no earlier phase maps a region `hepa`",
        "did you mean `heap`?",
    );
    expect(
        &discard(""),
        10,
        12,
        "\"discard\"",
        "no earlier phase maps a region `anon`",
        "earlier phases map `heap`",
    );
    expect(
        &discard("region = \"heap\"\nfirst = 16\n"),
        12,
        9,
        "16",
        "the region `heap` has no page 16",
        "the region has pages 0 to 15",
    );
    expect(
        &discard("region = \"heap\"\nevery = 0\n"),
        12,
        9,
        "0",
        "0 is out of range",
        "write an integer, from 1 to 2147483648",
    );
    // The mapping has the size of the largest phase, even a later one.
    let later = "region = \"heap\"\nfirst = 16\n[[task.phase]]\nname = \"more\"\n\
        workload = \"touch\"\nsize = \"17p\"\nregion = \"heap\"\n";
    sound(&format!("{SOUND}{}", discard(later)));
    expect(
        &other("workload = \"discard\"\n"),
        3,
        12,
        "\"discard\"",
        "no earlier phase maps a region `anon`",
        "an earlier phase must map it, with workload = \"touch\", for example",
    );
    let of_file = other(
        "[[task.phase]]\nname = \"read\"\nworkload = \"mapped-read\"\nfile = \"data\"\n\
        [[task.phase]]\nname = \"discard\"\nworkload = \"discard\"\nregion = \"data\"\n",
    );
    expect(
        &of_file,
        10,
        10,
        "\"data\"",
        "the region `data` maps a file",
        "only anonymous memory can be discarded: name a region of touch",
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
    expect(
        &other("workload = \"touch\"\nsize = \"2MiB\"\nadvice = \"random\"\n"),
        5,
        10,
        "\"random\"",
        "unknown advice `random`",
        "it is one of `normal`, `huge` and `no-huge`",
    );
    expect(
        &other("workload = \"mapped-read\"\nfile = \"data\"\nadvice = \"huge\"\n"),
        5,
        10,
        "\"huge\"",
        "unknown advice `huge`",
        "it is one of `normal`, `random` and `sequential`",
    );
    // A phase without advice uses the region as it is; contradicting advice is reported.
    let two = |last: &str| {
        other(&format!(
            "[[task.phase]]\nname = \"a\"\nworkload = \"touch\"\nsize = \"2MiB\"\n\
            advice = \"huge\"\n[[task.phase]]\nname = \"b\"\nworkload = \"touch\"\n\
            size = \"2MiB\"\nregion = \"anon\"\n{last}"
        ))
    };
    sound(&format!("{SOUND}{}", two("")));
    expect(
        &two("advice = \"normal\"\n"),
        12,
        10,
        "\"anon\"",
        "the region `anon` has other advice in another phase",
        "phases that name the same region share one mapping: use another `region`",
    );
}

#[test]
fn a_stride_is_whole_pages() {
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
    for keys in [touch, read] {
        for (stride, message) in [
            ("0", "the stride is 0"),
            ("\"6KiB\"", "6144 bytes are not whole pages"),
            ("4097", "4097 bytes are not whole pages"),
        ] {
            let hint = "write whole pages of 4 KiB, for example \"2MiB\"";
            expect(&other(&format!("{keys}stride = {stride}\n")), 5, 10, stride, message, hint);
        }
    }
}

#[test]
fn kswapd_must_be_one_that_compacts() {
    sound(&format!(
        "{SOUND}[policy]\nbackground_compaction = \"kswapd\"\nkswapd = \"linux-4.5\"\n"
    ));
    // Linux 6.1 with the patch that restores it.
    sound(&format!("{SOUND}[policy]\nbackground_compaction = \"kswapd\"\n"));
    expect(
        "[policy]\nbackground_compaction = \"kswapd\"\nkswapd = \"linux-2.6.37\"\n",
        2,
        25,
        "\"kswapd\"",
        "kswapd = \"linux-2.6.37\" does not compact memory",
        "add kswapd = \"linux-4.5\"",
    );
}
