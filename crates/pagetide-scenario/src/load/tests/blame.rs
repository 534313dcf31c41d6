//! Each mistake is reported once, at the key that is wrong, with a fitting message.

use super::variants::with_sets;
use super::*;

/// Source, text, message and hint of each mistake in `text` with `set` on the command line.
fn told_with(text: &str, set: (&str, &str)) -> Vec<[String; 4]> {
    let errors = load_text(text, &with_sets(&[set])).expect_err("there is a mistake");
    let tell = |d: &Diagnostic| {
        [&d.path, &d.text, &d.message, &d.hint.clone().unwrap_or_default()].map(String::clone)
    };
    errors.iter().map(tell).collect()
}

/// Message and hint of the only mistake.
fn only(text: &str) -> [String; 2] {
    let found = told(&format!("{SOUND}{text}"));
    let [(_, _, _, message, hint)] = found.as_slice() else { panic!("{found:#?}") };
    [message.clone(), hint.clone()]
}

const ADVISE: &str = "\
[[task]]
name = \"w\"
[[task.phase]]
name = \"fill\"
workload = \"touch\"
size = \"64KiB\"
[[task.phase]]
name = \"cold\"
workload = \"advise\"
advice = \"cold\"
first = 3
pages = 4
";

#[test]
fn the_key_that_is_too_large_is_blamed() {
    let text = format!("{SOUND}{ADVISE}");
    sound(&text);
    let of = |key: &str, value: &str| {
        let found = told_with(&text, (&format!("task.w.phase.cold.{key}"), value));
        assert_eq!(found.len(), 1, "{found:#?}");
        found[0][1].clone()
    };
    assert_eq!(of("first", "20"), "20");
    assert_eq!(of("pages", "20"), "20");
    // Each alone is possible, both together are not.
    assert_eq!(of("first", "14"), "4");
}

#[test]
fn copies_that_are_not_known_make_no_other_mistakes() {
    let groups = "[[group]]\nname = \"pod\"\ncopies = 3\n[[task]]\nname = \"admin\"\n\
        workload = \"write-control\"\ncontrol = \"memory.reclaim\"\ntext = \"8M\"\ntarget = \"pod.1\"\n";
    let text = format!("{SOUND}{groups}");
    sound(&text);
    for copies in ["0", "100000"] {
        let found = told_with(&text, ("group.pod.copies", copies));
        assert_eq!(found.len(), 1, "{found:#?}");
        assert!(found[0][2].contains("out of range"), "{found:#?}");
    }
    let found = told_with(&text, ("group.pod.0.memory.low", "5M"));
    let [_, _, message, hint] = &found[0];
    assert_eq!(message, "one copy of a group cannot have its own memory.low here");
    assert_eq!(hint, "all copies have the same setting: leave out `.0`");
}

#[test]
fn what_the_kernel_refuses_of_groups_is_refused() {
    let none = "[[group]]\nname = \"flat\"\nsubtree_control = \"none\"\n\
        [[group]]\nname = \"sub\"\nparent = \"flat\"\n";
    sound(&format!("{SOUND}{none}subtree_control = \"none\"\n"));
    let [message, hint] = only(&format!("{none}subtree_control = \"memory\"\n"));
    assert_eq!(message, "the group `sub` has no memory controller to enable for children (ENOENT)");
    assert!(hint.contains("leave it out here"), "{hint}");
    let both = "[[group]]\nname = \"g\"\nmemory.max = \"4M\"\nmemory.limit_in_bytes = \"8M\"\n";
    assert_eq!(only(both)[0], "memory.max and memory.limit_in_bytes set the same limit");
}

#[test]
fn mistakes_are_called_what_they_are() {
    let touch = "[[task]]\nname = \"t\"\nworkload = \"touch\"\nsize = \"1MiB\"\n";
    let stride = |text: &str| only(&format!("{touch}stride = {text}\n"))[0].clone();
    assert_eq!(stride("5000"), "5000 bytes are not whole pages");
    assert_eq!(stride("0"), "the stride is 0");
    let names = "[[task]]\nname = \"t\"\nworkload = \"names\"\nmake = 10\nkeep = \"1 in 0\"\n";
    assert!(only(names)[0].contains("N in M"), "{:?}", only(names));
    let found = told_with(SOUND, ("machine.memory", "512"));
    assert!(found[0][3].contains("is the unit missing"), "{found:#?}");
    let found = told_with(SOUND, ("policy.kernel", "linux-5.9"));
    assert!(found[0][3].starts_with("it is one of `linux-"), "{found:#?}");
    let found = told_with(SOUND, ("variant.default.sysctl.\"vm.swappiness\"", "1"));
    assert_eq!(found.len(), 1, "{found:#?}");
    assert_eq!(found[0][2], "there is no variant `default`");
    let found = told(&format!(
        "{SOUND}[[task]]\nname = \"bad name\"\nworkload = \"sleep\"\nduration = \"1s\"\n\
         [[expect]]\ntext = \"x\"\nthat = \"nosuch.metric == 0\"\n"
    ));
    assert!(found.iter().all(|(.., hint)| !hint.contains("``")), "{found:#?}");
}

#[test]
fn a_row_may_be_like_a_cache_that_names_are_made_of() {
    let names = "[[task]]\nname = \"t\"\nworkload = \"names\"\nmake = 10\n";
    for row in ["slabinfo*dentry*", "*dentry.num_slabs", "*.kmalloc-64.*"] {
        let rows = format!("[report]\nrows = [\"{row}\"]\n");
        sound(&format!("{SOUND}{names}{rows}"));
        assert!(only(&rows)[0].contains("no metric matches"), "{row}: no task makes names");
    }
}

#[test]
fn a_limit_of_swap_in_version_1_is_a_mistake() {
    let group = "[[group]]\nname = \"g\"\n\"memory.swap.max\" = \"8M\"\n";
    sound(&format!("{SOUND}{group}"));
    let [message, hint] = only(&format!("{group}memory.swappiness = 3\n"));
    assert_eq!(message, "cgroup version 1 has no `memory.swap.max`");
    assert_eq!(
        hint,
        "the scenario uses a control file of version 1: leave out that file, or this key"
    );
    // A task may write the file too.
    let group = "[[group]]\nname = \"g\"\nmemory.swappiness = 3\n";
    let write = "[[task]]\nname = \"w\"\nworkload = \"write-control\"\ntarget = \"g\"\n\
        control = \"memory.swap.max\"\ntext = \"8M\"\n";
    assert_eq!(only(&format!("{group}{write}")), [message, hint]);
}
