//! A run as a Perfetto trace: which thread ran on which CPU, waits of threads, and counters.
//!
//! The format is Perfetto's protocol buffers (`packets`); ui.perfetto.dev and trace_processor open
//! it. A group is a process, and a task is a thread in it; kernel threads are in the process
//! `kernel`. docs/outputs.md describes tracks and slices.
//!
//! Invariant: the same run gives the same bytes. Packets of a track ascend in time. Counters are
//! written at the end, when they are known.

mod counters;
mod cpus;
mod detail;
mod packets;
mod protobuf;
mod slices;
mod stage;

use cpus::CpuTrack;
use packets::{AnnotationValue, Annotations, PacketWriter, TrackEvent, TrackEventType, TrackId};
use pagetide_core::stats::event::{TraceEvent, TraceField as CoreField};
use pagetide_core::units::{Cpu, IdVec};
use pagetide_scenario::record::RunRecord;
use pagetide_sim::observe::{
    ActivitySlice, ExitReason, NamedEvent, Observation, ObservationKind, Observer, RunCast,
    ThreadInfo, ThreadRole, WaitReason, WatcherObservation,
};
use slices::ThreadTrack;
use stage::SliceKind;
use std::collections::BTreeMap;
use std::io::{self, Write};

/// Pid of the root group; those of the other groups follow.
const ROOT_PID: u32 = 100;
/// Name of the root group: the Perfetto UI shows only the last part of a path.
const ROOT_NAME: &str = "root group";
/// The process of the kernel's threads (`kthreadd`).
const KERNEL_PID: u32 = 2;

/// Writes a trace for Perfetto.
#[derive(Debug)]
pub struct Perfetto<W> {
    packets: PacketWriter<W>,
    /// `None`: the run has not started.
    cast: Option<RunCast>,
    machine: Option<TrackId>,
    /// Processes, by index of the group in the scenario.
    groups: Vec<TrackId>,
    threads: Vec<ThreadTrack>,
    cpus: IdVec<Cpu, CpuTrack>,
    /// Wake-ups of each node's kswapd since it last ran.
    wakeups: BTreeMap<u8, Vec<u64>>,
    nr_wakeups: u64,
    /// From when on CPU switches are not written because the file is large.
    left_out: Option<u64>,
}

/// The first bytes of every trace: a file with them may be overwritten.
pub const MAGIC: [u8; 6] = [0x0a, 0x04, 0x50, 0x01, 0x68, 0x01];

impl<W: Write> Perfetto<W> {
    /// Writes to `out` in many small writes, so it should be buffered.
    pub fn new(out: W) -> Perfetto<W> {
        Perfetto::below(out, detail::SIZE)
    }

    /// Like [`Perfetto::new`], with a file below `size` bytes, except that names of threads and
    /// counters of groups are always written.
    pub fn below(out: W, size: u64) -> Perfetto<W> {
        Perfetto {
            packets: PacketWriter::new(out, size),
            cast: None,
            machine: None,
            groups: Vec::new(),
            threads: Vec::new(),
            cpus: IdVec::default(),
            wakeups: BTreeMap::new(),
            nr_wakeups: 0,
            left_out: None,
        }
    }

    /// Writes a frequent instant. Returns whether it is written.
    fn instant(
        &mut self,
        at: u64,
        thread: usize,
        event: &NamedEvent,
        arrows: &[u64],
    ) -> io::Result<bool> {
        let (name, fields) = (event.name(), fields_of(event));
        self.threads[thread].frequent_instant(at, name, fields, arrows, &mut self.packets)
    }

    fn end_reclaim(
        &mut self,
        at: u64,
        thread: usize,
        stage: SliceKind,
        reclaimed: u64,
    ) -> io::Result<()> {
        let annotations = vec![("nr_reclaimed", AnnotationValue::Number(reclaimed))];
        self.threads[thread].end(at, stage, annotations, &mut self.packets)
    }

    fn event(&mut self, at: u64, thread: usize, event: &NamedEvent) -> io::Result<()> {
        use TraceEvent as E;
        match *event.raw() {
            E::MmVmscanWakeupKswapd { nid, .. } => {
                let number = self.nr_wakeups + 1;
                if self.instant(at, thread, event, &[number])? {
                    self.nr_wakeups = number;
                    self.wakeups.entry(nid.0).or_default().push(number);
                }
                Ok(())
            }
            E::MmVmscanKswapdWake { nid, .. } => {
                let arrows = self.wakeups.remove(&nid.0).unwrap_or_default();
                let stage = SliceKind::BalancePgdat;
                self.threads[thread].end(at, stage, Vec::new(), &mut self.packets)?;
                self.threads[thread].begin(at, stage, fields_of(event), arrows);
                Ok(())
            }
            E::MmVmscanKswapdSleep { .. }
            | E::MmPageAllocExtfrag { .. }
            | E::BoostWatermark { .. }
            | E::MmCompactionBegin { .. }
            | E::MmCompactionEnd { .. }
            | E::BalanceDirtyPages { .. } => self.instant(at, thread, event, &[]).map(|_| ()),
            E::MarkVictim { .. } => {
                let fields = fields_of(event);
                self.threads[thread].instant(at, event.name(), fields, &[], &mut self.packets)
            }
            E::MmVmscanDirectReclaimBegin { .. } => {
                self.threads[thread].begin(
                    at,
                    SliceKind::DirectReclaim,
                    fields_of(event),
                    Vec::new(),
                );
                Ok(())
            }
            E::MmVmscanDirectReclaimEnd { nr_reclaimed } => {
                self.end_reclaim(at, thread, SliceKind::DirectReclaim, nr_reclaimed)
            }
            E::MmVmscanMemcgReclaimBegin { .. } => {
                self.threads[thread].begin(
                    at,
                    SliceKind::MemcgReclaim,
                    fields_of(event),
                    Vec::new(),
                );
                Ok(())
            }
            E::MmVmscanMemcgReclaimEnd { nr_reclaimed, .. } => {
                self.end_reclaim(at, thread, SliceKind::MemcgReclaim, nr_reclaimed)
            }
            E::MmVmscanMemcgSoftlimitReclaimBegin { .. } => {
                self.threads[thread].begin(
                    at,
                    SliceKind::SoftLimitReclaim,
                    fields_of(event),
                    Vec::new(),
                );
                Ok(())
            }
            E::MmVmscanMemcgSoftlimitReclaimEnd { nr_reclaimed, .. } => {
                self.end_reclaim(at, thread, SliceKind::SoftLimitReclaim, nr_reclaimed)
            }
            E::MmShrinkSlabStart { .. } => {
                self.threads[thread].begin(at, SliceKind::ShrinkSlab, fields_of(event), Vec::new());
                Ok(())
            }
            E::MmShrinkSlabEnd { .. } => {
                let ends =
                    |(name, _): &(&str, AnnotationValue)| ["new_scan", "retval"].contains(name);
                let annotations = fields_of(event).into_iter().filter(ends).collect();
                self.threads[thread].end(at, SliceKind::ShrinkSlab, annotations, &mut self.packets)
            }
            E::MmVmscanLruShrinkInactive { .. } => {
                self.threads[thread].batch(event.raw());
                Ok(())
            }
            // Enclosing slices have the sums of batches; a throttled thread has its own slice.
            E::MmVmscanLruShrinkActive { .. } | E::MmVmscanThrottled { .. } => Ok(()),
        }
    }

    fn began(&mut self, at: u64, thread: usize, slice: ActivitySlice) {
        let annotations = match slice {
            ActivitySlice::Request { arrived } => {
                vec![("waited_ns", AnnotationValue::Number(at.saturating_sub(arrived)))]
            }
            ActivitySlice::Wait(WaitReason::Throttled(reason)) => match CoreField::from(reason) {
                CoreField::Name(name) => vec![("reason", AnnotationValue::Text(name.to_owned()))],
                _ => Vec::new(),
            },
            ActivitySlice::Call(_)
            | ActivitySlice::DirectCompaction
            | ActivitySlice::Wait(_)
            | ActivitySlice::Work => Vec::new(),
        };
        self.threads[thread].begin(at, SliceKind::Of(slice), annotations, Vec::new());
    }

    fn ended(&mut self, at: u64, thread: usize, slice: ActivitySlice) -> io::Result<()> {
        let annotations = match slice {
            ActivitySlice::Request { arrived } => {
                vec![("latency_ns", AnnotationValue::Number(at.saturating_sub(arrived)))]
            }
            ActivitySlice::Call(_)
            | ActivitySlice::DirectCompaction
            | ActivitySlice::Wait(_)
            | ActivitySlice::Work => Vec::new(),
        };
        self.threads[thread].end(at, SliceKind::Of(slice), annotations, &mut self.packets)
    }

    fn describe(&mut self, cast: &RunCast) -> io::Result<()> {
        self.packets.begin()?;
        self.machine = Some(self.packets.group(None, "machine")?);
        let kernel = self.packets.process(KERNEL_PID, "kernel")?;
        let has_root =
            |thread: &ThreadInfo| matches!(thread.role, ThreadRole::Task { group: None, .. });
        let root = match cast.threads.iter().any(has_root) {
            true => Some(self.packets.process(ROOT_PID, ROOT_NAME)?),
            false => None,
        };
        for (at, path) in cast.groups.iter().enumerate() {
            let process = self.packets.process(ROOT_PID + 1 + at as u32, path)?;
            self.groups.push(process);
        }
        for thread in &cast.threads {
            let (process, pid, name) = match thread.role {
                ThreadRole::Kernel(_) => (kernel, KERNEL_PID, thread.comm.clone()),
                ThreadRole::Task { group, nr } => {
                    let name = match nr {
                        0 => thread.comm.clone(),
                        nr => format!("{} {nr}", thread.comm),
                    };
                    let known =
                        group.and_then(|group| Some((*self.groups.get(group)?, group as u32)));
                    match known {
                        Some((process, group)) => (process, ROOT_PID + 1 + group, name),
                        None => (root.unwrap_or(kernel), ROOT_PID, name),
                    }
                }
            };
            let track = self.packets.thread(process, pid, thread.pid, &name)?;
            self.threads.push(ThreadTrack::new(track));
        }
        Ok(())
    }
}

fn fields_of(event: &NamedEvent) -> Annotations {
    use pagetide_sim::observe::EventValue as Field;
    let mut annotations = Annotations::new();
    event.each_field(|name, value| {
        let value = match value {
            Field::Number(number) => AnnotationValue::Number(number),
            Field::Priority(priority) => AnnotationValue::Text(priority.to_string()),
            Field::Flag(flag) => AnnotationValue::Number(flag.into()),
            Field::Word(word) => AnnotationValue::Text(word.to_owned()),
            Field::Gfp(gfp) => AnnotationValue::Text(gfp.to_string()),
            Field::Name(name) => AnnotationValue::Text(name.unwrap_or("removed").to_owned()),
        };
        annotations.push((name, value));
    });
    annotations
}

impl<W: Write> Observer for Perfetto<W> {
    fn what(&self) -> &'static str {
        "the Perfetto trace"
    }

    fn begin(&mut self, cast: &RunCast) -> io::Result<()> {
        self.describe(cast)?;
        self.cpus.resize_with(cast.cpus.into(), CpuTrack::new);
        self.cast = Some(cast.clone());
        Ok(())
    }

    fn observe(&mut self, observation: &Observation) -> io::Result<()> {
        let Observation { at, thread, ref what } = *observation;
        match what {
            ObservationKind::Event(_, event) => self.event(at, thread, event),
            ObservationKind::Began { slice, since } => {
                self.began(*since, thread, *slice);
                Ok(())
            }
            ObservationKind::Ended(slice) => self.ended(at, thread, *slice),
            ObservationKind::Exited(exit) => {
                let why = match exit {
                    ExitReason::Done => "exit",
                    ExitReason::Killed => "killed",
                    ExitReason::Stopped => "stopped",
                };
                self.threads[thread].end_all(at, why, &mut self.packets)
            }
            ObservationKind::Watched(deed) => {
                let WatcherObservation { act, target, why } = deed;
                let fields = [("target", target), ("why", why)];
                let text = |text: &String| AnnotationValue::Text(text.clone());
                let fields = fields.map(|(name, value)| (name, text(value))).to_vec();
                self.threads[thread].instant(at, act, fields, &[], &mut self.packets)
            }
            ObservationKind::SwitchIn(cpu) => {
                let Some(cast) = &self.cast else { return Ok(()) };
                let ThreadInfo { pid, comm, .. } = &cast.threads[thread];
                self.cpus[*cpu].switch_in(at, cpu.0, (*pid, comm), &mut self.packets)
            }
            ObservationKind::SwitchOut(cpu, left) => {
                self.cpus[*cpu].switch_out(at, *left);
                Ok(())
            }
        }
    }

    fn end(&mut self, at: u64, is_cut: bool) -> io::Result<()> {
        let why = if is_cut { "cut" } else { "end of the run" };
        for thread in &mut self.threads {
            thread.end_all(at, why, &mut self.packets)?;
        }
        for (cpu, track) in self.cpus.iter_mut().enumerate() {
            let since = track.end(at, cpu as u16, &mut self.packets)?;
            self.left_out = self.left_out.into_iter().chain(since).min();
        }
        Ok(())
    }

    fn close(&mut self, record: Option<&RunRecord>) -> io::Result<()> {
        if let (Some(machine), Some(record)) = (self.machine, record) {
            let (variant, scenario) = (record.variant.clone(), record.scenario.clone());
            self.packets.event(TrackEvent {
                at: 0,
                track: machine,
                kind: TrackEventType::Instant,
                name: "run",
                annotations: &[
                    ("scenario", AnnotationValue::Text(scenario)),
                    ("variant", AnnotationValue::Text(variant)),
                    ("seed", AnnotationValue::Number(record.seed)),
                    ("pagetide", AnnotationValue::Text(record.version.clone())),
                ],
                flows: &[],
                terminating: &[],
            })?;
        }
        // After the instant above, on the same track.
        if let (Some(at), Some(track)) = (self.left_out, self.machine) {
            self.packets.event(TrackEvent {
                at,
                track,
                kind: TrackEventType::Instant,
                name: "no CPU switches from here (size of the file)",
                annotations: &[],
                flows: &[],
                terminating: &[],
            })?;
        }
        if let (Some(machine), Some(record), Some(cast)) = (self.machine, record, &self.cast) {
            if let Some(timeline) = &record.timeline {
                let page_size = cast.page_size;
                counters::write(timeline, page_size, machine, &self.groups, &mut self.packets)?;
            }
        }
        self.packets.flush()
    }
}
