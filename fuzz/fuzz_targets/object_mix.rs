//! See ../functions.rs.
#![no_main]

#[allow(dead_code)] // each target runs one
#[path = "../functions.rs"]
mod functions;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| functions::object_mix(bytes));
