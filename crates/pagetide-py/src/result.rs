//! The results of runs as tables, text and HTML.
//!
//! Invariant: a result is a pure function of its scenario and its runs. The number of processes and
//! the order of the runs do not matter.

use crate::errors;
use crate::events::EventCollector;
use crate::knobs::{self, KnobSettings};
use crate::rows;
use crate::run::{self, RunArguments};
use crate::scenario::Scenario;
use crate::table::{preformatted, Table};
use crate::timeline;
use arrow_array::{ArrayRef, Float64Array, StringArray, UInt64Array};
use pagetide_html::run::PageSource;
use pagetide_lab::csv::unit_name;
use pagetide_lab::execute::{JobOutcome, RunResult};
use pagetide_lab::plan::{RunJob, RunPlan};
use pagetide_lab::report::{Report, RunTimeline};
use pagetide_lab::select;
use pagetide_lab::stats::{change, welch, MeanChange, Statistics};
use pagetide_lab::world::{ObserverHandle, Simulator, TracedRun};
use pagetide_lab::{csv, facts, json, table};
use pagetide_scenario::metric::MetricKey;
use pagetide_scenario::record::timeline::Timeline;
use pagetide_scenario::record::{RunRecord, Unit};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple, PyType};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// Default width of a table's text.
const WIDTH: usize = 100;

/// The results of `Scenario.run`.
///
/// `metrics` is a table for other libraries, `compare` computes statistics, and `table()`, `why`,
/// `json()`, `csv()` and `html()` give the output of the command. `len(r)` is the number of
/// finished runs.
#[pyclass(frozen, module = "pagetide")]
pub struct Result {
    scenario: Scenario,
    /// Sorted by (variant, seed).
    runs: Vec<RunResult>,
    report: OnceLock<Arc<Report>>,
    /// Runs that were repeated for observation, by job.
    looked_at: Mutex<BTreeMap<RunJob, Arc<RunRecord>>>,
}

impl Result {
    /// Performs variants x seeds of a scenario.
    pub fn of_runs<'py>(
        py: Python<'py>,
        scenario: Scenario,
        seeds: &[u64],
        want_latencies: bool,
        asked: &RunArguments,
    ) -> PyResult<Bound<'py, Result>> {
        let model = scenario.0.model(py)?;
        let variants = 0..model.variants.len();
        // Order by seed, so that an interrupted result has about as many runs of each variant.
        let jobs = seeds.iter();
        let jobs =
            jobs.flat_map(|&seed| variants.clone().map(move |variant| RunJob { variant, seed }));
        let jobs: Vec<RunJob> = jobs.collect();
        let simulator = Simulator { want_latencies, ..Simulator::default() };
        let performed = run::perform(py, model, &jobs, &simulator, asked);
        let missing = performed.runs.iter();
        let missing = missing.filter(|run| matches!(run.outcome, JobOutcome::Cancelled)).count();
        let mut failures = Vec::new();
        for run in &performed.runs {
            if let JobOutcome::Failed(failure) = &run.outcome {
                let variant = &model.variants[run.job.variant].name;
                failures.push(errors::failure(py, variant, run.job.seed, failure)?);
            }
        }
        let result = Bound::new(py, Result::new(scenario.clone(), performed.runs))?;
        match performed.stopped {
            Some(stopped) => Err(errors::stopped(py, stopped, missing, Some(result.into_any()))),
            None if failures.is_empty() => Ok(result),
            None => Err(errors::run(py, failures, Some(result.into_any()))),
        }
    }

    pub fn new(scenario: Scenario, mut runs: Vec<RunResult>) -> Result {
        runs.sort_by_key(|run| run.job);
        Result { scenario, runs, report: OnceLock::new(), looked_at: Mutex::default() }
    }

    fn report(&self, py: Python<'_>) -> PyResult<&Arc<Report>> {
        if let Some(report) = self.report.get() {
            return Ok(report);
        }
        let mut scenario = self.scenario.0.model(py)?.clone();
        let seeds: BTreeSet<u64> = self.runs.iter().map(|run| run.job.seed).collect();
        scenario.seed = seeds.first().copied().unwrap_or(scenario.seed);
        scenario.repeats = u32::try_from(seeds.len().max(1)).unwrap_or(u32::MAX);
        let overrides = self.scenario.0.sets().to_vec();
        let report = py.detach(|| {
            Arc::new(Report::new(RunPlan { scenario, overrides, added: Vec::new() }, &self.runs))
        });
        Ok(self.report.get_or_init(|| report))
    }

    /// The run of a variant (default: the first) with a seed (default: the smallest).
    fn job(&self, py: Python<'_>, variant: Option<&str>, seed: Option<u64>) -> PyResult<RunJob> {
        let variant = match variant {
            Some(name) => rows::variant_index(py, &self.scenario, name)?,
            None => self.runs.first().map_or(0, |run| run.job.variant),
        };
        let of_variant = || self.runs.iter().filter(|run| run.job.variant == variant);
        let job = match seed {
            Some(seed) => of_variant().find(|run| run.job.seed == seed),
            None => of_variant().next(),
        };
        job.map(|run| run.job).ok_or_else(|| {
            let message = match seed {
                Some(seed) => format!("this variant was not run with seed {seed}"),
                None => "this variant has no run".to_owned(),
            };
            errors::input(py, message, "Result.seeds has the seeds")
        })
    }

    /// Repeats runs with timelines. Observation does not change a run.
    fn with_timelines(&self, py: Python<'_>, jobs: &[RunJob]) -> PyResult<Vec<Arc<RunRecord>>> {
        let known = |job: &RunJob| {
            let looked_at = self.looked_at.lock().unwrap_or_else(PoisonError::into_inner);
            looked_at.get(job).cloned()
        };
        let scenario = self.scenario.0.model(py)?;
        let missing: Vec<RunJob> =
            jobs.iter().filter(|job| known(job).is_none()).copied().collect();
        for seed in missing.iter().map(|job| job.seed).collect::<BTreeSet<u64>>() {
            let of_seed: Vec<RunJob> =
                missing.iter().filter(|job| job.seed == seed).copied().collect();
            let simulator = Simulator { timeline_seed: Some(seed), ..Simulator::default() };
            let asked = RunArguments::on(run::threads(None)?);
            let records = run::records(py, scenario, &of_seed, &simulator, &asked)?;
            let mut all = self.looked_at.lock().unwrap_or_else(PoisonError::into_inner);
            all.extend(of_seed.into_iter().zip(records.into_iter().map(Arc::new)));
        }
        jobs.iter().map(|job| known(job).ok_or_else(|| errors::bug("a run is missing"))).collect()
    }

    fn finished(&self) -> impl Iterator<Item = &RunRecord> {
        self.runs.iter().filter_map(|run| match &run.outcome {
            JobOutcome::Finished(record) => Some(&**record),
            JobOutcome::Failed(_) | JobOutcome::Cancelled => None,
        })
    }
}

#[pymethods]
impl Result {
    /// Combines runs that were performed elsewhere, in any order.
    ///
    /// The result equals that of `Scenario.run` with these variants and seeds. `rows` are bytes,
    /// from `Result.rows` or an executor.
    ///
    /// Raises `VersionError` for runs of another version or scenario, `InputError` for bytes that
    /// are not a run.
    #[classmethod]
    fn from_rows(
        _class: &Bound<'_, PyType>,
        py: Python<'_>,
        scenario: &Scenario,
        rows: &Bound<'_, PyAny>,
    ) -> PyResult<Result> {
        let digest = scenario.0.digest(py)?;
        let mut runs: BTreeMap<RunJob, RunResult> = BTreeMap::new();
        for row in rows.try_iter()? {
            let row = row?;
            let record = rows::of_bytes(py, row.extract()?, digest)?.record;
            let variant = rows::variant_index(py, scenario, &record.variant)?;
            let job = RunJob { variant, seed: record.seed };
            let known =
                runs.insert(job, RunResult { job, outcome: JobOutcome::Finished(record.into()) });
            if known.is_some() {
                let name = &scenario.0.model(py)?.variants[variant].name;
                let message = format!("there are two runs of variant {name}, seed {}", job.seed);
                return Err(errors::input(py, message, "give each run once"));
            }
        }
        Ok(Result::new(scenario.clone(), runs.into_values().collect()))
    }

    /// The scenario that was run, with its changes.
    #[getter]
    fn scenario(&self) -> Scenario {
        self.scenario.clone()
    }

    /// Names of the variants, in the order of the columns.
    #[getter]
    fn variants(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        Ok(self.report(py)?.columns.iter().map(|it| it.name.clone()).collect())
    }

    /// The seeds of the runs, ascending.
    #[getter]
    fn seeds(&self) -> Vec<u64> {
        let seeds: BTreeSet<u64> = self.runs.iter().map(|run| run.job.seed).collect();
        seeds.into_iter().collect()
    }

    /// Notes of the runs for the reader, for example about killed tasks.
    #[getter]
    fn notes(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        Ok(self.report(py)?.notes.clone())
    }

    /// The finished runs as bytes, sorted by (variant, seed), for files and other processes.
    #[getter]
    fn rows<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyBytes>>> {
        let digest = self.scenario.0.digest(py)?;
        let bytes = self.finished().map(|record| rows::to_bytes(digest, &NO_KNOBS, record.clone()));
        bytes.map(|bytes| Ok(PyBytes::new(py, &bytes?))).collect()
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let restore = py.get_type::<Result>().getattr("from_rows")?;
        (restore, (self.scenario.clone(), self.rows(py)?)).into_pyobject(py)
    }

    /// Every metric of every run, one row each.
    ///
    /// Columns: variant (text), seed (integer), metric (text), unit (text: s, bytes, pages, count
    /// ...), value (float, in that unit), ended (text: why the run is incomplete, else null).
    #[getter]
    fn metrics(&self, py: Python<'_>) -> PyResult<Table> {
        py.detach(|| metrics_of(self.finished()))
    }

    /// Mean and deviation over the seeds, one row for each metric of each variant.
    ///
    /// Columns: variant, metric, unit, mean, deviation (of the sample; null for one run), runs, ended
    /// (number of runs without a measurement, which the mean leaves out).
    ///
    /// `metrics`: names, or patterns with `*`; by default those of the table.
    #[pyo3(signature = (*metrics))]
    fn summary(&self, py: Python<'_>, metrics: &Bound<'_, PyTuple>) -> PyResult<Table> {
        let report = self.report(py)?;
        let some = Some(metrics.as_any()).filter(|_| !metrics.is_empty());
        summary(report, &self.keys(py, some)?)
    }

    /// Compares two variants, one row for each metric.
    ///
    /// Columns: metric, unit; for each side n, mean and sd (sample standard deviation; null for one
    /// run); change_percent (of the mean; null if the first mean is 0), p (Welch's t-test; null if
    /// a side has one run), differs (p < 0.05), ended (why the metric is not compared, else null).
    ///
    /// `a` is the first variant by default, `b` the second. `metrics`: names, or patterns with `*`;
    /// by default the metrics of the table, `"*"` for all.
    #[pyo3(signature = (a = None, b = None, metrics = None))]
    fn compare(
        &self,
        py: Python<'_>,
        a: Option<&str>,
        b: Option<&str>,
        metrics: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Table> {
        let report = self.report(py)?;
        let place = |name: Option<&str>, default: usize| match name {
            Some(name) => rows::variant_index(py, &self.scenario, name),
            None if default < report.columns.len() => Ok(default),
            None => Err(errors::input(
                py,
                "a comparison needs two variants, and there is one",
                "add one: scenario.with_variant(\"other\", {...})",
            )),
        };
        let (a, b) = (place(a, 0)?, place(b, 1)?);
        let keys = self.keys(py, metrics)?;
        comparison(report, a, b, &keys)
    }

    /// The comparison as text, as the command prints it: mean, deviation and change of each
    /// variant.
    ///
    /// `width`: maximum number of characters in a line. `metrics`: names, or patterns with `*`; by
    /// default the scenario's rows.
    #[pyo3(signature = (*, width = 100, metrics = None))]
    fn table(
        &self,
        py: Python<'_>,
        width: usize,
        metrics: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<String> {
        let report = self.report(py)?;
        let width = width.clamp(40, 10_000);
        if metrics.is_none() {
            return Ok(py.detach(|| table::render_within(report, width)));
        }
        let keys = self.keys(py, metrics)?;
        Ok(py.detach(|| {
            let mut report = (**report).clone();
            report.plan.scenario.rows = keys.iter().map(|key| report.text(key)).collect();
            table::render_within(&report, width)
        }))
    }

    /// One run over time, one row for each sample.
    ///
    /// The column `time_s` is the end of the sample in seconds. All others are integers: levels
    /// (`*_pages`) at the end of the sample; counts and times (`*_ns`) since the previous sample.
    ///
    /// `of`: the machine (default), the name of a group or a task (`"group web"`, `"task web"` if
    /// both have the name), `"service web"`, `"node0"`, `"zone node0 Normal"`, `"vmstat"` or
    /// `"meminfo"` (kB). `variant`: default is the first. `seed`: default is the smallest. The
    /// first call repeats the run to observe it; later calls reuse it.
    ///
    /// Raises `InputError` for an unknown name, variant or seed.
    #[pyo3(signature = (of = None, *, variant = None, seed = None))]
    fn timeline(
        &self,
        py: Python<'_>,
        of: Option<&str>,
        variant: Option<&str>,
        seed: Option<u64>,
    ) -> PyResult<Table> {
        let job = self.job(py, variant, seed)?;
        let records = self.with_timelines(py, &[job])?;
        let none = Timeline::default();
        let timeline = records.first().and_then(|record| record.timeline.as_ref());
        timeline::table(py, timeline.unwrap_or(&none), of)
    }

    /// The events of one run (docs/outputs.md), one row each.
    ///
    /// Columns: ns, cpu, comm, event, and one for each field that any event has. `variant`: default
    /// is the first. `seed`: default is the smallest. The run is repeated to observe it.
    ///
    /// Raises `InputError` for an unknown variant or seed.
    #[pyo3(signature = (variant = None, seed = None))]
    fn events(&self, py: Python<'_>, variant: Option<&str>, seed: Option<u64>) -> PyResult<Table> {
        let job = self.job(py, variant, seed)?;
        let scenario = self.scenario.0.model(py)?;
        let collector = EventCollector::default();
        let variant = scenario.variants[job.variant].name.clone();
        let sinks = vec![ObserverHandle::new(collector.clone())];
        let observed = Some(TracedRun { variant, seed: job.seed, sinks });
        let simulator = Simulator { observed, ..Simulator::default() };
        let asked = RunArguments::on(std::num::NonZeroUsize::MIN);
        run::records(py, scenario, &[job], &simulator, &asked)?;
        py.detach(|| collector.table())
    }

    /// The distributions of latencies over all runs of a variant, one row for each bucket.
    ///
    /// Columns: of (the metric without its percentile, such as `web.latency`), up_to_s (upper bound
    /// of the bucket, in seconds; buckets are about 1 % wide), count.
    ///
    /// Raises `InputError` unless `run` got `latencies=True`, and if nothing in the scenario has
    /// latencies.
    #[pyo3(signature = (variant = None))]
    fn latencies(&self, py: Python<'_>, variant: Option<&str>) -> PyResult<Table> {
        let report = self.report(py)?;
        let place = variant.map_or(Ok(0), |name| rows::variant_index(py, &self.scenario, name))?;
        let all = || {
            let of_variant = report.columns.get(place).into_iter().flat_map(|it| &it.latencies);
            of_variant.flat_map(|one| one.buckets.iter().map(|bucket| (one.of.as_str(), bucket)))
        };
        if report.columns.iter().all(|column| column.latencies.is_empty()) {
            return Err(errors::input(
                py,
                "no run has kept latencies",
                "`run(latencies=True)` keeps them, of services and other tasks that measure them",
            ));
        }
        let names: Vec<&str> = all().map(|(of, _)| of).collect();
        let bounds: Vec<f64> = all().map(|(_, (ns, _))| *ns as f64 / 1e9).collect();
        let counts: Vec<u64> = all().map(|(_, (_, count))| *count).collect();
        Table::new(vec![
            ("of", Arc::new(StringArray::from(names)) as ArrayRef),
            ("up_to_s", Arc::new(Float64Array::from(bounds))),
            ("count", Arc::new(UInt64Array::from(counts))),
        ])
    }

    /// Sentences that explain differences between variants: which tasks waited for memory, and why.
    #[getter]
    fn why(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        let report = self.report(py)?;
        Ok(py.detach(|| facts::sentences(report)))
    }

    /// The output of `pagetide run --format json`.
    fn json(&self, py: Python<'_>) -> PyResult<String> {
        let report = self.report(py)?;
        Ok(py.detach(|| json::render(report)))
    }

    /// The output of `pagetide run --format csv`.
    fn csv(&self, py: Python<'_>) -> PyResult<String> {
        let report = self.report(py)?;
        Ok(py.detach(|| csv::render(report)))
    }

    /// The HTML report of `pagetide run --html`, returned as text, or written to `path` if given.
    ///
    /// For charts over time, the first run of each variant is repeated, unless `timeline` is false.
    ///
    /// Raises `InputError` if `path` cannot be written, or is a file that is not an HTML page.
    #[pyo3(signature = (path = None, *, timeline = true))]
    fn html(
        &self,
        py: Python<'_>,
        path: Option<PathBuf>,
        timeline: bool,
    ) -> PyResult<Option<String>> {
        let refused = |error: String| match error.split_once("\nhint: ") {
            Some((message, hint)) => errors::input(py, message, hint),
            None => errors::external(py, error),
        };
        if let Some(path) = &path {
            pagetide::check_page(path).map_err(refused)?;
        }
        let mut report = (**self.report(py)?).clone();
        if timeline {
            let mut firsts: BTreeMap<usize, RunJob> = BTreeMap::new();
            for run in self.runs.iter().filter(|it| matches!(it.outcome, JobOutcome::Finished(_))) {
                firsts.entry(run.job.variant).or_insert(run.job);
            }
            let jobs: Vec<RunJob> = firsts.into_values().collect();
            for (job, record) in jobs.iter().zip(self.with_timelines(py, &jobs)?) {
                let (seed, page_size) = (job.seed, record.page_size);
                report.columns[job.variant].timeline = record
                    .timeline
                    .clone()
                    .map(|timeline| RunTimeline { seed, page_size, timeline });
            }
        }
        let report = &report;
        let model = self.scenario.0.model(py)?;
        let page = py.detach(|| {
            let source = PageSource {
                scenario: pagetide::with_bases(self.scenario.0.text().to_owned(), model),
                command: "pagetide.Scenario.run".to_owned(),
            };
            pagetide_html::run::page(report, &source).render()
        });
        let Some(path) = path else { return Ok(Some(page)) };
        py.detach(|| pagetide::write_page(&path, &page)).map_err(refused)?;
        Ok(None)
    }

    fn __len__(&self) -> usize {
        self.finished().count()
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let report = self.report(py)?;
        let (name, variants) = (&report.plan.scenario.name, report.columns.len());
        let (s, runs) = (if variants == 1 { "" } else { "s" }, self.finished().count());
        Ok(format!("<pagetide.Result {name}: {variants} variant{s}, {runs} runs>"))
    }

    fn __str__(&self, py: Python<'_>) -> PyResult<String> {
        self.table(py, WIDTH, None)
    }

    fn _repr_html_(&self, py: Python<'_>) -> PyResult<String> {
        Ok(preformatted(&self.table(py, WIDTH, None)?))
    }
}

impl Result {
    /// The keys of the metrics that match; without names or patterns, those of the table.
    fn keys(&self, py: Python<'_>, metrics: Option<&Bound<'_, PyAny>>) -> PyResult<Vec<MetricKey>> {
        let report = self.report(py)?;
        let Some(metrics) = metrics else { return Ok(pagetide_lab::rows::rows(report)) };
        let patterns = match metrics.extract::<String>() {
            Ok(one) => vec![one],
            Err(_) => metrics.extract::<Vec<String>>()?,
        };
        let (keys, mistakes) = select::keys(report, &patterns);
        let first = mistakes.into_iter().next();
        first.map_or(Ok(keys), |mistake| Err(errors::mistake(py, mistake)))
    }
}

fn summary(report: &Report, keys: &[MetricKey]) -> PyResult<Table> {
    let mut rows = SummaryRows::default();
    for column in &report.columns {
        for key in keys {
            let Some(series) = column.series.get(key) else { continue };
            let samples = series.samples.iter().map(|it| (it.value, it.ended.is_none()));
            rows.add((&column.name, &NO_KNOBS), report.text(key), series.unit, samples);
        }
    }
    rows.table(&[])
}

/// The settings of a run that is of no sweep.
static NO_KNOBS: KnobSettings = KnobSettings::new();

/// Means of metrics over the seeds.
#[derive(Default)]
pub struct SummaryRows<'a> {
    variants: Vec<&'a str>,
    settings: Vec<&'a KnobSettings>,
    metrics: Vec<String>,
    units: Vec<&'static str>,
    means: Vec<Option<f64>>,
    deviations: Vec<Option<f64>>,
    runs: Vec<u64>,
    ended: Vec<u64>,
}

impl<'a> SummaryRows<'a> {
    /// Adds a metric of a variant with settings: its values, and whether each run was complete.
    pub fn add(
        &mut self,
        (variant, settings): (&'a str, &'a KnobSettings),
        metric: String,
        unit: Unit,
        samples: impl ExactSizeIterator<Item = (f64, bool)>,
    ) {
        let nr = samples.len();
        let measured = samples.filter(|(value, is_complete)| *is_complete && value.is_finite());
        let of = Statistics::of(&measured.map(|(value, _)| value).collect::<Vec<f64>>());
        self.variants.push(variant);
        self.settings.push(settings);
        self.metrics.push(metric);
        self.units.push(unit_name(unit));
        self.means.push(Some(of.mean).filter(|_| of.n > 0));
        self.deviations.push(Some(of.stddev).filter(|_| of.n > 1));
        self.runs.push(of.n as u64);
        self.ended.push((nr - of.n) as u64);
    }

    /// The table, with columns of these knobs.
    pub fn table(self, knobs: &[String]) -> PyResult<Table> {
        let variants = Arc::new(StringArray::from(self.variants)) as ArrayRef;
        let mut columns = vec![("variant".to_owned(), variants)];
        columns.extend(knobs::columns(knobs, &self.settings));
        columns.extend([
            ("metric".to_owned(), Arc::new(StringArray::from(self.metrics)) as ArrayRef),
            ("unit".to_owned(), Arc::new(StringArray::from(self.units))),
            ("mean".to_owned(), Arc::new(Float64Array::from(self.means))),
            ("deviation".to_owned(), Arc::new(Float64Array::from(self.deviations))),
            ("runs".to_owned(), Arc::new(UInt64Array::from(self.runs))),
            ("ended".to_owned(), Arc::new(UInt64Array::from(self.ended))),
        ]);
        Table::new(columns)
    }
}

fn comparison(report: &Report, a: usize, b: usize, keys: &[MetricKey]) -> PyResult<Table> {
    let mut units = Vec::new();
    let [mut n_a, mut n_b] = [Vec::new(), Vec::new()];
    let [mut mean_a, mut mean_b, mut sd_a, mut sd_b] = [const { Vec::new() }; 4];
    let (mut changes, mut ps) = (Vec::new(), Vec::new());
    let (mut differ, mut ended) = (Vec::new(), Vec::new());
    let incomplete = report.incomplete(a).or(report.incomplete(b));
    for key in keys {
        units.push(report.unit(key).map(unit_name));
        let (one, other) = (report.summary(a, key), report.summary(b, key));
        let finite = |value: f64| Some(value).filter(|value| value.is_finite());
        for (summary, n, mean, sd) in
            [(one, &mut n_a, &mut mean_a, &mut sd_a), (other, &mut n_b, &mut mean_b, &mut sd_b)]
        {
            n.push(summary.map_or(0, |it| it.n as u64));
            mean.push(summary.and_then(|it| finite(it.mean)));
            sd.push(summary.filter(|it| it.n > 1).and_then(|it| finite(it.stddev)));
        }
        let of_key = || report.ended(a, key).or(report.ended(b, key));
        let why = incomplete.or_else(of_key);
        ended.push(why.map(|ended| ended.word()));
        let both = one.zip(other).filter(|_| why.is_none());
        changes.push(both.and_then(|(one, other)| match change(one.mean, other.mean) {
            MeanChange::Percent(percent) => Some(percent),
            MeanChange::New | MeanChange::Unknown => None,
        }));
        let p = both.and_then(|(one, other)| welch(one, other)).map(|test| test.p);
        ps.push(p);
        differ.push(p.map(|p| p < pagetide_lab::stats::SIGNIFICANCE));
    }
    let names: Vec<String> = keys.iter().map(|key| report.text(key)).collect();
    Table::new(vec![
        ("metric", Arc::new(StringArray::from(names))),
        ("unit", Arc::new(StringArray::from(units))),
        ("n_a", Arc::new(UInt64Array::from(n_a))),
        ("mean_a", Arc::new(Float64Array::from(mean_a))),
        ("sd_a", Arc::new(Float64Array::from(sd_a))),
        ("n_b", Arc::new(UInt64Array::from(n_b))),
        ("mean_b", Arc::new(Float64Array::from(mean_b))),
        ("sd_b", Arc::new(Float64Array::from(sd_b))),
        ("change_percent", Arc::new(Float64Array::from(changes))),
        ("p", Arc::new(Float64Array::from(ps))),
        ("differs", Arc::new(arrow_array::BooleanArray::from(differ))),
        ("ended", Arc::new(StringArray::from(ended))),
    ])
}

/// Every metric of the records, one row each.
pub fn metrics_of<'a>(records: impl Iterator<Item = &'a RunRecord>) -> PyResult<Table> {
    let all = records.map(|record| (record, &NO_KNOBS));
    metrics_with(all, &[], &[])
}

/// These metrics (if empty: all) of records with their settings of these knobs, one row each.
pub fn metrics_with<'a>(
    records: impl Iterator<Item = (&'a RunRecord, &'a KnobSettings)>,
    knobs: &[String],
    wanted: &[String],
) -> PyResult<Table> {
    let mut seeds = Vec::new();
    let mut values = Vec::new();
    let [mut variants, mut names, mut units] = [const { Vec::new() }; 3];
    let mut ended = Vec::new();
    let mut settings = Vec::new();
    for (record, of) in records {
        let mark = record.mark();
        for (name, metric) in &record.metrics {
            if !wanted.is_empty() && !wanted.contains(name) {
                continue;
            }
            settings.push(of);
            variants.push(record.variant.as_str());
            seeds.push(record.seed);
            names.push(name.as_str());
            units.push(unit_name(metric.unit));
            values.push(metric.value);
            ended.push(metric.ended.or(mark).map(|ended| ended.word()));
        }
    }
    let variants = Arc::new(StringArray::from(variants)) as ArrayRef;
    let mut columns = vec![("variant".to_owned(), variants)];
    columns.extend(knobs::columns(knobs, &settings));
    columns.extend([
        ("seed".to_owned(), Arc::new(UInt64Array::from(seeds)) as ArrayRef),
        ("metric".to_owned(), Arc::new(StringArray::from(names))),
        ("unit".to_owned(), Arc::new(StringArray::from(units))),
        ("value".to_owned(), Arc::new(Float64Array::from(values))),
        ("ended".to_owned(), Arc::new(StringArray::from(ended))),
    ]);
    Table::new(columns)
}
