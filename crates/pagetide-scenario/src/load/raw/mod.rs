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
    /// A scenario of Pagetide: a machine, its tasks, and the variants to compare.
    Scenario {
        /// Short name (default: the file's name without its ending).
        name: At<Label>,
        /// One-line title, shown by `pagetide list`.
        title: At<String>,
        /// Purpose of the scenario, in words.
        description: At<String>,
        /// Number of runs of each variant, each with the next seed (default 5).
        repeats: At<Int<1, 100_000>>,
        /// Seed of the first run (default 1).
        seed: At<Int<0, { i64::MAX }>>,
        /// Simulated time after which a run is stopped and reported as cut (default 1h).
        time_limit: At<Time>,
        /// Hardware.
        #[schemars(required)]
        machine: Machine,
        /// Control files of the machine, written before anything runs, by the kernel's names.
        sysctl: Knobs,
        /// Which built-in behaviours to use.
        policy: Policies,
        /// Memory groups.
        group: Vec<Group>,
        /// Files on the machine's disks.
        file: Vec<File>,
        /// Tasks: the programs that run.
        #[schemars(required)]
        task: Vec<Task>,
        /// Variants to compare; without this table there is one, called `default`.
        variant: Vec<Variant>,
        /// Published figures to print next to the results.
        reference: Reference,
        /// Contents of the table of results.
        report: Report,
        /// Conditions that every run must meet; `pagetide run` reports failed ones and exits with
        /// 1.
        expect: Vec<Expect>,
    }
}

table! {
    /// A column of the table of results: the scenario with some changes.
    Variant {
        /// Name of the variant.
        #[schemars(required)]
        name: At<Label>,
        /// Control files of the machine to write in addition to those of the scenario, or instead.
        sysctl: Knobs,
        /// Policies that replace those of the scenario.
        policy: Policies,
        /// Other values by path: { "machine.memory" = "4GiB", "task.stream.nice" = 5 }.
        set: Settings,
    }
}

/// Values by path. `variants` reads them from the tree before the tree is decoded.
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

/// Decodes a whole scenario.
pub(crate) fn decode(root: &Node, sink: &mut Sink) -> Option<Scenario> {
    decode_table(root, sink)
}
