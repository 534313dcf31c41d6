//! The rules since 6.6.

use super::*;

fn with(nr_cpus: u16) -> Scheduler {
    Scheduler::new(nr_cpus, SchedulerPolicy::Linux612)
}

#[test]
fn hogs_share_in_proportion_to_their_weights() {
    let mut scheduler = with(1);
    for (task, nice) in [(0, 0), (1, 0), (2, 5)] {
        awake(&mut scheduler, task, nice, None);
    }
    run_hogs(&mut scheduler, 0, 3000 * MS);
    let shares = [1024, 1024, 335].map(|weight| 3000 * weight / 2383);
    for (task, share) in (0..).zip(shares) {
        let ms = exec_ms(&scheduler, task);
        assert!(ms.abs_diff(share) <= 8, "task {task}: {ms} of {share} ms");
    }
}

/// A hog that runs alone gets a new slice at each tick.
#[test]
fn a_woken_task_waits_for_a_tick_unless_the_slice_is_used_up() {
    for (after_tick, waits) in [(400_000, true), (1_000_000, false)] {
        let mut scheduler = with(1);
        awake(&mut scheduler, 0, 0, None);
        scheduler.add_sleeper(1, 0, None);
        let woken = 8 * MS + after_tick;
        run_hogs(&mut scheduler, 0, woken);
        let preempts = scheduler.wake(woken, 1, None);
        assert_eq!(preempts.is_none(), waits, "after {after_tick} ns");
        run_hogs(&mut scheduler, woken, 12 * MS);
        let ran = exec_ms(&scheduler, 1);
        assert!(if waits { ran == 0 } else { ran >= 1 }, "{ran} ms before the next tick");
        run_hogs(&mut scheduler, 12 * MS, 13 * MS);
        assert!(exec_ms(&scheduler, 1) >= 1);
    }
}

/// Each wake-up gives the running hog a new slice before the tick looks at it.
#[test]
fn wake_ups_before_each_tick_do_not_starve_a_waiting_hog() {
    let mut scheduler = with(1);
    (0..2).for_each(|task| awake(&mut scheduler, task, 0, None));
    scheduler.add_sleeper(2, 19, None);
    for tick in 0..500 {
        let woken = tick * 4 * MS + 3_900_000;
        run_hogs(&mut scheduler, tick * 4 * MS, woken);
        scheduler.wake(woken, 2, None);
        run_hogs(&mut scheduler, woken, (tick + 1) * 4 * MS);
        if scheduler.current(CPU0) == Some(2) {
            scheduler.block(CPU0);
            scheduler.pick_next(CPU0, (tick + 1) * 4 * MS);
        }
    }
    for task in 0..2 {
        let ms = exec_ms(&scheduler, task);
        assert!((900..=1010).contains(&ms), "task {task}: {ms} of 2000 ms");
    }
}

/// It slept with half of a tick of its share left, so it is served before the hog.
#[test]
fn a_sleeper_keeps_its_lag() {
    let mut scheduler = with(1);
    (0..2).for_each(|task| awake(&mut scheduler, task, 0, None));
    run_hogs(&mut scheduler, 0, 100 * MS);
    let mut now = 100 * MS;
    while scheduler.current(CPU0) != Some(1) {
        run_hogs(&mut scheduler, now, now + PIECE_NS);
        now += PIECE_NS;
    }
    let lag = |scheduler: &Scheduler| scheduler.task(1).entity.lag;
    scheduler.block(CPU0);
    scheduler.pick_next(CPU0, now);
    assert!(lag(&scheduler) > 0, "{}", lag(&scheduler));
    run_hogs(&mut scheduler, now, now + 50 * MS);
    scheduler.wake(now + 50 * MS, 1, None);
    let behind = scheduler.task(0).entity.vruntime - scheduler.task(1).entity.vruntime;
    assert!((1..=8 * MS as i64).contains(&behind), "{behind} ns");
}
