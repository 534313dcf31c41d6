//! An output file that is written during a run. It appears complete under its name, or not at all.
//!
//! A regular file is written to a hidden file next to it, which is renamed at the end, or removed
//! on failure. A pipe, terminal or other device is written directly: its reader sees lines as they
//! come.
//!
//! Invariant: an existing regular file is replaced only if this command writes files of its kind.

use crate::error::CliError;
use crate::temporary::HiddenFile;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::path::Path;

/// The kind of a streamed file.
#[derive(Clone, Copy, Debug)]
pub struct StreamedKind {
    /// Name in messages, such as "events".
    pub name: &'static str,
    /// The option that names the file.
    pub option: &'static str,
    /// Possible beginnings of such files.
    pub begins: &'static [&'static [u8]],
}

#[derive(Debug)]
pub struct StreamedFile {
    /// The hidden file; `None` for a device.
    temporary: Option<HiddenFile>,
}

impl StreamedFile {
    /// Creates the file before any run, so that a mistake costs no run.
    pub fn create(path: &Path, content: StreamedKind) -> Result<(StreamedFile, File), CliError> {
        let StreamedKind { name, option, .. } = content;
        if path.as_os_str() == "-" {
            return Err(CliError::bad_input(
                format!("{name} cannot go to stdout, because the results go there"),
                format!("name a file; `{option} /dev/stderr` shows the output during the run"),
            ));
        }
        let cannot = |error: io::Error| {
            CliError::bad_input(
                format!("cannot write {name} to {}: {error}", path.display()),
                "name a file in a directory that exists and is writable",
            )
        };
        let metadata = fs::metadata(path);
        if metadata.as_ref().is_ok_and(|there| !there.is_file()) {
            let file = OpenOptions::new().write(true).open(path).map_err(cannot)?;
            return Ok((StreamedFile { temporary: None }, file));
        }
        if metadata.is_ok() && !may_be_replaced(path, content) {
            return Err(CliError::bad_input(
                format!("{} exists and is not a file of {name}", path.display()),
                "nothing was written; name a new file, or remove this one first",
            ));
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
        Ok((StreamedFile { temporary: Some(temporary) }, file))
    }

    /// Renames the complete file to its final name.
    pub fn commit(self) -> io::Result<()> {
        self.temporary.map_or(Ok(()), HiddenFile::commit)
    }
}

/// Whether a regular file may be replaced: it is empty, or of this kind. Anything else may be the
/// user's scenario.
fn may_be_replaced(path: &Path, content: StreamedKind) -> bool {
    let longest = content.begins.iter().map(|begin| begin.len()).max().unwrap_or(0);
    let mut first = Vec::new();
    let read = File::open(path).and_then(|file| file.take(longest as u64).read_to_end(&mut first));
    read.is_ok()
        && (first.is_empty() || content.begins.iter().any(|begin| first.starts_with(begin)))
}
