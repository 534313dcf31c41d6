//! Errors of traces, and of texts that are imported as traces.
//!
//! A [`TraceError`] has the file, the byte or line, the problem, and a hint. All parts can be
//! compared with `==`, so tests assert on values and not on sentences.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use crate::format::VERSION;
#[cfg(feature = "import")]
use crate::import::Format;

/// What went wrong, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceError {
    /// The file, when it is known.
    pub file: Option<PathBuf>,
    /// Where in it.
    pub place: Place,
    /// What is wrong there.
    pub problem: Problem,
}

/// Where in the input the problem lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Nowhere in particular: an option, or the file as a whole.
    Whole,
    /// At this byte, counted from 0. For zstd-compressed input that is being imported: of the
    /// decompressed content.
    Byte(u64),
    /// In this line, counted from 1, which begins at this byte.
    Line {
        line: u64,
        /// The byte at which it begins.
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

/// What is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Problem {
    /// The operating system refused.
    Io {
        kind: io::ErrorKind,
        /// Its words.
        message: String,
    },
    /// The file is something else.
    NotATrace {
        /// What its first bytes look like.
        looks_like: Looks,
    },
    /// A `.ptt` of a version that this program does not read.
    Version {
        /// The version found.
        found: u16,
    },
    /// The file ends in the middle of a part.
    Truncated {
        /// The part that is not whole.
        part: Part,
    },
    /// A part's checksum does not fit its content.
    Checksum {
        part: Part,
        /// The checksum in the file.
        stored: u64,
        /// The checksum of what is there.
        computed: u64,
    },
    /// A part says something that cannot be.
    Malformed {
        part: Part,
        /// What is wrong with it.
        what: &'static str,
    },
    /// Bytes after the end of the trace.
    Trailing,
    /// The output is there and is no regular file.
    NotAFile { what: &'static str },
    /// The user wants no more of it.
    Cancelled,
    /// A number above what is allowed.
    TooLarge {
        what: &'static str,
        /// The number found.
        value: u64,
        /// The largest allowed.
        limit: u64,
    },
    /// The input of an import is in another format than was said.
    WrongFormat {
        /// The format that was asked for.
        wanted: &'static str,
        /// What the first bytes look like.
        looks_like: Looks,
    },
    /// The input of an import holds no references.
    Empty {
        /// What to do about it.
        hint: &'static str,
    },
    /// There is no such format to import.
    UnknownFormat {
        /// The text, shortened.
        text: String,
        /// The names of those that there are.
        known: String,
    },
    /// A line, field or option that does not read as it must.
    BadText {
        /// What it is: `lackey line`, `obj-size-col`, ...
        what: &'static str,
        /// The text, shortened.
        text: String,
        /// What it must be.
        expected: &'static str,
        /// What to do about it.
        hint: Option<&'static str>,
    },
    /// A line with too few columns.
    MissingColumn {
        /// The option that names the column.
        option: &'static str,
        /// The column wanted, counted from 1.
        column: usize,
        /// How many there are.
        present: usize,
    },
    /// The input ends in the middle of a record or of a compressed frame.
    CutShort {
        /// What is not whole.
        what: &'static str,
    },
    /// The compressed data cannot be decompressed.
    Compression {
        /// The decompressor's words.
        message: String,
    },
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
    /// Certainly of this format, which can be imported.
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
    /// The commands that may be tried on such a file; empty if there are none.
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

    /// An error of the file, or of an option.
    pub fn whole(problem: Problem) -> Self {
        TraceError { file: None, place: Place::Whole, problem }
    }

    /// The same error, with the file's name if it has none yet.
    #[must_use]
    pub fn in_file(mut self, file: &Path) -> Self {
        self.file.get_or_insert_with(|| file.to_path_buf());
        self
    }

    /// The byte at which it happened.
    pub fn byte(&self) -> Option<u64> {
        match self.place {
            Place::Whole => None,
            Place::Byte(byte) | Place::Line { byte, .. } => Some(byte),
        }
    }

    /// The line in which it happened, for text.
    pub fn line(&self) -> Option<u64> {
        match self.place {
            Place::Whole | Place::Byte(_) => None,
            Place::Line { line, .. } => Some(line),
        }
    }

    /// What to do about it.
    pub fn hint(&self) -> Option<String> {
        let hint = match &self.problem {
            Problem::Io { .. } => return None,
            Problem::NotATrace { looks_like } => match looks_like.commands() {
                commands if commands.is_empty() => "give a file that ends in .ptt".into(),
                commands => format!("make a trace of it with {commands}"),
            },
            Problem::Version { .. } => {
                format!("this program reads version {VERSION}; import the original again")
            }
            Problem::Truncated { .. } => "the file was cut short: copy or import it again".into(),
            Problem::Checksum { .. } | Problem::Malformed { .. } | Problem::Trailing => {
                "the file was changed after it was written: copy or import it again".into()
            }
            Problem::NotAFile { .. } => {
                "nothing was written; name a new file, or a regular one to replace".into()
            }
            Problem::Cancelled => return None,
            Problem::TooLarge { .. } => {
                "no smaller unit helps: leave out or split the entry".into()
            }
            Problem::WrongFormat { looks_like, .. } => match looks_like {
                Looks::Gzip => {
                    "decompress it into the command: `zcat FILE | pagetide ... -`".into()
                }
                Looks::Ptt => "it is a trace already: use it as it is".into(),
                Looks::Empty => "the recording failed: look at its messages".into(),
                other => format!("use {}, if it is what that reads", other.commands()),
            },
            Problem::Empty { hint } => (*hint).into(),
            Problem::UnknownFormat { .. } => return None,
            Problem::BadText { hint, .. } => return hint.map(str::to_owned),
            Problem::MissingColumn { .. } => {
                "columns count from 1; check the delimiter and `has-header` as well".into()
            }
            Problem::CutShort { .. } | Problem::Compression { .. } => {
                "the input is incomplete or damaged: fetch or record it again".into()
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
            Problem::Version { found } => write!(f, "trace version {found} is not known"),
            Problem::Truncated { part } => write!(f, "the file ends within its {part}"),
            Problem::Checksum { part, stored, computed } => write!(
                f,
                "the {part}'s checksum is {stored:016x}, but its content gives {computed:016x}"
            ),
            Problem::Malformed { part, what } => write!(f, "malformed {part}: {what}"),
            Problem::NotAFile { what } => write!(f, "it is {what}, and an import writes a file"),
            Problem::Cancelled => f.write_str("cancelled"),
            Problem::Trailing => f.write_str("there are bytes after the end of the trace"),
            Problem::TooLarge { what, value, limit } => {
                write!(f, "{what} {value} is above the limit of {limit}")
            }
            Problem::WrongFormat { wanted, looks_like } => {
                write!(f, "this is not {wanted}; it looks like {looks_like}")
            }
            Problem::Empty { .. } => f.write_str("the input holds no references"),
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
