//! Effects: actions that the world must perform for the core, such as I/O, copies, wake-ups and
//! kills.
//!
//! The core never performs effects. Every function that may produce effects returns [`Effects`],
//! which borrows the machine, so the machine accepts no other call until the effects are drained.
//! If undrained effects are dropped, they are lost, and the next function that returns effects
//! panics. The drop itself does not panic, because it may be part of unwinding.
//!
//! A sleeping call or daemon waits for a [`Token`]; [`Effect::Wake`] of that token ends the sleep.
//!
//! Invariant: between two calls no effect is waiting.

use crate::interface::daemon::Daemon;
#[cfg(doc)]
use crate::interface::kernel::Kernel;
use crate::interface::throttle::Throttle;
use crate::slab::object::Object;
use crate::units::{Cpu, FileId, Nanos, NodeId, Pfn, Requester, SwapSlot};
use alloc::vec::Vec;

/// One I/O request. The world carries it out and reports with
/// [`Manager::io_done`](crate::process::Machine::io_done).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Io {
    /// Read `nr` pages of a file from page `index`. The pages are locked in the page cache.
    ReadFile {
        /// The file.
        file: FileId,
        /// First page.
        index: u32,
        /// Number of pages.
        nr: u32,
    },
    /// Write `nr` pages of a file from page `index`. The pages are under writeback.
    WriteFile {
        /// The file.
        file: FileId,
        /// First page.
        index: u32,
        /// Number of pages.
        nr: u32,
    },
    /// Read the page of `slot` into frame `pfn`.
    SwapIn {
        /// The slot to read.
        slot: SwapSlot,
        /// The frame to fill.
        pfn: Pfn,
    },
    /// Write `nr` frames from frame `pfn` to as many slots from `slot`. `nr` is 1, or 512 for a
    /// huge page, whose write ends as a whole.
    SwapOut {
        /// The first slot to write.
        slot: SwapSlot,
        /// The first frame with the data.
        pfn: Pfn,
        /// Number of frames.
        nr: u32,
    },
}

/// An action that the world must carry out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Start this I/O.
    Submit(Io),
    /// Copy the bytes of one frame to another, then report the result with
    /// [`Manager::copy_done`](crate::process::Machine::copy_done). Until then no task can access
    /// `from`.
    CopyPage {
        /// The source frame.
        from: Pfn,
        /// The destination frame.
        to: Pfn,
    },
    /// Fill 2^`order` frames with zeroes. This effect and the next five only change contents. The
    /// world carries them out at once, in order, before it calls the machine again, and they cannot
    /// fail. A world without bytes does not get them
    /// ([`Kernel::without_bytes`](crate::interface::kernel::Kernel::without_bytes)).
    Zero {
        /// The first frame.
        frame: Pfn,
        /// log2 of the number of frames.
        order: u8,
    },
    /// Copy a small page into its part of a huge page, at once, because `from` may already be free.
    CollapsePage {
        /// Old frame of the page.
        from: Pfn,
        /// New frame of the page.
        to: Pfn,
    },
    /// Copy this part of a read() from the frame to the caller, at once.
    ReadOut {
        /// The frame with the data.
        frame: Pfn,
        /// Start of the data in the frame, in bytes.
        offset: u32,
        /// Bytes.
        len: u32,
    },
    /// Copy this part of a write() from the caller to the frame, at once.
    WriteIn {
        /// The frame that receives the data.
        frame: Pfn,
        /// Start of the data in the frame, in bytes.
        offset: u32,
        /// Bytes.
        len: u32,
    },
    /// Keep a copy of the frame's bytes as the page of this swap slot, which is stored without I/O, at
    /// once.
    StorePage {
        /// The slot.
        slot: SwapSlot,
        /// The frame with the data.
        pfn: Pfn,
    },
    /// Copy the page of this swap slot to the frame, at once. Another page may get the slot afterwards.
    LoadPage {
        /// The slot.
        slot: SwapSlot,
        /// The frame that receives the data.
        pfn: Pfn,
    },
    /// Wake every call and daemon that sleeps on this token.
    Wake(Token),
    /// Free an object with [`Kernel::kmem_cache_free`](crate::interface::kernel::Kernel::kmem_cache_free)
    /// as soon as no CPU can still read it (an object that RCU frees; Linux `call_rcu`). Produced
    /// only if the world has asked for it
    /// ([`Kernel::free_late`](crate::interface::kernel::Kernel::free_late)).
    FreeLate {
        /// The object; it stays allocated and charged until then.
        object: Object,
        /// The CPU that deferred the free.
        cpu: Cpu,
    },
    /// A worker has short work on the CPU of this step: it runs at once, then the scheduler picks a
    /// task again (Linux `schedule_work`). For worlds that simulate a scheduler.
    ScheduleWork,
    /// Memory ran out: kill the owner of this address space, cancel its call, then call
    /// [`Machine::exit_mm`](crate::process::Machine::exit_mm).
    OomKill(Requester),
}

impl Effect {
    /// Whether the effect only concerns bytes, so that a world without bytes can ignore it.
    #[inline]
    pub const fn is_contents_only(&self) -> bool {
        matches!(
            self,
            Effect::Zero { .. }
                | Effect::CollapsePage { .. }
                | Effect::ReadOut { .. }
                | Effect::WriteIn { .. }
                | Effect::StorePage { .. }
                | Effect::LoadPage { .. }
        )
    }
}

/// The event that a sleeper waits for; a wake-up names it as well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Token {
    /// A page: wait until its I/O or its migration ends.
    Page(Pfn),
    /// The throttle queue of a node for this reason.
    Throttled(NodeId, Throttle),
    /// The daemon's own token, for a rest ([`DaemonRest`](crate::interface::daemon::DaemonRest)). The daemon's
    /// state has the reason for the rest.
    Daemon(Daemon),
}

/// A sleep of a call, or of a daemon in the middle of its work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sleep {
    /// The sleep ends when [`Effect::Wake`] names this token.
    pub token: Token,
    /// At the latest the sleep ends after this time; [`Nanos::MAX`]: no timeout.
    pub timeout: Nanos,
}

impl Sleep {
    /// A sleep until the page's I/O or migration ends.
    pub const fn on_page(pfn: Pfn) -> Sleep {
        Sleep { token: Token::Page(pfn), timeout: Nanos::MAX }
    }

    /// A sleep in a node's queue, for at most `timeout`.
    pub const fn throttled(node: NodeId, reason: Throttle, timeout: Nanos) -> Sleep {
        Sleep { token: Token::Throttled(node, reason), timeout }
    }
}

/// Result of one bounded step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step<T> {
    /// More to do: step again.
    Continue,
    /// Step again after this sleep.
    Wait(Sleep),
    /// Finished.
    Done(T),
}

/// Effects that the current call has requested so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct EffectQueue {
    queue: Vec<Effect>,
    /// Effects of earlier calls that were dropped undrained.
    nr_dropped: usize,
    /// The world has no bytes ([`Kernel::without_bytes`](crate::interface::kernel::Kernel::without_bytes)).
    without_bytes: bool,
}

impl EffectQueue {
    pub fn with_capacity(capacity: usize) -> EffectQueue {
        EffectQueue { queue: Vec::with_capacity(capacity), nr_dropped: 0, without_bytes: false }
    }

    #[inline]
    pub fn push(&mut self, effect: Effect) {
        self.queue.push(effect);
    }

    /// Like [`Self::push`], for an effect with [`Effect::is_contents_only`].
    #[inline]
    pub fn push_contents(&mut self, effect: Effect) {
        debug_assert!(effect.is_contents_only(), "{effect:?}");
        if !self.without_bytes {
            self.queue.push(effect);
        }
    }

    /// From now on, drops effects that only concern contents.
    pub fn drop_contents(&mut self) {
        self.without_bytes = true;
    }

    /// Drops the newest effect: a planted defect ([`crate::interface::planted`]).
    pub fn pop(&mut self) {
        self.queue.pop();
    }

    pub fn iter(&self) -> core::slice::Iter<'_, Effect> {
        self.queue.iter()
    }

    /// Number of effects that the world has not carried out.
    pub fn nr_undelivered(&self) -> usize {
        self.queue.len() + self.nr_dropped
    }

    /// Hands the effects of the call to the world.
    ///
    /// # Panics
    /// If effects of an earlier call were dropped undrained.
    #[inline]
    pub fn take_effects(&mut self) -> Effects<'_> {
        let lost = self.nr_dropped;
        assert!(lost == 0, "{lost} effects of an earlier call were dropped undrained");
        Effects { effects: self, at: 0 }
    }
}

/// The effects of one call, in order. Drain them before the next call to the machine.
#[must_use = "the world must carry out these effects"]
#[derive(Debug)]
pub struct Effects<'m> {
    effects: &'m mut EffectQueue,
    at: usize,
}

impl Effects<'_> {
    /// Moves all effects to the end of `buffer`.
    #[inline]
    pub fn drain_into(mut self, buffer: &mut Vec<Effect>) {
        // Most steps have no effects.
        if self.is_empty() {
            return;
        }
        buffer.extend_from_slice(&self.effects.queue[self.at..]);
        self.at = self.effects.queue.len();
    }

    /// Drops all effects. For tests and benches without a world.
    pub fn discard(mut self) {
        self.at = self.effects.queue.len();
    }

    /// Whether all effects were taken.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.at == self.effects.queue.len()
    }
}

impl Iterator for Effects<'_> {
    type Item = Effect;

    fn next(&mut self) -> Option<Effect> {
        let effect = self.effects.queue.get(self.at).copied()?;
        self.at += 1;
        Some(effect)
    }
}

impl Drop for Effects<'_> {
    #[inline]
    fn drop(&mut self) {
        self.effects.nr_dropped += self.effects.queue.len() - self.at;
        self.effects.queue.clear();
    }
}
