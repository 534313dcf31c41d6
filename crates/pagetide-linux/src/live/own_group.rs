//! A temporary group on a live machine: created, limited, and removed.
//!
//! Linux: cgroup v2 (Documentation/admin-guide/cgroup-v2.rst). A group has the memory controller if
//! `cgroup.subtree_control` of its parent lists it. Moving a process needs write access to
//! `cgroup.procs` of both groups and of their nearest common ancestor. So the group is created
//! below the nearest ancestor of this process that allows all of this. Nothing is written to other
//! groups.
//!
//! Invariant: dropping an [`OwnGroup`] removes it and its children. Groups left by a killed process
//! are removed by the next measurement.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Prefix of its name; the process id follows.
const PREFIX: &str = "pagetide-measure-";
/// Maximum time until the kernel sees a group without processes.
const PATIENCE: Duration = Duration::from_secs(3);

/// The mount point of cgroup v2, and the path of this process's group.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct CgroupMount {
    pub mounted: PathBuf,
    /// Groups from this process's own to the root.
    pub own: Vec<PathBuf>,
}

/// Determines both from the texts of /proc/self/mountinfo and /proc/self/cgroup.
pub(super) fn hierarchy(mountinfo: &str, cgroup: &str) -> Option<CgroupMount> {
    // ID PARENT DEVICE ROOT WHERE OPTIONS TAGS - KIND SOURCE OPTIONS
    let (root, mounted) = mountinfo.lines().find_map(|line| {
        let (before, after) = line.split_once(" - ")?;
        let mut fields = before.split(' ').skip(3);
        (after.split(' ').next() == Some("cgroup2")).then_some((fields.next()?, fields.next()?))
    })?;
    let path = cgroup.lines().find_map(|line| line.strip_prefix("0::"))?;
    // A group outside of the mount is invisible.
    let below = Path::new(path).strip_prefix(root).ok().filter(|_| !path.starts_with("/.."))?;
    let mounted = PathBuf::from(mounted);
    let own: Vec<PathBuf> = below.ancestors().map(|below| mounted.join(below)).collect();
    Some(CgroupMount { mounted, own })
}

/// Whether a file of a group lists the memory controller.
fn lists_memory(group: &Path, file: &str) -> bool {
    let text = fs::read_to_string(group.join(file)).unwrap_or_default();
    text.split_whitespace().any(|name| name == "memory")
}

#[derive(Debug)]
pub(super) struct OwnGroup {
    path: PathBuf,
}

impl OwnGroup {
    /// Creates a group with a limit of `bytes`.
    /// The error is part of a sentence: why it cannot be created.
    pub(super) fn make(hierarchy: Option<&CgroupMount>, bytes: u64) -> Result<OwnGroup, String> {
        let Some(CgroupMount { mounted, own }) = hierarchy else {
            return Err("cgroup version 2 is not mounted".to_owned());
        };
        if !lists_memory(mounted, "cgroup.controllers") {
            let place = mounted.display();
            return Err(format!("cgroup version 2 does not have the memory controller ({place})"));
        }
        let mut problem = format!(
            "no group above this process has `memory` in cgroup.subtree_control; \
             `systemd-run --scope` gives one, or write +memory to {}",
            mounted.join("cgroup.subtree_control").display()
        );
        for parent in own.iter().filter(|group| lists_memory(group, "cgroup.subtree_control")) {
            remove_stale_groups(parent);
            let path = parent.join(format!("{PREFIX}{}", std::process::id()));
            let made = fs::create_dir(&path).map(|()| OwnGroup { path: path.clone() });
            match made.and_then(|own| own.prepare(bytes).map(|()| own)) {
                Ok(own) => return Ok(own),
                Err(error) => problem = format!("{}: {error}", path.display()),
            }
        }
        Err(problem)
    }

    /// Sets its limit, and checks that a process can be moved into a child.
    fn prepare(&self, bytes: u64) -> io::Result<()> {
        write(&self.path.join("memory.max"), &bytes.to_string())?;
        // The file is missing in a kernel without swap.
        let _ = write(&self.path.join("memory.swap.max"), "0");
        write(&self.path.join("cgroup.subtree_control"), "+memory")?;
        let probe = self.path.join("probe");
        fs::create_dir(&probe)?;
        let (input, quiet) = (Stdio::piped(), Stdio::null());
        let mut waits = Command::new("cat").stdin(input).stdout(quiet).spawn()?;
        let moved = write(&probe.join("cgroup.procs"), &waits.id().to_string());
        drop(waits.stdin.take());
        let _ = waits.wait();
        remove(&probe)?;
        moved
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Whether the kernel has memory.reclaim.
    pub(super) fn has_reclaim(&self) -> bool {
        self.path.join("memory.reclaim").exists()
    }

    /// Removes its children.
    pub(super) fn clear(&self) -> io::Result<()> {
        for entry in fs::read_dir(&self.path)?.flatten() {
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                remove(&entry.path())?;
            }
        }
        Ok(())
    }
}

impl Drop for OwnGroup {
    fn drop(&mut self) {
        // If clearing fails, it still holds only our own groups.
        let _ = self.clear();
        let _ = remove(&self.path);
    }
}

/// Removes a group as soon as its processes have ended.
fn remove(group: &Path) -> io::Result<()> {
    let begun = Instant::now();
    loop {
        match fs::remove_dir(group) {
            Err(error)
                if error.kind() == io::ErrorKind::ResourceBusy && begun.elapsed() < PATIENCE =>
            {
                std::thread::sleep(Duration::from_millis(10));
            }
            other => return other,
        }
    }
}

/// Removes groups of killed processes.
fn remove_stale_groups(parent: &Path) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let process = name.to_str().and_then(|name| name.strip_prefix(PREFIX));
        let is_over = |process: &str| {
            process.parse::<u32>().is_ok() && !Path::new("/proc").join(process).exists()
        };
        if process.is_some_and(is_over) {
            let left = OwnGroup { path: entry.path() };
            drop(left);
        }
    }
}

/// Writes to an existing file of the kernel.
fn write(path: &Path, text: &str) -> io::Result<()> {
    OpenOptions::new().write(true).open(path)?.write_all(text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTS: &str = "\
24 30 0:22 / /proc rw - proc proc rw
35 24 0:30 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate
";

    #[test]
    fn our_own_group_is_found_by_what_is_mounted() {
        let found = hierarchy(MOUNTS, "1:name=x:/y\n0::/user.slice/a.scope\n").unwrap();
        let top = Path::new("/sys/fs/cgroup");
        assert_eq!(found.mounted, top);
        let own = [top.join("user.slice/a.scope"), top.join("user.slice"), top.join("")];
        assert_eq!(found.own, own);
        assert_eq!(hierarchy(MOUNTS, "0::/\n").unwrap().own, [top.join("")]);
        // In a container the mounted root may be a group.
        let inside = MOUNTS.replace("0:30 / ", "0:30 /pod ");
        assert_eq!(hierarchy(&inside, "0::/pod/x\n").unwrap().own[0], top.join("x"));
        assert_eq!(hierarchy(&inside, "0::/other\n"), None);
        assert_eq!(hierarchy(MOUNTS, "0::/../other\n"), None);
        assert_eq!(hierarchy(MOUNTS, "4:memory:/\n"), None);
        assert_eq!(hierarchy("24 30 0:22 / /proc rw - proc proc rw\n", "0::/\n"), None);
        assert_eq!(hierarchy("garbage\n - cgroup2\n", ""), None);
    }

    #[test]
    fn the_reason_for_a_missing_group_is_reported_and_no_file_remains() {
        let why = |hierarchy: Option<&CgroupMount>| OwnGroup::make(hierarchy, 1 << 20).unwrap_err();
        assert_eq!(why(None), "cgroup version 2 is not mounted");
        let dir = tempfile::tempdir().unwrap();
        let top = dir.path().to_owned();
        let found = CgroupMount { mounted: top.clone(), own: vec![top.join("mine"), top.clone()] };
        fs::create_dir(top.join("mine")).unwrap();
        fs::write(top.join("cgroup.controllers"), "cpu pids\n").unwrap();
        assert!(
            why(Some(&found)).starts_with("cgroup version 2 does not have the memory controller")
        );
        fs::write(top.join("cgroup.controllers"), "cpu memory\n").unwrap();
        assert!(why(Some(&found)).starts_with("no group above this process has `memory`"));
        fs::write(top.join("cgroup.subtree_control"), "memory\n").unwrap();
        // A group of a process that has ended; this test uses a plain directory without control
        // files.
        fs::create_dir_all(top.join(format!("{PREFIX}4294967295/box"))).unwrap();
        fs::create_dir_all(top.join(format!("{PREFIX}1"))).unwrap();
        let said = why(Some(&found));
        let own = top.join(format!("{PREFIX}{}", std::process::id()));
        assert!(said.starts_with(&format!("{}: ", own.display())), "{said}");
        let mut left: Vec<_> = fs::read_dir(&top).unwrap().flatten().collect();
        left.sort_by_key(fs::DirEntry::file_name);
        let left: Vec<_> = left.iter().map(fs::DirEntry::file_name).collect();
        let wanted = ["cgroup.controllers", "cgroup.subtree_control", "mine", "pagetide-measure-1"];
        assert_eq!(left, wanted);
    }
}
