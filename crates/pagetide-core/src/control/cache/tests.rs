//! The files of a cache: accepted and refused writes; a refused write changes nothing.

use super::*;
use crate::config::{Config, SlabAccounting};
use crate::frames::gfp::Gfp;
use crate::frames::node::NodeSpec;
use crate::groups::memcg::ROOT;
use crate::interface::daemon::Daemon;
use crate::interface::effect::Step;
use crate::interface::outcome::Outcome;
use crate::process::Machine;
use crate::process::MmId;
use crate::process::ProcessCall;
use crate::slab::object::Object;
use crate::slab::CacheSpec;
use crate::units::NodeId;

fn machine(config: Config) -> Machine {
    let mut machine = Machine::new(&[NodeSpec::x86_64(64 << 20, 0, 0)], 2, config).unwrap();
    let spec =
        CacheSpec { name: "dentry".into(), object_size: 192, reclaimable: true, account: true };
    machine.create_cache(spec).unwrap();
    machine
}

fn alloc(machine: &mut Machine, mm: MmId) -> Object {
    let cache = machine.slabs.find_cache("dentry").unwrap();
    let mut call = ProcessCall::kmem_alloc(mm, NodeId(0), cache, true, Gfp::KERNEL);
    loop {
        let (step, effects) = machine.step(&mut call, Cpu(0), 0);
        effects.discard();
        if let Step::Done(Outcome::Object(object)) = step {
            while !machine.slabs.deferred.is_empty() {
                machine.step_daemon(Daemon::Kworker, Cpu(0), 0).1.discard();
            }
            return object;
        }
    }
}

#[track_caller]
fn refused(machine: &mut Machine, name: &str, text: &str) -> ControlError {
    let before = machine.digest();
    let error = machine.write_control(name, text).expect_err("should be refused");
    assert_eq!(machine.digest(), before, "a refused write changed something");
    error
}

#[test]
fn what_is_written_is_read_back() {
    let mut machine = machine(Config::default());
    for file in ["min_partial", "cpu_partial"] {
        let name = format!("slab.dentry.{file}");
        for text in ["0", "17", "4294967295\n"] {
            machine.write_control(&name, text).unwrap().discard();
            assert_eq!(machine.read_control(&name).unwrap().trim(), text.trim());
        }
        for text in ["", "many", "-1", "0x10", "4294967296", "99999999999999999999", "1 2"] {
            let error = refused(&mut machine, &name, text);
            assert_eq!(error.errno, Errno::Einval, "{text}");
            assert!(error.message.contains("0 to 4294967295"), "{error}");
        }
    }
    machine.audit().unwrap();
}

#[test]
fn what_counts_can_only_be_read() {
    let mut machine = machine(Config::default());
    let mm = machine.create_mm(ROOT).unwrap();
    let objects: Vec<Object> = (0..30).map(|_| alloc(&mut machine, mm)).collect();
    for (file, text) in [
        ("order", "0"),
        ("objs_per_slab", "21"),
        ("slabs", "2 N0=2"),
        ("objects", "30 N0=30"),
        ("partial", "0"),
        ("cpu_slabs", "1 N0=1"),
    ] {
        let name = format!("slab.dentry.{file}");
        assert_eq!(machine.read_control(&name).unwrap(), format!("{text}\n"), "{file}");
        assert_eq!(refused(&mut machine, &name, "1").errno, Errno::Eacces);
    }
    let cache = machine.slabs.find_cache("dentry").unwrap();
    for object in objects {
        machine.kmem_cache_free(cache, object, Cpu(0)).unwrap();
    }
    assert_eq!(machine.read_control("slab.dentry.objects").unwrap(), "0\n");
    assert_ne!(machine.read_control("slab.dentry.slabs").unwrap(), "0\n");
    // Also what CPUs have.
    for text in ["0", "", "yes", " 1"] {
        assert_eq!(refused(&mut machine, "slab.dentry.shrink", text).errno, Errno::Einval);
    }
    machine.write_control("slab.dentry.shrink", "1\n").unwrap().discard();
    assert_eq!(machine.read_control("slab.dentry.shrink").unwrap(), "");
    machine.audit().unwrap();
}

#[test]
fn unknown_names_are_refused() {
    let mut machine = machine(Config::default());
    for (name, hint) in [
        ("slab.dentrie.shrink", "did you mean slab.dentry.shrink?"),
        ("slab.kmaloc-64.min_partial", "did you mean slab.kmalloc-64.min_partial?"),
        ("slab.dentry.remote_node_defrag_ratio", "it has min_partial, cpu_partial, shrink"),
        ("slab.dentry", "slab.CACHE.FILE"),
        ("slab.", "slab.CACHE.FILE"),
        ("slab.something else.shrink", "there is no cache `something else`"),
    ] {
        let error = refused(&mut machine, name, "1");
        assert_eq!(error.errno, Errno::Enoent);
        assert!(error.message.contains(hint), "{error}");
        assert_eq!(machine.read_control(name).unwrap_err().errno, Errno::Enoent);
    }
    assert_eq!(machine.slabs.similar_cache(&"x".repeat(1000)), None);
}

#[test]
fn a_list_of_writes_is_made_whole_or_not_at_all() {
    let mut machine = machine(Config::default());
    let before = machine.digest();
    let writes = [("slab.dentry.min_partial", "0"), ("vm.swappiness", "999")];
    machine.write_controls(&writes).unwrap_err();
    assert_eq!(machine.digest(), before);
    machine.write_controls(&[("vm.swappiness", "1"), writes[0]]).unwrap().discard();
    assert_eq!(machine.read_control("slab.dentry.min_partial").unwrap(), "0\n");
}

#[test]
fn groups_caches_are_tuned_with_theirs() {
    let config = Config { slab_accounting: SlabAccounting::PerGroupCaches, ..Config::default() };
    let mut machine = machine(config);
    let memcg = machine.create_memcg("g".into(), ROOT).unwrap();
    let mm = machine.create_mm(memcg).unwrap();
    let first = alloc(&mut machine, mm);
    let second = alloc(&mut machine, mm);
    assert_ne!(first.cache, second.cache, "the second comes from the group's own");
    assert_eq!(machine.read_control("slab.dentry.objects").unwrap(), "2 N0=2\n");
    machine.write_control("slab.dentry.min_partial", "77").unwrap().discard();
    assert_eq!(machine.slabs.kmem_cache(second.cache).unwrap().min_partial, 77);
    let rows = machine.read_group_control(memcg, "memory.kmem.slabinfo", 0).unwrap();
    let names: Vec<&str> = rows.lines().filter_map(|row| row.split(' ').next()).collect();
    assert_eq!(names, ["slabinfo", "#", "dentry"], "{rows}");
    let error = machine.write_group_control(memcg, "memory.kmem.slabinfo", "1").unwrap_err();
    assert_eq!(error.errno, Errno::Eacces);
    machine.audit().unwrap();
}

#[test]
fn distances_are_in_letters() {
    for (one, other, letters) in
        [("", "", 0), ("", "abc", 3), ("dentry", "dentrie", 2), ("kmalloc", "kmaloc", 1)]
    {
        assert_eq!(distance(one, other), letters);
        assert_eq!(distance(other, one), letters);
    }
}
