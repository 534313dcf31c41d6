//! The effects of the core's steps, carried out at the end of a time slice.
//!
//! Invariant: each effect is carried out once. Requests of disks come first, in one batch.

use crate::world::disks::FullDisk;
use crate::world::{SimWorld, WorldThread};
use pagetide_core::interface::effect::{Effect, Io, Token};
use pagetide_core::units::Cpu;

impl SimWorld {
    /// Carries out the effects of the time slice of `thread` that ended on `cpu`. If the thread
    /// has no open plug, it submits its plug, too. Returns a disk that is now full for it, if any.
    pub(crate) fn apply_effects(
        &mut self,
        thread: WorldThread,
        cpu: Cpu,
        has_plug: bool,
    ) -> Option<FullDisk> {
        let mut effects = std::mem::take(&mut self.cpus.of[cpu].effects);
        let mut full = None;
        loop {
            let ios = effects.iter().filter_map(|effect| match effect {
                Effect::Submit(io) => Some(*io),
                _ => None,
            });
            let ios: Vec<Io> = ios.collect();
            full = self.submit_or_plug(&ios, thread, cpu, has_plug).or(full);
            if effects.is_empty() {
                break;
            }
            for effect in effects.drain(..) {
                self.apply(effect, cpu);
            }
            // Effects caused by these effects.
            std::mem::swap(&mut effects, &mut self.cpus.of[cpu].effects);
        }
        self.cpus.of[cpu].effects = effects;
        full
    }

    /// Carries out one effect that is not I/O.
    pub(crate) fn apply(&mut self, effect: Effect, cpu: Cpu) {
        if let Some(decisions) = &mut self.observing.decisions {
            decisions.effect(self.now, cpu, effect);
        }
        match effect {
            // I/O has been submitted. The others concern page contents, which this world does not
            // have (`Machine::without_bytes`); the step includes their time.
            Effect::Submit(_)
            | Effect::Zero { .. }
            | Effect::CollapsePage { .. }
            | Effect::ReadOut { .. }
            | Effect::WriteIn { .. }
            | Effect::StorePage { .. }
            | Effect::LoadPage { .. } => {}
            // There are no bytes to copy; the step includes the time.
            Effect::CopyPage { from, .. } => {
                let effects = self.machine.copy_done(from, !self.copies.next_fails(), cpu);
                self.cpus.hold(effects, cpu);
                self.cpus.owe(cpu, self.machine.take_work());
            }
            Effect::Wake(Token::Page(pfn)) => self.wake_page(pfn),
            Effect::Wake(Token::Throttled(node, reason)) => self.wake_throttled(node, reason),
            Effect::Wake(Token::Daemon(daemon)) => self.wake_daemon(daemon),
            Effect::FreeLate { object, cpu } => self.cpus.late.push((object, cpu)),
            Effect::ScheduleWork => self.cpus.run_worker(cpu),
            Effect::OomKill(mm) => self.oom_kill(mm),
        }
    }
}
