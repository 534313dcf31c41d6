//! Groups, limits and swap for memory inside a process: 64 MiB for two tenants of 48 MiB each, and
//! a swap file. Safe Rust. A present page is pinned with one atomic operation, without a lock.

use pagetide_core::config::Config;
use pagetide_core::frames::node::{NodeSpec, ZoneSpec};
use pagetide_core::frames::zone::ZONE_NORMAL;
use pagetide_core::interface::effect::{Effect, Effects, Io};
use pagetide_core::interface::executor::{frame_of, Executor, World};
use pagetide_core::interface::manager::Manager;
use pagetide_core::interface::slots::{Slots, TenantCall, TenantEntry, TenantId};
use pagetide_core::units::{Cpu, NodeId, Pfn};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

const WORDS: usize = 512; // per page, 8 bytes each
const PAGES: u32 = 48 << 20 >> 12; // per tenant

/// The world: bytes in an arena, a swap file, a clock.
struct Memory {
    arena: Arc<[AtomicU64]>,
    swap: File,
    began: Instant,
}

fn page(arena: &[AtomicU64], frame: Pfn) -> &[AtomicU64] {
    &arena[frame.idx() * WORDS..][..WORDS]
}

impl World for Memory {
    fn now(&mut self) -> u64 {
        self.began.elapsed().as_nanos() as u64
    }

    fn submit(&mut self, io: Io) -> Option<bool> {
        let mut bytes = [0; WORDS * 8];
        let words = bytes.chunks_exact_mut(8);
        Some(match io {
            Io::SwapOut { slot, pfn, .. } => {
                let from = words.zip(page(&self.arena, pfn));
                from.for_each(|(to, word)| to.copy_from_slice(&word.load(Relaxed).to_le_bytes()));
                self.swap.write_all_at(&bytes, u64::from(slot.0) << 12).is_ok()
            }
            Io::SwapIn { slot, pfn } => {
                let ok = self.swap.read_exact_at(&mut bytes, u64::from(slot.0) << 12).is_ok();
                for (from, word) in bytes.chunks_exact(8).zip(page(&self.arena, pfn)) {
                    word.store(u64::from_le_bytes(from.try_into().expect("8 bytes")), Relaxed);
                }
                ok
            }
            Io::ReadFile { .. } | Io::WriteFile { .. } => false, // there are no files
        })
    }

    fn next_completion(&mut self, patience: u64) -> Option<(Io, bool)> {
        std::thread::sleep(Duration::from_nanos(patience.min(1_000_000)));
        None
    }

    fn move_bytes(&mut self, effect: Effect) -> bool {
        match effect {
            Effect::Zero { frame, order } => (frame.0..frame.0 + (1 << order))
                .for_each(|at| page(&self.arena, Pfn(at)).iter().for_each(|w| w.store(0, Relaxed))),
            Effect::CopyPage { from, to } => page(&self.arena, from)
                .iter()
                .zip(page(&self.arena, to))
                .for_each(|(from, to)| to.store(from.load(Relaxed), Relaxed)),
            _ => {}
        }
        true
    }
}

struct Pool {
    executor: Mutex<Executor<Slots, Memory>>,
    arena: Arc<[AtomicU64]>,
}

struct Tenant {
    id: TenantId,
    cpu: Cpu,
    entries: Arc<[TenantEntry]>,
}

impl Pool {
    /// Runs `f` on a page's bytes. `None`: no memory, its bytes could not be read from swap, or the
    /// tenant was removed. A thread that misses holds the lock until its page is present; to share
    /// the lock while a call sleeps, call `Executor::step` and release the lock between two steps.
    fn with<T>(
        &self,
        of: &Tenant,
        at: u32,
        write: bool,
        f: impl FnOnce(&[AtomicU64]) -> T,
    ) -> Option<T> {
        let entry = &of.entries[at as usize];
        let frame = match entry.pin(write) {
            Some(frame) => frame,
            None => {
                let mut call = TenantCall::get(of.id, NodeId(0), at, write);
                frame_of(self.executor.lock().expect("no thread panics").run(&mut call, of.cpu))?
            }
        };
        let result = f(page(&self.arena, frame));
        entry.unpin();
        Some(result)
    }

    fn tenant(&self, group: &str, control: (&str, &str), cpu: Cpu) -> Tenant {
        let mut executor = self.executor.lock().expect("no thread panics");
        let (id, entries) = executor.ask(|manager, todo| {
            let memcg = manager.create_memcg(group.into(), Manager::<Slots>::ROOT).expect("room");
            let written = manager.write_group_control(memcg, control.0, control.1);
            written.expect("a known control").1.drain_into(todo);
            manager.create_tenant(memcg, PAGES.into()).expect("the group exists")
        });
        Tenant { id, cpu, entries }
    }
}

/// A tenant's work: writes to all pages, then checks their contents. Returns the time of a hit.
fn work(pool: &Pool, tenant: &Tenant) -> Duration {
    let tag = |lap: u64, at: u32| lap << 40 | u64::from(tenant.id.asker().0) << 32 | u64::from(at);
    for lap in 1..=3 {
        for at in 0..PAGES {
            let was = pool.with(tenant, at, true, |words| {
                words[at as usize % WORDS].swap(tag(lap, at), Relaxed)
            });
            assert_eq!(was, Some(if lap == 1 { 0 } else { tag(lap - 1, at) }), "page {at}");
        }
    }
    let began = Instant::now();
    for _ in 0..1000 {
        pool.with(tenant, PAGES - 1, false, |words| words[0].load(Relaxed))
            .expect("the page exists");
    }
    began.elapsed() / 1000
}

/// Two tenants, one thread each.
pub fn main() {
    let mut node = NodeSpec::default();
    node.zones[ZONE_NORMAL] = ZoneSpec::all_free(64 << 20 >> 12);
    let config = Config { page_cluster: 0, ..Config::default() };
    let mut manager = Manager::with_owners(Slots::new(), &[node], 3, config).expect("64 MiB");
    manager.swapon(4 * PAGES, 4 * PAGES, false);
    let arena: Arc<[AtomicU64]> = (0..(64 << 20) / 8).map(|_| AtomicU64::new(0)).collect();
    let path = std::env::temp_dir().join(format!("pagetide-embed-{}.swap", std::process::id()));
    let swap =
        File::options().read(true).write(true).create_new(true).open(&path).expect("a swap file");
    std::fs::remove_file(&path).expect("the file was just made"); // it lives as long as it is open
    let memory = Memory { arena: arena.clone(), swap, began: Instant::now() };
    let pool = Pool { executor: Mutex::new(Executor::new(manager, memory, Cpu(2))), arena };
    let web = pool.tenant("web", ("memory.low", "40M"), Cpu(0));
    let batch = pool.tenant("batch", ("memory.max", "32M"), Cpu(1));
    std::thread::scope(|scope| {
        for tenant in [&web, &batch] {
            scope.spawn(|| println!("a hit took {:?}", work(&pool, tenant)));
        }
    });
    let mut executor = pool.executor.into_inner().expect("no thread panicked");
    executor.manager.audit().expect("the audit passes");
    for (id, tenant) in [("web", &web), ("batch", &batch)] {
        let there = tenant.entries.iter().filter(|entry| entry.is_present()).count();
        println!("{id}: {there} of {PAGES} pages in memory, the others in swap");
        executor.ask(|manager, todo| {
            manager
                .remove_tenant(tenant.id, tenant.cpu)
                .map(|e: Effects| e.drain_into(todo))
                .expect("unpinned");
        });
    }
    assert_eq!(executor.manager.swap().used(), 0);
}
