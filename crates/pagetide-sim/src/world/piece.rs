//! Pieces: what a thread does in one go, and how another takes its CPU meanwhile.
//!
//! What a piece decides is decided when it begins; its time passes afterwards, and then its effects take place. A
//! thread that wakes and may have the CPU at once cuts the piece: the rest of its time, and its effects, wait
//! until the thread has a CPU again. Only daemons that it wakes are awake at once. What the piece noted of itself
//! keeps the times that were planned: a call that ends in it does not contain the time without a CPU.
//!
//! Linux: a kernel that gives way in `cond_resched` (`PREEMPT_VOLUNTARY`, which distributions choose), as reclaim
//! does for each page.
//!
//! Invariant: a thread has one piece at most, on a CPU or cut; one that is cut is runnable.

use super::{Event, Thread, World};
use pagetide_core::effect::{Effect, Token};
use pagetide_core::units::{Cpu, Nanos};

/// What happens to a thread when its piece ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum After {
    /// It goes on.
    Runnable,
    /// It sleeps, unless it was woken meanwhile.
    Block,
    /// It is over.
    Exit,
}

/// A piece that a CPU executes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Piece {
    pub(super) thread: Thread,
    /// What comes next.
    pub(super) after: After,
    /// When it began or went on.
    pub(super) since: Nanos,
    /// When it ends, if nobody takes the CPU.
    pub(super) until: Nanos,
}

/// What is left of a piece that was cut.
#[derive(Debug)]
pub(super) struct CutPiece {
    after: After,
    left: Nanos,
    effects: Vec<Effect>,
}

fn is_wake_of_daemon(effect: &Effect) -> bool {
    matches!(effect, Effect::Wake(Token::Daemon(_)))
}

impl World {
    /// What comes after the piece that a thread is in, if it is in one.
    pub(super) fn after_piece(&mut self, thread: Thread) -> Option<&mut After> {
        let id = self.thread_id(thread);
        let running = self.cpus.iter_mut().filter_map(|cpu| cpu.piece.as_mut());
        let running = running.filter(|piece| piece.thread == thread).map(|piece| &mut piece.after);
        running.chain(self.cut.get_mut(&id).map(|piece| &mut piece.after)).next()
    }

    /// Whether a thread is in a piece.
    pub(super) fn is_in_piece(&self, thread: Thread) -> bool {
        let runs = |piece: &Piece| piece.thread == thread;
        self.cut.contains_key(&self.thread_id(thread))
            || self.cpus.iter().any(|cpu| cpu.piece.as_ref().is_some_and(runs))
    }

    /// Whether the piece of a thread was cut.
    pub(super) fn is_cut(&self, thread: Thread) -> bool {
        self.cut.contains_key(&self.thread_id(thread))
    }

    /// The effects of pieces that were cut.
    pub(super) fn cut_effects(&self) -> impl Iterator<Item = &Effect> {
        self.cut.values().flat_map(|piece| &piece.effects)
    }

    /// Ends the piece of a CPU now: who runs must give way.
    pub(super) fn cut_short(&mut self, cpu: Cpu) {
        let state = &mut self.cpus[cpu.idx()];
        if let Some(event) = state.event.take() {
            self.queue.cancel(event);
        }
        state.event = Some(self.queue.push(self.now, Event::Cpu(cpu)));
    }

    /// The piece of a CPU, which is over. One that is not is put aside, if there is one. Either is accounted for.
    pub(super) fn ended_piece(&mut self, cpu: Cpu) -> Option<Piece> {
        let piece = self.cpus[cpu.idx()].piece.take()?;
        let id = self.thread_id(piece.thread);
        let now = self.now;
        self.scheduler.account(cpu, id, now - piece.since);
        if piece.until <= now {
            return Some(piece);
        }
        let effects = std::mem::take(&mut self.cpus[cpu.idx()].effects);
        // Nobody else wakes a daemon that is to be woken already.
        let (wakes, effects): (Vec<Effect>, _) = effects.into_iter().partition(is_wake_of_daemon);
        wakes.into_iter().for_each(|wake| self.apply(wake, cpu));
        self.show_cut(piece.thread);
        self.cut.insert(id, CutPiece { after: piece.after, left: piece.until - now, effects });
        None
    }

    /// What comes after the cut piece of a thread that has got `cpu`, and how long it still takes. Its effects will
    /// be this CPU's.
    pub(super) fn take_cut(&mut self, thread: Thread, cpu: Cpu) -> Option<(After, Nanos)> {
        let piece = self.cut.remove(&self.thread_id(thread))?;
        self.show_goes_on(thread);
        debug_assert!(self.cpus[cpu.idx()].effects.is_empty(), "of a piece that has ended");
        self.cpus[cpu.idx()].effects = piece.effects;
        Some((piece.after, piece.left))
    }
}
