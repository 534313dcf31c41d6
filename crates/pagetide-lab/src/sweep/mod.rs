//! `pagetide sweep`: a grid of knobs times variants times seeds, with a store of finished runs.
//!
//! [`grid`] lists the runs in a fixed order; [`store`] keeps one row per run; [`run`] makes the
//! missing runs; [`output`] writes rows as a table, CSV or JSON.

pub mod grid;
pub mod output;
pub mod run;
pub mod store;
