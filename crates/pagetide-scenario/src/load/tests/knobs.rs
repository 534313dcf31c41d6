//! Writes to control files, and policies: the loader refuses what the kernel would refuse.

use super::*;

#[test]
fn a_policy_that_is_named_stays_whichever_kernel_is_compared_with() {
    use pagetide_core::config::{FaultPolicy, GroupWalkPolicy, PolicyChoice, PolicySet};
    let whole = PolicyChoice::from(GroupWalkPolicy::Whole);
    let named = sound(&format!("{SOUND}[policy]\n{} = \"{whole}\"\n", whole.policy().name()));
    for (mut scenario, walk) in
        [(named, GroupWalkPolicy::Whole), (sound(SOUND), GroupWalkPolicy::Shared)]
    {
        let policies = &mut scenario.variants[0].setup.policies;
        policies.follow(PolicySet::Linux612);
        assert_eq!(policies.of(), Some(walk));
        assert_eq!(policies.of(), Some(FaultPolicy::Linux612));
    }
}
