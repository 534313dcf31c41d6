//! See ../functions.rs.
#![no_main]

#[path = "../functions.rs"]
mod functions;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| functions::csv(bytes));
