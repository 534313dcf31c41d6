//! Errors of traces, and of texts that are imported as traces.
//!
//! A [`TraceError`] has the file, the byte or line, the problem, and a hint. It implements `==`, so
//! tests compare values, not text.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use crate::format::VERSION;
#[cfg(feature = "import")]
use crate::import::Format;

/// A problem, with the file and the position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceError {
    /// The file, when it is known.
    pub file: Option<PathBuf>,
    /// Position in the file.
    pub place: Place,
    pub problem: Problem,
}

/// Position of a problem in the input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// No position: the problem is an option, or the file as a whole.
    Whole,
    /// Byte, counted from 0. In a zstd-compressed import it counts decompressed bytes.
    Byte(u64),
    /// Line, counted from 1.
    Line {
        line: u64,
        /// Offset of the first byte of the line.
        byte: u64,
    },
}

/// A part of a `.ptt` file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Magic, version, regions.
    Header,
    /// A block of records.
    Block,
    /// Totals.
    Footer,
    /// The last 16 bytes.
    Trailer,
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Part::Header => "header",
            Part::Block => "block",
            Part::Footer => "footer",
            Part::Trailer => "trailer",
        })
    }
}

/// The kind of problem, with its details.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Problem {
    /// An error of the operating system.
    Io { kind: io::ErrorKind, message: String },
    /// The file is not a `.ptt` file.
    NotATrace { looks_like: Looks },
    /// A `.ptt` file of a version that this program cannot read.
    Version { found: u16 },
    /// The file ends in the middle of a part.
    Truncated { part: Part },
    /// The checksum of a part does not match its content.
    Checksum {
        part: Part,
        /// The checksum in the file.
        stored: u64,
        /// The checksum of the content.
        computed: u64,
    },
    /// A part has an invalid value.
    Malformed { part: Part, what: &'static str },
    /// Bytes after the end of the trace.
    Trailing,
    /// The output path exists and is not a regular file.
    NotAFile { what: &'static str },
    /// The caller cancelled the import.
    Cancelled,
    /// A number above its limit.
    TooLarge { what: &'static str, value: u64, limit: u64 },
    /// The input of an import is not in the format that the user named.
    WrongFormat { wanted: &'static str, looks_like: Looks },
    /// The input of an import has no references.
    Empty { hint: &'static str },
    /// No importer has this name.
    UnknownFormat {
        /// The text, shortened.
        text: String,
        /// The names of all importers.
        known: String,
    },
    /// A line, field or option that cannot be parsed.
    BadText {
        /// Name of the line, field or option: `lackey line`, `obj-size-col`, ...
        what: &'static str,
        /// The text, shortened.
        text: String,
        /// The valid form.
        expected: &'static str,
        hint: Option<&'static str>,
    },
    /// A line with too few columns.
    MissingColumn {
        /// The option that names the column.
        option: &'static str,
        /// Number of the missing column, from 1.
        column: usize,
        /// Number of columns in the line.
        present: usize,
    },
    /// The input ends in the middle of a record or of a compressed frame.
    CutShort { what: &'static str },
    /// The compressed data cannot be decompressed.
    Compression { message: String },
}

/// What the first bytes of a file look like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Looks {
    /// Nothing at all.
    Empty,
    /// A `.ptt` trace.
    Ptt,
    /// zstd-compressed data.
    Zstd,
    /// gzip-compressed data.
    Gzip,
    /// Input of this importer, recognized by its content.
    #[cfg(feature = "import")]
    Recording(Format),
    /// Text of another kind.
    Text,
    /// Binary data of another kind.
    Binary,
}

impl fmt::Display for Looks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Looks::Empty => "an empty file",
            Looks::Ptt => "a .ptt page trace",
            Looks::Zstd => "zstd-compressed data",
            Looks::Gzip => "gzip-compressed data",
            #[cfg(feature = "import")]
            Looks::Recording(format) => format.contents(),
            Looks::Text => "text",
            Looks::Binary => "binary data",
        })
    }
}

impl Looks {
    /// The import commands that may read such a file; empty if none does.
    fn commands(self) -> String {
        #[cfg(feature = "import")]
        return Format::commands(self);
        #[cfg(not(feature = "import"))]
        String::new()
    }
}

impl TraceError {
    /// An error at a byte.
    pub fn at_byte(byte: u64, problem: Problem) -> Self {
        TraceError { file: None, place: Place::Byte(byte), problem }
    }

    /// An error in a line.
    pub fn at_line(line: u64, byte: u64, problem: Problem) -> Self {
        TraceError { file: None, place: Place::Line { line, byte }, problem }
    }

    /// An error without a position.
    pub fn whole(problem: Problem) -> Self {
        TraceError { file: None, place: Place::Whole, problem }
    }

    /// Adds the file name, if the error has none yet.
    #[must_use]
    pub fn in_file(mut self, file: &Path) -> Self {
        self.file.get_or_insert_with(|| file.to_path_buf());
        self
    }

    /// Byte offset of the problem.
    pub fn byte(&self) -> Option<u64> {
        match self.place {
            Place::Whole => None,
            Place::Byte(byte) | Place::Line { byte, .. } => Some(byte),
        }
    }

    /// Line of the problem; `None` for binary input.
    pub fn line(&self) -> Option<u64> {
        match self.place {
            Place::Whole | Place::Byte(_) => None,
            Place::Line { line, .. } => Some(line),
        }
    }

    /// How the user can solve the problem.
    pub fn hint(&self) -> Option<String> {
        let hint = match &self.problem {
            Problem::Io { .. } => return None,
            Problem::NotATrace { looks_like } => match looks_like.commands() {
                commands if commands.is_empty() => "give a file that ends in .ptt".into(),
                commands => format!("convert it to a trace with {commands}"),
            },
            Problem::Version { .. } => {
                format!("this program reads version {VERSION}; import the original again")
            }
            Problem::Truncated { .. } => "the file is incomplete: copy or import it again".into(),
            Problem::Checksum { .. } | Problem::Malformed { .. } | Problem::Trailing => {
                "the file was changed after it was written: copy or import it again".into()
            }
            Problem::NotAFile { .. } => {
                "nothing was written; name a new file, or a regular file to replace".into()
            }
            Problem::Cancelled => return None,
            Problem::TooLarge { .. } => "remove the entry from the input, or split it".into(),
            Problem::WrongFormat { looks_like, .. } => match looks_like {
                Looks::Gzip => "decompress it first: `zcat FILE | pagetide ... -`".into(),
                Looks::Ptt => "the file is already a trace; it needs no import".into(),
                Looks::Empty => "the recording failed; see the messages of its command".into(),
                other => format!("try {}", other.commands()),
            },
            Problem::Empty { hint } => (*hint).into(),
            Problem::UnknownFormat { .. } => return None,
            Problem::BadText { hint, .. } => return hint.map(str::to_owned),
            Problem::MissingColumn { .. } => {
                "columns count from 1; also check `delimiter` and `has-header`".into()
            }
            Problem::CutShort { .. } | Problem::Compression { .. } => {
                "the input is incomplete or damaged: download or record it again".into()
            }
        };
        Some(hint)
    }
}

impl fmt::Display for TraceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(file) = &self.file {
            write!(f, "{}: ", file.display())?;
        }
        match self.place {
            Place::Whole => {}
            Place::Byte(byte) => write!(f, "byte {byte}: ")?,
            Place::Line { line, byte } => write!(f, "line {line} (byte {byte}): ")?,
        }
        write!(f, "{}", self.problem)?;
        if let Some(hint) = self.hint() {
            write!(f, "\nhint: {hint}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Problem::Io { message, .. } => f.write_str(message),
            Problem::NotATrace { looks_like } => {
                write!(f, "not a .ptt page trace; it looks like {looks_like}")
            }
            Problem::Version { found } => write!(f, "unknown trace version {found}"),
            Problem::Truncated { part } => write!(f, "the file ends within its {part}"),
            Problem::Checksum { part, stored, computed } => {
                write!(f, "checksum of the {part}: stored {stored:016x}, computed {computed:016x}")
            }
            Problem::Malformed { part, what } => write!(f, "malformed {part}: {what}"),
            Problem::NotAFile { what } => write!(f, "the output is {what}, not a regular file"),
            Problem::Cancelled => f.write_str("cancelled"),
            Problem::Trailing => f.write_str("there are bytes after the end of the trace"),
            Problem::TooLarge { what, value, limit } => {
                write!(f, "{what} {value} is above the limit of {limit}")
            }
            Problem::WrongFormat { wanted, looks_like } => {
                write!(f, "this is not {wanted}; it looks like {looks_like}")
            }
            Problem::Empty { .. } => f.write_str("the input has no references"),
            Problem::UnknownFormat { text, known } => write!(f, "format `{text}` is not {known}"),
            Problem::BadText { what, text, expected, .. } => {
                write!(f, "{what} `{text}` is not {expected}")
            }
            Problem::MissingColumn { option, column, present } => {
                write!(f, "{option} is {column}, but the line has {present} columns")
            }
            Problem::CutShort { what } => write!(f, "the input ends within a {what}"),
            Problem::Compression { message } => write!(f, "cannot decompress: {message}"),
        }
    }
}

impl std::error::Error for TraceError {}

impl From<io::Error> for TraceError {
    fn from(error: io::Error) -> Self {
        TraceError::whole(Problem::Io { kind: error.kind(), message: error.to_string() })
    }
}
