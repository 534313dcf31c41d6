//! A minimal world for tests: I/O and copies that end in any order, when the test says so, an audit after
//! every step, and bytes ([`contents`]): whoever reads gets what was last written.

#[allow(dead_code)] // each test file uses its part
pub mod contents;

use contents::{Bytes, Contents, Transfer};
use pagetide_core::call::{Contents as Held, Frame, Got, Outcome};
use pagetide_core::effect::{Effect, Io, Step, Wait};
use pagetide_core::process::khugepaged::KhugepagedIdle;
use pagetide_core::process::page_table::{Backing, VmaId};
use pagetide_core::process::Call;
use pagetide_core::process::MmId;
use pagetide_core::process::{Machine, Touch};
use pagetide_core::reclaim::kswapd::KswapdIdle;
use pagetide_core::units::{Cpu, FileId, NodeId, Pfn};

pub const CPU: Cpu = Cpu(0);
const NODE: NodeId = NodeId(0);

/// A copy that was asked for and is not reported yet.
pub struct Copying {
    from: Pfn,
    to: Pfn,
    taken: Option<Bytes>,
}

pub struct World {
    pub machine: Machine,
    pub contents: Contents,
    pub now: u64,
    /// CPUs that calls and daemons run on, in turn as it comes.
    pub nr_cpus: u16,
    pub inflight: Vec<(Io, Transfer)>,
    /// Copies under way.
    pub copies: Vec<Copying>,
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
            contents: Contents::new(&machine),
            machine,
            now: 0,
            nr_cpus: 1,
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

    /// A CPU to run the next step on.
    pub fn cpu(&mut self) -> Cpu {
        match self.nr_cpus {
            1 => CPU,
            nr => Cpu(self.draw(nr.into()) as u16),
        }
    }

    pub fn carry_out(&mut self, effects: Vec<Effect>) {
        self.carry_out_of(effects, None);
    }

    /// Carries out the effects of a call, which had come so far in a file.
    fn carry_out_of(&mut self, effects: Vec<Effect>, mut position: Option<(FileId, u64)>) {
        for effect in effects {
            match effect {
                Effect::Submit(io) => {
                    let early = self.nr_cpus > 1 && self.draw(2) == 0;
                    let transfer = self.contents.begin(&self.machine, io, early);
                    self.inflight.push((io, transfer));
                }
                Effect::CopyPage { from, to } => {
                    let early = self.nr_cpus > 1 && self.draw(2) == 0;
                    let taken = self.contents.begin_copy(from, early);
                    self.copies.push(Copying { from, to, taken });
                }
                Effect::Zero { .. }
                | Effect::CollapsePage { .. }
                | Effect::ReadOut { .. }
                | Effect::WriteIn { .. } => self.contents.perform(&effect, &mut position),
                Effect::WakeKswapd(_) => self.kswapd_awake = true,
                Effect::WakeFlusher => self.flusher_awake = true,
                Effect::OomKill(mm) => self.killed.push(mm),
                Effect::WakeKcompactd(_) => self.kcompactd_awake = true,
                Effect::WakePage(_) | Effect::WakeThrottled(..) | Effect::WakeKworker => {}
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
            let Copying { from, to, taken } = self.copies.swap_remove(at);
            self.nr_copies += 1;
            let ok = self.fail_copies == 0 || !self.nr_copies.is_multiple_of(self.fail_copies);
            self.contents.end_copy(from, to, taken, ok);
            let mut effects = Vec::new();
            let cpu = self.cpu();
            self.machine.copy_done(from, ok, cpu).drain_into(&mut effects);
            self.carry_out(effects);
        }
    }

    /// One step of kcompactd, if somebody has woken it.
    pub fn kcompactd_step(&mut self) {
        if self.kcompactd_awake {
            let cpu = self.cpu();
            let mut effects = Vec::new();
            let (step, more) = self.machine.kcompactd_step(NODE, cpu, self.now);
            more.drain_into(&mut effects);
            self.carry_out(effects);
            if let Step::Wait(wait) = step {
                self.wait_over(Some(wait));
            }
            self.kcompactd_awake = !matches!(step, Step::Done(_));
        }
    }

    /// What somebody waited for has come, or has taken too long, or the waiter does not care.
    pub fn wait_over(&mut self, wait: Option<Wait>) {
        if let Some(Wait::Throttled { node, reason, timeout }) = wait {
            self.now += timeout.min(100_000_000);
            self.machine.throttle_ended(node, reason);
        }
    }

    /// Runs kcompactd until it sleeps.
    pub fn kcompactd(&mut self) {
        self.kcompactd_awake = false;
        loop {
            let mut effects = Vec::new();
            let cpu = self.cpu();
            let (step, more) = self.machine.kcompactd_step(NODE, cpu, self.now);
            more.drain_into(&mut effects);
            self.carry_out(effects);
            match step {
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
        let (io, transfer) = self.inflight.swap_remove(at);
        self.nr_io += 1;
        let ok = self.fail_every == 0 || !self.nr_io.is_multiple_of(self.fail_every);
        self.contents.end(io, transfer, ok);
        let mut effects = Vec::new();
        let cpu = self.cpu();
        self.machine.io_done(io, ok, cpu, self.now).drain_into(&mut effects);
        self.carry_out(effects);
    }

    pub fn kswapd(&mut self) {
        if !self.kswapd_awake {
            return;
        }
        self.now += 1000;
        let mut buffer = Vec::new();
        let cpu = self.cpu();
        let (step, effects) = self.machine.kswapd_step(NODE, cpu, self.now);
        effects.drain_into(&mut buffer);
        match step {
            Step::Continue => {}
            Step::Done(KswapdIdle::Sleep) => self.kswapd_awake = false,
            Step::Done(KswapdIdle::Nap(ns)) => self.now += ns,
            Step::Wait(Wait::Throttled { node, reason, timeout }) => {
                self.now += timeout;
                self.machine.throttle_ended(node, reason);
                self.complete_one();
            }
            Step::Wait(Wait::Page(_)) => unreachable!(),
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
    pub fn khugepaged(&mut self) -> Option<KhugepagedIdle> {
        self.now += 1000;
        let mut buffer = Vec::new();
        let cpu = self.cpu();
        let (step, effects) = self.machine.khugepaged_step(cpu, self.now);
        effects.drain_into(&mut buffer);
        self.carry_out(buffer);
        match step {
            Step::Continue => None,
            Step::Wait(wait) => {
                self.finish_copies();
                self.complete_one();
                if let Wait::Throttled { node, reason, timeout } = wait {
                    self.now += timeout.min(100_000_000);
                    self.machine.throttle_ended(node, reason);
                }
                None
            }
            Step::Done(idle) => {
                if let KhugepagedIdle::Nap(ns) = idle {
                    self.now += ns;
                }
                Some(idle)
            }
        }
    }

    /// Steps of khugepaged until it is idle.
    pub fn khugepaged_round(&mut self) -> KhugepagedIdle {
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
        let cpu = self.cpu();
        let (step, effects) = self.machine.flusher_step(cpu, self.now);
        effects.drain_into(&mut buffer);
        match step {
            Step::Continue => {}
            Step::Done(_) => self.flusher_awake = false,
            Step::Wait(_) => self.complete_one(),
        }
        self.carry_out(buffer);
    }

    /// One step of a call, with its effects.
    pub fn step(&mut self, call: &mut Call) -> Step<Outcome> {
        self.now += 1000;
        let position = call.position();
        if let Some((file, _)) = position {
            self.contents.know_file(&self.machine, file);
        }
        let cpu = self.cpu();
        let mut buffer = Vec::new();
        let (step, effects) = self.machine.step(call, cpu, self.now);
        effects.drain_into(&mut buffer);
        self.carry_out_of(buffer, position);
        step
    }

    /// Steps a call to its end; daemons and I/O run in between.
    pub fn drive(&mut self, call: &mut Call) -> Outcome {
        for _ in 0..1_000_000 {
            match self.step(call) {
                Step::Continue if self.disk_works => {
                    (0..self.disk_speed).for_each(|_| self.complete_one());
                }
                Step::Continue => {}
                Step::Wait(wait) => {
                    self.finish_copies();
                    self.complete_one();
                    self.flusher();
                    self.kswapd();
                    if let Wait::Throttled { node, reason, timeout } = wait {
                        self.now += timeout.min(100_000_000);
                        self.machine.throttle_ended(node, reason);
                    }
                }
                Step::Done(outcome) => return outcome,
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
        }
        panic!("a call does not end: livelock");
    }

    /// Touches a page, faulting if need be. What it yields is told as minor and major.
    pub fn access(&mut self, mm: MmId, vma: VmaId, page: u64, write: bool) -> Option<Outcome> {
        if self.touch(vma, page, write) {
            return None;
        }
        let outcome = self.drive(&mut Call::fault(mm, NODE, vma, page, write));
        let Outcome::Got(got) = outcome else { return Some(outcome) };
        // Who has paid for being above `memory.high` may find that it is gone again.
        if !self.machine.vma(vma).ptes.is_empty() && self.touch(vma, page, write) {
            self.check_got(got, vma, page);
        }
        Some(if got.major { Outcome::Major } else { Outcome::Minor })
    }

    /// An access without a fault, with its load or store. Says whether that is enough.
    pub fn touch(&mut self, vma: VmaId, page: u64, write: bool) -> bool {
        let hit = self.machine.touch(vma, page, write) == Touch::Hit;
        if hit {
            self.contents.access(&self.machine, vma, page, write);
        }
        hit
    }

    /// A fault told of the frame that the entry says.
    pub fn check_got(&self, got: Got, vma: VmaId, page: u64) {
        let pte = self.machine.vma(vma).ptes[page as usize];
        match got.frame {
            Frame::Zeroes => assert!(pte.is_zero_page() && got.contents == Held::Fresh, "{got:?}"),
            Frame::At(pfn) => assert!(!pte.is_zero_page() && pte.pfn() == pfn, "{got:?} {pte:?}"),
        }
        let of_file = self.machine.vma(vma).backing != Backing::Anon;
        assert!(!of_file || got.contents != Held::Fresh, "{got:?} of a file");
    }

    /// MADV_DONTNEED.
    pub fn discard(&mut self, vma: VmaId, first: u64, nr: u64) {
        let cpu = self.cpu();
        self.machine.discard(vma, first, nr, cpu).discard();
        self.contents.forget(&self.machine, vma, Some((first, first.saturating_add(nr))));
    }

    /// munmap().
    pub fn munmap(&mut self, vma: VmaId) {
        let cpu = self.cpu();
        self.machine.munmap(vma, cpu).discard();
        self.contents.forget(&self.machine, vma, None);
    }

    pub fn settle(&mut self) {
        while !self.inflight.is_empty() {
            self.complete_one();
        }
    }
}
