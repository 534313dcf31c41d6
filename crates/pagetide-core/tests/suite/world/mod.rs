//! A minimal world for tests: I/O and copies end in any order, on request of the test; an audit
//! after every step; and bytes ([`contents`]), so that reads are compared with the last write.

#[allow(dead_code)] // each test file uses its part
pub mod contents;

use contents::{ContentsModel, PageQuarters, Transfer};
use pagetide_core::config::Config;
use pagetide_core::control::ControlError;
use pagetide_core::frames::node::NodeSpec;
use pagetide_core::interface::daemon::{Daemon, DaemonRest};
use pagetide_core::interface::effect::{Effect, Io, Sleep, Step, Token};
use pagetide_core::interface::outcome::Contents as Held;
use pagetide_core::interface::outcome::FaultedPage;
use pagetide_core::interface::outcome::Frame;
use pagetide_core::interface::outcome::Outcome;
use pagetide_core::process::page_table::{Advice, Backing, VmaId};
use pagetide_core::process::MmId;
use pagetide_core::process::ProcessCall;
use pagetide_core::process::{Machine, MapError, TouchResult};
use pagetide_core::stats::vmstat::{Event, NodeStat};
use pagetide_core::swap::SwapOptions;
use pagetide_core::units::{Cpu, FileId, MemcgId, NodeId, Pfn};

pub const CPU: Cpu = Cpu(0);
const NODE: NodeId = NodeId(0);

/// A copy that was requested and is not reported yet.
#[derive(Clone)]
pub struct PendingCopy {
    from: Pfn,
    to: Pfn,
    taken: Option<PageQuarters>,
}

#[derive(Clone)]
pub struct TestWorld {
    pub machine: Machine,
    pub contents: ContentsModel,
    pub now: u64,
    /// CPUs for calls and daemons, chosen at random.
    pub nr_cpus: u16,
    pub inflight: Vec<(Io, Transfer)>,
    /// Copies in progress.
    pub copies: Vec<PendingCopy>,
    /// Copies wait until the test reports them.
    pub holds_copies: bool,
    /// Every n-th copy fails; 0: none.
    pub fail_copies: u64,
    nr_copies: u64,
    pub kcompactd_awake: bool,
    pub kswapd_awake: bool,
    pub kworker_awake: bool,
    pub flusher_awake: bool,
    pub killed: Vec<MmId>,
    /// Every n-th request fails; 0: none.
    pub fail_every: u64,
    nr_io: u64,
    /// A call may run forever, like a fault in Linux on a page that needs a swap slot of another
    /// group at its limit without a task to kill (`pagefault_out_of_memory` retries): such a call
    /// is given up if there is such a group.
    pub may_starve: bool,
    /// Calls that were given up.
    pub nr_starved: u32,
    /// Steps after which the test checks for such a group.
    pub patience: u32,
    /// Audit after every step (slow), or only on request.
    pub audit: bool,
    /// The disk works in parallel with calls, not only while they wait.
    pub disk_works: bool,
    /// Requests that the disk then ends per step.
    pub disk_speed: u32,
    /// State of the random generator.
    pub random: u64,
    /// How often a worker was scheduled.
    pub nr_works: u64,
}

#[allow(dead_code)] // each test file uses its part
impl TestWorld {
    pub fn new(machine: Machine) -> TestWorld {
        TestWorld {
            contents: ContentsModel::new(&machine),
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
            kworker_awake: false,
            flusher_awake: false,
            killed: Vec::new(),
            fail_every: 0,
            nr_io: 0,
            may_starve: false,
            nr_starved: 0,
            patience: 20_000,
            audit: true,
            disk_works: false,
            disk_speed: 1,
            random: 1,
            nr_works: 0,
        }
    }

    /// A machine of one node with `mib` MiB of memory and `slots` slots of swap.
    pub fn of(mib: u64, nr_cpus: u16, config: Config, slots: u32) -> TestWorld {
        let node = NodeSpec::x86_64(mib << 20, 0, 0);
        let mut machine = Machine::new(&[node], nr_cpus, config).unwrap();
        if slots > 0 {
            machine.swapon(SwapOptions::new(slots));
        }
        TestWorld::new(machine)
    }

    /// Audits only on request.
    pub fn unaudited(mut self) -> TestWorld {
        self.audit = false;
        self
    }

    pub fn with_working_disk(mut self) -> TestWorld {
        self.disk_works = true;
        self
    }

    /// A new group, after writes to its control files.
    pub fn group(&mut self, parent: MemcgId, controls: &[(&str, &str)]) -> MemcgId {
        let memcg = self.machine.create_memcg("g".into(), parent).unwrap();
        for (name, text) in controls {
            let (write, effects) = self.machine.write_group_control(memcg, name, text).unwrap();
            effects.discard();
            assert!(write.is_none(), "{name} has something to reclaim");
        }
        memcg
    }

    /// Writes to a control file of a group, for a task, and drives the reclaim that it asks for.
    pub fn write_group(&mut self, mm: MmId, memcg: MemcgId, name: &str, text: &str) -> Outcome {
        self.try_write_group(mm, memcg, name, text).unwrap()
    }

    /// The same for a name or text that the machine may refuse.
    pub fn try_write_group(
        &mut self,
        mm: MmId,
        memcg: MemcgId,
        name: &str,
        text: &str,
    ) -> Result<Outcome, ControlError> {
        let (write, effects) = self.machine.write_group_control(memcg, name, text)?;
        effects.discard();
        Ok(match write {
            None => Outcome::Minor,
            Some(write) => self.drive(&mut ProcessCall::group_write(mm, NODE, write)),
        })
    }

    pub fn map(&mut self, mm: MmId, backing: Backing, pages: u64, advice: Advice) -> VmaId {
        self.machine.mmap(mm, backing, pages, advice, false).unwrap()
    }

    /// A task of a group with a heap of `pages` untouched pages.
    pub fn task(&mut self, memcg: MemcgId, pages: u64) -> (MmId, VmaId) {
        let mm = self.machine.create_mm(memcg).unwrap();
        (mm, self.map(mm, Backing::Anon, pages, Advice::Normal))
    }

    /// A task of the root with a heap of `pages` untouched pages.
    pub fn heap(&mut self, pages: u64, advice: Advice) -> (MmId, VmaId) {
        let mm = self.machine.create_mm(Machine::ROOT).unwrap();
        (mm, self.map(mm, Backing::Anon, pages, advice))
    }

    /// Writes to pages of a task's mapping.
    pub fn fill(&mut self, task: (MmId, VmaId), pages: impl IntoIterator<Item = u64>) {
        self.access_all(task, pages, true);
    }

    pub fn access_all(
        &mut self,
        (mm, vma): (MmId, VmaId),
        pages: impl IntoIterator<Item = u64>,
        write: bool,
    ) {
        for page in pages {
            self.access(mm, vma, page, write);
        }
    }

    pub fn resident(&self, (_, vma): (MmId, VmaId), pages: u64) -> u64 {
        (0..pages).filter(|&page| self.machine.is_resident(vma, page)).count() as u64
    }

    pub fn count(&self, event: Event) -> u64 {
        self.machine.mem.vmstat.get(event)
    }

    pub fn stat(&self, stat: NodeStat) -> u64 {
        self.machine.mem.global_node_stat(stat)
    }

    pub fn nr_huge(&self) -> u64 {
        self.stat(NodeStat::NrAnonTransparentHugepages)
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

    /// A CPU for the next step.
    pub fn cpu(&mut self) -> Cpu {
        match self.nr_cpus {
            1 => CPU,
            nr => Cpu(self.draw(nr.into()) as u16),
        }
    }

    pub fn carry_out(&mut self, effects: Vec<Effect>) {
        self.carry_out_of(effects, None);
    }

    /// Carries out the effects of a call that has reached `position` in a file.
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
                    self.copies.push(PendingCopy { from, to, taken });
                }
                Effect::Zero { .. }
                | Effect::CollapsePage { .. }
                | Effect::ReadOut { .. }
                | Effect::WriteIn { .. }
                | Effect::StorePage { .. }
                | Effect::LoadPage { .. } => self.contents.perform(&effect, &mut position),
                Effect::Wake(Token::Daemon(Daemon::Kswapd(_))) => self.kswapd_awake = true,
                Effect::Wake(Token::Daemon(Daemon::Kworker)) => self.kworker_awake = true,
                Effect::Wake(Token::Daemon(Daemon::Flusher)) => self.flusher_awake = true,
                Effect::Wake(Token::Daemon(Daemon::Kcompactd(_))) => self.kcompactd_awake = true,
                Effect::OomKill(mm) => self.killed.push(mm),
                Effect::ScheduleWork => self.nr_works += 1,
                Effect::Wake(_) | Effect::FreeLate { .. } => {}
            }
        }
        self.check();
        if !self.holds_copies {
            self.finish_copies();
        }
    }

    /// Reports all copies, in random order.
    pub fn finish_copies(&mut self) {
        while !self.copies.is_empty() {
            let at = self.draw(self.copies.len() as u64) as usize;
            let PendingCopy { from, to, taken } = self.copies.swap_remove(at);
            self.nr_copies += 1;
            let ok = self.fail_copies == 0 || !self.nr_copies.is_multiple_of(self.fail_copies);
            self.contents.end_copy(from, to, taken, ok);
            let cpu = self.cpu();
            let effects = self.machine.copy_done(from, ok, cpu).collect();
            self.carry_out(effects);
        }
    }

    /// One step of a daemon, and its effects.
    fn step_daemon(&mut self, daemon: Daemon) -> Step<DaemonRest> {
        let cpu = self.cpu();
        let (step, effects) = self.machine.step_daemon(daemon, cpu, self.now);
        let effects = effects.collect();
        self.carry_out(effects);
        step
    }

    /// One step of kcompactd, if it was woken.
    pub fn kcompactd_step(&mut self) {
        if self.kcompactd_awake {
            let step = self.step_daemon(Daemon::Kcompactd(NODE));
            if let Step::Wait(sleep) = step {
                self.sleep(sleep);
            }
            self.kcompactd_awake = !matches!(step, Step::Done(_));
        }
    }

    /// One step of the worker, if it was woken.
    pub fn kworker_step(&mut self) {
        if self.kworker_awake {
            let step = self.step_daemon(Daemon::Kworker);
            if let Step::Wait(sleep) = step {
                self.sleep(sleep);
            }
            self.kworker_awake = !matches!(step, Step::Done(_));
        }
    }

    /// Lets time pass for a throttled sleeper.
    pub fn sleep(&mut self, sleep: Sleep) {
        if let Token::Throttled(..) = sleep.token {
            self.now += sleep.timeout.min(100_000_000);
        }
    }

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
        let (io, transfer) = self.inflight.swap_remove(at);
        self.nr_io += 1;
        let ok = self.fail_every == 0 || !self.nr_io.is_multiple_of(self.fail_every);
        self.contents.end(io, transfer, ok);
        let cpu = self.cpu();
        let effects = self.machine.io_done(io, ok, cpu, self.now).collect();
        self.carry_out(effects);
    }

    pub fn kswapd(&mut self) {
        if !self.kswapd_awake {
            return;
        }
        self.now += 1000;
        let mut buffer = Vec::new();
        let cpu = self.cpu();
        let (step, effects) = self.machine.step_daemon(Daemon::Kswapd(NODE), cpu, self.now);
        effects.drain_into(&mut buffer);
        match step {
            Step::Continue => {}
            Step::Done(DaemonRest::UNTIL_WOKEN) => self.kswapd_awake = false,
            Step::Done(rest) => self.now += rest.timeout,
            Step::Wait(sleep) => {
                assert!(matches!(sleep.token, Token::Throttled(..)), "kswapd waits for a page");
                self.now += sleep.timeout;
                self.complete_one();
            }
        }
        self.carry_out(buffer);
    }

    /// Runs kswapd until it goes to full sleep.
    pub fn kswapd_to_sleep(&mut self) {
        for _ in 0..100_000 {
            if !self.kswapd_awake {
                return;
            }
            self.kswapd();
        }
        panic!("kswapd never sleeps");
    }

    /// One step of khugepaged; its rest, if it is idle.
    pub fn khugepaged(&mut self) -> Option<DaemonRest> {
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
                if rest != DaemonRest::UNTIL_WOKEN {
                    self.now += rest.timeout;
                }
                Some(rest)
            }
        }
    }

    /// Steps khugepaged until it is idle.
    pub fn khugepaged_round(&mut self) -> DaemonRest {
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
        let (step, effects) = self.machine.step_daemon(Daemon::Flusher, cpu, self.now);
        effects.drain_into(&mut buffer);
        match step {
            Step::Continue => {}
            Step::Done(_) => self.flusher_awake = false,
            Step::Wait(_) => self.complete_one(),
        }
        self.carry_out(buffer);
    }

    /// One step of a call, and its effects.
    pub fn step(&mut self, call: &mut ProcessCall) -> Step<Outcome> {
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
    pub fn drive(&mut self, call: &mut ProcessCall) -> Outcome {
        for _ in 0..if self.may_starve { self.patience } else { 1_000_000 } {
            if let Some(outcome) = self.drive_once(call) {
                return outcome;
            }
        }
        if self.may_starve {
            assert!(self.is_anybody_stuck(), "a call does not end: livelock");
            self.nr_starved += 1;
            let effects = self.machine.cancel(call.clone(), CPU).collect();
            self.carry_out(effects);
            return Outcome::NoMemory;
        }
        panic!("a call does not end: livelock");
    }

    /// Whether a group is at its limit, pays for slots, and ran out of memory without a task to
    /// kill: it has no task, or none that has started.
    pub fn is_anybody_stuck(&self) -> bool {
        self.machine.memcg_ids().any(|id| {
            let group = &self.machine.memcgs()[id];
            let events = self.machine.read_group_control(id, "memory.events", self.now).unwrap();
            let count = |name: &str| -> u64 {
                let row = events.lines().find_map(|line| line.strip_prefix(name));
                row.map_or(0, |value| value.trim().parse().unwrap())
            };
            let is_full = group.memory.usage >= group.memory.max;
            is_full && group.swap.usage > 0 && count("oom ") > count("oom_kill ")
        })
    }

    /// One step of a call, and the events before the next step.
    pub fn drive_once(&mut self, call: &mut ProcessCall) -> Option<Outcome> {
        match self.step(call) {
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
            self.exit(mm);
        }
        None
    }

    /// Accesses a page, with a fault if necessary. Returns its outcome as minor or major.
    pub fn access(&mut self, mm: MmId, vma: VmaId, page: u64, write: bool) -> Option<Outcome> {
        if self.touch(vma, page, write) {
            return None;
        }
        let outcome = self.drive(&mut ProcessCall::fault(mm, NODE, vma, page, write));
        let Outcome::Got(got) = outcome else { return Some(outcome) };
        // After reclaim for `memory.high` the page may be gone again.
        if self.machine.vma(vma).is_ok() && self.touch(vma, page, write) {
            self.check_got(got, vma, page);
        }
        Some(if got.major { Outcome::Major } else { Outcome::Minor })
    }

    /// An access without a fault, with its load or store. Returns whether no fault is needed.
    pub fn touch(&mut self, vma: VmaId, page: u64, write: bool) -> bool {
        let hit = self.machine.touch(vma, page, write) == TouchResult::Hit;
        if hit {
            self.contents.access(&self.machine, vma, page, write);
        }
        hit
    }

    /// The fault returned the frame of the page-table entry.
    pub fn check_got(&self, got: FaultedPage, vma: VmaId, page: u64) {
        let mapping = self.machine.vma(vma).unwrap();
        let pte = mapping.ptes[page as usize];
        match got.frame {
            Frame::Zeroes => assert!(pte.is_zero_page() && got.contents == Held::Fresh, "{got:?}"),
            Frame::At(pfn) => assert!(!pte.is_zero_page() && pte.pfn() == pfn, "{got:?} {pte:?}"),
        }
        let of_file = mapping.backing != Backing::Anon;
        assert!(!of_file || got.contents != Held::Fresh, "{got:?} of a file");
    }

    /// MADV_DONTNEED.
    pub fn discard(&mut self, vma: VmaId, first: u64, nr: u64) -> Result<(), MapError> {
        let cpu = self.cpu();
        self.machine.discard(vma, first, nr, cpu)?.discard();
        self.contents.forget(&self.machine, vma, Some((first, first.saturating_add(nr))));
        Ok(())
    }

    pub fn munmap(&mut self, vma: VmaId) {
        let cpu = self.cpu();
        self.machine.munmap(vma, cpu).unwrap().discard();
        self.contents.forget(&self.machine, vma, None);
    }

    pub fn exit(&mut self, mm: MmId) {
        let cpu = self.cpu();
        let effects = self.machine.exit_mm(mm, cpu).unwrap().collect();
        self.contents.forget_dead(&self.machine);
        self.carry_out(effects);
    }

    pub fn create_file(&mut self, size: u64, sparse: bool) -> FileId {
        let file = self.machine.create_file(size, sparse).unwrap();
        self.contents.forget_file(file);
        file
    }

    pub fn settle(&mut self) {
        while !self.inflight.is_empty() {
            self.complete_one();
        }
    }

    pub fn settle_and_audit(&mut self) {
        self.settle();
        self.machine.audit().unwrap();
    }
}
