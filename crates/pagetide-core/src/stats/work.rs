//! The work of a step, in counts. A world converts counts to time; the core does not know how long
//! anything takes.
//!
//! The simulator's cost model multiplies these counts by costs; an embedder ignores them.

use crate::units::digest::State;

macro_rules! work {
    ($($(#[$meta:meta])* $field:ident,)*) => {
        /// Counted work of the core since the last [`Work::take`].
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, State)]
        pub struct Work {
            $($(#[$meta])* pub $field: u32,)*
        }

        impl Work {
            /// Returns the counts and starts again from zero.
            #[inline]
            pub fn take(&mut self) -> Work {
                core::mem::take(self)
            }

            /// The counts of all fields in their order, as an array for vector instructions.
            #[inline]
            pub fn counts(&self) -> [u32; Work::FIELDS] {
                [$(self.$field),*]
            }

            /// Whether all counts are 0.
            #[inline]
            pub fn is_nothing(&self) -> bool {
                // Four counts per operation.
                let counts = self.counts();
                let (fours, rest) = counts.as_chunks::<4>();
                let mut all = [0; 4];
                for four in fours {
                    all.iter_mut().zip(four).for_each(|(all, count)| *all |= count);
                }
                all.iter().chain(rest).all(|&count| count == 0)
            }

            /// Adds the counts of another step.
            pub fn add(&mut self, other: &Work) {
                $(self.$field += other.$field;)*
            }

            /// Name and count of every field.
            pub fn fields(&self) -> [(&'static str, u32); Work::FIELDS] {
                [$((stringify!($field), self.$field),)*]
            }

            /// Number of fields.
            pub const FIELDS: usize = [$(stringify!($field)),*].len();
        }
    };
}

work! {
    /// Entries into the page-fault handler.
    faults,
    /// Order-0 pages taken from a per-CPU set.
    pages_allocated,
    /// Pages, of any size, charged to a group other than the root.
    pages_charged,
    /// Pages given back to a per-CPU set.
    pages_freed,
    /// Blocks moved between the buddy lists and a per-CPU set, under the zone lock.
    buddy_ops,
    /// Pages requested with zeroes (`__GFP_ZERO`).
    pages_allocated_zeroed,
    /// Pages zeroed by their receiver: holes of files, huge pages.
    pages_zeroed,
    /// Bytes copied between user memory and page cache.
    bytes_copied,
    /// Page-table entries written (mapping, unmapping, swap entries).
    ptes_set,
    /// Page-cache or swap-cache look-ups and insertions.
    cache_ops,
    /// Pages that reclaim scanned.
    pages_scanned,
    /// Pages that reclaim skipped because their zone was too high.
    pages_skipped,
    /// Reverse-map walks (reference check or unmap of one page-table entry).
    rmap_walks,
    /// Page-table entries read by walks over tables and by looks around used entries.
    ptes_walked,
    /// The used ones among them, whose pages are looked at.
    ptes_used,
    /// Pages moved between LRU lists.
    lru_moves,
    /// Returning pages checked for a refault.
    refaults,
    /// Group walks: lruvecs visited by reclaim.
    lruvecs_visited,
    /// Turns of an active list that reclaim may not age.
    lists_spared,
    /// I/O requests submitted.
    bios,
    /// Pages in the I/O requests.
    bio_pages,
    /// Batches of removed page-table entries that other CPUs may have cached.
    tlb_flushes,
    /// System calls entered.
    syscalls,
    /// Descriptors scanned by compaction, in frame order.
    compact_scanned,
    /// Pages migrated, or tried, without their entries and bytes.
    pages_migrated,
    /// Slabs that a CPU took to allocate from, without their pages.
    slab_refills,
    /// Stocks of bytes drained for another owner.
    objcg_drains,
    /// Caches made for a group.
    caches_created,
    /// Cached objects scanned by a shrinker.
    objects_scanned,
    /// Cached objects freed by a shrinker.
    objects_pruned,
    /// Read requests a file system built for its disk.
    fs_reads,
    /// Work of a file system without its disk: runs of holes filled, pages newly written.
    fs_requests,
    /// File pages that went from dirty to under writeback.
    writebacks,
    /// Pages compressed by LZO.
    lzo_compressed,
    /// Pages decompressed by LZO.
    lzo_decompressed,
    /// Pages compressed by LZO-RLE.
    lzo_rle_compressed,
    /// Pages decompressed by LZO-RLE.
    lzo_rle_decompressed,
    /// Pages compressed by LZ4.
    lz4_compressed,
    /// Pages decompressed by LZ4.
    lz4_decompressed,
    /// Pages compressed by Zstandard.
    zstd_compressed,
    /// Pages decompressed by Zstandard.
    zstd_decompressed,
}
