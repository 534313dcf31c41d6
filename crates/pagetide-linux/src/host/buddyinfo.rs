//! /proc/buddyinfo: the free blocks of every zone by order.
//!
//! Linux: `frag_show_print` (mm/vmstat.c). Invariant: `blocks[n]` counts blocks of 2^n pages.

use super::note::{FileNotes, ImportNote};
use super::number::count;
use pagetide_core::frames::boot::free_lists::NR_TYPES;

/// Maximum number of orders: a block of order 32 would exceed any machine.
const ORDERS_MAX: usize = 32;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BuddyInfo {
    pub node: u32,
    pub zone: String,
    /// Blocks by order.
    pub blocks: Vec<u64>,
    /// First letters of the migrate types that have blocks, by order (U, M, E, H, C, I); empty if
    /// unknown. Only reports in the log have them.
    pub letters: Vec<String>,
}

impl BuddyInfo {
    /// Pages in blocks of `order` and above.
    pub fn pages_from(&self, order: usize) -> u64 {
        let blocks = self.blocks.iter().enumerate().skip(order);
        blocks.fold(0, |sum, (order, blocks)| {
            sum.saturating_add(blocks.saturating_mul(1 << order.min(ORDERS_MAX)))
        })
    }

    /// Blocks of orders 0 to 10, larger ones as several, for each of the types Unmovable, Movable,
    /// Reclaimable and CMA. An order is movable unless its letters exclude that. `None` if they are
    /// too many.
    pub(super) fn by_type(&self) -> Option<[[u32; 11]; NR_TYPES]> {
        let mut counts = [[0u32; 11]; NR_TYPES];
        for (order, blocks) in self.blocks.iter().enumerate() {
            let parts = 1u64.checked_shl(order.saturating_sub(10) as u32)?;
            let blocks = u32::try_from(blocks.checked_mul(parts)?).ok()?;
            let letters = self.letters.get(order).map_or("", String::as_str);
            let kind = match letters {
                "" => 1,
                _ if letters.contains('M') => 1,
                _ if letters.contains('U') => 0,
                "E" => 2,
                "C" => 3,
                _ => 1,
            };
            let place = &mut counts[kind][order.min(10)];
            *place = place.checked_add(blocks)?;
        }
        Some(counts)
    }
}

pub fn parse(text: &str) -> (Vec<BuddyInfo>, Vec<ImportNote>) {
    let mut notes = FileNotes::new("/proc/buddyinfo");
    let mut zones = Vec::new();
    // The kernel writes a space behind the last number, which pasted text can lack in all lines.
    let text = notes.without_cut(text, |line| {
        let form = |line: &str| (line.split_whitespace().count(), line.ends_with(' '));
        text.lines().next().is_none_or(|first| form(first) == form(line))
    });
    for (index, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        match parse_line(line) {
            Some(zone) => zones.push(zone),
            None => notes.line(index, "not the free blocks of a zone", line),
        }
    }
    (zones, notes.finish())
}

/// `Node 0, zone   Normal   2938   1078 ...`
fn parse_line(line: &str) -> Option<BuddyInfo> {
    let mut words = line.split_whitespace();
    if words.next() != Some("Node") {
        return None;
    }
    let node = count(words.next()?.strip_suffix(',')?)?;
    if words.next() != Some("zone") {
        return None;
    }
    let zone = words.next()?.to_owned();
    let blocks: Option<Vec<u64>> = words.take(ORDERS_MAX + 1).map(count).collect();
    let blocks = blocks.filter(|blocks| (1..=ORDERS_MAX).contains(&blocks.len()))?;
    Some(BuddyInfo { node: u32::try_from(node).ok()?, zone, blocks, letters: Vec::new() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_read() {
        let text = "Node 0, zone      DMA      0      2      1 \nNode 1, zone   Normal   5 0 3\r\n";
        let (zones, notes) = parse(text);
        assert_eq!(notes, []);
        assert_eq!((zones[0].node, zones[0].zone.as_str()), (0, "DMA"));
        assert_eq!((zones[0].pages_from(0), zones[0].pages_from(2)), (8, 4));
        let large =
            BuddyInfo { blocks: vec![1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 3, 0, 2], ..zones[0].clone() };
        assert_eq!(large.by_type().unwrap()[1], [1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 11]);
        let letters = ["U", "", "", "", "", "", "", "", "", "", "E"].map(String::from).into();
        let [unmovable, movable, reclaimable, _] =
            BuddyInfo { letters, ..large.clone() }.by_type().unwrap();
        assert_eq!((unmovable[0], movable[10], reclaimable[10]), (1, 8, 3));
        assert_eq!(BuddyInfo { blocks: vec![u64::MAX], ..large }.by_type(), None);
        assert_eq!((zones[1].node, zones[1].blocks.as_slice()), (1, &[5, 0, 3][..]));
    }

    #[test]
    fn a_number_that_is_cut_is_left_out() {
        let text = "Node 0, zone DMA 0 2 1 \nNode 0, zone Normal 5 0 32 ";
        for (text, zones, message) in [
            (text, 2, "the last line has no end"),
            (&text[..text.len() - 1], 1, "left out: the file is truncated"),
            (&text[..text.len() - 3], 1, "left out: the file is truncated"),
            (&text.replace(" \n", "\n")[..text.len() - 2], 2, "the last line has no end"),
        ] {
            let (read, notes) = parse(text);
            assert_eq!(read.len(), zones, "{text}");
            assert!(notes[0].message.starts_with(message) && notes[0].line == Some(2), "{notes:?}");
        }
    }

    #[test]
    fn what_is_strange_is_noted() {
        let long = format!("Node 0, zone DMA {}", "1 ".repeat(40));
        let text = format!("{long}\nNode 0, zone DMA\nNode 0 zone DMA 1\nzone\nNode 0, zone A x\n");
        let (zones, notes) = parse(&text);
        assert_eq!((zones.len(), notes.len()), (0, 5));
        let (zones, _) = parse("Node 0, zone DMA 18446744073709551615 18446744073709551615");
        assert_eq!(zones[0].pages_from(0), u64::MAX);
    }
}
