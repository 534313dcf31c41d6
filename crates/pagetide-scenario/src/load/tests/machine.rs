//! Machines and zones that cannot be.

use super::*;

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
        "more memory than a machine can have here: 4TiB",
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
        "nothing is left: 1GiB of 1GiB",
        "some memory must be left for the system",
    );
    expect_in(
        &machine("memory = \"1GiB\"\ncpus = 0"),
        3,
        8,
        "0",
        "0 is out of range",
        "this is an integer, from 1 to 1024",
    );
    let nodes = "memory = \"1GiB\"\n[[machine.node]]\nmemory = \"2TiB\"";
    expect_in(
        &machine(nodes),
        2,
        10,
        "\"1GiB\"",
        "this machine has nodes of its own",
        "with [[machine.node]], write it in each node",
    );
    let nodes = "[[machine.node]]\nmemory = \"2TiB\"\n[[machine.node]]\nmemory = \"1GiB\"";
    expect_in(
        &machine(nodes),
        5,
        10,
        "\"1GiB\"",
        "more memory than a machine can have here: 1GiB",
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
        "free <= managed <= present",
    );
    expect_in(
        &zones("present = \"9 pages\"\nfree = \"10 pages\""),
        5,
        8,
        "\"10 pages\"",
        "more free than managed",
        "free <= managed <= present",
    );
    expect_in(
        &zones("free = 0"),
        2,
        1,
        "[[machine.zone]]",
        "the zone has no `present`",
        "add present = \"4096 pages\"",
    );
    let second = "present = \"9 pages\"\n[[machine.zone]]\npresent = \"9 pages\"\nname = ";
    expect_in(
        &zones(&format!("{second}\"DMA\"")),
        7,
        8,
        "\"DMA\"",
        "zones out of order",
        "write DMA, DMA32, Normal, Movable in this order",
    );
    expect_in(
        &zones(&format!("{second}\"DMA32\"")),
        7,
        8,
        "\"DMA32\"",
        "the zone `DMA32` is named twice",
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
