//! A scenario as a value: a text, the directory of its relative paths, and changes. Scenarios can
//! be pickled, compared and hashed.
//!
//! Invariant: a new [`Scenario`] is valid. An unpickled one is checked at its first use, because a
//! worker may have to receive its traces before.

use crate::errors;
use crate::result::Result as RunResult;
use crate::run::{self, RunArguments};
use crate::source::{ScenarioBase, ScenarioSource, SourceError, SourceScenario};
use crate::values;
use pagetide::shipped;
use pagetide_lab::sweep::grid;
use pagetide_scenario::load::{AddedVariant, NamedFiles, Overrides};
use pagetide_scenario::model;
use pagetide_scenario::names::near::nearest;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyString, PyTuple};
use serde_json::{json, Value};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

/// Default name of a scenario that is given as text or built from tables.
const NAME: &str = "scenario";

/// A machine, its load, and the variants to compare.
///
/// Immutable: `set`, `with_variant` and `only` return new scenarios. Can be pickled, compared and
/// hashed.
#[pyclass(frozen, module = "pagetide", from_py_object)]
#[derive(Clone)]
pub struct Scenario(pub Arc<ScenarioInner>);

pub struct ScenarioInner {
    source: ScenarioSource,
    overrides: Overrides,
    /// The version of Pagetide that created it.
    version: String,
    loaded: OnceLock<SourceScenario>,
    digest: OnceLock<String>,
    /// The files that it refers to: paths and digests of the contents.
    files: OnceLock<BTreeMap<PathBuf, String>>,
}

impl ScenarioInner {
    fn new(source: ScenarioSource, overrides: Overrides, version: String) -> ScenarioInner {
        let (loaded, digest, files) = (OnceLock::new(), OnceLock::new(), OnceLock::new());
        ScenarioInner { source, overrides, version, loaded, digest, files }
    }

    /// The files that another computer may lack. The extension contains those of shipped
    /// experiments.
    fn files(&self, py: Python<'_>) -> PyResult<&BTreeMap<PathBuf, String>> {
        if let Some(files) = self.files.get() {
            return Ok(files);
        }
        let mut files = BTreeMap::new();
        if let ScenarioBase::Directory(_) = self.source.place {
            self.model(py)?;
            for path in self.overrides.files.named() {
                let digest = py.detach(|| grid::file_digest(&path)).map_err(|error| {
                    errors::external(py, format!("cannot read {}: {error}", path.display()))
                })?;
                files.insert(path, digest);
            }
        }
        Ok(self.files.get_or_init(|| files))
    }

    pub fn model(&self, py: Python<'_>) -> PyResult<&model::Scenario> {
        if let Some(loaded) = self.loaded.get() {
            return Ok(&loaded.scenario);
        }
        if self.version != pagetide_lab::VERSION {
            let (theirs, ours) = (&self.version, pagetide_lab::VERSION);
            let message = format!("the scenario is of pagetide {theirs}, this is {ours}");
            let hint = "install the same version everywhere: results of two versions may differ";
            return Err(errors::version(py, message, hint));
        }
        let loaded = py.detach(|| self.source.load(&self.overrides));
        let loaded = loaded.map_err(|refused| refused_by(py, &refused))?;
        Ok(&self.loaded.get_or_init(|| loaded).scenario)
    }

    /// The digest that identifies the scenario in the store of a sweep.
    pub fn digest(&self, py: Python<'_>) -> PyResult<&str> {
        if let Some(digest) = self.digest.get() {
            return Ok(digest);
        }
        let scenario = self.model(py)?;
        let digest = py.detach(|| {
            let variants = scenario.variants.iter().map(|it| (it.name.as_str(), &it.setup));
            grid::digest(&scenario.name, &variants.collect::<Vec<_>>())
        });
        let digest = digest
            .map_err(|error| errors::external(py, format!("cannot read a trace: {error}")))?;
        Ok(self.digest.get_or_init(|| digest))
    }

    /// The scenario with additional changes.
    pub fn reload(&self, sets: &[(String, String)]) -> Result<model::Scenario, SourceError> {
        let mut overrides = self.overrides.clone();
        overrides.sets.retain(|(key, _)| sets.iter().all(|(other, _)| other != key));
        overrides.sets.extend_from_slice(sets);
        self.source.load(&overrides).map(SourceScenario::into_scenario)
    }

    pub fn text(&self) -> &str {
        &self.source.text
    }

    pub fn sets(&self) -> &[(String, String)] {
        &self.overrides.sets
    }

    fn state(&self) -> Value {
        let Overrides { sets, variants, repeats, seed, added, plugins: _, files: _ } =
            &self.overrides;
        let added: Vec<Value> =
            added.iter().map(|it| json!({ "name": it.name, "sets": it.sets })).collect();
        let (directory, shipped) = match &self.source.place {
            ScenarioBase::Directory(directory) => (Some(directory), None),
            ScenarioBase::Shipped(name) => (None, Some(name)),
        };
        json!({
            "version": self.version,
            "name": self.source.name,
            "text": self.source.text,
            "directory": directory,
            "shipped": shipped,
            "sets": sets,
            "variants": variants,
            "repeats": repeats,
            "seed": seed,
            "added": added,
        })
    }
}

/// Converts an error of `ScenarioSource::load` to an exception.
pub fn refused_by(py: Python<'_>, refused: &SourceError) -> PyErr {
    match refused {
        SourceError::Mistakes(diagnostics) => errors::scenario(py, diagnostics),
        SourceError::Outside(error) => errors::external(py, format!("the scenario: {error}")),
    }
}

impl Scenario {
    fn checked(py: Python<'_>, source: ScenarioSource, overrides: Overrides) -> PyResult<Scenario> {
        let inner = ScenarioInner::new(source, overrides, pagetide_lab::VERSION.to_owned());
        inner.model(py)?;
        Ok(Scenario(Arc::new(inner)))
    }

    /// A copy with other changes.
    fn changed(&self, py: Python<'_>, change: impl FnOnce(&mut Overrides)) -> PyResult<Scenario> {
        let mut overrides = self.0.overrides.clone();
        change(&mut overrides);
        Scenario::checked(py, self.0.source.clone(), overrides)
    }

    /// A copy with only these variants.
    pub fn with_variants(&self, py: Python<'_>, names: Vec<String>) -> PyResult<Scenario> {
        if names.is_empty() {
            return Err(errors::input(py, "the list of variants is empty", "name one or more"));
        }
        self.changed(py, |overrides| overrides.variants = names)
    }

    /// A copy with these keys set; the last value of a key counts.
    pub fn with_sets(&self, py: Python<'_>, sets: Vec<(String, String)>) -> PyResult<Scenario> {
        self.changed(py, |overrides| {
            overrides.sets.retain(|(key, _)| sets.iter().all(|(other, _)| other != key));
            overrides.sets.extend(sets);
        })
    }
}

#[pymethods]
impl Scenario {
    /// Builds a scenario from tables.
    ///
    /// Arguments: `machine=`, `sysctl=`, `groups=[...]`, `files=[...]`, `tasks=[...]`,
    /// `variants=[...]`, and every other key of a scenario file. Relative paths start at `base`
    /// (default: the working directory).
    ///
    /// Raises `ScenarioError` with all mistakes, each with its key.
    #[new]
    #[pyo3(signature = (*, base = None, **tables))]
    fn new(
        py: Python<'_>,
        base: Option<PathBuf>,
        tables: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Scenario> {
        let mut table = match tables {
            Some(tables) => values::to_table(tables, "")?,
            None => toml::Table::new(),
        };
        // In Python lists have plural names; in a file each entry has its own header.
        for (many, one) in
            [("groups", "group"), ("files", "file"), ("tasks", "task"), ("variants", "variant")]
        {
            if let Some(list) = table.remove(many) {
                if table.insert(one.to_owned(), list).is_some() {
                    let message = format!("`{many}` and `{one}` mean the same key");
                    return Err(errors::input(py, message, "give one of them"));
                }
            }
        }
        let text = toml::to_string(&table)
            .map_err(|error| errors::input(py, error.to_string(), "see docs/scenario.md"))?;
        of_text(py, text, base)
    }

    /// The name of the scenario.
    #[getter]
    fn name(&self, py: Python<'_>) -> PyResult<String> {
        Ok(self.0.model(py)?.name.clone())
    }

    /// The title, one line.
    #[getter]
    fn title(&self, py: Python<'_>) -> PyResult<String> {
        Ok(self.0.model(py)?.title.clone())
    }

    /// The description; may be empty.
    #[getter]
    fn description(&self, py: Python<'_>) -> PyResult<String> {
        Ok(self.0.model(py)?.description.clone())
    }

    /// Names of the variants, in the order of the columns.
    #[getter]
    fn variants(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        Ok(self.0.model(py)?.variants.iter().map(|it| it.name.clone()).collect())
    }

    /// Names of the groups of the first variant.
    #[getter]
    fn groups(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        let first = self.0.model(py)?.variants.first();
        Ok(first.into_iter().flat_map(|it| &it.setup.groups).map(|it| it.name.clone()).collect())
    }

    /// Names of the tasks of the first variant.
    #[getter]
    fn tasks(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        let first = self.0.model(py)?.variants.first();
        Ok(first.into_iter().flat_map(|it| &it.setup.tasks).map(|it| it.name.clone()).collect())
    }

    /// The seeds that `run` uses by default.
    #[getter]
    fn seeds(&self, py: Python<'_>) -> PyResult<Vec<u64>> {
        let scenario = self.0.model(py)?;
        Ok((scenario.seed..).take(scenario.repeats as usize).collect())
    }

    /// The original text as TOML, without the changes of `set`.
    #[getter]
    fn text(&self) -> &str {
        self.0.text()
    }

    /// The changes made by `set`: key -> value as text.
    #[getter]
    fn overrides<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        for (key, value) in self.0.sets() {
            dict.set_item(key, value)?;
        }
        Ok(dict)
    }

    /// 16 hexadecimal digits that identify the scenario.
    ///
    /// The digest covers the machine, the load and the contents of traces, but not comments, paths
    /// or seeds. The store of a sweep uses the same digest.
    #[getter]
    fn digest(&self, py: Python<'_>) -> PyResult<&str> {
        self.0.digest(py)
    }

    /// The files that the scenario refers to (bases, traces, object mixes), with the digests of
    /// their contents.
    ///
    /// A worker on another computer may need these files. Shipped experiments list none, because
    /// the extension contains their files.
    #[getter]
    fn traces(&self, py: Python<'_>) -> PyResult<BTreeMap<PathBuf, String>> {
        Ok(self.0.files(py)?.clone())
    }

    /// A copy with its files at other paths.
    ///
    /// `paths`: digest of the content -> path on this computer. Digests that the scenario does not
    /// have are ignored. The copy is checked at its first use.
    ///
    /// Raises `InputError` if a file has another content.
    fn with_traces(&self, py: Python<'_>, paths: BTreeMap<String, PathBuf>) -> PyResult<Scenario> {
        let files = self.0.files(py)?;
        let mut elsewhere = BTreeMap::new();
        for (named, digest) in files {
            let Some(path) = paths.get(digest) else { continue };
            let path = std::path::absolute(path)?;
            let found = py.detach(|| grid::file_digest(&path)).map_err(|error| {
                errors::external(py, format!("cannot read {}: {error}", path.display()))
            })?;
            if found != *digest {
                let message = format!("{} has the digest {found}, not {digest}", path.display());
                return Err(errors::input(py, message, "check whether the copy is complete"));
            }
            elsewhere.insert(named.clone(), path);
        }
        let mut overrides = self.0.overrides.clone();
        overrides.files = NamedFiles::elsewhere(elsewhere);
        let inner = ScenarioInner::new(self.0.source.clone(), overrides, self.0.version.clone());
        let _ = inner.files.set(files.clone());
        Ok(Scenario(Arc::new(inner)))
    }

    /// A copy with these keys set in every variant: `s.set({"vm.swappiness": 10})`, or
    /// `s.set(seed=3)` for keys that are Python identifiers.
    ///
    /// Keys are those of `pagetide run --set`.
    ///
    /// Raises `ScenarioError` if the scenario does not accept a key or value.
    #[pyo3(signature = (changes = None, **keys))]
    fn set(
        &self,
        py: Python<'_>,
        changes: Option<&Bound<'_, PyDict>>,
        keys: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Scenario> {
        let mut sets = Vec::new();
        for changes in [changes, keys].into_iter().flatten() {
            sets.extend(values::sets(changes)?);
        }
        self.with_sets(py, sets)
    }

    /// A copy with an additional variant that sets these keys.
    ///
    /// Raises `ScenarioError` if the name is taken, or if the scenario does not accept a key or
    /// value.
    fn with_variant(
        &self,
        py: Python<'_>,
        name: String,
        changes: &Bound<'_, PyDict>,
    ) -> PyResult<Scenario> {
        let added = AddedVariant { name, sets: values::sets(changes)? };
        self.changed(py, |overrides| {
            // A selection of variants includes the new one.
            if !overrides.variants.is_empty() {
                overrides.variants.push(added.name.clone());
            }
            overrides.added.push(added);
        })
    }

    /// A copy with only these variants, in this order.
    ///
    /// Raises `ScenarioError` for an unknown variant.
    #[pyo3(signature = (*variants))]
    fn only(&self, py: Python<'_>, variants: Vec<String>) -> PyResult<Scenario> {
        self.with_variants(py, variants)
    }

    /// Runs variants x seeds and returns the result.
    ///
    /// `set`: keys to set first. `seeds`: a number (counted from the scenario's first seed) or a
    /// list. `variants`: names; default is all. `jobs`: number of threads; default is the number of
    /// CPUs. `progress`: `True` for a bar, or a function called with (done, total). `latencies`:
    /// keep the distributions of latencies, for `html` and `latencies`. `executor`: performs the
    /// runs instead of threads of this process (see docs/python.md).
    ///
    /// Other Python threads can work during the runs. ^C raises `Interrupted`, a
    /// `KeyboardInterrupt`; its `result` has the finished runs. Raises `RunError` if runs failed;
    /// its `result` has the others.
    #[pyo3(signature = (
        *,
        set = None,
        seeds = None,
        variants = None,
        jobs = None,
        progress = None,
        latencies = false,
        executor = None,
        **options
    ))]
    #[allow(clippy::too_many_arguments)] // keyword arguments in Python
    fn run<'py>(
        &self,
        py: Python<'py>,
        set: Option<&Bound<'py, PyDict>>,
        seeds: Option<&Bound<'py, PyAny>>,
        variants: Option<&Bound<'py, PyAny>>,
        jobs: Option<&Bound<'py, PyAny>>,
        progress: Option<&Bound<'py, PyAny>>,
        latencies: bool,
        executor: Option<&Bound<'py, PyAny>>,
        options: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let mut scenario = self.clone();
        if let Some(set) = set {
            scenario = scenario.with_sets(py, values::sets(set)?)?;
        }
        if let Some(variants) = variants {
            let names = match variants.extract::<String>() {
                Ok(one) => vec![one],
                Err(_) => variants.extract::<Vec<String>>()?,
            };
            scenario = scenario.with_variants(py, names)?;
        }
        let seeds = run::seeds(py, &scenario, seeds)?;
        if let Some(executor) = executor {
            let keywords = PyDict::new(py);
            keywords.set_item("executor", executor)?;
            keywords.set_item("jobs", jobs)?;
            keywords.set_item("progress", progress)?;
            keywords.set_item("latencies", latencies)?;
            if let Some(options) = options {
                keywords.update(options.as_mapping())?;
            }
            let sweeps = py.import("pagetide.sweeps")?;
            return sweeps.call_method("run", (scenario, seeds), Some(&keywords));
        }
        if let Some(unknown) = options.and_then(|options| options.keys().iter().next()) {
            let message = format!("run() has no argument {unknown}");
            return Err(PyTypeError::new_err(message));
        }
        let (threads, progress) = (run::threads(jobs)?, run::progress_callback(progress)?);
        let asked = RunArguments { progress, ..RunArguments::on(threads) };
        RunResult::of_runs(py, scenario, &seeds, latencies, &asked).map(Bound::into_any)
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let scenario = self.0.model(py)?;
        let names = scenario.variants.iter().map(|it| it.name.as_str()).collect::<Vec<_>>();
        let mut text = format!("<pagetide.Scenario {}: {}", scenario.name, names.join(", "));
        for (key, value) in self.0.sets() {
            text += &format!("; {key}={value}");
        }
        Ok(text + ">")
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        other.cast::<Scenario>().is_ok_and(|other| other.get().0.state() == self.0.state())
    }

    fn __hash__(&self) -> u64 {
        use std::hash::{DefaultHasher, Hash, Hasher};
        let mut hasher = DefaultHasher::new();
        self.0.state().to_string().hash(&mut hasher);
        hasher.finish()
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let restore = py.import("pagetide._pagetide")?.getattr("_scenario")?;
        let mut state = self.0.state();
        state["files"] = json!(self.0.files(py)?);
        let state = PyBytes::new(py, state.to_string().as_bytes());
        (restore, (state,)).into_pyobject(py)
    }
}

/// Restores a pickled scenario, which is checked at its first use.
#[pyfunction(name = "_scenario")]
pub fn restore_scenario(state: &[u8]) -> PyResult<Scenario> {
    restored(state).ok_or_else(|| {
        pyo3::exceptions::PyValueError::new_err("this is not a pickled scenario of pagetide")
    })
}

fn restored(state: &[u8]) -> Option<Scenario> {
    let state: Value = serde_json::from_slice(state).ok()?;
    let text = |key: &str| state.get(key).and_then(Value::as_str).map(str::to_owned);
    let list = |value: Option<&Value>| -> Option<Vec<(String, String)>> {
        serde_json::from_value(value?.clone()).ok()
    };
    let place = match text("shipped") {
        Some(name) => ScenarioBase::Shipped(name),
        None => ScenarioBase::Directory(PathBuf::from(text("directory")?)),
    };
    let added = state.get("added")?.as_array()?.iter();
    let added = added.map(|it| {
        let name = it.get("name")?.as_str()?.to_owned();
        Some(AddedVariant { name, sets: list(it.get("sets"))? })
    });
    let overrides = Overrides {
        sets: list(state.get("sets"))?,
        variants: serde_json::from_value(state.get("variants")?.clone()).ok()?,
        repeats: serde_json::from_value(state.get("repeats")?.clone()).ok()?,
        seed: serde_json::from_value(state.get("seed")?.clone()).ok()?,
        added: added.collect::<Option<_>>()?,
        ..Overrides::default()
    };
    let source = ScenarioSource { name: text("name")?, text: text("text")?, place };
    let inner = ScenarioInner::new(source, overrides, text("version")?);
    let files = serde_json::from_value(state.get("files")?.clone()).ok()?;
    let _ = inner.files.set(files);
    Some(Scenario(Arc::new(inner)))
}

/// A scenario from a text. Its paths start at `base`, or at the working directory.
fn of_text(py: Python<'_>, text: String, base: Option<PathBuf>) -> PyResult<Scenario> {
    let base = std::path::absolute(base.as_deref().unwrap_or(Path::new(".")))
        .map_err(|error| errors::external(py, format!("the working directory: {error}")))?;
    let place = ScenarioBase::of(base).map_err(|refused| refused_by(py, &refused))?;
    let source = ScenarioSource { name: NAME.to_owned(), text, place };
    Scenario::checked(py, source, Overrides::default())
}

/// Loads a scenario from a text, a file, or a shipped experiment.
///
/// A string with a line end or a `=` is the text of a scenario. Otherwise it names a file, or else
/// a shipped experiment. A `pathlib.Path` always names a file. Relative paths in a text start at
/// `base` (default: the working directory); those of a file start at its directory.
///
/// Raises `ScenarioError` with all mistakes: each of `.diagnostics` has file, line, column, key,
/// text, message and hint.
#[pyfunction]
#[pyo3(signature = (what, *, base = None))]
pub fn load(py: Python<'_>, what: &Bound<'_, PyAny>, base: Option<PathBuf>) -> PyResult<Scenario> {
    if let Ok(scenario) = what.cast::<Scenario>() {
        return Ok(scenario.get().clone());
    }
    let is_text = what.is_instance_of::<PyString>();
    if is_text {
        let text: String = what.extract()?;
        if text.contains(['\n', '=']) {
            return of_text(py, text, base);
        }
    }
    if base.is_some() {
        let hint = "leave it out; paths in a file start at its directory";
        return Err(errors::input(py, "`base` is for scenarios that are text", hint));
    }
    let path: PathBuf = what.extract()?;
    if is_text && !path.exists() {
        let shown = path.display().to_string();
        if let Some(name) = shipped::find(&shown) {
            return Scenario::checked(py, ScenarioSource::of_shipped(name), Overrides::default());
        }
        if path.extension().is_none() {
            let hint = match nearest(&shown, shipped::names()) {
                Some(near) => format!("did you mean `{near}`?"),
                None => "pagetide.experiments() lists the shipped experiments".to_owned(),
            };
            let message = format!("there is no file and no shipped experiment `{shown}`");
            return Err(errors::input(py, message, hint));
        }
    }
    let source = ScenarioSource::of_file(&path).map_err(|refused| refused_by(py, &refused))?;
    Scenario::checked(py, source, Overrides::default())
}

/// Names of the shipped experiments.
#[pyfunction]
pub fn experiments() -> Vec<&'static str> {
    shipped::names().collect()
}
