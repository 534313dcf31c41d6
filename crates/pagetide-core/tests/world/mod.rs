//! A minimal world for tests: one CPU, I/O that ends when the test says so, an audit after every
//! step.

use pagetide_core::call::Outcome;
use pagetide_core::daemon::{Daemon, Rest};
use pagetide_core::effect::{Effect, Io, Sleep, Step, Token};
use pagetide_core::process::page_table::VmaId;
use pagetide_core::process::Call;
use pagetide_core::process::MmId;
use pagetide_core::process::{Machine, Touch};
use pagetide_core::units::{Cpu, NodeId, Pfn};

pub const CPU: Cpu = Cpu(0);
const NODE: NodeId = NodeId(0);

#[derive(Clone)]
pub struct World {
    pub machine: Machine,
    pub now: u64,
    pub inflight: Vec<Io>,
    /// Frames whose copy was asked for and is not reported yet.
    pub copies: Vec<Pfn>,
    /// Copies wait until the test reports them.
    pub holds_copies: bool,
    /// Every n-th copy fails; 0: none does.
    pub fail_copies: u64,
    nr_copies: u64,
    pub kcompactd_awake: bool,
    pub kswapd_awake: bool,
    pub flusher_awake: bool,
    pub killed: Vec<MmId>,
    /// Every n-th request fails; 0: none does.
    pub fail_every: u64,
    nr_io: u64,
    /// Audit after every step (slow), or only when asked.
    pub audit: bool,
    /// The disk works while a call does, and not only while it waits.
    pub disk_works: bool,
    /// Requests that it then ends a step.
    pub disk_speed: u32,
    /// A generator for the order in which I/O ends.
    pub random: u64,
}

#[allow(dead_code)] // each test file uses its part
impl World {
    pub fn new(machine: Machine) -> World {
        World {
            machine,
            now: 0,
            inflight: Vec::new(),
            copies: Vec::new(),
            holds_copies: false,
            fail_copies: 0,
            nr_copies: 0,
            kcompactd_awake: false,
            kswapd_awake: false,
            flusher_awake: false,
            killed: Vec::new(),
            fail_every: 0,
            nr_io: 0,
            audit: true,
            disk_works: false,
            disk_speed: 1,
            random: 1,
        }
    }

    pub fn draw(&mut self, below: u64) -> u64 {
        self.random =
            self.random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.random >> 33) % below
    }

    fn check(&self) {
        if self.audit {
            if let Err(violation) = self.machine.audit() {
                panic!("at {}: {violation}", self.now);
            }
        }
    }

    pub fn carry_out(&mut self, effects: Vec<Effect>) {
        for effect in effects {
            match effect {
                Effect::Submit(io) => self.inflight.push(io),
                Effect::CopyPage { from, .. } => self.copies.push(from),
                Effect::OomKill(mm) => self.killed.push(mm),
                Effect::Wake(Token::Daemon(Daemon::Kswapd(_))) => self.kswapd_awake = true,
                Effect::Wake(Token::Daemon(Daemon::Flusher)) => self.flusher_awake = true,
                Effect::Wake(Token::Daemon(Daemon::Kcompactd(_))) => self.kcompactd_awake = true,
                Effect::Wake(Token::Daemon(Daemon::Khugepaged | Daemon::Kworker)) => {}
                Effect::Wake(Token::Page(_) | Token::Throttled(..)) => {}
                Effect::FreeLate { .. } => unreachable!("nobody wants to free late"),
            }
        }
        self.check();
        if !self.holds_copies {
            self.finish_copies();
        }
    }

    /// Reports all copies, in any order.
    pub fn finish_copies(&mut self) {
        while !self.copies.is_empty() {
            let at = self.draw(self.copies.len() as u64) as usize;
            let from = self.copies.swap_remove(at);
            self.nr_copies += 1;
            let ok = self.fail_copies == 0 || !self.nr_copies.is_multiple_of(self.fail_copies);
            let mut effects = Vec::new();
            self.machine.copy_done(from, ok, CPU).drain_into(&mut effects);
            self.carry_out(effects);
        }
    }

    /// One step of a daemon, with its effects.
    fn step_daemon(&mut self, daemon: Daemon) -> Step<Rest> {
        let mut effects = Vec::new();
        let (step, more) = self.machine.step_daemon(daemon, CPU, self.now);
        more.drain_into(&mut effects);
        self.carry_out(effects);
        step
    }

    /// Time passes for who is throttled.
    fn sleep(&mut self, sleep: Sleep) {
        if let Token::Throttled(..) = sleep.token {
            self.now += sleep.timeout.min(100_000_000);
        }
    }

    /// Runs kcompactd until it sleeps.
    pub fn kcompactd(&mut self) {
        self.kcompactd_awake = false;
        loop {
            match self.step_daemon(Daemon::Kcompactd(NODE)) {
                Step::Continue => {}
                Step::Wait(_) => self.finish_copies(),
                Step::Done(_) => return,
            }
        }
    }

    pub fn complete_one(&mut self) {
        if self.inflight.is_empty() {
            return;
        }
        let at = self.draw(self.inflight.len() as u64) as usize;
        let io = self.inflight.swap_remove(at);
        self.nr_io += 1;
        let ok = self.fail_every == 0 || !self.nr_io.is_multiple_of(self.fail_every);
        let mut effects = Vec::new();
        self.machine.io_done(io, ok, CPU, self.now).drain_into(&mut effects);
        self.carry_out(effects);
    }

    pub fn kswapd(&mut self) {
        if !self.kswapd_awake {
            return;
        }
        self.now += 1000;
        let mut buffer = Vec::new();
        let (step, effects) = self.machine.step_daemon(Daemon::Kswapd(NODE), CPU, self.now);
        effects.drain_into(&mut buffer);
        match step {
            Step::Continue => {}
            Step::Done(Rest::UNTIL_WOKEN) => self.kswapd_awake = false,
            Step::Done(rest) => self.now += rest.timeout,
            Step::Wait(sleep) => {
                assert!(matches!(sleep.token, Token::Throttled(..)), "kswapd waits for a page");
                self.now += sleep.timeout;
                self.complete_one();
            }
        }
        self.carry_out(buffer);
    }

    /// Runs kswapd until it sleeps for good.
    pub fn kswapd_to_sleep(&mut self) {
        for _ in 0..100_000 {
            if !self.kswapd_awake {
                return;
            }
            self.kswapd();
        }
        panic!("kswapd never sleeps");
    }

    /// One step of khugepaged; what it does next, if it is idle.
    pub fn khugepaged(&mut self) -> Option<Rest> {
        self.now += 1000;
        match self.step_daemon(Daemon::Khugepaged) {
            Step::Continue => None,
            Step::Wait(sleep) => {
                self.finish_copies();
                self.complete_one();
                self.sleep(sleep);
                None
            }
            Step::Done(rest) => {
                if rest != Rest::UNTIL_WOKEN {
                    self.now += rest.timeout;
                }
                Some(rest)
            }
        }
    }

    /// Steps of khugepaged until it is idle.
    pub fn khugepaged_round(&mut self) -> Rest {
        for _ in 0..1_000_000 {
            if let Some(idle) = self.khugepaged() {
                return idle;
            }
        }
        panic!("khugepaged does not rest");
    }

    pub fn flusher(&mut self) {
        if !self.flusher_awake {
            return;
        }
        let mut buffer = Vec::new();
        let (step, effects) = self.machine.step_daemon(Daemon::Flusher, CPU, self.now);
        effects.drain_into(&mut buffer);
        match step {
            Step::Continue => {}
            Step::Done(_) => self.flusher_awake = false,
            Step::Wait(_) => self.complete_one(),
        }
        self.carry_out(buffer);
    }

    /// Steps a call to its end; daemons and I/O run in between.
    pub fn drive(&mut self, call: &mut Call) -> Outcome {
        for _ in 0..1_000_000 {
            if let Some(outcome) = self.drive_once(call) {
                return outcome;
            }
        }
        panic!("a call does not end: livelock");
    }

    /// One step of a call, and what happens until the next one.
    pub fn drive_once(&mut self, call: &mut Call) -> Option<Outcome> {
        self.now += 1000;
        let mut buffer = Vec::new();
        let (step, effects) = self.machine.step(call, CPU, self.now);
        effects.drain_into(&mut buffer);
        self.carry_out(buffer);
        match step {
            Step::Continue if self.disk_works => {
                (0..self.disk_speed).for_each(|_| self.complete_one());
            }
            Step::Continue => {}
            Step::Wait(sleep) => {
                self.finish_copies();
                self.complete_one();
                self.flusher();
                self.kswapd();
                self.sleep(sleep);
            }
            Step::Done(outcome) => return Some(outcome),
        }
        if self.draw(4) == 0 {
            self.kswapd();
            self.flusher();
        }
        let killed = std::mem::take(&mut self.killed);
        for mm in killed {
            let mut buffer = Vec::new();
            self.machine.exit_mm(mm, CPU).drain_into(&mut buffer);
            self.carry_out(buffer);
        }
        None
    }

    /// Touches a page, faulting if need be.
    pub fn access(&mut self, mm: MmId, vma: VmaId, page: u64, write: bool) -> Option<Outcome> {
        match self.machine.touch(vma, page, write) {
            Touch::Hit => None,
            Touch::Fault => Some(self.drive(&mut Call::fault(mm, NODE, vma, page, write))),
        }
    }

    pub fn settle(&mut self) {
        while !self.inflight.is_empty() {
            self.complete_one();
        }
    }
}
