//! Golden tests of the shipped experiments. They record a dozen counters of the first seed of every
//! variant, and hashes of the core's decisions ([`pagetide_sim::Decisions`]): its effects and trace
//! events, with their times. The final state is not recorded, so a new field in it changes no
//! recording. Three experiments ([`REPEATED`]) run twice, and both runs must end in the same state;
//! storms repeat every run.
//!
//! [`EXPERIMENTS`] lists the experiments and how each is shortened. A shipped experiment without an
//! entry fails, and so does a recording without an experiment.
//!
//! A commit that changes a result on purpose updates the recordings and says so in its message:
//! `PAGETIDE_ACCEPT=1 cargo test -p pagetide-sim --test suite golden` prints the differences and records
//! the new values. A failure prints the same. If only `decisions.events` differs, the core logs
//! another event or field; if `decisions.effects` differs, its behavior has changed.

use pagetide_scenario::model::{Scenario, Variant};
use pagetide_scenario::record::RunRecord;
use pagetide_sim::{run, Decisions, RunOptions};
use pagetide_testing::{accepts, experiment, root, scenarios};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

/// Machine counters that are recorded, in addition to the decisions.
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

/// The experiments that run twice: a disk and two CPUs; two nodes and groups; swap, groups and a service.
const REPEATED: [&str; 3] = ["tunable-watermarks", "soft-limit-nodes", "k8s-node-swap"];

/// Variant -> name -> value.
type Golden = BTreeMap<String, BTreeMap<String, String>>;

fn run_with(scenario: &Scenario, variant: &Variant, options: &RunOptions) -> RunRecord {
    run(&scenario.name, variant, scenario.seed, options)
        .unwrap_or_else(|error| panic!("{}: {error}", scenario.name))
}

/// Runs a variant with hashes of its decisions, and one of [`REPEATED`] also without; all metrics
/// and the final state must be equal.
fn run_and_repeat(scenario: &Scenario, variant: &Variant) -> (RunRecord, Decisions) {
    let decisions = Arc::new(OnceLock::new());
    let options = RunOptions { decisions: Some(Arc::clone(&decisions)), ..RunOptions::default() };
    let record = run_with(scenario, variant, &options);
    let name = scenario.name.as_str();
    if REPEATED.contains(&name) {
        let again = run_with(scenario, variant, &RunOptions::default());
        assert_eq!(record.digest, again.digest, "{name}, {}: not deterministic", variant.name);
        assert_eq!(record.metrics, again.metrics, "{name}, {}", variant.name);
    }
    (record, *decisions.get().expect("the run is over"))
}

fn pinned(record: &RunRecord, decisions: Decisions) -> BTreeMap<String, String> {
    let mut values: BTreeMap<String, String> = COUNTERS
        .iter()
        .filter_map(|&name| Some((name.to_owned(), record.metrics.get(name)?.value.to_string())))
        .collect();
    values.insert("elapsed_ns".into(), record.elapsed_ns.to_string());
    values.insert("decisions.effects".into(), decisions.effects.to_string());
    values.insert("decisions.events".into(), decisions.events.to_string());
    values
}

/// A line for each different value: experiment, variant, counter, before, after.
fn moved(name: &str, old: &Golden, new: &Golden) -> String {
    let mut text = String::new();
    let empty = BTreeMap::new();
    let variants: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
    for variant in variants {
        let old = old.get(variant).unwrap_or(&empty);
        let new = new.get(variant).unwrap_or(&empty);
        let counters: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
        for counter in counters {
            if old.get(counter) != new.get(counter) {
                let show = |value: Option<&String>| value.map_or("-".into(), String::clone);
                let (old, new) = (show(old.get(counter)), show(new.get(counter)));
                writeln!(text, "{name} {variant:<12} {counter:<26} {old:>20} -> {new}").unwrap();
            }
        }
    }
    text
}

fn recordings() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden")
}

/// The file name of an experiment's recording: its name without the directory.
fn recording(name: &str) -> String {
    format!("{}.json", name.rsplit('/').next().unwrap())
}

/// Runs an experiment and compares it with its recording.
fn check(name: &str, shorter: Sets) {
    let scenario = experiment(name, shorter);
    let new: Golden = scenario
        .variants
        .iter()
        .map(|variant| {
            let (record, decisions) = run_and_repeat(&scenario, variant);
            (record.variant.clone(), pinned(&record, decisions))
        })
        .collect();
    let different: BTreeSet<_> = new.values().collect();
    assert!(new.len() == 1 || different.len() > 1, "{name} is too short: its variants are equal");
    let file = recordings().join(recording(name));
    let old = std::fs::read_to_string(&file).map(|text| serde_json::from_str::<Golden>(&text));
    if accepts() {
        let old = old.ok().and_then(Result::ok).unwrap_or_default();
        let text = serde_json::to_string_pretty(&new).unwrap() + "\n";
        std::fs::create_dir_all(recordings()).unwrap();
        std::fs::write(&file, text).unwrap();
        // Not captured by the test harness, so that the user sees it.
        std::io::stderr().write_all(moved(name, &old, &new).as_bytes()).unwrap();
        return;
    }
    let old = old.unwrap_or_else(|error| {
        panic!("{}: {error}; record it with PAGETIDE_ACCEPT=1", file.display())
    });
    let old = old.unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    assert!(old == new, "{name} moved:\n{}", moved(name, &old, &new));
}

type Sets = scenarios::Sets<'static>;

/// Defines the table of experiments, and a test for each line, so that they run in parallel.
macro_rules! experiments {
    ($($test:ident: $name:literal, $shorter:expr;)+) => {
        /// All shipped experiments, each with the overrides that shorten it.
        const EXPERIMENTS: &[(&str, Sets)] = &[$(($name, $shorter),)+];

        $(#[test]
        fn $test() {
            check($name, $shorter);
        })+
    };
}

/// No overrides.
const WHOLE: Sets = &[];
/// A fifth of the files to compile, with larger objects: enough for reclaim from both builds.
const SHORT_BUILDS: Sets = &[
    ("task.master.units", "10"),
    ("task.slave.units", "10"),
    ("task.master.object", "2MiB"),
    ("task.slave.object", "2MiB"),
];
/// The trees are in memory; a few seconds of requests.
const FIRST_REQUESTS: Sets = &[("task.phase1.start", "8s"), ("time_limit", "12s")];
/// The same, with two tasks that start late.
const FIRST_BUSY: Sets =
    &[("task.busy.start", "8s"), ("task.small.start", "8s"), ("time_limit", "10s")];

/// The batch job fills its memory at once.
const FAST_BATCH: Sets = &[
    ("task.web.phase.serve.duration", "3s"),
    ("task.batch.start", "1s"),
    ("task.batch.phase.fill.rate", "2GiB/s"),
];
/// Two passes, and an eighth of the log.
const SHORT_BATCH: Sets = &[
    ("task.web.phase.serve.duration", "6s"),
    ("task.fill.start", "1s"),
    ("task.scan.start", "1s"),
    ("task.fill.passes", "2"),
    ("file.log.size", "1GiB"),
];
const SHORT_LOG: Sets = &[("task.app.phase.serve.duration", "5s"), ("task.logger.total", "1GiB")];
const TWO_BURSTS: Sets = &[("task.nic.start", "1s"), ("task.nic.loops", "2")];
/// An eighth of all sizes.
const SHORT_BACKUP: Sets = &[
    ("machine.memory", "4GiB"),
    ("task.backup.total", "1536MiB"),
    ("task.backup.start", "1s"),
    ("task.db.duration", "19s"),
];
/// An eighth of the memory; the leak is faster.
const SMALL_NODE: Sets = &[
    ("machine.memory", "2GiB"),
    ("task.web.phase.serve.heap", "1GiB"),
    ("file.programs.size", "300MiB"),
    ("task.leak.start", "2s"),
    ("task.leak.phase.grow.rate", "100MiB/s"),
];
const SHORT_LOADS: Sets = &[
    ("task.scan.phase.read.passes", "1"),
    ("task.heap.phase.use.passes", "1"),
    ("task.both.phase.use.accesses", "100000"),
];
const SHORT_SERVICE: Sets = &[("task.web.start", "3s"), ("task.web.duration", "5s")];

experiments! {
    tunable_watermarks: "tunable-watermarks", WHOLE;
    tunable_watermarks_4g: "tunable-watermarks-4g", WHOLE;
    tunable_watermarks_long: "tunable-watermarks-long", WHOLE;
    soft_limit: "soft-limit", SHORT_BUILDS;
    soft_limit_vs_low: "soft-limit-vs-low", SHORT_BUILDS;
    soft_limit_latency: "soft-limit-latency", SHORT_BUILDS;
    soft_limit_nodes: "soft-limit-nodes", &[("task.wide.phase.reread.passes", "600")];
    shrink_priority: "shrink-priority", WHOLE;
    shrink_priority_vs_low: "shrink-priority-vs-low", WHOLE;
    kcompactd: "kcompactd", FIRST_REQUESTS;
    kcompactd_interval: "kcompactd-interval", WHOLE;
    proactive: "proactive", FIRST_BUSY;
    defrag_mode: "defrag-mode", FIRST_BUSY;
    slab_boot: "slab-boot", WHOLE;
    slab_sysbench: "slab-sysbench", &[("task.thread.units", "200"), ("time_limit", "9s")];
    slab_build: "slab-build", &[("task.job.units", "1"), ("task.job.copies", "16")];
    slab_zombies: "slab-zombies", &[("task.maker.loops", "100")];
    slab_coupling: "slab-coupling", &[("time_limit", "3s")];
    compiler_trace: "compiler-trace", WHOLE;
    k8s_node_swap: "k8s-node-swap", FAST_BATCH;
    batch_beside_service: "batch-beside-service", SHORT_BATCH;
    page_cache_and_limit: "page-cache-and-limit", SHORT_LOG;
    min_free_burst: "min-free-burst", TWO_BURSTS;
    dirty_stall: "dirty-stall", SHORT_BACKUP;
    huge_pages_or_not: "huge-pages-or-not", SHORT_SERVICE;
    zram_or_disk: "zram-or-disk", WHOLE;
    zswap_pool: "zswap-pool", WHOLE;
    zram_node: "zram-node", SMALL_NODE;
    swappiness_with_zram: "swappiness-with-zram", &[("task.journald.phase.write.duration", "45s")];
    oomd_or_earlyoom: "oomd-or-earlyoom", WHOLE;
    evict_before_oom: "evict-before-oom", WHOLE;
    extra_free_kbytes: "extra-free-kbytes", WHOLE;
    high_or_reclaim_loop: "high-or-reclaim-loop", &[("task.web.duration", "20s")];
    mglru_or_classic: "mglru-or-classic", SHORT_LOADS;
    truth_anon: "truth/anon1.5", WHOLE;
    truth_file: "truth/file2.0", WHOLE;
    truth_mix: "truth/mix_sw60", WHOLE;
    truth_seq: "truth/seq2x", WHOLE;
    truth_watermarks: "truth/watermarks", WHOLE;
}

/// Names of the files in a directory with this suffix, without the suffix.
fn names_in(directory: &Path, end: &str) -> BTreeSet<String> {
    std::fs::read_dir(directory)
        .unwrap()
        .filter_map(|entry| {
            let name = entry.unwrap().file_name().into_string().unwrap();
            name.strip_suffix(end).map(str::to_owned)
        })
        .collect()
}

#[test]
fn the_table_has_every_shipped_experiment_and_every_recording() {
    let experiments = root().join("experiments");
    let mut shipped = names_in(&experiments, ".toml");
    let truth = names_in(&experiments.join("truth"), ".toml");
    shipped.extend(truth.iter().map(|name| format!("truth/{name}")));
    let table: BTreeSet<String> = EXPERIMENTS.iter().map(|(name, _)| (*name).to_owned()).collect();
    assert_eq!(table, shipped);
    assert_eq!(table.len(), EXPERIMENTS.len(), "an experiment is in the table twice");
    assert!(REPEATED.iter().all(|name| table.contains(*name)), "an experiment to repeat is gone");
    let expected: BTreeSet<String> = EXPERIMENTS.iter().map(|(name, _)| recording(name)).collect();
    assert_eq!(expected.len(), EXPERIMENTS.len(), "two experiments share a recording");
    if !accepts() {
        assert_eq!(expected, names_in(&recordings(), ""));
    }
}
