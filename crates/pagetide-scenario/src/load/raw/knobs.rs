//! `[sysctl]`, `[policy]` and `[[group]]`: what a user would echo into control files. A text is
//! kept as it is written; whether the kernel would take it is checked later.

use crate::load::decode::{expected, table, unknown_key, Decode, Int, Keyed, Name};
use crate::load::span::{At, Sink};
use crate::load::tree::{Entry, Node, Value};
use crate::names::{BackgroundCompactionPolicy, CompactionCapturePolicy, CompactionPolicy};
use crate::names::{DirectReclaimPolicy, KswapdPolicy, PerCpuListsPolicy, WatermarksPolicy};
use crate::names::{GroupWalkPolicy, ShrinkPriorityPolicy, SoftLimitDirectPolicy};
use crate::names::{LruPolicy, SoftLimitNodePolicy, SoftLimitPolicy, SoftLimitRootPolicy};
use crate::names::{ObjcgStockPolicy, SlabAccountingPolicy, SlabOwnersPolicy, SlubPolicy};
use crate::names::{ThpDefragPolicy, ThpPolicy};
use crate::names::{CACHE_CONTROLS, GROUP_CONTROLS, SYSCTLS};
use schemars::{json_schema, JsonSchema, Schema, SchemaGenerator};
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
        /// How pages age (default linux-6.1).
        lru: At<LruPolicy>,
        /// How global reclaim heeds soft limits (default tree).
        soft_limit: At<SoftLimitPolicy>,
        /// Whether the group whose limit raised the pressure counts (default excluded).
        soft_limit_root: At<SoftLimitRootPolicy>,
        /// How tasks that reclaim for themselves heed soft limits (default full).
        soft_limit_direct: At<SoftLimitDirectPolicy>,
        /// What a soft limit is on one node (default global).
        soft_limit_node: At<SoftLimitNodePolicy>,
        /// What memory.global_shrink_priority does (default guarded).
        shrink_priority: At<ShrinkPriorityPolicy>,
        /// How a reclaimer walks the groups (default whole).
        group_walk: At<GroupWalkPolicy>,
        /// Who makes blocks of high order in the background (default kcompactd-early).
        background_compaction: At<BackgroundCompactionPolicy>,
        /// How compaction works, and when a task resorts to it (default linux-6.1).
        compaction: At<CompactionPolicy>,
        /// Whether a task that compacts takes the block it has made at once (default on).
        compaction_capture: At<CompactionCapturePolicy>,
        /// When anonymous memory gets huge pages (default never).
        thp: At<ThpPolicy>,
        /// What a fault does for a huge page that is not there (default madvise).
        thp_defrag: At<ThpDefragPolicy>,
        /// Who pays for small objects of the kernel (default per-object).
        slab_accounting: At<SlabAccountingPolicy>,
        /// Which slab is used next (default linux-6.1).
        slub: At<SlubPolicy>,
        /// How an object remembers its owner (default pointers).
        slab_owners: At<SlabOwnersPolicy>,
        /// Owners for which a CPU has bytes in advance (default 1).
        objcg_stock: At<ObjcgStockPolicy>,
        /// Who is reclaimed from: a policy that the program registers (default linux, the built-in rules alone).
        groups: At<Name>,
        /// How pages age: a policy that the program registers (default linux, the built-in rules alone).
        pages: At<Name>,
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

fn decode_write(entry: &Entry, sink: &mut Sink) -> Option<Write> {
    let text = ControlText::decode(&entry.node, sink)?;
    let name = At { value: entry.key.clone(), span: entry.key_span };
    Some(Write { name, text: At { value: text.0, span: entry.node.span } })
}

/// What is written into a control file: a string as it is, an integer in decimal, an array of
/// integers with blanks between them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ControlText(pub(crate) String);

impl Decode for ControlText {
    fn decode(node: &Node, sink: &mut Sink) -> Option<Self> {
        let integer = |node: &Node| match node.value {
            Value::Integer(value) => Some(value.to_string()),
            _ => None,
        };
        match &node.value {
            Value::Text(text) => Some(ControlText(text.clone())),
            Value::Integer(value) => Some(ControlText(value.to_string())),
            Value::Array(nodes) => {
                let integers: Option<Vec<String>> = nodes.iter().map(integer).collect();
                if integers.is_none() {
                    expected(node, "integers", "", sink);
                }
                Some(ControlText(integers?.join(" ")))
            }
            _ => {
                let hint = "it is what you would echo into the file";
                expected(node, "an integer or a string", hint, sink);
                None
            }
        }
    }
}

impl JsonSchema for ControlText {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "ControlText".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": ["string", "integer", "array"], "items": { "type": "integer" } })
    }
}

/// Name of a control file, of the machine or of a group; which of them is checked with the rest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ControlName(pub(crate) String);

impl Decode for ControlName {
    fn decode(node: &Node, sink: &mut Sink) -> Option<Self> {
        String::decode(node, sink).map(ControlName)
    }
}

impl JsonSchema for ControlName {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "ControlName".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let names: Vec<&str> = SYSCTLS.iter().chain(GROUP_CONTROLS).map(|knob| knob.name).collect();
        let files: Vec<&str> = CACHE_CONTROLS.iter().map(|knob| knob.name).collect();
        let of_caches = format!("^slab\\..+\\.({})$", files.join("|"));
        json_schema!({ "type": "string", "anyOf": [{ "enum": names }, { "pattern": of_caches }] })
    }
}

impl JsonSchema for Knobs {
    fn schema_name() -> Cow<'static, str> {
        "Sysctls".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        crate::schema::knobs(SYSCTLS)
    }
}

/// A memory group.
#[derive(Clone, Debug, Default)]
pub(crate) struct Group {
    pub(crate) table: GroupTable,
    pub(crate) controls: Knobs,
}

/// Groups that one table stands for.
const GROUP_COPIES_MAX: i64 = 4096;

table! {
    /// A memory group.
    GroupTable {
        /// Its name.
        #[schemars(required)]
        name: At<Name>,
        /// The group it is in (default: the root).
        parent: At<Name>,
        /// It is there when the run begins; otherwise a task makes it with workload create-group
        /// (default true).
        at_start: At<bool>,
        /// Several groups NAME.0, NAME.1 ...; copies of a task go to them in turn (default 1).
        copies: At<Int<1, GROUP_COPIES_MAX>>,
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
            if group.table.take(entry, sink) {
                continue;
            }
            // Control files have a dot in their names: this is a key that was misspelt.
            if !entry.key.contains('.') {
                let keys = GroupTable::KEYS.iter().copied();
                let controls = GROUP_CONTROLS.iter().map(|knob| knob.name);
                unknown_key(entry, keys.chain(controls), sink);
            } else {
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
        crate::schema::with_controls(table, GROUP_CONTROLS)
    }
}
