//! Random histories on several CPUs.

use super::*;

/// Random sleeps, wake-ups, yields and kills on four CPUs: the audit passes, no CPU is idle for
/// long while a task that it may run waits, no task starves, and runs of a seed are equal.
#[test]
fn random_histories_keep_the_promises() {
    let run = |seed, rules| {
        let mut prng = SplitMix64::new(seed);
        let mut scheduler = Scheduler::new(4, rules);
        for task in 0..12u32 {
            let allowed = match task % 4 {
                0 => Some(0..2),
                1 => Some(3..4),
                _ => None,
            };
            let nice = if task == 5 { -20 } else { (task as i8 % 5) - 2 };
            scheduler.add_task(task, nice, allowed);
        }
        let (mut history, mut idle) = (Vec::new(), Idleness::new(4));
        for step in 0..40_000u64 {
            let now = step * PIECE_NS;
            let task = prng.below(12) as TaskId;
            if let Some(cpu) = scheduler.wake(now, task, None) {
                if scheduler.current(cpu).is_none() {
                    history.push(scheduler.pick_next(cpu, now));
                }
            }
            for cpu in (0..4).map(Cpu) {
                if let Some(idle) = scheduler.balance(cpu, now) {
                    scheduler.balance(idle, now);
                    history.push(scheduler.pick_next(idle, now));
                }
                let Some(running) = scheduler.current(cpu) else {
                    continue;
                };
                scheduler.account(cpu, running, PIECE_NS);
                match prng.below(20) {
                    0 => {
                        scheduler.block(cpu);
                    }
                    1 => scheduler.yield_(cpu),
                    _ => {}
                }
                if scheduler.should_resched(cpu, now + PIECE_NS) || scheduler.current(cpu).is_none()
                {
                    history.push(scheduler.pick_next(cpu, now + PIECE_NS));
                }
            }
            audit(&scheduler);
            idle.look(&scheduler, now);
        }
        for task in 0..12 {
            let stats = scheduler.stats(task);
            assert!(stats.exec_ns > 50 * MS, "task {task} starves: {stats:?}");
        }
        history
    };
    for &rules in SchedulerPolicy::ALL {
        assert_eq!(run(1, rules), run(1, rules));
        assert_ne!(run(1, rules), run(2, rules));
    }
}

/// Time for which each CPU has been idle while a task that it may run waited on another CPU.
struct Idleness {
    since: IdVec<Cpu, Option<Nanos>>,
}

impl Idleness {
    fn new(nr_cpus: usize) -> Idleness {
        Idleness { since: vec![None; nr_cpus].into() }
    }

    /// No CPU stays idle while a movable task waits for longer than a few balancing attempts: at
    /// most one CPU is woken per tick, and tasks that ran within half a millisecond do not move.
    fn look(&mut self, scheduler: &Scheduler, now: Nanos) {
        for cpu in (0..scheduler.nr_cpus()).map(Cpu) {
            let waits = |from| scheduler.has_movable(from, cpu);
            let is_idle = scheduler.rq(cpu).is_idle()
                && (0..scheduler.nr_cpus()).map(Cpu).any(|from| from != cpu && waits(from));
            let since = &mut self.since[cpu];
            *since = is_idle.then(|| since.unwrap_or(now));
            let idle_ns = now - since.unwrap_or(now);
            assert!(idle_ns <= 4 * TICK_NS, "{cpu:?} is idle for {idle_ns} ns");
        }
    }
}
