//! Everything unsafe of the guest: system calls and ports.
//!
//! Invariant: a function here is safe to call with any arguments, or says what it wants.

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

/// Turns the -1 of a system call into the error that it left.
pub fn check(result: libc::c_long) -> io::Result<libc::c_long> {
    if result == -1 {
        return Err(io::Error::last_os_error());
    }
    Ok(result)
}

/// A path or name for a system call.
///
/// # Errors
/// When it has a zero byte in it.
pub fn c_string(text: &str) -> io::Result<CString> {
    CString::new(text).map_err(|_| io::Error::from_raw_os_error(libc::EINVAL))
}
