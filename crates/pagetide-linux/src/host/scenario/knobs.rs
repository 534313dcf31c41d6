//! Writes `[policy]` and `[sysctl]`: the behaviour and the knobs of the system's kernel.
//!
//! Invariant: only knobs that the system has are written. Of two exclusive knobs (`vm.dirty_bytes`,
//! `vm.dirty_ratio`) only the effective one is written.

use super::page::{quoted, ScenarioText};
use crate::host::free;
use crate::host::marks::{ReadMarks, SCALE_FACTOR};
use crate::host::note::{shown, ImportNote};
use crate::host::release;
use crate::host::snapshot::{HostSnapshot, LRU_GEN, ZONE_RECLAIM};
use pagetide_core::config::{ControlForm, ControlOrigin, PolicySet, Sysctl};
use pagetide_core::units::page_size::PageSize;
use pagetide_scenario::names::{NameSet, ZoneName};

/// Default of `vm.lowmem_reserve_ratio`, by zone of a scenario; where all memory below HighMem is
/// zone DMA, as on many ARM machines, its first ratio is also that of zone Normal.
const RESERVE_RATIOS: [&str; 4] = ["256", "256", "32", "0"];

pub(super) fn write(
    page: &mut ScenarioText,
    host: &HostSnapshot,
    set: PolicySet,
    marks: &ReadMarks,
) {
    page.line("");
    page.line("[sysctl]");
    let places = ["/proc/sys/vm/", "/sys/kernel/debug/", "/sys/kernel/mm/"];
    let about = |note: &&ImportNote| places.iter().any(|place| note.place.starts_with(place));
    // These are in the notes of the snapshot already.
    for note in host.notes.iter().filter(about) {
        page.comment(&note.to_string());
    }
    for (sysctl, text) in &host.sysctls {
        let name = sysctl.name();
        if name.starts_with("lru_gen.") && !has_generations(set) {
            continue;
        }
        let is_excluded = match sysctl {
            Sysctl::DirtyRatio => host.sysctl(Sysctl::DirtyBytes).is_some(),
            Sysctl::DirtyBackgroundRatio => host.sysctl(Sysctl::DirtyBackgroundBytes).is_some(),
            _ => false,
        };
        if is_excluded {
            page.comment(&format!("{name} has no effect: a limit in bytes is set"));
        } else if name.starts_with("vm.wmark_") {
            let message = format!("{name} is left out: it needs the policy `apart`");
            page.comment_note(ImportNote::new("/proc/sys/vm", message));
        } else if !is_in_bounds(*sysctl, text, page.size) {
            let message = format!("{name} is left out: {text} is not valid for larger pages");
            page.comment_note(ImportNote::new("/proc/sys/vm", message));
        } else {
            match sysctl.file().form {
                ControlForm::Policy(_) => page.line(&format!("\"{name}\" = {}", quoted(text))),
                ControlForm::Zones => {
                    page.line(&format!("\"{name}\" = {}", quoted(&reserve_ratios(host, text))));
                }
                _ => page.line(&format!("\"{name}\" = {text}")),
            }
        }
    }
    let derived = [
        (Sysctl::MinFreeKbytes, marks.min_free_kbytes),
        (Sysctl::WatermarkScaleFactor, marks.scale_factor.filter(|factor| *factor != SCALE_FACTOR)),
    ];
    for (sysctl, value) in derived {
        if let Some(value) = value.filter(|_| host.sysctl(sysctl).is_none()) {
            page.line(&format!("\"{}\" = {value} # from the watermarks", sysctl.name()));
        }
    }
    let ratios = Sysctl::LowmemReserveRatio;
    if host.sysctl(ratios).is_none() && is_all_dma(host) {
        let name = ratios.name();
        page.line(&format!("\"{name}\" = \"256 256 256 0\" # all below HighMem is zone DMA"));
    }
    switches(page, host, set);
    read_ahead(page, host);
}

/// The policies of the system's kernel.
pub(super) fn policies(
    page: &mut ScenarioText,
    host: &HostSnapshot,
    set: PolicySet,
    note: Option<ImportNote>,
) {
    page.line("");
    page.line("[policy]");
    page.line(&format!("kernel = \"{set}\""));
    note.into_iter().for_each(|note| page.comment_note(note));
    match &host.multi_gen_lru {
        Some(_) if has_generations(set) => {
            page.line(&format!("lru = \"mglru\" # {LRU_GEN} is on"));
        }
        Some(text) => {
            let message = "the multi-generational LRU is on; the scenario has two lists";
            let note = ImportNote::new(LRU_GEN, message);
            page.comment_note(ImportNote { text: shown(text), ..note });
        }
        None => page.comment(&format!("the two lists: {LRU_GEN} is off or not there")),
    }
    if let Some(text) = &host.zone_reclaim {
        let message = "a node is reclaimed before another is used; a run does not";
        let note = ImportNote::new(ZONE_RECLAIM, message);
        page.comment_note(ImportNote { text: shown(text), ..note });
    }
}

/// Whether the kernel may have the multi-generational LRU.
fn has_generations(set: PolicySet) -> bool {
    matches!(set, PolicySet::Linux61 | PolicySet::Linux612)
}

/// Whether the number suits the size of the system's pages. It was read as if they had 4 KiB.
fn is_in_bounds(sysctl: Sysctl, text: &str, size: PageSize) -> bool {
    let Some((min, max)) = sysctl.file().form.bounds(size) else { return true };
    text.parse().is_ok_and(|value| (min..=max).contains(&value))
}

/// Switches that follow from the release, where its file is unknown. A release between two sets of
/// policies can have what the older set does not.
fn switches(page: &mut ScenarioText, host: &HostSnapshot, set: PolicySet) {
    let Some(release) = &host.release else { return };
    // Linux 3.15 has the set of 3.3, which switches it off.
    let is_off = set.switched_off().iter().any(|(sysctl, _)| *sysctl == Sysctl::FaultAroundBytes);
    let around =
        Some(Sysctl::FaultAroundBytes).filter(|_| is_off && !release::is_before(release, "3.15"));
    for sysctl in
        [Sysctl::WatermarkBoostFactor, Sysctl::CompactionProactiveness].into_iter().chain(around)
    {
        let file = sysctl.file();
        let ControlOrigin::Linux(since) = file.since else { continue };
        if host.sysctl(sysctl).is_none() {
            let value = if release::is_before(release, since) { "0" } else { file.default };
            page.line(&format!("\"{}\" = {value} # since Linux {since}", file.name));
        }
    }
}

/// The ratios of the scenario's zones. The kernel has one for each zone of its configuration.
fn reserve_ratios(host: &HostSnapshot, text: &str) -> String {
    let ratios: Vec<&str> = text.split(' ').collect();
    let zones = &host.zones.zones;
    let node = zones.first().map_or(0, |zone| zone.node);
    let names: Vec<&str> =
        zones.iter().filter(|zone| zone.node == node).map(|zone| zone.name.as_str()).collect();
    let has_highmem = names.contains(&"HighMem");
    // An old kernel lists populated zones only. Its last ratio is that of HighMem, if it has one.
    let unlisted = if has_highmem { ratios.len().saturating_sub(names.len()) } else { 0 };
    if !has_highmem && names.len() < ratios.len() {
        return ratios[..ratios.len().min(RESERVE_RATIOS.len())].join(" ");
    }
    let ratio = |(zone, default): (&ZoneName, &'static str)| {
        if *zone == ZoneName::Normal && is_all_dma(host) {
            return ratios[0].to_owned();
        }
        let index = names.iter().position(|name| *name == zone.name());
        let ratio = index.and_then(|index| ratios.get(index + unlisted).copied());
        ratio.unwrap_or(default).to_owned()
    };
    // HighMem has the index of Movable.
    let other = if has_highmem { ZoneName::Movable } else { ZoneName::HighMem };
    let zones = ZoneName::ALL.iter().filter(|zone| **zone != other);
    zones.zip(RESERVE_RATIOS).map(ratio).collect::<Vec<String>>().join(" ")
}

/// Whether the machine has HighMem, and all memory below it is zone DMA.
fn is_all_dma(host: &HostSnapshot) -> bool {
    let has =
        |name| host.zones.zones.iter().any(|zone| zone.name == name && free::managed(zone) > 0);
    has("HighMem") && !has("Normal")
}

/// A scenario has one read-ahead size for all disks.
fn read_ahead(page: &mut ScenarioText, host: &HostSnapshot) {
    let file = Sysctl::ReadAheadKb.file();
    let disks = || host.disks.iter().filter(|disk| disk.is_real());
    let Some(kbytes) = disks().find_map(|disk| disk.read_ahead_kb) else { return };
    let takes = file.form.bounds(page.size).map_or(0, |(_, max)| max);
    if i128::from(kbytes) > takes {
        let message = format!("left out: a scenario accepts up to {takes}, not {kbytes}");
        page.comment_note(ImportNote::new("/sys/block", format!("read_ahead_kb {message}")));
        return;
    }
    page.line(&format!("\"{}\" = {kbytes}", file.name));
    if disks().any(|disk| disk.read_ahead_kb.is_some_and(|other| other != kbytes)) {
        let message =
            "read_ahead_kb differs between disks; the scenario uses the first disk's for all";
        page.comment_note(ImportNote::new("/sys/block", message));
    }
}
