//! Checks shared by the workloads of a task. Files must exist and be large enough, the address
//! space must hold the regions, and traces and object mixes must be readable.

use super::files::FileTemplates;
use super::groups::GroupIndex;
use super::objects::Mixes;
use crate::load::decode::{GroupTarget, NameKey, Size};
use crate::load::span::{clip, ProblemSink, SourceSpan, Spanned, SpannedProblem};
use crate::load::trace_file;
use crate::load::units::show_size;
use crate::model::object_mix::ObjectMix;
use crate::model::policies::PolicyChoices;
use crate::model::{Phase, TargetWrite};
use crate::op::Advice;
use crate::op::{FILE_SIZE_MAX, REGION_PAGES_MAX};
use pagetide_core::swap::content::ContentMix;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

/// Default size of a read() or write() call.
pub(crate) const DEFAULT_BLOCK: Size = Size(64 << 10);
/// Largest size of a read() or write() call, in bytes.
const BLOCK_MAX: u64 = 1 << 30;
/// Default name of the anonymous region.
const DEFAULT_REGION: &str = "anon";

/// Context for the checks of tasks, without the files.
#[derive(Clone, Copy)]
pub(crate) struct TaskChecks<'c> {
    /// Contents of the pages of tasks, on this machine.
    pub(super) content: ContentMix,
    pub(crate) groups: &'c GroupIndex<'c>,
    pub(super) policies: &'c PolicyChoices,
    /// Bytes of all nodes.
    pub(crate) memory: u64,
    /// Bytes that the kernel manages (MemTotal).
    pub(crate) managed: u64,
    /// Object mixes that the tasks name.
    pub(super) mixes: &'c RefCell<Mixes>,
}

impl TaskChecks<'_> {
    /// The write of a task to a control file of the group `target`, or of the machine.
    pub(crate) fn task_write(
        &self,
        write: (&Spanned<String>, &Spanned<String>),
        target: Option<(SourceSpan, usize)>,
        sink: &mut ProblemSink,
    ) -> Option<TargetWrite> {
        self.groups.task_write(write, target, self.policies, sink)
    }
}

pub(crate) type RegionUses = BTreeMap<String, RegionUse>;

/// A check that runs when all phases are known.
type DeferredCheck = Box<dyn Fn(&RegionUses, &mut ProblemSink)>;

/// The phases of a task while they are checked. Files are indices of templates.
pub(crate) struct Phases<'c, 'a> {
    pub(crate) files: &'c FileTemplates<'a>,
    pub(crate) scene: TaskChecks<'c>,
    pub(crate) regions: RegionUses,
    /// (anonymous region, file region) -> (start value, position).
    pub(crate) generators: BTreeMap<(String, String), (Option<i64>, SourceSpan)>,
    pub(crate) later: Vec<DeferredCheck>,
    /// The phases checked so far, repeats included.
    pub(crate) before: Vec<Phase>,
    /// Some phase could not be read.
    pub(crate) is_incomplete: bool,
}

/// A region that a phase uses.
#[derive(Debug)]
pub(crate) struct RegionUse {
    /// Template of the file; `None`: anonymous.
    pub(crate) file: Option<usize>,
    pub(crate) advice: Advice,
    pub(crate) pages: u64,
    pub(crate) span: SourceSpan,
}

impl<'c, 'a> Phases<'c, 'a> {
    pub(super) fn new(files: &'c FileTemplates<'a>, scene: TaskChecks<'c>) -> Self {
        let (regions, generators, later, before) = Default::default();
        Self { files, scene, regions, generators, later, before, is_incomplete: false }
    }

    /// Runs the deferred checks, if all phases could be read.
    pub(super) fn finish(&self, sink: &mut ProblemSink) {
        if self.is_incomplete {
            return;
        }
        for check in &self.later {
            check(&self.regions, sink);
        }
    }

    /// Reports appends that make a file larger than a file can be.
    pub(crate) fn check_growth(
        &self,
        file: usize,
        bytes: u64,
        span: SourceSpan,
        sink: &mut ProblemSink,
    ) {
        let end = self.files.size(file).saturating_add(bytes);
        if end > FILE_SIZE_MAX {
            let limit = show_size(FILE_SIZE_MAX);
            sink.hinted(
                span,
                "the appends make the file too large",
                format!("a file has at most {limit}"),
            );
        }
    }

    /// The size of a file that is read; reports an empty file.
    pub(crate) fn not_empty(
        &self,
        file: usize,
        name: &Spanned<NameKey>,
        sink: &mut ProblemSink,
    ) -> Option<u64> {
        let size = self.files.size(file);
        if size > 0 {
            return Some(size);
        }
        if self.files.is_of_unknown_size(file) {
            return None;
        }
        sink.push(SpannedProblem {
            span: name.span,
            message: format!("the file `{}` is empty when the run starts", clip(&name.value.0)),
            hint: Some("give it a size = \"1GiB\", for example".into()),
            also: self.files.span(file).map(|span| (span, "named here".into())),
        });
        None
    }

    /// Reports a file that is not metadata of a file system.
    pub(crate) fn is_metadata(&self, file: usize, name: &Spanned<NameKey>, sink: &mut ProblemSink) {
        if self.files.is_metadata(file) {
            return;
        }
        sink.push(SpannedProblem {
            span: name.span,
            message: format!("the file `{}` is not metadata", clip(&name.value.0)),
            hint: Some("give the file metadata = true".into()),
            also: self.files.span(file).map(|span| (span, "named here".into())),
        });
    }

    /// Pages of a mapping of a file.
    pub(crate) fn mapped(
        &self,
        file: usize,
        name: &Spanned<NameKey>,
        size: &Option<Spanned<Size>>,
        sink: &mut ProblemSink,
    ) -> Option<u64> {
        let whole = self.not_empty(file, name, sink)?;
        let Some(size) = size else { return Some(sink.page_size.pages_for(whole)) };
        let pages = sink.page_size.pages_for(size.value.0);
        if pages == 0 {
            sink.hinted(size.span, "the mapping has size 0", "leave it out for the whole file");
            return None;
        }
        if pages > sink.page_size.pages_for(whole) {
            let shown = (show_size(size.value.0), show_size(whole));
            sink.push(SpannedProblem {
                span: size.span,
                message: format!("the mapping has {}, but the file has only {}", shown.0, shown.1),
                hint: Some("make the file larger, or map less of it".into()),
                also: self.files.span(file).map(|span| (span, "the file".into())),
            });
            return None;
        }
        Some(pages)
    }

    /// The advice that an earlier phase gave for an anonymous region.
    pub(crate) fn advice_of(&self, region: &str) -> Advice {
        let known = self.regions.get(region).filter(|known| known.file.is_none());
        known.map_or(Advice::Normal, |known| known.advice)
    }

    /// The named group, if the key is set; `None` if the group does not exist.
    pub(crate) fn group(
        &self,
        name: &Option<Spanned<GroupTarget>>,
        sink: &mut ProblemSink,
    ) -> Option<Option<usize>> {
        match name {
            Some(name) => self.scene.groups.find_one(name, sink).map(Some),
            None => Some(None),
        }
    }

    pub(crate) fn mix(
        &self,
        path: &Spanned<String>,
        sink: &mut ProblemSink,
    ) -> Option<Arc<ObjectMix>> {
        self.scene.mixes.borrow_mut().load(path, sink)
    }

    /// The path of a trace; reports a trace that cannot be replayed.
    pub(crate) fn trace(&self, path: &Spanned<String>, sink: &mut ProblemSink) -> Option<PathBuf> {
        let full = sink.path(path);
        if let Err((problem, hint)) = trace_file::check(&full) {
            let message = format!("trace `{}`: {problem}", clip(&path.value));
            sink.push(SpannedProblem { span: path.span, message, hint, also: None });
            return None;
        }
        Some(full)
    }

    /// Records that a phase uses a region. Reports a contradiction to another phase of the task,
    /// and regions that exceed the address space.
    pub(crate) fn use_region(
        &mut self,
        name: &Spanned<NameKey>,
        file: Option<usize>,
        advice: Advice,
        pages: u64,
        size_span: SourceSpan,
        sink: &mut ProblemSink,
    ) -> Option<()> {
        let new = || RegionUse { file, advice, pages: 0, span: name.span };
        let known = self.regions.entry(name.value.0.clone()).or_insert_with(new);
        let shown = clip(&name.value.0);
        let contradiction = if known.file != file {
            Some(format!("the region `{shown}` has another file or none in another phase"))
        } else if known.advice != advice {
            Some(format!("the region `{shown}` has other advice in another phase"))
        } else {
            None
        };
        if let Some(message) = contradiction {
            let hint = "phases that name the same region share one mapping: use another `region`";
            let also = Some((known.span, "first used here".into()));
            sink.push(SpannedProblem { span: name.span, message, hint: Some(hint.into()), also });
            return None;
        }
        known.pages = known.pages.max(pages);
        let total: u64 = self.regions.values().map(|region| region.pages).sum();
        if total > REGION_PAGES_MAX {
            let shown = show_size(sink.page_size.bytes_of(total));
            let limit = show_size(sink.page_size.bytes_of(REGION_PAGES_MAX));
            let message = format!("the task maps {shown}, more than the address space");
            sink.hinted(size_span, message, format!("a task can map at most {limit} in total"));
            return None;
        }
        Some(())
    }
}

/// Reports a size that a read() or write() call cannot have.
pub(crate) fn check_block(block: &Option<Spanned<Size>>, sink: &mut ProblemSink) {
    let is_possible = |block: &Spanned<Size>| (1..=BLOCK_MAX).contains(&block.value.0);
    if let Some(block) = block.as_ref().filter(|block| !is_possible(block)) {
        let hint = format!("write a size from 1 byte to {}", show_size(BLOCK_MAX));
        sink.hinted(block.span, "not a valid size of a read() or write() call", hint);
    }
}

pub(crate) fn anon_pages(size: &Spanned<Size>, sink: &mut ProblemSink) -> Option<u64> {
    if size.value.0 == 0 {
        sink.hinted(size.span, "the region has size 0", "write size = \"64MiB\", for example");
        return None;
    }
    Some(sink.page_size.pages_for(size.value.0))
}

/// The name of an anonymous region; the default name gets the position `span`.
pub(crate) fn region_name(region: &Option<Spanned<NameKey>>, span: SourceSpan) -> Spanned<NameKey> {
    let default = || Spanned { value: NameKey(DEFAULT_REGION.to_owned()), span };
    region.clone().unwrap_or_else(default)
}
