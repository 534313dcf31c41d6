//! Memory of tasks at the start of the run.

use super::*;
use crate::model::Resident;
use crate::names::ZoneName;

const MACHINE: &str =
    "[[machine.zone]]\nname = \"DMA32\"\npresent = \"2000 pages\"\nfree = \"1000 pages\"\n\
    [[machine.zone]]\nname = \"Normal\"\npresent = \"2000 pages\"\nfree = \"500 pages\"\n";

fn scenario(resident: &str) -> String {
    format!("{MACHINE}[[task]]\nname = \"t\"\nworkload = \"sleep\"\nduration = \"1s\"\nresident = [{resident}]\n")
}

#[test]
fn resident_memory_has_a_file() {
    let text = scenario(
        "{ zone = \"Normal\", active_anon = \"40 pages\", inactive_file = \"8 pages\" }, \
         { active_file = \"2 pages\" }",
    );
    let setup = sound(&text).variants.remove(0).setup;
    let normal = Resident {
        zone: Some(ZoneName::Normal),
        active_anon: 40,
        inactive_file: 8,
        ..Resident::default()
    };
    let any = Resident { active_file: 2, ..Resident::default() };
    assert_eq!(setup.tasks[0].resident, [normal, any]);
    let file = &setup.files[setup.tasks[0].resident_file.unwrap()];
    assert_eq!((file.name.as_str(), file.size), ("resident@t", 10 << 12));
    let anon = sound(&scenario("{ active_anon = \"9 pages\" }")).variants.remove(0).setup;
    assert_eq!((anon.files.len(), anon.tasks[0].resident_file), (0, None));
}

#[test]
fn resident_memory_has_room() {
    // 1500 pages of Normal are not free; 1000 anonymous pages need 3 page tables.
    sound(&scenario("{ zone = \"Normal\", active_file = \"1500 pages\" }"));
    sound(&scenario(
        "{ zone = \"Normal\", active_file = \"497 pages\", inactive_anon = \"1000 pages\" }",
    ));
    sound(&scenario("{ active_file = \"2500 pages\" }"));
    for (resident, place) in [
        ("{ zone = \"Normal\", active_file = \"1501 pages\" }", "zone Normal has no room for 4KiB"),
        (
            "{ zone = \"Normal\", active_file = \"498 pages\", active_anon = \"1000 pages\" }",
            "zone Normal",
        ),
        ("{ active_file = \"2501 pages\" }", "the node has no room"),
        ("{ zone = \"DMA\", active_file = \"1 pages\" }", "zone DMA has no room"),
        ("{ node = 1, active_file = \"1 pages\" }", "the node has no room"),
        ("{ active_file = 5 }", "5 bytes are not whole pages"),
        ("{ active_files = 5 }", "active_files"),
    ] {
        let text = scenario(resident);
        let refused = load_text(&text, &Overrides::default()).unwrap_err().to_string();
        assert!(refused.contains(place), "{resident}: {refused}");
    }
}
