//! A hidden temporary file that becomes an output file.
//!
//! Invariant: it gets its final name when it is complete, or is removed, however the command ends
//! (except by `kill -9`).

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Hidden files of this process, for an exit that drops nothing.
static UNDER_WAY: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

#[derive(Debug)]
pub struct HiddenFile {
    path: PathBuf,
    /// The final path.
    place: PathBuf,
}

impl HiddenFile {
    /// Creates a hidden file next to `place`, open for writing. An existing file is not touched.
    pub fn create(place: &Path) -> io::Result<(HiddenFile, File)> {
        let name = place.file_name().unwrap_or_default().to_string_lossy();
        let process = std::process::id();
        let mut under_way = under_way();
        // A killed process may have had the same process id.
        for attempt in 0..16 {
            let path = place.with_file_name(format!(".{name}.pagetide-{process}-{attempt}"));
            match OpenOptions::new().write(true).create_new(true).open(&path) {
                Ok(file) => {
                    under_way.push(path.clone());
                    return Ok((HiddenFile { path, place: place.to_owned() }, file));
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }

    /// Renames the complete file to its final name.
    pub fn commit(self) -> io::Result<()> {
        fs::rename(&self.path, &self.place)
    }
}

impl Drop for HiddenFile {
    fn drop(&mut self) {
        let mut under_way = under_way();
        // After a commit the path does not exist, or belongs to another process.
        let _ = fs::remove_file(&self.path);
        under_way.retain(|path| *path != self.path);
    }
}

/// Removes all hidden files before the process exits. While the returned value lives, no file can
/// be created.
pub fn remove_all() -> impl Sized {
    let under_way = under_way();
    for path in under_way.iter() {
        let _ = fs::remove_file(path);
    }
    under_way
}

fn under_way() -> MutexGuard<'static, Vec<PathBuf>> {
    UNDER_WAY.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn a_file_is_complete_or_not_there() {
        let directory =
            std::env::temp_dir().join(format!("pagetide-under-way-{}", std::process::id()));
        fs::create_dir(&directory).unwrap();
        let place = directory.join("out");
        let names = || fs::read_dir(&directory).unwrap().count();
        drop(HiddenFile::create(&place).unwrap());
        assert_eq!(names(), 0);

        // The hidden file of another process is not touched.
        let hidden = directory.join(format!(".out.pagetide-{}-0", std::process::id()));
        fs::write(&hidden, "another's").unwrap();
        let (temporary, mut file) = HiddenFile::create(&place).unwrap();
        file.write_all(b"all").unwrap();
        temporary.commit().unwrap();
        assert_eq!(fs::read_to_string(&place).unwrap(), "all");
        assert_eq!(fs::read_to_string(&hidden).unwrap(), "another's");
        assert_eq!(names(), 2);

        // A process that exits without dropping anything.
        let half_done = HiddenFile::create(&place).unwrap();
        assert_eq!(names(), 3);
        drop(remove_all());
        assert_eq!(names(), 2);
        drop(half_done);
        fs::remove_dir_all(&directory).unwrap();
    }
}
