//! The names and pipes of a task: kernel objects created one at a time.
//!
//! Files are on a separate tmpfs; missing names are looked up in the root directory of the first
//! disk. A name is `TASK.NUMBER`, short enough to be stored within the dentry. Invariant:
//! everything else that a task needs exists before it enters its group, so all new memory is for
//! the kernel's objects.

use crate::perform::disk_path;
use crate::report::line;
use crate::sys::mount::mount;
use crate::sys::names;
use pagetide_scenario::model::kernel_objects::PAGE_CACHE;
use pagetide_scenario::model::{Setup, Workload};
use std::ffi::CStr;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Mount point of the tmpfs.
const NAMES: &str = "/names";
/// Maximum number of open files of a process (fs.nr_open).
const OPEN_FILES_MAX: u64 = 1 << 20;
/// The kernel's caches; each directory has a file `shrink`.
const CACHES: &str = "/sys/kernel/slab";
/// Several RCU grace periods, and time for their callbacks.
const GRACE: Duration = Duration::from_millis(200);

/// Mounts the tmpfs for the setup's names.
pub fn prepare(setup: &Setup) -> Result<(), String> {
    if !setup.has_objects() {
        return Ok(());
    }
    let mounted = fs::create_dir_all(NAMES)
        .and_then(|()| mount("tmpfs", NAMES, "tmpfs", "size=0,nr_inodes=0"));
    mounted.map_err(|error| format!("mounting {NAMES}: {error}"))
}

/// The open files `shrink` of the kernel's caches. They are opened early, because opening allocates
/// objects.
#[derive(Debug, Default)]
pub struct ShrinkFiles(Vec<File>);

impl ShrinkFiles {
    /// Opens the files of the page cache's caches or, if tasks create objects, of all caches.
    pub fn open(setup: &Setup) -> ShrinkFiles {
        let open = || {
            let directories: Vec<PathBuf> = if setup.has_objects() {
                let entries = fs::read_dir(CACHES)?;
                entries.map(|entry| Ok(entry?.path())).collect::<io::Result<_>>()?
            } else {
                // A cache may be merged with another one, under that one's name.
                let all = PAGE_CACHE.iter().map(|name| Path::new(CACHES).join(name));
                all.filter(|cache| cache.exists()).collect()
            };
            let file = |at: &PathBuf| OpenOptions::new().write(true).open(at.join("shrink"));
            directories.iter().map(file).collect::<io::Result<Vec<File>>>()
        };
        ShrinkFiles(open().unwrap_or_else(|error| {
            line(format_args!("@lacks shrinking the caches of objects: {error}"));
            Vec::new()
        }))
    }

    /// Makes the kernel free all empty slabs and flush the CPUs' slabs, after waiting for objects
    /// that RCU frees late. Returns false if this kernel cannot do it. Linux: writing to
    /// /sys/kernel/slab/CACHE/shrink flushes the slabs of all CPUs.
    pub fn flush_caches(&self) -> bool {
        if self.0.is_empty() {
            return false;
        }
        std::thread::sleep(GRACE);
        // Ignore a failed write: opening the file succeeded before.
        self.0.iter().for_each(|file| drop(file.write_at(b"1", 0)));
        true
    }
}

pub struct TaskObjects {
    task: usize,
    /// The tmpfs and the root of the first disk, if the task creates names.
    directories: Option<[File; 2]>,
    pipes: Vec<Option<(OwnedFd, OwnedFd)>>,
}

impl TaskObjects {
    /// Opens the files that task number `id` needs.
    pub fn new(setup: &Setup, id: usize) -> Result<TaskObjects, String> {
        let task = &setup.tasks[id];
        let (mut has_names, mut pipes) = (false, 0u64);
        for phase in &task.phases {
            match &phase.workload {
                Workload::Names(_) => has_names = true,
                Workload::Pipes(of) => pipes = pipes.saturating_add(of.make.into()),
                _ => {}
            }
        }
        let open = |path: &std::path::Path| {
            File::open(path).map_err(|error| format!("{}: {error}", path.display()))
        };
        let directories = match has_names {
            true => Some([open(NAMES.as_ref())?, open(&disk_path(0))?]),
            false => None,
        };
        let pipes = pipes.saturating_mul(task.settings.loops.into()).min(OPEN_FILES_MAX / 2);
        if pipes > 0 {
            names::allow_open_files(OPEN_FILES_MAX)
                .map_err(|error| format!("allowing {OPEN_FILES_MAX} open files: {error}"))?;
        }
        let pipes = (0..pipes).map(|_| None).collect();
        Ok(TaskObjects { task: id, directories, pipes })
    }

    /// Calls `call` with directory number `place` and the name for `number`.
    fn with_name<T>(
        &self,
        place: usize,
        number: u32,
        call: impl FnOnce(&File, &CStr) -> io::Result<T>,
    ) -> io::Result<T> {
        let Some(directories) = &self.directories else {
            return Err(io::Error::from_raw_os_error(libc::ENOENT));
        };
        let mut text = [0u8; 24];
        write!(&mut text[..23], "{}.{number}", self.task)?;
        let name = CStr::from_bytes_until_nul(&text);
        let name = name.map_err(|_| io::Error::from_raw_os_error(libc::ENAMETOOLONG))?;
        call(&directories[place], name)
    }

    /// Creates a file, or looks up a missing one.
    /// EEXIST if a missing file exists.
    pub fn create_file(&self, number: u32, missing: bool) -> io::Result<()> {
        if !missing {
            return self.with_name(0, number, names::create);
        }
        match self.with_name(1, number, names::exists)? {
            true => Err(io::Error::from_raw_os_error(libc::EEXIST)),
            false => Ok(()),
        }
    }

    /// Removes a file.
    pub fn remove_name(&self, number: u32) -> io::Result<()> {
        self.with_name(0, number, names::remove)
    }

    /// Opens a pipe.
    /// EMFILE for a slot beyond the limit of a process.
    pub fn open_pipe(&mut self, slot: u32) -> io::Result<()> {
        let slot = self.pipes.get_mut(slot as usize);
        let slot = slot.ok_or(io::Error::from_raw_os_error(libc::EMFILE))?;
        *slot = Some(names::pipe()?);
        Ok(())
    }

    /// Closes both ends of a pipe.
    /// EBADF for an empty slot.
    pub fn close_pipe(&mut self, slot: u32) -> io::Result<()> {
        let ends = self.pipes.get_mut(slot as usize).and_then(Option::take);
        ends.map(drop).ok_or(io::Error::from_raw_os_error(libc::EBADF))
    }
}
