//! Per-CPU stock of charged pages, so that most charges need not walk up the tree.
//!
//! Linux: `struct memcg_stock_pcp` (mm/memcontrol.c, 6.1).
//!
//! Invariant: the pages in a stock are counted in the usage of its group and the ancestors.

use crate::units::digest::State;
use crate::units::MemcgId;

/// Pages charged at a time (Linux `MEMCG_CHARGE_BATCH`; 32 until 6.0).
pub const MEMCG_CHARGE_BATCH: u64 = 64;

/// Pages that a CPU has charged to a group in advance.
#[derive(Clone, Copy, Debug, State)]
pub(crate) struct Stock {
    pub memcg: MemcgId,
    pub nr_pages: u64,
}

impl Stock {
    pub const EMPTY: Stock = Stock { memcg: MemcgId::NONE, nr_pages: 0 };
}

/// Number of pages that one CPU has charged and uncharged for a group (Linux
/// `memcg_vmstats_percpu::nr_page_events`), and the number at which the soft-limit tree is updated
/// next.
#[derive(Clone, Copy, Debug, Default, State)]
pub(crate) struct CpuEvents {
    pub nr_page_events: u64,
    pub threshold_target: u64,
    pub soft_limit_target: u64,
}
