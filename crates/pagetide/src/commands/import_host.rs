//! `pagetide import host`: converts a live system, or a saved copy of one, to a scenario.

use crate::cli::ImportHostArgs;
use crate::error::{CliError, ExitStatus};
use crate::interrupt;
use crate::output_file::OutputFile;
use crate::printer::Printer;
use crate::progress::Spinner;
use pagetide_linux::error::LinuxError;
use pagetide_linux::host::error::HostError;
use pagetide_linux::host::scenario::{self, HostImportOptions, ImportedScenario};
use pagetide_linux::host::snapshot::HostSnapshot;
use pagetide_linux::live;
use pagetide_scenario::load::{load_str, Overrides};
use pagetide_sim::SimError;
use pagetide_verify::measure::{prices_of, MeasuredMachine};
use std::path::Path;

/// Maximum number of printed notes. Most notes are also comments in the scenario.
const NOTES_MAX: usize = 40;

/// Imports the system. The output file appears only when it is complete.
pub fn import(args: &ImportHostArgs, printer: &mut Printer) -> Result<ExitStatus, CliError> {
    let mut options = HostImportOptions {
        as_is: args.as_is,
        all_groups: args.all_groups,
        ..HostImportOptions::default()
    };
    let host = HostSnapshot::read(&args.root).map_err(|error| refused(&error))?;
    let mut written = scenario::write(&host, options).map_err(|error| match error {
        HostError::NoMemory(_) => {
            host.notes.iter().take(NOTES_MAX).for_each(|note| printer.note(&note.to_string()));
            refused(&HostError::NoMemory(args.root.join("proc/zoneinfo").display().to_string()))
        }
        other => refused(&other),
    })?;
    let output = output_file(args.output.as_deref())?;
    if args.measure {
        let found = measure(&host, &written, args, printer)?;
        let stated = found.stated();
        options.costs = Some(&stated);
        written = scenario::write(&host, options).map_err(|error| refused(&error))?;
        found.sentences().iter().for_each(|sentence| printer.note(sentence));
    }
    deliver(&written, output, printer)?;
    Ok(ExitStatus::Success)
}

/// The file to write; `None`: stdout.
pub(super) fn output_file(path: Option<&Path>) -> Result<Option<OutputFile>, CliError> {
    path.filter(|output| *output != Path::new("-")).map(OutputFile::new_file).transpose()
}

/// Writes the scenario, and prints the notes.
pub(super) fn deliver(
    written: &ImportedScenario,
    output: Option<OutputFile>,
    printer: &mut Printer,
) -> Result<(), CliError> {
    match output {
        None => printer.data(&written.text)?,
        Some(output) => {
            output.write(&written.text)?;
            printer.note(&format!("{}: {}", output.path().display(), written.summary));
        }
    }
    for note in written.notes.iter().take(NOTES_MAX) {
        printer.note(&note.to_string());
    }
    if written.notes.len() > NOTES_MAX {
        printer.note(&format!("and {} more", written.notes.len() - NOTES_MAX));
    }
    Ok(())
}

/// Measures operation costs on this machine.
fn measure(
    host: &HostSnapshot,
    written: &ImportedScenario,
    args: &ImportHostArgs,
    printer: &mut Printer,
) -> Result<MeasuredMachine, CliError> {
    let loaded = load_str("imported.toml", &written.text, Path::new(""), &Overrides::default());
    let mut scenario = loaded.map_err(|mistakes| CliError::Failure(mistakes.to_string()))?;
    let imported = scenario.variants.remove(0).setup;
    let cancel = interrupt::flag();
    let place = live::LiveBench::prepare(host, args.guest.as_deref()).map_err(of_linux)?;
    let line = Spinner::new();
    let measured = place.measure(&imported, host, &cancel, |number| {
        line.say(format!("measuring operation costs: run {number}"));
    });
    line.say("measuring operation costs: counting operations in the simulator".to_owned());
    let found = measured.map_err(of_linux).and_then(|measured| {
        measured.reference.origin.notes.iter().for_each(|note| printer.note(note));
        prices_of(&measured, &cancel).map_err(|error| match error {
            SimError::Cancelled => CliError::Interrupted,
            error => CliError::Failure(error.to_string()),
        })
    });
    drop(line);
    found
}

fn of_linux(error: LinuxError) -> CliError {
    CliError::of_linux(error.to_string(), &error)
}

fn refused(error: &HostError) -> CliError {
    CliError::bad_input(error.to_string(), error.hint())
}
