//! Packets of a trace: what Perfetto reads one after the other, in its published schema.
//!
//! Source: protos/perfetto/trace of google/perfetto. The numbers of the fields that are used are here and nowhere else:
//! `Trace`, `TracePacket`, `TrackDescriptor` with `ProcessDescriptor`, `ThreadDescriptor` and `CounterDescriptor`,
//! `TrackEvent` with `DebugAnnotation`, `InternedData`, and `FtraceEventBundle` with `CompactSched`.
//!
//! Names that come again are sent once, with a number that stands for them from then on. Times are the simulator's
//! own, in nanoseconds; the packets of a track are in their order, those of different tracks need not be.
//!
//! Invariant: one sequence; a name is sent before, or with, the first packet that uses its number.

use super::detail::Detail;
use super::protobuf::Message;
use std::collections::BTreeMap;
use std::io::{self, Write};

/// The sequence that all packets belong to.
const SEQUENCE: u64 = 1;

/// Fields of `TracePacket`.
mod packet {
    pub const FTRACE_EVENTS: u32 = 1;
    pub const TIMESTAMP: u32 = 8;
    pub const SEQUENCE_ID: u32 = 10;
    pub const TRACK_EVENT: u32 = 11;
    pub const INTERNED_DATA: u32 = 12;
    pub const SEQUENCE_FLAGS: u32 = 13;
    pub const TRACK_DESCRIPTOR: u32 = 60;
    /// `Trace.packet`.
    pub const IN_TRACE: u32 = 1;
    /// `SequenceFlags`: the numbers of names begin anew.
    pub const STATE_CLEARED: u64 = 1;
    /// ... and this packet uses them.
    pub const NEEDS_STATE: u64 = 2;
}

/// Fields of `TrackEvent`.
mod event {
    pub const ANNOTATIONS: u32 = 4;
    pub const TYPE: u32 = 9;
    pub const NAME_IID: u32 = 10;
    pub const TRACK: u32 = 11;
    pub const COUNTER_VALUE: u32 = 30;
    pub const DOUBLE_VALUE: u32 = 44;
    pub const FLOWS: u32 = 47;
    pub const TERMINATING_FLOWS: u32 = 48;
}

/// A track, by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Track(u64);

/// What a `TrackEvent` says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A slice begins.
    Begin = 1,
    /// The last slice that has begun ends.
    End = 2,
    /// Something that takes no time.
    Instant = 3,
}

/// What a counter counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Nanoseconds.
    Nanos,
    /// A number of things.
    Count,
    Bytes,
    /// Per cent.
    Percent,
}

/// A value of a debug annotation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    Number(u64),
    Text(String),
}

/// Debug annotations: names and values.
pub type Annotations = Vec<(&'static str, Value)>;

#[derive(Clone, Copy, Debug)]
pub struct TrackEvent<'a> {
    pub at: u64,
    pub track: Track,
    pub kind: Kind,
    /// Empty for an end.
    pub name: &'a str,
    pub annotations: &'a [(&'static str, Value)],
    /// Arrows that begin here.
    pub flows: &'a [u64],
    /// Arrows that end here.
    pub terminating: &'a [u64],
}

/// Switches of one CPU from one thread to another (`CompactSched`).
#[derive(Clone, Debug, Default)]
pub struct Switches {
    /// Each since the one before, the first since 0.
    pub times: Vec<u64>,
    pub prev_states: Vec<u64>,
    pub next_pids: Vec<u64>,
    /// Places in [`Switches::comms`].
    pub next_comms: Vec<u64>,
    pub comms: Vec<String>,
}

/// Writes packets.
#[derive(Debug)]
pub struct Packets<W> {
    out: W,
    written: u64,
    /// What it is to stay below.
    size: u64,
    framed: Message,
    packet: Message,
    event: Message,
    next_track: u64,
    event_names: BTreeMap<String, u64>,
    annotation_names: BTreeMap<&'static str, u64>,
}

impl<W: Write> Packets<W> {
    /// To `out`, in many small writes: it should have a buffer. All is to stay below `size` bytes.
    pub fn new(out: W, size: u64) -> Packets<W> {
        Packets {
            out,
            written: 0,
            size,
            framed: Message::default(),
            packet: Message::default(),
            event: Message::default(),
            next_track: 1,
            event_names: BTreeMap::new(),
            annotation_names: BTreeMap::new(),
        }
    }

    /// How fine what comes now is to be.
    pub fn detail(&self) -> Detail {
        Detail::of(self.written, self.size)
    }

    /// The first packet: nothing before it counts.
    pub fn begin(&mut self) -> io::Result<()> {
        self.packet.clear();
        self.packet.uint(packet::SEQUENCE_ID, SEQUENCE);
        self.packet.uint(packet::SEQUENCE_FLAGS, packet::STATE_CLEARED);
        self.write()
    }

    /// The last thing to do.
    pub fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }

    fn write(&mut self) -> io::Result<()> {
        self.framed.clear();
        self.framed.message(packet::IN_TRACE, &self.packet);
        self.written += self.framed.bytes().len() as u64;
        self.out.write_all(self.framed.bytes())
    }

    fn describe(
        &mut self,
        parent: Option<Track>,
        name: Option<&str>,
        what: impl FnOnce(&mut Message),
    ) -> io::Result<Track> {
        let track = Track(self.next_track);
        self.next_track += 1;
        self.packet.clear();
        self.packet.uint(packet::SEQUENCE_ID, SEQUENCE);
        self.packet.nested(packet::TRACK_DESCRIPTOR, |descriptor| {
            descriptor.uint(1, track.0);
            if let Some(name) = name {
                descriptor.text(2, name);
            }
            if let Some(Track(parent)) = parent {
                descriptor.uint(5, parent);
            }
            what(descriptor);
        });
        self.write()?;
        Ok(track)
    }

    /// A track that others are under.
    pub fn group(&mut self, parent: Option<Track>, name: &str) -> io::Result<Track> {
        self.describe(parent, Some(name), |_| {})
    }

    /// A process (`ProcessDescriptor`).
    pub fn process(&mut self, pid: u32, name: &str) -> io::Result<Track> {
        self.describe(None, None, |descriptor| {
            descriptor.nested(3, |process| {
                process.uint(1, pid.into());
                process.text(6, name);
            });
        })
    }

    /// A thread of a process (`ThreadDescriptor`).
    pub fn thread(&mut self, process: Track, pid: u32, tid: u32, name: &str) -> io::Result<Track> {
        self.describe(Some(process), None, |descriptor| {
            descriptor.nested(4, |thread| {
                thread.uint(1, pid.into());
                thread.uint(2, tid.into());
                thread.text(5, name);
            });
        })
    }

    /// A counter (`CounterDescriptor`). Those with the same `scale` are drawn on one.
    pub fn counter(
        &mut self,
        parent: Track,
        name: &str,
        unit: Unit,
        scale: Option<&str>,
    ) -> io::Result<Track> {
        self.describe(Some(parent), Some(name), |descriptor| {
            descriptor.nested(8, |counter| {
                match unit {
                    Unit::Nanos => counter.uint(3, 1),
                    Unit::Count => counter.uint(3, 2),
                    Unit::Bytes => counter.uint(3, 3),
                    Unit::Percent => counter.text(6, "%"),
                }
                if let Some(scale) = scale {
                    counter.text(7, scale);
                }
            });
        })
    }

    fn start_event(&mut self, at: u64) {
        self.packet.clear();
        self.packet.uint(packet::TIMESTAMP, at);
        self.packet.uint(packet::SEQUENCE_ID, SEQUENCE);
        self.event.clear();
    }

    /// The value of a counter from now on.
    pub fn value(&mut self, at: u64, track: Track, value: u64) -> io::Result<()> {
        self.start_event(at);
        self.event.uint(event::TYPE, 4);
        self.event.uint(event::TRACK, track.0);
        self.event.uint(event::COUNTER_VALUE, value);
        self.packet.message(packet::TRACK_EVENT, &self.event);
        self.write()
    }

    /// The same of one that is no whole number.
    pub fn double_value(&mut self, at: u64, track: Track, value: f64) -> io::Result<()> {
        self.start_event(at);
        self.event.uint(event::TYPE, 4);
        self.event.uint(event::TRACK, track.0);
        self.event.double(event::DOUBLE_VALUE, value);
        self.packet.message(packet::TRACK_EVENT, &self.event);
        self.write()
    }

    /// A slice begins or ends, or something happens at once.
    pub fn event(&mut self, it: TrackEvent<'_>) -> io::Result<()> {
        self.start_event(it.at);
        let mut interned = Message::default();
        self.event.uint(event::TYPE, it.kind as u64);
        self.event.uint(event::TRACK, it.track.0);
        if !it.name.is_empty() {
            let iid = intern(&mut self.event_names, it.name, 2, &mut interned);
            self.event.uint(event::NAME_IID, iid);
        }
        for (name, value) in it.annotations {
            let next = self.annotation_names.len() as u64 + 1;
            let iid = *self.annotation_names.entry(name).or_insert(next);
            if iid == next {
                put_name(&mut interned, 3, iid, name);
            }
            self.event.nested(event::ANNOTATIONS, |annotation| {
                annotation.uint(1, iid);
                match value {
                    Value::Number(number) => annotation.uint(3, *number),
                    Value::Text(text) => annotation.text(6, text),
                }
            });
        }
        it.flows.iter().for_each(|&flow| self.event.fixed64(event::FLOWS, flow));
        it.terminating.iter().for_each(|&flow| self.event.fixed64(event::TERMINATING_FLOWS, flow));
        if !interned.bytes().is_empty() {
            self.packet.message(packet::INTERNED_DATA, &interned);
        }
        if it.kind != Kind::End || !it.annotations.is_empty() {
            self.packet.uint(packet::SEQUENCE_FLAGS, packet::NEEDS_STATE);
        }
        self.packet.message(packet::TRACK_EVENT, &self.event);
        self.write()
    }

    /// Whom a CPU ran (`FtraceEventBundle`).
    pub fn switches(&mut self, cpu: u16, switches: &Switches) -> io::Result<()> {
        self.packet.clear();
        self.packet.uint(packet::SEQUENCE_ID, SEQUENCE);
        self.packet.nested(packet::FTRACE_EVENTS, |bundle| {
            bundle.uint(1, cpu.into());
            bundle.nested(4, |compact| {
                compact.packed(1, &switches.times);
                compact.packed(2, &switches.prev_states);
                compact.packed(3, &switches.next_pids);
                // Everybody's priority is that of nice 0.
                compact.packed(4, &vec![120; switches.times.len()]);
                switches.comms.iter().for_each(|comm| compact.text(5, comm));
                compact.packed(6, &switches.next_comms);
            });
        });
        self.write()
    }
}

fn intern(names: &mut BTreeMap<String, u64>, name: &str, field: u32, to: &mut Message) -> u64 {
    if let Some(&iid) = names.get(name) {
        return iid;
    }
    let iid = names.len() as u64 + 1;
    names.insert(name.to_owned(), iid);
    put_name(to, field, iid, name);
    iid
}

fn put_name(interned: &mut Message, field: u32, iid: u64, name: &str) {
    interned.nested(field, |entry| {
        entry.uint(1, iid);
        entry.text(2, name);
    });
}
