//! An executor: runs calls and daemons of a manager and carries out their effects.
//!
//! Linux needs no executor, because its tasks run by themselves. Here the executor steps a call and
//! the daemons until each of them is done, rests or sleeps. A [`World`] (a clock, backing stores
//! and page contents) carries out the effects of each step. Benchmarks, test worlds and embedding
//! programs use the executor. The simulator uses its own scheduler instead, because its tasks
//! compete for CPUs.
//!
//! One call runs at a time. For each step of the call, each daemon that is awake also makes one
//! step, as if it ran in parallel. While the call sleeps, the daemons run alone.
//!
//! Invariant: between two calls of the executor's functions no effect is waiting.

use crate::interface::call::Call;
use crate::interface::daemon::Daemon;
use crate::interface::effect::{Effect, Io, Step, Token};
use crate::interface::entry_points::EntryPoints;
#[cfg(doc)]
use crate::interface::kernel::Kernel;
use crate::interface::manager::Manager;
use crate::interface::outcome::Outcome;
use crate::units::{Cpu, Nanos, Pfn, Requester};
use alloc::vec::Vec;

/// A clock, backing stores and page contents: the parts that the manager does not have.
pub trait World {
    /// The current time. It never goes back.
    fn now(&mut self) -> Nanos;

    /// Starts an I/O. `Some`: it has already ended, with or without success. `None`:
    /// [`World::next_completion`] reports its end later.
    fn submit(&mut self, io: Io) -> Option<bool>;

    /// The next I/O that has ended, and whether it succeeded. If none has ended yet, waits for one,
    /// or lets time pass, for at most `patience`.
    fn next_completion(&mut self, patience: Nanos) -> Option<(Io, bool)>;

    /// Moves bytes: [`Effect::Zero`], [`Effect::CollapsePage`], [`Effect::CopyPage`],
    /// [`Effect::ReadOut`], [`Effect::WriteIn`], [`Effect::StorePage`] or [`Effect::LoadPage`]. Returns
    /// false on failure; only
    /// [`Effect::CopyPage`] may fail. After [`Kernel::without_bytes`] it is called for
    /// [`Effect::CopyPage`] only.
    fn move_bytes(&mut self, effect: Effect) -> bool;

    /// Memory ran out: the world must end this requester after the current call.
    fn kill(&mut self, _asker: Requester) {}
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DaemonRunState {
    /// Must be stepped.
    Awake,
    /// Rests or sleeps until its token is woken or until this time.
    Asleep(Token, Nanos),
}

/// A manager, its world, and the run state of the daemons.
#[derive(Debug)]
pub struct Executor<O: EntryPoints, W> {
    /// The manager. Use [`Executor::ask`] for direct calls, so that their effects are carried out.
    pub manager: Manager<O>,
    /// The world.
    pub world: W,
    /// While set, daemons do not run by themselves; see [`Executor::run_daemons`].
    pub daemons_paused: bool,
    daemons: Vec<(Daemon, DaemonRunState)>,
    daemon_cpu: Cpu,
    /// Before this time no daemon is awake, and no rest or sleep of a daemon ends.
    daemons_due: Nanos,
    /// Token that the running call sleeps on, and whether the token was woken.
    awaited: Option<Token>,
    is_woken: bool,
    todo: Vec<Effect>,
    /// Effects of I/O that ends while other effects are carried out.
    more: Vec<Effect>,
}

impl<O: EntryPoints, W: World> Executor<O, W> {
    /// An executor whose daemons run on `daemon_cpu`.
    pub fn new(manager: Manager<O>, mut world: W, daemon_cpu: Cpu) -> Executor<O, W> {
        let now = world.now();
        let begin = |(daemon, rest): (Daemon, crate::interface::daemon::DaemonRest)| {
            (
                daemon,
                DaemonRunState::Asleep(Token::Daemon(daemon), now.saturating_add(rest.timeout)),
            )
        };
        let daemons = manager.daemons().map(begin).collect();
        Executor {
            manager,
            world,
            daemons_paused: false,
            daemons,
            daemon_cpu,
            daemons_due: 0,
            awaited: None,
            is_woken: false,
            todo: Vec::with_capacity(64),
            more: Vec::with_capacity(64),
        }
    }

    /// Calls a function of the manager that is not a [`Call`]. The closure must append the effects
    /// to the vector ([`Effects::drain_into`](crate::interface::effect::Effects::drain_into)).
    pub fn ask<T>(&mut self, ask: impl FnOnce(&mut Manager<O>, &mut Vec<Effect>) -> T) -> T {
        let answer = ask(&mut self.manager, &mut self.todo);
        self.carry_out();
        answer
    }

    /// Runs a call to its end. Do not use it if the owners kill a requester when memory runs out
    /// ([`World::kill`]) and wait for its end: the call would wait forever.
    pub fn run(&mut self, call: &mut Call<O::Request>, cpu: Cpu) -> Outcome {
        loop {
            match self.step(call, cpu) {
                Step::Continue => {}
                Step::Wait(sleep) => {
                    let now = self.world.now();
                    self.sleep(sleep.token, now.saturating_add(sleep.timeout));
                }
                Step::Done(outcome) => return outcome,
            }
        }
    }

    /// Runs one step of a call, and one step of each daemon that is awake. An embedder that shares
    /// the executor under a lock may release the lock between two steps.
    pub fn step(&mut self, call: &mut Call<O::Request>, cpu: Cpu) -> Step<Outcome> {
        let now = self.world.now();
        let (step, effects) = self.manager.step(call, cpu, now);
        effects.drain_into(&mut self.todo);
        // The effects of this step may wake the sleeping call.
        self.await_token(match step {
            Step::Wait(sleep) => Some(sleep.token),
            Step::Continue | Step::Done(_) => None,
        });
        self.carry_out();
        if !self.daemons_paused {
            self.step_daemons();
        }
        step
    }

    /// Steps the daemons until none is awake, and processes the I/O that has ended.
    pub fn run_daemons(&mut self) {
        loop {
            while let Some((io, ok)) = self.world.next_completion(0) {
                self.io_done(io, ok);
            }
            if !self.step_daemons() {
                return;
            }
        }
    }

    /// Whether a daemon is awake.
    pub fn is_awake(&self, daemon: Daemon) -> bool {
        self.daemons.contains(&(daemon, DaemonRunState::Awake))
    }

    /// Sleeps until a token is woken or until a time. For use after [`Executor::step`] has returned
    /// a sleep.
    pub fn sleep(&mut self, token: Token, until: Nanos) {
        if self.awaited != Some(token) {
            // Another call has run in between, and the token may already have been woken. So sleep
            // only if the sleep has a timeout; otherwise the next step of the call checks whether
            // the wait is over.
            if until == Nanos::MAX {
                return;
            }
            self.await_token(Some(token));
        }
        while !self.is_woken {
            let now = self.world.now();
            if now >= until {
                break;
            }
            if !self.daemons_paused && self.step_daemons() {
                continue;
            }
            let next = if self.daemons_paused { Nanos::MAX } else { self.next_wakeup() };
            let patience = next.min(until).saturating_sub(now).max(1);
            if let Some((io, ok)) = self.world.next_completion(patience) {
                self.io_done(io, ok);
            }
        }
        self.await_token(None);
    }

    fn await_token(&mut self, token: Option<Token>) {
        self.awaited = token;
        self.is_woken = false;
    }

    /// Earliest end of a daemon's rest or sleep.
    fn next_wakeup(&self) -> Nanos {
        let until = self.daemons.iter().map(|&(_, is)| match is {
            DaemonRunState::Awake => 0,
            DaemonRunState::Asleep(_, until) => until,
        });
        until.min().unwrap_or(Nanos::MAX)
    }

    /// Runs one step of each daemon that is awake. Returns whether any daemon was awake.
    fn step_daemons(&mut self) -> bool {
        let now = self.world.now();
        if now < self.daemons_due {
            return false;
        }
        let mut any = false;
        for at in 0..self.daemons.len() {
            let (daemon, is) = self.daemons[at];
            if matches!(is, DaemonRunState::Asleep(_, until) if until > now) {
                continue;
            }
            any = true;
            let (step, effects) = self.manager.step_daemon(daemon, self.daemon_cpu, now);
            effects.drain_into(&mut self.todo);
            // The new state is stored before the effects are carried out, because they may wake
            // this daemon.
            self.daemons[at].1 = match step {
                Step::Continue => DaemonRunState::Awake,
                Step::Wait(sleep) => {
                    DaemonRunState::Asleep(sleep.token, now.saturating_add(sleep.timeout))
                }
                Step::Done(rest) => {
                    DaemonRunState::Asleep(Token::Daemon(daemon), now.saturating_add(rest.timeout))
                }
            };
            self.carry_out();
        }
        self.daemons_due = self.next_wakeup();
        any
    }

    fn io_done(&mut self, io: Io, ok: bool) {
        let now = self.world.now();
        self.manager.io_done(io, ok, self.daemon_cpu, now).drain_into(&mut self.todo);
        self.carry_out();
    }

    /// Carries out all effects, and the effects that follow from them.
    fn carry_out(&mut self) {
        while !self.todo.is_empty() {
            let mut todo = core::mem::take(&mut self.todo);
            for effect in todo.drain(..) {
                self.carry_out_one(effect);
            }
            // Keeps the buffer with the larger capacity.
            self.todo = core::mem::replace(&mut self.more, todo);
        }
    }

    fn carry_out_one(&mut self, effect: Effect) {
        match effect {
            Effect::Submit(io) => {
                if let Some(ok) = self.world.submit(io) {
                    let now = self.world.now();
                    let effects = self.manager.io_done(io, ok, self.daemon_cpu, now);
                    effects.drain_into(&mut self.more);
                }
            }
            Effect::CopyPage { from, .. } => {
                let ok = self.world.move_bytes(effect);
                self.manager.copy_done(from, ok, self.daemon_cpu).drain_into(&mut self.more);
            }
            Effect::Zero { .. }
            | Effect::CollapsePage { .. }
            | Effect::ReadOut { .. }
            | Effect::WriteIn { .. }
            | Effect::StorePage { .. }
            | Effect::LoadPage { .. } => {
                self.world.move_bytes(effect);
            }
            Effect::Wake(token) => self.wake(token),
            // The executor does not schedule threads.
            Effect::ScheduleWork => {}
            Effect::FreeLate { object, cpu } => {
                // No CPU still reads the object, because nothing runs between two effects.
                let cache = self.manager.cache_of_object(object);
                let freed = self.manager.kmem_cache_free(cache, object, cpu);
                debug_assert_eq!(freed, Ok(()), "a shrinker gives up what is in use");
            }
            Effect::OomKill(asker) => self.world.kill(asker),
        }
    }

    fn wake(&mut self, token: Token) {
        self.is_woken |= self.awaited == Some(token);
        for (_, is) in &mut self.daemons {
            if matches!(is, DaemonRunState::Asleep(on, _) if *on == token) {
                *is = DaemonRunState::Awake;
                self.daemons_due = 0;
            }
        }
    }
}

/// The frame of the page that a call returned; `None` for any other outcome.
pub fn frame_of(outcome: Outcome) -> Option<Pfn> {
    match outcome {
        Outcome::Got(got) => match got.frame {
            crate::interface::outcome::Frame::At(pfn) => Some(pfn),
            crate::interface::outcome::Frame::Zeroes => None,
        },
        _ => None,
    }
}
