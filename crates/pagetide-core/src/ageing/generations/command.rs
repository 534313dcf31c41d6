//! Performs the commands of the file `lru_gen`.
//!
//! Linux: `run_aging`, `run_eviction`, `run_cmd` (mm/vmscan.c, 6.1). The task that writes does the
//! work. With generations off no group has any, and every command fails with EINVAL; Linux would
//! begin empty ones.
//!
//! Invariant: the first command that fails ends the write; those before it have been done.

use super::limits::{MAX_NR_GENS, MIN_NR_GENS};
use crate::frames::gfp::Gfp;
use crate::frames::zone_type::MAX_NR_ZONES;
use crate::interface::ctx::Ctx;
use crate::interface::effect::{Sleep, Step};
use crate::interface::manager::Manager;
use crate::interface::outcome::Outcome;
use crate::interface::owners::Owners;
use crate::reclaim::shrink_node::NodeStep;
use crate::reclaim::{Reclaimer, ScanControl};
use crate::units::errno::Errno;
use crate::units::{MemcgId, NodeId, SWAP_CLUSTER_MAX};
use alloc::vec::Vec;

/// A command of one group on one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LruGenCommand {
    /// The group, by the number that the file shows.
    pub memcg: u32,
    /// The node.
    pub node: u32,
    /// The youngest generation to age, or the youngest to evict.
    pub seq: u64,
    /// The action.
    pub action: LruGenAction,
}

/// The action of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LruGenAction {
    /// Begins a new generation.
    Age {
        /// Whether to look at anonymous pages; `None`: if the group can swap.
        can_swap: Option<u32>,
        /// Reads all page tables, and ends the oldest generation if there are four.
        force: bool,
    },
    /// Evicts old generations.
    Evict {
        /// Instead of the group's.
        swappiness: Option<u32>,
        /// Most pages to free.
        pages: u64,
    },
}

/// Commands that are written at once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LruGenWrite(pub Vec<LruGenCommand>);

/// A write to `lru_gen` in progress.
#[derive(Clone, Debug)]
pub(crate) struct LruGenRun {
    write: LruGenWrite,
    at: usize,
    /// Pages that the current command has freed.
    nr_reclaimed: u64,
    /// Whether the writer's walks over page tables look at anonymous pages.
    walk_can_swap: bool,
}

impl LruGenRun {
    pub(crate) fn new(write: LruGenWrite) -> LruGenRun {
        LruGenRun { write, at: 0, nr_reclaimed: 0, walk_can_swap: false }
    }
}

/// A step of a command: whether it goes on, perhaps after a sleep.
enum CommandStep {
    Continue(Option<Sleep>),
    Done,
}

impl<O: Owners> Manager<O> {
    pub(crate) fn lru_gen_step(&mut self, run: &mut LruGenRun, ctx: &Ctx) -> Step<Outcome> {
        let Some(&command) = run.write.0.get(run.at) else { return Step::Done(Outcome::Minor) };
        // The writer has a walk open for all its commands.
        self.step.mm_walk = Some(run.walk_can_swap);
        let step = self.run_command(command, &mut run.nr_reclaimed, ctx);
        run.walk_can_swap = self.step.mm_walk.take().unwrap_or(false);
        match step {
            Err(errno) => Step::Done(Outcome::Refused(errno)),
            Ok(CommandStep::Continue(None)) => Step::Continue,
            Ok(CommandStep::Continue(Some(sleep))) => Step::Wait(sleep),
            Ok(CommandStep::Done) => {
                (run.at, run.nr_reclaimed) = (run.at + 1, 0);
                Step::Continue
            }
        }
    }

    fn run_command(
        &mut self,
        command: LruGenCommand,
        nr_reclaimed: &mut u64,
        ctx: &Ctx,
    ) -> Result<CommandStep, Errno> {
        // The file numbers groups from 1.
        let memcg = command.memcg.checked_sub(1).and_then(|id| u16::try_from(id).ok());
        let memcg = MemcgId(memcg.ok_or(Errno::Einval)?);
        let node = NodeId(u8::try_from(command.node).map_err(|_| Errno::Einval)?);
        if !self.groups.memcg_is_online(memcg) || !self.mem.has_node(node) {
            return Err(Errno::Einval);
        }
        let ctx = &Ctx { node, ..*ctx };
        match command.action {
            LruGenAction::Age { can_swap, force } => {
                let can_swap =
                    can_swap.map_or(self.generations_swappiness(memcg) > 0, |can| can != 0);
                self.run_ageing(memcg, command.seq, can_swap, force, ctx)
            }
            LruGenAction::Evict { swappiness, pages } => {
                let swappiness = swappiness.map_or(self.generations_swappiness(memcg), u64::from);
                if swappiness > 200 {
                    return Err(Errno::Einval);
                }
                let at = (memcg, command.seq);
                self.run_eviction(at, swappiness, pages, nr_reclaimed, ctx)
            }
        }
    }

    fn run_ageing(
        &mut self,
        memcg: MemcgId,
        seq: u64,
        can_swap: bool,
        force: bool,
        ctx: &Ctx,
    ) -> Result<CommandStep, Errno> {
        let generations = self.groups.generations(memcg, ctx.node).ok_or(Errno::Einval)?;
        if seq < generations.max_seq {
            return Ok(CommandStep::Done);
        }
        if seq > generations.max_seq {
            return Err(Errno::Einval);
        }
        let oldest = generations.min_seq[usize::from(!can_swap)];
        if !force && oldest + MAX_NR_GENS as u64 - 1 <= generations.max_seq {
            return Err(Errno::Erange);
        }
        self.age_group(memcg, ctx, can_swap, force);
        Ok(CommandStep::Done)
    }

    /// One batch of an eviction.
    fn run_eviction(
        &mut self,
        (memcg, seq): (MemcgId, u64),
        swappiness: u64,
        pages: u64,
        nr_reclaimed: &mut u64,
        ctx: &Ctx,
    ) -> Result<CommandStep, Errno> {
        let generations = self.groups.generations(memcg, ctx.node).ok_or(Errno::Einval)?;
        if seq.saturating_add(MIN_NR_GENS) > generations.max_seq {
            return Err(Errno::Einval);
        }
        if seq < generations.min_seq[usize::from(swappiness == 0)] || *nr_reclaimed >= pages {
            return Ok(CommandStep::Done);
        }
        let mut sc = ScanControl::new(Reclaimer::Direct, SWAP_CLUSTER_MAX, Gfp::KERNEL, 0);
        sc.goal.reclaim_idx = MAX_NR_ZONES - 1;
        let (nr_scanned, batch) = self.evict_oldest((memcg, ctx.node), &sc, swappiness);
        if let Some(batch) = batch {
            *nr_reclaimed += self.shrink_batch(batch, memcg, ctx.node, &mut sc, ctx);
            self.step.plugged = true;
        }
        let wait = match self.legacy_wait(&sc.goal, ctx.node) {
            NodeStep::Wait(sleep) => Some(sleep),
            NodeStep::Continue | NodeStep::Done(_) => None,
        };
        if nr_scanned == 0 && wait.is_none() {
            return Ok(CommandStep::Done);
        }
        Ok(CommandStep::Continue(wait))
    }
}
