//! The effects that a world carries out for the core: I/O, copies, wake-ups, kills.
//!
//! The core never performs them. Every function that may produce effects returns [`Effects`], which
//! borrows the machine: the machine accepts no other call until they are drained. Undrained effects
//! that are dropped are lost, and the next function that returns effects panics. The drop itself does
//! not panic, because it may be a part of unwinding.
//!
//! A call or a daemon that sleeps waits for a [`Token`]; [`Effect::Wake`] of that token ends the sleep.
//!
//! Invariant: between two calls no effect is waiting.

use crate::daemon::Daemon;
use crate::digest::State;
use crate::slab::Object;
use crate::units::{Asker, Cpu, FileId, Nanos, NodeId, Pfn, SwapSlot};
use alloc::vec::Vec;

/// One I/O request. The world carries it out and reports with
/// [`Manager::io_done`](crate::process::Machine::io_done).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Io {
    /// Read `nr` pages of a file from page `index` on. They are locked in the page cache.
    ReadFile {
        /// The file.
        file: FileId,
        /// First page.
        index: u32,
        /// Number of pages.
        nr: u32,
    },
    /// Write `nr` pages of a file from page `index` on. They are under writeback.
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
        /// Where it is.
        slot: SwapSlot,
        /// Where it goes.
        pfn: Pfn,
    },
    /// Write frame `pfn` to `slot`.
    SwapOut {
        /// Where it goes.
        slot: SwapSlot,
        /// Where it is.
        pfn: Pfn,
    },
}

/// Something the world must do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Start this I/O.
    Submit(Io),
    /// Copy the bytes of one frame to another, then say how it went with
    /// [`Manager::copy_done`](crate::process::Machine::copy_done). Nobody can reach `from` meanwhile.
    CopyPage {
        /// Where the page is.
        from: Pfn,
        /// Where it goes.
        to: Pfn,
    },
    /// Fill 2^`order` frames with zeroes, at once. An effect for contents, as the three below: it is carried out
    /// in its turn, before the machine is called again, and cannot fail. A world that has said that it has no
    /// bytes is not asked ([`Manager::without_bytes`](crate::process::Machine::without_bytes)).
    Zero {
        /// The first frame.
        frame: Pfn,
        /// So many, as a power of two.
        order: u8,
    },
    /// Copy a small page into its part of a huge page, at once: `from` may be free already.
    CollapsePage {
        /// Where the page was.
        from: Pfn,
        /// Where it is now.
        to: Pfn,
    },
    /// A read() has come to this piece of its bytes: copy it to the caller, at once.
    ReadOut {
        /// The frame that holds it.
        frame: Pfn,
        /// Where in the frame it begins, in bytes.
        offset: u32,
        /// Bytes.
        len: u32,
    },
    /// A write() has come to this piece of its bytes: copy it from the caller, at once.
    WriteIn {
        /// The frame that gets it.
        frame: Pfn,
        /// Where in the frame it begins, in bytes.
        offset: u32,
        /// Bytes.
        len: u32,
    },
    /// Wake everybody who sleeps on this.
    Wake(Token),
    /// An object that RCU frees has been given up: free it, with
    /// [`Manager::kmem_cache_free`](crate::process::Machine::kmem_cache_free), once no CPU can be looking at it
    /// (Linux `call_rcu`). Asked only of a world that wants it
    /// ([`Manager::free_late`](crate::process::Machine::free_late)).
    FreeLate {
        /// The object; it stays allocated, and charged, until then.
        object: Object,
        /// The CPU that put it off.
        cpu: Cpu,
    },
    /// A worker of the CPU that steps has something short to do: it runs at once, and then the CPU chooses anew who
    /// runs (Linux `schedule_work`). For worlds that simulate a scheduler.
    ScheduleWork,
    /// Memory ran out: kill the owner of this address space, cancel its call, then call
    /// [`Machine::exit_mm`](crate::process::Machine::exit_mm).
    OomKill(Asker),
}

impl Effect {
    /// Whether it is about bytes alone, so that a world without bytes has nothing to do.
    #[inline]
    pub const fn is_of_contents(&self) -> bool {
        matches!(
            self,
            Effect::Zero { .. }
                | Effect::CollapsePage { .. }
                | Effect::ReadOut { .. }
                | Effect::WriteIn { .. }
        )
    }
}

/// Why a task sleeps inside reclaim (Linux `enum vmscan_throttle_state`, plus the reserve).
#[derive(Clone, Copy, Debug, PartialEq, Eq, State)]
pub enum Throttle {
    /// Too many pages under writeback: up to 100 ms, ended by writes that complete.
    Writeback,
    /// Too many pages isolated: up to 20 ms.
    Isolated,
    /// Reclaim made no progress: up to one tick.
    NoProgress,
    /// The node is congested: up to one tick.
    Congested,
    /// Reserves below half: until kswapd lifts it (Linux `pfmemalloc_wait`).
    Reserves,
    /// Linux 2.6.37's `congestion_wait`: up to 100 ms, ended when a disk stops being congested.
    CongestionWait,
    /// The writeback thread has as many requests in flight as the queue takes.
    Requests,
    /// A dirtier waits for writeback (`balance_dirty_pages`).
    Dirty,
    /// A task of a group above `memory.high` pays for it, up to 2 s.
    MemoryHigh,
}

/// What somebody sleeps on, and is woken by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Token {
    /// A page: its I/O, or its way to another frame, ends.
    Page(Pfn),
    /// The queue of a node for a reason.
    Throttled(NodeId, Throttle),
    /// A daemon that rests ([`Rest`](crate::daemon::Rest)). Its state knows already why it is woken.
    Daemon(Daemon),
}

/// The sleep of a call or a daemon in the middle of its work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sleep {
    /// Until [`Effect::Wake`] of this token,
    pub token: Token,
    /// or so many nanoseconds; [`Nanos::MAX`]: for as long as it takes.
    pub timeout: Nanos,
}

impl Sleep {
    /// Until a page is there.
    pub const fn on_page(pfn: Pfn) -> Sleep {
        Sleep { token: Token::Page(pfn), timeout: Nanos::MAX }
    }

    /// In a node's queue, for `timeout` at most.
    pub const fn throttled(node: NodeId, reason: Throttle, timeout: Nanos) -> Sleep {
        Sleep { token: Token::Throttled(node, reason), timeout }
    }
}

/// Result of one bounded step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step<T> {
    /// More to do: call again.
    Continue,
    /// Call again after this.
    Wait(Sleep),
    /// Finished.
    Done(T),
}

/// Effects that the present call has asked for so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct EffectQueue {
    queue: Vec<Effect>,
    /// Effects of earlier calls that were dropped undrained.
    nr_dropped: usize,
    /// The world has said that it has no bytes, and is not asked to move any
    /// ([`Manager::without_bytes`](crate::process::Machine::without_bytes)).
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

    /// As [`Self::push`], of an effect for which [`Effect::is_of_contents`] holds.
    #[inline]
    pub fn push_of_contents(&mut self, effect: Effect) {
        debug_assert!(effect.is_of_contents(), "{effect:?}");
        if !self.without_bytes {
            self.queue.push(effect);
        }
    }

    /// Effects of contents are no longer for anybody.
    pub fn forgo_contents(&mut self) {
        self.without_bytes = true;
    }

    /// Forgets the newest: a planted defect ([`crate::planted`]).
    pub fn pop(&mut self) {
        self.queue.pop();
    }

    pub fn iter(&self) -> core::slice::Iter<'_, Effect> {
        self.queue.iter()
    }

    /// How many the world has not been given, or has not carried out.
    pub fn nr_owed(&self) -> usize {
        self.queue.len() + self.nr_dropped
    }

    /// Gives the world what the call has asked for.
    ///
    /// # Panics
    /// If effects of an earlier call were dropped undrained: what they were to bring about is lost.
    #[inline]
    pub fn hand_out(&mut self) -> Effects<'_> {
        let lost = self.nr_dropped;
        assert!(lost == 0, "{lost} effects of an earlier call were dropped undrained");
        Effects { effects: self, at: 0 }
    }
}

/// The effects of one call, in order. Must be drained before the machine can be used again.
#[must_use = "effects are things the world has to do"]
#[derive(Debug)]
pub struct Effects<'m> {
    effects: &'m mut EffectQueue,
    at: usize,
}

impl Effects<'_> {
    /// Moves all effects to the end of `buffer`.
    #[inline]
    pub fn drain_into(mut self, buffer: &mut Vec<Effect>) {
        // Most steps ask for nothing.
        if self.is_empty() {
            return;
        }
        buffer.extend_from_slice(&self.effects.queue[self.at..]);
        self.at = self.effects.queue.len();
    }

    /// Forgets all effects. For tests and benches in which no world exists.
    pub fn discard(mut self) {
        self.at = self.effects.queue.len();
    }

    /// Whether there are none left.
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
