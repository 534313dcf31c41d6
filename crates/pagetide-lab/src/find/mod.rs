//! What should a knob be set to, so that a criterion holds?
//!
//! [`criterion`] is what is wanted of a run. [`search`] says which runs are needed next, from what the runs so
//! far have said; it runs nothing, so that a program with an executor of its own (a cluster, an optimiser) can
//! ask and tell. [`question`] joins both with a scenario and keeps what the runs measured, [`run`] performs
//! the runs here, [`answer`] says what came out, [`text`] and [`emit`] write it.

pub mod criterion;
pub mod search;
