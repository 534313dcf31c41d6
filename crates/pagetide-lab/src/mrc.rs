//! Miss ratio curves: a trace in page caches of several sizes, beside caches of the same sizes by
//! reference algorithms.
//!
//! Each size is a run of the simulator: the trace is replayed in a memory group with that limit, on
//! a larger machine. docs/trace-format.md defines a miss.
//!
//! Invariant: all ratios of a unit (pages, objects or bytes) have the same denominator, which has
//! every reference of the trace.

mod arc;
mod belady;
mod caches;
mod lru;
mod requests;
mod s3_fifo;
mod table;

pub use caches::ReferencePolicy;
pub use table::{CurveOutput, RatioTable, LEGEND};

use crate::execute::{JobOutcome, RunResult};
use crate::plan::RunPlan;
use caches::RequestStream;
use pagetide_scenario::diagnostic::Diagnostics;
use pagetide_scenario::load::{self, load_str, AddedVariant, Overrides};
use pagetide_scenario::model::Scenario;
use pagetide_trace::format::PAGE_SIZE;
use pagetide_trace::{Header, TraceError, TraceReader};
use requests::{is_file, TraceRequests};
use schemars::JsonSchema;
use serde::Serialize;
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
    /// For each variant one of the plan for each size.
    pub plan: RunPlan,
    trace: String,
    sizes: Vec<u64>,
    variants: Vec<String>,
    requests: u64,
    references: u64,
    /// By size.
    ratios: Vec<Vec<ReferenceRatios>>,
}

/// A size, and what a variant misses with it.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct CurvePoint {
    /// Name of the variant.
    pub variant: String,
    /// Bytes of the cache.
    pub size: u64,
    /// Pages of the cache.
    pub pages: u64,
    /// Requests of the trace: for objects, or to pages.
    pub requests: u64,
    /// References to pages: a request has one for each page of its object.
    pub references: u64,
    /// References that waited for a read in the simulator.
    pub misses: u64,
    /// Misses divided by references.
    pub miss_ratio: f64,
    /// Caches of the same size, one for each [`ReferencePolicy`].
    #[serde(skip)]
    pub ratios: Vec<ReferenceRatios>,
}

/// The miss ratios of caches by a reference algorithm.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ReferenceRatios {
    /// Of a cache of pages.
    pub pages: f64,
    /// Of a cache of objects; `None` for a trace without objects.
    pub objects: Option<f64>,
    /// The bytes that this cache misses.
    pub bytes: Option<f64>,
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
    /// The changes of the machine have mistakes.
    #[error("{0}")]
    Changes(Diagnostics),
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
    /// Reads the trace for the reference caches, and plans the runs. `overrides` has the changes of
    /// all runs, further variants to compare, and the seed.
    pub fn new(
        trace: &Path,
        sizes: &[u64],
        overrides: Overrides,
    ) -> Result<MissRatioCurve, MrcError> {
        let mut reader = TraceReader::open(trace)?;
        let read = TraceRequests::read(&mut reader)?;
        let (requests, references) = (read.requests(), read.pages.totals.requests);
        let ratios = sizes.iter().map(|size| ratios(&read, *size)).collect();
        let mut variants = vec![BASE.to_owned()];
        variants.extend(overrides.added.iter().map(|added| added.name.clone()));
        let scenario = scenario(trace, reader.header(), sizes, overrides)?;
        let plan = RunPlan::new(scenario).map_err(|error| MrcError::Scenario(error.to_string()))?;
        let (trace, sizes) = (trace.display().to_string(), sizes.to_vec());
        Ok(MissRatioCurve { plan, trace, sizes, variants, requests, references, ratios })
    }

    pub fn trace(&self) -> &str {
        &self.trace
    }

    /// Names of the variants: [`BASE`], then the added ones.
    pub fn variants(&self) -> &[String] {
        &self.variants
    }

    /// The points of the runs, which are in the order of the plan: by variant, then by size.
    /// The error is that of the first run that did not finish.
    pub fn points(&self, runs: &[RunResult]) -> Result<Vec<CurvePoint>, MrcError> {
        let of = |run: &RunResult| {
            let at = run.job.variant % self.sizes.len();
            let size = self.sizes[at];
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
            let misses = metric.value as u64;
            Ok(CurvePoint {
                variant: self.variants[run.job.variant / self.sizes.len()].clone(),
                size,
                pages: size / u64::from(PAGE_SIZE),
                requests: self.requests,
                references: self.references,
                misses,
                miss_ratio: ratio(misses, self.references),
                ratios: self.ratios[at].clone(),
            })
        };
        runs.iter().map(of).collect()
    }
}

/// The variant with the changes of all runs only.
const BASE: &str = "linux";

fn ratio(misses: u64, of: u64) -> f64 {
    misses as f64 / of.max(1) as f64
}

/// The ratios of each policy at a size.
fn ratios(read: &TraceRequests, size: u64) -> Vec<ReferenceRatios> {
    let of = |policy: ReferencePolicy| {
        let missed = |stream: &RequestStream| {
            let missed = policy.misses(stream, size);
            (
                ratio(missed.requests, stream.totals.requests),
                ratio(missed.bytes, stream.totals.bytes),
            )
        };
        let (pages, of_bytes) = missed(&read.pages);
        let (objects, bytes) = match read.uneven_objects() {
            Some(objects) => missed(objects),
            None => (pages, of_bytes),
        };
        let has_objects = read.objects.is_some();
        ReferenceRatios {
            pages,
            objects: has_objects.then_some(objects),
            bytes: has_objects.then_some(bytes),
        }
    };
    ReferencePolicy::ALL.map(of).to_vec()
}

fn scenario(
    trace: &Path,
    header: &Header,
    sizes: &[u64],
    mut overrides: Overrides,
) -> Result<Scenario, MrcError> {
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
        "name = \"mrc\"\nrepeats = 1\ntime_limit = \"2000000h\"\n\
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
    let base = AddedVariant { name: BASE.to_owned(), sets: Vec::new() };
    let variants: Vec<AddedVariant> = [base].into_iter().chain(overrides.added).collect();
    let of_size = |variant: &AddedVariant, number: usize, size: u64| {
        let limit = size.saturating_add(tables).saturating_add(STOCK * page);
        let limit = ("group.cache.memory.max".to_owned(), limit.to_string());
        let sets = variant.sets.iter().cloned().chain([limit]).collect();
        AddedVariant { name: format!("{}-{number}", variant.name), sets }
    };
    overrides.added = variants
        .iter()
        .flat_map(|variant| {
            sizes.iter().enumerate().map(|(number, size)| of_size(variant, number, *size))
        })
        .collect();
    overrides.variants = overrides.added.iter().map(|added| added.name.clone()).collect();
    let directory = trace.parent().unwrap_or(Path::new("."));
    load_str("mrc.toml", &text, directory, &overrides).map_err(MrcError::Changes)
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
