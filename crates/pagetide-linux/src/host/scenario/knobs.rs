//! `[policy]` and `[sysctl]`: the behaviour and the knobs of the system's kernel.
//!
//! Invariant: only knobs that the system has are written, and of two that exclude each other
//! (`vm.dirty_bytes`, `vm.dirty_ratio`) the one that counts.

use super::page::{quoted, Page};
use crate::host::note::Note;
use crate::host::snapshot::HostSnapshot;
use pagetide_scenario::names::{
    find_knob, DirectReclaimPolicy, KnobForm, KswapdPolicy, Named, PerCpuListsPolicy,
    WatermarksPolicy, ZoneName, SYSCTLS,
};

/// Since when the marks have a scale factor.
const SCALE_FACTOR_SINCE: (u32, u32) = (4, 6);
/// Since when per-CPU lists follow the low mark.
const LARGE_LISTS_SINCE: (u32, u32) = (5, 14);
/// Until when reclaim went zone by zone.
const BY_ZONE_UNTIL: (u32, u32) = (2, 6);
/// The default of `vm.lowmem_reserve_ratio`, by zone of a scenario.
const RESERVE_RATIOS: [&str; 4] = ["256", "256", "32", "0"];

/// Writes both tables.
pub(super) fn write(page: &mut Page, host: &HostSnapshot) {
    policies(page, host);
    page.line("");
    page.line("[sysctl]");
    let places = ["/proc/sys/vm/", "/sys/kernel/debug/", "/sys/kernel/mm/"];
    let about = |note: &&Note| places.iter().any(|place| note.place.starts_with(place));
    // These are told already, as all notes of the snapshot.
    for note in host.notes.iter().filter(about) {
        page.comment(&note.to_string());
    }
    for (name, text) in &host.sysctls {
        let is_excluded = match *name {
            "vm.dirty_ratio" => host.sysctl("vm.dirty_bytes").is_some(),
            "vm.dirty_background_ratio" => host.sysctl("vm.dirty_background_bytes").is_some(),
            _ => false,
        };
        if is_excluded {
            page.comment(&format!("{name} does not count: there is a limit in bytes"));
        } else if name.starts_with("vm.wmark_") {
            let message = format!("{name} is left out: it needs the policy `apart`");
            page.tell(Note::new("/proc/sys/vm", message));
        } else if is_word(name) {
            page.line(&format!("\"{name}\" = {}", quoted(text)));
        } else if *name == "vm.lowmem_reserve_ratio" {
            page.line(&format!("\"{name}\" = {}", quoted(&reserve_ratios(host, text))));
        } else {
            page.line(&format!("\"{name}\" = {text}"));
        }
    }
    read_ahead(page, host);
}

fn is_word(name: &str) -> bool {
    find_knob(SYSCTLS, name).is_some_and(|knob| matches!(knob.form, KnobForm::Word(_)))
}

fn policies(page: &mut Page, host: &HostSnapshot) {
    let version = host.version();
    let is_before = |since| version.is_some_and(|version| version < since);
    let lacks_scale_factor = host.sysctl("vm.min_free_kbytes").is_some()
        && host.sysctl("vm.watermark_scale_factor").is_none();
    let derived = is_before(SCALE_FACTOR_SINCE) || version.is_none() && lacks_scale_factor;
    let small_lists = is_before(LARGE_LISTS_SINCE);
    let by_zone = version.is_some_and(|version| version <= BY_ZONE_UNTIL);
    if !derived && !small_lists {
        return;
    }
    page.line("");
    page.line("[policy]");
    if derived {
        page.line(&format!("watermarks = \"{}\"", WatermarksPolicy::Derived.name()));
    }
    if by_zone {
        page.line(&format!("kswapd = \"{}\"", KswapdPolicy::Linux2637.name()));
        page.line(&format!("direct_reclaim = \"{}\"", DirectReclaimPolicy::Linux2637.name()));
    }
    if small_lists {
        page.line(&format!("per_cpu_lists = \"{}\"", PerCpuListsPolicy::Linux2637.name()));
    }
}

/// The ratios of the scenario's zones. The kernel has one for each zone that it was built with.
fn reserve_ratios(host: &HostSnapshot, text: &str) -> String {
    let ratios: Vec<&str> = text.split(' ').collect();
    let zones = &host.zones.zones;
    let node = zones.first().map_or(0, |zone| zone.node);
    let names: Vec<&str> =
        zones.iter().filter(|zone| zone.node == node).map(|zone| zone.name.as_str()).collect();
    if names.len() < ratios.len() {
        // An old kernel, which does not list zones without memory.
        return ratios[..ratios.len().min(RESERVE_RATIOS.len())].join(" ");
    }
    let ratio = |(zone, default): (&ZoneName, &'static str)| {
        let index = names.iter().position(|name| *name == zone.name());
        index.and_then(|index| ratios.get(index).copied()).unwrap_or(default).to_owned()
    };
    ZoneName::ALL.iter().zip(RESERVE_RATIOS).map(ratio).collect::<Vec<String>>().join(" ")
}

/// The scenario has one read-ahead for all disks.
fn read_ahead(page: &mut Page, host: &HostSnapshot) {
    const NAME: &str = "block.read_ahead_kb";
    let disks = || host.disks.iter().filter(|disk| disk.is_real());
    let Some(kbytes) = disks().find_map(|disk| disk.read_ahead_kb) else { return };
    let takes = match find_knob(SYSCTLS, NAME).map(|knob| knob.form) {
        Some(KnobForm::Integer { max, .. }) => u64::try_from(max).unwrap_or(0),
        _ => 0,
    };
    if kbytes > takes {
        let message = format!("left out, a scenario takes up to {takes}: {kbytes}");
        page.tell(Note::new("/sys/block", format!("read_ahead_kb {message}")));
        return;
    }
    page.line(&format!("\"{NAME}\" = {kbytes}"));
    if disks().any(|disk| disk.read_ahead_kb.is_some_and(|other| other != kbytes)) {
        let message = "read_ahead_kb differs between disks; a scenario has the first one's for all";
        page.tell(Note::new("/sys/block", message));
    }
}
