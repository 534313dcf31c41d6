//! Writes `[policy]` and `[sysctl]`: the behaviour and the knobs of the system's kernel.
//!
//! Invariant: only knobs that the system has are written. Of two exclusive knobs (`vm.dirty_bytes`,
//! `vm.dirty_ratio`) only the effective one is written.

use super::page::{quoted, ScenarioText};
use crate::host::note::ImportNote;
use crate::host::snapshot::HostSnapshot;
use pagetide_core::config::{
    ControlForm, DirectReclaimPolicy, KswapdPolicy, PcpPolicy, Sysctl, WatermarkPolicy,
};
use pagetide_core::units::page_size::PageSize;
use pagetide_scenario::names::{NameSet, ZoneName};

/// First version with a scale factor of watermarks.
const SCALE_FACTOR_SINCE: (u32, u32) = (4, 6);
/// First version with per-CPU lists sized by the low watermark.
const LARGE_LISTS_SINCE: (u32, u32) = (5, 14);
/// Last version that reclaims zone by zone.
const BY_ZONE_UNTIL: (u32, u32) = (2, 6);
/// Default of `vm.lowmem_reserve_ratio`, by zone of a scenario.
const RESERVE_RATIOS: [&str; 4] = ["256", "256", "32", "0"];

pub(super) fn write(page: &mut ScenarioText, host: &HostSnapshot) {
    policies(page, host);
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
    read_ahead(page, host);
}

fn policies(page: &mut ScenarioText, host: &HostSnapshot) {
    let version = host.version();
    let is_before = |since| version.is_some_and(|version| version < since);
    let lacks_scale_factor = host.sysctl(Sysctl::MinFreeKbytes).is_some()
        && host.sysctl(Sysctl::WatermarkScaleFactor).is_none();
    let derived = is_before(SCALE_FACTOR_SINCE) || version.is_none() && lacks_scale_factor;
    let small_lists = is_before(LARGE_LISTS_SINCE);
    let by_zone = version.is_some_and(|version| version <= BY_ZONE_UNTIL);
    if !derived && !small_lists {
        return;
    }
    page.line("");
    page.line("[policy]");
    if derived {
        page.line(&format!("watermarks = \"{}\"", WatermarkPolicy::Derived.name()));
    }
    if by_zone {
        page.line(&format!("kswapd = \"{}\"", KswapdPolicy::Linux2637.name()));
        page.line(&format!("direct_reclaim = \"{}\"", DirectReclaimPolicy::Linux2637.name()));
    }
    if small_lists {
        page.line(&format!("per_cpu_lists = \"{}\"", PcpPolicy::Linux2637.name()));
    }
}

/// The ratios of the scenario's zones. The kernel has one for each zone of its configuration.
fn reserve_ratios(host: &HostSnapshot, text: &str) -> String {
    let ratios: Vec<&str> = text.split(' ').collect();
    let zones = &host.zones.zones;
    let node = zones.first().map_or(0, |zone| zone.node);
    let names: Vec<&str> =
        zones.iter().filter(|zone| zone.node == node).map(|zone| zone.name.as_str()).collect();
    if names.len() < ratios.len() {
        // An old kernel, which does not list unpopulated zones.
        return ratios[..ratios.len().min(RESERVE_RATIOS.len())].join(" ");
    }
    let ratio = |(zone, default): (&ZoneName, &'static str)| {
        let index = names.iter().position(|name| *name == zone.name());
        index.and_then(|index| ratios.get(index).copied()).unwrap_or(default).to_owned()
    };
    ZoneName::ALL.iter().zip(RESERVE_RATIOS).map(ratio).collect::<Vec<String>>().join(" ")
}

/// A scenario has one read-ahead size for all disks.
fn read_ahead(page: &mut ScenarioText, host: &HostSnapshot) {
    let file = Sysctl::ReadAheadKb.file();
    let disks = || host.disks.iter().filter(|disk| disk.is_real());
    let Some(kbytes) = disks().find_map(|disk| disk.read_ahead_kb) else { return };
    let takes = file.form.bounds(PageSize::default()).map_or(0, |(_, max)| max);
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
