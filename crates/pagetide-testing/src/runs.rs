//! Runs of scenarios in the simulator.

use crate::scenarios::scenario;
use pagetide_scenario::record::RunRecord;
use pagetide_sim::observe::{Observation, Observer, ObserverHandle, RunCast};
use pagetide_sim::{run, RunOptions};
use std::io::{self, Write};
use std::sync::{Arc, Mutex};

/// Runs the first variant with seed 1, and audits now and then.
#[track_caller]
pub fn run_text(text: &str, audit_every: u64) -> RunRecord {
    let options = RunOptions { audit_every, ..RunOptions::default() };
    run("test", &scenario(text).variants[0], 1, &options).unwrap_or_else(|error| panic!("{error}"))
}

#[track_caller]
pub fn value(record: &RunRecord, key: &str) -> f64 {
    record.metrics.get(key).unwrap_or_else(|| panic!("no metric {key}")).value
}

/// An observer that passes everything to a function.
pub fn watch(each: impl FnMut(&Observation) + Send + 'static) -> ObserverHandle {
    ObserverHandle::new(Watch(each))
}

struct Watch<F>(F);

impl<F: FnMut(&Observation)> Observer for Watch<F> {
    fn what(&self) -> &'static str {
        "the observations of a test"
    }

    fn begin(&mut self, _: &RunCast) -> io::Result<()> {
        Ok(())
    }

    fn observe(&mut self, observation: &Observation) -> io::Result<()> {
        (self.0)(observation);
        Ok(())
    }

    fn end(&mut self, _: u64, _: bool) -> io::Result<()> {
        Ok(())
    }

    fn close(&mut self, _: Option<&RunRecord>) -> io::Result<()> {
        Ok(())
    }
}

/// Bytes that an observer wrote.
#[derive(Clone, Default)]
pub struct Collected(Arc<Mutex<Vec<u8>>>);

impl Collected {
    pub fn bytes(&self) -> Vec<u8> {
        self.0.lock().unwrap().clone()
    }

    pub fn text(&self) -> String {
        String::from_utf8(self.bytes()).unwrap()
    }
}

impl Write for Collected {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
