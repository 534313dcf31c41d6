//! The operations that have a price, and the prices that a scenario states (`[machine.costs]`).
//!
//! A world that simulates turns counts of these operations into time. It has a table of its own
//! (`pagetide-sim`, `cost`) and takes from here what is stated instead. Linux has no name for them: they are what
//! `pagetide verify --record` measures them in a guest.
//!
//! Invariant: a price is nanoseconds for one operation, and linear: n of them cost n times as much. One that is
//! stated is at most a second, so that no sum of them in a run is too large to count.

use crate::load::decode::Time;
use crate::load::span::{At, Sink};

/// Most that an operation can cost, nanoseconds.
const PRICE_MAX: u64 = 1_000_000_000;

/// A price as it is written, if it is one.
fn price(time: &At<Time>, sink: &mut Sink) -> Option<u64> {
    let Time(ns) = time.value;
    if ns > PRICE_MAX {
        let hint = "a price is the CPU time of one operation, such as \"500ns\"";
        sink.hinted(time.span, "one operation costs more than 1s", hint);
        return None;
    }
    Some(ns)
}

/// Declares the operations: the type that names them, and the table `[machine.costs]`.
macro_rules! prices {
    ($($(#[doc = $doc:literal])+ $name:ident $key:ident,)*) => {
        /// An operation that has a price.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Price {
            $($(#[doc = $doc])+ $name,)*
        }

        impl Price {
            /// All of them, in the order of the key documentation.
            pub const ALL: [Price; Price::COUNT] = [$(Price::$name),*];
            /// How many there are.
            pub const COUNT: usize = [$(stringify!($key)),*].len();

            /// The key in `[machine.costs]`.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Price::$name => stringify!($key),)*
                }
            }

            /// What is done for the price.
            pub fn doc(self) -> String {
                let lines: &[&str] = match self {
                    $(Price::$name => &[$($doc),+],)*
                };
                lines.iter().map(|line| line.trim()).collect::<Vec<_>>().join(" ")
            }
        }

        /// `[machine.costs]` as it is written.
        pub(crate) mod raw {
            use crate::load::decode::{table, Time};
            use crate::load::span::At;

            table! {
                /// What operations cost on this machine; those that are left out have the simulator's own prices.
                Costs {
                    $($(#[doc = $doc])+ $key: At<Time>,)*
                }
            }
        }

        impl raw::Costs {
            /// What is stated, if it is at most [`PRICE_MAX`].
            pub(crate) fn check(&self, sink: &mut Sink) -> Costs {
                let mut costs = Costs::default();
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
    /// A page fault entered and left: exception, look-up of the mapping, walk of the page table.
    Fault fault,
    /// A page taken from a per-CPU list.
    PageAlloc page_alloc,
    /// A page charged to a group, and later taken off its bill.
    PageCharge page_charge,
    /// A page given back to a per-CPU list.
    PageFree page_free,
    /// A block moved between the buddy lists and a per-CPU list.
    BuddyOp buddy_op,
    /// Clearing 4 KiB.
    PageZero page_zero,
    /// Copying 4 KiB between page cache and user memory.
    PageCopy page_copy,
    /// A page-table entry written, with the page's map count.
    Pte pte,
    /// A look-up in, an insertion into or a removal from the page cache or the swap cache.
    CacheOp cache_op,
    /// A page looked at by reclaim.
    PageScan page_scan,
    /// A page passed over by reclaim, as its zone is too high.
    PageSkip page_skip,
    /// A walk of the reverse map to one page-table entry.
    RmapWalk rmap_walk,
    /// A page moved between LRU lists, as a part of a batch.
    LruMove lru_move,
    /// A page that comes back weighed against the lists: was it evicted too early?
    Refault refault,
    /// The lists of a group visited by reclaim.
    LruvecVisit lruvec_visit,
    /// A request put to a disk: block layer and driver.
    Bio bio,
    /// A page of such a request: its place in it, and what is done for it when the disk has answered.
    BioPage bio_page,
    /// A batch of page-table entries flushed on the CPU that took them away.
    TlbFlush tlb_flush,
    /// What other CPUs add to such a flush; nothing on a machine with one CPU.
    TlbShootdown tlb_shootdown,
    /// A system call entered, dispatched and left.
    Syscall syscall,
    /// A page looked at by a scanner of compaction.
    CompactScan compact_scan,
    /// A page moved by compaction, besides its entries and its bytes.
    PageMigrate page_migrate,
    /// An object of the kernel allocated or freed on the CPU's own slab.
    Object object,
    /// Charging an object to a group.
    ObjectCharge object_charge,
    /// A slab taken to allocate from, besides its pages.
    SlabRefill slab_refill,
    /// A stock of bytes given up for another owner.
    ObjcgDrain objcg_drain,
    /// A cache made for a group.
    CacheCreate cache_create,
    /// A kept object looked at by a shrinker.
    ObjectScan object_scan,
    /// A kept object freed by a shrinker, besides its slab.
    ObjectPrune object_prune,
    /// The file system's share of a read request.
    FsRead fs_read,
    /// The file system's share of a run of holes, or of a page newly written.
    FsRequest fs_request,
    /// A page of a file put under writeback: its tags, its blocks.
    Writeback writeback,
    /// Interrupt and completion of a request.
    IoCompletion io_completion,
    /// Switching a CPU from one process to another.
    ContextSwitch context_switch,
    /// The waker's share of a wake-up.
    Wakeup wakeup,
    /// From the wake-up to the first instruction on an idle CPU.
    IdleExit idle_exit,
    /// Touching a page that is mapped, as one of many independent touches.
    Hit hit,
    /// The user's instructions around one access.
    UserAccess user_access,
}

/// The prices that are stated, in nanoseconds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Costs {
    prices: [Option<u64>; Price::COUNT],
}

impl Default for Costs {
    fn default() -> Costs {
        Costs { prices: [None; Price::COUNT] }
    }
}

impl Costs {
    /// The price of an operation, if it is stated.
    pub fn get(&self, price: Price) -> Option<u64> {
        self.prices[price as usize]
    }

    /// States a price.
    pub fn set(&mut self, price: Price, ns: u64) {
        self.prices[price as usize] = Some(ns);
    }

    /// What is stated, in the order of [`Price::ALL`].
    pub fn iter(&self) -> impl Iterator<Item = (Price, u64)> + '_ {
        Price::ALL.into_iter().filter_map(|price| Some((price, self.get(price)?)))
    }

    /// Whether nothing is stated: the simulator's own table.
    pub fn is_default(&self) -> bool {
        self.prices.iter().all(Option::is_none)
    }
}

/// How long a program takes to make each of its operations, nanoseconds by task and phase (their numbers), where that
/// is known: of a program that performs them on a real kernel. It is the program's own and no price of the kernel's.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProgramTimes {
    /// (task, phase, nanoseconds an operation).
    pub of_phases: Vec<(usize, usize, u64)>,
}

impl ProgramTimes {
    /// Nanoseconds an operation; 0 where it is not known.
    pub fn of(&self, task: usize, phase: usize) -> u64 {
        let found = self.of_phases.iter().find(|of| (of.0, of.1) == (task, phase));
        found.map_or(0, |of| of.2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::table::Keyed;
    use crate::load::{load_str, Overrides};
    use std::path::Path;

    fn costs(text: &str, sets: &[(&str, &str)]) -> Result<Costs, String> {
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
