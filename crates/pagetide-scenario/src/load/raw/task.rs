//! `[[task]]` and `[[task.phase]]`.

use crate::load::decode::{
    expected, table, unknown_key, unknown_name, Decode, Int, KeyTable, NameKey, Size, Time,
};
use crate::load::raw::content::ContentTable;
use crate::load::span::{ProblemSink, Spanned};
use crate::load::tree::{TomlEntry, TomlNode, TomlValue};
use crate::model::NEVER_NS;
use crate::names::{NameSet, SigtermEffect, ZoneName};
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
        /// Pause after which the task starts again from its first phase if it was killed (default:
        /// it does not).
        restart: Spanned<Time>,
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
        /// Effect of SIGTERM, which watchers send (default exit).
        sigterm: SigtermEffect = SigtermEffect::Exit => SigtermEffect,
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

/// A watcher: a task in the background with one workload.
#[derive(Clone, Debug)]
pub(crate) struct RawWatcher(pub(crate) RawTask);

impl Decode for RawWatcher {
    fn decode(node: &TomlNode, sink: &mut ProblemSink) -> Option<Self> {
        let TomlValue::Table(table) = &node.value else {
            expected(node, "a table", "", sink);
            return None;
        };
        let mut task = TaskTable { at: node.span, ..TaskTable::default() };
        let mut kind: Option<Option<Spanned<WorkloadKind>>> = None;
        let mut enabled = true;
        let mut rest: Vec<&TomlEntry> = Vec::new();
        for entry in &table.entries {
            match entry.key.as_str() {
                "kind" => kind = Some(watcher_kind(&entry.node, sink)),
                "enabled" => enabled = bool::decode(&entry.node, sink).unwrap_or(true),
                key if NOT_OF_WATCHERS.contains(&key) => {
                    let message = format!("a watcher has no key `{key}`");
                    sink.hinted(entry.key_span, message, "write the program as a [[task]]");
                }
                _ if task.take(entry, sink) => {}
                _ => rest.push(entry),
            }
        }
        let Some(kind) = kind else {
            let names = WorkloadKind::WATCHERS.map(|kind| format!("\"{}\"", kind.name()));
            let hint = format!("add kind = {}", names.join(" or "));
            sink.hinted(node.span, "the watcher has no `kind`", hint);
            return None;
        };
        let kind = kind?;
        let name = NameKey(kind.value.name().to_owned());
        task.name.get_or_insert(Spanned { value: name, span: kind.span });
        task.background.get_or_insert(Spanned { value: true, span: kind.span });
        let inline = WorkloadKeys::decode(kind, &rest, TaskTable::KEYS, sink);
        if !enabled {
            // It exists, so that every variant has its metrics, but does not start.
            (task.after, task.delay) = (None, None);
            task.start = Some(Spanned { value: Time(NEVER_NS), span: node.span });
        }
        Some(RawWatcher(RawTask { table: task, inline: Some(inline) }))
    }
}

/// Keys of tasks that a watcher does not have.
const NOT_OF_WATCHERS: [&str; 6] = ["workload", "phase", "loops", "copies", "resident", "restart"];

fn watcher_kind(node: &TomlNode, sink: &mut ProblemSink) -> Option<Spanned<WorkloadKind>> {
    let text = String::decode(node, sink)?;
    let found = WorkloadKind::WATCHERS.into_iter().find(|kind| kind.name() == text);
    if found.is_none() {
        let names = WorkloadKind::WATCHERS.iter().map(|kind| kind.name());
        unknown_name("kind of watcher", &text, node.span, names, sink);
    }
    Some(Spanned { value: found?, span: node.span })
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

/// For the schema: the keys of a watcher. The workload's `workload` is its `kind`.
impl JsonSchema for RawWatcher {
    fn schema_name() -> Cow<'static, str> {
        "Watcher".into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        watcher_schema(TaskTable::json_schema(generator), WorkloadKeys::json_schema(generator))
    }
}

/// Keys of a task and of a workload as those of a watcher.
fn watcher_schema(task: Schema, workload: Schema) -> Schema {
    let mut properties = serde_json::Map::new();
    let kinds: Vec<&str> = WorkloadKind::WATCHERS.iter().map(|kind| kind.name()).collect();
    let kind = json!({ "type": "string", "enum": kinds, "description": "The program." });
    properties.insert("kind".into(), kind);
    let enabled = json!({
        "type": "boolean",
        "description": "Whether it starts (default true); for variants that compare watchers."
    });
    properties.insert("enabled".into(), enabled);
    let of_task = task.get("properties").and_then(|it| it.as_object()).cloned();
    let is_own = |key: &String| !NOT_OF_WATCHERS.contains(&key.as_str());
    properties.extend(of_task.unwrap_or_default().into_iter().filter(|(key, _)| is_own(key)));
    let kinds_of = workload.get("oneOf").and_then(|it| it.as_array()).cloned().unwrap_or_default();
    for of in kinds_of {
        let Some(of) = of.get("properties").and_then(|it| it.as_object()) else { continue };
        let name = of.get("workload").and_then(|it| it.get("const")).and_then(|it| it.as_str());
        if !name.is_some_and(|name| kinds.contains(&name)) {
            continue;
        }
        for (key, schema) in of.iter().filter(|(key, _)| *key != "workload") {
            properties.entry(key.clone()).or_insert_with(|| schema.clone());
        }
    }
    let mut schema = Schema::default();
    let object = schema.ensure_object();
    object.insert("type".into(), json!("object"));
    object.insert("description".into(), json!("A program in user space that watches memory."));
    object.insert("properties".into(), serde_json::Value::Object(properties));
    object.insert("required".into(), json!(["kind"]));
    object.insert("additionalProperties".into(), json!(false));
    schema
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
