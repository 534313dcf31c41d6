//! Names, pipes, and whether the kernel accounts for them.

use super::*;
use crate::model::{Names, Pipes};

/// A second task with a workload of its own; its workload stands in line 3.
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
    let names =
        |make, keep_percent, missing| Workload::Names(Names { make, keep_percent, missing });
    let of = |keys: &str| workload(&format!("workload = \"names\"\n{keys}"));
    assert_eq!(of("make = 5\n"), names(5, 0, false));
    assert_eq!(of("make = 5\nkind = \"file\"\nkeep = \"10 %\"\n"), names(5, 10, false));
    assert_eq!(of("make = 5\nkind = \"missing\"\n"), names(5, 0, true));
    let pipes = |make, keep_percent| Workload::Pipes(Pipes { make, keep_percent });
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
        "names that do not exist cannot be kept",
        "remove it, or kind = \"missing\": there is nothing to be removed",
    );
    let forms = "shares are written like \"10 %\", from \"0 %\" to \"100 %\"";
    for (keep, message) in [
        ("\"101 %\"", "`101 %`: more than all"),
        ("\"99999999999999999999 %\"", "`99999999999999999999 %`: more than all"),
        ("\"1.5 %\"", "`1.5 %`: not a share in whole per cent"),
        ("\"%\"", "`%`: not a share in whole per cent"),
        ("\"-1 %\"", "`-1 %`: not a share in whole per cent"),
        ("\"ten\"", "`ten`: not a share in whole per cent"),
        ("10", "a share needs a unit"),
    ] {
        let text = names(&format!("make = 1\nkeep = {keep}\n"));
        expect(&text, 5, 8, keep, message, forms);
    }
    let pipes = other("workload = \"pipes\"\nmake = 100001\n");
    let hint = "this is an integer, from 1 to 100000";
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
