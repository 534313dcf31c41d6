//! Every control file: accepted writes, refused writes with their errno, and proof that a refused
//! write changes nothing. Then the figures of the tunable-watermarks patch.

use super::*;
use crate::config::{Config, ControlFile};
use crate::frames::node::{NodeSpec, ZoneSpec};
use crate::frames::zone_type::{MAX_NR_ZONES, ZONE_DMA, ZONE_DMA32, ZONE_NORMAL};
use crate::interface::daemon::Daemon;
use crate::interface::effect::{Effect, Effects, Token};
use crate::process::Machine;
use crate::stats::vmstat::Event;
use crate::units::errno::Errno;
use crate::units::{Cpu, NodeId, PAGE_SIZE};
use alloc::string::ToString;

fn machine() -> Machine {
    Machine::new(&[NodeSpec::x86_64(512 << 20, 0, 0)], 2, Config::default()).unwrap()
}

/// A machine whose memory for kernel buffers is that of the patch: 2 067 844 kB.
fn machine_of_2011() -> Machine {
    let mut spec = NodeSpec::default();
    spec.zones[ZONE_DMA] = ZoneSpec::all_free(3840);
    spec.zones[ZONE_DMA32] = ZoneSpec::all_free(2_067_844 / 4 - 3840);
    let mut machine = Machine::new(&[spec], 2, Config::default()).unwrap();
    machine.set_policy("watermarks", "derived").unwrap().discard();
    machine
}

fn read(machine: &Machine, name: &str) -> String {
    machine.read_control(name).unwrap().trim_end().into()
}

/// The three marks as the patch reads them, in kB.
fn marks(machine: &Machine) -> [String; 3] {
    ["vm.wmark_min_kbytes", "vm.wmark_low_kbytes", "vm.wmark_high_kbytes"]
        .map(|name| read(machine, name))
}

/// Min, low and high of all zones together, in pages.
fn zone_marks(machine: &Machine) -> (u64, u64, u64) {
    let zones = machine.mem.nodes.iter().flat_map(|node| &node.zones);
    zones.fold((0, 0, 0), |(min, low, high), zone| {
        (min + zone.watermark_min, low + zone.watermark_low, high + zone.watermark_high)
    })
}

/// Name; accepted texts with the text then read; refused texts.
type Case<'a> = (&'a str, &'a [(&'a str, &'a str)], &'a [&'a str]);

#[test]
fn every_file_takes_its_range_and_nothing_else() {
    let int_max = i32::MAX.to_string();
    let ulong_max = u64::MAX.to_string();
    let max = int_max.as_str();
    let table: &[Case] = &[
        (
            "vm.min_free_kbytes",
            &[("0", "0"), (" 0x2000\n", "8192"), ("010000", "4096"), (max, max)],
            &["-1", "2147483648", "64M", "1.5"],
        ),
        ("vm.watermark_scale_factor", &[("1", "1"), ("3000", "3000")], &["0", "3001", "-1"]),
        ("vm.watermark_boost_factor", &[("0", "0"), (max, max)], &["-1", "2147483648"]),
        ("vm.extra_free_kbytes", &[("0", "0"), (max, max)], &["-1", "2147483648"]),
        (
            "vm.lowmem_reserve_ratio",
            &[("128", "128\t256\t32\t0"), ("1 2 3 4\n", "1\t2\t3\t4"), ("-5\t0", "0\t0\t3\t4")],
            &["256 256 32 0 0", "256 x", "256,256", "2147483648"],
        ),
        ("vm.swappiness", &[("0", "0"), ("200", "200")], &["201", "-1", "60 60", "sixty"]),
        ("vm.page-cluster", &[("0", "0"), ("31", "31")], &["32", "-1"]),
        ("vm.vfs_cache_pressure", &[("0", "0"), (max, max)], &["-1", "2147483648"]),
        ("vm.dirty_ratio", &[("0", "0"), ("100", "100")], &["101", "-1", "20%"]),
        ("vm.dirty_background_ratio", &[("0", "0"), ("100", "100")], &["101", "-1"]),
        (
            "vm.dirty_bytes",
            &[("8192", "8192"), (&ulong_max, &ulong_max)],
            &["0", "8191", "-8192", "1M", "18446744073709551616"],
        ),
        ("vm.dirty_background_bytes", &[("1", "1"), (&ulong_max, &ulong_max)], &["0", "-1"]),
        (
            "vm.dirty_writeback_centisecs",
            &[("0", "0"), (max, max), ("-1", "-1")],
            &["2147483648", "-2147483649"],
        ),
        ("vm.dirty_expire_centisecs", &[("0", "0"), (max, max)], &["-1", "2147483648"]),
        (
            "vm.laptop_mode",
            &[("0", "0"), ("5", "5"), ("-5", "-5"), ("8589934", "8589934")],
            &["8589935", "-8589935"],
        ),
        (
            "vm.fault_around_bytes",
            &[
                ("0", "4096"),
                ("4095\n", "4096"),
                ("65535", "32768"),
                ("0x10000", "65536"),
                ("2101247", "2097152"),
            ],
            &["2101248", "-1", " 65536", "64k"],
        ),
        (
            "block.read_ahead_kb",
            &[("0", "0"), ("+127\n", "124"), ("0128", "128"), ("4294967295", "4294967292")],
            &["4294967296", "-1", " 128", "0x80", "128 ", "18446744073709551616"],
        ),
        ("vm.extfrag_threshold", &[("0", "0"), ("1000\n", "1000")], &["1001", "-1"]),
        ("vm.compact_unevictable_allowed", &[("0", "0"), ("1", "1")], &["2", "-1"]),
        ("vm.compaction_proactiveness", &[("0", "0"), ("100", "100")], &["101", "-1"]),
        ("vm.defrag_mode", &[("1", "1"), ("0", "0")], &["2", "-1"]),
        (
            "transparent_hugepage.enabled",
            &[
                ("always", "[always] madvise never"),
                ("madvise\n", "always [madvise] never"),
                ("never", "always madvise [never]"),
            ],
            &["defer", "[always]", " always", "always\n\n", "Always", "always never", "1"],
        ),
        (
            "transparent_hugepage.defrag",
            &[
                ("always", "[always] defer defer+madvise madvise never"),
                ("defer", "always [defer] defer+madvise madvise never"),
                ("defer+madvise\n", "always defer [defer+madvise] madvise never"),
                ("madvise", "always defer defer+madvise [madvise] never"),
                ("never\n", "always defer defer+madvise madvise [never]"),
            ],
            &["defer + madvise", "madvise+defer", "never ", "0"],
        ),
        (
            "transparent_hugepage.khugepaged.defrag",
            &[("0", "0"), ("1\n", "1")],
            &["2", "-1", " 1", "0x1", "always"],
        ),
        (
            "transparent_hugepage.khugepaged.pages_to_scan",
            &[("1", "1"), ("4294967295", "4294967295")],
            &["0", "4294967296", "-1", " 1"],
        ),
        (
            "transparent_hugepage.khugepaged.scan_sleep_millisecs",
            &[("0", "0"), ("4294967295", "4294967295")],
            &["4294967296", "-1", "10s"],
        ),
        (
            "transparent_hugepage.khugepaged.alloc_sleep_millisecs",
            &[("0", "0"), ("4294967295", "4294967295")],
            &["4294967296", "-1", "1m"],
        ),
        (
            "transparent_hugepage.khugepaged.max_ptes_none",
            &[("0", "0"), ("511", "511")],
            &["512", "-1"],
        ),
        (
            "transparent_hugepage.khugepaged.max_ptes_swap",
            &[("0", "0"), ("511", "511")],
            &["512", "-1"],
        ),
    ];
    let mut machine = machine();
    for (name, takes, refuses) in table {
        for (text, value) in *takes {
            machine.write_control(name, text).unwrap_or_else(|error| panic!("{error}")).discard();
            assert_eq!(read(&machine, name), *value, "{name} after {text:?}");
        }
        for text in refuses.iter().chain(&["", "\n", "x", "5x"]) {
            let (digest, config) = (machine.digest(), machine.config.clone());
            let error = machine.write_control(name, text).unwrap_err();
            assert_eq!(error.errno, Errno::Einval, "{name} {text:?}");
            assert_eq!(error.name, *name);
            assert!(error.message.contains(name) && error.message.contains("it takes"), "{error}");
            assert_eq!(machine.config, config, "{name} {text:?} changed something");
            assert_eq!(machine.digest(), digest, "{name} {text:?} changed something");
        }
    }
    machine.audit().unwrap();
}

/// For every file, from its declaration: the bounds, values beyond them, and the default.
#[test]
fn every_file_is_as_it_is_declared() {
    for &sysctl in Sysctl::ALL {
        let ControlFile { name, form, default, doc, .. } = *sysctl.file();
        assert!(doc.ends_with('.') && !default.is_empty(), "{name}");
        let write = |number: i128| {
            let mut machine = machine();
            // The watermarks bound each other: high first, to leave space below it.
            machine.write_control("vm.wmark_high_kbytes", "2147483647").unwrap().discard();
            machine.write_control("vm.wmark_low_kbytes", "2147483647").unwrap().discard();
            let written = machine.write_control(name, &number.to_string()).map(Effects::discard);
            written.map(|()| machine.read_control(name).unwrap_or_default())
        };
        if let Some((min, max)) = form.bounds(machine().page_size()) {
            let (least, most) = (write(min), write(max).unwrap());
            assert!(least.is_ok() || name.starts_with("vm.wmark_"), "{name}: {least:?}");
            assert!(write(min - 1).is_err() && write(max + 1).is_err(), "{name}");
            // A plain field holds what was written.
            let is_plain = sysctl.special().is_none();
            assert!(!is_plain || most == format!("{max}\n"), "{name}: {most}");
        }
        if default.parse::<u64>().is_ok() {
            assert_eq!(read(&machine(), name), default, "{name}");
        }
    }
}

#[test]
fn a_new_machine_reads_as_linux_does() {
    let machine = machine();
    for (name, value) in [
        ("vm.watermark_scale_factor", "10"),
        ("vm.watermark_boost_factor", "15000"),
        ("vm.extra_free_kbytes", "0"),
        ("vm.lowmem_reserve_ratio", "256\t256\t32\t0"),
        ("vm.swappiness", "60"),
        ("vm.page-cluster", "3"),
        ("vm.vfs_cache_pressure", "100"),
        ("vm.dirty_ratio", "20"),
        ("vm.dirty_background_ratio", "10"),
        ("vm.dirty_bytes", "0"),
        ("vm.dirty_background_bytes", "0"),
        ("vm.dirty_writeback_centisecs", "500"),
        ("vm.dirty_expire_centisecs", "3000"),
        ("vm.laptop_mode", "0"),
        ("vm.fault_around_bytes", "65536"),
        ("block.read_ahead_kb", "128"),
        ("vm.stat_refresh", ""),
        ("vm.extfrag_threshold", "500"),
        ("vm.compact_unevictable_allowed", "1"),
        ("vm.compaction_proactiveness", "20"),
        ("vm.defrag_mode", "0"),
        ("transparent_hugepage.enabled", "always madvise [never]"),
        ("transparent_hugepage.defrag", "always defer defer+madvise [madvise] never"),
        ("transparent_hugepage.khugepaged.defrag", "1"),
        ("transparent_hugepage.khugepaged.pages_to_scan", "4096"),
        ("transparent_hugepage.khugepaged.scan_sleep_millisecs", "10000"),
        ("transparent_hugepage.khugepaged.alloc_sleep_millisecs", "60000"),
        ("transparent_hugepage.khugepaged.max_ptes_none", "511"),
        ("transparent_hugepage.khugepaged.max_ptes_swap", "64"),
    ] {
        assert_eq!(read(&machine, name), value, "{name}");
    }
}

#[test]
fn too_large_for_64_bits_is_erange_in_debugfs_only() {
    let mut machine = machine();
    let error = machine.write_control("vm.fault_around_bytes", "99999999999999999999");
    assert_eq!(error.unwrap_err().errno, Errno::Erange);
    let error = machine.write_control("vm.swappiness", "99999999999999999999");
    assert_eq!(error.unwrap_err().errno, Errno::Einval);
}

#[test]
fn names_and_modes_are_checked() {
    let mut machine = machine();
    for name in ["vm.nothing", "", "swappiness", "vm/swappiness", "memory.max"] {
        assert_eq!(machine.write_control(name, "1").unwrap_err().errno, Errno::Enoent);
        assert_eq!(machine.read_control(name).unwrap_err().errno, Errno::Enoent);
    }
    let error = machine.write_control("vm.page_cluster", "1").unwrap_err();
    assert!(error.message.contains("vm.page-cluster"), "{error}");
    assert_eq!(machine.read_control("vm.drop_caches").unwrap_err().errno, Errno::Eacces);
    machine.write_control("vm.stat_refresh", "").unwrap().discard();
    machine.write_control("vm.stat_refresh", "anything").unwrap().discard();
}

#[test]
fn messages_stay_short_and_on_one_line() {
    let mut machine = machine();
    let error = machine.write_control("vm.swappiness", &"a\n\u{1b}[2J".repeat(1000)).unwrap_err();
    assert!(error.to_string().len() < 300);
    assert!(!error.to_string().contains(char::is_control));
}

#[test]
fn the_figures_of_the_patch() {
    let mut machine = machine_of_2011();
    assert_eq!(read(&machine, "vm.min_free_kbytes"), "5752");
    assert_eq!(marks(&machine), ["5752", "7190", "8628"]);
    assert_eq!(machine.policy("watermarks"), Ok("derived"));

    // Case 1 of the patch, in the order of its table: low alone would exceed the old high.
    let low = ("vm.wmark_low_kbytes", "16384");
    let high = ("vm.wmark_high_kbytes", "20480");
    let error = machine.write_control(low.0, low.1).unwrap_err();
    assert_eq!(
        error.message,
        "`16384` is out of range for vm.wmark_low_kbytes; it takes 5752 (vm.wmark_min_kbytes) to \
         8628 (vm.wmark_high_kbytes), unless the marks are written together"
    );
    assert_eq!(marks(&machine), ["5752", "7190", "8628"]);
    machine.write_controls(&[low, high]).unwrap().discard();
    assert_eq!(marks(&machine), ["5752", "16384", "20480"]);
    assert_eq!(machine.policy("watermarks"), Ok("apart"));
    // Pages of the whole machine, minus the rounding in each of two zones.
    let (min, low, high) = zone_marks(&machine);
    assert!(min.abs_diff(1438) <= 2 && low.abs_diff(4096) <= 2 && high.abs_diff(5120) <= 2);

    // Case 2, one at a time, high first.
    machine.write_control("vm.wmark_high_kbytes", "40960").unwrap().discard();
    machine.write_control("vm.wmark_low_kbytes", "32768").unwrap().discard();
    assert_eq!(marks(&machine), ["5752", "32768", "40960"]);

    // min_free_kbytes and wmark_min follow each other.
    machine.write_control("vm.wmark_min_kbytes", "8192").unwrap().discard();
    assert_eq!(read(&machine, "vm.min_free_kbytes"), "8192");
    assert_eq!(marks(&machine), ["8192", "32768", "40960"]);
    machine.write_control("vm.min_free_kbytes", "5752").unwrap().discard();
    assert_eq!(marks(&machine), ["5752", "7190", "8628"]);
    let (min, low, high) = zone_marks(&machine);
    assert!(min.abs_diff(1438) <= 2 && low.abs_diff(1797) <= 2 && high.abs_diff(2157) <= 2);
}

#[test]
fn marks_never_come_out_of_order() {
    let mut machine = machine_of_2011();
    for (name, text) in [
        ("vm.wmark_min_kbytes", "7191"),
        ("vm.wmark_low_kbytes", "5751"),
        ("vm.wmark_low_kbytes", "8629"),
        ("vm.wmark_high_kbytes", "7189"),
        ("vm.wmark_high_kbytes", "-1"),
        ("vm.wmark_low_kbytes", "2147483648"),
        ("vm.wmark_min_kbytes", "x"),
    ] {
        let digest = machine.digest();
        let error = machine.write_control(name, text).unwrap_err();
        assert_eq!((error.errno, error.name.as_str()), (Errno::Einval, name), "{text}");
        assert_eq!(machine.digest(), digest);
    }
    // Exactly at the bounds.
    machine.write_control("vm.wmark_min_kbytes", "7190").unwrap().discard();
    machine.write_control("vm.wmark_high_kbytes", "7190").unwrap().discard();
    assert_eq!(marks(&machine), ["7190", "7190", "7190"]);
    let zones = machine.mem.nodes.iter().flat_map(|node| &node.zones);
    assert!(zones.clone().all(|z| z.watermark_min <= z.watermark_low));
    assert!(zones.clone().all(|z| z.watermark_low <= z.watermark_high));
}

#[test]
fn a_list_is_written_whole_or_not_at_all() {
    let mut machine = machine_of_2011();
    let digest = machine.digest();
    for list in [
        // The last one is bad.
        [("vm.swappiness", "10"), ("vm.wmark_high_kbytes", "20480"), ("vm.dirty_ratio", "200")],
        // The three watermarks are out of order.
        [
            ("vm.swappiness", "10"),
            ("vm.wmark_low_kbytes", "20480"),
            ("vm.wmark_high_kbytes", "16384"),
        ],
        // The write in the middle moves the watermarks under the others.
        [
            ("vm.wmark_low_kbytes", "16384"),
            ("vm.min_free_kbytes", "65536"),
            ("vm.wmark_high_kbytes", "20480"),
        ],
    ] {
        assert_eq!(machine.write_controls(&list).unwrap_err().errno, Errno::Einval);
        assert_eq!(machine.digest(), digest);
    }
    // In the order of the file, with the watermarks written in the place of the last of them.
    let list: Vec<(String, String)> = [
        ("vm.wmark_low_kbytes", "16384"),
        ("vm.min_free_kbytes", "8192"),
        ("vm.wmark_high_kbytes", "20480"),
        ("vm.swappiness", "10"),
        ("vm.swappiness", "20"),
    ]
    .map(|(name, text)| (name.into(), text.into()))
    .into();
    machine.write_controls(&list).unwrap().discard();
    assert_eq!(marks(&machine), ["8192", "16384", "20480"]);
    assert_eq!(read(&machine, "vm.swappiness"), "20");
    machine.write_controls::<&str, &str>(&[]).unwrap().discard();
    // A later min_free_kbytes overrides them.
    machine
        .write_controls(&[("vm.wmark_high_kbytes", "30000"), ("vm.min_free_kbytes", "5752")])
        .unwrap()
        .discard();
    assert_eq!(marks(&machine), ["5752", "7190", "8628"]);
}

#[test]
fn watermark_files_reach_the_zones() {
    let mut machine = machine();
    machine.write_control("vm.min_free_kbytes", "8000").unwrap().discard();
    machine.write_control("vm.watermark_scale_factor", "200").unwrap().discard();
    let zone = |machine: &Machine| machine.mem.nodes[0].zones[ZONE_DMA32].clone();
    let before = zone(&machine);
    assert_eq!(before.watermark_low - before.watermark_min, before.managed * 200 / 10_000);
    machine.write_control("vm.extra_free_kbytes", "4000").unwrap().discard();
    let after = zone(&machine);
    let extra = 1000 * before.managed / machine.mem.nodes[0].managed_pages();
    assert_eq!(after.watermark_min, before.watermark_min);
    assert_eq!(after.watermark_low, before.watermark_low + extra);
    assert_eq!(after.watermark_high, before.watermark_high + extra);

    // The boost factor does not change a boost; new watermarks clear it.
    machine.mem.nodes[0].zones[ZONE_DMA32].watermark_boost = 512;
    machine.write_control("vm.watermark_boost_factor", "0").unwrap().discard();
    assert_eq!(zone(&machine).watermark_boost, 512);
    assert_eq!(zone(&machine).watermark_boost_factor, 0);
    machine.write_control("vm.watermark_scale_factor", "10").unwrap().discard();
    assert_eq!(zone(&machine).watermark_boost, 0);

    machine.write_control("vm.lowmem_reserve_ratio", "100").unwrap().discard();
    let dma = &machine.mem.nodes[0].zones[ZONE_DMA];
    assert_eq!(dma.lowmem_reserve[ZONE_NORMAL], zone(&machine).managed / 100);
    machine.write_control("vm.lowmem_reserve_ratio", "0").unwrap().discard();
    assert_eq!(machine.mem.nodes[0].zones[ZONE_DMA].lowmem_reserve, [0; MAX_NR_ZONES]);
}

#[test]
fn dirty_limits_in_bytes_and_per_cent_exclude_each_other() {
    let mut machine = machine();
    let pair = |machine: &Machine, kind: &str| {
        ["ratio", "bytes"].map(|unit| read(machine, &format!("vm.dirty_{kind}{unit}")))
    };
    machine.write_control("vm.dirty_bytes", "1048576").unwrap().discard();
    assert_eq!(pair(&machine, ""), ["0", "1048576"]);
    // The same ratio again changes nothing, and does not switch the unit.
    machine.write_control("vm.dirty_ratio", "0").unwrap().discard();
    assert_eq!(pair(&machine, ""), ["0", "1048576"]);
    machine.write_control("vm.dirty_ratio", "30").unwrap().discard();
    assert_eq!(pair(&machine, ""), ["30", "0"]);
    machine.write_control("vm.dirty_background_bytes", "65536").unwrap().discard();
    assert_eq!(pair(&machine, "background_"), ["0", "65536"]);
    machine.write_control("vm.dirty_background_ratio", "0").unwrap().discard();
    assert_eq!(pair(&machine, "background_"), ["0", "0"]);
}

#[test]
fn a_new_interval_wakes_the_writeback_thread_if_something_is_dirty() {
    use crate::process::ProcessCall;

    let mut machine = machine();
    let wakes = |machine: &mut Machine, interval: &str| {
        let mut effects = machine.write_control("vm.dirty_writeback_centisecs", interval).unwrap();
        let wakes = effects.next();
        assert!(effects.is_empty());
        wakes
    };
    assert_eq!(wakes(&mut machine, "100"), None);
    let mm = machine.create_mm(Machine::ROOT).unwrap();
    let file = machine.create_file(PAGE_SIZE, true).unwrap();
    let mut write = ProcessCall::write(mm, NodeId(0), file, 0, PAGE_SIZE);
    let (_, effects) = machine.step(&mut write, Cpu(0), 0);
    let flusher = Effect::Wake(Token::Daemon(Daemon::Flusher));
    assert!({ effects }.any(|effect| effect == flusher), "it plans the search for old files");
    let (step, effects) = machine.step_daemon(Daemon::Flusher, Cpu(0), 0);
    effects.discard();
    assert_eq!(
        step,
        crate::interface::effect::Step::Done(crate::interface::daemon::DaemonRest::of(
            1_000_000_000
        ))
    );
    assert_eq!(wakes(&mut machine, "100"), None, "no change");
    assert_eq!(wakes(&mut machine, "0"), None);
    assert_eq!(wakes(&mut machine, "100"), Some(flusher));
}

#[test]
fn drop_caches_drops_clean_page_cache() {
    use crate::interface::effect::Step;
    use crate::interface::outcome::Outcome;
    use crate::process::ProcessCall;

    let mut machine = machine();
    let mm = machine.create_mm(Machine::ROOT).unwrap();
    let file = machine.create_file(64 * PAGE_SIZE, true).unwrap();
    let mut read = ProcessCall::read(mm, NodeId(0), file, 0, 64 * PAGE_SIZE, Default::default());
    loop {
        let (step, effects) = machine.step(&mut read, Cpu(0), 0);
        effects.discard();
        match step {
            Step::Done(outcome) => {
                assert!(matches!(outcome, Outcome::Minor | Outcome::Major));
                break;
            }
            Step::Continue => {}
            Step::Wait(wait) => panic!("a sparse file needs no I/O: {wait:?}"),
        }
    }
    for text in ["0", "5", "-1", "", "x"] {
        let error = machine.write_control("vm.drop_caches", text).unwrap_err();
        assert_eq!(error.errno, Errno::Einval);
    }
    for text in ["2", "4"] {
        machine.write_control("vm.drop_caches", text).unwrap().discard();
    }
    assert_eq!(machine.file(file).unwrap().nr_pages, 64);
    machine.write_control("vm.drop_caches", "3\n").unwrap().discard();
    assert_eq!(machine.file(file).unwrap().nr_pages, 0);
    assert_eq!(machine.mem.vmstat.get(Event::DropPagecache), 1);
    assert_eq!(machine.mem.vmstat.get(Event::DropSlab), 2);
    machine.audit().unwrap();
}

#[test]
fn compact_memory_takes_one_and_is_only_written() {
    let mut machine = machine();
    for text in ["0", "2", "-1", "", "x", "1 1"] {
        let error = machine.write_control("vm.compact_memory", text).unwrap_err();
        assert_eq!(error.errno, Errno::Einval, "{text:?}");
        assert!(error.message.ends_with(" for vm.compact_memory; it takes 1"), "{error}");
    }
    machine.write_control("vm.compact_memory", "1\n").unwrap().discard();
    assert_eq!(machine.read_control("vm.compact_memory").unwrap_err().errno, Errno::Eacces);
}

#[test]
fn defrag_mode_reaches_the_allocator() {
    let mut machine = machine();
    for (text, is_on) in [("1", true), ("0", false)] {
        machine.write_control("vm.defrag_mode", text).unwrap().discard();
        assert_eq!((machine.config.defrag_mode, machine.mem.defrag_mode), (is_on, is_on));
    }
}

#[test]
fn the_error_for_a_bad_word_lists_the_valid_words() {
    let mut machine = machine();
    let mut refused = |name| machine.write_control(name, "sometimes").unwrap_err().to_string();
    assert_eq!(
        refused("transparent_hugepage.enabled"),
        "EINVAL: `sometimes` is not a valid value for transparent_hugepage.enabled; it takes \
         always, madvise or never"
    );
    assert_eq!(
        refused("transparent_hugepage.defrag"),
        "EINVAL: `sometimes` is not a valid value for transparent_hugepage.defrag; it takes \
         always, defer, defer+madvise, madvise or never"
    );
}

/// 512 MiB in two zones: 22 pageblocks are wanted (45056 kB), at most 5 % of memory above high.
#[test]
fn huge_pages_come_and_go_with_a_reserve() {
    let enabled = "transparent_hugepage.enabled";
    let reserve = |machine: &Machine| machine.config.watermarks.min_free_kbytes;
    let mut machine = machine();
    let (before, low) = (reserve(&machine), zone_marks(&machine).1);
    let above = crate::frames::watermark::nr_free_buffer_pages(&machine.mem.nodes);
    machine.write_control(enabled, "madvise").unwrap().discard();
    let raised = above / 20 * 4;
    assert!(raised < 45_056 && raised > 4 * before);
    assert_eq!(reserve(&machine), raised);
    assert!(zone_marks(&machine).1 > low);
    // A second write has no effect; Linux computes again and finds the reserve large enough.
    let marks = zone_marks(&machine);
    machine.set_policy("thp", "always").unwrap().discard();
    assert_eq!((reserve(&machine), zone_marks(&machine)), (raised, marks));
    machine.set_policy("thp", "never").unwrap().discard();
    // Linux subtracts the (then high) high watermarks from the input of the default.
    assert!(reserve(&machine) <= before && reserve(&machine) * 10 > before * 9);
    let defaults = reserve(&machine);

    // The policy has the same effect as the control file.
    machine.set_policy("thp", "always").unwrap().discard();
    assert_eq!(read(&machine, enabled), "[always] madvise never");
    assert!(reserve(&machine) > 4 * defaults);
    assert_eq!(machine.config.watermarks.user_min_free_kbytes, None);
    machine.audit().unwrap();
}

#[test]
fn a_machine_that_starts_with_huge_pages_has_their_reserve_once() {
    let spec = NodeSpec::x86_64(512 << 20, 0, 0);
    let mut machine = machine();
    machine.set_policy("thp", "always").unwrap().discard();
    let config = Config { thp: crate::config::Thp::Always, ..Config::default() };
    let mut started = Machine::new(&[spec], 2, config).unwrap();
    assert_eq!(started.config, machine.config);
    started.set_policy("thp", "always").unwrap().discard();
    started.write_control("transparent_hugepage.enabled", "always").unwrap().discard();
    assert_eq!(started.digest(), machine.digest());
}

#[test]
fn a_written_reserve_is_kept() {
    let mut machine = machine();
    machine.write_control("vm.min_free_kbytes", "1000").unwrap().discard();
    for word in ["always", "never", "madvise", "never"] {
        machine.write_control("transparent_hugepage.enabled", word).unwrap().discard();
        assert_eq!(read(&machine, "vm.min_free_kbytes"), "1000", "{word}");
    }
}

#[test]
fn marks_are_checked_against_the_reserve_of_huge_pages() {
    let mut machine = machine();
    machine.set_policy("watermarks", "apart").unwrap().discard();
    let digest = machine.digest();
    let huge = ("transparent_hugepage.enabled", "always");
    let high = ("vm.wmark_high_kbytes", "8000");
    let low = ("vm.wmark_low_kbytes", "6000");
    // Alone they are in order, but not above the reserve set before them.
    assert_eq!(machine.write_controls(&[huge, low, high]).unwrap_err().errno, Errno::Einval);
    assert_eq!(machine.digest(), digest);
    machine.write_controls(&[low, high, huge]).unwrap().discard();
    assert_eq!(marks(&machine)[1..], ["6000", "8000"]);
}

#[test]
fn policies_are_set_by_name() {
    let mut machine = machine();
    for (name, values) in [
        ("watermarks", &["derived", "scale-factor", "apart"][..]),
        ("kswapd", &["linux-6.1", "linux-2.6.37"]),
        ("direct_reclaim", &["linux-6.1", "linux-2.6.37"]),
    ] {
        for value in values {
            machine.set_policy(name, value).unwrap().discard();
            assert_eq!(machine.policy(name), Ok(*value));
        }
        let digest = machine.digest();
        let error = machine.set_policy(name, "linux-7").unwrap_err();
        assert_eq!((error.errno, error.name.as_str()), (Errno::Einval, name));
        assert!(values.iter().all(|value| error.message.contains(value)), "{error}");
        assert_eq!(machine.digest(), digest);
    }
    assert_eq!(machine.set_policy("damon", "x").unwrap_err().errno, Errno::Enoent);
    assert_eq!(machine.policy("damon").unwrap_err().errno, Errno::Enoent);
}

#[test]
fn a_policy_computes_the_marks_again() {
    let mut machine = machine_of_2011();
    let derived = zone_marks(&machine);
    machine.set_policy("watermarks", "scale-factor").unwrap().discard();
    machine.write_control("vm.watermark_scale_factor", "100").unwrap().discard();
    assert!(zone_marks(&machine) > derived);
    machine.set_policy("watermarks", "derived").unwrap().discard();
    assert_eq!(zone_marks(&machine), derived);
    // Until one of them is written, separate watermarks are the derived ones.
    machine.set_policy("watermarks", "apart").unwrap().discard();
    assert_eq!(zone_marks(&machine), derived);
}

/// Found by the property below: a huge reserve gave a watermark above its sysctl's maximum.
#[test]
fn what_is_derived_can_be_written_back() {
    let node = NodeSpec::x86_64(4 << 20, 0, 1 << 20);
    let mut machine = Machine::new(&[node], 1, Config::default()).unwrap();
    machine.write_control("vm.min_free_kbytes", "0x67000000").unwrap().discard();
    for name in ["vm.wmark_min_kbytes", "vm.wmark_low_kbytes", "vm.wmark_high_kbytes"] {
        let text = machine.read_control(name).unwrap();
        machine.write_control(name, &text).unwrap().discard();
    }
}

proptest::proptest! {
    #![proptest_config(proptest::test_runner::Config {
        failure_persistence: None,
        ..proptest::test_runner::Config::with_cases(64)
    })]

    /// Any writes in any order: no panic, refusals change nothing, watermarks stay in order.
    #[test]
    fn any_writes_keep_the_marks_in_order(
        writes in proptest::collection::vec(
            (
                0..Sysctl::ALL.len(),
                "-?(0x|0)?[0-9]{1,10}|[ -~\u{e9}\n\t]{0,12}|always|madvise|never",
            ),
            1..20,
        )
    ) {
        let node = NodeSpec::x86_64(4 << 20, 0, 1 << 20);
        let mut machine = Machine::new(&[node], 1, Config::default()).unwrap();
        for (control, text) in &writes {
            let name = Sysctl::ALL[*control].name();
            let config = machine.config.clone();
            if machine.write_control(name, text).map(Effects::discard).is_err() {
                proptest::prop_assert_eq!(&machine.config, &config);
            }
            for zone in machine.mem.nodes.iter().flat_map(|node| &node.zones) {
                proptest::prop_assert!(zone.watermark_min <= zone.watermark_low);
                proptest::prop_assert!(zone.watermark_low <= zone.watermark_high);
            }
            machine.dirty_limits();
            if let Ok(text) = machine.read_control(name) {
                let again = machine.write_control(name, &text).map(Effects::discard).is_ok();
                // A limit that is off reads 0, which cannot be written; nor can a list of words.
                let is_taken = again || text == "0\n" || text.contains('[');
                proptest::prop_assert!(is_taken, "{} {:?}", name, text);
            }
        }
        machine.audit().unwrap();
    }
}

/// Values that do not come from a text: for another file, out of bounds, for other pages.
#[test]
fn values_made_by_hand_are_checked_as_texts_are() {
    use crate::config::{ControlValue, PolicyChoice, SlubPolicy};
    let mut machine = machine();
    let before = machine.digest();
    let swappiness = ControlWrite::Sysctl(Sysctl::Swappiness, ControlValue::Number(10));
    for (sysctl, value) in [
        (Sysctl::LowmemReserveRatio, ControlValue::Zones([0; 4], 9)),
        (Sysctl::Swappiness, ControlValue::Number(1_000_000)),
        (Sysctl::Swappiness, ControlValue::Choice(PolicyChoice::Slub(SlubPolicy::Linux55))),
        (Sysctl::ThpEnabled, ControlValue::Choice(PolicyChoice::Slub(SlubPolicy::Linux55))),
        (Sysctl::DirtyBytes, ControlValue::Number(1)),
    ] {
        let bad = ControlWrite::Sysctl(sysctl, value);
        let error = machine.apply_writes(&[swappiness.clone(), bad]).unwrap_err();
        assert_eq!(error.errno, Errno::Einval, "{error}");
        assert_eq!(machine.digest(), before, "{error}");
    }
    let group = machine.create_memcg("g".into(), Machine::ROOT).unwrap();
    for value in
        [ControlValue::Number(5), ControlValue::Unlimited("-1"), ControlValue::Zones([0; 4], 7)]
    {
        let write = GroupControlWrite { control: GroupControl::find("memory.max").unwrap(), value };
        assert_eq!(machine.apply_group_write(group, write).unwrap_err().errno, Errno::Einval);
    }
    machine.apply_writes(&[swappiness]).unwrap().discard();
}
