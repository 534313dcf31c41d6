//! /proc/zoneinfo: nodes and zones with their sizes, free pages and watermarks.
//!
//! Linux: `zoneinfo_show_print` (mm/vmstat.c, 2.6 to 6.18). A zone begins with `Node N, zone NAME`.
//! Since 4.8 the first populated zone of a node also has the node's counters under `per-node
//! stats`; before, all counters belonged to zones. Pages have the system's page size.
//!
//! Invariant: zones are in the order of the text; each (node, name) occurs once.

use super::note::{FileNotes, ImportNote};
use super::number::count;
use std::collections::{BTreeMap, BTreeSet};

/// Maximum number of zones: 64 nodes with the 6 zones of any kernel, and a margin.
const ZONES_MAX: usize = 1024;

pub type ZoneCounters = BTreeMap<String, u64>;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostZoneInfo {
    /// All zones, including empty ones.
    pub zones: Vec<HostZone>,
    /// Counters of the nodes, by node number.
    pub nodes: BTreeMap<u32, ZoneCounters>,
}

/// A zone. Values are in pages of the system's size.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostZone {
    pub node: u32,
    /// Its name: DMA, DMA32, Normal, HighMem, Movable or Device.
    pub name: String,
    /// Free pages in the buddy lists, without per-CPU lists.
    pub free: Option<u64>,
    /// The watermark as printed: with the boost.
    pub min: Option<u64>,
    pub low: Option<u64>,
    pub high: Option<u64>,
    /// Current boost of the watermarks; the line exists since 5.16.
    pub boost: Option<u64>,
    /// From the first page to the last, including holes.
    pub spanned: Option<u64>,
    /// Pages that exist.
    pub present: Option<u64>,
    /// Pages of the allocator (since 3.9).
    pub managed: Option<u64>,
    /// Pages reserved against requests that can use a higher zone, by zone.
    pub protection: Vec<u64>,
    /// All other counters.
    pub counters: ZoneCounters,
    /// Its per-CPU lists.
    pub pagesets: Vec<HostPageSet>,
}

/// A CPU's list of free pages of a zone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HostPageSet {
    pub cpu: u32,
    /// Pages in the list.
    pub count: u64,
    /// Size at which the list returns pages.
    pub high: u64,
    /// Number of pages moved at once.
    pub batch: u64,
}

impl HostZoneInfo {
    /// Number of CPUs with a per-CPU list, which are those online.
    pub fn nr_cpus(&self) -> usize {
        let sets = self.zones.iter().flat_map(|zone| &zone.pagesets);
        sets.map(|set| set.cpu).collect::<BTreeSet<u32>>().len()
    }

    /// The newest release that prints this form, if not all newer ones do.
    pub fn newest_release(&self) -> Option<&'static str> {
        let has = |name: &str| self.zones.iter().any(|zone| zone.counters.contains_key(name));
        let is_managed = self.zones.iter().any(|zone| zone.managed.is_some());
        match (has("active"), is_managed) {
            _ if self.zones.is_empty() => None,
            (true, _) => Some("2.6.27"),
            (false, false) => Some("3.8"),
            (false, true) => (has("scanned") || has("all_unreclaimable")).then_some("4.7"),
        }
    }
}

impl HostZone {
    /// Pages in per-CPU lists.
    pub fn in_pagesets(&self) -> u64 {
        self.pagesets.iter().fold(0, |sum, set| sum.saturating_add(set.count))
    }
}

/// The part of a zone that the current line belongs to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ZoneSection {
    /// Before the first zone, or in a zone that is ignored.
    Outside,
    NodeCounters,
    Zone,
    PageSets,
}

pub fn parse(text: &str) -> (HostZoneInfo, Vec<ImportNote>) {
    let mut notes = FileNotes::new("/proc/zoneinfo");
    let mut info = HostZoneInfo::default();
    let mut part = ZoneSection::Outside;
    // Nothing is read of the last line of a whole file.
    let text = notes.without_cut(text, |line| line.contains("start_pfn:"));
    for (index, line) in text.lines().enumerate() {
        let words: Vec<&str> = line.split_whitespace().take(8).collect();
        if words.first() == Some(&"Node") {
            part = begin_zone(&words, &mut info, (index, line), &mut notes);
            continue;
        }
        let Some(zone) = info.zones.last_mut().filter(|_| part != ZoneSection::Outside) else {
            if part == ZoneSection::Outside && info.zones.is_empty() && !words.is_empty() {
                notes.line(index, "not in any zone", line);
            }
            continue;
        };
        match words.as_slice() {
            [] | ["vm", "stats", "threshold:", _] => {}
            ["per-node", "stats"] => part = ZoneSection::NodeCounters,
            ["pagesets"] => part = ZoneSection::PageSets,
            ["protection:", ..] => match protection(line) {
                Some(pages) => zone.protection = pages,
                None => notes.line(index, "not a list of counts", line),
            },
            ["pages", "free", pages] => {
                part = ZoneSection::Zone;
                zone.free = count(pages);
                if zone.free.is_none() {
                    notes.line(index, "not a count", line);
                }
            }
            // Before 2.6.18 with the scans of both lists, and two lists for each CPU.
            ["scanned", _, "(a:", ..] => {}
            ["cpu:", cpu] | ["cpu:", cpu, "pcp:", _] => {
                match count(cpu).and_then(|cpu| u32::try_from(cpu).ok()) {
                    Some(cpu) => {
                        part = ZoneSection::PageSets;
                        zone.pagesets.push(HostPageSet { cpu, ..HostPageSet::default() });
                    }
                    None => notes.line(index, "not a CPU number", line),
                }
            }
            [name, pages] => match count(pages) {
                Some(pages) if part == ZoneSection::NodeCounters => {
                    let counters = info.nodes.entry(zone.node).or_default();
                    counters.insert((*name).to_owned(), pages);
                }
                Some(pages) => field(zone, name.trim_end_matches(':'), pages, part),
                None => notes.line(index, "not a count", line),
            },
            _ => notes.line(index, "not a line of a zone", line),
        }
    }
    if info.zones.is_empty() {
        notes.file("the file has no zones");
    }
    for zone in &info.zones {
        let missing = [("free", zone.free), ("present", zone.present), ("high", zone.high)];
        for (name, _) in missing.iter().filter(|(_, pages)| pages.is_none()) {
            let (node, zone) = (zone.node, &zone.name);
            notes.file(format!("zone {zone} of node {node} has no `{name}`"));
        }
    }
    (info, notes.finish())
}

/// `Node 0, zone      DMA`
fn begin_zone(
    words: &[&str],
    info: &mut HostZoneInfo,
    (index, line): (usize, &str),
    notes: &mut FileNotes,
) -> ZoneSection {
    let [_, number, "zone", name] = words else {
        notes.line(index, "not the beginning of a zone", line);
        return ZoneSection::Outside;
    };
    let node = number.strip_suffix(',').and_then(count);
    let Some(node) = node.and_then(|node| u32::try_from(node).ok()) else {
        notes.line(index, "not the beginning of a zone", line);
        return ZoneSection::Outside;
    };
    if info.zones.iter().any(|zone| zone.node == node && zone.name == *name) {
        notes.line(index, "the zone has been described before", line);
        return ZoneSection::Outside;
    }
    if info.zones.len() == ZONES_MAX {
        notes.line(index, "too many zones", line);
        return ZoneSection::Outside;
    }
    info.zones.push(HostZone { node, name: (*name).to_owned(), ..HostZone::default() });
    ZoneSection::Zone
}

/// `protection: (0, 3019, 18763)`; here 2.6 has a space after the colon, unlike in its other lines.
fn protection(line: &str) -> Option<Vec<u64>> {
    let (_, list) = line.split_once('(')?;
    let (list, _) = list.split_once(')')?;
    list.split(',').map(|pages| count(pages.trim())).collect()
}

fn field(zone: &mut HostZone, name: &str, pages: u64, part: ZoneSection) {
    if part == ZoneSection::PageSets {
        let Some(set) = zone.pagesets.last_mut() else { return };
        match name {
            "count" => set.count = pages,
            "high" => set.high = pages,
            "batch" => set.batch = pages,
            // Fields after the last per-CPU list belong to the zone.
            "start_pfn" | "node_unreclaimable" | "all_unreclaimable" => {
                zone.counters.insert(name.to_owned(), pages);
            }
            _ => {}
        }
        return;
    }
    match name {
        "min" => zone.min = Some(pages),
        "low" => zone.low = Some(pages),
        "high" => zone.high = Some(pages),
        "boost" => zone.boost = Some(pages),
        "spanned" => zone.spanned = Some(pages),
        "present" => zone.present = Some(pages),
        "managed" => zone.managed = Some(pages),
        _ => {
            zone.counters.insert(name.to_owned(), pages);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
Node 0, zone      DMA
  per-node stats
      nr_inactive_anon 50639
      nr_slab_reclaimable 112858
  pages free     3840
        boost    7
        min      13
        low      16
        high     19
        spanned  4095
        present  3998
        managed  3840
        cma      0
        protection: (0, 3019, 18763, 18763, 18763)
      nr_free_pages 3840
      nr_zone_inactive_anon 5
  pagesets
    cpu: 0
              count:    12
              high:     30
              batch:    1
              high_min: 8
  vm stats threshold: 4
    cpu: 3
              count:    1
              high:     30
              batch:    1
  vm stats threshold: 4
  node_unreclaimable:  0
  start_pfn:           1
Node 1, zone   Normal
  pages free     5
        min      1
        low      2
        high     3
        present  9
";

    #[test]
    fn zones_nodes_and_sets_are_read() {
        let (info, notes) = parse(TEXT);
        assert_eq!(notes, []);
        let [dma, normal] = info.zones.as_slice() else { panic!("{info:?}") };
        assert_eq!((dma.node, dma.name.as_str(), dma.free), (0, "DMA", Some(3840)));
        assert_eq!(
            (dma.min, dma.low, dma.high, dma.boost),
            (Some(13), Some(16), Some(19), Some(7))
        );
        assert_eq!((dma.spanned, dma.present, dma.managed), (Some(4095), Some(3998), Some(3840)));
        assert_eq!(dma.protection, [0, 3019, 18763, 18763, 18763]);
        assert_eq!(dma.counters["nr_zone_inactive_anon"], 5);
        assert_eq!(dma.counters["start_pfn"], 1);
        assert_eq!(dma.pagesets[1], HostPageSet { cpu: 3, count: 1, high: 30, batch: 1 });
        assert_eq!((dma.in_pagesets(), info.nr_cpus()), (13, 2));
        assert_eq!(info.nodes[&0]["nr_slab_reclaimable"], 112_858);
        assert_eq!((normal.node, normal.managed), (1, None));
        let crlf = TEXT.replace('\n', "\r\n");
        assert_eq!(parse(&crlf).0, info);
    }

    #[test]
    fn two_lists_of_a_cpu_are_one_cpu() {
        let text =
            "Node 0, zone DMA\n pages free 9\n high 1\n scanned 0 (a: 0 i: 0)\n present 9\n \
            cpu: 0 pcp: 0\n count: 2\n cpu: 0 pcp: 1\n count: 3\n cpu: 1 pcp: 0\n count: 4\n";
        let (info, notes) = parse(text);
        assert_eq!((info.nr_cpus(), info.zones[0].in_pagesets(), notes), (2, 9, Vec::new()));
    }

    #[test]
    fn the_form_tells_how_old_a_kernel_is() {
        let newest = |text: &str| parse(text).0.newest_release();
        assert_eq!(newest(TEXT), None);
        assert_eq!(newest(&TEXT.replace("managed ", "x ")), Some("3.8"));
        assert_eq!(newest(&TEXT.replace("node_unreclaimable", "all_unreclaimable")), Some("4.7"));
        assert_eq!(newest(&TEXT.replace("nr_zone_inactive_anon", "active")), Some("2.6.27"));
        assert_eq!(newest(""), None);
    }

    #[test]
    fn what_is_strange_is_noted() {
        let text = "x\nNode 0, zone DMA\n  pages free -1\n  present 99999999999999999999\n\
                    \n  a b c\nNode 0, zone DMA\n  pages free 1\nNode z, zone A\n  protection: (1\n\
                    Node 1, zone B\n  protection: (1, x)\n    cpu: 99999999999\n";
        let (info, notes) = parse(text);
        assert_eq!(info.zones.len(), 2);
        let lines: Vec<_> = notes.iter().filter_map(|note| note.line).collect();
        assert_eq!(lines, [1, 3, 4, 6, 7, 9, 12, 13]);
        assert!(notes[1].to_string().ends_with("/proc/zoneinfo:3: not a count: `pages free -1`"));
        assert_eq!(parse("").1[0].message, "the file has no zones");
    }

    #[test]
    fn a_number_that_is_cut_is_left_out() {
        let (info, notes) = parse("Node 0, zone DMA\n pages free 9\n high 1\n present 32");
        assert_eq!(info.zones[0].present, None);
        assert_eq!(
            notes[0].to_string(),
            "/proc/zoneinfo:4: left out: the file is truncated: `present 32`"
        );
        let (info, notes) =
            parse(&TEXT.replace("Node 1", "Node 0")[..TEXT.find("\nNode 1").unwrap()]);
        assert_eq!(info.zones[0].counters["start_pfn"], 1);
        assert!(notes[0].message.starts_with("the last line has no end"), "{notes:?}");
    }

    #[test]
    fn sums_do_not_wrap() {
        let text = "Node 0, zone DMA\n cpu: 0\n count: 18446744073709551615\n cpu: 1\n count: 9\n";
        assert_eq!(parse(text).0.zones[0].in_pagesets(), u64::MAX);
    }
}
