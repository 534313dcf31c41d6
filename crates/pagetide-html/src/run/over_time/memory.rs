//! Charts of memory: free in zones, used by groups, and by kind.

use super::{choice, figure, largest, row, Variant};
use crate::lines::{ChartAxis, ChartChoice, ChartFigure, ChartLine, LineShape};
use pagetide_scenario::record::timeline::{GroupRow, TimelineSample, ZoneRow};
use pagetide_scenario::record::Unit;

/// Zones that can be chosen.
const MOST_ZONES: usize = 16;
/// The scale ends at this many high watermarks, because an empty machine would dwarf them.
const MARKS_SHOWN: f64 = 3.0;

/// Pages of a kind in a row.
type PagesOf = fn(&GroupRow) -> u64;

fn bytes(all: &[Variant]) -> ChartAxis {
    ChartAxis::new("memory", Unit::Bytes).times(all[0].of.page_size as f64)
}

/// Free memory of each zone, and the watermarks.
pub fn zones(all: &[Variant]) -> Option<ChartFigure> {
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
        ChartChoice { clip, ..choice(title, all, |variant| lines(variant, name)) }
    };
    figure(
        "time-zones",
        "Free memory against the watermarks",
        "kswapd wakes below low and stops above high; below min, tasks reclaim directly. The band is minimum and \
         maximum between two samples.",
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

fn lines(variant: &Variant, name: &(u32, String)) -> Vec<ChartLine> {
    let Some(place) = place(variant, name) else { return Vec::new() };
    let level = |pages: fn(&ZoneRow) -> u64| {
        variant.each(|sample| sample.zones.get(place).map(|zone| pages(zone) as f64))
    };
    let free = ChartLine::new(0, "free", LineShape::Line, level(|zone| zone.free_pages))
        .between(level(|zone| zone.free_min_pages), level(|zone| zone.free_max_pages));
    let mark = |number: usize, name: &str, pages: fn(&ZoneRow) -> u64| {
        ChartLine::new(number, name, LineShape::Line, level(pages))
    };
    vec![
        free,
        mark(2, "high", |zone| zone.high_pages),
        mark(3, "low", |zone| zone.low_pages),
        mark(1, "min", |zone| zone.min_pages),
    ]
}

/// Memory of groups, by kind.
pub fn groups(all: &[Variant]) -> Option<ChartFigure> {
    let of_kind = |name: &str, pages: PagesOf, extremes: Option<[PagesOf; 2]>| {
        choice(name, all, |variant| {
            let level = |group: usize, pages: PagesOf| {
                variant.each(|sample| row(sample, group).map(|row| pages(row) as f64))
            };
            let line = |(number, group): (usize, usize)| {
                let name = variant.timeline().groups[group].trim_start_matches('/');
                let line = ChartLine::new(number, name, LineShape::Line, level(group, pages));
                match extremes {
                    Some([least, most]) => line.between(level(group, least), level(group, most)),
                    None => line,
                }
            };
            largest_groups(variant).into_iter().enumerate().map(line).collect()
        })
    };
    let extremes: Option<[PagesOf; 2]> =
        Some([|row| row.usage_min_pages, |row| row.usage_max_pages]);
    figure(
        "time-groups",
        "Memory of groups",
        "Including descendants. In use is memory.current; its band is minimum and maximum between two samples.",
        bytes(all),
        vec![
            of_kind("in use", |row| row.usage_pages, extremes),
            of_kind("anonymous", |row| row.anon_pages, None),
            of_kind("page cache", |row| row.file_pages, None),
            of_kind("in swap", |row| row.swap_pages, None),
        ],
    )
}

pub fn largest_groups(variant: &Variant) -> Vec<usize> {
    largest(1..variant.timeline().groups.len(), |group| {
        let rows = variant.samples().iter().filter_map(|sample| row(sample, group));
        rows.map(|row| row.usage_max_pages).max().unwrap_or(0)
    })
}

/// Memory of the machine, by kind.
pub fn holds(all: &[Variant]) -> Option<ChartFigure> {
    let lines = |variant: &Variant| {
        let machine = variant.timeline().machine_pages;
        let line = |number: usize, name: &str, pages: &dyn Fn(&GroupRow) -> u64| {
            let level = |sample: &TimelineSample| row(sample, 0).map(|row| pages(row) as f64);
            ChartLine::new(number, name, LineShape::Line, variant.each(level))
        };
        vec![
            line(0, "anonymous", &|row| row.anon_pages),
            line(1, "page cache", &|row| row.file_pages),
            line(2, "free", &|row| machine.saturating_sub(row.usage_pages)),
            line(3, "in swap", &|row| row.swap_pages),
        ]
    };
    figure(
        "time-machine",
        "Memory by kind",
        "Of the whole machine. Swapped pages are not in memory.",
        bytes(all),
        vec![choice("the machine", all, lines)],
    )
}
