//! Variants: their list, and the changed tree of each.
//!
//! Later changes override earlier ones: the scenario, `[variant.sysctl]` and `[variant.policy]`,
//! `set` of the variant, `--set` of the command line. A variant of the command line
//! (`--add-variant`) has a `set` too (`added.rs`).

use super::decode::{Decode, Label};
use super::raw;
use super::span::{clip, ProblemSink, SourceSpan, Spanned, SpannedProblem};
use super::tree::{TomlEntry, TomlNode, TomlTable, TomlValue, TreePath};
use crate::diagnostic::SourceText;

const VARIANTS_MAX: usize = 64;
/// Name of the only variant of a scenario that declares none.
pub(super) const ONLY_VARIANT: &str = "default";
/// Keys that cannot differ between variants.
const WHOLE: [&str; 12] = [
    "name",
    "title",
    "base",
    "without",
    "description",
    "repeats",
    "seed",
    "variant",
    "reference",
    "report",
    "expect",
    "fuzz",
];

/// A change: `path` = `node`.
#[derive(Clone, Debug)]
pub(super) struct Set {
    pub(super) path: String,
    pub(super) span: SourceSpan,
    pub(super) node: TomlNode,
}

/// The scenario without its variants, and the variants.
#[derive(Debug)]
pub(super) struct VariantPlan {
    /// The scenario without its variants.
    base: TomlNode,
    /// Changes from the command line that apply to every variant.
    sets: Vec<Set>,
    pub(super) columns: Vec<VariantColumn>,
}

#[derive(Debug)]
pub(super) struct VariantColumn {
    pub(super) name: String,
    /// Its `[[variant]]`; `None` if the scenario has none.
    node: Option<TomlNode>,
}

/// Separates the scenario from its variants.
pub(super) fn plan(mut root: TomlNode, sets: &[Set], sink: &mut ProblemSink) -> VariantPlan {
    flatten(&mut root, sink);
    let (whole, each): (Vec<Set>, Vec<Set>) = sets.iter().cloned().partition(is_whole);
    let has_variants = root.as_table().is_some_and(|root| root.get("variant").is_some());
    for set in whole {
        let parts = TreePath { text: &set.path, span: set.span }.parts();
        if let ([first, name, ..], false) = (parts.as_slice(), has_variants) {
            if first == "variant" {
                let message = format!("there is no variant `{}`", clip(name));
                let hint =
                    "the scenario has no variants: set the key itself, like \"vm.swappiness\"";
                sink.hinted(set.span, message, hint);
                continue;
            }
        }
        TreePath { text: &set.path, span: set.span }.assign(&mut root, set.node, sink);
    }
    let variants = root.as_table_mut().and_then(|table| table.remove("variant"));
    let columns = variants.map_or(Vec::new(), |variants| columns(variants, sink));
    let columns = if columns.is_empty() {
        let name = ONLY_VARIANT.to_owned();
        vec![VariantColumn { name, node: None }]
    } else {
        columns
    };
    VariantPlan { base: root, sets: each, columns }
}

fn is_whole(set: &Set) -> bool {
    let path = TreePath { text: &set.path, span: set.span };
    path.parts().first().is_some_and(|first| WHOLE.contains(&first.as_str()))
}

/// Renames nested control files to their full names.
pub(super) fn flatten(root: &mut TomlNode, sink: &mut ProblemSink) {
    let Some(root) = root.as_table_mut() else { return };
    for entry in &mut root.entries {
        match (entry.key.as_str(), &mut entry.node.value) {
            ("sysctl", TomlValue::Table(table)) => table.flatten(sink),
            ("group", TomlValue::Array(groups)) => {
                for group in groups.iter_mut().filter_map(TomlNode::as_table_mut) {
                    group.flatten(sink);
                }
            }
            ("reference", TomlValue::Table(table)) => {
                for variant in &mut table.entries {
                    if let Some(figures) = variant.node.as_table_mut() {
                        figures.flatten(sink);
                    }
                }
            }
            ("variant", TomlValue::Array(variants)) => {
                for variant in variants.iter_mut().filter_map(TomlNode::as_table_mut) {
                    for key in ["sysctl", "set"] {
                        if let Some(table) = variant.get_mut(key).and_then(TomlNode::as_table_mut) {
                            table.flatten(sink);
                        }
                    }
                }
            }
            _ => {}
        }
    }
}

fn columns(variants: TomlNode, sink: &mut ProblemSink) -> Vec<VariantColumn> {
    let Some(decoded) = Vec::<raw::VariantTable>::decode(&variants, sink) else {
        return Vec::new();
    };
    let TomlValue::Array(nodes) = variants.value else { return Vec::new() };
    let mut columns: Vec<VariantColumn> = Vec::new();
    let mut spans: Vec<SourceSpan> = Vec::new();
    for (node, variant) in nodes.into_iter().zip(decoded) {
        let Some(Spanned { value: Label(name), span }) = variant.name else {
            if !variant.bad.contains(&"name") {
                sink.hinted(variant.at, "the variant has no `name`", "add name = \"larger\"");
            }
            continue;
        };
        if columns.len() == VARIANTS_MAX {
            sink.error(span, format!("a scenario has at most {VARIANTS_MAX} variants"));
            break;
        }
        if name == "source" {
            let hint = "give it another name: `source` is a key of [reference]";
            sink.hinted(span, "a variant cannot be called `source`", hint);
        }
        if let Some(index) = columns.iter().position(|column| column.name == name) {
            sink.push(SpannedProblem {
                span,
                message: format!("the variant `{}` is defined twice", clip(&name)),
                hint: Some("give one of them another name".into()),
                also: Some((spans[index], "first defined here".into())),
            });
            continue;
        }
        columns.push(VariantColumn { name, node: Some(node) });
        spans.push(span);
    }
    columns
}

impl VariantColumn {
    /// Whether `span` is inside the variant's own table.
    pub(super) fn contains(&self, span: SourceSpan) -> bool {
        self.node.as_ref().is_some_and(|own| own.contains(span))
    }

    /// The entries of its `set`: keys, and values as written in `sources`.
    pub(super) fn sets(&self, sources: &[SourceText]) -> Vec<(String, String)> {
        let own = self.node.as_ref().and_then(TomlNode::as_table);
        let set = own.and_then(|own| own.get("set")).and_then(TomlNode::as_table);
        let entries = set.map_or(&[][..], |set| &set.entries);
        let written = |span: SourceSpan| {
            let text = sources.get(usize::from(span.source)).map(|source| source.text.as_str());
            let value = text.and_then(|text| text.get(span.start as usize..span.end as usize));
            value.unwrap_or_default().split_whitespace().collect::<Vec<_>>().join(" ")
        };
        entries.iter().map(|entry| (entry.key.clone(), written(entry.node.extent()))).collect()
    }

    /// The tree of the scenario with the changes of this variant.
    pub(super) fn tree(&self, plan: &VariantPlan, sink: &mut ProblemSink) -> TomlNode {
        let mut root = plan.base.clone();
        if let Some(own) = self.node.as_ref().and_then(TomlNode::as_table) {
            for key in ["sysctl", "policy"] {
                merge(&mut root, own, key);
            }
            if let Some(settings) = own.get("set").and_then(TomlNode::as_table) {
                for TomlEntry { key, key_span, node } in &settings.entries {
                    let set = Set { path: key.clone(), span: *key_span, node: node.clone() };
                    if is_whole(&set) {
                        let message = format!("`{}` cannot differ between variants", clip(key));
                        let hint = "set it once for the whole scenario";
                        sink.hinted(*key_span, message, hint);
                    } else {
                        set.apply(&mut root, sink);
                    }
                }
            }
        }
        for set in &plan.sets {
            set.clone().apply(&mut root, sink);
        }
        root
    }
}

impl Set {
    fn apply(self, root: &mut TomlNode, sink: &mut ProblemSink) {
        // A control file without its table: `vm.swappiness` stands for `sysctl.vm.swappiness`.
        let text = if is_knob(&self.path) { format!("sysctl.{}", self.path) } else { self.path };
        TreePath { text: &text, span: self.span }.assign(root, self.node, sink);
    }
}

/// Whether a path names a control file of the machine without `sysctl`.
pub(super) fn is_knob(path: &str) -> bool {
    ["vm.", "block.", "transparent_hugepage.", "lru_gen.", "slab."]
        .iter()
        .any(|dir| path.starts_with(dir))
}

/// Copies the entries of the variant's table `key` into the scenario's table.
fn merge(root: &mut TomlNode, own: &TomlTable, key: &str) {
    let Some(own) = own.get(key) else { return };
    let Some(changes) = own.as_table() else { return };
    let Some(root) = root.as_table_mut() else { return };
    if root.get(key).is_none() {
        let node = TomlNode { span: own.span, value: TomlValue::Table(TomlTable::default()) };
        root.set(TomlEntry { key: key.to_owned(), key_span: own.span, node });
    }
    let Some(table) = root.get_mut(key).and_then(TomlNode::as_table_mut) else { return };
    for entry in &changes.entries {
        table.set(entry.clone());
    }
}
