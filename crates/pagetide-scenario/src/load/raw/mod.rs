//! The format: every table of a scenario file with its keys. The doc comments in these files become
//! the texts of the JSON Schema; docs/scenario.md has the full description.

mod content;
mod control_schema;
mod expect;
mod knobs;
mod machine;
mod report;
pub(crate) mod task;

pub(crate) use expect::ExpectTable;
pub(crate) use knobs::{ControlName, ControlText, Knobs, PolicyTable, RawGroup, RawWrite};
pub(crate) use machine::{
    page_size, DiskTable, FileTable, FreeArea, LatencyTable, MachineTable, MemoryNode, RawCma,
    RawLatency, SwapTable, ZoneTable, ZswapTable,
};
pub(crate) use report::{ReferenceTable, ReportTable};
pub(crate) use task::{RawTask, RawWatcher, ResidentTable};

use super::decode::{decode_table, expected, table, Decode, Int, Label, Time};
use super::span::{ProblemSink, Spanned};
use super::tree::{TomlNode, TomlValue};
use crate::workload::WorkloadKeys;
use schemars::{json_schema, JsonSchema, Schema, SchemaGenerator};
use std::borrow::Cow;

table! {
    /// A scenario of Pagetide: a machine, its tasks, and the variants to compare.
    ScenarioTable {
        /// Short name (default: the file's name without its ending).
        name: Spanned<Label>,
        /// One-line title, shown by `pagetide list`.
        title: Spanned<String>,
        /// Path of a scenario that this one extends, relative to this file.
        base: Spanned<String>,
        /// Parts of the base to leave out, by path: ["variant", "task.writer"].
        without: Vec<Spanned<String>>,
        /// Purpose of the scenario, in words.
        description: Spanned<String>,
        /// Number of runs of each variant, each with the next seed (default 5).
        repeats: Spanned<Int<1, 100_000>>,
        /// Seed of the first run (default 1).
        seed: Spanned<Int<0, { i64::MAX }>>,
        /// Simulated time after which a run is stopped and reported as cut (default 1h).
        time_limit: Spanned<Time>,
        /// Hardware.
        #[schemars(required)]
        machine: MachineTable,
        /// Control files of the machine, written before anything runs, by the kernel's names.
        sysctl: Knobs,
        /// Which built-in behaviours to use.
        policy: PolicyTable,
        /// Memory groups.
        group: Vec<RawGroup>,
        /// Files on the machine's disks.
        file: Vec<FileTable>,
        /// Tasks: the programs that run.
        #[schemars(required)]
        task: Vec<RawTask>,
        /// Watchers: programs that kill or reclaim when memory is short.
        watcher: Vec<RawWatcher>,
        /// Variants to compare; without this table there is one, called `default`.
        variant: Vec<VariantTable>,
        /// Published figures to print next to the results.
        reference: ReferenceTable,
        /// Contents of the table of results.
        report: ReportTable,
        /// Conditions that every run must meet; `pagetide run` reports failed ones and exits with
        /// 1.
        expect: Vec<ExpectTable>,
        /// Knobs for `pagetide fuzz`.
        fuzz: FuzzTable,
    }
}

table! {
    /// Knobs for `pagetide fuzz`.
    FuzzTable as "Fuzz" {
        /// Knobs with their values, as in `pagetide find --knob`: "vm.swappiness=0..200",
        /// "machine.cpus=1,2,8".
        #[schemars(required)]
        knobs: Vec<Spanned<String>>,
    }
}

table! {
    /// A column of the table of results: the scenario with some changes.
    VariantTable as "Variant" {
        /// Name of the variant.
        #[schemars(required)]
        name: Spanned<Label>,
        /// Control files of the machine to write in addition to those of the scenario, or instead.
        sysctl: Knobs,
        /// Policies that replace those of the scenario.
        policy: PolicyTable,
        /// Other values by path: { "machine.memory" = "4GiB", "task.stream.nice" = 5 }.
        set: Settings,
    }
}

/// Values by path. `variants` reads them from the tree before the tree is decoded.
#[derive(Clone, Debug, Default)]
pub(crate) struct Settings;

impl Decode for Settings {
    fn decode(node: &TomlNode, sink: &mut ProblemSink) -> Option<Self> {
        if !matches!(node.value, TomlValue::Table(_)) {
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

impl ScenarioTable {
    pub(crate) fn workloads(&self) -> impl Iterator<Item = &WorkloadKeys> {
        let tasks = self.task.as_deref().unwrap_or_default();
        let phases = tasks.iter().flat_map(|task| task.table.phase.as_deref().unwrap_or_default());
        let inline = tasks.iter().filter_map(|task| task.inline.as_ref());
        phases.filter_map(|phase| phase.workload.as_ref()).chain(inline)
    }
}

/// Decodes a whole scenario.
pub(crate) fn decode(root: &TomlNode, sink: &mut ProblemSink) -> Option<ScenarioTable> {
    let mut scenario: ScenarioTable = decode_table(root, sink)?;
    if let Some(watchers) = scenario.watcher.take() {
        let tasks = watchers.into_iter().map(|RawWatcher(task)| task);
        scenario.task.get_or_insert_default().extend(tasks);
    }
    Some(scenario)
}
