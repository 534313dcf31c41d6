//! An output file that the user named. It is written completely or not at all.
//!
//! Invariant: an existing file is replaced only if it is a regular file and not an input of the
//! command, and only by a complete file. Devices, links and directories are never replaced.

use crate::error::CliError;
use crate::printer::Printer;
use crate::temporary::HiddenFile;
use pagetide_lab::html::page::HtmlPage;
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
    pub fn check(path: &Path, inputs: &[&Path]) -> Result<OutputFile, CliError> {
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
            Err(error) => return Err(cannot(path, &error)),
        }
        let directory = directory_of(path);
        if path.file_name().is_none() || !directory.is_dir() {
            return Err(CliError::bad_input(
                format!("cannot write {shown}: there is no directory {}", directory.display()),
                "create the directory first, or name a file elsewhere",
            ));
        }
        // Only an attempt shows whether the directory is writable.
        HiddenFile::create(path).map_err(|error| cannot(path, &error))?;
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

    /// The same for a settings file of `find`.
    pub fn settings(path: &Path, inputs: &[&Path]) -> Result<OutputFile, CliError> {
        OutputFile::of_kind(path, inputs, "a file that `find` made", b"# found by pagetide ")
    }

    /// The same for JSON output of `find`.
    pub fn json(path: &Path, inputs: &[&Path]) -> Result<OutputFile, CliError> {
        OutputFile::of_kind(path, inputs, "JSON", b"{")
    }

    fn of_kind(
        path: &Path,
        inputs: &[&Path],
        what: &str,
        beginning: &[u8],
    ) -> Result<OutputFile, CliError> {
        let output = OutputFile::check(path, inputs)?;
        let mut first = Vec::new();
        if let Ok(file) = fs::File::open(path) {
            let _ = file.take(beginning.len() as u64).read_to_end(&mut first);
        }
        if first.is_empty() || first.eq_ignore_ascii_case(beginning) {
            return Ok(output);
        }
        Err(CliError::bad_input(
            format!("{} exists and is not {what}", path.display()),
            "nothing was written; name a new file, or remove this one first",
        ))
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes the complete file, then puts it in place.
    pub fn write(&self, text: &str) -> Result<(), CliError> {
        let write = || {
            let (temporary, mut file) = HiddenFile::create(&self.path)?;
            file.write_all(text.as_bytes())?;
            file.sync_all()?;
            temporary.commit()
        };
        write().map_err(|error| cannot(&self.path, &error))
    }

    pub fn write_page(&self, page: &HtmlPage, printer: &mut Printer) -> Result<(), CliError> {
        self.write(&page.render())?;
        printer.note(&format!("the HTML report is in {}", self.path.display()));
        Ok(())
    }
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

fn cannot(path: &Path, error: &std::io::Error) -> CliError {
    CliError::bad_input(
        format!("cannot write {}: {error}", path.display()),
        "name a file in a directory that exists and is writable",
    )
}
