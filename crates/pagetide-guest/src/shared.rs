//! Memory shared by the processes of a guest: a page of words.
//!
//! Words: the seed (0 until the machine may run), the lock of the console, the number of ready
//! tasks, and for each task a word that is 0 until it has ended.

use crate::sys::{futex, memory, process};
use std::io;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

const SEED_LOW: usize = 0;
const SEED_HIGH: usize = 1;
const GO: usize = 2;
const CONSOLE: usize = 3;
const READY: usize = 4;
const TASKS: usize = 5;

/// Handle to the shared words; copies refer to the same words.
#[derive(Clone, Copy, Debug)]
pub struct SharedWords {
    words: &'static [AtomicU32],
}

/// Holds the lock of the console until drop.
#[derive(Debug)]
pub struct ConsoleLock(&'static AtomicU32);

impl Drop for ConsoleLock {
    fn drop(&mut self) {
        futex::set(self.0, 0);
    }
}

impl SharedWords {
    /// Creates the words for `tasks` tasks.
    pub fn new(tasks: usize) -> io::Result<SharedWords> {
        Ok(SharedWords { words: memory::shared_words(TASKS + tasks)? })
    }

    /// Starts the tasks with this seed.
    pub fn start_tasks(self, seed: u64) {
        self.words[SEED_LOW].store(seed as u32, Ordering::SeqCst);
        self.words[SEED_HIGH].store((seed >> 32) as u32, Ordering::SeqCst);
        futex::set(&self.words[GO], 1);
    }

    /// Waits for [`SharedWords::start_tasks`] and returns the seed.
    pub fn wait_for_seed(self) -> u64 {
        while self.words[GO].load(Ordering::SeqCst) == 0 {
            futex::wait(&self.words[GO], 0, None);
        }
        let word = |index: usize| u64::from(self.words[index].load(Ordering::SeqCst));
        word(SEED_LOW) | word(SEED_HIGH) << 32
    }

    /// Counts this task as ready.
    pub fn task_is_ready(self) {
        self.words[READY].fetch_add(1, Ordering::SeqCst);
        futex::wake(&self.words[READY]);
    }

    /// Waits until `tasks` tasks are ready; returns false after `patience`.
    pub fn wait_until_ready(self, tasks: u32, patience: Duration) -> bool {
        let deadline = process::now_ns() + patience.as_nanos() as u64;
        loop {
            let ready = self.words[READY].load(Ordering::SeqCst);
            if ready >= tasks {
                return true;
            }
            if process::now_ns() > deadline {
                return false;
            }
            futex::wait(&self.words[READY], ready, Some(Duration::from_millis(100)));
        }
    }

    /// Marks task number `task` as ended.
    pub fn task_has_ended(self, task: usize) {
        futex::set(&self.words[TASKS + task], 1);
    }

    /// Whether task number `task` has ended and was waited for.
    pub fn has_ended(self, task: usize) -> bool {
        self.words[TASKS + task].load(Ordering::SeqCst) != 0
    }

    /// Waits for the end of a task.
    pub fn wait_for_task(self, task: usize) {
        while self.words[TASKS + task].load(Ordering::SeqCst) == 0 {
            futex::wait(&self.words[TASKS + task], 0, None);
        }
    }

    /// Locks the console. A killed owner loses the lock.
    pub fn lock_console(self) -> ConsoleLock {
        let word = &self.words[CONSOLE];
        let me = std::process::id();
        loop {
            match word.compare_exchange(0, me, Ordering::SeqCst, Ordering::SeqCst) {
                Ok(_) => return ConsoleLock(word),
                Err(holder) if holder == me || !process::lives(holder as i32) => {
                    let _ = word.compare_exchange(holder, 0, Ordering::SeqCst, Ordering::SeqCst);
                }
                Err(holder) => futex::wait(word, holder, Some(Duration::from_millis(50))),
            }
        }
    }
}
