//! Policies that can be switched in a running kernel, and the files that do it.
//!
//! Linux has such files for transparent huge pages. The patches in `kernels/linux-6.1` add the
//! others, so that one kernel serves both sides of a comparison.
//!
//! Invariant: a policy has at most one switch. A variant that is Linux's own behaviour and needs no
//! write either has no text or has the text of a freshly booted kernel.

use crate::model::Setup;
use pagetide_core::config::{
    BackgroundCompaction, Policy, PolicyChoice, ShrinkPriorityPolicy, SoftLimitPolicy, Thp,
    ThpDefrag, WatermarkPolicy,
};
use pagetide_core::control::GroupControl;

/// A switch of a kernel.
#[derive(Clone, Copy, Debug)]
pub struct Switch {
    /// The policy whose variant it chooses.
    pub policy: Policy,
    /// Files that the kernel must have (names of control files). The variant is written to the
    /// first.
    pub files: &'static [&'static str],
    /// Variants that it chooses, each with the text to write; `None`: the kernel needs the files,
    /// but nothing is written.
    pub texts: &'static [(PolicyChoice, Option<&'static str>)],
    /// Whether it is written for every scenario, because distributions choose their own default.
    pub always: bool,
    /// A file of groups that this switch activates.
    pub of_groups: Option<GroupControl>,
}

/// A variant that a setup needs, with its switch.
#[derive(Clone, Copy, Debug)]
pub struct NeededSwitch {
    pub choice: PolicyChoice,
    pub switch: &'static Switch,
    /// The text to write to the first of the switch's files, if any.
    pub text: Option<&'static str>,
}

const fn text(choice: PolicyChoice, text: &'static str) -> (PolicyChoice, Option<&'static str>) {
    (choice, Some(text))
}

/// A variant of transparent huge pages; the kernel has the same name for it.
const fn own_name(choice: PolicyChoice) -> (PolicyChoice, Option<&'static str>) {
    (choice, Some(choice.name()))
}

pub static SWITCHES: &[Switch] = &[
    Switch {
        policy: Policy::Thp,
        files: &["transparent_hugepage.enabled"],
        texts: &[
            own_name(PolicyChoice::Thp(Thp::Always)),
            own_name(PolicyChoice::Thp(Thp::Madvise)),
            own_name(PolicyChoice::Thp(Thp::Never)),
        ],
        always: true,
        of_groups: None,
    },
    Switch {
        policy: Policy::ThpDefrag,
        files: &["transparent_hugepage.defrag"],
        texts: &[
            own_name(PolicyChoice::ThpDefrag(ThpDefrag::Always)),
            own_name(PolicyChoice::ThpDefrag(ThpDefrag::Defer)),
            own_name(PolicyChoice::ThpDefrag(ThpDefrag::DeferMadvise)),
            own_name(PolicyChoice::ThpDefrag(ThpDefrag::Madvise)),
            own_name(PolicyChoice::ThpDefrag(ThpDefrag::Never)),
        ],
        always: true,
        of_groups: None,
    },
    Switch {
        policy: Policy::Watermarks,
        files: &["vm.wmark_min_kbytes", "vm.wmark_low_kbytes", "vm.wmark_high_kbytes"],
        // The watermarks are set apart when one of them is written.
        texts: &[(PolicyChoice::Watermarks(WatermarkPolicy::Apart), None)],
        always: false,
        of_groups: None,
    },
    Switch {
        policy: Policy::SoftLimit,
        files: &["vm.soft_limit_reclaim"],
        texts: &[
            text(PolicyChoice::SoftLimit(SoftLimitPolicy::Tree), "0"),
            text(PolicyChoice::SoftLimit(SoftLimitPolicy::Hierarchical), "1"),
            text(PolicyChoice::SoftLimit(SoftLimitPolicy::TwoPass), "2"),
        ],
        always: false,
        of_groups: None,
    },
    Switch {
        policy: Policy::ShrinkPriority,
        files: &["vm.global_shrink_priority"],
        texts: &[
            text(PolicyChoice::ShrinkPriority(ShrinkPriorityPolicy::Off), "0"),
            text(PolicyChoice::ShrinkPriority(ShrinkPriorityPolicy::Posted), "1"),
            text(PolicyChoice::ShrinkPriority(ShrinkPriorityPolicy::Guarded), "2"),
        ],
        always: false,
        of_groups: Some(GroupControl::GlobalShrinkPriority),
    },
    Switch {
        policy: Policy::BackgroundCompaction,
        files: &["vm.kswapd_compaction"],
        texts: &[
            text(PolicyChoice::BackgroundCompaction(BackgroundCompaction::KcompactdEarly), "0"),
            text(PolicyChoice::BackgroundCompaction(BackgroundCompaction::Kswapd), "1"),
        ],
        always: false,
        of_groups: None,
    },
];

impl Switch {
    pub fn of(policy: Policy) -> Option<&'static Switch> {
        SWITCHES.iter().find(|switch| switch.policy == policy)
    }

    /// The variant of this switch that a setup needs: its current variant, if the switch can choose
    /// it and it is not the kernel's own behaviour.
    fn needed(&'static self, setup: &Setup) -> Option<NeededSwitch> {
        let choice = setup.policies.get(self.policy).unwrap_or(self.policy.default_variant());
        let &(_, text) = self.texts.iter().find(|(known, _)| *known == choice)?;
        let heeded = |control| setup.group_controls().any(|written| written == control);
        let is_needed =
            self.always || !setup.policies.is_linux(choice) || self.of_groups.is_some_and(heeded);
        is_needed.then_some(NeededSwitch { choice, switch: self, text })
    }

    /// The first of its files that is not in `files`.
    pub fn missing(&self, files: &[String]) -> Option<&'static str> {
        self.files.iter().copied().find(|file| !files.iter().any(|known| known == file))
    }
}

/// The switch settings that a setup needs.
pub fn needed(setup: &Setup) -> impl Iterator<Item = NeededSwitch> + '_ {
    SWITCHES.iter().filter_map(|switch| switch.needed(setup))
}

/// The files of switches that no released kernel has.
pub fn of_patches() -> impl Iterator<Item = &'static str> {
    let patched = SWITCHES.iter().filter(|switch| !switch.always);
    patched.flat_map(|switch| switch.files.iter().copied())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::{load_str, Overrides};
    use std::path::Path;

    fn needed_by(keys: &str) -> Vec<(&'static str, Option<&'static str>)> {
        let text = format!(
            "{keys}\n[machine]\nmemory='256MiB'\n[[task]]\nname='t'\nworkload='touch'\nsize='1MiB'\n"
        );
        let loaded = load_str("s.toml", &text, Path::new(""), &Overrides::default());
        let setup = loaded.unwrap_or_else(|errors| panic!("{errors}")).variants.remove(0).setup;
        let ours = needed(&setup).filter(|needed| !needed.switch.always);
        ours.map(|needed| (needed.switch.files[0], needed.text)).collect()
    }

    #[test]
    fn a_setup_needs_what_the_kernel_does_not_do_by_itself() {
        assert_eq!(needed_by(""), []);
        let policy = |keys: &str| needed_by(&format!("[policy]\n{keys}"));
        for own in ["soft_limit='tree'", "background_compaction='kcompactd-early'", "thp='always'"]
        {
            assert_eq!(policy(own), [], "{own}");
        }
        // Variants that no switch can choose are not its business.
        for other in ["soft_limit='off'", "shrink_priority='hierarchical'", "watermarks='derived'"]
        {
            assert_eq!(policy(other), [], "{other}");
        }
        for (keys, file, text) in [
            ("watermarks='apart'", "vm.wmark_min_kbytes", None),
            ("soft_limit='hierarchical'", "vm.soft_limit_reclaim", Some("1")),
            ("soft_limit='two-pass'", "vm.soft_limit_reclaim", Some("2")),
            ("shrink_priority='posted'", "vm.global_shrink_priority", Some("1")),
            (
                "kswapd='linux-4.5'\nbackground_compaction='kswapd'",
                "vm.kswapd_compaction",
                Some("1"),
            ),
        ] {
            assert_eq!(policy(keys), [(file, text)], "{keys}");
        }
    }

    #[test]
    fn the_file_of_a_group_needs_the_switch_that_gives_it_a_meaning() {
        let group = "[[group]]\nname='g'\n'memory.global_shrink_priority'=6\n";
        assert_eq!(needed_by(group), [("vm.global_shrink_priority", Some("2"))]);
    }

    #[test]
    fn each_text_is_of_the_policy_and_once() {
        for switch in SWITCHES {
            assert!(std::ptr::eq(Switch::of(switch.policy).unwrap(), switch));
            for (at, (choice, text)) in switch.texts.iter().enumerate() {
                assert_eq!(choice.policy(), switch.policy);
                let mut others = switch.texts.iter().skip(at + 1);
                assert!(others.all(|(other, said)| other != choice && said != text), "{choice}");
            }
            let all: Vec<String> = switch.files.iter().map(|&file| file.to_owned()).collect();
            assert_eq!(switch.missing(&all), None);
            assert_eq!(switch.missing(&all[1..]), Some(switch.files[0]));
        }
        assert_eq!(of_patches().count(), 6);
    }
}
