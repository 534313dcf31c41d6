//! Tests drive the scheduler like the world does: with time slices and sleeps.

use super::*;

mod eevdf;
mod groups;
mod placement;
mod random;
use pagetide_scenario::draws::prng::SplitMix64;

const CPU0: Cpu = Cpu(0);
const CPU1: Cpu = Cpu(1);
const PIECE_NS: Nanos = 100_000;
const MS: Nanos = 1_000_000;

/// Runs every CPU with time slices of 100 us until `end`; tasks never sleep.
fn run_hogs(scheduler: &mut Scheduler, from: Nanos, end: Nanos) {
    for now in (from..end).step_by(PIECE_NS as usize) {
        run_piece(scheduler, now);
        audit(scheduler);
    }
}

/// Runs every CPU for 100 us.
fn run_piece(scheduler: &mut Scheduler, now: Nanos) {
    for cpu in (0..scheduler.nr_cpus()).map(Cpu) {
        let called = scheduler.balance(cpu, now);
        let running = match scheduler.current(cpu) {
            Some(task) if !scheduler.should_resched(cpu, now) => Some(task),
            _ => scheduler.pick_next(cpu, now),
        };
        if let Some(task) = running {
            scheduler.account(cpu, task, PIECE_NS);
        }
        if let Some(idle) = called.filter(|idle| idle.0 < cpu.0) {
            scheduler.balance(idle, now);
            scheduler.pick_next(idle, now);
        }
    }
}

/// Audits the invariants of the scheduler's modules.
fn audit(scheduler: &Scheduler) {
    let mut seen = vec![0; scheduler.tasks.len()];
    for cpu in (0..scheduler.nr_cpus()).map(Cpu) {
        let rq = scheduler.rq(cpu);
        for (group, queue) in (0..).zip(&rq.queues) {
            let waiting = queue.waiting.iter().map(|place| (place.2, SchedState::Queued));
            let running = queue.current.iter().map(|who| (*who, SchedState::Running));
            let (mut load, mut nr_tasks) = (0, 0);
            for (who, state) in waiting.chain(running) {
                load += scheduler.entity(cpu, who).weight;
                assert_eq!(scheduler.group_of(who), group);
                match who {
                    EntityId::Task(id) => {
                        let task = scheduler.task(id);
                        assert_eq!((task.state, task.cpu), (state, cpu));
                        assert!(task.allowed.contains(&cpu.0));
                        assert!(rq.tasks.contains(&id));
                        assert_eq!(rq.current == Some(id), state == SchedState::Running);
                        seen[id as usize] += 1;
                        nr_tasks += 1;
                    }
                    EntityId::Group(below) => {
                        let below = scheduler.queue(cpu, below);
                        assert!(below.is_on_parent && below.throttled_since.is_none());
                        assert_eq!(below.current.is_some(), state == SchedState::Running);
                        nr_tasks += below.nr_tasks;
                    }
                }
            }
            assert_eq!((queue.load, queue.nr_tasks), (load, nr_tasks), "group {group}");
            let is_on_parent = !queue.is_empty() && queue.throttled_since.is_none();
            assert_eq!(queue.is_on_parent, group != ROOT && is_on_parent);
        }
        assert_eq!(rq.current.is_some(), rq.queues[0].current.is_some());
    }
    for (id, seen) in seen.into_iter().enumerate() {
        let asleep =
            scheduler.tasks[id].as_ref().is_none_or(|task| task.state == SchedState::Asleep);
        assert_eq!(seen, usize::from(!asleep), "task {id}");
    }
    let listed: usize = scheduler.cpus.iter().map(|rq| rq.tasks.len()).sum();
    let awake =
        |task: &&Option<SchedTask>| task.as_ref().is_some_and(|it| it.state != SchedState::Asleep);
    assert_eq!(listed, scheduler.tasks.iter().filter(awake).count());
}

fn exec_ms(scheduler: &Scheduler, task: TaskId) -> u64 {
    scheduler.stats(task).exec_ns / MS
}

fn awake(scheduler: &mut Scheduler, task: TaskId, nice: i8, allowed: Option<Range<u16>>) {
    scheduler.add_task(task, nice, allowed);
    scheduler.wake(0, task, None);
}

/// Tasks 0, 1 and so on, which are awake and may run anywhere.
fn hogs(nr_cpus: u16, nr_tasks: TaskId) -> Scheduler {
    let mut scheduler = Scheduler::new(nr_cpus, SchedulerPolicy::Linux61);
    (0..nr_tasks).for_each(|task| awake(&mut scheduler, task, 0, None));
    scheduler
}

#[test]
fn equal_hogs_share_equally() {
    let mut scheduler = hogs(1, 4);
    run_hogs(&mut scheduler, 0, 4000 * MS);
    for task in 0..4 {
        assert!((990..=1010).contains(&exec_ms(&scheduler, task)));
    }
}

/// Without balancing, one of the three has a CPU alone forever. The sleeper keeps slices and
/// balancing attempts out of phase.
#[test]
fn three_hogs_on_two_cpus_take_turns() {
    let mut scheduler = Scheduler::new(2, SchedulerPolicy::Linux61);
    for task in 0..3 {
        awake(&mut scheduler, task, 0, Some(0..2));
    }
    scheduler.add_sleeper(3, 0, Some(0..1));
    for now in (0..12_000 * MS).step_by(PIECE_NS as usize) {
        if now.is_multiple_of(7 * MS) {
            scheduler.wake(now, 3, None);
        }
        run_hogs(&mut scheduler, now, now + PIECE_NS);
        if now % (7 * MS) >= MS && scheduler.current(CPU0) == Some(3) {
            scheduler.block(CPU0);
        }
    }
    for task in 0..3 {
        let ms = exec_ms(&scheduler, task);
        assert!((6_000..=10_000).contains(&ms), "task {task}: {ms} ms of 12000");
    }
    // Two attempts, at least 28 ms apart, move one task.
    let moves: u64 = (0..3).map(|task| scheduler.stats(task).nr_migrations).sum();
    assert!(moves >= 40, "{moves} moves");
}

/// The waiting tasks are on a queue below the average load, because a third CPU has a heavy task.
#[test]
fn a_light_queue_is_taken_from_while_a_heavy_task_runs_elsewhere() {
    let mut scheduler = Scheduler::new(3, SchedulerPolicy::Linux61);
    awake(&mut scheduler, 0, -20, Some(0..1));
    awake(&mut scheduler, 1, 10, Some(1..2));
    awake(&mut scheduler, 2, 0, Some(2..3));
    awake(&mut scheduler, 3, 0, Some(2..3));
    run_hogs(&mut scheduler, 0, MS);
    // As after sched_setaffinity: from now on it may also run on the CPU of the light task.
    scheduler.task_mut(3).allowed = 1..3;
    run_hogs(&mut scheduler, MS, 1_000 * MS);
    assert!(scheduler.stats(3).nr_migrations > 0, "it waits where it was");
}

#[test]
fn equal_numbers_of_hogs_stay_where_they_are() {
    let mut scheduler = hogs(2, 4);
    run_hogs(&mut scheduler, 0, 2_000 * MS);
    let moves: u64 = (0..4).map(|task| scheduler.stats(task).nr_migrations).sum();
    assert!(moves <= 1, "{moves} moves");
}

#[test]
fn hogs_move_only_where_they_may() {
    let mut scheduler = Scheduler::new(2, SchedulerPolicy::Linux61);
    for task in 0..3 {
        awake(&mut scheduler, task, 0, Some(0..1));
    }
    awake(&mut scheduler, 3, 0, Some(1..2));
    run_hogs(&mut scheduler, 0, 1_000 * MS);
    assert_eq!(exec_ms(&scheduler, 3), 1_000);
    assert_eq!(scheduler.stats(0).nr_migrations, 0);
}

#[test]
fn hogs_share_by_weight() {
    for (nice, weight) in [(1, 820), (5, 335), (-5, 3121)] {
        let mut scheduler = hogs(1, 1);
        awake(&mut scheduler, 1, nice, None);
        run_hogs(&mut scheduler, 0, 10_000 * MS);
        let (plain, niced) = (exec_ms(&scheduler, 0), exec_ms(&scheduler, 1));
        assert!(plain + niced >= 9_999);
        let fair = 10_000 * weight / (weight + 1024);
        assert!(niced.abs_diff(fair) <= 30, "nice {nice}: {niced} ms, fair {fair} ms");
    }
}

#[test]
fn tiny_pieces_are_charged_exactly() {
    let mut scheduler = Scheduler::new(1, SchedulerPolicy::Linux61);
    awake(&mut scheduler, 0, -20, None);
    scheduler.pick_next(CPU0, 0);
    let before = scheduler.task(0).entity.vruntime;
    for _ in 0..88_761 {
        scheduler.account(CPU0, 0, 1);
    }
    assert_eq!(scheduler.task(0).entity.vruntime - before, 1024);
}

#[test]
fn slices_end_at_ticks() {
    let mut scheduler = hogs(1, 2);
    assert_eq!(scheduler.pick_next(CPU0, 0), Some(0));
    scheduler.account(CPU0, 0, 3_900_000);
    // The slice is 3 ms, but it is checked only at the tick.
    assert!(!scheduler.should_resched(CPU0, 3_900_000));
    scheduler.account(CPU0, 0, 100_000);
    assert!(scheduler.should_resched(CPU0, 4_000_000));
    assert_eq!(scheduler.pick_next(CPU0, 4_000_000), Some(1));
    assert_eq!(scheduler.stats(0).nr_involuntary_switches, 1);
    assert_eq!(scheduler.stats(1).wait_ns, 4_000_000);
    assert_eq!(
        (next_tick(0), next_tick(3_999_999), next_tick(4_000_000)),
        (4 * MS, 4 * MS, 8 * MS)
    );
}

#[test]
fn a_lone_task_is_not_disturbed() {
    let mut scheduler = hogs(1, 1);
    scheduler.pick_next(CPU0, 0);
    scheduler.account(CPU0, 0, 100 * MS);
    assert!(!scheduler.should_resched(CPU0, 100 * MS));
}

#[test]
fn a_sleeper_takes_the_cpu_from_a_hog() {
    let mut scheduler = hogs(1, 2);
    // Both run; then 1 sleeps while 0 computes.
    scheduler.pick_next(CPU0, 0);
    scheduler.account(CPU0, 0, 4 * MS);
    assert_eq!(scheduler.pick_next(CPU0, 4 * MS), Some(1));
    scheduler.account(CPU0, 1, 100_000);
    assert_eq!(scheduler.block(CPU0), 1);
    assert_eq!(scheduler.pick_next(CPU0, 4_100_000), Some(0));
    scheduler.account(CPU0, 0, 10 * MS);
    // It wakes 3 ms behind (half of 6 ms), which is more than 1 ms.
    assert_eq!(scheduler.wake(14_100_000, 1, None), Some(CPU0));
    assert!(scheduler.should_resched(CPU0, 14_100_000));
    assert_eq!(scheduler.pick_next(CPU0, 14_100_000), Some(1));
    assert_eq!(
        scheduler.task(0).entity.vruntime - scheduler.task(1).entity.vruntime,
        3 * MS as i64
    );
    assert_eq!(scheduler.stats(1).nr_voluntary_switches, 1);
}

/// kswapd's first wake-up: it has slept since boot, and must not wait behind the hog like a new
/// task.
#[test]
fn a_thread_of_boot_takes_the_cpu_at_its_first_wake_up() {
    for (is_of_boot, takes_over) in [(true, true), (false, false)] {
        let mut scheduler = hogs(1, 1);
        match is_of_boot {
            true => scheduler.add_sleeper(1, 0, None),
            false => scheduler.add_task(1, 0, None),
        }
        run_hogs(&mut scheduler, 0, 100 * MS);
        assert_eq!(scheduler.wake(100 * MS, 1, None).is_some(), takes_over);
        let next = scheduler.pick_next(CPU0, 100 * MS);
        assert_eq!(next, Some(TaskId::from(takes_over)));
        audit(&scheduler);
    }
}

#[test]
fn time_not_yet_accounted_counts_for_preemption() {
    let mut scheduler = hogs(1, 2);
    assert_eq!(scheduler.pick_next(CPU0, 0), Some(0));
    scheduler.account(CPU0, 0, 4 * MS);
    assert_eq!(scheduler.pick_next(CPU0, 4 * MS), Some(1));
    scheduler.account(CPU0, 1, 4 * MS);
    scheduler.block(CPU0);
    assert_eq!(scheduler.pick_next(CPU0, 8 * MS), Some(0));
    // Task 0 is in the middle of a time slice, which is accounted at its end.
    let mut soon = scheduler.clone();
    assert_eq!(soon.wake(11_900_000, 1, None), None);
    assert_eq!(scheduler.wake(12_100_000, 1, None), Some(CPU0));
}

#[test]
fn a_woken_task_barely_behind_waits() {
    let mut scheduler = hogs(1, 2);
    scheduler.pick_next(CPU0, 0);
    scheduler.account(CPU0, 0, 4 * MS);
    scheduler.pick_next(CPU0, 4 * MS);
    scheduler.account(CPU0, 1, 4 * MS);
    scheduler.block(CPU0);
    scheduler.pick_next(CPU0, 8 * MS);
    scheduler.account(CPU0, 0, 3_900_000);
    // 7 ms against 7.9 ms: less than the granularity behind.
    assert_eq!(scheduler.wake(11_900_000, 1, None), None);
    assert!(!scheduler.should_resched(CPU0, 11_900_000));
    assert_eq!(scheduler.nr_running(CPU0), 2);
    assert_eq!(scheduler.wake(11_900_000, 1, None), None, "already awake");
}

#[test]
fn a_woken_task_goes_to_an_idle_cpu_its_own_first() {
    let mut scheduler = Scheduler::new(4, SchedulerPolicy::Linux61);
    awake(&mut scheduler, 0, 0, Some(2..3));
    assert_eq!(scheduler.pick_next(Cpu(2), 0), Some(0));
    scheduler.add_task(1, 0, None);
    assert_eq!(scheduler.wake(0, 1, None), Some(CPU0));
    assert_eq!(scheduler.pick_next(CPU0, 0), Some(1));
    // Its own CPU is idle again: it returns there, although other CPUs are idle too.
    scheduler.block(CPU0);
    assert_eq!(scheduler.pick_next(CPU0, 1), None);
    assert_eq!(scheduler.wake(2, 1, None), Some(CPU0));
    assert_eq!(scheduler.pick_next(CPU0, 2), Some(1));
    // The next task goes to CPU 1, the next after its own; then one to CPU 3, as 2 is busy.
    scheduler.add_task(2, 0, None);
    assert_eq!(scheduler.wake(3, 2, None), Some(CPU1));
    scheduler.add_task(3, 0, None);
    assert_eq!(scheduler.wake(3, 3, None), Some(Cpu(3)));
    // All CPUs are taken (1 and 3 have not picked yet): the least loaded one, on a tie its own.
    scheduler.add_task(4, 0, Some(1..4));
    assert_eq!(scheduler.wake(3, 4, None), None);
    assert_eq!(scheduler.cpu_of(4), CPU1);
}

#[test]
fn the_least_loaded_cpu_counts_weights() {
    let mut scheduler = Scheduler::new(2, SchedulerPolicy::Linux61);
    awake(&mut scheduler, 0, -10, Some(0..1));
    awake(&mut scheduler, 1, 10, Some(1..2));
    awake(&mut scheduler, 2, 10, Some(1..2));
    scheduler.add_task(3, 0, None);
    scheduler.wake(0, 3, None);
    assert_eq!(scheduler.cpu_of(3), CPU1);
}

#[test]
fn a_cpu_without_work_pulls_the_task_that_waits_longest_off_cpu() {
    let mut scheduler = Scheduler::new(2, SchedulerPolicy::Linux61);
    awake(&mut scheduler, 0, 0, Some(0..1));
    awake(&mut scheduler, 1, 0, None);
    assert_eq!(scheduler.cpu_of(1), CPU1);
    awake(&mut scheduler, 2, 0, None);
    awake(&mut scheduler, 3, 0, Some(0..1));
    assert_eq!(scheduler.pick_next(CPU0, 0), Some(0));
    assert_eq!(scheduler.pick_next(CPU1, 0), Some(1));
    assert_eq!(scheduler.cpu_of(2), CPU0);
    scheduler.block(CPU1);
    // 3 may not move, 2 may.
    assert_eq!(scheduler.pick_next(CPU1, 5 * MS), Some(2));
    assert_eq!(scheduler.stats(2).nr_migrations, 1);
    assert_eq!(scheduler.stats(2).wait_ns, 5 * MS);
    audit(&scheduler);
    // Without a movable task, nothing changes.
    scheduler.block(CPU1);
    assert_eq!(scheduler.pick_next(CPU1, 6 * MS), None);
}

#[test]
fn a_yielding_task_is_passed_over_once() {
    let mut scheduler = hogs(1, 2);
    assert_eq!(scheduler.pick_next(CPU0, 0), Some(0));
    // A task 3 ms behind is too far behind to be skipped; one half a millisecond behind is not.
    scheduler.yield_(CPU0);
    assert!(scheduler.should_resched(CPU0, 0));
    assert_eq!(scheduler.pick_next(CPU0, 0), Some(0));
    scheduler.account(CPU0, 0, 2_500_000);
    scheduler.yield_(CPU0);
    assert_eq!(scheduler.pick_next(CPU0, 2_500_000), Some(1));
    // Alone, it runs on.
    scheduler.block(CPU0);
    scheduler.pick_next(CPU0, 3 * MS);
    scheduler.yield_(CPU0);
    assert_eq!(scheduler.pick_next(CPU0, 3 * MS), Some(0));
}

#[test]
fn removing_a_task_leaves_no_trace() {
    let mut scheduler = hogs(1, 3);
    scheduler.pick_next(CPU0, 0);
    scheduler.account(CPU0, 0, 77);
    assert_eq!(scheduler.remove_task(0).exec_ns, 77);
    assert_eq!(scheduler.remove_task(1).exec_ns, 0);
    audit(&scheduler);
    assert_eq!(scheduler.pick_next(CPU0, 5), Some(2));
    scheduler.block(CPU0);
    scheduler.remove_task(2);
    assert_eq!(scheduler.pick_next(CPU0, 6), None);
    awake(&mut scheduler, 1, 0, None);
    assert_eq!(scheduler.pick_next(CPU0, 7), Some(1));
}

#[test]
fn more_cpus_mean_longer_slices() {
    let factors = [(1, 1), (2, 2), (4, 3), (8, 4), (64, 4)];
    for (cpus, factor) in factors {
        assert_eq!(Scheduler::new(cpus, SchedulerPolicy::Linux61).factor, factor, "{cpus} CPUs");
    }
}

#[test]
fn many_tasks_get_the_minimum_granularity() {
    let mut scheduler = hogs(1, 100);
    run_hogs(&mut scheduler, 0, 2000 * MS);
    let times: Vec<u64> = (0..100).map(|task| exec_ms(&scheduler, task)).collect();
    let (least, most) = (times.iter().min().unwrap(), times.iter().max().unwrap());
    assert!(*least >= 16 && *most <= 24, "{least}..{most}");
}

/// A task that sleeps most of the time gets the CPU soon after each wake-up, however many hogs.
#[test]
fn kswapd_like_sleepers_wait_less_than_hogs() {
    let mut scheduler = Scheduler::new(1, SchedulerPolicy::Linux61);
    for hog in 1..4 {
        awake(&mut scheduler, hog, 0, None);
    }
    scheduler.add_task(0, 0, None);
    let (mut now, mut wakeups) = (0, 0);
    while now < 2000 * MS {
        if scheduler.is_asleep(0) && now % (20 * MS) == 0 {
            scheduler.wake(now, 0, None);
            wakeups += 1;
        }
        if scheduler.current(CPU0).is_none() || scheduler.should_resched(CPU0, now) {
            scheduler.pick_next(CPU0, now);
        }
        let running = scheduler.current(CPU0).expect("the hogs never sleep");
        scheduler.account(CPU0, running, PIECE_NS);
        now += PIECE_NS;
        if running == 0 {
            scheduler.block(CPU0);
        }
    }
    let wait_ns = scheduler.stats(0).wait_ns / wakeups;
    assert!(wait_ns < MS, "{wait_ns} ns a wake-up");
}

/// A task that exits is charged for all its pages at once, and a cost may be a second.
#[test]
fn years_in_one_piece_are_counted() {
    const YEAR: Nanos = 365 * 24 * 3_600_000 * MS;
    let mut scheduler = Scheduler::new(2, SchedulerPolicy::Linux61);
    let group = scheduler.add_group(ROOT);
    scheduler.set_weight(group, 1, 0);
    for (task, nice, group) in [(0, 19, group), (1, 0, ROOT), (2, -20, group), (3, 0, ROOT)] {
        scheduler.add_task(task, nice, None);
        scheduler.move_task(task, group, 0);
    }
    let mut now = 0;
    for round in 0..20u32 {
        for task in (0..4).filter(|task| task % 2 == round % 2) {
            scheduler.wake(now, task, None);
        }
        for cpu in [CPU0, CPU1] {
            scheduler.pick_next(cpu, now);
        }
        // The waking task is compared with one that has not been charged yet.
        for task in 0..4 {
            scheduler.wake(now + YEAR / 2, task, None);
        }
        for cpu in [CPU0, CPU1] {
            let running = scheduler.current(cpu).expect("there are two for each");
            scheduler.account(cpu, running, YEAR);
            scheduler.should_resched(cpu, now + YEAR);
        }
        now += YEAR;
        for cpu in [CPU0, CPU1] {
            if round % 3 == 0 {
                scheduler.block(cpu);
            } else {
                scheduler.yield_(cpu);
            }
            scheduler.balance(cpu, now);
            scheduler.pick_next(cpu, now);
        }
        audit(&scheduler);
    }
    let all: Nanos = (0..4).map(|task| scheduler.stats(task).exec_ns).sum();
    assert_eq!(all, 2 * 20 * YEAR);
}
