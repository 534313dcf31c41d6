//! Sleeping on a word of shared memory. Linux: futex(2), shared between processes.

use rustix::thread::futex::{self, Flags, Timespec};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// Sleeps until `word` is woken, at most `timeout`; returns at once if its value is not `while_is`.
/// May return early, so callers check the value again.
pub fn wait(word: &AtomicU32, while_is: u32, timeout: Option<Duration>) {
    let limit = timeout.and_then(|timeout| Timespec::try_from(timeout).ok());
    let _ = futex::wait(word, Flags::empty(), while_is, limit.as_ref());
}

/// Stores `value` and wakes all sleepers on `word`.
pub fn set(word: &AtomicU32, value: u32) {
    word.store(value, Ordering::SeqCst);
    wake(word);
}

/// Wakes all sleepers on `word`.
pub fn wake(word: &AtomicU32) {
    let _ = futex::wake(word, Flags::empty(), i32::MAX as u32);
}
