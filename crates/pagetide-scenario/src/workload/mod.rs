//! A task's workload as a stream of operations.
//!
//! [`Program`] turns the phases of one task into [`Op`]s. It is a pure function of the setup, the
//! task and the seed: no clock, no floats, no hash order. docs/scenario.md defines every workload
//! to the page.
//!
//! * `plan`: what is known before the run: regions, stages of each phase (a build goes through them
//!   once a unit), generators.
//! * `cursor`: the generators, one enum.
//! * `blocks`: kernel memory by order.
//! * `objects`: kernel objects of a mix.
//! * `names_and_pipes`: kernel objects that a task makes one by one.
//! * `replay`: a page trace as operations.
//! * `modulo`: remainders and the scattering permutation.

mod blocks;
mod cursor;
mod modulo;
mod names_and_pipes;
mod objects;
mod plan;
mod replay;

use crate::model::Setup;
use crate::op::Op;
use blocks::{Churn, Takes};
use cursor::{Cursor, Discards, Draws, Hotspot, Laps, Pieces, Reads, Turns, Writes};
use names_and_pipes::{Makes, Thing};
use objects::Objects;
use pagetide_trace::TraceError;
use plan::{Plan, Stage, Walk, WalkOrder};
use replay::Replayed;
use std::sync::Arc;
use thiserror::Error;

pub use modulo::{SCATTER, SCATTER_ALTERNATE};
pub use plan::{FILE_SIZE_MAX, REGION_PAGES_MAX};

/// Why a program cannot start or continue.
#[derive(Debug, Error)]
pub enum ProgramError {
    /// The setup has fewer tasks.
    #[error("there is no task number {0}")]
    NoSuchTask(usize),
    /// The workload contradicts itself or the setup. A setup that [`crate::load`] made has none.
    #[error("task `{task}`, phase `{phase}`: {problem}")]
    Workload {
        /// The task.
        task: String,
        /// Its phase.
        phase: String,
        /// What is wrong.
        problem: String,
    },
    /// A trace cannot be read, or not to its end.
    #[error("task `{task}`: {error}")]
    Trace {
        /// The task.
        task: String,
        /// What is wrong with the trace.
        error: Box<TraceError>,
    },
}

/// The operations of one task, one at a time.
///
/// For every phase: [`Op::PhaseBegin`], an [`Op::Map`] for each region that no earlier phase
/// mapped, what the workload does, [`Op::PhaseEnd`]. Regions stay until the task ends; those of a
/// trace go when the pass through the trace ends.
#[derive(Debug)]
pub struct Program {
    cursor: Cursor,
    plan: Plan,
    loops_left: u32,
    phase: usize,
    /// Number of the stage that comes next, once the phase has begun: `cursor` works on the one
    /// before.
    stage: Option<usize>,
    /// Times that the phase has gone through all its stages.
    round: u32,
    regions_mapped: u32,
    /// The trace that the stage replays.
    trace: Option<Box<Replayed>>,
    /// Objects of the unit under way, and whether the next operation is one of theirs.
    beside: Option<Box<Objects>>,
    turn: bool,
}

/// Page of rank `index` in a region of `pages` pages: the permutation that scatters ranks over a
/// region (docs/scenario.md).
pub fn scatter(index: u64, pages: u64) -> u64 {
    modulo::Scatter::new(pages).page(index)
}

impl Program {
    /// Number of a mapped region, by its name in the scenario.
    pub fn region_number(&self, name: &str) -> Option<u32> {
        self.plan.regions.iter().find(|region| region.name == name).and_then(|region| region.number)
    }

    /// The program of task number `task` in a run with seed `seed`.
    ///
    /// # Errors
    /// When there is no such task, or one of its workloads contradicts itself or the setup.
    pub fn new(setup: &Setup, task: usize, seed: u64) -> Result<Self, ProgramError> {
        let plan = Plan::new(setup, task, seed)?;
        let loops_left = if plan.phases.is_empty() { 0 } else { plan.loops };
        Ok(Self {
            cursor: Cursor::Idle,
            plan,
            loops_left,
            phase: 0,
            stage: None,
            round: 0,
            regions_mapped: 0,
            trace: None,
            beside: None,
            turn: false,
        })
    }

    /// The next operation; `None` when the task has ended, and ever after.
    ///
    /// # Errors
    /// When a trace cannot be read on. The program ends there.
    #[inline]
    pub fn next_op(&mut self) -> Result<Option<Op>, ProgramError> {
        if let Some(beside) = &mut self.beside {
            self.turn = !self.turn;
            if self.turn {
                if let Some(op) = beside.next_op_within() {
                    return Ok(Some(op));
                }
            }
        }
        if let Some(op) = self.cursor.next_op() {
            return Ok(Some(op));
        }
        self.next_op_slow()
    }

    /// Goes on with a trace, or moves on to the next stage, phase or loop.
    #[inline(never)]
    fn next_op_slow(&mut self) -> Result<Option<Op>, ProgramError> {
        loop {
            if let Some(op) = self.cursor.next_op() {
                return Ok(Some(op));
            }
            if self.trace.is_some() {
                if let Some(op) = self.next_op_of_trace()? {
                    return Ok(Some(op));
                }
            }
            if self.loops_left == 0 {
                return Ok(None);
            }
            let phase = self.phase as u32;
            let Some(stage) = self.stage else {
                self.stage = Some(0);
                return Ok(Some(Op::PhaseBegin { phase }));
            };
            self.keep_state(stage);
            if stage == self.plan.phases[self.phase].list.len() {
                self.round += 1;
                if self.round < self.plan.phases[self.phase].rounds {
                    self.stage = Some(0);
                    continue;
                }
                self.stage = None;
                self.round = 0;
                self.phase += 1;
                if self.phase == self.plan.phases.len() {
                    self.phase = 0;
                    self.loops_left -= 1;
                }
                return Ok(Some(Op::PhaseEnd { phase }));
            }
            self.stage = Some(stage + 1);
            if let Some(op) = self.enter(stage)? {
                return Ok(Some(op));
            }
        }
    }

    /// Begins a stage: sets the cursor, or gives the only operation there is.
    fn enter(&mut self, stage: usize) -> Result<Option<Op>, ProgramError> {
        let Self { plan, cursor, round, .. } = self;
        let regions = &mut plan.regions;
        let number = |region: &plan::Region| region.number.unwrap_or_default();
        match &plan.phases[self.phase].list[stage] {
            Stage::Once(op) => return Ok(Some(*op)),
            Stage::Map(index) => {
                let region = &mut regions[*index];
                if region.number.is_some() {
                    return Ok(None);
                }
                region.number = Some(self.regions_mapped);
                self.regions_mapped += 1;
                return Ok(Some(Op::Map {
                    region: number(region),
                    backing: region.backing,
                    pages: region.pages,
                    advice: region.advice,
                    executable: false,
                }));
            }
            Stage::Unmap(index) => {
                let unmapped = regions[*index].number.take();
                return Ok(unmapped.map(|region| Op::Unmap { region }));
            }
            Stage::Interleave { anon, file, pages } => {
                let (anon, file) = (number(&regions[*anon]), number(&regions[*file]));
                *cursor = Cursor::Interleave(Turns { anon, file, turn: 0, turns: 2 * *pages });
            }
            Stage::Discard { region, first, every } => {
                let (end, region) = (regions[*region].pages, number(&regions[*region]));
                let (next, every) = (*first, (*every).max(1));
                *cursor = Cursor::Discard(Discards { region, next, end, every });
            }
            Stage::Take(take) => *cursor = Cursor::Take(Takes::new(*take)),
            Stage::Churn(memory) => *cursor = Cursor::Churn(Churn::new(*memory, plan.blocks)),
            Stage::Objects(units) => {
                if let Some(state) = plan.objects.take() {
                    *cursor = Cursor::Objects(Box::new(Objects::new(units, state)));
                }
            }
            Stage::Beside(units) => {
                self.beside = plan.objects.take().map(|state| Box::new(Objects::new(units, state)));
            }
            Stage::EndBeside => {
                if let Some(objects) = self.beside.take() {
                    *cursor = Cursor::Objects(objects);
                }
            }
            Stage::Free(end) => *cursor = Cursor::Free(0..*end),
            Stage::Make(making) => {
                // Counted at once: a stage is entered once, and always to its end.
                let next = match making.thing {
                    Thing::File | Thing::Missing => &mut plan.names,
                    Thing::Pipe => &mut plan.pipes,
                };
                *cursor = Cursor::Make(Makes::new(*making, *next));
                *next = next.wrapping_add(making.make);
            }
            Stage::Walk(walk) => {
                let region = &regions[walk.region];
                *cursor = walk_cursor(walk, number(region), region.prng);
            }
            Stage::Accesses(accesses) => {
                let lcg = plan.generators[accesses.generator].lcg;
                let hotspot = Hotspot::new(accesses, lcg, |index| number(&regions[index]));
                *cursor = Cursor::WorkingSet(hotspot);
            }
            Stage::FileWrite { file, bytes, block } => {
                let position = plan.positions.iter().find(|(known, _)| known == file);
                let offset = position.map_or(0, |(_, offset)| *offset);
                let (file, left, block) = (*file, *bytes, *block);
                *cursor = Cursor::FileWrite(Writes { file, offset, left, block });
            }
            Stage::FileRead { file, size, bytes, block } => {
                let (file, size, left, block) = (*file, *size, *bytes, *block);
                let offset = part_offset(*round, left, size);
                *cursor = Cursor::FileRead(Reads { file, size, offset, left, block });
            }
            Stage::Headers { file, size, bytes, zipf } => {
                let (file, size, left, prng) = (*file, *size, *bytes, plan.headers);
                *cursor = Cursor::Pieces(Pieces::new(file, size, left, prng), Arc::clone(zipf));
            }
            Stage::Trace { path, passes } => {
                let (first, page_size) = (self.regions_mapped, plan.page_size);
                match Replayed::open(path, *passes, first, page_size) {
                    Ok(replayed) => self.trace = Some(Box::new(replayed)),
                    Err(error) => return Err(self.fail(error)),
                }
            }
        }
        Ok(None)
    }

    fn next_op_of_trace(&mut self) -> Result<Option<Op>, ProgramError> {
        let Some(trace) = &mut self.trace else { return Ok(None) };
        match trace.next_op() {
            Ok(Some(op)) => Ok(Some(op)),
            Ok(None) => {
                self.regions_mapped = trace.next_region();
                self.trace = None;
                Ok(None)
            }
            Err(error) => Err(self.fail(error)),
        }
    }

    /// Ends the program for good.
    fn fail(&mut self, error: TraceError) -> ProgramError {
        self.trace = None;
        self.loops_left = 0;
        ProgramError::Trace { task: self.plan.task.clone(), error: Box::new(error) }
    }

    /// Takes what outlives a stage from the cursor that has just ended: the state of generators
    /// and the position in a file. `stage` is the stage after it.
    fn keep_state(&mut self, stage: usize) {
        let cursor = std::mem::replace(&mut self.cursor, Cursor::Idle);
        let Some(stage) = stage.checked_sub(1) else { return };
        match (cursor, &self.plan.phases[self.phase].list[stage]) {
            (Cursor::Random(draws) | Cursor::Zipf(draws, ..), Stage::Walk(walk)) => {
                self.plan.regions[walk.region].prng = draws.prng;
            }
            (Cursor::WorkingSet(hotspot), Stage::Accesses(accesses)) => {
                self.plan.generators[accesses.generator].lcg = hotspot.lcg;
            }
            (Cursor::Pieces(pieces, _), Stage::Headers { .. }) => {
                self.plan.headers = pieces.prng;
            }
            (Cursor::Objects(objects), Stage::Objects(_) | Stage::EndBeside) => {
                self.plan.objects = Some(objects.into_state());
            }
            (Cursor::Churn(churn), Stage::Churn(_)) => self.plan.blocks = churn.prng,
            (Cursor::FileWrite(writes), Stage::FileWrite { file, .. }) => {
                for (known, offset) in &mut self.plan.positions {
                    if known == file {
                        *offset = writes.offset;
                    }
                }
            }
            _ => {}
        }
    }
}

/// Where the part of a file begins that round `round` reads: each reads `bytes` bytes, from the
/// file's front, round its end.
fn part_offset(round: u32, bytes: u64, size: u64) -> u64 {
    let read = u128::from(round) * u128::from(bytes);
    (read % u128::from(size.max(1))) as u64
}

fn walk_cursor(walk: &Walk, region: u32, prng: crate::prng::SplitMix64) -> Cursor {
    let (write, pages) = (walk.write, walk.pages);
    let laps = Laps { region, write, index: 0, pages, passes_left: walk.passes };
    let left = pages * u64::from(walk.passes);
    let draws = Draws { region, write, pages, left, prng };
    match &walk.order {
        WalkOrder::Sequential => Cursor::Sequential(laps),
        WalkOrder::Scattered(scatter) => Cursor::Scattered(laps, *scatter),
        WalkOrder::Random => Cursor::Random(draws),
        WalkOrder::Zipf(zipf, scatter) => Cursor::Zipf(draws, zipf.clone(), *scatter),
    }
}

#[cfg(test)]
mod tests;
