//! `[[task]]` and `[[task.phase]]`.

use crate::load::decode::{
    expected, table, unknown_key, Decode, Int, KeyTable, NameKey, Size, Time,
};
use crate::load::raw::content::ContentTable;
use crate::load::span::{ProblemSink, Spanned};
use crate::load::tree::{TomlEntry, TomlNode, TomlValue};
use crate::names::{NameSet, ZoneName};
use crate::workload::{WorkloadKeys, WorkloadKind};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::json;
use std::borrow::Cow;

const COPIES_MAX: i64 = 4096;
const PHASE_REPEAT_MAX: i64 = 4096;

/// A program: its keys, and either phases or the keys of a single workload.
#[derive(Clone, Debug, Default)]
pub(crate) struct RawTask {
    pub(crate) table: TaskTable,
    pub(crate) inline: Option<WorkloadKeys>,
}

/// Declares the keys of a task. A key of the second part is also a field of [`TaskSettings`], and
/// needs no other line until its value is used.
macro_rules! task_keys {
    (
        { $($checked:tt)* }
        { $($(#[$meta:meta])* $key:ident: $type:ty = $default:expr => $kept:ty,)* }
    ) => {
        table! {
            /// A task: a program that runs on the machine.
            TaskTable of "the task" {
                $($checked)*
                $($(#[$meta])* $key: Spanned<$type> = $default,)*
                /// Phases, in order.
                phase: Vec<RawPhase>,
            }
        }

        /// The keys of a task that are kept as they are in the file.
        #[derive(Clone, Debug, PartialEq)]
        pub struct TaskSettings {
            $($(#[$meta])* pub $key: $kept,)*
        }

        impl TaskTable {
            pub(crate) fn settings(&self) -> TaskSettings {
                TaskSettings { $($key: self.$key().into(),)* }
            }
        }
    };
}

impl Default for TaskSettings {
    fn default() -> TaskSettings {
        TaskTable::default().settings()
    }
}

task_keys! {
    {
        /// Name of the task; its metrics are NAME.metric and NAME.PHASE.metric.
        name: Spanned<NameKey> => required "\"writer\"",
        /// Number of copies; several are called NAME.0, NAME.1 and so on (default 1).
        copies: Spanned<Int<1, COPIES_MAX>> = Int(1),
        /// Group that the task runs in (default: the root).
        group: Spanned<NameKey>,
        /// Start time, counted from the start of the run (default 0).
        start: Spanned<Time> = Time(0),
        /// Name of a task: when that task ends, this one starts.
        after: Spanned<String>,
        /// Pause between the end of the task in `after` and the start (default 0).
        delay: Spanned<Time> = Time(0),
        /// Stops the task when all others have ended: it does not keep the run alive (default
        /// false).
        background: Spanned<bool> = false,
        /// Name of a task: when that task ends, this one is stopped. The run does not wait for this
        /// one.
        until: Spanned<String>,
        /// Memory that the task has when the run starts, on the LRU lists, in frames of a zone that
        /// are managed but not free.
        resident: Vec<ResidentTable>,
        /// Contents of its pages; a key that is left out has the machine's value (default: as
        /// machine.content).
        content: ContentTable,
    }
    {
        /// Nice value (default 0).
        nice: Int<-20, 19> = Int(0) => i8,
        /// Added to the badness score for the OOM killer; -1000: never killed (default 0).
        oom_score_adj: Int<-1000, 1000> = Int(0) => i16,
        /// Number of times that the task runs through its phases (default 1).
        loops: Int<1, { u32::MAX as i64 }> = Int(1) => u32,
    }
}

table! {
    /// Memory of a task at the start of the run, by LRU list. File pages are page cache of a file
    /// that only this task has, on the first disk.
    ResidentTable as "Resident" of "the resident memory" {
        /// Number of the node (default 0).
        node: Spanned<Int<0, 63>> = Int(0),
        /// The zone (default: the highest zones of the node that have room).
        zone: Spanned<ZoneName>,
        /// Anonymous memory on the active list (default 0).
        active_anon: Spanned<Size> = Size(0),
        /// Anonymous memory on the inactive list (default 0).
        inactive_anon: Spanned<Size> = Size(0),
        /// Page cache on the active list (default 0).
        active_file: Spanned<Size> = Size(0),
        /// Page cache on the inactive list (default 0).
        inactive_file: Spanned<Size> = Size(0),
    }
}

#[derive(Clone, Debug, Default)]
pub(crate) struct RawPhase {
    pub(crate) table: PhaseTable,
    pub(crate) workload: Option<WorkloadKeys>,
}

table! {
    /// A named part of a task.
    PhaseTable of "the phase" {
        /// Name of the phase; its metrics are TASK.NAME.metric.
        name: Spanned<NameKey> => required "\"fill\"",
        /// Number of repeats; they are called NAME0, NAME1 and so on (default: once, called NAME).
        repeat: Spanned<Int<1, PHASE_REPEAT_MAX>> = Int(1),
    }
}

impl Decode for RawTask {
    fn decode(node: &TomlNode, sink: &mut ProblemSink) -> Option<Self> {
        let (mut table, inline) = decode_with_workload::<TaskTable>(node, sink)?;
        if inline.is_none() && has_workload_key(node) {
            table.bad.push("workload");
        }
        Some(RawTask { table, inline })
    }
}

impl Decode for RawPhase {
    fn decode(node: &TomlNode, sink: &mut ProblemSink) -> Option<Self> {
        let (mut table, workload) = decode_with_workload::<PhaseTable>(node, sink)?;
        if workload.is_none() && has_workload_key(node) {
            table.bad.push("workload");
        }
        Some(RawPhase { table, workload })
    }
}

/// Whether the table has the key `workload`, valid or not: an invalid one has been reported.
fn has_workload_key(node: &TomlNode) -> bool {
    let table = node.as_table();
    table.is_some_and(|table| table.entries.iter().any(|entry| entry.key == "workload"))
}

/// Decodes a table that mixes the keys of a workload with keys of its own.
fn decode_with_workload<T: KeyTable>(
    node: &TomlNode,
    sink: &mut ProblemSink,
) -> Option<(T, Option<WorkloadKeys>)> {
    let TomlValue::Table(table) = &node.value else {
        expected(node, "a table", "", sink);
        return None;
    };
    let mut outer = T::default();
    outer.set_span(node.span);
    let mut rest: Vec<&TomlEntry> = Vec::new();
    let mut kind = None;
    for entry in &table.entries {
        if entry.key == "workload" {
            kind = Some(Spanned::<WorkloadKind>::decode(&entry.node, sink));
        } else if !outer.take(entry, sink) {
            rest.push(entry);
        }
    }
    match kind {
        Some(Some(kind)) => {
            let workload = WorkloadKeys::decode(kind, &rest, T::KEYS, sink);
            for entry in rest.iter().filter(|entry| workloads_with(&entry.key).is_empty()) {
                let near = sink.suggest(&entry.key, T::KEYS.iter().copied());
                outer.mark_bad(near);
            }
            Some((outer, Some(workload)))
        }
        // The name of the workload is wrong, so its keys may be right: do not report them.
        Some(None) => Some((outer, None)),
        None => {
            let keys = T::KEYS.iter().copied().chain(["workload"]);
            let is_workload =
                |entry: &&&TomlEntry| sink.suggest(&entry.key, keys.clone()) == Some("workload");
            let misspelt = rest.iter().find(is_workload).copied();
            for entry in rest {
                match workloads_with(&entry.key).as_slice() {
                    [] => {
                        let near = unknown_key(entry, keys.clone(), sink);
                        outer.mark_bad(near);
                    }
                    // The workload is there.
                    _ if misspelt.is_some() => {}
                    kinds => {
                        let message = format!("`{}` needs a workload", entry.key);
                        let hint = format!("add the key workload = {}", kinds.join(" or "));
                        sink.hinted(entry.key_span, message, hint);
                    }
                }
            }
            if misspelt.is_some() {
                outer.bad().push("workload");
            }
            Some((outer, None))
        }
    }
}

/// The workloads that accept a key, quoted.
fn workloads_with(key: &str) -> Vec<String> {
    let kinds = WorkloadKind::ALL.iter().filter(|kind| kind.keys().contains(&key));
    kinds.map(|kind| format!("\"{}\"", kind.name())).collect()
}

/// For the schema: the keys of a task together with those of its workload.
#[derive(JsonSchema)]
#[allow(dead_code)]
struct TaskSchema {
    #[schemars(flatten)]
    table: TaskTable,
    #[schemars(flatten)]
    workload: Option<WorkloadKeys>,
}

/// For the schema: the keys of a phase together with those of its workload.
#[derive(JsonSchema)]
#[allow(dead_code)]
struct PhaseSchema {
    #[schemars(flatten)]
    table: PhaseTable,
    #[schemars(flatten)]
    workload: WorkloadKeys,
}

impl JsonSchema for RawTask {
    fn schema_name() -> Cow<'static, str> {
        "Task".into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        closed(TaskSchema::json_schema(generator), "A program.")
    }
}

impl JsonSchema for RawPhase {
    fn schema_name() -> Cow<'static, str> {
        "Phase".into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        closed(PhaseSchema::json_schema(generator), "A named part of a task.")
    }
}

/// Closes a schema that was combined from parts: no other keys are allowed.
fn closed(mut schema: Schema, description: &str) -> Schema {
    let object = schema.ensure_object();
    object.remove("additionalProperties");
    object.insert("unevaluatedProperties".into(), json!(false));
    object.insert("description".into(), json!(description));
    schema
}
