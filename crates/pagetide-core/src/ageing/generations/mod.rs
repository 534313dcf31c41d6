//! The multi-generational LRU: pages of a group on a node, ordered by generation.
//!
//! Linux: `CONFIG_LRU_GEN`, `struct lru_gen_struct` (mmzone.h, mm_inline.h and mm/vmscan.c, 6.1).
//! Ageing makes a new, youngest generation and puts into it the pages that were used since
//! ([`age`]). It finds them by walks over page tables ([`table_walk`]), and eviction finds more of
//! them next to each used page ([`look_around`]). Eviction takes pages of the oldest generation
//! ([`evict`]). Pages used by read() and write() have a tier, the logarithm of the number of uses;
//! refaults decide which tiers eviction protects ([`feedback`]).
//!
//! Generations have numbers that only grow. At most four exist at a time, so a page notes its
//! generation modulo four, its *place*. The two youngest generations count as active.
//!
//! Invariant: file pages have 2 to 4 generations, and anonymous pages at least as many as file
//! pages, at most 4. `nr_pages` counts the pages by their generation. Ageing changes the generation
//! of a page but not its list, so a list may hold younger pages; eviction sorts them when it meets
//! them.

mod age;
pub mod bloom;
pub mod command;
mod control_file;
mod evict;
mod feedback;
pub mod limits;
mod lists;
mod look_around;
pub(crate) mod memcg_lru;
pub mod neighbours;
pub(crate) mod scan;
mod sort;
pub mod table_walk;
pub mod window;
mod workingset;
