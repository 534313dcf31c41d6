//! One file a subcommand.

pub mod check;
pub mod completions;
pub mod import_host;
pub mod inspect;
pub mod list;
pub mod metrics;
pub mod mrc;
pub mod run;
pub mod schema;
pub mod trace_import;
pub mod trace_info;
pub mod verify;
