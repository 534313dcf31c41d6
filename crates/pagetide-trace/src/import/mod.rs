//! Turns the recordings of other programs into `.ptt` traces.
//!
//! An import reads its input once, as a stream, and keeps a few bytes for every distinct page. The
//! regions are known only at the end. So the import first writes the folded records to a temporary
//! file (the spool), with page numbers in the order of first appearance, and then copies them with
//! their regions. Both temporary files lie beside the target. After a success the second one is
//! renamed to the target; after an error both are removed.

mod fold;
pub mod maps;
mod objects;
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

/// What there is to say about a format: each says it in a file of its own.
#[derive(Debug)]
struct Declaration {
    /// Its name on the command line.
    name: &'static str,
    /// What it is, in a line.
    what: &'static str,
    /// What a file of it holds, for messages.
    contents: &'static str,
    /// Text, not binary data.
    is_text: bool,
    /// Whether text with this start is of this format and of no other.
    is_marked: fn(&[u8]) -> bool,
    /// The window that suits it: 512 pages (2 MiB) and two million instructions (1 ms) of a
    /// program's references, plain runs where every request counts.
    window: Window,
    /// Options of `pagetide trace import` that not every format has.
    options: &'static [&'static str],
    /// What to do if nothing was in the input.
    if_empty: &'static str,
    /// Reads all references into the spool.
    read: fn(&mut Source<'_>, &Options, &mut Spool<'_>) -> Result<Imported, TraceError>,
}

macro_rules! formats {
    ($($(#[doc = $doc:literal])+ $format:ident in $file:ident,)+) => {
        $(mod $file;)+

        /// A format that can be imported.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Format {
            $($(#[doc = $doc])+ $format,)+
        }

        impl Format {
            /// All of them.
            pub const ALL: &'static [Format] = &[$(Format::$format),+];

            fn declaration(self) -> &'static Declaration {
                match self { $(Format::$format => &$file::FORMAT,)+ }
            }
        }
    };
}

formats! {
    /// `valgrind --tool=lackey --trace-mem=yes`.
    Lackey in lackey,
    /// libCacheSim's oracleGeneral: 24 bytes a request.
    OracleGeneral in oracle_general,
    /// Text with columns.
    Csv in csv,
}

impl Format {
    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        self.declaration().name
    }

    /// What it is, in a line.
    pub fn what(self) -> &'static str {
        self.declaration().what
    }

    /// Options of `pagetide trace import` that it has and not every format.
    pub fn options(self) -> &'static [&'static str] {
        self.declaration().options
    }

    /// The window that suits it.
    pub fn default_window(self) -> Window {
        self.declaration().window
    }

    /// The format that text with this start is certainly of.
    pub(crate) fn marked(start: &[u8]) -> Option<Format> {
        Format::ALL.iter().copied().find(|format| (format.declaration().is_marked)(start))
    }

    /// What a file of it holds, for messages.
    pub(crate) fn contents(self) -> &'static str {
        self.declaration().contents
    }

    /// The commands that may be tried on input that looks like this.
    pub(crate) fn commands(looks: Looks) -> String {
        let may_be = |format: &Format| match looks {
            Looks::Recording(certain) => certain == *format,
            Looks::Text => format.declaration().is_text,
            Looks::Zstd | Looks::Binary => !format.declaration().is_text,
            Looks::Empty | Looks::Ptt | Looks::Gzip => false,
        };
        let command = |format: Format| format!("`pagetide trace import {format}`");
        listed(Format::ALL.iter().copied().filter(may_be).map(command))
    }
}

/// `a, b or c`.
fn listed(items: impl Iterator<Item = String>) -> String {
    let mut items: Vec<String> = items.collect();
    let last = items.pop().unwrap_or_default();
    if items.is_empty() {
        return last;
    }
    format!("{} or {last}", items.join(", "))
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Format {
    type Err = TraceError;

    fn from_str(text: &str) -> Result<Format, TraceError> {
        let known = Format::ALL.iter().copied().find(|format| format.name() == text);
        known.ok_or_else(|| {
            let known = listed(Format::ALL.iter().map(|format| format!("`{format}`")));
            TraceError::whole(Problem::UnknownFormat { text: quote(text.as_bytes()), known })
        })
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

/// Imports `input` into the file `output`, which is replaced if it is a regular file, and refused if it is
/// anything else.
pub fn import(
    format: Format,
    input: impl Read,
    options: &Options,
    output: impl AsRef<Path>,
) -> Result<Summary, TraceError> {
    import_unless(&|| false, format, input, options, output)
}

/// The same; ends with [`Problem::Cancelled`], and nothing stays, soon after `cancelled` says so, even if the
/// input has been read. (A read that waits is for `input` to end.)
pub fn import_unless(
    cancelled: &dyn Fn() -> bool,
    format: Format,
    input: impl Read,
    options: &Options,
    output: impl AsRef<Path>,
) -> Result<Summary, TraceError> {
    let output = output.as_ref();
    target::check(output)?;
    let window = options.window.unwrap_or(format.default_window());
    if window.pages == 0 {
        return Err(bad_option("window", "0", "at least one page"));
    }
    let spool_file = Target::create(output, "spool")?;
    let mut spool = Spool::new(&spool_file, window, options)?;
    let mut input: Box<dyn Read + '_> = Box::new(input);
    let mut source = Source::new(&mut input)?;
    let mut imported = (format.declaration().read)(&mut source, options, &mut spool)?;
    if spool.is_empty() {
        return Err(TraceError::whole(Problem::Empty { hint: format.declaration().if_empty }));
    }
    let target = Target::create(output, "tmp")?;
    let regions = imported.layout.regions().len();
    let totals = spool.copy(&mut imported, options, &target, cancelled)?;
    if cancelled() {
        return Err(TraceError::whole(Problem::Cancelled));
    }
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
    TraceError::whole(Problem::BadText { what, text, expected, hint: hint_for(what) })
}

/// What to do about an option or a field that names a column.
const COLUMNS: Option<&str> =
    Some("columns count from 1; check the delimiter and `has-header` as well");

fn hint_for(what: &str) -> Option<&'static str> {
    what.ends_with("-col").then_some(COLUMNS).flatten()
}

fn wrong_format(wanted: &'static Declaration, start: &[u8]) -> TraceError {
    let looks_like = Looks::of(start);
    TraceError::at_byte(0, Problem::WrongFormat { wanted: wanted.contents, looks_like })
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
