//! `[reference]` and `[report]`.

use crate::load::decode::{expected, table, Decode};
use crate::load::span::{clip, ProblemSink, SourceSpan, Spanned};
use crate::load::tree::{TomlEntry, TomlNode, TomlValue};
use crate::load::units::{parse_size, parse_time, UnitError};
use schemars::{json_schema, JsonSchema, Schema, SchemaGenerator};
use std::borrow::Cow;

table! {
    /// Contents of the table of results.
    ReportTable as "Report" {
        /// Metric keys of the rows, in order (default: the program's choice).
        rows: Vec<Spanned<String>>,
        /// Task whose lifetime the machine's counters cover (default: the whole run).
        measure: Spanned<String>,
    }
}

/// Published figures: their source, and a table of metrics for each variant.
#[derive(Clone, Debug, Default)]
pub(crate) struct ReferenceTable {
    pub(crate) at: SourceSpan,
    pub(crate) source: Option<Spanned<String>>,
    pub(crate) bad_source: bool,
    pub(crate) variants: Vec<(Spanned<String>, Vec<FigureTable>)>,
}

#[derive(Clone, Debug)]
pub(crate) struct FigureTable {
    pub(crate) key: Spanned<String>,
    pub(crate) value: f64,
}

impl Decode for ReferenceTable {
    fn decode(node: &TomlNode, sink: &mut ProblemSink) -> Option<Self> {
        let TomlValue::Table(table) = &node.value else {
            expected(node, "a table", "", sink);
            return None;
        };
        let mut reference = ReferenceTable { at: node.span, ..ReferenceTable::default() };
        for entry in &table.entries {
            if entry.key == "source" {
                reference.source = Spanned::<String>::decode(&entry.node, sink);
                reference.bad_source = reference.source.is_none();
                continue;
            }
            let TomlValue::Table(figures) = &entry.node.value else {
                let hint = "next to `source`, write one table per variant";
                expected(&entry.node, "a table of metrics", hint, sink);
                continue;
            };
            let figures = figures.entries.iter().filter_map(|entry| decode_figure(entry, sink));
            let variant = Spanned { value: entry.key.clone(), span: entry.key_span };
            reference.variants.push((variant, figures.collect()));
        }
        Some(reference)
    }
}

/// Reads a number, or a time or size with its unit; times become seconds, sizes become bytes.
fn decode_figure(entry: &TomlEntry, sink: &mut ProblemSink) -> Option<FigureTable> {
    let key = Spanned { value: entry.key.clone(), span: entry.key_span };
    let value = match &entry.node.value {
        TomlValue::Integer(value) => Some(*value as f64),
        TomlValue::Float(text) => text.parse().ok().filter(|value: &f64| value.is_finite()),
        TomlValue::Text(text) => {
            match (parse_time(text, sink.page_size), parse_size(text, sink.page_size)) {
                (Ok(ns), _) => Some(ns as f64 / 1e9),
                (_, Ok(bytes)) => Some(bytes as f64),
                (Err(UnitError { message, hint }), _) => {
                    sink.hinted(entry.node.span, format!("`{}`: {message}", clip(text)), hint);
                    return None;
                }
            }
        }
        _ => None,
    };
    if value.is_none() {
        expected(&entry.node, "a number", "or a text with a unit: \"503ms\", \"64MiB\"", sink);
    }
    Some(FigureTable { key, value: value? })
}

impl JsonSchema for ReferenceTable {
    fn schema_name() -> Cow<'static, str> {
        "Reference".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "object",
            "description": "Published figures: their source, and a table of metrics for each variant.",
            "required": ["source"],
            "properties": { "source": { "type": "string" } },
            "additionalProperties": {
                "type": "object",
                "additionalProperties": { "type": ["number", "string", "object"] }
            }
        })
    }
}
