//! The CPU controller of groups: cpu.weight, cpu.max, cpu.stat.
//!
//! Linux: the CPU controller of cgroup version 2. The core only parses writes to these files, as it
//! has no CPUs. The scheduler applies them here. The controller is on if the setup writes
//! cpu.weight or cpu.max anywhere; otherwise tasks share CPUs as without groups. Daemons are in the
//! root group.
//!
//! Invariant: the scheduler id of a group is its index in the setup plus one.

use crate::scheduler::{CpuQuota, GroupId, Scheduler, TaskId, ROOT, WEIGHT_DEFAULT};
use crate::task::SimTask;
use crate::world::cpus::SimCpus;
use crate::world::{SimWorld, WorldEvent, WorldQueue};
use pagetide_core::config::ControlValue;
use pagetide_core::control::{GroupControl, GroupControlWrite};
use pagetide_core::units::Nanos;
use pagetide_scenario::metric::declared;
use pagetide_scenario::model::Setup;

const US: Nanos = 1_000;

fn number(group: Option<usize>) -> GroupId {
    group.map_or(ROOT, |group| group as GroupId + 1)
}

fn carry_out(scheduler: &mut Scheduler, group: GroupId, write: GroupControlWrite, now: Nanos) {
    match (write.control, write.value) {
        (GroupControl::CpuWeight, ControlValue::Number(weight)) => {
            scheduler.set_weight(group, u64::try_from(weight).unwrap_or(WEIGHT_DEFAULT), now);
        }
        (GroupControl::CpuMax, ControlValue::Bandwidth { quota, period }) => {
            let period_ns = period.map_or(scheduler.period(group), |period| period * US);
            scheduler.set_period(group, period_ns);
            let quota = quota.map(|quota| CpuQuota { quota_ns: quota * US, period_ns });
            scheduler.set_quota(group, quota, now);
        }
        _ => {}
    }
}

impl SimCpus {
    /// Turns the controller on: creates the scheduler groups of the setup with their controls, and
    /// moves the tasks into them.
    pub fn begin_groups(&mut self, setup: &Setup, tasks: &[SimTask], now: Nanos) {
        self.has_groups = true;
        for (id, group) in setup.groups.iter().enumerate() {
            let made = self.scheduler.add_group(number(group.parent));
            debug_assert_eq!(made, number(Some(id)), "parents come first");
            for &write in &group.controls {
                carry_out(&mut self.scheduler, made, write, now);
            }
        }
        for (id, task) in tasks.iter().enumerate().filter(|(_, task)| !task.is_over()) {
            // The task's own group, not the (maybe higher) group that its memory is charged to.
            self.scheduler.move_task(id as TaskId, number(tasks[task.leader].group), now);
        }
    }

    /// Resets the scheduler group of a newly created group to the setup's controls.
    pub fn renew_group(&mut self, group: usize, controls: &[GroupControlWrite], now: Nanos) {
        if self.has_groups {
            let id = number(Some(group));
            self.scheduler.reset_group(id, now);
            for &write in controls {
                carry_out(&mut self.scheduler, id, write, now);
            }
        }
    }

    pub fn move_to_group(&mut self, thread: usize, group: Option<usize>, now: Nanos) {
        if self.has_groups {
            self.scheduler.move_task(thread as TaskId, number(group), now);
        }
    }

    pub fn group_counts(&self, group: usize) -> Vec<(&'static str, u64)> {
        if !self.has_groups {
            return Vec::new();
        }
        let stats = self.scheduler.group_stats(number(Some(group)));
        vec![
            (declared::CPU_USAGE.name, stats.usage_ns / US),
            (declared::CPU_PERIODS.name, stats.nr_periods),
            (declared::CPU_THROTTLED.name, stats.nr_throttled),
            (declared::CPU_THROTTLED_TIME.name, stats.throttled_ns / US),
        ]
    }

    /// Starts the period timers that the scheduler requests, and wakes CPUs with unthrottled tasks.
    pub fn serve_groups(&mut self, now: Nanos, queue: &mut WorldQueue) {
        while let Some((group, at)) = self.scheduler.next_timer() {
            queue.push(at.max(now), WorldEvent::Period(group));
        }
        while let Some(cpu) = self.scheduler.next_called() {
            self.reschedule(cpu, now, queue);
        }
    }
}

impl SimWorld {
    /// Applies a write to a CPU control file of an existing group, even one without a memory
    /// controller (the core does not have such groups).
    pub(crate) fn write_cpu_control(&mut self, group: usize, write: GroupControlWrite) {
        debug_assert!(write.control.is_of_cpu() && self.groups.exists(group), "{write:?}");
        if !self.cpus.has_groups {
            self.cpus.begin_groups(&self.setup, &self.tasks, self.now);
        }
        carry_out(&mut self.cpus.scheduler, number(Some(group)), write, self.now);
        self.cpus.serve_groups(self.now, &mut self.queue);
    }
}

#[cfg(test)]
mod tests {
    use crate::run::build;
    use crate::world::SimWorld;
    use pagetide_scenario::build::Builder;
    use pagetide_scenario::metric::declared;

    const MS: u64 = 1_000_000;

    /// Two groups, each with a task that computes for a second, on one CPU.
    fn world(controls: [(&str, &str); 2]) -> SimWorld {
        let mut builder = Builder::new().set("machine.memory", "64MiB");
        for (name, (control, text)) in ["a", "b"].into_iter().zip(controls) {
            let mut group = Builder::new().set("name", name);
            if !control.is_empty() {
                group = group.set(control, text);
            }
            builder = builder.push("group", group);
        }
        for name in ["a", "b"] {
            let task = Builder::new().set("name", name).set("group", name);
            let task = task.set("workload", "compute").set("duration", "1s");
            builder = builder.push("task", task);
        }
        build(&builder.setup().unwrap(), 1).unwrap()
    }

    fn ended_ms(world: &SimWorld) -> [u64; 2] {
        [0, 1].map(|task| world.tasks[task].ended.unwrap() / MS)
    }

    fn stat(world: &SimWorld, group: usize, name: &str) -> u64 {
        let counts = world.cpus.group_counts(group);
        counts.into_iter().find(|count| count.0 == name).unwrap().1
    }

    #[test]
    fn weights_divide_a_cpu() {
        let mut world = world([("cpu.weight", "300"), ("", "")]);
        assert!(world.run(u64::MAX, 100, |_| false).unwrap());
        let [heavy, light] = ended_ms(&world);
        assert!(heavy.abs_diff(1_333) <= 27, "{heavy} ms");
        assert!(light.abs_diff(2_000) <= 5, "{light} ms");
        assert!(stat(&world, 0, declared::CPU_USAGE.name).abs_diff(1_000_000) < 5_000);
    }

    #[test]
    fn a_quota_makes_a_task_slow() {
        let mut world = world([("cpu.max", "20000 100000"), ("", "")]);
        assert!(world.run(u64::MAX, 100, |_| false).unwrap());
        let [limited, free] = ended_ms(&world);
        // 50 periods; the task ends in the last one after 20 ms.
        assert!(limited.abs_diff(4_920) <= 100, "{limited} ms");
        assert!(free.abs_diff(1_250) <= 30, "{free} ms");
        let throttled = stat(&world, 0, declared::CPU_THROTTLED.name);
        assert!((45..=50).contains(&throttled), "{throttled}");
        let slept = stat(&world, 0, declared::CPU_THROTTLED_TIME.name);
        assert!((3_400_000..4_000_000).contains(&slept), "{slept}");
    }

    /// A group without a memory controller has its own CPU share, not that of the group charged for
    /// its memory.
    #[test]
    fn a_quota_holds_without_a_memory_controller() {
        let pod = Builder::new().set("name", "pod").set("subtree_control", "none");
        let c = Builder::new().set("name", "c").set("parent", "pod");
        let task = Builder::new().set("name", "main").set("group", "c");
        let builder = Builder::new()
            .set("machine.memory", "64MiB")
            .push("group", pod)
            .push("group", c.set("cpu.max", "10000 100000"))
            .push("task", task.set("workload", "compute").set("duration", "1s"));
        let mut world = build(&builder.setup().unwrap(), 1).unwrap();
        assert!(world.run(u64::MAX, 100, |_| false).unwrap());
        let ended = world.tasks[0].ended.unwrap() / MS;
        assert!(ended.abs_diff(9_904) <= 10, "{ended} ms");
        for group in [0, 1] {
            let used = stat(&world, group, declared::CPU_USAGE.name);
            assert!(used.abs_diff(1_000_000) < 5_000, "{group}: {used}");
        }
        assert_eq!(stat(&world, 0, declared::CPU_THROTTLED.name), 0);
    }

    /// Controls written from outside work like those of the scenario.
    #[test]
    fn controls_may_come_later() {
        let mut world = world([("", ""), ("", "")]);
        assert!(world.cpus.group_counts(0).is_empty());
        world.run(100 * MS, 0, |_| false).unwrap();
        world.write_group_file("a", "cpu.max", "10000", |_| false).unwrap();
        world.run(1_100 * MS, 0, |_| false).unwrap();
        let used = stat(&world, 0, declared::CPU_USAGE.name);
        assert!(used.abs_diff(100_000) <= 10_000, "{used}");
        world.write_group_file("a", "cpu.max", "max", |_| false).unwrap();
        assert!(world.write_group_file("a", "cpu.max", "10", |_| false).is_err());
        assert!(world.run(u64::MAX, 100, |_| false).unwrap());
    }
}
