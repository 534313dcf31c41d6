//! The files in which `run` records one run step by step: `--events` and `--perfetto`.
//!
//! Invariant: they record the first variant with the first seed, whatever else runs.

use crate::cli::TraceArgs;
use crate::error::CliError;
use crate::printer::Printer;
use crate::streamed_file::{StreamedFile, StreamedKind};
use pagetide_export::{JsonLines, Perfetto, PERFETTO_MAGIC};
use pagetide_lab::plan::RunPlan;
use pagetide_lab::world::{ObserverHandle, TracedRun};
use std::io::BufWriter;
use std::path::PathBuf;

const EVENTS: StreamedKind =
    StreamedKind { name: "events", option: "--events", begins: b"{\"ns\":" };

const PERFETTO: StreamedKind =
    StreamedKind { name: "a Perfetto trace", option: "--perfetto", begins: &PERFETTO_MAGIC };

/// The trace files of a command, created before its runs.
#[derive(Debug)]
pub struct TraceFiles {
    files: Vec<RunTraceFile>,
    variant: String,
    seed: u64,
}

#[derive(Debug)]
struct RunTraceFile {
    /// Subject of the note about the file.
    what: &'static str,
    path: PathBuf,
    file: StreamedFile,
    sink: ObserverHandle,
}

impl TraceFiles {
    /// Creates the files that the arguments name.
    pub fn create(args: &TraceArgs, plan: &RunPlan) -> Result<TraceFiles, CliError> {
        let mut files = Vec::new();
        if let Some(path) = &args.events {
            let (file, out) = StreamedFile::create(path, EVENTS)?;
            let sink = ObserverHandle::new(JsonLines::new(BufWriter::new(out)));
            files.push(RunTraceFile { what: "events", path: path.clone(), file, sink });
        }
        if let Some(path) = &args.perfetto {
            let (file, out) = StreamedFile::create(path, PERFETTO)?;
            let sink = ObserverHandle::new(Perfetto::new(BufWriter::with_capacity(1 << 16, out)));
            files.push(RunTraceFile { what: "a Perfetto trace", path: path.clone(), file, sink });
        }
        let variant = plan.scenario.variants.first().map(|variant| variant.name.clone());
        Ok(TraceFiles { files, variant: variant.unwrap_or_default(), seed: plan.scenario.seed })
    }

    /// The run to observe, if a file is wanted.
    pub fn observed(&self) -> Option<TracedRun> {
        let sinks: Vec<ObserverHandle> = self.files.iter().map(|file| file.sink.clone()).collect();
        let (variant, seed) = (self.variant.clone(), self.seed);
        (!sinks.is_empty()).then_some(TracedRun { variant, seed, sinks })
    }

    /// Renames complete files to their final names, with a note for each. The error of a run
    /// explains an incomplete file. `was_cut`: ^C ended the observed run.
    pub fn finish(self, was_cut: bool, printer: &mut Printer) -> Result<(), CliError> {
        for RunTraceFile { what, path, file, sink } in self.files {
            if !sink.is_complete() {
                continue;
            }
            let shown = path.display();
            file.commit().map_err(|error| CliError::unwritable(&path, &error))?;
            let (variant, seed) = (&self.variant, self.seed);
            let are = if what == "events" { "are" } else { "is" };
            let until = if was_cut { "up to the interruption, " } else { "" };
            printer.note(&format!(
                "{what} of variant {variant}, seed {seed}, {until}{are} in {shown}"
            ));
        }
        Ok(())
    }
}
