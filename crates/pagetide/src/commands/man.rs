//! `pagetide man`: manual pages, made from the `--help` texts.

use crate::cli::{Cli, ManArgs};
use crate::error::{CliError, ExitStatus};
use crate::printer::Printer;
use clap::CommandFactory;
use clap_mangen::Man;

/// Prints pagetide(1), or writes it and the pages of subcommands to a directory.
pub fn man(args: &ManArgs, printer: &mut Printer) -> Result<ExitStatus, CliError> {
    let Some(directory) = &args.output else {
        let mut page = Vec::new();
        Man::new(Cli::command()).render(&mut page).map_err(|error| CliError::output(&error))?;
        printer.data(page)?;
        return Ok(ExitStatus::Success);
    };
    clap_mangen::generate_to(Cli::command(), directory).map_err(|error| {
        CliError::bad_input(
            format!("cannot write manual pages to {}: {error}", directory.display()),
            "name a directory that exists and is writable",
        )
    })?;
    printer.note(&format!("manual pages are in {}", directory.display()));
    Ok(ExitStatus::Success)
}
