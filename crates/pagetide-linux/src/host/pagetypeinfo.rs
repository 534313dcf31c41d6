//! /proc/pagetypeinfo: free blocks by zone, type and order, and pageblocks by zone and type.
//!
//! Only root may read it. Numbers that the kernel found too long to count are printed as `>100000`;
//! a zone with one is left out, as is everything that is not understood.

use std::collections::BTreeMap;

/// The types that a scenario knows, in its order.
const TYPES: [&str; 3] = ["Unmovable", "Movable", "Reclaimable"];

/// The file, by node and zone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PageTypeInfo {
    free: BTreeMap<(u32, String), BTreeMap<String, [u32; 11]>>,
    blocks: BTreeMap<(u32, String), Vec<u32>>,
}

impl PageTypeInfo {
    /// Free blocks of each of Unmovable, Movable and Reclaimable, by order; empty if not known.
    pub fn free_blocks(&self, node: u32, zone: &str) -> Vec<[u32; 11]> {
        let types = self.free.get(&(node, zone.to_owned()));
        let of = |name: &&str| types?.get(*name).copied();
        TYPES.iter().map(of).collect::<Option<Vec<_>>>().unwrap_or_default()
    }

    /// Pageblocks of each of these types; empty if not known.
    pub fn pageblocks(&self, node: u32, zone: &str) -> Vec<u32> {
        self.blocks.get(&(node, zone.to_owned())).cloned().unwrap_or_default()
    }
}

/// Reads the file; what is not understood is left out.
pub fn parse(text: &str) -> PageTypeInfo {
    let mut info = PageTypeInfo::default();
    let mut columns: Vec<usize> = Vec::new();
    for line in text.lines() {
        if let Some(names) = line.strip_prefix("Number of blocks type") {
            let names: Vec<&str> = names.split_whitespace().collect();
            let of = |name: &&str| names.iter().position(|found| found == name);
            columns = TYPES.iter().filter_map(of).collect();
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
            (Some(Some(name)), Some(numbers)) => {
                if let Ok(counts) = <[u32; 11]>::try_from(numbers) {
                    info.free.entry(place).or_default().insert(name.to_owned(), counts);
                }
            }
            (None, Some(numbers)) => {
                let of = |&column: &usize| numbers.get(column).copied();
                if let Some(counts) = columns.iter().map(of).collect::<Option<Vec<u32>>>() {
                    if counts.len() == TYPES.len() {
                        info.blocks.insert(place, counts);
                    }
                }
            }
            _ => {}
        }
    }
    info
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
Page block order: 9
Pages per block:  512

Free pages count per migrate type at order       0      1      2      3      4      5      6      7      8      9     10 
Node    0, zone      DMA, type    Unmovable      0      0      0      0      0      1      1      1      0      0      0 
Node    0, zone      DMA, type      Movable      0      0      0      0      0      0      0      0      0      1      3 
Node    0, zone      DMA, type  Reclaimable      0      0      0      0      0      0      0      0      0      0      0 
Node    0, zone    DMA32, type    Unmovable      0      1      1      4      0      1      1      1      1      0      0 
Node    0, zone    DMA32, type      Movable      1      0 >100000      0      0      6      9      7      7      2     38 

Number of blocks type     Unmovable      Movable  Reclaimable   HighAtomic      Isolate 
Node 0, zone      DMA            1            7            0            0            0 
";

    #[test]
    fn lists_and_blocks_are_read() {
        let info = parse(TEXT);
        let free = info.free_blocks(0, "DMA");
        assert_eq!(free[0], [0, 0, 0, 0, 0, 1, 1, 1, 0, 0, 0]);
        assert_eq!(free[1], [0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 3]);
        assert_eq!(info.pageblocks(0, "DMA"), [1, 7, 0]);
        assert!(info.free_blocks(0, "DMA32").is_empty(), "a number is not known");
        assert!(info.pageblocks(0, "DMA32").is_empty());
        for end in 0..TEXT.len() {
            parse(&TEXT[..end]);
        }
    }
}
