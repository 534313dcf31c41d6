//! Activities of a thread as nested slices, from the activities that the simulator shows and the
//! events of the core.
//!
//! A slice of reclaim has at its end the numbers of scanned and freed pages. Short calls are not
//! slices. A wait for a page within a major fault or a read is not a slice, because the outer slice
//! is the wait.
//!
//! A slice is written when it ends, or when something in it is written. As the file grows, only
//! longer slices are written separately (`detail`): shorter neighbours become one slice with their
//! number and total time, and frequent instants become a count at the next end of a slice. So the
//! size of a file is bounded, and long slices are never lost.
//!
//! Invariant: slices of a thread nest, and every slice ends: by itself, with the enclosing one,
//! with its thread, or with the run. In the last two cases it has an annotation `ended`.

use super::detail::TraceDetail;
use super::packets::{
    AnnotationValue, Annotations, PacketWriter, TrackEvent, TrackEventType, TrackId,
};
use super::stage::SliceKind;
use pagetide_core::stats::event::{TraceEvent, TraceField};
use std::io::{self, Write};

#[derive(Debug)]
struct OpenSlice {
    stage: SliceKind,
    since: u64,
    annotations: Annotations,
    arrows: Vec<u64>,
    /// Its start is in the file.
    is_written: bool,
    /// Merged short slices in it.
    fold: Option<MergedSlice>,
    /// Pages scanned by batches of reclaim in it.
    scanned: u64,
    reclaimed: u64,
}

/// Merged neighbours that are too short for separate slices.
#[derive(Debug)]
struct MergedSlice {
    name: &'static str,
    since: u64,
    until: u64,
    count: u64,
    /// Total time.
    took: u64,
    /// Used if there is only one.
    annotations: Annotations,
}

#[derive(Debug)]
pub struct ThreadTrack {
    track: TrackId,
    open: Vec<OpenSlice>,
    /// Merged short slices outside any slice.
    fold: Option<MergedSlice>,
    /// Instants left out since the last written end of a slice.
    left_out: u64,
}

impl ThreadTrack {
    pub fn new(track: TrackId) -> ThreadTrack {
        ThreadTrack { track, open: Vec::new(), fold: None, left_out: 0 }
    }

    /// A slice starts; `arrows` end at it.
    pub fn begin(&mut self, at: u64, stage: SliceKind, annotations: Annotations, arrows: Vec<u64>) {
        if self.open.last().is_some_and(|around| around.stage.makes_redundant(stage)) {
            return;
        }
        self.open.push(OpenSlice {
            stage,
            since: at,
            annotations,
            arrows,
            is_written: false,
            fold: None,
            scanned: 0,
            reclaimed: 0,
        });
    }

    /// Adds the pages of a batch of reclaim to all open slices.
    pub fn batch(&mut self, event: &TraceEvent) {
        event.each_field(|name, value| {
            for open in &mut self.open {
                match (name, value) {
                    ("nr_scanned", TraceField::Number(pages)) => open.scanned += pages,
                    ("nr_reclaimed", TraceField::Number(pages)) => open.reclaimed += pages,
                    _ => {}
                }
            }
        });
    }

    /// An instant; `arrows` start at it.
    pub fn instant<W: Write>(
        &mut self,
        at: u64,
        name: &str,
        annotations: Annotations,
        arrows: &[u64],
        packets: &mut PacketWriter<W>,
    ) -> io::Result<()> {
        self.write_open(packets)?;
        self.flush_last(packets)?;
        packets.event(TrackEvent {
            at,
            track: self.track,
            kind: TrackEventType::Instant,
            name,
            annotations: &annotations,
            flows: arrows,
            terminating: &[],
        })
    }

    /// A frequent instant, which is only counted if the file is large. Returns whether it is
    /// written.
    pub fn frequent_instant<W: Write>(
        &mut self,
        at: u64,
        name: &str,
        annotations: Annotations,
        arrows: &[u64],
        packets: &mut PacketWriter<W>,
    ) -> io::Result<bool> {
        if packets.detail().has_instants() {
            return self.instant(at, name, annotations, arrows, packets).map(|()| true);
        }
        self.left_out += 1;
        Ok(false)
    }

    /// A slice and all slices in it end; nothing if it is not open.
    pub fn end<W: Write>(
        &mut self,
        at: u64,
        stage: SliceKind,
        mut annotations: Annotations,
        packets: &mut PacketWriter<W>,
    ) -> io::Result<()> {
        let Some(place) = self.open.iter().rposition(|open| open.stage.is_ended_by(stage)) else {
            return Ok(());
        };
        while self.open.len() > place + 1 {
            self.close(at, Vec::new(), packets)?;
        }
        if self.open[place].stage.became_major(stage) {
            annotations.push(("major", AnnotationValue::Number(1)));
        }
        self.close(at, annotations, packets)
    }

    /// All slices end with the thread or the run.
    pub fn end_all<W: Write>(
        &mut self,
        at: u64,
        why: &str,
        packets: &mut PacketWriter<W>,
    ) -> io::Result<()> {
        self.write_open(packets)?;
        while !self.open.is_empty() {
            self.close(at, vec![("ended", AnnotationValue::Text(why.to_owned()))], packets)?;
        }
        self.flush_last(packets)?;
        match self.count_left_out() {
            Some(count) => self.instant(at, "instants left out", vec![count], &[], packets),
            None => Ok(()),
        }
    }

    fn count_left_out(&mut self) -> Option<(&'static str, AnnotationValue)> {
        let count = std::mem::take(&mut self.left_out);
        (count > 0).then_some(("instants", AnnotationValue::Number(count)))
    }

    fn close<W: Write>(
        &mut self,
        at: u64,
        mut annotations: Annotations,
        packets: &mut PacketWriter<W>,
    ) -> io::Result<()> {
        let Some(open) = self.open.last() else { return Ok(()) };
        if open.scanned > 0 {
            annotations.push(("nr_scanned", AnnotationValue::Number(open.scanned)));
            if annotations.iter().all(|(name, _)| *name != "nr_reclaimed") {
                annotations.push(("nr_reclaimed", AnnotationValue::Number(open.reclaimed)));
            }
        }
        let detail = packets.detail();
        if !open.is_written && at.saturating_sub(open.since) < detail.least_ns {
            return self.fold(at, annotations, detail, packets);
        }
        self.write_open(packets)?;
        self.flush_last(packets)?;
        annotations.extend(self.count_left_out());
        self.open.pop();
        packets.event(TrackEvent {
            at,
            track: self.track,
            kind: TrackEventType::End,
            name: "",
            annotations: &annotations,
            flows: &[],
            terminating: &[],
        })
    }

    /// Merges the last slice, which was short.
    fn fold<W: Write>(
        &mut self,
        at: u64,
        more: Annotations,
        detail: TraceDetail,
        packets: &mut PacketWriter<W>,
    ) -> io::Result<()> {
        let Some(open) = self.open.pop() else { return Ok(()) };
        let (name, took) = (open.stage.name(), at.saturating_sub(open.since));
        if let Some(fold) = self.last_fold() {
            let is_near = open.since.saturating_sub(fold.until) < detail.least_ns;
            if is_near && at.saturating_sub(fold.since) <= detail.most_ns() {
                if fold.name != name {
                    fold.name = "short slices";
                }
                (fold.until, fold.count, fold.took) = (at, fold.count + 1, fold.took + took);
                return Ok(());
            }
            // The enclosing slices are long by now.
            self.write_open(packets)?;
            self.flush_last(packets)?;
        }
        let mut annotations = open.annotations;
        annotations.extend(more);
        let fold = MergedSlice { name, since: open.since, until: at, count: 1, took, annotations };
        match self.open.last_mut() {
            Some(around) => around.fold = Some(fold),
            None => self.fold = Some(fold),
        }
        Ok(())
    }

    fn last_fold(&mut self) -> Option<&mut MergedSlice> {
        match self.open.last_mut() {
            Some(around) => around.fold.as_mut(),
            None => self.fold.as_mut(),
        }
    }

    /// Writes the merged slices in the last open slice, whose start is written.
    fn flush_last<W: Write>(&mut self, packets: &mut PacketWriter<W>) -> io::Result<()> {
        let fold = match self.open.last_mut() {
            Some(around) => around.fold.take(),
            None => self.fold.take(),
        };
        write_fold(self.track, fold, &mut self.left_out, packets)
    }

    /// Writes the starts of all open slices that are not written yet.
    fn write_open<W: Write>(&mut self, packets: &mut PacketWriter<W>) -> io::Result<()> {
        let mut before = &mut self.fold;
        for open in &mut self.open {
            if !open.is_written {
                write_fold(self.track, before.take(), &mut self.left_out, packets)?;
                open.is_written = true;
                packets.event(TrackEvent {
                    at: open.since,
                    track: self.track,
                    kind: TrackEventType::Begin,
                    name: open.stage.name(),
                    annotations: &open.annotations,
                    flows: &[],
                    terminating: &open.arrows,
                })?;
            }
            before = &mut open.fold;
        }
        Ok(())
    }
}

fn write_fold<W: Write>(
    track: TrackId,
    fold: Option<MergedSlice>,
    left_out: &mut u64,
    packets: &mut PacketWriter<W>,
) -> io::Result<()> {
    let Some(fold) = fold else { return Ok(()) };
    let mut annotations = match fold.count {
        1 => fold.annotations,
        count => vec![
            ("count", AnnotationValue::Number(count)),
            ("took_ns", AnnotationValue::Number(fold.took)),
        ],
    };
    if *left_out > 0 {
        annotations.push(("instants", AnnotationValue::Number(std::mem::take(left_out))));
    }
    let begin = TrackEvent {
        at: fold.since,
        track,
        kind: TrackEventType::Begin,
        name: fold.name,
        annotations: &annotations,
        flows: &[],
        terminating: &[],
    };
    packets.event(begin)?;
    packets.event(TrackEvent {
        at: fold.until,
        kind: TrackEventType::End,
        name: "",
        annotations: &[],
        ..begin
    })
}
