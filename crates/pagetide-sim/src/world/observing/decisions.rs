//! Hashes of the core's decisions in a run: its effects and its trace events. For tests.
//!
//! The digest of a machine's state ([`Manager::digest`]) changes with the layout of that state,
//! such as a new field. These hashes change only if the core does something else, at another time,
//! or for another thread. They depend on numbers of frames, files, groups and tasks, not on names
//! or on the order of variants in the source.
//!
//! Not hashed: effects on page contents, which this world does not have, and effects of building
//! the machine.
//!
//! Invariant: each effect is hashed once, at the time at which the world carries it out; each event
//! once, at the time of its step.
//!
//! [`Manager::digest`]: pagetide_core::process::Machine::digest

use crate::world::threads::WorldThread;
use pagetide_core::interface::daemon::Daemon;
use pagetide_core::interface::effect::{Effect, Io, Token};
use pagetide_core::slab::object::Object;
use pagetide_core::stats::event::{TraceEvent, TraceField};
use pagetide_core::units::digest::{Digest, State};
use pagetide_core::units::{Cpu, Nanos};
use std::fmt::{self, Write as _};

/// Hashes of the core's decisions in a run. Equal decisions give equal hashes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decisions {
    /// Hash of the effects: I/O, copies, wake-ups, late frees and kills, each with its time and
    /// CPU.
    pub effects: u64,
    /// Hash of the events (docs/outputs.md), each with its time, CPU and thread. A new kind of event
    /// changes this hash only.
    pub events: u64,
}

#[derive(Debug, Default)]
pub(crate) struct DecisionHashes {
    effects: Digest,
    events: Digest,
}

impl DecisionHashes {
    /// Hashes an effect that the world carries out now. [`Self::free_late`] hashes late frees, at
    /// the end of their event.
    pub fn effect(&mut self, now: Nanos, cpu: Cpu, effect: Effect) {
        let mut put = |words: &[u64]| {
            self.effects.write_all(&[now, cpu.0.into()]);
            self.effects.write_all(words);
        };
        match effect {
            Effect::Submit(Io::ReadFile { file, index, nr }) => {
                put(&[1, file.0.into(), index.into(), nr.into()]);
            }
            Effect::Submit(Io::WriteFile { file, index, nr }) => {
                put(&[2, file.0.into(), index.into(), nr.into()]);
            }
            Effect::Submit(Io::SwapIn { slot, pfn }) => put(&[3, slot.0.into(), pfn.0.into()]),
            Effect::Submit(Io::SwapOut { slot, pfn, nr }) => {
                put(&[4, slot.0.into(), pfn.0.into(), nr.into()])
            }
            Effect::CopyPage { from, to } => put(&[5, from.0.into(), to.0.into()]),
            Effect::CollapsePage { from, to } => put(&[11, from.0.into(), to.0.into()]),
            Effect::Wake(Token::Page(pfn)) => put(&[6, pfn.0.into()]),
            Effect::Wake(Token::Throttled(node, reason)) => {
                put(&[7, node.0.into()]);
                write_field(&mut self.effects, reason.into());
            }
            Effect::Wake(Token::Daemon(daemon)) => put(&[8, number_of(daemon)]),
            Effect::OomKill(mm) => put(&[9, mm.0.into()]),
            Effect::ScheduleWork
            | Effect::FreeLate { .. }
            | Effect::Zero { .. }
            | Effect::ReadOut { .. }
            | Effect::WriteIn { .. }
            | Effect::StorePage { .. }
            | Effect::LoadPage { .. } => {}
        }
    }

    /// Hashes an object that starts to wait for a grace period.
    pub fn free_late(&mut self, now: Nanos, cpu: Cpu, object: Object) {
        self.effects.write_all(&[now, cpu.0.into(), 10]);
        object.digest(&mut self.effects);
    }

    /// Hashes the events of a step of `thread` that started at `at`.
    pub fn events(&mut self, thread: WorldThread, cpu: Cpu, at: Nanos, events: &[TraceEvent]) {
        let who = match thread {
            WorldThread::Task(task) => [0, task as u64],
            WorldThread::Daemon(daemon) => [1, number_of(daemon)],
        };
        for event in events {
            self.events.write_all(&[at, cpu.0.into()]);
            self.events.write_all(&who);
            write_text(&mut self.events, event.name());
            event.each_field(|_, value| write_field(&mut self.events, value));
        }
    }

    pub fn finish(&self) -> Decisions {
        Decisions { effects: self.effects.finish(), events: self.events.finish() }
    }
}

/// A number for a daemon that does not depend on the number of nodes.
fn number_of(daemon: Daemon) -> u64 {
    let (kind, node) = match daemon {
        Daemon::Kswapd(node) => (0, node.0),
        Daemon::Kcompactd(node) => (1, node.0),
        Daemon::Flusher => (2, 0),
        Daemon::Khugepaged => (3, 0),
        Daemon::Kworker => (4, 0),
    };
    kind << 8 | u64::from(node)
}

fn write_field(digest: &mut Digest, value: TraceField) {
    match value {
        TraceField::Number(number) => digest.write_u64(number),
        TraceField::Priority(priority) => digest.write_u64(i64::from(priority) as u64),
        TraceField::Flag(flag) => digest.write_u64(flag.into()),
        TraceField::Name(name) => write_text(digest, name),
        TraceField::Gfp(gfp) => {
            let _ = write!(DigestWriter(digest), "{gfp}");
        }
        TraceField::Group(memcg) => digest.write_u64(memcg.0.into()),
        TraceField::Mm(mm) => digest.write_u64(mm.0.into()),
    }
}

fn write_text(digest: &mut Digest, text: &str) {
    text.bytes().for_each(|byte| digest.write_u64(byte.into()));
}

/// Formats into a digest byte by byte, so that the split into `write_str` calls does not matter.
struct DigestWriter<'a>(&'a mut Digest);

impl fmt::Write for DigestWriter<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        write_text(self.0, text);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pagetide_core::interface::throttle::Throttle;
    use pagetide_core::units::{FileId, NodeId, Pfn, SwapSlot};

    const CPU: Cpu = Cpu(0);

    fn of_effects(effects: &[(Nanos, Effect)]) -> Decisions {
        let mut hashes = DecisionHashes::default();
        effects.iter().for_each(|&(now, effect)| hashes.effect(now, CPU, effect));
        hashes.finish()
    }

    #[test]
    fn each_effect_and_its_time_matter() {
        let (node, pfn) = (NodeId(0), Pfn(7));
        let all = [
            Effect::Submit(Io::ReadFile { file: FileId(1), index: 2, nr: 3 }),
            Effect::Submit(Io::WriteFile { file: FileId(1), index: 2, nr: 3 }),
            Effect::Submit(Io::SwapIn { slot: SwapSlot(5), pfn }),
            Effect::Submit(Io::SwapOut { slot: SwapSlot(5), pfn, nr: 1 }),
            Effect::CopyPage { from: pfn, to: Pfn(8) },
            Effect::Wake(Token::Page(pfn)),
            Effect::Wake(Token::Throttled(node, Throttle::Writeback)),
            Effect::Wake(Token::Throttled(node, Throttle::Reserves)),
            Effect::Wake(Token::Daemon(Daemon::Kswapd(node))),
            Effect::Wake(Token::Daemon(Daemon::Kcompactd(node))),
        ];
        let mut seen = vec![of_effects(&[]).effects];
        for effect in all {
            for now in [10, 11] {
                let decided = of_effects(&[(now, effect)]).effects;
                assert!(!seen.contains(&decided), "{effect:?} at {now}");
                seen.push(decided);
            }
        }
        let zero = Effect::Zero { frame: pfn, order: 0 };
        assert_eq!(of_effects(&[(1, zero)]).effects, seen[0], "no bytes here");
    }

    #[test]
    fn thread_time_and_each_field_of_an_event_matter() {
        let of = |thread, at, order| {
            let mut hashes = DecisionHashes::default();
            let event = TraceEvent::MmVmscanKswapdWake { nid: NodeId(0), zid: 1, order };
            hashes.events(thread, CPU, at, &[event]);
            hashes.finish()
        };
        let kswapd = WorldThread::Daemon(Daemon::Kswapd(NodeId(0)));
        let decided = of(kswapd, 5, 0);
        assert_eq!(decided, of(kswapd, 5, 0));
        assert_eq!(decided.effects, of_effects(&[]).effects);
        for other in [of(WorldThread::Task(0), 5, 0), of(kswapd, 6, 0), of(kswapd, 5, 1)] {
            assert_ne!(decided.events, other.events);
        }
    }
}
