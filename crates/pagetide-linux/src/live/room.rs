//! The memory that a live machine can spare without reclaim.
//!
//! Linux: kswapd does not run as long as free pages stay above the high watermarks. A group or its
//! parents may also have a limit. Invariant: page cache does not count as free.

use crate::host::snapshot::HostSnapshot;
use std::path::Path;

/// Page size of a snapshot's counters (x86-64).
const PAGE_BYTES: u64 = 4096;
/// Files with limit and usage of a group, in v2 and v1.
const LIMITS: [(&str, &str); 3] = [
    ("memory.max", "memory.current"),
    ("memory.high", "memory.current"),
    ("memory.limit_in_bytes", "memory.usage_in_bytes"),
];

/// Bytes free above all high watermarks; `None` if the machine does not report them.
pub(super) fn free_above_watermarks(host: &HostSnapshot) -> Option<u64> {
    let zones = &host.zones.zones;
    let mut free = None::<u64>;
    for zone in zones.iter().filter(|zone| zone.managed.or(zone.present).unwrap_or(0) > 0) {
        // Free memory of one zone does not help a zone below its watermark.
        let above = zone.free?.saturating_sub(zone.high?);
        free = Some(free.unwrap_or(0).saturating_add(above));
    }
    free?.checked_mul(PAGE_BYTES)
}

/// Bytes that the limits of these groups leave; `None` without limits.
pub(super) fn free_below_limits<'a>(groups: impl IntoIterator<Item = &'a Path>) -> Option<u64> {
    let number = |group: &Path, file: &str| -> Option<u64> {
        std::fs::read_to_string(group.join(file)).ok()?.trim().parse().ok()
    };
    let left = |group: &'a Path| {
        LIMITS.into_iter().filter_map(move |(limit, used)| {
            Some(number(group, limit)?.saturating_sub(number(group, used).unwrap_or(0)))
        })
    };
    groups.into_iter().flat_map(left).min()
}

/// The v1 memory groups of this process, from its own up to the root, according to the texts of
/// /proc/self/mountinfo and /proc/self/cgroup.
pub(super) fn groups_of_version_1(mountinfo: &str, cgroup: &str) -> Vec<std::path::PathBuf> {
    let has_memory = |list: &str| list.split(',').any(|name| name == "memory");
    let mounted = mountinfo.lines().find_map(|line| {
        let (before, after) = line.split_once(" - ")?;
        let mut after = after.split(' ');
        let is_it = after.next() == Some("cgroup") && after.nth(1).is_some_and(has_memory);
        is_it.then(|| before.split(' ').nth(4)).flatten()
    });
    let path = cgroup.lines().find_map(|line| {
        let mut fields = line.splitn(3, ':').skip(1);
        fields.next().filter(|list| has_memory(list))?;
        fields.next()
    });
    let (Some(mounted), Some(path)) = (mounted, path) else { return Vec::new() };
    let below = Path::new(path.trim_start_matches('/'));
    below.ancestors().map(|below| Path::new(mounted).join(below)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::zoneinfo;

    fn host(text: &str) -> HostSnapshot {
        HostSnapshot { zones: zoneinfo::parse(text).0, ..HostSnapshot::default() }
    }

    #[test]
    fn only_what_is_above_the_marks_is_free() {
        let zone = |name: &str, free: u64| {
            let marks = "min 1\n  low 20\n  high 30";
            let sizes = "present 5000\n  managed 4000\n";
            format!("Node 0, zone {name}\n  pages free {free}\n  {marks}\n  {sizes}")
        };
        let both = zone("DMA", 10) + &zone("DMA32", 130);
        assert_eq!(free_above_watermarks(&host(&both)), Some(100 * 4096));
        assert_eq!(free_above_watermarks(&host("Node 0, zone DMA\n  present 9\n")), None);
        assert_eq!(free_above_watermarks(&HostSnapshot::default()), None);
    }

    #[test]
    fn the_narrowest_limit_counts() {
        let dir = tempfile::tempdir().unwrap();
        let groups = ["a", "b", "c"].map(|name| dir.path().join(name));
        groups.iter().for_each(|group| std::fs::create_dir(group).unwrap());
        let put = |group: usize, file: &str, text: &str| {
            std::fs::write(groups[group].join(file), text).unwrap();
        };
        let left = || free_below_limits(groups.iter().map(|group| group.as_path()));
        put(0, "memory.max", "max\n");
        put(0, "memory.current", "10\n");
        assert_eq!(left(), None);
        put(1, "memory.max", "1000\n");
        put(1, "memory.high", "700\n");
        put(1, "memory.current", "100\n");
        assert_eq!(left(), Some(600));
        put(2, "memory.limit_in_bytes", "300\n");
        put(2, "memory.usage_in_bytes", "900\n");
        assert_eq!(left(), Some(0));
    }

    #[test]
    fn groups_of_version_1_are_found() {
        let mounts = "32 31 0:28 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n\
                      33 31 0:29 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n";
        let found = groups_of_version_1(mounts, "4:memory:/a/b\n1:cpu:/\n0::/\n");
        let wanted = ["a/b", "a", ""].map(|below| Path::new("/sys/fs/cgroup/memory").join(below));
        assert_eq!(found, wanted);
        assert!(groups_of_version_1(mounts, "0::/\n").is_empty());
        assert!(groups_of_version_1("", "4:memory:/a\n").is_empty());
    }
}
