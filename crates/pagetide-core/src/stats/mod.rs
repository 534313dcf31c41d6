//! Statistics: counters, pressure and tracepoints.
//!
//! Linux: `mm/vmstat.c`, `kernel/sched/psi.c`.

pub mod event;
pub mod psi;
pub mod psi_average;
pub mod vmstat;
pub mod work;
pub(crate) mod zone_stat;
