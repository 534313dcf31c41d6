use super::*;
use crate::diagnostic::Diagnostic;
use crate::model::{Advice, Order, Workload};
use crate::workload::Program;
use proptest::prelude::*;

/// A scenario without mistakes; tests append to it, so its lines keep their numbers.
const SOUND: &str = "\
[machine]
memory = \"1GiB\"
[[file]]
name = \"data\"
size = \"64MiB\"
[[task]]
name = \"main\"
workload = \"touch\"
size = \"16MiB\"
";
/// The line after [`SOUND`].
const NEXT: usize = 10;

fn load_text(text: &str, overrides: &Overrides) -> Result<Scenario, Diagnostics> {
    load_str("dir/case.toml", text, Path::new("no-such-directory"), overrides)
}

fn sound(text: &str) -> Scenario {
    load_text(text, &Overrides::default()).unwrap_or_else(|errors| panic!("{errors}"))
}

fn mistakes(text: &str) -> Vec<Diagnostic> {
    let errors = load_text(text, &Overrides::default()).expect_err("there is a mistake");
    errors.iter().cloned().collect()
}

/// (line, column, text, message, hint) of each mistake.
fn told(text: &str) -> Vec<(usize, usize, String, String, String)> {
    let tell = |d: Diagnostic| (d.line, d.column, d.text, d.message, d.hint.unwrap_or_default());
    mistakes(text).into_iter().map(tell).collect()
}

/// Checks the only mistake of `SOUND` with `more` appended. Lines count from the first appended.
#[track_caller]
fn expect(more: &str, line: isize, column: usize, text: &str, message: &str, hint: &str) {
    let found = told(&format!("{SOUND}{more}"));
    let [(got_line, got_column, got_text, got_message, got_hint)] = found.as_slice() else {
        panic!("expected one mistake, found {found:#?}");
    };
    assert_eq!(
        (
            *got_line as isize + 1 - NEXT as isize,
            *got_column,
            got_text.as_str(),
            got_message.as_str()
        ),
        (line, column, text, message)
    );
    assert_eq!(got_hint, hint);
}

/// As [`expect`], for a whole file.
#[track_caller]
fn expect_in(file: &str, line: usize, column: usize, text: &str, message: &str, hint: &str) {
    let found = told(file);
    let (text, message, hint) = (text.to_owned(), message.to_owned(), hint.to_owned());
    assert_eq!(found, [(line, column, text, message, hint)]);
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
    assert_eq!(setup.machine.disks[0].model, "ssd");
    assert_eq!(setup.policies["watermarks"], "scale-factor");
    assert_eq!(setup.policies["kswapd"], "linux-6.1");
    assert_eq!(setup.tasks[0].phases[0].name, "main");
    let touch = Workload::Touch {
        region: "anon".into(),
        pages: 4096,
        passes: 1,
        write: true,
        order: Order::Sequential,
    };
    assert_eq!(setup.tasks[0].phases[0].workload, touch);
}

#[test]
fn everything_can_be_written() {
    let text = include_str!("everything.toml");
    let base = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/load");
    let scenario = load_str("everything.toml", text, &base, &Overrides::default());
    let scenario = scenario.unwrap_or_else(|errors| panic!("{errors}"));
    assert_eq!(scenario.name, "everything");
    let setup = &scenario.variants[0].setup;
    let node = &setup.machine.nodes[0];
    assert_eq!((node.memory, node.reserved, node.movable), (4 << 30, 64 << 20, 1 << 30));
    assert_eq!(setup.machine.nodes[1].zones[0].free, 1000);
    assert_eq!(setup.machine.disks[1].read_latency_ns, Some(80_000));
    assert_eq!(setup.machine.disks[1].write_bandwidth, Some(500 << 20));
    assert_eq!(setup.machine.disks[1].faults.slow_factor, 20);
    let swap = setup.machine.swap.as_ref().unwrap();
    assert_eq!((swap.disk, swap.size, swap.full_after_pages), (1, 2 << 30, Some(1000)));
    let sysctls = [
        ("vm.swappiness", "10"),
        ("vm.lowmem_reserve_ratio", "256 256 32 0"),
        ("vm.dirty_ratio", "0x14"),
    ];
    assert!(setup.sysctls.iter().map(|(k, v)| (k.as_str(), v.as_str())).eq(sysctls));
    // `inner` stands before its parent in the file.
    let names: Vec<&str> = setup.groups.iter().map(|group| group.name.as_str()).collect();
    assert_eq!(names, ["outer", "inner"]);
    assert_eq!(setup.groups[1].parent, Some(0));
    assert_eq!(setup.groups[1].controls, [("memory.max".into(), "300M".into())]);
    let names: Vec<&str> = setup.tasks.iter().map(|task| task.name.as_str()).collect();
    assert_eq!(names, ["writer.0", "writer.1", "all", "reader"]);
    assert_eq!(setup.tasks[0].group, Some(1));
    assert_eq!(setup.tasks[3].start.after, Some(2));
    assert_eq!(setup.tasks[3].start.delay_ns, 5_000_000);
    let files: Vec<&str> = setup.files.iter().map(|file| file.name.as_str()).collect();
    assert_eq!(files, ["data", "log@writer.0", "log@writer.1"]);
    let phases: Vec<&str> = setup.tasks[2].phases.iter().map(|p| p.name.as_str()).collect();
    assert_eq!(phases, ["fill", "pass0", "pass1", "pass2", "zipf", "set", "work", "rest"]);
    let Workload::MappedRead { order, advice, .. } = &setup.tasks[2].phases[4].workload else {
        panic!("not a mapped read");
    };
    assert_eq!((*order, *advice), (Order::Zipf { exponent_hundredths: 99 }, Advice::Random));
    assert_eq!(setup.measure, Some(2));
    assert_eq!(scenario.rows, ["all.walltime", "pgscan_kswapd", "inner.usage"]);
    let reference = scenario.reference.as_ref().unwrap();
    assert_eq!(reference.values["a"]["all.walltime"], 0.503);
    assert_eq!(reference.values["a"]["pgscan_kswapd"], 12.0);
    let b = &scenario.variants[1].setup;
    assert_eq!(b.machine.nodes[0].memory, 8 << 30);
    assert_eq!(b.tasks[2].nice, 5);
    assert_eq!(b.sysctls[0], ("vm.swappiness".into(), "100".into()));
    assert_eq!(b.sysctls[3], ("vm.min_free_kbytes".into(), "8192".into()));
    assert_eq!(b.policies["kswapd"], "linux-2.6.37");
}

#[test]
fn many_mistakes_are_told_at_once() {
    let text = "\
repeats = 0
[machine]
memory = \"2 gb\"
cpu = 2
[[task]]
name = \"a\"
workload = \"touhc\"
[[task]]
name = \"b\"
after = \"c\"
workload = \"sleep\"
";
    let found: Vec<(usize, String)> =
        mistakes(text).into_iter().map(|d| (d.line, d.message)).collect();
    let expected = [
        (1, "0 is out of range"),
        (3, "`2 gb`: unit `gb` is not used here"),
        (4, "unknown key `cpu`"),
        (7, "unknown workload `touhc`"),
        (10, "there is no task `c`"),
        (11, "workload sleep has no `duration`"),
    ];
    let expected: Vec<(usize, String)> =
        expected.into_iter().map(|(line, message)| (line, message.to_owned())).collect();
    assert_eq!(found, expected);
}

#[test]
fn broken_toml_stops_at_the_first_break() {
    expect_in("[machine\nmemory = 1\n", 1, 9, "", "not TOML: unclosed table, expected `]`", "");
    let found = told("a = [1, 2\n[machine]\nb = 3\n");
    assert_eq!(found.len(), 1, "{found:?}");
    let found = told("a = 1\n\u{0}\n");
    assert!(found[0].3.starts_with("not TOML"), "{found:?}");
}

#[test]
fn forgotten_quotes_do_not_stop_the_checks() {
    let text = SOUND.replace("\"1GiB\"", "1GiB") + "[sysctl]\nvm.swapiness = 1\n";
    let found = told(&text);
    assert_eq!(found.len(), 2, "{found:#?}");
    assert_eq!((found[0].0, found[0].1, found[0].4.as_str()), (2, 10, "write \"1GiB\""));
    assert_eq!(found[1].3, "unknown sysctl `vm.swapiness`");
    expect(
        "name = \"x\"\n",
        1,
        1,
        "name",
        "not TOML: duplicate key",
        "`name` is already set in this table: keep one of them",
    );
}

#[test]
fn unknown_keys() {
    expect("nise = 3\n", 1, 1, "nise", "unknown key `nise`", "did you mean `nice`?");
    expect("[polcy]\n", 1, 2, "polcy", "unknown key `polcy`", "did you mean `policy`?");
    expect(
        "[report]\nmetrics = []\n",
        2,
        1,
        "metrics",
        "unknown key `metrics`",
        "the keys here are rows, measure",
    );
    expect(
        "advice = \"random\"\n",
        1,
        1,
        "advice",
        "workload touch takes no `advice`",
        "its keys are size, write, order, exponent, passes, region",
    );
    expect(
        "[[task]]\nname = \"b\"\n[[task.phase]]\nname = \"p\"\nworkload = \"sleep\"\n\
        duration = \"1s\"\nsize = \"1GiB\"\n",
        7,
        1,
        "size",
        "workload sleep takes no `size`",
        "its keys are duration",
    );
}

#[test]
fn wrong_types_and_units() {
    let hint = "did you mean `64MiB`?";
    expect(
        "[[file]]\nname = \"b\"\nsize = \"64MB\"\n",
        3,
        8,
        "\"64MB\"",
        "`64MB`: unit `MB` is not used here",
        hint,
    );
    expect(
        "[[file]]\nname = \"b\"\nsize = 1.5\n",
        3,
        8,
        "1.5",
        "expected a size, found a float",
        units::SIZE_FORMS,
    );
    expect(
        "[[file]]\nname = \"b\"\nsize = -1\n",
        3,
        8,
        "-1",
        "a size cannot be negative",
        units::SIZE_FORMS,
    );
    expect("delay = 5\n", 1, 9, "5", "a time needs a unit", units::TIME_FORMS);
    expect(
        "delay = \"5 parsecs\"\n",
        1,
        9,
        "\"5 parsecs\"",
        "`5 parsecs`: unknown unit `parsecs`",
        units::TIME_FORMS,
    );
    expect(
        "nice = \"3\"\n",
        1,
        8,
        "\"3\"",
        "expected an integer, found a string",
        "remove the quotes",
    );
    expect("nice = 20\n", 1, 8, "20", "20 is out of range", "this is an integer, from -20 to 19");
    expect("background = 1\n", 1, 14, "1", "expected true or false, found an integer", "");
    expect(
        "order = \"randomly\"\n",
        1,
        9,
        "\"randomly\"",
        "unknown order `randomly`",
        "did you mean \"random\"?",
    );
    expect(
        "order = \"sorted\"\n",
        1,
        9,
        "\"sorted\"",
        "unknown order `sorted`",
        "it is one of `sequential`, `scattered`, `random` and `zipf`",
    );
    expect(
        "exponent = 1.0\n",
        1,
        12,
        "1.0",
        "`exponent` does not belong here",
        "only order = \"zipf\" has an exponent",
    );
    expect(
        "order = \"zipf\"\nexponent = 0.999\n",
        2,
        12,
        "0.999",
        "not an exponent",
        "a number from 0.01 to 10 with at most two decimals, for example 1.0",
    );
    expect(
        "[variant]\nname = \"x\"\n",
        1,
        1,
        "[variant]",
        "expected an array, found a table",
        "write it as an array of tables, with double brackets: [[...]]",
    );
    expect(
        "[[file]]\nname = \"two words\"\n",
        2,
        8,
        "\"two words\"",
        "`two words` cannot be a name",
        "use letters, digits, `-` and `_`, at most 64",
    );
}

#[test]
fn impossible_machines() {
    let machine = |lines: &str| SOUND.replace("memory = \"1GiB\"", lines);
    let hint = "memory = \"2GiB\", for example";
    expect_in(&machine("memory = 0"), 2, 10, "0", "the machine has no memory", hint);
    let hint = "a page has 4KiB: \"1 pages\", for example";
    expect_in(&machine("memory = 5000"), 2, 10, "5000", "5000 bytes are not whole pages", hint);
    expect_in(
        &machine("memory = \"4TiB\""),
        2,
        10,
        "\"4TiB\"",
        "more memory than a machine can have here: 4TiB",
        "all nodes together have at most 2TiB",
    );
    expect_in(
        &machine("cpus = 1"),
        1,
        1,
        "[machine]",
        "the machine has no `memory`",
        "add memory = \"2GiB\"",
    );
    expect_in(
        &machine("memory = \"1GiB\"\nreserved = \"1GiB\""),
        3,
        12,
        "\"1GiB\"",
        "nothing is left: 1GiB of 1GiB",
        "some memory must be left for the system",
    );
    expect_in(
        &machine("memory = \"1GiB\"\ncpus = 0"),
        3,
        8,
        "0",
        "0 is out of range",
        "this is an integer, from 1 to 1024",
    );
    let nodes = "memory = \"1GiB\"\n[[machine.node]]\nmemory = \"2TiB\"";
    expect_in(
        &machine(nodes),
        2,
        10,
        "\"1GiB\"",
        "this machine has nodes of its own",
        "with [[machine.node]], write it in each node",
    );
    let nodes = "[[machine.node]]\nmemory = \"2TiB\"\n[[machine.node]]\nmemory = \"1GiB\"";
    expect_in(
        &machine(nodes),
        5,
        10,
        "\"1GiB\"",
        "more memory than a machine can have here: 1GiB",
        "all nodes together have at most 2TiB",
    );
    let missing = &SOUND[SOUND.find("[[file]]").unwrap()..];
    expect_in(
        missing,
        1,
        1,
        "",
        "there is no [machine]",
        "write [machine] and then memory = \"2GiB\"",
    );
}

#[test]
fn impossible_zones() {
    let zones = |lines: &str| {
        let zone = format!("[[machine.zone]]\nname = \"DMA32\"\n{lines}");
        SOUND.replace("memory = \"1GiB\"", &zone)
    };
    assert_eq!(
        sound(&zones("present = \"9 pages\"")).variants[0].setup.machine.nodes[0].memory,
        9 * 4096
    );
    expect_in(
        &zones("present = \"9 pages\"\nmanaged = \"10 pages\""),
        5,
        11,
        "\"10 pages\"",
        "more managed than present",
        "free <= managed <= present",
    );
    expect_in(
        &zones("present = \"9 pages\"\nfree = \"10 pages\""),
        5,
        8,
        "\"10 pages\"",
        "more free than managed",
        "free <= managed <= present",
    );
    expect_in(
        &zones("free = 0"),
        2,
        1,
        "[[machine.zone]]",
        "the zone has no `present`",
        "add present = \"4096 pages\"",
    );
    let second = "present = \"9 pages\"\n[[machine.zone]]\npresent = \"9 pages\"\nname = ";
    expect_in(
        &zones(&format!("{second}\"DMA\"")),
        7,
        8,
        "\"DMA\"",
        "zones out of order",
        "write DMA, DMA32, Normal, Movable in this order",
    );
    expect_in(
        &zones(&format!("{second}\"DMA32\"")),
        7,
        8,
        "\"DMA32\"",
        "the zone `DMA32` is named twice",
        "give one of them another name",
    );
    expect_in(
        &zones(&format!("{second}\"HighMem\"")),
        7,
        8,
        "\"HighMem\"",
        "unknown zone `HighMem`",
        "it is one of `DMA`, `DMA32`, `Normal` and `Movable`",
    );
}

#[test]
fn names_given_twice() {
    let twice = "give one of them another name";
    expect(
        "[[file]]\nname = \"data\"\n",
        2,
        8,
        "\"data\"",
        "the file `data` is named twice",
        twice,
    );
    expect(
        "[[task]]\nname = \"main\"\nworkload = \"sleep\"\nduration = \"1s\"\n",
        2,
        8,
        "\"main\"",
        "the task `main` is named twice",
        twice,
    );
    expect(
        "[[group]]\nname = \"g\"\n[[group]]\nname = \"g\"\n",
        4,
        8,
        "\"g\"",
        "the group `g` is named twice",
        twice,
    );
    expect(
        "[[machine.disk]]\nname = \"d\"\nmodel = \"ssd\"\n[[machine.disk]]\nname = \"d\"\n\
        model = \"nvme\"\n",
        5,
        8,
        "\"d\"",
        "the disk `d` is named twice",
        twice,
    );
    expect(
        "[[variant]]\nname = \"v\"\n[[variant]]\nname = \"v\"\n",
        4,
        8,
        "\"v\"",
        "the variant `v` is named twice",
        twice,
    );
    expect(
        "[[task]]\nname = \"b\"\n[[task.phase]]\nname = \"p1\"\nworkload = \"sleep\"\n\
        duration = \"1s\"\n[[task.phase]]\nname = \"p\"\nrepeat = 2\nworkload = \"sleep\"\n\
        duration = \"1s\"\n",
        8,
        8,
        "\"p\"",
        "the phase `p1` is named twice",
        twice,
    );
    expect(
        "[[group]]\nname = \"main\"\n",
        -2,
        8,
        "\"main\"",
        "a group is called `main` too",
        "their metrics would have the same keys: rename one of them",
    );
    let also = mistakes(&format!("{SOUND}[[file]]\nname = \"data\"\n"))[0].also.clone().unwrap();
    assert_eq!((also.line, also.column, also.label.as_str()), (4, 8, "first named here"));
}

#[test]
fn unknown_references() {
    expect("group = \"g\"\n", 1, 9, "\"g\"", "there is no group `g`", "there is no group at all");
    expect(
        "[[file]]\nname = \"b\"\ndisk = \"dsk\"\n",
        3,
        8,
        "\"dsk\"",
        "there is no disk `dsk`",
        "did you mean `disk`?",
    );
    expect(
        "[[task]]\nname = \"b\"\nworkload = \"file-read\"\nfile = \"dat\"\n",
        4,
        8,
        "\"dat\"",
        "there is no file `dat`",
        "did you mean `data`?",
    );
    expect("after = \"other\"\n", 1, 9, "\"other\"", "there is no task `other`", "there is `main`");
    expect(
        "after = \"main.1\"\n",
        1,
        9,
        "\"main.1\"",
        "there is no task `main.1`",
        "`main` has one copy: write after = \"main\"",
    );
    expect(
        "copies = 3\n[[task]]\nname = \"b\"\nafter = \"main\"\nworkload = \"sleep\"\n\
        duration = \"1s\"\n",
        4,
        9,
        "\"main\"",
        "`main` has several copies",
        "say which: after = \"main.0\", for example",
    );
    expect(
        "[[group]]\nname = \"g\"\nparent = \"h\"\n",
        3,
        10,
        "\"h\"",
        "there is no group `h`",
        "there is `g`",
    );
    expect(
        "[report]\nmeasure = \"man\"\n",
        2,
        11,
        "\"man\"",
        "there is no task `man`",
        "did you mean `main`?",
    );
    expect(
        "[machine.swap]\nsize = \"1GiB\"\ndisk = \"hdd\"\n",
        3,
        8,
        "\"hdd\"",
        "there is no disk `hdd`",
        "there is `disk`",
    );
}

#[test]
fn files_and_traces_must_be_there() {
    expect(
        "[[task]]\nname = \"b\"\nworkload = \"trace\"\npath = \"a.ptt\"\n",
        4,
        8,
        "\"a.ptt\"",
        "trace `a.ptt`: No such file or directory (os error 2)",
        "looked for no-such-directory/a.ptt: paths start at the scenario file",
    );
    // A file that is there, but is no trace: this crate's own manifest.
    let text =
        format!("{SOUND}[[task]]\nname = \"b\"\nworkload = \"trace\"\npath = \"Cargo.toml\"\n");
    let base = Path::new(env!("CARGO_MANIFEST_DIR"));
    let errors = load_str("x.toml", &text, base, &Overrides::default()).unwrap_err();
    let first = errors.iter().next().unwrap();
    assert_eq!((first.line, first.column), (NEXT + 3, 8));
    assert!(first.message.starts_with("trace `Cargo.toml`: "), "{}", first.message);
    expect(
        "[[file]]\nname = \"empty\"\n[[task]]\nname = \"b\"\nworkload = \"file-read\"\n\
        file = \"empty\"\n",
        6,
        8,
        "\"empty\"",
        "the file `empty` is empty when the run starts",
        "give it a size = \"1GiB\", for example",
    );
    let error = load(Path::new("/no/such/file.toml"), &Overrides::default()).unwrap_err();
    let first = error.iter().next().unwrap();
    assert_eq!((first.line, first.column), (0, 0));
    assert!(first.message.starts_with("cannot read the scenario"), "{}", first.message);
}

#[test]
fn workloads_must_fit() {
    let task = "[[task]]\nname = \"b\"\n";
    let mapped = "workload = \"mapped-read\"\nfile = \"data\"\n";
    expect(
        &format!("{task}{mapped}size = \"65MiB\"\n"),
        5,
        8,
        "\"65MiB\"",
        "65MiB mapped of a file of 64MiB",
        "make the file larger, or map less of it",
    );
    expect(
        &format!("{task}workload = \"touch\"\nsize = \"9TiB\"\n"),
        4,
        8,
        "\"9TiB\"",
        "larger than the address space: the task maps 9TiB",
        "a task can map 8TiB in all",
    );
    expect(
        &format!("{task}workload = \"touch\"\nsize = 0\n"),
        4,
        8,
        "0",
        "a region of no size",
        "\"64MiB\", for example",
    );
    expect(
        "[[file]]\nname = \"big\"\nsize = \"9TiB\"\n",
        3,
        8,
        "\"9TiB\"",
        "the file is too large",
        "at most 8TiB",
    );
    let write = "workload = \"file-write\"\nfile = \"data\"\n";
    expect(
        &format!("{task}{write}total = \"8TiB\"\n"),
        5,
        9,
        "\"8TiB\"",
        "the file becomes too large",
        "at most 8TiB",
    );
    expect(
        &format!("{task}{write}total = 1\nblock = 0\n"),
        6,
        9,
        "0",
        "no size for a read() or write() call",
        "from 1 byte to 1GiB",
    );
    // Two regions that fit one by one.
    let phase = |name: &str| {
        format!(
            "[[task.phase]]\nname = \"{name}\"\nworkload = \"touch\"\nregion = \"{name}\"\n\
            size = \"5TiB\"\n"
        )
    };
    expect(
        &format!("{task}{}{}", phase("p"), phase("q")),
        12,
        8,
        "\"5TiB\"",
        "larger than the address space: the task maps 10TiB",
        "a task can map 8TiB in all",
    );
}

#[test]
fn phases_must_agree_on_their_regions() {
    let phases = |first: &str, second: &str| {
        format!(
            "[[task]]\nname = \"b\"\n[[task.phase]]\nname = \"p\"\n{first}\
            [[task.phase]]\nname = \"q\"\n{second}"
        )
    };
    let mapped = "workload = \"mapped-read\"\nfile = \"data\"\nregion = \"r\"\n";
    let hint = "phases that name the same region share one mapping: use another `region`";
    expect(
        &phases(mapped, &format!("{mapped}advice = \"random\"\n")),
        12,
        10,
        "\"r\"",
        "the region `r` has another advice in another phase",
        hint,
    );
    let touch = "workload = \"touch\"\nregion = \"r\"\nsize = \"1MiB\"\n";
    expect(
        &phases(mapped, touch),
        11,
        10,
        "\"r\"",
        "the region `r` is backed by something else in another phase",
        hint,
    );
    let set = "workload = \"working-set\"\nanon = \"1MiB\"\n";
    expect(
        &phases(&format!("{set}generator_seed = 1\n"), &format!("{set}generator_seed = 2\n")),
        12,
        18,
        "2",
        "another start value than in an earlier phase",
        "later phases on the same regions continue the generator: leave it out",
    );
    sound(&format!("{SOUND}{}", phases(&format!("{set}generator_seed = 1\n"), set)));
    expect(
        "[[task]]\nname = \"b\"\nworkload = \"working-set\"\n",
        3,
        12,
        "\"working-set\"",
        "workload working-set has no memory to work on",
        "add anon = \"1GiB\", or file = \"data\", or both",
    );
    expect(
        "[[task]]\nname = \"b\"\nworkload = \"working-set\"\nanon = \"1MiB\"\n\
        advice = \"random\"\n",
        5,
        10,
        "\"random\"",
        "`advice` without `file`",
        "add `file` too",
    );
}

#[test]
fn tasks_must_do_something_and_end() {
    expect(
        "[[task]]\nname = \"b\"\n",
        1,
        1,
        "[[task]]",
        "the task does nothing",
        "add workload = \"touch\", for example, or [[task.phase]]",
    );
    expect(
        "[[task]]\nname = \"b\"\nsize = \"1GiB\"\n[[task.phase]]\nname = \"p\"\n\
        workload = \"sleep\"\nduration = \"1s\"\n",
        3,
        1,
        "size",
        "`size` without a workload",
        "add the key workload = \"mapped-read\" or \"touch\"",
    );
    expect(
        "[[task.phase]]\nname = \"p\"\nworkload = \"sleep\"\nduration = \"1s\"\n",
        1,
        1,
        "[[task.phase]]",
        "a workload and phases exclude each other",
        "move the task's own workload into a [[task.phase]]",
    );
    expect(
        "[[task]]\nname = \"b\"\n[[task.phase]]\nname = \"p\"\n",
        3,
        1,
        "[[task.phase]]",
        "the phase has no workload",
        "add workload = \"touch\", for example",
    );
    let writer = "[[task]]\nname = \"b\"\nworkload = \"file-write\"\nfile = \"data\"\n";
    expect(
        writer,
        2,
        8,
        "\"b\"",
        "the task `b` never ends",
        "add total = \"1GiB\" to its file-write, or background = true to the task",
    );
    expect(
        &format!(
            "{writer}background = true\n[[task]]\nname = \"c\"\nafter = \"b\"\n\
        workload = \"sleep\"\nduration = \"1s\"\n"
        ),
        8,
        9,
        "\"b\"",
        "`c` waits for `b`, which never ends",
        "use start = \"1s\", for example",
    );
    expect(
        "background = true\n",
        -3,
        1,
        "[[task]]",
        "every task is in the background: the run would end at once",
        "leave out `background` for one of them",
    );
    expect(
        "start = \"1s\"\nafter = \"b\"\n[[task]]\nname = \"b\"\nworkload = \"sleep\"\n\
        duration = \"1s\"\n",
        1,
        9,
        "\"1s\"",
        "`start` and `after` exclude each other",
        "with `after`, write `delay`",
    );
    let nothing = &SOUND[..SOUND.find("[[task]]").unwrap()];
    expect_in(
        nothing,
        1,
        1,
        "",
        "there is nothing to run",
        "add a [[task]] with a name and a workload",
    );
    expect(
        "copies = 4096\n[[task]]\nname = \"b\"\nworkload = \"sleep\"\nduration = \"1s\"\n",
        2,
        1,
        "[[task]]",
        "too many tasks",
        "a scenario has at most 4096, copies included",
    );
    expect(
        "[[task]]\nname = \"b\"\ncopies = 4000\n[[task.phase]]\nname = \"p\"\nrepeat = 5\n\
        workload = \"sleep\"\nduration = \"1s\"\n",
        3,
        10,
        "4000",
        "too many phases",
        "a scenario has at most 16384, copies and repeats included",
    );
}

#[test]
fn waiting_in_a_circle() {
    let wait = |name: &str, after: &str| {
        format!(
            "[[task]]\nname = \"{name}\"\nafter = \"{after}\"\nworkload = \"sleep\"\n\
            duration = \"1s\"\n"
        )
    };
    let hint = "let one of them start without `after`";
    let text = wait("a", "b") + &wait("b", "c") + &wait("c", "b");
    expect(&text, 8, 9, "\"c\"", "tasks wait for each other: `b` after `c` after `b`", hint);
    expect(&wait("a", "a"), 3, 9, "\"a\"", "tasks wait for each other: `a` after `a`", hint);
    sound(&format!("{SOUND}{}", wait("a", "b") + &wait("b", "c") + &wait("c", "main")));
    expect(
        "[[group]]\nname = \"g\"\nparent = \"h\"\n[[group]]\nname = \"h\"\nparent = \"g\"\n",
        3,
        10,
        "\"h\"",
        "the group `g` is within itself",
        "let one of its parents be the root",
    );
}

#[test]
fn knobs() {
    let hint = "did you mean `vm.swappiness`?";
    expect(
        "[sysctl]\nvm.swapiness = 1\n",
        2,
        4,
        "swapiness",
        "unknown sysctl `vm.swapiness`",
        hint,
    );
    expect("[sysctl]\nswappiness = 1\n", 2, 1, "swappiness", "unknown sysctl `swappiness`", hint);
    expect(
        "[sysctl]\n\"kernel.panic\" = 1\n",
        2,
        1,
        "\"kernel.panic\"",
        "unknown sysctl `kernel.panic`",
        "docs/scenario.md lists them",
    );
    expect(
        "[sysctl]\nvm.swappiness = 201\n",
        2,
        17,
        "201",
        "`201` would be refused by vm.swappiness (EINVAL)",
        "it takes 0 to 200",
    );
    expect(
        "[sysctl]\nvm.min_free_kbytes = \"16MiB\"\n",
        2,
        22,
        "\"16MiB\"",
        "`16MiB` would be refused by vm.min_free_kbytes (EINVAL)",
        "it counts kB: write 16384",
    );
    expect(
        "[sysctl]\nvm.swappiness = true\n",
        2,
        17,
        "true",
        "expected an integer or a string, found a boolean",
        "it is what you would echo into the file",
    );
    expect(
        "[sysctl]\nvm.swappiness = 1\n\"vm.swappiness\" = 2\n",
        3,
        1,
        "\"vm.swappiness\"",
        "`vm.swappiness` is written twice",
        "keep one of them",
    );
    expect(
        "[sysctl]\nvm.wmark_low_kbytes = 1\n",
        2,
        4,
        "wmark_low_kbytes",
        "vm.wmark_low_kbytes does not exist under this policy of watermarks",
        "write [policy] watermarks = \"apart\"",
    );
    expect(
        "[policy]\nwatermarks = \"apart\"\n[sysctl.vm]\nwmark_low_kbytes = 20\n\
        wmark_min_kbytes = 10\nwmark_high_kbytes = 15\n",
        6,
        21,
        "15",
        "marks out of order: vm.wmark_high_kbytes is below vm.wmark_low_kbytes",
        "it must be min <= low <= high",
    );
    expect(
        "[policy]\nwatermarks = \"separate\"\n",
        2,
        14,
        "\"separate\"",
        "unknown policy `separate`",
        "it is one of `derived`, `scale-factor` and `apart`",
    );
    expect(
        "[[group]]\nname = \"g\"\nmemory.maxx = 1\n",
        3,
        8,
        "maxx",
        "unknown control file `memory.maxx`",
        "did you mean `memory.max`?",
    );
    expect(
        "[[group]]\nname = \"g\"\nmemory.max = \"300MB\"\n",
        3,
        14,
        "\"300MB\"",
        "`300MB` would be refused by memory.max (EINVAL)",
        "it takes bytes like 300M, or max for no limit",
    );
}

#[test]
fn reports_and_references() {
    expect(
        "[report]\nrows = [\"man.walltime\"]\n",
        2,
        9,
        "\"man.walltime\"",
        "no task or group is called `man`",
        "did you mean `main`?",
    );
    expect(
        "[report]\nrows = [\"a b\"]\n",
        2,
        9,
        "\"a b\"",
        "`a b` is no metric",
        "keys are NAME, TASK.NAME, TASK.PHASE.NAME or GROUP.NAME",
    );
    expect(
        "[report]\nrows = [\"pgfault\", \"pgfault\"]\n",
        2,
        20,
        "\"pgfault\"",
        "the row `pgfault` is there twice",
        "keep one of them",
    );
    expect(
        "[reference]\nsource = \"s\"\ndefualt.pgfault = 1\n",
        3,
        1,
        "defualt",
        "there is no variant `defualt`",
        "did you mean `default`?",
    );
    expect(
        "[reference]\ndefault.pgfault = 1\n",
        1,
        1,
        "[reference]",
        "the reference has no `source`",
        "add source = \"where the figures were published\"",
    );
    expect(
        "[reference]\nsource = \"s\"\ndefault.main.walltime = \"5 msec\"\n",
        3,
        25,
        "\"5 msec\"",
        "`5 msec`: unit `msec` is not used here",
        "did you mean `5ms`?",
    );
    expect(
        "[reference]\nsource = \"s\"\ndefault.pgfault = nan\n",
        3,
        19,
        "nan",
        "expected a number, found a float",
        "or a text with a unit: \"503ms\", \"64MiB\"",
    );
}

#[test]
fn variants_change_the_scenario() {
    let variants = "\
[[variant]]
name = \"a\"
[[variant]]
name = \"b\"
sysctl.vm.swappiness = 5
set = { \"machine.memory\" = \"2GiB\", \"task.main.nice\" = 3, \"vm.dirty_ratio\" = 7 }
[[variant]]
name = \"c\"
set.machine.swap.size = \"1GiB\"
set.file.data.size = \"1MiB\"
";
    let scenario = sound(&format!("{SOUND}{variants}"));
    let [a, b, c] = scenario.variants.as_slice() else { panic!("three variants") };
    assert_eq!(a.setup.machine.nodes[0].memory, 1 << 30);
    assert_eq!(b.setup.machine.nodes[0].memory, 2 << 30);
    assert_eq!(b.setup.tasks[0].nice, 3);
    let writes = [("vm.swappiness", "5"), ("vm.dirty_ratio", "7")];
    assert!(b.setup.sysctls.iter().map(|(k, v)| (k.as_str(), v.as_str())).eq(writes));
    assert_eq!(c.setup.machine.swap.as_ref().unwrap().size, 1 << 30);
    assert_eq!(c.setup.files[0].size, 1 << 20);
}

#[test]
fn mistakes_in_variants_have_their_place() {
    let variant =
        |line: &str| format!("[[variant]]\nname = \"a\"\n[[variant]]\nname = \"b\"\n{line}\n");
    expect(
        &variant("set = { \"machine.memry\" = 1 }"),
        5,
        9,
        "\"machine.memry\"",
        "unknown key `memry`",
        "did you mean `memory`?",
    );
    expect(
        &variant("set = { \"machine.memory\" = \"1GB\" }"),
        5,
        28,
        "\"1GB\"",
        "`1GB`: unit `GB` is not used here",
        "did you mean `1GiB`?",
    );
    expect(
        &variant("set = { \"task.mian.nice\" = 1 }"),
        5,
        9,
        "\"task.mian.nice\"",
        "there is no task `mian`",
        "there is `main`",
    );
    expect(
        &variant("set = { \"task.main\" = 1 }"),
        5,
        9,
        "\"task.main\"",
        "`task.main` names a whole table",
        "add the key to change; `task` has `main`",
    );
    expect(
        &variant("set = { \"machine.memory.x\" = 1 }"),
        5,
        9,
        "\"machine.memory.x\"",
        "`machine.memory` is a string, it has no keys",
        "",
    );
    expect(
        &variant("set = { \"machine..x\" = 1 }"),
        5,
        9,
        "\"machine..x\"",
        "`machine..x` is not a path",
        "name a value like `machine.memory` or `task.NAME.nice`",
    );
    expect(
        &variant("set = { \"repeats\" = 1 }"),
        5,
        9,
        "\"repeats\"",
        "`repeats` cannot differ between variants",
        "it belongs to the scenario, not to the machine or its load",
    );
    expect(
        &variant("set = 3"),
        5,
        7,
        "3",
        "expected a table, found an integer",
        "write set = { \"machine.memory\" = \"4GiB\" }",
    );
    expect(
        &variant("sysctl.vm.swapiness = 3"),
        5,
        11,
        "swapiness",
        "unknown sysctl `vm.swapiness`",
        "did you mean `vm.swappiness`?",
    );
    expect(
        "[[variant]]\n",
        1,
        1,
        "[[variant]]",
        "the variant has no `name`",
        "add name = \"larger\"",
    );
    expect(
        "[[variant]]\nname = \"source\"\n",
        2,
        8,
        "\"source\"",
        "a variant cannot be called `source`",
        "[reference] has a key of this name: call it something else",
    );
    // A consequence elsewhere in the file says which variant it comes from.
    let found = told(&format!(
        "{SOUND}[[task]]\nname = \"r\"\nworkload = \"mapped-read\"\n\
        file = \"data\"\nsize = \"2MiB\"\n{}",
        variant("set.file.data.size = \"1MiB\"")
    ));
    assert_eq!(found.len(), 1, "{found:#?}");
    assert_eq!(found[0].0, NEXT + 4);
    assert_eq!(found[0].3, "2MiB mapped of a file of 1MiB (variant `b`)");
}

fn with_sets(sets: &[(&str, &str)]) -> Overrides {
    let sets = sets.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    Overrides { sets, ..Overrides::default() }
}

#[test]
fn the_command_line_wins() {
    let text = format!(
        "{SOUND}[[variant]]\nname = \"a\"\nsysctl.vm.swappiness = 5\n\
        [[variant]]\nname = \"b\"\n"
    );
    let overrides = Overrides {
        repeats: Some(7),
        seed: Some(9),
        variants: vec!["b".into(), "a".into(), "b".into()],
        ..with_sets(&[
            ("machine.memory", "4GiB"),
            ("vm.swappiness", "1"),
            ("task.main.nice", "-3"),
            ("variant.a.sysctl.vm.dirty_ratio", "30"),
            ("machine.swap", "1GiB"),
            ("report.rows", "[\"pgfault\"]"),
            ("title", "another"),
        ])
    };
    let scenario = load_text(&text, &overrides).unwrap_or_else(|errors| panic!("{errors}"));
    assert_eq!((scenario.repeats, scenario.seed), (7, 9));
    assert_eq!(scenario.title, "another");
    assert_eq!(scenario.rows, ["pgfault"]);
    let names: Vec<&str> = scenario.variants.iter().map(|v| v.name.as_str()).collect();
    assert_eq!(names, ["b", "a"]);
    for variant in &scenario.variants {
        assert_eq!(variant.setup.machine.nodes[0].memory, 4 << 30);
        assert_eq!(variant.setup.tasks[0].nice, -3);
        assert_eq!(variant.setup.machine.swap.as_ref().unwrap().size, 1 << 30);
    }
    let a = &scenario.variants[1].setup.sysctls;
    assert_eq!(a[0], ("vm.swappiness".into(), "1".into()));
    assert_eq!(a[1], ("vm.dirty_ratio".into(), "30".into()));
}

#[test]
fn mistakes_on_the_command_line() {
    let error = |overrides: &Overrides| {
        let errors = load_text(SOUND, overrides).unwrap_err();
        let all: Vec<Diagnostic> = errors.iter().cloned().collect();
        assert_eq!(all.len(), 1, "{errors}");
        let one = all.into_iter().next().unwrap();
        (one.path, one.column, one.text, one.message, one.hint.unwrap_or_default())
    };
    let tell = |path: &str, column: usize, text: &str, message: &str, hint: &str| {
        (path.to_owned(), column, text.to_owned(), message.to_owned(), hint.to_owned())
    };
    assert_eq!(
        error(&with_sets(&[("machine.memory", "4gb")])),
        tell("--set", 16, "4gb", "`4gb`: unit `gb` is not used here", "did you mean `4GiB`?")
    );
    assert_eq!(
        error(&with_sets(&[("machine.memroy", "4GiB")])),
        tell("--set", 1, "machine.memroy", "unknown key `memroy`", "did you mean `memory`?")
    );
    assert_eq!(
        error(&with_sets(&[("task.mane.nice", "1")])),
        tell("--set", 1, "task.mane.nice", "there is no task `mane`", "there is `main`")
    );
    assert_eq!(
        error(&with_sets(&[("vm.swapiness", "1")])),
        tell(
            "--set",
            1,
            "vm.swapiness",
            "unknown sysctl `vm.swapiness`",
            "did you mean `vm.swappiness`?"
        )
    );
    assert_eq!(
        error(&with_sets(&[("vm.swappiness", "many")])),
        tell(
            "--set",
            15,
            "many",
            "`many` would be refused by vm.swappiness (EINVAL)",
            "it takes an integer"
        )
    );
    assert_eq!(
        error(&with_sets(&[("", "1")])),
        tell(
            "--set",
            1,
            "",
            "`` is not a path",
            "name a value like `machine.memory` or `task.NAME.nice`"
        )
    );
    let variant = Overrides { variants: vec!["defualt".into()], ..Overrides::default() };
    assert_eq!(
        error(&variant),
        tell("--variant", 1, "defualt", "there is no variant `defualt`", "did you mean `default`?")
    );
    let repeats = Overrides { repeats: Some(0), ..Overrides::default() };
    assert_eq!(error(&repeats), tell("--repeats", 1, "0", "no runs at all", "give 1 or more"));
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
fn the_number_of_mistakes_told_is_bounded() {
    let mut text = SOUND.to_owned();
    for i in 0..500 {
        text.push_str(&format!("key{i} = {i}\n"));
    }
    let errors = load_text(&text, &Overrides::default()).unwrap_err();
    assert_eq!(errors.iter().count(), 100);
    assert_eq!(errors.count(), 500);
    assert!(errors.to_string().ends_with("500 errors in dir/case.toml (400 not shown)\n"));
}

/// Loads; mistakes can be rendered, and what has none can be run.
fn survive(text: &str) {
    const TASKS: usize = 20;
    const OPS: usize = 100;
    match load_text(text, &Overrides::default()) {
        Err(errors) => {
            let rendered = errors.render(crate::diagnostic::Style::Coloured);
            assert!(rendered.len() < 4 << 20);
        }
        Ok(scenario) => {
            for setup in scenario.variants.iter().map(|variant| &variant.setup) {
                for task in 0..setup.tasks.len().min(TASKS) {
                    let mut program = Program::new(setup, task, 1).unwrap();
                    for _ in 0..OPS {
                        program.next_op().unwrap();
                    }
                }
            }
        }
    }
}

#[test]
fn nasty_files_are_survived() {
    let deep_inline = "a = ".to_owned() + &format!("{{{} = ", ["b"; 79].join(".")).repeat(79);
    for text in [
        "",
        "\u{feff}",
        "\u{feff}[machine]",
        "\0",
        "\r\r\n",
        "=",
        "[[]]",
        "[[task]]\n[task]",
        "task = 1\n[[task]]",
        "task = [1, {name = \"a\"}, []]",
        "machine = []",
        "machine.node = [{}, {memory = {}}]\ntask = [{}]",
        "[machine]\nmemory = 99999999999999999999999999999999999999999999\n",
        "[machine]\nmemory = -99999999999999999999999999999999999999999999\n",
        "[machine]\nmemory = 1e999\n[reference]\nsource=\"\"\ndefault.x = 1e999",
        "[machine]\nmemory = 9223372036854775807\ncpus = 1979-05-27",
        "[[machine.zone]]\nname=\"DMA\"\npresent=\"18446744073709551615\"\nfree=\"18446744073709551615\"",
        "[[machine.zone]]\nname=\"DMA\"\npresent=\"18446744073709547520\"\n[[machine.zone]]\nname=\"DMA32\"\npresent=\"18446744073709547520\"",
        "[[machine.node]]\nmemory=\"18446744073709547520\"\n[[machine.node]]\nmemory=\"18446744073709547520\"",
        "variant = {}",
        "[[variant]]\nname = 1\nset = []\nsysctl = 3\npolicy = 1",
        "[sysctl]\n\"\" = \"\"\n\"vm.swappiness\" = [1, \"a\"]\n\"vm.page-cluster\" = []",
        "[sysctl]\n\"vm.swappiness\" = \"-9223372036854775808\"\n\"vm.dirty_bytes\" = \"0x\"",
        "[[group]]\nname = \"\u{202e}\"\n\"memory.max\" = \"\u{0661}M\"",
        "[[task]]\nname = \"a\"\nstart = \"584y\"\nafter = \".\"\nafter = \"..\"",
        "[[task]]\nname = \"a\"\nafter = \"a.99999999999999999999\"",
        "[[task]]\nname = \"a\"\ncopies = 4096\n[[task.phase]]\nname = \"p\"\nrepeat = 4096\n\
         workload = \"sleep\"\nduration = \"1s\"",
        "time_limit = \"18446744073709551615ns\"",
        "time_limit = \"99999999999999h\"",
        "[report]\nrows = [\"\", \".\", \"...\", 1]",
        &deep_inline,
        &format!("{} = 1", ["a"; 5000].join(".")),
        &"[".repeat(50_000),
        &"a = {".repeat(20_000),
        &"[[variant]]\n".repeat(20_000),
        &"[[task]]\nafter=\"b\"\n".repeat(10_000),
        &"\u{1f600}".repeat(60_000),
        &"x".repeat(300_000),
        &format!("{SOUND}{}", "[[task]]\nname=\"b\"\n[[task.phase]]\nname=\"p\"\nrepeat=4096\n\
            workload=\"sleep\"\nduration=\"1s\"\n".repeat(3000)),
        &format!("{SOUND}copies=4000\n[[task.phase]]\n{}", (0..64).map(|i| {
            format!("[[variant]]\nname=\"v{i}\"\n")
        }).collect::<String>()),
        &format!("[sysctl]\n{}", (0..20_000).map(|i| format!("k{i}=1\n")).collect::<String>()),
        &format!("name = \"{}\"", "x".repeat(200_000)),
        &format!("[sysctl]\n\"{}\" = 1", "x".repeat(200_000)),
    ] {
        survive(text);
    }
}

#[test]
fn every_cut_of_a_scenario_is_survived() {
    let text = include_str!("everything.toml");
    for (end, _) in text.char_indices() {
        survive(&text[..end]);
    }
}

/// Pieces from which scenarios can be put together, most of them wrong.
fn piece() -> impl Strategy<Value = String> {
    let words = include_str!("everything.toml");
    let lines: Vec<String> = words.lines().map(|line| format!("{line}\n")).collect();
    let values =
        vec!["0", "-1", "\"\"", "[]", "{}", "\"1s\"", "\"2GiB\"", "true", "1e9", "\"a.b\""];
    prop_oneof![
        4 => prop::sample::select(lines.clone()),
        2 => (prop::sample::select(lines), prop::sample::select(values)).prop_map(|(line, value)| {
            let key = line.split('=').next().unwrap_or_default().trim().to_owned();
            format!("{key} = {value}\n")
        }),
        1 => any::<String>(),
        1 => "[a-z.=\\[\\]{}\", 0-9\n]{0,20}",
    ]
}

/// Values that some key takes.
fn value() -> impl Strategy<Value = String> {
    prop_oneof![
        (0..9_999_999_999_u64).prop_map(|value| value.to_string()),
        (1..3000_u64).prop_map(|value| format!("\"{value} pages\"")),
        (0..9000_u64).prop_map(|value| format!("\"{value}GiB\"")),
        (0..9000_u64).prop_map(|value| format!("\"{value}ms\"")),
        Just("true".to_owned()),
        Just("\"zipf\"".to_owned()),
        Just("\"data\"".to_owned()),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn any_text_is_survived(text: String) {
        survive(&text);
    }

    #[test]
    fn any_mixture_of_lines_is_survived(pieces in prop::collection::vec(piece(), 0..60)) {
        survive(&pieces.concat());
    }

    #[test]
    fn any_values_in_the_full_scenario_are_survived(
        changes in prop::collection::vec((0..200_usize, value()), 1..4)
    ) {
        let mut lines: Vec<String> =
            include_str!("everything.toml").lines().map(str::to_owned).collect();
        let count = lines.len();
        for (line, value) in changes {
            let line = &mut lines[line % count];
            if let Some((key, _)) = line.clone().split_once('=') {
                *line = format!("{key}= {value}");
            }
        }
        survive(&lines.join("\n"));
    }

    #[test]
    fn any_change_on_the_command_line_is_survived(key: String, value: String, piece in piece()) {
        let text = include_str!("everything.toml");
        let (path, _) = piece.split_once('=').unwrap_or((&piece, ""));
        let overrides = with_sets(&[(&key, &value), (path.trim(), &value), (path.trim(), "1")]);
        if let Err(errors) = load_text(text, &overrides) {
            errors.to_string();
        }
    }
}
