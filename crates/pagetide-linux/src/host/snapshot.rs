//! The state of a system, according to its files.
//!
//! Invariant: everything is optional. A missing file leaves its part empty, a malformed one causes
//! notes, and only the generation of a scenario requires the size of memory.

use super::block::{self, BlockDevice};
use super::buddyinfo::{self, BuddyInfo};
use super::cgroup::HostGroup;
use super::compressed_swap::{self, HostZram, HostZswap};
use super::daemons::HostDaemons;
use super::error::HostError;
use super::files::HostFiles;
use super::group_tree;
use super::meminfo::{self, MemInfo};
use super::note::ImportNote;
use super::number::count;
use super::pagetypeinfo::{self, PageTypeInfo};
use super::release;
use super::slabinfo::{self, SlabCache};
use super::swaps::{self, HostSwap};
use super::sysctl;
use super::vmstat::{self, NamedCounts};
use super::zoneinfo::{self, HostZoneInfo};
use pagetide_core::config::Sysctl;
use std::path::Path;

pub(super) const LRU_GEN: &str = "/sys/kernel/mm/lru_gen/enabled";
pub(super) const ZONE_RECLAIM: &str = "/proc/sys/vm/zone_reclaim_mode";

/// The contents of a system's files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostSnapshot {
    /// The kernel's release: 6.1.0-41-amd64.
    pub release: Option<String>,
    /// Size of a page in kB, from the smaps of a process or from a report's free lists.
    pub kernel_page_kb: Option<u64>,
    /// The file that switches the multi-generational LRU on, if it is on.
    pub multi_gen_lru: Option<String>,
    /// `vm.zone_reclaim_mode`, if it is not 0.
    pub zone_reclaim: Option<String>,
    /// /proc/zoneinfo
    pub zones: HostZoneInfo,
    /// /proc/meminfo
    pub memory: MemInfo,
    /// /proc/vmstat
    pub counters: NamedCounts,
    /// /proc/buddyinfo
    pub free_blocks: Vec<BuddyInfo>,
    /// /proc/pagetypeinfo, which only root may read
    pub types: PageTypeInfo,
    /// /proc/slabinfo
    pub slabs: Vec<SlabCache>,
    /// /proc/swaps
    pub swaps: Vec<HostSwap>,
    /// The zram devices of /sys/block
    pub zrams: Vec<HostZram>,
    /// The parameters of zswap, if it is on
    pub zswap: Option<HostZswap>,
    /// The configuration of kubelet, systemd-oomd and earlyoom
    pub daemons: HostDaemons,
    /// Control files that a scenario accepts, with the text to write.
    pub sysctls: Vec<(Sysctl, String)>,
    /// /sys/block
    pub disks: Vec<BlockDevice>,
    /// /sys/fs/cgroup, parents before children, the root first.
    pub groups: Vec<HostGroup>,
    /// Notes about what was not understood.
    pub notes: Vec<ImportNote>,
}

impl HostSnapshot {
    /// Reads the system below `root`: `/`, or a copy with the same layout.
    /// Fails if `root` is no readable directory. Missing files cause errors only where they are
    /// needed.
    pub fn read(root: &Path) -> Result<HostSnapshot, HostError> {
        let files = HostFiles::new(root)?;
        if files.exists("/zoneinfo") && !files.exists("/proc") {
            return Err(HostError::ProcDirectory(root.to_owned()));
        }
        let mut notes = Vec::new();
        let mut host = HostSnapshot {
            release: files
                .read("/proc/sys/kernel/osrelease", &mut notes)
                .and_then(|text| release::of_osrelease(&text))
                .or_else(|| release::of_version(&files.read("/proc/version", &mut notes)?)),
            kernel_page_kb: ["self", "1"].iter().find_map(|process| {
                let place = format!("/proc/{process}/smaps");
                // Only root may read it; a mapping of hugetlbfs has larger pages.
                let text = files.read(place, &mut Vec::new())?;
                let sizes = text.lines().filter_map(|line| line.strip_prefix("KernelPageSize:"));
                sizes.filter_map(|size| count(size.trim().strip_suffix("kB")?.trim())).min()
            }),
            multi_gen_lru: files.read(LRU_GEN, &mut notes).filter(|text| is_on(text)),
            zone_reclaim: files.read(ZONE_RECLAIM, &mut notes).filter(|text| is_on(text)),
            zones: parsed(&files, "/proc/zoneinfo", zoneinfo::parse, &mut notes),
            memory: parsed(&files, "/proc/meminfo", meminfo::parse, &mut notes),
            counters: parsed(&files, "/proc/vmstat", vmstat::parse, &mut notes),
            free_blocks: parsed(&files, "/proc/buddyinfo", buddyinfo::parse, &mut notes),
            slabs: parsed(&files, "/proc/slabinfo", slabinfo::parse, &mut notes),
            swaps: parsed(&files, "/proc/swaps", swaps::parse, &mut notes),
            types: types(&files),
            ..HostSnapshot::default()
        };
        for &sysctl in Sysctl::ALL.iter().filter(|sysctl| !sysctl.file().form.is_action()) {
            let is_of_generations =
                matches!(sysctl, Sysctl::LruGenEnabled | Sysctl::LruGenMinTtlMs);
            if is_of_generations && host.multi_gen_lru.is_none() {
                continue;
            }
            let Some(place) = sysctl.path() else { continue };
            let Some(text) = files.read(&place, &mut notes) else { continue };
            match sysctl::parse(sysctl, &text) {
                Ok(Some(value)) => host.sysctls.push((sysctl, value)),
                Ok(None) => {}
                Err(note) => notes.push(note),
            }
        }
        for name in files.list("/sys/block", false, &mut notes) {
            let directory = Path::new("/sys/block").join(&name);
            let texts = block::FILES.map(|file| files.read(directory.join(file), &mut notes));
            let texts = texts.each_ref().map(|text| text.as_deref());
            let (device, strange) = BlockDevice::parse(&name.to_string_lossy(), texts);
            host.disks.push(device);
            notes.extend(strange);
        }
        host.zrams = compressed_swap::zrams(&files, &mut notes);
        host.zswap = compressed_swap::zswap(&files, &mut notes);
        host.daemons = HostDaemons::read(&files, &mut notes);
        host.groups = group_tree::read(&files, &mut notes);
        host.notes = notes;
        Ok(host)
    }

    /// The text of a control file for a scenario.
    pub fn sysctl(&self, sysctl: Sysctl) -> Option<&str> {
        self.sysctls.iter().find(|(one, _)| *one == sysctl).map(|(_, value)| value.as_str())
    }
}

/// Whether the text of a file with switches is none of the forms of 0.
fn is_on(text: &str) -> bool {
    let bits = text.trim().trim_start_matches("0x");
    !matches!(bits, "n" | "N") && !bits.bytes().all(|byte| byte == b'0')
}

/// The free lists. Only `--as-is` needs them, so notes about them are kept apart.
fn types(files: &HostFiles) -> PageTypeInfo {
    let mut notes = Vec::new();
    let parse = |text: &str| (pagetypeinfo::parse(text), Vec::new());
    let mut types = parsed(files, "/proc/pagetypeinfo", parse, &mut notes);
    types.notes.splice(0..0, notes);
    types
}

/// The parsed file `place`; if it is missing, the default and a note.
fn parsed<T: Default>(
    files: &HostFiles,
    place: &str,
    parse: fn(&str) -> (T, Vec<ImportNote>),
    notes: &mut Vec<ImportNote>,
) -> T {
    let before = notes.len();
    let Some(text) = files.read(place, notes) else {
        if notes.len() == before {
            notes.push(ImportNote::new(place, "there is no such file"));
        }
        return T::default();
    };
    let (value, strange) = parse(&text);
    notes.extend(strange);
    value
}
