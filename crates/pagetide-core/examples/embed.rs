//! A pool of 16 MiB for two tenants of 12 MiB each; an array stands for the swap file. With several
//! threads the executor needs a mutex, but a present page is pinned without it, by an atomic.

use pagetide_core::config::Config;
use pagetide_core::frames::node::{NodeSpec, ZoneSpec};
use pagetide_core::frames::zone_type::ZONE_NORMAL;
use pagetide_core::interface::effect::{Effect, Io};
use pagetide_core::interface::executor::{frame_of, Executor, World};
use pagetide_core::interface::manager::Manager;
use pagetide_core::interface::slots::{Slots, TenantCall, TenantEntry, TenantId};
use pagetide_core::swap::SwapOptions;
use pagetide_core::units::{Cpu, NodeId, Pfn};
use std::{sync::Arc, time::Instant};

const TENANT_PAGES: u32 = 3072;

/// The world: the bytes of the frames, those of the swap slots, a clock.
struct Memory(Vec<[u8; 4096]>, Vec<[u8; 4096]>, Instant);

impl World for Memory {
    fn now(&mut self) -> u64 {
        self.2.elapsed().as_nanos() as u64
    }
    fn submit(&mut self, io: Io) -> Option<bool> {
        match io {
            Io::SwapOut { slot, pfn, .. } => self.1[slot.idx()] = self.0[pfn.idx()],
            Io::SwapIn { slot, pfn } => self.0[pfn.idx()] = self.1[slot.idx()],
            Io::ReadFile { .. } | Io::WriteFile { .. } => return Some(false), // there are no files
        }
        Some(true)
    }
    fn next_completion(&mut self, _patience: u64) -> Option<(Io, bool)> {
        None // every I/O ends at once
    }
    fn move_bytes(&mut self, effect: Effect) -> bool {
        match effect {
            Effect::Zero { frame, order } => self.0[frame.idx()..][..1 << order].fill([0; 4096]),
            Effect::CopyPage { from, to } => self.0[to.idx()] = self.0[from.idx()],
            _ => {}
        }
        true
    }
}

/// Adds 1 to the first byte of a page; returns what it was. `None`: there is no memory.
fn increment(
    pool: &mut Executor<Slots, Memory>,
    (id, entries): &(TenantId, Arc<[TenantEntry]>),
    page: u32,
) -> Option<u8> {
    let entry = &entries[page as usize];
    let mut get = TenantCall::get(*id, NodeId(0), page, true);
    let frame: Pfn = entry.pin(true).or_else(|| frame_of(pool.run(&mut get, Cpu(0))))?;
    let byte = &mut pool.world.0[frame.idx()][0];
    *byte += 1;
    entry.unpin();
    Some(*byte - 1)
}

pub fn main() {
    let mut node = NodeSpec::default();
    node.zones[ZONE_NORMAL] = ZoneSpec::all_free(4096);
    let mut manager = Manager::with_owners(Slots::new(), &[node], 1, Config::default()).unwrap();
    manager.swapon(SwapOptions::new(2 * TENANT_PAGES));
    let memory = Memory(vec![[0; 4096]; 4096], vec![[0; 4096]; 6144], Instant::now());
    let mut pool = Executor::new(manager, memory, Cpu(0));
    let tenants = [("web", "memory.low", "10M"), ("batch", "memory.max", "8M")];
    let tenants = tenants.map(|(group, control, value)| {
        pool.ask(|manager, todo| {
            let memcg = manager.create_memcg(group.into(), Manager::<Slots>::ROOT).unwrap();
            manager.write_group_control(memcg, control, value).unwrap().1.drain_into(todo);
            manager.create_tenant(memcg, TENANT_PAGES.into()).unwrap()
        })
    });
    for (lap, page) in (0..3).flat_map(|lap| (0..TENANT_PAGES).map(move |page| (lap, page))) {
        tenants.iter().for_each(|it| assert_eq!(increment(&mut pool, it, page), Some(lap)));
    }
    let held = tenants.map(|(_, entries)| entries.iter().filter(|it| it.is_present()).count());
    println!("{held:?} of {TENANT_PAGES} pages in memory, the others in swap");
    pool.manager.audit().expect("every invariant holds");
}
