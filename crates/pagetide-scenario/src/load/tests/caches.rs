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
fn mistakes_in_caches_are_told() {
    let cache = |keys: &str| format!("[[machine.cache]]\n{keys}\n");
    let of_things = "it needs a task with workload names or pipes, or an object mix that uses it";
    let known =
        "write a cache of the kernel, such as `kmalloc-64`, or one of an object mix of workload \
                 kernel-objects";
    for (keys, line, column, text, message, hint) in [
        (
            "name = \"kmaloc-64\"\norder = 1",
            2,
            8,
            "\"kmaloc-64\"",
            "there is no cache `kmaloc-64`",
            "did you mean `kmalloc-64`?",
        ),
        (
            "name = \"dentry\"\norder = 1",
            2,
            8,
            "\"dentry\"",
            "there is no cache `dentry`",
            of_things,
        ),
        ("name = \"inodes\"\norder = 1", 2, 8, "\"inodes\"", "there is no cache `inodes`", known),
        (
            "name = \"kmalloc-8\"",
            2,
            8,
            "\"kmalloc-8\"",
            "the cache `kmalloc-8` has no setting",
            "add order, min_partial or cpu_partial",
        ),
        (
            "order = 1",
            1,
            1,
            "[[machine.cache]]",
            "the cache has no `name`",
            "add name = \"dentry\"",
        ),
    ] {
        expect(&cache(keys), line, column, text, message, hint);
    }
    let twice = cache("name = \"kmalloc-8\"\norder = 1").repeat(2);
    let found = told(&format!("{SOUND}{twice}"));
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0].3, "the cache `kmalloc-8` is defined twice");
    let found = told(&format!("{SOUND}{}", cache("name = \"kmalloc-8\"\norder = 11")));
    assert!(found[0].3.contains("11") && found.len() == 1, "{found:?}");
}

#[test]
fn mistakes_in_files_of_caches_are_told() {
    expect(
        "[sysctl]\n\"slab.kmalloc-64.order\" = 1\n",
        2,
        1,
        "\"slab.kmalloc-64.order\"",
        "unknown file of a cache `order`",
        "the files that can be written are min_partial, cpu_partial, shrink",
    );
    expect(
        "[sysctl]\n\"slab.kmalloc-64.min_partial\" = -1\n",
        2,
        33,
        "-1",
        "slab.kmalloc-64.min_partial refuses `-1` (EINVAL)",
        "it takes 0 or more",
    );
    expect(
        "[sysctl]\n\"slab.kmaloc-64.min_partial\" = 1\n",
        2,
        1,
        "\"slab.kmaloc-64.min_partial\"",
        "there is no cache `kmaloc-64`",
        "did you mean `kmalloc-64`?",
    );
    expect(
        "[sysctl]\n\"slab.kmalloc-64.shrink\" = 1\n",
        2,
        1,
        "\"slab.kmalloc-64.shrink\"",
        "slab.kmalloc-64.shrink cannot be written before anything runs",
        "let a task write it, with workload = \"write-control\"",
    );
    let task = "[[task]]\nname = \"w\"\nworkload = \"write-control\"\ntext = 1\n";
    sound(&format!("{SOUND}{task}control = \"slab.kmalloc-64.shrink\"\n"));
    expect(
        &format!("{task}control = \"slab.kmaloc-64.shrink\"\n"),
        5,
        11,
        "\"slab.kmaloc-64.shrink\"",
        "there is no cache `kmaloc-64`",
        "did you mean `kmalloc-64`?",
    );
}

#[test]
fn names_and_pipes_have_caches() {
    let write = "[[task]]\nname = \"w\"\nworkload = \"write-control\"\ntext = 1\n\
                 control = \"slab.lsm_inode_cache.shrink\"\n";
    let tuned = "[[machine.cache]]\nname = \"dentry\"\norder = 1\n";
    for workload in ["names", "pipes"] {
        let makes = format!("[[task]]\nname = \"m\"\nworkload = \"{workload}\"\nmake = 1\n");
        sound(&format!("{SOUND}{write}{makes}{tuned}"));
    }
    expect(
        write,
        5,
        11,
        "\"slab.lsm_inode_cache.shrink\"",
        "there is no cache `lsm_inode_cache`",
        "it needs a task with workload names or pipes, or an object mix that uses it",
    );
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
    expect(
        &format!("{group}\"max\"\n"),
        3,
        30,
        "\"max\"",
        "memory.kmem.limit_in_bytes refuses `max` (EINVAL)",
        "it takes bytes like 300M, or -1 for no limit",
    );
}
