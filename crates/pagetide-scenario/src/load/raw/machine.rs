//! `[machine]` and `[[file]]`.

use crate::load::decode::{decode_named, expected, table, Decode, Int, NameKey, Rate, Size, Time};
use crate::load::raw::content::ContentTable;
use crate::load::span::{clip, ProblemSink, Spanned};
use crate::load::tree::{TomlNode, TomlValue};
use crate::load::units::parse_size;
use crate::model::costs::raw::Costs;
use crate::names::{Compressor, DiskModel, ZoneName};
use pagetide_core::units::page_size::PageSize;
use schemars::{json_schema, JsonSchema, Schema, SchemaGenerator};
use serde_json::json;
use std::borrow::Cow;

const CPUS_MAX: i64 = 1024;

table! {
    /// Hardware. `memory`, `reserved`, `movable` and `zone` describe a machine with one node; for
    /// several nodes, write `[[machine.node]]`.
    MachineTable as "Machine" {
        /// Number of CPUs (default 1).
        cpus: Spanned<Int<1, CPUS_MAX>>,
        /// Size of a page (default 4KiB).
        page_size: Spanned<PageBytes>,
        /// Memory present.
        memory: Spanned<Size>,
        /// Memory that the kernel keeps permanently, taken from the last zones first (default 0).
        reserved: Spanned<Size>,
        /// Memory at the top of the node that becomes zone Movable (default 0).
        movable: Spanned<Size>,
        /// Zones with exact sizes, instead of `memory`.
        zone: Vec<ZoneTable>,
        /// NUMA nodes.
        node: Vec<MemoryNode>,
        /// Disks; without this table the machine has one SSD called `disk`.
        disk: Vec<DiskTable>,
        /// Swap areas: a size, a table, or a list of these.
        swap: RawSwap,
        /// Compressed memory in front of the swap areas on disks (default: none).
        zswap: RawZswap,
        /// Contents of the pages of tasks, for compressed swap.
        content: ContentTable,
        /// Charges kernel objects to groups; false: boot option cgroup.memory=nokmem (default
        /// true).
        kmem_accounting: Spanned<bool>,
        /// Shares among a group's children the part of its memory.min and memory.low that they do
        /// not claim: the mount option memory_recursiveprot (default false).
        memory_recursiveprot: Spanned<bool> = false,
        /// Clears every page when it is allocated: kernel parameter init_on_alloc, which many
        /// distributions set (default: the build setting of a real kernel; not in the simulator).
        init_on_alloc: Spanned<bool>,
        /// Caches of kernel objects with other settings than the kernel's own.
        cache: Vec<CacheTable>,
        /// Costs of operations on this machine; a cost that is left out has the simulator's value.
        costs: Costs,
    }
}

table! {
    /// Settings of a cache of kernel objects: its name and at least one other key.
    CacheTable as "Cache" of "the cache" {
        /// Name of the cache, as in /proc/slabinfo.
        name: Spanned<String> => required "\"dentry\"",
        /// log2 of the pages in a slab (default: from the object size and the number of CPUs).
        order: Spanned<Int<0, 10>>,
        /// Number of empty slabs that a node keeps (default: from the object size).
        min_partial: Spanned<Int<0, { u32::MAX as i64 }>>,
        /// Free objects that a CPU's list of partial slabs may hold (default: from the object
        /// size).
        cpu_partial: Spanned<Int<0, { u32::MAX as i64 }>>,
    }
}

/// A page size: one of three sizes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PageBytes(pub(crate) PageSize);

impl PageBytes {
    /// The page size that a value stands for, if it is valid. The value cannot be in pages.
    fn read(value: &TomlValue) -> Option<PageSize> {
        let bytes = match value {
            TomlValue::Integer(bytes) => u64::try_from(*bytes).ok()?,
            TomlValue::Text(text) if text.contains('p') => return None,
            TomlValue::Text(text) => parse_size(text, PageSize::default()).ok()?,
            _ => return None,
        };
        PageSize::from_bytes(bytes)
    }
}

impl Decode for PageBytes {
    fn decode(node: &TomlNode, sink: &mut ProblemSink) -> Option<Self> {
        let found = PageBytes::read(&node.value);
        if found.is_none() {
            let hint = "write \"4KiB\", \"16KiB\" or \"64KiB\"";
            match &node.value {
                TomlValue::Text(text) => {
                    sink.hinted(node.span, format!("`{}` is not a page size", clip(text)), hint);
                }
                TomlValue::Integer(bytes) => {
                    sink.hinted(node.span, format!("{bytes} bytes is not a page size"), hint);
                }
                _ => expected(node, "a page size", hint, sink),
            }
        }
        found.map(PageBytes)
    }
}

impl JsonSchema for PageBytes {
    fn schema_name() -> Cow<'static, str> {
        "PageSize".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "anyOf": [
            { "type": "string", "pattern": "^(4|16|64) *([Kk]|KiB)$" },
            { "enum": PageSize::ALL.map(PageSize::bytes) },
        ] })
    }
}

/// Reads the page size from the tree before the rest is decoded, because sizes may be in pages.
/// Falls back to the default if the key is absent or invalid; decoding reports an invalid one.
pub(crate) fn page_size(root: &TomlNode) -> PageSize {
    let machine = root.as_table().and_then(|root| root.get("machine"));
    let key = machine.and_then(TomlNode::as_table).and_then(|machine| machine.get("page_size"));
    key.and_then(|key| PageBytes::read(&key.value)).unwrap_or_default()
}

table! {
    /// A NUMA node.
    MemoryNode {
        /// Memory present.
        memory: Spanned<Size>,
        /// Memory that the kernel keeps permanently, taken from the last zones first (default 0).
        reserved: Spanned<Size>,
        /// Memory at the top of the node that becomes zone Movable (default 0).
        movable: Spanned<Size>,
        /// Zones with exact sizes, instead of `memory`.
        zone: Vec<ZoneTable>,
    }
}

table! {
    /// A zone with exact sizes.
    ZoneTable as "Zone" of "the zone" {
        /// Name of the zone.
        name: Spanned<ZoneName> => required "\"DMA32\"",
        /// Memory present.
        present: Spanned<Size> => required "\"4096 pages\"",
        /// Memory that the allocator manages (default: all present).
        managed: Spanned<Size>,
        /// Memory free when the run starts (default: all managed).
        free: Spanned<Size>,
        /// Part of `managed` that boot freed only after it had computed the watermarks: initial RAM
        /// disk and init sections (default: none). It lowers the kernel's own watermarks slightly.
        late: Spanned<Size> = Size(0),
        /// Free lists of unmovable pages when the run starts, as in /proc/pagetypeinfo. If free
        /// lists of any type are given, `free` is the sum of the lists.
        unmovable: FreeArea,
        /// Free lists of movable pages when the run starts.
        movable: FreeArea,
        /// Free lists of reclaimable pages when the run starts.
        reclaimable: FreeArea,
        /// CMA memory, which only movable pages can use: the size of an area of whole pageblocks at
        /// the end of the zone, or its free lists (default: none).
        cma: RawCma,
    }
}

/// The CMA memory of a zone: a size, or free lists.
#[derive(Clone, Debug)]
pub(crate) enum RawCma {
    Area(Spanned<Size>),
    Lists(FreeArea),
}

impl Decode for RawCma {
    fn decode(node: &TomlNode, sink: &mut ProblemSink) -> Option<Self> {
        if matches!(node.value, TomlValue::Table(_)) {
            return FreeArea::decode(node, sink).map(RawCma::Lists);
        }
        Spanned::decode(node, sink).map(RawCma::Area)
    }
}

impl JsonSchema for RawCma {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "Cma".into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let size = generator.subschema_for::<Size>();
        let lists = generator.subschema_for::<FreeArea>();
        json_schema!({ "anyOf": [size, lists] })
    }
}

table! {
    /// Free blocks of one migrate type in a zone.
    FreeArea {
        /// Numbers of free blocks of order 0, 1, 2 and so on, at most 11 (default: none).
        blocks: Vec<Int<0, { u32::MAX as i64 }>>,
        /// Number of pageblocks of this type (default: as many as its free blocks need).
        pageblocks: Spanned<Int<0, { u32::MAX as i64 }>> = Int(0),
    }
}

table! {
    /// A disk.
    DiskTable as "Disk" of "the disk" {
        /// Name of the disk.
        name: Spanned<NameKey> => required "\"ssd\"",
        /// Preset that gives the defaults of the other keys.
        model: Spanned<DiskModel> => required "\"ssd\"",
        /// Time of a read, or a distribution of times (default: the preset's).
        read_latency: RawLatency,
        /// Time of a write, or a distribution of times (default: the preset's).
        write_latency: RawLatency,
        /// Read bandwidth (default: the preset's).
        read_bandwidth: Spanned<Rate>,
        /// Write bandwidth (default: the preset's).
        write_bandwidth: Spanned<Rate>,
        /// Number of requests served at the same time (default: the preset's).
        queue_depth: Spanned<Int<1, 65536>>,
        /// Whether the kernel treats the disk as rotational (default: the preset's).
        rotational: Spanned<bool>,
        /// Faults to inject.
        faults: DiskFaultsTable,
    }
}

table! {
    /// A distribution of latencies: percentiles, or a recorded histogram.
    LatencyTable as "Latency" {
        /// Shortest time (default: the lowest percentile).
        min: Spanned<Time>,
        /// Time that 1 % of the requests do not exceed.
        p1: Spanned<Time>,
        /// Time that 10 % do not exceed.
        p10: Spanned<Time>,
        /// Time that 25 % do not exceed.
        p25: Spanned<Time>,
        /// Time that 50 % do not exceed.
        p50: Spanned<Time>,
        /// Time that 75 % do not exceed.
        p75: Spanned<Time>,
        /// Time that 90 % do not exceed.
        p90: Spanned<Time>,
        /// Time that 95 % do not exceed.
        p95: Spanned<Time>,
        /// Time that 99 % do not exceed.
        p99: Spanned<Time>,
        /// Time that 99.9 % do not exceed.
        p999: Spanned<Time>,
        /// Time that 99.99 % do not exceed.
        p9999: Spanned<Time>,
        /// Longest time (default: the highest percentile).
        max: Spanned<Time>,
        /// File with a recorded histogram, relative to the file that names it.
        file: Spanned<String>,
        /// Mean to which all times are scaled (default: they are not scaled).
        mean: Spanned<Time>,
    }
}

/// The latency of a disk: a time, or a distribution.
#[derive(Clone, Debug)]
pub(crate) enum RawLatency {
    Fixed(Time),
    Spread(Box<LatencyTable>),
}

impl Decode for RawLatency {
    fn decode(node: &TomlNode, sink: &mut ProblemSink) -> Option<Self> {
        if matches!(node.value, TomlValue::Table(_)) {
            return LatencyTable::decode(node, sink).map(|it| RawLatency::Spread(Box::new(it)));
        }
        Time::decode(node, sink).map(RawLatency::Fixed)
    }
}

impl JsonSchema for RawLatency {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "DiskLatency".into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let time = generator.subschema_for::<Time>();
        let table = generator.subschema_for::<LatencyTable>();
        json_schema!({ "anyOf": [time, table] })
    }
}

table! {
    /// Faults that a disk injects; the seed of the run decides which requests they hit.
    DiskFaultsTable as "DiskFaults" {
        /// Failed reads per million (default 0).
        read_error_ppm: Spanned<Int<0, 1_000_000>> = Int(0),
        /// Failed writes per million (default 0).
        write_error_ppm: Spanned<Int<0, 1_000_000>> = Int(0),
        /// Slow requests per million (default 0).
        slow_ppm: Spanned<Int<0, 1_000_000>> = Int(0),
        /// How many times slower a slow request is (default 10).
        slow_factor: Spanned<Int<1, 1_000_000>> = Int(10),
    }
}

table! {
    /// A swap area as a table.
    SwapTable of "the swap area" {
        /// Size of the swap area on a disk.
        size: Spanned<Size>,
        /// Disk that holds it (default: the first).
        disk: Spanned<NameKey>,
        /// Size of the zram device that is the swap area: compressed memory instead of a disk. It is
        /// the size of the pages before compression.
        zram: Spanned<Size>,
        /// Algorithm of the zram device (default lzo-rle).
        algorithm: Spanned<AlgorithmName>,
        /// Most memory that the zram device takes; further pages stay in memory (default: no limit).
        mem_limit: Spanned<Size>,
        /// Disk behind the zram device, to which a task can write its pages (default: none).
        backing: Spanned<NameKey>,
        /// Size of the part of the disk that is behind the zram device (default: as large as the device).
        backing_size: Spanned<Size>,
        /// Areas of a higher priority are used first, and areas of equal priority take turns.
        /// Default: -2 for the first area without a priority, -3 for the next, and so on.
        priority: Spanned<Int<{ i16::MIN as i64 }, { i16::MAX as i64 }>>,
        /// Reports the area as full once this much is used (fault injection).
        full_after: Spanned<Size>,
    }
}

table! {
    /// zswap: pages that are swapped out are compressed in memory, and go to their disk when its pool
    /// is full.
    ZswapTable as "Zswap" of "zswap" {
        /// Most memory that the pool takes, in percent of the machine's (default 20).
        max_pool_percent: Spanned<Int<0, 100>>,
        /// A full pool takes pages again below this part of its limit, in percent (default 90).
        accept_threshold_percent: Spanned<Int<0, 100>>,
        /// Algorithm (default lzo).
        compressor: Spanned<AlgorithmName>,
        /// Whether reclaim also writes pages of the pool to their disks, as the shrinker of Linux 6.8
        /// (default false).
        shrinker: Spanned<bool>,
    }
}

/// zswap as a table.
#[derive(Clone, Debug)]
pub(crate) struct RawZswap(pub(crate) ZswapTable);

impl Decode for RawZswap {
    fn decode(node: &TomlNode, sink: &mut ProblemSink) -> Option<Self> {
        if let TomlValue::Boolean(is_on) = node.value {
            let hint = match is_on {
                true => "write zswap = {}, or set its compressor: { compressor = \"zstd\" }",
                false => "without the key there is no zswap",
            };
            expected(node, "a table", hint, sink);
            return None;
        }
        ZswapTable::decode(node, sink).map(RawZswap)
    }
}

impl JsonSchema for RawZswap {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "RawZswap".into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        generator.subschema_for::<ZswapTable>()
    }
}

/// Algorithm of a zram device or of zswap.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AlgorithmName(pub(crate) Compressor);

impl Decode for AlgorithmName {
    fn decode(node: &TomlNode, sink: &mut ProblemSink) -> Option<Self> {
        decode_named(node, sink).map(AlgorithmName)
    }
}

impl JsonSchema for AlgorithmName {
    fn schema_name() -> Cow<'static, str> {
        "Algorithm".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let one = |one: Compressor| json!({ "const": one.name(), "description": one.doc().trim() });
        json_schema!({ "type": "string", "oneOf": Compressor::ALL.map(one) })
    }
}

/// The swap areas: one, or a list. An area is a size or a table.
#[derive(Clone, Debug)]
pub(crate) struct RawSwap(pub(crate) Vec<SwapTable>);

fn decode_area(node: &TomlNode, sink: &mut ProblemSink) -> Option<SwapTable> {
    if matches!(node.value, TomlValue::Table(_)) {
        return SwapTable::decode(node, sink);
    }
    let size = Spanned::<Size>::decode(node, sink)?;
    Some(SwapTable { at: node.span, size: Some(size), ..SwapTable::default() })
}

impl Decode for RawSwap {
    fn decode(node: &TomlNode, sink: &mut ProblemSink) -> Option<Self> {
        let areas = match &node.value {
            TomlValue::Array(areas) => areas.iter().map(|area| decode_area(area, sink)).collect(),
            _ => decode_area(node, sink).map(|area| vec![area]),
        };
        areas.map(RawSwap)
    }
}

impl JsonSchema for RawSwap {
    fn schema_name() -> Cow<'static, str> {
        "Swap".into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let size = generator.subschema_for::<Size>();
        let table = generator.subschema_for::<SwapTable>();
        json_schema!({ "anyOf": [
            size,
            table,
            { "type": "array", "items": { "anyOf": [size, table] } },
        ] })
    }
}

table! {
    /// A file on a disk.
    FileTable as "File" of "the file" {
        /// Name of the file.
        name: Spanned<NameKey> => required "\"data\"",
        /// Size of the file when the run starts (default 0).
        size: Spanned<Size>,
        /// The file has only holes, so reads need no disk (default false).
        sparse: Spanned<bool> = false,
        /// The file stands for the file system's own blocks (inode tables, directories, bitmaps).
        /// Its pages cannot be moved while they are dirty or under writeback, because the journal
        /// holds them (default false).
        metadata: Spanned<bool> = false,
        /// Disk that holds the file (default: the first).
        disk: Spanned<NameKey>,
        /// Gives every task that names the file a file of its own (default false).
        private: Spanned<bool> = false,
    }
}
