//! Turns what other programs record into `.ptt` traces.
//!
//! An import reads its input once, as a stream, and keeps a few bytes for every distinct page.
//! Which regions there are is known only at the end; so the folded records are spooled, page
//! numbers in the order of first appearance, into a temporary file, and copied from there with
//! their regions. Both temporary files lie beside the target; the target appears by a rename when
//! all went well, and after an error nothing is left.

mod csv;
mod fold;
mod lackey;
pub mod maps;
mod objects;
mod oracle_general;
mod regions;
mod source;
mod spool;
mod target;

use std::fmt;
use std::io::{self, Read};
use std::path::Path;
use std::str::FromStr;

pub use self::csv::CsvOptions;
pub use self::maps::Maps;
use self::source::Source;
use self::spool::Spool;
use self::target::Target;
use crate::error::{Looks, Problem, TraceError};
use crate::format::{Totals, Window};

/// A format that can be imported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// `valgrind --tool=lackey --trace-mem=yes`.
    Lackey,
    /// libCacheSim's oracleGeneral: 24 bytes a request.
    OracleGeneral,
    /// Text with columns.
    Csv,
}

impl Format {
    /// All of them.
    pub const ALL: [Format; 3] = [Format::Lackey, Format::OracleGeneral, Format::Csv];

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Format::Lackey => "lackey",
            Format::OracleGeneral => "oracle-general",
            Format::Csv => "csv",
        }
    }

    /// The window that suits it: 512 pages (2 MiB) and two million instructions (1 ms) of a
    /// program's references, plain runs where every request counts.
    pub fn default_window(self) -> Window {
        match self {
            Format::Lackey => Window { pages: 512, time: 2_000_000 },
            Format::OracleGeneral | Format::Csv => Window { pages: 1, time: 0 },
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Format {
    type Err = TraceError;

    fn from_str(text: &str) -> Result<Format, TraceError> {
        let known = Format::ALL.into_iter().find(|format| format.name() == text);
        known.ok_or_else(|| bad_option("format", text, "`lackey`, `oracle-general` or `csv`"))
    }
}

/// How to import.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// Where the input comes from, for people: best the command that recorded it.
    pub source: String,
    /// How references are merged; `None`: as suits the format.
    pub window: Option<Window>,
    /// Lackey: which addresses are of which file.
    pub maps: Option<Maps>,
    /// csv: the columns.
    pub csv: CsvOptions,
    /// csv and oracleGeneral: this many seconds of the input make one second of the trace; 0
    /// drops the time.
    pub time_divisor: u64,
    /// csv and oracleGeneral: size of the largest object, in bytes.
    pub max_object_size: u64,
    /// Most distinct pages; more is an error, so that memory stays bounded (5 bytes a page, and
    /// 40 a page or object for finding its number).
    pub max_pages: u32,
}

impl Default for Options {
    fn default() -> Options {
        Options {
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

/// What an import did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summary {
    /// Bytes read (after decompression).
    pub input_bytes: u64,
    /// Lines or records read.
    pub input_records: u64,
    /// Of these, how many were no references: lackey's `==` lines, deletions, requests of size 0.
    pub skipped: u64,
    /// Requests whose time was before that of the one before; they were taken as simultaneous.
    pub disordered: u64,
    /// Number of regions.
    pub regions: usize,
    /// The sums of the trace.
    pub totals: Totals,
    /// Bytes of the `.ptt` file.
    pub output_bytes: u64,
}

/// Imports `input` into the file `output`, which is replaced if it exists.
pub fn import(
    format: Format,
    input: impl Read,
    options: &Options,
    output: impl AsRef<Path>,
) -> Result<Summary, TraceError> {
    let output = output.as_ref();
    let window = options.window.unwrap_or(format.default_window());
    if window.pages == 0 {
        return Err(bad_option("window", "0", "at least one page"));
    }
    let spool_file = Target::create(output, "spool")?;
    let mut spool = Spool::new(&spool_file, window, options)?;
    let mut input: Box<dyn Read + '_> = Box::new(input);
    let mut source = Source::new(&mut input)?;
    let mut imported = match format {
        Format::Lackey => lackey::read(&mut source, options, &mut spool),
        Format::OracleGeneral => oracle_general::read(&mut source, options, &mut spool),
        Format::Csv => csv::read(&mut source, options, &mut spool),
    }?;
    if spool.is_empty() {
        return Err(TraceError::whole(Problem::Empty));
    }
    let target = Target::create(output, "tmp")?;
    let regions = imported.layout.regions().len();
    let totals = spool.copy(&mut imported, options, &target)?;
    let output_bytes = target.commit(output)?;
    Ok(Summary {
        input_bytes: source.bytes(),
        input_records: imported.records,
        skipped: imported.skipped,
        disordered: imported.disordered,
        regions,
        totals,
        output_bytes,
    })
}

/// What a format's reader found beside the references themselves.
struct Imported {
    layout: Layout,
    clock: crate::format::Clock,
    records: u64,
    skipped: u64,
    disordered: u64,
    /// Time at the end.
    end: u64,
}

/// Regions, and where each page is in them.
enum Layout {
    Derived(regions::Layout),
    Objects(objects::Layout),
}

impl Layout {
    fn regions(&self) -> &[crate::format::Region] {
        match self {
            Layout::Derived(layout) => &layout.regions,
            Layout::Objects(layout) => &layout.regions,
        }
    }

    fn place(&mut self, page: u64) -> (u32, u64) {
        match self {
            Layout::Derived(layout) => layout.places[page as usize],
            Layout::Objects(layout) => layout.place(page),
        }
    }
}

fn bad_option(what: &'static str, text: &str, expected: &'static str) -> TraceError {
    let text = quote(text.as_bytes());
    TraceError::whole(Problem::BadText { what, text, expected })
}

fn wrong_format(wanted: &'static str, start: &[u8]) -> TraceError {
    let looks_like = Looks::of(start);
    TraceError::at_byte(0, Problem::WrongFormat { wanted, looks_like })
}

/// Longest piece of the user's text that a message repeats.
const QUOTE_LIMIT: usize = 60;

/// Text of the user's for a message: shortened, and without control characters.
pub(crate) fn quote(text: &[u8]) -> String {
    let cut = text.len().min(QUOTE_LIMIT);
    let mut quoted: String = text[..cut].escape_ascii().to_string();
    if cut < text.len() {
        quoted.push_str("...");
    }
    quoted
}

impl TraceError {
    /// Wrapped, to pass through a function that knows only `io::Error`.
    pub(crate) fn into_io(self) -> io::Error {
        io::Error::other(self)
    }

    /// What [`TraceError::into_io`] has wrapped, or the error itself.
    pub(crate) fn unwrap_io(error: io::Error) -> Result<TraceError, io::Error> {
        error.downcast::<TraceError>()
    }
}
