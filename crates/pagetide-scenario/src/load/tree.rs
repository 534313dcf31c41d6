//! The parse tree of a scenario: TOML values with their positions. Variants and `--set` options
//! change the tree before it is decoded.

use super::span::{clip, list_names, ProblemSink, SourceSpan, SpannedProblem};
use pagetide_core::control::GroupControl;
use std::collections::BTreeMap;
use toml::de::{DeTable, DeValue};
use toml::Spanned;

#[derive(Clone, Debug)]
pub(crate) struct TomlNode {
    pub(crate) span: SourceSpan,
    pub(crate) value: TomlValue,
}

#[derive(Clone, Debug)]
pub(crate) enum TomlValue {
    Text(String),
    /// Clamped to the range of 128 bits.
    Integer(i128),
    /// As written, without underscores.
    Float(String),
    Boolean(bool),
    Date,
    Array(Vec<TomlNode>),
    Table(TomlTable),
}

/// Entries in the order of the text.
#[derive(Clone, Debug, Default)]
pub(crate) struct TomlTable {
    pub(crate) entries: Vec<TomlEntry>,
}

#[derive(Clone, Debug)]
pub(crate) struct TomlEntry {
    pub(crate) key: String,
    pub(crate) key_span: SourceSpan,
    pub(crate) node: TomlNode,
}

impl TomlValue {
    /// The type with its article, for messages.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            TomlValue::Text(_) => "a string",
            TomlValue::Integer(_) => "an integer",
            TomlValue::Float(_) => "a float",
            TomlValue::Boolean(_) => "a boolean",
            TomlValue::Date => "a date",
            TomlValue::Array(_) => "an array",
            TomlValue::Table(_) => "a table",
        }
    }
}

impl TomlNode {
    pub(crate) fn as_table(&self) -> Option<&TomlTable> {
        match &self.value {
            TomlValue::Table(table) => Some(table),
            _ => None,
        }
    }

    pub(crate) fn as_table_mut(&mut self) -> Option<&mut TomlTable> {
        match &mut self.value {
            TomlValue::Table(table) => Some(table),
            _ => None,
        }
    }

    /// Path to the innermost value that contains `span`: `task.main.size`. Empty for the document.
    pub(crate) fn key_of(&self, span: SourceSpan) -> String {
        let found = match &self.value {
            TomlValue::Table(table) => {
                let mut entries = table.entries.iter();
                let entry = entries.find(|e| e.key_span.contains(span) || e.node.contains(span));
                entry.map(|entry| (entry.key.clone(), &entry.node))
            }
            TomlValue::Array(nodes) => {
                let found = nodes.iter().enumerate().find(|(_, node)| node.contains(span));
                let name =
                    |at: usize, node| element_name(node).map_or(at.to_string(), str::to_owned);
                found.map(|(at, node)| (name(at, node), node))
            }
            _ => None,
        };
        let Some((key, node)) = found else { return String::new() };
        match node.key_of(span) {
            inner if inner.is_empty() => key,
            inner => format!("{key}.{inner}"),
        }
    }

    /// Whether `span` is inside this value. Text between the tables of an array is outside.
    pub(crate) fn contains(&self, span: SourceSpan) -> bool {
        match &self.value {
            TomlValue::Array(nodes) => {
                self.span == span || nodes.iter().any(|node| node.contains(span))
            }
            TomlValue::Table(table) => {
                let mut entries = table.entries.iter();
                self.span.contains(span)
                    || entries.any(|e| e.key_span.contains(span) || e.node.contains(span))
            }
            _ => self.span.contains(span),
        }
    }

    /// First to last byte of the values inside.
    pub(crate) fn extent(&self) -> SourceSpan {
        let mut extent = self.span;
        let mut widen = |span: SourceSpan| {
            if span.source == extent.source {
                extent.start = extent.start.min(span.start);
                extent.end = extent.end.max(span.end);
            }
        };
        match &self.value {
            TomlValue::Array(nodes) => nodes.iter().for_each(|node| widen(node.extent())),
            TomlValue::Table(table) => table.entries.iter().for_each(|entry| {
                widen(entry.key_span);
                widen(entry.node.extent());
            }),
            _ => {}
        }
        extent
    }
}

impl TomlTable {
    pub(crate) fn get(&self, key: &str) -> Option<&TomlNode> {
        self.entries.iter().find(|entry| entry.key == key).map(|entry| &entry.node)
    }

    pub(crate) fn get_mut(&mut self, key: &str) -> Option<&mut TomlNode> {
        self.entries.iter_mut().find(|entry| entry.key == key).map(|entry| &mut entry.node)
    }

    pub(crate) fn remove(&mut self, key: &str) -> Option<TomlNode> {
        let index = self.entries.iter().position(|entry| entry.key == key)?;
        Some(self.entries.remove(index).node)
    }

    /// Replaces the value of an existing key in place, or appends the entry.
    pub(crate) fn set(&mut self, new: TomlEntry) {
        match self.entries.iter_mut().find(|entry| entry.key == new.key) {
            Some(entry) => *entry = new,
            None => self.entries.push(new),
        }
    }

    /// Turns `[a.b] c = 1` inside this table into `"a.b.c" = 1`.
    pub(crate) fn flatten(&mut self, sink: &mut ProblemSink) {
        let mut flat = Flat::default();
        for entry in std::mem::take(&mut self.entries) {
            flatten_into(&mut flat, String::new(), entry, sink);
        }
        self.entries = flat.entries;
    }
}

#[derive(Default)]
struct Flat {
    entries: Vec<TomlEntry>,
    first: BTreeMap<String, SourceSpan>,
}

fn flatten_into(flat: &mut Flat, prefix: String, entry: TomlEntry, sink: &mut ProblemSink) {
    let key = if prefix.is_empty() { entry.key } else { format!("{prefix}.{}", entry.key) };
    if let TomlValue::Table(table) = entry.node.value {
        for inner in table.entries {
            flatten_into(flat, key.clone(), inner, sink);
        }
        return;
    }
    let TomlEntry { key_span, node, .. } = entry;
    if let Some(first) = flat.first.get(&key) {
        sink.push(SpannedProblem {
            span: key_span,
            message: format!("`{}` is written twice", clip(&key)),
            hint: Some("keep one of them".into()),
            also: Some((*first, "first here".into())),
        });
        return;
    }
    flat.first.insert(key.clone(), key_span);
    flat.entries.push(TomlEntry { key, key_span, node });
}

/// Parses a document. `None` if it is too broken to continue.
pub(crate) fn parse(text: &str, source: u16, sink: &mut ProblemSink) -> Option<TomlNode> {
    let (table, errors) = DeTable::parse_recoverable(text);
    let mut is_sound = true;
    for error in &errors {
        let span = error.span().unwrap_or(0..0);
        let is_bare_text = error.message().starts_with("string values must be quoted");
        let is_duplicate = error.message().starts_with("duplicate key");
        let written = text.get(span.clone()).unwrap_or_default();
        let hint = if is_bare_text {
            Some(format!("write \"{}\"", clip(written)))
        } else if is_duplicate {
            Some(format!("`{}` is already set in this table: keep one of them", clip(written)))
        } else {
            None
        };
        // After one broken bracket everything is an error: only the first error is useful.
        if is_sound {
            let message = format!("not TOML: {}", error.message());
            sink.push(SpannedProblem { span: to_span(span, source), message, hint, also: None });
        }
        is_sound &= is_bare_text || is_duplicate;
    }
    is_sound.then(|| TomlNode {
        span: to_span(0..0, source),
        value: table_value(table.get_ref(), source),
    })
}

/// Parses the VALUE of `KEY=VALUE`: as TOML, or as a string if it is not TOML.
pub(crate) fn parse_value(text: &str, span: SourceSpan) -> TomlNode {
    let value = match DeValue::parse(text) {
        Ok(value) => convert(value.get_ref(), span.source),
        Err(_) => TomlValue::Text(text.to_owned()),
    };
    let mut node = TomlNode { span, value };
    node.place_at(span);
    node
}

impl TomlNode {
    /// Sets the position of this value and of everything inside it to `span`.
    fn place_at(&mut self, span: SourceSpan) {
        self.span = span;
        match &mut self.value {
            TomlValue::Array(nodes) => nodes.iter_mut().for_each(|node| node.place_at(span)),
            TomlValue::Table(table) => table.entries.iter_mut().for_each(|entry| {
                entry.key_span = span;
                entry.node.place_at(span);
            }),
            _ => {}
        }
    }
}

fn to_span(range: std::ops::Range<usize>, source: u16) -> SourceSpan {
    let clamp = |index: usize| u32::try_from(index).unwrap_or(u32::MAX);
    SourceSpan { source, start: clamp(range.start), end: clamp(range.end) }
}

fn table_value(table: &DeTable<'_>, source: u16) -> TomlValue {
    let mut entries: Vec<TomlEntry> = table
        .iter()
        .map(|(key, value)| TomlEntry {
            key: key.get_ref().to_string(),
            key_span: to_span(key.span(), source),
            node: node(value, source),
        })
        .collect();
    entries.sort_by_key(|entry| entry.key_span);
    TomlValue::Table(TomlTable { entries })
}

fn node(value: &Spanned<DeValue<'_>>, source: u16) -> TomlNode {
    TomlNode { span: to_span(value.span(), source), value: convert(value.get_ref(), source) }
}

fn convert(value: &DeValue<'_>, source: u16) -> TomlValue {
    match value {
        DeValue::String(text) => TomlValue::Text(text.to_string()),
        DeValue::Integer(integer) => {
            let parsed = i128::from_str_radix(integer.as_str(), integer.radix());
            let is_negative = integer.as_str().starts_with('-');
            TomlValue::Integer(parsed.unwrap_or(if is_negative { i128::MIN } else { i128::MAX }))
        }
        DeValue::Float(float) => TomlValue::Float(float.as_str().to_owned()),
        DeValue::Boolean(boolean) => TomlValue::Boolean(*boolean),
        DeValue::Datetime(_) => TomlValue::Date,
        DeValue::Array(array) => {
            TomlValue::Array(array.iter().map(|value| node(value, source)).collect())
        }
        DeValue::Table(table) => table_value(table, source),
    }
}

/// A path to a value, such as `task.stream.nice`, from a variant's `set` or from the command line.
pub(crate) struct TreePath<'a> {
    pub(crate) text: &'a str,
    pub(crate) span: SourceSpan,
}

impl TreePath<'_> {
    /// The parts, split at dots; a part may be quoted.
    pub(crate) fn parts(&self) -> Vec<String> {
        let mut parts = vec![String::new()];
        let mut quote = None;
        for c in self.text.chars() {
            match (quote, c) {
                (None, '.') => parts.push(String::new()),
                (None, '"' | '\'') => quote = Some(c),
                (Some(open), _) if open == c => quote = None,
                _ => parts.last_mut().expect("never empty").push(c),
            }
        }
        parts
    }

    /// Stores `value` at this path in `root`.
    pub(crate) fn assign(&self, root: &mut TomlNode, value: TomlNode, sink: &mut ProblemSink) {
        let parts = self.parts();
        if parts.iter().any(String::is_empty) {
            let example = "name a value like `machine.memory` or `task.NAME.nice`";
            sink.hinted(self.span, format!("`{}` is not a path", clip(self.text)), example);
            return;
        }
        if let ([list @ ("group" | "task" | "file"), name, ..], Some(table)) =
            (parts.iter().map(String::as_str).collect::<Vec<_>>().as_slice(), root.as_table())
        {
            if table.get(list).is_none() {
                let message = format!("there is no {list} `{}`", clip(name));
                sink.hinted(self.span, message, format!("the scenario has no [[{list}]]"));
                return;
            }
        }
        if let Some(whole) = self.with_its_list(&parts, root) {
            let message = format!("unknown key `{}`", clip(self.text));
            sink.hinted(self.span, message, format!("did you mean `{}`?", clip(&whole)));
            return;
        }
        let mut node = root;
        for (depth, part) in parts.iter().enumerate() {
            let before = &parts[..depth];
            let takes_rest = is_flat(before, part);
            let is_last = takes_rest || depth + 1 == parts.len();
            if is_last {
                let key = if takes_rest { parts[depth..].join(".") } else { part.clone() };
                self.assign_key(node, before, key, value, sink);
                return;
            }
            let next = self.step(node, before, part, sink);
            let Some(next) = next else { return };
            node = next;
        }
    }

    /// The path that was probably meant by one without `group.NAME`, or without `group` or `task`.
    fn with_its_list(&self, parts: &[String], root: &TomlNode) -> Option<String> {
        let table = root.as_table()?;
        let (first, rest) = parts.split_first()?;
        let named = |list: &str| match &table.get(list)?.value {
            TomlValue::Array(nodes) => Some(nodes.iter().filter_map(element_name)),
            _ => None,
        };
        if table.get(first).is_some() {
            return None;
        }
        if GroupControl::find(self.text).is_some() {
            let group = named("group").and_then(|mut names| names.next()).unwrap_or("NAME");
            return Some(format!("group.{group}.{}", self.text));
        }
        let is_control = GroupControl::find(&rest.join(".")).is_some();
        let lists = if is_control { ["group", "task"] } else { ["task", "group"] };
        let has = |list: &&str| named(list).is_some_and(|mut names| names.any(|it| it == first));
        let list = lists.into_iter().find(has).filter(|_| !rest.is_empty())?;
        Some(format!("{list}.{}", self.text))
    }

    fn assign_key(
        &self,
        node: &mut TomlNode,
        before: &[String],
        key: String,
        value: TomlNode,
        sink: &mut ProblemSink,
    ) {
        match &mut node.value {
            TomlValue::Table(table) => {
                table.set(TomlEntry { key, key_span: self.span, node: value });
            }
            TomlValue::Array(nodes) => {
                let message = format!("`{}` names a whole table", clip(self.text));
                let names = element_names(nodes);
                let hint = format!("add the key to change; `{}` has {names}", before.join("."));
                sink.hinted(self.span, message, hint);
            }
            other => self.has_no_keys(other, before, sink),
        }
    }

    fn step<'n>(
        &self,
        node: &'n mut TomlNode,
        before: &[String],
        part: &str,
        sink: &mut ProblemSink,
    ) -> Option<&'n mut TomlNode> {
        match &mut node.value {
            TomlValue::Table(table) => {
                if table.get(part).is_none() {
                    let new = TomlValue::Table(TomlTable::default());
                    let node = TomlNode { span: self.span, value: new };
                    table.set(TomlEntry { key: part.to_owned(), key_span: self.span, node });
                }
                table.get_mut(part)
            }
            TomlValue::Array(nodes) => {
                let named = nodes.iter().position(|node| element_name(node) == Some(part));
                let index =
                    named.or_else(|| part.parse().ok().filter(|index| *index < nodes.len()));
                let Some(index) = index else {
                    let what = clip(&before.join("."));
                    let message = format!("there is no {what} `{}`", clip(part));
                    sink.hinted(self.span, message, format!("known: {}", element_names(nodes)));
                    return None;
                };
                nodes.get_mut(index)
            }
            other => {
                self.has_no_keys(other, before, sink);
                None
            }
        }
    }

    fn has_no_keys(&self, value: &TomlValue, path: &[String], sink: &mut ProblemSink) {
        let what = clip(&path.join(".")).to_string();
        let message = format!("`{what}` is {} and has no keys", value.kind());
        sink.hinted(self.span, message, format!("set the whole of it: {what}=..."));
    }
}

pub(crate) fn element_name(node: &TomlNode) -> Option<&str> {
    let table = node.as_table()?;
    // A watcher without a name has the name of its kind.
    let name = table.get("name").or_else(|| table.get("kind"));
    match name.map(|name| &name.value) {
        Some(TomlValue::Text(name)) => Some(name),
        _ => None,
    }
}

/// The names of the elements; their numbers if none has a name.
fn element_names(nodes: &[TomlNode]) -> String {
    let numbers: Vec<String> = (0..nodes.len()).map(|at| at.to_string()).collect();
    match nodes.iter().any(|node| element_name(node).is_some()) {
        true => list_names(nodes.iter().filter_map(element_name)),
        false => list_names(numbers.iter().map(String::as_str)),
    }
}

/// Whether keys of the table at `before` contain dots, so that `key` is only the first part.
pub(crate) fn is_flat(before: &[String], key: &str) -> bool {
    let before: Vec<&str> = before.iter().map(String::as_str).collect();
    match before[..] {
        ["sysctl"] | ["variant", _, "sysctl" | "set"] => true,
        ["reference", _] => true,
        ["group", _] => !matches!(key, "name" | "parent" | "at_start"),
        _ => false,
    }
}
