//! What is run on arbitrary bytes: by the fuzz targets beside this file, and by the ordinary test
//! crates/pagetide-scenario/tests/corpus.rs over the stored corpus.
//!
//! None may panic; what is accepted must hold together.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pagetide_scenario::load::{load_str, Overrides};
use pagetide_scenario::model::{KernelObjects, Workload};
use pagetide_scenario::object_mix::ObjectMix;
use pagetide_scenario::op::Op;
use pagetide_scenario::trace::{import, Format, Info, Options, Reader, Replay, Writer};
use pagetide_scenario::workload::Program;

/// Small limits, so that no input of a few bytes makes a large trace.
fn options() -> Options {
    Options { max_object_size: 1 << 20, max_pages: 1 << 14, ..Options::default() }
}

/// A `.ptt` file: what is read whole, written again and read again is the same.
pub fn trace(bytes: &[u8]) {
    let Ok(mut reader) = Reader::from_reader(bytes) else { return };
    let mut writer = Writer::new(Vec::new(), reader.header()).expect("a header that was read");
    let mut records = Vec::new();
    loop {
        match reader.next_record() {
            Ok(Some(record)) => {
                writer.push(&record).expect("a record that was read");
                records.push(record);
            }
            Ok(None) => break,
            Err(error) => {
                assert!(error.byte().is_some(), "an error of content has a place");
                return;
            }
        }
    }
    let totals = *reader.totals().expect("it came to the end");
    let (written, _) = writer.finish(totals.time - reader.time()).expect("into memory");
    let mut again = Reader::from_reader(written.as_slice()).expect("what was written");
    for record in &records {
        assert_eq!(again.next_record().as_ref(), Ok(&Some(*record)));
    }
    assert_eq!(again.next_record(), Ok(None));
}

/// Lackey output.
pub fn lackey(bytes: &[u8]) {
    imported(Format::Lackey, bytes, &options());
}

/// An oracleGeneral file.
pub fn oracle_general(bytes: &[u8]) {
    imported(Format::OracleGeneral, bytes, &options());
}

/// A csv file, whose first line is the text of the options.
pub fn csv(bytes: &[u8]) {
    let end = bytes.iter().position(|&byte| byte == b'\n').unwrap_or(bytes.len());
    let Ok(text) = std::str::from_utf8(&bytes[..end]) else { return };
    let Ok(csv) = text.parse() else { return };
    imported(Format::Csv, &bytes[(end + 1).min(bytes.len())..], &Options { csv, ..options() });
}

/// A scenario file: mistakes have places and can be shown; what has none has programs that run.
pub fn scenario(bytes: &[u8]) {
    const VARIANTS: usize = 3;
    const TASKS: usize = 8;
    const OPS: usize = 200;
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    match load_str("fuzz.toml", text, Path::new("no-such-directory"), &Overrides::default()) {
        Ok(scenario) => {
            for variant in scenario.variants.iter().take(VARIANTS) {
                for task in 0..variant.setup.tasks.len().min(TASKS) {
                    let program = Program::new(&variant.setup, task, scenario.seed);
                    let mut program = program.expect("a scenario without mistakes has programs");
                    for _ in 0..OPS {
                        let _ = program.next_op();
                    }
                }
            }
        }
        Err(mistakes) => {
            assert!(mistakes.count() > 0);
            assert!(!mistakes.to_string().is_empty());
        }
    }
}

/// An object mix: mistakes have places and can be shown; what has none makes objects in slots of their own.
pub fn object_mix(bytes: &[u8]) {
    const OPS: usize = 2000;
    const TASK: &str = "[machine]\nmemory = \"1GiB\"\n[[task]]\nname = \"t\"\n\
        workload = \"sleep\"\nduration = \"1s\"\n";
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let mix = match ObjectMix::parse("fuzz.toml", text) {
        Ok(mix) => mix,
        Err(mistakes) => {
            assert!(mistakes.count() > 0);
            assert!(!mistakes.to_string().is_empty());
            return;
        }
    };
    let scenario = load_str("task.toml", TASK, Path::new(""), &Overrides::default());
    let mut setup = scenario.expect("a sound scenario").variants.remove(0).setup;
    setup.caches = mix.caches();
    let start = !mix.start_rows.is_empty();
    let objects =
        KernelObjects { mix: Arc::new(mix), units: 3, interval_ns: 1, compute_ns: 1000, start };
    setup.tasks[0].phases[0].workload = Workload::KernelObjects(objects);
    let mut program = Program::new(&setup, 0, 1).expect("a mix with its caches");
    let mut held = BTreeSet::new();
    for _ in 0..OPS {
        match program.next_op().expect("nothing to read") {
            Some(Op::AllocObject { slot, cache, .. }) => {
                assert!(held.insert(slot) && (cache as usize) < setup.caches.len());
            }
            Some(Op::FreeObject { slot } | Op::CacheObject { slot }) => assert!(held.remove(&slot)),
            Some(_) => {}
            None => break,
        }
    }
}

/// Imports; if that goes well, the trace must be readable to its end and replay.
fn imported(format: Format, bytes: &[u8], options: &Options) {
    let output = Output::new();
    let Ok(summary) = import(format, bytes, options, &output.0) else {
        assert!(!output.0.exists(), "an error leaves nothing behind");
        return;
    };
    let info = Info::scan(&output.0).expect("what was imported");
    assert_eq!(info.totals, summary.totals);
    let mut replay = Replay::open(&output.0, 2).expect("what was imported");
    while replay.next_op().expect("what was imported").is_some() {}
}

/// A file that goes away again.
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
