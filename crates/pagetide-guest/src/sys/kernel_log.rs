//! The kernel's log of its boot: what it says of itself there and nowhere else.
//!
//! Linux: syslog(2), `SYSLOG_ACTION_READ_ALL`. Invariant: reading takes nothing out of the log.

/// The kind of the call that reads what is there (`SYSLOG_ACTION_READ_ALL`).
const READ_ALL: libc::c_int = 3;
/// The kind that says how large the log can be (`SYSLOG_ACTION_SIZE_BUFFER`).
const SIZE_BUFFER: libc::c_int = 10;

/// The first line that has this text in it; `None` also if the log may not be read.
pub fn line_with(text: &str) -> Option<String> {
    // SAFETY: this kind of call takes no buffer.
    let size = unsafe { libc::klogctl(SIZE_BUFFER, std::ptr::null_mut(), 0) };
    let mut log = vec![0u8; usize::try_from(size).ok()?];
    // SAFETY: the buffer is as long as the call is told.
    let length = unsafe { libc::klogctl(READ_ALL, log.as_mut_ptr().cast(), size) };
    log.truncate(usize::try_from(length).ok()?);
    let log = String::from_utf8_lossy(&log);
    log.lines().find(|line| line.contains(text)).map(str::to_owned)
}
