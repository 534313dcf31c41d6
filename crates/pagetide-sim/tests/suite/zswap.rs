//! zswap in the simulator: CPU time, the levels reported, and pages that go on to the disk.

use pagetide_scenario::record::RunRecord;
use pagetide_sim::{run, RunOptions};
use pagetide_testing::{scenario, value};

const SCENARIO: &str = r#"
machine = { cpus = 2, memory = "64MiB", swap = "128MiB" }
group = [{ name = "g" }]
variant = [
  { name = "disk" },
  { name = "large", set."machine.zswap" = { max_pool_percent = 80, compressor = "lz4" } },
  { name = "small", set."machine.zswap" = { max_pool_percent = 5, compressor = "zstd" } },
  { name = "small-6.12", set."machine.zswap" = { max_pool_percent = 5, compressor = "zstd" },
    policy.zswap = "linux-6.12" },
  { name = "shrinker", set."machine.zswap" = { max_pool_percent = 80, shrinker = true } },
]
[[task]]
name = "t"
group = "g"
phase = [
  { name = "fill", workload = "touch", size = "100MiB" },
  { name = "again", workload = "touch", size = "100MiB", passes = 2 },
]
"#;

fn records() -> Vec<RunRecord> {
    let options = RunOptions { audit_every: 400, ..RunOptions::default() };
    let of = |variant| run("zswap", variant, 1, &options).unwrap();
    scenario(SCENARIO).variants.iter().map(of).collect()
}

#[test]
fn pages_stay_in_memory_until_the_pool_is_full() {
    let records = records();
    let [disk, large, small, small_6_12, shrinker] = &records[..] else { unreachable!() };
    let of = |record: &RunRecord, key: &str| value(record, key);
    assert_eq!((of(disk, "zswpout"), of(disk, "zswpwb")), (0.0, 0.0));
    assert!(of(disk, "pswpout") > 10_000.0 && of(disk, "pswpin") > 10_000.0);
    // Only incompressible pages go to the disk: 6 % of all.
    assert!(of(large, "zswpout") > 10_000.0 && of(large, "zswpin") > 10_000.0);
    let around = of(large, "pswpout") / of(large, "zswpout");
    assert!((0.03..0.12).contains(&around), "{around}");
    assert_eq!(of(large, "zswap.reject_compress_poor"), of(large, "pswpout"));
    assert_eq!(of(large, "zswap.pool_limit_hit"), 0.0);
    assert!(of(large, "t.walltime") < of(disk, "t.walltime") / 2.0);
    assert!(of(large, "system") > of(disk, "system"));
    let at = |record: &RunRecord, name: &str| value(record, &format!("t.fill.{name}"));
    let stored = at(large, "zswap.stored_pages");
    assert!(stored > 1000.0);
    let ratio = stored * 4096.0 / at(large, "zswap.pool_total_size");
    assert!((2.0..3.5).contains(&ratio), "{ratio}");
    let same = at(large, "zswap.same_filled_pages") / stored;
    assert!((0.14..0.22).contains(&same), "{same}");
    // A full pool: most pages go around it, and 6.12 also writes what it has.
    for record in [small, small_6_12] {
        assert!(of(record, "zswap.pool_limit_hit") > 0.0);
        assert!(at(record, "zswap.pool_total_size") < 0.06 * (64 << 20) as f64);
        assert!(of(record, "pswpout") > 3000.0);
        assert_eq!(of(record, "zswpwb"), of(record, "zswap.written_back_pages"));
    }
    assert!(of(small_6_12, "zswpwb") > of(small, "zswpwb"));
    // The shrinker writes pages although the pool is not full.
    assert_eq!(of(shrinker, "zswap.pool_limit_hit"), 0.0);
    assert!(of(shrinker, "zswpwb") > 0.0);
    assert_eq!(value(shrinker, "g.zswpwb"), of(shrinker, "zswpwb"));
}
