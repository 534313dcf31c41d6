//! Temporary file in the directory of the target. It is renamed to the target, or removed.
//!
//! Invariant: the target is a new file or replaces a regular file. A device, pipe, directory or
//! symbolic link is never replaced.

use std::fs::{self, File, OpenOptions};
use std::path::{Path, PathBuf};

use crate::error::{TraceError, TraceProblem};

/// A temporary file, removed on drop unless committed.
#[derive(Debug)]
pub(crate) struct TempTarget {
    file: File,
    path: PathBuf,
    output: PathBuf,
}

/// Returns an error if `output` exists and is not a regular file. A symbolic link is an error too:
/// its target may belong to someone else.
pub(crate) fn check(output: &Path) -> Result<(), TraceError> {
    let Ok(there) = fs::symlink_metadata(output) else { return Ok(()) };
    if there.is_file() {
        return Ok(());
    }
    let what = match there {
        there if there.is_dir() => "a directory",
        there if there.is_symlink() => "a symbolic link",
        _ => "a device or a pipe",
    };
    Err(TraceError::whole(TraceProblem::NotAFile { what }).in_file(output))
}

impl TempTarget {
    /// Creates `.NAME.PID.NUMBER.SUFFIX` in the directory of `output`, for reading and writing.
    pub(crate) fn create(output: &Path, suffix: &str) -> Result<TempTarget, TraceError> {
        let name = output.file_name().unwrap_or_default().to_string_lossy();
        let process = std::process::id();
        let mut number = 0;
        loop {
            let path = output.with_file_name(format!(".{name}.{process}.{number}.{suffix}"));
            let made = OpenOptions::new().read(true).write(true).create_new(true).open(&path);
            match made {
                Ok(file) => return Ok(TempTarget { file, path, output: output.to_owned() }),
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => number += 1,
                Err(error) => return Err(TraceError::from(error).in_file(output)),
            }
        }
    }

    pub(crate) fn file(&self) -> &File {
        &self.file
    }

    /// Names the output in an error of the system, so that it does not pass for one of the input.
    pub(crate) fn named<T, E: Into<TraceError>>(
        &self,
        result: Result<T, E>,
    ) -> Result<T, TraceError> {
        result.map_err(Into::into).map_err(|error: TraceError| match error.problem {
            TraceProblem::Io { .. } => error.in_file(&self.output),
            _ => error,
        })
    }

    /// Renames the file to the output; returns its length.
    pub(crate) fn commit(self) -> Result<u64, TraceError> {
        // The output may have changed since the first check.
        check(&self.output)?;
        let len = self.named(self.file.metadata())?.len();
        self.named(fs::rename(&self.path, &self.output))?;
        Ok(len)
    }
}

impl Drop for TempTarget {
    fn drop(&mut self) {
        // After a commit the file does not exist. Otherwise drop cannot report an error.
        let _ = fs::remove_file(&self.path);
    }
}
