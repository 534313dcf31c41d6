//! Names in a directory, and pipes, without heap allocation. Linux: openat(2), unlinkat(2),
//! fstatat(2), pipe2(2).
//!
//! Invariant: the caller owns the names, which end with NUL.

use rustix::fs::{openat, statat, unlinkat, AtFlags, Mode, OFlags};
use rustix::io::Errno;
use rustix::pipe::{pipe_with, PipeFlags};
use rustix::process::{setrlimit, Resource, Rlimit};
use std::ffi::CStr;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;

/// Creates the empty file `name` in `directory`.
pub fn create(directory: &File, name: &CStr) -> io::Result<()> {
    let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
    openat(directory, name, flags, Mode::RUSR | Mode::WUSR)?;
    Ok(())
}

/// Removes the file `name` from `directory`.
pub fn remove(directory: &File, name: &CStr) -> io::Result<()> {
    Ok(unlinkat(directory, name, AtFlags::empty())?)
}

/// Whether `directory` has an entry `name`.
pub fn exists(directory: &File, name: &CStr) -> io::Result<bool> {
    match statat(directory, name, AtFlags::empty()) {
        Ok(_) => Ok(true),
        Err(Errno::NOENT) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Opens a pipe; returns the read end and the write end.
pub fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    Ok(pipe_with(PipeFlags::CLOEXEC)?)
}

/// Allows this process `count` open files.
pub fn allow_open_files(count: u64) -> io::Result<()> {
    let limit = Rlimit { current: Some(count), maximum: Some(count) };
    Ok(setrlimit(Resource::Nofile, limit)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_and_go() {
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
    }
}
