//! `[reference]` and `[report]`.

use crate::load::decode::{expected, table, Decode};
use crate::load::span::{clip, At, Sink, Span};
use crate::load::tree::{Entry, Node, Value};
use crate::load::units::{parse_size, parse_time, UnitError};
use schemars::{json_schema, JsonSchema, Schema, SchemaGenerator};
use std::borrow::Cow;

table! {
    /// Contents of the table of results.
    Report {
        /// Metric keys of the rows, in order (default: the program's choice).
        rows: Vec<At<String>>,
        /// Task whose lifetime the machine's counters cover (default: the whole run).
        measure: At<String>,
    }
}

/// Published figures: their source, and a table of metrics for each variant.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reference {
    pub(crate) at: Span,
    pub(crate) source: Option<At<String>>,
    pub(crate) bad_source: bool,
    pub(crate) variants: Vec<(At<String>, Vec<Figure>)>,
}

#[derive(Clone, Debug)]
pub(crate) struct Figure {
    pub(crate) key: At<String>,
    pub(crate) value: f64,
}

impl Decode for Reference {
    fn decode(node: &Node, sink: &mut Sink) -> Option<Self> {
        let Value::Table(table) = &node.value else {
            expected(node, "a table", "", sink);
            return None;
        };
        let mut reference = Reference { at: node.span, ..Reference::default() };
        for entry in &table.entries {
            if entry.key == "source" {
                reference.source = At::<String>::decode(&entry.node, sink);
                reference.bad_source = reference.source.is_none();
                continue;
            }
            let Value::Table(figures) = &entry.node.value else {
                let hint = "next to `source`, write one table per variant";
                expected(&entry.node, "a table of metrics", hint, sink);
                continue;
            };
            let figures = figures.entries.iter().filter_map(|entry| decode_figure(entry, sink));
            let variant = At { value: entry.key.clone(), span: entry.key_span };
            reference.variants.push((variant, figures.collect()));
        }
        Some(reference)
    }
}

/// Reads a number, or a time or size with its unit; times become seconds, sizes become bytes.
fn decode_figure(entry: &Entry, sink: &mut Sink) -> Option<Figure> {
    let key = At { value: entry.key.clone(), span: entry.key_span };
    let value = match &entry.node.value {
        Value::Integer(value) => Some(*value as f64),
        Value::Float(text) => text.parse().ok().filter(|value: &f64| value.is_finite()),
        Value::Text(text) => {
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
    Some(Figure { key, value: value? })
}

impl JsonSchema for Reference {
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
