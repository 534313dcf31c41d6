//! Imports a system with compressed swap, and with the daemons that kill.

use pagetide_linux::host::scenario::{write, HostImportOptions, ImportedScenario};
use pagetide_linux::host::snapshot::HostSnapshot;
use pagetide_scenario::model::{Setup, Workload};
use pagetide_testing::directory::TestDir;
use std::fs;
use std::path::Path;

/// A node: memory and swap, zram with zstd, kubelet, and oomd and earlyoom as Fedora has them.
const NODE: &[(&str, &str)] = &[
    ("proc/meminfo", "MemTotal: 4194304 kB\n"),
    ("proc/sys/kernel/osrelease", "6.12.0-1-amd64\n"),
    (
        "proc/swaps",
        "Filename Type Size Used Priority\n/dev/zram0 partition 1048572 0 100\n\
         /dev/vda3 partition 2097148 0 -2\n",
    ),
    ("sys/block/vda/queue/rotational", "0\n"),
    ("sys/block/vda/size", "41943040\n"),
    ("sys/block/zram0/comp_algorithm", "lzo lzo-rle lz4 lz4hc [zstd] deflate 842\n"),
    ("sys/block/zram0/disksize", "1073741824\n"),
    ("sys/block/zram0/mm_stat", "4096 77 12288 536870912 12288 0 0 0 0\n"),
    ("sys/block/zram0/backing_dev", "/dev/vda4\n"),
    ("sys/module/zswap/parameters/enabled", "Y\n"),
    ("sys/module/zswap/parameters/max_pool_percent", "35\n"),
    ("sys/module/zswap/parameters/accept_threshold_percent", "80\n"),
    ("sys/module/zswap/parameters/compressor", "lz4\n"),
    ("sys/module/zswap/parameters/shrinker_enabled", "Y\n"),
    (
        "var/lib/kubelet/config.yaml",
        "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\nevictionHard:\n  \
         memory.available: 750Mi\nevictionSoft:\n  memory.available: \"1Gi\"\n\
         evictionSoftGracePeriod:\n  memory.available: 1m30s\nevictionMaxPodGracePeriod: 60\n\
         evictionPressureTransitionPeriod: 2m0s\nmemorySwap:\n  swapBehavior: LimitedSwap\n",
    ),
    ("usr/lib/systemd/oomd.conf", "[OOM]\n#SwapUsedLimit=90%\n"),
    ("usr/lib/systemd/oomd.conf.d/10-oomd-defaults.conf", "[OOM]\nDefaultMemoryPressureDurationSec=20s\n"),
    ("etc/systemd/oomd.conf.d/50-own.conf", "[OOM]\nSwapUsedLimit=80%\nDefaultMemoryPressureLimit=55%\n"),
    ("usr/lib/systemd/system/-.slice.d/10-oomd.conf", "[Slice]\nManagedOOMSwap=kill\n"),
    (
        "usr/lib/systemd/system/user@.service.d/10-oomd.conf",
        "[Service]\nManagedOOMMemoryPressure=kill\nManagedOOMMemoryPressureLimit=50%\n",
    ),
    ("etc/systemd/system/db.service", "[Service]\nManagedOOMPreference=avoid\n"),
    (
        "etc/default/earlyoom",
        "EARLYOOM_ARGS=\"-r 60 -m4,2 -s 10 --avoid '(^|/)(init|systemd)$' -p --sort-by-rss\"\n",
    ),
    ("sys/fs/cgroup/cgroup.controllers", "memory\n"),
    ("sys/fs/cgroup/user.slice/user-1000.slice/user@1000.service/memory.current", "4096\n"),
    ("sys/fs/cgroup/system.slice/db.service/memory.current", "4096\n"),
    ("sys/fs/cgroup/kubepods.slice/memory.max", "3221225472\n"),
    ("sys/fs/cgroup/kubepods.slice/kubepods-poda_1.slice/memory.max", "268435456\n"),
    (
        "sys/fs/cgroup/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-podb_2.slice/memory.current",
        "4096\n",
    ),
];

fn import(is_there: impl Fn(&str) -> bool, more: &[(&str, &str)]) -> (Setup, ImportedScenario) {
    let root = TestDir::new();
    let kept = NODE.iter().filter(|(place, _)| is_there(place));
    for (place, text) in kept.chain(more) {
        let path = root.directory.join(place);
        fs::create_dir_all(path.parent().unwrap_or(Path::new(""))).unwrap();
        fs::write(path, text).unwrap();
    }
    let host = HostSnapshot::read(&root.directory).unwrap();
    let written = write(&host, HostImportOptions::default()).unwrap();
    (pagetide_testing::setup(&written.text), written)
}

fn told(written: &ImportedScenario, text: &str) {
    let notes: Vec<String> = written.notes.iter().map(ToString::to_string).collect();
    assert!(notes.iter().any(|note| note.contains(text)), "{text:?} is not in {notes:#?}");
}

#[test]
fn a_node_has_its_swap_and_its_watchers() {
    let (setup, written) = import(|_| true, &[]);
    let zram = setup.machine.swap[0].zram.clone().unwrap();
    assert_eq!((zram.algorithm.name(), zram.mem_limit), ("zstd", Some(536_870_912)));
    assert_eq!(zram.backing, Some(1_073_737_728), "the device, without its header");
    assert!(setup.machine.swap[1].zram.is_none());
    let zswap = setup.machine.zswap.unwrap();
    assert_eq!((zswap.max_pool_percent, zswap.accept_threshold_percent), (35, 80));
    assert_eq!((zswap.compressor.name(), zswap.shrinker), ("lz4", true));
    for text in [
        "memory_available = \"750Mi\"\nmemory_available_soft = \"1Gi\"\nsoft_grace_period = \"90s\"\n\
         pressure_transition_period = \"120s\"\nmax_pod_grace_period = \"60s\"\nkubepods = \"kubepods_slice\"\n",
        "[[watcher.pod]]\ngroup = \"kubepods-poda_1_slice\"\nrequest = 268435456\n",
        "[[watcher.pod]]\ngroup = \"kubepods-burstable-podb_2_slice\"\n",
        "swap_used_limit = \"80%\"\nmemory_pressure_limit = \"55%\"\nmemory_pressure_duration = \"20s\"\n\
         avoid = [\"db_service\"]\n[[watcher.unit]]\nswap = true\n[[watcher.unit]]\n\
         group = \"user_1000_service\"\npressure = true\nlimit = \"50%\"\n",
        "kind = \"earlyoom\"\nmem = \"4,2\"\nswap = \"10\"\nnice = -20\noom_score_adj = -100\nsort_by_rss = true\n",
    ] {
        assert!(written.text.contains(text), "{text}\n is not in\n{}", written.text);
    }
    told(&written, "the groups have the control files that kubelet wrote");
    told(&written, "it names programs, which the scenario has as tasks of other names: `--avoid");
    let kinds = setup.tasks.iter().filter(|task| match &task.phases[0].workload {
        Workload::Kubelet(kubelet) => kubelet.options.pods.len() == 2,
        Workload::SystemdOomd(oomd) => oomd.options.swap_units.len() == 1,
        Workload::Earlyoom(earlyoom) => earlyoom.options.sort_by_rss,
        _ => false,
    });
    assert_eq!(kinds.count(), 3);
}

#[test]
fn what_cannot_be_taken_gives_a_note() {
    let is_there = |place: &str| !place.starts_with("sys/fs") && !place.starts_with("var/");
    let more = [
        (
            "etc/kubernetes/kubelet-config.json",
            "{\"kind\": \"KubeletConfiguration\", \"evictionHard\": {\"nodefs.available\": \"5%\"}, \
             \"evictionSoft\": {\"memory.available\": \"1Gi\"}, \"memorySwap\": {\"swapBehavior\": \"LimitedSwap\"}}",
        ),
        ("etc/kubernetes/kubelet-config-2.yaml", "kind: Other\n"),
        ("etc/default/earlyoom", "EARLYOOM_ARGS='-m 0 -M 400000 --new-option'\n"),
        ("sys/block/zram0/comp_algorithm", "lzo [842]\n"),
        ("sys/block/zram0/backing_dev", "/dev/loop7\n"),
        ("sys/module/zswap/parameters/compressor", "deflate\n"),
        ("sys/module/zswap/parameters/max_pool_percent", "many\n"),
    ];
    let (setup, written) = import(is_there, &more);
    for note in [
        "kubelet-config-2.yaml: ",
        "no hard threshold of memory.available",
        "left out: grace period must be specified for the soft eviction threshold",
        "systemd-oomd is left out: no unit",
        "sizes are left out",
        "this option is left out: `--new-option`",
        "comp_algorithm: a scenario does not have this algorithm; lzo-rle is used: `842`",
        "backing_dev: ",
        "max_pool_percent: not a percentage: `many`",
        "compressor: a scenario does not have this algorithm; lzo is used: `deflate`",
    ] {
        told(&written, note);
    }
    assert!(written.text.contains("memory_available = \"0%\"\nswap_behavior = \"LimitedSwap\"\n"));
    assert!(written.text.contains("[[watcher.pod]]\ngroup = \"example-pod\"\n"));
    let example = setup.tasks.iter().find(|task| task.name == "example").unwrap();
    assert_eq!(setup.groups[example.group.unwrap()].name, "example-pod");
}

#[test]
fn version_1_and_damaged_files_still_load() {
    let groups = |place: &str| !place.starts_with("sys/fs");
    let old = [
        ("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n"),
        ("sys/fs/cgroup/memory/kubepods/burstable/poda-1/memory.limit_in_bytes", "104857600\n"),
        ("sys/fs/cgroup/memory/user.slice/user@1000.service/memory.limit_in_bytes", "104857600\n"),
    ];
    let (_, written) = import(groups, &old);
    told(&written, "systemd-oomd is left out: it needs cgroup version 2");
    assert!(written.text.contains("[[watcher.pod]]\ngroup = \"poda-1\"\n"));
    // Each file cut in the middle, and with a byte that does not belong there.
    for (place, text) in NODE.iter().skip(2) {
        let cut = &text[..text.len() / 2];
        let odd = format!("{cut}\u{1b}\"'[{{\n{cut}");
        for text in [cut, odd.as_str()] {
            import(|other| other != *place, &[(place, text)]);
        }
    }
}
