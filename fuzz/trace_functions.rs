//! Fuzz functions for page traces and their importers. The fuzz targets in fuzz_targets/ run them,
//! and so does the test crates/pagetide-trace/tests/suite/corpus.rs over the stored corpus.
//!
//! No function may panic, and accepted input must be consistent.

use std::path::PathBuf;

use pagetide_trace::{import, Format, ImportOptions, Replay, TraceInfo, TraceReader, TraceWriter};

/// Small limits, so that a few bytes of input cannot create a large trace.
fn options() -> ImportOptions {
    ImportOptions { max_object_size: 1 << 20, max_pages: 1 << 14, ..ImportOptions::default() }
}

/// A `.ptt` file: a valid trace, written and read again, has the same records.
pub fn trace(bytes: &[u8]) {
    let Ok(mut reader) = TraceReader::from_reader(bytes) else { return };
    let mut writer = TraceWriter::new(Vec::new(), reader.header()).expect("a header that was read");
    let mut records = Vec::new();
    loop {
        match reader.next_record() {
            Ok(Some(record)) => {
                writer.push(&record).expect("a record that was read");
                records.push(record);
            }
            Ok(None) => break,
            Err(error) => {
                assert!(error.byte().is_some(), "an error of content has a position");
                return;
            }
        }
    }
    let totals = *reader.totals().expect("it came to the end");
    let (written, _) = writer.finish(totals.time - reader.time()).expect("into memory");
    let mut again =
        TraceReader::from_reader(written.as_slice()).expect("a trace that was just written");
    for record in &records {
        assert_eq!(again.next_record().as_ref(), Ok(&Some(*record)));
    }
    assert_eq!(again.next_record(), Ok(None));
}

/// Gives the input to every importer.
pub fn import_all(bytes: &[u8]) {
    for format in Format::ALL {
        import_of(*format, bytes);
    }
}

/// Gives the input to one importer. For csv, the first line is the text of its options.
pub fn import_of(format: Format, bytes: &[u8]) {
    if format != Format::Csv {
        return imported(format, bytes, &options());
    }
    let end = bytes.iter().position(|&byte| byte == b'\n').unwrap_or(bytes.len());
    let Ok(text) = std::str::from_utf8(&bytes[..end]) else { return };
    let Ok(csv) = text.parse() else { return };
    imported(format, &bytes[(end + 1).min(bytes.len())..], &ImportOptions { csv, ..options() });
}

/// Imports. After a success, the trace must be readable to its end and must replay.
fn imported(format: Format, bytes: &[u8], options: &ImportOptions) {
    let output = Output::new();
    let Ok(summary) = import(format, bytes, options, &output.0) else {
        assert!(!output.0.exists(), "an error leaves nothing behind");
        return;
    };
    let info = TraceInfo::scan(&output.0).expect("a trace that was just imported");
    assert_eq!(info.totals, summary.totals);
    let mut replay = Replay::open(&output.0, 2).expect("a trace that was just imported");
    while replay.next_step().expect("a trace that was just imported").is_some() {}
}

/// A temporary file, removed on drop.
struct Output(PathBuf);

impl Output {
    fn new() -> Output {
        let thread = format!("{:?}", std::thread::current().id()).replace(['(', ')'], "-");
        let name = format!("pagetide-fuzz-{}-{thread}.ptt", std::process::id());
        Output(std::env::temp_dir().join(name))
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}
