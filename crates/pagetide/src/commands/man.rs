//! `pagetide man`: manual pages, made from the `--help` texts.

use crate::cli::{Cli, ManArgs};
use crate::error::{CliError, ExitStatus};
use crate::output_file::OutputFile;
use crate::printer::Printer;
use clap::{Command, CommandFactory};
use clap_mangen::Man;
use std::path::Path;

/// Prints pagetide(1), or writes it and the pages of subcommands to a directory.
pub fn man(args: &ManArgs, printer: &mut Printer) -> Result<ExitStatus, CliError> {
    let Some(directory) = &args.output else {
        let mut page = Vec::new();
        Man::new(Cli::command()).render(&mut page).map_err(|error| CliError::output(&error))?;
        printer.data(page)?;
        return Ok(ExitStatus::Success);
    };
    let mut command = Cli::command().disable_help_subcommand(true);
    command.build();
    let mut pages = Vec::new();
    add_pages(command, directory, &mut pages)?;
    // All are checked before the first is written.
    for (file, page) in pages {
        file.write(page)?;
    }
    printer.note(&format!("manual pages are in {}", directory.display()));
    Ok(ExitStatus::Success)
}

/// The pages of a command and of its subcommands.
fn add_pages(
    command: Command,
    directory: &Path,
    pages: &mut Vec<(OutputFile, Vec<u8>)>,
) -> Result<(), CliError> {
    for subcommand in command.get_subcommands() {
        add_pages(subcommand.clone(), directory, pages)?;
    }
    let man = Man::new(command);
    let mut page = Vec::new();
    man.render(&mut page).map_err(|error| CliError::output(&error))?;
    pages.push((OutputFile::manual(&directory.join(man.get_filename()))?, page));
    Ok(())
}
