//! See ../host_functions.rs.
#![no_main]

#[allow(dead_code)] // each target runs one
#[path = "../host_functions.rs"]
mod functions;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| functions::kernel_report(bytes));
