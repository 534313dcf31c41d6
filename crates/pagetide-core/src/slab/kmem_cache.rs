//! A slab cache: slabs of equal objects, and the active slab of each CPU.
//!
//! Linux: `struct kmem_cache`, `kmem_cache_cpu`, `kmem_cache_node` (mm/slub.c, 6.1). A CPU
//! allocates from one *active* slab without looking at the node. Full slabs are on no list. When an
//! object of a full slab is freed, the slab goes to the chain of partial slabs of the CPU that
//! freed the object. If a chain becomes too long, it moves to the node's list. An empty slab
//! returns to the page allocator if the node's list is long enough without it.
//!
//! Differences from Linux: free objects are bits, not links through the objects. So the lowest free
//! object is allocated first, a double free is detected, and no cache line of a free object is
//! written. A CPU takes up to 64 bits of its active slab at a time into its own word.
//!
//! Invariant: an object is free exactly if its bit is set, either in its slab's words or in the
//! word of the CPU that has the slab as active slab. A slab's `free` counts only the bits in its
//! own words. A slab is in exactly one [`SlabSeat`].

use super::cpu_slab::{kept_bits, low_bits, CpuSlab};
use super::objcg::NO_OWNER;
use super::partial::NodePartial;
use super::{DiscardedSlab, SlabError};
use crate::config::SlubPolicy;
use crate::slab::object::Object;
use crate::units::digest::State;
use crate::units::{CacheId, Cpu, IdVec, MemcgId, NodeId, Order, Pfn};
use alloc::string::String;
use alloc::vec::Vec;

pub(crate) const NO_SLAB: u32 = u32::MAX;

/// Where a slab is linked.
#[derive(Clone, Copy, PartialEq, Eq, Debug, State)]
pub(crate) enum SlabSeat {
    /// The slot has no slab and may be reused.
    Gone,
    /// The active slab of a CPU.
    Active(Cpu),
    /// On a CPU's chain.
    CpuPartial,
    /// On its node's list.
    Partial,
    /// On no list: it has no free object.
    Full,
}

/// One slab (Linux `struct slab`).
#[derive(Clone, Debug, State)]
pub(crate) struct Slab {
    pub pfn: Pfn,
    pub seat: SlabSeat,
    /// Free objects in its own words.
    pub free: u16,
    /// Number of objects.
    pub objects: u16,
    pub order: Order,
    pub node: NodeId,
    /// Neighbours on a list. On a CPU's chain only `next` is a link; `prev` is the number of free
    /// objects on the chain when this slab was added.
    pub prev: u32,
    pub next: u32,
    /// Vector of the owners of its objects, once one has an owner.
    pub owner_vector: Object,
}

/// Parameters of a new cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CacheSpec {
    /// Name in /proc/slabinfo.
    pub name: String,
    /// Bytes of an object.
    pub object_size: u32,
    /// Whether shrinkers can free its objects; its pages then have the reclaimable migrate type.
    pub reclaimable: bool,
    /// Whether every object is charged to a group, regardless of the request (Linux
    /// `SLAB_ACCOUNT`).
    pub account: bool,
}

/// A cache of equal objects. The fields that every allocation and free reads are in the first cache
/// line.
#[derive(Clone, Debug, State)]
#[repr(C, align(64))]
pub struct KmemCache {
    pub(crate) cpus: IdVec<Cpu, CpuSlab>,
    /// Owner of each object, by number; empty while no object has one.
    pub(crate) owners: Vec<u16>,
    /// If this cache is a clone: the cache that it was cloned from; otherwise its own id.
    pub(crate) root: CacheId,
    /// Bytes charged per object.
    pub(crate) charge_size: u32,
    /// See [`CacheSpec::account`].
    pub account: bool,
    /// See [`CacheSpec::reclaimable`].
    pub reclaimable: bool,
    /// log2 of the number of objects that a slab may have; splits an object's number into slot and
    /// index.
    pub(crate) shift: u32,
    /// log2 of the number of objects in a word of bits.
    pub(crate) word_shift: u32,
    #[state(sparse)]
    pub(crate) free_bits: Vec<u64>,
    /// Entry of each cached object, by number; only as long as needed.
    pub(crate) entries: Vec<u32>,
    pub(crate) slabs: Vec<Slab>,
    pub(crate) nodes: IdVec<NodeId, NodePartial>,
    /// Slots without a slab.
    pub(crate) free_slots: Vec<u32>,
    /// Bytes from one object to the next.
    pub size: u32,
    /// Bytes of an object, as requested.
    pub object_size: u32,
    /// Order of its slabs.
    pub order: Order,
    /// Order that is just large enough for one object, used if there is no block of `order`.
    pub min_order: Order,
    /// Empty slabs that a node keeps.
    pub min_partial: u32,
    /// Objects that a CPU's chain may hold; determines [`Self::cpu_partial_slabs`].
    pub cpu_partial: u32,
    /// Largest number of slabs on a CPU's chain.
    pub cpu_partial_slabs: u32,
    /// The name in /proc/slabinfo.
    #[state(skip)] // for reports
    pub name: String,
    /// Number of slabs.
    pub nr_slabs: u32,
    /// Pages of the slabs.
    pub nr_pages: u64,
    /// Objects that fit in the slabs.
    pub nr_objects: u64,
    /// Its clones, by group; [`CacheId::NONE`] if the group has none yet.
    pub(crate) clones: IdVec<MemcgId, CacheId>,
    /// The group of a clone.
    pub(crate) memcg: MemcgId,
    /// Index among the clones of that group.
    pub(crate) memcg_at: u32,
    /// Whether the clone's group is gone. The clone then keeps no empty slab and is removed with
    /// its last slab.
    pub(crate) dying: bool,
    /// Objects that hold the clone's own data structures.
    pub(crate) self_objects: Vec<Object>,
    pub(crate) policy: SlubPolicy,
    #[state(skip)] // the machine's
    page_size: u64,
}

impl KmemCache {
    /// A cache without slabs. `size` is already rounded.
    pub(crate) fn new(
        spec: CacheSpec,
        shape: CacheShape,
        nr_cpus: u16,
        nr_nodes: usize,
    ) -> KmemCache {
        let CacheShape { size, order, min_order, policy, page_size } = shape;
        let objects = (page_size << order) / u64::from(size);
        let shift = (objects.next_power_of_two()).trailing_zeros();
        let mut cache = KmemCache {
            cpus: alloc::vec![CpuSlab::EMPTY; usize::from(nr_cpus)].into(),
            shift,
            word_shift: shift.min(6),
            charge_size: size,
            owners: Vec::new(),
            free_bits: Vec::new(),
            entries: Vec::new(),
            slabs: Vec::new(),
            nodes: alloc::vec![NodePartial::EMPTY; nr_nodes].into(),
            free_slots: Vec::new(),
            size,
            object_size: spec.object_size,
            order,
            min_order,
            min_partial: super::order::min_partial(size.into()),
            cpu_partial: 0,
            cpu_partial_slabs: 0,
            reclaimable: spec.reclaimable,
            account: spec.account,
            name: spec.name,
            nr_slabs: 0,
            nr_pages: 0,
            nr_objects: 0,
            root: CacheId::NONE,
            clones: IdVec::default(),
            memcg: MemcgId::NONE,
            memcg_at: 0,
            dying: false,
            self_objects: Vec::new(),
            policy,
            page_size,
        };
        let budget = match policy {
            SlubPolicy::Linux55 => super::order::cpu_partial_objects_5_5(size.into(), page_size),
            SlubPolicy::Linux61 => super::order::cpu_partial_objects(size.into(), page_size),
        };
        cache.set_cpu_partial(budget);
        cache
    }

    /// Sets how many objects a CPU's chain may hold.
    pub(crate) fn set_cpu_partial(&mut self, objects: u32) {
        self.cpu_partial = objects;
        let per_slab = u64::from(self.objects_per_slab());
        let slabs = (2 * u64::from(objects)).div_ceil(per_slab);
        self.cpu_partial_slabs = u32::try_from(slabs).unwrap_or(u32::MAX);
    }

    /// Sets the order of new slabs. The cache must not have any slab yet.
    pub(crate) fn set_order(&mut self, order: Order) {
        debug_assert!(self.slabs.is_empty() || order == self.order);
        self.order = order;
        self.shift = self.objects_per_slab().next_power_of_two().trailing_zeros();
        self.word_shift = self.shift.min(6);
        self.set_cpu_partial(self.cpu_partial);
    }

    pub(crate) fn page_size(&self) -> u64 {
        self.page_size
    }

    /// Objects of a slab of the cache's order.
    pub fn objects_per_slab(&self) -> u32 {
        ((self.page_size << self.order) / u64::from(self.size)) as u32
    }

    #[inline]
    pub(crate) fn is_cached(&self, number: u32) -> bool {
        self.entries.get(number as usize).is_some_and(|&entry| entry != u32::MAX)
    }

    /// Removes the cache, so that its id may be reused. It must have no slab.
    pub(crate) fn retire(&mut self) {
        debug_assert_eq!(self.nr_slabs, 0);
        *self = KmemCache {
            cpus: Vec::new().into(),
            owners: Vec::new(),
            free_bits: Vec::new(),
            entries: Vec::new(),
            slabs: Vec::new(),
            nodes: Vec::new().into(),
            free_slots: Vec::new(),
            clones: IdVec::default(),
            self_objects: Vec::new(),
            name: String::new(),
            root: CacheId::NONE,
            memcg: MemcgId::NONE,
            dying: false,
            ..*self
        };
    }

    /// The slot and index of an object's number.
    #[inline]
    pub(crate) fn place_of(&self, number: u32) -> (usize, u32) {
        ((number >> self.shift) as usize, number & ((1 << self.shift) - 1))
    }

    #[inline]
    fn words_per_slot(&self) -> usize {
        1 << (self.shift - self.word_shift)
    }

    /// Allocates the next object of the CPU's own word, if there is one.
    #[inline]
    pub(crate) fn alloc_fast(&mut self, cpu: Cpu) -> Option<u32> {
        self.cpus[cpu].alloc_from_word()
    }

    /// Allocates the next object, from the active slab, the CPU's chain or a node's list, in this
    /// order. `None`: a new slab is needed ([`Self::install`]). (Linux `___slab_alloc`.)
    #[cold]
    pub(crate) fn alloc_slow(&mut self, cpu: Cpu, node: NodeId) -> Option<u32> {
        loop {
            if self.take_word(cpu) {
                return self.alloc_fast(cpu);
            }
            let slot = self.next_slab(cpu, node)?;
            self.activate(cpu, slot);
        }
    }

    /// Moves the next word with a free object out of the CPU's active slab. Returns `false` if
    /// there is none; then the CPU no longer has an active slab.
    fn take_word(&mut self, cpu: Cpu) -> bool {
        let mine = &mut self.cpus[cpu];
        debug_assert_eq!(mine.word, 0);
        if mine.slot == NO_SLAB {
            return false;
        }
        let slab = &mut self.slabs[mine.slot as usize];
        if slab.free == 0 {
            slab.seat = SlabSeat::Full;
            mine.slot = NO_SLAB;
            mine.base = u32::MAX;
            mine.returnable = 0;
            return false;
        }
        let per_slot = 1usize << (self.shift - self.word_shift);
        let first = mine.slot as usize * per_slot;
        let words = &mut self.free_bits[first..first + per_slot];
        for (at, word) in words.iter_mut().enumerate() {
            if *word != 0 {
                mine.word = core::mem::take(word);
                let first = (at as u32) << self.word_shift;
                mine.base = (mine.slot << self.shift) + first;
                let exist = low_bits(u32::from(slab.objects).saturating_sub(first));
                mine.returnable = exist & !kept_bits(&self.entries, mine.base, self.word_shift);
                slab.free -= mine.word.count_ones() as u16;
                return true;
            }
        }
        unreachable!("a slab with free objects has a bit for each");
    }

    /// Takes a slab with free objects off the CPU's chain or a node's list.
    fn next_slab(&mut self, cpu: Cpu, node: NodeId) -> Option<u32> {
        let mine = &mut self.cpus[cpu];
        if mine.partial != NO_SLAB {
            let slot = mine.partial;
            mine.partial = self.slabs[slot as usize].next;
            mine.nr_partial -= 1;
            mine.partial_objects = match mine.partial {
                NO_SLAB => 0,
                next => self.slabs[next as usize].prev,
            };
            return Some(slot);
        }
        let home = node.idx();
        if let Some(slot) = self.nodes[home].first() {
            self.nodes[home].remove(&mut self.slabs, slot);
            self.fill_chain(cpu, home, u32::from(self.slabs[slot as usize].free));
            return Some(slot);
        }
        // Takes a slab of another node, if that node has more slabs than it wants to keep.
        for other in 1..self.nodes.len() {
            let at = (home + other) % self.nodes.len();
            if self.nodes[at].len() > self.min_partial {
                let slot = self.nodes[at].first()?;
                self.nodes[at].remove(&mut self.slabs, slot);
                return Some(slot);
            }
        }
        None
    }

    /// Moves slabs from a node's list to the CPU's chain, up to half of the chain's budget.
    /// `objects` of the budget are already used (Linux `get_partial_node`).
    fn fill_chain(&mut self, cpu: Cpu, node: usize, mut objects: u32) {
        let mut slabs = 0;
        loop {
            let is_enough = match self.policy {
                SlubPolicy::Linux61 => {
                    self.cpu_partial_slabs == 0 || slabs > self.cpu_partial_slabs / 2
                }
                SlubPolicy::Linux55 => self.cpu_partial == 0 || objects > self.cpu_partial / 2,
            };
            if is_enough {
                return;
            }
            let Some(slot) = self.nodes[node].first() else { return };
            self.nodes[node].remove(&mut self.slabs, slot);
            slabs += 1;
            objects += u32::from(self.slabs[slot as usize].free);
            self.push_chain(cpu, slot);
        }
    }

    fn push_chain(&mut self, cpu: Cpu, slot: u32) {
        let mine = &mut self.cpus[cpu];
        let slab = &mut self.slabs[slot as usize];
        slab.seat = SlabSeat::CpuPartial;
        slab.next = mine.partial;
        mine.partial = slot;
        mine.nr_partial += 1;
        mine.partial_objects += u32::from(slab.free);
        slab.prev = mine.partial_objects;
    }

    fn activate(&mut self, cpu: Cpu, slot: u32) {
        self.slabs[slot as usize].seat = SlabSeat::Active(cpu);
        let mine = &mut self.cpus[cpu];
        mine.slot = slot;
        mine.has_owners = self.slabs[slot as usize].owner_vector.is_some();
    }

    #[inline(always)]
    pub(crate) fn take_owner(&mut self, number: u32) -> Option<u16> {
        let owner = core::mem::replace(self.owners.get_mut(number as usize)?, NO_OWNER);
        (owner != NO_OWNER).then_some(owner)
    }

    /// The owner of an object in use.
    pub(crate) fn owner_of(&self, number: u32) -> Option<u16> {
        self.owners.get(number as usize).copied().filter(|&owner| owner != NO_OWNER)
    }

    /// Whether another slab still gets object numbers.
    pub(crate) fn has_room(&self) -> bool {
        !self.free_slots.is_empty()
            || (self.slabs.len() as u64 + 1) << self.shift <= u32::MAX.into()
    }

    /// Adds a slab and makes it the CPU's active slab.
    pub(crate) fn install(&mut self, cpu: Cpu, pfn: Pfn, order: Order, node: NodeId) -> u32 {
        let slot = match self.free_slots.pop() {
            Some(slot) => slot,
            None => {
                let slot = self.slabs.len() as u32;
                self.slabs.push(Slab::gone());
                let words = self.slabs.len() * self.words_per_slot();
                self.free_bits.resize(words, 0);
                if !self.owners.is_empty() {
                    self.owners.resize(self.slabs.len() << self.shift, NO_OWNER);
                }
                slot
            }
        };
        let objects = ((self.page_size << order) / u64::from(self.size)) as u32;
        let first = slot as usize * self.words_per_slot();
        let mut left = objects;
        for word in &mut self.free_bits[first..first + (1 << (self.shift - self.word_shift))] {
            *word = low_bits(left);
            left = left.saturating_sub(64);
        }
        self.slabs[slot as usize] = Slab {
            pfn,
            seat: SlabSeat::Active(cpu),
            free: objects as u16,
            objects: objects as u16,
            order,
            node,
            ..Slab::gone()
        };
        self.nr_slabs += 1;
        self.nr_pages += 1 << order;
        self.nr_objects += u64::from(objects);
        debug_assert_eq!(self.cpus[cpu].slot, NO_SLAB);
        self.activate(cpu, slot);
        slot
    }

    /// Frees an object. Slabs that the cache no longer needs are added to `discarded`.
    ///
    /// # Errors
    ///
    /// [`SlabError::NotAnObject`], [`SlabError::DoubleFree`]: nothing has changed.
    #[inline]
    pub(crate) fn free(
        &mut self,
        number: u32,
        cpu: Cpu,
        discarded: &mut Vec<DiscardedSlab>,
    ) -> Result<(), SlabError> {
        if self.cpus[cpu].take_back(number) {
            return Ok(());
        }
        self.free_slow(number, cpu, discarded)
    }

    /// Sets whether an object in use may be freed on the fast path by the CPU that has its word, if
    /// any.
    pub(crate) fn set_returnable(&mut self, number: u32, may: bool) {
        let (slot, _) = self.place_of(number);
        let Some(cpu) = seat_cpu(self.slabs[slot].seat) else { return };
        let mask = (1u32 << self.word_shift) - 1;
        let its = &mut self.cpus[cpu];
        if number & !mask == its.base {
            let bit = 1u64 << (number & mask);
            its.returnable = if may { its.returnable | bit } else { its.returnable & !bit };
        }
    }

    /// Checks that the object exists and is allocated.
    pub(crate) fn check_in_use(&self, number: u32) -> Result<(), SlabError> {
        let (slot, index) = self.place_of(number);
        let slab = self.slabs.get(slot).ok_or(SlabError::NotAnObject)?;
        // If a slab was removed, all its objects were freed.
        if slab.seat == SlabSeat::Gone {
            return Err(SlabError::DoubleFree);
        }
        if index >= u32::from(slab.objects) {
            return Err(SlabError::NotAnObject);
        }
        let mask = (1u32 << self.word_shift) - 1;
        let bit = 1u64 << (number & mask);
        let in_slab = self.free_bits[(number >> self.word_shift) as usize] & bit != 0;
        let in_word = match seat_cpu(slab.seat) {
            Some(cpu) => {
                let cpu = &self.cpus[cpu];
                cpu.base == number & !mask && cpu.word & bit != 0
            }
            None => false,
        };
        if in_slab || in_word {
            return Err(SlabError::DoubleFree);
        }
        Ok(())
    }

    /// Linux `__slab_free`.
    #[cold]
    pub(crate) fn free_slow(
        &mut self,
        number: u32,
        cpu: Cpu,
        discarded: &mut Vec<DiscardedSlab>,
    ) -> Result<(), SlabError> {
        let (at, index) = self.place_of(number);
        let slot = at as u32;
        let Some(slab) = self.slabs.get_mut(at) else { return Err(SlabError::NotAnObject) };
        let Some(word) = self.free_bits.get_mut((number >> self.word_shift) as usize) else {
            return Err(SlabError::NotAnObject);
        };
        let bit = 1u64 << (number & ((1 << self.word_shift) - 1));
        // Only an object of an active slab needs `check_in_use`, because its bit may be in a CPU's
        // word.
        let is_plain =
            matches!(slab.seat, SlabSeat::Full | SlabSeat::Partial | SlabSeat::CpuPartial);
        if !is_plain || index >= u32::from(slab.objects) || *word & bit != 0 {
            self.check_in_use(number)?;
            self.set_returnable(number, false);
        }
        let (slab, words) = (&mut self.slabs[at], &mut self.free_bits);
        words[(number >> self.word_shift) as usize] |= bit;
        slab.free += 1;
        let (seat, node, is_empty) = (slab.seat, slab.node.idx(), slab.free == slab.objects);
        match seat {
            SlabSeat::Partial if is_empty && self.nodes[node].len() >= self.min_partial => {
                self.nodes[node].remove(&mut self.slabs, slot);
                self.discard(slot, discarded);
            }
            SlabSeat::Active(_) | SlabSeat::CpuPartial | SlabSeat::Partial => {}
            SlabSeat::Full if self.cpu_partial_slabs > 0 => {
                self.put_cpu_partial(cpu, slot, discarded)
            }
            SlabSeat::Full => self.put_node_partial(slot, discarded),
            SlabSeat::Gone => unreachable!("it was checked"),
        }
        Ok(())
    }

    /// Adds a slab that was full to the CPU's chain; if the chain becomes too long, moves it to the
    /// node (Linux `put_cpu_partial`).
    fn put_cpu_partial(&mut self, cpu: Cpu, slot: u32, discarded: &mut Vec<DiscardedSlab>) {
        let mine = &self.cpus[cpu];
        let is_full = match self.policy {
            SlubPolicy::Linux61 => mine.nr_partial >= self.cpu_partial_slabs,
            SlubPolicy::Linux55 => mine.partial_objects > self.cpu_partial,
        };
        if is_full {
            self.flush_chain(cpu, discarded);
        }
        self.push_chain(cpu, slot);
    }

    /// Puts a slab on its node's list, or returns it to the page allocator if it is empty and the
    /// list is long enough.
    fn put_node_partial(&mut self, slot: u32, discarded: &mut Vec<DiscardedSlab>) {
        let slab = &self.slabs[slot as usize];
        let node = slab.node.idx();
        if slab.free == slab.objects && self.nodes[node].len() >= self.min_partial {
            self.discard(slot, discarded);
        } else {
            self.nodes[node].add(&mut self.slabs, slot);
        }
    }

    /// Moves a CPU's chain to the nodes' lists (Linux `__unfreeze_partials`).
    fn flush_chain(&mut self, cpu: Cpu, discarded: &mut Vec<DiscardedSlab>) {
        let mine = &mut self.cpus[cpu];
        let mut slot = core::mem::replace(&mut mine.partial, NO_SLAB);
        mine.nr_partial = 0;
        mine.partial_objects = 0;
        while slot != NO_SLAB {
            let next = self.slabs[slot as usize].next;
            self.put_node_partial(slot, discarded);
            slot = next;
        }
    }

    /// Takes the active slab away from a CPU (Linux `deactivate_slab`).
    pub(crate) fn deactivate(&mut self, cpu: Cpu, discarded: &mut Vec<DiscardedSlab>) {
        let CpuSlab { partial, nr_partial, partial_objects, .. } = self.cpus[cpu];
        let chain = CpuSlab { partial, nr_partial, partial_objects, ..CpuSlab::EMPTY };
        let mine = core::mem::replace(&mut self.cpus[cpu], chain);
        if mine.slot == NO_SLAB {
            return;
        }
        let slab = &mut self.slabs[mine.slot as usize];
        if mine.word != 0 {
            self.free_bits[(mine.base >> self.word_shift) as usize] |= mine.word;
            slab.free += mine.word.count_ones() as u16;
        }
        if slab.free == 0 {
            slab.seat = SlabSeat::Full;
        } else {
            self.put_node_partial(mine.slot, discarded);
        }
    }

    /// Takes all slabs of the cache away from a CPU (Linux `flush_cpu_slab`).
    pub(crate) fn flush_cpu(&mut self, cpu: Cpu, discarded: &mut Vec<DiscardedSlab>) {
        self.deactivate(cpu, discarded);
        self.flush_chain(cpu, discarded);
    }

    /// Discards all empty slabs, and sorts the others by fullness, fullest first (Linux
    /// `kmem_cache_shrink`).
    pub(crate) fn shrink(&mut self, discarded: &mut Vec<DiscardedSlab>) {
        for cpu in 0..self.cpus.len() {
            self.flush_cpu(Cpu(cpu as u16), discarded);
        }
        for node in 0..self.nodes.len() {
            let list = core::mem::replace(&mut self.nodes[node], NodePartial::EMPTY);
            let mut slots = list.slots(&self.slabs);
            slots.sort_by_key(|&slot| self.slabs[slot as usize].free);
            for slot in slots {
                let slab = &self.slabs[slot as usize];
                if slab.free == slab.objects {
                    self.discard(slot, discarded);
                } else {
                    self.nodes[node].add(&mut self.slabs, slot);
                }
            }
        }
    }

    fn discard(&mut self, slot: u32, discarded: &mut Vec<DiscardedSlab>) {
        let slab = core::mem::replace(&mut self.slabs[slot as usize], Slab::gone());
        let first = slot as usize * self.words_per_slot();
        let words = self.words_per_slot();
        self.free_bits[first..first + words].fill(0);
        self.nr_slabs -= 1;
        self.nr_pages -= 1 << slab.order;
        self.nr_objects -= u64::from(slab.objects);
        self.free_slots.push(slot);
        discarded.push(DiscardedSlab {
            pfn: slab.pfn,
            order: slab.order,
            owner_vector: slab.owner_vector,
        });
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct CacheShape {
    pub size: u32,
    pub order: Order,
    pub min_order: Order,
    pub policy: SlubPolicy,
    pub page_size: u64,
}

impl Slab {
    fn gone() -> Slab {
        Slab {
            pfn: Pfn::NONE,
            seat: SlabSeat::Gone,
            free: 0,
            objects: 0,
            order: 0,
            node: NodeId(0),
            prev: NO_SLAB,
            next: NO_SLAB,
            owner_vector: Object::NONE,
        }
    }
}

fn seat_cpu(seat: SlabSeat) -> Option<Cpu> {
    match seat {
        SlabSeat::Active(cpu) => Some(cpu),
        _ => None,
    }
}
