//! Finding policies by name. A policy chooses one of several mechanisms of the core.
//!
//! A kernel release has one mechanism for each policy; a comparison needs several in one program.
//! The names are used in scenario files. [`crate::config`] declares the policies.
//!
//! Invariant: a policy's variants have different names.

use super::{Policy, PolicyChoice};
use alloc::string::String;
use core::fmt;

/// The type of a policy's variants.
pub trait PolicyVariant: Copy + Into<PolicyChoice> {
    /// The policy of these variants.
    const POLICY: Policy;
    /// The chosen variant; `None` if the choice belongs to another policy.
    fn of(choice: PolicyChoice) -> Option<Self>;
}

impl Policy {
    /// The policy with this name.
    pub fn find(name: &str) -> Option<Policy> {
        Policy::ALL.iter().copied().find(|policy| policy.name() == name)
    }

    /// The variant with this name.
    pub fn choice(self, name: &str) -> Option<PolicyChoice> {
        self.variants().iter().copied().find(|choice| choice.name() == name)
    }

    /// The names of the variants as text: `always, madvise or never`.
    pub fn variant_list(self) -> String {
        let mut list = String::new();
        for (at, choice) in self.variants().iter().enumerate() {
            list += match at {
                0 => "",
                _ if at + 1 == self.variants().len() => " or ",
                _ => ", ",
            };
            list += choice.name();
        }
        list
    }
}

impl PolicyChoice {
    /// Whether this is the default variant of its policy.
    pub fn is_default(self) -> bool {
        self == self.policy().default_variant()
    }
}

/// Prints the variant's name.
impl fmt::Display for PolicyChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Config, Sysctl, ThpDefrag};
    use alloc::collections::BTreeSet;

    #[test]
    fn every_choice_comes_back_by_its_names() {
        let mut config = Config::default();
        for &policy in Policy::ALL {
            assert_eq!(Policy::find(policy.name()), Some(policy));
            assert_eq!(config.policy(policy), policy.default_variant());
            assert!(policy.default_variant().is_linux(), "{}", policy.name());
            for &choice in policy.variants() {
                assert_eq!(policy.choice(choice.name()), Some(choice));
                assert!(!choice.doc().is_empty() && choice.doc().ends_with('.'), "{choice}");
                config.choose(choice);
                assert_eq!(config.policy(policy), choice);
            }
            assert_eq!(policy.choice("linux-0.01"), None);
        }
        assert_eq!(
            Policy::ThpDefrag.variant_list(),
            "always, defer, defer+madvise, madvise or never"
        );
        assert_eq!(ThpDefrag::of(Policy::ThpDefrag.variants()[2]), Some(ThpDefrag::DeferMadvise));
        assert_eq!(ThpDefrag::of(Policy::Thp.variants()[0]), None);
    }

    #[test]
    fn names_of_policies_are_unique() {
        let policies: BTreeSet<&str> = Policy::ALL.iter().map(|policy| policy.name()).collect();
        let sysctls: BTreeSet<&str> = Sysctl::ALL.iter().map(|sysctl| sysctl.name()).collect();
        assert_eq!((policies.len(), sysctls.len()), (Policy::ALL.len(), Sysctl::ALL.len()));
        for &policy in Policy::ALL {
            let names: BTreeSet<&str> = policy.variants().iter().map(|one| one.name()).collect();
            assert_eq!(names.len(), policy.variants().len(), "{}", policy.name());
        }
    }
}
