//! Mounting, loading modules, swapping on. Linux: mount(2), finit_module(2), swapon(2).

use super::{c_string, check};
use rustix::io::Errno;
use rustix::mount::MountFlags;
use std::fs::File;
use std::io;

/// Mounts `source` of type `kind` at `target`.
pub fn mount(source: &str, target: &str, kind: &str, options: &str) -> io::Result<()> {
    let options = c_string(options)?;
    Ok(rustix::mount::mount(source, target, kind, MountFlags::NOATIME, options.as_c_str())?)
}

/// Loads a module; succeeds if it is loaded already.
pub fn load_module(file: &File) -> io::Result<()> {
    match rustix::system::finit_module(file, c"", 0) {
        Err(Errno::EXIST) => Ok(()),
        other => Ok(other?),
    }
}

/// Enables swapping to `device`.
pub fn swap_on(device: &str) -> io::Result<()> {
    let device = c_string(device)?;
    // SAFETY: a string that outlives the call.
    check(unsafe { libc::swapon(device.as_ptr(), 0) }.into()).map(drop)
}
