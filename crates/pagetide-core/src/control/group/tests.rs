//! The files of a group: accepted and refused writes; a refused write changes nothing.

use super::*;
use crate::config::Config;
use crate::frames::node::NodeSpec;
use crate::process::Machine;

fn machine() -> (Machine, MemcgId) {
    let mut machine =
        Machine::new(&[NodeSpec::x86_64(64 << 20, 0, 0)], 2, Config::default()).unwrap();
    let memcg = machine.create_memcg("group".into(), ROOT).unwrap();
    (machine, memcg)
}

#[track_caller]
fn refused(machine: &mut Machine, memcg: MemcgId, name: &str, text: &str) -> Errno {
    let before = machine.digest();
    let error = machine.write_group_control(memcg, name, text).expect_err("should be refused");
    assert_eq!(machine.digest(), before, "a refused write changed something");
    assert!(error.message.contains(name.rsplit('.').next().unwrap()), "{error}");
    error.errno
}

#[track_caller]
fn holds(machine: &mut Machine, memcg: MemcgId, name: &str, text: &str, read: &str) {
    assert!(machine.write_group_control(memcg, name, text).unwrap().0.is_none());
    assert_eq!(machine.read_group_control(memcg, name, 0).unwrap().trim_end(), read);
}

#[test]
fn sizes_are_read_as_memparse_reads_them() {
    let (mut machine, memcg) = machine();
    for (text, read) in [
        ("300M", "314572800"),
        ("4097", "4096"),
        ("0x1000", "4096"),
        ("010000", "4096"),
        ("1g\n", "1073741824"),
        ("0", "0"),
        ("max", "max"),
        ("16E", "max"),
        ("99999999999999999999", "max"),
    ] {
        holds(&mut machine, memcg, "memory.max", text, read);
    }
    for text in ["", "-1", "lots", "3 M", "3MB", "M", "-5", "0x"] {
        assert_eq!(refused(&mut machine, memcg, "memory.max", text), Errno::Einval, "{text}");
    }
    holds(&mut machine, memcg, "memory.limit_in_bytes", "-1", "9223372036854771712");
    holds(&mut machine, memcg, "memory.soft_limit_in_bytes", "20M", "20971520");
    assert_eq!(refused(&mut machine, memcg, "memory.limit_in_bytes", "max"), Errno::Einval);
}

#[test]
fn shrink_priorities_have_the_errnos_of_the_patch() {
    let (mut machine, memcg) = machine();
    let name = "memory.global_shrink_priority";
    holds(&mut machine, memcg, name, "8", "8");
    holds(&mut machine, memcg, name, "0xc", "12");
    holds(&mut machine, memcg, name, "010", "8");
    for (text, errno) in [
        ("", Errno::Einval),
        ("high", Errno::Einval),
        ("13", Errno::Einval),
        ("127", Errno::Einval),
        ("128", Errno::Erange),
        ("-129", Errno::Erange),
        ("99999999999999999999999", Errno::Erange),
        ("-1", Errno::Einval),
        ("-128", Errno::Einval),
    ] {
        assert_eq!(refused(&mut machine, memcg, name, text), errno, "{text}");
    }
    machine.set_policy("shrink_priority", "posted").unwrap().discard();
    holds(&mut machine, memcg, name, "-128", "-128");
    holds(&mut machine, ROOT, name, "3", "3");
    // Not inherited.
    let child = machine.create_memcg("child".into(), memcg).unwrap();
    assert_eq!(machine.read_group_control(child, name, 0).unwrap(), "12\n");
}

#[test]
fn the_root_has_no_limits() {
    let (mut machine, memcg) = machine();
    for name in ["memory.max", "memory.high", "memory.low", "memory.min", "memory.swap.max"] {
        assert_eq!(refused(&mut machine, ROOT, name, "1M"), Errno::Enoent);
    }
    assert_eq!(refused(&mut machine, ROOT, "memory.limit_in_bytes", "1M"), Errno::Einval);
    holds(&mut machine, ROOT, "memory.swappiness", "10", "10");
    assert_eq!(machine.config.swappiness, 10);
    assert_eq!(refused(&mut machine, memcg, "memory.swappiness", "201"), Errno::Einval);
    assert_eq!(refused(&mut machine, memcg, "memory.current", "0"), Errno::Eacces);
    assert_eq!(refused(&mut machine, memcg, "memory.colour", "0"), Errno::Enoent);
    let reclaim = machine.read_group_control(memcg, "memory.reclaim", 0).unwrap_err();
    assert_eq!(reclaim.errno, Errno::Eacces);
    machine.remove_memcg(memcg).unwrap().discard();
    assert_eq!(refused(&mut machine, memcg, "memory.max", "1M"), Errno::Enoent);
}

#[test]
fn memory_reclaim_takes_a_size_and_a_swappiness() {
    let (mut machine, memcg) = machine();
    for text in ["", "much", "1M swappiness=201", "1M swap=3", "swappiness=3"] {
        assert_eq!(refused(&mut machine, memcg, "memory.reclaim", text), Errno::Einval, "{text}");
    }
    assert!(machine.write_group_control(memcg, "memory.reclaim", "0").unwrap().0.is_none());
    let write = machine.write_group_control(memcg, "memory.reclaim", "1M swappiness=0");
    assert!(write.unwrap().0.is_some());
}

#[test]
fn swappiness_is_inherited_after_a_write() {
    let (mut machine, memcg) = machine();
    holds(&mut machine, memcg, "memory.swappiness", "7", "7");
    let child = machine.create_memcg("child".into(), memcg).unwrap();
    assert_eq!(machine.read_group_control(child, "memory.swappiness", 0).unwrap(), "7\n");
}

/// The core has no CPUs: it parses and checks the text, and changes nothing.
#[test]
fn files_of_the_cpu_controller_are_read_and_left_to_the_world() {
    let (mut machine, memcg) = machine();
    let before = machine.digest();
    for (name, text) in [
        ("cpu.weight", "1"),
        ("cpu.weight", " 10000\n"),
        ("cpu.max", "max"),
        ("cpu.max", "1000"),
        ("cpu.max", "50000 1000000\n"),
    ] {
        assert!(machine.write_group_control(memcg, name, text).unwrap().0.is_none(), "{text}");
    }
    for (name, text, errno) in [
        ("cpu.weight", "0", Errno::Erange),
        ("cpu.weight", "10001", Errno::Erange),
        ("cpu.weight", "heavy", Errno::Einval),
        ("cpu.max", "", Errno::Einval),
        ("cpu.max", "999", Errno::Einval),
        ("cpu.max", "max 999", Errno::Einval),
        ("cpu.max", "max 1000001", Errno::Einval),
        ("cpu.max", "99999999999999999", Errno::Einval),
        ("cpu.max", "1000 1000 1000", Errno::Einval),
        ("cpu.max", "-1", Errno::Einval),
    ] {
        assert_eq!(refused(&mut machine, memcg, name, text), errno, "{name} {text:?}");
    }
    assert_eq!(refused(&mut machine, ROOT, "cpu.weight", "100"), Errno::Enoent);
    assert!(machine.read_group_control(memcg, "cpu.max", 0).is_err());
    assert_eq!(machine.digest(), before);
}
