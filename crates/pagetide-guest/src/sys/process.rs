//! Processes. Linux: fork(2), waitpid(2), setpriority(2).

use super::check;
use std::io;
use std::time::Duration;

/// Which side of a fork this is.
pub enum Forked {
    /// The new process.
    Child,
    /// The old one; the new one has this number.
    Parent(i32),
}

/// Makes a copy of this process, which must have a single thread.
///
/// # Errors
/// The kernel's.
pub fn fork() -> io::Result<Forked> {
    // SAFETY: the guest has no threads, so the copy is whole.
    match check(unsafe { libc::fork() }.into())? {
        0 => Ok(Forked::Child),
        pid => Ok(Forked::Parent(pid as i32)),
    }
}

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// By itself, with this code.
    Exited(i32),
    /// By a signal.
    Killed(i32),
}

/// Waits for the end of any child; `None` when a signal came first or there is no child.
pub fn wait_any() -> Option<(i32, Ended)> {
    let mut status = 0;
    // SAFETY: `status` lives over the call.
    let pid = check(unsafe { libc::waitpid(-1, &raw mut status, 0) }.into()).ok()?;
    let ended = if libc::WIFSIGNALED(status) {
        Ended::Killed(libc::WTERMSIG(status))
    } else {
        Ended::Exited(libc::WEXITSTATUS(status))
    };
    Some((pid as i32, ended))
}

/// Kills a process.
pub fn kill(pid: i32) {
    // SAFETY: no memory arguments.
    unsafe {
        libc::kill(pid, libc::SIGKILL);
    }
}

/// Ends this process when its parent ends, however that does. Linux: PR_SET_PDEATHSIG.
pub fn end_with_parent() {
    // SAFETY: no memory arguments. Without it a process may outlive a parent that was killed.
    unsafe {
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL as libc::c_ulong, 0, 0, 0);
    }
}

/// Whether a process of this number lives. For others than its parent, one that has ended lives
/// until its parent has waited for it.
pub fn lives(pid: i32) -> bool {
    // SAFETY: an all-zero siginfo_t is valid and lives over the call, which leaves the child waitable.
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
///
/// # Errors
/// The kernel's.
pub fn set_nice(nice: i8) -> io::Result<()> {
    // SAFETY: no memory arguments.
    check(unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, nice.into()) }.into()).map(drop)
}

/// Lets the kernel's OOM killer pass over this process.
pub fn spare_from_oom() {
    // Without it the killer might choose the process that reports; nothing else depends on it.
    let _ = std::fs::write("/proc/self/oom_score_adj", "-1000");
}

/// Makes a child end with its parent's choice: the killer may take it.
pub fn offer_to_oom(adj: i16) {
    let _ = std::fs::write("/proc/self/oom_score_adj", adj.to_string());
}

/// Interrupts [`wait_any`] after `after`, and again and again: the first time, nobody may be in it.
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

/// No more of [`alarm`].
pub fn end_alarm() {
    // SAFETY: an all-zero itimerval is valid and stops the timer.
    unsafe {
        let timer: libc::itimerval = std::mem::zeroed();
        libc::setitimer(libc::ITIMER_REAL, &raw const timer, std::ptr::null_mut());
    }
}

/// CPU time and faults of this process so far.
#[derive(Clone, Copy, Debug, Default)]
pub struct Usage {
    /// Microseconds in user mode.
    pub user_us: u64,
    /// Microseconds in the kernel.
    pub system_us: u64,
    /// Faults without I/O.
    pub minor_faults: u64,
    /// Faults that waited.
    pub major_faults: u64,
}

/// Linux: getrusage(2).
pub fn usage() -> Usage {
    // SAFETY: an all-zero rusage is valid and lives over the call.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_SELF, &raw mut usage);
        usage
    };
    let microseconds = |time: libc::timeval| time.tv_sec as u64 * 1_000_000 + time.tv_usec as u64;
    Usage {
        user_us: microseconds(usage.ru_utime),
        system_us: microseconds(usage.ru_stime),
        minor_faults: usage.ru_minflt as u64,
        major_faults: usage.ru_majflt as u64,
    }
}

/// Nanoseconds since boot. Linux: CLOCK_MONOTONIC.
pub fn now_ns() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` lives over the call.
    unsafe {
        libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time);
    }
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// CPU time of this process so far, all its threads, in nanoseconds. Linux: CLOCK_PROCESS_CPUTIME_ID, which is
/// exact, while the two parts of [`usage`] are told apart by the timer tick.
pub fn cpu_ns() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` lives over the call.
    unsafe {
        libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &raw mut time);
    }
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Uses the CPU for so long.
pub fn spin(ns: u64) {
    let end = now_ns() + ns;
    while now_ns() < end {
        std::hint::spin_loop();
    }
}

/// How late the kernel may end a sleep of this thread, and of those that it makes; 0: as it came.
/// Linux: PR_SET_TIMERSLACK.
pub fn set_timer_slack(ns: u64) {
    // SAFETY: no memory arguments. Without it sleeps end 50 us late.
    unsafe {
        libc::prctl(libc::PR_SET_TIMERSLACK, ns as libc::c_ulong, 0, 0, 0);
    }
}

/// Ends this process at once, without running anything on the way out.
pub fn exit_now(code: i32) -> ! {
    // SAFETY: no memory arguments.
    unsafe { libc::_exit(code) }
}
