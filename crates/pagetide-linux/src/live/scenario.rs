//! The scenario that a live machine performs, and its setup for the simulator.
//!
//! The parts of the text `host-costs.toml` state their requirements. Parts that the machine cannot
//! perform are left out, and sizes are scaled down if little memory is free. The simulator performs
//! the same text with the machine's CPUs, knobs and policies.
//!
//! Invariant: every combination of parts loads.

use pagetide_core::config::{PolicySet, Sysctl};
use pagetide_scenario::load::{load_str, Overrides};
use pagetide_scenario::model::Setup;
use std::path::Path;

const TEXT: &str = include_str!("host-costs.toml");
pub const NAME: &str = "host-costs";
/// Prefix of a line with the requirements of a part.
const MARK: &str = "#: ";
/// Maximum pages of a zone in the simulated machine. A group that reclaims from itself does not
/// depend on the size of the machine, and simulating a large machine takes long.
const ZONE_PAGES_MAX: u64 = 1 << 18;
/// Maximum memory of all groups of the scenario, in its MiB.
pub const MIB_IN_ALL: u64 = 152;

/// The parts of the scenario that can be performed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostAbilities {
    /// Size of a MiB of the scenario, in KiB.
    pub kib: u64,
    /// Temporary groups are available.
    pub groups: bool,
    /// The groups have memory.reclaim.
    pub reclaim: bool,
    /// Temporary files on a disk are available.
    pub files: bool,
}

impl HostAbilities {
    fn has(self, word: &str) -> bool {
        match word {
            "always" => true,
            "groups" => self.groups,
            "reclaim" => self.reclaim,
            "files" => self.files,
            _ => false,
        }
    }

    /// The text with the parts that can be performed.
    pub fn text(self) -> String {
        let mut text = String::new();
        let mut is_kept = true;
        for line in TEXT.lines() {
            if let Some(words) = line.strip_prefix(MARK) {
                is_kept = words.split(' ').all(|word| self.has(word));
            } else if is_kept && (self.groups || !line.starts_with("group = ")) {
                text += &self.scaled(line);
                text.push('\n');
            }
        }
        text
    }

    /// A line with its size, if it has one, scaled to KiB.
    fn scaled(self, line: &str) -> String {
        let parts = line.split_once(" = \"").and_then(|(key, value)| {
            let (number, unit) = [("MiB\"", "KiB"), ("M\"", "K")]
                .into_iter()
                .find_map(|(end, unit)| Some((value.strip_suffix(end)?, unit)))?;
            Some((key, number.parse::<u64>().ok()?, unit))
        });
        // The sizes of the disks and of the machine are not scaled.
        match parts {
            Some((key, mib, unit)) => format!("{key} = \"{}{unit}\"", mib * self.kib),
            None => line.to_owned(),
        }
    }

    /// The setup of the text, with the machine in the text.
    fn plain_setup(self) -> Setup {
        let loaded = load_str(NAME, &self.text(), Path::new(""), &Overrides::default());
        let mut scenario = loaded.expect("the built-in scenario is valid");
        scenario.variants.remove(0).setup
    }

    /// The setup for the simulator, on the machine that `imported` describes, with a kernel of this
    /// release.
    pub fn setup(self, imported: &Setup, release: Option<&str>) -> Setup {
        let mut setup = self.plain_setup();
        let mut machine = imported.machine.clone();
        for zone in machine.nodes.iter_mut().flat_map(|node| &mut node.zones) {
            zone.present = zone.present.min(ZONE_PAGES_MAX);
            zone.managed = zone.managed.min(zone.present);
            zone.free = zone.managed;
            zone.late = 0;
            zone.free_lists = None;
        }
        for node in machine.nodes.iter_mut().filter(|node| node.zones.is_empty()) {
            node.memory = node.memory.min(ZONE_PAGES_MAX * 4096);
        }
        // The disk with the files may be another, but all disks have the same costs per request.
        machine.swap.clear();
        setup.machine = machine;
        setup.sysctls.clone_from(&imported.sysctls);
        // This knob belongs to the size of the real machine.
        setup.sysctls.retain(|write| write.name() != Sysctl::MinFreeKbytes.name());
        setup.policies = imported.policies.clone();
        if let Some(release) = release.filter(|_| setup.policies.kernel().is_none()) {
            setup.policies.follow(PolicySet::of_release(release));
        }
        setup
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all() -> Vec<HostAbilities> {
        let mut all = Vec::new();
        for kib in [1024, 512, 256] {
            for bits in 0..8u8 {
                let [groups, reclaim, files] = [1, 2, 4].map(|bit| bits & bit != 0);
                all.push(HostAbilities { kib, groups, reclaim, files });
            }
        }
        all
    }

    #[test]
    fn the_scenario_is_sound_whatever_can_be_performed() {
        for able in all() {
            let setup = able.plain_setup();
            assert_eq!(setup.tasks[0].group.is_some(), able.groups, "{able:?}");
            let tasks: Vec<&str> = setup.tasks.iter().map(|task| task.name.as_str()).collect();
            let wanted = match able {
                HostAbilities { files: false, .. } => &["memory"][..],
                HostAbilities { groups: false, .. } => &["memory", "files", "writes"],
                HostAbilities { reclaim: false, .. } => &["memory", "files", "writes", "boxed"],
                _ => &["memory", "files", "writes", "boxed", "taken"],
            };
            assert_eq!(tasks, wanted, "{able:?}");
        }
    }

    #[test]
    fn sizes_follow_the_free_memory() {
        let able = HostAbilities { kib: 256, groups: true, reclaim: true, files: true };
        let text = able.text();
        assert!(text.contains("size = \"8192KiB\"") && text.contains("text = \"6144K\""), "{text}");
        assert!(!text.contains("MiB\"\n") && !text.lines().any(|line| line.starts_with(MARK)));
        let groups = able.plain_setup().groups;
        let limits = groups.iter().map(|group| group.controls[0].to_string());
        assert_eq!(limits.collect::<Vec<_>>(), ["22M", "6M", "10M"]);
        let in_all: u64 = [88, 24, 40].iter().sum();
        assert_eq!(in_all, MIB_IN_ALL);
    }
}
