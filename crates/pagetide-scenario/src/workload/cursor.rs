//! The position of a task in a stage. An access takes a few nanoseconds and never allocates.

use super::hotspot::Hotspot;
use super::modulo::Scatter;
use super::order::{Laps, RandomDraws};
use super::paced::PacedAccesses;
use super::request::{ServiceState, ServiceThread};
use super::state::ProgramState;
use crate::draws::zipf::Zipf;
use crate::op::Op;
use std::fmt::Debug;
use std::sync::Arc;

/// Generates the operations of a stage.
pub(super) trait Generator: Debug + Send {
    /// The next operation of the stage; `None` at its end.
    fn next_op(&mut self) -> Option<Op>;

    /// Returns to `_state` what outlives the stage.
    fn end(self: Box<Self>, _state: &mut ProgramState) {}
}

/// The generator of the current stage.
#[derive(Debug)]
pub(super) enum Cursor {
    /// No stage.
    Idle,
    Sequential(Laps),
    Scattered(Laps, Scatter),
    Random(RandomDraws),
    Zipf(RandomDraws, Arc<Zipf>, Scatter),
    WorkingSet(Hotspot),
    Paced(Box<PacedAccesses>),
    Service(Box<ServiceThread>),
    Other(Box<dyn Generator>),
}

impl<G: Generator + 'static> From<Box<G>> for Cursor {
    fn from(generator: Box<G>) -> Cursor {
        Cursor::Other(generator)
    }
}

impl From<ServiceState> for Cursor {
    fn from(shared: ServiceState) -> Cursor {
        Cursor::Service(Box::new(ServiceThread::new(Arc::new(shared), 0)))
    }
}

impl Cursor {
    /// The next operation of the stage; `None` at its end.
    #[inline]
    pub(super) fn next_op(&mut self) -> Option<Op> {
        match self {
            Cursor::Sequential(laps) => laps.next_index().map(|page| laps.access(page)),
            Cursor::Scattered(laps, scatter) => {
                laps.next_index().map(|index| laps.access(scatter.page(index)))
            }
            Cursor::Random(draws) => draws.uniform(),
            Cursor::Zipf(draws, zipf, scatter) => draws.zipf(zipf, scatter),
            Cursor::WorkingSet(hotspot) => hotspot.next_op(),
            Cursor::Paced(paced) => paced.next_op(),
            Cursor::Service(serving) => serving.next_op(),
            Cursor::Other(generator) => generator.next_op(),
            Cursor::Idle => None,
        }
    }

    /// Returns to `state` what outlives the stage: the state of generators, the position in a file.
    pub(super) fn end(self, state: &mut ProgramState) {
        match self {
            Cursor::Random(draws) | Cursor::Zipf(draws, ..) => draws.end(state),
            Cursor::WorkingSet(hotspot) => hotspot.end(state),
            Cursor::Paced(paced) => paced.end(state),
            Cursor::Other(generator) => generator.end(state),
            Cursor::Idle | Cursor::Sequential(_) | Cursor::Scattered(..) | Cursor::Service(_) => {}
        }
    }
}
