//! Names in a directory, and pipes, without heap allocation. Linux: openat(2), unlinkat(2),
//! fstatat(2), pipe2(2), close(2).
//!
//! Invariant: the caller owns the names, which end with NUL. File descriptors opened here are
//! closed here or passed to the caller.

use super::check;
use std::ffi::CStr;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

/// Creates the empty file `name` in `directory`.
pub fn create(directory: &File, name: &CStr) -> io::Result<()> {
    let flags = libc::O_CREAT | libc::O_EXCL | libc::O_WRONLY | libc::O_CLOEXEC;
    // SAFETY: a string that outlives the call.
    let opened = unsafe { libc::openat(directory.as_raw_fd(), name.as_ptr(), flags, 0o600) };
    close(check(opened.into())? as i32)
}

/// Removes the file `name` from `directory`.
pub fn remove(directory: &File, name: &CStr) -> io::Result<()> {
    // SAFETY: a string that outlives the call.
    check(unsafe { libc::unlinkat(directory.as_raw_fd(), name.as_ptr(), 0) }.into()).map(drop)
}

/// Whether `directory` has an entry `name`.
pub fn exists(directory: &File, name: &CStr) -> io::Result<bool> {
    // SAFETY: an all-zero stat is valid and outlives the call, as does the string.
    let found = unsafe {
        let mut stat: libc::stat = std::mem::zeroed();
        libc::fstatat(directory.as_raw_fd(), name.as_ptr(), &raw mut stat, 0)
    };
    match check(found.into()) {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// Opens a pipe; returns the read end and the write end.
pub fn pipe() -> io::Result<[i32; 2]> {
    let mut ends = [-1; 2];
    // SAFETY: the array has room for two descriptors.
    check(unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) }.into())?;
    Ok(ends)
}

/// Closes a file descriptor of this process.
pub fn close(fd: i32) -> io::Result<()> {
    // SAFETY: no owning type has this descriptor.
    check(unsafe { libc::close(fd) }.into()).map(drop)
}

/// Allows this process `count` open files.
pub fn allow_open_files(count: u64) -> io::Result<()> {
    let limit = libc::rlimit { rlim_cur: count, rlim_max: count };
    // SAFETY: a limit that outlives the call.
    check(unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit) }.into()).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_and_go_and_pipes_have_two_ends() {
        let path = std::env::temp_dir().join(format!("pagetide-names-{}", std::process::id()));
        std::fs::create_dir(&path).unwrap();
        let directory = File::open(&path).unwrap();
        assert!(!exists(&directory, c"0.0").unwrap());
        create(&directory, c"0.0").unwrap();
        assert!(exists(&directory, c"0.0").unwrap());
        assert!(create(&directory, c"0.0").is_err(), "each name is created once");
        remove(&directory, c"0.0").unwrap();
        assert!(remove(&directory, c"0.0").is_err());
        std::fs::remove_dir(&path).unwrap();
        let [read, write] = pipe().unwrap();
        assert_ne!(read, write);
        close(read).unwrap();
        close(write).unwrap();
    }
}
