//! Owners for programs that embed the manager: their threads share page tables with the manager.
//!
//! Linux: an address space of anonymous memory, seen from user space: page-table entries,
//! `get_user_pages`, `FOLL_PIN`. A *tenant* has a table with one [`TenantEntry`] per page, which is
//! an atomic word. A thread *pins* a present page with one atomic operation. The manager, which is
//! behind a lock, takes away only pages without pins. [`TenantCall::get`] requests a page that is
//! not present.
//!
//! Invariant: a present entry's frame names the entry (`Page::{mapping, index}`) and has a
//! `mapcount` of 1. A thread can pin a page only while it is present, and the page stays present
//! until the pin ends.

use crate::audit::violation::{check, Violation};
use crate::frames::gfp::Gfp;
use crate::frames::page::PageFlags;
use crate::frames::page_request::{PageRequest, SlowRequest};
use crate::groups::memcg::ReclaimScope;
use crate::interface::bad_id::BadId;
use crate::interface::call::RequestOwners;
use crate::interface::ctx::Ctx;
use crate::interface::effect::{Effect, Effects, Sleep, Step};
use crate::interface::manager::Manager;
use crate::interface::outcome::Contents;
use crate::interface::outcome::FaultedPage;
use crate::interface::outcome::Frame;
use crate::interface::outcome::Outcome;
use crate::interface::owners::{
    BackingStore, OwnerSlot, Owners, PageReferences, UnmapResult, UnmapTarget,
};
use crate::stats::vmstat::Event;
use crate::units::digest::{self, Digest};
use crate::units::{Cpu, IdVec, MemcgId, NodeId, Pfn, Requester, SwapSlot, VmaId};
use alloc::sync::Arc;
use core::sync::atomic::{AtomicU64, Ordering};

/// A request of a tenant in progress.
pub type TenantCall = crate::interface::call::Call<TenantRequest>;

const PRESENT: u64 = 1 << 63;
const YOUNG: u64 = 1 << 62;
const DIRTY: u64 = 1 << 61;
const MOVING: u64 = 1 << 60;
const SWAPPED: u64 = 1 << 59;
/// In a frame, but threads must not use it: the page is being zeroed, or its tenant is being
/// removed.
const HELD: u64 = 1 << 58;
const PIN: u64 = 1 << 32;
const PINS: u64 = (1 << 24) - 1;
const WHERE: u64 = u32::MAX as u64;

const fn pins(word: u64) -> u64 {
    (word / PIN) & PINS
}

/// One page of a tenant, as its threads and the manager see it.
///
/// Bits: 0-31 frame or swap slot; 32-55 number of pins; 58 held back from threads; 59 in swap; 60
/// being moved; 61 written (so a pin for writing needs no request); 62 used since the last query;
/// 63 present.
#[derive(Debug, Default)]
pub struct TenantEntry(AtomicU64);

impl digest::State for TenantEntry {
    fn digest(&self, digest: &mut Digest) {
        digest.write_u64(self.0.load(Ordering::Acquire));
    }
}

impl TenantEntry {
    /// Pins the page if it is present. A pin for writing also requires that the page was written
    /// before. Returns the page's frame, which does not change until [`TenantEntry::unpin`]. Takes
    /// one atomic operation, or two for the first use since the last check by reclaim. `None`:
    /// request the page ([`TenantCall::get`]).
    #[inline]
    pub fn pin(&self, write: bool) -> Option<Pfn> {
        let was = self.0.fetch_add(PIN, Ordering::Acquire);
        let wanted = if write { PRESENT | DIRTY } else { PRESENT };
        if was & wanted != wanted || pins(was) >= PINS / 2 {
            self.0.fetch_sub(PIN, Ordering::Release);
            return None;
        }
        if was & YOUNG == 0 {
            self.0.fetch_or(YOUNG, Ordering::Relaxed);
        }
        Some(Pfn((was & WHERE) as u32))
    }

    /// Ends a pin. All earlier writes to the page are kept. Does nothing if the page has no pin.
    #[inline]
    pub fn unpin(&self) {
        let one_less = |was: u64| (pins(was) > 0).then(|| was - PIN);
        let was = self.0.fetch_update(Ordering::Release, Ordering::Relaxed, one_less);
        debug_assert!(was.is_ok(), "the page is not pinned");
    }

    /// Whether the page is in memory at this moment.
    pub fn is_present(&self) -> bool {
        self.0.load(Ordering::Acquire) & PRESENT != 0
    }

    /// Whether any thread has pinned the page.
    pub fn is_pinned(&self) -> bool {
        pins(self.0.load(Ordering::Acquire)) > 0
    }

    /// Changes everything except the pins. If the closure returns `None`, the entry is unchanged.
    /// Returns the old word.
    fn change(&self, f: impl Fn(u64) -> Option<u64>) -> Result<u64, u64> {
        let keeping_pins = |was: u64| f(was).map(|new| new & !(PINS * PIN) | was & (PINS * PIN));
        self.0.fetch_update(Ordering::AcqRel, Ordering::Acquire, keeping_pins)
    }

    /// Makes a held page available to threads.
    fn publish(&self) {
        let _ = self.change(|was| (was & HELD != 0).then_some(was & !HELD | PRESENT));
    }

    /// Keeps threads from using an unpinned page. Returns false if the page is pinned.
    fn hold(&self) -> bool {
        let held = self.change(|was| match was & PRESENT != 0 {
            true => (pins(was) == 0).then_some(was & !PRESENT | HELD),
            false => Some(was),
        });
        held.is_ok()
    }

    /// Maps a frame, pinned once.
    fn map_pinned(&self, pfn: Pfn, write: bool) {
        let dirty = if write { DIRTY } else { 0 };
        self.0.fetch_add(PIN, Ordering::AcqRel);
        let _ = self.change(|_| Some(PRESENT | YOUNG | dirty | u64::from(pfn.0)));
    }

    fn load(&self) -> EntryState {
        let word = self.0.load(Ordering::Acquire);
        let place = (word & WHERE) as u32;
        match word & (PRESENT | MOVING | SWAPPED | HELD) {
            PRESENT => EntryState::Present { pfn: Pfn(place), dirty: word & DIRTY != 0 },
            MOVING => EntryState::Moving(Pfn(place)),
            SWAPPED => EntryState::Swapped(SwapSlot(place)),
            HELD => EntryState::Held(Pfn(place)),
            _ => EntryState::Empty,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum EntryState {
    /// The page never had contents.
    Empty,
    /// The page is in a frame.
    Present { pfn: Pfn, dirty: bool },
    /// The page is in swap.
    Swapped(SwapSlot),
    /// The page is being moved away from this frame.
    Moving(Pfn),
    /// The page is in a frame, but threads must not use it yet.
    Held(Pfn),
}

/// Id of a tenant. The tenant's number is reused after its removal; a `TenantId` is unique.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TenantId {
    asker: Requester,
    generation: u64,
}

impl TenantId {
    /// The tenant as a requester, for calls that do not request a page
    /// ([`TenantCall::compact_memory`]).
    pub const fn asker(self) -> Requester {
        self.asker
    }
}

/// Why a tenant cannot be created or removed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TenantError {
    /// Unknown group.
    NoGroup,
    /// Unknown tenant.
    NoTenant,
    /// More pages than an owner can have (2^32 - 1).
    TooLarge,
    /// A page of the tenant is pinned.
    Pinned,
    /// Unknown CPU.
    NoCpu,
}

impl core::fmt::Display for TenantError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            TenantError::NoGroup => "there is no such group",
            TenantError::NoTenant => "there is no such tenant",
            TenantError::TooLarge => "a tenant has at most 4294967295 pages",
            TenantError::Pinned => "a page of the tenant is pinned",
            TenantError::NoCpu => "there is no such CPU",
        })
    }
}

#[derive(Clone, Debug, digest::State)]
struct TenantTable {
    memcg: MemcgId,
    born: u64,
    entries: Arc<[TenantEntry]>,
    nr_over_high: u64,
}

/// The tenants of a manager.
#[derive(Debug, Default, digest::State)]
pub struct Slots {
    tenants: IdVec<Requester, Option<TenantTable>>,
    /// Tenants created so far.
    nr_created: u64,
}

impl Slots {
    /// An empty table of tenants.
    pub fn new() -> Slots {
        Slots::default()
    }

    fn entry(&self, at: OwnerSlot) -> Option<&TenantEntry> {
        self.tenants.get(at.owner as usize)?.as_ref()?.entries.get(at.index as usize)
    }

    fn tenant_mut(&mut self, asker: Requester) -> Option<&mut TenantTable> {
        self.tenants.get_mut(asker.idx())?.as_mut()
    }
}

/// A request that brings a page of a tenant into memory and pins it.
#[derive(Clone, Debug)]
pub struct TenantRequest {
    tenant: TenantId,
    index: u32,
    write: bool,
    begun: bool,
    major: bool,
    fresh: bool,
}

impl TenantCall {
    /// Requests a page of a tenant for a thread on `node`, for writing or only for reading. Ends as
    /// [`Outcome::Got`] with the page pinned once ([`TenantEntry::unpin`] ends the pin), as
    /// [`Outcome::NoMemory`] (no tenant is killed), [`Outcome::IoError`], or [`Outcome::BadId`].
    pub fn get(tenant: TenantId, node: NodeId, index: u32, write: bool) -> TenantCall {
        let get = TenantRequest { tenant, index, write, begun: false, major: false, fresh: false };
        TenantCall::for_owner(tenant.asker, node, get)
    }
}

impl Manager<Slots> {
    /// Adds a tenant with this many pages, charged to a group. Its threads share its entries.
    ///
    /// # Errors
    /// [`TenantError::NoGroup`], [`TenantError::TooLarge`].
    pub fn create_tenant(
        &mut self,
        memcg: MemcgId,
        pages: u64,
    ) -> Result<(TenantId, Arc<[TenantEntry]>), TenantError> {
        if !self.groups.memcg_is_online(memcg) {
            return Err(TenantError::NoGroup);
        }
        let pages = u32::try_from(pages).map_err(|_| TenantError::TooLarge)?;
        let entries: Arc<[TenantEntry]> = (0..pages).map(|_| TenantEntry::default()).collect();
        self.owners.nr_created += 1;
        let born = self.owners.nr_created;
        let tenant = TenantTable { memcg, born, entries: entries.clone(), nr_over_high: 0 };
        let tenants = &mut self.owners.tenants;
        let at = tenants.iter().position(Option::is_none).unwrap_or(tenants.len());
        if at == tenants.len() {
            tenants.push(None);
        }
        tenants[at] = Some(tenant);
        self.groups.memcgs[memcg].nr_tasks += 1;
        Ok((TenantId { asker: Requester(at as u32), generation: born }, entries))
    }

    /// Removes a tenant: frees its pages and swap slots, and makes its number reusable.
    ///
    /// # Errors
    /// [`TenantError::NoTenant`], [`TenantError::NoCpu`], [`TenantError::Pinned`].
    pub fn remove_tenant(&mut self, id: TenantId, cpu: Cpu) -> Result<Effects<'_>, TenantError> {
        if !self.groups.has_cpu(cpu) {
            return Err(TenantError::NoCpu);
        }
        let tenant = self.owners.tenant_mut(id.asker).filter(|tenant| tenant.born == id.generation);
        let tenant = tenant.ok_or(TenantError::NoTenant)?;
        let memcg = tenant.memcg;
        let entries = tenant.entries.clone();
        // From here on no thread can pin a page of this tenant.
        if !entries.iter().all(TenantEntry::hold) {
            entries.iter().for_each(TenantEntry::publish);
            return Err(TenantError::Pinned);
        }
        for entry in entries.iter() {
            let state = entry.load();
            let _ = entry.change(|_| Some(0));
            match state {
                EntryState::Empty | EntryState::Moving(_) => {}
                EntryState::Present { pfn, .. } | EntryState::Held(pfn) => {
                    self.mem.page_remove_rmap(pfn);
                    self.free_anon_page(pfn, cpu);
                }
                EntryState::Swapped(slot) => {
                    self.swap_unmap(slot, cpu);
                    self.free_cached_swap_page(slot, cpu);
                }
            }
        }
        self.abandon_compactions(id.asker, cpu);
        self.owners.tenants[id.asker] = None;
        self.groups.memcgs[memcg].nr_tasks -= 1;
        Ok(self.take_effects())
    }

    fn get_step(
        &mut self,
        get: &mut TenantRequest,
        slow: &mut Option<SlowRequest>,
        ctx: &Ctx,
    ) -> Step<Outcome> {
        // The number may belong to a newer tenant now.
        if self.owners.generation(ctx.asker) != Some(get.tenant.generation) {
            return Step::Done(Outcome::BadId(BadId::Mm(ctx.asker)));
        }
        if !core::mem::replace(&mut get.begun, true) {
            self.mem.vmstat.count(Event::Pgfault);
            self.groups.memcgs[ctx.memcg].events.count(Event::Pgfault);
            self.mem.work.faults += 1;
        }
        let at = OwnerSlot { owner: ctx.asker.0, index: get.index, store: BackingStore::Swap };
        loop {
            let Some(entry) = self.owners.entry(at) else {
                let page = BadId::Page(VmaId(at.owner));
                return Step::Done(Outcome::BadId(page));
            };
            let done = match entry.load() {
                EntryState::Present { pfn, dirty } => {
                    if get.write && !dirty {
                        self.reuse_page(at, pfn, ctx.cpu);
                        continue;
                    }
                    // A page that is present stays present during this call, because only the
                    // manager takes it away.
                    entry.pin(get.write).map(|pfn| self.got(get, pfn, Contents::Kept))
                }
                EntryState::Moving(pfn) => {
                    self.mem.pages[pfn].set(PageFlags::WAITERS);
                    Some(Step::Wait(Sleep::on_page(pfn)))
                }
                // The world has carried out the effect that zeroes the page before this step.
                EntryState::Held(_) => {
                    entry.publish();
                    None
                }
                EntryState::Swapped(slot) => self.get_from_swap(get, at, slot, slow, ctx),
                EntryState::Empty => self.get_fresh(get, at, slow, ctx),
            };
            if let Some(step) = done {
                return step;
            }
        }
    }

    fn got(&self, get: &TenantRequest, pfn: Pfn, contents: Contents) -> Step<Outcome> {
        let contents = match (get.major, get.fresh) {
            (true, _) => Contents::Read,
            (false, true) => Contents::Fresh,
            (false, false) => contents,
        };
        Step::Done(Outcome::Got(FaultedPage { frame: Frame::At(pfn), contents, major: get.major }))
    }

    /// The page will be written, so its copy in swap becomes stale.
    fn reuse_page(&mut self, at: OwnerSlot, pfn: Pfn, cpu: Cpu) {
        let page = &self.mem.pages[pfn];
        if page.has(PageFlags::SWAPCACHE) && !page.has(PageFlags::WRITEBACK) {
            self.delete_from_swap_cache(pfn, Default::default(), cpu);
        }
        self.mem.pages[pfn].set(PageFlags::DIRTY);
        if let Some(entry) = self.owners.entry(at) {
            entry.0.fetch_or(DIRTY | YOUNG, Ordering::AcqRel);
        }
        self.mem.work.ptes_set += 1;
    }

    fn get_fresh(
        &mut self,
        get: &mut TenantRequest,
        at: OwnerSlot,
        slow: &mut Option<SlowRequest>,
        ctx: &Ctx,
    ) -> Option<Step<Outcome>> {
        let request = PageRequest::page(Gfp::HIGHUSER_MOVABLE.with(Gfp::ZERO), ctx.memcg);
        let pfn = match self.request_page(ctx, slow, request) {
            Step::Continue => return Some(Step::Continue),
            Step::Wait(sleep) => return Some(Step::Wait(sleep)),
            Step::Done(Ok(pfn)) => pfn,
            Step::Done(Err(_)) => return Some(Step::Done(Outcome::NoMemory)),
        };
        let held = DIRTY | YOUNG | HELD | u64::from(pfn.0);
        match self.owners.entry(at) {
            Some(entry) if entry.load() == EntryState::Empty => {
                let _ = entry.change(|_| Some(held));
            }
            // Another thread has changed the entry first.
            _ => {
                self.discard_charged(ctx.cpu, pfn, ctx.memcg);
                return None;
            }
        }
        self.mem.work.pages_allocated_zeroed += 1;
        self.step.effects.push_contents(Effect::Zero { frame: pfn, order: 0 });
        self.begin_anon_page(pfn, at, PageFlags::EMPTY, ctx.memcg, ctx.cpu);
        self.mem.page_add_rmap(pfn);
        self.mem.work.ptes_set += 1;
        self.folio_add_lru(ctx.cpu, pfn);
        get.fresh = true;
        // The world zeroes the page before the next step, which publishes it.
        Some(Step::Continue)
    }

    fn get_from_swap(
        &mut self,
        get: &mut TenantRequest,
        at: OwnerSlot,
        slot: SwapSlot,
        slow: &mut Option<SlowRequest>,
        ctx: &Ctx,
    ) -> Option<Step<Outcome>> {
        self.mem.work.cache_ops += 1;
        let Some(pfn) = self.swap_cache_page(slot, ctx.cpu) else {
            if get.major {
                // The page was read for this request and evicted again, or the read failed.
                get.major = false;
            }
            return match self.read_swap_page(slot, true, slow, ctx) {
                Err(Some(step)) => Some(step),
                Err(None) => Some(Step::Done(Outcome::NoMemory)),
                Ok(()) => {
                    get.major = true;
                    self.mem.vmstat.count(Event::Pgmajfault);
                    self.groups.memcgs[ctx.memcg].events.count(Event::Pgmajfault);
                    // If the page was loaded at once, the world has its bytes before the next step.
                    self.swap[slot].is_synchronous().then_some(Step::Continue)
                }
            };
        };
        let page = &mut self.mem.pages[pfn];
        if page.has(PageFlags::LOCKED) {
            page.set(PageFlags::WAITERS);
            return Some(Step::Wait(Sleep::on_page(pfn)));
        }
        if !page.has(PageFlags::UPTODATE) {
            return Some(Step::Done(Outcome::IoError));
        }
        self.owners.entry(at)?.map_pinned(pfn, get.write);
        self.mem.work.ptes_set += 1;
        let keeps_slot = !get.major || !self.swap[slot].is_synchronous();
        self.take_from_swap_cache(pfn, at, get.write, keeps_slot, ctx);
        Some(self.got(get, pfn, Contents::Kept))
    }
}

impl RequestOwners for Slots {
    type Request = TenantRequest;

    fn request_step(
        manager: &mut Manager<Slots>,
        get: &mut TenantRequest,
        slow: &mut Option<SlowRequest>,
        ctx: &Ctx,
    ) -> Step<Outcome> {
        let step = manager.get_step(get, slow, ctx);
        if let (Step::Done(_), Some(slow)) = (step, slow.take_if(|_| matches!(step, Step::Done(_))))
        {
            // Another request has brought the page into memory in the meantime.
            manager.abandon_slow_request(&slow, ctx.asker, ctx.cpu);
        }
        step
    }
}

impl Owners for Slots {
    fn referenced(
        &mut self,
        at: OwnerSlot,
        _mapcount: u16,
        _huge: bool,
        within: ReclaimScope,
    ) -> PageReferences {
        let Some(tenant) = self.tenants.get(at.owner as usize).and_then(Option::as_ref) else {
            return PageReferences::default();
        };
        let Some(entry) = tenant.entries.get(at.index as usize) else {
            return PageReferences::default();
        };
        let nr = if within.contains(|| tenant.memcg) {
            let was = entry.0.fetch_and(!YOUNG, Ordering::AcqRel);
            u32::from(was & YOUNG != 0 || pins(was) > 0)
        } else {
            0
        };
        PageReferences { nr, executable: false, nr_entries_read: 1 }
    }

    fn unmap(&mut self, at: OwnerSlot, _mapcount: u16, to: UnmapTarget) -> UnmapResult {
        let Some(entry) = self.entry(at) else { return UnmapResult::default() };
        let was = entry.change(|was| {
            let is_free = was & (PRESENT | HELD) != 0 && (was & HELD != 0 || pins(was) == 0);
            if !is_free {
                return None;
            }
            Some(match to {
                UnmapTarget::Swapped(slot) => SWAPPED | u64::from(slot.0),
                UnmapTarget::Moving(from) => MOVING | was & DIRTY | u64::from(from.0),
                // Tenants have no store except swap.
                UnmapTarget::Unmapped => return None,
            })
        });
        match was {
            Ok(was) => UnmapResult {
                nr: 1,
                dirty: was & DIRTY != 0,
                young: was & YOUNG != 0,
                nr_entries_read: 1,
            },
            // The page is pinned.
            Err(_) => UnmapResult { nr_entries_read: 1, ..UnmapResult::default() },
        }
    }

    fn moved(&mut self, at: OwnerSlot, from: Pfn, to: Pfn, young: bool) -> u16 {
        let Some(entry) = self.entry(at) else { return 0 };
        let young = if young { YOUNG } else { 0 };
        let is_it = MOVING | u64::from(from.0);
        let moved = entry.change(|was| {
            let is_moving = was & (PRESENT | MOVING | WHERE) == is_it;
            is_moving.then_some(PRESENT | young | was & DIRTY | u64::from(to.0))
        });
        u16::from(moved.is_ok())
    }

    fn generation(&self, asker: Requester) -> Option<u64> {
        Some(self.tenants.get(asker.idx())?.as_ref()?.born)
    }

    fn note_request(&mut self, asker: Requester) -> MemcgId {
        self.payer(asker).unwrap_or(Manager::<Slots>::ROOT)
    }

    fn payer(&self, asker: Requester) -> Option<MemcgId> {
        Some(self.tenants.get(asker.idx())?.as_ref()?.memcg)
    }

    fn note_over_high(&mut self, asker: Requester, nr: u64) {
        if let Some(tenant) = self.tenant_mut(asker) {
            tenant.nr_over_high += nr;
        }
    }

    fn take_over_high(&mut self, asker: Requester) -> u64 {
        self.tenant_mut(asker).map_or(0, |tenant| core::mem::take(&mut tenant.nr_over_high))
    }

    fn undo_outcome(manager: &mut Manager<Slots>, _asker: Requester, outcome: Outcome, _cpu: Cpu) {
        let Outcome::Got(FaultedPage { frame: Frame::At(pfn), .. }) = outcome else { return };
        let at = OwnerSlot::of(&manager.mem.pages[pfn]);
        if let Some(entry) = manager.owners.entry(at) {
            entry.unpin();
        }
    }

    fn audit(manager: &Manager<Slots>) -> Result<(), Violation> {
        let mut mapped = 0;
        for (id, tenant) in manager.owners.tenants.iter().enumerate() {
            let Some(tenant) = tenant else { continue };
            for (index, entry) in tenant.entries.iter().enumerate() {
                match entry.load() {
                    EntryState::Empty => {}
                    EntryState::Present { pfn, .. } | EntryState::Held(pfn) => {
                        mapped += 1;
                        let page = &manager.mem.pages[pfn];
                        check!(
                            page.is_anon()
                                && (page.mapping, page.index) == (id as u32, index as u32)
                                && page.mapcount == 1,
                            "tenant {id} page {index}: {pfn:?} is {page:?}"
                        );
                    }
                    EntryState::Swapped(slot) => check!(
                        manager.swap[slot].is_mapped(slot),
                        "tenant {id} page {index}: {slot:?} is not mapped"
                    ),
                    EntryState::Moving(pfn) => check!(
                        manager.mem.pages[pfn].has(PageFlags::MIGRATING),
                        "tenant {id} page {index}: waits for {pfn:?}, which stays"
                    ),
                }
            }
        }
        let counted: u64 =
            manager.mem.pages.opened().map(|(_, page)| u64::from(page.mapcount)).sum();
        check!(counted == mapped, "{counted} frames are mapped, by {mapped} entries");
        Ok(())
    }
}

crate::interface::entry_points::implement_entry_points!(Slots);
