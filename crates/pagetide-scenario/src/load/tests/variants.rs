//! Changes by variants and by the command line, and their mistakes.

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
    assert_eq!(b.setup.tasks[0].nice, 3);
    let writes = [("vm.swappiness", "5"), ("vm.dirty_ratio", "7")];
    assert!(b.setup.sysctls == writes.map(write));
    assert_eq!(c.setup.machine.swap.as_ref().unwrap().size, 1 << 30);
    assert_eq!(c.setup.files[0].size, 1 << 20);
    let sets = |variant: &Variant| -> Vec<String> {
        variant.sets.iter().map(|(key, value)| format!("{key}={value}")).collect()
    };
    assert_eq!(sets(a), [""; 0]);
    assert_eq!(sets(b), ["machine.memory=\"2GiB\"", "task.main.nice=3", "vm.dirty_ratio=7"]);
    assert_eq!(sets(c), ["machine.swap.size=\"1GiB\"", "file.data.size=\"1MiB\""]);
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
        "known: `main`",
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
        "`machine.memory` is a string and has no keys",
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
        "set it once for the whole scenario",
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
        "give it another name: `source` is a key of [reference]",
    );
    // A consequence elsewhere in the file names the variant that causes it.
    let found = told(&format!(
        "{SOUND}[[task]]\nname = \"r\"\nworkload = \"mapped-read\"\n\
        file = \"data\"\nsize = \"2MiB\"\n{}",
        variant("set.file.data.size = \"1MiB\"")
    ));
    assert_eq!(found.len(), 1, "{found:#?}");
    assert_eq!(found[0].0, NEXT + 4);
    assert_eq!(found[0].3, "the mapping has 2MiB, but the file has only 1MiB (variant `b`)");
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
        assert_eq!(variant.setup.tasks[0].nice, -3);
        assert_eq!(variant.setup.machine.swap.as_ref().unwrap().size, 1 << 30);
    }
    let a = &scenario.variants[1].setup.sysctls;
    assert_eq!(a[0], write(("vm.swappiness", "1")));
    assert_eq!(a[1], write(("vm.dirty_ratio", "30")));
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
        tell("--set", 1, "task.mane.nice", "there is no task `mane`", "known: `main`")
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
        tell("--set", 15, "many", "vm.swappiness refuses `many` (EINVAL)", "it takes an integer")
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
    assert_eq!(
        error(&repeats),
        tell("--repeats", 1, "0", "0 repeats: there would be no runs", "give 1 or more")
    );
}
