//! Where the memory is: free in zones, held by groups, and as what.

use super::{choice, figure, largest, row, Variant};
use crate::html::lines::{Axis, Choice, Line, Lines, Shape};
use pagetide_scenario::record::Unit;
use pagetide_scenario::timeline::{Row, Sample, ZoneRow};

/// Zones that can be chosen.
const MOST_ZONES: usize = 16;
/// All that is free at first would dwarf what reclaim goes by: so many high marks are shown.
const MARKS_SHOWN: f64 = 3.0;

fn bytes(all: &[Variant]) -> Axis {
    Axis::new("memory", Unit::Bytes).times(all[0].of.page_size as f64)
}

/// Free memory of each zone, and the marks.
pub fn zones(all: &[Variant]) -> Option<Lines> {
    let mut names: Vec<(u32, String)> = Vec::new();
    for zone in all.iter().flat_map(|variant| &variant.timeline().zones) {
        let name = (zone.node, zone.zone.clone());
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let nr_nodes = all.iter().map(|variant| variant.timeline().nr_nodes).max().unwrap_or(1);
    // The largest first: that is where a machine's memory is.
    let size = |name: &(u32, String)| {
        let rows = all.iter().flat_map(|variant| rows_of(variant, name));
        rows.map(|zone| zone.free_max_pages.max(zone.high_pages)).max().unwrap_or(0)
    };
    names.sort_by_key(|name| std::cmp::Reverse(size(name)));
    names.truncate(MOST_ZONES);
    let of_zone = |name: &(u32, String)| {
        let high = all.iter().flat_map(|variant| rows_of(variant, name)).map(|it| it.high_pages);
        let clip = high.max().map(|high| high as f64 * MARKS_SHOWN).filter(|clip| *clip > 0.0);
        let title = match nr_nodes {
            0 | 1 => name.1.clone(),
            _ => format!("node {}, {}", name.0, name.1),
        };
        Choice { clip, ..choice(title, all, |variant| lines(variant, name)) }
    };
    figure(
        "time-zones",
        "Free memory against the watermarks",
        "kswapd is woken below low and stops above high; below min, tasks reclaim for themselves. The ground is the \
         least and the most between two samples.",
        bytes(all),
        names.iter().map(of_zone).collect(),
    )
}

fn place(variant: &Variant, (node, zone): &(u32, String)) -> Option<usize> {
    variant.timeline().zones.iter().position(|it| it.node == *node && it.zone == *zone)
}

fn rows_of<'a>(
    variant: &'a Variant,
    name: &(u32, String),
) -> impl Iterator<Item = &'a ZoneRow> + use<'a> {
    let place = place(variant, name);
    variant.samples().iter().filter_map(move |sample| sample.zones.get(place?))
}

fn lines(variant: &Variant, name: &(u32, String)) -> Vec<Line> {
    let Some(place) = place(variant, name) else { return Vec::new() };
    let level = |pages: fn(&ZoneRow) -> u64| {
        variant.each(|sample| sample.zones.get(place).map(|zone| pages(zone) as f64))
    };
    let free = Line::new(0, "free", Shape::Line, level(|zone| zone.free_pages))
        .between(level(|zone| zone.free_min_pages), level(|zone| zone.free_max_pages));
    let marks: [(&str, fn(&ZoneRow) -> u64); 3] = [
        ("high", |zone| zone.high_pages),
        ("low", |zone| zone.low_pages),
        ("min", |zone| zone.min_pages),
    ];
    let marks = marks
        .into_iter()
        .zip([2, 3, 1])
        .map(|((name, mark), number)| Line::new(number, name, Shape::Line, level(mark)));
    std::iter::once(free).chain(marks).collect()
}

/// How much memory groups have, and as what.
pub fn groups(all: &[Variant]) -> Option<Lines> {
    let kinds: [(&str, fn(&Row) -> u64); 4] = [
        ("in use", |row| row.usage_pages),
        ("anonymous", |row| row.anon_pages),
        ("page cache", |row| row.file_pages),
        ("in swap", |row| row.swap_pages),
    ];
    let of_kind = |(kind, (name, pages)): (usize, (&str, fn(&Row) -> u64))| {
        choice(name, all, |variant| {
            let level = |group: usize, pages: fn(&Row) -> u64| {
                variant.each(|sample| row(sample, group).map(|row| pages(row) as f64))
            };
            let line = |(number, group): (usize, usize)| {
                let name = variant.timeline().groups[group].trim_start_matches('/');
                let line = Line::new(number, name, Shape::Line, level(group, pages));
                match kind {
                    0 => line.between(
                        level(group, |row| row.usage_min_pages),
                        level(group, |row| row.usage_max_pages),
                    ),
                    _ => line,
                }
            };
            largest_groups(variant).into_iter().enumerate().map(line).collect()
        })
    };
    figure(
        "time-groups",
        "Memory of groups",
        "With the groups below each. In use is memory.current; the ground is the least and the most between two \
         samples.",
        bytes(all),
        kinds.into_iter().enumerate().map(of_kind).collect(),
    )
}

/// The groups that had most memory.
pub fn largest_groups(variant: &Variant) -> Vec<usize> {
    largest(1..variant.timeline().groups.len(), |group| {
        let rows = variant.samples().iter().filter_map(|sample| row(sample, group));
        rows.map(|row| row.usage_max_pages).max().unwrap_or(0)
    })
}

/// What the machine's memory holds.
pub fn holds(all: &[Variant]) -> Option<Lines> {
    let lines = |variant: &Variant| {
        let machine = variant.timeline().machine_pages;
        let level = |pages: &dyn Fn(&Row) -> u64| {
            variant.each(|sample: &Sample| row(sample, 0).map(|row| pages(row) as f64))
        };
        let kinds: [(&str, &dyn Fn(&Row) -> u64); 4] = [
            ("anonymous", &|row| row.anon_pages),
            ("page cache", &|row| row.file_pages),
            ("free", &|row| machine.saturating_sub(row.usage_pages)),
            ("in swap", &|row| row.swap_pages),
        ];
        let line = |(number, (name, pages)): (usize, (&str, &dyn Fn(&Row) -> u64))| {
            Line::new(number, name, Shape::Line, level(pages))
        };
        kinds.into_iter().enumerate().map(line).collect()
    };
    figure(
        "time-machine",
        "What memory holds",
        "Of the whole machine. What is in swap is not in memory.",
        bytes(all),
        vec![choice("the machine", all, lines)],
    )
}
