//! Mounting, loading modules, swapping on. Linux: mount(2), finit_module(2), swapon(2).

use super::{c_string, check};
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

/// Mounts `source` of type `kind` at `target`.
pub fn mount(source: &str, target: &str, kind: &str, options: &str) -> io::Result<()> {
    let (source, target) = (c_string(source)?, c_string(target)?);
    let (kind, options) = (c_string(kind)?, c_string(options)?);
    // SAFETY: four strings that outlive the call.
    let result = unsafe {
        libc::mount(
            source.as_ptr(),
            target.as_ptr(),
            kind.as_ptr(),
            libc::MS_NOATIME,
            options.as_ptr().cast(),
        )
    };
    check(result.into()).map(drop)
}

/// Loads a module; succeeds if it is loaded already.
pub fn load_module(file: &File) -> io::Result<()> {
    // SAFETY: the string is a constant.
    let result =
        unsafe { libc::syscall(libc::SYS_finit_module, file.as_raw_fd(), c"".as_ptr(), 0) };
    match check(result) {
        Err(error) if error.raw_os_error() == Some(libc::EEXIST) => Ok(()),
        other => other.map(drop),
    }
}

/// Enables swapping to `device`.
pub fn swap_on(device: &str) -> io::Result<()> {
    let device = c_string(device)?;
    // SAFETY: a string that outlives the call.
    check(unsafe { libc::swapon(device.as_ptr(), 0) }.into()).map(drop)
}
