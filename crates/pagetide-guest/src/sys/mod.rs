//! All unsafe code of the guest: system calls and ports.
//!
//! Invariant: the functions are safe for any arguments, or state their requirements.

pub mod futex;
pub mod kernel_log;
pub mod memory;
pub mod mount;
pub mod names;
pub mod perf;
pub mod port;
pub mod process;

use std::ffi::CString;
use std::io;

/// Converts the -1 of a system call to its errno.
pub fn check(result: libc::c_long) -> io::Result<libc::c_long> {
    if result == -1 {
        return Err(io::Error::last_os_error());
    }
    Ok(result)
}

/// Converts a path or a name for a system call.
/// Fails if the text contains a NUL.
pub fn c_string(text: &str) -> io::Result<CString> {
    CString::new(text).map_err(|_| io::Error::from_raw_os_error(libc::EINVAL))
}
