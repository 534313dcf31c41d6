//! See ../trace_functions.rs.
#![no_main]

#[allow(dead_code)] // each target runs one
#[path = "../trace_functions.rs"]
mod functions;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| functions::trace(bytes));
