//! Tests of `pagetide run`: results, formats, options, mistakes.

use pagetide_testing::command::{end, CommandOutput};
use pagetide_testing::directory::TestDir;
use pagetide_testing::scenarios::SMALL;
use serde_json::Value;
use std::thread::sleep;
use std::time::Duration;

fn run(args: &str) -> CommandOutput {
    TestDir::with("small.toml", SMALL).run(format!("run small.toml {args}"))
}

fn json(args: &str) -> Value {
    run(&format!("--format json {args}")).quietly().json()
}

#[test]
fn the_table_states_what_was_run_and_compares() {
    let wanted = [
        "scenario   small: A reader on a small machine\n",
        concat!("version    pagetide ", env!("CARGO_PKG_VERSION"), "\n"),
        "seeds      7 to 9 (3 repeats)\n",
        "machine    1 CPU, 64 MiB, sda (ssd), no swap\n",
        "early: vm.watermark_scale_factor=200\n",
        "reader.walltime",
        "pgscan_kswapd",
        " \u{b1} ",
        "change against default in per cent",
    ];
    let table = run("").quietly().prints(&wanted).stdout;
    assert!(table.lines().all(|line| line.chars().count() <= 120 && line == line.trim_end()));
    assert!(table.chars().all(|c| c.is_ascii() || c == '\u{b1}'));
}

#[test]
fn json_has_exactly_the_promised_keys() {
    let result = json("");
    let keys = |value: &Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    let promised =
        ["notes", "repeats", "scenario", "seed", "variants", "verdict", "version", "why"];
    assert_eq!(keys(&result), promised);
    assert_eq!((&result["scenario"], &result["seed"]), (&"small".into(), &7.into()));
    assert_eq!(result["repeats"], 3);
    assert_eq!(result["variants"].as_array().unwrap().len(), 2);
    for variant in result["variants"].as_array().unwrap() {
        assert_eq!(keys(variant), ["metrics", "name"]);
        let metrics = variant["metrics"].as_object().unwrap();
        for (key, metric) in metrics {
            assert_eq!(keys(metric), ["mean", "samples", "stddev", "unit"], "{key}");
            assert_eq!(metric["samples"].as_array().unwrap().len(), 3, "{key}");
        }
        assert_eq!(metrics["reader.walltime"]["unit"], "seconds");
        assert!(metrics["reader.walltime"]["mean"].as_f64().unwrap() > 0.0);
        assert!(metrics["pgscan_kswapd"]["mean"].as_f64().unwrap() > 0.0);
    }
}

#[test]
fn the_number_of_jobs_changes_no_byte() {
    for format in ["table", "json", "csv"] {
        let one = run(&format!("--jobs 1 --format {format}")).quietly();
        let four = run(&format!("--jobs 4 --format {format}")).quietly();
        assert_eq!(one.stdout, four.stdout);
    }
}

#[test]
fn csv_has_a_line_for_each_sample() {
    let csv = run("--format csv").quietly().stdout;
    let mut lines = csv.lines();
    assert_eq!(lines.next(), Some("scenario,version,variant,metric,unit,seed,value,ended"));
    let walltimes: Vec<&str> = lines.filter(|line| line.contains(",reader.walltime,")).collect();
    assert_eq!(walltimes.len(), 2 * 3);
    assert!(walltimes[0].starts_with("small,"));
    let seeds: Vec<&str> = walltimes.iter().map(|line| line.split(',').nth(5).unwrap()).collect();
    assert_eq!(seeds, ["7", "8", "9", "7", "8", "9"]);
}

#[test]
fn repeats_seed_and_variants_are_chosen() {
    let result = json("--repeats 1 --seed 42 --variant early");
    assert_eq!((&result["seed"], &result["repeats"]), (&42.into(), &1.into()));
    let variants = result["variants"].as_array().unwrap();
    assert_eq!((variants.len(), &variants[0]["name"]), (1, &"early".into()));
    // This run equals the third of the full set.
    let whole = json("--seed 40");
    let key = |result: &Value, variant: usize, sample: usize| {
        result["variants"][variant]["metrics"]["reader.walltime"]["samples"][sample].clone()
    };
    assert_eq!(key(&result, 0, 0), key(&whole, 1, 2));
}

#[test]
fn set_changes_the_machine_and_is_stated() {
    let wanted = ["machine    1 CPU, 128 MiB", "set        machine.memory=128MiB"];
    run("--set machine.memory=128MiB --repeats 1").quietly().prints(&wanted);
    let scanned = |result: &Value| {
        result["variants"][0]["metrics"]["pgscan_kswapd"]["mean"].as_f64().unwrap()
    };
    let large = json("--set machine.memory=128MiB");
    assert!(scanned(&large) < scanned(&json("")));
}

#[test]
fn wrong_options_are_bad_input() {
    run("--variant late").fails(2, &["late", "hint:"]);
    run("--set machine.mempry=1GiB").fails(2, &["mempry", "hint:"]);
    run("--set 'machine.memory=1 parsec'").fails(2, &["parsec", "hint:"]);
    run("--set nonsense").fails(2, &["KEY=VALUE"]);
    run("--repeats 0").fails(2, &["hint:"]);
    run("--repeats 100000").fails(2, &["hint: give a number from 1 to 10000"]);
    run("--seed 18446744073709551615").fails(2, &["hint: choose a smaller first seed"]);
    run("--seed -1").fails(2, &["invalid value '-1' for '--seed <N>'"]);
    run("--jobs 0").fails(2, &["--jobs", "give 1 or more"]);
    run("--format html").fails(2, &["table", "json", "csv"]);
    run("--verbos").fails(2, &["--verbos"]);
}

#[test]
fn missing_and_unknown_files_are_bad_input() {
    let place = TestDir::new();
    place.run("run absent.toml").fails(2, &["absent.toml"]);
    place.run("run absent").fails(2, &["absent", "hint: `pagetide list`"]);
    place.run("run .").fails(2, &["error"]);
    place.run("run").fails(2, &["<FILE>"]);
}

#[test]
fn every_mistake_is_reported_with_its_place() {
    let broken = SMALL
        .replace("memory = \"64MiB\"", "memory = \"64 parsecs\"")
        .replace("workload = \"mapped-read\"", "workload = \"maped-read\"")
        .replace("cpus = 1", "cpus = 1\nturbo = true");
    let place = TestDir::with("broken.toml", broken);
    let mistakes =
        ["broken.toml:9:1", "turbo", "broken.toml:10:", "64 parsecs", "maped-read", "hint:"];
    place.run("run broken.toml").fails(2, &mistakes);
}

#[cfg(unix)]
#[test]
fn interrupting_prints_what_finished() {
    let place = TestDir::with("small.toml", SMALL);
    let line = "run small.toml --format csv --repeats 10000 --jobs 1";
    let child = place.command(line).spawn().unwrap();
    sleep(Duration::from_millis(2000));
    let csv = end(child, "INT").exits(130).says(&["interrupted"]).stdout;
    assert!(csv.lines().any(|line| line.contains(",reader.walltime,")), "{csv}");
    assert!(csv.lines().all(|line| line.split(',').count() == 8));
}

#[cfg(unix)]
#[test]
fn a_reader_that_stops_reading_is_no_error() {
    let place = TestDir::with("small.toml", SMALL);
    let mut child = place.command("run small.toml").spawn().unwrap();
    drop(child.stdout.take());
    CommandOutput::from(child.wait_with_output().unwrap()).quietly();
}

#[test]
fn metrics_are_chosen_by_patterns() {
    let table = run("--metrics pswp* --metrics reader.walltime --no-why").quietly();
    let (_, body) = table.stdout.split_once("---\n").unwrap();
    let rows = body.lines().map_while(|line| line.split_whitespace().next());
    // Zeros are included.
    assert_eq!(rows.collect::<Vec<&str>>(), ["pswpin", "pswpout", "reader.walltime"]);
    let json = json("--metrics walltime");
    let metrics = json["variants"][1]["metrics"].as_object().unwrap();
    assert!(!metrics.is_empty() && metrics.keys().all(|key| key.contains("walltime")));
    let csv = run("--metrics pgfault --format csv").quietly().stdout;
    assert!(csv.lines().count() > 6 && csv.lines().skip(1).all(|line| line.contains("pgfault")));

    let nearly = run("--metrics pgscan_kswapt");
    nearly.fails(2, &["no run has a metric `pgscan_kswapt`", "`pgscan_kswapd`"]);
    run("--metrics reader.waltime").fails(2, &["did you mean `reader.walltime`"]);
    run("--metrics ''").fails(2, &["no run has a metric ``"]);
    // Each word exists, but not their combination.
    run("--metrics reader.pgscan").fails(2, &["no run has a metric `reader.pgscan`"]);
    // Zones are known only after the run. The other rows are still printed, and no default rows.
    let zone = "buddyinfo.node7.DMA.nr_free_blocks_0";
    let ran = run(&format!("--metrics {zone} --metrics reader.walltime")).exits(2);
    let ran = ran.prints(&["reader.walltime"]);
    assert!(!ran.stdout.contains("\npg"), "{}", ran.stdout);
    ran.says(&[&format!("no run has a metric `{zone}`")]);
}
