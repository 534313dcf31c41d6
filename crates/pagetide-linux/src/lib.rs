//! The real-kernel world: a machine in QEMU that performs the workloads of a scenario, and readers
//! of what a live Linux says of itself.

pub mod host;
