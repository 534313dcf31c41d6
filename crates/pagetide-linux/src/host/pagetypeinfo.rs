//! /proc/pagetypeinfo: free blocks by zone, type and order, and pageblocks by zone and type.
//!
//! Only root can read it. The kernel prints `>100000` for counts that take too long. A zone with
//! such a count is left out, as is everything that is not understood, with a note.

use super::note::{FileNotes, ImportNote};
use pagetide_core::frames::boot::free_lists::NR_TYPES;
use pagetide_scenario::model::FreeLists;
use std::collections::BTreeMap;

/// Maximum number of orders: arm64 with pages of 64 KiB has 14.
const ORDERS_MAX: usize = 16;
/// The types of a scenario, in its order.
const TYPES: [&str; NR_TYPES] = ["Unmovable", "Movable", "Reclaimable", "CMA"];
/// Those that every kernel has.
const ALWAYS: [&str; 3] = ["Unmovable", "Movable", "Reclaimable"];
/// Indices of types.
pub(crate) const MOVABLE: usize = 1;
pub(crate) const CMA: usize = 3;

/// The contents, by node and zone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PageTypeInfo {
    /// Free blocks by type and order.
    free: BTreeMap<(u32, String), BTreeMap<String, Vec<u32>>>,
    /// Pageblocks by type.
    blocks: BTreeMap<(u32, String), BTreeMap<String, u32>>,
    /// `Page block order`; 0 if the file does not say it.
    block_order: u32,
    /// Notes, for users that need the free lists.
    pub notes: Vec<ImportNote>,
}

impl PageTypeInfo {
    /// Free blocks by order, for each of Unmovable, Movable, Reclaimable and CMA; empty if unknown.
    /// Blocks of other types (Reserve, HighAtomic) count as movable, larger blocks as several.
    pub fn free_blocks(&self, node: u32, zone: &str) -> Vec<[u32; 11]> {
        let Some(types) = self.free.get(&(node, zone.to_owned())) else { return Vec::new() };
        let has_cma = self.cma_pageblocks(node, zone).is_some_and(|nr| nr > 0);
        let needed = ALWAYS.iter().chain(has_cma.then_some(&TYPES[CMA]));
        if !needed.into_iter().all(|name| types.contains_key(*name)) {
            return Vec::new();
        }
        let mut lists = vec![[0u32; 11]; TYPES.len()];
        for (name, counts) in types.iter().filter(|(name, _)| *name != "Isolate") {
            let list = &mut lists[index_of(name)];
            for (order, count) in counts.iter().enumerate() {
                let parts = 1u32.checked_shl(order.saturating_sub(10) as u32).unwrap_or(u32::MAX);
                let place = &mut list[order.min(10)];
                *place = place.saturating_add(count.saturating_mul(parts));
            }
        }
        lists
    }

    /// Pageblocks of order 9 of type CMA; `None` if unknown.
    pub fn cma_pageblocks(&self, node: u32, zone: &str) -> Option<u32> {
        self.pageblocks(node, zone).get(CMA).copied()
    }

    /// Pageblocks of order 9 of each of these types; empty if unknown.
    pub fn pageblocks(&self, node: u32, zone: &str) -> Vec<u32> {
        let Some(types) = self.blocks.get(&(node, zone.to_owned())) else { return Vec::new() };
        let mut counts = vec![0u32; TYPES.len()];
        for (name, count) in types {
            let count = match self.block_order {
                0 => *count,
                order @ 1..9 => count.div_ceil(1 << (9 - order)),
                order => count.saturating_mul(1u32.checked_shl(order - 9).unwrap_or(u32::MAX)),
            };
            counts[index_of(name)] = counts[index_of(name)].saturating_add(count);
        }
        counts
    }
}

/// The scenario's type for a type of the kernel.
fn index_of(name: &str) -> usize {
    TYPES.iter().position(|one| *one == name).unwrap_or(MOVABLE)
}

/// Free lists for a scenario; `None` if a type is unknown.
pub(crate) fn free_lists(blocks: &[[u32; 11]], pageblocks: &[u32]) -> Option<FreeLists> {
    let mut lists = FreeLists::default();
    lists.blocks.get_mut(..blocks.len())?.copy_from_slice(blocks);
    lists.pageblocks.get_mut(..pageblocks.len())?.copy_from_slice(pageblocks);
    (blocks.len() >= ALWAYS.len() && pageblocks.len() >= ALWAYS.len()).then_some(lists)
}

/// `lists` with `pages` additional pages of type `of`, in as few blocks as possible.
pub(crate) fn with_pages(mut lists: FreeLists, of: usize, pages: u64) -> FreeLists {
    let blocks = &mut lists.blocks[of];
    for (order, count) in blocks.iter_mut().enumerate().take(10) {
        *count += (pages >> order & 1) as u32;
    }
    blocks[10] += (pages >> 10) as u32;
    lists
}

/// The free lists of two zones together.
pub(crate) fn joined(mut a: FreeLists, b: FreeLists) -> FreeLists {
    let blocks = a.blocks.iter_mut().flatten().zip(b.blocks.iter().flatten());
    let all = blocks.chain(a.pageblocks.iter_mut().zip(&b.pageblocks));
    all.for_each(|(count, more)| *count = count.saturating_add(*more));
    a
}

/// Parses the file; leaves out what it does not understand.
pub fn parse(text: &str) -> PageTypeInfo {
    let mut notes = FileNotes::new("/proc/pagetypeinfo");
    let mut info = parse_noting(text, &mut notes);
    info.notes = notes.finish();
    info
}

fn parse_noting(text: &str, notes: &mut FileNotes) -> PageTypeInfo {
    let mut info = PageTypeInfo::default();
    let mut columns: Vec<&str> = Vec::new();
    for (index, line) in text.split_inclusive('\n').enumerate() {
        if !line.ends_with('\n') {
            notes.line(index, "left out: the file is truncated", line);
            continue;
        }
        let line = line.trim_end();
        if let Some(order) = line.strip_prefix("Page block order:") {
            info.block_order = order.trim().parse().unwrap_or(0);
            if !(1..=ORDERS_MAX as u32).contains(&info.block_order) {
                notes.line(index, "not an order", line);
                return PageTypeInfo::default();
            }
        }
        // A kernel with page owners has a third table of the same form.
        if line.starts_with("Number of mixed blocks") {
            break;
        }
        if let Some(names) = line.strip_prefix("Number of blocks type") {
            columns = names.split_whitespace().collect();
            if !ALWAYS.iter().all(|name| columns.contains(name)) {
                notes.line(index, "a type of pageblocks is missing", line);
                columns.clear();
            }
            continue;
        }
        let Some((place, numbers)) = line.strip_prefix("Node").and_then(|rest| {
            let (node, rest) = rest.trim_start().split_once(',')?;
            let rest = rest.trim_start().strip_prefix("zone")?.trim_start();
            let end = rest.find([',', ' '])?;
            Some(((node.parse().ok()?, rest[..end].to_owned()), &rest[end..]))
        }) else {
            continue;
        };
        let mut words = numbers.trim_start_matches(',').split_whitespace().peekable();
        let of_type = words.next_if_eq(&"type").is_some().then(|| words.next());
        let numbers: Option<Vec<u32>> = words.map(|word| word.parse().ok()).collect();
        match (of_type, numbers) {
            (Some(Some(name)), Some(counts)) if (1..=ORDERS_MAX).contains(&counts.len()) => {
                info.free.entry(place).or_default().insert(name.to_owned(), counts);
            }
            (Some(_), Some(_)) => notes.line(index, "not free blocks by order", line),
            (None, Some(numbers)) => {
                if !columns.is_empty() && numbers.len() == columns.len() {
                    let names = columns.iter().map(|name| (*name).to_owned());
                    info.blocks.insert(place, names.zip(numbers).collect());
                }
            }
            _ => notes.line(index, "a number is unknown", line),
        }
    }
    if info.free.is_empty() {
        notes.file("the free lists are missing");
    } else if info.blocks.is_empty() {
        notes.file("the numbers of pageblocks are missing");
    }
    info
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
Page block order: 9
Pages per block:  512

Free pages count per migrate type at order     0     1     2     3     4     5     6     7     8     9    10 
Node    0, zone      DMA, type    Unmovable     0     0     0     0     0     1     1     1     0     0     0 
Node    0, zone      DMA, type      Movable     0     0     0     0     0     0     0     0     0     1     3 
Node    0, zone      DMA, type  Reclaimable     0     0     0     0     0     0     0     0     0     0     0 
Node    0, zone    DMA32, type    Unmovable     0     1     1     4     0     1     1     1     1     0     0 
Node    0, zone    DMA32, type      Movable     1     0 >100000     0     0     6     9     7     7     2    38 

Number of blocks type     Unmovable      Movable  Reclaimable   HighAtomic      Isolate 
Node 0, zone      DMA            1            7            0            0            0 
";

    #[test]
    fn lists_and_blocks_are_read() {
        let info = parse(TEXT);
        let free = info.free_blocks(0, "DMA");
        assert_eq!(free[0], [0, 0, 0, 0, 0, 1, 1, 1, 0, 0, 0]);
        assert_eq!(free[1], [0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 3]);
        assert_eq!(info.pageblocks(0, "DMA"), [1, 7, 0, 0]);
        assert!(info.free_blocks(0, "DMA32").is_empty(), "a number is unknown");
        assert!(info.pageblocks(0, "DMA32").is_empty());
        let told: Vec<String> = info.notes.iter().map(ToString::to_string).collect();
        assert_eq!(told.len(), 1, "{told:?}");
        assert!(
            told[0].starts_with("/proc/pagetypeinfo:9: a number is unknown: `Node"),
            "{told:?}"
        );
        for end in 0..TEXT.len() {
            assert!(!parse(&TEXT[..end]).notes.is_empty(), "cut at {end}");
        }
    }

    #[test]
    fn other_block_orders_and_types_are_converted() {
        let text = "\
Page block order: 11
Node 0, zone Normal, type Unmovable 1 0 0 0 0 0 0 0 0 0 0 2
Node 0, zone Normal, type Movable 0 0 0 0 0 0 0 0 0 0 1 0
Node 0, zone Normal, type Reclaimable 0 0 0 0 0 0 0 0 0 0 0 0
Node 0, zone Normal, type CMA 0 5 0 0 0 0 0 0 0 0 0 0
Node 0, zone Normal, type Isolate 9 0 0 0 0 0 0 0 0 0 0 0
Number of blocks type Unmovable Movable Reclaimable CMA Isolate
Node 0, zone Normal 3 2 0 1 0
";
        let info = parse(text);
        assert_eq!(info.notes, []);
        let lists = info.free_blocks(0, "Normal");
        assert_eq!((lists[0][0], lists[0][10]), (1, 4));
        assert_eq!((lists[1][10], lists[3][1], lists[3][10]), (1, 5, 0));
        assert_eq!(info.pageblocks(0, "Normal"), [12, 8, 0, 4]);
        let small = parse(&text.replace("order: 11", "order: 8"));
        assert_eq!(small.pageblocks(0, "Normal"), [2, 1, 0, 1]);
        // Without the row of CMA nothing is known of the zone's lists.
        let cut = parse(&text.replace("type CMA 0 5", "type CMA x"));
        assert_eq!(
            (cut.free_blocks(0, "Normal").len(), cut.cma_pageblocks(0, "Normal")),
            (0, Some(4))
        );
    }

    #[test]
    fn what_cannot_be_used_is_noted() {
        let told = |text: &str| parse(text).notes[0].to_string();
        assert_eq!(told(""), "/proc/pagetypeinfo: the free lists are missing");
        let text = TEXT.replace("order: 9", "order: x");
        assert!(told(&text).contains(":1: not an order"));
        assert!(parse(&text).free_blocks(0, "DMA").is_empty());
        let table = TEXT.find("Number of").unwrap();
        let last = parse(&TEXT[..table]).notes.pop().unwrap();
        assert_eq!(last.to_string(), "/proc/pagetypeinfo: the numbers of pageblocks are missing");
        // The third table is not taken for the second.
        let mixed = TEXT[table..].replace("blocks type", "mixed blocks").replace('7', "3");
        let info = parse(&format!("{TEXT}{mixed}"));
        assert_eq!(info.pageblocks(0, "DMA"), [1, 7, 0, 0]);
    }
}
