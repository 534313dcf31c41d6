//! `[[task]]` and `[[task.phase]]`.

use crate::load::decode::{expected, table, unknown_key, Decode, Int, Keyed, Name, Time};
use crate::load::span::{At, Sink};
use crate::load::tree::{Entry, Node, Value};
use crate::names::Named;
use crate::workload::{Keys, WorkloadKind};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use std::borrow::Cow;

/// Copies of a task.
const COPIES_MAX: i64 = 4096;
/// Repeats of a phase.
const PHASE_REPEAT_MAX: i64 = 4096;

/// A program: its keys, and either phases or the keys of a single workload.
#[derive(Clone, Debug, Default)]
pub(crate) struct Task {
    pub(crate) table: TaskTable,
    pub(crate) inline: Option<Keys>,
}

table! {
    /// A program.
    TaskTable of "the task" {
        /// Its name; metrics are called NAME.metric and NAME.PHASE.metric.
        name: At<Name> => required "\"writer\"",
        /// Number of copies, called NAME.0, NAME.1 and so on if there are several (default 1).
        copies: At<Int<1, COPIES_MAX>> = Int(1),
        /// The group it runs in (default: the root).
        group: At<Name>,
        /// When it starts, counted from the start of the run (default 0).
        start: At<Time> = Time(0),
        /// The task whose end it waits for.
        after: At<String>,
        /// How long it waits from then (default 0).
        delay: At<Time> = Time(0),
        /// It does not keep the run alive: it is stopped when all others ended (default false).
        background: At<bool> = false,
        /// The task whose end stops this one; it does not keep the run alive then.
        until: At<String>,
        /// Nice value (default 0).
        nice: At<Int<-20, 19>> = Int(0),
        /// Added to its badness when memory runs out; -1000: it is never killed for that (default 0).
        oom_score_adj: At<Int<-1000, 1000>> = Int(0),
        /// How often it goes through its phases (default 1).
        loops: At<Int<1, { u32::MAX as i64 }>> = Int(1),
        /// What it does, in order.
        phase: Vec<Phase>,
    }
}

/// A named part of a task.
#[derive(Clone, Debug, Default)]
pub(crate) struct Phase {
    pub(crate) table: PhaseTable,
    pub(crate) workload: Option<Keys>,
}

table! {
    /// A named part of a task.
    PhaseTable of "the phase" {
        /// Its name; metrics are called TASK.NAME.metric.
        name: At<Name> => required "\"fill\"",
        /// Number of times, called NAME0, NAME1 and so on (default: once, called NAME).
        repeat: At<Int<1, PHASE_REPEAT_MAX>> = Int(1),
    }
}

impl Decode for Task {
    fn decode(node: &Node, sink: &mut Sink) -> Option<Self> {
        let (mut table, inline) = decode_with_workload::<TaskTable>(node, sink)?;
        if inline.is_none() && names_workload(node) {
            table.bad.push("workload");
        }
        Some(Task { table, inline })
    }
}

impl Decode for Phase {
    fn decode(node: &Node, sink: &mut Sink) -> Option<Self> {
        let (mut table, workload) = decode_with_workload::<PhaseTable>(node, sink)?;
        if workload.is_none() && names_workload(node) {
            table.bad.push("workload");
        }
        Some(Phase { table, workload })
    }
}

/// Whether there is a `workload`, right or wrong: one that is wrong has been reported.
fn names_workload(node: &Node) -> bool {
    let table = node.as_table();
    table.is_some_and(|table| table.entries.iter().any(|entry| entry.key == "workload"))
}

/// Reads a table in which the keys of a workload stand among others.
fn decode_with_workload<T: Keyed>(node: &Node, sink: &mut Sink) -> Option<(T, Option<Keys>)> {
    let Value::Table(table) = &node.value else {
        expected(node, "a table", "", sink);
        return None;
    };
    let mut outer = T::default();
    outer.place(node.span);
    let mut rest: Vec<&Entry> = Vec::new();
    let mut kind = None;
    for entry in &table.entries {
        if entry.key == "workload" {
            kind = Some(At::<WorkloadKind>::decode(&entry.node, sink));
        } else if !outer.take(entry, sink) {
            rest.push(entry);
        }
    }
    match kind {
        Some(Some(kind)) => {
            let workload = Keys::decode(kind, &rest, T::KEYS, sink);
            Some((outer, Some(workload)))
        }
        // The name of the workload is wrong, so its keys may well be right.
        Some(None) => Some((outer, None)),
        None => {
            for entry in rest {
                let keys = T::KEYS.iter().copied().chain(["workload"]);
                match workloads_with(&entry.key).as_slice() {
                    [] => unknown_key(entry, keys, sink),
                    kinds => {
                        let message = format!("`{}` without a workload", entry.key);
                        let hint = format!("add the key workload = {}", kinds.join(" or "));
                        sink.hinted(entry.key_span, message, hint);
                    }
                }
            }
            Some((outer, None))
        }
    }
}

/// The workloads that take a key, quoted.
fn workloads_with(key: &str) -> Vec<String> {
    let kinds = WorkloadKind::ALL.iter().filter(|kind| kind.keys().contains(&key));
    kinds.map(|kind| format!("\"{}\"", kind.name())).collect()
}

/// For the schema: the keys of a task with those of its workload.
#[derive(JsonSchema)]
#[allow(dead_code)]
struct TaskSchema {
    #[schemars(flatten)]
    table: TaskTable,
    #[schemars(flatten)]
    workload: Option<Keys>,
}

/// For the schema: the keys of a phase with those of its workload.
#[derive(JsonSchema)]
#[allow(dead_code)]
struct PhaseSchema {
    #[schemars(flatten)]
    table: PhaseTable,
    #[schemars(flatten)]
    workload: Keys,
}

impl JsonSchema for Task {
    fn schema_name() -> Cow<'static, str> {
        "Task".into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        crate::schema::closed(TaskSchema::json_schema(generator), "A program.")
    }
}

impl JsonSchema for Phase {
    fn schema_name() -> Cow<'static, str> {
        "Phase".into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        crate::schema::closed(PhaseSchema::json_schema(generator), "A named part of a task.")
    }
}
