//! Scenarios that extend another: `base` and `without`.
//!
//! A base loses the parts that `without` names, and is then merged with the tree of the file that
//! extends it. Invariant: each value keeps the position in its own file, so a mistake in it is
//! reported there, and a relative path in it starts there.

use super::decode::Decode;
use super::loader::{Loader, SCENARIO_BYTES_MAX};
use super::named_files::read_text;
use super::span::{clip, list_names, ProblemSink, Spanned};
use super::tree::{
    self, element_name, is_flat, TomlEntry, TomlNode, TomlTable, TomlValue, TreePath,
};
use super::variants::{flatten, is_knob};
use crate::diagnostic::SourceText;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Keys of a scenario that extends another. No variant and no option can set them.
pub(crate) const BASE_KEYS: [&str; 2] = ["base", "without"];
const BASES_MAX: usize = 16;

impl Loader {
    /// The scenario in `root` with everything that it has from its bases; `None` if one of them
    /// cannot be read.
    pub(super) fn extend(&mut self, root: TomlNode, sink: &mut ProblemSink) -> Option<TomlNode> {
        sink.directories.clone_from(&self.directories);
        self.extend_within(root, &mut Vec::new(), sink)
    }

    /// `above`: the bases that lead to this file, as the file system names them.
    fn extend_within(
        &mut self,
        mut own: TomlNode,
        above: &mut Vec<PathBuf>,
        sink: &mut ProblemSink,
    ) -> Option<TomlNode> {
        let table = own.as_table_mut()?;
        let [base, without] = BASE_KEYS.map(|key| table.remove(key));
        let Some(base) = base else {
            if let Some(without) = without {
                let hint = "add base = \"other.toml\", or leave out the parts themselves";
                sink.hinted(without.span, "`without` needs a `base`", hint);
            }
            return Some(own);
        };
        let path = Spanned::<String>::decode(&base, sink)?;
        let base = self.read_base(&path, above, sink)?;
        let mut base = self.extend_within(base, above, sink)?;
        flatten(&mut base, sink);
        flatten(&mut own, sink);
        knobs_into_set(&mut own);
        let without = without.and_then(|list| Vec::<Spanned<String>>::decode(&list, sink));
        for part in without.unwrap_or_default() {
            remove(&TreePath { text: &part.value, span: part.span }, &mut base, sink);
        }
        // The name is that of one file.
        base.as_table_mut()?.remove("name");
        merge(&mut base, own);
        Some(base)
    }

    /// Reads a base; its text becomes a source.
    fn read_base(
        &mut self,
        path: &Spanned<String>,
        above: &mut Vec<PathBuf>,
        sink: &mut ProblemSink,
    ) -> Option<TomlNode> {
        let full = sink.full_path(path);
        let there = sink.path(path);
        let named = format!("base `{}`", clip(&path.value));
        let text = read_text(&there, SCENARIO_BYTES_MAX, "is this a scenario file?");
        let text = text
            .map_err(|(message, hint)| {
                let hint = hint.unwrap_or_else(|| "name a scenario file".to_owned());
                sink.hinted(path.span, format!("{named}: {message}"), hint);
            })
            .ok()?;
        if text.len() as u64 > SCENARIO_BYTES_MAX {
            let message =
                format!("{named}: larger than {SCENARIO_BYTES_MAX} bytes: not a scenario");
            sink.hinted(path.span, message, "name a scenario file");
            return None;
        }
        let known = there.canonicalize().unwrap_or(there);
        let shown = self.beside(path);
        if let Some(first) = above.iter().position(|base| *base == known) {
            let names = self.sources[1 + first..].iter().map(|source| source.path.as_str());
            let chain: Vec<&str> = names.chain([shown.as_str()]).collect();
            let message = format!("{named} extends this file: {}", chain.join(" -> "));
            sink.hinted(path.span, message, "let one of the files do without a base");
            return None;
        }
        if above.len() == BASES_MAX {
            let message = format!("{named}: a scenario has at most {BASES_MAX} bases");
            sink.hinted(path.span, message, "put several of the files into one");
            return None;
        }
        above.push(known);
        let number = u16::try_from(self.sources.len()).expect("bases are bounded");
        let root = tree::parse(&text, number, sink);
        self.sources.push(SourceText { path: shown, text });
        self.directories.push(full.parent().unwrap_or(Path::new("")).to_owned());
        self.bases.push(full);
        sink.directories.clone_from(&self.directories);
        root
    }

    /// The path of a base for messages, as its user would write it.
    fn beside(&self, path: &Spanned<String>) -> String {
        let file = Path::new(&self.sources[usize::from(path.span.source)].path);
        file.with_file_name(&path.value).display().to_string()
    }
}

/// Moves the `sysctl` and `policy` of each variant into its `set`, which is applied after them: a
/// `set` of the base must not win over a knob of the file that extends it.
fn knobs_into_set(own: &mut TomlNode) {
    let variants = own.as_table_mut().and_then(|own| own.get_mut("variant"));
    let Some(TomlValue::Array(variants)) = variants.map(|node| &mut node.value) else { return };
    for variant in variants.iter_mut().filter_map(TomlNode::as_table_mut) {
        let mut moved = Vec::new();
        for list in ["sysctl", "policy"] {
            let Some(node) = variant.get_mut(list).and_then(TomlNode::as_table_mut) else {
                continue;
            };
            moved.extend(node.entries.drain(..).map(|entry| match is_knob(&entry.key) {
                // As in most `set`s, so that an entry of the base is replaced.
                true => entry,
                false => TomlEntry { key: format!("{list}.{}", entry.key), ..entry },
            }));
            variant.remove(list);
        }
        let Some(first) = moved.first() else { continue };
        let span = first.key_span;
        if variant.get("set").is_none() {
            let node = TomlNode { span, value: TomlValue::Table(TomlTable::default()) };
            variant.set(TomlEntry { key: "set".to_owned(), key_span: span, node });
        }
        if let Some(set) = variant.get_mut("set").and_then(TomlNode::as_table_mut) {
            // The own `set` of the file is applied last.
            set.entries.splice(..0, moved);
        }
    }
}

/// Merges `own` into its base. Tables are merged key by key, arrays of named tables name by name;
/// any other value replaces that of the base.
fn merge(base: &mut TomlNode, own: TomlNode) {
    let TomlNode { span, value } = own;
    base.span = span;
    match (&mut base.value, value) {
        (TomlValue::Table(there), TomlValue::Table(own)) => merge_tables(there, own),
        (TomlValue::Array(there), TomlValue::Array(own)) if are_named(there) && are_named(&own) => {
            merge_lists(there, own);
        }
        (there, own) => *there = own,
    }
}

fn merge_tables(there: &mut TomlTable, own: TomlTable) {
    for entry in own.entries {
        match there.entries.iter_mut().find(|of_base| of_base.key == entry.key) {
            Some(of_base) => {
                of_base.key_span = entry.key_span;
                merge(&mut of_base.node, entry.node);
            }
            None => there.entries.push(entry),
        }
    }
}

fn merge_lists(there: &mut Vec<TomlNode>, own: Vec<TomlNode>) {
    let of_base = there.len();
    let mut merged = BTreeSet::new();
    for node in own {
        let found = there[..of_base].iter().position(|it| element_name(it) == element_name(&node));
        match found.filter(|index| merged.insert(*index)) {
            Some(index) => merge(&mut there[index], node),
            // New, or a second one of the name, which the checks report.
            None => there.push(node),
        }
    }
}

fn are_named(nodes: &[TomlNode]) -> bool {
    !nodes.is_empty() && nodes.iter().all(|node| element_name(node).is_some())
}

/// Removes the value at `path` from a base; reports a path without a value.
fn remove(path: &TreePath<'_>, base: &mut TomlNode, sink: &mut ProblemSink) {
    let parts = path.parts();
    let mut node = base;
    for (depth, part) in parts.iter().enumerate() {
        let takes_rest = is_flat(&parts[..depth], part);
        let key = if takes_rest { parts[depth..].join(".") } else { part.clone() };
        let is_last = takes_rest || depth + 1 == parts.len();
        let Some(index) = index_of(node, &key) else {
            let there = [&parts[..depth], std::slice::from_ref(&key)].concat().join(".");
            let message = format!("the base has no `{}`", clip(&there));
            sink.hinted(path.span, message, format!("known here: {}", known(node)));
            return;
        };
        node = match &mut node.value {
            TomlValue::Table(table) if is_last => return drop(table.entries.remove(index)),
            TomlValue::Array(nodes) if is_last => return drop(nodes.remove(index)),
            TomlValue::Table(table) => &mut table.entries[index].node,
            TomlValue::Array(nodes) => &mut nodes[index],
            _ => return,
        };
    }
}

fn index_of(node: &TomlNode, key: &str) -> Option<usize> {
    match &node.value {
        TomlValue::Table(table) => table.entries.iter().position(|entry| entry.key == key),
        TomlValue::Array(nodes) => nodes.iter().position(|node| element_name(node) == Some(key)),
        _ => None,
    }
}

fn known(node: &TomlNode) -> String {
    match &node.value {
        TomlValue::Table(TomlTable { entries }) => {
            list_names(entries.iter().map(|TomlEntry { key, .. }| key.as_str()))
        }
        TomlValue::Array(nodes) => list_names(nodes.iter().filter_map(element_name)),
        _ => list_names([]),
    }
}
