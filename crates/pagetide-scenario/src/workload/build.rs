//! `workload = "build"`: a sequence of compiler processes. Each unit reads its source and headers
//! with read(), repeats the accesses of the recorded compiler (its heap is private, code and
//! libraries are shared), writes its object, changes metadata blocks of the file system, and exits.
//! A link reads the objects of the units before it and writes its result.

use super::prelude::*;
use super::blocks::{BlockAllocs, BlockAllocator, ORDER_MAX};
use super::calls::BlockCalls;
use super::cursor::Cursor;
use super::file_read::read;
use super::file_write::append;
use super::objects::Units;
use super::order::PageOrder;
use crate::model::object_mix::ObjectMix;
use std::path::PathBuf;
use std::sync::Arc;

/// Largest read() or write() call of a build, in bytes.
const BUILD_BLOCK: u64 = 64 << 10;
/// Bytes of a piece of headers: a header with its neighbours, the minimum of read-ahead.
const HEADER_PIECE: u64 = 16 << 10;
/// Bytes of a block of the file system.
const METADATA_BLOCK: u64 = 4 << 10;
/// Zipf exponent of the popularity of headers and of blocks of the file system, in hundredths.
const EXPONENT: u32 = 100;

// Defaults of `source`, `header` and `object`: sizes from the compile recorded in
// experiments/traces/cc1-zpipe.ptt (docs/scenario.md, "build"): zpipe.c, the 72 headers that it
// includes, and its object.
table! {
    /// Compiles files.
    BuildKeys of "workload build" {
        /// Page trace of one compiler, relative to the file that names it.
        path: Spanned<String> => required "\"program.ptt\"",
        /// Number of files to compile.
        units: Spanned<Int<1, 1_000_000>> => required "100",
        /// File that stands for the source tree, read from front to back (default: none).
        sources: Spanned<NameKey>,
        /// Bytes of `sources` that a unit reads (default 6323, as in the recorded compile).
        source: Spanned<Size> = Size(6_323),
        /// File that stands for all headers (default: none).
        headers: Spanned<NameKey>,
        /// Bytes of `headers` that a unit reads (default 442572, as in the recorded compile).
        header: Spanned<Size> = Size(442_572),
        /// File that objects are appended to (default: none).
        objects: Spanned<NameKey>,
        /// Bytes that a unit appends to `objects` (default 6592, as in the recorded compile).
        object: Spanned<Size> = Size(6_592),
        /// File of the file system's own blocks, with `metadata = true` (default: none).
        metadata: Spanned<NameKey>,
        /// Bytes of `metadata` that a unit changes, in blocks of 4 KiB (default 20KiB: the object's
        /// inode, its name, the bitmaps of inodes and of blocks, and their group descriptor).
        metadata_size: Spanned<Size> = Size(20 << 10),
        /// Bytes that a link appends to `objects` after it has read everything appended since the
        /// previous link (default: no link).
        link: Spanned<Size>,
        /// Units between two links; the last link follows the last unit (default: all units).
        link_units: Spanned<Int<1, 1_000_000>>,
        /// log2 of the pages of a unit's kernel stack (default 0: no stack).
        stack_order: Spanned<Int<0, ORDER_MAX>> = Int(0),
        /// Number of other unmovable pages that a unit holds while it runs (default 0).
        kernel_pages: Spanned<Int<0, { 1 << 20 }>> = Int(0),
        /// Object mix: the kernel objects that a unit holds while it runs (default: none).
        mix: Spanned<String>,
    }
}

/// Units, one after another.
#[derive(Clone, Debug, PartialEq)]
pub struct Build {
    /// Page trace of one compiler.
    pub trace: PathBuf,
    pub units: u32,
    /// (index into [`Setup::files`](crate::model::Setup::files), bytes per unit): the source tree,
    /// read from front to back; each unit reads the next part.
    pub sources: Option<(usize, u64)>,
    /// (index of a file, bytes per unit): headers, read in pieces of 16 KiB with Zipf(1.0)
    /// popularity: some are included by every unit.
    pub headers: Option<(usize, u64)>,
    /// (index of a file, bytes per unit): objects, appended.
    pub objects: Option<(usize, u64)>,
    /// (index of a file, bytes per unit): blocks of the file system, written whole,
    /// Zipf-distributed.
    pub metadata: Option<(usize, u64)>,
    /// Links, if any.
    pub link: Option<Link>,
    /// log2 of the pages of a unit's kernel stack, a block that it holds while it runs; 0: none.
    pub stack_order: u8,
    /// Other unmovable pages that a unit holds while it runs: page tables, descriptors; 0: none.
    pub kernel_pages: u32,
    /// Kernel objects of a unit, one allocated with each of its first operations.
    pub mix: Option<Arc<ObjectMix>>,
}

/// Links of a build.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    /// Bytes that a link writes.
    pub bytes: u64,
    /// Units between two links.
    pub units: u32,
}

impl Link {
    /// Number of units whose objects are linked after unit `round`; 0: no link follows it.
    fn units_after(self, round: u32, units: u32) -> u32 {
        let done = round + 1;
        let is_due = done.is_multiple_of(self.units) || done == units;
        if is_due {
            round % self.units + 1
        } else {
            0
        }
    }
}

impl WorkloadSpec for Build {
    type Keys = BuildKeys;

    fn check(keys: &BuildKeys, phases: &mut Phases<'_, '_>, sink: &mut ProblemSink) -> Option<Self> {
        let trace = keys.path(sink).and_then(|path| phases.trace(path, sink));
        let units: Option<u32> = keys.units(sink).map(|units| units.value.into());
        let bad = &keys.bad;
        let mut part = |part: BuildPart<'_>| part.check(bad, phases, sink);
        let (file, bytes) = (("sources", &keys.sources), ("source", &keys.source));
        let sources = part(BuildPart { file, bytes, or: keys.source().0 });
        let (file, bytes) = (("headers", &keys.headers), ("header", &keys.header));
        let headers = part(BuildPart { file, bytes, or: keys.header().0 });
        let (file, bytes) = (("objects", &keys.objects), ("object", &keys.object));
        let objects = part(BuildPart { file, bytes, or: keys.object().0 });
        let (file, bytes) = (("metadata", &keys.metadata), ("metadata_size", &keys.metadata_size));
        let metadata = part(BuildPart { file, bytes, or: keys.metadata_size().0 });
        if let (Some(name), Some((file, _))) = (&keys.metadata, metadata) {
            phases.is_metadata(file, name, sink);
        }
        let link = check_link(keys, units, sink)?;
        let not_empty =
            [(&keys.sources, sources), (&keys.headers, headers), (&keys.metadata, metadata)];
        for (name, part) in not_empty {
            if let (Some(name), Some((file, _))) = (name, part) {
                phases.not_empty(file, name, sink);
            }
        }
        if let (Some(name), Some((file, bytes)), Some(units)) = (&keys.objects, objects, units) {
            let span = keys.object.as_ref().map_or(name.span, |object| object.span);
            let links = link.map_or(0, |link| {
                link.bytes.saturating_mul(units.div_ceil(link.units).into())
            });
            let growth = bytes.saturating_mul(u64::from(units)).saturating_add(links);
            phases.check_growth(file, growth, span, sink);
        }
        let mix = match keys.mix.as_ref().map(|path| phases.mix(path, sink)) {
            Some(None) => return None,
            mix => mix.flatten(),
        };
        Some(Build {
            trace: trace?,
            units: units?,
            sources,
            headers,
            objects,
            metadata,
            link,
            stack_order: keys.stack_order().into(),
            mix,
            kernel_pages: keys.kernel_pages().into(),
        })
    }

    /// The stages of one unit.
    fn stages(&self, _: u32, planner: &mut Planner<'_>) -> Vec<PhaseStage> {
        let mut stages = Vec::with_capacity(12);
        if let Some(mix) = &self.mix {
            stages.push(PhaseStage::Beside(Units::new(planner, &mix.rows, 1, 0, 0)));
        }
        let stacks = u32::from(self.stack_order > 0);
        let blocks = stacks + self.kernel_pages;
        for (order, first, end) in [(self.stack_order, 0, stacks), (0, stacks, blocks)] {
            let request = BlockRequest::Kernel;
            let take = BlockAllocs { order, request, interval_ns: 0, hold: true, first, end };
            stages.extend((first < end).then(|| BlockAllocator::stage(take)));
        }
        if let Some((file, bytes)) = self.sources {
            stages.push(read(planner, file, bytes, BUILD_BLOCK));
        }
        if let Some((file, bytes)) = self.headers {
            stages.push(pieces(planner, (file, bytes), (HEADER_PIECE, 0), "headers"));
        }
        stages.push(PhaseStage::Trace { path: self.trace.clone(), passes: 1, advice: None });
        if let Some((file, bytes)) = self.objects {
            stages.push(append(planner, file, Some(bytes), BUILD_BLOCK));
        }
        if let Some((file, bytes)) = self.metadata {
            stages.push(pieces(planner, (file, bytes), (METADATA_BLOCK, 100), "metadata"));
        }
        stages.extend((blocks > 0).then(|| BlockAllocator::free(blocks)));
        stages.extend(self.mix.is_some().then_some(PhaseStage::EndBeside));
        if let (Some((file, object)), Some(link)) = (self.objects, self.link) {
            let units = self.units;
            let after = move |round| link.units_after(round, units);
            stages.push(PhaseStage::run(move |state, round| {
                let end = state.positions[&file];
                let offset = end.saturating_sub(object * u64::from(after(round)));
                Box::new(LinkReads { file, offset, end }).into()
            }));
            if let PhaseStage::Run(write) = append(planner, file, Some(link.bytes), BUILD_BLOCK) {
                stages.push(PhaseStage::run(move |state, round| match after(round) {
                    0 => Cursor::Idle,
                    _ => write.begin(state, round),
                }));
            }
        }
        stages
    }

    fn rounds(&self) -> u32 {
        self.units
    }

    fn files(&mut self, each: &mut dyn FnMut(&mut usize, bool)) {
        let reads = [&mut self.sources, &mut self.headers].map(|part| (part, false));
        let writes = [&mut self.objects, &mut self.metadata].map(|part| (part, true));
        for (part, writes) in reads.into_iter().chain(writes) {
            if let Some((file, _)) = part {
                each(file, writes);
            }
        }
    }
}

/// The links of a build; `None` after a mistake was reported.
fn check_link(keys: &BuildKeys, units: Option<u32>, sink: &mut ProblemSink) -> Option<Option<Link>> {
    let Some(bytes) = &keys.link else {
        if let (Some(of), false) = (&keys.link_units, keys.bad.contains(&"link")) {
            let hint = "add link = \"10MiB\" (bytes that a link writes), or leave out both";
            sink.hinted(of.span, "`link_units` needs `link`", hint);
            return None;
        }
        return Some(None);
    };
    if keys.objects.is_none() {
        if !keys.bad.contains(&"objects") {
            let hint = "add objects = \"NAME\", the file with the objects";
            sink.hinted(bytes.span, "`link` needs `objects`", hint);
        }
        return None;
    }
    if bytes.value.0 == 0 {
        sink.hinted(bytes.span, "a link writes 0 bytes", "leave out `link`");
        return None;
    }
    let units = keys.link_units.as_ref().map(|units| u32::from(units.value)).or(units)?;
    Some(Some(Link { bytes: bytes.value.0, units }))
}

/// A file of a build, the bytes that a unit uses of it, and the names of both keys.
struct BuildPart<'r> {
    file: (&'static str, &'r Option<Spanned<NameKey>>),
    bytes: (&'static str, &'r Option<Spanned<Size>>),
    or: u64,
}

impl BuildPart<'_> {
    /// The file, as a template, and the bytes per unit.
    fn check(
        self,
        bad: &[&'static str],
        phases: &Phases<'_, '_>,
        sink: &mut ProblemSink,
    ) -> Option<(usize, u64)> {
        let (file_key, file) = self.file;
        let (bytes_key, bytes) = self.bytes;
        let Some(name) = file else {
            if let (Some(bytes), false) = (bytes, bad.contains(&file_key)) {
                let message = format!("`{bytes_key}` needs `{file_key}`");
                let hint = format!("add {file_key} = \"NAME\" (a file), or leave out both");
                sink.hinted(bytes.span, message, hint);
            }
            return None;
        };
        let file = phases.files.names.find(name, sink)?;
        if let Some(bytes) = bytes.as_ref().filter(|bytes| bytes.value.0 == 0) {
            let hint = format!("leave out `{file_key}` and `{bytes_key}`");
            sink.hinted(bytes.span, "a unit uses 0 bytes", hint);
            return None;
        }
        Some((file, self.or))
    }
}

/// Reads or writes `left` bytes of a file in whole pieces, by popularity.
fn pieces(
    planner: &mut Planner<'_>,
    (file, left): (usize, u64),
    (block, write_percent): (u64, u32),
    draws: &'static str,
) -> PhaseStage {
    let order = PageOrder::Zipf { exponent_hundredths: EXPONENT };
    BlockCalls { file, block, order, write_percent, log: None, draws }.stage(planner, Some(left))
}

/// Generates read() calls of the objects that a link takes, each once, in the order of writing.
#[derive(Debug)]
struct LinkReads {
    file: usize,
    offset: u64,
    end: u64,
}

impl Generator for LinkReads {
    fn next_op(&mut self) -> Option<Op> {
        let (file, offset) = (self.file, self.offset);
        let len = BUILD_BLOCK.min(self.end - offset);
        self.offset += len;
        (len > 0).then_some(Op::Read { file, offset, len })
    }
}
