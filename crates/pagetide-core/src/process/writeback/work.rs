//! Work of the flusher for one device and group: lists of files, and orders to write them.
//!
//! Linux: the lists `b_dirty`, `b_io` and `b_more_io` of `struct bdi_writeback`, `struct
//! wb_writeback_work`, `wbc_account_cgroup_owner`, `wbc_detach_inode` (6.1).
//!
//! Invariant: a file with dirty pages is on exactly one list, or is the file of the chunk.

use super::bandwidth::ticks;
use crate::units::digest::State;
use crate::units::{BdiId, FileId, MemcgId, Nanos};
use alloc::collections::VecDeque;

/// The reason of a work, in the order in which a run does them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, State)]
pub(super) enum FlushKind {
    /// A group has dirtied files that belong to another one (Linux `WB_REASON_FOREIGN_FLUSH`).
    #[default]
    Foreign,
    /// Everything that is dirty now (Linux `WB_start_all`).
    All,
    /// Files that were dirtied long ago (Linux `for_kupdate`).
    Old,
    /// Until the background thresholds are met (Linux `for_background`).
    Background,
}

/// Linux `struct wb_writeback_work`.
#[derive(Clone, Debug, State)]
pub(super) struct FlushWork {
    pub kind: FlushKind,
    /// Pages still to write.
    pub nr_pages: u64,
    /// Files dirtied later are left out.
    pub dirtied_before: Nanos,
    /// The present round: when it began in ticks, and what it has written.
    pub round: Option<(u64, u64)>,
    /// The group that asked for it, if it is a foreign one, and its record.
    pub asked_by: Option<(MemcgId, u64)>,
}

/// The file that is being written (Linux `struct writeback_control`).
#[derive(Clone, Debug, State)]
pub(super) struct FlushChunk {
    pub file: FileId,
    pub left: u64,
    pub written: u64,
    /// Where the write began, and whether it has gone on from the file's start.
    pub began: u32,
    pub wrapped: bool,
    pub votes: OwnerVotes,
}

/// Counts which group has dirtied most of the written pages.
#[derive(Clone, Debug, State)]
pub(super) struct OwnerVotes {
    owner: MemcgId,
    of_owner: u64,
    last_winner: MemcgId,
    of_last_winner: u64,
    candidate: MemcgId,
    of_candidate: u64,
}

impl OwnerVotes {
    /// `owner`: the group that the file belongs to now.
    pub(super) fn new(owner: MemcgId, last_winner: MemcgId) -> OwnerVotes {
        OwnerVotes {
            owner,
            of_owner: 0,
            last_winner,
            of_last_winner: 0,
            candidate: MemcgId::NONE,
            of_candidate: 0,
        }
    }

    /// Counts a page; finds the majority as Boyer and Moore do.
    pub(super) fn count(&mut self, memcg: MemcgId) {
        if memcg == self.owner {
            self.of_owner += 1;
            return;
        }
        if memcg == self.last_winner {
            self.of_last_winner += 1;
        }
        if self.of_candidate == 0 {
            self.candidate = memcg;
        }
        if memcg == self.candidate {
            self.of_candidate += 1;
        } else {
            self.of_candidate -= 1;
        }
    }

    fn winner(&self) -> (MemcgId, u64) {
        if self.of_owner >= self.of_last_winner && self.of_owner >= self.of_candidate {
            (self.owner, self.of_owner)
        } else if self.of_last_winner >= self.of_candidate {
            (self.last_winner, self.of_last_winner)
        } else {
            (self.candidate, self.of_candidate)
        }
    }
}

/// Ticks of the history's clock in a second (Linux `WB_FRN_TIME_SHIFT`).
const VOTE_SECOND: u64 = 1 << 13;
/// Time of one bit of the history: a sixteenth of 2 s.
const VOTE_SLOT: u64 = 2 * VOTE_SECOND / 16;
/// Bits that one chunk may add, and bits that move the file.
const VOTE_SLOTS_MAX: u64 = 5;
const VOTES_TO_MOVE: u32 = 8;

/// Which groups have written a file lately (Linux `i_wb_frn_*` of `struct inode`).
#[derive(Clone, Debug, State)]
pub(crate) struct ForeignHistory {
    pub(super) winner: MemcgId,
    average: u64,
    /// One bit for each sixteenth of 2 s of write time: whether another group had most pages.
    history: u16,
}

impl Default for ForeignHistory {
    fn default() -> Self {
        ForeignHistory { winner: MemcgId::NONE, average: 0, history: 0 }
    }
}

impl ForeignHistory {
    /// Counts a chunk. Returns the group that the file should belong to, if it is another one.
    pub(super) fn add(&mut self, votes: &OwnerVotes, write_bandwidth: u64) -> Option<MemcgId> {
        let (winner, pages) = votes.winner();
        let time = (pages * VOTE_SECOND).div_ceil(write_bandwidth.max(1));
        self.average = match self.average {
            0 => time,
            average => (average + (time >> 3) - (average >> 3)).min(u16::MAX.into()),
        };
        self.winner = winner;
        if time < self.average / 8 {
            return None;
        }
        let slots = time.div_ceil(VOTE_SLOT).min(VOTE_SLOTS_MAX);
        self.history <<= slots;
        if winner != votes.owner {
            self.history |= (1 << slots) - 1;
        }
        (self.history.count_ones() > VOTES_TO_MOVE).then_some(winner)
    }
}

/// Records of a group (Linux `MEMCG_CGWB_FRN_CNT`).
pub(super) const NR_RECORDS: usize = 4;

/// The writeback whose files a group has dirtied (Linux `struct memcg_cgwb_frn`).
#[derive(Clone, Copy, Debug, State)]
pub(super) struct ForeignRecord {
    pub bdi: BdiId,
    pub memcg: MemcgId,
    /// When it was last seen, in ticks; 0: the record is free or its work was queued.
    pub at: u64,
    pub in_flight: bool,
}

impl ForeignRecord {
    pub(super) const FREE: ForeignRecord =
        ForeignRecord { bdi: BdiId::NONE, memcg: MemcgId::NONE, at: 0, in_flight: false };
}

/// The flusher's state for one device and group.
#[derive(Clone, Debug, State)]
pub(super) struct FlusherRun {
    /// Files by the time they became dirty, oldest first.
    pub dirty: VecDeque<FileId>,
    /// Files to write now, and those whose chunk was not enough.
    pub io: VecDeque<FileId>,
    pub more_io: VecDeque<FileId>,
    /// A run is under way (Linux `WB_writeback_running`).
    pub running: bool,
    /// Start of the next run; `Nanos::MAX`: none is planned.
    pub wake_at: Nanos,
    pub start_all: bool,
    /// Time of the last search for old files, in ticks.
    pub last_old_flush: u64,
    /// Work that other groups have asked for.
    pub queued: VecDeque<FlushWork>,
    /// The next kind of work in this run.
    pub next: Option<FlushKind>,
    pub work: Option<FlushWork>,
    pub chunk: Option<FlushChunk>,
}

impl FlusherRun {
    pub(super) fn new(now: Nanos) -> FlusherRun {
        FlusherRun {
            dirty: VecDeque::new(),
            io: VecDeque::new(),
            more_io: VecDeque::new(),
            running: false,
            wake_at: Nanos::MAX,
            start_all: false,
            last_old_flush: ticks(now),
            queued: VecDeque::new(),
            next: None,
            work: None,
            chunk: None,
        }
    }

    fn lists(&self) -> [&VecDeque<FileId>; 3] {
        [&self.dirty, &self.io, &self.more_io]
    }

    /// Linux `wb_has_dirty_io`.
    pub(super) fn has_dirty_io(&self) -> bool {
        self.chunk.is_some() || self.lists().iter().any(|list| !list.is_empty())
    }

    pub(super) fn forget_file(&mut self, file: FileId) {
        for list in [&mut self.dirty, &mut self.io, &mut self.more_io] {
            list.retain(|&queued| queued != file);
        }
        self.chunk.take_if(|chunk| chunk.file == file);
    }

    /// Number of times that a file is queued or being written.
    pub(super) fn nr_queued(&self, file: FileId) -> usize {
        let queued = self.lists().into_iter().flatten().filter(|&&queued| queued == file).count();
        queued + usize::from(self.chunk.as_ref().is_some_and(|chunk| chunk.file == file))
    }

    /// Takes the files of another run, oldest first.
    pub(super) fn take_files(&mut self, other: FlusherRun) {
        let chunk = other.chunk.map(|chunk| chunk.file);
        let files = chunk.into_iter().chain(other.io).chain(other.more_io).chain(other.dirty);
        self.dirty.extend(files);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWNER: MemcgId = MemcgId(1);
    const OTHER: MemcgId = MemcgId(2);

    fn chunk(history: &mut ForeignHistory, pages: &[(MemcgId, u64)]) -> Option<MemcgId> {
        let mut votes = OwnerVotes::new(OWNER, history.winner);
        for &(memcg, nr) in pages {
            (0..nr).for_each(|_| votes.count(memcg));
        }
        history.add(&votes, 1000)
    }

    #[test]
    fn a_file_moves_to_the_group_that_writes_most_of_it_for_some_time() {
        let mut history = ForeignHistory::default();
        assert_eq!(chunk(&mut history, &[(OTHER, 300), (OWNER, 200)]), None);
        assert_eq!(chunk(&mut history, &[(OTHER, 300), (OWNER, 200)]), None);
        assert_eq!(chunk(&mut history, &[(OTHER, 300)]), Some(OTHER));
    }

    #[test]
    fn a_file_stays_with_the_group_that_writes_most_of_it() {
        let mut history = ForeignHistory::default();
        for _ in 0..100 {
            assert_eq!(chunk(&mut history, &[(OTHER, 200), (OWNER, 300)]), None);
        }
        // A small chunk of another group counts for nothing.
        for _ in 0..9 {
            assert_eq!(chunk(&mut history, &[(OTHER, 2)]), None);
        }
    }
}
