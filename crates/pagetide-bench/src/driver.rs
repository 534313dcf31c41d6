//! The smallest world around a [`Machine`]: one task (in turn for several address spaces) and
//! kswapd on a CPU each, no time.
//!
//! I/O ends at once. While kswapd is awake it does one batch for each step of the task, as if
//! both ran side by side.

use pagetide_core::config::Config;
use pagetide_core::daemon::{Daemon, Rest};
use pagetide_core::effect::{Effect, Sleep, Step, Token};
use pagetide_core::node::{NodeSpec, ZoneSpec};
use pagetide_core::outcome::Outcome;
use pagetide_core::process::page_table::{Advice, Backing, VmaId};
use pagetide_core::process::Call;
use pagetide_core::process::MmId;
use pagetide_core::process::{Machine, Touch};
use pagetide_core::units::{Cpu, NodeId, PAGE_SIZE};
use pagetide_core::work::Work;

const TASK_CPU: Cpu = Cpu(0);
const KSWAPD_CPU: Cpu = Cpu(1);
const NODE: NodeId = NodeId(0);

/// Virtual nanoseconds from one step to the next.
const TICK: u64 = 1_000;

/// A machine with one address space to begin with, and what runs it.
pub struct Driver {
    /// The machine.
    pub machine: Machine,
    /// The address space that maps and faults.
    pub mm: MmId,
    /// While set, kswapd does nothing of its own accord; see [`Driver::balance`].
    pub kswapd_held: bool,
    /// What kswapd has done so far.
    pub kswapd_work: Work,
    now: u64,
    kswapd_awake: bool,
    nap_ends: u64,
    effects: Vec<Effect>,
    /// Effects of I/O that ended while effects were carried out.
    more: Vec<Effect>,
}

/// A machine of `bytes` in one zone, so that nothing is kept from anybody.
pub fn one_zone(bytes: u64) -> NodeSpec {
    let mut spec = NodeSpec::default();
    spec.zones[pagetide_core::zone::ZONE_NORMAL] = ZoneSpec::all_free(bytes / PAGE_SIZE);
    spec
}

impl Driver {
    /// A machine with two CPUs.
    ///
    /// # Panics
    /// If it cannot be built.
    pub fn new(node: NodeSpec, config: Config) -> Driver {
        let mut machine = Machine::new(&[node], 2, config).expect("the machine is valid");
        let mm = machine.create_mm(Machine::ROOT).unwrap();
        let (effects, more) = (Vec::with_capacity(64), Vec::with_capacity(64));
        Driver {
            machine,
            mm,
            kswapd_held: false,
            kswapd_work: Work::default(),
            now: 0,
            kswapd_awake: false,
            nap_ends: u64::MAX,
            effects,
            more,
        }
    }

    /// Maps anonymous memory.
    pub fn map_anon(&mut self, pages: u64) -> VmaId {
        self.machine.mmap(self.mm, Backing::Anon, pages, Advice::Normal, false).unwrap()
    }

    /// Maps a new sparse file.
    pub fn map_sparse_file(&mut self, pages: u64, advice: Advice) -> VmaId {
        let file = self.machine.create_file(pages * PAGE_SIZE, true).unwrap();
        self.machine.mmap(self.mm, Backing::File(file), pages, advice, false).unwrap()
    }

    /// Unmaps a mapping.
    pub fn unmap(&mut self, vma: VmaId) {
        self.machine.munmap(vma, TASK_CPU).unwrap().drain_into(&mut self.effects);
        self.carry_out();
    }

    /// One access of the task. Says whether it faulted.
    #[inline]
    pub fn access(&mut self, vma: VmaId, page: u64, write: bool) -> bool {
        match self.machine.touch(vma, page, write) {
            Touch::Hit => false,
            Touch::Fault => {
                self.fault(vma, page, write);
                true
            }
        }
    }

    /// Runs a fault to its end.
    ///
    /// # Panics
    /// If it fails: there is no I/O error and memory enough.
    #[inline(never)]
    pub fn fault(&mut self, vma: VmaId, page: u64, write: bool) {
        let mut call = Call::fault(self.mm, NODE, vma, page, write);
        loop {
            self.now += TICK;
            let (step, effects) = self.machine.step(&mut call, TASK_CPU, self.now);
            effects.drain_into(&mut self.effects);
            self.carry_out();
            match step {
                Step::Continue => self.run_kswapd(),
                Step::Wait(sleep) => {
                    self.run_kswapd();
                    self.sleep(sleep);
                }
                Step::Done(outcome) => {
                    self.run_kswapd();
                    assert!(matches!(outcome, Outcome::Got(_)), "{outcome:?}");
                    self.machine.take_work();
                    return;
                }
            }
        }
    }

    fn sleep(&mut self, sleep: Sleep) {
        if let Token::Throttled(..) = sleep.token {
            self.now += sleep.timeout.min(1_000_000);
        }
    }

    /// One batch, if kswapd is awake.
    #[inline]
    fn run_kswapd(&mut self) {
        if (self.kswapd_awake || self.now >= self.nap_ends) && !self.kswapd_held {
            self.kswapd_step();
        }
    }

    /// Whether somebody has woken kswapd and it has not balanced the node yet.
    pub fn kswapd_is_awake(&self) -> bool {
        self.kswapd_awake
    }

    /// Runs kswapd until it sleeps, so that its time can be told from the tasks'.
    pub fn balance(&mut self) {
        self.machine.take_work();
        while self.kswapd_awake {
            self.now += TICK;
            self.kswapd_step();
        }
        self.kswapd_work.add(&self.machine.take_work());
    }

    fn kswapd_step(&mut self) {
        self.kswapd_awake = true;
        self.nap_ends = u64::MAX;
        let kswapd = Daemon::Kswapd(NODE);
        let (step, effects) = self.machine.step_daemon(kswapd, KSWAPD_CPU, self.now);
        effects.drain_into(&mut self.effects);
        match step {
            Step::Continue => {}
            Step::Wait(sleep) => self.sleep(sleep),
            Step::Done(Rest { timeout }) => {
                self.kswapd_awake = false;
                self.nap_ends = self.now.saturating_add(timeout);
            }
        }
        self.carry_out();
    }

    #[inline]
    fn carry_out(&mut self) {
        while !self.effects.is_empty() {
            for effect in self.effects.drain(..) {
                match effect {
                    Effect::Submit(io) => {
                        let effects = self.machine.io_done(io, true, TASK_CPU, self.now);
                        effects.drain_into(&mut self.more);
                    }
                    Effect::CopyPage { from, .. } => {
                        let effects = self.machine.copy_done(from, true, TASK_CPU);
                        effects.drain_into(&mut self.more);
                    }
                    Effect::Wake(Token::Daemon(Daemon::Kswapd(_))) => self.kswapd_awake = true,
                    Effect::OomKill(_) => panic!("the machine is too small for the bench"),
                    // Nobody sleeps here, nothing is written but swap, and there are no bytes.
                    Effect::Wake(_)
                    | Effect::FreeLate { .. }
                    | Effect::Zero { .. }
                    | Effect::CollapsePage { .. }
                    | Effect::ReadOut { .. }
                    | Effect::WriteIn { .. } => {}
                }
            }
            std::mem::swap(&mut self.effects, &mut self.more);
        }
    }
}
