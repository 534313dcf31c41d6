//! Judges numbered candidates on several threads until one is a find.
//!
//! Invariant: each thread takes the next number. Answers are returned without a gap, so the find
//! has the lowest number, and does not depend on the number of threads.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// Time between two looks whether to stop.
const LOOK_EVERY: Duration = Duration::from_millis(5);

struct CandidateQueue<T> {
    next: usize,
    /// Candidates from here on are not needed.
    end: usize,
    /// Ends the work on a candidate.
    active: BTreeMap<usize, Arc<AtomicBool>>,
    judged: BTreeMap<usize, T>,
}

impl<T> CandidateQueue<T> {
    fn end_at(&mut self, end: usize) {
        self.end = self.end.min(end);
        for (_, cancel) in self.active.range(self.end..) {
            cancel.store(true, Ordering::Relaxed);
        }
    }
}

/// Judges the candidates from 0 on, below `end`. `judge` has no answer if its flag became true.
/// Returns the answers up to the first find, or up to the first candidate that `stop` has ended.
pub(super) fn judge_in_order<T: Send>(
    threads: NonZeroUsize,
    end: usize,
    judge: &(dyn Fn(usize, &Arc<AtomicBool>) -> Option<T> + Sync),
    is_find: &(dyn Fn(&T) -> bool + Sync),
    stop: &dyn Fn() -> bool,
) -> Vec<T> {
    let (active, judged) = (BTreeMap::new(), BTreeMap::new());
    let queue = Mutex::new(CandidateQueue { next: 0, end, active, judged });
    let work = || loop {
        let mut state = lock(&queue);
        let number = state.next;
        if number >= state.end {
            break;
        }
        state.next += 1;
        let cancel = Arc::clone(state.active.entry(number).or_default());
        drop(state);
        let answer = judge(number, &cancel);
        let mut state = lock(&queue);
        state.active.remove(&number);
        if let Some(answer) = answer {
            if is_find(&answer) {
                state.end_at(number + 1);
            }
            state.judged.insert(number, answer);
        }
    };
    thread::scope(|scope| {
        let workers = (0..threads.get().min(end))
            .map_while(|_| thread::Builder::new().spawn_scoped(scope, work).ok());
        let workers: Vec<_> = workers.collect();
        if workers.is_empty() {
            work();
        }
        while workers.iter().any(|worker| !worker.is_finished()) {
            thread::park_timeout(LOOK_EVERY);
            if stop() {
                lock(&queue).end_at(0);
            }
        }
    });
    let state = queue.into_inner().unwrap_or_else(PoisonError::into_inner);
    let mut find = false;
    let in_order = state.judged.into_iter().enumerate();
    let in_order = in_order.take_while(|(at, (number, answer))| {
        let is_next = at == number && !find;
        find |= is_find(answer);
        is_next
    });
    in_order.map(|(_, (_, answer))| answer).collect()
}

fn lock<T>(queue: &Mutex<CandidateQueue<T>>) -> MutexGuard<'_, CandidateQueue<T>> {
    queue.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slow_lower_number_comes_first() {
        let judged = Mutex::new(Vec::new());
        let judge = |number: usize, cancel: &Arc<AtomicBool>| {
            // The first waits for all others of which one is a find.
            while number == 0 && !lock_judged(&judged).contains(&7) {
                thread::yield_now();
            }
            lock_judged(&judged).push(number);
            (!cancel.load(Ordering::Relaxed)).then_some(number)
        };
        let threads = |count| NonZeroUsize::new(count).unwrap();
        let find = |number: &usize| *number == 7;
        let answers = judge_in_order(threads(2), 100, &judge, &find, &|| false);
        assert_eq!(answers, [0, 1, 2, 3, 4, 5, 6, 7]);
        assert!(lock_judged(&judged).len() == 8, "nothing after a find starts");
        let both = |number: &usize| [0, 7].contains(number);
        assert_eq!(judge_in_order(threads(2), 100, &judge, &both, &|| false), [0]);
    }

    #[test]
    fn a_stop_keeps_what_has_no_gap() {
        let stop = AtomicBool::new(false);
        let judge = |number: usize, cancel: &Arc<AtomicBool>| {
            stop.fetch_or(number > 20, Ordering::Relaxed);
            while number == 3 && !cancel.load(Ordering::Relaxed) {
                thread::yield_now();
            }
            (number != 3).then_some(number)
        };
        let threads = NonZeroUsize::new(2).unwrap();
        let stopped = || stop.load(Ordering::Relaxed);
        assert_eq!(judge_in_order(threads, 1 << 40, &judge, &|_| false, &stopped), [0, 1, 2]);
    }

    fn lock_judged(judged: &Mutex<Vec<usize>>) -> MutexGuard<'_, Vec<usize>> {
        judged.lock().unwrap()
    }
}
