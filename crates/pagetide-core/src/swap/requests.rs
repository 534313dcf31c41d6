//! Memory of requests to swap disks: a bio for each request until it ends.
//!
//! Linux: `bio_alloc_bioset` (block/bio.c), called by `__swap_writepage` and `swap_read_folio`
//! (mm/page_io.c, 6.12). A bio of one page comes from the slab cache `bio-192`, in pages that do not
//! move. While kswapd has thousands of writes under way, their bios are hundreds of pages, which
//! fall back to movable pageblocks and so boost the watermarks.
//!
//! Differences from Linux: requests end in the order in which they were submitted, as far as their
//! bios are concerned. A request for which no page is free uses the reserve of the bio set, which
//! takes no memory here. Requests of files and of a disk behind zram have no bio.
//!
//! Invariant: as many bios are held as requests to swap are under way.

use crate::frames::gfp::Gfp;
use crate::interface::ctx::Ctx;
use crate::interface::effect::{Effect, Io};
use crate::interface::kernel::Kernel;
use crate::slab::object::Object;
use crate::units::Cpu;

impl Kernel {
    /// Submits a request to a swap disk.
    #[inline]
    pub(super) fn submit_swap(&mut self, io: Io, ctx: &Ctx) {
        let cache = self.swap.caches.bio;
        if cache.is_some() {
            let bio = match io {
                Io::SwapOut { .. } => self.alloc_object_in_reclaim(cache, Gfp::NOIO, ctx),
                _ => self.alloc_object(cache, Gfp::NOWAIT, ctx).ok(),
            };
            self.swap.bios.push_back(bio.unwrap_or(Object::NONE));
        }
        self.step.effects.push(Effect::Submit(io));
    }

    /// Frees the bio of a request that has ended.
    #[inline]
    pub(super) fn end_swap(&mut self, cpu: Cpu) {
        if let Some(bio) = self.swap.bios.pop_front().filter(|bio| bio.is_some()) {
            self.free_known(bio, cpu);
        }
    }
}
