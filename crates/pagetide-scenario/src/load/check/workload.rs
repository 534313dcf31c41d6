//! One phase: keys that belong together, files that exist and are large enough, an address space
//! that holds the regions.

use super::files::Files;
use super::holes::Discarded;
use super::names::need;
use super::names_and_pipes;
use super::tasks::Scene;
use crate::load::decode::{Hundredths, Int, Name, Size};
use crate::load::raw;
use crate::load::span::{clip, At, Problem, Sink, Span};
use crate::load::units::show_size;
use crate::model::{Advice, Order, WorkingSet, Workload};
use crate::names::{AdviceKind, HugeAdviceKind, OrderKind};
use crate::workload::{FILE_SIZE_MAX, REGION_PAGES_MAX};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Bytes of a read() or write() call unless the scenario says otherwise.
const DEFAULT_BLOCK: u64 = 64 << 10;
/// Largest read() or write() call.
const BLOCK_MAX: u64 = 1 << 30;
/// Name of the anonymous region unless the scenario says otherwise.
const DEFAULT_REGION: &str = "anon";

/// What the phases of one task have in common. Files are indices of templates.
#[derive(Debug, Default)]
pub(super) struct Regions {
    pub(super) by_name: BTreeMap<String, Region>,
    /// (anonymous region, file region) -> (start value, where it was written).
    generators: BTreeMap<(String, String), (Option<i64>, Span)>,
    pub(super) discarded: Vec<Discarded>,
}

#[derive(Debug)]
pub(super) struct Region {
    /// Template of the file; `None`: anonymous.
    pub(super) file: Option<usize>,
    advice: Advice,
    pub(super) pages: u64,
    pub(super) span: Span,
}

/// A workload, with indices of templates where the model has indices of files.
pub(super) struct Phases<'c, 'a> {
    pub(super) files: &'c Files<'a>,
    pub(super) scene: Scene<'c>,
    pub(super) regions: Regions,
}

impl Phases<'_, '_> {
    pub(super) fn check(&mut self, workload: &raw::Workload, sink: &mut Sink) -> Option<Workload> {
        match workload {
            raw::Workload::FileWrite(keys) => {
                let file = self.file(&keys.file, (keys.at, &keys.bad), "file-write", sink)?;
                let block = block(&keys.block, sink);
                if let Some(total) = &keys.total {
                    self.check_end(file, total, sink);
                }
                let bytes = keys.total.as_ref().map(|total| total.value.0);
                Some(Workload::FileWrite { file, bytes, block })
            }
            raw::Workload::FileRead(keys) => self.file_read(keys, sink),
            raw::Workload::MappedRead(keys) => self.mapped_read(keys, sink),
            raw::Workload::Touch(keys) => self.touch(keys, sink),
            raw::Workload::Interleave(keys) => self.interleave(keys, sink),
            raw::Workload::Discard(keys) => self.discard(keys, sink),
            raw::Workload::HighOrder(keys) => self.high_order(keys, sink),
            raw::Workload::KernelMemory(keys) => self.kernel_memory(keys, sink),
            raw::Workload::KernelObjects(keys) => self.kernel_objects(keys, sink),
            raw::Workload::Names(keys) => names_and_pipes::names(keys, sink),
            raw::Workload::Pipes(keys) => names_and_pipes::pipes(keys, sink),
            raw::Workload::WorkingSet(keys) => self.working_set(keys, sink),
            raw::Workload::Trace(keys) => self.trace(keys, sink),
            raw::Workload::Build(keys) => self.build(keys, sink),
            raw::Workload::WriteControl(keys) => {
                self.scene.groups.write_control(keys, self.scene.policies, sink)
            }
            raw::Workload::CreateGroup(keys) => self.scene.groups.create(keys, sink),
            raw::Workload::RemoveGroup(keys) => self.scene.groups.remove(keys, sink),
            raw::Workload::JoinGroup(keys) => self.scene.groups.join(keys, sink),
            raw::Workload::Compute(keys) => {
                let place = (keys.at, keys.bad.as_slice());
                let time =
                    need(&keys.duration, "duration", place, "workload compute", "\"1s\"", sink)?;
                Some(Workload::Compute { ns: time.value.0 })
            }
            raw::Workload::Sleep(keys) => {
                let place = (keys.at, keys.bad.as_slice());
                let time =
                    need(&keys.duration, "duration", place, "workload sleep", "\"1s\"", sink)?;
                Some(Workload::Sleep { ns: time.value.0 })
            }
        }
    }

    pub(super) fn file(
        &self,
        file: &Option<At<Name>>,
        (at, bad): (Span, &[&'static str]),
        workload: &str,
        sink: &mut Sink,
    ) -> Option<usize> {
        let what = format!("workload {workload}");
        let name = need(file, "file", (at, bad), &what, "\"data\"", sink)?;
        self.files.names.find(name, sink)
    }

    fn check_end(&self, file: usize, total: &At<Size>, sink: &mut Sink) {
        self.check_growth(file, total.value.0, total.span, sink);
    }

    /// Reports a file to which more is appended than it can hold.
    pub(super) fn check_growth(&self, file: usize, bytes: u64, span: Span, sink: &mut Sink) {
        let end = self.files.size(file).saturating_add(bytes);
        if end > FILE_SIZE_MAX {
            let limit = show_size(FILE_SIZE_MAX);
            sink.hinted(span, "the file becomes too large", format!("at most {limit}"));
        }
    }

    fn file_read(&mut self, keys: &raw::FileRead, sink: &mut Sink) -> Option<Workload> {
        let file = self.file(&keys.file, (keys.at, &keys.bad), "file-read", sink)?;
        let block = block(&keys.block, sink);
        let size = self.not_empty(file, keys.file.as_ref()?, sink)?;
        let bytes = keys.total.as_ref().map_or(size, |total| total.value.0);
        Some(Workload::FileRead { file, bytes, block })
    }

    /// The size of a file that is read.
    pub(super) fn not_empty(&self, file: usize, name: &At<Name>, sink: &mut Sink) -> Option<u64> {
        let size = self.files.size(file);
        if size > 0 {
            return Some(size);
        }
        sink.push(Problem {
            span: name.span,
            message: format!("the file `{}` is empty when the run starts", clip(&name.value.0)),
            hint: Some("give it a size = \"1GiB\", for example".into()),
            also: self.files.span(file).map(|span| (span, "named here".into())),
        });
        None
    }

    /// Pages of a mapping of a file.
    fn mapped(
        &self,
        file: usize,
        name: &At<Name>,
        size: &Option<At<Size>>,
        sink: &mut Sink,
    ) -> Option<u64> {
        let whole = self.not_empty(file, name, sink)?;
        let Some(size) = size else { return Some(sink.page_size.pages_for(whole)) };
        let pages = sink.page_size.pages_for(size.value.0);
        if pages == 0 {
            sink.hinted(size.span, "a mapping of nothing", "leave it out for the whole file");
            return None;
        }
        if pages > sink.page_size.pages_for(whole) {
            let shown = (show_size(size.value.0), show_size(whole));
            sink.push(Problem {
                span: size.span,
                message: format!("{} mapped of a file of {}", shown.0, shown.1),
                hint: Some("make the file larger, or map less of it".into()),
                also: self.files.span(file).map(|span| (span, "the file".into())),
            });
            return None;
        }
        Some(pages)
    }

    fn mapped_read(&mut self, keys: &raw::MappedRead, sink: &mut Sink) -> Option<Workload> {
        let order = order(&keys.order, &keys.exponent, sink);
        let file = self.file(&keys.file, (keys.at, &keys.bad), "mapped-read", sink)?;
        let name = keys.file.as_ref()?;
        let pages = self.mapped(file, name, &keys.size, sink)?;
        let region = keys.region.as_ref().unwrap_or(name);
        let advice = advice(&keys.advice);
        let span = keys.size.as_ref().map_or(region.span, |size| size.span);
        self.use_region(region, Some(file), advice, pages, span, sink)?;
        let (region, passes) = (region.value.0.clone(), passes(&keys.passes));
        Some(Workload::MappedRead { file, pages, order: order?, advice, passes, region })
    }

    fn touch(&mut self, keys: &raw::Touch, sink: &mut Sink) -> Option<Workload> {
        let order = order(&keys.order, &keys.exponent, sink);
        let place = (keys.at, keys.bad.as_slice());
        let size = need(&keys.size, "size", place, "workload touch", "\"1GiB\"", sink)?;
        let pages = anon_pages(size, sink)?;
        let region = region_name(&keys.region, size.span);
        let advice = match keys.advice.as_ref().map(|advice| advice.value) {
            None => self.advice_of(&region.value.0).unwrap_or(Advice::Normal),
            Some(HugeAdviceKind::Normal) => Advice::Normal,
            Some(HugeAdviceKind::Huge) => Advice::Huge,
            Some(HugeAdviceKind::NoHuge) => Advice::NoHuge,
        };
        self.use_region(&region, None, advice, pages, size.span, sink)?;
        Some(Workload::Touch {
            region: region.value.0,
            pages,
            passes: passes(&keys.passes),
            write: keys.write.as_ref().is_none_or(|write| write.value),
            order: order?,
            advice,
        })
    }

    /// The advice that an earlier phase has given on an anonymous region.
    pub(super) fn advice_of(&self, region: &str) -> Option<Advice> {
        let known = self.regions.by_name.get(region)?;
        known.file.is_none().then_some(known.advice)
    }

    fn working_set(&mut self, keys: &raw::WorkingSet, sink: &mut Sink) -> Option<Workload> {
        if keys.anon.is_none() && keys.file.is_none() && keys.bad.is_empty() {
            let hint = "add anon = \"1GiB\", or file = \"data\", or both";
            sink.hinted(keys.at, "workload working-set has no memory to work on", hint);
            return None;
        }
        let needs = |key: &str, other: &str, span: Span, sink: &mut Sink| {
            sink.hinted(span, format!("`{key}` without `{other}`"), format!("add `{other}` too"));
        };
        if let (Some(region), None) = (&keys.anon_region, &keys.anon) {
            needs("anon_region", "anon", region.span, sink);
        }
        if keys.file.is_none() {
            let size = keys.file_size.as_ref().map(|size| ("file_size", size.span));
            let region = keys.file_region.as_ref().map(|region| ("file_region", region.span));
            let advice = keys.advice.as_ref().map(|advice| ("advice", advice.span));
            for (key, span) in [size, region, advice].into_iter().flatten() {
                needs(key, "file", span, sink);
            }
        }
        let advice = advice(&keys.advice);
        let anon = match &keys.anon {
            Some(size) => {
                let pages = anon_pages(size, sink)?;
                let region = region_name(&keys.anon_region, size.span);
                let advice = self.advice_of(&region.value.0).unwrap_or(Advice::Normal);
                self.use_region(&region, None, advice, pages, size.span, sink)?;
                Some((region.value.0, pages))
            }
            None => None,
        };
        let file = match &keys.file {
            Some(name) => {
                let file = self.files.names.find(name, sink)?;
                let pages = self.mapped(file, name, &keys.file_size, sink)?;
                let region = keys.file_region.as_ref().unwrap_or(name);
                let span = keys.file_size.as_ref().map_or(name.span, |size| size.span);
                self.use_region(region, Some(file), advice, pages, span, sink)?;
                Some((file, region.value.0.clone(), pages, advice))
            }
            None => None,
        };
        let names = (
            anon.as_ref().map_or(String::new(), |anon| anon.0.clone()),
            file.as_ref().map_or(String::new(), |file| file.1.clone()),
        );
        self.use_generator(names, keys, sink);
        let percent = |key: &Option<At<Int<0, 100>>>, default: u32| {
            key.as_ref().map_or(default, |percent| percent.value.0 as u32)
        };
        Some(Workload::WorkingSet(WorkingSet {
            anon,
            file,
            populate: keys.populate.as_ref().is_some_and(|populate| populate.value),
            accesses: keys.accesses.as_ref().map_or(0, |accesses| accesses.value.0 as u64),
            anon_percent: percent(&keys.anon_percent, 50),
            hot_access_percent: percent(&keys.hot_access_percent, 80),
            hot_page_percent: percent(&keys.hot_page_percent, 20),
            write_percent: percent(&keys.write_percent, 100),
            generator_seed: keys.generator_seed.as_ref().map(|seed| seed.value.0 as u64),
        }))
    }

    fn trace(&self, keys: &raw::Trace, sink: &mut Sink) -> Option<Workload> {
        let place = (keys.at, keys.bad.as_slice());
        let path = self.trace_path(&keys.path, place, "workload trace", sink)?;
        Some(Workload::Trace { path, passes: passes(&keys.passes) })
    }

    /// The path of a trace that can be replayed.
    pub(super) fn trace_path(
        &self,
        path: &Option<At<String>>,
        place: (Span, &[&'static str]),
        what: &str,
        sink: &mut Sink,
    ) -> Option<PathBuf> {
        let path = need(path, "path", place, what, "\"program.ptt\"", sink)?;
        let full = self.scene.base_dir.join(&path.value);
        if let Err((problem, hint)) = crate::load::trace_file::check(&full) {
            let message = format!("trace `{}`: {problem}", clip(&path.value));
            sink.push(Problem { span: path.span, message, hint, also: None });
            return None;
        }
        Some(full)
    }

    /// Notes that a phase uses a region. Reports what contradicts another phase of the task, and
    /// regions that no address space holds.
    pub(super) fn use_region(
        &mut self,
        name: &At<Name>,
        file: Option<usize>,
        advice: Advice,
        pages: u64,
        size_span: Span,
        sink: &mut Sink,
    ) -> Option<()> {
        let known = self.regions.by_name.get_mut(&name.value.0);
        let known = match known {
            Some(region) => region,
            None => {
                let region = Region { file, advice, pages: 0, span: name.span };
                self.regions.by_name.entry(name.value.0.clone()).or_insert(region)
            }
        };
        let shown = clip(&name.value.0);
        let contradiction = if known.file != file {
            Some(format!("the region `{shown}` is backed by something else in another phase"))
        } else if known.advice != advice {
            Some(format!("the region `{shown}` has another advice in another phase"))
        } else {
            None
        };
        if let Some(message) = contradiction {
            let hint = "phases that name the same region share one mapping: use another `region`";
            let also = Some((known.span, "first used here".into()));
            sink.push(Problem { span: name.span, message, hint: Some(hint.into()), also });
            return None;
        }
        known.pages = known.pages.max(pages);
        let total: u64 = self.regions.by_name.values().map(|region| region.pages).sum();
        if total > REGION_PAGES_MAX {
            let shown = show_size(sink.page_size.bytes_of(total));
            let limit = show_size(sink.page_size.bytes_of(REGION_PAGES_MAX));
            let message = format!("larger than the address space: the task maps {shown}");
            sink.hinted(size_span, message, format!("a task can map {limit} in all"));
            return None;
        }
        Some(())
    }

    /// Notes the generator of a pair of regions: its first phase seeds it.
    fn use_generator(&mut self, names: (String, String), keys: &raw::WorkingSet, sink: &mut Sink) {
        let seed = keys.generator_seed.as_ref();
        let value = seed.map(|seed| seed.value.0);
        let span = seed.map_or(keys.at, |seed| seed.span);
        let (first, first_span) = *self.regions.generators.entry(names).or_insert((value, span));
        if let Some(seed) = seed.filter(|_| first != value) {
            let hint = "later phases on the same regions continue the generator: leave it out";
            sink.push(Problem {
                span: seed.span,
                message: "another start value than in an earlier phase".into(),
                hint: Some(hint.into()),
                also: Some((first_span, "the generator starts here".into())),
            });
        }
    }
}

fn block(block: &Option<At<Size>>, sink: &mut Sink) -> u64 {
    let Some(block) = block else { return DEFAULT_BLOCK };
    if block.value.0 == 0 || block.value.0 > BLOCK_MAX {
        let hint = format!("from 1 byte to {}", show_size(BLOCK_MAX));
        sink.hinted(block.span, "no size for a read() or write() call", hint);
    }
    block.value.0
}

fn anon_pages(size: &At<Size>, sink: &mut Sink) -> Option<u64> {
    if size.value.0 == 0 {
        sink.hinted(size.span, "a region of no size", "\"64MiB\", for example");
        return None;
    }
    Some(sink.page_size.pages_for(size.value.0))
}

pub(super) fn region_name(region: &Option<At<Name>>, span: Span) -> At<Name> {
    let default = || At { value: Name(DEFAULT_REGION.to_owned()), span };
    region.clone().unwrap_or_else(default)
}

fn passes(passes: &Option<At<Int<0, { u32::MAX as i64 }>>>) -> u32 {
    passes.as_ref().map_or(1, |passes| passes.value.0 as u32)
}

fn advice(advice: &Option<At<AdviceKind>>) -> Advice {
    match advice.as_ref().map(|advice| advice.value) {
        None | Some(AdviceKind::Normal) => Advice::Normal,
        Some(AdviceKind::Random) => Advice::Random,
        Some(AdviceKind::Sequential) => Advice::Sequential,
    }
}

/// The order of a walk; `None` after a mistake was reported.
fn order(
    order: &Option<At<OrderKind>>,
    exponent: &Option<At<Hundredths>>,
    sink: &mut Sink,
) -> Option<Order> {
    let kind = order.as_ref().map_or(OrderKind::Sequential, |order| order.value);
    if let (Some(exponent), true) = (exponent, kind != OrderKind::Zipf) {
        let hint = "only order = \"zipf\" has an exponent";
        sink.hinted(exponent.span, "`exponent` does not belong here", hint);
        return None;
    }
    Some(match kind {
        OrderKind::Sequential => Order::Sequential,
        OrderKind::Scattered => Order::Scattered,
        OrderKind::Random => Order::Random,
        OrderKind::Zipf => {
            let exponent = exponent.as_ref().map_or(100, |exponent| exponent.value.0);
            Order::Zipf { exponent_hundredths: exponent }
        }
    })
}
