//! The scenario that a live machine performs, as far as it can, and what the simulator counts in it.
//!
//! One text, `host-costs.toml`, whose parts say what they need. What is left is made smaller where little memory is
//! free. The simulator performs the same with the machine's CPUs, knobs and policies.
//!
//! Invariant: whatever a machine is able to do, the text loads.

use pagetide_core::config::{PolicySet, Sysctl};
use pagetide_scenario::load::{load_str, Overrides};
use pagetide_scenario::model::Setup;
use std::path::Path;

const TEXT: &str = include_str!("host-costs.toml");
/// Its name.
pub const NAME: &str = "host-costs";
/// How a line begins that says what a part needs.
const MARK: &str = "#: ";
/// Pages of a zone at most, of the simulator's machine: a group that reclaims from itself does not see how much
/// memory is around it, and a large machine would take as much to simulate as it has.
const ZONE_PAGES_MAX: u64 = 1 << 18;
/// Memory that the groups of the scenario have in all, at most, in its MiB.
pub const MIB_IN_ALL: u64 = 152;

/// What of the scenario can be performed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Able {
    /// What a MiB of the scenario is, in KiB.
    pub kib: u64,
    /// There are groups of its own.
    pub groups: bool,
    /// These have memory.reclaim.
    pub reclaim: bool,
    /// There are files of its own, on a disk.
    pub files: bool,
}

impl Able {
    fn has(self, word: &str) -> bool {
        match word {
            "always" => true,
            "groups" => self.groups,
            "reclaim" => self.reclaim,
            "files" => self.files,
            _ => false,
        }
    }

    /// The text, with what can be performed.
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

    /// A line with its size, if it has one, in KiB of this machine.
    fn scaled(self, line: &str) -> String {
        let parts = line.split_once(" = \"").and_then(|(key, value)| {
            let (number, unit) = [("MiB\"", "KiB"), ("M\"", "K")]
                .into_iter()
                .find_map(|(end, unit)| Some((value.strip_suffix(end)?, unit)))?;
            Some((key, number.parse::<u64>().ok()?, unit))
        });
        // What holds the disks and the whole is not a size of a phase.
        match parts {
            Some((key, mib, unit)) => format!("{key} = \"{}{unit}\"", mib * self.kib),
            None => line.to_owned(),
        }
    }

    /// The setup of the text, on a machine that has no more than the text says.
    fn plain_setup(self) -> Setup {
        let loaded = load_str(NAME, &self.text(), Path::new(""), &Overrides::default());
        let mut scenario = loaded.expect("the scenario that comes with the program is sound");
        scenario.variants.remove(0).setup
    }

    /// The setup for the simulator, on the machine that `imported` describes, with a kernel of this release.
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
        // The disk that has the files may be another; they are all alike in what a request costs.
        machine.swap = None;
        setup.machine = machine;
        setup.sysctls.clone_from(&imported.sysctls);
        // It is of a machine of that size.
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

    fn all() -> Vec<Able> {
        let mut all = Vec::new();
        for kib in [1024, 512, 256] {
            for bits in 0..8u8 {
                let [groups, reclaim, files] = [1, 2, 4].map(|bit| bits & bit != 0);
                all.push(Able { kib, groups, reclaim, files });
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
                Able { files: false, .. } => &["memory"][..],
                Able { groups: false, .. } => &["memory", "files", "writes"],
                Able { reclaim: false, .. } => &["memory", "files", "writes", "boxed"],
                _ => &["memory", "files", "writes", "boxed", "taken"],
            };
            assert_eq!(tasks, wanted, "{able:?}");
        }
    }

    #[test]
    fn sizes_follow_the_free_memory() {
        let able = Able { kib: 256, groups: true, reclaim: true, files: true };
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
