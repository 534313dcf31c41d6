//! The experiments that the binary carries, so that their names work in any directory.
//!
//! A scenario names its base, traces and object mixes by path, and they are read as files. A loaded
//! shipped experiment therefore has them in a temporary directory during the lifetime of
//! [`ShippedFiles`].

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::{env, fs, process};

/// (path below `experiments/`, content); files at the top come first.
static FILES: &[(&str, &[u8])] = include!(concat!(env!("OUT_DIR"), "/shipped.rs"));

/// Names of the shipped experiments.
pub fn names() -> impl Iterator<Item = &'static str> {
    FILES.iter().filter_map(|(path, _)| name_of(path))
}

/// The name of the experiment in this file, if it is one. Traces and object mixes are not
/// experiments.
fn name_of(path: &'static str) -> Option<&'static str> {
    path.strip_suffix(".toml").filter(|name| !name.contains("objects/"))
}

/// The name of the shipped experiment that `text` names, with or without `.toml`.
pub fn find(text: &str) -> Option<&'static str> {
    let wanted = text.strip_suffix(".toml").unwrap_or(text);
    names().find(|name| *name == wanted)
}

/// The scenario of the shipped experiment `name`.
///
/// # Panics
/// If there is no such experiment; use [`find`] first.
pub fn text(name: &str) -> &'static str {
    let is_wanted = |path: &str| path.strip_suffix(".toml") == Some(name);
    let file = FILES.iter().find(|(path, _)| is_wanted(path));
    let (_, content) = file.expect("only names of shipped experiments come here");
    str::from_utf8(content).expect("a test has loaded every shipped experiment")
}

/// The shipped experiments, traces and object mixes on disk; removed on drop.
#[derive(Debug)]
pub struct ShippedFiles {
    root: PathBuf,
    /// Process id of the creator. A forked process does not remove the files.
    owner: u32,
}

impl ShippedFiles {
    /// Writes all of them below a new directory.
    ///
    /// # Errors
    /// The system's temporary directory is not writable.
    pub fn unpack() -> io::Result<ShippedFiles> {
        let files = ShippedFiles { root: fresh_directory()?, owner: process::id() };
        for (name, content) in FILES {
            let path = files.root.join(name);
            if let Some(parent) = path.parent() {
                fs::create_dir_all(parent)?;
            }
            fs::write(path, content)?;
        }
        Ok(files)
    }

    /// The file of experiment `name`.
    pub fn path_of(&self, name: &str) -> PathBuf {
        self.root.join(format!("{name}.toml"))
    }

    /// The directory that paths in experiment `name` are relative to.
    pub fn directory_of(&self, name: &str) -> PathBuf {
        let scenario = self.root.join(name);
        scenario.parent().unwrap_or(&self.root).to_path_buf()
    }
}

impl Drop for ShippedFiles {
    fn drop(&mut self) {
        if self.owner != process::id() {
            return;
        }
        // Files that cannot be removed stay in the system's temporary directory and do no harm.
        let _ = fs::remove_dir_all(&self.root);
    }
}

/// A new directory that only this user can write to.
fn fresh_directory() -> io::Result<PathBuf> {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    loop {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = env::temp_dir().join(format!("pagetide-{}-{number}", process::id()));
        match make_private(&path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            result => return result.map(|()| path),
        }
    }
}

#[cfg(unix)]
fn make_private(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    fs::DirBuilder::new().mode(0o700).create(path)
}

#[cfg(not(unix))]
fn make_private(path: &Path) -> io::Result<()> {
    fs::create_dir(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_there_while_they_are_needed() {
        let files = ShippedFiles::unpack().unwrap();
        let root = files.root.clone();
        assert!(root.is_dir());
        for (path, content) in FILES {
            assert!(fs::read(root.join(path)).is_ok_and(|it| it == *content), "{path}");
        }
        assert_eq!(files.directory_of("truth/seq2x"), root.join("truth"));
        assert_eq!(files.directory_of("compiler-trace"), root);
        drop(files);
        assert!(!root.exists());
    }

    #[test]
    fn names_are_found_with_and_without_suffix() {
        assert!(names().count() > 0);
        for name in names() {
            assert_eq!(find(name), Some(name));
            assert_eq!(find(&format!("{name}.toml")), Some(name));
            assert!(["[machine]", "base = "].iter().any(|key| text(name).contains(key)), "{name}");
        }
        assert_eq!(find("no-such-experiment"), None);
    }
}
