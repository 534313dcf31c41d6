//! Tenants of an embedder: a page always has its last written contents, a fresh page is zero, a
//! pinned page stays in place, and the audit passes after every operation.

use pagetide_core::config::Config;
use pagetide_core::frames::node::NodeSpec;
use pagetide_core::interface::bad_id::BadId;
use pagetide_core::interface::effect::{Effect, Io, Step};
use pagetide_core::interface::executor::{frame_of, Executor, World};
use pagetide_core::interface::manager::Manager;
use pagetide_core::interface::outcome::Contents;
use pagetide_core::interface::outcome::Outcome;
use pagetide_core::interface::slots::{Slots, TenantCall, TenantEntry, TenantError, TenantId};
use pagetide_core::swap::compressor::Compressor;
use pagetide_core::swap::zram::ZramOptions;
use pagetide_core::swap::SwapOptions;
use pagetide_core::units::{Cpu, IdVec, MemcgId, NodeId, Pfn, SwapSlot};
use proptest::prelude::*;
use std::sync::Arc;

const NODE: NodeId = NodeId(0);
const PAGES: u32 = 1500;

/// One word stands for the contents of a frame or a slot. I/O takes time and may fail.
struct Bytes {
    now: u64,
    frames: IdVec<Pfn, u64>,
    slots: IdVec<SwapSlot, u64>,
    pending: Vec<Io>,
    random: u64,
    fail_one_in: u64,
}

impl Bytes {
    fn draw(&mut self, below: u64) -> u64 {
        self.random = self.random.wrapping_mul(6364136223846793005).wrapping_add(1);
        (self.random >> 33) % below
    }

    fn fails(&mut self) -> bool {
        self.fail_one_in > 0 && self.draw(self.fail_one_in) == 0
    }
}

impl World for Bytes {
    fn now(&mut self) -> u64 {
        self.now += 100;
        self.now
    }

    fn submit(&mut self, io: Io) -> Option<bool> {
        self.pending.push(io);
        None
    }

    fn next_completion(&mut self, patience: u64) -> Option<(Io, bool)> {
        if self.pending.is_empty() || patience == 0 && self.draw(2) == 0 {
            self.now += patience;
            return None;
        }
        self.now += patience.min(50_000);
        let at = self.draw(self.pending.len() as u64) as usize;
        let io = self.pending.swap_remove(at);
        let ok = !self.fails();
        match io {
            Io::SwapOut { slot, pfn, .. } if ok => self.slots[slot] = self.frames[pfn],
            Io::SwapIn { slot, pfn } if ok => self.frames[pfn] = self.slots[slot],
            Io::SwapIn { pfn, .. } => self.frames[pfn] = u64::MAX,
            _ => {}
        }
        Some((io, ok))
    }

    fn move_bytes(&mut self, effect: Effect) -> bool {
        match effect {
            Effect::Zero { frame, order } => {
                self.frames.as_mut_slice()[frame.idx()..][..1 << order].fill(0);
            }
            Effect::CopyPage { from, to } => {
                if self.fails() {
                    return false;
                }
                self.frames[to] = self.frames[from];
            }
            Effect::StorePage { slot, pfn } => self.slots[slot] = self.frames[pfn],
            Effect::LoadPage { slot, pfn } => self.frames[pfn] = self.slots[slot],
            other => panic!("tenants do not use {other:?}"),
        }
        true
    }
}

struct Tenant {
    id: TenantId,
    entries: Arc<[TenantEntry]>,
    /// The last value written to each page.
    written: Vec<u64>,
    pinned: Vec<(u32, Pfn)>,
}

struct Pool {
    executor: Executor<Slots, Bytes>,
    groups: Vec<MemcgId>,
    tenants: Vec<Tenant>,
    next_tag: u64,
}

impl Pool {
    fn new(seed: u64) -> Pool {
        let node = NodeSpec::x86_64(16 << 20, 0, 0);
        let mut manager =
            Manager::with_owners(Slots::new(), &[node], 3, Config::default()).unwrap();
        let area = SwapOptions::new(8192);
        let zram =
            ZramOptions { compressor: Compressor::Lz4, mem_limit: None, backing_pages: None };
        manager.swapon(match seed % 3 {
            0 => area.zram(zram),
            1 => area.rotational(true),
            _ => area,
        });
        let frames = vec![u64::MAX; manager.mem.pages.len()].into();
        let fail_one_in = [0, 0, 40][seed as usize % 3];
        let slots = vec![u64::MAX; 8192];
        let world = Bytes {
            now: 0,
            frames,
            slots: slots.into(),
            pending: Vec::new(),
            random: seed,
            fail_one_in,
        };
        let mut executor = Executor::new(manager, world, Cpu(2));
        let groups = executor.ask(|manager, _| {
            let mut make = |name: &str| manager.create_memcg(name.into(), MemcgId(0)).unwrap();
            vec![MemcgId(0), make("a"), make("b")]
        });
        let mut pool = Pool { executor, groups, tenants: Vec::new(), next_tag: 1 };
        (0..3).for_each(|group| pool.add_tenant(group));
        pool
    }

    fn add_tenant(&mut self, group: usize) {
        let memcg = self.groups[group];
        let (id, entries) =
            self.executor.ask(|manager, _| manager.create_tenant(memcg, PAGES.into()).unwrap());
        let written = vec![0; PAGES as usize];
        self.tenants.push(Tenant { id, entries, written, pinned: Vec::new() });
    }

    /// One access, by the lock-free path if the page is present. The pin stays if `keeps`.
    fn access(&mut self, at: usize, page: u32, write: bool, keeps: bool, cpu: Cpu) {
        let tenant = &mut self.tenants[at];
        let frame = match tenant.entries[page as usize].pin(write) {
            Some(frame) => frame,
            None => {
                let mut call = TenantCall::get(tenant.id, NODE, page, write);
                let outcome = self.executor.run(&mut call, cpu);
                let Some(frame) = frame_of(outcome) else {
                    // All frames may be pinned, or a read may have failed.
                    assert!(matches!(outcome, Outcome::NoMemory | Outcome::IoError), "{outcome:?}");
                    return;
                };
                let Outcome::Got(got) = outcome else { unreachable!() };
                let fresh = got.contents == Contents::Fresh;
                assert!(
                    !fresh || tenant.written[page as usize] == 0,
                    "an old page was returned as fresh"
                );
                frame
            }
        };
        let bytes = &mut self.executor.world.frames[frame];
        assert_eq!(*bytes, tenant.written[page as usize], "tenant {at} page {page} in {frame:?}");
        if write {
            *bytes = self.next_tag;
            tenant.written[page as usize] = self.next_tag;
            self.next_tag += 1;
        }
        match keeps {
            true => tenant.pinned.push((page, frame)),
            false => tenant.entries[page as usize].unpin(),
        }
    }

    fn operation(&mut self, kind: u32, a: u32, b: u32) {
        let at = a as usize % self.tenants.len();
        let cpu = Cpu((b % 2) as u16);
        match kind {
            // A run of pages, as in loops.
            0..=69 => {
                let first = b % PAGES;
                let write = !kind.is_multiple_of(3);
                for page in first..(first + 1 + a % 64).min(PAGES) {
                    self.access(at, page, write, false, cpu);
                }
            }
            70..=75 => self.access(at, b % PAGES, true, true, cpu),
            76..=81 => {
                let tenant = &mut self.tenants[at];
                for (page, frame) in std::mem::take(&mut tenant.pinned) {
                    // The page was neither moved nor written.
                    assert_eq!(tenant.entries[page as usize].pin(false), Some(frame));
                    tenant.entries[page as usize].unpin();
                    tenant.entries[page as usize].unpin();
                }
            }
            82..=88 => self.executor.run_daemons(),
            89..=91 => {
                let size = ["max", "3M", "1M", "8M"][b as usize % 4];
                let name = ["memory.max", "memory.high", "memory.low"][a as usize / 4 % 3];
                let group = self.groups[1 + a as usize % 2];
                let write = self.executor.ask(|manager, todo| {
                    let (write, effects) = manager.write_group_control(group, name, size).unwrap();
                    effects.drain_into(todo);
                    write
                });
                if let Some(write) = write {
                    let mut call =
                        TenantCall::group_write(self.tenants[at].id.asker(), NODE, write);
                    self.executor.run(&mut call, cpu);
                }
            }
            92..=95 => {
                let mut call = TenantCall::compact_memory(self.tenants[at].id.asker(), NODE);
                self.executor.run(&mut call, cpu);
            }
            _ => {
                let tenant = &self.tenants[at];
                let removed = self.executor.ask(|manager, todo| {
                    manager.remove_tenant(tenant.id, cpu).map(|effects| effects.drain_into(todo))
                });
                match removed {
                    Ok(()) => {
                        self.tenants.remove(at);
                        self.add_tenant(b as usize % 3);
                    }
                    Err(error) => {
                        assert_eq!(error, TenantError::Pinned);
                        assert!(!tenant.pinned.is_empty());
                    }
                }
            }
        }
        if let Err(violation) = self.executor.manager.audit() {
            panic!("after {kind} {a} {b}: {violation}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn a_page_holds_what_was_last_written(
        seed in any::<u64>(),
        operations in prop::collection::vec((0u32..100, any::<u32>(), any::<u32>()), 1..250),
    ) {
        let mut pool = Pool::new(seed);
        for (kind, a, b) in operations {
            pool.operation(kind, a, b);
        }
    }
}

#[test]
fn swap_is_used_and_comes_back() {
    let mut pool = Pool::new(1);
    for lap in 0..4 {
        for at in 0..3 {
            (0..PAGES).for_each(|page| pool.access(at, page, lap % 2 == 0, false, Cpu(0)));
        }
    }
    let vmstat = &pool.executor.manager.mem.vmstat;
    assert!(vmstat.get(pagetide_core::stats::vmstat::Event::Pswpin) > 1000);
    pool.executor.manager.audit().unwrap();
}

#[test]
fn unknown_tenants_are_refused() {
    let mut pool = Pool::new(1);
    let gone = pool.tenants[2].id;
    pool.operation(99, 2, 2);
    assert_eq!(pool.tenants[2].id.asker(), gone.asker(), "the number is used again");
    let manager = &mut pool.executor.manager;
    assert_eq!(manager.remove_tenant(gone, Cpu(0)).err(), Some(TenantError::NoTenant));
    assert_eq!(manager.create_tenant(MemcgId(9), 1).err(), Some(TenantError::NoGroup));
    assert_eq!(manager.create_tenant(MemcgId(0), 1 << 32).err(), Some(TenantError::TooLarge));
    // The old id does not reach the new tenant's page.
    let outcome = pool.executor.run(&mut TenantCall::get(gone, NODE, 0, true), Cpu(0));
    assert_eq!(outcome, Outcome::BadId(BadId::Mm(gone.asker())));
    let outcome =
        pool.executor.run(&mut TenantCall::get(pool.tenants[0].id, NODE, PAGES, true), Cpu(0));
    assert!(matches!(outcome, Outcome::BadId(BadId::Page(..))), "{outcome:?}");
}

#[test]
fn a_request_that_finds_all_pages_pinned_fails_without_a_kill() {
    let mut pool = Pool::new(1);
    let mut pinned = 0;
    for at in 0..3 {
        for page in 0..PAGES {
            pool.access(at, page, true, true, Cpu(0));
        }
        pinned += pool.tenants[at].pinned.len();
    }
    assert!(pinned < 4096, "{pinned} of 4096 frames are pinned");
    assert!(pinned > 3000, "only {pinned} of 4096 frames could be pinned");
    pool.operation(76, 0, 0);
    pool.access(1, PAGES - 1, true, false, Cpu(0));
    assert_ne!(pool.tenants[1].written[PAGES as usize - 1], 0, "the freed page is used again");
}

/// A tenant's number is reused, and the next tenant sees none of the old contents.
#[test]
fn numbers_are_used_again() {
    let mut pool = Pool::new(2);
    (0..PAGES).for_each(|page| pool.access(2, page, true, false, Cpu(0)));
    let id = pool.tenants[2].id.asker();
    pool.operation(99, 2, 2);
    assert_eq!(pool.tenants[2].id.asker(), id);
    (0..PAGES).for_each(|page| pool.access(2, page, false, false, Cpu(1)));
}

/// Until the world has zeroed a fresh page no thread can read the old contents of its frame.
#[test]
fn a_fresh_page_cannot_be_pinned_before_it_is_zeroed() {
    let mut pool = Pool::new(1);
    let entry = pool.tenants[0].entries.clone();
    let mut call = TenantCall::get(pool.tenants[0].id, NODE, 0, true);
    let (step, effects) = pool.executor.manager.step(&mut call, Cpu(0), 0);
    assert_eq!((step, entry[0].pin(false)), (Step::Continue, None));
    assert!(effects.into_iter().any(|effect| matches!(effect, Effect::Zero { .. })));
    let (step, effects) = pool.executor.manager.step(&mut call, Cpu(0), 0);
    effects.discard();
    let Step::Done(Outcome::Got(got)) = step else { panic!("{step:?}") };
    assert_eq!(got.contents, Contents::Fresh);
    assert!(entry[0].pin(true).is_some());
}

/// A tenant is removed while a thread pins: either the thread has the page, or the tenant is gone.
#[test]
fn a_tenant_is_not_removed_under_a_pin() {
    let mut pool = Pool::new(1);
    for _ in 0..200 {
        (0..4).for_each(|page| pool.access(2, page, true, false, Cpu(0)));
        let (id, entries) = (pool.tenants[2].id, pool.tenants[2].entries.clone());
        let start = std::sync::Barrier::new(2);
        let (pinned, removed) = std::thread::scope(|scope| {
            let pins = scope.spawn(|| {
                start.wait();
                entries[3].pin(false)
            });
            start.wait();
            let removed = pool.executor.ask(|manager, todo| {
                manager.remove_tenant(id, Cpu(0)).map(|effects| effects.drain_into(todo))
            });
            (pins.join().unwrap(), removed)
        });
        match (pinned, removed) {
            (None, Ok(())) => {
                pool.tenants.remove(2);
                pool.add_tenant(2);
            }
            (Some(_), Err(TenantError::Pinned)) => entries[3].unpin(),
            (None, Err(_)) => {}
            (Some(_), removed) => panic!("pinned, and {removed:?}"),
        }
        pool.executor.manager.audit().unwrap();
    }
}

/// A sleeper that shares the executor under a lock steps again if another thread ran its call.
#[test]
fn a_wake_up_between_two_steps_is_not_lost() {
    let mut pool = Pool::new(1);
    let gone = pool.executor.world.now();
    pool.executor.sleep(pagetide_core::interface::effect::Token::Page(Pfn(0)), u64::MAX);
    assert!(pool.executor.world.now() < gone + 1_000_000, "no call sleeps on that page");
}
