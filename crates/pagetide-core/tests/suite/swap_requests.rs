//! Memory of requests to swap disks.

use crate::world::TestWorld;
use pagetide_core::config::{Config, LruPolicy};
use pagetide_core::frames::node::NodeSpec;
use pagetide_core::process::page_table::Advice;
use pagetide_core::process::Machine;
use pagetide_core::swap::compressor::Compressor;
use pagetide_core::swap::zram::ZramOptions;
use pagetide_core::swap::SwapOptions;

const ZRAM: ZramOptions =
    ZramOptions { compressor: Compressor::LzoRle, mem_limit: None, backing_pages: None };

#[test]
fn a_request_to_a_swap_disk_holds_a_bio_until_it_ends() {
    let config = Config { lru: LruPolicy::Linux612, ..Config::default() };
    let mut world = TestWorld::of(32, 1, config, 20_000).unaudited();
    let task = world.heap(12_000, Advice::Random);
    let nr_bios = |world: &TestWorld| {
        let slabs = &world.machine.slabs;
        let cache = slabs.kmem_cache(slabs.find_cache("bio-192").unwrap()).unwrap();
        (cache.nr_in_use(), cache.nr_pages)
    };
    let mut most = 0;
    for page in (0..12_000).chain(0..2000) {
        world.fill(task, [page]);
        let (bios, pages) = nr_bios(&world);
        assert_eq!(bios, world.inflight.len() as u64);
        assert!(pages >= bios.div_ceil(16), "{bios} bios in {pages} pages");
        most = most.max(bios);
    }
    assert!(most > 100, "{most}");
    world.settle_and_audit();
    assert_eq!(nr_bios(&world).0, 0);
    for (lru, zram) in [(LruPolicy::Linux61, false), (LruPolicy::Linux612, true)] {
        let mut machine = Machine::new(
            &[NodeSpec::x86_64(32 << 20, 0, 0)],
            1,
            Config { lru, ..Config::default() },
        )
        .unwrap();
        let area = SwapOptions::new(1000);
        machine.swapon(if zram { area.zram(ZRAM) } else { area });
        assert!(machine.slabs.find_cache("bio-192").is_none(), "{lru:?}");
    }
}
