//! The formats that can be imported: their names, and how to recognise them.

use std::fmt;
use std::str::FromStr;

use crate::error::{quote, FileType, TraceError, TraceProblem};
use crate::format::FoldWindow;

/// Properties of an import format. Each format declares them in its own file.
#[derive(Debug)]
pub(super) struct FormatSpec {
    /// Name on the command line.
    pub(super) name: &'static str,
    /// Description in one line, for help and documentation.
    pub(super) what: &'static str,
    /// Noun for the content of such a file, for error messages.
    pub(super) contents: &'static str,
    /// Text, not binary data.
    pub(super) is_text: bool,
    /// True if text with this start can only be of this format.
    pub(super) is_marked: fn(&[u8]) -> bool,
    /// Default window. References of a program: 512 pages (2 MiB) and two million instructions
    /// (1 ms). Requests: one page, so that only consecutive references to a page are merged.
    pub(super) window: FoldWindow,
    /// Options of `pagetide trace import` that only some formats have.
    pub(super) options: &'static [&'static str],
    /// Hint for an input without references.
    pub(super) if_empty: &'static str,
}

macro_rules! formats {
    ($($(#[doc = $doc:literal])+ $format:ident in $file:ident,)+) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Format {
            $($(#[doc = $doc])+ $format,)+
        }

        impl Format {
            pub const ALL: &'static [Format] = &[$(Format::$format),+];

            pub(super) fn declaration(self) -> &'static FormatSpec {
                match self { $(Format::$format => &super::$file::FORMAT,)+ }
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
    /// Name on the command line.
    pub fn name(self) -> &'static str {
        self.declaration().name
    }

    /// Description in one line.
    pub fn what(self) -> &'static str {
        self.declaration().what
    }

    /// Options of `pagetide trace import` that this format has and some others have not.
    pub fn options(self) -> &'static [&'static str] {
        self.declaration().options
    }

    pub fn default_window(self) -> FoldWindow {
        self.declaration().window
    }

    /// The only format that text with this start can have, if it can be recognized.
    pub(crate) fn marked(start: &[u8]) -> Option<Format> {
        Format::ALL.iter().copied().find(|format| (format.declaration().is_marked)(start))
    }

    /// Noun for the content of such a file, for error messages.
    pub(crate) fn contents(self) -> &'static str {
        self.declaration().contents
    }

    /// The import commands that may read input of this type.
    pub(crate) fn commands(looks: FileType) -> String {
        let may_be = |format: &Format| match looks {
            FileType::Recording(certain) => certain == *format,
            FileType::Text => format.declaration().is_text,
            FileType::Zstd | FileType::Binary => !format.declaration().is_text,
            FileType::Empty | FileType::Ptt | FileType::Gzip => false,
        };
        let command = |format: Format| format!("`pagetide trace import {format}`");
        join_with_or(Format::ALL.iter().copied().filter(may_be).map(command))
    }
}

/// `a, b or c`.
fn join_with_or(items: impl Iterator<Item = String>) -> String {
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
            let known = join_with_or(Format::ALL.iter().map(|format| format!("`{format}`")));
            TraceError::whole(TraceProblem::UnknownFormat { text: quote(text.as_bytes()), known })
        })
    }
}
