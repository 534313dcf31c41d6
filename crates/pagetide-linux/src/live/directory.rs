//! A temporary directory on a disk of a live machine, with the files of the scenario.
//!
//! Invariant: it is removed when the [`TempDir`] is dropped.

use crate::disks::write_file;
use crate::error::LinuxError;
use pagetide_scenario::model::Setup;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// Fallback if the directory for temporary files is not on a disk.
const ELSEWHERE: &str = "/var/tmp";
/// File systems with files in the page cache and on a disk of this machine.
const ON_DISK: [&str; 8] = ["ext2", "ext3", "ext4", "xfs", "btrfs", "f2fs", "overlay", "bcachefs"];

/// The file system of `path`, according to /proc/self/mountinfo: the last one mounted at the
/// nearest parent.
fn file_system<'t>(mountinfo: &'t str, path: &Path) -> Option<&'t str> {
    let mounts = mountinfo.lines().filter_map(|line| {
        let (before, after) = line.split_once(" - ")?;
        Some((before.split(' ').nth(4)?, after.split(' ').next()?))
    });
    let above = mounts.filter(|(place, _)| path.starts_with(place));
    above.max_by_key(|(place, _)| place.len()).map(|(_, kind)| kind)
}

/// A directory on a disk. If there is none, any directory, and the reason.
pub(super) fn make(mountinfo: &str) -> Result<(TempDir, Option<String>), LinuxError> {
    let usual = std::env::temp_dir();
    let mut why = None;
    for place in [usual.clone(), PathBuf::from(ELSEWHERE)] {
        let real = place.canonicalize().unwrap_or_else(|_| place.clone());
        let kind = file_system(mountinfo, &real).unwrap_or("an unknown file system");
        let made = tempfile::Builder::new().prefix("pagetide-measure-").tempdir_in(&real);
        match made {
            Ok(dir) if ON_DISK.contains(&kind) => return Ok((dir, None)),
            Ok(_) => {
                let said =
                    format!("{} is on {kind}, so its files are not on a disk", place.display());
                why.get_or_insert(said);
            }
            Err(error) => {
                why.get_or_insert(format!("{}: {error}", place.display()));
            }
        }
    }
    let dir = tempfile::Builder::new().prefix("pagetide-measure-").tempdir();
    Ok((dir.map_err(|error| LinuxError::file(&usual, error))?, why))
}

/// Creates the files of a setup below `dir`, where the guest program looks for them.
pub(super) fn fill(dir: &Path, setup: &Setup) -> Result<(), LinuxError> {
    for file in &setup.files {
        let place = dir.join("disks").join(file.disk.to_string());
        std::fs::create_dir_all(&place).map_err(|error| LinuxError::file(&place, error))?;
        let path = place.join(&file.name);
        write_file(&path, file.size, file.sparse)
            .map_err(|error| LinuxError::file(&path, error))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_mount_counts() {
        let mounts = "1 0 8:1 / / rw - ext4 /dev/sda1 rw\n\
                      2 1 0:5 / /tmp rw shared:3 - tmpfs tmpfs rw\n\
                      3 1 8:2 / /tmp/disk rw - xfs /dev/sda2 rw\ngarbage\n";
        let of = |path: &str| file_system(mounts, Path::new(path));
        assert_eq!(of("/var/tmp"), Some("ext4"));
        assert_eq!(of("/tmp"), Some("tmpfs"));
        assert_eq!(of("/tmpx"), Some("ext4"));
        assert_eq!(of("/tmp/disk/a"), Some("xfs"));
        assert_eq!(file_system("", Path::new("/tmp")), None);
    }

    #[test]
    fn a_directory_without_a_disk_says_why() {
        let (dir, why) = make("").unwrap();
        assert!(dir.path().is_dir());
        assert!(why.unwrap().contains("is on an unknown file system"));
        let (dir, why) = make("1 0 8:1 / / rw - ext4 /dev/sda1 rw\n").unwrap();
        assert_eq!(why, None);
        let path = dir.path().to_owned();
        drop(dir);
        assert!(!path.exists());
    }
}
