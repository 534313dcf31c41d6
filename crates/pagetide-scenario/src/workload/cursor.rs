//! The position of a task within a stage. Producing an access costs a few nanoseconds and never
//! allocates.

use super::drawn::{Access, Drawn, Source};
use super::paced::Paced;
use super::plan::State;
use super::request::Serving;
use super::walk::Laps;
use crate::op::Op;
use std::fmt::Debug;

/// The operations of a stage that is not mostly accesses to memory.
pub(super) trait Generator: Debug + Send {
    /// The next operation of the stage; `None` at its end.
    fn next_op(&mut self) -> Option<Op>;

    /// Gives back what outlives the stage.
    fn end(self: Box<Self>, _state: &mut State) {}
}

/// The generator of a stage.
#[derive(Debug)]
pub(super) enum Cursor {
    /// Nothing (left).
    Idle,
    Sequential(Laps),
    Drawn(Box<Drawn>),
    Paced(Box<Paced>),
    Service(Box<Serving>),
    Other(Box<dyn Generator>),
}

impl<G: Generator + 'static> From<Box<G>> for Cursor {
    fn from(generator: Box<G>) -> Cursor {
        Cursor::Other(generator)
    }
}

impl From<Source> for Cursor {
    fn from(source: Source) -> Cursor {
        Cursor::Drawn(Box::new(Drawn::new(source)))
    }
}

impl Cursor {
    /// The next operation of the stage; `None` at its end.
    #[inline]
    pub(super) fn next_op(&mut self) -> Option<Op> {
        match self {
            Cursor::Sequential(laps) => laps.next_index().map(|page| laps.access(page).into()),
            Cursor::Drawn(drawn) => drawn.next_op(),
            Cursor::Paced(paced) => paced.next_op(),
            Cursor::Service(serving) => serving.next_op(),
            Cursor::Other(generator) => generator.next_op(),
            Cursor::Idle => None,
        }
    }

    /// Accesses that come, if they were drawn with the operation that came last.
    #[inline]
    pub(super) fn just_drawn(&self) -> Option<&[Access]> {
        match self {
            Cursor::Drawn(drawn) => drawn.just_drawn(),
            Cursor::Paced(paced) => paced.just_drawn(),
            _ => None,
        }
    }

    /// Gives back what outlives the stage: the state of generators, the position in a file.
    pub(super) fn end(self, state: &mut State) {
        match self {
            Cursor::Drawn(drawn) => drawn.end(state),
            Cursor::Paced(paced) => paced.end(state),
            Cursor::Other(generator) => generator.end(state),
            Cursor::Idle | Cursor::Sequential(_) | Cursor::Service(_) => {}
        }
    }
}
