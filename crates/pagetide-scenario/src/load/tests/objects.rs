//! Kernel objects: object mixes in files, and the caches of several mixes.

use super::*;
use std::path::PathBuf;

const MIX: &str = "\
recorded = \"by hand\"
unit = \"a unit\"
[[cache]]
name = \"filp\"
object_size = 256
account = true
reclaimable = false
allocs = 1.5
lifetimes = { \"16\" = 0.75, unit = 0.25 }
";

/// A temporary directory of mixes.
struct Directory(PathBuf);

impl Directory {
    fn new(name: &str, files: &[(&str, &str)]) -> Directory {
        let name = format!("pagetide-objects-{}-{name}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).unwrap();
        for (file, text) in files {
            std::fs::write(path.join(file), text).unwrap();
        }
        Directory(path)
    }

    fn load(&self, text: &str) -> Result<Scenario, Diagnostics> {
        load_str("case.toml", &format!("{SOUND}{text}"), &self.0, &Overrides::default())
    }

    /// (text, message, hint) of each mistake.
    fn told(&self, text: &str) -> Vec<(String, String, String)> {
        let errors = self.load(text).expect_err("there is a mistake");
        let tell = |d: &Diagnostic| {
            let hint = d.hint.clone().unwrap_or_default();
            (d.text.clone(), d.message.clone(), hint)
        };
        errors.iter().map(tell).collect()
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn objects(name: &str, mix: &str, keys: &str) -> String {
    format!(
        "[[task]]\nname = \"{name}\"\nworkload = \"kernel-objects\"\nmix = \"{mix}\"\n\
        units = 3\n{keys}"
    )
}

/// Checks the only mistake of a mix.
#[track_caller]
fn expect_mistake(mix: &str, line: usize, text: &str, message: &str, hint: &str) {
    let errors = object_mix("mix.toml", mix).expect_err("there is a mistake");
    let found: Vec<Diagnostic> = errors.iter().cloned().collect();
    let [one] = found.as_slice() else { panic!("expected one mistake, found {found:#?}") };
    assert_eq!((one.line, one.text.as_str(), one.message.as_str()), (line, text, message));
    assert_eq!(one.hint.as_deref().unwrap_or_default(), hint);
}

#[test]
fn caches_are_those_of_all_mixes() {
    let other = MIX.replace("filp", "dentry").replace("le = false", "le = true");
    let other = format!("{other}{}", MIX.replace("[[cache]]", "[[start_cache]]"));
    let other = other.replacen("recorded", "start = \"s\"\nrecorded", 1);
    let (head, tail) = other.rsplit_once("recorded = \"by hand\"\nunit = \"a unit\"\n").unwrap();
    let other = format!("{head}{tail}");
    let directory = Directory::new("caches", &[("a.toml", MIX), ("b.toml", &other)]);
    let more = [
        objects("a", "a.toml", "interval = \"1ms\"\n"),
        objects("b", "b.toml", "start_unit = true\ncopies = 2\n"),
    ];
    let scenario = directory.load(&more.concat()).unwrap_or_else(|errors| panic!("{errors}"));
    let setup = &scenario.variants[0].setup;
    let caches: Vec<(&str, bool)> =
        setup.caches.iter().map(|cache| (cache.name.as_str(), cache.reclaimable)).collect();
    assert_eq!(caches, [("filp", false), ("dentry", true)]);
    let of = |task: usize| match &setup.tasks[task].phases[0].workload {
        Workload::KernelObjects(objects) => (objects.units, objects.interval_ns, objects.start),
        other => panic!("{other:?}"),
    };
    assert_eq!((of(1), of(2), of(3)), ((3, 1_000_000, false), (3, 0, true), (3, 0, true)));
}

#[test]
fn mixes_that_contradict_each_other_are_both_named() {
    let other = MIX.replace("256", "232");
    let directory = Directory::new("conflict", &[("a.toml", MIX), ("b.toml", &other)]);
    let more = [objects("a", "a.toml", ""), objects("b", "b.toml", "")].concat();
    let message = "object mix `b.toml`: objects of `filp` have 232 bytes, not reclaimable; in \
        `a.toml`, 256 bytes, not reclaimable";
    let expected =
        ("\"b.toml\"".into(), message.into(), "use mixes recorded on the same kernel".into());
    assert_eq!(directory.told(&more), [expected]);
}

#[test]
fn mistakes_of_a_mix_are_told_where_it_is_named() {
    let broken = MIX.replace("0.25", "0.3").replace("1.5", "\"many\"");
    let directory = Directory::new("mistakes", &[("bad.toml", &broken), ("good.toml", MIX)]);
    let told = directory.told(&objects("a", "bad.toml", ""));
    let messages: Vec<&str> = told.iter().map(|(_, message, _)| message.as_str()).collect();
    assert_eq!(
        messages,
        [
            "object mix `bad.toml`: line 8, column 10, `\"many\"`: not a valid number of allocations",
            "object mix `bad.toml`: line 9, column 13, `{ \"16\" = 0.75, unit = 0.3 }`: the shares \
             add up to 1.05",
        ]
    );
    let told = directory.told(&objects("a", "good.toml", "start_unit = true\n"));
    let hint = "leave it out, or add a [[start_cache]] to the mix";
    let message = "the mix `good.toml` has no start-up part";
    assert_eq!(told, [("true".into(), message.into(), hint.into())]);
    let told = directory.told(&objects("a", "none.toml", ""));
    assert!(told[0].1.starts_with("object mix `none.toml`: No such file"), "{told:?}");
    assert!(told[0].2.ends_with("none.toml: paths are relative to the scenario file"), "{told:?}");
    let told = directory.told(&objects("a", ".", ""));
    assert_eq!(told[0].1, "object mix `.`: it is not a regular file");
}

#[test]
fn a_mix_is_checked_to_the_letter() {
    object_mix("mix.toml", MIX).unwrap_or_else(|errors| panic!("{errors}"));
    let with = |old: &str, new: &str| MIX.replacen(old, new, 1);
    let shares = "write a number from 0 to 1 with at most four decimals";
    expect_mistake(&with("0.75", "1.75"), 9, "1.75", "not a valid share", shares);
    expect_mistake(&with("0.75", "0.00001"), 9, "0.00001", "not a valid share", shares);
    expect_mistake(
        &with("unit = 0.25", "units = 0.25"),
        9,
        "units",
        "unknown key `units`",
        "did you mean `unit`?",
    );
    expect_mistake(
        &with("filp", "fi lp"),
        4,
        "\"fi lp\"",
        "`fi lp` is not a valid cache name",
        "write it as /proc/slabinfo does, for example \"kmalloc-cg-64\"",
    );
    let allocs = "write a number from 0.001 to 1048576 with at most three decimals";
    for number in ["0", "0.0001", "1048577", "-1", "nan", "inf"] {
        let text = with("1.5", number);
        expect_mistake(&text, 8, number, "not a valid number of allocations", allocs);
    }
    let row = MIX.split_once("a unit\"\n").unwrap().1;
    let twice = format!("{MIX}{}", row.replace("256", "64"));
    let hint = "write the same object_size and reclaimable in all rows of a cache";
    expect_mistake(&twice, 11, "\"filp\"", "the cache `filp` differs from an earlier row", hint);
    let many = format!("{MIX}{row}").replace("1.5", "600000");
    let hint = "a unit makes at most 1048576: use smaller units";
    expect_mistake(&many, 3, "[[cache]]", "a unit makes 1200000 allocations", hint);
    let head = MIX.split_once("[[cache]]").unwrap().0;
    expect_mistake(head, 1, "", "the mix has no objects", "add a [[cache]]");
    let errors = object_mix("mix.toml", "").expect_err("nothing is there");
    assert_eq!(errors.count(), 3);
}
