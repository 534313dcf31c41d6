//! All integration tests of the core in one program, so that the core is compiled into it once.

mod bad_ids;
mod buffer_heads;
mod cancel;
mod collapse;
mod compaction;
mod contents;
mod corpus;
mod door;
mod embed;
mod fields;
mod groups;
mod held;
mod huge;
mod ids;
mod linux_functions;
mod machine;
mod madvise;
mod many_groups;
mod page_size;
#[cfg(debug_assertions)]
mod planted;
mod plugins;
mod pressure;
mod prop_buddy;
mod prop_slab;
mod prop_watermark;
mod quiet_walks;
mod random_groups;
mod shadows;
mod slab_world;
mod slots;
mod storm;
mod strange;
mod world;
mod zram;
mod zswap;
