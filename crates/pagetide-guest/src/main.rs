//! The init process of a guest: performs a scenario's workloads on the running kernel.
//!
//! `pagetide verify` installs this static program (`make guest`) as `/init` in an initramfs. It
//! prepares the machine (`prepare`), starts a process for each task, reports that it is ready, and
//! waits for a seed. At that moment the machine is saved, and every run starts from the copy. Then
//! the tasks perform the operations of [`pagetide_scenario::workload::Program`], which are the same
//! as in the simulator, access by access. Counters are sent through a port of the emulated machine
//! (`sys::port`), which needs no memory.
//!
//! `pagetide import host --measure` starts it as an ordinary process (`pagetide-guest here`). It
//! then performs the scenario of its working directory on the live machine, and changes only files
//! in that directory and groups below the given one.
//!
//! Invariant: between "ready" and "done" the program allocates no pages for itself: programs,
//! stacks and buffers are created before and locked into memory, except the stacks of a service's
//! additional threads.

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod compressed;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod config;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod contents;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod counters;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod disk_probe;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod groups;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod idle;
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
