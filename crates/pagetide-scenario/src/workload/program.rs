//! The phases of a task as a stream of operations.
//!
//! [`Program`] turns the phases of one task into [`Op`]s. It is a pure function of the setup, the
//! task and the seed: no clock, no floats, no hash order.

use super::cursor::Cursor;
use super::objects::UnitObjects;
use super::plan::{PhaseStage, Planner, Stages};
use super::replay::TraceReplay;
use super::request::{Arrivals, ServiceRequest};
use super::state::ProgramState;
use crate::model::Setup;
use crate::op::Op;
use pagetide_core::units::page_size::PageSize;
use pagetide_trace::{Tape, TraceError};
use std::sync::Arc;
use thiserror::Error;

/// Why a program cannot start or continue.
#[derive(Debug, Error)]
pub enum ProgramError {
    /// The setup has fewer tasks.
    #[error("there is no task number {0}")]
    NoSuchTask(usize),
    /// A trace cannot be read, or only in part.
    #[error("task `{task}`: {error}")]
    Trace { task: String, error: Box<TraceError> },
}

/// The operations of one task, one at a time.
///
/// For every phase: [`Op::PhaseBegin`], an [`Op::Map`] for each region that no earlier phase
/// mapped, the operations of the workload, [`Op::PhaseEnd`]. Regions stay until the task ends; the
/// regions of a trace are unmapped when the pass through the trace ends.
#[derive(Debug)]
pub struct Program {
    cursor: Cursor,
    page_size: PageSize,
    phases: Vec<Stages>,
    state: ProgramState,
    loops_left: u32,
    phase: usize,
    /// Number of the next stage, if the phase has begun; `cursor` is in the stage before it.
    stage: Option<usize>,
    /// Number of times that the phase has run through all its stages.
    round: u32,
    regions_mapped: u32,
    /// The trace of the current stage.
    trace: Option<Box<TraceReplay>>,
    /// The last trace that was replayed to its end, kept for the next unit of a build.
    tape: Option<Arc<Tape>>,
    /// Objects of the current unit, and whether the next operation is one of theirs.
    beside: Option<Box<UnitObjects>>,
    turn: bool,
}

impl Program {
    /// Number of a mapped region, by its name in the scenario.
    pub fn region_number(&self, name: &str) -> Option<u32> {
        self.state.regions.iter().find(|region| region.name == name).and_then(|found| found.number)
    }

    /// Pages of all regions that its workloads name, without the regions of traces.
    pub fn region_pages(&self) -> u64 {
        self.state.regions.iter().fold(0, |sum, region| sum.saturating_add(region.pages))
    }

    /// The program of task number `task` in a run with seed `seed`.
    ///
    /// # Errors
    /// The setup has no such task.
    ///
    /// # Panics
    /// If workloads contradict each other or the setup; [`crate::load`] makes no such setup.
    pub fn new(setup: &Setup, task: usize, seed: u64) -> Result<Self, ProgramError> {
        let task = setup.tasks.get(task).ok_or(ProgramError::NoSuchTask(task))?;
        let page_size = setup.machine.page_size;
        let file_sizes = setup.files.iter().map(|file| file.size).collect();
        let state = ProgramState::new(&task.name, seed);
        let mut planner = Planner::new(page_size, file_sizes, &setup.caches, state);
        let stages = task.phases.iter().enumerate().map(|(index, phase)| Stages {
            list: phase.workload.stages(index as u32, &mut planner),
            rounds: phase.workload.rounds(),
        });
        let phases: Vec<Stages> = stages.collect();
        let loops_left = if phases.is_empty() { 0 } else { task.settings.loops };
        Ok(Program { phases, loops_left, ..Program::empty(page_size, planner.state) })
    }

    /// A program without operations.
    fn empty(page_size: PageSize, state: ProgramState) -> Program {
        Program {
            cursor: Cursor::Idle,
            page_size,
            loops_left: 0,
            phases: Vec::new(),
            state,
            phase: 0,
            stage: None,
            round: 0,
            regions_mapped: 0,
            trace: None,
            tape: None,
            beside: None,
            turn: false,
        }
    }

    /// The next operation; `None` once the task has ended.
    /// Fails if a trace cannot be read further; the program ends there.
    #[inline]
    pub fn next_op(&mut self) -> Result<Option<Op>, ProgramError> {
        match self.next_fast() {
            Some(op) => Ok(Some(op)),
            None => self.next_slow(),
        }
    }

    /// Fast path: the next operation if the current stage can give it directly, as it nearly always
    /// can. It cannot fail, so the operation need not pass through memory. After `None`, call
    /// [`Program::next_slow`].
    #[inline(always)]
    pub fn next_fast(&mut self) -> Option<Op> {
        if let Some(beside) = &mut self.beside {
            self.turn = !self.turn;
            if self.turn {
                if let Some(op) = beside.next_op_within() {
                    return Some(op);
                }
            }
        }
        if let Some(op) = self.cursor.next_op() {
            return Some(op);
        }
        self.trace.as_mut()?.next_played()
    }

    /// Continues a trace, or moves to the next stage, phase or loop; call after
    /// [`Program::next_fast`].
    #[inline(never)]
    pub fn next_slow(&mut self) -> Result<Option<Op>, ProgramError> {
        loop {
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
            std::mem::replace(&mut self.cursor, Cursor::Idle).end(&mut self.state);
            if stage == self.phases[self.phase].list.len() {
                self.round += 1;
                if self.round < self.phases[self.phase].rounds {
                    self.stage = Some(0);
                    continue;
                }
                self.stage = None;
                self.round = 0;
                self.phase += 1;
                if self.phase == self.phases.len() {
                    self.phase = 0;
                    self.loops_left -= 1;
                }
                return Ok(Some(Op::PhaseEnd { phase }));
            }
            self.stage = Some(stage + 1);
            let op = self.enter(stage)?;
            if let Some(op) = op.or_else(|| self.cursor.next_op()) {
                return Ok(Some(op));
            }
        }
    }

    /// Enters a stage: sets the cursor, or returns the only operation of the stage.
    fn enter(&mut self, stage: usize) -> Result<Option<Op>, ProgramError> {
        let state = &mut self.state;
        match &self.phases[self.phase].list[stage] {
            PhaseStage::Once(op) => return Ok(Some(*op)),
            PhaseStage::Map(index) => {
                let region = &mut state.regions[*index];
                if region.number.is_some() {
                    return Ok(None);
                }
                region.number = Some(self.regions_mapped);
                self.regions_mapped += 1;
                return Ok(Some(Op::Map {
                    region: self.regions_mapped - 1,
                    backing: region.backing,
                    pages: region.pages,
                    advice: region.advice,
                    executable: false,
                }));
            }
            PhaseStage::Unmap(index) => {
                let unmapped = state.regions[*index].number.take();
                return Ok(unmapped.map(|region| Op::Unmap { region }));
            }
            PhaseStage::Run(run) => self.cursor = run.begin(state, self.round),
            PhaseStage::Beside(units) => {
                let objects = state.objects.take();
                self.beside = objects.map(|objects| Box::new(UnitObjects::new(units, objects)));
            }
            PhaseStage::EndBeside => {
                if let Some(objects) = self.beside.take() {
                    self.cursor = objects.into();
                }
            }
            PhaseStage::Trace { path, passes, advice } => {
                let (first, page_size) = (self.regions_mapped, self.page_size);
                match TraceReplay::open(path, *passes, *advice, first, page_size) {
                    Ok(replayed) => self.trace = Some(Box::new(replayed)),
                    Err(error) => return Err(self.fail(error)),
                }
            }
        }
        Ok(None)
    }

    /// Arrivals of the requests of the current service; `None` if no service is running.
    pub fn arrivals(&self) -> Option<Arrivals> {
        match &self.cursor {
            Cursor::Service(serving) => Some(serving.arrivals()),
            _ => None,
        }
    }

    /// Starts to serve a request, after [`Op::Serve`].
    pub fn serve(&mut self, request: &ServiceRequest) {
        if let Cursor::Service(serving) = &mut self.cursor {
            serving.serve(request);
        }
    }

    /// Ends the load after [`Op::Serve`]: no more requests arrive.
    pub fn end_load(&mut self) {
        if let Cursor::Service(serving) = &mut self.cursor {
            serving.end_load();
        }
    }

    /// The program of another thread of the current service. It serves requests only, and uses the
    /// regions of this program. Without a service it has no operations.
    pub fn thread(&self, thread: u32) -> Program {
        let cursor = match &self.cursor {
            Cursor::Service(serving) => Cursor::Service(Box::new(serving.of_thread(thread))),
            _ => Cursor::Idle,
        };
        let state = ProgramState::new(&self.state.task, 0);
        Program { cursor, ..Program::empty(self.page_size, state) }
    }

    fn next_op_of_trace(&mut self) -> Result<Option<Op>, ProgramError> {
        let Some(trace) = &mut self.trace else { return Ok(None) };
        match trace.next_op() {
            Ok(Some(op)) => Ok(Some(op)),
            Ok(None) => {
                self.regions_mapped = trace.next_region();
                self.tape = trace.tape();
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
        ProgramError::Trace { task: self.state.task.clone(), error: Box::new(error) }
    }
}
