//! The fields of memory.stat, /proc/vmstat, /proc/meminfo and /proc/zoneinfo against Linux 6.1: an
//! operation moves exactly the fields of its row, by the given amounts.
//!
//! Linux 6.1: `memory_stats` (mm/memcontrol.c), `vmstat_text` (mm/vmstat.c), fs/proc/meminfo.c. The
//! rows leave out fields that follow from no single operation: free memory and values computed from
//! it, and the slabs of the page cache's nodes.

use crate::world::{TestWorld, CPU};
use pagetide_core::config::Config;
use pagetide_core::frames::node::NodeSpec;
use pagetide_core::groups::memcg::ROOT;
use pagetide_core::interface::daemon::Daemon;
use pagetide_core::interface::effect::Step;
use pagetide_core::interface::outcome::Outcome;
use pagetide_core::process::page_table::{Advice, Backing, VmaId};
use pagetide_core::process::{Machine, MmId, ProcessCall};
use pagetide_core::slab::CacheSpec;
use pagetide_core::swap::SwapOptions;
use pagetide_core::units::{CacheId, FileId, MemcgId, NodeId, PAGE_SIZE};
use std::collections::BTreeMap;

const NODE: NodeId = NodeId(0);
const P: i64 = PAGE_SIZE as i64;
/// A page in kB.
const K: i64 = P / 1024;

/// One group with a task that has a heap and a mapped file of 60 pages each. A CPU's batch has 15
/// pages, so 30 or 60 pages leave none in it.
struct Scene {
    world: TestWorld,
    group: MemcgId,
    mm: MmId,
    heap: VmaId,
    data: FileId,
    map: VmaId,
    log: FileId,
    cache: CacheId,
}

impl Scene {
    fn new() -> Scene {
        let config = Config { fault_around_pages: 1, ..Config::default() };
        let node = NodeSpec::x86_64(64 << 20, 0, 0);
        let mut machine = Machine::new(&[node], 1, config).unwrap();
        machine.swapon(SwapOptions::new(4096));
        let cache = CacheSpec {
            name: "objects".into(),
            object_size: 1000,
            reclaimable: true,
            account: true,
        };
        let cache = machine.create_cache(cache).unwrap();
        let mut world = TestWorld::new(machine);
        let group = world.machine.create_memcg("g".into(), ROOT).unwrap();
        let mm = world.machine.create_mm(group).unwrap();
        let data = world.create_file(60 * PAGE_SIZE, false);
        let log = world.create_file(0, false);
        let map =
            |machine: &mut Machine, backing, advice| machine.mmap(mm, backing, 60, advice, false);
        let heap = map(&mut world.machine, Backing::Anon, Advice::Normal).unwrap();
        let map = map(&mut world.machine, Backing::File(data), Advice::Random).unwrap();
        Scene { world, group, mm, heap, data, map, log, cache }
    }

    fn access_all(&mut self, vma: VmaId, write: bool) {
        for page in 0..60 {
            self.world.access(self.mm, vma, page, write);
        }
    }

    fn call(&mut self, mut call: ProcessCall) {
        let outcome = self.world.drive(&mut call);
        assert!(matches!(outcome, Outcome::Minor | Outcome::Major), "{outcome:?}");
        self.world.settle();
    }

    fn read_file(&mut self) {
        self.call(ProcessCall::read(
            self.mm,
            NODE,
            self.data,
            0,
            60 * PAGE_SIZE,
            Default::default(),
        ));
    }

    fn begin_writeback(&mut self) {
        self.world.now += 60_000_000_000;
        let (step, effects) = self.world.machine.step_daemon(Daemon::Flusher, CPU, self.world.now);
        let todo = effects.collect();
        self.world.carry_out(todo);
        assert!(matches!(step, Step::Continue | Step::Done(_)));
        assert!(!self.world.inflight.is_empty(), "nothing is written");
    }

    /// All fields by source and name.
    fn fields(&self) -> BTreeMap<String, i64> {
        let machine = &self.world.machine;
        let mut fields = BTreeMap::new();
        let mut put = |source: &str, name: &str, value: &str| {
            fields.insert(format!("{source}.{name}"), value.parse().unwrap());
        };
        for line in machine.memory_stat(self.group).lines() {
            let (name, value) = line.split_once(' ').unwrap();
            put("stat", name, value);
        }
        for line in machine.proc_vmstat().lines() {
            let (name, value) = line.split_once(' ').unwrap();
            put("vm", name, value);
        }
        for line in machine.proc_meminfo().lines() {
            let (name, value) = line.split_once(':').unwrap();
            put("mem", name, value.trim().trim_end_matches(" kB"));
        }
        self.check_zoneinfo(&fields);
        fields
    }

    /// With one node, zoneinfo has the values of vmstat; zones add up.
    fn check_zoneinfo(&self, fields: &BTreeMap<String, i64>) {
        let mut sums: BTreeMap<&str, i64> = BTreeMap::new();
        let text = self.world.machine.proc_zoneinfo();
        for line in text.lines().filter_map(|line| line.strip_prefix("      ")) {
            let Some((name, value)) = line.rsplit_once(' ') else { continue };
            let name = name.trim();
            if let (true, Ok(value)) =
                (fields.contains_key(&format!("vm.{name}")), value.parse::<i64>())
            {
                *sums.entry(name).or_default() += value;
            }
        }
        assert!(sums.len() > 30, "{sums:?}");
        for (name, sum) in sums {
            assert_eq!(fields[&format!("vm.{name}")], sum, "{name} of zoneinfo");
        }
    }
}

/// Fields that follow from no single operation.
fn is_apart(field: &str) -> bool {
    const PARTS: [&str; 13] = [
        "free",
        "Free",
        "Available",
        "pgalloc",
        "threshold",
        "slab",
        "Slab",
        "SReclaimable",
        "SUnreclaim",
        "KReclaimable",
        "mm_vmscan",
        "allocstall",
        "extfrag",
    ];
    PARTS.iter().any(|part| field.contains(part)) && field != "mem.SwapFree"
}

struct Row {
    what: &'static str,
    run: fn(&mut Scene),
    moves: &'static [(&'static str, i64)],
}

/// Applied in this order, each to the result of the previous ones.
const ROWS: &[Row] = &[
    Row {
        what: "60 pages of a heap are touched",
        run: |scene| scene.access_all(scene.heap, true),
        moves: &[
            ("stat.anon", 60 * P),
            ("stat.inactive_anon", 60 * P),
            ("stat.pagetables", P),
            ("stat.kernel", P),
            ("stat.pgfault", 60),
            ("vm.nr_anon_pages", 60),
            ("vm.nr_inactive_anon", 60),
            ("vm.nr_zone_inactive_anon", 60),
            ("vm.nr_page_table_pages", 1),
            ("vm.pgfault", 60),
            ("mem.AnonPages", 60 * K),
            ("mem.Inactive", 60 * K),
            ("mem.Inactive(anon)", 60 * K),
            ("mem.PageTables", K),
        ],
    },
    Row {
        what: "60 pages of a file are read",
        run: Scene::read_file,
        moves: &[
            ("stat.file", 60 * P),
            ("stat.inactive_file", 60 * P),
            ("stat.kernel", P), // of the slab with the node
            ("vm.nr_file_pages", 60),
            ("vm.nr_inactive_file", 60),
            ("vm.nr_zone_inactive_file", 60),
            ("vm.pgpgin", 60 * K),
            ("mem.Cached", 60 * K),
            ("mem.Inactive", 60 * K),
            ("mem.Inactive(file)", 60 * K),
        ],
    },
    Row {
        what: "they are mapped",
        run: |scene| scene.access_all(scene.map, false),
        moves: &[
            ("stat.file_mapped", 60 * P),
            ("stat.pagetables", P),
            ("stat.kernel", P),
            ("stat.pgfault", 60),
            ("vm.nr_mapped", 60),
            ("vm.nr_page_table_pages", 1),
            ("vm.pgfault", 60),
            ("mem.Mapped", 60 * K),
            ("mem.PageTables", K),
        ],
    },
    Row {
        what: "30 pages are written to another file",
        run: |scene| scene.call(ProcessCall::write(scene.mm, NODE, scene.log, 0, 30 * PAGE_SIZE)),
        moves: &[
            ("stat.file", 30 * P),
            ("stat.file_dirty", 30 * P),
            ("stat.inactive_file", 30 * P),
            ("stat.kernel", P), // with the buffer heads
            ("vm.nr_file_pages", 30),
            ("vm.nr_inactive_file", 30),
            ("vm.nr_zone_inactive_file", 30),
            ("vm.nr_dirty", 30),
            ("vm.nr_zone_write_pending", 30),
            ("vm.nr_dirtied", 30),
            ("mem.Cached", 30 * K),
            ("mem.Dirty", 30 * K),
            ("mem.Inactive", 30 * K),
            ("mem.Inactive(file)", 30 * K),
        ],
    },
    Row {
        what: "their writeback begins",
        run: Scene::begin_writeback,
        moves: &[
            ("stat.file_dirty", -30 * P),
            ("stat.file_writeback", 30 * P),
            ("vm.nr_dirty", -30),
            ("vm.nr_writeback", 30),
            ("vm.pgpgout", 30 * K),
            ("mem.Dirty", -30 * K),
            ("mem.Writeback", 30 * K),
        ],
    },
    Row {
        what: "and ends",
        run: |scene| scene.world.settle(),
        moves: &[
            ("stat.file_writeback", -30 * P),
            ("vm.nr_writeback", -30),
            ("vm.nr_zone_write_pending", -30),
            ("vm.nr_written", 30),
            ("mem.Writeback", -30 * K),
        ],
    },
    Row {
        what: "half of the heap is locked",
        run: |scene| scene.world.machine.mlock(scene.heap, 0, 30, CPU).unwrap(),
        moves: &[
            ("stat.inactive_anon", -30 * P),
            ("stat.unevictable", 30 * P),
            ("vm.nr_inactive_anon", -30),
            ("vm.nr_zone_inactive_anon", -30),
            ("vm.nr_unevictable", 30),
            ("vm.nr_zone_unevictable", 30),
            ("vm.nr_mlock", 30),
            ("vm.unevictable_pgs_mlocked", 30),
            ("vm.unevictable_pgs_culled", 30),
            ("mem.Inactive", -30 * K),
            ("mem.Inactive(anon)", -30 * K),
            ("mem.Unevictable", 30 * K),
            ("mem.Mlocked", 30 * K),
        ],
    },
    Row {
        what: "and unlocked",
        run: |scene| scene.world.machine.munlock(scene.heap, 0, 30, CPU).unwrap(),
        moves: &[
            ("stat.inactive_anon", 30 * P),
            ("stat.unevictable", -30 * P),
            ("vm.nr_inactive_anon", 30),
            ("vm.nr_zone_inactive_anon", 30),
            ("vm.nr_unevictable", -30),
            ("vm.nr_zone_unevictable", -30),
            ("vm.nr_mlock", -30),
            ("vm.unevictable_pgs_munlocked", 30),
            ("vm.unevictable_pgs_rescued", 30),
            ("mem.Inactive", 30 * K),
            ("mem.Inactive(anon)", 30 * K),
            ("mem.Unevictable", -30 * K),
            ("mem.Mlocked", -30 * K),
        ],
    },
    Row {
        what: "the file is read once more",
        run: Scene::read_file,
        moves: &[
            ("stat.inactive_file", -60 * P),
            ("stat.active_file", 60 * P),
            ("stat.pgactivate", 60),
            ("vm.nr_inactive_file", -60),
            ("vm.nr_active_file", 60),
            ("vm.nr_zone_inactive_file", -60),
            ("vm.nr_zone_active_file", 60),
            ("vm.pgactivate", 60),
            ("mem.Active", 60 * K),
            ("mem.Active(file)", 60 * K),
            ("mem.Inactive", -60 * K),
            ("mem.Inactive(file)", -60 * K),
        ],
    },
    Row {
        what: "the mapping goes",
        run: |scene| scene.world.munmap(scene.map),
        moves: &[
            ("stat.file_mapped", -60 * P),
            ("stat.pagetables", -P),
            ("stat.kernel", -P),
            ("vm.nr_mapped", -60),
            ("vm.nr_page_table_pages", -1),
            ("mem.Mapped", -60 * K),
            ("mem.PageTables", -K),
        ],
    },
    Row {
        what: "clean page cache is dropped",
        run: |scene| scene.world.machine.drop_pagecache(CPU).discard(),
        moves: &[
            ("stat.file", -90 * P),
            ("stat.active_file", -60 * P),
            ("stat.inactive_file", -30 * P),
            ("stat.kernel", -P), // a page stays charged for the next object
            ("vm.nr_file_pages", -90),
            ("vm.nr_active_file", -60),
            ("vm.nr_inactive_file", -30),
            ("vm.nr_zone_active_file", -60),
            ("vm.nr_zone_inactive_file", -30),
            ("mem.Cached", -90 * K),
            ("mem.Active", -60 * K),
            ("mem.Active(file)", -60 * K),
            ("mem.Inactive", -30 * K),
            ("mem.Inactive(file)", -30 * K),
        ],
    },
];

#[test]
fn an_operation_moves_the_fields_of_its_row_and_no_other() {
    let mut scene = Scene::new();
    for Row { what, run, moves } in ROWS {
        let before = scene.fields();
        run(&mut scene);
        let after = scene.fields();
        let moved: BTreeMap<&str, i64> = after
            .iter()
            .map(|(field, value)| (field.as_str(), value - before[field]))
            .filter(|(field, by)| *by != 0 && !is_apart(field))
            .collect();
        let expected: BTreeMap<&str, i64> = moves.iter().copied().collect();
        assert_eq!(moved, expected, "{what}");
        scene.world.machine.audit().unwrap();
    }
}

#[test]
fn the_swap_cache_is_in_the_nodes_file_pages_and_not_in_a_groups() {
    let mut scene = Scene::new();
    scene.access_all(scene.heap, true);
    scene.world.machine.write_control("vm.swappiness", "200").unwrap().discard();
    let before = scene.fields();
    let (write, effects) =
        scene.world.machine.write_group_control(scene.group, "memory.reclaim", "60K").unwrap();
    effects.discard();
    let mut call = ProcessCall::group_write(scene.mm, NODE, write.unwrap());
    // The disk has not finished any write yet.
    for _ in 0..1000 {
        if scene.world.inflight.len() >= 8 {
            break;
        }
        assert!(!matches!(scene.world.step(&mut call), Step::Done(_)));
    }
    let after = scene.fields();
    let moved = |field: &str| after[field] - before[field];
    let pages = moved("vm.pswpout");
    assert!(pages >= 8);
    let rows = [
        ("stat.swapcached", pages * P),
        ("stat.file", 0),
        ("stat.anon", -pages * P),
        ("stat.file_writeback", pages * P),
        ("vm.nr_swapcached", pages),
        ("vm.nr_file_pages", pages),
        ("vm.nr_anon_pages", -pages),
        ("vm.nr_writeback", pages),
        ("vm.nr_zone_write_pending", pages),
        ("vm.pgpgout", pages * K),
        ("vm.nr_vmscan_write", pages),
        ("mem.SwapCached", pages * K),
        ("mem.Cached", 0),
        ("mem.SwapFree", -pages * K),
        ("mem.AnonPages", -pages * K),
    ];
    for (field, by) in rows {
        assert_eq!(moved(field), by, "{field}");
    }
    let root = scene.world.machine.memory_stat(ROOT);
    assert!(root.contains("\nfile 0\n"), "{root}");
    assert!(root.contains(&format!("\nswapcached {}\n", pages * P)), "{root}");
}

#[test]
fn memory_of_the_kernel_is_its_payers() {
    let mut scene = Scene::new();
    let before = scene.fields();
    let memcg = scene.group;
    for _ in 0..10 {
        let mut call = ProcessCall::kmem_alloc(
            scene.mm,
            NODE,
            scene.cache,
            true,
            pagetide_core::frames::gfp::Gfp::KERNEL,
        );
        assert!(matches!(scene.world.drive(&mut call), Outcome::Object(_)));
    }
    let after = scene.fields();
    let moved = |field: &str| after[field] - before[field];
    // An object and the pointer to its group; slab pages are counted on the node.
    assert_eq!(moved("stat.slab_reclaimable"), 10 * 1008);
    assert_eq!(moved("stat.slab"), 10 * 1008);
    assert_eq!(moved("stat.slab_unreclaimable"), 0);
    assert_eq!(moved("stat.kernel"), 3 * P);
    let slabs = scene.world.machine.slab_usage(scene.cache);
    assert_eq!(moved("vm.nr_slab_reclaimable") * P, slabs.bytes as i64);
    assert_eq!(moved("mem.SReclaimable") * 1024, slabs.bytes as i64);
    assert_eq!(moved("mem.KReclaimable"), moved("mem.SReclaimable"));
    assert_eq!(moved("mem.Slab"), moved("mem.SReclaimable") + moved("mem.SUnreclaim"));
    // A root task has a page table, which no group's file shows.
    let of_root = scene.world.machine.memory_stat(ROOT);
    let mm = scene.world.machine.create_mm(ROOT).unwrap();
    let heap = scene.world.map(mm, Backing::Anon, 1, Advice::Normal);
    scene.world.access(mm, heap, 0, true);
    let rows = |text: &str, name: &str| -> i64 {
        let row = text.lines().find_map(|line| line.strip_prefix(name));
        row.unwrap().trim().parse().unwrap()
    };
    let now = scene.world.machine.memory_stat(ROOT);
    assert_eq!(rows(&now, "pagetables "), rows(&of_root, "pagetables "));
    assert_eq!(rows(&now, "kernel "), rows(&of_root, "kernel "));
    assert_eq!(rows(&now, "anon "), rows(&of_root, "anon ") + P);
    // A removed group leaves its objects to the root.
    let kernel = rows(&now, "kernel ");
    scene.world.exit(scene.mm);
    scene.world.machine.remove_memcg(memcg).unwrap().discard();
    assert_eq!(rows(&scene.world.machine.memory_stat(ROOT), "kernel "), kernel);
    scene.world.machine.audit().unwrap();
}
