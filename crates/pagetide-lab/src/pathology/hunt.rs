//! The draws of a hunt, their runs, and the shrinking of the first one that shows the objective.
//!
//! Invariant: a draw follows from the seed and its number. The find is the draw of the lowest
//! number, and shrinking takes the first success in a fixed order, so neither depends on the number
//! of threads.

use super::objective::Objective;
use crate::execute::{perform, JobOutcome, RunProgress};
use crate::knob::Knob;
use crate::plan::RunJob;
use crate::world::{Failure, FailureCause, RunBackend};
use pagetide_scenario::draws::prng::{sub_seed, SplitMix64};
use pagetide_scenario::load::{load_str, path_parts, resolve, Overrides, PluginNames};
use pagetide_scenario::metric::criterion::Mistake;
use pagetide_scenario::metric::declared::ELAPSED;
use pagetide_scenario::metric::Owner;
use pagetide_scenario::model::{Scenario, Variant};
use pagetide_scenario::record::RunRecord;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};
use toml::{Table, Value};

/// Seeds of runs are below this, to be short.
const SEEDS: u64 = 1_000_000;
/// A hunt whose first draws are all refused has wrong ranges.
const REFUSED_MAX: u64 = 50;
/// Passes of the shrinking over tasks and knobs. Later ones rarely find more.
const PASSES: usize = 3;

/// The scenario, its knobs and the objective.
#[derive(Clone, Debug)]
pub struct Hunt {
    /// One variant, without knobs turned.
    pub scenario: Scenario,
    /// Its resolved text, and the directory where its paths start.
    pub text: String,
    pub directory: PathBuf,
    pub plugins: PluginNames,
    pub knobs: Vec<Knob>,
    pub objective: Objective,
    /// With these settings the run must end and not show the objective; empty: no such condition.
    pub against: Vec<(String, String)>,
    pub seed: u64,
}

/// A scenario of a hunt.
#[derive(Clone, Debug, PartialEq)]
pub struct ScenarioDraw {
    pub number: u64,
    /// Seed of its run.
    pub seed: u64,
    /// Index of the value of each knob; `None`: not turned.
    pub values: Vec<Option<usize>>,
    /// Tasks that are left out, by the name in the file.
    pub without: Vec<String>,
}

/// How a draw shows the objective.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    pub value: f64,
    /// With the settings of [`Hunt::against`].
    pub against: Option<f64>,
    /// The run panicked, failed the audit or did not end, which is always a find.
    pub failure: Option<Failure>,
}

#[derive(Clone, Debug, PartialEq)]
enum DrawOutcome {
    /// The scenario does not accept the values, or the computer cannot run it.
    Refused(String),
    Quiet,
    Shows(Finding),
}

/// A find before and after shrinking.
#[derive(Clone, Debug)]
pub struct HuntFind {
    pub drawn: (ScenarioDraw, Finding),
    pub smallest: (ScenarioDraw, Finding),
}

/// How a hunt has ended.
#[derive(Clone, Debug, Default)]
pub struct HuntReport {
    pub found: Option<HuntFind>,
    /// Draws up to the find, including it.
    pub tried: u64,
    pub refused: u64,
}

#[derive(Debug)]
pub enum HuntError {
    Cancelled,
    Mistake(Mistake),
}

/// The means of performing runs.
pub struct HuntBackend<'a> {
    pub world: &'a dyn RunBackend,
    pub threads: NonZeroUsize,
    pub cancel: &'a Arc<AtomicBool>,
    /// Gets the number of runs that follow.
    pub on_batch: &'a dyn Fn(usize),
    pub on_progress: &'a (dyn Fn(RunProgress<'_>) + Sync),
}

impl Hunt {
    pub fn draw(&self, number: u64) -> ScenarioDraw {
        let mut prng = SplitMix64::new(sub_seed(self.seed, &format!("draw {number}")));
        let seed = prng.below(SEEDS);
        let value = |knob: &Knob| Some(prng.below(knob.values.len() as u64) as usize);
        let values = self.knobs.iter().map(value).collect();
        ScenarioDraw { number, seed, values, without: Vec::new() }
    }

    /// The text of a knob's value; `None`: not turned.
    pub fn value(&self, draw: &ScenarioDraw, knob: usize) -> Option<&str> {
        draw.values[knob].map(|value| self.knobs[knob].values[value].text.as_str())
    }

    fn sets(&self, draw: &ScenarioDraw) -> Vec<(String, String)> {
        let knobs = self.knobs.iter().enumerate();
        let set = |(at, knob): (usize, &Knob)| {
            Some((knob.path.clone(), self.value(draw, at)?.to_owned()))
        };
        knobs.filter_map(set).collect()
    }

    fn overrides(&self, draw: &ScenarioDraw) -> Overrides {
        let (sets, plugins) = (self.sets(draw), self.plugins.clone());
        Overrides { sets, plugins, ..Overrides::default() }
    }

    fn resolved(&self, draw: &ScenarioDraw, overrides: &Overrides) -> Result<Table, String> {
        let (name, text) = (&self.scenario.name, &self.text);
        resolve(name, text, &self.directory, overrides, &draw.without).map_err(|it| it.to_string())
    }

    fn variant(&self, draw: &ScenarioDraw, is_against: bool) -> Result<Variant, String> {
        let mut overrides = self.overrides(draw);
        if is_against {
            overrides.sets.extend_from_slice(&self.against);
        }
        let text = match draw.without.is_empty() {
            true => self.text.clone(),
            false => self.resolved(draw, &Overrides::default())?.to_string(),
        };
        let loaded = load_str(&self.scenario.name, &text, &self.directory, &overrides);
        let mut scenario = loaded.map_err(|refused| refused.to_string())?;
        let mut variant = scenario.variants.swap_remove(0);
        variant.name = format!("draw-{}", draw.number);
        variant.setup.request_metric(self.objective.kind.metric().name);
        Ok(variant)
    }

    /// Checks that the scenario accepts the ends of each knob's range and the values of each list,
    /// the others left alone, and the settings of [`Hunt::against`].
    pub fn check(&self) -> Result<(), String> {
        let plain = ScenarioDraw { values: vec![None; self.knobs.len()], ..self.draw(0) };
        self.variant(&plain, true)?;
        for (at, knob) in self.knobs.iter().enumerate() {
            for (_, text) in knob.checked() {
                let mut draw = plain.clone();
                draw.values[at] = knob.values.iter().position(|value| value.text == text);
                self.variant(&draw, false)?;
            }
        }
        Ok(())
    }

    /// Runs draws, and the other side of those that show the objective.
    fn try_all(
        &self,
        draws: &[ScenarioDraw],
        backend: &HuntBackend<'_>,
    ) -> Result<Vec<DrawOutcome>, HuntError> {
        let outcome = |record: &RunRecord| {
            let value = self.objective.value(record);
            match self.objective.is_shown_by(value) {
                true => DrawOutcome::Shows(Finding { value, against: None, failure: None }),
                false => DrawOutcome::Quiet,
            }
        };
        let mut outcomes = self.run_side(draws, false, backend, &outcome)?;
        if self.against.is_empty() {
            return Ok(outcomes);
        }
        let shows = |it: &DrawOutcome| matches!(it, DrawOutcome::Shows(it) if it.failure.is_none());
        let asked: Vec<usize> = (0..draws.len()).filter(|&at| shows(&outcomes[at])).collect();
        let again: Vec<ScenarioDraw> = asked.iter().map(|&at| draws[at].clone()).collect();
        let other = |record: &RunRecord| {
            let value = self.objective.value(record);
            // A run that was cut, or in which a task was killed, is no better.
            let ended = record.metrics.get(ELAPSED.name).and_then(|elapsed| elapsed.ended);
            match self.objective.is_shown_by(value) || ended.is_some() {
                true => DrawOutcome::Quiet,
                false => DrawOutcome::Shows(Finding { value, against: Some(value), failure: None }),
            }
        };
        for (at, outcome) in asked.into_iter().zip(self.run_side(&again, true, backend, &other)?) {
            let value = match &outcomes[at] {
                DrawOutcome::Shows(finding) => finding.value,
                DrawOutcome::Refused(_) | DrawOutcome::Quiet => continue,
            };
            outcomes[at] = match outcome {
                DrawOutcome::Shows(finding) => DrawOutcome::Shows(Finding { value, ..finding }),
                other => other,
            };
        }
        Ok(outcomes)
    }

    fn run_side(
        &self,
        draws: &[ScenarioDraw],
        is_against: bool,
        backend: &HuntBackend<'_>,
        judge: &dyn Fn(&RunRecord) -> DrawOutcome,
    ) -> Result<Vec<DrawOutcome>, HuntError> {
        let (mut variants, mut jobs, mut outcomes) = (Vec::new(), Vec::new(), Vec::new());
        for draw in draws {
            outcomes.push(match self.variant(draw, is_against) {
                Ok(variant) => {
                    jobs.push(RunJob { variant: variants.len(), seed: draw.seed });
                    variants.push(variant);
                    None
                }
                Err(refused) => Some(DrawOutcome::Refused(refused)),
            });
        }
        let scenario = Scenario { variants, ..self.scenario.clone() };
        let HuntBackend { world, threads, cancel, on_batch, on_progress } = *backend;
        on_batch(jobs.len());
        let ended = Mutex::new(vec![JobOutcome::Cancelled; jobs.len()]);
        perform(&scenario, &jobs, world, threads, cancel, on_progress, &|at, outcome| {
            ended.lock().unwrap_or_else(PoisonError::into_inner)[at] = outcome;
        });
        let mut ended = ended.into_inner().unwrap_or_else(PoisonError::into_inner).into_iter();
        let mut judged = Vec::new();
        for outcome in outcomes {
            judged.push(match (outcome, ended.len()) {
                (Some(refused), _) => refused,
                (None, _) => match ended.next().unwrap_or(JobOutcome::Cancelled) {
                    JobOutcome::Finished(record) => judge(&record),
                    JobOutcome::Failed(failure) if failure.cause == FailureCause::Run => {
                        let (value, against) = (0.0, None);
                        DrawOutcome::Shows(Finding { value, against, failure: Some(failure) })
                    }
                    JobOutcome::Failed(failure) => DrawOutcome::Refused(failure.to_string()),
                    JobOutcome::Cancelled => return Err(HuntError::Cancelled),
                },
            });
        }
        Ok(judged)
    }

    /// Draws from number `first` on until one shows the objective, and shrinks it. `may_draw` says
    /// whether to go on after so many draws.
    pub fn run(
        &self,
        first: u64,
        may_draw: &dyn Fn(u64) -> bool,
        backend: &HuntBackend<'_>,
    ) -> Result<HuntReport, HuntError> {
        let mut report = HuntReport::default();
        loop {
            let at_once = 8 * backend.threads.get() as u64;
            let coming = (report.tried..report.tried + at_once).take_while(|&nr| may_draw(nr));
            let draws: Vec<ScenarioDraw> = coming.map(|nr| self.draw(first + nr)).collect();
            if draws.is_empty() {
                return Ok(report);
            }
            let outcomes = self.try_all(&draws, backend)?;
            for (draw, outcome) in draws.into_iter().zip(outcomes) {
                report.tried += 1;
                match outcome {
                    DrawOutcome::Quiet => {}
                    DrawOutcome::Refused(why) => {
                        report.refused += 1;
                        if report.refused == report.tried && report.tried == REFUSED_MAX {
                            let message =
                                format!("the first {REFUSED_MAX} draws are refused: {why}");
                            let hint = "narrow the ranges of the knobs";
                            return Err(HuntError::Mistake(Mistake::new(message, hint)));
                        }
                    }
                    DrawOutcome::Shows(finding) => {
                        let drawn = (draw, finding);
                        let smallest = self.shrink(drawn.clone(), backend)?;
                        report.found = Some(HuntFind { drawn, smallest });
                        return Ok(report);
                    }
                }
            }
        }
    }

    /// Leaves out tasks, leaves knobs alone, and lowers the others, as long as the pathology shows.
    fn shrink(
        &self,
        mut best: (ScenarioDraw, Finding),
        backend: &HuntBackend<'_>,
    ) -> Result<(ScenarioDraw, Finding), HuntError> {
        for pass in 0..PASSES {
            let before = best.0.clone();
            let setup = &self.scenario.variants[0].setup;
            let mut tasks: Vec<String> =
                setup.tasks.iter().map(|task| Owner::new(&task.name).name).collect();
            tasks.dedup();
            for task in tasks.into_iter().filter(|task| !before.without.contains(task)) {
                let mut draw = best.0.clone();
                let is_its = |path: &str| {
                    matches!(path_parts(path).as_slice(), [of, name, ..]
                        if ["task", "watcher"].contains(&of.as_str()) && *name == task)
                };
                let knobs = self.knobs.iter().zip(&mut draw.values);
                knobs.filter(|(knob, _)| is_its(&knob.path)).for_each(|(_, value)| *value = None);
                draw.without.push(task);
                self.keep_first(&mut best, vec![draw], backend)?;
            }
            for knob in 0..self.knobs.len() {
                self.lower(&mut best, knob, pass, backend)?;
            }
            if best.0 == before {
                break;
            }
        }
        Ok(best)
    }

    /// Leaves a knob alone, or gives it its first value, or bisects to a low value with which the
    /// pathology shows and with the next lower one does not.
    fn lower(
        &self,
        best: &mut (ScenarioDraw, Finding),
        knob: usize,
        pass: usize,
        backend: &HuntBackend<'_>,
    ) -> Result<(), HuntError> {
        let with = |draw: &ScenarioDraw, value: Option<usize>| {
            let mut draw = draw.clone();
            draw.values[knob] = value;
            draw
        };
        let Some(drawn) = best.0.values[knob] else { return Ok(()) };
        let mut first = vec![with(&best.0, None)];
        first.extend((drawn > 0).then(|| with(&best.0, Some(0))));
        // A small load is easier to understand than the one of the file.
        if path_parts(&self.knobs[knob].path)[0] == "task" {
            first.reverse();
        }
        if self.keep_first(best, first, backend)? {
            return Ok(());
        }
        let (mut low, mut high) = (0, drawn);
        // After the first pass the next lower value has failed before: try it first.
        let mut is_first = pass > 0;
        while high - low > 1 {
            let middle = if is_first { high - 1 } else { low + (high - low) / 2 };
            is_first = false;
            match self.keep_first(best, vec![with(&best.0, Some(middle))], backend)? {
                true => high = middle,
                false => low = middle,
            }
        }
        Ok(())
    }

    /// Replaces `best` by the first of these that shows the same.
    fn keep_first(
        &self,
        best: &mut (ScenarioDraw, Finding),
        draws: Vec<ScenarioDraw>,
        backend: &HuntBackend<'_>,
    ) -> Result<bool, HuntError> {
        let outcomes = self.try_all(&draws, backend)?;
        for (draw, outcome) in draws.into_iter().zip(outcomes) {
            match outcome {
                DrawOutcome::Shows(it) if it.failure.is_some() == best.1.failure.is_some() => {
                    *best = (draw, it);
                    return Ok(true);
                }
                DrawOutcome::Shows(_) | DrawOutcome::Quiet | DrawOutcome::Refused(_) => {}
            }
        }
        Ok(false)
    }

    /// The scenario file of a draw: one run, and one with the settings of [`Hunt::against`].
    pub fn file_of(&self, draw: &ScenarioDraw) -> Result<String, String> {
        let mut table = self.resolved(draw, &self.overrides(draw))?;
        let text = |text: &str| Value::String(text.to_owned());
        let number = |number: u64| Value::Integer(number as i64);
        let metric = self.objective.kind.metric().name;
        table.remove("description");
        table.insert("name".to_owned(), text(&format!("draw-{}", draw.number)));
        table.insert("repeats".to_owned(), number(1));
        table.insert("seed".to_owned(), number(draw.seed));
        let rows = Value::Array(vec![text(metric), text("elapsed"), text("oom_kill")]);
        table.insert("report".to_owned(), Value::Table(Table::from_iter([("rows".into(), rows)])));
        if !self.against.is_empty() {
            let value =
                |value: &str| value.parse::<i64>().map_or_else(|_| text(value), Value::from);
            let sets = self.against.iter().map(|(key, to)| (key.clone(), value(to)));
            let found = Table::from_iter([("name".to_owned(), text("found"))]);
            let against = Table::from_iter([
                ("name".to_owned(), text("against")),
                ("set".to_owned(), Value::Table(sets.collect())),
            ]);
            let variants = vec![Value::Table(found), Value::Table(against)];
            table.insert("variant".to_owned(), Value::Array(variants));
        }
        Ok(table.to_string())
    }
}
