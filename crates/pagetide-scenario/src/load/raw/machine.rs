//! `[machine]` and `[[file]]`.

use crate::costs::raw::Costs;
use crate::load::decode::{expected, table, Decode, Int, Name, Rate, Size, Time};
use crate::load::span::{clip, At, Sink};
use crate::load::tree::{Node, Value};
use crate::load::units::parse_size;
use crate::names::{DiskModel, ZoneName};
use pagetide_core::page_size::PageSize;
use schemars::{json_schema, JsonSchema, Schema, SchemaGenerator};
use std::borrow::Cow;

/// CPUs of a machine.
const CPUS_MAX: i64 = 1024;

table! {
    /// Hardware. `memory`, `reserved`, `movable` and `zone` are for machines with one node; with
    /// several, write `[[machine.node]]`.
    Machine {
        /// Number of CPUs (default 1).
        cpus: At<Int<1, CPUS_MAX>>,
        /// Size of a page (default 4KiB).
        page_size: At<PageBytes>,
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
        /// Kernel objects are charged to groups; false: as if booted with cgroup.memory=nokmem
        /// (default true).
        kmem_accounting: At<bool>,
        /// What a group's children do not claim of its memory.min and memory.low is shared among them: the mount
        /// option memory_recursiveprot (default false).
        memory_recursiveprot: At<bool> = false,
        /// Every page is cleared when it is allocated, as many distributions have it: the kernel parameter
        /// init_on_alloc (default: a real kernel does as it was built, the simulator does not).
        init_on_alloc: At<bool>,
        /// Caches of kernel objects that are not as the kernel makes them.
        cache: Vec<Cache>,
        /// What operations cost on this machine; the simulator's own prices for those that are left out.
        costs: Costs,
    }
}

table! {
    /// How a cache of kernel objects is tuned: at least one of the keys besides its name.
    Cache of "the cache" {
        /// The cache, as /proc/slabinfo spells it.
        name: At<String> => required "\"dentry\"",
        /// log2 of the pages of a slab (default: by the size of an object and the number of CPUs).
        order: At<Int<0, 10>>,
        /// Slabs that a node keeps though they are empty (default: by the size of an object).
        min_partial: At<Int<0, { u32::MAX as i64 }>>,
        /// Free objects that may wait on a CPU's chain of slabs (default: by the size of an object).
        cpu_partial: At<Int<0, { u32::MAX as i64 }>>,
    }
}

/// The size of a page: a size, of which there are three.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PageBytes(pub(crate) PageSize);

impl PageBytes {
    /// The page size that a value says, if it is one. Pages are no unit for it.
    fn read(value: &Value) -> Option<PageSize> {
        let bytes = match value {
            Value::Integer(bytes) => u64::try_from(*bytes).ok()?,
            Value::Text(text) if text.contains('p') => return None,
            Value::Text(text) => parse_size(text, PageSize::default()).ok()?,
            _ => return None,
        };
        PageSize::from_bytes(bytes)
    }
}

impl Decode for PageBytes {
    fn decode(node: &Node, sink: &mut Sink) -> Option<Self> {
        let found = PageBytes::read(&node.value);
        if found.is_none() {
            let hint = "it is \"4KiB\", \"16KiB\" or \"64KiB\"";
            match &node.value {
                Value::Text(text) => {
                    sink.hinted(node.span, format!("`{}` is no page size", clip(text)), hint);
                }
                Value::Integer(bytes) => {
                    sink.hinted(node.span, format!("{bytes} is no page size"), hint);
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

/// The page size that a scenario's tree asks for, before any of it is read: sizes may count in pages.
/// The default if it says nothing, or nothing that can be; that is reported when the key is read.
pub(crate) fn page_size(root: &Node) -> PageSize {
    let machine = root.as_table().and_then(|root| root.get("machine"));
    let key = machine.and_then(Node::as_table).and_then(|machine| machine.get("page_size"));
    key.and_then(|key| PageBytes::read(&key.value)).unwrap_or_default()
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
    Zone of "the zone" {
        /// Which zone.
        name: At<ZoneName> => required "\"DMA32\"",
        /// Memory present.
        present: At<Size> => required "\"4096 pages\"",
        /// Memory that the allocator manages (default: all present).
        managed: At<Size>,
        /// Memory free when the run starts (default: all managed).
        free: At<Size>,
        /// Memory of `managed` that boot freed only after it had computed the watermarks: initial
        /// RAM disk and init sections (default: none). The kernel's own marks are a little smaller
        /// with it.
        late: At<Size> = Size(0),
        /// Free lists of unmovable pages when the run starts, as /proc/pagetypeinfo shows them. With it, or
        /// with those of the other two types, `free` is what the lists hold.
        unmovable: FreeArea,
        /// Free lists of movable pages.
        movable: FreeArea,
        /// Free lists of reclaimable pages.
        reclaimable: FreeArea,
    }
}

table! {
    /// Free blocks of one migrate type in a zone.
    FreeArea {
        /// Free blocks of order 0, 1, 2 and so on, 11 numbers at most (default: none).
        blocks: Vec<Int<0, { u32::MAX as i64 }>>,
        /// Pageblocks of this type (default: as many as its free blocks need).
        pageblocks: At<Int<0, { u32::MAX as i64 }>> = Int(0),
    }
}

table! {
    /// A disk.
    Disk of "the disk" {
        /// Its name.
        name: At<Name> => required "\"ssd\"",
        /// The preset.
        model: At<DiskModel> => required "\"ssd\"",
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
        /// Whether the kernel takes it for a rotating disk (default: as the model is).
        rotational: At<bool>,
        /// Faults to inject.
        faults: DiskFaults,
    }
}

table! {
    /// Faults that a disk injects, decided by the run's seed.
    DiskFaults {
        /// Failed reads in a million (default 0).
        read_error_ppm: At<Int<0, 1_000_000>> = Int(0),
        /// Failed writes in a million (default 0).
        write_error_ppm: At<Int<0, 1_000_000>> = Int(0),
        /// Slow requests in a million (default 0).
        slow_ppm: At<Int<0, 1_000_000>> = Int(0),
        /// How many times slower a slow request is (default 10).
        slow_factor: At<Int<1, 1_000_000>> = Int(10),
    }
}

table! {
    /// The swap area as a table.
    SwapTable of "the swap area" {
        /// Its size.
        size: At<Size> => required "\"4GiB\"",
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
    /// A file on a disk.
    File of "the file" {
        /// Its name.
        name: At<Name> => required "\"data\"",
        /// Its size when the run starts (default 0).
        size: At<Size>,
        /// Nothing but holes: reading it needs no disk (default false).
        sparse: At<bool> = false,
        /// It stands for the file system's own blocks (inode tables, directories, bitmaps): pages of it that are
        /// dirty or being written cannot be moved, because the journal holds them (default false).
        metadata: At<bool> = false,
        /// The disk it is on (default: the first).
        disk: At<Name>,
        /// Every task that names it gets a file of its own (default false).
        private: At<bool> = false,
    }
}
