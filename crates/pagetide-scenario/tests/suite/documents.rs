//! The tables of docs/scenario.md that are made from the declarations of the core: control files of the
//! machine and of groups, policies; and of the priced operations.
//!
//! A table stands between two comments, `<!-- NAME: ... -->` and `<!-- end of NAME -->`. After a change of a
//! declaration, write it anew: `PAGETIDE_ACCEPT=1 cargo test -p pagetide-scenario --test documents`.

use pagetide_core::config::{ControlFile, Policy, PolicySet, Sysctl};
use pagetide_core::control::{CacheControl, GroupControl};
use pagetide_scenario::costs::Price;
use pagetide_scenario::takes::takes;
use std::fmt::Write;
use std::path::{Path, PathBuf};

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
    let what = "The kernel whose variants take the place of the defaults.";
    writeln!(table, "| **`kernel`** | | {what} |").unwrap();
    for set in PolicySet::ALL {
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
    let mut table = String::from("| key | what is done for the price |\n|---|---|\n");
    for price in Price::ALL {
        writeln!(table, "| `{}` | {} |", price.name(), price.doc()).unwrap();
    }
    table
}

/// The document with `table` in the place of the one called `name`.
fn with_table(document: &str, name: &str, table: &str) -> String {
    let (begin, end) = (format!("<!-- {name}:"), format!("<!-- end of {name} -->"));
    let (before, rest) = document.split_once(&begin).unwrap_or_else(|| panic!("no {begin}"));
    let (comment, rest) = rest.split_once("-->\n").unwrap();
    let (_, after) = rest.split_once(&end).unwrap_or_else(|| panic!("no {end}"));
    format!("{before}{begin}{comment}-->\n{table}{end}{after}")
}

#[test]
fn the_tables_are_what_is_declared() {
    let path: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/scenario.md");
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
    if std::env::var_os("PAGETIDE_ACCEPT").is_some() {
        std::fs::write(&path, new).unwrap();
        return;
    }
    let differs = old.lines().zip(new.lines()).find(|(old, new)| old != new);
    assert!(
        old == new,
        "docs/scenario.md is not as the core declares; the first line that differs is\n{differs:#?}\n\
         PAGETIDE_ACCEPT=1 cargo test -p pagetide-scenario --test documents writes it"
    );
}
