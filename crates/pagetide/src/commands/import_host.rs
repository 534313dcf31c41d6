//! `pagetide import host`: a live system, or a saved copy of one, becomes a scenario.

use crate::cli::ImportHostArgs;
use crate::error::{CliError, ExitStatus};
use crate::printer::Printer;
use pagetide_linux::host::error::HostError;
use pagetide_linux::host::scenario::{self, Options};
use pagetide_linux::host::snapshot::HostSnapshot;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

/// Notes that are shown; the scenario's comments have most of them, too.
const NOTES_MAX: usize = 40;

/// Imports the system; a file appears only when it is whole.
pub fn import(args: &ImportHostArgs, printer: &mut Printer) -> Result<ExitStatus, CliError> {
    let options = Options { as_is: args.as_is, all_groups: args.all_groups };
    let host = HostSnapshot::read(&args.root).map_err(|error| refused(&error))?;
    let written = scenario::write(&host, options).map_err(|error| match error {
        HostError::NoMemory(_) => {
            host.notes.iter().take(NOTES_MAX).for_each(|note| printer.note(&note.to_string()));
            refused(&HostError::NoMemory(args.root.join("proc/zoneinfo").display().to_string()))
        }
        other => refused(&other),
    })?;
    match args.output.as_deref().filter(|output| *output != Path::new("-")) {
        None => printer.data(&written.text)?,
        Some(output) => {
            create(output, &written.text)?;
            printer.note(&format!("{}: {}", output.display(), written.summary));
        }
    }
    for note in written.notes.iter().take(NOTES_MAX) {
        printer.note(&note.to_string());
    }
    if written.notes.len() > NOTES_MAX {
        printer.note(&format!("and {} more", written.notes.len() - NOTES_MAX));
    }
    Ok(ExitStatus::Success)
}

/// Writes a file that does not exist: a scenario that was imported before may have been worked on.
fn create(output: &Path, text: &str) -> Result<(), CliError> {
    let place = output.display();
    let mut file = OpenOptions::new().write(true).create_new(true).open(output).map_err(
        |error| match error.kind() {
            io::ErrorKind::AlreadyExists => CliError::bad_input(
                format!("{place} exists"),
                "remove it first, or give another name; an import overwrites nothing",
            ),
            _ => CliError::BadInput(format!("cannot write {place}: {error}")),
        },
    )?;
    file.write_all(text.as_bytes()).map_err(|error| {
        // Half a scenario is none; if it cannot be removed either, the first error says why.
        let _ = fs::remove_file(output);
        CliError::Failure(format!("cannot write {place}: {error}"))
    })
}

fn refused(error: &HostError) -> CliError {
    CliError::bad_input(error.to_string(), error.hint())
}
