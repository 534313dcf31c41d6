//! A mistake by the command line is reported once, at the wrong key, with a fitting message.

use super::variants::with_sets;
use super::*;
use crate::diagnostic::Diagnostic;

/// Source, text, message and hint of each mistake in `text` with `set` on the command line.
fn told_with(text: &str, set: (&str, &str)) -> Vec<[String; 4]> {
    let errors = load_text(text, &with_sets(&[set])).expect_err("there is a mistake");
    let tell = |d: &Diagnostic| {
        [&d.path, &d.text, &d.message, &d.hint.clone().unwrap_or_default()].map(String::clone)
    };
    errors.iter().map(tell).collect()
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
fn mistakes_are_called_what_they_are() {
    let found = told_with(SOUND, ("machine.memory", "512"));
    assert!(found[0][3].contains("is the unit missing"), "{found:#?}");
    let found = told_with(SOUND, ("policy.kernel", "linux-5.0"));
    assert!(found[0][3].starts_with("it is one of `linux-"), "{found:#?}");
    let found = told_with(SOUND, ("variant.default.sysctl.\"vm.swappiness\"", "1"));
    assert_eq!(found.len(), 1, "{found:#?}");
    assert_eq!(found[0][2], "there is no variant `default`");
}
