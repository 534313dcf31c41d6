//! API for stepping a world from outside, like an operator at a shell: run it up to a time, read
//! files, and write control files.
//!
//! Invariant: stops do not change a world that is not written to. A write uses no CPU of the
//! machine. If the kernel reclaims before a write returns, virtual time passes: the time of the
//! work, and of the writer's waits.

use crate::world::cpus::drain;
use crate::world::{SimWorld, WorldError, WorldThread};
use pagetide_core::control::{ControlError, GroupControl, GroupControlWrite};
use pagetide_core::groups::memcg::ROOT;
use pagetide_core::interface::effect::{Effect, Io, Step};
use pagetide_core::interface::outcome::Outcome;
use pagetide_core::process::ProcessCall;
use pagetide_core::units::errno::Errno;
use pagetide_core::units::{Cpu, MemcgId, Nanos, NodeId};

/// Longest time between two polls of a sleeping writer, which an effect may wake before its
/// timeout.
const LOOK_EVERY: Nanos = 1_000_000;

#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// No group of this name exists now.
    #[error("there is no group `{0}`")]
    Group(String),
    /// The file rejects the text, or the group does not have this file.
    #[error("{0}")]
    Control(ControlError),
    /// The kernel reclaimed too little.
    #[error("writing to {name} was refused with {errno}")]
    Refused { name: String, errno: Errno },
    /// The run failed while the writer waited.
    #[error(transparent)]
    World(#[from] WorldError),
}

impl SimWorld {
    /// Index of an existing group; `None` for the root, which has the name `""`.
    fn find_group(&self, name: &str) -> Result<Option<usize>, WriteError> {
        if name.is_empty() {
            return Ok(None);
        }
        let place = self.setup.groups.iter().position(|group| group.name == name);
        let there = place.filter(|&place| self.groups.exists(place));
        there.map(Some).ok_or_else(|| WriteError::Group(name.to_owned()))
    }

    /// The memcg of a group. `file` is for the error message.
    fn group_of(&self, name: &str, file: &str) -> Result<MemcgId, WriteError> {
        let Some(place) = self.find_group(name)? else { return Ok(ROOT) };
        self.groups.memcgs[place].ok_or_else(|| {
            let message = format!("group `{name}` has no memory controller, so no {file}");
            let name = file.to_owned();
            WriteError::Control(ControlError { errno: Errno::Enoent, name, message })
        })
    }

    /// Reads a control file of a group, or a read-only file such as `memory.stat`; `""` is the
    /// root.
    pub fn read_group_file(&self, group: &str, file: &str) -> Result<String, WriteError> {
        let memcg = self.group_of(group, file)?;
        self.machine.read_group_control(memcg, file, self.now).map_err(WriteError::Control)
    }

    /// Writes a control file of the machine, such as `vm.swappiness`.
    pub fn write_file(&mut self, file: &str, text: &str) -> Result<(), WriteError> {
        let mut effects = Vec::new();
        let written = self.machine.write_control(file, text);
        let written = written.map(|asked| drain(asked, &mut effects, &mut self.cpus.late));
        self.apply_external_effects(effects);
        written.map_err(WriteError::Control)
    }

    /// Writes a control file of a group. If the kernel reclaims before the write returns, virtual
    /// time passes.
    pub fn write_group_file(
        &mut self,
        group: &str,
        file: &str,
        text: &str,
        mut cancelled: impl FnMut(Nanos) -> bool,
    ) -> Result<(), WriteError> {
        if let Some(place) = self.find_group(group)? {
            if GroupControl::find(file).is_some_and(GroupControl::is_of_cpu) {
                let write = GroupControlWrite::read(file, text).map_err(WriteError::Control)?;
                self.write_cpu_control(place, write);
                return Ok(());
            }
        }
        let memcg = self.group_of(group, file)?;
        let written = self.machine.write_group_control(memcg, file, text);
        let (begun, asked) = written.map_err(WriteError::Control)?;
        let mut effects = Vec::new();
        drain(asked, &mut effects, &mut self.cpus.late);
        self.apply_external_effects(effects);
        let Some(begun) = begun else { return Ok(()) };
        let writer = self.machine.create_mm(ROOT).expect("the root is always there");
        let mut call = ProcessCall::group_write(writer, NodeId(0), begun);
        let done = self.perform(&mut call, &mut cancelled);
        let mut effects = Vec::new();
        if let Ok(asked) = self.machine.exit_mm(writer, Cpu(0)) {
            drain(asked, &mut effects, &mut self.cpus.late);
        }
        self.apply_external_effects(effects);
        match done? {
            Outcome::Refused(errno) => Err(WriteError::Refused { name: file.to_owned(), errno }),
            _ => Ok(()),
        }
    }

    /// Steps a call to its end. The world runs on while the call works or sleeps.
    fn perform(
        &mut self,
        call: &mut ProcessCall,
        cancelled: &mut impl FnMut(Nanos) -> bool,
    ) -> Result<Outcome, WorldError> {
        loop {
            let mut effects = Vec::new();
            let (step, asked) = self.machine.step(call, Cpu(0), self.now);
            drain(asked, &mut effects, &mut self.cpus.late);
            let worked = self.take_work();
            self.apply_external_effects(effects);
            let passes = match step {
                Step::Continue => worked.max(1),
                Step::Done(outcome) => return Ok(outcome),
                Step::Wait(sleep) => sleep.timeout.clamp(1, LOOK_EVERY),
            };
            if self.is_complete() || cancelled(self.now) {
                return Ok(Outcome::Minor);
            }
            self.run(self.now.saturating_add(passes), 0, &mut *cancelled)?;
        }
    }

    /// Carries out effects outside the time slice of any thread.
    fn apply_external_effects(&mut self, effects: Vec<Effect>) {
        let of_disks = effects.iter().filter_map(|effect| match effect {
            Effect::Submit(io) => Some(*io),
            _ => None,
        });
        let ios: Vec<Io> = of_disks.collect();
        if !ios.is_empty() {
            // The writer is not a thread of the setup; submit as a task does.
            let ios = ios.into_iter().map(|io| (io, self.now)).collect();
            let by = (WorldThread::Task(0), Cpu(0));
            self.disks.submit(ios, by, self.machine.swap(), self.now, &mut self.queue);
        }
        // The kworker of reclaim would run where the writer does: on none of these CPUs.
        for effect in effects.into_iter().filter(|effect| *effect != Effect::ScheduleWork) {
            self.apply(effect, Cpu(0));
        }
        self.free_late();
    }
}

#[cfg(test)]
mod tests {
    use super::WriteError;
    use crate::run::build;
    use pagetide_core::interface::effect::Effect;
    use pagetide_scenario::build::Builder;
    use pagetide_scenario::model::Setup;

    fn setup() -> Setup {
        let task = Builder::new()
            .set("name", "main")
            .set("group", "g")
            .set("workload", "touch")
            .set("size", "96MiB")
            .set("passes", 100);
        let builder = Builder::new().set("machine.memory", "128MiB").set("machine.swap", "256MiB");
        let builder = builder.push("group", Builder::new().set("name", "g"));
        builder.push("task", task).setup().unwrap()
    }

    #[test]
    fn stopping_changes_nothing() {
        let end = |step: u64| {
            let mut world = build(&setup(), 1).unwrap();
            let mut until = step;
            while !world.run(until, 0, |_| false).unwrap() {
                until = until.saturating_add(step);
            }
            assert!(world.is_complete());
            (world.now, world.machine.digest())
        };
        let whole = end(u64::MAX);
        assert_eq!(end(1_000_000), whole);
        assert_eq!(end(77_777), whole);
    }

    #[test]
    fn a_group_is_cut_down_while_it_runs() {
        let mut world = build(&setup(), 1).unwrap();
        assert!(!world.run(40_000_000, 0, |_| false).unwrap());
        let usage = |world: &crate::world::SimWorld| {
            world.read_group_file("g", "memory.current").unwrap().trim().parse::<u64>().unwrap()
        };
        assert!(usage(&world) > 32 << 20, "{}", usage(&world));
        world.write_group_file("g", "memory.high", "16M", |_| false).unwrap();
        assert!(usage(&world) < 32 << 20, "{}", usage(&world));
        world.write_file("vm.swappiness", "10").unwrap();
        assert_eq!(world.machine.read_control("vm.swappiness").unwrap(), "10\n");
        assert!(world.write_file("vm.swappiness", "many").is_err());
        assert!(world.write_group_file("h", "memory.high", "1M", |_| false).is_err());
        assert!(!world.run(1_000_000_000, 1000, |_| false).unwrap());
    }

    /// Neither the writer nor the kworker of its reclaim runs on a CPU of the machine.
    #[test]
    fn what_a_writer_reclaims_takes_no_cpu_time() {
        let mut world = build(&setup(), 1).unwrap();
        assert!(!world.run(40_000_000, 0, |_| false).unwrap());
        let debts = |world: &crate::world::SimWorld| -> Vec<u64> {
            world.cpus.of.iter().map(|cpu| cpu.debt).collect()
        };
        let before = debts(&world);
        world.apply_external_effects(vec![Effect::ScheduleWork]);
        assert_eq!(debts(&world), before);
    }

    /// A group without a memory controller has the files of the CPU controller only.
    #[test]
    fn a_group_without_a_memory_controller_has_files_for_cpus() {
        let compute = Builder::new().set("name", "main").set("group", "c");
        let compute = compute.set("workload", "compute").set("duration", "1s");
        let pod = Builder::new().set("name", "pod").set("subtree_control", "none");
        let builder = Builder::new().set("machine.memory", "64MiB").push("group", pod);
        let builder = builder.push("group", Builder::new().set("name", "c").set("parent", "pod"));
        let mut world = build(&builder.push("task", compute).setup().unwrap(), 1).unwrap();
        world.run(100_000_000, 0, |_| false).unwrap();
        world.write_group_file("c", "cpu.max", "10000 100000", |_| false).unwrap();
        for (file, text) in [("cpu.max", "10"), ("memory.max", "1M"), ("memory.oom.group", "1")] {
            let refused = world.write_group_file("c", file, text, |_| false);
            assert!(matches!(refused, Err(WriteError::Control(_))), "{file}: {refused:?}");
        }
        let read = world.read_group_file("c", "memory.current");
        assert!(matches!(read, Err(WriteError::Control(_))), "{read:?}");
        let root = world.write_group_file("", "cpu.max", "10000", |_| false);
        assert!(matches!(root, Err(WriteError::Control(_))), "{root:?}");
        assert!(world.run(u64::MAX, 100, |_| false).unwrap());
        // The remaining 900 ms take 90 periods of 100 ms, with 10 ms of CPU time each.
        assert!(world.now.abs_diff(9_000_000_000) < 200_000_000, "{}", world.now);
    }
}
