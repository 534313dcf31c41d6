//! The records of all runs in columns: one column per variant, one series of samples per metric.
//! The texts of the records become keys here, and keys become texts where they are printed.
//!
//! Invariant: a sample of incomplete work ([`Incomplete`]) is kept and marked, and is in no
//! statistic. So is every other sample of its run, unless the work is a stopped background task.

use crate::execute::{JobOutcome, RunResult};
use crate::plan::RunPlan;
use crate::rows;
use crate::stats::Statistics;
use crate::world::Failure;
use pagetide_core::config::PolicySet;
use pagetide_scenario::metric::declared::WALLTIME;
use pagetide_scenario::metric::{KeyNames, MetricKey};
use pagetide_scenario::record::timeline::Timeline;
use pagetide_scenario::record::{Incomplete, Latencies, Unit};
use std::collections::{BTreeMap, BTreeSet};

/// The results from which all tables and files are made.
#[derive(Clone, Debug)]
pub struct Report {
    pub plan: RunPlan,
    /// Version of Pagetide that made the runs.
    pub version: String,
    /// The owners of the keys.
    pub names: KeyNames,
    /// The keys of all columns, in the order of their texts.
    pub keys: BTreeMap<String, MetricKey>,
    /// One per variant, in the plan's order.
    pub columns: Vec<ReportColumn>,
    /// Notes of the runs, without repetitions.
    pub notes: Vec<String>,
    pub failures: Vec<FailedRun>,
    /// Number of runs that are missing because the user cancelled.
    pub cancelled: usize,
}

/// The finished runs of one variant.
#[derive(Clone, Debug)]
pub struct ReportColumn {
    /// The variant.
    pub name: String,
    pub finished: usize,
    pub series: BTreeMap<MetricKey, MetricSeries>,
    /// Timeline of the first finished run that has one.
    pub timeline: Option<RunTimeline>,
    /// Latency distributions, all runs together.
    pub latencies: Vec<Latencies>,
}

#[derive(Clone, Debug)]
pub struct RunTimeline {
    pub seed: u64,
    /// Bytes per page.
    pub page_size: u64,
    pub timeline: Timeline,
}

/// The samples of one metric in one variant.
#[derive(Clone, Debug)]
pub struct MetricSeries {
    pub unit: Unit,
    /// In seed order; a run without this metric has no sample.
    pub samples: Vec<ReportSample>,
    /// Of the samples of complete work.
    pub summary: Statistics,
}

impl MetricSeries {
    /// Why the work of a sample ended early, if it did. Such a series is not compared: its
    /// summary has only the seeds that went well.
    pub fn ended(&self) -> Option<Incomplete> {
        self.samples.iter().filter_map(|sample| sample.ended).min()
    }

    /// Summary of all samples, also of incomplete work.
    pub fn summary_of_all(&self) -> Statistics {
        let values: Vec<f64> = self.samples.iter().map(|sample| sample.value).collect();
        Statistics::of(&values)
    }
}

/// One value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ReportSample {
    /// Seed of its run.
    pub seed: u64,
    pub value: f64,
    /// Why the work ended early; `None`: the value is a measurement.
    pub ended: Option<Incomplete>,
}

/// Number of runs of a variant that have values of incomplete work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IncompleteRuns {
    pub variant: String,
    pub ended: Incomplete,
    /// Number of such runs.
    pub runs: usize,
    /// Number of all finished runs.
    pub finished: usize,
}

#[derive(Clone, Debug)]
pub struct FailedRun {
    pub variant: String,
    pub seed: u64,
    /// Why.
    pub failure: Failure,
}

impl Report {
    /// Gathers `runs` of variants, and notes what misleads about them.
    pub fn new(plan: RunPlan, runs: &[RunResult]) -> Report {
        let mut report = Report::gather(plan, runs);
        report.note_without_effect();
        report.note_missing_psi();
        report
    }

    /// Gathers `runs`, which are ordered by (variant, seed), as [`crate::execute::execute`] does.
    pub fn gather(plan: RunPlan, runs: &[RunResult]) -> Report {
        let names = KeyNames::of_all(plan.scenario.variants.iter().map(|variant| &variant.setup));
        Report::with_names(plan, names, runs)
    }

    /// Like [`Report::new`], with other owners than those of the plan's setups.
    pub fn with_names(plan: RunPlan, names: KeyNames, runs: &[RunResult]) -> Report {
        let mut failures = Vec::new();
        let mut cancelled = 0;
        let mut notes = Notes::default();
        let mut columns: Vec<ReportColumn> = plan
            .scenario
            .variants
            .iter()
            .map(|v| ReportColumn {
                name: v.name.clone(),
                finished: 0,
                series: BTreeMap::new(),
                timeline: None,
                latencies: Vec::new(),
            })
            .collect();
        let mut all_series: Vec<BTreeMap<&str, MetricSeries>> =
            columns.iter().map(|_| BTreeMap::new()).collect();

        for run in runs {
            let column = &mut columns[run.job.variant];
            let of_column = &mut all_series[run.job.variant];
            match &run.outcome {
                JobOutcome::Finished(record) => {
                    column.finished += 1;
                    let of_run = record.mark();
                    for (key, metric) in &record.metrics {
                        let series = of_column.entry(key).or_insert_with(|| MetricSeries {
                            unit: metric.unit,
                            samples: Vec::new(),
                            summary: Statistics::of(&[]),
                        });
                        let (seed, value, ended) =
                            (run.job.seed, metric.value, metric.ended.or(of_run));
                        series.samples.push(ReportSample { seed, value, ended });
                    }
                    if let (None, Some(timeline)) = (&column.timeline, &record.timeline) {
                        let (seed, page_size) = (run.job.seed, record.page_size);
                        column.timeline =
                            Some(RunTimeline { seed, page_size, timeline: timeline.clone() });
                    }
                    for latencies in &record.latencies {
                        let all = &mut column.latencies;
                        match all.iter_mut().find(|sum| sum.of == latencies.of) {
                            Some(sum) => sum.add(latencies),
                            None => all.push(latencies.clone()),
                        }
                    }
                    for note in &record.notes {
                        notes.add(&column.name, run.job.seed, note);
                    }
                }
                JobOutcome::Failed(failure) => failures.push(FailedRun {
                    variant: column.name.clone(),
                    seed: run.job.seed,
                    failure: failure.clone(),
                }),
                JobOutcome::Cancelled => cancelled += 1,
            }
        }
        let mut keys = BTreeMap::new();
        for (column, all) in columns.iter_mut().zip(all_series) {
            for (text, mut series) in all {
                let measured = series.samples.iter().filter(|sample| sample.ended.is_none());
                let values: Vec<f64> = measured.map(|sample| sample.value).collect();
                series.summary = Statistics::of(&values);
                let key = keys.entry(text.to_owned()).or_insert_with(|| names.key(text));
                column.series.insert(key.clone(), series);
            }
        }
        let (version, notes) = (crate::VERSION.to_owned(), notes.lines());
        Report { plan, version, names, keys, columns, notes, failures, cancelled }
    }

    /// Notes the variants that have the same runs as the first.
    fn note_without_effect(&mut self) {
        let Some((first, others)) = self.columns.split_first() else { return };
        let is_same =
            |column: &&ReportColumn| {
                first.finished > 0
                    && column.finished == first.finished
                    && column.series.len() == first.series.len()
                    && column.series.iter().zip(&first.series).all(|((key, one), (other, two))| {
                        key == other && one.samples == two.samples
                    })
            };
        let note = |column: &ReportColumn| {
            let (name, first) = (&column.name, &first.name);
            format!("{name}: no metric of any run differs from {first}")
        };
        self.notes.extend(others.iter().filter(is_same).map(note));
    }

    /// Notes kernels without pressure stall information if rows show it.
    fn note_missing_psi(&mut self) {
        let kernels = self.plan.scenario.variants.iter().map(|it| it.setup.policies.kernel());
        let without = kernels.flatten().filter(|kernel| !kernel.has_psi());
        let names: BTreeSet<&str> = without.map(PolicySet::name).collect();
        let is_psi = |key: &MetricKey| {
            key.name.starts_with("psi.") || key.name.starts_with("memory.pressure")
        };
        if names.is_empty() || !rows::rows(self).iter().any(is_psi) {
            return;
        }
        let names = names.into_iter().collect::<Vec<_>>().join(", ");
        self.notes.push(format!(
            "{names}: no pressure stall information before Linux 4.20; psi is what today's \
             accounting says there, without waits for refaults that the kernel does not detect"
        ));
    }

    /// The variants that have values of incomplete work, by reason.
    pub fn ended_runs(&self) -> Vec<IncompleteRuns> {
        let mut found = Vec::new();
        for column in &self.columns {
            let samples = || column.series.values().flat_map(|series| &series.samples);
            for ended in Incomplete::ALL.into_iter().filter(|ended| ended.is_of_run()) {
                let of = samples().filter(|sample| sample.ended == Some(ended));
                let seeds: BTreeSet<u64> = of.map(|sample| sample.seed).collect();
                if !seeds.is_empty() {
                    let (variant, finished) = (column.name.clone(), column.finished);
                    found.push(IncompleteRuns { variant, ended, runs: seeds.len(), finished });
                }
            }
        }
        found
    }

    /// Whether the OOM killer killed every task in every run, so that nothing was measured.
    pub fn are_all_killed(&self) -> bool {
        let of = |column: &'_ ReportColumn| -> Vec<Option<Incomplete>> {
            let series = column.series.iter().filter(|(key, _)| key.name == WALLTIME.name);
            series.flat_map(|(_, series)| &series.samples).map(|sample| sample.ended).collect()
        };
        let ends: Vec<Option<Incomplete>> = self.columns.iter().flat_map(of).collect();
        !ends.is_empty() && ends.iter().all(|ended| *ended == Some(Incomplete::OomKilled))
    }

    pub fn has_data(&self) -> bool {
        self.columns.iter().any(|column| column.finished > 0)
    }

    /// The text of a key.
    pub fn text(&self, key: &MetricKey) -> String {
        self.names.text(key)
    }

    /// The series of a column, in the order of the texts of their keys.
    pub fn by_text<'a>(
        &'a self,
        column: &'a ReportColumn,
    ) -> impl Iterator<Item = (&'a String, &'a MetricSeries)> {
        self.keys.iter().filter_map(|(text, key)| Some((text, column.series.get(key)?)))
    }

    pub fn summary(&self, column: usize, key: &MetricKey) -> Option<&Statistics> {
        self.columns[column].series.get(key).map(|series| &series.summary)
    }

    /// Why a run of `column` ended early, if one did.
    pub fn incomplete(&self, column: usize) -> Option<Incomplete> {
        let ended = self.columns[column].series.values().filter_map(MetricSeries::ended);
        ended.filter(|ended| ended.is_of_run()).min()
    }

    /// Why the work of a sample of `key` ended early, if it did.
    pub fn ended(&self, column: usize, key: &MetricKey) -> Option<Incomplete> {
        self.columns[column].series.get(key).and_then(MetricSeries::ended)
    }

    /// The statistics of `key` that the table shows in `column`: of its measurements, or of all
    /// samples if no sample is a measurement.
    pub fn shown_summary(&self, column: usize, key: &MetricKey) -> Option<Statistics> {
        let series = self.columns[column].series.get(key)?;
        let is_measured = series.samples.iter().any(|sample| sample.ended.is_none());
        Some(if is_measured { series.summary } else { series.summary_of_all() })
    }

    pub fn unit(&self, key: &MetricKey) -> Option<Unit> {
        self.columns.iter().find_map(|column| column.series.get(key)).map(|series| series.unit)
    }

    pub fn published(&self, column: usize, key: &MetricKey) -> Option<f64> {
        let reference = self.plan.scenario.reference.as_ref()?;
        reference.values.get(&self.columns[column].name)?.get(&self.text(key)).copied()
    }
}

/// Notes of all runs; the same note from several seeds becomes one line.
#[derive(Default)]
struct Notes {
    list: Vec<(String, String, Vec<u64>)>,
    /// Index in `list`, by variant and note: there may be one note for each of thousands of tasks.
    places: BTreeMap<(String, String), usize>,
}

impl Notes {
    fn add(&mut self, variant: &str, seed: u64, note: &str) {
        let key = (variant.to_owned(), note.to_owned());
        let place = *self.places.entry(key).or_insert_with_key(|(variant, note)| {
            self.list.push((variant.clone(), note.clone(), Vec::new()));
            self.list.len() - 1
        });
        let seeds = &mut self.list[place].2;
        if seeds.last() != Some(&seed) {
            seeds.push(seed);
        }
    }

    fn lines(self) -> Vec<String> {
        self.list
            .into_iter()
            .map(|(variant, note, seeds)| match seeds.as_slice() {
                [seed] => format!("{variant}, seed {seed}: {note}"),
                seeds => format!("{variant}, {} seeds: {note}", seeds.len()),
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::RunJob;
    use crate::testing::{failure, record, report_of, scenario};

    #[test]
    fn all_values_of_an_incomplete_run_are_marked() {
        let plan = RunPlan::new(scenario(&["a"])).unwrap();
        let run = |seed, ended| {
            let mut record = record("a", seed, &[("log.walltime", 1.0), ("web.walltime", 2.0)]);
            record.metrics.get_mut("log.walltime").unwrap().ended = ended;
            let outcome = JobOutcome::Finished(Box::new(record));
            RunResult { job: RunJob { variant: 0, seed }, outcome }
        };
        let ends = [None, Some(Incomplete::OomKilled), Some(Incomplete::Stopped)];
        let runs: Vec<RunResult> = (1..).zip(ends).map(|(seed, end)| run(seed, end)).collect();
        let report = Report::new(plan, &runs);
        let web = &report.columns[0].series[&report.keys["web.walltime"]];
        let marks: Vec<_> = web.samples.iter().map(|sample| sample.ended).collect();
        assert_eq!(marks, [None, Some(Incomplete::IncompleteRun), None]);
        assert_eq!(web.summary.n, 2);
        assert_eq!(report.ended_runs().len(), 1);
    }

    #[test]
    fn a_variant_without_any_effect_is_noted() {
        let notes = |value: f64| {
            let runs = |value| vec![[("pgfault", 1.0)], [("pgfault", value)]];
            let (a, b) = (runs(2.0), runs(value));
            let sides = [("a", &a), ("b", &b)]
                .map(|(name, runs)| (name, runs.iter().map(|run| &run[..]).collect::<Vec<_>>()));
            let mut report = report_of(&sides);
            report.note_without_effect();
            report.notes
        };
        let none = "b: no metric of any run differs from a";
        assert_eq!(notes(2.0), [none]);
        assert_eq!(notes(3.0), [""; 0]);
    }

    #[test]
    fn psi_of_a_kernel_without_it_is_noted() {
        let mut report = report_of(&[("a", vec![&[("psi.memory.full", 2.0)]])]);
        report.plan.scenario.rows = vec!["psi.memory.full".to_owned()];
        report.note_missing_psi();
        assert_eq!(report.notes, [""; 0]);
        report.plan.scenario.variants[0].setup.policies.follow(PolicySet::Linux33);
        report.note_missing_psi();
        assert!(report.notes[0].starts_with("linux-3.3: no pressure stall"), "{:?}", report.notes);
        report.plan.scenario.rows = vec!["pgfault".to_owned()];
        report.notes.clear();
        report.note_missing_psi();
        assert_eq!(report.notes, [""; 0]);
    }

    #[test]
    fn records_become_series_in_seed_order() {
        let plan = RunPlan::new(scenario(&["a", "b"])).unwrap();
        let mut noted = record("b", 1, &[("pgfault", 7.0)]);
        noted.notes = vec!["time limit reached".to_owned()];
        let mut again = record("b", 2, &[("pgfault", 9.0)]);
        again.notes = noted.notes.clone();
        let run = |variant, seed, outcome| RunResult { job: RunJob { variant, seed }, outcome };
        let runs = [
            run(0, 1, JobOutcome::Finished(Box::new(record("a", 1, &[("pgfault", 1.0)])))),
            run(0, 2, JobOutcome::Failed(failure("no"))),
            run(0, 3, JobOutcome::Cancelled),
            run(1, 1, JobOutcome::Finished(Box::new(noted))),
            run(1, 2, JobOutcome::Finished(Box::new(again))),
        ];
        let report = Report::new(plan, &runs);
        assert_eq!(report.columns[0].finished, 1);
        assert_eq!(report.summary(1, &report.keys["pgfault"]).unwrap().mean, 8.0);
        assert_eq!(
            report.columns[1].series[&report.keys["pgfault"]].samples,
            [7.0, 9.0].map(|value| ReportSample { seed: value as u64 / 3 - 1, value, ended: None })
        );
        assert_eq!(report.notes, ["b, 2 seeds: time limit reached"]);
        assert_eq!((report.failures.len(), report.cancelled), (1, 1));
    }
}
