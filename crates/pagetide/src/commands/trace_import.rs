//! `pagetide trace import`: converts recordings of programs and caches to page traces.

use crate::cli::{CsvArgs, ImportArgs};
use crate::error::{CliError, ExitStatus};
use crate::interrupt;
use crate::output_file::OutputFile;
use crate::printer::Printer;
use pagetide_trace::{
    self as trace, CsvOptions, Format, ImportOptions, ImportSummary, Maps, TraceError, TraceProblem,
};
use std::fs::{self, File};
use std::io::{self, ErrorKind, Read};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

/// Bytes of one read, and the maximum number of chunks that wait for the importer.
const CHUNK: usize = 256 << 10;
const CHUNKS: usize = 4;
/// Interval at which a wait for input checks for ^C.
const LOOK: Duration = Duration::from_millis(50);

/// Imports the input. The output file appears only when it is complete.
pub fn import(args: &ImportArgs, printer: &mut Printer) -> Result<ExitStatus, CliError> {
    let format = args.format;
    let from_stdin = args.input == Path::new("-");
    let mut options = ImportOptions {
        source: args.source.clone().unwrap_or_else(|| source(format, args, from_stdin)),
        csv: columns(&args.columns, format)?,
        ..ImportOptions::default()
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
    let input = open(&args.input, from_stdin)?;
    OutputFile::trace(&args.output, &[])?;
    let input = InterruptibleInput::new(input, Arc::clone(&cancel));
    let cancelled = || cancel.load(Ordering::Relaxed);
    match trace::import_cancellable(&cancelled, format, input, &options, &args.output) {
        Ok(summary) => {
            printer.note(&describe(&summary, &args.output));
            Ok(ExitStatus::Success)
        }
        Err(_) if cancelled() => Err(CliError::Interrupted),
        Err(TraceError {
            file: Some(file), problem: TraceProblem::Io { kind, message }, ..
        }) => Err(CliError::unwritable(&file, &io::Error::new(kind, message))),
        Err(error) if from_stdin => Err(refused(error.in_file(Path::new("<stdin>")))),
        Err(error) => Err(refused(error.in_file(&args.input))),
    }
}

/// The description of the origin if the user gives none.
fn source(format: Format, args: &ImportArgs, from_stdin: bool) -> String {
    let name = args.input.file_name().unwrap_or_default().to_string_lossy();
    match from_stdin {
        true => format!("{format}, from standard input"),
        false => format!("{format}, from {name}"),
    }
}

/// The columns: libCacheSim's single text first, then the separate options.
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

/// Rejects an option that the format does not have.
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

fn describe(summary: &ImportSummary, output: &Path) -> String {
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
            "\n  {} of {} entries were not references",
            summary.skipped, summary.input_records
        );
    }
    if summary.has_header {
        text += "\n  line 1 has the names of the columns (--has-header=false makes it a request)";
    }
    if summary.disordered > 0 {
        text += &format!(
            "\n  {} requests were older than the request before; their times were raised to its time",
            summary.disordered
        );
    }
    text
}

enum RecordingInput {
    /// A file, or standard input of any kind.
    Open(File),
    /// A pipe. Opening it blocks until the other end is opened.
    Pipe(PathBuf),
}

fn open(path: &Path, from_stdin: bool) -> Result<RecordingInput, CliError> {
    let cannot = |error| cannot_read(path, &error);
    if from_stdin {
        let stdin = io::stdin().as_fd().try_clone_to_owned().map_err(cannot)?;
        return Ok(RecordingInput::Open(File::from(stdin)));
    }
    let metadata = fs::metadata(path).map_err(cannot)?;
    if metadata.is_file() || metadata.is_dir() {
        return File::open(path).map(RecordingInput::Open).map_err(cannot);
    }
    Ok(RecordingInput::Pipe(path.to_owned()))
}

/// Input that returns an error once the user interrupts, even during a wait for data, so that the
/// importer can clean up. A thread does the reading; if no more data comes, it ends with the
/// process.
struct InterruptibleInput {
    chunks: Receiver<io::Result<Vec<u8>>>,
    chunk: Vec<u8>,
    /// Bytes of the current chunk that were returned already.
    used: usize,
    cancel: Arc<AtomicBool>,
}

impl InterruptibleInput {
    fn new(input: RecordingInput, cancel: Arc<AtomicBool>) -> InterruptibleInput {
        let (sender, chunks) = mpsc::sync_channel(CHUNKS);
        thread::spawn(move || {
            let opened = match input {
                RecordingInput::Open(file) => Ok(file),
                RecordingInput::Pipe(path) => File::open(path),
            };
            let mut file = match opened {
                Ok(file) => file,
                Err(error) => return drop(sender.send(Err(error))),
            };
            loop {
                let mut chunk = vec![0; CHUNK];
                let read = file.read(&mut chunk);
                let is_last = !matches!(&read, Ok(1..));
                chunk.truncate(*read.as_ref().unwrap_or(&0));
                // An interrupted read is not the end of the input.
                let goes_on = matches!(&read, Err(error) if error.kind() == ErrorKind::Interrupted);
                if goes_on {
                    continue;
                }
                if sender.send(read.map(|_| chunk)).is_err() || is_last {
                    break;
                }
            }
        });
        InterruptibleInput { chunks, chunk: Vec::new(), used: 0, cancel }
    }
}

impl Read for InterruptibleInput {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.used == self.chunk.len() {
            if self.cancel.load(Ordering::Relaxed) {
                return Err(io::Error::other("interrupted"));
            }
            match self.chunks.recv_timeout(LOOK) {
                Ok(chunk) => (self.chunk, self.used) = (chunk?, 0),
                Err(RecvTimeoutError::Timeout) => continue,
                Err(RecvTimeoutError::Disconnected) => return Ok(0),
            }
            if self.chunk.is_empty() {
                return Ok(0);
            }
        }
        let len = buffer.len().min(self.chunk.len() - self.used);
        buffer[..len].copy_from_slice(&self.chunk[self.used..self.used + len]);
        self.used += len;
        Ok(len)
    }
}
