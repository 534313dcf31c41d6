//! The shipped experiments, pinned: digest and a dozen counters of every variant's first seed.
//!
//! A change that moves a result on purpose records it anew, and says so in its commit:
//! `PAGETIDE_ACCEPT=1 cargo test -p pagetide-sim --test golden`. A failure lists what moved.

use pagetide_scenario::load::{load, Overrides};
use pagetide_scenario::model::Scenario;
use pagetide_scenario::record::RunRecord;
use pagetide_sim::{run, RunOptions};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// What a failure shows beside the digest: names of machine counters.
const COUNTERS: [&str; 16] = [
    "pgfault",
    "pgmajfault",
    "pgalloc_dma32",
    "pgscan_kswapd",
    "pgscan_direct",
    "pgsteal_kswapd",
    "pgsteal_direct",
    "pgactivate",
    "pgdeactivate",
    "pswpin",
    "pswpout",
    "nr_written",
    "workingset_refault_anon",
    "workingset_refault_file",
    "allocstall",
    "mm_vmscan_kswapd_wake",
];

/// Variant -> name -> value.
type Golden = BTreeMap<String, BTreeMap<String, String>>;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn experiment(name: &str, sets: &[(&str, &str)]) -> Scenario {
    let file = root().join("experiments").join(format!("{name}.toml"));
    let sets = sets.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    load(&file, &Overrides { sets, ..Overrides::default() })
        .unwrap_or_else(|errors| panic!("{errors}"))
}

fn runs(scenario: &Scenario) -> Vec<RunRecord> {
    let run = |variant| {
        run(&scenario.name, variant, scenario.seed, &RunOptions::default())
            .unwrap_or_else(|error| panic!("{}: {error}", scenario.name))
    };
    scenario.variants.iter().map(run).collect()
}

fn golden(records: &[RunRecord]) -> Golden {
    let entry = |record: &RunRecord| {
        let mut values: BTreeMap<String, String> = COUNTERS
            .iter()
            .filter_map(|&name| {
                Some((name.to_owned(), record.metrics.get(name)?.value.to_string()))
            })
            .collect();
        values.insert("elapsed_ns".into(), record.elapsed_ns.to_string());
        values.insert("digest".into(), format!("{:?}", record.digest));
        (record.variant.clone(), values)
    };
    records.iter().map(entry).collect()
}

fn moved(old: &Golden, new: &Golden) -> String {
    let mut text = String::new();
    let empty = BTreeMap::new();
    for variant in old.keys().chain(new.keys().filter(|name| !old.contains_key(*name))) {
        let old = old.get(variant).unwrap_or(&empty);
        let new = new.get(variant).unwrap_or(&empty);
        for name in old.keys().chain(new.keys().filter(|name| !old.contains_key(*name))) {
            if old.get(name) != new.get(name) {
                let show = |value: Option<&String>| value.map_or("-".into(), String::clone);
                let (old, new) = (show(old.get(name)), show(new.get(name)));
                writeln!(text, "  {variant:<12} {name:<26} {old:>20} -> {new}").unwrap();
            }
        }
    }
    text
}

/// Runs an experiment twice: equal to itself and to what was recorded.
fn check(name: &str) {
    check_with(name, &[]);
}

/// The same of an experiment made shorter.
fn check_with(name: &str, sets: &[(&str, &str)]) {
    let scenario = experiment(name, sets);
    let records = runs(&scenario);
    for (once, again) in records.iter().zip(runs(&scenario)) {
        assert_eq!(once.digest, again.digest, "{name}, {}: not deterministic", once.variant);
        assert_eq!(once.metrics, again.metrics, "{name}, {}", once.variant);
    }
    let new = golden(&records);
    let file = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/golden")
        .join(format!("{}.json", scenario.name));
    if std::env::var_os("PAGETIDE_ACCEPT").is_some() {
        let text = serde_json::to_string_pretty(&new).unwrap() + "\n";
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(&file, text).unwrap();
        return;
    }
    let text = std::fs::read_to_string(&file).unwrap_or_else(|error| {
        panic!("{}: {error}; record it with PAGETIDE_ACCEPT=1", file.display())
    });
    let old: Golden = serde_json::from_str(&text).unwrap();
    assert!(old == new, "{name} moved:\n{}", moved(&old, &new));
}

#[test]
fn tunable_watermarks() {
    check("tunable-watermarks");
}

#[test]
fn tunable_watermarks_4g() {
    check("tunable-watermarks-4g");
}

#[test]
fn tunable_watermarks_long() {
    check("tunable-watermarks-long");
}

/// A fifth of the files to compile, with larger objects: enough for both builds to be reclaimed from.
const SHORT_BUILDS: &[(&str, &str)] = &[
    ("task.master.units", "10"),
    ("task.slave.units", "10"),
    ("task.master.object", "2MiB"),
    ("task.slave.object", "2MiB"),
];

#[test]
fn soft_limit() {
    // check("soft-limit")
    check_with("soft-limit", SHORT_BUILDS);
}

#[test]
fn soft_limit_vs_low() {
    // check("soft-limit-vs-low")
    check_with("soft-limit-vs-low", SHORT_BUILDS);
}

#[test]
fn soft_limit_latency() {
    // check("soft-limit-latency")
    check_with("soft-limit-latency", SHORT_BUILDS);
}

#[test]
fn soft_limit_nodes() {
    check("soft-limit-nodes");
}

#[test]
fn shrink_priority() {
    check("shrink-priority");
}

#[test]
fn shrink_priority_vs_low() {
    check("shrink-priority-vs-low");
}

/// The trees are in memory, and a few seconds of requests.
const FIRST_REQUESTS: &[(&str, &str)] = &[("task.phase1.start", "8s"), ("time_limit", "12s")];
const FIRST_BUSY: &[(&str, &str)] =
    &[("task.busy.start", "8s"), ("task.small.start", "8s"), ("time_limit", "12s")];

#[test]
fn kcompactd() {
    // check("kcompactd")
    check_with("kcompactd", FIRST_REQUESTS);
}

#[test]
fn kcompactd_interval() {
    check("kcompactd-interval");
}

#[test]
fn proactive() {
    // check("proactive")
    check_with("proactive", FIRST_BUSY);
}

#[test]
fn defrag_mode() {
    // check("defrag-mode")
    check_with("defrag-mode", FIRST_BUSY);
}

#[test]
fn slab_boot() {
    check("slab-boot");
}

#[test]
fn slab_sysbench() {
    // check("slab-sysbench")
    check_with("slab-sysbench", &[("task.thread.units", "200"), ("time_limit", "9s")]);
}

#[test]
fn slab_build() {
    // check("slab-build")
    check_with("slab-build", &[("task.job.units", "1"), ("task.job.copies", "16")]);
}

#[test]
fn slab_zombies() {
    // check("slab-zombies")
    check_with("slab-zombies", &[("task.maker.loops", "100")]);
}

#[test]
fn slab_coupling() {
    // check("slab-coupling")
    check_with("slab-coupling", &[("time_limit", "5s")]);
}

#[test]
fn compiler_trace() {
    check("compiler-trace");
}

#[test]
fn truth_anon() {
    check("truth/anon1.5");
}

#[test]
fn truth_file() {
    check("truth/file2.0");
}

#[test]
fn truth_mix() {
    check("truth/mix_sw60");
}

#[test]
fn truth_seq() {
    check("truth/seq2x");
}

#[test]
fn truth_watermarks() {
    check("truth/watermarks");
}

#[test]
fn every_shipped_experiment_is_pinned() {
    let source = include_str!("golden.rs");
    for directory in ["", "truth/"] {
        for entry in std::fs::read_dir(root().join("experiments").join(directory)).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|extension| extension == "toml") {
                let stem = path.file_stem().unwrap().to_str().unwrap();
                let call = format!("check(\"{directory}{stem}\")");
                assert!(source.contains(&call), "{directory}{stem} has no golden run");
            }
        }
    }
}
