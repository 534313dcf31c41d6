//! `pagetide compare`: compares two results in JSON.

use crate::cli::CompareArgs;
use crate::error::{CliError, ExitStatus};
use crate::printer::Printer;
use pagetide_lab::compare::{read, render, PrintedResult};
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// Maximum size of a result file.
const BYTES_MAX: u64 = 1 << 30;

pub fn compare(args: &CompareArgs, printer: &mut Printer) -> Result<ExitStatus, CliError> {
    let (a, b) = (load(&args.a)?, load(&args.b)?);
    let (text, warnings) = render(&a, &b);
    warnings.iter().for_each(|warning| printer.warning(warning));
    printer.data(text)?;
    Ok(ExitStatus::Success)
}

fn load(path: &Path) -> Result<PrintedResult, CliError> {
    let shown = path.display().to_string();
    let cannot = |why: String| {
        CliError::bad_input(
            format!("cannot read {shown}: {why}"),
            "give the output of `pagetide run --format json` or `pagetide sweep --format json`",
        )
    };
    let mut text = String::new();
    let read_all = File::open(path).and_then(|file| file.take(BYTES_MAX).read_to_string(&mut text));
    read_all.map_err(|error| cannot(error.to_string()))?;
    read(&shown, &text).map_err(CliError::from)
}
