//! `[sysctl]`, `[policy]` and `[[group]]`: what a user would echo into control files.

use crate::load::decode::{expected, table, Decode, Keyed, Name};
use crate::load::span::{At, Sink};
use crate::load::tree::{Entry, Node, Value};
use crate::names::{DirectReclaimPolicy, KswapdPolicy, PerCpuListsPolicy, WatermarksPolicy};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use std::borrow::Cow;

table! {
    /// Which of the built behaviours to use. docs/scenario.md says what each stands for.
    Policy {
        /// How the low and high watermarks follow (default scale-factor).
        watermarks: At<WatermarksPolicy>,
        /// How kswapd balances a node (default linux-6.1).
        kswapd: At<KswapdPolicy>,
        /// How an allocating task reclaims (default linux-6.1).
        direct_reclaim: At<DirectReclaimPolicy>,
        /// How large the per-CPU lists are (default linux-6.1).
        per_cpu_lists: At<PerCpuListsPolicy>,
    }
}

/// Writes to control files: names as the kernel spells them, with the text to write.
#[derive(Clone, Debug, Default)]
pub(crate) struct Knobs {
    pub(crate) writes: Vec<Write>,
}

/// One write.
#[derive(Clone, Debug)]
pub(crate) struct Write {
    pub(crate) name: At<String>,
    pub(crate) text: At<String>,
}

impl Decode for Knobs {
    fn decode(node: &Node, sink: &mut Sink) -> Option<Self> {
        let Value::Table(table) = &node.value else {
            expected(node, "a table", "write [sysctl] and then \"vm.swappiness\" = 60", sink);
            return None;
        };
        let writes = table.entries.iter().filter_map(|entry| decode_write(entry, sink)).collect();
        Some(Knobs { writes })
    }
}

/// The text that an entry writes: a string as it is, an integer in decimal, an array of integers
/// with blanks between them.
fn decode_write(entry: &Entry, sink: &mut Sink) -> Option<Write> {
    let text = match &entry.node.value {
        Value::Text(text) => text.clone(),
        Value::Integer(value) => value.to_string(),
        Value::Array(nodes) => {
            let integers: Option<Vec<String>> = nodes
                .iter()
                .map(|node| match node.value {
                    Value::Integer(value) => Some(value.to_string()),
                    _ => None,
                })
                .collect();
            match integers {
                Some(integers) => integers.join(" "),
                None => {
                    expected(&entry.node, "integers", "", sink);
                    return None;
                }
            }
        }
        _ => {
            let hint = "it is what you would echo into the file";
            expected(&entry.node, "an integer or a string", hint, sink);
            return None;
        }
    };
    let name = At { value: entry.key.clone(), span: entry.key_span };
    Some(Write { name, text: At { value: text, span: entry.node.span } })
}

impl JsonSchema for Knobs {
    fn schema_name() -> Cow<'static, str> {
        "Sysctls".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        crate::schema::knobs(crate::names::SYSCTLS)
    }
}

/// A memory group.
#[derive(Clone, Debug, Default)]
pub(crate) struct Group {
    pub(crate) table: GroupTable,
    pub(crate) controls: Knobs,
}

table! {
    /// A memory group.
    GroupTable {
        /// Its name.
        #[schemars(required)]
        name: At<Name>,
        /// The group it is in (default: the root).
        parent: At<Name>,
    }
}

impl Decode for Group {
    fn decode(node: &Node, sink: &mut Sink) -> Option<Self> {
        let Value::Table(table) = &node.value else {
            expected(node, "a table", "", sink);
            return None;
        };
        let mut group = Group::default();
        group.table.place(node.span);
        for entry in &table.entries {
            if !group.table.take(entry, sink) {
                group.controls.writes.extend(decode_write(entry, sink));
            }
        }
        Some(group)
    }
}

impl JsonSchema for Group {
    fn schema_name() -> Cow<'static, str> {
        "Group".into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let table = GroupTable::json_schema(generator);
        crate::schema::with_controls(table, crate::names::GROUP_CONTROLS)
    }
}
