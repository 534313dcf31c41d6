//! Images of the guest's disks: an ext4 file system with the scenario's files, and the swap area.
//!
//! Files have real blocks (nonzero bytes) or only holes, as the scenario says. The file system has
//! no journal: the work of jbd2 is not part of the comparison.
//!
//! Images are sparse files. QEMU writes to overlays of them, so every run starts with unchanged
//! images.

use crate::error::LinuxError;
use pagetide_scenario::model::Setup;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Additional space on a disk, for files that grow. Images are sparse, so it costs nothing.
const ROOM: u64 = 64 << 30;
/// Maximum size of files with blocks, which must be copied on the host.
const CONTENTS_MAX: u64 = 256 << 30;
/// Page size of the guest's kernel (x86-64).
pub(crate) const PAGE_SIZE: u64 = 4096;
const SIGINT: i32 = 2;

/// Creates the image of disk number `disk` in `dir`.
pub fn file_system(setup: &Setup, disk: usize, dir: &Path) -> Result<PathBuf, LinuxError> {
    let contents = dir.join(format!("contents{disk}"));
    std::fs::create_dir(&contents).map_err(|error| LinuxError::file(&contents, error))?;
    let mut total: u64 = 0;
    for file in setup.files.iter().filter(|file| file.disk == disk) {
        let path = contents.join(&file.name);
        if !file.sparse {
            total = total.saturating_add(file.size);
        }
        if total > CONTENTS_MAX {
            return Err(LinuxError::Scenario(format!(
                "its files have more than {} GiB of blocks",
                CONTENTS_MAX >> 30
            )));
        }
        write_file(&path, file.size, file.sparse)
            .map_err(|error| LinuxError::file(&path, error))?;
    }
    let image = dir.join(format!("disk{disk}.img"));
    sparse_file(&image, total.saturating_add(ROOM))?;
    // -N: an inode for each file and some more. By default mkfs creates one for every 16 KiB.
    let inodes = setup.files.len() + 1024;
    let output = Command::new("mkfs.ext4")
        .args(["-q", "-F", "-m", "0", "-b", "4096", "-O", "^has_journal"])
        .args(["-E", "lazy_itable_init=1,nodiscard", "-N", &inodes.to_string(), "-d"])
        .arg(&contents)
        .arg(&image)
        .env("PATH", search_path())
        .output()
        .map_err(|error| LinuxError::NoProgram { program: "mkfs.ext4".into(), error })?;
    // ^C on a terminal also reaches mkfs.
    if output.status.signal() == Some(SIGINT) {
        return Err(LinuxError::Cancelled);
    }
    if !output.status.success() {
        return Err(LinuxError::Program {
            program: "mkfs.ext4".into(),
            message: String::from_utf8_lossy(&output.stderr).trim().to_owned(),
        });
    }
    std::fs::remove_dir_all(&contents).map_err(|error| LinuxError::file(&contents, error))?;
    Ok(image)
}

/// mkfs is in an sbin directory, which may be missing in PATH.
fn search_path() -> String {
    let path = std::env::var("PATH").unwrap_or_default();
    format!("{path}:/usr/sbin:/sbin")
}

pub(crate) fn write_file(path: &Path, size: u64, sparse: bool) -> io::Result<()> {
    let file = File::create(path)?;
    if sparse {
        return file.set_len(size);
    }
    // mkfs skips blocks of zeroes, so write nonzero bytes.
    let block = [0xa5u8; 1 << 16];
    let mut writer = BufWriter::new(file);
    let mut left = size;
    while left > 0 {
        let piece = left.min(block.len() as u64) as usize;
        writer.write_all(&block[..piece])?;
        left -= piece as u64;
    }
    writer.flush()
}

fn sparse_file(path: &Path, size: u64) -> Result<File, LinuxError> {
    let make = || {
        let file = File::create(path)?;
        file.set_len(size)?;
        Ok(file)
    };
    make().map_err(|error| LinuxError::file(path, error))
}

/// Creates the image `name` of a swap area of `size` bytes in `dir`. Linux: mkswap(8), version 1. Page 0 is a header,
/// and the size in pages includes it.
pub fn swap(name: &str, size: u64, dir: &Path) -> Result<PathBuf, LinuxError> {
    let path = dir.join(format!("{name}.img"));
    // The simulator's area has `size` bytes of slots; the kernel's has a header in addition.
    let pages = size / PAGE_SIZE + 1;
    let mut file = sparse_file(&path, pages * PAGE_SIZE)?;
    let mut header = vec![0u8; PAGE_SIZE as usize];
    header[1024..1028].copy_from_slice(&1u32.to_le_bytes());
    let last_page = u32::try_from(pages - 1)
        .map_err(|_| LinuxError::Scenario("its swap area is larger than 16 TiB".into()))?;
    header[1028..1032].copy_from_slice(&last_page.to_le_bytes());
    header[PAGE_SIZE as usize - 10..].copy_from_slice(b"SWAPSPACE2");
    file.write_all(&header).map_err(|error| LinuxError::file(&path, error))?;
    Ok(path)
}
