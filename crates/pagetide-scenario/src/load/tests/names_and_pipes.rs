//! File names and pipes, and kernel accounting for them.

use super::*;
use crate::model::{KeepShare, MakeNames, Pipes, RemoveObjects};
use crate::names::PickKind;

/// A second task with its own workload; the workload is in line 3.
fn other(keys: &str) -> String {
    format!("[[task]]\nname = \"other\"\n{keys}")
}

fn setup(text: &str) -> crate::model::Setup {
    sound(text).variants.remove(0).setup
}

fn workload(keys: &str) -> Workload {
    let mut setup = setup(&format!("{SOUND}{}", other(keys)));
    assert!(setup.has_objects());
    setup.tasks.remove(1).phases.remove(0).workload
}

#[test]
fn names_and_pipes_have_defaults_and_keys() {
    let names = |make, keep, missing| {
        Workload::Names(MakeNames { make, keep: KeepShare::percent(keep), missing })
    };
    let of = |keys: &str| workload(&format!("workload = \"names\"\n{keys}"));
    assert_eq!(of("make = 5\n"), names(5, 0, false));
    assert_eq!(of("make = 5\nkind = \"file\"\nkeep = \"10 %\"\n"), names(5, 10, false));
    assert_eq!(of("make = 5\nkind = \"missing\"\n"), names(5, 0, true));
    let eighth = KeepShare { part: 1, of: 8, pick: PickKind::Random };
    let random = Workload::Names(MakeNames { make: 5, keep: eighth, missing: false });
    assert_eq!(of("make = 5\nkeep = \"1 in 8\"\npick = \"random\"\n"), random);
    let pipes = |make, keep| Workload::Pipes(Pipes { make, keep: KeepShare::percent(keep) });
    let of = |keys: &str| workload(&format!("workload = \"pipes\"\n{keys}"));
    assert_eq!(of("make = 7\n"), pipes(7, 0));
    assert_eq!(of("make = 7\nkeep = \"100%\"\n"), pipes(7, 100));
    assert!(!setup(SOUND).has_objects());
}

#[test]
fn mistakes_in_names_and_pipes() {
    let names = |keys: &str| other(&format!("workload = \"names\"\n{keys}"));
    let message = "workload names has no `make`";
    expect(&names(""), 3, 12, "\"names\"", message, "add make = 1000");
    expect(
        &names("make = 1\nkind = \"missing\"\nkeep = \"1 %\"\n"),
        6,
        8,
        "\"1 %\"",
        "missing names cannot be kept",
        "leave out `keep` or kind = \"missing\"",
    );
    let forms = "shares are written like \"10 %\" or \"1 in 8\", from \"0 %\" to \"100 %\"";
    for (keep, message) in [
        ("\"101 %\"", "`101 %`: more than 100 %"),
        ("\"99999999999999999999 %\"", "`99999999999999999999 %`: more than 100 %"),
        ("\"1.5 %\"", "`1.5 %`: not a whole number of per cent"),
        ("\"%\"", "`%`: not a whole number of per cent"),
        ("\"-1 %\"", "`-1 %`: not a whole number of per cent"),
        ("\"ten\"", "`ten`: not a whole number of per cent"),
        ("\"9 in 8\"", "`9 in 8`: N in M must have N <= M"),
        ("\"0 in 0\"", "`0 in 0`: N in M must have M from 1 to 1000000"),
        ("\"1 in 1000001\"", "`1 in 1000001`: N in M must have M from 1 to 1000000"),
        ("\"1 in many\"", "`1 in many`: N in M must have M from 1 to 1000000"),
    ] {
        let text = names(&format!("make = 1\nkeep = {keep}\n"));
        expect(&text, 5, 8, keep, message, forms);
    }
    let hint = "shares are written like \"10 %\", from \"0 %\" to \"100 %\"";
    expect(&names("make = 1\nkeep = 10\n"), 5, 8, "10", "a share needs a unit", hint);
    let pipes = other("workload = \"pipes\"\nmake = 100001\n");
    let hint = "write an integer, from 1 to 100000";
    expect(&pipes, 4, 8, "100001", "100001 is out of range", hint);
}

#[test]
fn accounting_is_on_unless_a_variant_turns_it_off() {
    let text = format!(
        "{SOUND}[[variant]]\nname = \"on\"\n[[variant]]\nname = \"off\"\n\
         set = {{ \"machine.kmem_accounting\" = false }}\n"
    );
    let scenario = sound(&text);
    let found: Vec<bool> =
        scenario.variants.iter().map(|of| of.setup.machine.kmem_accounting).collect();
    assert_eq!(found, [true, false]);
}

/// A task that makes files and pipes and then has the workload `keys`, in line 9.
fn then(keys: &str) -> String {
    other(&format!(
        "phase = [\n  {{ name = \"files\", workload = \"names\", make = 9, keep = \"100 %\" }},\n  \
         {{ name = \"pipes\", workload = \"pipes\", make = 9, keep = \"50 %\", repeat = 2 }},\n  \
         {{ name = \"none\", workload = \"names\", make = 9 }},\n  \
         {{ name = \"missing\", workload = \"names\", make = 9, kind = \"missing\" }},\n  \
         {{ name = \"rest\", workload = \"sleep\", duration = 0 }},\n  {{ name = \"last\", {keys} }},\n]\n"
    ))
}

#[test]
fn what_a_phase_keeps_is_removed_by_a_later_one() {
    let of = |keys: &str| {
        let mut setup = setup(&format!("{SOUND}{}", then(keys)));
        setup.tasks.remove(1).phases.pop().unwrap().workload
    };
    let remove = |of, keep| Workload::Remove(RemoveObjects { of, keep });
    assert_eq!(of("workload = \"remove\", of = \"files\""), remove(0, KeepShare::percent(0)));
    let eighth = KeepShare { part: 1, of: 8, pick: PickKind::Random };
    let keys = "workload = \"remove\", of = \"pipes1\", keep = \"1 in 8\", pick = \"random\"";
    assert_eq!(of(keys), remove(2, eighth));
}

#[test]
fn mistakes_in_what_is_removed() {
    let remove = |of: &str| then(&format!("workload = \"remove\", of = \"{of}\""));
    for (of, message, hint) in [
        ("filse", "no earlier phase is called `filse`", "did you mean `files`?"),
        (
            "later",
            "no earlier phase is called `later`",
            "earlier phases are `files`, `pipes0`, `pipes1`, `none`, `missing` and `rest`",
        ),
        ("none", "the phase `none` keeps nothing", "add keep = \"100 %\" to it"),
        (
            "missing",
            "the phase `missing` looks up missing names and makes nothing",
            "name a phase that makes files",
        ),
        (
            "rest",
            "the phase `rest` makes neither files nor pipes",
            "name a phase with workload = \"names\" or \"pipes\"",
        ),
    ] {
        let text = format!("\"{of}\"");
        expect(&remove(of), 9, 46, &text, message, hint);
    }
    let alone = other("workload = \"remove\"\nof = \"files\"\n");
    let message = "no earlier phase is called `files`";
    let hint = "an earlier phase must make and keep files, with workload = \"names\"";
    expect(&alone, 4, 6, "\"files\"", message, hint);
    // A mistake in the phase itself is reported only once.
    let wrong = remove("files").replace("make = 9, keep = \"100 %\"", "make = 0, keep = \"100 %\"");
    let found = told(&format!("{SOUND}{wrong}"));
    assert_eq!(found.len(), 1, "{found:#?}");
}
