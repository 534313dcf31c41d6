//! One executor of the protocol between the manager and its world.
//!
//! Linux has no such thing: its tasks run. Here a call and the daemons are stepped until each of them
//! is done, rests or sleeps, and the effects of a step are carried out by a [`World`]: a clock, stores
//! and bytes. Benches, test worlds and embedders share it. The simulator has a scheduler instead,
//! because its tasks compete for CPUs.
//!
//! One call is run at a time. While it runs every daemon that is awake makes a step for each of the
//! call's, as if it ran beside it; while the call sleeps the daemons go on alone.
//!
//! Invariant: between two calls of the executor's functions no effect is waiting to be carried out.

use crate::call::{Asks, Call};
use crate::daemon::Daemon;
use crate::effect::{Effect, Io, Step, Token};
use crate::manager::Manager;
use crate::outcome::Outcome;
use crate::units::{Asker, Cpu, Nanos, Pfn};
use alloc::vec::Vec;

/// A clock, stores and bytes: what the manager does not have.
pub trait World {
    /// The time. It never goes back.
    fn now(&mut self) -> Nanos;

    /// Starts an I/O. `Some`: it has ended already, well or not. `None`: [`World::ended`] will tell.
    fn submit(&mut self, io: Io) -> Option<bool>;

    /// The next I/O of those that were started that has ended, and whether well. If there is none yet, waits
    /// for it, or lets time pass, for `patience` at most.
    fn ended(&mut self, patience: Nanos) -> Option<(Io, bool)>;

    /// Moves bytes: [`Effect::Zero`], [`Effect::CollapsePage`], [`Effect::CopyPage`], [`Effect::ReadOut`] or
    /// [`Effect::WriteIn`]. Only a [`Effect::CopyPage`] may fail, by `false`. A world that has no bytes can say so
    /// ([`Manager::without_bytes`]), and is then asked for [`Effect::CopyPage`] alone.
    fn move_bytes(&mut self, effect: Effect) -> bool;

    /// Somebody is to end, as memory ran out: the world sees to it after the present call.
    fn kill(&mut self, _asker: Asker) {}
}

/// How a daemon is at the moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Is {
    /// To be stepped.
    Awake,
    /// Resting or sleeping, until somebody wakes this token or it is so late.
    Asleep(Token, Nanos),
}

/// A manager, its world, and who is awake.
#[derive(Debug)]
pub struct Executor<O: Asks, W> {
    /// The manager. What is asked of it directly has its effects carried out by [`Executor::ask`].
    pub manager: Manager<O>,
    /// The world.
    pub world: W,
    /// The daemons do nothing of their own accord while this is set; see [`Executor::run_daemons`].
    pub daemons_held: bool,
    daemons: Vec<(Daemon, Is)>,
    daemon_cpu: Cpu,
    /// No daemon is awake before this, or ends its sleep or rest.
    daemons_due: Nanos,
    /// What the call that is run sleeps on, and whether that was woken.
    awaited: Option<Token>,
    is_woken: bool,
    todo: Vec<Effect>,
    /// What the end of I/O asks for while effects are carried out.
    more: Vec<Effect>,
}

impl<O: Asks, W: World> Executor<O, W> {
    /// An executor whose daemons run on `daemon_cpu`.
    pub fn new(manager: Manager<O>, mut world: W, daemon_cpu: Cpu) -> Executor<O, W> {
        let now = world.now();
        let begin = |(daemon, rest): (Daemon, crate::daemon::Rest)| {
            (daemon, Is::Asleep(Token::Daemon(daemon), now.saturating_add(rest.timeout)))
        };
        let daemons = manager.daemons().map(begin).collect();
        Executor {
            manager,
            world,
            daemons_held: false,
            daemons,
            daemon_cpu,
            daemons_due: 0,
            awaited: None,
            is_woken: false,
            todo: Vec::with_capacity(64),
            more: Vec::with_capacity(64),
        }
    }

    /// Asks the manager for something that is not a call; what that asks of the world is to be put at the
    /// end of the vector ([`Effects::drain_into`](crate::effect::Effects::drain_into)).
    pub fn ask<T>(&mut self, ask: impl FnOnce(&mut Manager<O>, &mut Vec<Effect>) -> T) -> T {
        let answer = ask(&mut self.manager, &mut self.todo);
        self.carry_out();
        answer
    }

    /// Runs a call to its end. Not for owners who have somebody killed when memory runs out
    /// ([`World::kill`]) and wait for that: the call would wait, too, for as long as it is run.
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

    /// One step of a call, and one of each daemon that is awake. Who shares the executor by a lock may let
    /// go of it between two steps.
    pub fn step(&mut self, call: &mut Call<O::Request>, cpu: Cpu) -> Step<Outcome> {
        let now = self.world.now();
        let (step, effects) = self.manager.step(call, cpu, now);
        effects.drain_into(&mut self.todo);
        // Who goes to sleep may be woken by what this very step has asked for.
        self.await_token(match step {
            Step::Wait(sleep) => Some(sleep.token),
            Step::Continue | Step::Done(_) => None,
        });
        self.carry_out();
        if !self.daemons_held {
            self.step_daemons();
        }
        step
    }

    /// Steps the daemons that are awake until none is, and takes note of the I/O that has ended.
    pub fn run_daemons(&mut self) {
        loop {
            while let Some((io, ok)) = self.world.ended(0) {
                self.io_done(io, ok);
            }
            if !self.step_daemons() {
                return;
            }
        }
    }

    /// Whether a daemon is awake.
    pub fn is_awake(&self, daemon: Daemon) -> bool {
        self.daemons.contains(&(daemon, Is::Awake))
    }

    /// Sleeps until a token is woken or it is so late. Call it after [`Executor::step`] has said so.
    pub fn sleep(&mut self, token: Token, until: Nanos) {
        if self.awaited != Some(token) {
            // Another call has been run since, and the token may have been woken meanwhile. A sleep that has an
            // end is slept; of others the next step says whether they are over.
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
            if !self.daemons_held && self.step_daemons() {
                continue;
            }
            let next = if self.daemons_held { Nanos::MAX } else { self.next_wakeup() };
            let patience = next.min(until).saturating_sub(now).max(1);
            if let Some((io, ok)) = self.world.ended(patience) {
                self.io_done(io, ok);
            }
        }
        self.await_token(None);
    }

    fn await_token(&mut self, token: Option<Token>) {
        self.awaited = token;
        self.is_woken = false;
    }

    /// When the first of the daemons' rests is over.
    fn next_wakeup(&self) -> Nanos {
        let until = self.daemons.iter().map(|&(_, is)| match is {
            Is::Awake => 0,
            Is::Asleep(_, until) => until,
        });
        until.min().unwrap_or(Nanos::MAX)
    }

    /// One step of each daemon that is awake. Whether there was one.
    fn step_daemons(&mut self) -> bool {
        let now = self.world.now();
        if now < self.daemons_due {
            return false;
        }
        let mut any = false;
        for at in 0..self.daemons.len() {
            let (daemon, is) = self.daemons[at];
            if matches!(is, Is::Asleep(_, until) if until > now) {
                continue;
            }
            any = true;
            let (step, effects) = self.manager.step_daemon(daemon, self.daemon_cpu, now);
            effects.drain_into(&mut self.todo);
            // Before its effects are carried out: they may wake it.
            self.daemons[at].1 = match step {
                Step::Continue => Is::Awake,
                Step::Wait(sleep) => Is::Asleep(sleep.token, now.saturating_add(sleep.timeout)),
                Step::Done(rest) => {
                    Is::Asleep(Token::Daemon(daemon), now.saturating_add(rest.timeout))
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

    /// Carries out all that was asked for, and what that asks for.
    fn carry_out(&mut self) {
        while !self.todo.is_empty() {
            let mut todo = core::mem::take(&mut self.todo);
            for effect in todo.drain(..) {
                self.carry_out_one(effect);
            }
            // The larger buffer is kept.
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
            | Effect::WriteIn { .. } => {
                self.world.move_bytes(effect);
            }
            Effect::Wake(token) => self.wake(token),
            // Whoever schedules threads here is not us.
            Effect::ScheduleWork => {}
            Effect::FreeLate { object, cpu } => {
                // Nobody else looks at an object between two effects.
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
            if matches!(is, Is::Asleep(on, _) if *on == token) {
                *is = Is::Awake;
                self.daemons_due = 0;
            }
        }
    }
}

/// The frame that a page was found in, or made in; `None` for anything else than a page.
pub fn frame_of(outcome: Outcome) -> Option<Pfn> {
    match outcome {
        Outcome::Got(got) => match got.frame {
            crate::outcome::Frame::At(pfn) => Some(pfn),
            crate::outcome::Frame::Zeroes => None,
        },
        _ => None,
    }
}
