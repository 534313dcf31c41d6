//! Ageing: the lists of evictable pages, and which page is young.
//!
//! Linux: `mm/swap.c`, `mm/workingset.c`, `struct lruvec`.

pub mod lru;
pub mod lruvec;
pub(crate) mod mlock;
pub mod pagevec;
pub mod shadow;
pub mod workingset;
