//! Grids of knobs, times variants, times seeds, with a store of what was run.
//!
//! [`grid`] says which runs there are, in an order that everybody shares; [`store`] keeps a row a run and forgets
//! nothing; [`run`] performs what is missing; [`output`] writes rows as a table, CSV or JSON.

pub mod grid;
pub mod output;
pub mod run;
pub mod store;
