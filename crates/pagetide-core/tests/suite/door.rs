//! The protocol between core and world: effects cannot be lost unnoticed.

use crate::world::CPU;
use pagetide_core::config::{Config, Thp};
use pagetide_core::frames::node::NodeSpec;
use pagetide_core::interface::daemon::{Daemon, DaemonRest};
use pagetide_core::interface::effect::{Effect, Step, Token};
use pagetide_core::process::{Machine, ProcessCall};
use pagetide_core::units::NodeId;
use std::panic::{catch_unwind, AssertUnwindSafe};

const NODE: NodeId = NodeId(0);

fn machine() -> Machine {
    Machine::new(&[NodeSpec::x86_64(16 << 20, 0, 0)], 1, Config::default()).unwrap()
}

/// A call with I/O to start.
fn read(machine: &mut Machine) -> ProcessCall {
    let mm = machine.create_mm(Machine::ROOT).unwrap();
    let file = machine.create_file(1 << 20, false).unwrap();
    ProcessCall::read(mm, NODE, file, 0, 4096, Default::default())
}

fn message(panic: Box<dyn std::any::Any + Send>) -> String {
    match panic.downcast::<String>() {
        Ok(text) => *text,
        Err(panic) => {
            panic.downcast::<&str>().map_or_else(|_| String::new(), |text| (*text).into())
        }
    }
}

#[test]
fn the_call_after_effects_that_were_dropped_panics() {
    let mut machine = machine();
    let mut call = read(&mut machine);
    let (step, effects) = machine.step(&mut call, CPU, 0);
    assert!(matches!(step, Step::Wait(_)) && !effects.is_empty());
    drop(effects);
    assert!(machine.audit().is_err());
    let next = catch_unwind(AssertUnwindSafe(|| machine.step(&mut call, CPU, 0).1.discard()));
    let said = message(next.unwrap_err());
    assert!(said.contains("1 effects of an earlier call were dropped undrained"), "{said}");
}

#[test]
fn effects_that_were_drained_in_part_are_dropped_in_part() {
    let mut machine = machine();
    let mut call = read(&mut machine);
    let (_, mut effects) = machine.step(&mut call, CPU, 0);
    assert!(matches!(effects.next(), Some(Effect::Submit(_))));
    assert!(effects.is_empty());
    drop(effects);
    machine.audit().unwrap();
    machine.step(&mut call, CPU, 0).1.discard();
}

/// A second panic while the first unwinds would abort the process.
#[test]
fn a_world_that_panics_with_effects_in_hand_unwinds() {
    let mut machine = machine();
    let mut call = read(&mut machine);
    let world = catch_unwind(AssertUnwindSafe(|| {
        let (_, effects) = machine.step(&mut call, CPU, 0);
        assert!(!effects.is_empty());
        panic!("the disk is gone");
    }));
    assert_eq!(message(world.unwrap_err()), "the disk is gone");
    // A world that continues gets a panic about the lost effects.
    let next = catch_unwind(AssertUnwindSafe(|| machine.step(&mut call, CPU, 0).1.discard()));
    assert!(message(next.unwrap_err()).contains("dropped undrained"));
}

#[test]
fn every_daemon_has_a_place_and_the_place_the_daemon() {
    for nr_nodes in 1..5 {
        let all: Vec<Daemon> = Daemon::all(nr_nodes).collect();
        assert_eq!(all.len(), 2 * nr_nodes + 3);
        for (at, &daemon) in all.iter().enumerate() {
            assert_eq!(daemon.idx(nr_nodes), at);
            assert_eq!(Daemon::at(at, nr_nodes), daemon);
            assert!(!all[..at].contains(&daemon));
        }
    }
}

/// The initial rests of the daemons equal the rests that idle daemons return.
#[test]
fn daemons_begin_with_a_rest() {
    let mut machine = machine();
    let rest = |machine: &Machine, daemon| {
        machine.daemons().find_map(|(at, rest)| (at == daemon).then_some(rest)).unwrap()
    };
    assert_eq!(rest(&machine, Daemon::Kswapd(NODE)), DaemonRest::UNTIL_WOKEN);
    assert_eq!(rest(&machine, Daemon::Kworker), DaemonRest::UNTIL_WOKEN);
    assert_eq!(rest(&machine, Daemon::Kcompactd(NODE)), DaemonRest::of(500_000_000));
    machine.write_control("vm.compaction_proactiveness", "0").unwrap().discard();
    assert_eq!(rest(&machine, Daemon::Kcompactd(NODE)), DaemonRest::UNTIL_WOKEN);
    assert_eq!(rest(&machine, Daemon::Flusher), DaemonRest::UNTIL_WOKEN);
    assert_eq!(rest(&machine, Daemon::Khugepaged), DaemonRest::UNTIL_WOKEN);
    machine.config.thp = Thp::Always;
    assert_eq!(rest(&machine, Daemon::Khugepaged), DaemonRest::of(0));
    for daemon in [Daemon::Kcompactd(NODE), Daemon::Flusher, Daemon::Kworker] {
        let said = rest(&machine, daemon);
        let (step, effects) = machine.step_daemon(daemon, CPU, 0);
        effects.discard();
        assert_eq!(step, Step::Done(said), "{daemon:?}");
    }
}

#[test]
fn huge_pages_that_are_switched_on_wake_khugepaged_once() {
    let mut machine = machine();
    let name = "transparent_hugepage.enabled";
    let wakes = |machine: &mut Machine, text: &str| {
        let effects: Vec<Effect> = machine.write_control(name, text).unwrap().collect();
        let khugepaged = Effect::Wake(Token::Daemon(Daemon::Khugepaged));
        assert!(effects.iter().all(|&effect| effect == khugepaged));
        effects.len()
    };
    assert_eq!(wakes(&mut machine, "always"), 1);
    assert_eq!(wakes(&mut machine, "madvise"), 0, "it is awake");
    assert_eq!(wakes(&mut machine, "never"), 0, "it will see");
    assert_eq!(wakes(&mut machine, "always"), 0, "it has not seen");
    assert_eq!(wakes(&mut machine, "never"), 0);
    let (step, effects) = machine.step_daemon(Daemon::Khugepaged, CPU, 0);
    effects.discard();
    assert_eq!(step, Step::Done(DaemonRest::UNTIL_WOKEN));
    assert_eq!(wakes(&mut machine, "always"), 1);
}
