//! `pagetide`: arguments, progress, printing. The commands are in `commands/`, one file
//! each; `pagetide-lab` makes their output.
//!
//! Data goes to stdout and messages to stderr. Exit codes: 0 done, 1 a run failed, 2 bad input,
//! 130 interrupted.

#![deny(clippy::print_stdout, clippy::print_stderr)]

mod cli;
mod commands;
mod error;
mod interrupt;
mod printer;
mod progress;
mod scenario_file;
mod shipped;

use clap::Parser;
use cli::{Cli, Command, ImportCommand, TraceCommand};
use error::{CliError, ExitStatus};
use printer::Printer;
use std::process::ExitCode;

fn main() -> ExitCode {
    let cli = Cli::parse();
    let mut printer = Printer::new();
    let status = match dispatch(cli.command, &mut printer) {
        Ok(status) => status,
        Err(error) => {
            printer.error(&error);
            error.status()
        }
    };
    status.into()
}

fn dispatch(command: Command, printer: &mut Printer) -> Result<ExitStatus, CliError> {
    match command {
        Command::Run(args) => commands::run::run(args, printer),
        Command::Verify(args) => commands::verify::verify(*args, printer),
        Command::Check(args) => commands::check::check(&args, printer),
        Command::List => commands::list::list(printer),
        Command::Schema => commands::schema::schema(printer),
        Command::Trace(TraceCommand::Import(args)) => {
            commands::trace_import::import(&args, printer)
        }
        Command::Trace(TraceCommand::Info(args)) => commands::trace_info::info(&args, printer),
        Command::Import(ImportCommand::Host(args)) => commands::import_host::import(&args, printer),
        Command::Inspect(args) => commands::inspect::inspect(args, printer),
        Command::Completions(args) => commands::completions::completions(&args, printer),
    }
}
