//! An output file that is written during a run. It appears complete under its name, or not at all.
//!
//! A regular file is written to a hidden file next to it, which is renamed at the end, or removed
//! on failure. A pipe, terminal or other device is written directly: its reader sees lines as they
//! come.
//!
//! Invariant: an existing regular file is replaced only if this command writes files of its kind.

use crate::error::CliError;
use crate::output_file::{begins_with, foreign};
use crate::temporary::HiddenFile;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// The kind of a streamed file.
#[derive(Clone, Copy, Debug)]
pub struct StreamedKind {
    /// Name in messages, such as "events".
    pub name: &'static str,
    /// The option that names the file.
    pub option: &'static str,
    /// The beginning of such files.
    pub begins: &'static [u8],
}

#[derive(Debug)]
pub struct StreamedFile {
    /// The hidden file; `None` for a device.
    temporary: Option<HiddenFile>,
}

/// The open file. Its errors have its name.
#[derive(Debug)]
pub struct NamedFile {
    file: File,
    path: PathBuf,
}

impl Write for NamedFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes).map_err(|error| {
            io::Error::new(error.kind(), format!("{}: {error}", self.path.display()))
        })
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl StreamedFile {
    /// Creates the file before any run, so that a mistake costs no run.
    pub fn create(
        path: &Path,
        content: StreamedKind,
    ) -> Result<(StreamedFile, NamedFile), CliError> {
        let StreamedKind { name, option, begins } = content;
        if path.as_os_str() == "-" {
            return Err(CliError::bad_input(
                format!("{name} cannot go to stdout, because the results go there"),
                format!("name a file; `{option} /dev/stderr` shows the output during the run"),
            ));
        }
        let cannot = |error: io::Error| CliError::unwritable(path, &error);
        let named = |file| NamedFile { file, path: path.to_owned() };
        let metadata = fs::metadata(path);
        if metadata.as_ref().is_ok_and(|there| !there.is_file()) {
            let file = OpenOptions::new().write(true).open(path).map_err(cannot)?;
            return Ok((StreamedFile { temporary: None }, named(file)));
        }
        if metadata.is_ok() && !begins_with(path, begins) {
            return Err(foreign(path, &format!(" and is not a file of {name}")));
        }
        if metadata.is_err() && fs::symlink_metadata(path).is_ok() {
            return Err(CliError::bad_input(
                format!("{} is a dangling symbolic link", path.display()),
                "nothing was written; name a new file, or remove the link first",
            ));
        }
        // Replace the file that a link points to, not the link.
        let place = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let (temporary, file) = HiddenFile::create(&place).map_err(cannot)?;
        Ok((StreamedFile { temporary: Some(temporary) }, named(file)))
    }

    /// Renames the complete file to its final name.
    pub fn commit(self) -> io::Result<()> {
        self.temporary.map_or(Ok(()), HiddenFile::commit)
    }
}
