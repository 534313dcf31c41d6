//! Importers: convert the output of other tracers into `.ptt` traces.
//!
//! An import reads its input once, as a stream, and keeps a few bytes for every distinct page. The
//! regions are known only at the end. So the import first writes the folded records to a temporary
//! file (the spool), with page numbers in the order of first appearance, and then copies them with
//! their regions into a second one. Both files are in the directory of the target. After a success
//! the second file is renamed to the target; after an error both are removed.

mod csv;
mod fold;
mod formats;
mod lackey;
pub mod maps;
mod objects;
mod oracle_general;
mod regions;
mod source;
mod spool;
mod target;

use std::io::{self, Read};
use std::path::Path;

pub use self::csv::CsvOptions;
pub use self::formats::Format;
use self::formats::FormatSpec;
pub use self::maps::Maps;
use self::source::ImportInput;
use self::spool::Spool;
use self::target::TempTarget;
use crate::error::{quote, FileType, TraceError, TraceProblem};
use crate::format::{FoldWindow, Totals};

#[derive(Clone, Debug, PartialEq)]
pub struct ImportOptions {
    /// Shown to the user only; best the command that recorded the input.
    pub source: String,
    /// `None`: the default of the format.
    pub window: Option<FoldWindow>,
    /// lackey: the file mappings of the program.
    pub maps: Option<Maps>,
    /// csv: the columns.
    pub csv: CsvOptions,
    /// csv and oracleGeneral: this many seconds of the input become one second of the trace; 0
    /// drops the time.
    pub time_divisor: u64,
    /// csv and oracleGeneral: size of the largest object, in bytes.
    pub max_object_size: u64,
    /// Most distinct pages; more is an error. This bounds the memory of an import (5 bytes a page,
    /// and 40 bytes for the lookup of a page or object).
    pub max_pages: u32,
}

impl Default for ImportOptions {
    fn default() -> ImportOptions {
        ImportOptions {
            source: String::new(),
            window: None,
            maps: None,
            csv: CsvOptions::default(),
            time_divisor: 1,
            max_object_size: 1 << 30,
            max_pages: 1 << 26,
        }
    }
}

/// Result of an import.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportSummary {
    /// Bytes read, after decompression.
    pub input_bytes: u64,
    /// Lines or records read.
    pub input_records: u64,
    /// Number of `input_records` that are not references: lackey's `==` lines, deletions,
    /// requests of size 0.
    pub skipped: u64,
    /// Requests with an earlier time than their predecessor; they get the time of the predecessor.
    pub disordered: u64,
    /// csv: the first line was taken for the names of the columns.
    pub has_header: bool,
    pub regions: usize,
    pub totals: Totals,
    /// Bytes of the `.ptt` file.
    pub output_bytes: u64,
}

/// Imports `input` into the file `output`. Replaces a regular file; anything else is an error.
pub fn import(
    format: Format,
    input: impl Read,
    options: &ImportOptions,
    output: impl AsRef<Path>,
) -> Result<ImportSummary, TraceError> {
    import_cancellable(&|| false, format, input, options, output)
}

/// Same as [`import`], but can be cancelled: soon after `cancelled` returns true it removes its
/// files and returns [`TraceProblem::Cancelled`]. While it reads, it does not call `cancelled`;
/// `input` must end the read.
pub fn import_cancellable(
    cancelled: &dyn Fn() -> bool,
    format: Format,
    input: impl Read,
    options: &ImportOptions,
    output: impl AsRef<Path>,
) -> Result<ImportSummary, TraceError> {
    let output = output.as_ref();
    target::check(output)?;
    let window = options.window.unwrap_or(format.default_window());
    if window.pages == 0 {
        return Err(bad_option("window", "0", "a positive number of pages"));
    }
    let spool_file = TempTarget::create(output, "spool")?;
    let mut spool = Spool::new(&spool_file, window, options)?;
    let mut input: Box<dyn Read + '_> = Box::new(input);
    let mut source = ImportInput::new(&mut input)?;
    let mut imported = read(format, &mut source, options, &mut spool)?;
    if spool.is_empty() {
        return Err(TraceError::whole(TraceProblem::Empty { hint: format.declaration().if_empty }));
    }
    let target = TempTarget::create(output, "tmp")?;
    let regions = imported.layout.regions().len();
    let totals = spool.copy(&mut imported, options, &target, cancelled)?;
    if cancelled() {
        return Err(TraceError::whole(TraceProblem::Cancelled));
    }
    let output_bytes = target.commit()?;
    Ok(ImportSummary {
        input_bytes: source.bytes(),
        input_records: imported.records,
        skipped: imported.skipped,
        disordered: imported.disordered,
        has_header: imported.has_header,
        regions,
        totals,
        output_bytes,
    })
}

/// Reads all references of the input into the spool.
fn read(
    format: Format,
    input: &mut ImportInput<'_>,
    options: &ImportOptions,
    spool: &mut Spool<'_>,
) -> Result<ImportResult, TraceError> {
    match format {
        Format::Lackey => lackey::read(input, options, spool),
        Format::OracleGeneral => oracle_general::read(input, options, spool),
        Format::Csv => csv::read(input, options, spool),
    }
}

/// Result of a format's reader, in addition to the references in the spool.
struct ImportResult {
    layout: PageLayout,
    clock: crate::format::Clock,
    records: u64,
    skipped: u64,
    disordered: u64,
    has_header: bool,
    /// Time at the end of the input.
    end: u64,
}

/// The regions, and the region and page of each spool page number.
enum PageLayout {
    Derived(regions::AddressLayout),
    Objects(objects::ObjectLayout),
}

impl PageLayout {
    fn regions(&self) -> &[crate::format::TraceRegion] {
        match self {
            PageLayout::Derived(layout) => &layout.regions,
            PageLayout::Objects(layout) => &layout.regions,
        }
    }

    fn place(&mut self, page: u64) -> (u32, u64) {
        match self {
            PageLayout::Derived(layout) => layout.places[page as usize],
            PageLayout::Objects(layout) => layout.place(page),
        }
    }
}

fn bad_option(what: &'static str, text: &str, expected: &'static str) -> TraceError {
    let text = quote(text.as_bytes());
    TraceError::whole(TraceProblem::BadText { what, text, expected, hint: hint_for(what) })
}

/// Hint for an option that names a column, and for a bad field.
const COLUMNS: Option<&str> = Some("columns count from 1; also check `delimiter` and `has-header`");

fn hint_for(what: &str) -> Option<&'static str> {
    what.ends_with("-col").then_some(COLUMNS).flatten()
}

fn wrong_format(wanted: &'static FormatSpec, start: &[u8]) -> TraceError {
    let looks_like = FileType::of(start);
    TraceError::at_byte(0, TraceProblem::WrongFormat { wanted: wanted.contents, looks_like })
}

impl TraceError {
    /// Wraps the error to pass through a function that returns `io::Error`.
    pub(crate) fn into_io(self) -> io::Error {
        io::Error::other(self)
    }

    /// Unwraps an error from [`TraceError::into_io`]; `Err` with the error itself if it is another
    /// one.
    pub(crate) fn unwrap_io(error: io::Error) -> Result<TraceError, io::Error> {
        error.downcast::<TraceError>()
    }
}
