//! `pagetide import report`: converts a report of a kernel log to a scenario.

use super::import_host::{deliver, output_file};
use crate::cli::ImportReportArgs;
use crate::error::{CliError, ExitStatus};
use crate::printer::Printer;
use pagetide_linux::host::error::HostError;
use pagetide_linux::host::report;
use pagetide_linux::host::scenario::{self, HostImportOptions};
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// Maximum number of bytes read from a log.
const BYTES_MAX: u64 = 64 << 20;

/// Imports the report. The output file appears only when it is complete.
pub fn import(args: &ImportReportArgs, printer: &mut Printer) -> Result<ExitStatus, CliError> {
    let shown = args.file.display();
    let bytes = read(&args.file).map_err(|error| {
        CliError::bad_input(format!("cannot read {shown}: {error}"), "name the kernel's log")
    })?;
    let refused = |error: HostError| CliError::bad_input(format!("{shown}: {error}"), error.hint());
    if bytes.len() as u64 > BYTES_MAX {
        let message = format!("{shown} is longer than {} MiB", BYTES_MAX >> 20);
        return Err(CliError::bad_input(message, "give the lines of the report"));
    }
    let found = report::parse(&String::from_utf8_lossy(&bytes), args.report).map_err(refused)?;
    let options =
        HostImportOptions { as_is: true, report: Some(&found), ..HostImportOptions::default() };
    let written = scenario::write(&found.snapshot(), options).map_err(refused)?;
    deliver(&written, output_file(args.output.as_deref())?, printer)?;
    Ok(ExitStatus::Success)
}

fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    if path == Path::new("-") {
        io::stdin().take(BYTES_MAX + 1).read_to_end(&mut bytes)?;
    } else {
        File::open(path)?.take(BYTES_MAX + 1).read_to_end(&mut bytes)?;
    }
    Ok(bytes)
}
