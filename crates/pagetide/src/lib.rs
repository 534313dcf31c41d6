//! The `pagetide` command: arguments, progress and printing. Each subcommand is one file in
//! `commands/`; `pagetide-lab` makes the output.
//!
//! Also a library, so that a crate with policies of its own gets all subcommands with a `main` of a
//! few lines (docs/add-a-policy.md):
//!
//! ```no_run
//! # use pagetide::policy::{Digest, GroupPlan, GroupPolicy, GroupVisit, Plugins};
//! # #[derive(Clone, Debug)]
//! # struct Mine;
//! # impl GroupPolicy for Mine {
//! #     fn plan(&mut self, _: &GroupVisit<'_>, _: &mut GroupPlan) {}
//! #     fn digest(&self, _: &mut Digest) {}
//! # }
//! fn main() -> std::process::ExitCode {
//!     pagetide::main_with(Plugins::new().groups("mine", Mine))
//! }
//! ```
//!
//! Data goes to stdout and messages to stderr. Exit codes: 0 done, 1 a run failed, 2 bad input,
//! 130 interrupted.

#![warn(missing_docs)] // a library for crates with policies of their own
#![deny(clippy::print_stdout, clippy::print_stderr)]

mod cli;
mod commands;
mod error;
mod interrupt;
mod output_file;
mod printer;
mod progress;
mod scenario_file;
pub mod shipped;
mod streamed_file;
mod temporary;
mod trace_files;

pub use output_file::{check_page, write_page};
pub use pagetide_sim::policy;
pub use scenario_file::with_bases;

use clap::error::{ContextKind, ContextValue};
use clap::{CommandFactory, Parser};
use cli::{Cli, Command, ImportCommand, TraceCommand};
use error::{CliError, ExitStatus};
use pagetide_scenario::load::PluginNames;
use pagetide_scenario::names::near::nearest;
use policy::Plugins;
use printer::Printer;
use std::ffi::OsString;
use std::io::{self, Write};
use std::process::ExitCode;
use std::sync::{Mutex, PoisonError};

/// Runs the command `pagetide` with additional policies: reads the arguments of the process and
/// executes them. Scenarios choose a policy by `[policy] groups = "NAME"`.
pub fn main_with(plugins: Plugins) -> ExitCode {
    run_with(plugins, std::env::args_os().collect()).into()
}

/// Runs the command with the given arguments: the name of the command first, then its arguments.
/// The Python package calls this. Returns the exit code.
pub fn main_of(arguments: Vec<OsString>) -> u8 {
    run_with(Plugins::new(), arguments).code()
}

/// The arguments, as given to [`main_of`].
static ARGUMENTS: Mutex<Vec<OsString>> = Mutex::new(Vec::new());

fn run_with(plugins: Plugins, arguments: Vec<OsString>) -> ExitStatus {
    *ARGUMENTS.lock().unwrap_or_else(PoisonError::into_inner) = arguments.clone();
    let mut printer = Printer::new();
    let status = match plugins.check() {
        Ok(()) => match Cli::try_parse_from(arguments) {
            Ok(cli) => dispatch(cli.command, &plugins, &mut printer),
            Err(told) => match unknown_command(&told) {
                Some(error) => Err(error),
                None => print_clap_output(&told, &mut printer),
            },
        },
        Err(refused) => Err(CliError::bad_input(
            refused.to_string(),
            "the program that registers the policies must give each one a unique name",
        )),
    };
    status.unwrap_or_else(|error| {
        printer.error(&error);
        error.status()
    })
}

/// The error for an unknown subcommand that clap has no suggestion for, such as `rnu`.
fn unknown_command(told: &clap::Error) -> Option<CliError> {
    let is_told = told.get(ContextKind::SuggestedSubcommand).is_some();
    let Some(ContextValue::String(name)) = told.get(ContextKind::InvalidSubcommand) else {
        return None;
    };
    let command = Cli::command();
    let near = nearest(name, command.get_subcommands().map(|known| known.get_name()));
    let near = near.filter(|_| !is_told)?;
    Some(CliError::bad_input(
        format!("there is no command `{name}`"),
        format!("did you mean `{near}`? `pagetide help` lists all commands"),
    ))
}

/// Prints help, version, or a usage error from clap. Help and version are data: if they cannot be
/// written, the command fails.
fn print_clap_output(told: &clap::Error, printer: &mut Printer) -> Result<ExitStatus, CliError> {
    if told.use_stderr() {
        // If stderr is closed, the message is lost.
        let _ = told.print();
        return Ok(ExitStatus::BadInput);
    }
    told.print().and_then(|()| io::stdout().flush()).map_err(|error| CliError::output(&error))?;
    printer.data("")?;
    Ok(ExitStatus::Success)
}

/// The policy names that scenarios may use.
fn names_of(plugins: &Plugins) -> PluginNames {
    PluginNames {
        groups: plugins.group_names().map(str::to_owned).collect(),
        pages: plugins.page_names().map(str::to_owned).collect(),
        any: false,
    }
}

/// An argument, quoted for a shell.
fn quoted(argument: String) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,%+@".contains(c);
    match !argument.is_empty() && argument.chars().all(is_plain) {
        true => argument,
        false => format!("'{}'", argument.replace('\'', "'\\''")),
    }
}

/// The command line, quoted for a shell, for files that state their origin.
fn command_line() -> String {
    let arguments = ARGUMENTS.lock().unwrap_or_else(PoisonError::into_inner);
    let arguments = arguments.iter().skip(1);
    let arguments = arguments.map(|text| quoted(text.to_string_lossy().into()));
    ["pagetide".to_owned()].into_iter().chain(arguments).collect::<Vec<String>>().join(" ")
}

fn dispatch(
    command: Command,
    plugins: &Plugins,
    printer: &mut Printer,
) -> Result<ExitStatus, CliError> {
    match command {
        Command::Run(args) => commands::run::run(args, plugins, printer),
        Command::Verify(args) => commands::verify::verify(*args, plugins, printer),
        Command::Find(args) => commands::find::find(*args, plugins, printer),
        Command::Sweep(args) => commands::sweep::sweep(*args, plugins, printer),
        Command::Fuzz(args) => commands::fuzz::fuzz(&args, plugins, printer),
        Command::Compare(args) => commands::compare::compare(&args, printer),
        Command::Check(args) => commands::check::check(&args, plugins, printer),
        Command::List => commands::list::list(plugins, printer),
        Command::New(args) => commands::new::new(&args, printer),
        Command::Schema(args) => commands::schema::schema(&args, plugins, printer),
        Command::Metrics(args) => commands::metrics::metrics(&args, printer),
        Command::Explain(args) => commands::explain::explain(&args, plugins, printer),
        Command::Mrc(args) => commands::mrc::mrc(*args, plugins, printer),
        Command::Trace(TraceCommand::Import(args)) => {
            commands::trace_import::import(&args, printer)
        }
        Command::Trace(TraceCommand::Info(args)) => commands::trace_info::info(&args, printer),
        Command::Import(ImportCommand::Host(args)) => commands::import_host::import(&args, printer),
        Command::Import(ImportCommand::Report(args)) => {
            commands::import_report::import(&args, printer)
        }
        Command::Inspect(args) => commands::inspect::inspect(args, plugins, printer),
        Command::Man(args) => commands::man::man(&args, printer),
        Command::Completions(args) => commands::completions::completions(&args, printer),
    }
}
