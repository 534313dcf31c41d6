//! Builds scenarios in a program, without a file.
//!
//! A [`Builder`] takes the keys of a scenario file (docs/scenario.md) with Rust values. The loader
//! checks the result like a file: it reports all mistakes at once, each with its key
//! ([`crate::diagnostic::Diagnostic::key`]).
//!
//! Invariant: every [`Scenario`] comes from the loader, from a file or from a builder; so every
//! [`crate::model::Setup`] has been checked.
//!
//! ```
//! use pagetide_scenario::build::Builder;
//! let task = Builder::new().set("name", "main").set("workload", "touch").set("size", "16MiB");
//! let machine = Builder::new().set("machine.memory", "1GiB").push("task", task);
//! let machine_with = |cpus: i64| machine.clone().set("machine.cpus", cpus);
//! let scenario = machine_with(2).build("small").unwrap();
//! assert_eq!(scenario.variants[0].setup.machine.cpus, 2);
//!
//! let errors = machine_with(2000).build("small").unwrap_err();
//! assert_eq!(errors.iter().next().unwrap().key.as_deref(), Some("machine.cpus"));
//! ```

use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::load::{load_str, Overrides};
use crate::model::{Scenario, Setup};
use std::path::Path;
use toml::{Table, Value};

/// A scenario, or a table of one: `[machine]`, a task, a phase.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Builder {
    table: Table,
    /// Keys that could not be set, with the reason.
    refused: Vec<(String, String)>,
}

impl Builder {
    /// An empty table.
    pub fn new() -> Builder {
        Builder::default()
    }

    /// A builder that starts from an existing table.
    pub fn of(table: Table) -> Builder {
        Builder { table, refused: Vec::new() }
    }

    /// Sets a key. Dots name inner tables, created if needed. A later value replaces an earlier
    /// one.
    #[must_use]
    pub fn set(mut self, key: &str, value: impl Into<Value>) -> Builder {
        self.put(key, value.into());
        self
    }

    /// Adds an entry to an array of tables: a task, a group, a file, a variant.
    #[must_use]
    pub fn push(mut self, key: &str, entry: Builder) -> Builder {
        let Builder { table, refused } = entry;
        self.refused.extend(refused.into_iter().map(|(at, why)| (format!("{key}.{at}"), why)));
        match self.place(key) {
            Some((inner, last)) => {
                let list = inner.entry(last).or_insert_with(|| Value::Array(Vec::new()));
                match list {
                    Value::Array(list) => list.push(Value::Table(table)),
                    _ => self.refuse(key, "it is not an array"),
                }
            }
            None => self.refuse(key, "a part of the path is not a table"),
        }
        self
    }

    fn put(&mut self, key: &str, value: Value) {
        match self.place(key) {
            Some((inner, last)) => {
                inner.insert(last, value);
            }
            None => self.refuse(key, "a part of the path is not a table"),
        }
    }

    fn refuse(&mut self, key: &str, why: &str) {
        self.refused.push((key.to_owned(), why.to_owned()));
    }

    /// The innermost table of a path, and the last part of the path.
    fn place(&mut self, key: &str) -> Option<(&mut Table, String)> {
        let mut parts: Vec<&str> = key.split('.').collect();
        let last = parts.pop()?;
        let mut table = &mut self.table;
        for part in parts {
            let inner = table.entry(part).or_insert_with(|| Value::Table(Table::new()));
            table = inner.as_table_mut()?;
        }
        Some((table, last.to_owned()))
    }

    /// Builds the scenario. It is called `name` unless the key `name` is set. Relative paths in it
    /// start at the working directory.
    /// The errors are those of [`crate::load::load`] for a file with these values.
    pub fn build(&self, name: &str) -> Result<Scenario, Diagnostics> {
        self.build_with(name, Path::new(""), &Overrides::default())
    }

    /// Like [`Builder::build`], with command-line changes and the base directory of paths.
    pub fn build_with(
        &self,
        name: &str,
        base_dir: &Path,
        overrides: &Overrides,
    ) -> Result<Scenario, Diagnostics> {
        let cannot = |key: Option<&str>, why: String| {
            let mut mistake = Diagnostic::of_file(name.to_owned(), why, None);
            mistake.key = key.map(str::to_owned);
            mistake
        };
        if !self.refused.is_empty() {
            let told = self.refused.iter();
            let told =
                told.map(|(key, why)| cannot(Some(key), format!("cannot set `{key}`: {why}")));
            return Err(Diagnostics::new(told.collect(), 0));
        }
        match toml::to_string(&self.table) {
            Ok(text) => load_str(name, &text, base_dir, overrides),
            Err(error) => Err(Diagnostics::new(vec![cannot(None, error.to_string())], 0)),
        }
    }

    /// Builds the setup of a scenario with one variant: a machine and its tasks.
    /// Fails for a scenario with several variants, too.
    pub fn setup(&self) -> Result<Setup, Diagnostics> {
        let name = "setup";
        let mut variants = self.build(name)?.variants;
        match (variants.pop(), variants.len()) {
            (Some(variant), 0) => Ok(variant.setup),
            (_, more) => {
                let message = format!("a setup has one variant, but the scenario has {}", more + 1);
                Err(Diagnostics::new(vec![Diagnostic::of_file(name.into(), message, None)], 0))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sound() -> Builder {
        let task = Builder::new().set("name", "main").set("workload", "touch").set("size", "16MiB");
        Builder::new().set("machine.memory", "1GiB").push("task", task)
    }

    #[test]
    fn a_builder_makes_what_a_file_says() {
        let text =
            "[machine]\nmemory = \"1GiB\"\n[[task]]\nname = \"main\"\nworkload = \"touch\"\n\
                    size = \"16MiB\"\n[sysctl]\nvm.swappiness = 10\n";
        let loaded = load_str("case", text, Path::new(""), &Overrides::default()).unwrap();
        assert_eq!(sound().set("sysctl.vm.swappiness", 10).build("case").unwrap(), loaded);
        assert_eq!(sound().set("name", "other").build("case").unwrap().name, "other");
        assert_eq!(
            &sound().set("sysctl.vm.swappiness", 10).setup().unwrap(),
            &loaded.variants[0].setup
        );
    }

    #[test]
    fn all_mistakes_are_reported_together_with_their_keys() {
        let second = Builder::new().set("name", "two").set("workload", "tuch").set("size", 5);
        let errors = sound().set("machine.cpus", 0).push("task", second).build("case").unwrap_err();
        let told: Vec<_> = errors.iter().map(|error| error.key.as_deref().unwrap()).collect();
        assert_eq!(told, ["machine.cpus", "task.two.workload"], "{errors}");

        let errors = sound().set("machine.memory.size", 1).push("machine", Builder::new());
        let errors = errors.build("case").unwrap_err();
        let told: Vec<_> = errors.iter().map(|error| error.key.as_deref().unwrap()).collect();
        assert_eq!(told, ["machine.memory.size", "machine"], "{errors}");

        let two = ["a", "b"].map(|name| Builder::new().set("name", name));
        let two = two.into_iter().fold(sound(), |all, variant| all.push("variant", variant));
        assert!(two.setup().unwrap_err().to_string().contains("one variant"));
    }
}
