//! Groups (memory cgroups): the tree, charges, counters, stocks, `memory.high`.
//!
//! Linux: `mm/memcontrol.c`, `mm/page_counter.c`.

pub mod charge;
pub mod memcg;
pub(crate) mod memcg_stock;
pub(crate) mod memory_high;
pub mod page_counter;
