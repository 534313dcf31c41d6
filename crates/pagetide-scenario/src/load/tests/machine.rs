//! Impossible machines and zones.

use super::*;
use pagetide_core::units::page_size::PageSize;

#[test]
fn zones_have_free_lists() {
    let zones = |lines: &str| {
        let zone = format!("[[machine.zone]]\nname = \"DMA32\"\n{lines}");
        SOUND.replace("memory = \"1GiB\"", &zone)
    };
    assert_eq!(
        sound(&zones("present = \"9 pages\"")).variants[0].setup.machine.nodes[0].memory,
        9 * 4096
    );
    let lists = "present = \"512 pages\"\nmovable = { pageblocks = 1, blocks = [1, 0, 1, 1] }";
    let scenario = sound(&zones(lists));
    let zone = &scenario.variants[0].setup.machine.nodes[0].zones[0];
    assert_eq!((zone.free, zone.free_lists.unwrap().pageblocks), (13, [0, 1, 0, 0]));
    let zone = |lines| {
        let scenario = sound(&zones(lines));
        scenario.variants[0].setup.machine.nodes[0].zones[0].spec()
    };
    assert_eq!(zone("present = \"2048 pages\"\ncma = \"4MiB\"").cma, 1024);
    let lists = "present = \"2048 pages\"\ncma = { pageblocks = 2, blocks = [0, 0, 7] }";
    let spec = zone(lists);
    let lists = spec.free_lists.unwrap();
    assert_eq!((spec.free, spec.cma, lists.blocks[3][2], lists.pageblocks[3]), (28, 0, 7, 2));
}

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
fn a_price_is_at_most_a_second() {
    let stated = |price: &str| format!("[machine.costs]\nfault = \"{price}\"\n");
    let scenario = sound(&format!("{SOUND}{}", stated("1s")));
    let fault = scenario.variants[0].setup.machine.costs.get(crate::model::costs::Price::Fault);
    assert_eq!(fault, Some(1_000_000_000));
}
