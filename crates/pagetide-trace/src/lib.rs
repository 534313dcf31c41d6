//! Page traces of real programs: the `.ptt` format, its readers and writers, importers for the recordings of
//! other programs, and replay.
//!
//! docs/trace-format.md describes the format byte by byte, the importers' rules, and the trace
//! that is shipped. Reading order: [`mod@format`] (what a trace holds), [`reader`] and [`writer`],
//! `import` (feature of that name: from lackey, oracleGeneral, csv), [`replay`] (what a program did, step by step)
//! and [`tape`] (a short trace that is replayed often).
//!
//! The crate knows neither tasks nor machines: `pagetide-scenario` turns the steps into a task's operations.

mod block;
pub mod error;
pub mod format;
#[cfg(feature = "import")]
pub mod import;
pub mod info;
mod pages;
mod places;
pub mod reader;
pub mod replay;
pub mod tape;
mod varint;
pub mod writer;

pub use error::{Looks, Part, Place, Problem, TraceError};
pub use format::{Clock, Header, Kinds, Record, Region, RegionKind, Totals, Window};
#[cfg(feature = "import")]
pub use import::{import, import_unless, CsvOptions, Format, Maps, Options, Summary};
pub use info::{Info, Slice};
pub use reader::Reader;
pub use replay::{Replay, Step};
pub use tape::Tape;
pub use writer::Writer;
