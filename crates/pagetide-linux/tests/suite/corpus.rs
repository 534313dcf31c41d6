//! Runs the fuzz functions over the stored corpus, with stable Rust, in every test run.

#[path = "../../../../fuzz/corpus_runner.rs"]
mod corpus_runner;
#[path = "../../../../fuzz/host_functions.rs"]
mod functions;

use corpus_runner::run;

#[test]
fn host_zoneinfo() {
    run("host-zoneinfo", functions::host_zoneinfo);
}

#[test]
fn host_proc() {
    run("host-proc", functions::host_proc);
}

#[test]
fn host_system() {
    run("host-system", functions::host_system);
}

#[test]
fn kernel_report() {
    run("kernel-report", functions::kernel_report);
}

#[test]
fn guest_report() {
    run("guest-report", functions::guest_report);
}

#[test]
fn reference() {
    run("reference", functions::reference);
}

#[test]
fn start() {
    run("start", functions::start);
}
