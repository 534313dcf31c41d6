//! Storms: random operations in the world with bytes, by tasks on several CPUs.
//!
//! A storm is a function of its seed: machine, policies, disk errors, operations. A file has one
//! write() at a time (Linux: the inode's lock). After any step all contents are where the machine
//! says.

use crate::world::TestWorld;
use pagetide_core::config::{
    CompactionPolicy, Config, DirectReclaimPolicy, KswapdPolicy, PolicySet, Thp, ThpDefrag,
    ZeroPagesPolicy, ZsmallocPolicy, ZswapPolicy,
};
use pagetide_core::frames::gfp::{Gfp, MigrateType};
use pagetide_core::frames::node::{NodeSpec, ZoneSpec};
use pagetide_core::frames::zone_type::{ZONE_HIGHMEM, ZONE_NORMAL};
use pagetide_core::interface::effect::{Sleep, Step, Token};
use pagetide_core::interface::outcome::Outcome;
use pagetide_core::process::page_table::{Advice, Backing, VmaId};
use pagetide_core::process::{Machine, MmId, ProcessCall};
use pagetide_core::swap::compressor::Compressor;
use pagetide_core::swap::content::ContentMix;
use pagetide_core::swap::zram::ZramOptions;
use pagetide_core::swap::zram::{ZramWrite, ZramWritebackMode};
use pagetide_core::swap::zswap::ZswapOptions;
use pagetide_core::swap::SwapOptions;
use pagetide_core::units::{FileId, MemcgId, NodeId, Pfn, PAGE_SIZE};

const NODE: NodeId = NodeId(0);
const NR_TASKS: usize = 6;
const NR_TENANTS: usize = 3;
const HEAP: u64 = 1500;
const FILE: u64 = 700;

/// The purpose of a call.
#[derive(Clone, Copy)]
enum Aim {
    Access { vma: VmaId, page: u64, write: bool },
    Write(FileId),
    Block { order: u8, movable: bool },
    Other,
}

/// A call in progress of a task.
struct Job {
    call: ProcessCall,
    aim: Aim,
    sleep: Option<Sleep>,
}

/// A thread of a tenant.
#[derive(Default)]
struct Task {
    tenant: usize,
    job: Option<Job>,
    /// Accesses still to do: mapping, next page, number, whether they write.
    run: Option<(VmaId, u64, u64, bool)>,
}

/// An address space with its mappings: two of anonymous memory, one of each file.
struct Tenant {
    mm: MmId,
    group: MemcgId,
    vmas: Vec<VmaId>,
    blocks: Vec<Pfn>,
}

pub struct Storm {
    pub world: TestWorld,
    files: [FileId; 2],
    tenants: Vec<Tenant>,
    tasks: Vec<Task>,
}

impl Storm {
    /// A machine under constant memory pressure.
    pub fn new(seed: u64) -> Storm {
        let config = Config::default();
        let machine = Machine::new(&[NodeSpec::x86_64(4 << 20, 0, 0)], 1, config).unwrap();
        let mut dice = TestWorld::new(machine);
        dice.random = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        for _ in 0..4 {
            dice.draw(2);
        }
        let config = config_of(&mut dice);
        let nr_cpus = 2 + dice.draw(3) as u16;
        let mib = [8, 12, 16][dice.draw(3) as usize];
        let mut node = NodeSpec::x86_64(mib << 20, 0, 0);
        if dice.draw(4) == 0 {
            // 32 bits.
            let low = ZoneSpec::all_free((mib << 8) / 2);
            node = NodeSpec::default();
            node.zones[ZONE_NORMAL] = low;
            node.zones[ZONE_HIGHMEM] = ZoneSpec { is_highmem: true, ..low };
        } else if dice.draw(3) == 0 {
            node.zones[0].cma = 512 * (1 + dice.draw(mib / 4));
        }
        let mut machine = Machine::new(&[node], nr_cpus, config).unwrap();
        let slots = [4096, 700, 0][dice.draw(5).saturating_sub(2) as usize];
        if slots > 0 {
            machine.swapon(SwapOptions::new(slots).rotational(dice.draw(2) == 0));
        }
        if dice.draw(3) == 0 {
            let compressor = Compressor::ALL[dice.draw(Compressor::ALL.len() as u64) as usize];
            let mem_limit = [None, None, Some(150), Some(0)][dice.draw(4) as usize];
            let area = SwapOptions::new([5000, 600][dice.draw(2) as usize]);
            let priority = [None, Some(-2), Some(5)][dice.draw(3) as usize];
            let backing_pages =
                seed.is_multiple_of(2).then_some([4000, 200][seed as usize / 2 % 2]);
            let zram = ZramOptions { compressor, mem_limit, backing_pages };
            machine.swapon(SwapOptions { priority, ..area.zram(zram) });
            let mix = ContentMix {
                incompressible: [60, 700][dice.draw(2) as usize],
                ..ContentMix::DEFAULT
            };
            machine.set_default_content(seed, mix);
        }
        if dice.draw(3) == 0 {
            let compressor = Compressor::ALL[dice.draw(Compressor::ALL.len() as u64) as usize];
            let zswap = [ZswapPolicy::Linux61, ZswapPolicy::Linux612][dice.draw(2) as usize];
            machine.choose(zswap).unwrap().discard();
            if zswap == ZswapPolicy::Linux612 {
                machine.choose(ZeroPagesPolicy::Linux612).unwrap().discard();
                machine.choose(ZsmallocPolicy::Linux612).unwrap().discard();
            }
            machine.enable_zswap(ZswapOptions {
                compressor,
                max_pool_percent: [1, 5, 40][dice.draw(3) as usize],
                accept_threshold_percent: [0, 90, 100][dice.draw(3) as usize],
                shrinker: dice.draw(2) == 0,
            });
        }
        let mut world = TestWorld::new(machine);
        world.random = dice.random;
        world.nr_cpus = nr_cpus;
        world.audit = false;
        world.holds_copies = true;
        if world.draw(2) == 0 {
            world.fail_every = 5 + world.draw(20);
            world.fail_copies = 3 + world.draw(5);
        }
        let files = [
            world.create_file(FILE * PAGE_SIZE - 1000, false),
            world.create_file(FILE * PAGE_SIZE - 1000, true),
        ];
        let mut storm = Storm { world, files, tenants: Vec::new(), tasks: Vec::new() };
        for tenant in 0..NR_TENANTS {
            let name = format!("tenant{tenant}");
            let group = storm.world.machine.create_memcg(name, Machine::ROOT).unwrap();
            let group = if tenant == 0 { Machine::ROOT } else { group };
            let tenant = storm.tenant(group);
            storm.tenants.push(tenant);
        }
        storm.tasks = (0..NR_TASKS)
            .map(|task| Task { tenant: task % NR_TENANTS, ..Default::default() })
            .collect();
        storm
    }

    fn tenant(&mut self, group: MemcgId) -> Tenant {
        let mm = self.world.machine.create_mm(group).unwrap();
        let vmas = (0..4).map(|at| self.map(mm, at)).collect();
        Tenant { mm, group, vmas, blocks: Vec::new() }
    }

    fn map(&mut self, mm: MmId, at: usize) -> VmaId {
        let (backing, pages) = match at {
            0 | 1 => (Backing::Anon, HEAP),
            _ => (Backing::File(self.files[at - 2]), FILE),
        };
        let advice = [Advice::Normal, Advice::Huge, Advice::Normal, Advice::Random][at];
        self.world.machine.mmap(mm, backing, pages, advice, false).unwrap()
    }

    /// Runs this many operations, then ends everything.
    pub fn rage(mut self, nr_operations: u32) -> Storm {
        let storm = &mut self;
        for nr in 0..nr_operations {
            storm.operation();
            if nr % 64 == 0 {
                storm.verify();
            }
        }
        storm.finish();
        self
    }

    fn verify(&self) {
        if let Err(violation) = self.world.machine.audit() {
            panic!("at {}: {violation}", self.world.now);
        }
        let vmas: Vec<VmaId> =
            self.tenants.iter().flat_map(|tenant| tenant.vmas.iter().copied()).collect();
        self.world.contents.verify(&self.world.machine, &vmas);
    }

    fn draw(&mut self, below: u64) -> u64 {
        self.world.draw(below)
    }

    fn operation(&mut self) {
        match self.draw(100) {
            0..=73 => {
                let task = self.draw(NR_TASKS as u64) as usize;
                for _ in 0..=self.draw(12) {
                    self.task_step(task);
                }
            }
            74..=83 => self.world.complete_one(),
            84..=87 => self.world.finish_copies(),
            88..=92 => self.world.kswapd(),
            93..=94 => self.world.flusher(),
            95 => {
                self.world.kcompactd_step();
                self.world.kworker_step();
            }
            96..=97 => {
                for _ in 0..4 {
                    self.world.khugepaged();
                }
            }
            98 => self.world.now += self.world.draw(1000) * 1_000_000,
            _ => self.rare(),
        }
        self.bury();
    }

    /// Ends the tasks chosen by the OOM killer, and starts others instead.
    fn bury(&mut self) {
        for mm in std::mem::take(&mut self.world.killed) {
            if let Some(at) = self.tenants.iter().position(|tenant| tenant.mm == mm) {
                self.exit(at);
            }
        }
    }

    fn exit(&mut self, at: usize) {
        for task in 0..NR_TASKS {
            if self.tasks[task].tenant == at {
                self.tasks[task].run = None;
                // A killed task gives up its call.
                if let Some(job) = self.tasks[task].job.take() {
                    let cpu = self.world.cpu();
                    let mut effects = Vec::new();
                    self.world.machine.cancel(job.call, cpu).drain_into(&mut effects);
                    self.world.carry_out(effects);
                }
            }
        }
        let tenant = &mut self.tenants[at];
        for pfn in std::mem::take(&mut tenant.blocks) {
            self.world.contents.free_block(pfn);
        }
        let (mm, group) = (tenant.mm, tenant.group);
        self.world.exit(mm);
        self.tenants[at] = self.tenant(group);
    }

    /// A task continues its call, or starts another operation.
    fn task_step(&mut self, at: usize) {
        let Some(mut job) = self.tasks[at].job.take() else { return self.begin(at) };
        if let Some(sleep) = job.sleep.take() {
            if self.draw(4) > 0 {
                self.world.complete_one();
            }
            if matches!(sleep.token, Token::Page(_)) && self.draw(4) > 0 {
                self.world.finish_copies();
            }
            self.world.sleep(sleep);
        }
        let paid = job.call.is_reclaiming();
        match self.world.step(&mut job.call) {
            Step::Continue => self.tasks[at].job = Some(job),
            Step::Wait(sleep) => {
                job.sleep = Some(sleep);
                self.tasks[at].job = Some(job);
            }
            Step::Done(outcome) => self.done(at, job.aim, outcome, paid),
        }
    }

    fn done(&mut self, at: usize, aim: Aim, outcome: Outcome, paid: bool) {
        match (aim, outcome) {
            (Aim::Access { vma, page, write }, Outcome::Got(got)) => {
                // The mapping may have been removed.
                if self.world.machine.vma(vma).is_err() {
                    return;
                }
                if !paid {
                    self.world.check_got(got, vma, page);
                }
                let hit = self.world.touch(vma, page, write);
                assert!(hit || paid, "a fault that has ended: {got:?}");
            }
            (Aim::Block { order, movable }, Outcome::Block(pfn)) => {
                let mem = &self.world.machine.mem;
                let zone = &mem.nodes[0].zones[mem.pages[pfn].zone()];
                let is_lent = zone.is_highmem || zone.block_type(pfn) == MigrateType::Cma;
                assert!(movable || !is_lent, "kernel memory in zone {}", zone.name());
                self.world.contents.hold_block(pfn, order);
                let tenant = self.tasks[at].tenant;
                self.tenants[tenant].blocks.push(pfn);
            }
            (Aim::Access { .. }, Outcome::IoError) => {
                assert!(self.world.fail_every > 0, "an error without a planned failure");
                self.tasks[at].run = None;
            }
            _ => {}
        }
    }

    fn begin(&mut self, at: usize) {
        let Tenant { mm, .. } = self.tenants[self.tasks[at].tenant];
        if let Some((vma, mut page, end, write)) = self.tasks[at].run.take() {
            if self.world.machine.vma(vma).is_err() {
                return;
            }
            while page < end && self.world.touch(vma, page, write) {
                page += 1;
            }
            if page < end {
                self.tasks[at].run = Some((vma, page + 1, end, write));
                let call = ProcessCall::fault(mm, NODE, vma, page, write);
                self.job(at, call, Aim::Access { vma, page, write });
            }
            return;
        }
        let file = self.files[self.draw(2) as usize];
        match self.draw(16) {
            0..=9 => {
                let vma = self.draw(4) as usize;
                let len = if vma < 2 { HEAP } else { FILE };
                let page = self.draw(len);
                let end = (page + 1 + self.draw(300)).min(len);
                let write = self.draw(3) > 0;
                let vma = self.tenants[self.tasks[at].tenant].vmas[vma];
                self.tasks[at].run = Some((vma, page, end, write));
            }
            10..=11 => {
                let (offset, len) = (self.draw(FILE * PAGE_SIZE), self.draw(60 * PAGE_SIZE));
                self.job(
                    at,
                    ProcessCall::read(mm, NODE, file, offset, len, Default::default()),
                    Aim::Other,
                );
            }
            12..=13 => {
                let writes = |job: &Job| matches!(job.aim, Aim::Write(other) if other == file);
                let busy = |task: &Task| task.job.as_ref().is_some_and(writes);
                if self.tasks.iter().any(busy) {
                    return;
                }
                let offset = self.draw(2 * FILE) * PAGE_SIZE / 2 + self.draw(3) * 512;
                let len = 1 + self.draw(20 * PAGE_SIZE);
                let len = len.min(FILE * PAGE_SIZE - offset.min(FILE * PAGE_SIZE));
                self.job(at, ProcessCall::write(mm, NODE, file, offset, len), Aim::Write(file));
            }
            14 => {
                let order = self.draw(6) as u8;
                let gfp = [Gfp::KERNEL, Gfp::ATOMIC, Gfp::TRANSHUGE][self.draw(3) as usize];
                let movable = gfp.has(Gfp::MOVABLE);
                let aim = Aim::Block { order, movable };
                self.job(at, ProcessCall::alloc_pages(mm, NODE, order, gfp), aim);
            }
            _ => {
                let tenant = self.tasks[at].tenant;
                if let Some(pfn) = self.tenants[tenant].blocks.pop() {
                    self.world.contents.free_block(pfn);
                    let cpu = self.world.cpu();
                    assert!(self.world.machine.free_kernel_block(mm, pfn, cpu));
                }
            }
        }
    }

    fn job(&mut self, at: usize, call: ProcessCall, aim: Aim) {
        self.tasks[at].job = Some(Job { call, aim, sleep: None });
    }

    fn has_zram_backing(&self) -> bool {
        let mut zrams = self.world.machine.swap().zrams();
        zrams.any(|zram| zram.options().backing_pages.is_some())
    }

    fn rare(&mut self) {
        let at = self.draw(NR_TENANTS as u64) as usize;
        let Tenant { mm, group, .. } = self.tenants[at];
        let cpu = self.world.cpu();
        match self.draw(14) {
            0 => {
                let number = self.draw(4) as usize;
                let vma = self.tenants[at].vmas[number];
                self.world.munmap(vma);
                self.tenants[at].vmas[number] = self.map(mm, number);
            }
            1..=3 => {
                let number = self.draw(4) as usize;
                let vma = self.tenants[at].vmas[number];
                let (first, nr) = (self.draw(HEAP), 1 + self.draw(700));
                self.world.discard(vma, first, nr).unwrap();
            }
            4 if self.draw(3) == 0 => self.exit(at),
            5 => self.world.machine.drop_pagecache(cpu).discard(),
            6..=8 => {
                let name = [
                    "memory.max",
                    "memory.high",
                    "memory.low",
                    "memory.reclaim",
                    "memory.zswap.max",
                ];
                let size = ["max", "2M", "4M", "512K", "max"];
                let name = name[self.draw(5) as usize];
                let size = size[self.draw(5) as usize];
                let write = self.world.machine.write_group_control(group, name, size);
                let mut todo = Vec::new();
                let write = write.map(|(write, effects)| {
                    effects.drain_into(&mut todo);
                    write
                });
                self.world.carry_out(todo);
                let idle = (0..NR_TASKS).find(|&task| self.tasks[task].job.is_none());
                if let (Ok(Some(write)), Some(task)) = (write, idle) {
                    let asker = self.tenants[self.tasks[task].tenant].mm;
                    self.job(task, ProcessCall::group_write(asker, NODE, write), Aim::Other);
                }
            }
            9 => {
                let to = self.draw(NR_TENANTS as u64) as usize;
                let to = self.tenants[to].group;
                self.world.machine.move_mm(mm, to).unwrap().discard();
            }
            10 => {
                if let Some(task) = (0..NR_TASKS).find(|&task| self.tasks[task].job.is_none()) {
                    let asker = self.tenants[self.tasks[task].tenant].mm;
                    self.job(task, ProcessCall::compact_memory(asker, NODE), Aim::Other);
                }
            }
            11 if self.has_zram_backing() => {
                let mode =
                    [ZramWritebackMode::Idle, ZramWritebackMode::Huge, ZramWritebackMode::HugeIdle]
                        [self.draw(3) as usize];
                self.world.machine.write_zram(ZramWrite::Idle);
                self.world
                    .machine
                    .write_zram(ZramWrite::LimitEnable(self.world.now.is_multiple_of(2)));
                self.world.machine.write_zram(ZramWrite::Limit(300));
                if let Some(task) = (0..NR_TASKS).find(|&task| self.tasks[task].job.is_none()) {
                    let asker = self.tenants[self.tasks[task].tenant].mm;
                    self.job(task, ProcessCall::zram_writeback(asker, NODE, mode), Aim::Other);
                }
            }
            _ => {
                let vma = self.tenants[at].vmas[1];
                let page = self.draw(HEAP / 512) * 512;
                let pte = self.world.machine.vma(vma).unwrap().ptes[page as usize];
                if pte.is_present() && !pte.is_zero_page() {
                    self.world.machine.split_huge_page(pte.pfn());
                }
            }
        }
    }

    /// Ends every call, reads every byte, ends all tasks, and checks that no memory remains in use.
    fn finish(&mut self) {
        for nr in 0.. {
            assert!(nr < 1_000_000, "calls do not end: livelock");
            let Some(at) = (0..NR_TASKS).find(|&at| self.tasks[at].job.is_some()) else { break };
            // A group at its limit may have no task to kill: its task has moved to another group.
            if nr % 100_000 == 99_999 && self.world.is_anybody_stuck() {
                let job = self.tasks[at].job.take();
                let call = job.expect("the task has a job").call;
                let cpu = self.world.cpu();
                let effects = self.world.machine.cancel(call, cpu).collect();
                self.world.carry_out(effects);
                continue;
            }
            self.tasks[at].run = None;
            self.task_step(at);
            self.world.complete_one();
            self.world.finish_copies();
            self.world.kswapd();
            self.world.flusher();
            self.bury();
        }
        self.world.finish_copies();
        self.world.settle();
        self.verify();
        for at in 0..NR_TENANTS {
            self.exit(at);
            let vmas = self.tenants[at].vmas.clone();
            vmas.into_iter().for_each(|vma| self.world.munmap(vma));
        }
        self.world.finish_copies();
        self.world.settle();
        self.verify();
    }
}

fn config_of(dice: &mut TestWorld) -> Config {
    let old = dice.draw(4) == 0;
    let thp = [Thp::Never, Thp::Always, Thp::Madvise][dice.draw(3) as usize];
    let defrag = [ThpDefrag::Always, ThpDefrag::Madvise, ThpDefrag::Never][dice.draw(3) as usize];
    let mut config = Config {
        page_cluster: dice.draw(4) as u32,
        read_ahead_pages: [32, 8, 0][dice.draw(3) as usize],
        thp,
        thp_defrag: defrag,
        khugepaged_max_ptes_none: 500,
        compaction_proactiveness: [20, 100][dice.draw(2) as usize],
        compaction: if old { CompactionPolicy::Linux45 } else { CompactionPolicy::Linux61 },
        kswapd: if old { KswapdPolicy::Linux2637 } else { KswapdPolicy::Linux61 },
        direct_reclaim: match old {
            true => DirectReclaimPolicy::Linux2637,
            false => DirectReclaimPolicy::Linux61,
        },
        ..Config::default()
    };
    if dice.draw(3) == 0 {
        let kernel = PolicySet::ALL[dice.draw(PolicySet::ALL.len() as u64) as usize];
        kernel.choices().iter().for_each(|&choice| config.choose(choice));
    }
    config
}
