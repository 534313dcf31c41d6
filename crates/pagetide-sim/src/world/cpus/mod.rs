//! CPUs: which thread runs, its time slice, and the CPU controller of groups.

pub(crate) mod groups;
pub(crate) mod slice;
