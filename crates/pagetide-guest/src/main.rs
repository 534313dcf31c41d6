//! The first process of a guest: performs a scenario's workloads on the kernel it finds.
//!
//! `pagetide verify` puts this program, statically linked (`make guest`), as `/init` into an
//! initramfs. It prepares the machine (`prepare`), starts a process a task, says that it is ready,
//! and waits for a seed: at that moment the machine is saved, and every run begins from the copy.
//! Then the tasks perform the operations of [`pagetide_scenario::workload::Program`], the same
//! that the simulator performs, access by access, and what the kernel counted goes out over a
//! port of the emulated machine (`sys::port`), which costs no memory.
//!
//! `pagetide import host --measure` starts it as an ordinary process (`pagetide-guest here`): then it
//! performs the scenario that its working directory names on the machine as it is, and changes
//! nothing but files in that directory and groups below the one that it is given.
//!
//! Invariant: between "ready" and "done" nothing here allocates pages for itself: programs, stacks
//! and buffers are built before and locked into memory; the stacks of a service's further threads are not.

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod config;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod counters;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod groups;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod kernel_memory;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod objects;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod perform;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod prepare;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod report;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod residency;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod service;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod shared;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod supervise;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod sys;

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
fn main() -> std::process::ExitCode {
    if std::process::id() == 1 {
        return supervise::run();
    }
    if std::env::args_os().nth(1).is_some_and(|first| first == "here") {
        return supervise::run_here();
    }
    eprintln!(
        "pagetide-guest is the first process of a virtual machine and does nothing elsewhere; \
         `pagetide verify` starts it"
    );
    std::process::ExitCode::from(2)
}

#[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
fn main() -> std::process::ExitCode {
    eprintln!("pagetide-guest runs on Linux on x86-64 only");
    std::process::ExitCode::from(2)
}
