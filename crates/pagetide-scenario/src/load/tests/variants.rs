//! Changes by variants and by the command line, and mistakes on the command line.

use super::*;
use crate::model::Variant;
use pagetide_core::control::ControlWrite;

fn write((name, text): (&str, &str)) -> ControlWrite {
    ControlWrite::read(name, text, Default::default()).unwrap()
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
    assert_eq!(b.setup.tasks[0].settings.nice, 3);
    let writes = [("vm.swappiness", "5"), ("vm.dirty_ratio", "7")];
    assert!(b.setup.sysctls == writes.map(write));
    assert_eq!(c.setup.machine.swap[0].size, 1 << 30);
    assert_eq!(c.setup.files[0].size, 1 << 20);
    let sets = |variant: &Variant| -> Vec<String> {
        variant.sets.iter().map(|(key, value)| format!("{key}={value}")).collect()
    };
    assert_eq!(sets(a), [""; 0]);
    assert_eq!(sets(b), ["machine.memory=\"2GiB\"", "task.main.nice=3", "vm.dirty_ratio=7"]);
    assert_eq!(sets(c), ["machine.swap.size=\"1GiB\"", "file.data.size=\"1MiB\""]);
}

pub(super) fn with_sets(sets: &[(&str, &str)]) -> Overrides {
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
        assert_eq!(variant.setup.tasks[0].settings.nice, -3);
        assert_eq!(variant.setup.machine.swap[0].size, 1 << 30);
    }
    let a = &scenario.variants[1].setup.sysctls;
    assert_eq!(a[0], write(("vm.swappiness", "1")));
    assert_eq!(a[1], write(("vm.dirty_ratio", "30")));
}

#[test]
fn mistakes_on_the_command_line() {
    let error = |overrides: &Overrides| {
        let errors = load_text(SOUND, overrides).unwrap_err();
        assert_eq!(errors.count(), 1, "{errors}");
        let one = errors.iter().next().unwrap();
        let hint = one.hint.as_deref().unwrap_or_default();
        format!("{}:{} {} | {} | {hint}", one.path, one.column, one.text, one.message)
    };
    let path = "name a value like `machine.memory` or `task.NAME.nice`";
    for (key, value, wanted) in [
        (
            "machine.memory",
            "4gb",
            "16 4gb | `4gb`: unit `gb` is not used here | did you mean `4GiB`?",
        ),
        (
            "machine.memroy",
            "4GiB",
            "1 machine.memroy | unknown key `memroy` | did you mean `memory`?",
        ),
        ("task.mane.nice", "1", "1 task.mane.nice | there is no task `mane` | known: `main`"),
        (
            "group.web.memory.max",
            "64M",
            "1 group.web.memory.max | there is no group `web` | the scenario has no [[group]]",
        ),
        (
            "task.main.size.pages",
            "1",
            "1 task.main.size.pages | `task.main.size` is a string and has no keys | set the whole \
             of it: task.main.size=...",
        ),
        ("main.nice", "1", "1 main.nice | unknown key `main.nice` | did you mean `task.main.nice`?"),
        (
            "memory.low",
            "1M",
            "1 memory.low | unknown key `memory.low` | did you mean `group.NAME.memory.low`?",
        ),
        (
            "vm.swapiness",
            "1",
            "1 vm.swapiness | unknown sysctl `vm.swapiness` | did you mean `vm.swappiness`?",
        ),
        (
            "vm.swappiness",
            "many",
            "15 many | vm.swappiness refuses `many` (EINVAL) | it takes an integer",
        ),
        ("", "1", &format!("1  | `` is not a path | {path}")),
    ] {
        assert_eq!(error(&with_sets(&[(key, value)])), format!("--set:{wanted}"));
    }
    let variant = Overrides { variants: vec!["defualt".into()], ..Overrides::default() };
    let wanted = "1 defualt | there is no variant `defualt` | did you mean `default`?";
    assert_eq!(error(&variant), format!("--variant:{wanted}"));
    let repeats = Overrides { repeats: Some(0), ..Overrides::default() };
    let wanted = "--repeats:1 0 | 0 repeats: there would be no runs | give 1 or more";
    assert_eq!(error(&repeats), wanted);
}
