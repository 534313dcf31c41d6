//! `pagetide trace import`: recordings of programs and caches become page traces.

use crate::cli::{CsvArgs, ImportArgs};
use crate::error::{CliError, ExitStatus};
use crate::interrupt;
use crate::printer::Printer;
use pagetide_trace::{self as trace, CsvOptions, Format, Maps, Options, Summary, TraceError};
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;

/// Imports the input; the output appears only when it is whole.
pub fn import(args: &ImportArgs, printer: &mut Printer) -> Result<ExitStatus, CliError> {
    let format = args.format;
    let from_stdin = args.input == Path::new("-");
    let mut options = Options {
        source: args.source.clone().unwrap_or_else(|| source(format, args, from_stdin)),
        csv: columns(&args.columns, format)?,
        ..Options::default()
    };
    if let Some(path) = &args.maps {
        check_option(format, "maps")?;
        options.maps = Some(maps(path)?);
    }
    if let Some(divisor) = args.time_divisor {
        check_option(format, "time-divisor")?;
        options.time_divisor = divisor;
    }

    let cancel = interrupt::flag();
    let input: Box<dyn Read> = if from_stdin {
        Box::new(io::stdin().lock())
    } else {
        Box::new(File::open(&args.input).map_err(|error| cannot_read(&args.input, &error))?)
    };
    let input = Interruptible { input, cancel: Arc::clone(&cancel) };
    match trace::import(format, input, &options, &args.output) {
        Ok(summary) => {
            printer.note(&describe(&summary, &args.output));
            Ok(ExitStatus::Success)
        }
        Err(_) if cancel.load(Ordering::Relaxed) => Err(CliError::Interrupted),
        Err(error) if from_stdin => Err(refused(error.in_file(Path::new("<stdin>")))),
        Err(error) => Err(refused(error.in_file(&args.input))),
    }
}

/// What the trace says about its origin if the user says nothing.
fn source(format: Format, args: &ImportArgs, from_stdin: bool) -> String {
    let name = args.input.file_name().unwrap_or_default().to_string_lossy();
    match from_stdin {
        true => format!("{format}, from standard input"),
        false => format!("{format}, from {name}"),
    }
}

/// The columns: libCacheSim's one text first, then the single options.
fn columns(args: &CsvArgs, format: Format) -> Result<CsvOptions, CliError> {
    let single = [
        ("time-col", &args.time_col),
        ("obj-id-col", &args.obj_id_col),
        ("obj-size-col", &args.obj_size_col),
        ("op-col", &args.op_col),
        ("tenant-col", &args.tenant_col),
        ("delimiter", &args.delimiter),
        ("has-header", &args.has_header),
        ("obj-id-is-num", &args.obj_id_is_num),
    ];
    let mut options = match &args.trace_type_params {
        Some(text) => {
            check_option(format, "trace-type-params")?;
            text.parse().map_err(refused)?
        }
        None => CsvOptions::default(),
    };
    for (key, value) in single {
        if let Some(value) = value {
            check_option(format, key)?;
            options.set(key, value).map_err(refused)?;
        }
    }
    Ok(options)
}

/// Refuses an option that the format does not have.
fn check_option(format: Format, option: &str) -> Result<(), CliError> {
    if format.options().contains(&option) {
        return Ok(());
    }
    let with = Format::ALL.iter().filter(|format| format.options().contains(&option));
    let with: Vec<&str> = with.map(|format| format.name()).collect();
    let message = format!("`--{option}` is for {} only", with.join(" and "));
    Err(CliError::bad_input(message, "leave it out"))
}

fn maps(path: &Path) -> Result<Maps, CliError> {
    let text = fs::read_to_string(path).map_err(|error| cannot_read(path, &error))?;
    Maps::parse(&text).map_err(|error| refused(error.in_file(path)))
}

fn cannot_read(path: &Path, error: &io::Error) -> CliError {
    CliError::BadInput(format!("cannot read {}: {error}", path.display()))
}

fn refused(error: TraceError) -> CliError {
    CliError::BadInput(error.to_string())
}

fn describe(summary: &Summary, output: &Path) -> String {
    let totals = &summary.totals;
    let mut text = format!(
        "{}: {} references to {} pages in {} regions became {} records, {} bytes",
        output.display(),
        totals.references,
        totals.distinct_pages,
        summary.regions,
        totals.records,
        summary.output_bytes
    );
    if summary.skipped > 0 {
        text += &format!(
            "\n  {} of {} entries were no references",
            summary.skipped, summary.input_records
        );
    }
    if summary.disordered > 0 {
        text += &format!(
            "\n  {} requests were older than the one before and taken as simultaneous",
            summary.disordered
        );
    }
    text
}

/// Input that ends with an error once the user interrupts: the importer then cleans up.
struct Interruptible<R> {
    input: R,
    cancel: Arc<AtomicBool>,
}

impl<R: Read> Read for Interruptible<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.cancel.load(Ordering::Relaxed) {
            return Err(io::Error::other("interrupted"));
        }
        self.input.read(buffer)
    }
}
