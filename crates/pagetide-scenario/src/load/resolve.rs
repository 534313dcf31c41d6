//! A scenario as one text without bases, variants and report. `pagetide fuzz` starts from it, and
//! writes one.
//!
//! Invariant: the text loads as the chosen variant does, if it is loaded from the same directory.

use super::loader::Loader;
use super::span::ProblemSink;
use super::tree::{self, TomlNode, TomlTable, TomlValue};
use super::{variants, Overrides};
use crate::diagnostic::Diagnostics;
use std::path::Path;
use toml::{Table, Value};

/// Keys that a resolved scenario lacks: they compare runs, or name tasks that it may lack.
const LEFT_OUT: [&str; 4] = ["expect", "fuzz", "reference", "report"];

/// The text of the first chosen variant of a scenario, without these tasks. Arguments as for
/// [`load_str`](super::load_str).
///
/// # Errors
/// Mistakes in the syntax, the bases and the overrides. The keys of the scenario are not checked.
pub fn resolve(
    name: &str,
    text: &str,
    base_dir: &Path,
    overrides: &Overrides,
    without_tasks: &[String],
) -> Result<Table, Diagnostics> {
    let mut loader = Loader::new(name, text, base_dir);
    let mut sink = ProblemSink::default();
    let root = tree::parse(text, 0, &mut sink).and_then(|root| loader.extend(root, &mut sink));
    let resolved = root.and_then(|mut root| {
        loader.add_variants(&mut root, &overrides.added, &mut sink);
        let sets = loader.read_sets(&overrides.sets, &mut sink);
        let plan = variants::plan(root, &sets, &mut sink);
        let chosen = *loader.choose(&plan, &overrides.variants, &mut sink).first()?;
        let mut root = plan.columns[chosen].tree(&plan, &mut sink);
        let table = root.as_table_mut()?;
        for key in LEFT_OUT {
            table.remove(key);
        }
        for key in ["task", "watcher"] {
            if let Some(TomlValue::Array(all)) = table.get_mut(key).map(|node| &mut node.value) {
                all.retain(|task| !without_tasks.iter().any(|name| is_named(task, name)));
            }
        }
        Some(to_table(table))
    });
    loader.absorb(sink);
    match resolved {
        Some(table) if loader.problems.is_empty() => Ok(table),
        _ => Err(loader.diagnostics()),
    }
}

fn is_named(node: &TomlNode, name: &str) -> bool {
    let own = node.as_table().and_then(|table| table.get("name"));
    own.is_some_and(|own| matches!(&own.value, TomlValue::Text(text) if text == name))
}

fn to_table(table: &TomlTable) -> Table {
    let entries = table.entries.iter();
    entries.map(|entry| (entry.key.clone(), to_value(&entry.node.value))).collect()
}

fn to_value(value: &TomlValue) -> Value {
    match value {
        TomlValue::Text(text) => Value::String(text.clone()),
        TomlValue::Integer(number) => match i64::try_from(*number) {
            Ok(number) => Value::Integer(number),
            Err(_) => Value::String(number.to_string()),
        },
        TomlValue::Float(text) => Value::Float(text.parse().unwrap_or(f64::NAN)),
        TomlValue::Boolean(is_true) => Value::Boolean(*is_true),
        // No key of a scenario takes a date.
        TomlValue::Date => Value::String("a date".to_owned()),
        TomlValue::Array(nodes) => {
            Value::Array(nodes.iter().map(|node| to_value(&node.value)).collect())
        }
        TomlValue::Table(table) => Value::Table(to_table(table)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::load_str;

    #[test]
    fn the_text_loads_as_the_variant_does() {
        let text = r#"
            name = "s"
            repeats = 2
            sysctl.vm.swappiness = 10
            machine = { memory = "64MiB", swap = "8MiB" }
            group = [{ name = "g", memory.max = "16M" }]
            task = [
                { name = "a", group = "g", workload = "touch", size = "1MiB" },
                { name = "b", workload = "touch", size = "1MiB", compute = "1us" },
            ]
            report.rows = ["a.walltime"]
            variant = [{ name = "x" }, { name = "y", set = { "group.g.memory.max" = "8M" } }]
        "#;
        let here = Path::new(".");
        let overrides = Overrides {
            variants: vec!["y".to_owned()],
            sets: vec![("machine.cpus".to_owned(), "3".to_owned())],
            ..Overrides::default()
        };
        let flat = |without: &[String]| {
            toml::to_string(&resolve("s.toml", text, here, &overrides, without).unwrap()).unwrap()
        };
        let load = |text: &str, overrides: &Overrides| {
            load_str("s.toml", text, here, overrides).unwrap_or_else(|errors| panic!("{errors}"))
        };
        let as_asked = load(text, &overrides).variants.remove(0).setup;
        let again = load(&flat(&[]), &Overrides::default()).variants.remove(0).setup;
        assert_eq!(again, as_asked);
        let less = load(&flat(&["a".to_owned()]), &Overrides::default()).variants.remove(0).setup;
        assert_eq!(less.tasks, as_asked.tasks[1..]);
        assert!(resolve("s.toml", "a = ", here, &overrides, &[]).is_err());
    }
}
