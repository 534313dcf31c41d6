//! Processes. Linux: fork(2), waitpid(2), setpriority(2).

use super::check;
use rustix::process::{
    kill_process, set_parent_process_death_signal, setpriority_process, test_kill_process, waitid,
    Pid, Signal, WaitId, WaitIdOptions, WaitOptions,
};
use std::io;
use std::num::NonZeroU64;
use std::time::Duration;

/// Which side of a fork this is.
pub enum ForkSide {
    /// The new process.
    Child,
    /// The parent, with the child's process id.
    Parent(i32),
}

/// Forks this process, which must have a single thread.
pub fn fork() -> io::Result<ForkSide> {
    // SAFETY: the guest has no other threads, so the copy is complete.
    match check(unsafe { libc::fork() }.into())? {
        0 => Ok(ForkSide::Child),
        pid => Ok(ForkSide::Parent(pid as i32)),
    }
}

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExitCause {
    /// By itself, with this exit code.
    Exited(i32),
    /// By a signal.
    Killed(i32),
}

/// Waits for the end of any child; `None` after a signal, or if there is no child.
pub fn wait_any() -> Option<(i32, ExitCause)> {
    let (pid, status) = rustix::process::wait(WaitOptions::empty()).ok()??;
    let ended = match status.terminating_signal() {
        Some(signal) => ExitCause::Killed(signal),
        None => ExitCause::Exited(status.exit_status()?),
    };
    Some((Pid::as_raw(Some(pid)), ended))
}

pub fn kill(pid: i32) {
    if let Some(pid) = Pid::from_raw(pid) {
        let _ = kill_process(pid, Signal::KILL);
    }
}

/// Ends this process when its parent ends, for any reason. Linux: PR_SET_PDEATHSIG.
pub fn end_with_parent() {
    // If it fails, a process may outlive a killed parent.
    let _ = set_parent_process_death_signal(Some(Signal::KILL));
}

/// Whether a process with this id lives. For processes other than its parent, a zombie counts as
/// alive until its parent has waited for it.
pub fn lives(pid: i32) -> bool {
    let Some(pid) = Pid::from_raw(pid) else { return false };
    // Leaves the child waitable.
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    let ended = matches!(waitid(WaitId::Pid(pid), options), Ok(Some(_)));
    !ended && test_kill_process(pid).is_ok()
}

/// Sets the nice value of this process.
pub fn set_nice(nice: i8) -> io::Result<()> {
    Ok(setpriority_process(None, nice.into())?)
}

/// Exempts this process from the OOM killer.
pub fn exempt_from_oom() {
    // Otherwise the OOM killer might choose the reporting process; nothing else depends on this.
    let _ = std::fs::write("/proc/self/oom_score_adj", "-1000");
}

/// Makes a child eligible for the OOM killer.
pub fn set_oom_score(adj: i16) {
    let _ = std::fs::write("/proc/self/oom_score_adj", adj.to_string());
}

/// Interrupts [`wait_any`] after `after`, and then repeatedly, because the first signal may come
/// too early.
pub fn alarm(after: Duration) {
    extern "C" fn nothing(_: libc::c_int) {}
    // SAFETY: an all-zero sigaction and itimerval are valid; the handler does nothing.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = nothing as extern "C" fn(libc::c_int) as usize;
        libc::sigaction(libc::SIGALRM, &raw const action, std::ptr::null_mut());
        let mut timer: libc::itimerval = std::mem::zeroed();
        timer.it_value.tv_sec = after.as_secs() as libc::time_t;
        timer.it_value.tv_usec = after.subsec_micros().max(1).into();
        timer.it_interval.tv_usec = 10_000;
        libc::setitimer(libc::ITIMER_REAL, &raw const timer, std::ptr::null_mut());
    }
}

/// Stops [`alarm`].
pub fn end_alarm() {
    // SAFETY: an all-zero itimerval is valid and stops the timer.
    unsafe {
        let timer: libc::itimerval = std::mem::zeroed();
        libc::setitimer(libc::ITIMER_REAL, &raw const timer, std::ptr::null_mut());
    }
}

/// CPU time and faults of this process so far.
#[derive(Clone, Copy, Debug, Default)]
pub struct ProcessUsage {
    /// Microseconds in user mode.
    pub user_us: u64,
    /// Microseconds in the kernel.
    pub system_us: u64,
    /// Faults without I/O.
    pub minor_faults: u64,
    /// Faults that waited for I/O.
    pub major_faults: u64,
}

/// Linux: getrusage(2).
pub fn usage() -> ProcessUsage {
    // SAFETY: an all-zero rusage is valid and outlives the call.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_SELF, &raw mut usage);
        usage
    };
    let microseconds = |time: libc::timeval| time.tv_sec as u64 * 1_000_000 + time.tv_usec as u64;
    ProcessUsage {
        user_us: microseconds(usage.ru_utime),
        system_us: microseconds(usage.ru_stime),
        minor_faults: usage.ru_minflt as u64,
        major_faults: usage.ru_majflt as u64,
    }
}

/// Nanoseconds since boot. Linux: CLOCK_MONOTONIC.
pub fn now_ns() -> u64 {
    clock_ns(libc::CLOCK_MONOTONIC)
}

/// CPU time of this process and all its threads so far, in nanoseconds. Linux:
/// CLOCK_PROCESS_CPUTIME_ID, which is exact; the timer tick splits the two parts of [`usage`].
pub fn cpu_ns() -> u64 {
    clock_ns(libc::CLOCK_PROCESS_CPUTIME_ID)
}

/// Nanoseconds of a clock. By libc, which needs no /proc to find the vDSO.
fn clock_ns(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` outlives the call.
    unsafe {
        libc::clock_gettime(clock, &raw mut time);
    }
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Uses the CPU for `ns` nanoseconds.
pub fn spin(ns: u64) {
    let end = now_ns() + ns;
    while now_ns() < end {
        std::hint::spin_loop();
    }
}

/// Sets the timer slack of this thread and its future threads; 0 restores the default. Linux:
/// PR_SET_TIMERSLACK.
pub fn set_timer_slack(ns: u64) {
    // If it fails, sleeps end 50 us late.
    let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(ns));
}

/// Ends this process at once, without exit handlers.
pub fn exit_now(code: i32) -> ! {
    // SAFETY: no memory arguments.
    unsafe { libc::_exit(code) }
}
