//! The search behind `pagetide.find`: the value of a knob at which a criterion holds
//! (docs/questions.md). The caller performs the runs.

use crate::errors;
use crate::knobs::knob;
use crate::rows;
use crate::scenario::Scenario;
use crate::table::preformatted;
use pagetide_lab::find::answer::FindAnswer as LabAnswer;
use pagetide_lab::find::emit::{self, DeployFormat};
use pagetide_lab::find::question::{Find, FindJob, FindResult, Question};
use pagetide_lab::find::search::WantedEnd;
use pagetide_lab::find::{json, text};
use pagetide_scenario::load;
use pagetide_scenario::model;
use pagetide_scenario::names::near::nearest;
use pyo3::exceptions::{PyIndexError, PyRuntimeError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The answer of a search: the value, its confidence, and its costs. `str(a)` is the text that the
/// command prints.
#[pyclass(frozen, module = "pagetide")]
pub struct Answer {
    find: Find,
    answer: LabAnswer,
}

#[pymethods]
impl Answer {
    /// Whether a value was found and confirmed with fresh seeds.
    #[getter]
    fn found(&self) -> bool {
        self.answer.is_answer()
    }

    /// The keys to set: knob -> value as text; empty if nothing was found.
    #[getter]
    fn set<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        if let Some(point) = self.answer.to_deploy() {
            dict.set_item(&self.find.question().knob.path, self.find.value(point.place))?;
        }
        Ok(dict)
    }

    /// The answer in one line.
    #[getter]
    fn result(&self) -> String {
        text::result(&self.find, &self.answer)
    }

    /// The complete answer, as `pagetide find --emit json` prints it.
    fn json(&self) -> String {
        json::render(&self.find, &self.answer, "pagetide.find")
    }

    /// The complete answer as dicts and lists.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        py.import("json")?.call_method1("loads", (self.json(),))
    }

    /// The text of a file that sets the value.
    ///
    /// `form` is `"sysctl.d"`, `"systemd"`, `"kubelet"` or `"json"`.
    ///
    /// Raises `InputError` if the form cannot express the knob, or nothing was found.
    fn emit(&self, py: Python<'_>, form: &str) -> PyResult<String> {
        let Some(form) = DeployFormat::find(form) else {
            let names = DeployFormat::ALL.map(DeployFormat::name);
            let hint = match nearest(form, names) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("choose from {}", names.join(", ")),
            };
            return Err(errors::input(py, format!("there is no form `{form}`"), hint));
        };
        if form == DeployFormat::Json {
            return Ok(self.json());
        }
        let Some(point) = self.answer.to_deploy() else {
            let hint = "Answer.found says whether a value was found";
            return Err(errors::input(py, "there is nothing to deploy", hint));
        };
        let setup = &self.find.question().scenario.variants[0].setup;
        let comments = text::provenance(&self.find, &self.answer, None);
        let (path, value) = (&self.find.question().knob.path, self.find.value(point.place));
        emit::render(form, path, value, setup, &comments).map_err(|it| errors::mistake(py, it))
    }

    fn __str__(&self) -> String {
        text::render(&self.find, &self.answer)
    }

    fn __repr__(&self) -> String {
        format!("<pagetide.Answer {}>", self.result())
    }

    fn _repr_html_(&self) -> String {
        preformatted(&text::render(&self.find, &self.answer))
    }
}

/// A search driven by the caller: [`ask`](Search::ask) returns the runs that are needed next,
/// [`tell`](Search::tell) and [`fail`](Search::fail) report their outcomes, until `ask` returns
/// none.
///
/// `range`: values of `knob`: `None` (the kernel's range), a list, or a range as text. `want`: the
/// criterion, like `"allocstall == 0"`. `share`: the share of the seeds in which
/// the criterion must hold. `price`: metrics for which the change is reported.
#[pyclass(frozen, module = "pagetide._pagetide")]
pub struct Search {
    /// With only the searched variant.
    scenario: Scenario,
    state: Mutex<SearchState>,
}

/// A requested run: the keys to set, and the seed.
type RunRequest = (Vec<(String, String)>, u64);

struct SearchState {
    find: Find,
    /// Requested runs without an outcome, by index.
    asked: Vec<Option<FindJob>>,
}

#[pymethods]
impl Search {
    #[new]
    #[pyo3(signature = (scenario, knob, range, want, *, largest, price, share, seeds, variant))]
    #[allow(clippy::too_many_arguments)] // keyword arguments in Python
    fn new<'py>(
        py: Python<'py>,
        scenario: &Scenario,
        knob: &str,
        range: &Bound<'py, PyAny>,
        want: &str,
        largest: bool,
        price: Vec<String>,
        share: f64,
        seeds: u32,
        variant: Option<String>,
    ) -> PyResult<Search> {
        if !(share > 0.0 && share <= 1.0) {
            let message = format!("{share} is not a share of the seeds");
            return Err(errors::input(py, message, "share must be above 0 and at most 1"));
        }
        let model = scenario.0.model(py)?;
        let first = model.variants.first().map(|it| it.name.clone()).unwrap_or_default();
        let scenario = scenario.with_variants(py, vec![variant.unwrap_or(first)])?;
        let base = model::Scenario { repeats: seeds, ..scenario.0.model(py)?.clone() };
        let mistake = |it| errors::mistake(py, it);
        let setup = &base.variants[0].setup;
        let knob = self::knob(knob, range, setup, false)?;
        let criterion = load::criterion(want, setup).map_err(mistake)?;
        let wanted = if largest { WantedEnd::Largest } else { WantedEnd::Smallest };
        let question = Question { scenario: base, knob, criterion, wanted, share, prices: price };
        let find = Find::new(question).map_err(mistake)?;
        for setting in find.question().knob.checked() {
            scenario.with_sets(py, vec![setting])?;
        }
        Ok(Search { scenario, state: Mutex::new(SearchState { find, asked: Vec::new() }) })
    }

    /// The scenario, with only the searched variant.
    #[getter]
    fn scenario(&self) -> Scenario {
        self.scenario.clone()
    }

    /// The runs that are needed next, each with the keys to set and the seed. Empty when the answer
    /// is ready.
    ///
    /// Raises `InputError` if the first run lacks a metric of the criterion.
    fn ask(&self, py: Python<'_>) -> PyResult<Vec<RunRequest>> {
        let asked = py.detach(|| {
            let mut state = self.state();
            state.find.check()?;
            let jobs = state.find.next_jobs();
            let asked = jobs.iter().map(|job| (job.sets.clone(), job.seed)).collect();
            state.asked = jobs.into_iter().map(Some).collect();
            Ok(asked)
        });
        asked.map_err(|it| errors::mistake(py, it))
    }

    /// Reports the row of a run, by its index in the answer of `ask`.
    fn tell(&self, py: Python<'_>, index: usize, row: &[u8]) -> PyResult<()> {
        let job = self.take(py, index)?;
        let digest = self.scenario.with_sets(py, job.sets.clone())?.0.digest(py)?.to_owned();
        let record = rows::of_bytes(py, row, &digest)?.record;
        py.detach(|| {
            self.state().find.add_result(job.place, job.seed, FindResult::Record(Box::new(record)));
        });
        Ok(())
    }

    /// Reports that a run failed, or that the scenario rejects the values.
    fn fail(&self, py: Python<'_>, index: usize, message: String) -> PyResult<()> {
        let job = self.take(py, index)?;
        py.detach(|| {
            self.state().find.add_result(job.place, job.seed, FindResult::Failed(message))
        });
        Ok(())
    }

    /// The answer, once `ask` returns no more runs.
    fn answer(&self, py: Python<'_>) -> PyResult<Answer> {
        let find = py.detach(|| self.state().find.clone());
        let answer = LabAnswer::of(&find).ok_or_else(|| {
            PyRuntimeError::new_err("the search is not over: ask() has more runs")
        })?;
        Ok(Answer { find, answer })
    }
}

impl Search {
    /// Call only without the interpreter's lock. A thread that waits here with that lock held would
    /// deadlock with the owner of this one.
    fn state(&self) -> MutexGuard<'_, SearchState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self, py: Python<'_>, index: usize) -> PyResult<FindJob> {
        let job = py.detach(|| self.state().asked.get_mut(index).and_then(Option::take));
        job.ok_or_else(|| {
            PyIndexError::new_err("ask() returned no such run, or its outcome was reported before")
        })
    }
}
