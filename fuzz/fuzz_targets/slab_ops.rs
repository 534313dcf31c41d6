//! See ../slab_functions.rs.
#![no_main]

#[path = "../../crates/pagetide-core/tests/suite/slab_world/mod.rs"]
mod slab_world;

#[path = "../slab_functions.rs"]
mod slab_functions;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| slab_functions::slab_ops(bytes));
