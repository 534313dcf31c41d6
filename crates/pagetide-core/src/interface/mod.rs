//! The interface of the core: calls and daemons, and the effects and outcomes of their steps.
//!
//! A world starts a [`call`], advances it and the [`daemon`]s step by step, carries out the
//! [`effect`]s and reads the [`outcome`]. [`manager`] is the state of the machine, generic over the
//! [`owners`] of its pages. [`executor`] runs one call at a time; [`slots`] are the owners of a
//! program that embeds the core.

pub mod bad_id;
pub mod call;
pub mod ctx;
pub mod daemon;
pub mod effect;
pub mod entry_points;
pub mod executor;
pub mod kernel;
pub mod manager;
pub mod outcome;
pub mod owners;
pub mod planted;
pub mod slots;
pub(crate) mod step_state;
pub mod throttle;
