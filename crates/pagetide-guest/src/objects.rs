//! The names and pipes of a task: kernel objects that it makes one by one.
//!
//! Files are on a tmpfs of their own, missing names are looked for in the root directory of the first
//! disk. A name is `TASK.NUMBER`, short enough for the kernel to keep it within the dentry. Invariant:
//! what a task needs for this is there before it enters its group; what it then makes is the
//! kernel's alone.

use crate::perform::disk_path;
use crate::report::line;
use crate::sys::mount::mount;
use crate::sys::names;
use pagetide_scenario::model::{Setup, Workload};
use std::ffi::CStr;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::time::Duration;

/// Where the tmpfs is.
const NAMES: &str = "/names";
/// Files that a process may have open at most (fs.nr_open).
const OPEN_FILES_MAX: u64 = 1 << 20;
/// Caches of the kernel; each directory has a file `shrink`.
const CACHES: &str = "/sys/kernel/slab";
/// Some grace periods of RCU, and what their callbacks need.
const GRACE: Duration = Duration::from_millis(200);
/// A slot without a pipe.
const NO_PIPE: [i32; 2] = [-1; 2];

/// Mounts what the setup's names are made on.
///
/// # Errors
/// A sentence.
pub fn prepare(setup: &Setup) -> Result<(), String> {
    if !setup.has_objects() {
        return Ok(());
    }
    let mounted = fs::create_dir_all(NAMES)
        .and_then(|()| mount("tmpfs", NAMES, "tmpfs", "size=0,nr_inodes=0"));
    mounted.map_err(|error| format!("mounting {NAMES}: {error}"))
}

/// The caches of the kernel, each by its file `shrink`, open: opening them takes objects, too.
#[derive(Debug, Default)]
pub struct Caches(Vec<File>);

impl Caches {
    /// Opens the files, if the setup has objects.
    pub fn open(setup: &Setup) -> Caches {
        if !setup.has_objects() {
            return Caches::default();
        }
        let open = || {
            let entries = fs::read_dir(CACHES)?;
            let file = |entry: io::Result<fs::DirEntry>| {
                OpenOptions::new().write(true).open(entry?.path().join("shrink"))
            };
            entries.map(file).collect::<io::Result<Vec<File>>>()
        };
        Caches(open().unwrap_or_else(|error| {
            line(format_args!("@lacks shrinking the caches of objects: {error}"));
            Vec::new()
        }))
    }

    /// Has the kernel free all slabs without objects, and count no object of those that CPUs keep at
    /// hand as in use, when what was freed is free: many objects wait for RCU first. False if this kernel
    /// cannot be asked. Linux: writing to /sys/kernel/slab/CACHE/shrink flushes the slabs of all CPUs.
    pub fn settle(&self) -> bool {
        if self.0.is_empty() {
            return false;
        }
        std::thread::sleep(GRACE);
        // A cache that is refused now stays as it is; it was not when its file was opened.
        self.0.iter().for_each(|file| drop(file.write_at(b"1", 0)));
        true
    }
}

/// The objects of a task.
pub struct Objects {
    task: usize,
    /// The tmpfs and the root of the first disk, if the task makes names.
    directories: Option<[File; 2]>,
    pipes: Vec<[i32; 2]>,
}

impl Objects {
    /// Opens what task number `id` will need.
    ///
    /// # Errors
    /// A sentence.
    pub fn new(setup: &Setup, id: usize) -> Result<Objects, String> {
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
        let pipes = pipes.saturating_mul(task.loops.into()).min(OPEN_FILES_MAX / 2);
        if pipes > 0 {
            names::allow_open_files(OPEN_FILES_MAX)
                .map_err(|error| format!("allowing {OPEN_FILES_MAX} open files: {error}"))?;
        }
        Ok(Objects { task: id, directories, pipes: vec![NO_PIPE; pipes as usize] })
    }

    /// Calls `call` with directory number `place` and name number `number` in it.
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

    /// Makes a file, or looks for one that is missing.
    ///
    /// # Errors
    /// The kernel's, and EEXIST if a missing file is there.
    pub fn make_name(&self, number: u32, missing: bool) -> io::Result<()> {
        if !missing {
            return self.with_name(0, number, names::create);
        }
        match self.with_name(1, number, names::exists)? {
            true => Err(io::Error::from_raw_os_error(libc::EEXIST)),
            false => Ok(()),
        }
    }

    /// Removes a file.
    ///
    /// # Errors
    /// The kernel's.
    pub fn remove_name(&self, number: u32) -> io::Result<()> {
        self.with_name(0, number, names::remove)
    }

    /// Opens a pipe.
    ///
    /// # Errors
    /// The kernel's, and EMFILE for a slot beyond what a process can have.
    pub fn open_pipe(&mut self, slot: u32) -> io::Result<()> {
        let slot = self.pipes.get_mut(slot as usize);
        let slot = slot.ok_or(io::Error::from_raw_os_error(libc::EMFILE))?;
        *slot = names::pipe()?;
        Ok(())
    }

    /// Closes both ends of a pipe.
    ///
    /// # Errors
    /// The kernel's, and EBADF for a slot without a pipe.
    pub fn close_pipe(&mut self, slot: u32) -> io::Result<()> {
        let slot = self.pipes.get_mut(slot as usize).filter(|slot| **slot != NO_PIPE);
        let slot = slot.ok_or(io::Error::from_raw_os_error(libc::EBADF))?;
        let [read, write] = std::mem::replace(slot, NO_PIPE);
        names::close(read)?;
        names::close(write)
    }
}
