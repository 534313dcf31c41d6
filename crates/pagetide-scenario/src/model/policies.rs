//! The variants of policies in a setup.
//!
//! Invariant: at most one variant of each policy, sorted by the names of the policies. Choosing a
//! kernel does not replace a variant that was chosen by itself.

use pagetide_core::config::{Policy, PolicyChoice, PolicySet, PolicyVariant};

/// Variants of different policies.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PolicyChoices {
    choices: Vec<PolicyChoice>,
    named: Vec<Policy>,
    kernel: Option<PolicySet>,
}

impl PolicyChoices {
    /// Chooses a variant; replaces another variant of its policy.
    pub fn choose(&mut self, choice: impl Into<PolicyChoice>) {
        let choice = choice.into();
        if !self.named.contains(&choice.policy()) {
            self.named.push(choice.policy());
        }
        self.put(choice);
    }

    fn put(&mut self, choice: PolicyChoice) {
        let name = |choice: &PolicyChoice| choice.policy().name();
        match self.choices.binary_search_by_key(&choice.policy().name(), name) {
            Ok(at) => self.choices[at] = choice,
            Err(at) => self.choices.insert(at, choice),
        }
    }

    /// Chooses a kernel: its variants replace defaults, not explicitly chosen variants. Policies
    /// that follow from other keys are not among them.
    pub fn follow(&mut self, kernel: PolicySet) {
        self.kernel = Some(kernel);
        for &choice in kernel.choices() {
            let policy = choice.policy();
            let is_default = self.get(policy).is_none_or(PolicyChoice::is_default);
            if is_default && !policy.is_implied() && !self.named.contains(&policy) {
                self.put(choice);
            }
        }
    }

    /// The chosen kernel, if any.
    pub fn kernel(&self) -> Option<PolicySet> {
        self.kernel
    }

    /// Whether a variant is the behaviour of Linux 6.1 or of the chosen kernel.
    pub fn is_linux(&self, choice: PolicyChoice) -> bool {
        choice.is_linux() || self.kernel.is_some_and(|kernel| kernel.choices().contains(&choice))
    }

    /// The variant of `policy`, if it is set.
    pub fn get(&self, policy: Policy) -> Option<PolicyChoice> {
        self.iter().find(|choice| choice.policy() == policy)
    }

    /// The variant of the policy with this type, if it is set.
    pub fn of<P: PolicyVariant>(&self) -> Option<P> {
        self.get(P::POLICY).and_then(P::of)
    }

    pub fn iter(&self) -> impl Iterator<Item = PolicyChoice> + '_ {
        self.choices.iter().copied()
    }
}

/// The defaults of a setup.
impl FromIterator<PolicyChoice> for PolicyChoices {
    fn from_iter<I: IntoIterator<Item = PolicyChoice>>(choices: I) -> PolicyChoices {
        let mut policies = PolicyChoices::default();
        choices.into_iter().for_each(|choice| policies.put(choice));
        policies
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pagetide_core::config::{FaultPolicy, GroupWalkPolicy, KswapdPolicy, Thp};

    #[test]
    fn one_variant_a_policy_by_name() {
        let choices: [PolicyChoice; 3] =
            [Thp::Always.into(), KswapdPolicy::Linux45.into(), Thp::Never.into()];
        let policies: PolicyChoices = choices.into_iter().collect();
        let names: Vec<&str> = policies.iter().map(|choice| choice.name()).collect();
        assert_eq!(names, ["linux-4.5", "never"]);
        assert_eq!(policies.of(), Some(Thp::Never));
        assert_eq!(policies.get(Policy::Slub), None);
    }

    #[test]
    fn a_kernel_takes_the_place_of_defaults_only() {
        let choices: [PolicyChoice; 2] =
            [KswapdPolicy::Linux45.into(), GroupWalkPolicy::Whole.into()];
        let mut policies: PolicyChoices = choices.into_iter().collect();
        assert!(!policies.is_linux(FaultPolicy::Linux612.into()));
        policies.follow(PolicySet::Linux612);
        assert_eq!(policies.kernel(), Some(PolicySet::Linux612));
        assert_eq!(policies.of(), Some(KswapdPolicy::Linux45));
        assert_eq!(policies.of(), Some(GroupWalkPolicy::Shared));
        assert_eq!(policies.of(), Some(FaultPolicy::Linux612));
        assert!(policies.is_linux(FaultPolicy::Linux612.into()));
        assert!(!policies.is_linux(KswapdPolicy::Linux45.into()));
    }

    #[test]
    fn a_kernel_does_not_take_the_place_of_a_default_that_was_named() {
        let mut policies = PolicyChoices::default();
        policies.choose(GroupWalkPolicy::Whole);
        policies.follow(PolicySet::Linux612);
        assert_eq!(policies.of(), Some(GroupWalkPolicy::Whole));
        assert_eq!(policies.of(), Some(FaultPolicy::Linux612));
    }
}
