//! Packets of a trace in Perfetto's published schema.
//!
//! Source: protos/perfetto/trace of google/perfetto. Only this file has the field numbers: `Trace`,
//! `TracePacket`, `TrackDescriptor` with `ProcessDescriptor`, `ThreadDescriptor` and
//! `CounterDescriptor`, `TrackEvent` with `DebugAnnotation`, `InternedData`, and
//! `FtraceEventBundle` with `CompactSched`.
//!
//! Repeated names are interned: sent once with a number. Times are virtual nanoseconds; packets of
//! a track ascend in time, those of different tracks may not.
//!
//! Invariant: one sequence; a name is sent before or with the first packet that uses its number.

use super::detail::TraceDetail;
use super::protobuf::ProtobufMessage;
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
    /// `SequenceFlags`: interned names are reset.
    pub const STATE_CLEARED: u64 = 1;
    /// `SequenceFlags`: this packet uses interned names.
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

/// The number of a track.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TrackId(u64);

/// Type of a `TrackEvent`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrackEventType {
    /// Start of a slice.
    Begin = 1,
    /// End of the innermost slice.
    End = 2,
    /// Without duration.
    Instant = 3,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CounterUnit {
    Nanos,
    Count,
    Bytes,
    Percent,
}

/// A value of a debug annotation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AnnotationValue {
    Number(u64),
    Text(String),
}

/// Debug annotations: names and values.
pub type Annotations = Vec<(&'static str, AnnotationValue)>;

#[derive(Clone, Copy, Debug)]
pub struct TrackEvent<'a> {
    pub at: u64,
    pub track: TrackId,
    pub kind: TrackEventType,
    /// Empty for an end.
    pub name: &'a str,
    pub annotations: &'a [(&'static str, AnnotationValue)],
    /// Arrows that start here.
    pub flows: &'a [u64],
    /// Arrows that end here.
    pub terminating: &'a [u64],
}

/// Switches of one CPU from one thread to another (`CompactSched`).
#[derive(Clone, Debug, Default)]
pub struct CpuSwitches {
    /// Nanoseconds since the previous switch, the first since 0.
    pub times: Vec<u64>,
    pub prev_states: Vec<u64>,
    pub next_pids: Vec<u64>,
    /// Indices into [`CpuSwitches::comms`].
    pub next_comms: Vec<u64>,
    pub comms: Vec<String>,
}

#[derive(Debug)]
pub struct PacketWriter<W> {
    out: W,
    written: u64,
    /// Upper bound of the file.
    size: u64,
    framed: ProtobufMessage,
    packet: ProtobufMessage,
    event: ProtobufMessage,
    next_track: u64,
    event_names: BTreeMap<String, u64>,
    annotation_names: BTreeMap<&'static str, u64>,
}

impl<W: Write> PacketWriter<W> {
    /// Writes at most `size` bytes to `out` in many small writes, so it should be buffered.
    pub fn new(out: W, size: u64) -> PacketWriter<W> {
        PacketWriter {
            out,
            written: 0,
            size,
            framed: ProtobufMessage::default(),
            packet: ProtobufMessage::default(),
            event: ProtobufMessage::default(),
            next_track: 1,
            event_names: BTreeMap::new(),
            annotation_names: BTreeMap::new(),
        }
    }

    /// The present level of detail.
    pub fn detail(&self) -> TraceDetail {
        TraceDetail::of(self.written, self.size)
    }

    /// The first packet, which resets the state.
    pub fn begin(&mut self) -> io::Result<()> {
        self.packet.clear();
        self.packet.uint(packet::SEQUENCE_ID, SEQUENCE);
        self.packet.uint(packet::SEQUENCE_FLAGS, packet::STATE_CLEARED);
        self.write()
    }

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
        parent: Option<TrackId>,
        name: Option<&str>,
        what: impl FnOnce(&mut ProtobufMessage),
    ) -> io::Result<TrackId> {
        let track = TrackId(self.next_track);
        self.next_track += 1;
        self.packet.clear();
        self.packet.uint(packet::SEQUENCE_ID, SEQUENCE);
        self.packet.nested(packet::TRACK_DESCRIPTOR, |descriptor| {
            descriptor.uint(1, track.0);
            if let Some(name) = name {
                descriptor.text(2, name);
            }
            if let Some(TrackId(parent)) = parent {
                descriptor.uint(5, parent);
            }
            what(descriptor);
        });
        self.write()?;
        Ok(track)
    }

    pub fn group(&mut self, parent: Option<TrackId>, name: &str) -> io::Result<TrackId> {
        self.describe(parent, Some(name), |_| {})
    }

    /// A process (`ProcessDescriptor`).
    pub fn process(&mut self, pid: u32, name: &str) -> io::Result<TrackId> {
        self.describe(None, None, |descriptor| {
            descriptor.nested(3, |process| {
                process.uint(1, pid.into());
                process.text(6, name);
            });
        })
    }

    /// A thread of a process (`ThreadDescriptor`).
    pub fn thread(
        &mut self,
        process: TrackId,
        pid: u32,
        tid: u32,
        name: &str,
    ) -> io::Result<TrackId> {
        self.describe(Some(process), None, |descriptor| {
            descriptor.nested(4, |thread| {
                thread.uint(1, pid.into());
                thread.uint(2, tid.into());
                thread.text(5, name);
            });
        })
    }

    /// A counter (`CounterDescriptor`). Counters with the same `scale` share a y axis.
    pub fn counter(
        &mut self,
        parent: TrackId,
        name: &str,
        unit: CounterUnit,
        scale: Option<&str>,
    ) -> io::Result<TrackId> {
        self.describe(Some(parent), Some(name), |descriptor| {
            descriptor.nested(8, |counter| {
                match unit {
                    CounterUnit::Nanos => counter.uint(3, 1),
                    CounterUnit::Count => counter.uint(3, 2),
                    CounterUnit::Bytes => counter.uint(3, 3),
                    CounterUnit::Percent => counter.text(6, "%"),
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
    pub fn value(&mut self, at: u64, track: TrackId, value: u64) -> io::Result<()> {
        self.start_event(at);
        self.event.uint(event::TYPE, 4);
        self.event.uint(event::TRACK, track.0);
        self.event.uint(event::COUNTER_VALUE, value);
        self.packet.message(packet::TRACK_EVENT, &self.event);
        self.write()
    }

    /// Like [`PacketWriter::value`], for a fraction.
    pub fn double_value(&mut self, at: u64, track: TrackId, value: f64) -> io::Result<()> {
        self.start_event(at);
        self.event.uint(event::TYPE, 4);
        self.event.uint(event::TRACK, track.0);
        self.event.double(event::DOUBLE_VALUE, value);
        self.packet.message(packet::TRACK_EVENT, &self.event);
        self.write()
    }

    /// Writes a start or end of a slice, or an instant.
    pub fn event(&mut self, it: TrackEvent<'_>) -> io::Result<()> {
        self.start_event(it.at);
        let mut interned = ProtobufMessage::default();
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
                    AnnotationValue::Number(number) => annotation.uint(3, *number),
                    AnnotationValue::Text(text) => annotation.text(6, text),
                }
            });
        }
        it.flows.iter().for_each(|&flow| self.event.fixed64(event::FLOWS, flow));
        it.terminating.iter().for_each(|&flow| self.event.fixed64(event::TERMINATING_FLOWS, flow));
        if !interned.bytes().is_empty() {
            self.packet.message(packet::INTERNED_DATA, &interned);
        }
        if it.kind != TrackEventType::End || !it.annotations.is_empty() {
            self.packet.uint(packet::SEQUENCE_FLAGS, packet::NEEDS_STATE);
        }
        self.packet.message(packet::TRACK_EVENT, &self.event);
        self.write()
    }

    /// Switches of a CPU (`FtraceEventBundle`).
    pub fn switches(&mut self, cpu: u16, switches: &CpuSwitches) -> io::Result<()> {
        self.packet.clear();
        self.packet.uint(packet::SEQUENCE_ID, SEQUENCE);
        self.packet.nested(packet::FTRACE_EVENTS, |bundle| {
            bundle.uint(1, cpu.into());
            bundle.nested(4, |compact| {
                compact.packed(1, &switches.times);
                compact.packed(2, &switches.prev_states);
                compact.packed(3, &switches.next_pids);
                // All threads have the priority of nice 0.
                compact.packed(4, &vec![120; switches.times.len()]);
                switches.comms.iter().for_each(|comm| compact.text(5, comm));
                compact.packed(6, &switches.next_comms);
            });
        });
        self.write()
    }
}

fn intern(
    names: &mut BTreeMap<String, u64>,
    name: &str,
    field: u32,
    to: &mut ProtobufMessage,
) -> u64 {
    if let Some(&iid) = names.get(name) {
        return iid;
    }
    let iid = names.len() as u64 + 1;
    names.insert(name.to_owned(), iid);
    put_name(to, field, iid, name);
    iid
}

fn put_name(interned: &mut ProtobufMessage, field: u32, iid: u64, name: &str) {
    interned.nested(field, |entry| {
        entry.uint(1, iid);
        entry.text(2, name);
    });
}
