//! The formats of a report for programs (`pagetide run --format`). The file of a format declares it.

use crate::report::Report;
use crate::{csv, json};

/// How a report becomes text for a program.
#[derive(Clone, Copy, Debug)]
pub struct ReportFormat {
    /// Name on the command line.
    pub name: &'static str,
    /// Its description in the help.
    pub about: &'static str,
    /// The text of the wanted metrics of a report, which also has the others.
    pub render: fn(wanted: &Report, whole: &Report) -> String,
    /// Makes one text of the texts of several reports.
    pub join: fn(Vec<String>) -> String,
}

impl ReportFormat {
    pub const ALL: &[&ReportFormat] = &[&json::FORMAT, &csv::FORMAT];

    /// The format with this name.
    pub fn find(name: &str) -> Option<&'static ReportFormat> {
        ReportFormat::ALL.iter().copied().find(|format| format.name == name)
    }
}
