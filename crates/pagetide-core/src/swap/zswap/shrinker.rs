//! The shrinker of zswap: reclaim writes old entries to their disks, in proportion.
//!
//! Linux: `zswap_shrinker_count`, `zswap_shrinker_scan`, `shrink_memcg_cb` (mm/zswap.c, 6.12). It is
//! called for each group and node. As many entries as the group had to read pages from disks lately
//! are protected. The better the pages are compressed, the fewer are written.
//!
//! Difference from Linux: on a machine without groups it works on the whole pool, as on a kernel
//! without the memory controller. (Linux with the controller counts only pages charged to groups, so
//! that pages of the root alone are never written.)
//!
//! Invariant: a scan looks at each entry at most once for each page that it may scan.

use super::writeback::WritebackFailure;
use crate::frames::gfp::Gfp;
use crate::groups::memcg::ROOT;
use crate::interface::ctx::Ctx;
use crate::interface::kernel::Kernel;
use crate::units::{Cpu, MemcgId, NodeId, Requester};

impl Kernel {
    /// Whether the shrinker may find entries on the list of a group.
    pub(crate) fn has_zswap_to_shrink(&self, memcg: MemcgId, node: NodeId) -> bool {
        self.swap
            .zswap
            .as_ref()
            .is_some_and(|zswap| zswap.options.shrinker && zswap.list(memcg, node).len > 0)
    }

    /// Entries of a list that may be written (Linux `zswap_shrinker_count`).
    pub(crate) fn zswap_shrinker_count(&mut self, memcg: MemcgId, node: NodeId, gfp: Gfp) -> u64 {
        if !self.has_zswap_to_shrink(memcg, node)
            || !gfp.has(Gfp::IO.with(Gfp::FS))
            || !self.groups.zswap_writeback_enabled(memcg)
        {
            return 0;
        }
        let has_groups = self.groups.next_memcg(ROOT, ROOT).is_some();
        let (bytes, stored) = match has_groups {
            true => {
                let group = &self.groups.memcgs[memcg];
                (group.zswap_bytes, group.zswapped)
            }
            false => {
                let pool = self.zswap_pool_pages() * self.mem.page_size.bytes();
                (pool, self.zswap_stats().map_or(0, |stats| stats.stored_pages))
            }
        };
        let backing = bytes / self.mem.page_size.bytes();
        let Some(zswap) = self.swap.zswap.as_mut().filter(|_| stored > 0) else { return 0 };
        let list = zswap.list_mut(memcg, node);
        let nr_protected = list.len.min(list.nr_disk_swapins);
        list.nr_disk_swapins -= nr_protected;
        (list.len - nr_protected) * backing / stored
    }

    /// Looks at up to `nr` entries of a list. Returns how many were written, and whether the scan has
    /// to stop (Linux `SHRINK_STOP`).
    pub(crate) fn zswap_shrinker_scan(
        &mut self,
        memcg: MemcgId,
        node: NodeId,
        nr: u64,
        cpu: Cpu,
    ) -> (u64, bool) {
        // Nothing in here sleeps or depends on the time.
        let ctx = Ctx { cpu, node, now: 0, asker: Requester::NONE, memcg: ROOT };
        let mut written = 0;
        for _ in 0..nr {
            let Some(zswap) = self.swap.zswap.as_mut() else { break };
            match zswap.oldest_to_write(memcg, node) {
                (false, _) => break,
                (true, None) => {}
                (true, Some(id)) => {
                    let slot = zswap.at(id).slot;
                    match self.zswap_write_now(slot, &ctx) {
                        Ok(()) => written += 1,
                        // The list is warm here.
                        Err(WritebackFailure::Cached) => return (written, true),
                        Err(WritebackFailure::NoPage) => {}
                    }
                }
            }
        }
        (written, written == 0)
    }
}
