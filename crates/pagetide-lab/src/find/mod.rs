//! `pagetide find`: the value of a knob for which a criterion holds.
//!
//! A [`criterion`](pagetide_scenario::metric::criterion) is a condition on the metrics of a run. [`search`]
//! decides which runs are needed next; it runs nothing, so a program with its own executor (a
//! cluster, an optimiser) can use it. [`question`] adds the scenario and keeps the records, [`run`]
//! makes the runs in this process, [`answer`] collects the result, and [`text`], [`json`] and
//! [`emit`] write it.

pub mod answer;
pub mod emit;
pub mod json;
pub mod question;
pub mod run;
pub mod search;
pub mod text;
