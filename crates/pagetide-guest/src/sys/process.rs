//! Processes. Linux: fork(2), waitpid(2), setpriority(2).

use super::check;
use std::io;
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
    let mut status = 0;
    // SAFETY: `status` outlives the call.
    let pid = check(unsafe { libc::waitpid(-1, &raw mut status, 0) }.into()).ok()?;
    let ended = if libc::WIFSIGNALED(status) {
        ExitCause::Killed(libc::WTERMSIG(status))
    } else {
        ExitCause::Exited(libc::WEXITSTATUS(status))
    };
    Some((pid as i32, ended))
}

pub fn kill(pid: i32) {
    // SAFETY: no memory arguments.
    unsafe {
        libc::kill(pid, libc::SIGKILL);
    }
}

/// Ends this process when its parent ends, for any reason. Linux: PR_SET_PDEATHSIG.
pub fn end_with_parent() {
    // SAFETY: no memory arguments. Without this a process may outlive a killed parent.
    unsafe {
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL as libc::c_ulong, 0, 0, 0);
    }
}

/// Whether a process with this id lives. For processes other than its parent, a zombie counts as
/// alive until its parent has waited for it.
pub fn lives(pid: i32) -> bool {
    // SAFETY: an all-zero siginfo_t is valid and outlives the call, which leaves the child
    // waitable.
    let ended = unsafe {
        let mut info: libc::siginfo_t = std::mem::zeroed();
        let options = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
        let id = libc::id_t::try_from(pid).unwrap_or_default();
        libc::waitid(libc::P_PID, id, &raw mut info, options) == 0 && info.si_pid() == pid
    };
    // SAFETY: no memory arguments.
    !ended && unsafe { libc::kill(pid, 0) == 0 }
}

/// Sets the nice value of this process.
pub fn set_nice(nice: i8) -> io::Result<()> {
    // SAFETY: no memory arguments.
    check(unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, nice.into()) }.into()).map(drop)
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
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` outlives the call.
    unsafe {
        libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time);
    }
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// CPU time of this process and all its threads so far, in nanoseconds. Linux:
/// CLOCK_PROCESS_CPUTIME_ID, which is exact; the timer tick splits the two parts of [`usage`].
pub fn cpu_ns() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` outlives the call.
    unsafe {
        libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &raw mut time);
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
    // SAFETY: no memory arguments. Without this, sleeps end 50 us late.
    unsafe {
        libc::prctl(libc::PR_SET_TIMERSLACK, ns as libc::c_ulong, 0, 0, 0);
    }
}

/// Ends this process at once, without exit handlers.
pub fn exit_now(code: i32) -> ! {
    // SAFETY: no memory arguments.
    unsafe { libc::_exit(code) }
}
