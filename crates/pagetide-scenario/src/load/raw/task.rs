//! `[[task]]` and `[[task.phase]]`.

use super::workload::{workload_keys, Workload};
use crate::load::decode::{expected, table, unknown_key, Decode, Int, Keyed, Name, Time};
use crate::load::span::{At, Sink, Span};
use crate::load::tree::{Entry, Node, Value};
use crate::names::{Named, WorkloadKind};
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
    pub(crate) inline: Option<Workload>,
}

table! {
    /// A program.
    TaskTable {
        /// Its name; metrics are called NAME.metric and NAME.PHASE.metric.
        #[schemars(required)]
        name: At<Name>,
        /// Number of copies, called NAME.0, NAME.1 and so on if there are several (default 1).
        copies: At<Int<1, COPIES_MAX>>,
        /// The group it runs in (default: the root).
        group: At<Name>,
        /// When it starts, counted from the start of the run (default 0).
        start: At<Time>,
        /// The task whose end it waits for.
        after: At<String>,
        /// How long it waits from then (default 0).
        delay: At<Time>,
        /// It does not keep the run alive: it is stopped when all others ended (default false).
        background: At<bool>,
        /// The task whose end stops this one; it does not keep the run alive then.
        until: At<String>,
        /// Nice value (default 0).
        nice: At<Int<-20, 19>>,
        /// How often it goes through its phases (default 1).
        loops: At<Int<1, { u32::MAX as i64 }>>,
        /// What it does, in order.
        phase: Vec<Phase>,
    }
}

/// A named part of a task.
#[derive(Clone, Debug, Default)]
pub(crate) struct Phase {
    pub(crate) table: PhaseTable,
    pub(crate) workload: Option<Workload>,
}

table! {
    /// A named part of a task.
    PhaseTable {
        /// Its name; metrics are called TASK.NAME.metric.
        #[schemars(required)]
        name: At<Name>,
        /// Number of times, called NAME0, NAME1 and so on (default: once, called NAME).
        repeat: At<Int<1, PHASE_REPEAT_MAX>>,
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
fn decode_with_workload<T: Keyed>(node: &Node, sink: &mut Sink) -> Option<(T, Option<Workload>)> {
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
            let workload = decode_workload(kind, &rest, T::KEYS, sink);
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
    let kinds = WorkloadKind::ALL.iter().filter(|kind| workload_keys(**kind).contains(&key));
    kinds.map(|kind| format!("\"{}\"", kind.name())).collect()
}

fn decode_workload(
    kind: At<WorkloadKind>,
    rest: &[&Entry],
    outer_keys: &'static [&'static str],
    sink: &mut Sink,
) -> Workload {
    let span = kind.span;
    match kind.value {
        WorkloadKind::FileWrite => Workload::FileWrite(fill(kind, span, rest, outer_keys, sink)),
        WorkloadKind::FileRead => Workload::FileRead(fill(kind, span, rest, outer_keys, sink)),
        WorkloadKind::MappedRead => Workload::MappedRead(fill(kind, span, rest, outer_keys, sink)),
        WorkloadKind::Touch => Workload::Touch(fill(kind, span, rest, outer_keys, sink)),
        WorkloadKind::Interleave => Workload::Interleave(fill(kind, span, rest, outer_keys, sink)),
        WorkloadKind::Discard => Workload::Discard(fill(kind, span, rest, outer_keys, sink)),
        WorkloadKind::HighOrder => Workload::HighOrder(fill(kind, span, rest, outer_keys, sink)),
        WorkloadKind::KernelMemory => {
            Workload::KernelMemory(fill(kind, span, rest, outer_keys, sink))
        }
        WorkloadKind::KernelObjects => {
            Workload::KernelObjects(fill(kind, span, rest, outer_keys, sink))
        }
        WorkloadKind::Names => Workload::Names(fill(kind, span, rest, outer_keys, sink)),
        WorkloadKind::Pipes => Workload::Pipes(fill(kind, span, rest, outer_keys, sink)),
        WorkloadKind::WorkingSet => {
            Workload::WorkingSet(Box::new(fill(kind, span, rest, outer_keys, sink)))
        }
        WorkloadKind::Trace => Workload::Trace(fill(kind, span, rest, outer_keys, sink)),
        WorkloadKind::Build => Workload::Build(Box::new(fill(kind, span, rest, outer_keys, sink))),
        WorkloadKind::WriteControl => {
            Workload::WriteControl(fill(kind, span, rest, outer_keys, sink))
        }
        WorkloadKind::CreateGroup => {
            Workload::CreateGroup(fill(kind, span, rest, outer_keys, sink))
        }
        WorkloadKind::RemoveGroup => {
            Workload::RemoveGroup(fill(kind, span, rest, outer_keys, sink))
        }
        WorkloadKind::JoinGroup => Workload::JoinGroup(fill(kind, span, rest, outer_keys, sink)),
        WorkloadKind::Compute => Workload::Compute(fill(kind, span, rest, outer_keys, sink)),
        WorkloadKind::Sleep => Workload::Sleep(fill(kind, span, rest, outer_keys, sink)),
    }
}

fn fill<T: Keyed>(
    kind: At<WorkloadKind>,
    span: Span,
    rest: &[&Entry],
    outer_keys: &'static [&'static str],
    sink: &mut Sink,
) -> T {
    let mut table = T::default();
    table.place(span);
    for entry in rest {
        if table.take(entry, sink) {
            continue;
        }
        let keys = T::KEYS.iter().chain(outer_keys).copied();
        if workloads_with(&entry.key).is_empty() {
            unknown_key(entry, keys, sink);
            continue;
        }
        let message = format!("workload {} takes no `{}`", kind.value.name(), entry.key);
        let hint = format!("its keys are {}", T::KEYS.join(", "));
        sink.hinted(entry.key_span, message, hint);
    }
    table
}

/// For the schema: the keys of a task with those of its workload.
#[derive(JsonSchema)]
#[allow(dead_code)]
struct TaskSchema {
    #[schemars(flatten)]
    table: TaskTable,
    #[schemars(flatten)]
    workload: Option<Workload>,
}

/// For the schema: the keys of a phase with those of its workload.
#[derive(JsonSchema)]
#[allow(dead_code)]
struct PhaseSchema {
    #[schemars(flatten)]
    table: PhaseTable,
    #[schemars(flatten)]
    workload: Workload,
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
