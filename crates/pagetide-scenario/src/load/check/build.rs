//! `workload = "build"`: files and the bytes of each that a unit takes come in pairs.

use super::names::need;
use super::workload::Phases;
use crate::load::decode::{Name, Size};
use crate::load::raw;
use crate::load::span::{At, Sink};
use crate::model::{Build, Workload};

// What the compile behind experiments/traces/cc1-zpipe.ptt read and wrote (docs/scenario.md,
// "build"): zpipe.c, the 72 headers that it includes, its object.
const SOURCE_BYTES: u64 = 6_323;
const HEADER_BYTES: u64 = 442_572;
const OBJECT_BYTES: u64 = 6_592;

/// A file of a build with the bytes a unit takes of it, and what the two keys are called.
struct Part<'r> {
    file: (&'static str, &'r Option<At<Name>>),
    bytes: (&'static str, &'r Option<At<Size>>),
    default: u64,
}

impl Phases<'_, '_> {
    pub(super) fn build(&self, keys: &raw::Build, sink: &mut Sink) -> Option<Workload> {
        let place = (keys.at, keys.bad.as_slice());
        let trace = self.trace_path(&keys.path, place, "workload build", sink);
        let units = need(&keys.units, "units", place, "workload build", "100", sink);
        let units = units.map(|units| units.value.0 as u32);
        let bad = &keys.bad;
        let mut part = |file, bytes, default| self.part(Part { file, bytes, default }, bad, sink);
        let sources = part(("sources", &keys.sources), ("source", &keys.source), SOURCE_BYTES);
        let headers = part(("headers", &keys.headers), ("header", &keys.header), HEADER_BYTES);
        let objects = part(("objects", &keys.objects), ("object", &keys.object), OBJECT_BYTES);
        for (name, part) in [(&keys.sources, sources), (&keys.headers, headers)] {
            if let (Some(name), Some((file, _))) = (name, part) {
                self.not_empty(file, name, sink);
            }
        }
        if let (Some(name), Some((file, bytes)), Some(units)) = (&keys.objects, objects, units) {
            let span = keys.object.as_ref().map_or(name.span, |object| object.span);
            self.check_growth(file, bytes.saturating_mul(u64::from(units)), span, sink);
        }
        let load = |path| self.scene.mixes.borrow_mut().load(path, self.scene.base_dir, sink);
        let mix = match keys.mix.as_ref().map(load) {
            Some(None) => return None,
            mix => mix.flatten(),
        };
        Some(Workload::Build(Build {
            trace: trace?,
            units: units?,
            sources,
            headers,
            objects,
            stack_order: keys.stack_order.as_ref().map_or(0, |order| order.value.0 as u8),
            mix,
            kernel_pages: keys.kernel_pages.as_ref().map_or(0, |pages| pages.value.0 as u32),
        }))
    }

    /// The file, as a template, and the bytes a unit.
    fn part(&self, part: Part<'_>, bad: &[&'static str], sink: &mut Sink) -> Option<(usize, u64)> {
        let (file_key, file) = part.file;
        let (bytes_key, bytes) = part.bytes;
        let Some(name) = file else {
            if let (Some(bytes), false) = (bytes, bad.contains(&file_key)) {
                let message = format!("`{bytes_key}` without `{file_key}`");
                let hint = format!("add {file_key} = \"NAME\", the file, or leave out both");
                sink.hinted(bytes.span, message, hint);
            }
            return None;
        };
        let file = self.files.names.find(name, sink)?;
        let bytes = match bytes {
            Some(bytes) if bytes.value.0 == 0 => {
                let hint = format!("leave out `{file_key}` and `{bytes_key}`");
                sink.hinted(bytes.span, "no bytes a unit", hint);
                return None;
            }
            Some(bytes) => bytes.value.0,
            None => part.default,
        };
        Some((file, bytes))
    }
}
