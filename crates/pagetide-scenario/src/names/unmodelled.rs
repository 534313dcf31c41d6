//! Parts of Linux that Pagetide does not model, each with what comes nearest: the answers of
//! `pagetide explain`, and the hints of a scenario that names one. docs/fidelity.md lists them.
//!
//! Invariant: no name here is a name of a metric, a control file, a key or a workload.

/// A part of Linux that is not modelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnmodelledFeature {
    /// Its names in lower case, with `-` for `_`; the first is that of the documents.
    pub names: &'static [&'static str],
    pub about: &'static str,
    /// The nearest thing in Pagetide.
    pub instead: &'static str,
}

impl UnmodelledFeature {
    /// The feature of this name, in any case, also after an owner: `group.web.memory.swap.high`.
    pub fn named(name: &str) -> Option<&'static UnmodelledFeature> {
        let name = name.to_lowercase().replace('_', "-");
        let is_it = |known: &&str| {
            let owner = name.strip_suffix(known);
            owner.is_some_and(|owner| owner.is_empty() || owner.ends_with('.'))
        };
        ALL.iter().find(|feature| feature.names.iter().any(is_it))
    }

    /// `tmpfs is not modelled; nearest: ...`. `name`: as the user wrote it.
    pub fn hint(&self, name: &str) -> String {
        format!("{name} is not modelled; nearest: {}", self.instead)
    }
}

macro_rules! features {
    ($([$($name:literal)*] $about:literal, $instead:literal;)*) => {
        /// All of them, in the order of the document.
        pub const ALL: &[UnmodelledFeature] =
            &[$(UnmodelledFeature { names: &[$($name),*], about: $about, instead: $instead }),*];
    };
}

features! {
    ["fork" "cow" "copy-on-write" "vfork" "clone"]
        "A child that shares its parent's pages until one of the two writes",
        "a task that touches as much memory as would be copied, at the time of the writes";
    ["tmpfs" "shmem" "shm" "shared-memory" "shared-buffers" "memfd" "/dev/shm"]
        "Anonymous memory that several tasks share, and files in memory",
        "the anonymous memory of one task that fills it and then sleeps: it is charged once, and \
         can be swapped";
    ["hugetlb" "hugetlbfs" "vm.nr-hugepages" "nr-hugepages"]
        "Pools of huge pages",
        "machine.reserved for the pool, or transparent huge pages (policy.thp)";
    ["mthp" "large-folios"]
        "Anonymous huge pages of other sizes than 512 pages, and page cache in large folios",
        "transparent huge pages (policy.thp) and machine.page_size";
    ["ksm" "same-page-merging"]
        "Merging of equal pages",
        "less anonymous memory in the tasks";
    ["numa-balancing" "autonuma" "kernel.numa-balancing"]
        "Migration of pages to the node of their task",
        "machine.node: a page stays on the node where it was allocated";
    ["memory-tiers" "demotion" "demotion-enabled"]
        "Demotion of cold pages to slower memory",
        "swap on a fast disk";
    ["mempolicy" "mbind" "numactl" "set-mempolicy" "cpuset" "cpuset.mems" "cpuset.cpus"]
        "Binding of tasks to nodes and CPUs",
        "a machine of one node with the memory of that node";
    ["damon" "damon-reclaim" "damos"]
        "Proactive reclaim by sampled accesses",
        "a task that writes to memory.reclaim (workload write-control)";
    ["nohang" "oomd"]
        "Other killers in user space",
        "[[watcher]] with kind systemd-oomd, earlyoom or lmkd; Facebook's oomd has plug-ins, of which \
         senpai is a rule of the watcher reclaim-loop";
    ["avg10" "avg60" "avg300"]
        "Metrics of the averages of PSI",
        "the totals psi.memory.some and psi.memory.full, and their course in \
         `pagetide inspect --timeline`; watchers and memory.pressure have the averages";
    ["memory.swap.high" "memory.memsw.limit-in-bytes"]
        "Throttling by swap, and version 1's limit of memory and swap together",
        "memory.swap.max, which is a hard limit of swap; memory.high throttles by memory";
    ["io.max" "io.weight" "io.latency" "io.cost.qos" "blkio"]
        "Limits of a group's I/O",
        "a disk of its own with the bandwidth of the limit (machine.disk)";
    ["fsync" "sync" "msync" "fdatasync" "o-direct" "direct-io"]
        "A wait until data is on the disk, and I/O past the page cache",
        "nr_dirty and nr_writeback at the end of a phase, and vm.dirty_bytes";
    ["balloon" "memory-hotplug"]
        "Memory that comes and goes",
        "machine.reserved for memory that nothing else can use";
    ["userfaultfd" "process-madvise" "mremap"]
        "Calls that move or populate the memory of a task",
        "workload advise for the calls of madvise()";
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn a_feature_is_found_by_each_name_and_after_an_owner() {
        let all: Vec<&str> = ALL.iter().flat_map(|feature| feature.names).copied().collect();
        let unique: BTreeSet<&str> = all.iter().copied().collect();
        assert_eq!(unique.len(), all.len());
        for feature in ALL {
            for name in feature.names {
                assert_eq!(UnmodelledFeature::named(name), Some(feature), "{name}");
            }
        }
        let first = |name: &str| UnmodelledFeature::named(name).map(|it| it.names[0]);
        assert_eq!(first("/dev/shm"), Some("tmpfs"));
        assert_eq!(first("KSM"), Some("ksm"));
        assert_eq!(first("group.web.memory.swap.high"), Some("memory.swap.high"));
        assert_eq!(first("memory.high"), None);
        assert_eq!(first("sync-me"), None);
    }

    #[test]
    fn the_document_lists_the_features() {
        let document = include_str!("../../../../docs/fidelity.md");
        for feature in ALL {
            let row = format!("| {} | ", feature.names[0]);
            assert!(document.contains(&row), "{row}");
        }
    }
}
