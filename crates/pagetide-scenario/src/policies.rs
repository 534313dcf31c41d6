//! The variants of policies that a setup names.
//!
//! Invariant: at most one of each policy; they are in the order of the policies' names.

use pagetide_core::config::{Policy, PolicyChoice, PolicyVariant};

/// Variants of different policies.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Policies {
    choices: Vec<PolicyChoice>,
}

impl Policies {
    /// Names a variant, instead of another one of its policy.
    pub fn choose(&mut self, choice: impl Into<PolicyChoice>) {
        let choice = choice.into();
        let name = |choice: &PolicyChoice| choice.policy().name();
        match self.choices.binary_search_by_key(&choice.policy().name(), name) {
            Ok(at) => self.choices[at] = choice,
            Err(at) => self.choices.insert(at, choice),
        }
    }

    /// The variant of `policy`, if one is named.
    pub fn get(&self, policy: Policy) -> Option<PolicyChoice> {
        self.iter().find(|choice| choice.policy() == policy)
    }

    /// The variant of the policy that has this type, if one is named.
    pub fn of<P: PolicyVariant>(&self) -> Option<P> {
        self.get(P::POLICY).and_then(P::of)
    }

    /// All that are named.
    pub fn iter(&self) -> impl Iterator<Item = PolicyChoice> + '_ {
        self.choices.iter().copied()
    }
}

impl FromIterator<PolicyChoice> for Policies {
    fn from_iter<I: IntoIterator<Item = PolicyChoice>>(choices: I) -> Policies {
        let mut policies = Policies::default();
        choices.into_iter().for_each(|choice| policies.choose(choice));
        policies
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pagetide_core::config::{KswapdPolicy, Thp};

    #[test]
    fn one_variant_a_policy_by_name() {
        let choices: [PolicyChoice; 3] =
            [Thp::Always.into(), KswapdPolicy::Linux45.into(), Thp::Never.into()];
        let policies: Policies = choices.into_iter().collect();
        let names: Vec<&str> = policies.iter().map(|choice| choice.name()).collect();
        assert_eq!(names, ["linux-4.5", "never"]);
        assert_eq!(policies.of(), Some(Thp::Never));
        assert_eq!(policies.get(Policy::Slub), None);
    }
}
