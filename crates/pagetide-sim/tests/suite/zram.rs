//! Swap to zram in the simulator: CPU time instead of requests to a disk, and the levels reported.

use pagetide_scenario::record::RunRecord;
use pagetide_sim::{run, RunOptions};
use pagetide_testing::{scenario, value};

const SCENARIO: &str = r#"
machine = { cpus = 2, memory = "64MiB" }
variant = [
  { name = "disk", set."machine.swap" = { size = "64MiB" } },
  { name = "lz4", set."machine.swap" = { zram = "64MiB", algorithm = "lz4" } },
  { name = "zstd", set."machine.swap" = { zram = "64MiB", algorithm = "zstd" } },
  { name = "dear", set."machine.swap" = { zram = "64MiB", algorithm = "zstd" },
    set."machine.costs.zstd_compress" = "100us" },
  { name = "zeroes", set."machine.swap" = { zram = "64MiB" },
    set."task.t.content" = { zero = "100%", same = 0, incompressible = 0 } },
]
[[task]]
name = "t"
phase = [
  { name = "fill", workload = "touch", size = "80MiB" },
  { name = "again", workload = "touch", size = "20MiB" },
]
"#;

fn records() -> Vec<RunRecord> {
    let options = RunOptions { audit_every: 50, want_files: true, ..RunOptions::default() };
    let of = |variant| run("zram", variant, 1, &options).unwrap();
    scenario(SCENARIO).variants.iter().map(of).collect()
}

#[test]
fn pages_cost_cpu_time_and_no_requests() {
    let records = records();
    let [disk, lz4, zstd, dear, zeroes] = &records[..] else { unreachable!() };
    let of = |record: &RunRecord, key: &str| value(record, key);
    assert!(of(disk, "pgpgout") > 10_000.0 && !disk.metrics.contains_key("nr_zspages"));
    for record in [lz4, zstd, dear, zeroes] {
        assert_eq!((of(record, "pgpgout"), of(record, "pgpgin")), (0.0, 0.0));
        assert!(of(record, "pswpout") > 3000.0);
        assert_eq!(of(record, "zram.failed_writes"), 0.0);
        let file = record.files.iter().find(|(name, _)| name.ends_with("/zram0/mm_stat"));
        assert_eq!(file.unwrap().1.split_whitespace().count(), 9);
    }
    // 16 us against 3.7 us a page.
    let more = (of(zstd, "system") - of(lz4, "system")) / of(zstd, "pswpout");
    assert!((8e-6..16e-6).contains(&more), "{more}");
    let more = (of(dear, "system") - of(zstd, "system")) / of(dear, "pswpout");
    assert!((65e-6..100e-6).contains(&more), "{more}");
}

#[test]
fn levels_are_those_of_the_end_of_a_phase() {
    let records = records();
    let at = |record: &RunRecord, name: &str| value(record, &format!("t.fill.{name}"));
    for (record, least, most) in [(&records[1], 2.3, 2.9), (&records[2], 2.9, 3.9)] {
        let (orig, compr) = (at(record, "zram.orig_data_size"), at(record, "zram.compr_data_size"));
        assert!((least..most).contains(&(orig / compr)), "{orig} {compr}");
        assert_eq!(at(record, "nr_zspages") * 4096.0, at(record, "zram.mem_used_total"));
        let same = at(record, "zram.same_pages") * 4096.0 / orig;
        assert!((0.14..0.20).contains(&same), "{same}");
        let huge = at(record, "zram.huge_pages") * 4096.0 / orig;
        assert!((0.04..0.10).contains(&huge), "{huge}");
        // The task has ended and freed its slots.
        assert_eq!(value(record, "zram.orig_data_size"), 0.0);
        assert!(value(record, "zram.mem_used_max") >= at(record, "zram.mem_used_total"));
    }
    let zeroes = &records[4];
    assert_eq!(at(zeroes, "zram.mem_used_total"), 0.0);
    assert_eq!(at(zeroes, "zram.same_pages") * 4096.0, at(zeroes, "zram.orig_data_size"));
}

const WITH_BACKING: &str = r#"
[machine]
cpus = 2
memory = "64MiB"
swap = { zram = "64MiB", backing = "disk", backing_size = "32MiB" }
[machine.content]
incompressible = "20%"
[[machine.disk]]
name = "disk"
model = "ssd"
[[task]]
name = "t"
phase = [
  { name = "fill", workload = "touch", size = "80MiB" },
  { name = "mark", workload = "write-control", control = "zram.idle", text = "all" },
  { name = "hot", workload = "touch", size = "4MiB" },
  { name = "enable", workload = "write-control", control = "zram.writeback_limit_enable", text = "1" },
  { name = "limit", workload = "write-control", control = "zram.writeback_limit", text = "1000" },
  { name = "idle", workload = "write-control", control = "zram.writeback", text = "idle" },
  { name = "off", workload = "write-control", control = "zram.writeback_limit_enable", text = "0" },
  { name = "huge", workload = "write-control", control = "zram.writeback", text = "huge" },
  { name = "again", workload = "touch", size = "80MiB" },
]
[[variant]]
name = "with"
[[variant]]
name = "without"
set."machine.swap" = [{ zram = "64MiB" }]
"#;

#[test]
fn pages_go_to_the_disk_behind_a_device_and_are_read_from_there() {
    let options = RunOptions { audit_every: 50, want_files: true, ..RunOptions::default() };
    let of = |variant| run("zram", variant, 1, &options).unwrap();
    let records: Vec<RunRecord> = scenario(WITH_BACKING).variants.iter().map(of).collect();
    let [with, without] = &records[..] else { unreachable!() };
    let of = |key: &str| value(with, key);
    // The task waits for the disk at each page, 45 us long.
    assert_eq!(of("t.idle.zram.bd_count"), 1000.0);
    assert!(of("t.idle.walltime") > 0.045, "{}", of("t.idle.walltime"));
    let huge = of("t.huge.zram.bd_count") - 1000.0;
    assert!(huge > 300.0 && of("t.huge.zram.huge_pages") == 0.0, "{huge}");
    assert!(of("zram.bd_reads") > 1000.0 && of("zram.bd_writes") >= 1000.0 + huge);
    assert_eq!(of("pgpgin"), 4.0 * of("zram.bd_reads"));
    let file = with.files.iter().find(|(name, _)| name.ends_with("/zram0/bd_stat")).unwrap();
    assert_eq!(file.1.split_whitespace().count(), 3);
    let refused =
        |record: &RunRecord, errno: &str| record.notes.iter().any(|it| it.contains(errno));
    assert!(refused(with, "to zram.writeback was refused with EIO"), "{:?}", with.notes);
    assert!(refused(without, "to zram.writeback was refused with ENODEV"), "{:?}", without.notes);
    assert!(!without.metrics.contains_key("zram.bd_count") && value(without, "pgpgin") == 0.0);
}
