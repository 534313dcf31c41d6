//! Statistics: counters, pressure, tracepoints, and the text of /proc.
//!
//! Linux: `mm/vmstat.c`, `kernel/sched/psi.c`, `fs/proc`.

pub mod event;
pub mod proc;
pub mod psi;
pub mod vmstat;
pub mod work;
pub(crate) mod zone_stat;
