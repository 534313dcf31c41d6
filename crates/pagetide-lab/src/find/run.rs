//! Makes the runs that a search needs and that its store does not have, until it has an answer.
//!
//! Invariant: the store is that of a sweep with the same settings, so each can continue the other.

use super::question::{Find, FindJob, FindResult};
use super::search::SearchPlace;
use crate::execute::RunProgress;
use crate::sweep::run::{run as run_missing, SweepJob};
use crate::sweep::store::SweepStore;
use crate::world::{Failure, RunBackend};
use pagetide_scenario::metric::criterion::Mistake;
use pagetide_scenario::model::{Scenario, Variant};
use std::collections::BTreeMap;
use std::io;
use std::num::NonZeroUsize;
use std::sync::atomic::AtomicBool;
use std::sync::Arc;

/// Why a search has no answer.
#[derive(Debug)]
pub enum FindError {
    /// The user cancelled.
    Cancelled,
    /// The question is wrong.
    Mistake(Mistake),
    /// The unchanged scenario cannot be run.
    Failed(Failure),
    /// The store cannot be written.
    Unwritable(io::Error),
}

/// Loads the scenario with these changes; `Err`: why it is refused.
pub type LoadVariant<'a> = &'a dyn Fn(&[(String, String)]) -> Result<Variant, String>;

/// Runs the search to its answer. `on_batch` gets the number of runs that follow.
#[allow(clippy::too_many_arguments, reason = "each is a part of the environment of the runs")]
pub fn run(
    find: &mut Find,
    load: LoadVariant<'_>,
    world: &dyn RunBackend,
    store: &mut SweepStore,
    threads: NonZeroUsize,
    cancel: &Arc<AtomicBool>,
    on_batch: &dyn Fn(&Find, usize),
    on_progress: &(dyn Fn(RunProgress<'_>) + Sync),
) -> Result<(), FindError> {
    loop {
        let jobs = find.next_jobs();
        if jobs.is_empty() {
            return Ok(());
        }
        let is_first = find.nr_runs() == 0;
        let mut setups: Vec<Variant> = Vec::new();
        let mut index_of: BTreeMap<SearchPlace, Result<usize, String>> = BTreeMap::new();
        let mut planned: Vec<(FindJob, SweepJob)> = Vec::new();
        for job in jobs {
            let key = find.key(&job);
            if let Some(row) = store.row(&key) {
                let record = FindResult::Record(Box::new(row.record.clone()));
                find.add_result(job.place, job.seed, record);
                continue;
            }
            let index = index_of.entry(job.place).or_insert_with(|| {
                let mut variant = load(&job.sets)?;
                find.question().metrics().for_each(|metric| variant.setup.request_metric(metric));
                setups.push(variant);
                Ok(setups.len() - 1)
            });
            match index {
                Ok(setup) => planned.push((job, SweepJob { setup: *setup, key })),
                Err(refused) => {
                    find.add_result(job.place, job.seed, FindResult::Failed(refused.clone()));
                }
            }
        }
        if !planned.is_empty() {
            on_batch(find, planned.len());
            let scenario = Scenario { variants: setups, ..find.question().scenario.clone() };
            let jobs: Vec<SweepJob> = planned.iter().map(|(_, job)| job.clone()).collect();
            let ended = run_missing(&scenario, &jobs, store, world, threads, cancel, on_progress);
            if let Some(error) = ended.unwritable {
                return Err(FindError::Unwritable(error));
            }
            for (job, SweepJob { key, .. }) in planned {
                let failed = ended.failed.iter().find(|(failed, _)| *failed == key);
                let told = match (store.row(&key), failed) {
                    (Some(row), _) => FindResult::Record(Box::new(row.record.clone())),
                    (None, Some((_, failure))) if is_first => {
                        return Err(FindError::Failed(failure.clone()))
                    }
                    (None, Some((_, failure))) => FindResult::Failed(failure.message.clone()),
                    (None, None) => continue,
                };
                find.add_result(job.place, job.seed, told);
            }
            if ended.cancelled > 0 {
                return Err(FindError::Cancelled);
            }
        }
        if is_first {
            find.check().map_err(FindError::Mistake)?;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::answer::{AnswerKind, FindAnswer};
    use super::super::question::Question;
    use super::super::search::WantedEnd;
    use super::super::{json, text};
    use super::*;
    use crate::knob::Knob;
    use crate::sweep::store::StoreOrigin;
    use crate::testing::{failure, record, scenario};
    use crate::world::RunControl;
    use pagetide_scenario::build::Builder;
    use pagetide_scenario::metric::criterion::Criterion;
    use pagetide_scenario::record::{Incomplete, Metric, RunRecord, Unit};

    /// Searches in a world that is a function of the knob's value (`None`: unchanged) and the seed.
    fn ask(
        want: &str,
        world: impl Fn(Option<u32>, u64) -> Result<RunRecord, Failure> + Sync,
    ) -> Result<Find, FindError> {
        let mut scenario = scenario(&["before"]);
        scenario.repeats = 10;
        let task = |name: &str| {
            Builder::new().set("name", name).set("workload", "sleep").set("duration", "1ms")
        };
        let machine = Builder::new().set("machine.memory", "1GiB").push("task", task("main"));
        let machine = machine.push("task", task("t").set("background", true));
        let tasks = machine.setup().unwrap().tasks.into_iter();
        scenario.variants[0].setup.tasks = tasks.filter(|task| task.name == "t").collect();
        let base = scenario.variants[0].clone();
        let knob = Knob::parse("vm.swappiness=10..200", &base.setup, false).unwrap();
        let question = Question {
            scenario,
            knob,
            criterion: Criterion::parse(want, base.setup.machine.page_size).unwrap(),
            wanted: WantedEnd::Smallest,
            share: 0.95,
            prices: vec!["t.walltime".to_owned()],
        };
        let mut find = Find::new(question).unwrap();
        // The variant's name is the value; the scenario refuses 13.
        let load = |sets: &[(String, String)]| match sets {
            [] => Ok(base.clone()),
            [(_, value)] if value == "13" => Err("there is no 13".to_owned()),
            [(_, value), ..] => Ok(Variant { name: value.clone(), ..base.clone() }),
        };
        let world = |_: &str, variant: &Variant, seed: u64, _: &RunControl| {
            world(variant.name.parse().ok(), seed)
        };
        let threads = NonZeroUsize::new(2).unwrap();
        let cancel = Arc::default();
        let origin = StoreOrigin {
            scenario: "fake".to_owned(),
            digest: String::new(),
            version: crate::VERSION.to_owned(),
        };
        let mut store = SweepStore::in_memory(origin);
        run(&mut find, &load, &world, &mut store, threads, &cancel, &|_, _| {}, &|_| {})
            .map(|()| find)
    }

    fn stalls(value: u32, seed: u64, stalls: u32) -> Result<RunRecord, Failure> {
        let walltime = f64::from(value) + seed as f64 / 100.0;
        let metrics = [("allocstall", f64::from(stalls)), ("t.walltime", walltime)];
        Ok(record(&value.to_string(), seed, &metrics))
    }

    /// The value of the answer.
    fn value<'a>(find: &'a Find, answer: &FindAnswer) -> &'a str {
        find.value(answer.point.as_ref().unwrap().place)
    }

    #[test]
    fn a_threshold_its_price_and_its_words() {
        let find = ask("allocstall == 0", |value, seed| {
            let value = value.unwrap_or(60);
            stalls(value, seed, 77u32.saturating_sub(value))
        })
        .unwrap();
        let answer = FindAnswer::of(&find).unwrap();
        assert_eq!((answer.kind, value(&find, &answer)), (AnswerKind::Threshold, "77"));
        assert_eq!(
            text::result(&find, &answer),
            "Result: vm.swappiness = 77 (now 60): allocstall == 0 in 10 of 10 fresh seeds (at least 74 % of all \
             seeds, 95 % confidence; 0 of 10 at 76); t.walltime +28.3 %; 13 values, 116 runs"
        );
        let text = text::render(&find, &answer);
        assert!(text.contains(" value  seeds in which it holds   allocstall\n"), "{text}");
        assert!(text.contains("    42  0 of 6 seeds                      35\n"), "{text}");
        assert!(text.contains("    77  20 of 20 seeds                     0  <--\n"), "{text}");
        let json: serde_json::Value =
            serde_json::from_str(&json::render(&find, &answer, "pagetide")).unwrap();
        assert_eq!(json["points"][0]["set"]["vm.swappiness"], "77");
        assert_eq!(json["knobs"][0]["now"], "60");
    }

    #[test]
    fn a_criterion_that_is_not_monotone_is_reported() {
        let find = ask("allocstall == 0", |value, seed| {
            let value = value.unwrap_or(60);
            stalls(value, seed, u32::from(!(40..140).contains(&value)))
        })
        .unwrap();
        let answer = FindAnswer::of(&find).unwrap();
        assert_eq!((answer.kind, answer.looked_at.len()), (AnswerKind::NotMonotone, 7));
        let text = text::render(&find, &answer);
        assert!(
            text.contains("The criterion is not monotone") && text.contains("NOT MONOTONE"),
            "{text}"
        );
    }

    #[test]
    fn refused_failed_and_killed_runs_do_not_meet_the_criterion() {
        let find = ask("allocstall == 0", |value, seed| match value {
            Some(value) if value < 100 => Err(failure("no room")),
            Some(value) if value < 150 => {
                let mut record = stalls(value, seed, 0)?;
                for metric in record.metrics.values_mut() {
                    metric.ended = Some(Incomplete::OomKilled);
                }
                Ok(record)
            }
            value => stalls(value.unwrap_or(60), seed, u32::from(value.is_none())),
        })
        .unwrap();
        let answer = FindAnswer::of(&find).unwrap();
        assert_eq!(value(&find, &answer), "150");
        assert_eq!(answer.failures[0].0, "no room");
        assert!(answer.nr_unfinished > 0);
        let text = text::render(&find, &answer);
        assert!(text.contains("runs failed and do not meet the criterion: no room"), "{text}");
    }

    /// A run whose only task was killed; the criterion is about the machine.
    fn killed(value: u32, seed: u64) -> Result<RunRecord, Failure> {
        let mut record = stalls(value, seed, 0)?;
        let elapsed =
            Metric { ended: Some(Incomplete::OomKilled), ..Metric::new(1.0, Unit::Seconds) };
        record.metrics.insert("elapsed".to_owned(), elapsed);
        Ok(record)
    }

    #[test]
    fn a_value_that_kills_is_no_answer() {
        let find = ask("allocstall == 0", |value, seed| match value {
            Some(value) if value < 90 => killed(value, seed),
            value => stalls(value.unwrap_or(60), seed, u32::from(value.is_none())),
        })
        .unwrap();
        let answer = FindAnswer::of(&find).unwrap();
        assert_eq!(value(&find, &answer), "90");
        assert!(answer.nr_unfinished > 0);
        let text = text::render(&find, &answer);
        assert!(text.contains("because a task was killed"), "{text}");
        // The unchanged scenario kills with odd seeds, too: fresh seeds are compared with it as
        // well.
        let find = ask("allocstall == 0", |value, seed| match value {
            Some(value) if value < 90 => killed(value, seed),
            Some(value) if seed % 2 == 1 => killed(value, seed),
            None if seed % 2 == 1 => killed(60, seed),
            value => stalls(value.unwrap_or(60), seed, u32::from(value.is_none())),
        })
        .unwrap();
        let answer = FindAnswer::of(&find).unwrap();
        assert_eq!(value(&find, &answer), "90");
        let text = text::render(&find, &answer);
        assert!(text.contains("With 90, elapsed is incomplete (oom-killed) in"), "{text}");
        assert!(answer.point.unwrap().is_confirmed);
        assert!(find.record(SearchPlace::Before, 11).is_some());
    }

    #[test]
    fn a_question_about_kills_by_watchers_accepts_them() {
        let evicts = |value: u32, seed: u64| {
            let mut record = stalls(value, seed, 0)?;
            let ended = (value >= 90).then_some(Incomplete::Signalled);
            let evictions = f64::from(u8::from(value >= 90));
            let elapsed = Metric { ended, ..Metric::new(1.0, Unit::Seconds) };
            record.metrics.insert("elapsed".to_owned(), elapsed);
            record.metrics.insert("t.evictions".to_owned(), Metric::new(evictions, Unit::Count));
            Ok(record)
        };
        let find = ask("t.evictions > 0", |value, seed| evicts(value.unwrap_or(60), seed)).unwrap();
        let answer = FindAnswer::of(&find).unwrap();
        assert_eq!(value(&find, &answer), "90");
        assert_eq!(answer.nr_unfinished, 0);
    }

    #[test]
    fn unconfirmed_and_not_monotone_answers_are_not_deployed() {
        let unconfirmed = ask("allocstall == 0", |value, seed| {
            stalls(value.unwrap_or(60), seed, u32::from(value.is_none() || seed > 10))
        })
        .unwrap();
        let answer = FindAnswer::of(&unconfirmed).unwrap();
        assert!(answer.point.is_some() && !answer.is_answer());
        let comes_and_goes = ask("allocstall == 0", |value, seed| {
            let value = value.unwrap_or(60);
            stalls(value, seed, u32::from(!(40..140).contains(&value)))
        })
        .unwrap();
        let answer = FindAnswer::of(&comes_and_goes).unwrap();
        assert!(answer.point.is_some() && !answer.is_answer());
    }

    /// Its walltime says how long the others ran, in every run.
    #[test]
    fn the_walltime_of_a_background_task_is_no_criterion() {
        let asked = ask("allocstall == 0 and t.walltime < 1s", |value, seed| {
            let mut record = stalls(value.unwrap_or(60), seed, 0)?;
            record.metrics.get_mut("t.walltime").unwrap().ended = Some(Incomplete::Stopped);
            Ok(record)
        });
        let Err(FindError::Mistake(mistake)) = asked else { panic!("{asked:?}") };
        assert!(mistake.message.starts_with("t.walltime is never measured: "), "{mistake}");
        assert!(mistake.hint.contains("t.throughput"), "{}", mistake.hint);
    }

    #[test]
    fn a_wrong_question_costs_one_run() {
        let nr_runs = std::sync::atomic::AtomicUsize::new(0);
        let asked = ask("alocstall == 0", |value, seed| {
            nr_runs.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            stalls(value.unwrap_or(60), seed, 0)
        });
        let Err(FindError::Mistake(mistake)) = asked else { panic!("{asked:?}") };
        assert_eq!(mistake.hint, "did you mean `allocstall`?");
        assert_eq!(nr_runs.into_inner(), 1);
        let failed = ask("allocstall == 0", |_, _| Err(failure("disk on fire")));
        assert!(
            matches!(failed, Err(FindError::Failed(failure)) if failure.message == "disk on fire")
        );
    }
}
