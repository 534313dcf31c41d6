//! Operations on caches and groups, and a naive model of their results. Property tests and the fuzz
//! target `slab-ops` share them.
//!
//! Invariant: the machine's audit passes after every operation; each cache has as many objects in
//! use as the model, each of them with the owner that the model expects.

use pagetide_core::config::{Config, SlabAccounting};
use pagetide_core::frames::gfp::Gfp;
use pagetide_core::frames::node::{NodeSpec, ZoneSpec};
use pagetide_core::frames::zone_type::ZONE_NORMAL;
use pagetide_core::groups::memcg::ROOT;
use pagetide_core::interface::daemon::{Daemon, DaemonRest};
use pagetide_core::interface::effect::{Effect, Step, Token};
use pagetide_core::interface::outcome::Outcome;
use pagetide_core::process::Machine;
use pagetide_core::process::MmId;
use pagetide_core::process::ProcessCall;
use pagetide_core::slab::cached::{CachedId, CachedKind};
use pagetide_core::slab::object::Object;
use pagetide_core::slab::{CacheSpec, CacheTuning, SlabError};
use pagetide_core::units::errno::Errno;
use pagetide_core::units::{CacheId, Cpu, MemcgId, NodeId};

const NR_CPUS: u16 = 2;
const NR_NODES: u8 = 2;

/// Sizes of objects: many per slab, some, one, and one on several pages.
const SIZES: [u32; 8] = [8, 32, 104, 192, 600, 1024, 4096, 9000];

/// One operation. A number selects among the existing items, modulo their count.
#[derive(Clone, Copy, Debug)]
pub enum SlabOp {
    CreateCache { size: u8, reclaimable: bool, account: bool },
    CreateGroup { parent: u8 },
    RemoveGroup { group: u8 },
    Alloc { cache: u8, group: u8, cpu: u8, account: bool, nr: u8 },
    Free { nth: u8, cpu: u8, nr: u8 },
    FreeTwice { nth: u8, cpu: u8, again: u8 },
    FreeToWrong { nth: u8, cache: u8 },
    Keep { nth: u8, holds: Option<u8>, kind: CachedKind },
    FreeKept { nth: u8, cpu: u8 },
    UseKept { nth: u8 },
    TakeBack { nth: u8 },
    Shrink { cache: u8, cpu: u8 },
    DropCaches { cpu: u8 },
    Kworker { steps: u8, cpu: u8 },
    KmemLimit { group: u8, pages: u8 },
    MemoryMax { group: u8, pages: u8 },
    Tune { cache: u8, order: Option<u8>, min_partial: Option<u8>, cpu_partial: Option<u8> },
}

impl SlabOp {
    /// Four bytes encode an operation.
    pub fn from_bytes([what, a, b, c]: [u8; 4]) -> SlabOp {
        let cpu = c & 1;
        let some = |bit: u8, value: u8| (c >> bit & 1 == 1).then_some(value);
        match what % 32 {
            0 => SlabOp::CreateCache { size: a, reclaimable: b & 1 == 1, account: b & 2 == 2 },
            1 | 2 => SlabOp::CreateGroup { parent: a },
            3 => SlabOp::RemoveGroup { group: a },
            4..=11 => SlabOp::Alloc { cache: a, group: b, cpu, account: c & 2 == 2, nr: c >> 2 },
            12..=17 => SlabOp::Free { nth: a, cpu, nr: b },
            18 => SlabOp::FreeTwice { nth: a, cpu, again: c >> 1 & 1 },
            19 => SlabOp::FreeToWrong { nth: a, cache: b },
            20..=22 => {
                let kind = if c & 2 == 2 { CachedKind::Inode } else { CachedKind::Dentry };
                SlabOp::Keep { nth: a, holds: some(0, b), kind }
            }
            23 => SlabOp::FreeKept { nth: a, cpu },
            24 => SlabOp::UseKept { nth: a },
            25 => SlabOp::TakeBack { nth: a },
            26 => SlabOp::Shrink { cache: a, cpu },
            27 => SlabOp::DropCaches { cpu },
            28 | 29 => SlabOp::Kworker { steps: a, cpu },
            30 if c & 1 == 1 => SlabOp::KmemLimit { group: a, pages: b },
            30 => SlabOp::MemoryMax { group: a, pages: b },
            _ => SlabOp::Tune {
                cache: a,
                order: some(0, b % 5),
                min_partial: some(1, b % 7),
                cpu_partial: some(2, b),
            },
        }
    }
}

struct Group {
    id: MemcgId,
    parent: usize,
    mm: MmId,
    online: bool,
}

#[derive(Clone, Copy)]
struct Live {
    object: Object,
    /// Index of its cache.
    cache: usize,
    /// Index of the group that is charged.
    payer: usize,
}

struct Kept {
    id: CachedId,
    live: Live,
    holds: Option<Live>,
}

pub struct SlabWorld {
    machine: Machine,
    accounting: SlabAccounting,
    caches: Vec<(CacheId, CacheSpec)>,
    groups: Vec<Group>,
    live: Vec<Live>,
    kept: Vec<Kept>,
    /// The highest cache id so far.
    highest: u32,
    now: u64,
}

impl SlabWorld {
    pub fn new(config: Config) -> SlabWorld {
        let mut node = NodeSpec::default();
        node.zones[ZONE_NORMAL] = ZoneSpec::all_free(2048);
        let nodes = vec![node; usize::from(NR_NODES)];
        let accounting = config.slab_accounting;
        let mut machine = Machine::new(&nodes, NR_CPUS, config).expect("the machine is valid");
        let mm = machine.create_mm(ROOT).unwrap();
        let highest = machine.slabs.kmem_caches().map(|(id, _)| id.0).max().unwrap_or(0);
        let groups = vec![Group { id: ROOT, parent: 0, mm, online: true }];
        let mut world = SlabWorld {
            machine,
            accounting,
            caches: Vec::new(),
            groups,
            live: Vec::new(),
            kept: Vec::new(),
            highest,
            now: 0,
        };
        for size in [1, 3, 5] {
            world.create_cache(size, size == 3, size != 1);
        }
        world
    }

    /// Performs an operation and compares the machine with the model.
    pub fn step(&mut self, op: SlabOp) {
        match op {
            SlabOp::CreateCache { size, reclaimable, account } => {
                self.create_cache(size, reclaimable, account);
            }
            SlabOp::CreateGroup { parent } => {
                let parent = self.online(parent);
                self.create_group(parent);
            }
            SlabOp::RemoveGroup { group } => {
                let group = self.online(group);
                self.remove_group(group);
            }
            SlabOp::Alloc { cache, group, cpu, account, nr } => {
                for _ in 0..=nr {
                    self.alloc(cache, group, Cpu(cpu.into()), account);
                }
            }
            SlabOp::Free { nth, cpu, nr } => {
                for at in 0..=nr / 4 {
                    let Some(live) = self.take_live(nth.wrapping_add(at.wrapping_mul(7))) else {
                        break;
                    };
                    let cache = self.caches[live.cache].0;
                    let freed = self.machine.kmem_cache_free(cache, live.object, Cpu(cpu.into()));
                    assert_eq!(freed, Ok(()));
                }
            }
            SlabOp::FreeTwice { nth, cpu, again } => self.free_twice(nth, cpu, again),
            SlabOp::FreeToWrong { nth, cache } => {
                let Some(live) = self.take_live(nth) else { return };
                self.live.push(live);
                let wrong = usize::from(cache) % self.caches.len();
                if wrong != live.cache {
                    let wrong = self.caches[wrong].0;
                    self.refused(wrong, live.object, Cpu(0), SlabError::WrongCache);
                }
                self.refused(CacheId(54_321), live.object, Cpu(1), SlabError::UnknownCache);
            }
            SlabOp::Keep { nth, holds, kind } => self.keep(nth, holds, kind),
            SlabOp::FreeKept { nth, cpu } => {
                self.forget_pruned();
                let Some(at) = nth_of(nth, self.kept.len()) else { return };
                let Kept { live, holds, .. } = self.kept[at];
                for it in [Some(live), holds].into_iter().flatten() {
                    let cache = self.caches[it.cache].0;
                    self.refused(cache, it.object, Cpu(cpu.into()), SlabError::IsCached);
                }
            }
            SlabOp::UseKept { nth } => {
                if let Some(at) = nth_of(nth, self.kept.len()) {
                    self.machine.use_cached(self.kept[at].id);
                }
            }
            SlabOp::TakeBack { nth } => {
                self.forget_pruned();
                let Some(at) = nth_of(nth, self.kept.len()) else { return };
                self.take_back(at);
            }
            SlabOp::Shrink { cache, cpu } => {
                let cache = self.caches[usize::from(cache) % self.caches.len()].0;
                self.machine.shrink_cache(cache, Cpu(cpu.into()));
                let usage = self.machine.slab_usage(cache);
                assert_eq!(usage.active_slabs, usage.num_slabs, "no slab is empty");
            }
            SlabOp::DropCaches { cpu } => self.machine.drop_slab(Cpu(cpu.into())).discard(),
            SlabOp::Kworker { steps, cpu } => {
                for _ in 0..steps % 8 {
                    self.kworker(Cpu(cpu.into()));
                    self.audit(op);
                }
            }
            SlabOp::KmemLimit { group, pages } => {
                self.limit(group, "memory.kmem.limit_in_bytes", pages);
            }
            SlabOp::MemoryMax { group, pages } => self.limit(group, "memory.max", pages),
            SlabOp::Tune { cache, order, min_partial, cpu_partial } => {
                let cache = self.caches[usize::from(cache) % self.caches.len()].0;
                let tuning = CacheTuning {
                    order,
                    min_partial: min_partial.map(u32::from),
                    cpu_partial: cpu_partial.map(u32::from),
                };
                let before = self.machine.digest();
                if self.machine.tune_cache(cache, tuning).is_err() {
                    assert_eq!(self.machine.digest(), before, "nothing has changed");
                }
            }
        }
        self.forget_pruned();
        let highest = self.machine.slabs.kmem_caches().map(|(id, _)| id.0).max();
        self.highest = self.highest.max(highest.unwrap_or(0));
        self.audit(op);
        self.compare(op);
    }

    fn kworker(&mut self, cpu: Cpu) -> Step<DaemonRest> {
        let (step, effects) = self.machine.step_daemon(Daemon::Kworker, cpu, self.now);
        effects.discard();
        step
    }

    /// Frees everything and checks that nothing is left.
    pub fn finish(mut self) {
        self.forget_pruned();
        while !self.kept.is_empty() {
            self.take_back(0);
        }
        while let Some(live) = self.take_live(0) {
            let cache = self.caches[live.cache].0;
            assert_eq!(self.machine.kmem_cache_free(cache, live.object, Cpu(0)), Ok(()));
        }
        let groups = self.machine.memcgs().len();
        for group in (1..self.groups.len()).rev() {
            if self.groups[group].online {
                self.remove_group(group);
            }
        }
        while self.kworker(Cpu(0)) == Step::Continue {}
        self.machine.audit().expect("everything was freed");
        let ids: Vec<CacheId> = self.machine.slabs.kmem_caches().map(|(id, _)| id).collect();
        // Owner vectors and the memory of clones are objects of the kernel's own caches.
        for &id in ids.iter().chain(&ids) {
            self.machine.shrink_cache(id, Cpu(1));
        }
        self.machine.audit().expect("everything was freed");
        assert_eq!(self.machine.total_slab_usage(), Default::default());
        assert!(self.machine.slabs.kmem_caches().all(|(_, cache)| cache.nr_slabs == 0));
        assert_eq!(self.machine.memcg_ids().count(), 1, "no group is left");
        // Stocks refer to owners that are gone, and hold at most a page each.
        let stocks = match self.accounting {
            SlabAccounting::PerObject => NR_CPUS.into(),
            _ => 0,
        };
        assert!(self.machine.memcgs()[0].kernel_pages <= stocks);
        if groups > 1 {
            self.machine.create_memcg("again".into(), ROOT).expect("there is room");
            assert_eq!(self.machine.memcgs().len(), groups, "a group id is reused");
        }
        let cache = self.machine.create_cache(spec(32, false, true)).expect("it is possible");
        assert!(cache.0 <= self.highest + 1, "ids of removed caches are reused");
    }

    fn audit(&self, op: SlabOp) {
        if let Err(violation) = self.machine.audit() {
            panic!("after {op:?}: {violation}");
        }
    }

    fn compare(&self, op: SlabOp) {
        let kept = self.kept.iter().flat_map(|kept| [Some(kept.live), kept.holds]).flatten();
        let all: Vec<Live> = self.live.iter().copied().chain(kept).collect();
        for (at, (id, spec)) in self.caches.iter().enumerate() {
            let known = all.iter().filter(|live| live.cache == at).count() as u64;
            let usage = self.machine.slab_usage(*id);
            assert_eq!(usage.active_objs, known, "{op:?}: {id:?}");
            let size = u64::from(spec.object_size).next_multiple_of(8);
            assert_eq!(usage.active_bytes, known * size);
            assert!(usage.bytes >= usage.num_objs * size);
        }
        for live in &all {
            assert_eq!(self.machine.cache_of_object(live.object), self.caches[live.cache].0);
            let owner = self.machine.memcg_of_object(live.object);
            assert_eq!(owner, self.groups[self.owner(live.payer)].id, "{op:?}: {:?}", live.object);
        }
    }

    /// Owner of objects that `payer` was charged for: the nearest existing group; with
    /// `PerGroupCaches` always `payer`.
    fn owner(&self, payer: usize) -> usize {
        let mut at = payer;
        while self.accounting != SlabAccounting::PerGroupCaches && !self.groups[at].online {
            at = self.groups[at].parent;
        }
        at
    }

    fn online(&self, nth: u8) -> usize {
        let online: Vec<usize> =
            (0..self.groups.len()).filter(|&at| self.groups[at].online).collect();
        online[usize::from(nth) % online.len()]
    }

    fn create_cache(&mut self, size: u8, reclaimable: bool, account: bool) {
        let number = self.caches.len();
        if number == 12 {
            return;
        }
        let size = SIZES[usize::from(size) % SIZES.len()];
        let mut spec = spec(size, reclaimable, account);
        spec.name = format!("cache-{number}");
        let id = self.machine.create_cache(spec.clone()).expect("it is possible");
        assert_eq!(self.machine.create_cache(spec.clone()), Err(SlabError::DuplicateName));
        self.highest = self.highest.max(id.0);
        self.caches.push((id, spec));
    }

    fn create_group(&mut self, parent: usize) {
        let id = self.machine.create_memcg("g".into(), self.groups[parent].id).expect("room");
        self.machine.charge_counters(id, pagetide_core::units::Cpu(0), 1);
        let mm = self.machine.create_mm(id).unwrap();
        assert!(
            !self.groups.iter().any(|group| group.online && group.id == id),
            "{id:?} is used twice"
        );
        self.groups.push(Group { id, parent, mm, online: true });
    }

    fn remove_group(&mut self, group: usize) {
        let id = self.groups[group].id;
        let has_children = (1..self.groups.len())
            .any(|at| self.groups[at].online && self.groups[at].parent == group);
        if group == 0 || has_children {
            assert_eq!(self.machine.remove_memcg(id).err(), Some(Errno::Ebusy));
            return;
        }
        if !self.machine.is_exited(self.groups[group].mm) {
            assert_eq!(self.machine.remove_memcg(id).err(), Some(Errno::Ebusy), "it has a task");
            self.machine.exit_mm(self.groups[group].mm, Cpu(0)).unwrap().discard();
        }
        self.machine.remove_memcg(id).expect("the group is empty").discard();
        self.groups[group].online = false;
    }

    fn alloc(&mut self, cache: u8, group: u8, cpu: Cpu, account: bool) {
        let cache = usize::from(cache) % self.caches.len();
        let group = self.online(group);
        let (id, is_accounted) = (self.caches[cache].0, account || self.caches[cache].1.account);
        let memcg = self.groups[group].id;
        let fast = self.machine.kmem_cache_alloc(id, memcg, account, cpu);
        let Some(object) = fast.or_else(|| self.alloc_slow(id, group, cpu, account)) else {
            return;
        };
        assert!(
            !self.live.iter().any(|live| live.object == object),
            "{object:?} was allocated twice"
        );
        // Not charged as long as the group has no clone, or if there was no memory to record the
        // owner.
        let owner = self.machine.memcg_of_object(object);
        let payer = if owner == memcg { group } else { 0 };
        assert!(owner == memcg || owner == ROOT, "{object:?} is {owner:?}'s, not {memcg:?}'s");
        assert!(is_accounted || owner == ROOT, "{object:?} is not accounted");
        self.live.push(Live { object, cache, payer });
    }

    fn alloc_slow(
        &mut self,
        cache: CacheId,
        group: usize,
        cpu: Cpu,
        account: bool,
    ) -> Option<Object> {
        if self.machine.is_exited(self.groups[group].mm) {
            self.groups[group].mm = self.machine.create_mm(self.groups[group].id).unwrap();
        }
        let node = NodeId((cpu.0 % u16::from(NR_NODES)) as u8);
        let mm = self.groups[group].mm;
        let mut call = ProcessCall::kmem_alloc(mm, node, cache, account, Gfp::KERNEL);
        for _ in 0..100_000 {
            self.now += 1000;
            let mut effects = Vec::new();
            let (step, more) = self.machine.step(&mut call, cpu, self.now);
            more.drain_into(&mut effects);
            for effect in effects {
                match effect {
                    Effect::OomKill(mm) => self.machine.exit_mm(mm, cpu).unwrap().discard(),
                    Effect::Submit(_) | Effect::CopyPage { .. } => {
                        panic!("no user pages in this world: {effect:?}")
                    }
                    _ => {}
                }
            }
            match step {
                Step::Continue => {}
                Step::Wait(sleep) => {
                    assert!(matches!(sleep.token, Token::Throttled(..)), "{sleep:?}");
                    self.now += sleep.timeout.min(100_000_000);
                }
                Step::Done(Outcome::Object(object)) => return Some(object),
                Step::Done(Outcome::NoObject) => return None,
                Step::Done(outcome) => panic!("an allocation ends as {outcome:?}"),
            }
        }
        panic!("the allocation never ends");
    }

    fn take_live(&mut self, nth: u8) -> Option<Live> {
        // There are more objects than a byte can count.
        let at = usize::from(nth) * 37;
        (!self.live.is_empty()).then(|| self.live.swap_remove(at % self.live.len()))
    }

    /// A free that must fail and change nothing.
    fn refused(&mut self, cache: CacheId, object: Object, cpu: Cpu, error: SlabError) {
        let before = self.machine.digest();
        assert_eq!(self.machine.kmem_cache_free(cache, object, cpu), Err(error), "{object:?}");
        assert_eq!(self.machine.digest(), before, "nothing has changed");
    }

    fn free_twice(&mut self, nth: u8, cpu: u8, again: u8) {
        let Some(live) = self.take_live(nth) else { return };
        let cache = self.caches[live.cache].0;
        assert_eq!(self.machine.kmem_cache_free(cache, live.object, Cpu(cpu.into())), Ok(()));
        let again = Cpu(again.into());
        if self.machine.cache_of_object(live.object) == cache {
            self.refused(cache, live.object, again, SlabError::DoubleFree);
            let kept = self.machine.cache_object(live.object, None, CachedKind::Inode);
            assert_eq!(kept, Err(SlabError::DoubleFree));
        } else {
            // It was the last object of a clone of a removed group.
            assert!(self.machine.kmem_cache_free(cache, live.object, again).is_err());
        }
    }

    fn keep(&mut self, nth: u8, holds: Option<u8>, kind: CachedKind) {
        let Some(live) = self.take_live(nth) else { return };
        let holds = holds.and_then(|nth| self.take_live(nth));
        let held = holds.map(|holds| holds.object);
        let twice = self.machine.cache_object(live.object, Some(live.object), kind);
        assert_eq!(twice, Err(SlabError::IsCached));
        let id = self.machine.cache_object(live.object, held, kind).expect("both are in use");
        let again = self.machine.cache_object(live.object, None, kind);
        assert_eq!(again, Err(SlabError::IsCached));
        self.kept.push(Kept { id, live, holds });
    }

    fn take_back(&mut self, at: usize) {
        let Kept { id, live, holds } = self.kept.swap_remove(at);
        let expected = (live.object, holds.map(|holds| holds.object));
        assert_eq!(self.machine.uncache(id), Some(expected));
        assert_eq!(self.machine.uncache(id), None);
        self.live.extend([Some(live), holds].into_iter().flatten());
    }

    /// Forgets objects that the kernel has freed. An object that a freed one held is still cached,
    /// with an unknown handle: `drop_slab` frees it, too.
    fn forget_pruned(&mut self) {
        let machine = &self.machine;
        let before = self.kept.len();
        self.kept.retain(|kept| machine.is_still_cached(kept.id));
        if self.kept.len() < before {
            while !self.kept.is_empty() {
                self.take_back(0);
            }
            for _ in 0..4 {
                self.machine.drop_slab(Cpu(0)).discard();
            }
        }
    }

    fn limit(&mut self, group: u8, control: &str, pages: u8) {
        let group = self.online(group);
        let text = match pages {
            200.. => "max".to_string(),
            pages => format!("{}K", u64::from(pages) * 4),
        };
        let text = if control != "memory.max" && text == "max" { "-1".into() } else { text };
        let memcg = self.groups[group].id;
        let write = self.machine.write_group_control(memcg, control, &text);
        // A call would reclaim down to the limit; a limit of kernel memory below the usage is
        // refused.
        let may_fail = group == 0 || control != "memory.max";
        match write {
            Ok((_, effects)) => effects.discard(),
            Err(error) => assert!(may_fail, "{error}"),
        }
    }
}

fn nth_of(nth: u8, len: usize) -> Option<usize> {
    (len > 0).then(|| usize::from(nth) % len)
}

fn spec(object_size: u32, reclaimable: bool, account: bool) -> CacheSpec {
    CacheSpec { name: "last".into(), object_size, reclaimable, account }
}
