//! What `pagetide.find` is made of: the value of a knob with which a criterion holds (docs/find.md). Who makes the
//! runs is the caller's business.

use crate::errors;
use crate::knobs::{knobs, range_text};
use crate::rows;
use crate::scenario::Scenario;
use crate::table::preformatted;
use pagetide_lab::find::answer::Answer as LabAnswer;
use pagetide_lab::find::emit::{self, Form};
use pagetide_lab::find::question::{Find, Job, Question, Told};
use pagetide_lab::find::search::Wanted;
use pagetide_lab::find::{json, plane, text};
use pagetide_scenario::criterion::Criterion;
use pagetide_scenario::model;
use pagetide_scenario::near::nearest;
use pyo3::exceptions::{PyIndexError, PyRuntimeError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Seeds that all values share, and as many fresh ones.
const SEEDS: u32 = 20;
/// The same for the points of a grid.
const SEEDS_OF_GRID: u32 = 8;

/// The answer of a search: what to set, how sure that is, what it costs. `str(a)` is the text of the command.
#[pyclass(frozen, module = "pagetide")]
pub struct Answer {
    find: Find,
    answer: LabAnswer,
}

#[pymethods]
impl Answer {
    /// Whether a value was found and fresh seeds confirm it.
    #[getter]
    fn found(&self) -> bool {
        self.answer.is_answer()
    }

    /// What to set: knob -> value as text; empty if nothing was found.
    #[getter]
    fn set<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        for (knob, value) in self.answer.to_deploy().into_iter().flat_map(|point| &point.sets) {
            dict.set_item(knob, value)?;
        }
        Ok(dict)
    }

    /// The answer in a line.
    #[getter]
    fn result(&self) -> String {
        text::result(&self.find, &self.answer)
    }

    /// All of it, as `pagetide find --emit json` prints it.
    fn json(&self) -> String {
        json::render(&self.find, &self.answer, "pagetide.find")
    }

    /// All of it as dicts and lists.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        py.import("json")?.call_method1("loads", (self.json(),))
    }

    /// A file that sets it: `form` is `"sysctl.d"`, `"systemd"`, `"kubelet"`, `"tuned"` or `"json"`.
    ///
    /// Raises `InputError` if the form cannot hold the knob, or nothing was found.
    fn emit(&self, py: Python<'_>, form: &str) -> PyResult<String> {
        const FORMS: [(&str, Form); 5] = [
            ("sysctl.d", Form::SysctlD),
            ("systemd", Form::Systemd),
            ("kubelet", Form::Kubelet),
            ("tuned", Form::Tuned),
            ("json", Form::Json),
        ];
        let Some((_, form)) = FORMS.iter().find(|(name, _)| *name == form) else {
            let names = FORMS.map(|(name, _)| name);
            let hint = match nearest(form, names) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("there is {}", names.join(", ")),
            };
            return Err(errors::input(py, format!("there is no form `{form}`"), hint));
        };
        if *form == Form::Json {
            return Ok(self.json());
        }
        let Some(point) = self.answer.to_deploy() else {
            let hint = "Answer.found says whether a value was found";
            return Err(errors::input(py, "there is nothing to deploy", hint));
        };
        let setup = &self.find.question().scenario.variants[0].setup;
        let comments = [
            format!(
                "found by pagetide {} in a simulation; try it before it goes everywhere",
                pagetide_lab::VERSION
            ),
            self.result(),
            format!("machine: {}", self.answer.machine),
            format!("load: {}", self.answer.load),
        ];
        emit::render(*form, &point.sets, setup, &comments).map_err(|it| errors::mistake(py, it))
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

/// A search that is asked and told: [`ask`](Search::ask) says which runs are wanted, [`tell`](Search::tell) and
/// [`fail`](Search::fail) say what became of each, until nothing more is asked.
///
/// `knobs`: one or two knobs -> `None` (the kernel's range), `(LOW, HIGH)`, a list, or a range as text. `want`: the
/// criterion, like `"allocstall == 0"`. `share`: of the seeds, in which it must hold. `price`: metrics whose change
/// is asked for.
#[pyclass(frozen, module = "pagetide._pagetide")]
pub struct Search {
    /// With the one variant that is searched in.
    scenario: Scenario,
    state: Mutex<State>,
}

/// A run that is wanted: what is set for it, and its seed.
type Wish = (Vec<(String, String)>, u64);

struct State {
    find: Find,
    /// What was asked for and not told yet, by its place in the list.
    asked: Vec<Option<Job>>,
}

#[pymethods]
impl Search {
    #[new]
    #[pyo3(signature = (scenario, knobs, want, *, largest, price, share, seeds, variant))]
    #[allow(clippy::too_many_arguments)] // they are arguments of Python, by name
    fn new<'py>(
        py: Python<'py>,
        scenario: &Scenario,
        knobs: &Bound<'py, PyDict>,
        want: &str,
        largest: bool,
        price: Vec<String>,
        share: f64,
        seeds: Option<u32>,
        variant: Option<String>,
    ) -> PyResult<Search> {
        if !(share > 0.0 && share <= 1.0) {
            let message = format!("{share} is no share of the seeds");
            return Err(errors::input(py, message, "share is above 0 and at most 1"));
        }
        let model = scenario.0.model(py)?;
        let first = model.variants.first().map(|it| it.name.clone()).unwrap_or_default();
        let scenario = scenario.with_variants(py, vec![variant.unwrap_or(first)])?;
        let default = if knobs.len() > 1 { SEEDS_OF_GRID } else { SEEDS };
        let repeats = seeds.unwrap_or(default);
        let base = model::Scenario { repeats, ..scenario.0.model(py)?.clone() };
        let mistake = |it| errors::mistake(py, it);
        let setup = &base.variants[0].setup;
        let mut given = self::knobs(py, knobs, setup, false)?;
        if let [_, _] = given.as_slice() {
            for (knob, (_, range)) in given.iter_mut().zip(knobs.iter()) {
                let counts = range_text(&range, "")?.is_some_and(|it| it.contains('/'));
                if knob.values.len() > plane::VALUES && !counts {
                    *knob = knob.thinned(plane::VALUES);
                }
            }
        }
        let criterion = Criterion::parse(want, setup.machine.page_size).map_err(mistake)?;
        let wanted = if largest { Wanted::Largest } else { Wanted::Smallest };
        let question =
            Question { scenario: base, knobs: given, criterion, wanted, share, prices: price };
        let find = Find::new(question).map_err(mistake)?;
        for knob in &find.question().knobs {
            let last = knob.values.len().saturating_sub(1);
            let checked = knob.values.iter().enumerate();
            for (_, value) in checked.filter(|(at, _)| knob.is_list || [0, last].contains(at)) {
                scenario.with_sets(py, vec![(knob.path.clone(), value.text.clone())])?;
            }
        }
        Ok(Search { scenario, state: Mutex::new(State { find, asked: Vec::new() }) })
    }

    /// The scenario, with the one variant that is searched in.
    #[getter]
    fn scenario(&self) -> Scenario {
        self.scenario.clone()
    }

    /// The runs that are wanted next, each with what is set for it and its seed; none when the answer is there.
    ///
    /// Raises `InputError` if the first run has no such metric.
    fn ask(&self, py: Python<'_>) -> PyResult<Vec<Wish>> {
        let asked = py.detach(|| {
            let mut state = self.state();
            state.find.check()?;
            let jobs = state.find.ask();
            let asked = jobs.iter().map(|job| (job.sets.clone(), job.seed)).collect();
            state.asked = jobs.into_iter().map(Some).collect();
            Ok(asked)
        });
        asked.map_err(|it| errors::mistake(py, it))
    }

    /// The row of a run, by its place in what was asked.
    fn tell(&self, py: Python<'_>, index: usize, row: &[u8]) -> PyResult<()> {
        let job = self.take(py, index)?;
        let digest = self.scenario.with_sets(py, job.sets.clone())?.0.digest(py)?.to_owned();
        let record = rows::of_bytes(py, row, &digest)?;
        py.detach(|| {
            self.state().find.tell(job.place, job.seed, Told::Record(Box::new(record)));
        });
        Ok(())
    }

    /// A run has failed, or the scenario does not take what was to be set.
    fn fail(&self, py: Python<'_>, index: usize, message: String) -> PyResult<()> {
        let job = self.take(py, index)?;
        py.detach(|| self.state().find.tell(job.place, job.seed, Told::Failed(message)));
        Ok(())
    }

    /// The answer, once nothing more is asked.
    fn answer(&self, py: Python<'_>) -> PyResult<Answer> {
        let find = py.detach(|| self.state().find.clone());
        let answer = LabAnswer::of(&find)
            .ok_or_else(|| PyRuntimeError::new_err("the search is not over: ask() has more"))?;
        Ok(Answer { find, answer })
    }
}

impl Search {
    /// Only without the interpreter's lock: who waits here with it stops whoever has this one and wants that.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self, py: Python<'_>, index: usize) -> PyResult<Job> {
        let job = py.detach(|| self.state().asked.get_mut(index).and_then(Option::take));
        job.ok_or_else(|| PyIndexError::new_err("nothing was asked there, or it was told before"))
    }
}
