//! Kernel objects of swap: the handles and descriptors of zsmalloc, the entries of zswap, and the bios
//! of requests to disks ([`super::requests`]).
//!
//! Linux: the caches `zs_handle` and `zspage` (`zs_create_pool`, mm/zsmalloc.c, 6.1 and 6.12) and
//! `zswap_entry` (`zswap_setup`, mm/zswap.c). None is accounted, so no group pays for the objects; a
//! group pays for the compressed bytes only. They are allocated during reclaim, from the reserves if
//! need be, and in pages that do not move.
//!
//! Differences from Linux: all pools share the caches, which exist from the first pool on. The
//! machine without a pool has none.
//!
//! Invariant: each object in use of these caches is the word of one handle, the descriptor of one
//! zspage, the entry of one page of zswap, or the bio of one request.

use crate::config::ZswapPolicy;
use crate::units::digest::State;
use crate::units::CacheId;

/// Bytes of a handle (Linux `ZS_HANDLE_SIZE`).
pub(super) const HANDLE_BYTES: u32 = 8;
/// Bytes of a `struct zspage` on x86-64: counts, first page, list, pool and lock.
pub(super) const DESCRIPTOR_BYTES: u32 = 56;

/// Bytes of a bio of one page on x86-64, with its vectors.
pub(super) const BIO_BYTES: u32 = 256;

/// Bytes of a `struct zswap_entry` on x86-64. In 6.1 it has a node of a red-black tree and a
/// reference count; in 6.12 a place in a list instead.
pub(super) const fn entry_bytes(zswap: ZswapPolicy) -> u32 {
    match zswap {
        ZswapPolicy::Linux61 => 64,
        ZswapPolicy::Linux612 => 56,
    }
}

/// The caches; those of pools from the first pool on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, State)]
pub(crate) struct SwapCaches {
    pub handle: CacheId,
    pub descriptor: CacheId,
    pub entry: CacheId,
    pub bio: CacheId,
}

impl Default for SwapCaches {
    fn default() -> SwapCaches {
        let none = CacheId::NONE;
        SwapCaches { handle: none, descriptor: none, entry: none, bio: none }
    }
}

impl SwapCaches {
    /// Number of caches.
    pub fn count(&self) -> usize {
        let all = [self.handle, self.descriptor, self.entry, self.bio];
        all.iter().filter(|cache| cache.is_some()).count()
    }
}
