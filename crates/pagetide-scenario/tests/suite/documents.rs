//! Checks the generated tables of docs/scenario.md: control files of the machine and of groups,
//! policies, and operations with a cost.
//!
//! A table stands between two comments, `<!-- NAME: ... -->` and `<!-- end of NAME -->`.
//! To regenerate: `PAGETIDE_ACCEPT=1 cargo test -p pagetide-scenario --test suite documents`.

use pagetide_core::config::{ControlFile, Policy, PolicySet, Sysctl};
use pagetide_core::control::{CacheControl, GroupControl};
use pagetide_scenario::load::PluginNames;
use pagetide_scenario::model::costs::Price;
use pagetide_scenario::names::takes::takes;
use pagetide_scenario::names::NameSet;
use pagetide_scenario::schema::schema;
use pagetide_scenario::workload::WorkloadKind;
use pagetide_testing::{accepts, root};
use serde_json::{json, Value};
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

/// The first object of the schema that has the keys of this kind of watcher.
fn keys_of<'s>(kind: &str, schema: &'s Value) -> Option<&'s serde_json::Map<String, Value>> {
    match schema {
        Value::Array(list) => list.iter().find_map(|one| keys_of(kind, one)),
        Value::Object(object) => {
            let properties = object.get("properties").and_then(Value::as_object);
            let is_it = |keys: &&serde_json::Map<String, Value>| {
                keys.get("workload").and_then(|it| it.get("const")) == Some(&Value::from(kind))
            };
            let found = properties.filter(is_it);
            found.or_else(|| object.values().find_map(|one| keys_of(kind, one)))
        }
        _ => None,
    }
}

fn watchers() -> String {
    let schema = schema(&PluginNames::default());
    let mut table = String::from("| key | meaning |\n|---|---|\n");
    let mut row = |key: &str, of: &Value| {
        let text = of.get("description").and_then(Value::as_str).unwrap_or_default();
        writeln!(table, "| {key} | {} |", text.replace('\n', " ")).unwrap();
    };
    for kind in WorkloadKind::WATCHERS {
        row(&format!("**`{}`**", kind.name()), &json!({ "description": kind.doc().trim() }));
        for (key, of) in keys_of(kind.name(), &schema).unwrap() {
            if key != "workload" {
                row(&format!("`{key}`"), of);
            }
        }
        for (nested, holder) in
            [("unit", WorkloadKind::SystemdOomd), ("pod", WorkloadKind::Kubelet)]
        {
            let name = if nested == "unit" { "OomdUnit" } else { "Pod" };
            let keys = schema["$defs"][name]["properties"].as_object();
            for (key, of) in keys.into_iter().flatten().filter(|_| holder == kind) {
                row(&format!("`{nested}`: `{key}`"), of);
            }
        }
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
        ("watchers", watchers()),
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
