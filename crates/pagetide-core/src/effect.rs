//! What the core asks of its world: I/O, wake-ups, kills.
//!
//! The core never performs any of it. Every call that may produce effects hands back
//! [`Effects`], which borrows the machine: nothing else can be asked of it until they are
//! drained, and dropping undrained effects is a bug that panics.

use crate::units::{Asker, FileId, NodeId, Pfn, SwapSlot};
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
    /// Fill 2^`order` frames with zeroes, at once. An effect for contents, as the four below: it is carried out
    /// in its turn, before the machine is called again, and cannot fail.
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
    /// Wake everybody who waits for this page ([`Wait::Page`]).
    WakePage(Pfn),
    /// Wake kswapd of the node; its state already knows why.
    WakeKswapd(NodeId),
    /// Wake kcompactd of the node; its state already knows why.
    WakeKcompactd(NodeId),
    /// Wake the worker that does what was put off ([`Manager::step_kworker`](crate::process::Machine::step_kworker)).
    WakeKworker,
    /// Wake the writeback thread.
    WakeFlusher,
    /// Wake the tasks that sleep in this queue ([`Wait::Throttled`]).
    WakeThrottled(NodeId, Throttle),
    /// Memory ran out: kill the owner of this address space, then call
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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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

/// What a step waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// Until [`Effect::WakePage`] for this page.
    Page(Pfn),
    /// Until [`Effect::WakeThrottled`] for this node and reason, or so many nanoseconds.
    Throttled {
        /// The node.
        node: NodeId,
        /// The reason.
        reason: Throttle,
        /// The longest sleep.
        timeout: u64,
    },
}

/// Result of one bounded step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step<T> {
    /// More to do: call again.
    Continue,
    /// Call again after this.
    Wait(Wait),
    /// Finished.
    Done(T),
}

/// The effects of one call, in order. Must be drained before the machine can be used again.
#[must_use = "effects are things the world has to do"]
pub struct Effects<'m> {
    queue: &'m mut Vec<Effect>,
    at: usize,
}

impl<'m> Effects<'m> {
    pub(crate) fn new(queue: &'m mut Vec<Effect>) -> Self {
        Effects { queue, at: 0 }
    }

    /// Moves all effects to the end of `buffer`.
    pub fn drain_into(self, buffer: &mut Vec<Effect>) {
        buffer.extend_from_slice(&self.queue[self.at..]);
        self.queue.clear();
        core::mem::forget(self);
    }

    /// Forgets all effects. For tests and benches in which no world exists.
    pub fn discard(self) {
        self.queue.clear();
        core::mem::forget(self);
    }

    /// Whether there are none left.
    pub fn is_empty(&self) -> bool {
        self.at == self.queue.len()
    }
}

impl Iterator for Effects<'_> {
    type Item = Effect;

    fn next(&mut self) -> Option<Effect> {
        let effect = self.queue.get(self.at).copied()?;
        self.at += 1;
        Some(effect)
    }
}

impl Drop for Effects<'_> {
    fn drop(&mut self) {
        let left = self.queue.len() - self.at;
        self.queue.clear();
        assert!(left == 0, "{left} effects were dropped undrained");
    }
}
