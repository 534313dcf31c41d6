//! All integration tests of this crate in one program, so that what it uses is compiled into it once.

mod corpus;
mod diagnostics;
mod documents;
mod experiments;
mod metric_keys;
mod names;
