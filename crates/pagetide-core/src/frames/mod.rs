//! Frames: descriptors, zones, free lists, watermarks and allocation.
//!
//! Linux: `mm/page_alloc.c`, `mm/mmzone.c`, `struct page`, `struct zone`. An allocation begins in
//! [`page_request`] or [`page_alloc`] and continues in [`slowpath`].

pub mod boot;
pub mod buddy;
pub mod fallback;
pub mod gfp;
pub(crate) mod huge_page;
pub mod list;
pub mod node;
pub mod page;
pub mod page_alloc;
pub mod page_alloc_audit;
pub mod page_array;
pub mod page_request;
pub mod pcp;
mod pcp_tuning;
pub mod pgdat;
pub mod pin;
pub(crate) mod pin_counts;
pub mod slowpath;
pub(crate) mod user_page;
pub mod watermark;
pub mod zone;
pub mod zone_type;
