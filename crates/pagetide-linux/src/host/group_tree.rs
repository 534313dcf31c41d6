//! The tree of memory groups: the hierarchy with the memory controller, and all its groups.
//!
//! Linux: v1 mounts one hierarchy for each controller (/sys/fs/cgroup/memory), v2 has one
//! (/sys/fs/cgroup), and a hybrid system has those of v1 next to /sys/fs/cgroup/unified. Invariant:
//! parents come before their children, siblings are in the order of their names, links are not
//! followed.

use super::cgroup::{self, CgroupVersion, HostGroup};
use super::files::HostFiles;
use super::note::{shown, ImportNote};
use std::path::{Path, PathBuf};

/// Maximum number of groups.
const GROUPS_MAX: usize = 10_000;
/// Maximum depth; the kernel's own limit is far higher, but not used in practice.
const DEPTH_MAX: usize = 64;
/// Maximum number of notes about groups.
const NOTES_MAX: usize = 20;

/// The version and the path of the hierarchy with the memory controller.
fn hierarchy(files: &HostFiles, notes: &mut Vec<ImportNote>) -> Option<(CgroupVersion, PathBuf)> {
    let top = Path::new("/sys/fs/cgroup");
    if !files.exists(top.join("cgroup.controllers")) {
        // Controllers can share a hierarchy: `cpu,memory`.
        let directories = files.list(top, true, notes);
        let with_memory = directories.iter().find(|name| {
            name.to_str().is_some_and(|name| name.split(',').any(|part| part == "memory"))
        });
        // A v2 group may be named `memory`.
        let version_1 = with_memory.map(|name| top.join(name));
        if let Some(path) =
            version_1.filter(|path| files.exists(path.join("memory.limit_in_bytes")))
        {
            return Some((CgroupVersion::V1, path));
        }
        let unified = top.join("unified");
        if files.exists(unified.join("cgroup.controllers")) {
            let controllers = files.read(unified.join("cgroup.controllers"), notes)?;
            let has_memory = controllers.split_whitespace().any(|name| name == "memory");
            return has_memory.then_some((CgroupVersion::V2, unified));
        }
    }
    files.exists(top).then(|| (CgroupVersion::V2, top.to_owned()))
}

/// All groups of the hierarchy with the memory controller, its root first.
pub(super) fn read(files: &HostFiles, notes: &mut Vec<ImportNote>) -> Vec<HostGroup> {
    let Some((version, top)) = hierarchy(files, notes) else { return Vec::new() };
    let mut groups: Vec<HostGroup> = Vec::new();
    let mut own_notes = Vec::new();
    let mut is_too_deep = false;
    // Stack of groups to visit: (path below the root, parent, depth).
    let mut stack = vec![(PathBuf::new(), None, 0usize)];
    while let Some((below, parent, depth)) = stack.pop() {
        if groups.len() == GROUPS_MAX {
            let message = format!("more than {GROUPS_MAX} groups; the rest is not read");
            notes.push(ImportNote::new(shown(&top.to_string_lossy()), message));
            break;
        }
        let directory = top.join(&below);
        groups.push(read_one(files, version, &directory, &below, &mut own_notes));
        let index = groups.len() - 1;
        groups[index].parent = parent;
        let children = files.list(&directory, true, notes);
        if depth == DEPTH_MAX {
            is_too_deep |= !children.is_empty();
        } else {
            let children = children.into_iter().rev();
            stack.extend(children.map(|name| (below.join(name), Some(index), depth + 1)));
        }
    }
    if is_too_deep {
        let message = format!("groups below level {DEPTH_MAX} are not read");
        notes.push(ImportNote::new(shown(&top.to_string_lossy()), message));
    }
    let more = own_notes.len().saturating_sub(NOTES_MAX);
    own_notes.truncate(NOTES_MAX);
    notes.append(&mut own_notes);
    if more > 0 {
        notes.push(ImportNote::new("", format!("{more} more control files were not understood")));
    }
    groups
}

fn read_one(
    files: &HostFiles,
    version: CgroupVersion,
    directory: &Path,
    below: &Path,
    notes: &mut Vec<ImportNote>,
) -> HostGroup {
    let names = version
        .controls()
        .iter()
        .map(|control| control.name())
        .chain([version.usage(), "memory.stat"]);
    let mut texts = Vec::new();
    for name in names {
        if let Some(text) = files.read(directory.join(name), notes) {
            texts.push((name, text));
        }
    }
    let path = format!("/{}", below.to_string_lossy());
    let texts = texts.iter().map(|(name, text)| (*name, text.as_str()));
    let (group, strange) = cgroup::parse(version, &path, texts);
    notes.extend(strange);
    group
}
