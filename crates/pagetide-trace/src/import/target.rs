//! A temporary file beside the target, which becomes the target or disappears.
//!
//! Invariant: the target is a new file or replaces a regular one; a device, a pipe, a directory or a link of the
//! user's stays what it is.

use std::fs::{self, File, OpenOptions};
use std::path::{Path, PathBuf};

use crate::error::{Problem, TraceError};

/// A temporary file that is removed unless it is committed.
#[derive(Debug)]
pub(crate) struct Target {
    file: File,
    path: PathBuf,
}

/// Refuses a target that is there and is no regular file. A link is none: what it points to is not ours.
pub(crate) fn check(output: &Path) -> Result<(), TraceError> {
    let Ok(there) = fs::symlink_metadata(output) else { return Ok(()) };
    if there.is_file() {
        return Ok(());
    }
    let what = match there {
        there if there.is_dir() => "a directory",
        there if there.is_symlink() => "a link",
        _ => "a device or a pipe",
    };
    Err(TraceError::whole(Problem::NotAFile { what }).in_file(output))
}

impl Target {
    /// Makes `.NAME.PID.SUFFIX` in the directory of `output`; readable as well as writable.
    pub(crate) fn create(output: &Path, suffix: &str) -> Result<Target, TraceError> {
        let name = output.file_name().unwrap_or_default().to_string_lossy();
        let process = std::process::id();
        let mut number = 0;
        loop {
            let path = output.with_file_name(format!(".{name}.{process}.{number}.{suffix}"));
            let made = OpenOptions::new().read(true).write(true).create_new(true).open(&path);
            match made {
                Ok(file) => return Ok(Target { file, path }),
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => number += 1,
                Err(error) => return Err(TraceError::from(error).in_file(output)),
            }
        }
    }

    pub(crate) fn file(&self) -> &File {
        &self.file
    }

    /// Gives the file its name; returns its length.
    pub(crate) fn commit(self, output: &Path) -> Result<u64, TraceError> {
        // It may have become something else meanwhile.
        check(output)?;
        let name = |error: std::io::Error| TraceError::from(error).in_file(output);
        let len = self.file.metadata().map_err(name)?.len();
        fs::rename(&self.path, output).map_err(name)?;
        Ok(len)
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        // After a commit there is nothing of this name; before, there is nobody to tell.
        let _ = fs::remove_file(&self.path);
    }
}
