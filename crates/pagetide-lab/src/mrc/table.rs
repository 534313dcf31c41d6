//! Miss ratio curves as tables, JSON and CSV.

use super::{CurvePoint, MissRatioCurve, ReferencePolicy, ReferenceRatios};
use crate::csv::quoted;
use crate::heading::wrap;
use crate::json;
use crate::layout::{self, TextCell, TextLine};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;

/// Explains the columns.
pub const LEGEND: &str = "linux: references that waited for a read (the first use of anonymous \
    memory does not, nor does a page that was read ahead); LRU, ARC, S3-FIFO, Belady: misses of a \
    cache of as many bytes, without read-ahead; Belady evicts what is requested the latest, so it \
    must know the future";

/// Miss ratios in a table of their own.
pub struct RatioTable {
    /// The unit of the ratios.
    pub title: &'static str,
    pub names: Vec<String>,
    /// A line for each size.
    pub lines: Vec<(String, Vec<String>)>,
}

/// A ratio for a table.
fn shown(ratio: f64) -> String {
    match ratio {
        0.0 | 0.001.. => format!("{ratio:.4}"),
        _ => format!("{ratio:.1e}"),
    }
}

impl CurvePoint {
    /// The columns that files have for each reference policy.
    pub fn ratio_columns(&self) -> Vec<(String, Option<f64>)> {
        let of = |(policy, ratios): (ReferencePolicy, &ReferenceRatios)| {
            let key = policy.key();
            [
                (format!("{key}_miss_ratio"), Some(ratios.pages)),
                (format!("{key}_object_miss_ratio"), ratios.objects),
                (format!("{key}_byte_miss_ratio"), ratios.bytes),
            ]
        };
        ReferencePolicy::ALL.into_iter().zip(&self.ratios).flat_map(of).collect()
    }
}

impl MissRatioCurve {
    /// The tables of the points: pages, then objects and bytes if their ratios are others.
    pub fn tables(&self, points: &[CurvePoint]) -> Vec<RatioTable> {
        let sizes = &points[..self.sizes.len().min(points.len())];
        let policies = || ReferencePolicy::ALL.map(|policy| policy.name().to_owned());
        let mut names = vec!["pages".to_owned()];
        names.extend(match self.variants.as_slice() {
            [_] => vec!["misses".to_owned()],
            several => several.iter().map(|variant| format!("misses of {variant}")).collect(),
        });
        names.extend(self.variants.iter().cloned());
        names.extend(policies());
        let of_pages = |(at, point): (usize, &CurvePoint)| {
            let of_size: Vec<&CurvePoint> = points.iter().skip(at).step_by(sizes.len()).collect();
            let mut cells = vec![point.pages.to_string()];
            cells.extend(of_size.iter().map(|point| point.misses.to_string()));
            cells.extend(of_size.iter().map(|point| shown(point.miss_ratio)));
            cells.extend(point.ratios.iter().map(|ratios| shown(ratios.pages)));
            (crate::format::size(point.size), cells)
        };
        let lines = sizes.iter().enumerate().map(of_pages).collect();
        let mut tables =
            vec![RatioTable { title: "miss ratio of references to pages", names, lines }];
        let differ = |ratios: &ReferenceRatios| {
            [ratios.objects, ratios.bytes].iter().flatten().any(|ratio| *ratio != ratios.pages)
        };
        if points.iter().flat_map(|point| &point.ratios).any(differ) {
            let mut add = |title, of: fn(&ReferenceRatios) -> Option<f64>| {
                let cells = |point: &CurvePoint| {
                    let ratios = point.ratios.iter().filter_map(of).map(shown).collect();
                    (crate::format::size(point.size), ratios)
                };
                let lines = sizes.iter().map(cells).collect();
                tables.push(RatioTable { title, names: policies().to_vec(), lines });
            };
            add("miss ratio of objects", |ratios| ratios.objects);
            add("miss ratio of bytes", |ratios| ratios.bytes);
        }
        tables
    }

    pub fn table(&self, points: &[CurvePoint], width: usize) -> String {
        let mut out = format!("trace  {}\n", self.trace);
        let has_objects =
            points.iter().flat_map(|point| &point.ratios).any(|it| it.objects.is_some());
        let (requests, references) = (self.requests, self.references);
        out += &match (has_objects, requests == references) {
            (false, _) => format!("{references} references to pages\n"),
            (true, true) => format!("{requests} requests\n"),
            (true, false) => format!("{requests} requests with {references} references to pages\n"),
        };
        for RatioTable { title, names, lines } in self.tables(points) {
            let cell = |value| TextCell { value, ..TextCell::default() };
            let line = |(label, cells): (String, Vec<String>)| TextLine {
                label,
                unit: String::new(),
                cells: cells.into_iter().map(cell).collect(),
            };
            let lines: Vec<TextLine> = lines.into_iter().map(line).collect();
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            out += &format!("\n{title}\n{}", layout::render(&names, &lines, width));
        }
        out + "\n" + &wrap(LEGEND, width).into_iter().map(|line| line + "\n").collect::<String>()
    }

    pub fn csv(&self, points: &[CurvePoint]) -> String {
        let mut out =
            String::from("trace,variant,size,pages,requests,references,misses,miss_ratio");
        for (name, _) in points.first().map(CurvePoint::ratio_columns).unwrap_or_default() {
            out += &format!(",{name}");
        }
        out.push('\n');
        for point in points {
            let CurvePoint {
                variant, size, pages, requests, references, misses, miss_ratio, ..
            } = point;
            out += &format!("{},{},{size},{pages}", quoted(&self.trace), quoted(variant));
            out += &format!(",{requests},{references},{misses},{miss_ratio}");
            for (_, ratio) in point.ratio_columns() {
                out += &ratio.map_or(",".to_owned(), |ratio| format!(",{ratio}"));
            }
            out.push('\n');
        }
        out
    }

    pub fn json(&self, points: &[CurvePoint]) -> String {
        let ratios = |point: &CurvePoint| point.ratio_columns().into_iter().collect();
        json::pretty(&CurveOutput {
            trace: &self.trace,
            version: crate::VERSION,
            seed: self.plan.scenario.seed,
            points: points
                .iter()
                .map(|point| CurvePointOutput { point, ratios: ratios(point) })
                .collect(),
        })
    }
}

/// A miss ratio curve.
#[derive(Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct CurveOutput<'a> {
    /// The trace.
    trace: &'a str,
    /// Version of Pagetide.
    version: &'a str,
    /// Seed of the runs.
    seed: u64,
    /// In the order of the sizes, variant by variant.
    points: Vec<CurvePointOutput<'a>>,
}

#[derive(Serialize, JsonSchema)]
struct CurvePointOutput<'a> {
    #[serde(flatten)]
    point: &'a CurvePoint,
    /// POLICY_miss_ratio, POLICY_object_miss_ratio and POLICY_byte_miss_ratio of each reference
    /// policy; the latter two are null for a trace of pages.
    #[serde(flatten)]
    ratios: BTreeMap<String, Option<f64>>,
}
