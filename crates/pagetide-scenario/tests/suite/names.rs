//! The kernel's caches that a scenario may name are those of a machine of the core.

use pagetide_core::config::Config;
use pagetide_core::frames::node::NodeSpec;
use pagetide_core::process::Machine;
use pagetide_scenario::names::kernel_caches;

/// The largest kmalloc() caches exist only with larger pages.
#[test]
fn the_kernel_s_caches_are_the_core_s() {
    let node = NodeSpec::x86_64(512 << 20, 0, 0);
    let machine = Machine::new(&[node], 2, Config::default()).unwrap();
    let known: Vec<String> = kernel_caches().collect();
    for (_, cache) in machine.slabs.kmem_caches() {
        assert!(known.contains(&cache.name), "{} is not known", cache.name);
    }
    for name in known.iter().filter(|name| !name.ends_with("6k") && !name.ends_with("2k")) {
        let is_large = name.ends_with("64k") || name.ends_with("128k");
        assert!(is_large || machine.slabs.find_cache(name).is_some(), "no {name}");
    }
}
