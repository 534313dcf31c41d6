//! The multi-generational LRU. Audits after every step. (The first 15 pages of a CPU's batch are on
//! no list yet, so tests that count pages make whole batches.)

use crate::world::TestWorld;
use pagetide_core::ageing::generations::command::{LruGenAction, LruGenCommand, LruGenWrite};
use pagetide_core::config::{
    Config, LruPolicy, MglruBloomFilter, MglruLookAround, MglruPageTableWalks, MglruRules, Thp,
};
use pagetide_core::interface::outcome::Outcome;
use pagetide_core::process::page_table::{Advice, Backing, VmaId};
use pagetide_core::process::{Machine, MmId, ProcessCall};
use pagetide_core::stats::vmstat::Event;
use pagetide_core::units::errno::Errno;
use pagetide_core::units::{FileId, NodeId, PAGE_SIZE};

fn config() -> Config {
    Config { lru: LruPolicy::Mglru, ..Config::default() }
}

fn world(config: Config) -> TestWorld {
    TestWorld::of(16, 1, config, 1 << 14)
}

fn resident(world: &TestWorld, vma: VmaId) -> usize {
    let len = world.machine.vma(vma).unwrap().len();
    (0..len).filter(|&page| world.machine.is_resident(vma, page)).count()
}

/// Anonymous and file pages of the root's generations, oldest first.
fn sizes(world: &TestWorld) -> Vec<[u64; 2]> {
    let text = world.machine.lru_gen(world.now);
    let of_root = text.lines().skip(2).take_while(|line| !line.starts_with("memcg"));
    let number = |line: &str, at: usize| line.split_whitespace().nth(at).unwrap().parse().unwrap();
    of_root.map(|line| [number(line, 2), number(line, 3)]).collect()
}

fn read_all(world: &mut TestWorld, mm: MmId, vma: VmaId, pages: std::ops::Range<u64>) {
    for page in pages {
        world.access(mm, vma, page, false);
    }
}

fn read_file(world: &mut TestWorld, mm: MmId, file: FileId, first: u64, nr: u64) {
    for page in first..first + nr {
        let (from, len) = (page * PAGE_SIZE, PAGE_SIZE);
        world.drive(&mut ProcessCall::read(mm, NodeId(0), file, from, len, Default::default()));
    }
}

fn file(world: &mut TestWorld, mm: MmId, pages: u64, advice: Advice) -> VmaId {
    let file = world.create_file(pages * PAGE_SIZE, true);
    world.map(mm, Backing::File(file), pages, advice)
}

#[test]
fn pages_of_a_fault_are_young_and_read_ones_are_old() {
    let mut world = world(config());
    let mm = world.machine.create_mm(Machine::ROOT).unwrap();
    let mapped = file(&mut world, mm, 75, Advice::Normal);
    read_all(&mut world, mm, mapped, 0..75);
    let random = file(&mut world, mm, 30, Advice::Random);
    read_all(&mut world, mm, random, 0..30);
    let found = sizes(&world);
    assert_eq!(found.len(), 4);
    assert_eq!(found[3], [0, 75], "faults make pages young");
    assert_eq!(found[1], [0, 30], "faults with random advice do not");
}

#[test]
fn a_hot_set_survives_a_scan() {
    for config in [config(), Config { mglru: MglruRules::Linux612, ..config() }] {
        let mut world = world(config).unaudited();
        let mm = world.machine.create_mm(Machine::ROOT).unwrap();
        let hot = file(&mut world, mm, 1000, Advice::Normal);
        let cold = file(&mut world, mm, 20_000, Advice::Random);
        read_all(&mut world, mm, hot, 0..1000);
        for page in 0..20_000 {
            world.access(mm, cold, page, false);
            world.access(mm, hot, page % 1000, false);
            if page % 100 == 0 {
                world.machine.audit().unwrap();
            }
        }
        assert!(world.count(Event::PgstealKswapd) + world.count(Event::PgstealDirect) > 10_000);
        assert!(resident(&world, hot) > 980, "{}", resident(&world, hot));
    }
}

#[test]
fn eviction_finds_used_neighbours() {
    let run = |look_around| {
        let mut world = world(Config {
            mglru_look_around: look_around,
            mglru_page_table_walks: MglruPageTableWalks::Off,
            ..config()
        });
        let mm = world.machine.create_mm(Machine::ROOT).unwrap();
        let data = file(&mut world, mm, 6000, Advice::Normal);
        for page in (0..6000).cycle().take(12_000) {
            world.access(mm, data, page, false);
        }
        world.machine.take_work()
    };
    let (with, without) = (run(MglruLookAround::On), run(MglruLookAround::Off));
    assert!(with.ptes_walked > 0 && without.ptes_walked == 0);
    assert!(
        with.rmap_walks < without.rmap_walks,
        "{} with, {} without",
        with.rmap_walks,
        without.rmap_walks
    );
}

#[test]
fn reclaim_for_a_group_activates_used_neighbours_since_6_3() {
    let activated = |mglru| {
        let mglru_page_table_walks = MglruPageTableWalks::Off;
        let mut world = world(Config { mglru, mglru_page_table_walks, ..config() }).unaudited();
        let group = world.machine.create_memcg("box".into(), Machine::ROOT).unwrap();
        let mm = world.machine.create_mm(group).unwrap();
        world.write_group(mm, group, "memory.max", "8M");
        let data = file(&mut world, mm, 6000, Advice::Normal);
        for page in 0..20_000u64 {
            // The first thousand pages stay in use.
            let page = if page % 2 == 0 { page / 2 % 6000 } else { page / 2 % 1000 };
            world.access(mm, data, page, false);
        }
        world.machine.audit().unwrap();
        world.count(Event::Pgactivate)
    };
    // With many used neighbours Linux 6.1 changes their generation without a count.
    let (linux61, linux612) = (activated(MglruRules::Linux61), activated(MglruRules::Linux612));
    assert!(linux612 > 1000 && linux61 < linux612 / 2, "{linux61}, {linux612}");
}

/// Since 6.2 memory.min does not protect a group from reclaim for itself.
#[test]
fn a_group_whose_minimum_is_its_maximum_reclaims() {
    let mut world = world(Config { mglru: MglruRules::Linux612, ..config() });
    let group = world.group(Machine::ROOT, &[("memory.min", "2M"), ("memory.max", "2M")]);
    let mm = world.machine.create_mm(group).unwrap();
    let data = file(&mut world, mm, 1000, Advice::Normal);
    read_all(&mut world, mm, data, 0..400);
    let root = world.machine.create_mm(Machine::ROOT).unwrap();
    let other = file(&mut world, root, 6000, Advice::Normal);
    read_all(&mut world, root, other, 0..6000);
    assert!(world.count(Event::PgstealKswapd) > 0, "kswapd has calculated the protection");
    assert_eq!(world.machine.memcgs()[group].events.get(Event::PgstealKswapd), 0);
    read_all(&mut world, mm, data, 400..1000);
    assert!(!world.machine.is_exited(mm));
    assert!(world.machine.memcgs()[group].events.get(Event::PgstealDirect) > 400);
}

/// Global reclaim spares a group that reclaim for the group has just aged.
#[test]
fn reclaim_for_a_group_makes_it_young_among_groups() {
    for seed in 0..8 {
        // Smaller groups would have nothing to scan at the first priority.
        let rules = Config { mglru: MglruRules::Linux612, ..config() };
        let mut world = TestWorld::of(64, 1, rules, 1 << 14).unaudited();
        world.machine.set_memcg_lru_seed(seed);
        let groups = [(); 2].map(|()| world.group(Machine::ROOT, &[]));
        // Pages of random reads are old enough to be taken without ageing.
        let [mm, _] = [Advice::Normal, Advice::Random].map(|advice| {
            let group = groups[usize::from(advice == Advice::Random)];
            let mm = world.machine.create_mm(group).unwrap();
            let data = file(&mut world, mm, 4500, advice);
            read_all(&mut world, mm, data, 0..4500);
            mm
        });
        world.write_group(mm, groups[0], "memory.reclaim", "400K");
        let root = world.machine.create_mm(Machine::ROOT).unwrap();
        let other = file(&mut world, root, 10_000, Advice::Normal);
        let stolen = |world: &TestWorld, event| {
            groups.map(|group| world.machine.memcgs()[group].events.get(event))
        };
        for page in 0..10_000 {
            if stolen(&world, Event::PgstealKswapd) != [0, 0] {
                break;
            }
            world.access(root, other, page, false);
        }
        let [aged, not_aged] = stolen(&world, Event::PgstealKswapd);
        assert!(aged == 0 && not_aged > 0, "seed {seed}: {aged}, {not_aged}");
    }
}

#[test]
fn refaults_protect_pages_that_are_read_often() {
    // 200 000 reads: an audit each round.
    let mut world = world(config()).unaudited();
    let mm = world.machine.create_mm(Machine::ROOT).unwrap();
    let often = world.create_file(500 * PAGE_SIZE, true);
    let once = world.create_file(40_000 * PAGE_SIZE, true);
    for round in 0..80 {
        for _ in 0..4 {
            read_file(&mut world, mm, often, 0, 500);
        }
        read_file(&mut world, mm, once, round * 500, 500);
        world.machine.audit().unwrap();
    }
    // Each page that is read often is protected once; then a newer generation has it.
    assert_eq!(world.count(Event::WorkingsetActivateFile), 500);
    assert!(world.count(Event::PgscanFile) > 30_000);
}

#[test]
fn a_switch_keeps_every_page() {
    let mut world = world(config());
    let (mm, heap) = world.heap(600, Advice::Normal);
    for page in 0..600 {
        world.access(mm, heap, page, true);
    }
    let data = file(&mut world, mm, 1200, Advice::Normal);
    read_all(&mut world, mm, data, 0..1200);
    let total = |world: &TestWorld| {
        let sizes = world.machine.mem.global_lru_sizes();
        sizes.anon() + sizes.file()
    };
    let before = total(&world);
    for (bits, generations) in [("0", 0), ("7", 4), ("1", 4), ("0", 0)] {
        world.machine.write_control("lru_gen.enabled", bits).unwrap().discard();
        world.machine.audit().unwrap();
        assert_eq!(total(&world), before);
        assert!(sizes(&world).len() <= generations, "{bits}");
        read_all(&mut world, mm, data, 0..100);
    }
}

#[test]
fn a_time_to_live_that_cannot_be_met_kills() {
    let mut world = world(config());
    world.machine.write_control("lru_gen.min_ttl_ms", "1000000").unwrap().discard();
    let (mm, heap) = world.heap(8000, Advice::Normal);
    for page in 0..8000 {
        if world.machine.is_exited(mm) {
            break;
        }
        world.access(mm, heap, page, true);
    }
    assert!(world.machine.is_exited(mm));
    assert_eq!(world.count(Event::OomKill), 1);
    // No request failed: kswapd asked.
    let request = world.machine.mem.last_oom().unwrap();
    assert!(request.for_min_ttl && request.scope == Machine::ROOT);
}

#[test]
fn memory_older_than_the_time_to_live_is_taken() {
    let mut world = world(config()).with_working_disk();
    world.disk_speed = 64;
    world.machine.write_control("lru_gen.min_ttl_ms", "1000").unwrap().discard();
    let (mm, heap) = world.heap(8000, Advice::Normal);
    // Until the first shortage: such a small machine soon uses all its memory within the time.
    for page in 0..8000 {
        if world.count(Event::PgstealKswapd) > 0 {
            break;
        }
        world.now += 10_000_000;
        world.access(mm, heap, page, true);
    }
    assert!(world.count(Event::PgstealKswapd) > 0);
    assert!(!world.machine.is_exited(mm));
    assert_eq!(world.count(Event::OomKill), 0);
}

#[test]
fn walks_find_huge_pages_in_use() {
    for filter in [MglruBloomFilter::On, MglruBloomFilter::Off] {
        let mut world = world(Config { thp: Thp::Always, mglru_bloom_filter: filter, ..config() });
        let (mm, hot) = world.heap(1024, Advice::Huge);
        world.access(mm, hot, 0, true);
        world.access(mm, hot, 512, true);
        let cold = file(&mut world, mm, 12_000, Advice::Random);
        for page in 0..12_000 {
            world.access(mm, cold, page, false);
            world.access(mm, hot, page % 2 * 512, false);
        }
        assert_eq!(resident(&world, hot), 1024, "{filter:?}");
    }
}

/// Rounds of `nr` reclaimers, which take turns, until a group of so many tasks has a new generation.
fn rounds_to_age(tasks: usize, nr: usize) -> usize {
    let mut world = world(Config { mglru: MglruRules::Linux612, ..config() });
    let memcg = world.group(Machine::ROOT, &[]);
    let shared = world.create_file(128 * PAGE_SIZE, true);
    for _ in 0..tasks {
        let mm = world.machine.create_mm(memcg).unwrap();
        let vma = world.map(mm, Backing::File(shared), 128, Advice::Normal);
        read_all(&mut world, mm, vma, 0..128);
    }
    let youngest = |world: &TestWorld| -> u64 {
        let text = world.machine.lru_gen(world.now);
        text.lines().last().unwrap().split_whitespace().next().unwrap().parse().unwrap()
    };
    let before = youngest(&world);
    let mut calls: Vec<ProcessCall> = (0..nr)
        .map(|_| {
            let mm = world.machine.create_mm(Machine::ROOT).unwrap();
            let write = world.machine.write_group_control(memcg, "memory.reclaim", "400K");
            let (write, effects) = write.unwrap();
            effects.discard();
            ProcessCall::group_write(mm, NodeId(0), write.unwrap())
        })
        .collect();
    for rounds in 1..1000 {
        for call in &mut calls {
            world.step(call);
            let now = youngest(&world);
            assert!(now <= before + 1, "two generations for one walk");
            if now > before {
                return rounds;
            }
        }
    }
    panic!("no new generation");
}

#[test]
fn reclaimers_share_a_walk() {
    let rounds = |tasks| [1, 2].map(|nr| rounds_to_age(tasks, nr));
    let ([alone, two], [alone_of_8, two_of_8]) = (rounds(4), rounds(8));
    assert_eq!(alone_of_8, alone + 4, "a step for each address space");
    assert_eq!(two_of_8, two + 2, "each of two takes every other address space");
}

/// Writes commands to `lru_gen`.
fn write_lru_gen(world: &mut TestWorld, mm: MmId, text: &str) -> Outcome {
    world.drive(&mut ProcessCall::lru_gen(mm, NodeId(0), LruGenWrite::read(text).unwrap()))
}

#[test]
fn commands_age_and_evict() {
    let mut world = world(config());
    let mm = world.machine.create_mm(Machine::ROOT).unwrap();
    let hot = file(&mut world, mm, 75, Advice::Normal);
    let cold = file(&mut world, mm, 1500, Advice::Normal);
    read_all(&mut world, mm, hot, 0..75);
    read_all(&mut world, mm, cold, 0..1500);
    // The first walk finds everything in use.
    for age in ["+1 0 3", "+1 0 4", "+1 0 5"] {
        read_all(&mut world, mm, hot, 0..75);
        assert_eq!(write_lru_gen(&mut world, mm, age), Outcome::Minor);
    }
    assert_eq!(sizes(&world).len(), 4, "the oldest ones have ended");
    // A limited eviction stops at a batch.
    assert_eq!(write_lru_gen(&mut world, mm, "-1 0 4 60 100"), Outcome::Minor);
    let left = resident(&world, cold);
    assert!((1300..=1400).contains(&left), "{left}");
    assert_eq!(write_lru_gen(&mut world, mm, "-1 0 3,-1 0 4 0"), Outcome::Minor);
    assert_eq!(resident(&world, cold), 0);
    assert_eq!(resident(&world, hot), 75, "walks have found it in use");
}

#[test]
fn commands_fail_as_in_the_kernel() {
    let mut world = world(config());
    let mm = world.machine.create_mm(Machine::ROOT).unwrap();
    for (text, errno) in [
        ("+2 0 3", Errno::Einval),
        ("+0 0 3", Errno::Einval),
        ("+99999 0 3", Errno::Einval),
        ("+1 1 3", Errno::Einval),
        ("+1 0 4", Errno::Einval),
        ("+1 0 3 0 0", Errno::Erange),
        ("-1 0 2", Errno::Einval),
        ("-1 0 18446744073709551615", Errno::Einval),
    ] {
        assert_eq!(write_lru_gen(&mut world, mm, text), Outcome::Refused(errno), "{text}");
    }
    let action = LruGenAction::Evict { swappiness: Some(201), pages: 1 };
    let write = LruGenWrite(vec![LruGenCommand { memcg: 1, node: 0, seq: 0, action }]);
    let outcome = world.drive(&mut ProcessCall::lru_gen(mm, NodeId(0), write));
    assert_eq!(outcome, Outcome::Refused(Errno::Einval));
    // A generation that has aged already, and one that has ended, need nothing.
    assert_eq!(write_lru_gen(&mut world, mm, "+1 0 2,-1 0 0"), Outcome::Minor);
    world.machine.write_control("lru_gen.enabled", "0").unwrap().discard();
    assert_eq!(write_lru_gen(&mut world, mm, "+1 0 3"), Outcome::Refused(Errno::Einval));
}
