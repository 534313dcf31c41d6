//! A memory group: its control files and usage.
//!
//! Linux: mm/memcontrol.c (v2: `memory.max` and others) and mm/memcontrol-v1.c
//! (`memory.limit_in_bytes` and others). Invariant: `controls` has the values that differ from
//! those of a new group, in the order of the scenario documentation. A scenario accepts each of
//! them.

use super::note::{shown, ImportNote};
use super::number::count;
use super::vmstat::{self, NamedCounts};
use pagetide_core::control::{GroupControl, GroupControlWrite};

/// The version of the cgroup interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CgroupVersion {
    /// One hierarchy for each controller, /sys/fs/cgroup/memory.
    V1,
    /// One hierarchy, /sys/fs/cgroup.
    V2,
}

impl CgroupVersion {
    /// The control files that can be imported.
    pub const fn controls(self) -> &'static [GroupControl] {
        match self {
            CgroupVersion::V1 => &[
                GroupControl::LimitInBytes,
                GroupControl::SoftLimitInBytes,
                GroupControl::Swappiness,
            ],
            CgroupVersion::V2 => &[
                GroupControl::Min,
                GroupControl::Low,
                GroupControl::High,
                GroupControl::Max,
                GroupControl::SwapMax,
                GroupControl::ZswapMax,
                GroupControl::ZswapWriteback,
                GroupControl::OomGroup,
                GroupControl::CpuWeight,
                GroupControl::CpuMax,
            ],
        }
    }

    /// The file with the bytes in use.
    pub const fn usage(self) -> &'static str {
        match self {
            CgroupVersion::V1 => "memory.usage_in_bytes",
            CgroupVersion::V2 => "memory.current",
        }
    }

    /// Fields of memory.stat for comments, including descendants: (field, description).
    pub const fn stat_fields(self) -> &'static [(&'static str, &'static str)] {
        match self {
            CgroupVersion::V1 => &[("total_rss", "anonymous"), ("total_cache", "cache")],
            CgroupVersion::V2 => &[("anon", "anonymous"), ("file", "cache"), ("slab", "slab")],
        }
    }
}

/// v1 shows "no limit" as the largest number of whole pages, which depends on the page size.
const UNLIMITED: u64 = 1 << 62;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostGroup {
    /// Its path below the root of the hierarchy; `/` for the root.
    pub path: String,
    /// Index of its parent in the list of all groups; `None` for the root.
    pub parent: Option<usize>,
    pub version: CgroupVersion,
    /// Values that are set: (control file, bytes or another number); `None` means `max`.
    pub controls: Vec<(GroupControl, Option<u64>)>,
    /// `cpu.max` with its period, if there is a limit.
    pub cpu_max: Option<String>,
    /// `memory.swappiness`, set or not (version 1).
    pub swappiness: Option<u64>,
    /// Bytes in use, including descendants.
    pub usage: Option<u64>,
    /// `memory.stat`.
    pub stat: NamedCounts,
}

/// Parses a group from its files: (name, text). The caller compares swappiness with the parent's,
/// which decides whether it counts as set.
pub fn parse<'t>(
    version: CgroupVersion,
    path: &str,
    files: impl IntoIterator<Item = (&'t str, &'t str)>,
) -> (HostGroup, Vec<ImportNote>) {
    let mut notes = Vec::new();
    let mut group = HostGroup {
        path: path.to_owned(),
        parent: None,
        version,
        controls: Vec::new(),
        cpu_max: None,
        swappiness: None,
        usage: None,
        stat: NamedCounts::new(),
    };
    for (name, text) in files {
        let mut refuse = |message: &str| {
            let place = format!("{}:{name}", shown(path));
            notes.push(ImportNote { text: shown(text), ..ImportNote::new(place, message) });
        };
        if name == version.usage() {
            group.usage = count(text.trim());
            if group.usage.is_none() {
                refuse("not a count");
            }
        } else if name == "memory.stat" {
            let (entries, strange) = vmstat::parse_of("memory.stat", text);
            group.stat = entries;
            let place = format!("{}:{name}", shown(path));
            notes.extend(strange.into_iter().map(|note| note.in_file(&place)));
        } else if let Some(&control) = version.controls().iter().find(|one| one.name() == name) {
            if control == GroupControl::CpuMax {
                let text = text.trim();
                match GroupControlWrite::read(name, text) {
                    Ok(_) if text.starts_with("max") => {}
                    Ok(_) => group.cpu_max = Some(text.to_owned()),
                    Err(_) => refuse("left out, not a valid value of this control file"),
                }
                continue;
            }
            match value(control, text.trim()) {
                Some(ControlState::Set(value)) if control == GroupControl::Swappiness => {
                    group.swappiness = value;
                }
                // Of duplicate files, the first counts.
                Some(ControlState::Set(_))
                    if group.controls.iter().any(|(one, _)| *one == control) => {}
                Some(ControlState::Set(value)) => group.controls.push((control, value)),
                Some(ControlState::Unset) => {}
                None => refuse("left out, not a valid value of this control file"),
            }
        }
    }
    group.controls.sort_by_key(|(name, _)| version.controls().iter().position(|one| one == name));
    (group, notes)
}

enum ControlState {
    Set(Option<u64>),
    /// The value of a new group.
    Unset,
}

fn value(control: GroupControl, text: &str) -> Option<ControlState> {
    match control {
        GroupControl::Swappiness => {
            count(text).filter(|value| *value <= 200).map(|value| ControlState::Set(Some(value)))
        }
        GroupControl::OomGroup | GroupControl::ZswapWriteback | GroupControl::CpuWeight => {
            let (bounds, default) = match control {
                GroupControl::ZswapWriteback => (0..=1, 1),
                GroupControl::OomGroup => (0..=1, 0),
                _ => (1..=10_000, 100),
            };
            match count(text).filter(|value| bounds.contains(value))? {
                value if value == default => Some(ControlState::Unset),
                value => Some(ControlState::Set(Some(value))),
            }
        }
        // Protection; the default is 0.
        GroupControl::Min | GroupControl::Low => match text {
            "max" => Some(ControlState::Set(None)),
            _ => match count(text)? {
                0 => Some(ControlState::Unset),
                bytes => Some(ControlState::Set(Some(bytes).filter(|bytes| *bytes < UNLIMITED))),
            },
        },
        _ => match text {
            "max" | "-1" => Some(ControlState::Unset),
            _ => match count(text)? {
                UNLIMITED.. => Some(ControlState::Unset),
                bytes => Some(ControlState::Set(Some(bytes))),
            },
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_2() {
        let files = [
            ("memory.swap.max", "0\n"),
            ("memory.max", "314572800\n"),
            ("memory.high", "max\n"),
            ("memory.low", "0\n"),
            ("memory.min", "max\n"),
            ("memory.current", "4096\n"),
            ("memory.stat", "anon 1\nfile 2\n"),
            ("memory.limit_in_bytes", "77\n"),
            ("memory.oom.group", "1\n"),
            ("cpu.weight", "79\n"),
            ("cpu.max", "50000 100000\n"),
            ("pids.max", "x"),
        ];
        let (group, notes) = parse(CgroupVersion::V2, "/a", files);
        assert_eq!(notes, []);
        let wanted = [
            (GroupControl::Min, None),
            (GroupControl::Max, Some(314_572_800)),
            (GroupControl::SwapMax, Some(0)),
            (GroupControl::OomGroup, Some(1)),
            (GroupControl::CpuWeight, Some(79)),
        ];
        assert_eq!(group.controls, wanted);
        assert_eq!(group.cpu_max.as_deref(), Some("50000 100000"));
        assert_eq!((group.usage, group.stat.len()), (Some(4096), 2));
    }

    #[test]
    fn what_a_fresh_group_has_is_not_set() {
        let files =
            [("memory.oom.group", "0"), ("cpu.weight", "100\n"), ("cpu.max", "max 100000\n")];
        let (group, notes) = parse(CgroupVersion::V2, "/a", files);
        assert_eq!((group.controls, group.cpu_max, notes), (Vec::new(), None, Vec::new()));
        // An idle group has the weight 0, which cannot be written.
        let files = [("memory.oom.group", "2"), ("cpu.weight", "0\n"), ("cpu.max", "5 x\n")];
        let (group, notes) = parse(CgroupVersion::V2, "/a", files);
        assert_eq!((group.controls, group.cpu_max, notes.len()), (Vec::new(), None, 3));
    }

    #[test]
    fn version_1() {
        let files = [
            ("memory.limit_in_bytes", "9223372036854771712\n"),
            ("memory.soft_limit_in_bytes", "1048576\r\n"),
            ("memory.swappiness", "10\n"),
            ("memory.usage_in_bytes", "5"),
        ];
        let (group, notes) = parse(CgroupVersion::V1, "/", files);
        assert_eq!(notes, []);
        assert_eq!(group.controls, [(GroupControl::SoftLimitInBytes, Some(1_048_576))]);
        assert_eq!((group.swappiness, group.usage), (Some(10), Some(5)));
    }

    #[test]
    fn what_is_strange_is_noted() {
        let files = [
            ("memory.max", "99999999999999999999999"),
            ("memory.min", "-1"),
            ("memory.current", ""),
            ("memory.stat", "x"),
        ];
        let (group, notes) = parse(CgroupVersion::V2, "/a\nb", files);
        assert_eq!(group.controls, []);
        assert_eq!(notes.len(), 5);
        assert!(notes[0].to_string().starts_with("/a\\u{a}b:memory.max: left out"), "{}", notes[0]);
        let (group, notes) = parse(CgroupVersion::V1, "/", [("memory.swappiness", "201")]);
        assert_eq!((group.swappiness, notes.len()), (None, 1));
    }
}
