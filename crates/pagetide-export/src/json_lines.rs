//! Events as lines of JSON (docs/outputs.md): one object per event, ascending in time.
//!
//! Linux: trace_pipe, with fields for programs.

use pagetide_scenario::record::RunRecord;
use pagetide_sim::observe::{
    EventValue, NamedEvent, Observation, ObservationKind, Observer, RunCast, WatcherObservation,
};
use std::fmt::Write as _;
use std::io::{self, Write};

/// Writes events as lines of JSON.
#[derive(Debug)]
pub struct JsonLines<W> {
    out: W,
    /// Names of the threads, as JSON strings.
    comms: Vec<String>,
    line: String,
}

impl<W: Write> JsonLines<W> {
    /// Writes to `out` in many small writes, so it should be buffered.
    pub fn new(out: W) -> JsonLines<W> {
        JsonLines { out, comms: Vec::new(), line: String::new() }
    }

    fn event(&mut self, at: u64, cpu: u16, thread: usize, event: &NamedEvent) -> io::Result<()> {
        let line = &mut self.line;
        line.clear();
        let (comm, name) = (&self.comms[thread], event.name());
        // Writing to a string does not fail.
        let _ = write!(line, r#"{{"ns":{at},"cpu":{cpu},"comm":{comm},"event":"{name}""#);
        event.each_field(|name, value| {
            let _ = write!(line, r#","{name}":"#);
            let _ = match value {
                EventValue::Number(number) => write!(line, "{number}"),
                EventValue::Priority(priority) => write!(line, "{priority}"),
                EventValue::Flag(flag) => write!(line, "{flag}"),
                EventValue::Word(word) | EventValue::Name(Some(word)) => {
                    write!(line, "{}", json_string(word))
                }
                EventValue::Gfp(gfp) => write!(line, "{}", json_string(&gfp.to_string())),
                EventValue::Name(None) => write!(line, "null"),
            };
        });
        line.push_str("}\n");
        self.out.write_all(line.as_bytes())
    }
}

impl<W: Write> JsonLines<W> {
    /// A deed of a watcher, which is no event of the kernel: it has no CPU.
    fn deed(&mut self, at: u64, thread: usize, deed: &WatcherObservation) -> io::Result<()> {
        let comm = &self.comms[thread];
        let [act, target, why] = [&deed.act, &deed.target, &deed.why].map(|it| json_string(it));
        writeln!(
            self.out,
            r#"{{"ns":{at},"comm":{comm},"event":"watcher","act":{act},"target":{target},"why":{why}}}"#
        )
    }
}

impl<W: Write> Observer for JsonLines<W> {
    fn what(&self) -> &'static str {
        "the events"
    }

    fn begin(&mut self, cast: &RunCast) -> io::Result<()> {
        self.comms = cast.threads.iter().map(|thread| json_string(&thread.comm)).collect();
        Ok(())
    }

    fn observe(&mut self, observation: &Observation) -> io::Result<()> {
        match &observation.what {
            ObservationKind::Event(cpu, event) => {
                self.event(observation.at, cpu.0, observation.thread, event)
            }
            ObservationKind::Watched(deed) => self.deed(observation.at, observation.thread, deed),
            ObservationKind::SwitchIn(_)
            | ObservationKind::SwitchOut(..)
            | ObservationKind::Began { .. }
            | ObservationKind::Ended(_)
            | ObservationKind::Exited(_) => Ok(()),
        }
    }

    fn end(&mut self, _at: u64, _is_cut: bool) -> io::Result<()> {
        Ok(())
    }

    fn close(&mut self, _record: Option<&RunRecord>) -> io::Result<()> {
        self.out.flush()
    }
}

/// A JSON string (RFC 8259, section 7).
fn json_string(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
