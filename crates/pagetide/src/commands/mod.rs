//! The subcommands, one file each.

pub mod check;
pub mod compare;
pub mod completions;
pub mod explain;
pub mod find;
pub mod fuzz;
pub mod import_host;
pub mod import_report;
pub mod inspect;
pub mod list;
pub mod man;
pub mod metrics;
pub mod mrc;
pub mod new;
pub mod run;
pub mod run_several;
pub mod schema;
pub mod sweep;
pub mod trace_import;
pub mod trace_info;
pub mod verify;
