//! Sleeping on a word of shared memory. Linux: futex(2), shared between processes.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// Sleeps until `word` is woken, at most `timeout`; returns at once if its value is not `while_is`.
/// May return early, so callers check the value again.
pub fn wait(word: &AtomicU32, while_is: u32, timeout: Option<Duration>) {
    let limit = timeout.map(|timeout| libc::timespec {
        tv_sec: timeout.as_secs() as libc::time_t,
        tv_nsec: timeout.subsec_nanos().into(),
    });
    let limit = limit.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    // SAFETY: `word` and `limit` outlive the call.
    unsafe {
        libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAIT, while_is, limit, 0, 0);
    }
}

/// Stores `value` and wakes all sleepers on `word`.
pub fn set(word: &AtomicU32, value: u32) {
    word.store(value, Ordering::SeqCst);
    wake(word);
}

/// Wakes all sleepers on `word`.
pub fn wake(word: &AtomicU32) {
    // SAFETY: `word` outlives the call.
    unsafe {
        libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE, i32::MAX, 0, 0, 0);
    }
}
