//! Settings of slab caches: `[[machine.cache]]`, and their control files.

use super::*;
use crate::model::{CacheSetup, PageSize};
use pagetide_core::config::CgroupVersion;
use pagetide_core::control::{ControlWrite, GroupControlWrite};

#[test]
fn a_cache_is_tuned_key_by_key() {
    let text = "\
[[machine.cache]]
name = \"kmalloc-64\"
order = 1
min_partial = 0
[[machine.cache]]
name = \"radix_tree_node\"
cpu_partial = 7
[sysctl]
\"slab.kmalloc-64.min_partial\" = 3
[sysctl.slab.kmem_cache]
cpu_partial = \"0\"
[[variant]]
name = \"as-it-is\"
[[variant]]
name = \"other\"
set = { \"machine.cache.kmalloc-64.order\" = 2, \"slab.kmalloc-64.min_partial\" = 9 }
";
    let scenario = sound(&format!("{SOUND}{text}"));
    let [first, second] = &scenario.variants[..] else { panic!() };
    let tuned = |order| {
        [
            CacheSetup {
                name: "kmalloc-64".into(),
                order: Some(order),
                min_partial: Some(0),
                cpu_partial: None,
            },
            CacheSetup {
                name: "radix_tree_node".into(),
                cpu_partial: Some(7),
                ..CacheSetup::default()
            },
        ]
    };
    assert_eq!(first.setup.machine.caches, tuned(1));
    assert_eq!(second.setup.machine.caches, tuned(2));
    let write = |name, text| ControlWrite::read(name, text, PageSize::Kib4).unwrap();
    let other = write("slab.kmem_cache.cpu_partial", "0");
    let of = |text| vec![write("slab.kmalloc-64.min_partial", text), other.clone()];
    assert_eq!(first.setup.sysctls, of("3"));
    assert_eq!(second.setup.sysctls, of("9"));
}

#[test]
fn a_control_of_a_patch_goes_along_with_those_of_linux() {
    let version = |controls: &str| {
        let text = format!("{SOUND}[[group]]\nname = \"g\"\n{controls}");
        sound(&text).variants[0].setup.cgroup_version()
    };
    let patched = "memory.global_shrink_priority = 3\n";
    for (controls, expected) in [
        ("", CgroupVersion::V2),
        ("memory.low = \"8M\"\n", CgroupVersion::V2),
        ("", CgroupVersion::V2),
        ("memory.swappiness = 3\n", CgroupVersion::V1),
        ("memory.swappiness = 3\nmemory.low = \"8M\"\n", CgroupVersion::V1),
    ] {
        assert_eq!(version(controls), expected, "{controls}");
        let posted = if controls.is_empty() { CgroupVersion::V1 } else { expected };
        assert_eq!(version(&format!("{controls}{patched}")), posted, "{controls} and the patch's");
    }
}

#[test]
fn kernel_memory_has_a_limit_in_version_1() {
    let group = "[[group]]\nname = \"g\"\nmemory.kmem.limit_in_bytes = ";
    let scenario = sound(&format!("{SOUND}{group}\"8M\"\n"));
    let setup = &scenario.variants[0].setup;
    assert_eq!(setup.cgroup_version(), CgroupVersion::V1);
    assert_eq!(
        setup.groups[0].controls,
        [GroupControlWrite::read("memory.kmem.limit_in_bytes", "8M").unwrap()]
    );
}
