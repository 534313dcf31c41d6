use crate::config::Config;
use crate::frames::node::NodeSpec;
use crate::interface::daemon::Daemon;
use crate::interface::effect::Step;
use crate::process::{Machine, MmId, ProcessCall};
use crate::units::{Cpu, FileId, MemcgId, NodeId, PAGE_SIZE};

fn machine(config: Config) -> (Machine, MemcgId, MmId, FileId) {
    let mut machine = Machine::new(&[NodeSpec::x86_64(24 << 20, 0, 0)], 1, config).unwrap();
    let group = machine.create_memcg("group".into(), Machine::ROOT).unwrap();
    let mm = machine.create_mm(group).unwrap();
    let file = machine.create_file(16 * PAGE_SIZE, true).unwrap();
    (machine, group, mm, file)
}

fn write(machine: &mut Machine, mm: MmId, file: FileId) {
    let mut call = ProcessCall::write(mm, NodeId(0), file, 0, PAGE_SIZE);
    for step in 0..100 {
        let (step, effects) = machine.step(&mut call, Cpu(0), step * 1000);
        effects.discard();
        if matches!(step, Step::Done(_)) {
            return;
        }
    }
    panic!("a write does not end");
}

/// Steps the flusher until it rests; returns the number of steps.
fn flush(machine: &mut Machine) -> u64 {
    for step in 1..1000 {
        let (result, effects) = machine.step_daemon(Daemon::Flusher, Cpu(0), 1_000_000 + step);
        effects.discard();
        if matches!(result, Step::Done(_)) {
            return step;
        }
    }
    panic!("the flusher does not rest");
}

#[test]
fn without_an_interval_the_flusher_rests_when_pages_are_under_writeback() {
    let config = Config {
        dirty_writeback_centisecs: 0,
        dirty_background_bytes: 1,
        dirty_bytes: 2 * PAGE_SIZE,
        ..Config::default()
    };
    let (mut machine, _, mm, file) = machine(config);
    write(&mut machine, mm, file);
    machine.wakeup_flusher_threads();
    flush(&mut machine);
    assert_eq!(machine.nr_file_writes_in_flight(), 1);
    // Dirty again while the write is under way: nothing can be written now.
    write(&mut machine, mm, file);
    machine.wakeup_flusher_threads();
    machine.start_background_writeback(0);
    assert!(flush(&mut machine) < 20);
    machine.audit().unwrap();
}

#[test]
fn version_1_takes_the_files_of_all_groups() {
    let (mut machine, group, mm, file) = machine(Config::default());
    write(&mut machine, mm, file);
    let of_file = |machine: &Machine| {
        let wb = machine.owners.files[file].wb.unwrap();
        machine.owners.writeback.wbs[wb as usize].memcg
    };
    assert_eq!(of_file(&machine), group);
    machine.set_policy("cgroup", "v1").unwrap().discard();
    assert_eq!(of_file(&machine), Machine::ROOT);
    machine.audit().unwrap();
    machine.wakeup_flusher_threads();
    flush(&mut machine);
    assert_eq!(machine.nr_file_writes_in_flight(), 1);
}
