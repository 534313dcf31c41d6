//! Dirty limits of groups: writers in groups with a limit, files of several groups.

use pagetide_testing::run_text;

/// A machine of 512 MiB, an SSD, and the groups and tasks given.
fn machine(rest: &str) -> String {
    format!(
        "[machine]\nmemory = \"512MiB\"\n\
         [[file]]\nname = \"a\"\n[[file]]\nname = \"b\"\n{rest}"
    )
}

fn writer(name: &str, group: &str, file: &str, total: &str) -> String {
    format!(
        "[[task]]\nname = \"{name}\"\ngroup = \"{group}\"\nworkload = \"file-write\"\n\
         file = \"{file}\"\ntotal = \"{total}\"\n"
    )
}

/// In version 2 a writer pauses before its group is full of dirty pages, so reclaim finds clean
/// ones. In version 1 it does not, and reclaim waits for writes.
#[test]
fn a_writer_in_a_limited_group_leaves_clean_pages_to_reclaim() {
    let limited = |key: &str| {
        let group = format!("[[group]]\nname = \"g\"\n\"{key}\" = \"32M\"\n");
        let text = machine(&(group + &writer("w", "g", "a", "256MiB")));
        let record = run_text(&text, 5000);
        let value = |name: &str| record.metrics[name].value;
        // 256 MiB pass through 32 MiB.
        assert!(value("pgsteal_file") > 55_000.0, "{}", value("pgsteal_file"));
        value("pgscan_file") / value("pgsteal_file")
    };
    for key in ["memory.max", "memory.high"] {
        let scans = limited(key);
        assert!(scans < 1.02, "{key}: {scans} pages scanned for each one freed");
    }
    let scans = limited("memory.limit_in_bytes");
    assert!(scans > 1.02, "version 1: {scans}");
}

#[test]
fn a_writer_is_throttled_by_the_stricter_limits() {
    let stalls = |task: &str| {
        let group = "[[group]]\nname = \"g\"\nmemory.max = \"32M\"\n".to_owned();
        let record = run_text(&machine(&(group + task)), 5000);
        ["w.stall_dirty", "w.stall_dirty_group"].map(|name| record.metrics[name].value)
    };
    let task = writer("w", "g", "a", "512MiB");
    let [machine, group] = stalls(&task);
    assert!(machine < 0.1 * group && group > 0.1, "machine {machine}, group {group}");
    // The root has no limits of its own.
    let [machine, group] = stalls(&task.replace("group = \"g\"\n", ""));
    assert!(machine > 0.1 && group == 0.0, "machine {machine}, group {group}");
}

/// A file belongs to the writeback of the group that dirtied it first. Another group that writes it
/// is throttled by its own limits, but its writeback has nothing to write. On Linux 6.1 in QEMU 128
/// MiB take 89 s instead of 0.49 s.
#[test]
fn a_group_that_writes_the_file_of_another_one_crawls() {
    let time = |file: &str| {
        let groups = "[[group]]\nname = \"first\"\n[[group]]\nname = \"g\"\n\
                      \"memory.max\" = \"32M\"\n";
        let first = writer("begin", "first", "a", "64KiB");
        let late = writer("w", "g", file, "128MiB") + "after = \"begin\"\n";
        let text = machine(&(groups.to_owned() + &first + &late));
        run_text(&text, 5000).metrics["w.walltime"].value
    };
    let (own, foreign) = (time("b"), time("a"));
    assert!(own < 1.0 && (30.0..120.0).contains(&foreign), "own {own}, foreign {foreign}");
}

/// Two groups write to one disk. The one with less memory for dirty pages is slower, but goes on.
#[test]
fn two_groups_share_the_disk() {
    let groups = "[[group]]\nname = \"small\"\n\"memory.max\" = \"24M\"\n\
                  [[group]]\nname = \"large\"\n\"memory.max\" = \"128M\"\n";
    let tasks = writer("s", "small", "a", "256MiB") + &writer("l", "large", "b", "256MiB");
    let record = run_text(&machine(&(groups.to_owned() + &tasks)), 5000);
    let [small, large] = ["s.walltime", "l.walltime"].map(|name| record.metrics[name].value);
    assert!((1.0..2.5).contains(&(small / large)), "small {small}, large {large}");
}

/// A removed group leaves its dirty files to its parent, whose writeback writes them.
#[test]
fn dirty_files_of_a_removed_group_are_written() {
    let text = machine(
        "[[group]]\nname = \"g\"\n[[task]]\nname = \"w\"\ngroup = \"g\"\n\
         workload = \"file-write\"\nfile = \"a\"\ntotal = \"16MiB\"\n\
         [[task]]\nname = \"rm\"\nafter = \"w\"\n\
         [[task.phase]]\nname = \"remove\"\nworkload = \"remove-group\"\ntarget = \"g\"\n\
         [[task.phase]]\nname = \"rest\"\nworkload = \"sleep\"\nduration = \"45s\"\n",
    );
    let record = run_text(&text, 5000);
    assert_eq!(record.metrics["nr_written"].value, 4096.0, "16 MiB");
}
