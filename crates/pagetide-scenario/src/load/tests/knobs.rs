//! Writes to control files, and policies: the loader refuses what the kernel would refuse.

use super::*;

#[test]
fn knobs() {
    let hint = "did you mean `vm.swappiness`?";
    expect(
        "[sysctl]\nvm.swapiness = 1\n",
        2,
        4,
        "swapiness",
        "unknown sysctl `vm.swapiness`",
        hint,
    );
    expect("[sysctl]\nswappiness = 1\n", 2, 1, "swappiness", "unknown sysctl `swappiness`", hint);
    expect(
        "[sysctl]\n\"kernel.panic\" = 1\n",
        2,
        1,
        "\"kernel.panic\"",
        "unknown sysctl `kernel.panic`",
        "docs/scenario.md lists them",
    );
    expect(
        "[sysctl]\nvm.swappiness = 201\n",
        2,
        17,
        "201",
        "vm.swappiness refuses `201` (EINVAL)",
        "it takes 0 to 200",
    );
    expect(
        "[sysctl]\nvm.min_free_kbytes = \"16MB\"\n",
        2,
        22,
        "\"16MB\"",
        "vm.min_free_kbytes refuses `16MB` (EINVAL)",
        "it takes an integer (kB)",
    );
    expect(
        "[sysctl]\nvm.swappiness = true\n",
        2,
        17,
        "true",
        "expected an integer or a string, found a boolean",
        "write what you would echo into the file",
    );
    expect(
        "[sysctl]\nvm.swappiness = 1\n\"vm.swappiness\" = 2\n",
        3,
        1,
        "\"vm.swappiness\"",
        "`vm.swappiness` is written twice",
        "keep one of them",
    );
    expect(
        "[sysctl]\nvm.wmark_low_kbytes = 1\n",
        2,
        4,
        "wmark_low_kbytes",
        "vm.wmark_low_kbytes does not exist under this watermarks policy",
        "write [policy] watermarks = \"apart\"",
    );
    expect(
        "[policy]\nwatermarks = \"apart\"\n[sysctl.vm]\nwmark_low_kbytes = 20\n\
        wmark_min_kbytes = 10\nwmark_high_kbytes = 15\n",
        6,
        21,
        "15",
        "watermarks out of order: vm.wmark_high_kbytes is below vm.wmark_low_kbytes",
        "write min <= low <= high",
    );
    expect(
        "[policy]\nwatermarks = \"separate\"\n",
        2,
        14,
        "\"separate\"",
        "unknown policy `separate`",
        "it is one of `derived`, `scale-factor` and `apart`",
    );
    expect(
        "[[group]]\nname = \"g\"\nmemory.maxx = 1\n",
        3,
        8,
        "maxx",
        "unknown control file `memory.maxx`",
        "did you mean `memory.max`?",
    );
    expect(
        "[[group]]\nname = \"g\"\nmemory.max = \"300MB\"\n",
        3,
        14,
        "\"300MB\"",
        "memory.max refuses `300MB` (EINVAL)",
        "it takes bytes like 300M, or max for no limit",
    );
}

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
