//! Page traces of real programs: the `.ptt` format, its readers and writers, importers from what
//! other programs record, and replay.
//!
//! docs/trace-format.md describes the format byte by byte, the importers' rules, and the trace
//! that is shipped. Reading order: [`mod@format`] (what a trace holds), [`reader`] and [`writer`],
//! [`mod@import`] (from lackey, oracleGeneral, csv), [`replay`] (as operations of a task).

mod block;
pub mod error;
mod fold;
pub mod format;
pub mod import;
pub mod info;
pub mod maps;
mod pages;
mod places;
pub mod reader;
pub mod regions;
pub mod replay;
mod varint;
pub mod writer;

pub use error::{Looks, Part, Place, Problem, TraceError};
pub use format::{Clock, Header, Kinds, Record, Region, RegionKind, Totals, Window};
pub use import::{import, CsvOptions, Format, Options, Summary};
pub use info::{Info, Slice};
pub use maps::Maps;
pub use reader::Reader;
pub use replay::Replay;
pub use writer::Writer;
