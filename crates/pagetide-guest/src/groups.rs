//! The scenario's memory groups in the kernel's cgroup file system.
//!
//! Invariant: groups have the numbers of the setup. Files that are read while tasks run were
//! opened, and read once, before: the kernel charges the buffer of such a file to the group of its
//! first reader, which at that time is none of the scenario's.

use crate::counters::read_all;
use crate::report::line;
use crate::sys::mount::mount;
use pagetide_core::config::CgroupVersion;
use pagetide_core::control::GroupControlWrite;
use pagetide_scenario::metric::declared::{MetricDecl, ON_REQUEST};
use pagetide_scenario::model::Setup;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Mount point of cgroups.
const ROOT: &str = "/sys/fs/cgroup";
/// Number of groups in reports. A report of more would take too long.
const REPORTED: usize = 16;
/// Reported files of a group in v2.
const FILES: [&str; 6] = [
    "memory.stat",
    "memory.current",
    "memory.swap.current",
    "memory.events",
    "memory.events.local",
    "memory.pressure",
];
/// Reported files in v1, which has swap in memory.stat and no events.
const FILES_1: [&str; 3] = ["memory.stat", "memory.usage_in_bytes", "memory.kmem.usage_in_bytes"];
/// A v2 file that folds per-CPU counts into the group's counters when it is read, as
/// /proc/sys/vm/stat_refresh does for the machine; it belongs to the CPU controller. v1 has none:
/// its memory.stat may lag by about 64 pages for each CPU.
const FOLDS: &str = "cpu.stat";

pub struct GuestGroups<'a> {
    setup: &'a Setup,
    /// The group above them.
    top: PathBuf,
    first: bool,
    names: Vec<&'static str>,
    paths: Vec<PathBuf>,
    /// The open files of each group, in the order of their names.
    files: Vec<Vec<Option<File>>>,
    /// The open file [`FOLDS`] of each group.
    folds: Vec<Option<File>>,
}

impl<'a> GuestGroups<'a> {
    /// Mounts the hierarchies and creates the initial groups.
    pub fn prepare(setup: &'a Setup) -> Result<GuestGroups<'a>, String> {
        let mut groups = GuestGroups::named(setup, ROOT.into());
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

    /// Creates the groups of a setup below `top`, a group of a live machine with the controllers
    /// enabled.
    pub fn below(setup: &'a Setup, top: PathBuf) -> Result<GuestGroups<'a>, String> {
        let mut groups = GuestGroups::named(setup, top);
        groups.make()?;
        Ok(groups)
    }

    /// The groups with their paths, not created yet.
    fn named(setup: &'a Setup, top: PathBuf) -> GuestGroups<'a> {
        let first = setup.cgroup_version() == CgroupVersion::V1;
        let mut paths: Vec<PathBuf> = Vec::new();
        for group in &setup.groups {
            let parent = group.parent.map_or(&top, |parent| &paths[parent]);
            paths.push(parent.join(&group.name));
        }
        let names = GuestGroups::reported_files(setup, first);
        GuestGroups { setup, top, first, names, paths, files: Vec::new(), folds: Vec::new() }
    }

    /// Creates the initial groups.
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

    /// Names of the reported files.
    fn reported_files(setup: &Setup, first: bool) -> Vec<&'static str> {
        if first {
            return FILES_1.to_vec();
        }
        let mut names = FILES.to_vec();
        if setup.has_cpu_controller() {
            names.push(FOLDS);
        }
        let asked = |metric: &&&MetricDecl| setup.requested_group_metrics.contains(&metric.name);
        names.extend(ON_REQUEST.iter().filter(asked).map(|metric| metric.source));
        names
    }

    /// Opens and reads the reported files of the existing groups.
    fn open(&mut self) {
        if self.paths.len() > REPORTED {
            line(format_args!(
                "@note {} groups: only the first {REPORTED} are reported",
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

    /// Enables controllers for child groups: memory, and CPUs if one of their files is written.
    fn enable(&self, path: &Path, memory: bool) -> io::Result<()> {
        let controllers = match (memory, self.setup.has_cpu_controller()) {
            (true, true) => "+memory +cpu",
            (true, false) => "+memory",
            (false, true) => "+cpu",
            (false, false) => return Ok(()),
        };
        fs::write(path.join("cgroup.subtree_control"), controllers)
    }

    /// Whether child groups have a memory controller.
    fn has_memory_below(&self, id: usize) -> bool {
        self.setup.groups.iter().any(|group| group.parent == Some(id) && group.has_memory)
    }

    /// Whether the group has children at any time.
    fn has_children(&self, id: usize) -> bool {
        self.setup.groups.iter().any(|group| group.parent == Some(id))
    }

    /// The directory for the tasks of a group. In v2 a group with children cannot have processes:
    /// its tasks are in an additional leaf without limits.
    fn of_tasks(&self, group: Option<usize>) -> PathBuf {
        match group {
            None => self.top.clone(),
            Some(id) if !self.first && self.has_children(id) => self.paths[id].join("tasks.here"),
            Some(id) => self.paths[id].clone(),
        }
    }

    /// Creates a group and writes its control files; calls `refused` for each rejected value.
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
    /// Fails if the group has tasks or children, or does not exist.
    pub fn remove(&self, id: usize) -> io::Result<()> {
        let leaf = self.of_tasks(Some(id));
        if leaf != self.paths[id] {
            fs::remove_dir(leaf)?;
        }
        fs::remove_dir(&self.paths[id])
    }

    pub fn write(&self, id: usize, write: GroupControlWrite) -> io::Result<()> {
        write_existing(&self.paths[id].join(write.control.name()), &write.to_string())
    }

    /// Moves this process into a group.
    pub fn join(&self, group: Option<usize>) -> io::Result<()> {
        write_existing(&self.of_tasks(group).join("cgroup.procs"), "0")
    }

    /// Reads the reported files of every existing group; calls `each` with the group's number, the
    /// file's name and its text.
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

    /// Reads a file of a group: through `open`, or opened only for this read if the group was
    /// created later.
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

/// Writes `text` to a file of the kernel in one call, as the kernel requires.
pub fn write_existing(path: &Path, text: &str) -> io::Result<()> {
    OpenOptions::new().write(true).open(path)?.write(text.as_bytes()).map(drop)
}
