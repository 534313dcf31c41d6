//! An output file that the user named. It is written completely or not at all.
//!
//! Invariant: an existing file is replaced only if it is a regular file that this program writes
//! (or empty) and not an input of the command, and only by a complete file. Devices, links and
//! directories are never replaced.

use crate::error::CliError;
use crate::printer::Printer;
use crate::temporary::HiddenFile;
use pagetide_html::page::HtmlPage;
use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

/// An output path, checked before any work is done.
#[derive(Debug)]
pub struct OutputFile {
    path: PathBuf,
}

impl OutputFile {
    /// Checks that `path` may be written; `inputs` may not be overwritten.
    fn check(path: &Path, inputs: &[&Path]) -> Result<OutputFile, CliError> {
        let shown = path.display();
        if path.as_os_str() == "-" {
            return Err(CliError::bad_input(
                "this file cannot go to stdout, because the results go there",
                "name a file",
            ));
        }
        match fs::symlink_metadata(path) {
            Ok(there) if !there.is_file() => {
                return Err(CliError::bad_input(
                    format!("{shown} exists and is not a regular file"),
                    "nothing was written; name a new file, or a regular file to replace",
                ));
            }
            Ok(_) => {
                let same =
                    |input: &&Path| fs::canonicalize(input).ok() == fs::canonicalize(path).ok();
                if inputs.iter().any(same) {
                    return Err(CliError::bad_input(
                        format!("{shown} is an input of this command"),
                        "nothing was written; name another file",
                    ));
                }
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => return Err(CliError::unwritable(path, &error)),
        }
        let directory = directory_of(path);
        if path.file_name().is_none() || !directory.is_dir() {
            return Err(CliError::bad_input(
                format!("cannot write {shown}: there is no directory {}", directory.display()),
                "create the directory first, or name a file elsewhere",
            ));
        }
        // Only an attempt shows whether the directory is writable.
        HiddenFile::create(path).map_err(|error| CliError::unwritable(path, &error))?;
        Ok(OutputFile { path: path.to_owned() })
    }

    /// As [`OutputFile::check`]; in addition, an existing file must be an HTML page or empty. This
    /// protects scenarios against a mistyped name.
    pub fn page(path: &Path, inputs: &[&Path]) -> Result<OutputFile, CliError> {
        OutputFile::of_kind(path, inputs, "an HTML page", b"<!DOCTYPE html>")
    }

    /// The same for OpenMetrics text.
    pub fn openmetrics(path: &Path, inputs: &[&Path]) -> Result<OutputFile, CliError> {
        OutputFile::of_kind(path, inputs, "OpenMetrics text", b"# TYPE ")
    }

    /// The same for a file of `find` or `fuzz`.
    pub fn settings(path: &Path, inputs: &[&Path]) -> Result<OutputFile, CliError> {
        OutputFile::of_kind(path, inputs, "a file that a search made", b"# found by pagetide ")
    }

    /// The same for JSON output of `find`.
    pub fn json(path: &Path, inputs: &[&Path]) -> Result<OutputFile, CliError> {
        OutputFile::of_kind(path, inputs, "JSON", b"{")
    }

    /// The same for a page trace.
    pub fn trace(path: &Path, inputs: &[&Path]) -> Result<OutputFile, CliError> {
        OutputFile::of_kind(path, inputs, "a page trace", &pagetide_trace::format::MAGIC)
    }

    /// The same for a page of the manual.
    pub fn manual(path: &Path) -> Result<OutputFile, CliError> {
        OutputFile::of_kind(path, &[], "a page of the manual", b".ie \\n(.g .ds Aq")
    }

    /// A new file: an existing one may be a scenario that the user has edited.
    pub fn new_file(path: &Path) -> Result<OutputFile, CliError> {
        let output = OutputFile::check(path, &[])?;
        match path.exists() {
            false => Ok(output),
            true => Err(foreign(path, "")),
        }
    }

    fn of_kind(
        path: &Path,
        inputs: &[&Path],
        what: &str,
        beginning: &[u8],
    ) -> Result<OutputFile, CliError> {
        let output = OutputFile::check(path, inputs)?;
        match begins_with(path, beginning) {
            true => Ok(output),
            false => Err(foreign(path, &format!(" and is not {what}"))),
        }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes the complete file, then puts it in place.
    pub fn write(&self, content: impl AsRef<[u8]>) -> Result<(), CliError> {
        let write = || {
            let (temporary, mut file) = HiddenFile::create(&self.path)?;
            file.write_all(content.as_ref())?;
            file.sync_all()?;
            temporary.commit()
        };
        write().map_err(|error| CliError::unwritable(&self.path, &error))
    }

    pub fn write_page(&self, page: &HtmlPage, printer: &mut Printer) -> Result<(), CliError> {
        self.write(page.render())?;
        printer.note(&format!("the HTML report is in {}", self.path.display()));
        Ok(())
    }
}

/// Whether an existing file is empty or begins with this, in any case of letters. A file that is
/// absent does too.
pub fn begins_with(path: &Path, beginning: &[u8]) -> bool {
    let (mut first, length) = (Vec::new(), beginning.len() as u64);
    match fs::File::open(path).and_then(|it| it.take(length).read_to_end(&mut first)) {
        Ok(0) => true,
        Ok(_) => first.eq_ignore_ascii_case(beginning),
        Err(error) => error.kind() == std::io::ErrorKind::NotFound,
    }
}

/// The refusal to replace a file that this program did not write.
pub fn foreign(path: &Path, why: &str) -> CliError {
    CliError::bad_input(
        format!("{} exists{why}", path.display()),
        "nothing was written; name a new file, or remove this one first",
    )
}

/// Checks that an HTML page may be written to `path`, as `--html` does. The error has two lines, a
/// message and `hint: ...`.
pub fn check_page(path: &Path) -> Result<(), String> {
    OutputFile::page(path, &[]).map(drop).map_err(|error| error.to_string())
}

/// Writes an HTML page to `path`, if [`check_page`] allows it.
pub fn write_page(path: &Path, page: &str) -> Result<(), String> {
    let write = || OutputFile::page(path, &[])?.write(page);
    write().map_err(|error| error.to_string())
}

/// Refuses two outputs of one command that name the same file. Each output comes with its option.
pub fn distinct(outputs: &[(&str, Option<&Path>)]) -> Result<(), CliError> {
    let mut seen: Vec<(&str, PathBuf)> = Vec::new();
    for (option, path) in outputs {
        let Some(path) = path.filter(|path| !is_device(path)) else { continue };
        let directory = fs::canonicalize(directory_of(path));
        let place = directory.map_or_else(
            |_| path.to_owned(),
            |directory| directory.join(path.file_name().unwrap_or_default()),
        );
        if let Some((other, _)) = seen.iter().find(|(_, known)| *known == place) {
            return Err(CliError::bad_input(
                format!("{other} and {option} name the same file, {}", path.display()),
                "nothing was written; give each its own file",
            ));
        }
        seen.push((option, place));
    }
    Ok(())
}

/// A terminal, pipe or other device, which several outputs may share.
fn is_device(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|there| !there.is_file() && !there.is_dir())
}

fn directory_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}
