//! Scenarios without mistakes after loading: the defaults, and every key.

use super::*;
use crate::model::ZramSetup;
use crate::names::{Compressor, DiskModel};
use pagetide_core::config::{KswapdPolicy, WatermarkPolicy};
use pagetide_core::control::{ControlWrite, GroupControlWrite};
use pagetide_core::swap::content::ContentMix;
use pagetide_core::swap::zswap::ZswapOptions;

fn write((name, text): (&str, &str)) -> ControlWrite {
    ControlWrite::read(name, text, Default::default()).unwrap()
}

#[test]
fn a_small_scenario_gets_its_defaults() {
    let scenario = sound(SOUND);
    assert_eq!(scenario.name, "case");
    assert_eq!(scenario.title, "case");
    assert_eq!((scenario.repeats, scenario.seed), (5, 1));
    assert_eq!(scenario.variants.len(), 1);
    assert_eq!(scenario.variants[0].name, "default");
    let setup = &scenario.variants[0].setup;
    assert_eq!(setup.time_limit_ns, 3600 * 1_000_000_000);
    assert_eq!(setup.machine.cpus, 1);
    assert_eq!(setup.machine.disks[0].name, "disk");
    assert_eq!(setup.machine.disks[0].model, DiskModel::Ssd);
    assert_eq!(setup.policies.of(), Some(WatermarkPolicy::ScaleFactor));
    assert_eq!(setup.policies.of(), Some(KswapdPolicy::Linux61));
    assert_eq!(setup.tasks[0].phases[0].name, "main");
    let touch = Workload::Touch(TouchWorkload {
        region: "anon".into(),
        pages: 4096,
        stride: 1,
        passes: 1,
        write: true,
        order: PageOrder::Sequential,
        advice: Advice::Normal,
        compute_ns: 0,
        pace: None,
    });
    assert_eq!(setup.tasks[0].phases[0].workload, touch);
}

#[test]
fn everything_can_be_written() {
    let text = include_str!("../everything.toml");
    let base = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/load");
    let scenario = load_str("everything.toml", text, &base, &Overrides::default());
    let scenario = scenario.unwrap_or_else(|errors| panic!("{errors}"));
    assert_eq!(scenario.name, "everything");
    let setup = &scenario.variants[0].setup;
    let node = &setup.machine.nodes[0];
    assert_eq!((node.memory, node.reserved, node.movable), (4 << 30, 64 << 20, 1 << 30));
    assert_eq!(setup.machine.nodes[1].zones[0].free, 1000);
    assert_eq!(setup.machine.disks[1].read_latency_ns, Some(80_000));
    assert_eq!(setup.machine.disks[1].read_shape, None);
    let hdd = &setup.machine.disks[0];
    assert_eq!((hdd.read_latency_ns, hdd.write_latency_ns), (Some(200_000), Some(5_031)));
    assert_eq!(hdd.write_shape.as_ref().map(|shape| shape.mean_ns()), Some(5_031));
    assert_eq!(hdd.read_shape.as_ref().map(|shape| shape.mean_ns()), Some(101_319));
    assert_eq!(setup.machine.latency_files, [base.join("latencies.csv")]);
    assert_eq!(setup.machine.disks[1].write_bandwidth, Some(500 << 20));
    assert_eq!(setup.machine.disks[1].faults.slow_factor, 20);
    let swap = &setup.machine.swap[0];
    assert_eq!((swap.disk, swap.size, swap.full_after_pages), (1, 2 << 30, Some(1000)));
    let sysctls = [
        ("vm.swappiness", "10"),
        ("vm.lowmem_reserve_ratio", "256 256 32 0"),
        ("vm.dirty_ratio", "0x14"),
    ];
    assert!(setup.sysctls == sysctls.map(write));
    // In the file, `inner` is before its parent.
    let names: Vec<&str> = setup.groups.iter().map(|group| group.name.as_str()).collect();
    assert_eq!(names, ["outer", "inner", "late"]);
    assert_eq!(setup.groups[1].parent, Some(0));
    assert_eq!(setup.groups[1].controls, [GroupControlWrite::read("memory.max", "300M").unwrap()]);
    let names: Vec<&str> = setup.tasks.iter().map(|task| task.name.as_str()).collect();
    assert_eq!(names, ["writer.0", "writer.1", "all", "guest", "reader"]);
    assert_eq!(setup.tasks[0].group, Some(1));
    assert_eq!(setup.tasks[4].start.after, Some(2));
    assert_eq!(setup.tasks[4].start.delay_ns, 5_000_000);
    assert_eq!((setup.tasks[3].until, setup.tasks[3].background), (Some(4), true));
    let files: Vec<&str> = setup.files.iter().map(|file| file.name.as_str()).collect();
    assert_eq!(files, ["data", "inodes", "log@writer.0", "log@writer.1", "log@all"]);
    let phases: Vec<&str> = setup.tasks[2].phases.iter().map(|p| p.name.as_str()).collect();
    let first = [
        "fill", "pass0", "pass1", "pass2", "zipf", "set", "serve", "holes", "back", "pin",
        "advice", "high", "share",
    ];
    let objects = ["buffers", "files", "thinned", "looked-for", "pipes"];
    let last = ["work", "rest", "make", "enter", "squeeze", "tune", "leave", "remove"];
    assert_eq!(phases, [&first[..], &objects[..], &last[..]].concat());
    assert!(!setup.machine.kmem_accounting && setup.machine.memory_recursiveprot);
    assert_eq!(setup.tasks[0].settings.oom_score_adj, -1000);
    assert_eq!(
        setup.machine.costs.iter().map(|(_, ns)| ns).collect::<Vec<_>>(),
        Vec::from_iter(1..35)
    );
    let Workload::MappedRead(MappedRead { order, advice, .. }) = &setup.tasks[2].phases[4].workload
    else {
        panic!("not a mapped read");
    };
    assert_eq!((*order, *advice), (PageOrder::Zipf { exponent_hundredths: 99 }, Advice::Random));
    assert_eq!(setup.measure, Some(2));
    assert_eq!(scenario.rows, ["all.walltime", "pgscan_kswapd", "inner.memory.current"]);
    let reference = scenario.reference.as_ref().unwrap();
    assert_eq!(reference.values["a"]["all.walltime"], 0.503);
    assert_eq!(reference.values["a"]["pgscan_kswapd"], 12.0);
    let b = &scenario.variants[1].setup;
    assert_eq!(b.machine.nodes[0].memory, 8 << 30);
    assert_eq!(b.tasks[2].settings.nice, 5);
    assert_eq!(b.sysctls[0], write(("vm.swappiness", "100")));
    assert_eq!(b.sysctls[3], write(("vm.min_free_kbytes", "8192")));
    assert_eq!(b.policies.of(), Some(KswapdPolicy::Linux2637));
}

#[test]
fn a_scenario_needs_a_name() {
    let load = |name| load_str(name, SOUND, Path::new(""), &Overrides::default());
    assert_eq!(load("a/file2.0.toml").unwrap().name, "file2.0");
    for name in ["", "two words.toml", "<stdin>"] {
        let errors = load(name).unwrap_err();
        assert_eq!(errors.iter().next().unwrap().message, "the scenario has no name");
    }
}

#[test]
fn swap_is_a_size_a_table_or_a_list() {
    let areas = |swap: &str| {
        let text = SOUND.replacen("[machine]\n", &format!("[machine]\nswap = {swap}\n"), 1);
        let machine = sound(&text).variants.remove(0).setup.machine;
        let sizes: Vec<u64> = machine.swap.iter().map(|area| area.size >> 20).collect();
        (sizes, machine.swap_priorities())
    };
    assert_eq!(areas("\"64MiB\""), (vec![64], vec![-2]));
    assert_eq!(areas("[]"), (vec![], vec![]));
    let list = "[\"64MiB\", { size = \"8MiB\", priority = 100 }, { size = \"1MiB\" }]";
    assert_eq!(areas(list), (vec![64, 8, 1], vec![-2, 100, -3]));
    for (swap, message) in [
        ("[\"0\"]", "size 0"),
        ("[{ size = \"1MiB\", priority = 40000 }]", "32767"),
        ("[\"1TiB\", \"1TiB\", \"1TiB\"]", "too large"),
        (&format!("[{}]", "\"4KiB\", ".repeat(24)), "24 swap areas are too many"),
        ("[{ size = \"1MiB\", disk = \"no\" }]", "no"),
        ("[{ priority = 1 }]", "no size"),
        ("{ zram = \"1GB\" }", "1GB"),
        ("{ zram = \"1GiB\", algorithm = \"zst\" }", "did you mean \"zstd\"?"),
        ("{ zram = \"1GiB\", algorithm = \"deflate\" }", "`lzo`, `lzo-rle`, `lz4` and `zstd`"),
        ("{ zram = \"1GiB\", size = \"1GiB\" }", "`size`: a zram device is on no disk"),
        ("{ zram = \"1GiB\", disk = \"disk\" }", "`disk`: a zram device is on no disk"),
        ("{ size = \"1GiB\", mem_limit = \"1MiB\" }", "`mem_limit`: the swap area is on a disk"),
    ] {
        let text = SOUND.replacen("[machine]\n", &format!("[machine]\nswap = {swap}\n"), 1);
        let found = load_text(&text, &Overrides::default()).unwrap_err().to_string();
        assert!(found.contains(message), "{swap}: {found}");
    }
}

#[test]
fn zswap_has_defaults_bounds_and_a_disk() {
    let with = |keys: &str| {
        let text = SOUND.replacen("[machine]\n", &format!("[machine]\n{keys}\n"), 1);
        let loaded = load_text(&text, &Overrides::default());
        loaded.map(|mut it| it.variants.remove(0).setup.machine.zswap)
    };
    assert_eq!(with("swap = \"1GiB\"").unwrap(), None);
    let default = with("swap = \"1GiB\"\nzswap = {}").unwrap().unwrap();
    assert_eq!(default, ZswapOptions::default());
    let keys = "max_pool_percent = 60, accept_threshold_percent = 80, compressor = \"zstd\", \
                shrinker = true";
    let all = with(&format!("swap = \"1GiB\"\nzswap = {{ {keys} }}")).unwrap().unwrap();
    let expected = ZswapOptions {
        compressor: Compressor::Zstd,
        max_pool_percent: 60,
        accept_threshold_percent: 80,
        shrinker: true,
    };
    assert_eq!(all, expected);
    for (keys, message) in [
        ("zswap = {}", "zswap needs a swap area on a disk"),
        ("swap = { zram = \"1GiB\" }\nzswap = {}", "write, for example, swap = \"4GiB\""),
        ("swap = \"1GiB\"\nzswap = { max_pool_percent = 101 }", "100"),
        ("swap = \"1GiB\"\nzswap = { accept_threshold_percent = -1 }", "-1"),
        ("swap = \"1GiB\"\nzswap = { compressor = \"zst\" }", "did you mean \"zstd\"?"),
        ("swap = \"1GiB\"\nzswap = { zpool = \"zbud\" }", "zpool"),
    ] {
        let found = with(keys).unwrap_err().to_string();
        assert!(found.contains(message), "{keys}: {found}");
    }
}

#[test]
fn swap_may_be_compressed_and_pages_have_contents() {
    let swap =
        "[{ zram = \"64MiB\", algorithm = \"zstd\", mem_limit = \"8MiB\", priority = 100 }, \
                { zram = \"1MiB\" }, \"4GiB\"]";
    let content = "content = { zero = \"20%\", same = 0, ratio = 4.096 }";
    let text = SOUND.replacen("[machine]\n", &format!("[machine]\nswap = {swap}\n"), 1);
    assert!(load_text(
        &text.replacen("[machine]\n", &format!("[machine]\n{content}\n"), 1),
        &Overrides::default()
    )
    .unwrap_err()
    .to_string()
    .contains("not a valid ratio"));
    let content = content.replace("4.096", "4");
    let text = text.replacen("[machine]\n", &format!("[machine]\n{content}\n"), 1);
    let text = format!("{text}\n[task.content]\nincompressible = \"50%\"\n");
    let setup = sound(&text).variants.remove(0).setup;
    let areas = &setup.machine.swap;
    let zram = |algorithm, mem_limit| Some(ZramSetup { algorithm, mem_limit, backing: None });
    assert_eq!(areas[0].zram, zram(Compressor::Zstd, Some(8 << 20)));
    assert_eq!((areas[1].zram.clone(), areas[1].size), (zram(Compressor::LzoRle, None), 1 << 20));
    assert_eq!((areas[2].zram.clone(), areas[2].size), (None, 4 << 30));
    let machine = ContentMix { zero: 200, same: 0, mean_size: 1024, ..ContentMix::DEFAULT };
    assert_eq!(setup.machine.content, machine);
    let task = ContentMix { incompressible: 500, ..machine };
    assert_eq!(setup.tasks.last().unwrap().content, Some(task));
    let text = text.replace("\"50%\"", "\"90%\"");
    let found = load_text(&text, &Overrides::default()).unwrap_err().to_string();
    assert!(found.contains("the shares of the content are 110% together"), "{found}");
}
