//! `workload = "build"`: compilers that come and go. Each unit reads its source and its headers with read(),
//! repeats the accesses of the recorded compiler (its heap is its own; code and libraries are shared with
//! every other compiler), writes its object and exits.

use super::prelude::*;
use super::blocks::{Take, Takes, ORDER_MAX};
use super::file_read::read;
use super::file_write::append;
use super::modulo::Scatter;
use super::objects::Units;
use crate::object_mix::ObjectMix;
use crate::prng::SplitMix64;
use crate::zipf::Zipf;
use std::path::PathBuf;
use std::sync::Arc;

/// Bytes of the longest read() or write() call of a build.
const BUILD_BLOCK: u64 = 64 << 10;
/// Bytes of a piece of headers: a header with its neighbours, and what read-ahead brings at least.
const HEADER_PIECE: u64 = 16 << 10;
/// Exponent of the popularity of headers, in hundredths.
const HEADER_EXPONENT: u32 = 100;

// Defaults of `source`, `header` and `object` are what the compile behind
// experiments/traces/cc1-zpipe.ptt read and wrote (docs/scenario.md, "build"): zpipe.c, the 72 headers
// that it includes, its object.
table! {
    /// Compiles files.
    Keys of "workload build" {
        /// The trace of one compiler, relative to the scenario file.
        path: At<String> => required "\"program.ptt\"",
        /// Files to compile.
        units: At<Int<1, 1_000_000>> => required "100",
        /// The file that stands for the source tree, read from front to back (default: none).
        sources: At<Name>,
        /// Bytes of it that a unit reads (default 6323, those of the recorded compile).
        source: At<Size> = Size(6_323),
        /// The file that stands for all headers (default: none).
        headers: At<Name>,
        /// Bytes of it that a unit reads (default 442572, those of the recorded compile).
        header: At<Size> = Size(442_572),
        /// The file that objects are appended to (default: none).
        objects: At<Name>,
        /// Bytes that a unit appends (default 6592, those of the recorded compile).
        object: At<Size> = Size(6_592),
        /// log2 of the pages of a unit's kernel stack (default 0: no stack).
        stack_order: At<Int<0, ORDER_MAX>> = Int(0),
        /// Other unmovable pages that a unit has while it lives (default 0).
        kernel_pages: At<Int<0, { 1 << 20 }>> = Int(0),
        /// The kernel objects that a unit has while it lives, an object mix (default: none).
        mix: At<String>,
    }
}

/// Units, one after another.
#[derive(Clone, Debug, PartialEq)]
pub struct Build {
    /// Page trace of one compiler.
    pub trace: PathBuf,
    /// Files to compile.
    pub units: u32,
    /// (index into [`Setup::files`](crate::model::Setup::files), bytes a unit): the source tree, read
    /// from front to back, each unit its own part.
    pub sources: Option<(usize, u64)>,
    /// (index of a file, bytes a unit): headers, read in pieces of 16 KiB whose ranks are Zipf(1.0)
    /// distributed: some are included by everybody.
    pub headers: Option<(usize, u64)>,
    /// (index of a file, bytes a unit): objects, appended.
    pub objects: Option<(usize, u64)>,
    /// log2 of the pages of a unit's kernel stack, a block for its life; 0: none.
    pub stack_order: u8,
    /// Other unmovable pages for a unit's life: page tables, descriptors; 0: none.
    pub kernel_pages: u32,
    /// Kernel objects of a unit, allocated one with each of its first operations.
    pub mix: Option<Arc<ObjectMix>>,
}

impl Kind for Build {
    type Keys = Keys;

    fn check(keys: &Keys, phases: &mut Phases<'_, '_>, sink: &mut Sink) -> Option<Self> {
        let trace = keys.path(sink).and_then(|path| phases.trace(path, sink));
        let units: Option<u32> = keys.units(sink).map(|units| units.value.into());
        let bad = &keys.bad;
        let mut part = |part: Part<'_>| part.check(bad, phases, sink);
        let (file, bytes) = (("sources", &keys.sources), ("source", &keys.source));
        let sources = part(Part { file, bytes, or: keys.source().0 });
        let (file, bytes) = (("headers", &keys.headers), ("header", &keys.header));
        let headers = part(Part { file, bytes, or: keys.header().0 });
        let (file, bytes) = (("objects", &keys.objects), ("object", &keys.object));
        let objects = part(Part { file, bytes, or: keys.object().0 });
        for (name, part) in [(&keys.sources, sources), (&keys.headers, headers)] {
            if let (Some(name), Some((file, _))) = (name, part) {
                phases.not_empty(file, name, sink);
            }
        }
        if let (Some(name), Some((file, bytes)), Some(units)) = (&keys.objects, objects, units) {
            let span = keys.object.as_ref().map_or(name.span, |object| object.span);
            phases.check_growth(file, bytes.saturating_mul(u64::from(units)), span, sink);
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
            stack_order: keys.stack_order().into(),
            mix,
            kernel_pages: keys.kernel_pages().into(),
        })
    }

    /// The stages of one unit.
    fn stages(&self, _: u32, planner: &mut Planner<'_>) -> Vec<Stage> {
        let mut stages = Vec::with_capacity(9);
        if let Some(mix) = &self.mix {
            stages.push(Stage::Beside(Units::new(planner, &mix.rows, 1, 0, 0)));
        }
        let stacks = u32::from(self.stack_order > 0);
        let blocks = stacks + self.kernel_pages;
        for (order, first, end) in [(self.stack_order, 0, stacks), (0, stacks, blocks)] {
            let request = BlockRequest::Kernel;
            let take = Take { order, request, interval_ns: 0, hold: true, first, end };
            stages.extend((first < end).then(|| Takes::stage(take)));
        }
        if let Some((file, bytes)) = self.sources {
            stages.push(read(planner, file, bytes, BUILD_BLOCK));
        }
        if let Some((file, bytes)) = self.headers {
            let size = planner.file_sizes[file];
            let zipf = planner.zipf(size.div_ceil(HEADER_PIECE), HEADER_EXPONENT);
            stages.push(Stage::run(move |state, _| {
                let (zipf, prng) = (Arc::clone(&zipf), state.draws("headers"));
                Box::new(Pieces::new(file, size, bytes, prng, zipf)).into()
            }));
        }
        stages.push(Stage::Trace { path: self.trace.clone(), passes: 1, advice: None });
        if let Some((file, bytes)) = self.objects {
            stages.push(append(planner, file, Some(bytes), BUILD_BLOCK));
        }
        stages.extend((blocks > 0).then(|| Takes::free(blocks)));
        stages.extend(self.mix.is_some().then_some(Stage::EndBeside));
        stages
    }

    fn rounds(&self) -> u32 {
        self.units
    }

    fn files(&mut self, each: &mut dyn FnMut(&mut usize, bool)) {
        let parts = [(&mut self.sources, false), (&mut self.headers, false)];
        for (part, writes) in parts.into_iter().chain([(&mut self.objects, true)]) {
            if let Some((file, _)) = part {
                each(file, writes);
            }
        }
    }
}

/// A file of a build with the bytes a unit takes of it, and what the two keys are called.
struct Part<'r> {
    file: (&'static str, &'r Option<At<Name>>),
    bytes: (&'static str, &'r Option<At<Size>>),
    or: u64,
}

impl Part<'_> {
    /// The file, as a template, and the bytes a unit.
    fn check(
        self,
        bad: &[&'static str],
        phases: &Phases<'_, '_>,
        sink: &mut Sink,
    ) -> Option<(usize, u64)> {
        let (file_key, file) = self.file;
        let (bytes_key, bytes) = self.bytes;
        let Some(name) = file else {
            if let (Some(bytes), false) = (bytes, bad.contains(&file_key)) {
                let message = format!("`{bytes_key}` without `{file_key}`");
                let hint = format!("add {file_key} = \"NAME\", the file, or leave out both");
                sink.hinted(bytes.span, message, hint);
            }
            return None;
        };
        let file = phases.files.names.find(name, sink)?;
        if let Some(bytes) = bytes.as_ref().filter(|bytes| bytes.value.0 == 0) {
            let hint = format!("leave out `{file_key}` and `{bytes_key}`");
            sink.hinted(bytes.span, "no bytes a unit", hint);
            return None;
        }
        Some((file, self.or))
    }
}

/// read() calls of whole pieces of a file, some pieces more often than others.
#[derive(Debug)]
struct Pieces {
    file: usize,
    size: u64,
    left: u64,
    prng: SplitMix64,
    scatter: Scatter,
    /// Ranks of its pieces.
    zipf: Arc<Zipf>,
}

impl Pieces {
    fn new(file: usize, size: u64, left: u64, prng: SplitMix64, zipf: Arc<Zipf>) -> Self {
        let scatter = Scatter::new(size.div_ceil(HEADER_PIECE));
        Self { file, size, left, prng, scatter, zipf }
    }
}

impl Generator for Pieces {
    fn next_op(&mut self) -> Option<Op> {
        if self.left == 0 {
            return None;
        }
        let offset = self.scatter.page(self.zipf.draw(&mut self.prng) - 1) * HEADER_PIECE;
        // The file's last piece may be short, and so may be the last read of a unit.
        let len = HEADER_PIECE.min(self.size - offset).min(self.left);
        self.left -= len;
        Some(Op::Read { file: self.file, offset, len })
    }

    fn end(self: Box<Self>, state: &mut State) {
        state.keep_draws("headers", self.prng);
    }
}
