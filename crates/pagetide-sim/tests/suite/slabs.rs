//! Slab caches as the user configures and sees them: tuning, control files, limits of kernel
//! memory, tables.

use pagetide_scenario::record::RunRecord;
use pagetide_sim::observe::{Observation, ObservationKind};
use pagetide_sim::{run, RunOptions, SimError};
use pagetide_testing::directory::TestDir;
use pagetide_testing::runs::watch;
use pagetide_testing::scenario_in;
use std::sync::{Arc, Mutex};

const MIX: &str = "\
recorded = \"by hand\"
unit = \"a unit\"
[[cache]]
name = \"dentry\"
object_size = 192
account = true
reclaimable = true
allocs = 50
lifetimes = { unit = 0.2, cached = 0.8 }
[[cache]]
name = \"filp\"
object_size = 256
account = true
reclaimable = false
allocs = 20
lifetimes = { unit = 0.5, kept = 0.5 }
";

const SCENARIO: &str = r#"
[machine]
memory = "64MiB"

[[group]]
name = "g"
memory.swappiness = 60

[[task]]
name = "worker"
group = "g"

[[task.phase]]
name = "work"
workload = "kernel-objects"
mix = "mix.toml"
units = 40
interval = "1ms"
"#;

struct Run {
    record: Result<RunRecord, SimError>,
    events: String,
}

impl Run {
    #[track_caller]
    fn file(&self, name: &str) -> &str {
        let record = self.record.as_ref().unwrap();
        let found = record.files.iter().find(|(file, _)| file == name);
        &found.unwrap_or_else(|| panic!("no {name}")).1
    }

    fn notes(&self) -> String {
        self.record.as_ref().unwrap().notes.join("\n")
    }
}

/// Runs the scenario with `more` appended.
fn run_with(more: &str) -> Run {
    run_text(&format!("{SCENARIO}{more}"))
}

/// Runs a scenario, and writes its events as text, one per line.
fn run_text(text: &str) -> Run {
    let place = TestDir::with("mix.toml", MIX);
    let events = Arc::new(Mutex::new(String::new()));
    let notes = Arc::clone(&events);
    let observer = watch(move |observation: &Observation| {
        if let ObservationKind::Event(_, event) = &observation.what {
            let mut notes = notes.lock().unwrap();
            notes.push_str(event.name());
            event.each_field(|name, value| notes.push_str(&format!(" {name}={value:?}")));
            notes.push('\n');
        }
    });
    let options = RunOptions {
        want_files: true,
        audit_every: 100,
        observers: vec![observer],
        ..RunOptions::default()
    };
    let record = run("slabs", &scenario_in(&place, text).variants[0], 1, &options);
    let events = events.lock().unwrap().clone();
    Run { record, events }
}

fn phase(name: &str, control: &str, text: &str) -> String {
    format!(
        "[[task.phase]]\nname = \"{name}\"\nworkload = \"write-control\"\ncontrol = \"{control}\"\n\
         text = \"{text}\"\n"
    )
}

#[test]
fn caches_are_tuned_before_anything_runs() {
    let plain = run_with("");
    assert_eq!(plain.file("/sys/kernel/slab/dentry/order"), "0\n");
    let tuned = run_with(
        "[[machine.cache]]\nname = \"dentry\"\norder = 2\nmin_partial = 1\ncpu_partial = 0\n\
         [sysctl]\n\"slab.dentry.min_partial\" = 3\n",
    );
    for (file, text) in
        [("order", "2"), ("objs_per_slab", "85"), ("min_partial", "3"), ("cpu_partial", "0")]
    {
        assert_eq!(tuned.file(&format!("/sys/kernel/slab/dentry/{file}")).trim(), text, "{file}");
    }
    let row = tuned.file("/proc/slabinfo").lines().find(|row| row.starts_with("dentry ")).unwrap();
    let columns: Vec<&str> = row.split_whitespace().collect();
    assert_eq!(columns[3..6], ["192", "85", "4"]);
}

#[test]
fn a_tuning_that_cannot_be_is_refused_with_a_hint() {
    for (keys, said, hint) in [
        ("name = \"kmalloc-8\"\norder = 10", "order = 10 (EINVAL)", "from 0 to 5"),
        (
            "name = \"kmalloc-64k\"\norder = 6",
            "cache `kmalloc-64k` cannot be tuned: there is no such cache (ENOENT)",
            "did you mean `kmalloc-4k`?",
        ),
    ] {
        let error = run_with(&format!("[[machine.cache]]\n{keys}\n")).record.unwrap_err();
        assert!(error.to_string().contains(said), "{error}");
        assert!(error.hint().unwrap().contains(hint), "{:?}", error.hint());
    }
}

#[test]
fn files_of_caches_are_written_while_it_runs() {
    let writes = [
        phase("keep", "slab.dentry.min_partial", "44"),
        phase("drop", "vm.drop_caches", "2"),
        // Objects that a shrinker frees wait for a grace period.
        "[[task.phase]]\nname = \"wait\"\nworkload = \"sleep\"\nduration = \"100ms\"\n".to_owned(),
        phase("shrink", "slab.dentry.shrink", "1"),
    ];
    let ran = run_with(&writes.concat());
    assert_eq!(ran.notes(), "");
    assert_eq!(ran.file("/sys/kernel/slab/dentry/min_partial"), "44\n");
    let vmstat = ran.file("/proc/vmstat");
    for (name, at_least) in [("drop_slab", 1), ("slabs_scanned", 1), ("nr_slab_unreclaimable", 1)] {
        let line = vmstat.lines().find(|line| line.split(' ').next() == Some(name)).unwrap();
        let value: u64 = line.split(' ').nth(1).unwrap().parse().unwrap();
        assert!(value >= at_least, "{line}");
    }
    assert_eq!(ran.file("/sys/kernel/slab/dentry/objects"), "0\n");
    let of = |name: &str| ran.events.lines().filter(|line| line.contains(name)).count();
    let starts = of("mm_shrink_slab_start shrink=Word(\"super_cache_scan\") nid=Number(0) \
                     memcg=Name(Some(\"/g\")) nr_objects_to_shrink=Number(0)");
    assert!(starts > 0, "{}", ran.events);
    assert_eq!(of("mm_shrink_slab_start"), of("mm_shrink_slab_end"));
}

#[test]
fn every_cache_can_be_shrunk() {
    let makes = "[machine]\nmemory = \"64MiB\"\n[[task]]\nname = \"t\"\n\
                 [[task.phase]]\nname = \"names\"\nworkload = \"names\"\nmake = 3000\n\
                 [[task.phase]]\nname = \"pipes\"\nworkload = \"pipes\"\nmake = 300\n\
                 [[task.phase]]\nname = \"wait\"\nworkload = \"sleep\"\nduration = \"300ms\"\n";
    let plain = run_text(makes);
    let files = plain.record.as_ref().unwrap().files.iter();
    let caches: Vec<&str> = files
        .filter_map(|(file, _)| file.strip_prefix("/sys/kernel/slab/")?.strip_suffix("/objects"))
        .collect();
    let slabs = |ran: &Run, cache: &str| -> u64 {
        let text = ran.file(&format!("/sys/kernel/slab/{cache}/slabs"));
        text.split_whitespace().next().unwrap().parse().unwrap()
    };
    let phases = caches
        .iter()
        .enumerate()
        .map(|(nr, cache)| phase(&format!("shrink{nr}"), &format!("slab.{cache}.shrink"), "1"));
    let shrunk = run_text(&format!("{makes}{}", phases.collect::<String>()));
    assert_eq!(shrunk.notes(), "");
    for cache in ["shmem_inode_cache", "filp", "lsm_inode_cache", "lsm_file_cache", "dentry"] {
        assert!(caches.contains(&cache), "{caches:?}");
        assert!(slabs(&plain, cache) > 0, "{cache}: some wait for new objects");
        assert_eq!(slabs(&shrunk, cache), 0, "{cache}");
    }
    let tuned = "[[machine.cache]]\nname = \"filp\"\norder = 2\n";
    let tuned = run_text(&format!("{makes}{tuned}"));
    assert_eq!(tuned.file("/sys/kernel/slab/filp/order"), "2\n");
}

#[test]
fn one_object_in_eight_keeps_its_slab() {
    let makes = "[machine]\nmemory = \"64MiB\"\n[[task]]\nname = \"t\"\nphase = [\n\
                 { name = \"files\", workload = \"names\", make = 4000, keep = \"100 %\" },\n\
                 { name = \"pipes\", workload = \"pipes\", make = 400, keep = \"100 %\" },\n";
    let thin = |of: &str| {
        format!(
            "{{ name = \"no-{of}\", workload = \"remove\", of = \"{of}\", keep = \"1 in 8\" }},\n"
        )
    };
    let rest = "{ name = \"rest\", workload = \"sleep\", duration = \"1s\" },\n";
    let of = |phases: &str| run_text(&format!("{makes}{phases}]\n"));
    let whole = of(rest);
    let thinned = of(&format!("{}{}{rest}", thin("files"), thin("pipes")));
    assert_eq!(thinned.notes(), "");
    let counts = |ran: &Run, cache: &str| {
        let value = |what: &str| {
            let key = format!("t.rest.slabinfo.{cache}.{what}");
            ran.record.as_ref().unwrap().metrics[&key].value
        };
        (value("active_objs"), value("num_slabs"))
    };
    for (cache, before, after) in [("shmem_inode_cache", 4000, 500), ("filp", 800, 100)] {
        let ((all, slabs), (left, held)) = (counts(&whole, cache), counts(&thinned, cache));
        // All objects of a CPU's slabs count as in use.
        let about = |value: f64, wanted: i32| (value - f64::from(wanted)).abs() < 100.0;
        assert!(about(all, before) && about(left, after), "{cache}: {all} {left}");
        assert!(held > 0.9 * slabs, "{cache}: {held} slabs of {slabs}");
    }
}

#[test]
fn kernel_memory_is_limited_and_reported() {
    let ran = run_with("[[group]]\nname = \"h\"\nmemory.kmem.limit_in_bytes = \"64K\"\n");
    let path = |group: &str, file: &str| format!("/sys/fs/cgroup/{group}/memory.kmem.{file}");
    assert_eq!(ran.file(&path("h", "limit_in_bytes")), "65536\n");
    assert_eq!(ran.file(&path("h", "failcnt")), "0\n");
    let peak: u64 = ran.file(&path("g", "max_usage_in_bytes")).trim().parse().unwrap();
    assert!(peak > 0);
    assert_eq!(ran.file(&path("g", "slabinfo")), "", "objects have owners, groups no caches");
    let busy = "[[task.phase]]\nname = \"l\"\nworkload = \"write-control\"\ntarget = \"g\"\n\
                control = \"memory.kmem.limit_in_bytes\"\ntext = \"4K\"\n";
    let refused = run_with(busy);
    assert!(refused.notes().contains("EBUSY"), "{}", refused.notes());
    let own = run_with("[policy]\nslab_accounting = \"per-group-caches\"\n");
    assert!(own.file(&path("g", "slabinfo")).contains("\ndentry "), "the group's own cache");
}

#[test]
fn tables_add_up() {
    for accounting in ["per-object", "per-group-caches", "per-group-caches-reparent", "off"] {
        let ran = run_with(&format!("[policy]\nslab_accounting = \"{accounting}\"\n"));
        let column = |file: &str, name: &str| -> Vec<u64> {
            let mut lines = ran.file(file).lines();
            let from_end = lines.next().unwrap().split_whitespace().rev().position(|it| it == name);
            let from_end = from_end.unwrap();
            let cell = |line: &str| line.split_whitespace().rev().nth(from_end).unwrap().parse();
            lines.map(|line| cell(line).unwrap()).collect()
        };
        let by_group: u64 = column("/pagetide/slab-groups", "objects").iter().sum();
        let by_cache: u64 = column("/pagetide/slab-caches", "objects").iter().sum();
        let rows = ran.file("/proc/slabinfo").lines().skip(2);
        let by_slabinfo: u64 =
            rows.map(|row| row.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap()).sum();
        assert_eq!((by_group, by_cache), (by_slabinfo, by_slabinfo), "{accounting}");
        assert!(column("/pagetide/slab-caches", "bytes").is_sorted_by(|a, b| a >= b));
        let dentries: u64 = column("/pagetide/slab-groups", "dentries").iter().sum();
        assert!(dentries > 1000, "{accounting}: {dentries}");
    }
}

/// Number of objects in use in a cache at the end, from /proc/slabinfo.
fn active(ran: &Run, cache: &str) -> u64 {
    let slabinfo = ran.file("/proc/slabinfo");
    let row = slabinfo.lines().find(|line| line.split_whitespace().next() == Some(cache));
    row.map_or(0, |row| row.split_whitespace().nth(1).unwrap().parse().unwrap())
}

/// A task with one workload of files or pipes, in a group with a limit.
fn limited(control: &str, workload: &str) -> Run {
    let text = format!(
        "[machine]\nmemory = \"64MiB\"\n[[group]]\nname = \"g\"\n{control}\n[[task]]\nname = \"maker\"\n\
         group = \"g\"\n{workload}\n[[task]]\nname = \"late\"\ngroup = \"g\"\nstart = \"20s\"\n\
         workload = \"compute\"\nduration = \"1ms\"\n"
    );
    run_text(&text)
}

#[test]
fn a_call_that_meets_a_limit_leaves_nothing_half_made() {
    let kmem = "memory.kmem.limit_in_bytes = \"1M\"";
    let files = "workload = \"names\"\nmake = 3000\nkeep = \"100 %\"";
    let ran = limited(kmem, files);
    assert!(ran.notes().contains("allocations of kernel objects failed"), "{}", ran.notes());
    let made = active(&ran, "shmem_inode_cache");
    assert!((500..2000).contains(&made), "{made}");
    assert_eq!(active(&ran, "dentry"), made);
    assert_eq!(active(&ran, "lsm_inode_cache"), made);
    assert_eq!((active(&ran, "filp"), active(&ran, "lsm_file_cache")), (0, 0));
    let pipes = "workload = \"pipes\"\nmake = 3000\nkeep = \"100 %\"";
    let ran = limited(kmem, pipes);
    assert!(ran.notes().contains("allocations of kernel objects failed"), "{}", ran.notes());
    for cache in ["filp", "lsm_file_cache", "inode_cache", "dentry", "lsm_inode_cache"] {
        assert_eq!(active(&ran, cache), 0, "{cache}: pipes end with their task");
    }
}

#[test]
fn a_task_killed_in_a_call_leaves_nothing_half_made() {
    let max = "memory.max = \"1M\"";
    let files = "workload = \"names\"\nmake = 30000\nkeep = \"100 %\"";
    let ran = limited(max, files);
    let notes = ran.notes();
    assert!(notes.contains("task `maker` of group `g` was killed"), "{notes}");
    assert!(!notes.contains("task `late`"), "it had not started: {notes}");
    let made = active(&ran, "shmem_inode_cache");
    assert!(made > 500, "{made}");
    assert_eq!(active(&ran, "dentry"), made);
    assert_eq!(active(&ran, "lsm_inode_cache"), made);
}

#[test]
fn a_machine_full_of_kernel_objects_kills_the_requesting_task() {
    let files = "workload = \"names\"\nmake = 200000\nkeep = \"100 %\"";
    let ran = limited("", files);
    assert!(ran.notes().contains("was killed: out of memory (order 0, "), "{}", ran.notes());
}
