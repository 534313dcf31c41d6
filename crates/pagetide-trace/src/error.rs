//! Errors of traces, and of texts that are imported as traces.
//!
//! A [`TraceError`] has the file, the byte or line, the problem, and a hint. It implements `==`, so
//! tests compare values, not text.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use crate::format::VERSION_OF_REQUESTS;
#[cfg(feature = "import")]
use crate::import::Format;

/// A problem, with the file and the position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceError {
    /// The file, when it is known.
    pub file: Option<PathBuf>,
    /// Position in the file.
    pub place: TracePosition,
    pub problem: TraceProblem,
}

/// Position of a problem in the input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TracePosition {
    /// No position: the problem is an option, or the file as a whole.
    NoPosition,
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
pub enum TracePart {
    /// Magic, version, regions.
    Header,
    /// A block of records.
    Block,
    /// Totals.
    Footer,
    /// The last 16 bytes.
    Trailer,
}

impl fmt::Display for TracePart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            TracePart::Header => "header",
            TracePart::Block => "block",
            TracePart::Footer => "footer",
            TracePart::Trailer => "trailer",
        })
    }
}

/// The kind of problem, with its details.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TraceProblem {
    /// An error of the operating system.
    Io { kind: io::ErrorKind, message: String },
    /// The file is not a `.ptt` file.
    NotATrace { looks_like: FileType },
    /// A `.ptt` file of a version that this program cannot read.
    Version { found: u16 },
    /// The file ends in the middle of a part.
    Truncated { part: TracePart },
    /// The checksum of a part does not match its content.
    Checksum {
        part: TracePart,
        /// The checksum in the file.
        stored: u64,
        /// The checksum of the content.
        computed: u64,
    },
    /// A part has an invalid value.
    Malformed { part: TracePart, what: &'static str },
    /// Bytes after the end of the trace.
    Trailing,
    /// The output path exists and is not a regular file.
    NotAFile { what: &'static str },
    /// The caller cancelled the import.
    Cancelled,
    /// A number above its limit.
    TooLarge { what: &'static str, value: u64, limit: u64 },
    /// The input of an import is not in the format that the user named.
    WrongFormat { wanted: &'static str, looks_like: FileType },
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
    /// No option names the column of the object's id, and the first line has several.
    NoObjectColumn {
        /// The first line, shortened.
        line: String,
    },
    /// The input ends in the middle of a record or of a compressed frame.
    CutShort { what: &'static str },
    /// The compressed data cannot be decompressed.
    Compression { message: String },
}

/// File type, as far as the first bytes show it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileType {
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

impl fmt::Display for FileType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            FileType::Empty => "an empty file",
            FileType::Ptt => "a .ptt page trace",
            FileType::Zstd => "zstd-compressed data",
            FileType::Gzip => "gzip-compressed data",
            #[cfg(feature = "import")]
            FileType::Recording(format) => format.contents(),
            FileType::Text => "text",
            FileType::Binary => "binary data",
        })
    }
}

impl FileType {
    /// The import commands that may read such a file; empty if none does.
    fn commands(self) -> String {
        #[cfg(feature = "import")]
        return Format::commands(self);
        #[cfg(not(feature = "import"))]
        String::new()
    }
}

impl TraceError {
    pub fn at_byte(byte: u64, problem: TraceProblem) -> Self {
        TraceError { file: None, place: TracePosition::Byte(byte), problem }
    }

    pub fn at_line(line: u64, byte: u64, problem: TraceProblem) -> Self {
        TraceError { file: None, place: TracePosition::Line { line, byte }, problem }
    }

    /// An error without a position.
    pub fn whole(problem: TraceProblem) -> Self {
        TraceError { file: None, place: TracePosition::NoPosition, problem }
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
            TracePosition::NoPosition => None,
            TracePosition::Byte(byte) | TracePosition::Line { byte, .. } => Some(byte),
        }
    }

    /// Line of the problem; `None` for binary input.
    pub fn line(&self) -> Option<u64> {
        match self.place {
            TracePosition::NoPosition | TracePosition::Byte(_) => None,
            TracePosition::Line { line, .. } => Some(line),
        }
    }

    /// How the user can solve the problem.
    pub fn hint(&self) -> Option<String> {
        let hint = match &self.problem {
            TraceProblem::Io { .. } => return None,
            TraceProblem::NotATrace { looks_like } => match looks_like.commands() {
                commands if commands.is_empty() => "give a file that ends in .ptt".into(),
                commands => format!("convert it to a trace with {commands}"),
            },
            TraceProblem::Version { .. } => {
                format!(
                    "this program reads versions up to {VERSION_OF_REQUESTS}; import the original again"
                )
            }
            TraceProblem::Truncated { .. } => {
                "the file is incomplete: copy or import it again".into()
            }
            TraceProblem::Checksum { .. }
            | TraceProblem::Malformed { .. }
            | TraceProblem::Trailing => {
                "the file was changed after it was written: copy or import it again".into()
            }
            TraceProblem::NotAFile { .. } => {
                "nothing was written; name a new file, or a regular file to replace".into()
            }
            TraceProblem::Cancelled => return None,
            TraceProblem::TooLarge { .. } => "remove the entry from the input, or split it".into(),
            TraceProblem::WrongFormat { looks_like, .. } => match looks_like {
                FileType::Gzip => "decompress it first: `zcat FILE | pagetide ... -`".into(),
                FileType::Ptt => "the file is already a trace; it needs no import".into(),
                FileType::Empty => "the recording failed; see the messages of its command".into(),
                other => format!("try {}", other.commands()),
            },
            TraceProblem::Empty { hint } => (*hint).into(),
            TraceProblem::UnknownFormat { .. } => return None,
            TraceProblem::BadText { hint, .. } => return hint.map(str::to_owned),
            TraceProblem::MissingColumn { .. } => {
                "columns count from 1; also check `delimiter` and `has-header`".into()
            }
            TraceProblem::NoObjectColumn { .. } => {
                "name it: --obj-id-col N, or obj-id-col=N in -t; columns count from 1".into()
            }
            TraceProblem::CutShort { .. } | TraceProblem::Compression { .. } => {
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
            TracePosition::NoPosition => {}
            TracePosition::Byte(byte) => write!(f, "byte {byte}: ")?,
            TracePosition::Line { line, byte } => write!(f, "line {line} (byte {byte}): ")?,
        }
        write!(f, "{}", self.problem)?;
        if let Some(hint) = self.hint() {
            write!(f, "\nhint: {hint}")?;
        }
        Ok(())
    }
}

impl fmt::Display for TraceProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TraceProblem::Io { message, .. } => f.write_str(message),
            TraceProblem::NotATrace { looks_like } => {
                write!(f, "not a .ptt page trace; it looks like {looks_like}")
            }
            TraceProblem::Version { found } => write!(f, "unknown trace version {found}"),
            TraceProblem::Truncated { part } => write!(f, "the file ends within its {part}"),
            TraceProblem::Checksum { part, stored, computed } => {
                write!(f, "checksum of the {part}: stored {stored:016x}, computed {computed:016x}")
            }
            TraceProblem::Malformed { part, what } => write!(f, "malformed {part}: {what}"),
            TraceProblem::NotAFile { what } => {
                write!(f, "the output is {what}, not a regular file")
            }
            TraceProblem::Cancelled => f.write_str("cancelled"),
            TraceProblem::Trailing => f.write_str("there are bytes after the end of the trace"),
            TraceProblem::TooLarge { what, value, limit } => {
                write!(f, "{what} {value} is above the limit of {limit}")
            }
            TraceProblem::WrongFormat { wanted, looks_like } => {
                write!(f, "this is not {wanted}; it looks like {looks_like}")
            }
            TraceProblem::Empty { .. } => f.write_str("the input has no references"),
            TraceProblem::UnknownFormat { text, known } => {
                write!(f, "format `{text}` is not {known}")
            }
            TraceProblem::BadText { what, text, expected, .. } => {
                write!(f, "{what} `{text}` is not {expected}")
            }
            TraceProblem::MissingColumn { option, column, present } => {
                write!(f, "{option} is {column}, but the line has {present} columns")
            }
            TraceProblem::NoObjectColumn { line } => {
                write!(f, "which column has the object's id? The first line is `{line}`")
            }
            TraceProblem::CutShort { what } => write!(f, "the input ends within a {what}"),
            TraceProblem::Compression { message } => write!(f, "cannot decompress: {message}"),
        }
    }
}

impl std::error::Error for TraceError {}

impl From<io::Error> for TraceError {
    fn from(error: io::Error) -> Self {
        TraceError::whole(TraceProblem::Io { kind: error.kind(), message: error.to_string() })
    }
}

/// Longest quotation of the user's text in a message, in bytes.
#[cfg(feature = "import")]
const QUOTE_LIMIT: usize = 60;

/// Prepares text of the user for a message: shortens it and escapes control characters.
#[cfg(feature = "import")]
pub(crate) fn quote(text: &[u8]) -> String {
    let cut = text.len().min(QUOTE_LIMIT);
    let mut quoted: String = text[..cut].escape_ascii().to_string();
    if cut < text.len() {
        quoted.push_str("...");
    }
    quoted
}
