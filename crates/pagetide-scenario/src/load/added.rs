//! Variants of the command line: `--add-variant NAME:KEY=VALUE[,KEY=VALUE...]`.
//!
//! The loader inserts such a variant into the tree as a `[[variant]]` with a `set`, before any
//! check, so all checks of the file's variants apply to it. A scenario without variants becomes the
//! first variant, called `default`.

use super::loader::Loader;
use super::span::{ProblemSink, SourceSpan};
use super::tree::{self, TomlEntry, TomlNode, TomlTable, TomlValue};
use super::variants::ONLY_VARIANT;
use std::fmt;
use std::str::FromStr;

/// A variant that the command line adds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AddedVariant {
    pub name: String,
    /// Changes: paths as in a variant's `set`, and their values.
    pub sets: Vec<(String, String)>,
}

impl fmt::Display for AddedVariant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:", self.name)?;
        self.sets.iter().enumerate().try_for_each(|(at, (key, value))| {
            let comma = if at == 0 { "" } else { "," };
            write!(f, "{comma}{key}={value}")
        })
    }
}

impl FromStr for AddedVariant {
    type Err = String;

    /// Parses `NAME:KEY=VALUE,KEY=VALUE`. A comma within braces or brackets, or
    /// not followed by `KEY=`, belongs to the value.
    fn from_str(text: &str) -> Result<AddedVariant, String> {
        const FORM: &str = "give NAME:KEY=VALUE, for example calm:vm.swappiness=10";
        let (name, changes) = text.split_once(':').ok_or(FORM)?;
        let mut sets: Vec<(String, String)> = Vec::new();
        for part in changes.split(',') {
            let is_open = sets.last().is_some_and(|(_, value)| {
                let count = |of: [char; 2]| value.matches(of).count();
                count(['{', '[']) > count(['}', ']'])
            });
            match part.split_once('=').filter(|(key, _)| is_key(key) && !is_open) {
                Some((key, value)) => sets.push((key.trim().into(), value.trim().into())),
                None => match sets.last_mut() {
                    Some((_, value)) => {
                        value.push(',');
                        value.push_str(part);
                    }
                    None => return Err(FORM.into()),
                },
            }
        }
        if name.trim().is_empty() {
            return Err(FORM.into());
        }
        Ok(AddedVariant { name: name.trim().into(), sets })
    }
}

fn is_key(text: &str) -> bool {
    let text = text.trim();
    let is_part = |c: char| c.is_alphanumeric() || "._-\"'".contains(c);
    text.starts_with(|c: char| c.is_alphabetic()) && text.chars().all(is_part)
}

impl Loader {
    /// Appends the variants of the command line to those of the file.
    pub(super) fn add_variants(
        &mut self,
        root: &mut TomlNode,
        added: &[AddedVariant],
        sink: &mut ProblemSink,
    ) {
        const ADDED_MAX: usize = 64;
        if added.is_empty() {
            return;
        }
        if added.len() > ADDED_MAX {
            let span = self.option("--add-variant", "");
            sink.error(span, format!("more than {ADDED_MAX} `--add-variant` options"));
            return;
        }
        let new: Vec<TomlNode> = added.iter().map(|variant| self.node_of(variant)).collect();
        let Some(root) = root.as_table_mut() else { return };
        match root.get_mut("variant").map(|node| &mut node.value) {
            Some(TomlValue::Array(variants)) if !variants.is_empty() => variants.extend(new),
            Some(TomlValue::Array(_)) | None => {
                let span = new[0].span;
                let mut variants = vec![table(span, vec![text("name", ONLY_VARIANT, span)])];
                variants.extend(new);
                let node = TomlNode { span, value: TomlValue::Array(variants) };
                root.set(TomlEntry { key: "variant".into(), key_span: span, node });
            }
            // Not an array of tables: the decoder of `[[variant]]` reports it.
            Some(_) => {}
        }
    }

    /// The tree of `variant`, as if it were a `[[variant]]`.
    fn node_of(&mut self, variant: &AddedVariant) -> TomlNode {
        let whole = self.option("--add-variant", &variant.to_string());
        let offset = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
        let span = |start: usize, length: usize| SourceSpan {
            start: offset(start),
            end: offset(start + length),
            ..whole
        };
        let mut at = variant.name.len() + 1;
        let mut entries = Vec::new();
        for (key, value) in &variant.sets {
            let key_span = span(at, key.len());
            let value_span = span(at + key.len() + 1, value.len());
            let node = tree::parse_value(value, value_span);
            entries.push(TomlEntry { key: key.clone(), key_span, node });
            at += key.len() + value.len() + 2;
        }
        let set = table(whole, entries);
        let set = TomlEntry { key: "set".into(), key_span: whole, node: set };
        table(whole, vec![text("name", &variant.name, span(0, variant.name.len())), set])
    }
}

fn table(span: SourceSpan, entries: Vec<TomlEntry>) -> TomlNode {
    TomlNode { span, value: TomlValue::Table(TomlTable { entries }) }
}

fn text(key: &str, value: &str, span: SourceSpan) -> TomlEntry {
    let node = TomlNode { span, value: TomlValue::Text(value.to_owned()) };
    TomlEntry { key: key.to_owned(), key_span: span, node }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::{load_str, Overrides};
    use std::path::Path;

    const SCENARIO: &str =
        "[machine]\nmemory = \"1GiB\"\n[[task]]\nname = \"t\"\nworkload = \"touch\"\n\
                            size = \"8MiB\"\n";

    fn names(text: &str, added: &[&str]) -> Result<Vec<String>, String> {
        let added = added.iter().map(|text| text.parse().unwrap()).collect();
        let overrides = Overrides { added, ..Overrides::default() };
        load_str("a.toml", text, Path::new(""), &overrides)
            .map(|scenario| scenario.variants.into_iter().map(|variant| variant.name).collect())
            .map_err(|diagnostics| diagnostics.to_string())
    }

    #[test]
    fn texts_are_read() {
        let read = |text: &str| text.parse::<AddedVariant>();
        let two = read("a:vm.swappiness=10, machine.memory = 2GiB").unwrap();
        assert_eq!(two.to_string(), "a:vm.swappiness=10,machine.memory=2GiB");
        let comma = read("a:x=[1,2],y=3").unwrap();
        assert_eq!(comma.sets, [("x".into(), "[1,2]".into()), ("y".into(), "3".into())]);
        let table = read("a:x={p50=\"90us\",p99=\"2ms\"},y=3").unwrap();
        assert_eq!(table.sets[0], ("x".into(), "{p50=\"90us\",p99=\"2ms\"}".into()));
        assert_eq!(table.sets.len(), 2);
        for bad in ["", "a", "a:", ":x=1", "a:x", "a:=1", " :x=1"] {
            assert!(read(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn they_come_after_those_of_the_file() {
        assert_eq!(names(SCENARIO, &["calm:vm.swappiness=10"]).unwrap(), ["default", "calm"]);
        let own = format!("{SCENARIO}[[variant]]\nname = \"own\"\n");
        assert_eq!(names(&own, &["b:vm.swappiness=1"]).unwrap(), ["own", "b"]);
    }

    #[test]
    fn they_are_checked_as_variants_of_the_file() {
        for (added, wanted) in [
            ("calm:vm.swapiness=10", "did you mean `vm.swappiness`?"),
            ("calm:vm.swappiness=201", "it takes 0 to 200"),
            ("calm:task.u.nice=1", "there is no task `u`"),
            ("calm:repeats=2", "cannot differ between variants"),
            ("default:vm.swappiness=1", "is defined twice"),
            ("a b:vm.swappiness=1", "--add-variant:1:1"),
        ] {
            let refused = names(SCENARIO, &[added]).unwrap_err();
            assert!(refused.contains(wanted), "{added}: {refused}");
        }
    }

    #[test]
    fn what_it_sets_holds_in_it_alone() {
        let added = vec!["calm:vm.swappiness=10".parse().unwrap()];
        let overrides = Overrides { added, ..Overrides::default() };
        let scenario = load_str("a.toml", SCENARIO, Path::new(""), &overrides).unwrap();
        let writes: Vec<usize> =
            scenario.variants.iter().map(|variant| variant.setup.sysctls.len()).collect();
        assert_eq!(writes, [0, 1]);
    }
}
