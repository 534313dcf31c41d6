//! `pagetide completions`: a completion script for a shell.

use crate::cli::{Cli, CompletionsArgs};
use crate::error::{CliError, ExitStatus};
use crate::printer::Printer;
use clap::CommandFactory;

pub fn completions(args: &CompletionsArgs, printer: &mut Printer) -> Result<ExitStatus, CliError> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "pagetide", &mut script);
    printer.data(script)?;
    Ok(ExitStatus::Success)
}
