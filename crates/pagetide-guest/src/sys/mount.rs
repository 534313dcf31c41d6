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

/// `SWAP_FLAG_PREFER`: the low bits of the flags are the priority.
const SWAP_FLAG_PREFER: i32 = 0x8000;

/// Enables swapping to `device`. Without a priority the kernel chooses one below those in use.
pub fn swap_on(device: &str, priority: Option<u16>) -> io::Result<()> {
    let device = c_string(device)?;
    let flags = priority.map_or(0, |priority| SWAP_FLAG_PREFER | i32::from(priority));
    // SAFETY: a string that outlives the call.
    check(unsafe { libc::swapon(device.as_ptr(), flags) }.into()).map(drop)
}
