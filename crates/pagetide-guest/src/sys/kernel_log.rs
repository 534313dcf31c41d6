//! The kernel log, which is the only source of some information about boot.
//!
//! Linux: syslog(2), `SYSLOG_ACTION_READ_ALL`. Invariant: reading does not clear the log.

/// `SYSLOG_ACTION_READ_ALL`: reads the whole log.
const READ_ALL: libc::c_int = 3;
/// `SYSLOG_ACTION_SIZE_BUFFER`: returns the size of the log.
const SIZE_BUFFER: libc::c_int = 10;

/// The first line that contains this text; `None` also if the log is not readable.
pub fn line_with(text: &str) -> Option<String> {
    // SAFETY: this action uses no buffer.
    let size = unsafe { libc::klogctl(SIZE_BUFFER, std::ptr::null_mut(), 0) };
    let mut log = vec![0u8; usize::try_from(size).ok()?];
    // SAFETY: the buffer has the given length.
    let length = unsafe { libc::klogctl(READ_ALL, log.as_mut_ptr().cast(), size) };
    log.truncate(usize::try_from(length).ok()?);
    let log = String::from_utf8_lossy(&log);
    log.lines().find(|line| line.contains(text)).map(str::to_owned)
}
