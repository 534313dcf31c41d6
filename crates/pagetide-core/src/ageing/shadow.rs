//! Shadows: the entry that an evicted page leaves behind.
//!
//! Linux: `pack_shadow`, `unpack_shadow` (mm/workingset.c, 6.1).
//!
//! Difference from Linux: the clock always has 39 bits; in Linux it has the free bits of a word.

use crate::units::digest::State;
use crate::units::{MemcgId, NodeId};

/// The entry that an evicted page leaves behind, or [`Shadow::NONE`].
#[derive(Clone, Copy, PartialEq, Eq, Default, State)]
#[repr(transparent)]
pub struct Shadow(u64);

const VALID: u64 = 1 << 62;

const WORKINGSET: u64 = 1 << 39;

const MEMCG_SHIFT: u32 = 40;

const NODE_SHIFT: u32 = 56;

const NODE_MASK: u64 = 63;

const _: () = assert!(crate::frames::node::MAX_NODES as u64 <= NODE_MASK + 1);

pub(crate) const AGE_MASK: u64 = WORKINGSET - 1;

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

    /// Whether this is not [`Shadow::NONE`].
    pub const fn is_some(self) -> bool {
        self.0 & VALID != 0
    }

    /// Raw bits (bit 63 is never set).
    pub const fn bits(self) -> u64 {
        self.0
    }

    /// Restores a shadow from raw bits.
    pub const fn from_bits(bits: u64) -> Shadow {
        Shadow(bits)
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
