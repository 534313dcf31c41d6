//! Page traces of real programs: the `.ptt` file format, its reader and writer, importers for the
//! output of other tracers, and replay.
//!
//! docs/trace-format.md describes the format byte by byte, the rules of the importers, and the
//! trace in the repository. Reading order: [`mod@format`] (contents of a trace), [`reader`] and
//! [`writer`], `import` (feature `import`: lackey, oracleGeneral, csv), [`replay`] (the steps of a
//! program) and [`tape`] (a short trace in memory, for repeated replay).
//!
//! The crate has no tasks and no machine: `pagetide-scenario` turns steps into operations of a
//! task.

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

pub use error::{FileType, TraceError, TracePart, TracePosition, TraceProblem};
pub use format::{AccessKinds, Clock, FoldWindow, Header, Record, RegionKind, Totals, TraceRegion};
#[cfg(feature = "import")]
pub use import::{
    import, import_cancellable, CsvOptions, Format, ImportOptions, ImportSummary, Maps,
};
pub use info::{TraceInfo, TraceSlice};
pub use reader::TraceReader;
pub use replay::{Replay, ReplayStep};
pub use tape::Tape;
pub use writer::TraceWriter;
