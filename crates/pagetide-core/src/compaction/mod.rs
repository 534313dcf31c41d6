//! Compaction: moving pages together so that free memory comes in large blocks.
//!
//! Linux: mm/compaction.c, mm/migrate.c (6.1, and 4.5 where a policy says so).

mod migrate;
