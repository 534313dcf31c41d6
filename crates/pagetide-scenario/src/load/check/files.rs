//! Checks files: shared files, and private files, which are created for each task that names them.

use super::names::NameIndex;
use crate::load::raw::FileTable as RawFile;
use crate::load::span::{ProblemSink, SourceSpan, Spanned};
use crate::load::units::show_size;
use crate::model::File;
use crate::op::FILE_SIZE_MAX;
use pagetide_core::units::page_size::PageSize;
use std::collections::BTreeMap;

#[derive(Debug)]
pub(crate) struct FileTemplates<'a> {
    pub(crate) names: NameIndex<'a>,
    templates: Vec<FileTemplate>,
    /// The files of the setup.
    pub(super) list: Vec<File>,
    /// (template, task) -> index into `list`.
    private: BTreeMap<(usize, String), usize>,
    page_size: PageSize,
}

#[derive(Debug)]
struct FileTemplate {
    file: File,
    /// Index into [`FileTemplates::list`]; `None` for a private file.
    shared: Option<usize>,
    /// The size could not be read, which has been reported.
    is_of_unknown_size: bool,
}

pub(super) fn check<'a>(
    list: &'a [RawFile],
    is_incomplete: bool,
    disks: &NameIndex<'_>,
    sink: &mut ProblemSink,
) -> FileTemplates<'a> {
    let mut files = FileTemplates {
        names: NameIndex::new("file"),
        templates: Vec::new(),
        list: Vec::new(),
        private: BTreeMap::new(),
        page_size: sink.page_size,
    };
    files.names.is_incomplete = is_incomplete;
    for file in list {
        let name = file.name(sink);
        let disk = file.disk.as_ref().and_then(|disk| disks.find(disk, sink)).unwrap_or(0);
        let size = file.size.as_ref().map_or(0, |size| check_size(size, sink));
        let Some(name) = name else {
            files.names.is_incomplete = true;
            continue;
        };
        files.names.insert(&name.value.0, name.span, files.templates.len(), sink);
        let (sparse, metadata) = (file.sparse(), file.metadata());
        let checked = File { name: name.value.0.clone(), size, sparse, metadata, disk };
        let shared = (!file.private()).then_some(files.list.len());
        if shared.is_some() {
            files.list.push(checked.clone());
        }
        let is_of_unknown_size = file.bad.contains(&"size");
        files.templates.push(FileTemplate { file: checked, shared, is_of_unknown_size });
    }
    files
}

fn check_size(size: &Spanned<crate::load::decode::Size>, sink: &mut ProblemSink) -> u64 {
    let bytes = size.value.0;
    if bytes > FILE_SIZE_MAX {
        let limit = show_size(FILE_SIZE_MAX);
        sink.hinted(size.span, "the file is too large", format!("a file has at most {limit}"));
    }
    bytes
}

impl FileTemplates<'_> {
    /// Size of the file of a template, in bytes.
    pub(super) fn size(&self, template: usize) -> u64 {
        self.templates.get(template).map_or(0, |template| template.file.size)
    }

    pub(super) fn is_of_unknown_size(&self, template: usize) -> bool {
        self.templates.get(template).is_some_and(|template| template.is_of_unknown_size)
    }

    /// Whether the file of a template is metadata of a file system.
    pub(super) fn is_metadata(&self, template: usize) -> bool {
        self.templates.get(template).is_some_and(|template| template.file.metadata)
    }

    /// Position of the file's name.
    pub(crate) fn span(&self, template: usize) -> Option<SourceSpan> {
        let template = self.templates.get(template)?;
        self.names.span(&template.file.name)
    }

    /// A file for the page cache that a task has when the run starts.
    pub(super) fn resident_of(&mut self, task: &str, pages: u64) -> usize {
        let name = format!("resident@{task}");
        let size = self.page_size.bytes_of(pages);
        self.list.push(File { name, size, sparse: false, metadata: false, disk: 0 });
        self.list.len() - 1
    }

    /// The file that a template stands for in `task`: index into the setup's files.
    pub(super) fn of_task(&mut self, template: usize, task: &str) -> usize {
        let Some(FileTemplate { file, shared, .. }) = self.templates.get(template) else {
            return 0;
        };
        if let Some(index) = shared {
            return *index;
        }
        let list = &mut self.list;
        *self.private.entry((template, task.to_owned())).or_insert_with(|| {
            list.push(File { name: format!("{}@{task}", file.name), ..file.clone() });
            list.len() - 1
        })
    }
}
