//! The scenario's memory groups in the kernel's cgroup file system: made, written to, joined,
//! removed, and read.
//!
//! Invariant: groups have the numbers that they have in the setup. What is read while tasks run is
//! read through files opened, and read once, before: the kernel charges the buffer of such a file
//! to the group of whoever reads it first, which is then nobody's group.

use crate::counters::read_all;
use crate::report::line;
use crate::sys::mount::mount;
use pagetide_core::config::CgroupVersion;
use pagetide_core::control::GroupControlWrite;
use pagetide_scenario::metric::declared::{Declared, ON_REQUEST};
use pagetide_scenario::model::Setup;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Where cgroups are mounted.
const ROOT: &str = "/sys/fs/cgroup";
/// So many groups are reported of, the first: a report of more would take longer than what it reports of.
const REPORTED: usize = 16;
/// What is reported of a group, in version 2.
const FILES: [&str; 6] = [
    "memory.stat",
    "memory.current",
    "memory.swap.current",
    "memory.events",
    "memory.events.local",
    "memory.pressure",
];
/// And in version 1, which has swap in memory.stat and no events.
const FILES_1: [&str; 3] = ["memory.stat", "memory.usage_in_bytes", "memory.kmem.usage_in_bytes"];
/// A file of version 2 that folds what the CPUs have counted apart into the group's counters when it is read, as
/// /proc/sys/vm/stat_refresh does for the machine; also what the CPU controller says. Version 1 has none: there
/// memory.stat may be behind by the events of some 64 pages a CPU.
const FOLDS: &str = "cpu.stat";

/// The groups of a setup.
pub struct Groups<'a> {
    setup: &'a Setup,
    /// The group below which they are.
    top: PathBuf,
    first: bool,
    names: Vec<&'static str>,
    paths: Vec<PathBuf>,
    /// Of each group the files of these names, open.
    files: Vec<Vec<Option<File>>>,
    /// Of each group [`FOLDS`], open.
    folds: Vec<Option<File>>,
}

impl<'a> Groups<'a> {
    /// Mounts what the groups need and makes those that are there when the run begins.
    ///
    /// # Errors
    /// A sentence, when cgroups cannot be had at all.
    pub fn prepare(setup: &'a Setup) -> Result<Groups<'a>, String> {
        let mut groups = Groups::named(setup, ROOT.into());
        if setup.groups.is_empty() {
            return Ok(groups);
        }
        let failed = |error: io::Error| format!("cgroups: {error}");
        fs::create_dir_all(ROOT).map_err(failed)?;
        if groups.first {
            mount("cgroup", ROOT, "cgroup", "memory").map_err(failed)?;
            let _ = fs::write(format!("{ROOT}/memory.use_hierarchy"), "1");
        } else {
            let options =
                if setup.machine.memory_recursiveprot { "memory_recursiveprot" } else { "" };
            mount("cgroup2", ROOT, "cgroup2", options).map_err(failed)?;
            groups.enable(Path::new(ROOT), true).map_err(failed)?;
        }
        groups.make()?;
        Ok(groups)
    }

    /// Makes the groups of a setup below `top`, a group of a live machine that has the controllers.
    ///
    /// # Errors
    /// A sentence.
    pub fn below(setup: &'a Setup, top: PathBuf) -> Result<Groups<'a>, String> {
        let mut groups = Groups::named(setup, top);
        groups.make()?;
        Ok(groups)
    }

    /// The groups with their places, not made.
    fn named(setup: &'a Setup, top: PathBuf) -> Groups<'a> {
        let first = setup.cgroup_version() == CgroupVersion::V1;
        let mut paths: Vec<PathBuf> = Vec::new();
        for group in &setup.groups {
            let parent = group.parent.map_or(&top, |parent| &paths[parent]);
            paths.push(parent.join(&group.name));
        }
        let names = Groups::names_of(setup, first);
        Groups { setup, top, first, names, paths, files: Vec::new(), folds: Vec::new() }
    }

    /// Makes those that are there when the run begins.
    fn make(&mut self) -> Result<(), String> {
        for (id, group) in self.setup.groups.iter().enumerate().filter(|(_, group)| group.at_start)
        {
            let refused = |write: GroupControlWrite, error: io::Error| {
                let (name, of) = (write.control.name(), &group.name);
                match error.kind() {
                    io::ErrorKind::NotFound => line(format_args!("@lacks {name} of group `{of}`")),
                    _ => line(format_args!("@refuses {name} = {write} of group `{of}`: {error}")),
                }
            };
            let made = self.create(id, refused);
            made.map_err(|error| format!("group `{}`: {error}", group.name))?;
        }
        self.open();
        Ok(())
    }

    /// What is reported of a group.
    fn names_of(setup: &Setup, first: bool) -> Vec<&'static str> {
        if first {
            return FILES_1.to_vec();
        }
        let mut names = FILES.to_vec();
        if setup.has_cpu_controller() {
            names.push(FOLDS);
        }
        let asked = |metric: &&&Declared| setup.asked_of_groups.contains(&metric.name);
        names.extend(ON_REQUEST.iter().filter(asked).map(|metric| metric.source));
        names
    }

    /// Opens and reads what will be reported of the groups that are there.
    fn open(&mut self) {
        if self.paths.len() > REPORTED {
            line(format_args!(
                "@note {} groups: there are counters of the first {REPORTED}",
                self.paths.len()
            ));
        }
        for path in self.paths.iter().take(REPORTED) {
            let open = |name: &&str| File::open(path.join(name)).ok();
            self.files.push(self.names.iter().map(open).collect());
            self.folds.push(if self.first { None } else { open(&FOLDS) });
        }
        self.read(&mut [0; 16 << 10], |_, _, _| {});
    }

    /// Gives groups in a group their controllers: memory, and CPUs if a file of theirs is written.
    fn enable(&self, path: &Path, memory: bool) -> io::Result<()> {
        let controllers = match (memory, self.setup.has_cpu_controller()) {
            (true, true) => "+memory +cpu",
            (true, false) => "+memory",
            (false, true) => "+cpu",
            (false, false) => return Ok(()),
        };
        fs::write(path.join("cgroup.subtree_control"), controllers)
    }

    /// Whether groups in a group have a memory controller.
    fn has_memory_below(&self, id: usize) -> bool {
        self.setup.groups.iter().any(|group| group.parent == Some(id) && group.has_memory)
    }

    /// Whether the group has groups within it, now or later.
    fn has_children(&self, id: usize) -> bool {
        self.setup.groups.iter().any(|group| group.parent == Some(id))
    }

    /// The directory for the tasks of a group. Version 2 has no processes in a group with groups:
    /// they are in a leaf of its own, which has no limits but the group's.
    fn of_tasks(&self, group: Option<usize>) -> PathBuf {
        match group {
            None => self.top.clone(),
            Some(id) if !self.first && self.has_children(id) => self.paths[id].join("tasks.here"),
            Some(id) => self.paths[id].clone(),
        }
    }

    /// Makes a group and writes its controls; `refused` learns of each that the kernel does not take.
    ///
    /// # Errors
    /// The kernel's, when there is no group.
    pub fn create(
        &self,
        id: usize,
        mut refused: impl FnMut(GroupControlWrite, io::Error),
    ) -> io::Result<()> {
        let path = &self.paths[id];
        fs::create_dir(path)?;
        if !self.first && self.has_children(id) {
            self.enable(path, self.has_memory_below(id))?;
            fs::create_dir(self.of_tasks(Some(id)))?;
        }
        for &write in &self.setup.groups[id].controls {
            if let Err(error) = self.write(id, write) {
                refused(write, error);
            }
        }
        Ok(())
    }

    /// Removes a group.
    ///
    /// # Errors
    /// The kernel's: it has tasks or groups, or does not exist.
    pub fn remove(&self, id: usize) -> io::Result<()> {
        let leaf = self.of_tasks(Some(id));
        if leaf != self.paths[id] {
            fs::remove_dir(leaf)?;
        }
        fs::remove_dir(&self.paths[id])
    }

    /// Writes to a control of a group.
    ///
    /// # Errors
    /// The kernel's.
    pub fn write(&self, id: usize, write: GroupControlWrite) -> io::Result<()> {
        write_existing(&self.paths[id].join(write.control.name()), &write.to_string())
    }

    /// Puts this process into a group.
    ///
    /// # Errors
    /// The kernel's.
    pub fn join(&self, group: Option<usize>) -> io::Result<()> {
        write_existing(&self.of_tasks(group).join("cgroup.procs"), "0")
    }

    /// Reads what is reported of every group that is there, and hands each text to `each` with the
    /// group's number and the file's name.
    pub fn read(&self, buffer: &mut [u8], mut each: impl FnMut(usize, &str, &[u8])) {
        for (id, files) in self.files.iter().enumerate() {
            if !self.first {
                let _ = self.read_one(id, FOLDS, self.folds[id].as_ref(), buffer);
            }
            for (name, file) in self.names.iter().zip(files) {
                if let Ok(text) = self.read_one(id, name, file.as_ref(), buffer) {
                    each(id, name, text);
                }
            }
        }
    }

    /// A file of a group: through `open`, or opened for once if the group was made later or anew.
    fn read_one<'b>(
        &self,
        id: usize,
        name: &str,
        open: Option<&File>,
        buffer: &'b mut [u8],
    ) -> io::Result<&'b [u8]> {
        let read = open.and_then(|file| read_all(file, buffer).map(<[u8]>::len).ok());
        let len = match read {
            Some(len) => len,
            None => read_all(&File::open(self.paths[id].join(name))?, buffer)?.len(),
        };
        Ok(&buffer[..len])
    }
}

/// Writes `text` to a file of the kernel in one call, as it wants it.
///
/// # Errors
/// The kernel's.
pub fn write_existing(path: &Path, text: &str) -> io::Result<()> {
    OpenOptions::new().write(true).open(path)?.write(text.as_bytes()).map(drop)
}
