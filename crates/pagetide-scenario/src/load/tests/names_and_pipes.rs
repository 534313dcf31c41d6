//! File names and pipes, and kernel accounting for them.

use super::*;
use crate::model::{KeepShare, MakeNames, Pipes, RemoveObjects};
use crate::names::PickKind;

/// A second task with its own workload.
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

/// A task that makes files and pipes and then has the workload `keys`.
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
