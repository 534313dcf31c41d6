//! The memcg LRU of Linux 6.12: which group global reclaim takes from. Audits after every step.

use crate::world::TestWorld;
use pagetide_core::config::{Config, LruPolicy, MglruMemcgLru, MglruRules};
use pagetide_core::process::page_table::{Advice, Backing};
use pagetide_core::process::Machine;
use pagetide_core::stats::vmstat::Event;
use pagetide_core::units::PAGE_SIZE;

const PAGES: u64 = 300;

fn config(memcg_lru: MglruMemcgLru) -> Config {
    Config {
        lru: LruPolicy::Mglru,
        mglru: MglruRules::Linux612,
        mglru_memcg_lru: memcg_lru,
        ..Config::default()
    }
}

/// Pages that each group keeps of a file, after a reader in the root has taken `taken` pages.
fn left(config: Config, controls: &[&[(&str, &str)]], taken: u64) -> (TestWorld, Vec<usize>) {
    let mut world = TestWorld::of(16, 1, config, 1 << 14);
    let read = |world: &mut TestWorld, memcg, pages| {
        let mm = world.machine.create_mm(memcg).unwrap();
        let file = world.create_file(pages * PAGE_SIZE, true);
        let vma = world.map(mm, Backing::File(file), pages, Advice::Random);
        for page in 0..pages {
            world.access(mm, vma, page, false);
        }
        vma
    };
    let vmas: Vec<_> = controls
        .iter()
        .map(|controls| {
            let memcg = world.group(Machine::ROOT, controls);
            read(&mut world, memcg, PAGES)
        })
        .collect();
    read(&mut world, Machine::ROOT, taken);
    let left = vmas
        .iter()
        .map(|&vma| (0..PAGES).filter(|&page| world.machine.is_resident(vma, page)).count())
        .collect();
    (world, left)
}

#[test]
fn walks_begin_anywhere() {
    let by_tree = left(config(MglruMemcgLru::Off), &[&[] as &[_]; 12], 700).1;
    let by_list = left(config(MglruMemcgLru::On), &[&[] as &[_]; 12], 700).1;
    assert!(by_tree.is_sorted() && by_tree[0] < by_tree[11], "{by_tree:?}");
    assert!(!by_list.is_sorted(), "{by_list:?}");
}

#[test]
fn protection_holds_while_others_have_pages() {
    let mut controls = [&[] as &[(&str, &str)]; 12];
    controls[3] = &[("memory.min", "2M")];
    controls[7] = &[("memory.low", "2M")];
    let (world, left) = left(config(MglruMemcgLru::On), &controls, 6000);
    assert_eq!(left[3], PAGES as usize);
    let stolen = world.count(Event::PgstealKswapd) + world.count(Event::PgstealDirect);
    assert!(stolen > 5000, "{stolen}");
    let others = left.iter().sum::<usize>() - left[3] - left[7];
    assert!(left[7] > 2 * others / 10, "{left:?}");
}

#[test]
fn protection_holds_with_generations_off() {
    let mut controls = [&[] as &[(&str, &str)]; 12];
    controls[3] = &[("memory.min", "2M")];
    let config = Config { lru_gen_enabled: 0, ..config(MglruMemcgLru::On) };
    let (_, left) = left(config, &controls, 6000);
    assert_eq!(left[3], PAGES as usize, "{left:?}");
}
