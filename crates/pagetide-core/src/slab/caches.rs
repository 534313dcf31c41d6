//! Making, tuning and removing caches.
//!
//! Linux: mm/slab_common.c (6.1).
