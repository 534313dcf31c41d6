//! Miss ratio curves: a page trace on page caches of several sizes, beside exact LRU lists of the
//! same sizes.
//!
//! Each size is a run of the simulator: the trace is replayed in a memory group with that limit, on
//! a larger machine. docs/trace-format.md defines a miss.
//!
//! Invariant: both columns count misses of the same requests, the records of the trace.

mod lru;

use crate::csv::quoted;
use crate::execute::{JobOutcome, RunResult};
use crate::heading::wrap;
use crate::layout::{self, TextCell, TextLine};
use crate::plan::RunPlan;
use lru::LruLists;
use pagetide_scenario::load::{self, load_str, Overrides};
use pagetide_trace::format::PAGE_SIZE;
use pagetide_trace::{Header, RegionKind, TraceError, TraceReader};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

/// Most sizes of one curve.
pub const MOST_SIZES: u64 = 1000;
/// Memory of the machine beyond the group's, so that only the limit of the group causes reclaim.
const BESIDE: u64 = 512 << 20;
/// Entries of a page table, which is a page.
const TABLE: u64 = 512;
/// Pages that a group may be charged for a CPU in advance (Linux `MEMCG_CHARGE_BATCH`); half are
/// unused.
const STOCK: u64 = 32;

#[derive(Debug)]
pub struct MissRatioCurve {
    /// One variant per size.
    pub plan: RunPlan,
    trace: String,
    sizes: Vec<u64>,
    requests: u64,
    /// Misses of each LRU list.
    lru: Vec<u64>,
}

/// A size with its misses.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CurvePoint {
    /// Bytes of the cache.
    pub size: u64,
    pub pages: u64,
    /// Records of the trace.
    pub requests: u64,
    /// Requests that waited for a read in the simulator.
    pub misses: u64,
    pub miss_ratio: f64,
    /// Misses of an exact LRU list with this number of pages.
    pub lru_misses: u64,
    pub lru_miss_ratio: f64,
}

/// Why there is no curve.
#[derive(Debug, thiserror::Error)]
pub enum MrcError {
    /// The text is not a list or range of sizes.
    #[error("{message}")]
    Sizes { message: String, hint: String },
    /// The trace cannot be read.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// The machine cannot be built, for example because it is too large.
    #[error("{0}")]
    Scenario(String),
    /// A run did not finish.
    #[error("size {size}: {message}")]
    Run {
        /// Bytes of the cache.
        size: u64,
        message: String,
    },
}

/// The sizes of `A..B/N` (at equal ratios) or `A,B,C`, in ascending order.
pub fn sizes(text: &str) -> Result<Vec<u64>, MrcError> {
    let hint = || "write 64MiB..4GiB/8 or 64MiB,256MiB,1GiB".to_owned();
    let wrong = |message: String| MrcError::Sizes { message, hint: hint() };
    let size = |text: &str| {
        let of_text = |(message, hint)| MrcError::Sizes {
            message: format!("size `{}`: {message}", text.trim()),
            hint,
        };
        let bytes = load::size(text).map_err(of_text)?;
        let page = u64::from(PAGE_SIZE);
        let fewest = 16 * page;
        match bytes / page * page {
            bytes if bytes < fewest => {
                Err(wrong(format!("`{}` is smaller than {fewest} bytes", text.trim())))
            }
            bytes => Ok(bytes),
        }
    };
    let mut found: Vec<u64> = match text.split_once("..") {
        None => text.split(',').map(size).collect::<Result<_, _>>()?,
        Some((from, rest)) => {
            let no_number = || wrong(format!("`{text}` does not say how many sizes"));
            let (to, number) = rest.split_once('/').ok_or_else(no_number)?;
            let number: u64 = number.trim().parse().map_err(|_| no_number())?;
            let (from, to) = (size(from)?, size(to)?);
            if !(2..=MOST_SIZES).contains(&number) || from >= to {
                let most = format!("from 2 to {MOST_SIZES} sizes, the first smaller than the last");
                return Err(wrong(format!("`{text}` is not {most}")));
            }
            let page = u64::from(PAGE_SIZE);
            let factor = (to as f64 / from as f64).powf(1.0 / (number - 1) as f64);
            let at = |step: u64| match step {
                last if last == number - 1 => to,
                step => (from as f64 * factor.powi(step as i32)) as u64 / page * page,
            };
            (0..number).map(at).collect()
        }
    };
    found.sort_unstable();
    found.dedup();
    Ok(found)
}

impl MissRatioCurve {
    /// Reads the trace for the LRU lists, and plans the runs.
    pub fn new(trace: &Path, sizes: &[u64], seed: u64) -> Result<MissRatioCurve, MrcError> {
        let mut reader = TraceReader::open(trace)?;
        let pages: Vec<u64> = sizes.iter().map(|size| size / u64::from(PAGE_SIZE)).collect();
        let mut lru = LruLists::new(&pages);
        let places = places(reader.header());
        let is_file: Vec<bool> =
            reader.header().regions.iter().map(|it| is_file(it.kind)).collect();
        let mut requests = 0;
        while let Some(record) = reader.next_record()? {
            let region = record.region as usize;
            lru.touch(places[region] + record.page, is_file[region]);
            requests += 1;
        }
        let scenario = scenario(trace, reader.header(), sizes, seed)?;
        let plan = RunPlan::new(scenario).map_err(|error| MrcError::Scenario(error.to_string()))?;
        let (trace, sizes) = (trace.display().to_string(), sizes.to_vec());
        Ok(MissRatioCurve { plan, trace, sizes, requests, lru: lru.misses() })
    }

    pub fn trace(&self) -> &str {
        &self.trace
    }

    /// The points of the runs, which are in the order of the plan.
    /// The error is that of the first run that did not finish.
    pub fn points(&self, runs: &[RunResult]) -> Result<Vec<CurvePoint>, MrcError> {
        let of = |run: &RunResult| {
            let (size, lru_misses) = (self.sizes[run.job.variant], self.lru[run.job.variant]);
            let failed = |message: String| MrcError::Run { size, message };
            let record = match &run.outcome {
                JobOutcome::Finished(record) => record,
                JobOutcome::Failed(failure) => return Err(failed(failure.to_string())),
                JobOutcome::Cancelled => return Err(failed("interrupted".to_owned())),
            };
            let metric = record.metrics.get("replay.pgmajfault").copied();
            let metric = metric.ok_or_else(|| failed("the run did not count misses".to_owned()))?;
            if metric.ended.is_some() {
                return Err(failed(record.notes.join("; ")));
            }
            let ratio = |misses: u64| match self.requests {
                0 => 0.0,
                requests => misses as f64 / requests as f64,
            };
            let misses = metric.value as u64;
            Ok(CurvePoint {
                size,
                pages: size / u64::from(PAGE_SIZE),
                requests: self.requests,
                misses,
                miss_ratio: ratio(misses),
                lru_misses,
                lru_miss_ratio: ratio(lru_misses),
            })
        };
        runs.iter().map(of).collect()
    }

    pub fn table(&self, points: &[CurvePoint], width: usize) -> String {
        let names = ["pages", "requests", "misses", "miss ratio", "LRU misses", "LRU miss ratio"];
        let plain = |value: String| TextCell { value, ..TextCell::default() };
        let line = |point: &CurvePoint| TextLine {
            label: crate::format::size(point.size),
            unit: String::new(),
            cells: vec![
                plain(point.pages.to_string()),
                plain(point.requests.to_string()),
                plain(point.misses.to_string()),
                plain(format!("{:.4}", point.miss_ratio)),
                plain(point.lru_misses.to_string()),
                plain(format!("{:.4}", point.lru_miss_ratio)),
            ],
        };
        let lines: Vec<TextLine> = points.iter().map(line).collect();
        let table = layout::render(&names, &lines, width);
        let legend: String =
            wrap(LEGEND, width).into_iter().flat_map(|line| [line, "\n".into()]).collect();
        format!("trace  {}\n\n{table}\n{legend}", self.trace)
    }

    pub fn csv(&self, points: &[CurvePoint]) -> String {
        let mut out =
            "trace,size,pages,requests,misses,miss_ratio,lru_misses,lru_miss_ratio\n".to_owned();
        let trace = quoted(&self.trace);
        for point in points {
            let CurvePoint {
                size,
                pages,
                requests,
                misses,
                miss_ratio,
                lru_misses,
                lru_miss_ratio,
            } = point;
            let front = format!("{trace},{size},{pages},{requests},{misses},{miss_ratio}");
            writeln!(out, "{front},{lru_misses},{lru_miss_ratio}").expect("writing to a string");
        }
        out
    }

    /// The curve as JSON: `{"trace","version","seed","points":[...]}`.
    pub fn json(&self, points: &[CurvePoint]) -> String {
        let document = serde_json::json!({
            "trace": self.trace,
            "version": crate::VERSION,
            "seed": self.plan.scenario.seed,
            "points": points,
        });
        format!("{document:#}\n")
    }
}

/// Explains the columns.
pub const LEGEND: &str =
    "misses: requests that waited for a read (the first use of anonymous memory does not); LRU: a \
    list in exact order of last use, which misses every first use";

fn is_file(kind: RegionKind) -> bool {
    matches!(kind, RegionKind::File { .. })
}

/// Number of the first page of each region. Regions of one file share the numbers of its pages.
fn places(header: &Header) -> Vec<u64> {
    let mut files: BTreeMap<u64, (u64, u64)> = BTreeMap::new();
    let mut next = 0;
    for region in &header.regions {
        if let RegionKind::File { key, .. } = region.kind {
            let pages = &mut files.entry(key).or_default().1;
            *pages = (*pages).max(region.pages);
        }
    }
    for (first, pages) in files.values_mut() {
        *first = next;
        next += *pages;
    }
    let place = |region: &pagetide_trace::TraceRegion| match region.kind {
        RegionKind::File { key, .. } => files[&key].0,
        RegionKind::Anon => {
            next += region.pages;
            next - region.pages
        }
    };
    header.regions.iter().map(place).collect()
}

fn scenario(
    trace: &Path,
    header: &Header,
    sizes: &[u64],
    seed: u64,
) -> Result<pagetide_scenario::model::Scenario, MrcError> {
    let page = u64::from(PAGE_SIZE);
    let path = std::path::absolute(trace).map_err(|error| MrcError::Scenario(error.to_string()))?;
    let path = path.to_str().ok_or_else(|| {
        MrcError::Scenario(format!("the name {} is not UTF-8: rename it", trace.display()))
    })?;
    // A JSON string is a TOML string, too.
    let path = serde_json::to_string(path).expect("a string serialises");
    let pages = header.regions.iter().fold(0u64, |sum, region| sum.saturating_add(region.pages));
    let tables = (pages / TABLE).saturating_add(2 * header.regions.len() as u64 + 8) * page;
    let anon: u64 = header.regions.iter().filter(|it| !is_file(it.kind)).map(|it| it.pages).sum();
    let largest = sizes.iter().copied().max().unwrap_or(0);
    let memory = largest.min(pages.saturating_mul(page)).saturating_add(tables) / 16 * 17 + BESIDE;
    let memory = memory.div_ceil(1 << 20);
    let mut text = format!(
        "name = \"mrc\"\nrepeats = 1\nseed = {seed}\ntime_limit = \"2000000h\"\n\
        [machine]\nmemory = \"{memory}MiB\"\n"
    );
    if anon > 0 {
        let swap = (anon * page).div_ceil(1 << 20) + 1;
        writeln!(text, "swap = \"{swap}MiB\"").expect("writing to a string");
    }
    write!(
        text,
        "[[group]]\nname = \"cache\"\n[[task]]\nname = \"replay\"\ngroup = \"cache\"\n\
        workload = \"trace\"\npath = {path}\n"
    )
    .expect("writing to a string");
    for (number, size) in sizes.iter().enumerate() {
        let limit = size.saturating_add(tables).saturating_add(STOCK * page);
        write!(
            text,
            "[[variant]]\nname = \"size-{number}\"\n\
            set = {{ \"group.cache.memory.max\" = \"{limit}\" }}\n"
        )
        .expect("writing to a string");
    }
    let directory = trace.parent().unwrap_or(Path::new("."));
    load_str("mrc.toml", &text, directory, &Overrides::default())
        .map_err(|errors| MrcError::Scenario(errors.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_a_list_or_a_range() {
        const MIB: u64 = 1 << 20;
        assert_eq!(sizes("64MiB..1GiB/5").unwrap(), [64, 128, 256, 512, 1024].map(|n| n * MIB));
        assert_eq!(sizes("1GiB, 64MiB,64MiB").unwrap(), [64 * MIB, 1024 * MIB]);
        let uneven = sizes("10MiB..100MiB/4").unwrap();
        assert_eq!((uneven[0], uneven[3]), (10 * MIB, 100 * MIB));
        assert!(uneven.iter().all(|size| size % u64::from(PAGE_SIZE) == 0));
        for (text, message) in [
            ("64MiB..1GiB", "does not say how many"),
            ("64MiB..1GiB/x", "does not say how many"),
            ("64MiB..1GiB/1", "from 2 to 1000"),
            ("1GiB..64MiB/4", "smaller than the last"),
            ("64MiB..1GiB/9999999", "from 2 to 1000"),
            ("64 parsecs", "unknown unit `parsecs`"),
            ("0", "smaller than"),
            ("", "not a size"),
        ] {
            let error = sizes(text).unwrap_err().to_string();
            assert!(error.contains(message), "{text}: {error}");
        }
    }
}
