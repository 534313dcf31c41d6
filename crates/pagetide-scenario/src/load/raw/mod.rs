//! The format: every table of a scenario file with its keys. The doc comments in these files become
//! the texts of the JSON Schema; docs/scenario.md has the full description.

mod expect;
mod knobs;
mod machine;
mod report;
mod task;

pub(crate) use expect::Expect;
pub(crate) use knobs::{
    policy_keys, ControlName, ControlText, Group, Knobs, Policies, Write, KERNEL_KEY, PLUGIN_KEYS,
};
pub(crate) use machine::{page_size, Disk, File, FreeArea, Machine, MemoryNode, SwapTable, Zone};
pub(crate) use report::{Reference, Report};
pub(crate) use task::Task;

use super::decode::{decode_table, expected, table, Decode, Int, Label, Time};
use super::span::{At, Sink};
use super::tree::{Node, Value};
use crate::workload::Keys;
use schemars::{json_schema, JsonSchema, Schema, SchemaGenerator};
use std::borrow::Cow;

table! {
    /// A scenario of Pagetide: a machine, what runs on it, and the variants to compare.
    Scenario {
        /// Short name; the file's name without its ending by default.
        name: At<Label>,
        /// One line for `pagetide list`.
        title: At<String>,
        /// What the scenario is about.
        description: At<String>,
        /// Number of runs of each variant, with seeds counting up (default 5).
        repeats: At<Int<1, 100_000>>,
        /// First seed (default 1).
        seed: At<Int<0, { i64::MAX }>>,
        /// Simulated time after which a run is cut, with a note (default 1h).
        time_limit: At<Time>,
        /// Hardware.
        #[schemars(required)]
        machine: Machine,
        /// Knobs by the kernel's names, written before anything runs.
        sysctl: Knobs,
        /// Which of the built behaviours to use.
        policy: Policies,
        /// Memory groups.
        group: Vec<Group>,
        /// Files on the machine's disks.
        file: Vec<File>,
        /// Programs.
        #[schemars(required)]
        task: Vec<Task>,
        /// What to compare; one variant called `default` if there is none.
        variant: Vec<Variant>,
        /// Published figures to print beside ours.
        reference: Reference,
        /// What the table shows.
        report: Report,
        /// What holds in every run; `pagetide run` says what does not, and exits with 1.
        expect: Vec<Expect>,
    }
}

table! {
    /// One column of the table: the scenario with some of it changed.
    Variant {
        /// Its name.
        #[schemars(required)]
        name: At<Label>,
        /// Knobs to write besides, or instead of, those of the scenario.
        sysctl: Knobs,
        /// Policies instead of those of the scenario.
        policy: Policies,
        /// Any other values: { "machine.memory" = "4GiB", "task.stream.nice" = 5 }.
        set: Settings,
    }
}

/// Values by their paths. They are read from the tree, before it is decoded.
#[derive(Clone, Debug, Default)]
pub(crate) struct Settings;

impl Decode for Settings {
    fn decode(node: &Node, sink: &mut Sink) -> Option<Self> {
        if !matches!(node.value, Value::Table(_)) {
            let hint = "write set = { \"machine.memory\" = \"4GiB\" }";
            expected(node, "a table", hint, sink);
            return None;
        }
        Some(Settings)
    }
}

impl JsonSchema for Settings {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "Settings".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "object" })
    }
}

impl Scenario {
    pub(crate) fn workloads(&self) -> impl Iterator<Item = &Keys> {
        let tasks = self.task.as_deref().unwrap_or_default();
        let phases = tasks.iter().flat_map(|task| task.table.phase.as_deref().unwrap_or_default());
        let inline = tasks.iter().filter_map(|task| task.inline.as_ref());
        phases.filter_map(|phase| phase.workload.as_ref()).chain(inline)
    }
}

/// Reads a whole scenario.
pub(crate) fn decode(root: &Node, sink: &mut Sink) -> Option<Scenario> {
    decode_table(root, sink)
}
