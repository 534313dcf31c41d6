//! Events as lines of JSON: what the core noted, with the time, the CPU and the thread.
//!
//! Linux: /sys/kernel/tracing/trace, with the events of vmscan and oom on. The core's steps of a piece
//! are all done when the piece begins, and their times run ahead of the world's; lines wait until the
//! world's time has reached theirs, so that they come out in the order of time. The fields are
//! described in docs/events.md.
//!
//! Invariant: after every step the core's log is empty, so each line names the thread that did it.

use super::{Thread, World, WorldError};
use crate::task::Task;
use pagetide_core::daemon::Daemon;
use pagetide_core::event::{Field, TraceEvent};
use pagetide_core::memcg::ROOT;
use pagetide_core::process::Machine;
use pagetide_core::process::MmId;
use pagetide_core::units::{Cpu, MemcgId, Nanos};
use std::collections::BTreeMap;
use std::fmt::{self, Write as _};
use std::io::{self, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Where the lines of one run go.
#[derive(Clone)]
pub struct EventSink(Arc<Mutex<dyn Write + Send>>);

impl EventSink {
    /// Lines go to `out`, in many small writes: it should have a buffer. The run flushes it at its end.
    pub fn new(out: impl Write + Send + 'static) -> EventSink {
        EventSink(Arc::new(Mutex::new(out)))
    }

    fn lock(&self) -> MutexGuard<'_, dyn Write + Send + 'static> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for EventSink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("EventSink")
    }
}

/// What is on its way to the sink.
#[derive(Debug)]
pub(super) struct EventWriter {
    sink: EventSink,
    /// Lines by time, then by the order in which they were noted.
    waiting: BTreeMap<(Nanos, u64), String>,
    nr_lines: u64,
}

impl World {
    /// Writes events to `sink` from now on.
    pub fn write_events(&mut self, sink: EventSink) {
        self.machine.record_events(true);
        self.events = Some(EventWriter { sink, waiting: BTreeMap::new(), nr_lines: 0 });
    }

    /// Takes what the core has noted in a step of `thread` that began at `at`.
    #[inline]
    pub(super) fn note_events(&mut self, thread: Thread, cpu: Cpu, at: Nanos) {
        if self.events.is_some() || self.decisions.is_some() {
            self.take_events(thread, cpu, at);
        }
    }

    fn take_events(&mut self, thread: Thread, cpu: Cpu, at: Nanos) {
        let mut fresh = std::mem::take(&mut self.fresh_events);
        self.machine.take_events(&mut fresh);
        if !fresh.is_empty() {
            if let Some(decisions) = &mut self.decisions {
                decisions.events(thread, cpu, at, &fresh);
            }
            self.format_events(thread, cpu, at, &fresh);
            fresh.clear();
        }
        self.fresh_events = fresh;
    }

    fn format_events(&mut self, thread: Thread, cpu: Cpu, at: Nanos, fresh: &[TraceEvent]) {
        let Some(writer) = &mut self.events else { return };
        let comm = match thread {
            Thread::Task(id) => json_string(&self.tasks[id].name),
            Thread::Daemon(Daemon::Kswapd(node)) => format!("\"kswapd{}\"", node.0),
            Thread::Daemon(Daemon::Flusher) => "\"flusher\"".to_owned(),
            Thread::Daemon(Daemon::Kcompactd(node)) => format!("\"kcompactd{}\"", node.0),
            Thread::Daemon(Daemon::Khugepaged) => "\"khugepaged\"".to_owned(),
            Thread::Daemon(Daemon::Kworker) => "\"kworker\"".to_owned(),
        };
        for event in fresh {
            let (cpu, name) = (cpu.0, event.name());
            let mut line = format!(r#"{{"ns":{at},"cpu":{cpu},"comm":{comm},"event":"{name}""#);
            event.each_field(|name, value| {
                let value = json_value(value, &self.machine, &self.tasks);
                // Writing to a string does not fail.
                let _ = write!(line, r#","{name}":{value}"#);
            });
            line.push_str("}\n");
            writer.waiting.insert((at, writer.nr_lines), line);
            writer.nr_lines += 1;
        }
    }

    /// Writes the lines whose time has come.
    #[inline]
    pub(super) fn release_events(&mut self) -> Result<(), WorldError> {
        let now = self.now;
        match &mut self.events {
            None => Ok(()),
            Some(writer) => writer.release(now).map_err(|source| WorldError::Events { source }),
        }
    }

    /// Writes all that is left, and flushes the sink. No more is written.
    ///
    /// # Errors
    /// When the sink cannot take it.
    pub fn finish_events(&mut self) -> Result<(), WorldError> {
        let Some(mut writer) = self.events.take() else { return Ok(()) };
        self.machine.record_events(false);
        let written = writer.release(Nanos::MAX).and_then(|()| writer.sink.lock().flush());
        written.map_err(|source| WorldError::Events { source })
    }
}

impl EventWriter {
    fn release(&mut self, until: Nanos) -> io::Result<()> {
        if self.waiting.first_key_value().is_none_or(|(&(at, _), _)| at > until) {
            return Ok(());
        }
        let mut out = self.sink.lock();
        while let Some(entry) = self.waiting.first_entry() {
            if entry.key().0 > until {
                break;
            }
            out.write_all(entry.remove().as_bytes())?;
        }
        Ok(())
    }
}

fn json_value(value: Field, machine: &Machine, tasks: &[Task]) -> String {
    match value {
        Field::Number(number) => number.to_string(),
        Field::Priority(priority) => priority.to_string(),
        Field::Flag(flag) => flag.to_string(),
        Field::Name(name) => json_string(name),
        Field::Gfp(gfp) => json_string(&gfp.to_string()),
        Field::Group(memcg) => nullable(group_path(machine, memcg).as_deref()),
        Field::Mm(mm) => nullable(owner_of(mm, tasks)),
    }
}

fn owner_of(mm: MmId, tasks: &[Task]) -> Option<&str> {
    tasks.iter().find(|task| task.mm == mm).map(|task| task.name.as_str())
}

/// Path of a group below the root, which is `/`; `None`: it has been removed.
fn group_path(machine: &Machine, memcg: MemcgId) -> Option<String> {
    if memcg == ROOT {
        return Some("/".to_owned());
    }
    let mut path = String::new();
    let mut at = memcg;
    while at != ROOT {
        if !machine.memcg_is_online(at) {
            return None;
        }
        let group = &machine.memcgs()[at.idx()];
        path = format!("/{}{path}", group.name);
        at = group.parent;
    }
    Some(path)
}

fn nullable(text: Option<&str>) -> String {
    text.map_or_else(|| "null".to_owned(), json_string)
}

/// A text as JSON has it (RFC 8259, section 7).
fn json_string(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for c in text.chars() {
        match c {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            c if u32::from(c) < 0x20 => {
                let _ = write!(quoted, "\\u{:04x}", u32::from(c));
            }
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_text_is_a_json_string() {
        for text in ["", "plain", "a \"b\" \\ c", "line\n\ttab\u{1}\u{7f}", "\u{fc}\u{1f41a}"] {
            let back: String = serde_json::from_str(&json_string(text)).unwrap();
            assert_eq!(back, text);
        }
    }
}
