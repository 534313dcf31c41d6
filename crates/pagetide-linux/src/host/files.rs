//! Files of a system below its root directory: `/`, or a saved copy with the same layout.
//!
//! Invariant: nothing outside the root is read, only regular files are opened (a pipe in a saved
//! copy would block), and at most [`FILE_BYTES_MAX`] of a file is read. Directories are listed in
//! the order of their names.

use super::error::HostError;
use super::note::{shown, ImportNote};
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// Maximum number of bytes read from a file. A /proc/zoneinfo for a thousand CPUs has a few MiB.
const FILE_BYTES_MAX: u64 = 16 << 20;
/// Maximum number of entries read from a directory.
const ENTRIES_MAX: usize = 65_536;

#[derive(Debug)]
pub(crate) struct HostFiles {
    root: PathBuf,
}

impl HostFiles {
    pub(crate) fn new(root: &Path) -> Result<HostFiles, HostError> {
        let refuse = |source| HostError::Root { path: root.to_owned(), source };
        let real = fs::canonicalize(root).map_err(refuse)?;
        if !fs::metadata(&real).map_err(refuse)?.is_dir() {
            return Err(refuse(io::Error::from(io::ErrorKind::NotADirectory)));
        }
        Ok(HostFiles { root: real })
    }

    /// The text of `place`, a path on the system. `None` if there is no such file; also if it is
    /// not readable, with a note.
    pub(crate) fn read(
        &self,
        place: impl AsRef<Path>,
        notes: &mut Vec<ImportNote>,
    ) -> Option<String> {
        let place = place.as_ref();
        let shown_place = || shown(&place.to_string_lossy());
        match self.try_read(place) {
            Ok((bytes, is_whole)) => {
                if !is_whole {
                    let message = format!("longer than {} MiB; the rest is not read", 16);
                    notes.push(ImportNote::new(shown_place(), message));
                }
                Some(text(bytes, shown_place, notes))
            }
            Err(error) if is_absence(&error) => None,
            Err(error) => {
                notes.push(ImportNote::new(shown_place(), format!("cannot read it: {error}")));
                None
            }
        }
    }

    fn try_read(&self, place: &Path) -> io::Result<(Vec<u8>, bool)> {
        let path = self.resolve(place)?;
        if !fs::metadata(&path)?.is_file() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a file"));
        }
        let mut bytes = Vec::new();
        File::open(&path)?.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes)?;
        let is_whole = bytes.len() as u64 <= FILE_BYTES_MAX;
        bytes.truncate(FILE_BYTES_MAX as usize);
        Ok((bytes, is_whole))
    }

    pub(crate) fn exists(&self, place: impl AsRef<Path>) -> bool {
        self.resolve(place.as_ref()).is_ok()
    }

    /// The names in the directory `place`; with `only_directories` only those of directories,
    /// without links to directories. Empty if there is no such directory.
    pub(crate) fn list(
        &self,
        place: impl AsRef<Path>,
        only_directories: bool,
        notes: &mut Vec<ImportNote>,
    ) -> Vec<PathBuf> {
        let place = place.as_ref();
        let shown_place = || shown(&place.to_string_lossy());
        let entries = match self.resolve(place).and_then(fs::read_dir) {
            Ok(entries) => entries,
            Err(error) => {
                if !is_absence(&error) {
                    notes.push(ImportNote::new(shown_place(), format!("cannot list it: {error}")));
                }
                return Vec::new();
            }
        };
        let mut names = Vec::new();
        for entry in entries.flatten() {
            if names.len() == ENTRIES_MAX {
                let message = format!("more than {ENTRIES_MAX} entries; the rest is not read");
                notes.push(ImportNote::new(shown_place(), message));
                break;
            }
            if !only_directories || entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                names.push(PathBuf::from(entry.file_name()));
            }
        }
        names.sort_unstable();
        names
    }

    /// The path of `place` with links resolved; an error if it is outside the root.
    fn resolve(&self, place: &Path) -> io::Result<PathBuf> {
        let below = place.strip_prefix("/").unwrap_or(place);
        let real = fs::canonicalize(self.root.join(below))?;
        if real.starts_with(&self.root) {
            Ok(real)
        } else {
            Err(io::Error::new(io::ErrorKind::InvalidInput, "a link leads out of the copy"))
        }
    }
}

/// Whether the file is absent, or not supported by this kernel or this group.
fn is_absence(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

/// Converts bytes to text; invalid UTF-8 is replaced, with a note.
fn text(bytes: Vec<u8>, place: impl Fn() -> String, notes: &mut Vec<ImportNote>) -> String {
    String::from_utf8(bytes).unwrap_or_else(|error| {
        let valid = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = valid.iter().filter(|byte| **byte == b'\n').count() + 1;
        notes.push(ImportNote { line: Some(line), ..ImportNote::new(place(), "not UTF-8 text") });
        String::from_utf8_lossy(error.as_bytes()).into_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A directory that is removed on drop.
    struct Place(PathBuf);

    impl Place {
        fn new(name: &str) -> Place {
            let directory = format!("pagetide-files-{name}-{}", std::process::id());
            let path = std::env::temp_dir().join(directory);
            let _ = fs::remove_dir_all(&path);
            fs::create_dir_all(path.join("root/sub")).unwrap();
            Place(path)
        }
    }

    impl Drop for Place {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn files_are_read_within_the_root() {
        let place = Place::new("read");
        let root = place.0.join("root");
        fs::write(root.join("plain"), "a\n").unwrap();
        fs::write(root.join("odd"), b"a\nb\xff\n").unwrap();
        fs::write(place.0.join("secret"), "s").unwrap();
        let files = HostFiles::new(&root).unwrap();
        let mut notes = Vec::new();
        assert_eq!(files.read("/plain", &mut notes).as_deref(), Some("a\n"));
        assert_eq!(files.read("/absent", &mut notes), None);
        assert_eq!(files.read("/plain/absent", &mut notes), None);
        assert_eq!(notes, []);
        assert_eq!(files.read("/odd", &mut notes).as_deref(), Some("a\nb\u{fffd}\n"));
        assert_eq!(notes.pop().unwrap().to_string(), "/odd:2: not UTF-8 text");
        assert_eq!(files.read("/sub", &mut notes), None);
        assert!(notes.pop().unwrap().to_string().contains("not a file"));
        assert_eq!(files.read("/../secret", &mut notes), None);
        assert!(notes.pop().unwrap().to_string().contains("leads out"));
        assert!(HostFiles::new(&root.join("plain")).is_err());
        assert!(HostFiles::new(&root.join("absent")).is_err());
    }

    #[test]
    fn long_files_are_cut() {
        let place = Place::new("long");
        let root = place.0.join("root");
        fs::write(root.join("long"), vec![b'x'; FILE_BYTES_MAX as usize + 5]).unwrap();
        let mut notes = Vec::new();
        let text = HostFiles::new(&root).unwrap().read("/long", &mut notes).unwrap();
        assert_eq!((text.len() as u64, notes.len()), (FILE_BYTES_MAX, 1));
    }

    #[cfg(unix)]
    #[test]
    fn links_stay_inside_and_end() {
        use std::os::unix::fs::symlink;
        let place = Place::new("links");
        let root = place.0.join("root");
        fs::write(place.0.join("secret"), "s").unwrap();
        fs::write(root.join("plain"), "a").unwrap();
        symlink("../secret", root.join("out")).unwrap();
        symlink("loop", root.join("loop")).unwrap();
        symlink("plain", root.join("in")).unwrap();
        symlink("sub", root.join("directory")).unwrap();
        let files = HostFiles::new(&root).unwrap();
        let mut notes = Vec::new();
        assert_eq!(files.read("/in", &mut notes).as_deref(), Some("a"));
        assert_eq!(files.read("/out", &mut notes), None);
        assert_eq!(files.read("/loop", &mut notes), None);
        assert_eq!(notes.len(), 2);
        assert_eq!(files.list("/", true, &mut notes), [PathBuf::from("sub")]);
        assert_eq!(files.list("/", false, &mut notes).len(), 6);
    }
}
