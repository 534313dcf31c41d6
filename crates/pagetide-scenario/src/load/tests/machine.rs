//! Impossible machines and zones.

use super::*;
use pagetide_core::page_size::PageSize;

#[test]
fn impossible_machines() {
    let machine = |lines: &str| SOUND.replace("memory = \"1GiB\"", lines);
    let hint = "memory = \"2GiB\", for example";
    expect_in(&machine("memory = 0"), 2, 10, "0", "the machine has no memory", hint);
    let hint = "a page has 4KiB: \"1 pages\", for example";
    expect_in(&machine("memory = 5000"), 2, 10, "5000", "5000 bytes are not whole pages", hint);
    expect_in(
        &machine("memory = \"4TiB\""),
        2,
        10,
        "\"4TiB\"",
        "4TiB is more memory than a simulated machine can have",
        "all nodes together have at most 2TiB",
    );
    expect_in(
        &machine("cpus = 1"),
        1,
        1,
        "[machine]",
        "the machine has no `memory`",
        "add memory = \"2GiB\"",
    );
    expect_in(
        &machine("memory = \"1GiB\"\nreserved = \"1GiB\""),
        3,
        12,
        "\"1GiB\"",
        "no memory is left: 1GiB of 1GiB taken",
        "leave some memory for the system",
    );
    expect_in(
        &machine("memory = \"1GiB\"\ncpus = 0"),
        3,
        8,
        "0",
        "0 is out of range",
        "write an integer, from 1 to 1024",
    );
    let nodes = "memory = \"1GiB\"\n[[machine.node]]\nmemory = \"2TiB\"";
    expect_in(
        &machine(nodes),
        2,
        10,
        "\"1GiB\"",
        "the machine has [[machine.node]]",
        "write this key in each [[machine.node]]",
    );
    let nodes = "[[machine.node]]\nmemory = \"2TiB\"\n[[machine.node]]\nmemory = \"1GiB\"";
    expect_in(
        &machine(nodes),
        5,
        10,
        "\"1GiB\"",
        "1GiB is more memory than a simulated machine can have",
        "all nodes together have at most 2TiB",
    );
    let missing = &SOUND[SOUND.find("[[file]]").unwrap()..];
    expect_in(
        missing,
        1,
        1,
        "",
        "there is no [machine]",
        "write [machine] and then memory = \"2GiB\"",
    );
}

#[test]
fn impossible_zones() {
    let zones = |lines: &str| {
        let zone = format!("[[machine.zone]]\nname = \"DMA32\"\n{lines}");
        SOUND.replace("memory = \"1GiB\"", &zone)
    };
    assert_eq!(
        sound(&zones("present = \"9 pages\"")).variants[0].setup.machine.nodes[0].memory,
        9 * 4096
    );
    expect_in(
        &zones("present = \"9 pages\"\nmanaged = \"10 pages\""),
        5,
        11,
        "\"10 pages\"",
        "more managed than present",
        "write free <= managed <= present",
    );
    expect_in(
        &zones("present = \"9 pages\"\nfree = \"10 pages\""),
        5,
        8,
        "\"10 pages\"",
        "more free than managed",
        "write free <= managed <= present",
    );
    expect_in(
        &zones("free = 0"),
        2,
        1,
        "[[machine.zone]]",
        "the zone has no `present`",
        "add present = \"4096 pages\"",
    );
    let lists = "present = \"512 pages\"\nmovable = { pageblocks = 1, blocks = [1, 0, 1, 1] }";
    let scenario = sound(&zones(lists));
    let zone = &scenario.variants[0].setup.machine.nodes[0].zones[0];
    assert_eq!((zone.free, zone.free_lists.unwrap().pageblocks), (13, [0, 1, 0]));
    expect_in(
        &zones(&format!("{lists}\nfree = \"13 pages\"")),
        6,
        8,
        "\"13 pages\"",
        "the free lists already give the free memory",
        "remove `free`",
    );
    expect_in(
        &zones("present = \"8 pages\"\nreclaimable = { blocks = [1, 0, 0, 1] }"),
        5,
        15,
        "{ blocks = [1, 0, 0, 1] }",
        "more free than managed: the free blocks of zone DMA32 have 9 pages, the zone manages 8",
        "a block of order n has 2^n pages; free <= managed <= present",
    );
    expect_in(
        &zones(
            "present = \"8 pages\"\nmovable = { blocks = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0] }",
        ),
        5,
        11,
        "{ blocks = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0] }",
        "12 orders of free blocks are too many",
        "the largest block has order 10: write at most 11 numbers",
    );
    let second = "present = \"9 pages\"\n[[machine.zone]]\npresent = \"9 pages\"\nname = ";
    expect_in(
        &zones(&format!("{second}\"DMA\"")),
        7,
        8,
        "\"DMA\"",
        "zones out of order",
        "write the zones in the order DMA, DMA32, Normal, Movable",
    );
    expect_in(
        &zones(&format!("{second}\"DMA32\"")),
        7,
        8,
        "\"DMA32\"",
        "the zone `DMA32` is defined twice",
        "give one of them another name",
    );
    expect_in(
        &zones(&format!("{second}\"HighMem\"")),
        7,
        8,
        "\"HighMem\"",
        "unknown zone `HighMem`",
        "it is one of `DMA`, `DMA32`, `Normal` and `Movable`",
    );
}

#[test]
fn free_lists_that_do_not_fit() {
    let zones = |lines: &str| {
        let zone = format!("[[machine.zone]]\nname = \"DMA32\"\n{lines}");
        SOUND.replace("memory = \"1GiB\"", &zone)
    };
    // All managed memory is free, including the partial pageblock.
    sound(&zones(
        "present = \"3840 pages\"\nmanaged = \"2816 pages\"\nunmovable = { blocks = [0, 0, 0, 0, 0, 0, 0, 0, 0, 1] }\n\
         movable = { pageblocks = 4, blocks = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2] }\n\
         reclaimable = { pageblocks = 1, blocks = [0, 0, 0, 0, 0, 0, 0, 0, 1] }",
    ));
    expect_in(
        &zones("present = \"65536 pages\"\nmovable = { blocks = [65536] }"),
        5,
        11,
        "{ blocks = [65536] }",
        "the free blocks below order 9 need 256 pageblocks of zone DMA32, but larger blocks leave 128; \
         `movable` needs most",
        "of two buddies at most one can be free: two would merge into the next order",
    );
    expect_in(
        &zones("present = \"2048 pages\"\nmovable = { blocks = [0, 0, 0, 0, 0, 0, 0, 0, 0, 3] }"),
        5,
        11,
        "{ blocks = [0, 0, 0, 0, 0, 0, 0, 0, 0, 3] }",
        "3 free blocks of order 9 in zone DMA32, which has space for 2",
        "a block of order 9 is a pageblock, and two free buddies would merge into order 10",
    );
    expect_in(
        &zones("present = \"2000 pages\"\nmovable = { pageblocks = 5 }\nunmovable = { pageblocks = 1 }"),
        5,
        26,
        "5",
        "6 pageblocks of all types, but zone DMA32 has 4",
        "a pageblock has 512 pages, `present` has 2000",
    );
    expect_in(
        &zones("present = \"2048 pages\"\nmovable = { pageblocks = 1, blocks = [0, 0, 0, 0, 0, 0, 0, 0, 3] }"),
        5,
        26,
        "1",
        "`pageblocks` is 1, but the free blocks of `movable` in zone DMA32 need 3",
        "write 3 or more, or leave `pageblocks` out",
    );
}

const HINT: &str = "write \"4KiB\", \"16KiB\" or \"64KiB\"";

#[test]
fn pages_have_4_16_or_64_kib() {
    assert_eq!(sound(SOUND).variants[0].setup.machine.page_size, PageSize::Kib4);
    for (text, page_size, pages) in [
        ("\"4 KiB\"", PageSize::Kib4, 4096),
        ("\"16KiB\"", PageSize::Kib16, 1024),
        ("\"64 KiB\"", PageSize::Kib64, 256),
        ("\"64k\"", PageSize::Kib64, 256),
        ("65536", PageSize::Kib64, 256),
    ] {
        let file = SOUND.replace("[machine]", &format!("[machine]\npage_size = {text}"));
        let setup = &sound(&file).variants[0].setup;
        assert_eq!(setup.machine.page_size, page_size);
        assert_eq!(setup.machine.nodes[0].memory, 1 << 30);
        // 16 MiB.
        let Workload::Touch(TouchWorkload { pages: of_touch, .. }) =
            setup.tasks[0].phases[0].workload
        else {
            panic!("{:?}", setup.tasks[0].phases[0].workload)
        };
        assert_eq!(of_touch, pages, "{text}");
    }
    for (text, message) in [
        ("\"32 KiB\"", "`32 KiB` is not a page size"),
        ("\"1 page\"", "`1 page` is not a page size"),
        ("\"large\"", "`large` is not a page size"),
        ("4", "4 bytes is not a page size"),
        ("-4096", "-4096 bytes is not a page size"),
        ("true", "expected a page size, found a boolean"),
    ] {
        let file = SOUND.replace("[machine]", &format!("[machine]\npage_size = {text}"));
        expect_in(&file, 2, 13, text, message, HINT);
    }
}

/// For any position of the key, and for any source of its value.
#[test]
fn sizes_in_pages_count_the_machine_s() {
    let zones =
        "page_size = \"64KiB\"\n[[machine.zone]]\nname = \"DMA32\"\npresent = \"100 pages\"";
    let file = SOUND.replace("memory = \"1GiB\"", zones).replace("16MiB", "7 pages");
    let setup = &sound(&file).variants[0].setup;
    assert_eq!(setup.machine.nodes[0].zones[0].present, 100);
    assert_eq!(setup.machine.nodes[0].memory, 100 << 16);
    let pages = |scenario: &Scenario, variant: usize| match scenario.variants[variant].setup.tasks
        [0]
    .phases[0]
        .workload
    {
        Workload::Touch(TouchWorkload { pages, .. }) => pages,
        _ => 0,
    };
    assert_eq!(pages(&sound(&file), 0), 7);

    let variants = format!(
        "{SOUND}[[variant]]\nname = \"a\"\n[[variant]]\nname = \"b\"\n\
         set = {{ \"machine.page_size\" = \"16 KiB\" }}\n"
    );
    let scenario = sound(&variants);
    assert_eq!([pages(&scenario, 0), pages(&scenario, 1)], [4096, 1024]);
    let sets = vec![("machine.page_size".to_owned(), "64KiB".to_owned())];
    let overrides = Overrides { sets, ..Overrides::default() };
    let scenario = load_text(&variants, &overrides).unwrap();
    assert_eq!([pages(&scenario, 0), pages(&scenario, 1)], [256, 256]);
    assert_eq!(scenario.variants[0].setup.machine.page_size, PageSize::Kib64);
}

#[test]
fn memory_is_whole_pages_of_the_machine() {
    let file = SOUND.replace("\"1GiB\"", "\"1028KiB\"\npage_size = \"64KiB\"");
    let message = "1052672 bytes are not whole pages";
    let hint = "a page has 64KiB: \"16 pages\", for example";
    expect_in(&file, 2, 10, "\"1028KiB\"", message, hint);
    // Zone DMA ends at 16 MiB for any page size.
    let zones = "page_size = \"64KiB\"\n[[machine.zone]]\nname = \"DMA\"\npresent = \"257 pages\"";
    let file = SOUND.replace("memory = \"1GiB\"", zones);
    expect_in(&file, 5, 11, "\"257 pages\"", "zone DMA is too large", "it ends at 16MiB");
    // 2^29 pages.
    let file = SOUND.replace("\"1GiB\"", "\"33TiB\"\npage_size = \"64KiB\"");
    let message = "33TiB is more memory than a simulated machine can have";
    expect_in(&file, 2, 10, "\"33TiB\"", message, "all nodes together have at most 32TiB");
    let more = "[sysctl]\nvm.dirty_bytes = 8192\n";
    sound(&format!("{SOUND}{more}"));
    let file = SOUND.replace("[machine]", "[machine]\npage_size = \"16KiB\"");
    let message = "vm.dirty_bytes refuses `8192` (EINVAL)";
    expect_in(&format!("{file}{more}"), 12, 18, "8192", message, "it takes 32768 or more");
}

#[test]
fn a_price_is_at_most_a_second() {
    let stated = |price: &str| format!("[machine.costs]\nfault = \"{price}\"\n");
    let scenario = sound(&format!("{SOUND}{}", stated("1s")));
    let fault = scenario.variants[0].setup.machine.costs.get(crate::costs::Price::Fault);
    assert_eq!(fault, Some(1_000_000_000));
    let message = "the cost of one operation is more than 1s";
    let hint = "write the CPU time of one operation, such as \"500ns\"";
    expect(&stated("1001ms"), 2, 9, "\"1001ms\"", message, hint);
}
