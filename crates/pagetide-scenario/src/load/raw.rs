//! The format: every table of a scenario file with its keys. The documentation here is what the
//! JSON Schema says; docs/scenario.md tells it at length.

use super::decode::{
    decode_table, expected, table, unknown_key, Decode, Hundredths, Int, Keyed, Label, Name, Rate,
    Size, Time,
};
use super::span::{At, Sink, Span};
use super::tree::{Entry, Node, Value};
use crate::names::{
    AdviceKind, DirectReclaimPolicy, DiskModel, KswapdPolicy, OrderKind, WatermarksPolicy,
    WorkloadKind, ZoneName,
};
use schemars::{json_schema, JsonSchema, Schema, SchemaGenerator};
use std::borrow::Cow;

/// CPUs of a machine.
pub(crate) const CPUS_MAX: i64 = 1024;
/// Copies of a task.
pub(crate) const COPIES_MAX: i64 = 4096;
/// Repeats of a phase.
pub(crate) const PHASE_REPEAT_MAX: i64 = 4096;

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
        policy: Policy,
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
    }
}

table! {
    /// Hardware. `memory`, `reserved`, `movable` and `zone` are for machines with one node; with
    /// several, write `[[machine.node]]`.
    Machine {
        /// Number of CPUs (default 1).
        cpus: At<Int<1, CPUS_MAX>>,
        /// Memory present.
        memory: At<Size>,
        /// Memory that the kernel keeps for good, off the last zones first (default 0).
        reserved: At<Size>,
        /// Memory at the top given to zone Movable (default 0).
        movable: At<Size>,
        /// Zones to the page, instead of `memory`.
        zone: Vec<Zone>,
        /// NUMA nodes.
        node: Vec<MemoryNode>,
        /// Disks; one SSD called `disk` if there is none.
        disk: Vec<Disk>,
        /// Swap area: a size, or a table.
        swap: Swap,
    }
}

table! {
    /// A NUMA node.
    MemoryNode {
        /// Memory present.
        memory: At<Size>,
        /// Memory that the kernel keeps for good, off the last zones first (default 0).
        reserved: At<Size>,
        /// Memory at the top given to zone Movable (default 0).
        movable: At<Size>,
        /// Zones to the page, instead of `memory`.
        zone: Vec<Zone>,
    }
}

table! {
    /// A zone described to the page.
    Zone {
        /// Which zone.
        #[schemars(required)]
        name: At<ZoneName>,
        /// Memory present.
        #[schemars(required)]
        present: At<Size>,
        /// Memory that the allocator manages (default: all present).
        managed: At<Size>,
        /// Memory free when the run starts (default: all managed).
        free: At<Size>,
    }
}

table! {
    /// A disk.
    Disk {
        /// Its name.
        #[schemars(required)]
        name: At<Name>,
        /// The preset.
        #[schemars(required)]
        model: At<DiskModel>,
        /// Time of a read (default: the preset's).
        read_latency: At<Time>,
        /// Time of a write (default: the preset's).
        write_latency: At<Time>,
        /// Reading rate (default: the preset's).
        read_bandwidth: At<Rate>,
        /// Writing rate (default: the preset's).
        write_bandwidth: At<Rate>,
        /// Requests served at a time (default: the preset's).
        queue_depth: At<Int<1, 65536>>,
        /// Faults to inject.
        faults: DiskFaults,
    }
}

table! {
    /// Faults that a disk injects, decided by the run's seed.
    DiskFaults {
        /// Failed reads in a million (default 0).
        read_error_ppm: At<Int<0, 1_000_000>>,
        /// Failed writes in a million (default 0).
        write_error_ppm: At<Int<0, 1_000_000>>,
        /// Slow requests in a million (default 0).
        slow_ppm: At<Int<0, 1_000_000>>,
        /// How many times slower a slow request is (default 10).
        slow_factor: At<Int<1, 1_000_000>>,
    }
}

table! {
    /// The swap area as a table.
    SwapTable {
        /// Its size.
        #[schemars(required)]
        size: At<Size>,
        /// The disk it is on (default: the first).
        disk: At<Name>,
        /// Pretend it is full once so much is used (fault injection).
        full_after: At<Size>,
    }
}

/// The swap area: a size, or a table.
#[derive(Clone, Debug)]
pub(crate) struct Swap(pub(crate) SwapTable);

impl Decode for Swap {
    fn decode(node: &Node, sink: &mut Sink) -> Option<Self> {
        if matches!(node.value, Value::Table(_)) {
            return SwapTable::decode(node, sink).map(Swap);
        }
        let size = At::<Size>::decode(node, sink)?;
        Some(Swap(SwapTable { at: node.span, size: Some(size), ..SwapTable::default() }))
    }
}

impl JsonSchema for Swap {
    fn schema_name() -> Cow<'static, str> {
        "Swap".into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let size = generator.subschema_for::<Size>();
        let table = generator.subschema_for::<SwapTable>();
        json_schema!({ "anyOf": [size, table] })
    }
}

table! {
    /// Which of the built behaviours to use. docs/scenario.md says what each stands for.
    Policy {
        /// How the low and high watermarks follow (default scale-factor).
        watermarks: At<WatermarksPolicy>,
        /// How kswapd balances a node (default linux-6.1).
        kswapd: At<KswapdPolicy>,
        /// How an allocating task reclaims (default linux-6.1).
        direct_reclaim: At<DirectReclaimPolicy>,
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

table! {
    /// A file on a disk.
    File {
        /// Its name.
        #[schemars(required)]
        name: At<Name>,
        /// Its size when the run starts (default 0).
        size: At<Size>,
        /// Nothing but holes: reading it needs no disk (default false).
        sparse: At<bool>,
        /// The disk it is on (default: the first).
        disk: At<Name>,
        /// Every task that names it gets a file of its own (default false).
        private: At<bool>,
    }
}

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

/// What a phase does, by the key `workload`.
#[derive(Clone, Debug, JsonSchema)]
#[schemars(tag = "workload", rename_all = "kebab-case")]
pub(crate) enum Workload {
    /// Appends to a file with write() calls, as dd does.
    FileWrite(FileWrite),
    /// Reads a file with read() calls from its start, round its end.
    FileRead(FileRead),
    /// Maps a file and reads one byte of each page.
    MappedRead(MappedRead),
    /// Writes or reads each page of an anonymous region.
    Touch(Touch),
    /// Hot and cold accesses over anonymous and/or file memory.
    WorkingSet(WorkingSet),
    /// Replays a page trace.
    Trace(Trace),
    /// Uses the CPU.
    Compute(Compute),
    /// Sleeps.
    Sleep(Sleep),
}

table! {
    /// Appends to a file.
    FileWrite {
        /// The file.
        #[schemars(required)]
        file: At<Name>,
        /// How much (default: until it is stopped).
        total: At<Size>,
        /// Bytes a call (default 64KiB).
        block: At<Size>,
    }
}

table! {
    /// Reads a file.
    FileRead {
        /// The file.
        #[schemars(required)]
        file: At<Name>,
        /// How much (default: the file once).
        total: At<Size>,
        /// Bytes a call (default 64KiB).
        block: At<Size>,
    }
}

table! {
    /// Reads a mapped file.
    MappedRead {
        /// The file.
        #[schemars(required)]
        file: At<Name>,
        /// How much of it, from its start (default: all).
        size: At<Size>,
        /// Which page comes next (default sequential).
        order: At<OrderKind>,
        /// Exponent of order zipf (default 1.0).
        exponent: At<Hundredths>,
        /// Advice on the mapping (default normal).
        advice: At<AdviceKind>,
        /// Passes over it (default 1).
        passes: At<Int<0, { u32::MAX as i64 }>>,
        /// Phases of a task that name the same region share one mapping (default: the file).
        region: At<Name>,
    }
}

table! {
    /// Touches anonymous memory.
    Touch {
        /// How much.
        #[schemars(required)]
        size: At<Size>,
        /// Write, not read (default true).
        write: At<bool>,
        /// Which page comes next (default sequential).
        order: At<OrderKind>,
        /// Exponent of order zipf (default 1.0).
        exponent: At<Hundredths>,
        /// Passes over it (default 1).
        passes: At<Int<0, { u32::MAX as i64 }>>,
        /// Phases of a task that name the same region share it (default anon).
        region: At<Name>,
    }
}

table! {
    /// Hot and cold accesses.
    WorkingSet {
        /// Size of the anonymous region (default: none).
        anon: At<Size>,
        /// Its name: phases of a task that name the same region share it (default anon).
        anon_region: At<Name>,
        /// The file that is mapped (default: none).
        file: At<Name>,
        /// How much of it, from its start (default: all).
        file_size: At<Size>,
        /// Name of its mapping (default: the file).
        file_region: At<Name>,
        /// Advice on the mapping (default normal).
        advice: At<AdviceKind>,
        /// First touch every page in order, anonymous before file (default false).
        populate: At<bool>,
        /// Number of accesses (default 0).
        accesses: At<Int<0, { i64::MAX }>>,
        /// Per cent of accesses that go to the anonymous region if there are both (default 50).
        anon_percent: At<Int<0, 100>>,
        /// Per cent of accesses that are hot (default 80).
        hot_access_percent: At<Int<0, 100>>,
        /// Per cent of pages that are hot (default 20).
        hot_page_percent: At<Int<0, 100>>,
        /// Per cent of anonymous accesses that write (default 100).
        write_percent: At<Int<0, 100>>,
        /// Start value of the generator (default: from the run's seed).
        generator_seed: At<Int<0, { i64::MAX }>>,
    }
}

table! {
    /// Replays a page trace.
    Trace {
        /// The trace, relative to the scenario file.
        #[schemars(required)]
        path: At<String>,
        /// Times through it (default 1).
        passes: At<Int<0, { u32::MAX as i64 }>>,
    }
}

table! {
    /// Uses the CPU.
    Compute {
        /// For so long.
        #[schemars(required)]
        duration: At<Time>,
    }
}

table! {
    /// Sleeps.
    Sleep {
        /// For so long.
        #[schemars(required)]
        duration: At<Time>,
    }
}

impl Decode for Task {
    fn decode(node: &Node, sink: &mut Sink) -> Option<Self> {
        let (table, inline) = decode_with_workload::<TaskTable>(node, sink)?;
        Some(Task { table, inline })
    }
}

impl Decode for Phase {
    fn decode(node: &Node, sink: &mut Sink) -> Option<Self> {
        let (table, workload) = decode_with_workload::<PhaseTable>(node, sink)?;
        Some(Phase { table, workload })
    }
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
    use crate::names::Named;
    let kinds = WorkloadKind::ALL.iter().filter(|kind| workload_keys(**kind).contains(&key));
    kinds.map(|kind| format!("\"{}\"", kind.name())).collect()
}

/// The keys of a workload.
pub(crate) fn workload_keys(kind: WorkloadKind) -> &'static [&'static str] {
    match kind {
        WorkloadKind::FileWrite => FileWrite::KEYS,
        WorkloadKind::FileRead => FileRead::KEYS,
        WorkloadKind::MappedRead => MappedRead::KEYS,
        WorkloadKind::Touch => Touch::KEYS,
        WorkloadKind::WorkingSet => WorkingSet::KEYS,
        WorkloadKind::Trace => Trace::KEYS,
        WorkloadKind::Compute => Compute::KEYS,
        WorkloadKind::Sleep => Sleep::KEYS,
    }
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
        WorkloadKind::WorkingSet => Workload::WorkingSet(fill(kind, span, rest, outer_keys, sink)),
        WorkloadKind::Trace => Workload::Trace(fill(kind, span, rest, outer_keys, sink)),
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
    use crate::names::Named;
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

table! {
    /// One column of the table: the scenario with some of it changed.
    Variant {
        /// Its name.
        #[schemars(required)]
        name: At<Label>,
        /// Knobs to write besides, or instead of, those of the scenario.
        sysctl: Knobs,
        /// Policies instead of those of the scenario.
        policy: Policy,
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

table! {
    /// What the table shows.
    Report {
        /// Metric keys of the rows, in order (default: a choice of the program's).
        rows: Vec<At<String>>,
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

/// A published figure.
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
                let hint = "besides `source`, it has a table for each variant";
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

/// A number, or a time or size with its unit, which count in seconds and in bytes.
fn decode_figure(entry: &Entry, sink: &mut Sink) -> Option<Figure> {
    use super::units::{parse_size, parse_time, UnitError};
    let key = At { value: entry.key.clone(), span: entry.key_span };
    let value = match &entry.node.value {
        Value::Integer(value) => Some(*value as f64),
        Value::Float(text) => text.parse().ok().filter(|value: &f64| value.is_finite()),
        Value::Text(text) => match (parse_time(text), parse_size(text)) {
            (Ok(ns), _) => Some(ns as f64 / 1e9),
            (_, Ok(bytes)) => Some(bytes as f64),
            (Err(UnitError { message, hint }), _) => {
                sink.hinted(entry.node.span, format!("`{}`: {message}", super::span::clip(text)), hint);
                return None;
            }
        },
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

/// Reads a whole scenario.
pub(crate) fn decode(root: &Node, sink: &mut Sink) -> Option<Scenario> {
    decode_table(root, sink)
}
