//! A question of `pagetide find`, and the results so far.
//!
//! [`Find`] yields [`FindJob`]s and takes their results; it neither loads nor runs anything. Its
//! first job is one run of the unchanged scenario, which checks names and units of the criterion
//! ([`Find::check`]) before anything else runs.

use super::search::{
    SearchOutcome, SearchPlace, SearchStep, SearchTask, SeedCount, ValueSearch, WantedEnd, MOVES,
};
use crate::execute::{self, RunResult};
use crate::knob::Knob;
use crate::plan::{self, RunPlan};
use crate::report::Report;
use crate::stats::Statistics;
use crate::sweep::store::SweepKey;
use crate::world::Failure;
use pagetide_scenario::metric::criterion::{
    check_name, is_complete, Criterion, Mistake, RunMetrics,
};
use pagetide_scenario::metric::{declared, KeyNames, Owner, Scope};
use pagetide_scenario::model::{Scenario, Variant};
use pagetide_scenario::record::{Incomplete, Metric, RunRecord, Unit};
use std::collections::{BTreeMap, BTreeSet};

#[derive(Clone, Debug)]
pub struct Question {
    /// The unchanged scenario: one variant, first seed; repeats is the number of shared seeds.
    pub scenario: Scenario,
    pub knob: Knob,
    pub criterion: Criterion,
    pub wanted: WantedEnd,
    /// Share of the seeds in which the criterion must hold.
    pub share: f64,
    /// The `--price` metrics.
    pub prices: Vec<String>,
}

impl Question {
    /// The metrics of the criterion and the `--price` metrics.
    pub fn metrics(&self) -> impl Iterator<Item = &String> {
        self.criterion.metrics().chain(&self.prices)
    }
}

/// A run to make.
#[derive(Clone, Debug, PartialEq)]
pub struct FindJob {
    pub place: SearchPlace,
    /// The setting; empty for the unchanged scenario.
    pub sets: Vec<(String, String)>,
    pub seed: u64,
}

/// Result of a run.
#[derive(Clone, Debug)]
pub enum FindResult {
    Record(Box<RunRecord>),
    /// The run failed, or the scenario refuses the value.
    Failed(String),
}

/// A search in progress.
#[derive(Clone, Debug)]
pub struct Find {
    question: Question,
    /// The owners of the keys of its runs.
    names: KeyNames,
    search: ValueSearch,
    records: BTreeMap<(SearchPlace, u64), FindResult>,
}

/// The walltime of a background task: with any value of the knob the end of the run stops it.
fn never_measured(metric: &str, names: &KeyNames) -> Mistake {
    let rate = names.text(&names.key(metric).scope.metric(declared::THROUGHPUT));
    Mistake::new(
        format!("{metric} is never measured: the end of the run stops this background task"),
        format!(
            "ask for a rate or a wait of the task, such as {rate}; or let the run wait for \
             it: give it an end, and leave out `background`"
        ),
    )
}

/// The mistake of asking for a metric of a phase that has not ended, if it is one.
fn unended_phase(metric: &str, run: &RunMetrics, names: &KeyNames) -> Option<Mistake> {
    let (task, phase) = match names.read(metric)?.scope {
        Scope::Phase { task, phase } | Scope::PhaseGroup { task, phase, .. } => (task, phase),
        _ => return None,
    };
    let of_phase = Scope::Phase { task: task.clone(), phase: phase.clone() };
    let has_ended = run.contains_key(&names.text(&of_phase.metric(declared::WALLTIME)));
    let message = format!(
        "{metric} is not measured: the phase `{phase}` of `{task}` does not end within the run"
    );
    let hint =
        format!("ask for a metric of the task ({task}.NAME), or let the phase end in the run");
    (!has_ended).then(|| Mistake::new(message, hint))
}

impl Find {
    /// Fails for too many seeds.
    pub fn new(question: Question) -> Result<Find, Mistake> {
        let (seed, seeds) = (question.scenario.seed, question.scenario.repeats);
        if seeds == 0 || seeds > plan::MAX_REPEATS / 2 {
            return Err(Mistake::new(
                format!("cannot use {seeds} seeds"),
                format!("give a number from 1 to {}", plan::MAX_REPEATS / 2),
            ));
        }
        if seed.checked_add(u64::from(seeds) * u64::from(2 + MOVES)).is_none() {
            return Err(Mistake::new(
                "the seeds end beyond 2^64 - 1",
                "choose a smaller first seed",
            ));
        }
        let search = ValueSearch::new(SearchTask {
            values: question.knob.values.len(),
            wanted: question.wanted,
            share: question.share,
            seed,
            seeds,
            is_relative: question.criterion.is_relative(),
        });
        let names = KeyNames::of(&question.scenario.variants[0].setup);
        Ok(Find { question, names, search, records: BTreeMap::new() })
    }

    pub fn question(&self) -> &Question {
        &self.question
    }

    pub fn names(&self) -> &KeyNames {
        &self.names
    }

    pub fn search(&self) -> &ValueSearch {
        &self.search
    }

    /// The runs that are needed next; none if the search has ended.
    pub fn next_jobs(&self) -> Vec<FindJob> {
        if self.records.is_empty() {
            return vec![self.job(SearchPlace::Before, self.question.scenario.seed)];
        }
        let missing = match self.search.next_step() {
            SearchStep::Done(_) => Vec::new(),
            SearchStep::Run(missing) => missing,
        };
        missing.into_iter().map(|(place, seed)| self.job(place, seed)).collect()
    }

    /// The outcome, once no more runs are needed.
    pub fn verdict(&self) -> Option<SearchOutcome> {
        match self.search.next_step() {
            SearchStep::Done(outcome) => Some(outcome),
            SearchStep::Run(_) => None,
        }
    }

    fn job(&self, place: SearchPlace, seed: u64) -> FindJob {
        let sets = match place {
            SearchPlace::Before => Vec::new(),
            SearchPlace::At(at) => {
                vec![(self.question.knob.path.clone(), self.value(at).to_owned())]
            }
        };
        FindJob { place, sets, seed }
    }

    /// The key of a job in a store. A sweep's run with the same settings has the same key.
    pub fn key(&self, job: &FindJob) -> SweepKey {
        let variant = self.question.scenario.variants[0].name.clone();
        SweepKey { variant, knobs: job.sets.iter().cloned().collect(), seed: job.seed }
    }

    /// The value of the knob with this index.
    pub fn value(&self, at: usize) -> &str {
        &self.question.knob.values[at].text
    }

    /// `vm.swappiness = 10`.
    pub fn setting(&self, at: usize) -> String {
        format!("{} = {}", self.question.knob.path, self.value(at))
    }

    /// Takes the result of a job.
    pub fn add_result(&mut self, place: SearchPlace, seed: u64, told: FindResult) {
        if let (SearchPlace::Before, FindResult::Record(record)) = (place, &told) {
            if self.ends(record).next().is_some() {
                // An incomplete run meets the criterion only if the unchanged one with its seed is
                // incomplete in the same way.
                self.search.compare();
            }
        }
        self.records.insert((place, seed), told);
        // A relative criterion needs both runs of the seed.
        let of_seed: Vec<SearchPlace> = match place {
            SearchPlace::At(_) => vec![place],
            SearchPlace::Before => {
                let all = self.records.keys().filter(|(_, other)| *other == seed);
                all.map(|(place, _)| *place).collect()
            }
        };
        for place in of_seed {
            let is_told = self.records.contains_key(&(SearchPlace::Before, seed));
            if self.search.task().is_relative && !is_told {
                continue;
            }
            let before = self.record(SearchPlace::Before, seed);
            let holds = |run: &RunRecord| {
                let before_metrics = before.map(|before| &before.metrics);
                self.question.criterion.holds(&run.metrics, before_metrics)
                    && !self.is_stopped(run, before)
            };
            let held = self.record(place, seed).is_some_and(holds);
            self.search.add_result(place, seed, held);
        }
    }

    /// The incomplete work of a run: walltimes of foreground tasks, and `elapsed`. For a question
    /// about kills by watchers, such a kill is no reason.
    fn ends<'a>(&'a self, run: &'a RunRecord) -> impl Iterator<Item = (String, Incomplete)> + 'a {
        let tasks = &self.question.scenario.variants[0].setup.tasks;
        let awaited = tasks.iter().filter(|task| !task.background);
        let scopes = awaited.map(|task| Scope::Task(Owner::new(&task.name)));
        let keys = scopes.map(|scope| scope.metric(declared::WALLTIME));
        let keys = keys.chain([Scope::Machine.metric(declared::ELAPSED)]);
        let mut asked = self.question.criterion.metrics();
        let asks_for_kills = asked.any(|metric| declared::counts_kills_by_watchers(metric));
        keys.map(|key| self.names.text(&key))
            .filter_map(|key| Some((run.metrics.get(&key)?.ended?, key)))
            .filter(move |(ended, _)| !(asks_for_kills && *ended == Incomplete::Signalled))
            .map(|(ended, key)| (key, ended))
    }

    /// The incomplete work of all runs with a value: metric, reason and number of runs.
    pub fn incomplete_at(&self, place: SearchPlace) -> BTreeMap<(String, &'static str), usize> {
        let mut all = BTreeMap::new();
        for ((of, _), told) in &self.records {
            let FindResult::Record(record) = told else { continue };
            for (metric, why) in self.ends(record).filter(|_| *of == place) {
                *all.entry((metric, why.word())).or_default() += 1;
            }
        }
        all
    }

    /// The number of runs with a value in which any work is incomplete, by the first reason, and the
    /// number of all its runs.
    pub fn incomplete_runs(&self, place: SearchPlace) -> (BTreeMap<Incomplete, usize>, usize) {
        let (mut incomplete, mut all) = (BTreeMap::new(), 0);
        for ((of, _), told) in &self.records {
            let FindResult::Record(record) = told else { continue };
            if *of == place {
                all += 1;
                let ends = record.metrics.values().filter_map(|metric| metric.ended);
                if let Some(why) = ends.filter(|ended| ended.is_of_run()).min() {
                    *incomplete.entry(why).or_default() += 1;
                }
            }
        }
        (incomplete, all)
    }

    /// Whether a foreground task was killed, or the run was cut, unlike in the unchanged scenario
    /// with this seed.
    fn is_stopped(&self, run: &RunRecord, before: Option<&RunRecord>) -> bool {
        let had: Vec<(String, Incomplete)> =
            before.map(|before| self.ends(before).collect()).unwrap_or_default();
        self.ends(run).any(|end| !had.contains(&end))
    }

    /// The metrics of the unchanged scenario, after its first run.
    pub fn before(&self) -> Option<&RunMetrics> {
        self.records.iter().find_map(|((place, _), told)| match (place, told) {
            (SearchPlace::Before, FindResult::Record(record)) => Some(&record.metrics),
            _ => None,
        })
    }

    /// Checks the names and units of the question against the first run, and that its metrics are
    /// measurements there.
    pub fn check(&self) -> Result<(), Mistake> {
        let Some(sample) = self.before() else { return Ok(()) };
        self.question.metrics().try_for_each(|metric| match sample.get(metric) {
            Some(Metric { ended: Some(Incomplete::Stopped), .. }) => {
                Err(never_measured(metric, &self.names))
            }
            Some(_) => Ok(()),
            None => unended_phase(metric, sample, &self.names).map_or(Ok(()), Err),
        })?;
        self.question.criterion.check(sample)?;
        self.question.prices.iter().try_for_each(|price| check_name(price, sample))
    }

    pub fn record(&self, place: SearchPlace, seed: u64) -> Option<&RunRecord> {
        match self.records.get(&(place, seed))? {
            FindResult::Record(record) => Some(record),
            FindResult::Failed(_) => None,
        }
    }

    /// Number of values tried, including the unchanged scenario.
    pub fn nr_places(&self) -> usize {
        self.records.keys().map(|(place, _)| *place).collect::<BTreeSet<SearchPlace>>().len()
    }

    pub fn nr_runs(&self) -> usize {
        self.records.len()
    }

    /// Failures with their number of runs.
    pub fn failures(&self) -> BTreeMap<&str, usize> {
        let mut failures = BTreeMap::new();
        for told in self.records.values() {
            if let FindResult::Failed(message) = told {
                *failures.entry(message.as_str()).or_default() += 1;
            }
        }
        failures
    }

    /// Number of runs in which a foreground task was killed, that were cut, or in which a metric of
    /// the criterion is missing or of incomplete work.
    pub fn nr_unfinished(&self) -> usize {
        let is_unfinished = |record: &RunRecord| {
            let mut metrics = self.question.criterion.metrics();
            metrics.any(|metric| !record.metrics.get(metric).is_some_and(is_complete))
        };
        let runs = self.records.iter().filter_map(|((_, seed), told)| match told {
            FindResult::Record(record) => Some((*seed, record)),
            FindResult::Failed(_) => None,
        });
        let is_stopped =
            |seed, run: &RunRecord| self.is_stopped(run, self.record(SearchPlace::Before, seed));
        runs.filter(|(seed, run)| is_unfinished(run) || is_stopped(*seed, run)).count()
    }

    /// The metrics of the criterion, each once.
    pub fn measured_metrics(&self) -> Vec<&String> {
        let mut metrics: Vec<&String> = Vec::new();
        for metric in self.question.criterion.metrics() {
            if !metrics.contains(&metric) {
                metrics.push(metric);
            }
        }
        metrics
    }

    /// Unit and values of a metric in the runs of a place, as far as their work is complete.
    pub fn measured(&self, place: SearchPlace, metric: &str) -> Option<(Unit, Statistics)> {
        let runs = self.records.range((place, 0)..=(place, u64::MAX));
        let found = runs.filter_map(|(_, told)| match told {
            FindResult::Record(record) => record.metrics.get(metric).filter(|it| is_complete(it)),
            FindResult::Failed(_) => None,
        });
        let found: Vec<&Metric> = found.collect();
        let values: Vec<f64> = found.iter().map(|metric| metric.value).collect();
        Some((found.first()?.unit, Statistics::of(&values)))
    }

    pub fn count(&self, place: SearchPlace) -> SeedCount {
        self.search.count(place, self.search.shared())
    }

    /// The unchanged scenario and a value side by side, on the shared seeds.
    pub fn side_by_side(&self, at: usize) -> Option<Report> {
        let variant = &self.question.scenario.variants[0];
        let names =
            ["before".to_owned(), format!("{}={}", self.question.knob.path, self.value(at))];
        let scenario = Scenario {
            variants: names.map(|name| Variant { name, ..variant.clone() }).into(),
            ..self.question.scenario.clone()
        };
        let plan = RunPlan::new(scenario).ok()?;
        let mut runs = Vec::new();
        for (variant, place) in [SearchPlace::Before, SearchPlace::At(at)].into_iter().enumerate() {
            for seed in self.search.shared() {
                let outcome = match self.records.get(&(place, seed)) {
                    Some(FindResult::Record(record)) => {
                        execute::JobOutcome::Finished(record.clone())
                    }
                    Some(FindResult::Failed(message)) => execute::JobOutcome::Failed(Failure {
                        message: message.clone(),
                        hint: None,
                        cause: crate::world::FailureCause::Run,
                    }),
                    None => continue,
                };
                runs.push(RunResult { job: plan::RunJob { variant, seed }, outcome });
            }
        }
        Some(Report::gather(plan, &runs))
    }
}
