//! Page policies from outside the core. Audits after every step.

use crate::world::TestWorld;
use pagetide_core::ageing::page_policy::{
    Arrival, PageKey, PageLists, PagePlace, PagePolicy, PageVisit,
};
use pagetide_core::config::{Config, LruPolicy, Thp};
use pagetide_core::process::page_table::{Advice, Backing, VmaId};
use pagetide_core::process::{Machine, MmId, ProcessCall};
use pagetide_core::reclaim::plugin::{Plugins, PolicyFault};
use pagetide_core::stats::vmstat::Event;
use pagetide_core::units::digest::Digest;
use pagetide_core::units::{MemcgId, NodeId, Pfn, PAGE_SIZE};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

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

/// Answers that a policy has got, for the test that chose it.
type Seen<T> = Arc<Mutex<Vec<T>>>;

/// Looks for used pages at each request, and takes the others from the tail.
#[derive(Clone, Debug)]
struct Watcher {
    /// Looks around each page at the tail. Else walks over all page tables.
    around: bool,
    /// The page that was asked about, and the used ones.
    used: Seen<(Pfn, Vec<Pfn>)>,
    arrivals: Seen<(PageKey, Arrival)>,
}

impl Watcher {
    fn new(around: bool) -> Watcher {
        Watcher { around, used: Seen::default(), arrivals: Seen::default() }
    }

    fn keep(&self, page: Pfn, used: Vec<Pfn>) {
        self.used.lock().unwrap().push((page, used));
    }
}

impl PagePolicy for Watcher {
    fn nr_lists(&self) -> usize {
        1
    }

    fn added(&mut self, page: &mut PageVisit<'_>, arrival: Arrival) -> PagePlace {
        self.arrivals.lock().unwrap().push((page.key, arrival));
        PagePlace::head(0)
    }

    fn evict(&mut self, lists: &mut PageLists<'_>) {
        if !self.around {
            self.keep(Pfn::NONE, lists.walk_tables(true));
        }
        while let Some(page) = lists.tail(0).filter(|_| !lists.is_done()) {
            if self.around {
                self.keep(page, lists.look_around(page));
            }
            if !lists.take(page) {
                lists.move_to(page, PagePlace::head(0));
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
        for page in lists.walk_tables(self.draw(2) == 0) {
            assert!(lists.list_of(page).is_some(), "the page is on these lists");
            lists.set_note(page, 7);
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
            match self.draw(5) {
                0 => lists.move_to(neighbour, self.place()),
                1 => {
                    for used in lists.look_around(page) {
                        lists.move_to(used, self.place());
                    }
                }
                2 => {
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

/// Frame of a page in memory.
fn frame(world: &TestWorld, vma: VmaId, page: u64) -> Pfn {
    world.machine.vma(vma).unwrap().ptes[page as usize].pfn()
}

/// Lets reclaim ask the policy of a group for a few pages.
fn ask(world: &mut TestWorld, mm: MmId, memcg: MemcgId) {
    world.write_group(mm, memcg, "memory.reclaim", "16K");
}

#[test]
fn a_walk_over_tables_finds_the_pages_used_since_the_last_one() {
    let watcher = Watcher::new(false);
    let seen = watcher.used.clone();
    let mut world = world(Config::default(), watcher).unaudited();
    let memcg = world.group(Machine::ROOT, &[]);
    let first = world.task(memcg, 700);
    let other = world.machine.create_mm(memcg).unwrap();
    let of_other = world.create_file(600 * PAGE_SIZE, true);
    let data = world.map(other, Backing::File(of_other), 600, Advice::Normal);
    // A walk leaves out tasks of other groups, tasks with few pages, and mappings with advice.
    let outside = world.heap(500, Advice::Normal);
    let few = world.task(memcg, 40);
    let advised = (other, file(&mut world, other, 100));
    let tasks = [(first, 700), ((other, data), 600), (outside, 500), (few, 40), (advised, 100)];
    for (task, pages) in tasks {
        world.fill(task, 0..pages);
    }
    ask(&mut world, first.0, memcg);
    let mut random = Random(1);
    for round in 0..20 {
        seen.lock().unwrap().clear();
        let mut used = BTreeSet::new();
        for _ in 0..random.draw(300) {
            let heap = random.draw(700);
            let page = random.draw(600);
            world.access(first.0, first.1, heap, random.draw(2) == 0);
            world.access(other, data, page, false);
            world.access(outside.0, outside.1, random.draw(500), false);
            world.access(few.0, few.1, random.draw(40), false);
            world.access(advised.0, advised.1, random.draw(100), false);
            used.extend([(first.1, heap), (data, page)]);
        }
        let wanted: BTreeSet<Pfn> = used
            .into_iter()
            .filter(|&(vma, page)| world.machine.is_resident(vma, page))
            .map(|(vma, page)| frame(&world, vma, page))
            .collect();
        ask(&mut world, first.0, memcg);
        world.machine.audit().unwrap();
        let walks = std::mem::take(&mut *seen.lock().unwrap());
        assert_eq!(BTreeSet::from_iter(walks[0].1.iter().copied()), wanted, "round {round}");
        let again = walks[1..].iter().all(|(_, used)| used.is_empty());
        assert!(again, "round {round}: a walk has cleared the used bits");
    }
}

#[test]
fn a_look_around_finds_the_used_neighbours_of_a_used_page() {
    let watcher = Watcher::new(true);
    let seen = watcher.used.clone();
    let mut world = world(Config::default(), watcher).unaudited();
    let memcg = world.group(Machine::ROOT, &[]);
    let (mm, heap) = world.task(memcg, 300);
    world.fill((mm, heap), 0..300);
    let mut random = Random(1);
    let mut nr_found = 0;
    // Each page was just used.
    let mut used: BTreeSet<u64> = (0..300).collect();
    for _ in 0..20 {
        seen.lock().unwrap().clear();
        let frames: Vec<_> = (0..300)
            .filter(|&page| world.machine.is_resident(heap, page))
            .map(|page| (frame(&world, heap, page), page))
            .collect();
        ask(&mut world, mm, memcg);
        world.machine.audit().unwrap();
        for (asked, found) in seen.lock().unwrap().drain(..) {
            let Some(&(_, at)) = frames.iter().find(|&&(frame, _)| frame == asked) else {
                assert_eq!(found, [], "the page is being swapped out");
                continue;
            };
            let mut wanted = Vec::new();
            if used.remove(&at) {
                wanted.push(at);
                // 64 entries with this one in the middle, as far as the mapping goes.
                let start = at.saturating_sub(32).min(300 - 64);
                wanted.extend((start..start + 64).filter(|page| used.remove(page)));
            }
            let of = |&page: &u64| frames.iter().find(|&&(_, it)| it == page).unwrap().0;
            assert_eq!(found, wanted.iter().map(of).collect::<Vec<_>>(), "around {at}");
            nr_found += found.len();
        }
        for _ in 0..random.draw(100) {
            let page = random.draw(300);
            world.access(mm, heap, page, true);
            used.insert(page);
        }
    }
    assert!(nr_found > 500, "{nr_found}");
}

#[test]
fn a_policy_learns_which_pages_a_fault_has_brought() {
    let watcher = Watcher::new(false);
    let seen = watcher.arrivals.clone();
    let mut world = world(Config::default(), watcher);
    let memcg = world.group(Machine::ROOT, &[]);
    let mm = world.machine.create_mm(memcg).unwrap();
    let arrivals = |world: &mut TestWorld| {
        ask(world, mm, memcg);
        let arrived = std::mem::take(&mut *seen.lock().unwrap()).into_iter();
        let new = arrived.filter_map(|(key, arrival)| match arrival {
            Arrival::New { fault, .. } => Some((key.is_file, fault)),
            Arrival::Back { .. } => None,
        });
        new.collect::<BTreeSet<_>>()
    };
    let heap = world.map(mm, Backing::Anon, 20, Advice::Normal);
    world.fill((mm, heap), 0..20);
    let file = world.create_file(60 * PAGE_SIZE, true);
    assert_eq!(arrivals(&mut world), BTreeSet::from([(false, true)]));
    let data = world.map(mm, Backing::File(file), 60, Advice::Normal);
    world.access(mm, data, 0, false);
    assert_eq!(arrivals(&mut world), BTreeSet::from([(true, true)]));
    let file = world.create_file(60 * PAGE_SIZE, true);
    let data = world.map(mm, Backing::File(file), 60, Advice::Random);
    world.access(mm, data, 0, false);
    assert_eq!(arrivals(&mut world), BTreeSet::from([(true, false)]), "random advice");
    let file = world.create_file(60 * PAGE_SIZE, true);
    world.drive(&mut ProcessCall::read(mm, NodeId(0), file, 0, PAGE_SIZE, Default::default()));
    assert_eq!(arrivals(&mut world), BTreeSet::from([(true, false)]), "read()");
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
