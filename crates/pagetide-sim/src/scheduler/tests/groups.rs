//! Weights and quotas of groups.

use super::*;

/// Hogs in groups: `weights` of the groups, `hogs` in each.
fn hogs_in_groups(nr_cpus: u16, weights: &[(u64, u32)]) -> Scheduler {
    let mut scheduler = Scheduler::new(nr_cpus, SchedulerPolicy::Linux61);
    let mut task = 0;
    for &(weight, hogs) in weights {
        let group = scheduler.add_group(ROOT);
        scheduler.set_weight(group, weight, 0);
        for _ in 0..hogs {
            scheduler.add_task(task, 0, None);
            scheduler.move_task(task, group, 0);
            scheduler.wake(0, task, None);
            task += 1;
        }
    }
    scheduler
}

/// Runs hogs, and handles timers and wake-ups of groups like the world.
fn run_groups(scheduler: &mut Scheduler, from: Nanos, end: Nanos) {
    let mut timers: Vec<(GroupId, Nanos)> = Vec::new();
    for now in (from..end).step_by(PIECE_NS as usize) {
        while let Some(timer) = scheduler.next_timer() {
            timers.push(timer);
        }
        while let Some(at) = timers.iter().position(|timer| timer.1 <= now) {
            let (group, _) = timers.swap_remove(at);
            scheduler.period_ended(group, now);
        }
        while scheduler.next_called().is_some() {}
        run_piece(scheduler, now);
        audit(scheduler);
    }
}

fn usage_ms(scheduler: &Scheduler, group: GroupId) -> u64 {
    scheduler.group_stats(group).usage_ns / MS
}

#[test]
fn groups_share_a_cpu_by_weight_whatever_they_run() {
    for (weights, hogs) in [((100, 100), (1, 3)), ((100, 300), (2, 1)), ((50, 1000), (1, 1))] {
        let mut scheduler = hogs_in_groups(1, &[(weights.0, hogs.0), (weights.1, hogs.1)]);
        run_groups(&mut scheduler, 0, 10_000 * MS);
        let first = usage_ms(&scheduler, 1);
        let fair = 10_000 * weights.0 / (weights.0 + weights.1);
        assert!(first.abs_diff(fair) <= 200, "{weights:?} {hogs:?}: {first} ms, fair {fair} ms");
        assert_eq!(first + usage_ms(&scheduler, 2), 10_000);
    }
}

/// A group's weight is divided among the CPUs on which it has tasks.
#[test]
fn groups_share_cpus_by_weight() {
    for (nr_cpus, weight) in [(2, 300), (2, 100), (4, 200)] {
        let hogs = 2 * u32::from(nr_cpus);
        let mut scheduler = hogs_in_groups(nr_cpus, &[(100, hogs), (weight, hogs)]);
        run_groups(&mut scheduler, 0, 10_000 * MS);
        let all = u64::from(nr_cpus) * 10_000;
        let used = [1, 2].map(|group| scheduler.group_stats(group).usage_ns);
        assert_eq!(used[0] + used[1], all * MS);
        let first = usage_ms(&scheduler, 1);
        let fair = all * 100 / (100 + weight);
        assert!(first.abs_diff(fair) * 50 <= all, "{weight}: {first} of {all} ms, fair {fair} ms");
    }
}

#[test]
fn a_group_s_tasks_share_what_it_has_with_its_groups() {
    let mut scheduler = Scheduler::new(1, SchedulerPolicy::Linux61);
    let outer = scheduler.add_group(ROOT);
    let inner = scheduler.add_group(outer);
    scheduler.set_weight(inner, 300, 0);
    for (task, group) in [(0, ROOT), (1, outer), (2, inner), (3, inner)] {
        scheduler.add_task(task, 0, None);
        scheduler.move_task(task, group, 0);
        scheduler.wake(0, task, None);
    }
    run_groups(&mut scheduler, 0, 16_000 * MS);
    // A half, an eighth, and the two of `inner` three sixteenths each.
    for (task, fair) in [(0, 8_000), (1, 2_000), (2, 3_000), (3, 3_000)] {
        let had = exec_ms(&scheduler, task);
        assert!(had.abs_diff(fair) <= 160, "task {task}: {had} ms, fair {fair} ms");
    }
}

#[test]
fn a_quota_is_kept_within_a_slice() {
    for (nr_cpus, hogs, quota_ms) in [(1, 1, 20), (1, 3, 50), (2, 4, 60), (2, 2, 150), (4, 8, 10)] {
        let mut scheduler = hogs_in_groups(nr_cpus, &[(100, hogs)]);
        let quota = CpuQuota { quota_ns: quota_ms * MS, period_ns: 100 * MS };
        scheduler.set_quota(1, Some(quota), 0);
        run_groups(&mut scheduler, 0, 10_000 * MS);
        let stats = scheduler.group_stats(1);
        let (had, fair) = (stats.usage_ns / MS, 100 * quota_ms);
        // An excess of a CPU at the tick counts against the next period.
        let slice = u64::from(nr_cpus) * 5;
        assert!(had.abs_diff(fair) <= slice, "{nr_cpus} CPUs, {quota_ms}: {had} of {fair} ms");
        assert_eq!(stats.nr_periods, 99);
        assert!(stats.nr_throttled >= 95, "{stats:?}");
        let idle = u64::from(nr_cpus) * 10_000 - had;
        assert!(stats.throttled_ns / MS <= idle && stats.throttled_ns > 0, "{stats:?}");
    }
}

#[test]
fn a_group_below_its_quota_is_not_throttled() {
    let mut scheduler = hogs_in_groups(1, &[(100, 1)]);
    let quota = CpuQuota { quota_ns: 100 * MS, period_ns: 100 * MS };
    scheduler.set_quota(1, Some(quota), 0);
    run_groups(&mut scheduler, 0, 1_000 * MS);
    let stats = scheduler.group_stats(1);
    assert_eq!((stats.usage_ns, stats.nr_throttled), (1_000 * MS, 0));
}

/// A task that exceeds the quota and sleeps before the tick throttles its group: after its wake-up,
/// it waits.
#[test]
fn a_sleeping_task_has_used_the_quota_too() {
    let mut scheduler = hogs_in_groups(1, &[(100, 1)]);
    scheduler.set_quota(1, Some(CpuQuota { quota_ns: 2 * MS, period_ns: 100 * MS }), 0);
    scheduler.pick_next(CPU0, 0);
    scheduler.account(CPU0, 0, 3 * MS);
    assert!(!scheduler.should_resched(CPU0, 3 * MS), "no tick has come");
    scheduler.block(CPU0);
    assert_eq!(scheduler.pick_next(CPU0, 3 * MS), None);
    assert!(scheduler.is_throttled(CPU0, 1));
    scheduler.wake(10 * MS, 0, None);
    assert_eq!(scheduler.pick_next(CPU0, 10 * MS), None);
    let timers: Vec<_> = std::iter::from_fn(|| scheduler.next_timer()).collect();
    assert_eq!(timers.last(), Some(&(1, 100 * MS)));
    scheduler.period_ended(1, 100 * MS);
    assert_eq!(scheduler.pick_next(CPU0, 100 * MS), Some(0));
    let stats = scheduler.group_stats(1);
    assert_eq!((stats.nr_periods, stats.nr_throttled), (1, 1));
    assert_eq!(stats.throttled_ns, 97 * MS);
}

/// Other groups use the time of a throttled group, and a larger quota takes effect at once.
#[test]
fn a_quota_may_change_while_it_throttles() {
    let mut scheduler = hogs_in_groups(1, &[(100, 1), (100, 1)]);
    scheduler.set_quota(1, Some(CpuQuota { quota_ns: 10 * MS, period_ns: 100 * MS }), 0);
    run_groups(&mut scheduler, 0, 1_000 * MS);
    assert!(usage_ms(&scheduler, 1).abs_diff(100) <= 5, "{}", usage_ms(&scheduler, 1));
    assert_eq!(usage_ms(&scheduler, 1) + usage_ms(&scheduler, 2), 1_000);
    scheduler.set_quota(1, None, 1_000 * MS);
    run_groups(&mut scheduler, 1_000 * MS, 3_000 * MS);
    assert!(usage_ms(&scheduler, 1).abs_diff(1_100) <= 25, "{}", usage_ms(&scheduler, 1));
}

/// The quota of a parent limits its child groups.
#[test]
fn a_quota_holds_for_groups_within() {
    let mut scheduler = Scheduler::new(2, SchedulerPolicy::Linux61);
    let outer = scheduler.add_group(ROOT);
    let inner = scheduler.add_group(outer);
    scheduler.set_quota(outer, Some(CpuQuota { quota_ns: 30 * MS, period_ns: 100 * MS }), 0);
    for task in 0..4 {
        scheduler.add_task(task, 0, None);
        scheduler.move_task(task, if task == 0 { outer } else { inner }, 0);
        scheduler.wake(0, task, None);
    }
    run_groups(&mut scheduler, 0, 5_000 * MS);
    let had = usage_ms(&scheduler, outer);
    assert!(had.abs_diff(1_500) <= 10, "{had} ms");
}

/// Random sleeps, wake-ups, moves between groups and new controls: the audit passes, and runs of a
/// seed are equal.
#[test]
fn random_groups_keep_the_promises() {
    let run = |seed| {
        let mut prng = SplitMix64::new(seed);
        let mut scheduler = Scheduler::new(3, SchedulerPolicy::Linux61);
        let groups = [ROOT, scheduler.add_group(ROOT), scheduler.add_group(ROOT)];
        let groups = [groups[0], groups[1], groups[2], scheduler.add_group(groups[1])];
        (0..10).for_each(|task| scheduler.add_task(task, (task as i8 % 5) * 4 - 8, None));
        let (mut timers, mut history): (Vec<(GroupId, Nanos)>, Vec<u64>) = Default::default();
        for step in 0..30_000u64 {
            let now = step * PIECE_NS;
            let (task, group) = (prng.below(10) as TaskId, groups[prng.below(4) as usize]);
            match prng.below(400) {
                0 => scheduler.move_task(task, group, now),
                1 if group != ROOT => scheduler.set_weight(group, 1 + prng.below(10_000), now),
                2 if group != ROOT => {
                    let period_ns = (1 + prng.below(100)) * MS;
                    let quota = CpuQuota { quota_ns: (1 + prng.below(100)) * MS, period_ns };
                    scheduler.set_quota(group, (prng.below(3) > 0).then_some(quota), now);
                }
                3 => {
                    scheduler.remove_task(task);
                    scheduler.add_task(task, 0, None);
                    scheduler.move_task(task, group, now);
                }
                4..=60 => {
                    scheduler.wake(now, task, None);
                }
                61..=70 => {
                    let cpu = Cpu(prng.below(3) as u16);
                    if scheduler.current(cpu).is_some() {
                        scheduler.block(cpu);
                    }
                }
                _ => {}
            }
            timers.extend(std::iter::from_fn(|| scheduler.next_timer()));
            while let Some(at) = timers.iter().position(|timer| timer.1 <= now) {
                let (group, _) = timers.swap_remove(at);
                scheduler.period_ended(group, now);
            }
            while scheduler.next_called().is_some() {}
            run_piece(&mut scheduler, now);
            audit(&scheduler);
            history.extend((0..3).map(|cpu| scheduler.current(Cpu(cpu)).map_or(99, u64::from)));
        }
        history
    };
    for seed in 1..8 {
        assert_eq!(run(seed), run(seed));
    }
    assert_ne!(run(1), run(2));
}
