//! `pagetide.find` in this process: the value of a knob with which a criterion holds (docs/find.md).

use crate::errors;
use crate::run::{self, Told};
use crate::scenario::Scenario;
use crate::sweep::knobs;
use pagetide_lab::execute::Progress;
use pagetide_lab::find::answer::Answer as LabAnswer;
use pagetide_lab::find::criterion::Criterion;
use pagetide_lab::find::emit::{self, Form};
use pagetide_lab::find::question::{Find, Job, Question};
use pagetide_lab::find::run::{run as search, Stopped};
use pagetide_lab::find::search::Wanted;
use pagetide_lab::find::{json, plane, text};
use pagetide_lab::world::Simulator;
use pagetide_scenario::model::{self, Variant};
use pagetide_scenario::near::nearest;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

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
}

/// Searches, in this process, the smallest value of a knob with which a criterion holds, or the largest.
///
/// `knobs`: one or two knobs -> `None` (the kernel's range), `(LOW, HIGH)`, a list, or a range as text. `want`: the
/// criterion, like `"allocstall == 0"`. `share`: of the seeds, in which it must hold. `price`: metrics whose change is
/// asked for.
#[pyfunction]
#[pyo3(signature = (
    scenario, knobs, want, *, largest = false, price = Vec::new(), share = 0.95, seeds = None, variant = None,
    jobs = None, progress = None
))]
#[allow(clippy::too_many_arguments)] // they are arguments of Python, by name
pub fn find<'py>(
    py: Python<'py>,
    scenario: &Scenario,
    knobs: &Bound<'py, PyDict>,
    want: &str,
    largest: bool,
    price: Vec<String>,
    share: f64,
    seeds: Option<u32>,
    variant: Option<String>,
    jobs: Option<&Bound<'py, PyAny>>,
    progress: Option<&Bound<'py, PyAny>>,
) -> PyResult<Answer> {
    if !(share > 0.0 && share <= 1.0) {
        return Err(PyValueError::new_err(format!("share is above 0 and at most 1, not {share}")));
    }
    let model = scenario.0.model(py)?;
    let first = model.variants.first().map(|it| it.name.clone()).unwrap_or_default();
    let scenario = scenario.with_variants(py, vec![variant.unwrap_or(first)])?;
    let (threads, progress) = (run::threads(jobs)?, run::watcher(progress)?);
    let default = if knobs.len() > 1 { SEEDS_OF_GRID } else { SEEDS };
    let repeats = seeds.unwrap_or(default);
    let base = model::Scenario { repeats, ..scenario.0.model(py)?.clone() };
    let mistake = |it| errors::mistake(py, it);
    let setup = &base.variants[0].setup;
    let mut given = self::knobs(py, knobs, setup, false)?;
    if let [_, _] = given.as_slice() {
        for (knob, (_, range)) in given.iter_mut().zip(knobs.iter()) {
            let counts = crate::sweep::range_text(&range, "")?.is_some_and(|it| it.contains('/'));
            if knob.values.len() > plane::VALUES && !counts {
                *knob = knob.thinned(plane::VALUES);
            }
        }
    }
    let criterion = Criterion::parse(want, setup.machine.page_size).map_err(mistake)?;
    let wanted = if largest { Wanted::Largest } else { Wanted::Smallest };
    let question =
        Question { scenario: base, knobs: given, criterion, wanted, share, prices: price };
    let mut find = Find::new(question).map_err(mistake)?;
    for knob in &find.question().knobs {
        let last = knob.values.len().saturating_sub(1);
        let checked = knob.values.iter().enumerate();
        for (_, value) in checked.filter(|(at, _)| knob.is_list || [0, last].contains(at)) {
            scenario.with_sets(py, vec![(knob.path.clone(), value.text.clone())])?;
        }
    }
    let load = |sets: &[(String, String)]| -> Result<Variant, String> {
        let scenario = scenario.0.reload(sets)?;
        scenario.variants.into_iter().next().ok_or_else(|| "there is no variant".to_owned())
    };
    let simulator = Simulator::default();
    let (searched, stopped) = run::watched(py, 0, progress.as_ref(), |cancel, done| {
        let on_batch = |jobs: &[Job]| {
            let _ = done.send(Told::More(jobs.len()));
        };
        let tell = |progress: Progress<'_>| {
            if let Progress::Ended { .. } = progress {
                let _ = done.send(Told::Done);
            }
        };
        search(&mut find, &load, &simulator, threads, cancel, &on_batch, &tell)
    });
    if let Some(stopped) = stopped {
        return Err(errors::stopped(py, stopped, 0, None));
    }
    match searched {
        Some(Ok(())) => {}
        Some(Err(Stopped::Mistake(it))) => return Err(mistake(it)),
        Some(Err(Stopped::Failed(failure))) => {
            let variant = "the scenario as it stands";
            let failure = errors::failure(py, variant, find.question().scenario.seed, &failure)?;
            return Err(errors::run(py, vec![failure], None));
        }
        Some(Err(Stopped::Cancelled)) | None => return Err(errors::bug("a search was cancelled")),
    }
    let answer = LabAnswer::of(&find).ok_or_else(|| errors::bug("a search has no answer"))?;
    Ok(Answer { find, answer })
}
