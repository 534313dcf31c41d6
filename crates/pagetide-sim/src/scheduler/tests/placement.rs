//! Placement of waking tasks, and loads.

use super::*;

/// Two hogs on two CPUs, and a task that sleeps on the first hog's CPU.
fn two_hogs_and_a_sleeper() -> Scheduler {
    let mut scheduler = Scheduler::new(2, SchedulerPolicy::Linux61);
    awake(&mut scheduler, 0, 0, Some(0..1));
    awake(&mut scheduler, 1, 0, Some(1..2));
    scheduler.add_sleeper(2, 0, None);
    run_hogs(&mut scheduler, 0, 400 * MS);
    scheduler
}

/// The same, after the third task has run on the first hog's CPU and sleeps there again.
fn a_sleeper_with_a_load() -> (Scheduler, Nanos) {
    let mut scheduler = two_hogs_and_a_sleeper();
    scheduler.task_mut(2).allowed = 0..1;
    let mut now = 400 * MS;
    scheduler.wake(now, 2, None);
    while now < 600 * MS || scheduler.current(CPU0) != Some(2) {
        run_piece(&mut scheduler, now);
        now += PIECE_NS;
    }
    scheduler.block(CPU0);
    scheduler.task_mut(2).allowed = 0..2;
    run_hogs(&mut scheduler, now, now + MS);
    (scheduler, now + MS)
}

/// With equal loads, the waker's CPU is preferred by 8 %: a task with hardly any load is pulled
/// there; a task with more load is not.
#[test]
fn a_task_with_a_load_stays_if_no_cpu_is_idle() {
    let waker = Some(WakeSource { cpu: CPU1, task: Some(1) });
    for (waker, cpu) in [(waker, CPU1), (None, CPU0)] {
        let mut scheduler = two_hogs_and_a_sleeper();
        scheduler.wake(400 * MS, 2, waker);
        assert_eq!(scheduler.cpu_of(2), cpu);
    }
    let (mut scheduler, now) = a_sleeper_with_a_load();
    assert!(scheduler.task_load(2, now) > 500);
    scheduler.wake(now, 2, waker);
    assert_eq!(scheduler.cpu_of(2), CPU0);
}

/// `wake_affine`: with another hog on its last CPU, the waker's CPU is better, but only for that
/// waker.
#[test]
fn a_waker_draws_a_sleeper_from_a_cpu_with_more_load() {
    for (waker, cpu) in [
        (Some(WakeSource { cpu: CPU1, task: Some(1) }), CPU1),
        (Some(WakeSource { cpu: CPU0, task: Some(0) }), CPU0),
        (None, CPU0),
    ] {
        let mut scheduler = two_hogs_and_a_sleeper();
        awake(&mut scheduler, 3, 0, Some(0..1));
        run_hogs(&mut scheduler, 400 * MS, 800 * MS);
        scheduler.wake(800 * MS, 2, waker);
        assert_eq!(scheduler.cpu_of(2), cpu, "{waker:?}");
    }
}

#[test]
fn an_idle_cpu_is_better_than_a_waker_s() {
    let mut scheduler = Scheduler::new(4, SchedulerPolicy::Linux61);
    awake(&mut scheduler, 0, 0, Some(0..1));
    awake(&mut scheduler, 1, 0, Some(1..2));
    scheduler.add_sleeper(2, 0, Some(0..3));
    run_hogs(&mut scheduler, 0, 100 * MS);
    scheduler.wake(100 * MS, 2, Some(WakeSource { cpu: CPU1, task: Some(1) }));
    assert_eq!(scheduler.cpu_of(2), Cpu(2));
    // The waker's CPU does not count as idle, although the waker is about to sleep.
    for (by, cpu) in [(Some(1), CPU0), (None, CPU1)] {
        let (mut scheduler, now) = a_sleeper_with_a_load();
        scheduler.block(CPU1);
        scheduler.wake(now, 2, Some(WakeSource { cpu: CPU1, task: by }));
        assert_eq!(scheduler.cpu_of(2), cpu, "{by:?}");
    }
}

/// A load is an average: a task that is awake half of the time has half its weight.
#[test]
fn loads_are_averages() {
    let mut scheduler = Scheduler::new(2, SchedulerPolicy::Linux61);
    awake(&mut scheduler, 0, 0, Some(0..1));
    let mut now = 0;
    while now < 2_000 * MS {
        if now % (20 * MS) == 0 {
            scheduler.wake(now, 0, None);
        } else if now % (20 * MS) == 10 * MS && scheduler.current(CPU0) == Some(0) {
            scheduler.block(CPU0);
        }
        run_piece(&mut scheduler, now);
        now += PIECE_NS;
    }
    let load = scheduler.cpu_load(CPU0, now);
    assert!((400..=620).contains(&load), "{load}");
    assert_eq!(scheduler.task_load(0, now), load);
    assert_eq!(scheduler.cpu_load(CPU1, now), 0);
}

/// A task takes its load along, so it does not bounce between two CPUs.
#[test]
fn a_load_goes_with_its_task() {
    let mut scheduler = two_hogs_and_a_sleeper();
    scheduler.wake(400 * MS, 2, None);
    let mut now = 400 * MS;
    while now < 500 * MS || scheduler.task(2).state != SchedState::Queued {
        run_piece(&mut scheduler, now);
        now += PIECE_NS;
    }
    let loads = [CPU0, CPU1].map(|cpu| scheduler.cpu_load(cpu, now));
    let from = scheduler.cpu_of(2);
    let load = scheduler.task_load(2, now);
    let at = [usize::from(from.0), 1 - usize::from(from.0)];
    scheduler.dequeue(2, now);
    scheduler.migrate(2, Cpu(1 - from.0), now);
    scheduler.enqueue(2, now);
    let after = [CPU0, CPU1].map(|cpu| scheduler.cpu_load(cpu, now));
    assert!(after[at[0]].abs_diff(loads[at[0]] - load) <= 2, "{loads:?} {after:?} {load}");
    assert!(after[at[1]].abs_diff(loads[at[1]] + load) <= 2, "{loads:?} {after:?} {load}");
}

/// A newly idle CPU does not pull a task that ran within half a millisecond, but pulls one that ran
/// earlier.
#[test]
fn hot_tasks_stay() {
    for (break_ns, moves) in [(PIECE_NS, false), (2 * MS, true)] {
        let mut scheduler = Scheduler::new(2, SchedulerPolicy::Linux61);
        awake(&mut scheduler, 0, 0, Some(0..1));
        awake(&mut scheduler, 2, 0, Some(1..2));
        scheduler.add_task(1, 0, None);
        scheduler.wake(0, 1, None);
        run_hogs(&mut scheduler, 0, 100 * MS);
        let cpu = scheduler.cpu_of(1);
        let other = Cpu(1 - cpu.0);
        let mut now = 100 * MS;
        // Until it has just been preempted by the other.
        while scheduler.current(cpu) != Some(1) || !scheduler.should_resched(cpu, now) {
            run_piece(&mut scheduler, now);
            now += PIECE_NS;
        }
        scheduler.pick_next(cpu, now);
        let end = now + break_ns;
        while now < end {
            let running = scheduler.current(cpu).unwrap();
            scheduler.account(cpu, running, PIECE_NS);
            now += PIECE_NS;
        }
        scheduler.block(other);
        let pulled = scheduler.pick_next(other, now);
        assert_eq!(pulled.is_some(), moves, "{break_ns}");
    }
}
