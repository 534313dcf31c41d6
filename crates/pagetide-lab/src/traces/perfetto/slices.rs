//! What a thread is in, as nested slices: from the activities that the world shows and the events of the core.
//!
//! A slice of reclaim has, at its end, the pages that its batches looked at and freed. Short faults and calls are not
//! slices; a wait for a page in a fault or a read that is one is not either, since that slice is the wait.
//!
//! Invariant: slices of a thread nest, and every one that begins ends: with its own end, with the one around it, with
//! its thread, or with the run. In the last two cases an annotation `ended` says so.

use super::packets::{Kind, Packets, Track, TrackEvent, Value};
use pagetide_core::effect::Throttle;
use pagetide_core::event::{Field, TraceEvent};
use pagetide_sim::observe::{CallKind, Slice, Wait};
use std::io::{self, Write};

/// Something that begins and ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Shown by the world.
    Of(Slice),
    /// `mm_vmscan_direct_reclaim_begin` to `_end`.
    DirectReclaim,
    /// `mm_vmscan_memcg_reclaim_begin` to `_end`.
    MemcgReclaim,
    /// `mm_vmscan_memcg_softlimit_reclaim_begin` to `_end`.
    SoftLimitReclaim,
}

impl Stage {
    /// Whether an end of `other` ends it: what was learnt meanwhile does not matter.
    fn is_ended_by(self, other: Stage) -> bool {
        match (self, other) {
            (Stage::Of(this), Stage::Of(other)) => {
                std::mem::discriminant(&this) == std::mem::discriminant(&other)
            }
            (this, other) => this == other,
        }
    }
}

/// A slice that is open.
#[derive(Clone, Copy, Debug)]
struct Open {
    stage: Stage,
    /// Pages that batches of reclaim in it have looked at, and freed.
    scanned: u64,
    reclaimed: u64,
}

/// The slices of a thread.
#[derive(Debug)]
pub struct ThreadTrack {
    track: Track,
    open: Vec<Open>,
}

impl ThreadTrack {
    /// Nothing is open.
    pub fn new(track: Track) -> ThreadTrack {
        ThreadTrack { track, open: Vec::new() }
    }

    /// Where its slices are.
    pub fn track(&self) -> Track {
        self.track
    }

    /// Whether the slice that would begin is no more than the one around it says.
    fn is_told(&self, stage: Stage) -> bool {
        let around = self.open.last().map(|open| open.stage);
        stage == Stage::Of(Slice::Wait(Wait::Page))
            && matches!(
                around,
                Some(Stage::Of(Slice::Call(CallKind::Fault { major: true } | CallKind::Read)))
            )
    }

    /// A slice begins.
    pub fn begin<W: Write>(
        &mut self,
        at: u64,
        stage: Stage,
        annotations: &[(&'static str, Value<'_>)],
        arrows: &[u64],
        packets: &mut Packets<W>,
    ) -> io::Result<()> {
        if self.is_told(stage) {
            return Ok(());
        }
        self.open.push(Open { stage, scanned: 0, reclaimed: 0 });
        packets.event(TrackEvent {
            at,
            track: self.track,
            kind: Kind::Begin,
            name: name_of(stage),
            annotations,
            flows: &[],
            terminating: arrows,
        })
    }

    /// A batch of reclaim was judged.
    pub fn batch(&mut self, event: &TraceEvent) {
        event.each_field(|name, value| {
            for open in &mut self.open {
                match (name, value) {
                    ("nr_scanned", Field::Number(pages)) => open.scanned += pages,
                    ("nr_reclaimed", Field::Number(pages)) => open.reclaimed += pages,
                    _ => {}
                }
            }
        });
    }

    /// A slice ends, if it has begun, and all in it.
    pub fn end<W: Write>(
        &mut self,
        at: u64,
        stage: Stage,
        annotations: &[(&'static str, Value<'_>)],
        packets: &mut Packets<W>,
    ) -> io::Result<()> {
        let Some(place) = self.open.iter().rposition(|open| open.stage.is_ended_by(stage)) else {
            return Ok(());
        };
        while self.open.len() > place + 1 {
            self.close(at, &[], packets)?;
        }
        self.close(at, annotations, packets)
    }

    /// All slices end, because the thread or the run does.
    pub fn end_all<W: Write>(
        &mut self,
        at: u64,
        why: &str,
        packets: &mut Packets<W>,
    ) -> io::Result<()> {
        while !self.open.is_empty() {
            self.close(at, &[("ended", Value::Text(why))], packets)?;
        }
        Ok(())
    }

    fn close<W: Write>(
        &mut self,
        at: u64,
        annotations: &[(&'static str, Value<'_>)],
        packets: &mut Packets<W>,
    ) -> io::Result<()> {
        let Some(open) = self.open.pop() else { return Ok(()) };
        let mut all = annotations.to_vec();
        if open.scanned > 0 {
            all.push(("nr_scanned", Value::Number(open.scanned)));
            if all.iter().all(|(name, _)| *name != "nr_reclaimed") {
                all.push(("nr_reclaimed", Value::Number(open.reclaimed)));
            }
        }
        packets.event(TrackEvent {
            at,
            track: self.track,
            kind: Kind::End,
            name: "",
            annotations: &all,
            flows: &[],
            terminating: &[],
        })
    }
}

/// What the slice is called.
fn name_of(stage: Stage) -> &'static str {
    match stage {
        Stage::DirectReclaim => "direct reclaim",
        Stage::MemcgReclaim => "memcg reclaim",
        Stage::SoftLimitReclaim => "soft limit reclaim",
        Stage::Of(Slice::Call(CallKind::Fault { major: false })) => "page fault",
        Stage::Of(Slice::Call(CallKind::Fault { major: true })) => "major fault",
        Stage::Of(Slice::Call(CallKind::Read)) => "read",
        Stage::Of(Slice::Call(CallKind::Write)) => "write",
        Stage::Of(Slice::Call(CallKind::KernelMemory)) => "kernel memory",
        Stage::Of(Slice::Call(CallKind::ControlFile)) => "write to a control file",
        Stage::Of(Slice::DirectCompaction) => "direct compaction",
        Stage::Of(Slice::Request { .. }) => "request",
        Stage::Of(Slice::Work) => "work",
        Stage::Of(Slice::Wait(Wait::Page)) => "wait for a page",
        Stage::Of(Slice::Wait(Wait::Disk)) => "wait for the disk",
        Stage::Of(Slice::Wait(Wait::Throttled(Throttle::Dirty))) => "balance_dirty_pages",
        Stage::Of(Slice::Wait(Wait::Throttled(_))) => "throttled",
    }
}
