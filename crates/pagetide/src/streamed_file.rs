//! A file that is written while a run goes on: complete under its name, or not there.
//!
//! What is written goes to a hidden file beside it, which takes the name when all is written, and is removed otherwise.
//! A pipe, a terminal or another device is written to as it is: its reader sees lines as they come.
//!
//! Invariant: a regular file that is there already is replaced only if it is one that this command writes.

use crate::error::CliError;
use crate::temporary::Temporary;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::path::Path;

/// What the file is to have.
#[derive(Clone, Copy, Debug)]
pub struct Content {
    /// In messages: "events".
    pub name: &'static str,
    /// The option that names the file.
    pub option: &'static str,
    /// Beginnings of files of the kind.
    pub begins: &'static [&'static [u8]],
}

/// A file under way.
#[derive(Debug)]
pub struct StreamedFile {
    /// Where it is written; `None`: it is no regular file.
    temporary: Option<Temporary>,
}

impl StreamedFile {
    /// Makes the file, before any run: a mistake is to cost none.
    pub fn create(path: &Path, content: Content) -> Result<(StreamedFile, File), CliError> {
        let Content { name, option, .. } = content;
        if path.as_os_str() == "-" {
            return Err(CliError::bad_input(
                format!("{name} cannot go to stdout, where the results go"),
                format!("name a file; `{option} /dev/stderr` shows them as they come"),
            ));
        }
        let cannot = |error: io::Error| {
            CliError::bad_input(
                format!("cannot write {name} to {}: {error}", path.display()),
                "give a file in a directory that is there and may be written",
            )
        };
        let metadata = fs::metadata(path);
        if metadata.as_ref().is_ok_and(|there| !there.is_file()) {
            let file = OpenOptions::new().write(true).open(path).map_err(cannot)?;
            return Ok((StreamedFile { temporary: None }, file));
        }
        if metadata.is_ok() && !may_be_replaced(path, content) {
            return Err(CliError::bad_input(
                format!("{} is there, and is not a file of {name}", path.display()),
                "nothing was written; name a new file, or remove this one first",
            ));
        }
        if metadata.is_err() && fs::symlink_metadata(path).is_ok() {
            return Err(CliError::bad_input(
                format!("{} is a link that leads nowhere", path.display()),
                "nothing was written; name a new file, or remove the link first",
            ));
        }
        // The file that a link leads to is replaced, not the link.
        let place = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let (temporary, file) = Temporary::create(&place).map_err(cannot)?;
        Ok((StreamedFile { temporary: Some(temporary) }, file))
    }

    /// All is written: the file gets its name.
    pub fn commit(self) -> io::Result<()> {
        self.temporary.map_or(Ok(()), Temporary::commit)
    }
}

/// Whether a regular file may be replaced: it is empty, or of the kind. Anything else may be the user's scenario.
fn may_be_replaced(path: &Path, content: Content) -> bool {
    let longest = content.begins.iter().map(|begin| begin.len()).max().unwrap_or(0);
    let mut first = Vec::new();
    let read = File::open(path).and_then(|file| file.take(longest as u64).read_to_end(&mut first));
    read.is_ok()
        && (first.is_empty() || content.begins.iter().any(|begin| first.starts_with(begin)))
}
