//! Checks the generated tables of docs/scenario.md: control files of the machine and of groups,
//! policies, and operations with a cost.
//!
//! A table stands between two comments, `<!-- NAME: ... -->` and `<!-- end of NAME -->`.
//! To regenerate: `PAGETIDE_ACCEPT=1 cargo test -p pagetide-scenario --test suite documents`.

use pagetide_core::config::{ControlFile, Policy, PolicySet, Sysctl};
use pagetide_core::control::{CacheControl, GroupControl};
use pagetide_scenario::model::costs::Price;
use pagetide_scenario::names::takes::takes;
use pagetide_testing::{accepts, root};
use std::fmt::Write;

fn files<'f>(prefix: &str, files: impl Iterator<Item = &'f ControlFile>) -> String {
    let mut table = String::from(
        "| control file | takes | default | meaning | since |\n|---|---|---|---|---|\n",
    );
    for file in files {
        let ControlFile { name, default, doc, since, .. } = file;
        let takes = takes(file);
        writeln!(table, "| `{prefix}{name}` | {takes} | {default} | {doc} | {since} |").unwrap();
    }
    table
}

fn policies() -> String {
    let mut table = String::from("| key | value | meaning |\n|---|---|---|\n");
    let what = "The kernel whose behaviour is the default of the other keys.";
    writeln!(table, "| **`kernel`** | | {what} |").unwrap();
    for &set in PolicySet::ALL {
        let default = if set == PolicySet::default() { " (default)" } else { "" };
        writeln!(table, "| | `{set}`{default} | {} |", set.doc()).unwrap();
    }
    for policy in Policy::ALL.iter().filter(|policy| !policy.is_implied()) {
        let boot = if policy.is_chosen_at_boot() { " Chosen at boot." } else { "" };
        writeln!(table, "| **`{}`** | | {}{boot} |", policy.name(), policy.doc()).unwrap();
        for choice in policy.variants() {
            let default = if choice.is_default() { " (default)" } else { "" };
            writeln!(table, "| | `{choice}`{default} | {} |", choice.doc()).unwrap();
        }
    }
    table
}

fn costs() -> String {
    let mut table = String::from("| key | operation |\n|---|---|\n");
    for price in Price::ALL {
        writeln!(table, "| `{}` | {} |", price.name(), price.doc()).unwrap();
    }
    table
}

/// Replaces the table called `name` of the document.
fn with_table(document: &str, name: &str, table: &str) -> String {
    let (begin, end) = (format!("<!-- {name}:"), format!("<!-- end of {name} -->"));
    let (before, rest) = document.split_once(&begin).unwrap_or_else(|| panic!("no {begin}"));
    let (comment, rest) = rest.split_once("-->\n").unwrap();
    let (_, after) = rest.split_once(&end).unwrap_or_else(|| panic!("no {end}"));
    format!("{before}{begin}{comment}-->\n{table}{end}{after}")
}

#[test]
fn the_tables_are_what_is_declared() {
    let path = root().join("docs/scenario.md");
    let old = std::fs::read_to_string(&path).unwrap();
    let sysctls = files("", Sysctl::ALL.iter().map(|sysctl| sysctl.file()));
    let caches = files("slab.CACHE.", CacheControl::written().map(CacheControl::file));
    let (_, caches) = caches.split_once("|---|---|---|---|---|\n").unwrap();
    let groups = files("", GroupControl::ALL.iter().map(|control| control.file()));
    let mut new = old.clone();
    for (name, table) in [
        ("costs", costs()),
        ("sysctls", sysctls + caches),
        ("policies", policies()),
        ("groups", groups),
    ] {
        new = with_table(&new, name, &table);
    }
    if accepts() {
        std::fs::write(&path, new).unwrap();
        return;
    }
    let differs = old.lines().zip(new.lines()).find(|(old, new)| old != new);
    assert!(
        old == new,
        "docs/scenario.md does not match the declarations; the first different line is\n{differs:#?}\n\
         to regenerate: PAGETIDE_ACCEPT=1 cargo test -p pagetide-scenario --test suite documents"
    );
}
