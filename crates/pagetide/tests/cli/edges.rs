//! Misspelt names, standard input, unwritable outputs, impossible machines.

use pagetide_testing::directory::TestDir;
use pagetide_testing::root;
use pagetide_testing::scenarios::SMALL;

#[test]
fn a_name_that_is_nearly_right_is_suggested() {
    let place = TestDir::with("small.toml", SMALL);
    place.run("run soft-limt").fails(2, &["hint: did you mean `soft-limit`?"]);
    let inspect = place.starting("inspect small.toml --only");
    inspect("nonsense").fails(2, &["there is no file `nonsense`", "hint: choose from /proc/zone"]);
    inspect("vmstats").fails(2, &["hint: did you mean `vmstat`?"]);
    // The name is checked before the simulation, which would take hours.
    let long = SMALL.replace("96MiB", "96GiB").replace("64MiB", "640MiB");
    place.write("long.toml", long);
    place.run("inspect long.toml --only nonsense").fails(2, &["nonsense"]);
    place.run("metrics waltime").fails(2, &["hint: did you mean `walltime`?"]);
    place.run("rnu small.toml").fails(2, &["no command `rnu`", "did you mean `run`?"]);
    place.run("run smal.toml").fails(2, &["hint: did you mean `small.toml`?"]);
    place.run("run ./smll.toml").fails(2, &["hint: did you mean `./small.toml`?"]);
    place.run("explain").fails(2, &["hint: for example `pagetide explain vm.swappiness`"]);
    place.run("run small.toml --metrics pgswap").fails(2, &["`pswpin` or `pswpout`"]);
    place.run("run small.toml --set swappiness=1").fails(2, &["`vm.swappiness`"]);
}

#[test]
fn a_wrong_number_is_answered_with_the_right_ones() {
    let place = TestDir::with("small.toml", SMALL);
    let run = place.starting("run small.toml");
    run("--repeats -1").fails(2, &["give a number from 1 to 10000"]);
    run("--jobs -1").fails(2, &["give 1 or more"]);
    place.run("inspect small.toml --at -5s").fails(2, &["write times like 1.5s"]);
    let large = run("--set seed=99999999999999999999");
    large.fails(2, &["write an integer, from 0 to 9223372036854775807"]);
    let want = place.starting("find small.toml --knob vm.swappiness --want");
    want("'reader.walltime < 5 parsecs'")
        .fails(2, &["unknown unit `parsecs`", "like 120, 0.5, 10ms"]);
}

#[test]
fn a_key_that_is_set_twice_is_a_warning() {
    let place = TestDir::with("small.toml", SMALL);
    let sets = "--set sysctl.vm.swappiness=20 --set vm.swappiness=30 --repeats 1";
    let ran = place.run(format!("run small.toml {sets}")).succeeds();
    ran.says(&["warning: vm.swappiness is set twice: 30 counts, not 20"]);
}

#[test]
fn a_dash_is_standard_input() {
    let place = TestDir::with("small.toml", SMALL);
    let from_file = place.run("run small.toml --format csv").stdout;
    let from_stdin = place.run_with_input("run - --format csv", SMALL);
    assert_eq!(from_stdin.quietly().stdout, from_file);
    let checked = place.run_with_input("check -", SMALL).quietly().stdout;
    assert_eq!(checked, "-: ok, 2 variants of 3 repeats\n");
    place.run_with_input("check -", b"[machine]\nmemory = 0\n").fails(2, &["<stdin>:2:10"]);
    place.run_with_input("run -", b"\xff\xfe").fails(2, &["standard input", "hint:"]);
    place.run_with_input("verify -", SMALL).fails(2, &["standard input"]);
}

#[cfg(target_os = "linux")]
#[test]
fn an_output_that_cannot_be_written_is_a_failure() {
    let place = TestDir::with("small.toml", SMALL);
    for line in ["--help", "run --help", "--version", "list", "metrics"] {
        let ran = place.shell(&format!("exec \"$PAGETIDE\" {line} >/dev/full"));
        ran.fails(1, &["cannot write the output"]);
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_machine_that_has_no_room_is_an_error() {
    let text = "[machine]\nmemory = \"2TiB\"\n[[task]]\nname = \"t\"\nworkload = \"touch\"\n\
        size = \"1MiB\"\n";
    let place = TestDir::with("huge.toml", text);
    // The machine needs 16 GiB of tables, but the process may have 4.
    for command in ["run", "check"] {
        let ran =
            place.shell(&format!("ulimit -v 4000000; exec \"$PAGETIDE\" {command} huge.toml"));
        let hint = "hint: give the machine less memory";
        ran.fails(2, &["the run needs 16384 MiB for its tables", hint]);
    }
}

#[test]
fn check_sees_what_a_run_would_refuse() {
    let place = TestDir::new();
    let whole = std::fs::read(root().join("experiments/traces/cc1-zpipe.ptt")).unwrap();
    place.write("cut.ptt", &whole[..whole.len() - 20]);
    let trace = "[machine]\nmemory = \"128MiB\"\n[[task]]\nname = \"t\"\nworkload = \"trace\"\n\
        path = \"cut.ptt\"\n";
    place.write("trace.toml", trace);
    place.run("check trace.toml").fails(2, &["cut.ptt: byte ", "the file ends within"]);
    let tuning = format!("{SMALL}[[machine.cache]]\nname = \"kmalloc-8k\"\norder = 0\n");
    place.write("tuning.toml", tuning);
    place.run("check tuning.toml").fails(2, &["cache `kmalloc-8k`", "order = 0", "hint:"]);
    let row = format!("{SMALL}[report]\nrows = [\"pgscam_kswapd\"]\n");
    place.write("row.toml", row);
    let hint = "hint: did you mean `pgscan_kswapd`?";
    place.run("check row.toml").fails(2, &["row.toml:", hint]);
    let sizes = format!("{SMALL}[[group]]\nname = \"g\"\nmemory.low = \"8MiB\"\n");
    place.write("sizes.toml", sizes);
    place.run("check sizes.toml").quietly();
}

#[test]
fn metrics_are_explained() {
    let place = TestDir::new();
    for name in ["walltime", "psi.memory.some", "alloc_latency_p99"] {
        let text = place.run(format!("metrics {name}")).quietly().stdout;
        assert!(text.starts_with(&format!("{name} (seconds; of ")), "{text}");
    }
    let json = place.run("metrics --format json").quietly().json();
    let all = json.as_array().unwrap();
    assert!(all.len() > 150, "{}", all.len());
    assert!(all.iter().all(|metric| !metric["about"].as_str().unwrap().is_empty()));
}
