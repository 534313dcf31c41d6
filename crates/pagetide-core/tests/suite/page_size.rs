//! Machines with pages of 4, 16 and 64 KiB: equal values in bytes, smaller values in pages.

use crate::world::{TestWorld, CPU};
use pagetide_core::config::Config;
use pagetide_core::frames::node::NodeSpec;
use pagetide_core::frames::watermark::{default_min_free_kbytes, MIN_FREE_KBYTES_MAX};
use pagetide_core::groups::memcg::ROOT;
use pagetide_core::groups::page_counter::UNLIMITED;
use pagetide_core::interface::outcome::Outcome;
use pagetide_core::process::page_table::{Advice, Backing};
use pagetide_core::process::Machine;
use pagetide_core::process::ProcessCall;
use pagetide_core::stats::vmstat::{Event, NodeStat};
use pagetide_core::swap::SwapOptions;
use pagetide_core::units::page_size::PageSize;
use pagetide_core::units::NodeId;

const MIB: u64 = 1 << 20;
const NODE: NodeId = NodeId(0);

fn machine(mib: u64, page_size: PageSize) -> Machine {
    let node = NodeSpec::x86_64_of_pages(mib * MIB, 0, 0, page_size);
    Machine::new(&[node], 2, Config::of_pages(page_size)).unwrap()
}

fn kilobytes(text: &str, label: &str) -> u64 {
    let line = text.lines().find(|line| line.starts_with(label)).expect(label);
    line[label.len()..].trim().trim_end_matches(" kB").parse().unwrap()
}

#[test]
fn meminfo_has_the_bytes_of_the_machine() {
    for page_size in PageSize::ALL {
        let mut machine = machine(512, page_size);
        let pages = page_size.pages_in(64 * MIB) as u32;
        machine.swapon(SwapOptions::new(pages));
        let text = machine.proc_meminfo();
        for (label, mib) in [("MemTotal:", 512), ("MemFree:", 512), ("SwapTotal:", 64)] {
            assert_eq!(kilobytes(&text, label), mib << 10, "{page_size:?} {label}");
        }
        // A huge page has 512 pages on every machine here.
        assert_eq!(kilobytes(&text, "Hugepagesize:"), page_size.kbytes_of(512));
        let swaps = machine.proc_swaps();
        assert_eq!(swaps.lines().nth(1).unwrap().split_whitespace().nth(2), Some("65536"));
        machine.audit().unwrap();
    }
}

#[test]
fn the_reserve_is_computed_in_kilobytes() {
    for page_size in PageSize::ALL {
        let mut machine = machine(512, page_size);
        let kbytes = default_min_free_kbytes(512 << 10, MIN_FREE_KBYTES_MAX);
        assert_eq!(kbytes, 2896);
        let min = |machine: &Machine| -> u64 {
            machine.mem.nodes[0].zones.iter().map(|zone| zone.watermark_min).sum()
        };
        assert_eq!(machine.read_control("vm.min_free_kbytes").unwrap(), "2896\n");
        // Each zone's share is rounded down.
        let marks = page_size.pages_in_kbytes(kbytes);
        assert!((marks - 2..=marks).contains(&min(&machine)), "{page_size:?}: {}", min(&machine));
        machine.write_control("vm.min_free_kbytes", "16384").unwrap().discard();
        let marks = page_size.pages_in(16 * MIB);
        assert!((marks - 2..=marks).contains(&min(&machine)), "{page_size:?}: {}", min(&machine));
    }
}

#[test]
fn huge_pages_want_so_many_pageblocks_whatever_they_have() {
    for (page_size, kbytes) in [
        // DMA, DMA32 and Normal: eleven pageblocks each, of 2 and 8 MiB.
        (PageSize::Kib4, 33 * 2048),
        (PageSize::Kib16, 33 * 8192),
        // At most a twentieth of the memory above the high watermarks.
        (PageSize::Kib64, 8192 * 1024 / 20),
    ] {
        let mut machine = machine(8192, page_size);
        machine.write_control("transparent_hugepage.enabled", "always").unwrap().discard();
        let text = machine.read_control("vm.min_free_kbytes").unwrap();
        let said: u64 = text.trim().parse().unwrap();
        assert!(said.abs_diff(kbytes) * 50 < kbytes, "{page_size:?}: {said}, not {kbytes}");
    }
}

#[test]
fn a_file_read_takes_its_bytes_in_pages_and_counts_kilobytes() {
    for page_size in PageSize::ALL {
        let bytes = 3 * MIB + 1;
        let mut world = TestWorld::new(machine(64, page_size));
        let file = world.machine.create_file(bytes, false).unwrap();
        let mm = world.machine.create_mm(ROOT).unwrap();
        let outcome =
            world.drive(&mut ProcessCall::read(mm, NODE, file, 0, bytes, Default::default()));
        assert_eq!(outcome, Outcome::Major);
        let pages = bytes.div_ceil(page_size.bytes());
        assert_eq!(world.machine.file(file).unwrap().nr_pages, pages);
        assert_eq!(world.stat(NodeStat::NrFilePages), pages);
        let vmstat = &world.machine.mem.vmstat;
        assert_eq!(vmstat.get(Event::Pgpgin), pages * page_size.bytes() / 1024);
        // Half a page at both ends of a write.
        let half = page_size.bytes() / 2;
        let (at, len) = (2 * MIB - half, 2 * half);
        world.drive(&mut ProcessCall::write(mm, NODE, file, at, len));
        assert_eq!(world.stat(NodeStat::NrDirty), 2);
        assert_eq!(kilobytes(&world.machine.proc_meminfo(), "Dirty:"), 2 * page_size.kbytes_of(1));
        assert_eq!(world.machine.take_work().bytes_copied as u64, bytes + len);
        world.machine.audit().unwrap();
    }
}

#[test]
fn limits_of_groups_are_whole_pages() {
    for page_size in PageSize::ALL {
        let mut world = TestWorld::new(machine(64, page_size));
        let group = world.machine.create_memcg("group".into(), ROOT).unwrap();
        let page = page_size.bytes();
        let odd = 4 * MIB + page - 1;
        for (text, read) in [
            (odd.to_string(), (4 * MIB).to_string()),
            ((page - 1).to_string(), "0".into()),
            (page.to_string(), page.to_string()),
            ("4M".into(), (4 * MIB).to_string()),
            ("max".into(), "max".into()),
            ("9223372036854775807".into(), "max".into()),
            (u64::MAX.to_string(), "max".into()),
        ] {
            let write = world.machine.write_group_control(group, "memory.max", &text);
            assert!(write.unwrap().0.is_none());
            let said = world.machine.read_group_control(group, "memory.max", 0).unwrap();
            assert_eq!(said.trim(), read, "{page_size:?}: {text}");
        }
        assert_eq!(world.machine.memcgs()[group.0 as usize].memory.max, UNLIMITED);
        let said = world.machine.read_group_control(group, "memory.limit_in_bytes", 0).unwrap();
        assert_eq!(said, format!("{}\n", i64::MAX as u64 / page * page));

        // A limit allows the same number of bytes on every machine.
        world.machine.write_group_control(group, "memory.max", "16M").unwrap().1.discard();
        world.disk_works = true;
        world.audit = false;
        let pages = page_size.pages_in(32 * MIB);
        world.machine.swapon(SwapOptions::new(pages as u32));
        let (mm, vma) = world.task(group, pages);
        world.fill((mm, vma), 0..pages);
        world.settle();
        let said = world.machine.read_group_control(group, "memory.current", 0).unwrap();
        let current: u64 = said.trim().parse().unwrap();
        assert!(current <= 16 * MIB && current.is_multiple_of(page), "{page_size:?}: {current}");
        assert!(current > 8 * MIB, "{page_size:?}: {current}");
        world.machine.audit().unwrap();
    }
}

#[test]
fn control_files_in_bytes_are_read_in_pages() {
    for page_size in PageSize::ALL {
        let mut machine = machine(64, page_size);
        let page = page_size.bytes();
        let read = |machine: &Machine, name| machine.read_control(name).unwrap();
        assert_eq!(read(&machine, "vm.fault_around_bytes"), "65536\n");
        assert_eq!(read(&machine, "block.read_ahead_kb"), "128\n");
        assert_eq!(machine.config.read_ahead_pages as u64, (128 << 10) / page);
        machine.write_control("block.read_ahead_kb", "200").unwrap().discard();
        let kbytes = 200 / (page / 1024) * (page / 1024);
        assert_eq!(read(&machine, "block.read_ahead_kb"), format!("{kbytes}\n"));
        machine.write_control("vm.fault_around_bytes", "1").unwrap().discard();
        assert_eq!(read(&machine, "vm.fault_around_bytes"), format!("{page}\n"));
        let most = (page / 8 + 1) * page - 1;
        machine.write_control("vm.fault_around_bytes", &most.to_string()).unwrap().discard();
        assert_eq!(read(&machine, "vm.fault_around_bytes"), format!("{}\n", page / 8 * page));
        let beyond = (most + 1).to_string();
        let error = machine.write_control("vm.fault_around_bytes", &beyond).unwrap_err();
        assert!(error.message.ends_with(&format!("from 0 to {most}")), "{error}");
        let least = 2 * page;
        machine.write_control("vm.dirty_bytes", &least.to_string()).unwrap().discard();
        assert_eq!(machine.dirty_limits().1, 2);
        let error = machine.write_control("vm.dirty_bytes", &(least - 1).to_string()).unwrap_err();
        assert!(error.message.contains(&format!("an integer from {least} to ")), "{error}");
    }
}

#[test]
fn page_sizes_differ_in_the_digest_by_what_they_change() {
    let digests = PageSize::ALL.map(|page_size| machine(512, page_size).digest());
    assert!(digests[0] != digests[1] && digests[1] != digests[2]);
}

#[test]
fn a_table_has_as_many_entries_as_fit_in_a_page() {
    for page_size in PageSize::ALL {
        let mut world = TestWorld::new(machine(64, page_size));
        let mm = world.machine.create_mm(ROOT).unwrap();
        let entries = page_size.bytes() / 8;
        let heap = world.map(mm, Backing::Anon, 2 * entries + 1, Advice::Normal);
        world.fill((mm, heap), [0, entries - 1, entries, 2 * entries]);
        let tables = world.stat(NodeStat::NrPageTablePages);
        assert_eq!(tables, 3, "{page_size:?}");
        let text = world.machine.proc_meminfo();
        assert_eq!(kilobytes(&text, "PageTables:"), 3 * page_size.kbytes_of(1));
        world.machine.audit().unwrap();
    }
}

#[test]
fn every_empty_region_gets_a_huge_page_at_its_first_touch() {
    for page_size in PageSize::ALL {
        let mut world =
            TestWorld::new(machine(if page_size == PageSize::Kib64 { 512 } else { 64 }, page_size));
        world.audit = false;
        world.machine.write_control("transparent_hugepage.enabled", "always").unwrap().discard();
        let (mm, heap) = world.heap(3 * 512, Advice::Normal);
        for at in [5, 600, 1535] {
            world.access(mm, heap, at, true);
            world.machine.audit().unwrap();
        }
        let huge = |world: &TestWorld| {
            kilobytes(&world.machine.proc_meminfo(), "AnonHugePages:") / page_size.kbytes_of(512)
        };
        assert_eq!(huge(&world), 3, "{page_size:?}");
        let tables = 3 * 512 / (page_size.bytes() / 8).min(3 * 512);
        assert_eq!(world.stat(NodeStat::NrPageTablePages), tables);
        // One huge page is discarded. Its page table stays if it has entries of the others.
        world.machine.discard(heap, 512, 512, CPU).unwrap().discard();
        world.machine.audit().unwrap();
        assert_eq!(huge(&world), 2);
        world.access(mm, heap, 700, true);
        assert_eq!(huge(&world), 3, "{page_size:?}");
        world.machine.munmap(heap, CPU).unwrap().discard();
        world.machine.audit().unwrap();
        assert_eq!(world.stat(NodeStat::NrPageTablePages), 0);
    }
}

/// Machines of every page size run short of memory; the world audits every step.
#[test]
fn reclaim_works_with_every_page_size() {
    for page_size in PageSize::ALL {
        // The same number of pages, so that the run time is the same.
        let mib = 8 * page_size.bytes() / 4096;
        let mut world = TestWorld::new(machine(mib, page_size));
        let swap = page_size.pages_in(2 * mib * MIB) as u32;
        world.machine.swapon(SwapOptions::new(swap));
        let mm = world.machine.create_mm(ROOT).unwrap();
        let pages = page_size.pages_in(mib * MIB);
        let file = world.machine.create_file(page_size.bytes_of(pages), false).unwrap();
        let heap = world.map(mm, Backing::Anon, pages, Advice::Normal);
        let len = page_size.bytes_of(pages / 2);
        world.drive(&mut ProcessCall::read(mm, NODE, file, 0, len, Default::default()));
        world.fill((mm, heap), 0..pages);
        world.drive(&mut ProcessCall::write(mm, NODE, file, 100, len));
        world.settle();
        let vmstat = &world.machine.mem.vmstat;
        assert!(vmstat.get(Event::Pswpout) > 0 && vmstat.get(Event::Pgpgout) > 0, "{page_size:?}");
        assert_eq!(vmstat.get(Event::Pgpgout) % page_size.kbytes_of(1), 0);
    }
}
