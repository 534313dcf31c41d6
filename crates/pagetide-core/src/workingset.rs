//! Refault distance: was a page that comes back evicted too early?
//!
//! Linux: mm/workingset.c. An evicted page leaves a shadow: a snapshot of its lruvec's clock of
//! evictions and activations. When it comes back, the clock has advanced by the refault distance;
//! if that many pages could have fitted beside the active ones, the page is activated at once.
//!
//! Difference from Linux: shadows are kept without the bound on tree nodes that Linux's
//! shrinker enforces; 39 bits of clock instead of what is left of a word.

use crate::manager::Manager;
use crate::memcg::ROOT;
use crate::owners::Owners;
use crate::page::PageFlags;
use crate::units::{MemcgId, NodeId, Pfn};
use crate::vmstat::{Event, NodeStat};

/// What an evicted page leaves behind; `NONE` when there is nothing.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
#[repr(transparent)]
pub struct Shadow(u64);

const VALID: u64 = 1 << 62;
const WORKINGSET: u64 = 1 << 39;
const MEMCG_SHIFT: u32 = 40;
const NODE_SHIFT: u32 = 56;
const NODE_MASK: u64 = 63;
const _: () = assert!(crate::node::MAX_NODES as u64 <= NODE_MASK + 1);
const AGE_MASK: u64 = WORKINGSET - 1;

impl core::fmt::Debug for Shadow {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self.unpack() {
            None => write!(f, "no shadow"),
            Some((memcg, node, age, workingset)) => {
                write!(f, "shadow({memcg:?} {node:?} age {age} workingset {workingset})")
            }
        }
    }
}

impl Shadow {
    /// No shadow.
    pub const NONE: Shadow = Shadow(0);

    /// Packs a snapshot. Bits: 0-38 age, 39 workingset, 40-55 group, 56-61 node, 62 valid.
    pub const fn pack(memcg: MemcgId, node: NodeId, age: u64, workingset: bool) -> Shadow {
        Shadow(
            VALID
                | (age & AGE_MASK)
                | if workingset { WORKINGSET } else { 0 }
                | (memcg.0 as u64) << MEMCG_SHIFT
                | (node.0 as u64 & NODE_MASK) << NODE_SHIFT,
        )
    }

    /// Group, node, age and working-set bit, if there is a shadow.
    pub const fn unpack(self) -> Option<(MemcgId, NodeId, u64, bool)> {
        if self.0 & VALID == 0 {
            return None;
        }
        Some((
            MemcgId((self.0 >> MEMCG_SHIFT) as u16),
            NodeId((self.0 >> NODE_SHIFT & NODE_MASK) as u8),
            self.0 & AGE_MASK,
            self.0 & WORKINGSET != 0,
        ))
    }

    /// Whether there is one.
    pub const fn is_some(self) -> bool {
        self.0 & VALID != 0
    }

    /// Raw bits (bit 63 is never set).
    pub const fn bits(self) -> u64 {
        self.0
    }

    /// From raw bits.
    pub const fn from_bits(bits: u64) -> Shadow {
        Shadow(bits)
    }
}

impl<O: Owners> Manager<O> {
    /// Advances the clock of a lruvec and of those above it (Linux `workingset_age_nonresident`).
    pub(crate) fn workingset_age_nonresident(&mut self, memcg: MemcgId, node: NodeId, nr: u64) {
        let mut at = memcg;
        while at.is_some() {
            self.memcgs[at.idx()].lruvecs[node.idx()].nonresident_age += nr;
            at = self.memcgs[at.idx()].parent;
        }
    }

    /// Makes the shadow of a page that is being evicted, by the clock of the group that is short of
    /// memory: the root, if the machine is (Linux `workingset_eviction`).
    pub(crate) fn workingset_eviction(&mut self, pfn: Pfn, target: Option<MemcgId>) -> Shadow {
        let page = &self.mem.pages[pfn.idx()];
        let forgets =
            if page.is_file_lru() { self.era.forgets_files } else { self.era.forgets_anon };
        if forgets {
            return Shadow::NONE;
        }
        let node = page.node();
        let workingset = page.has(PageFlags::WORKINGSET);
        let target = target.unwrap_or(ROOT);
        let age = self.lruvec(target, node).nonresident_age;
        self.workingset_age_nonresident(target, node, 1);
        Shadow::pack(target, node, age, workingset)
    }

    /// Judges a page that came back (Linux `workingset_refault`, 6.1).
    pub(crate) fn workingset_refault(&mut self, pfn: Pfn, shadow: Shadow) {
        let Some((evicted_memcg, node, evicted_age, workingset)) = shadow.unpack() else {
            return;
        };
        let file = self.mem.pages[pfn.idx()].is_file_lru();
        let kind = usize::from(file);
        let memcg = self.mem.pages[pfn.idx()].memcg;
        let page_node = self.mem.pages[pfn.idx()].node();
        self.mem.vmstat.count(pick(
            file,
            Event::WorkingsetRefaultAnon,
            Event::WorkingsetRefaultFile,
        ));
        self.memcgs[memcg.idx()].events.workingset_refault[kind] += 1;

        // Its group is gone: nothing is known about the distance. (As in Linux, the id may be that of a
        // younger group by now; the distance is meaningless then, and the page judged by chance.)
        if !self.memcg_is_online(evicted_memcg) {
            return;
        }
        let age = self.memcgs[evicted_memcg.idx()].lruvecs[node.idx()].nonresident_age;
        let distance = age.wrapping_sub(evicted_age) & AGE_MASK;
        // The space the page competes for: everything except its own kind's inactive list. A
        // file page may push out anonymous memory only if that can be swapped.
        let size =
            |machine: &Manager<O>, stat| machine.lruvec_page_state(evicted_memcg, node, stat);
        let mut workingset_size = size(self, NodeStat::NrActiveFile);
        if !file {
            workingset_size += size(self, NodeStat::NrInactiveFile);
        }
        if self.memcg_swap_left(evicted_memcg) > 0 {
            workingset_size += size(self, NodeStat::NrActiveAnon);
            if file {
                workingset_size += size(self, NodeStat::NrInactiveAnon);
            }
        }
        if distance > workingset_size {
            return;
        }
        self.mem.pages[pfn.idx()].set(PageFlags::ACTIVE);
        self.workingset_age_nonresident(memcg, page_node, 1);
        self.mem.vmstat.count(pick(
            file,
            Event::WorkingsetActivateAnon,
            Event::WorkingsetActivateFile,
        ));
        self.memcgs[memcg.idx()].events.workingset_activate[kind] += 1;
        let mut at = memcg;
        while at.is_some() {
            self.memcgs[at.idx()].lruvecs[page_node.idx()].workingset_activate[kind] += 1;
            at = self.memcgs[at.idx()].parent;
        }
        if workingset {
            self.mem.pages[pfn.idx()].set(PageFlags::WORKINGSET);
            self.lru_note_cost(memcg, page_node, file, 1);
            self.mem.vmstat.count(pick(
                file,
                Event::WorkingsetRestoreAnon,
                Event::WorkingsetRestoreFile,
            ));
            self.memcgs[memcg.idx()].events.workingset_restore[kind] += 1;
        }
    }
}

const fn pick(file: bool, anon_event: Event, file_event: Event) -> Event {
    if file {
        file_event
    } else {
        anon_event
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shadow_gives_back_what_it_was_made_of() {
        for (memcg, node, workingset) in [(0, 0, false), (7, 31, true), (0x8001, 63, true)] {
            let shadow = Shadow::pack(MemcgId(memcg), NodeId(node), AGE_MASK - 5, workingset);
            let expected = (MemcgId(memcg), NodeId(node), AGE_MASK - 5, workingset);
            assert_eq!(shadow.unpack(), Some(expected));
            assert_eq!(shadow.bits() >> 63, 0);
        }
        assert_eq!(Shadow::NONE.unpack(), None);
    }
}
