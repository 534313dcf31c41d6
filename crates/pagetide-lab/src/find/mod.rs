//! What should a knob be set to, so that a criterion holds?
//!
//! A [`criterion`](pagetide_scenario::criterion) is what is wanted of a run. [`search`] says which runs are needed
//! next, from what the runs so far have said; it runs nothing, so that a program with an executor of its own (a
//! cluster, an optimiser) can ask and tell. [`plane`] is the same for two knobs. [`question`] joins them with a
//! scenario and keeps what the runs measured, [`run`] performs the runs here, [`answer`] says what came out,
//! [`text`], [`json`] and [`emit`] write it.

pub mod answer;
pub mod emit;
pub mod json;
pub mod plane;
pub mod question;
pub mod run;
pub mod search;
pub mod text;
