//! Page policies from outside the core. Audits after every step.

use crate::world::TestWorld;
use pagetide_core::ageing::page_policy::{Arrival, PageLists, PagePlace, PagePolicy, PageVisit};
use pagetide_core::config::{Config, LruPolicy, Thp};
use pagetide_core::process::page_table::{Advice, Backing, VmaId};
use pagetide_core::process::{Machine, MmId};
use pagetide_core::reclaim::plugin::{Plugins, PolicyFault};
use pagetide_core::stats::vmstat::Event;
use pagetide_core::units::digest::Digest;
use pagetide_core::units::{Pfn, PAGE_SIZE};

/// Evicts in the order of arrival; notes how often a page came back.
#[derive(Clone, Debug)]
struct Fifo;

impl PagePolicy for Fifo {
    fn nr_lists(&self) -> usize {
        1
    }

    fn added(&mut self, page: &mut PageVisit<'_>, _: Arrival) -> PagePlace {
        *page.note += 1;
        PagePlace::head(0)
    }

    fn evict(&mut self, lists: &mut PageLists<'_>) {
        while let Some(page) = lists.tail(0).filter(|_| !lists.is_done()) {
            if !lists.take(page) {
                lists.move_to(page, PagePlace::head(0));
            }
        }
    }

    fn digest(&self, _: &mut Digest) {}
}

/// Evicts the page that was used last. Uses by read() bring a page to the active list.
#[derive(Clone, Debug)]
struct MostRecent;

impl PagePolicy for MostRecent {
    fn nr_lists(&self) -> usize {
        2
    }

    fn is_active(&self, list: usize) -> bool {
        list == 1
    }

    fn added(&mut self, _: &mut PageVisit<'_>, _: Arrival) -> PagePlace {
        PagePlace::head(0)
    }

    fn used(&mut self, _: &mut PageVisit<'_>) -> Option<PagePlace> {
        Some(PagePlace::head(1))
    }

    fn evict(&mut self, lists: &mut PageLists<'_>) {
        for list in [0, 1] {
            while let Some(page) = lists.head(list).filter(|_| !lists.is_done()) {
                if !lists.take(page) {
                    lists.move_to(page, PagePlace::tail(list));
                }
            }
        }
    }

    fn digest(&self, _: &mut Digest) {}
}

/// Offers nothing.
#[derive(Clone, Debug)]
struct Hoarder;

impl PagePolicy for Hoarder {
    fn nr_lists(&self) -> usize {
        0
    }

    fn added(&mut self, _: &mut PageVisit<'_>, _: Arrival) -> PagePlace {
        PagePlace::head(17)
    }

    fn evict(&mut self, _: &mut PageLists<'_>) {}

    fn digest(&self, _: &mut Digest) {}
}

/// Acts at random, and asks for frames that it does not have.
#[derive(Clone, Debug)]
struct Random(u64);

impl Random {
    fn draw(&mut self, end: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }

    fn place(&mut self) -> PagePlace {
        let list = self.draw(40) as usize;
        if self.draw(2) == 0 {
            PagePlace::head(list)
        } else {
            PagePlace::tail(list)
        }
    }
}

impl PagePolicy for Random {
    fn nr_lists(&self) -> usize {
        31
    }

    fn is_active(&self, list: usize) -> bool {
        list.is_multiple_of(3)
    }

    fn added(&mut self, page: &mut PageVisit<'_>, _: Arrival) -> PagePlace {
        *page.note = self.draw(100) as u32;
        self.place()
    }

    fn used(&mut self, page: &mut PageVisit<'_>) -> Option<PagePlace> {
        *page.note += 1;
        (self.draw(2) == 0).then(|| self.place())
    }

    fn age(&mut self, lists: &mut PageLists<'_>) {
        if let Some(page) = lists.tail(self.draw(31) as usize) {
            assert!(!lists.take(page), "ageing takes nothing");
            lists.move_to(page, self.place());
        }
    }

    fn evict(&mut self, lists: &mut PageLists<'_>) {
        for _ in 0..200 {
            let page = match self.draw(10) {
                // A frame that may belong to another group, or be free.
                0 => Some(Pfn(self.draw(5000) as u32)),
                _ => lists.tail(self.draw(33) as usize),
            };
            let Some(page) = page else { continue };
            let neighbour = lists.towards_head(page).unwrap_or(page);
            lists.set_note(neighbour, lists.note(page));
            match self.draw(4) {
                0 => lists.move_to(neighbour, self.place()),
                1 => {
                    lists.take(neighbour);
                    assert!(!lists.take(neighbour), "a page can be taken once");
                }
                _ => {
                    lists.take(page);
                }
            }
        }
    }

    fn digest(&self, digest: &mut Digest) {
        digest.write_u64(self.0);
    }
}

fn world(config: Config, policy: impl PagePolicy + Clone + 'static) -> TestWorld {
    let mut world = TestWorld::of(16, 1, config, 1 << 14);
    let chosen = Plugins::new().pages("it", policy).choose_pages(Some("it")).unwrap();
    world.machine.use_page_policy(chosen).unwrap();
    world
}

fn file(world: &mut TestWorld, mm: MmId, pages: u64) -> VmaId {
    let file = world.create_file(pages * PAGE_SIZE, true);
    world.map(mm, Backing::File(file), pages, Advice::Random)
}

fn resident(world: &TestWorld, vma: VmaId, pages: std::ops::Range<u64>) -> usize {
    pages.filter(|&page| world.machine.is_resident(vma, page)).count()
}

#[test]
fn pages_leave_in_the_order_of_a_policy() {
    for (first, policy) in [(true, false), (false, true)] {
        let mut world = match policy {
            false => world(Config::default(), Fifo),
            true => world(Config::default(), MostRecent),
        };
        let mm = world.machine.create_mm(Machine::ROOT).unwrap();
        let data = file(&mut world, mm, 12_000);
        for page in 0..12_000 {
            world.access(mm, data, page, false);
        }
        let early = resident(&world, data, 0..1000);
        let late = resident(&world, data, 11_000..12_000);
        assert_eq!(early == 0, first, "{early} early pages, {late} late ones");
        assert!(early + late >= 900, "{early} early pages, {late} late ones");
    }
}

#[test]
fn uses_of_a_mapping_bring_a_page_back() {
    let mut world = world(Config::default(), Fifo);
    let mm = world.machine.create_mm(Machine::ROOT).unwrap();
    let hot = file(&mut world, mm, 500);
    let cold = file(&mut world, mm, 12_000);
    for page in 0..12_000 {
        world.access(mm, hot, page % 500, false);
        world.access(mm, cold, page, false);
    }
    let kept = resident(&world, hot, 0..500);
    assert!(kept > 400, "{kept} of 500");
    assert!(world.count(Event::PgstealKswapd) > 5000);
}

#[test]
fn a_policy_that_offers_nothing_is_overruled() {
    let mut world = world(Config::default(), Hoarder);
    let mm = world.machine.create_mm(Machine::ROOT).unwrap();
    let data = file(&mut world, mm, 8000);
    (0..8000).for_each(|page| {
        world.access(mm, data, page, false);
    });
    assert_eq!(world.count(Event::OomKill), 0);
    let overruled = world.machine.plugin_errors();
    assert!(overruled.iter().any(|&(fault, times)| fault == PolicyFault::Overruled && times > 0));
}

#[test]
fn a_policy_is_overruled_behind_pages_that_cannot_be_taken() {
    // Without swap the heap at the tail cannot be taken.
    let mut world = TestWorld::of(16, 1, Config::default(), 0);
    let chosen = Plugins::new().pages("it", Hoarder).choose_pages(Some("it")).unwrap();
    world.machine.use_page_policy(chosen).unwrap();
    let (mm, heap) = world.heap(2000, Advice::Normal);
    (0..2000).for_each(|page| {
        world.access(mm, heap, page, true);
    });
    let data = file(&mut world, mm, 6000);
    (0..6000).for_each(|page| {
        world.access(mm, data, page, false);
    });
    assert_eq!(world.count(Event::OomKill), 0);
    assert_eq!(resident(&world, heap, 0..2000), 2000);
}

#[test]
fn a_random_policy_breaks_no_invariant() {
    for seed in 0..4 {
        let thp = if seed % 2 == 0 { Thp::Always } else { Thp::Never };
        let mut digests = Vec::new();
        for _ in 0..2 {
            let mut world = world(Config { thp, ..Config::default() }, Random(seed));
            let limit: &[(&str, &str)] = &[("memory.max", "6M")];
            let memcg = world.group(Machine::ROOT, limit);
            let (mm, heap) = world.heap(1500, Advice::Normal);
            let other = world.machine.create_mm(memcg).unwrap();
            let data = file(&mut world, other, 4000);
            let mut draw = Random(seed + 100);
            for _ in 0..2500 {
                let (page, write) = (draw.draw(1500), draw.draw(2) == 0);
                world.access(mm, heap, page, write);
                world.access(other, data, draw.draw(4000), false);
            }
            world.machine.use_page_policy(None).unwrap();
            world.settle_and_audit();
            digests.push(world.machine.digest());
        }
        assert_eq!(digests[0], digests[1], "seed {seed}");
    }
}

#[test]
fn generations_and_a_page_policy_exclude_each_other() {
    let mut world = world(Config::default(), Fifo);
    let error = world.machine.choose(LruPolicy::Mglru).map(|effects| effects.discard());
    assert!(error.unwrap_err().to_string().contains("a page policy orders pages"));
    let mut world = TestWorld::of(16, 1, Config { lru: LruPolicy::Mglru, ..Config::default() }, 0);
    let chosen = Plugins::new().pages("it", Fifo).choose_pages(Some("it")).unwrap();
    assert!(world.machine.use_page_policy(chosen).is_err());
}
