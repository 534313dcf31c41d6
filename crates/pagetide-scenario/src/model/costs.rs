//! Operations with a cost, and the costs that a scenario sets (`[machine.costs]`).
//!
//! The simulator turns counts of these operations into time. It has its own table of costs
//! (`pagetide-sim`, `cost`); a cost set here replaces an entry of that table. Linux has no names
//! for the operations; `pagetide verify --record` measures their costs in a guest.
//!
//! Invariant: a cost is nanoseconds for one operation, and n operations cost n times as much. A
//! cost in a scenario is at most 1 s, so that no sum of costs in a run overflows.

use crate::load::decode::Time;
use crate::load::span::{ProblemSink, Spanned};

/// Largest cost of an operation, in nanoseconds.
const PRICE_MAX: u64 = 1_000_000_000;

/// Checks a cost; reports one that is too large.
fn price(time: &Spanned<Time>, sink: &mut ProblemSink) -> Option<u64> {
    let Time(ns) = time.value;
    if ns > PRICE_MAX {
        let hint = "write the CPU time of one operation, such as \"500ns\"";
        sink.hinted(time.span, "the cost of one operation is more than 1s", hint);
        return None;
    }
    Some(ns)
}

/// Declares the operations: the type that names them, and the table `[machine.costs]`.
macro_rules! prices {
    ($($(#[doc = $doc:literal])+ $name:ident $key:ident,)*) => {
        /// An operation that has a cost.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Price {
            $($(#[doc = $doc])+ $name,)*
        }

        impl Price {
            /// All operations, in the order of the documentation of the keys.
            pub const ALL: [Price; Price::COUNT] = [$(Price::$name),*];
            /// Number of operations.
            pub const COUNT: usize = [$(stringify!($key)),*].len();

            /// The key in `[machine.costs]`.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Price::$name => stringify!($key),)*
                }
            }

            /// Description of the operation.
            pub fn doc(self) -> String {
                let lines: &[&str] = match self {
                    $(Price::$name => &[$($doc),+],)*
                };
                lines.iter().map(|line| line.trim()).collect::<Vec<_>>().join(" ")
            }
        }

        /// `[machine.costs]` as written.
        pub(crate) mod raw {
            use crate::load::decode::{table, Time};
            use crate::load::span::Spanned;

            table! {
                /// Costs of operations on this machine; the simulator has defaults for all of them.
                Costs {
                    $($(#[doc = $doc])+ $key: Spanned<Time>,)*
                }
            }
        }

        impl raw::Costs {
            /// The costs that are set, without those above [`PRICE_MAX`], which are reported.
            pub(crate) fn check(&self, sink: &mut ProblemSink) -> MachineCosts {
                let mut costs = MachineCosts::default();
                $(
                    if let Some(ns) = self.$key.as_ref().and_then(|time| price(time, sink)) {
                        costs.set(Price::$name, ns);
                    }
                )*
                costs
            }
        }
    };
}

prices! {
    /// Enter and leave a page fault: exception, lookup of the mapping, walk of the page table.
    Fault fault,
    /// Take a page from a per-CPU list.
    PageAlloc page_alloc,
    /// Charge a page to a group, and uncharge it later.
    PageCharge page_charge,
    /// Free a page to a per-CPU list.
    PageFree page_free,
    /// Move a block between the buddy lists and a per-CPU list.
    BuddyOp buddy_op,
    /// Clear 4 KiB.
    PageZero page_zero,
    /// Copy 4 KiB between page cache and user memory.
    PageCopy page_copy,
    /// Write a page-table entry, and update the map count of the page.
    Pte pte,
    /// Look up, insert or remove an entry of the page cache or the swap cache.
    CacheOp cache_op,
    /// Scan a page in reclaim.
    PageScan page_scan,
    /// Skip a page in reclaim because its zone is too high.
    PageSkip page_skip,
    /// Walk the reverse map to one page-table entry.
    RmapWalk rmap_walk,
    /// Read one page-table entry among many in order.
    PteWalk pte_walk,
    /// Give the page of a used entry among these a new generation.
    PteUsed pte_used,
    /// Move a page between LRU lists as part of a batch.
    LruMove lru_move,
    /// Test a refaulting page against the sizes of the lists: was it evicted too early?
    Refault refault,
    /// Visit the lists of a group in reclaim.
    LruvecVisit lruvec_visit,
    /// Skip an active list that reclaim may not age, once for 32 pages to scan.
    ListSpare list_spare,
    /// Submit a request to a disk: block layer and driver.
    Bio bio,
    /// A page of a disk request: add it to the request, and complete it after the answer.
    BioPage bio_page,
    /// Flush a batch of page-table entries from the TLB of the CPU that removed them.
    TlbFlush tlb_flush,
    /// Additional cost of a TLB flush for other CPUs; none on a machine with one CPU.
    TlbShootdown tlb_shootdown,
    /// Enter, dispatch and leave a system call.
    Syscall syscall,
    /// Scan a page in compaction.
    CompactScan compact_scan,
    /// Migrate a page in compaction; the copy and the page-table entries have costs of their own.
    PageMigrate page_migrate,
    /// Allocate or free a kernel object on the CPU's own slab.
    Object object,
    /// Charge an object to a group.
    ObjectCharge object_charge,
    /// Take another slab to allocate from; its pages have costs of their own.
    SlabRefill slab_refill,
    /// Drain a CPU's stock of charged bytes, so that another owner can use it.
    ObjcgDrain objcg_drain,
    /// Create a slab cache for a group.
    CacheCreate cache_create,
    /// Scan a cached object in a shrinker.
    ObjectScan object_scan,
    /// Free a cached object in a shrinker; freeing its slab has a cost of its own.
    ObjectPrune object_prune,
    /// The file system's share of a read request.
    FsRead fs_read,
    /// The file system's work for a run of holes, or for a newly written page.
    FsRequest fs_request,
    /// Start writeback of a file page: its tags and blocks.
    Writeback writeback,
    /// Compress a page of 4 KiB with LZO.
    LzoCompress lzo_compress,
    /// Decompress a page of 4 KiB with LZO.
    LzoDecompress lzo_decompress,
    /// Compress a page of 4 KiB with LZO-RLE.
    LzoRleCompress lzo_rle_compress,
    /// Decompress a page of 4 KiB with LZO-RLE.
    LzoRleDecompress lzo_rle_decompress,
    /// Compress a page of 4 KiB with LZ4.
    Lz4Compress lz4_compress,
    /// Decompress a page of 4 KiB with LZ4.
    Lz4Decompress lz4_decompress,
    /// Compress a page of 4 KiB with Zstandard.
    ZstdCompress zstd_compress,
    /// Decompress a page of 4 KiB with Zstandard.
    ZstdDecompress zstd_decompress,
    /// Interrupt and completion of a disk request.
    IoCompletion io_completion,
    /// Switch a CPU from one process to another.
    ContextSwitch context_switch,
    /// The waker's work for a wake-up.
    Wakeup wakeup,
    /// Time from the wake-up to the first instruction on an idle CPU.
    IdleExit idle_exit,
    /// Access a mapped page. The accesses are independent, so their cache misses overlap.
    Hit hit,
    /// User instructions for one access.
    UserAccess user_access,
}

impl Price {
    /// Operations on all bytes of a page. Their costs are for 4 KiB.
    pub const BY_PAGE_BYTES: [Price; 9] = [
        Price::PageZero,
        Price::LzoCompress,
        Price::LzoDecompress,
        Price::LzoRleCompress,
        Price::LzoRleDecompress,
        Price::Lz4Compress,
        Price::Lz4Decompress,
        Price::ZstdCompress,
        Price::ZstdDecompress,
    ];
}

/// The costs that a scenario sets, in nanoseconds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MachineCosts {
    prices: [Option<u64>; Price::COUNT],
}

impl Default for MachineCosts {
    fn default() -> MachineCosts {
        MachineCosts { prices: [None; Price::COUNT] }
    }
}

impl MachineCosts {
    /// The cost of an operation, if it is set.
    pub fn get(&self, price: Price) -> Option<u64> {
        self.prices[price as usize]
    }

    pub fn set(&mut self, price: Price, ns: u64) {
        self.prices[price as usize] = Some(ns);
    }

    /// The costs that are set, in the order of [`Price::ALL`].
    pub fn iter(&self) -> impl Iterator<Item = (Price, u64)> + '_ {
        Price::ALL.into_iter().filter_map(|price| Some((price, self.get(price)?)))
    }

    /// Whether no cost is set: the simulator uses its own table.
    pub fn is_default(&self) -> bool {
        self.prices.iter().all(Option::is_none)
    }
}

/// CPU time that a program needs to generate one operation, in nanoseconds by task and phase
/// (indices), if known: for a program that performs the operations on a real kernel. It belongs to
/// the program; it is not a cost of the kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProgramTimes {
    /// (task, phase, nanoseconds per operation).
    pub of_phases: Vec<(usize, usize, u64)>,
}

impl ProgramTimes {
    /// Nanoseconds per operation; 0 if unknown.
    pub fn of(&self, task: usize, phase: usize) -> u64 {
        let found = self.of_phases.iter().find(|of| (of.0, of.1) == (task, phase));
        found.map_or(0, |of| of.2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::table::KeyTable;
    use crate::load::{load_str, Overrides};
    use std::path::Path;

    fn costs(text: &str, sets: &[(&str, &str)]) -> Result<MachineCosts, String> {
        let text = format!(
            "[machine]\nmemory = \"1GiB\"\n{text}\n[[task]]\nname = \"t\"\nworkload = \"touch\"\nsize = \"1MiB\"\n"
        );
        let sets =
            sets.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        let overrides = Overrides { sets, ..Overrides::default() };
        let loaded = load_str("s.toml", &text, Path::new(""), &overrides);
        let mut scenario = loaded.map_err(|errors| errors.to_string())?;
        Ok(scenario.variants.remove(0).setup.machine.costs)
    }

    #[test]
    fn every_price_can_be_stated() {
        assert!(costs("", &[]).unwrap().is_default());
        let keys: Vec<&str> = Price::ALL.iter().map(|price| price.name()).collect();
        assert_eq!(keys, raw::Costs::KEYS);
        let lines: Vec<String> =
            keys.iter().enumerate().map(|(i, key)| format!("{key} = \"{}ns\"\n", i + 7)).collect();
        let all = costs(&format!("[machine.costs]\n{}", lines.concat()), &[]).unwrap();
        let stated: Vec<(Price, u64)> = all.iter().collect();
        let wanted: Vec<(Price, u64)> = Price::ALL.into_iter().zip(7..).collect();
        assert_eq!(stated, wanted);
    }

    #[test]
    fn a_variant_or_the_command_line_may_state_one() {
        let stated = costs("[machine.costs]\nfault = \"2us\"", &[("machine.costs.pte", "0")]);
        let stated: Vec<(Price, u64)> = stated.unwrap().iter().collect();
        assert_eq!(stated, [(Price::Fault, 2_000), (Price::Pte, 0)]);
    }

    #[test]
    fn a_wrong_price_says_where() {
        let error = costs("[machine.costs]\nfualt = \"2us\"", &[]).unwrap_err();
        assert!(
            error.contains("unknown key `fualt`") && error.contains("did you mean `fault`?"),
            "{error}"
        );
        let error = costs("[machine.costs]\nfault = \"2 parsecs\"", &[]).unwrap_err();
        assert!(error.contains("2 parsecs"), "{error}");
    }
}
