//! The draws of a hunt, their runs, and the shrinking of the first one that shows the objective.
//!
//! Invariant: a draw follows from the seed and its number. The find is the draw of the lowest
//! number, and shrinking takes the first success in a fixed order, so neither depends on the number
//! of threads. Only the time at which [`HuntBackend::stop`] ends them does.

use super::objective::Objective;
use super::queue::judge_in_order;
use crate::execute::room::{self, MemoryBudget};
use crate::execute::{perform_one, JobOutcome, RunProgress};
use crate::knob::Knob;
use crate::plan::RunJob;
use crate::world::{Failure, FailureCause, RunBackend, RunControl};
use pagetide_core::units::Nanos;
use pagetide_scenario::draws::prng::{sub_seed, SplitMix64};
use pagetide_scenario::load::{load_str, path_parts, resolve, Overrides, PluginNames};
use pagetide_scenario::metric::criterion::Mistake;
use pagetide_scenario::metric::declared::ELAPSED;
use pagetide_scenario::metric::Owner;
use pagetide_scenario::model::{Scenario, Variant};
use std::iter;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use toml::{Table, Value};

/// Seeds of runs are below this, to be short.
const SEEDS: u64 = 1_000_000;
/// A draw runs with its seed and the next ones, and so many must show the objective.
pub const SEEDS_OF_DRAW: u64 = 3;
const SEEDS_SHOWN: u64 = 2;
/// A hunt whose first draws are all refused has wrong ranges.
const REFUSED_MAX: usize = 50;
/// Most scenarios that shrinking tries.
const SHRINKS_MAX: usize = 200;
/// A run of a smaller scenario may take so many times the virtual time of the find.
const TIME_FACTOR: u64 = 4;

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
    /// With the draw's own seed.
    pub value: f64,
    /// With the settings of [`Hunt::against`].
    pub against: Option<f64>,
    /// How many of [`SEEDS_OF_DRAW`] seeds show it.
    pub seeds: u64,
    /// A run panicked, failed the audit or did not end, which is always a find.
    pub failure: Option<Failure>,
    /// Virtual time of its longest run; 0: unknown.
    needed_ns: Nanos,
}

#[derive(Clone, Debug, PartialEq)]
enum DrawOutcome {
    /// The scenario does not accept the values, or the computer cannot run it.
    Refused(String),
    Quiet,
    Shows(Finding),
}

/// How a hunt has ended.
#[derive(Clone, Debug, Default)]
pub struct HuntReport {
    pub found: Option<(ScenarioDraw, Finding)>,
    /// Draws up to the find, including it.
    pub tried: usize,
    pub refused: usize,
}

/// A find that has been made smaller.
#[derive(Clone, Debug)]
pub struct ShrunkFind {
    pub draw: ScenarioDraw,
    pub finding: Finding,
    /// Smaller scenarios that were tried.
    pub tried: usize,
    /// No smaller one shows the objective.
    pub is_smallest: bool,
}

/// A draw that is smaller in one part than another.
struct SmallerDraw {
    part: usize,
    draw: ScenarioDraw,
    /// Index of the knob's value, if the part is a knob that is turned.
    value: Option<usize>,
}

/// Performs a run, and tells its virtual time.
type DrawRun<'a> = dyn Fn(&Variant, RunJob) -> (JobOutcome, Nanos) + 'a;

/// The means of performing runs.
pub struct HuntBackend<'a> {
    pub world: &'a dyn RunBackend,
    pub threads: NonZeroUsize,
    /// Whether to end, asked now and then.
    pub stop: &'a dyn Fn() -> bool,
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

    /// Paths and values of the knobs that are turned.
    pub fn turned<'a>(
        &'a self,
        draw: &'a ScenarioDraw,
    ) -> impl Iterator<Item = (&'a str, &'a str)> {
        let knobs = self.knobs.iter().zip(&draw.values);
        knobs.filter_map(|(knob, value)| Some((&*knob.path, &*knob.values[(*value)?].text)))
    }

    fn overrides(&self, draw: &ScenarioDraw) -> Overrides {
        let sets = self.turned(draw).map(|(path, value)| (path.to_owned(), value.to_owned()));
        Overrides { sets: sets.collect(), plugins: self.plugins.clone(), ..Overrides::default() }
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

    /// Judges what the runs of a draw show; `None`: a run was cancelled.
    fn judge(
        &self,
        draw: &ScenarioDraw,
        limit_ns: Nanos,
        run: &DrawRun<'_>,
    ) -> Option<DrawOutcome> {
        let mut sides = Vec::new();
        for is_against in [false, true].into_iter().take(1 + usize::from(!self.against.is_empty()))
        {
            match self.variant(draw, is_against) {
                Ok(mut variant) => {
                    let setup = &mut variant.setup;
                    setup.time_limit_ns = setup.time_limit_ns.min(limit_ns);
                    sides.push(variant);
                }
                Err(refused) => return Some(DrawOutcome::Refused(refused)),
            }
        }
        let judged = self.judge_seeds(&sides, draw.seed, run);
        judged.map_or_else(
            |early| early,
            |it| Some(it.map_or(DrawOutcome::Quiet, DrawOutcome::Shows)),
        )
    }

    /// Most draws are quiet, so the other seeds only run if the first shows the objective.
    fn judge_seeds(
        &self,
        sides: &[Variant],
        seed: u64,
        run: &DrawRun<'_>,
    ) -> Result<Option<Finding>, Option<DrawOutcome>> {
        let Some(mut finding) = self.judge_seed(sides, seed, run)? else { return Ok(None) };
        for other in seed + 1..seed + SEEDS_OF_DRAW {
            if finding.failure.is_some() {
                break;
            }
            if let Some(other) = self.judge_seed(sides, other, run)? {
                finding.seeds += 1;
                finding.failure = other.failure;
                finding.needed_ns = finding.needed_ns.max(other.needed_ns);
            }
        }
        let is_shown = finding.failure.is_some() || finding.seeds >= SEEDS_SHOWN;
        Ok(is_shown.then_some(finding))
    }

    fn judge_seed(
        &self,
        sides: &[Variant],
        seed: u64,
        run: &DrawRun<'_>,
    ) -> Result<Option<Finding>, Option<DrawOutcome>> {
        let (value, against, failure) = (0.0, None, None);
        let mut finding = Finding { value, against, seeds: 1, failure, needed_ns: 0 };
        for (side, variant) in sides.iter().enumerate() {
            let (outcome, lasted) = run(variant, RunJob { variant: side, seed });
            finding.needed_ns = finding.needed_ns.max(lasted);
            let record = match outcome {
                JobOutcome::Finished(record) => record,
                JobOutcome::Failed(failure) if failure.cause == FailureCause::Run => {
                    return Ok(Some(Finding { failure: Some(failure), ..finding }));
                }
                JobOutcome::Failed(failure) => {
                    return Err(Some(DrawOutcome::Refused(failure.to_string())));
                }
                JobOutcome::Cancelled => return Err(None),
            };
            finding.needed_ns = finding.needed_ns.max(record.elapsed_ns);
            let value = self.objective.value(&record);
            let shows = self.objective.is_shown_by(value);
            // On the other side, a run that was cut, or in which a task was killed, is no better.
            let ended = record.metrics.get(ELAPSED.name).and_then(|elapsed| elapsed.ended);
            match side {
                0 if shows => finding.value = value,
                1 if !shows && ended.is_none() => finding.against = Some(value),
                _ => return Ok(None),
            }
        }
        Ok(Some(finding))
    }

    /// Judges the draws below `end` up to the first find.
    fn judge_draws(
        &self,
        nth: &(dyn Fn(usize) -> ScenarioDraw + Sync),
        end: usize,
        (limit_ns, wants_failure): (Nanos, Option<bool>),
        backend: &HuntBackend<'_>,
    ) -> Vec<DrawOutcome> {
        let memory = MemoryBudget::new(room::available());
        let (world, on_progress) = (backend.world, backend.on_progress);
        let judge = |number: usize, cancel: &Arc<AtomicBool>| {
            let outcome = self.judge(&nth(number), limit_ns, &|variant, job| {
                let watch = RunControl { cancel: Arc::clone(cancel), clock: Arc::default() };
                let name = &self.scenario.name;
                // Runs that are active at once have different names.
                let job = RunJob { variant: 2 * number + job.variant, ..job };
                let outcome = perform_one(name, variant, job, world, &memory, &watch, on_progress);
                (outcome, watch.clock.load(Ordering::Relaxed))
            });
            // A failure must not become the objective, nor the objective a failure.
            let is_other =
                |it: &Finding| wants_failure.is_some_and(|wants| wants != it.failure.is_some());
            outcome.map(|outcome| match outcome {
                DrawOutcome::Shows(it) if is_other(&it) => DrawOutcome::Quiet,
                outcome => outcome,
            })
        };
        let is_find = |outcome: &DrawOutcome| matches!(outcome, DrawOutcome::Shows(_));
        judge_in_order(backend.threads, end, &judge, &is_find, backend.stop)
    }

    /// Tries `draws` draws from number `first` on until one shows the objective.
    ///
    /// # Errors
    /// The scenario refuses all of the first draws.
    pub fn search(
        &self,
        first: u64,
        draws: usize,
        backend: &HuntBackend<'_>,
    ) -> Result<HuntReport, Mistake> {
        let nth = |number: usize| self.draw(first + number as u64);
        let refusal = |number| self.variant(&nth(number), false).err();
        if let Some(why) = (0..REFUSED_MAX).map_while(refusal).nth(REFUSED_MAX - 1) {
            let message = format!("the first {REFUSED_MAX} draws are refused: {why}");
            return Err(Mistake::new(message, "narrow the ranges of the knobs"));
        }
        let mut outcomes = self.judge_draws(&nth, draws, (Nanos::MAX, None), backend);
        let tried = outcomes.len();
        let refused = outcomes.iter().filter(|it| matches!(it, DrawOutcome::Refused(_))).count();
        let found = match outcomes.pop() {
            Some(DrawOutcome::Shows(finding)) => Some((nth(tried - 1), finding)),
            _ => None,
        };
        Ok(HuntReport { found, tried, refused })
    }

    /// Leaves out tasks, leaves knobs alone, and lowers the others, as long as the objective shows.
    pub fn shrink(
        &self,
        draw: &ScenarioDraw,
        found: &Finding,
        backend: &HuntBackend<'_>,
    ) -> ShrunkFind {
        let (draw, finding) = (draw.clone(), found.clone());
        let mut best = ShrunkFind { draw, finding, tried: 0, is_smallest: false };
        let limit_ns = match found.needed_ns {
            0 => Nanos::MAX,
            needed => needed.saturating_mul(TIME_FACTOR),
        };
        let bounds = (limit_ns, Some(found.failure.is_some()));
        let (mut part, mut failed) = (0, None);
        loop {
            let smaller = self.smaller(&best.draw, part, failed);
            let end = smaller.len().min(SHRINKS_MAX - best.tried);
            let nth = |number: usize| smaller[number].draw.clone();
            let mut outcomes = self.judge_draws(&nth, end, bounds, backend);
            let tried = outcomes.len();
            best.tried += tried;
            let Some(DrawOutcome::Shows(finding)) = outcomes.pop() else {
                best.is_smallest = tried == smaller.len();
                return best;
            };
            let (kept, before) = (&smaller[tried - 1], &smaller[..tried - 1]);
            // The value before this one has failed with the same other values.
            let low = before.last().filter(|it| it.part == kept.part).and_then(|it| it.value);
            let low = low.or(failed.filter(|_| part == kept.part));
            (part, failed) = (kept.part, low.filter(|_| kept.value.is_some()));
            (best.draw, best.finding) = (kept.draw.clone(), finding);
        }
    }

    /// The draws that are smaller in one part, in the order to try: parts are tasks, then knobs,
    /// from `from` on. The knob `from` has failed with the value `failed` and those below.
    fn smaller(&self, draw: &ScenarioDraw, from: usize, failed: Option<usize>) -> Vec<SmallerDraw> {
        let setup = &self.scenario.variants[0].setup;
        let tasks = setup.tasks.iter().map(|task| Owner::new(&task.name).name);
        let mut tasks: Vec<String> = tasks.collect();
        tasks.dedup();
        let mut smaller = Vec::new();
        for part in (from..tasks.len() + self.knobs.len()).chain(0..from) {
            let mut draw = draw.clone();
            let Some(knob) = part.checked_sub(tasks.len()) else {
                let task = &tasks[part];
                if !draw.without.contains(task) {
                    let is_its = |path: &str| {
                        matches!(path_parts(path).as_slice(), [of, name, ..]
                            if ["task", "watcher"].contains(&of.as_str()) && name == task)
                    };
                    let knobs = self.knobs.iter().zip(&mut draw.values);
                    knobs.filter(|it| is_its(&it.0.path)).for_each(|(_, value)| *value = None);
                    draw.without.push(task.clone());
                    smaller.push(SmallerDraw { part, draw, value: None });
                }
                continue;
            };
            let Some(now) = draw.values[knob] else { continue };
            let failed = failed.filter(|_| part == from);
            // A small load is easier to understand than the one of the file.
            let mut values = match path_parts(&self.knobs[knob].path)[0] == "task" {
                true => vec![Some(0), None],
                false => vec![None, Some(0)],
            };
            if failed.is_some() {
                values.clear();
            } else if now == 0 {
                values.truncate(values.iter().take_while(|value| value.is_none()).count());
            }
            let distance = now - failed.unwrap_or(0);
            let steps = iter::successors(Some(distance / 2), |step| Some(step / 2));
            values.extend(steps.take_while(|step| *step > 0).map(|step| Some(now - step)));
            for value in values {
                draw.values[knob] = value;
                smaller.push(SmallerDraw { part, draw: draw.clone(), value });
            }
        }
        smaller
    }

    /// The scenario file of a draw with its seeds, and a variant with the settings of
    /// [`Hunt::against`].
    pub fn file_of(&self, draw: &ScenarioDraw) -> Result<String, String> {
        let mut table = self.resolved(draw, &self.overrides(draw))?;
        let text = |text: &str| Value::String(text.to_owned());
        let number = |number: u64| Value::Integer(number as i64);
        let metric = self.objective.kind.metric().name;
        table.remove("description");
        table.insert("name".to_owned(), text(&format!("draw-{}", draw.number)));
        table.insert("repeats".to_owned(), number(SEEDS_OF_DRAW));
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
