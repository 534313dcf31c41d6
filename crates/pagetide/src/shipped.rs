//! The experiments that the binary carries, so that their names work anywhere.
//!
//! A scenario names its traces by path, and traces are read as files; so running a shipped
//! experiment first writes it, with its traces, into a directory of its own, which goes away with
//! [`Unpacked`].

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::{env, fs, process};

/// (path below `experiments/`, content), sorted.
static FILES: &[(&str, &[u8])] = include!(concat!(env!("OUT_DIR"), "/shipped.rs"));

/// Names of the shipped experiments: their paths without `.toml`.
pub fn names() -> impl Iterator<Item = &'static str> {
    FILES.iter().filter_map(|(path, _)| path.strip_suffix(".toml"))
}

/// The shipped experiment that `text` names, with or without `.toml`.
pub fn find(text: &str) -> Option<&'static str> {
    let wanted = text.strip_suffix(".toml").unwrap_or(text);
    names().find(|name| *name == wanted)
}

/// The shipped files on disk, while this lives.
#[derive(Debug)]
pub struct Unpacked {
    directory: PathBuf,
}

impl Unpacked {
    /// Writes all shipped files into a new directory.
    pub fn new() -> io::Result<Unpacked> {
        let unpacked = Unpacked { directory: fresh_directory()? };
        for (name, content) in FILES {
            let path = unpacked.directory.join(name);
            if let Some(parent) = path.parent() {
                fs::create_dir_all(parent)?;
            }
            fs::write(path, content)?;
        }
        Ok(unpacked)
    }

    /// Path of the experiment called `name`.
    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.join(format!("{name}.toml"))
    }

    /// `text` without mention of our directory: the user never chose it.
    pub fn hide(&self, text: &str) -> String {
        let prefix = format!("{}{}", self.directory.display(), std::path::MAIN_SEPARATOR);
        text.replace(&prefix, "experiments/")
    }
}

impl Drop for Unpacked {
    fn drop(&mut self) {
        // What is left behind lies in the system's temporary directory; nothing depends on it.
        let _ = fs::remove_dir_all(&self.directory);
    }
}

/// A directory that did not exist before and that only we can write.
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
    fn unpacking_writes_everything_and_leaves_nothing() {
        let unpacked = Unpacked::new().unwrap();
        let directory = unpacked.directory.clone();
        for (name, content) in FILES {
            assert_eq!(fs::read(directory.join(name)).unwrap(), *content);
        }
        let place = directory.join("a.toml");
        assert_eq!(unpacked.hide(&format!("{}:3", place.display())), "experiments/a.toml:3");
        drop(unpacked);
        assert!(!directory.exists());
    }

    #[test]
    fn names_are_found_with_and_without_suffix() {
        for name in names() {
            assert_eq!(find(name), Some(name));
            assert_eq!(find(&format!("{name}.toml")), Some(name));
        }
        assert_eq!(find("no-such-experiment"), None);
    }
}
