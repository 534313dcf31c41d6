//! Raises the exceptions of `pagetide._errors`, which are Python classes so that they can be
//! pickled.
//!
//! Invariant: the exception for mistakes in a scenario has all diagnostics of the loader, and its
//! text is that of the command.

use pagetide_lab::world::Failure;
use pagetide_scenario::diagnostic::{Diagnostic, Diagnostics};
use pagetide_scenario::metric::criterion::Mistake;
use pyo3::exceptions::{PyKeyboardInterrupt, PyRuntimeError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};

/// An exception of the class called `class`.
fn raise<'py>(
    py: Python<'py>,
    class: &str,
    arguments: impl IntoPyObject<'py, Target = PyTuple, Output = Bound<'py, PyTuple>, Error = PyErr>,
) -> PyErr {
    let made = || -> PyResult<PyErr> {
        let class = py.import("pagetide._errors")?.getattr(class)?;
        let arguments = arguments.into_pyobject(py)?;
        Ok(PyErr::from_value(class.call1(arguments)?))
    };
    made().unwrap_or_else(|error| error)
}

/// A message of the loader, with the names of Python in place of the command's options.
fn in_python(text: &str) -> String {
    let names = [
        ("--add-variant", "with_variant()"),
        ("--set", "set()"),
        ("--variant", "only()"),
        ("--repeats", "seeds"),
    ];
    names.iter().fold(text.to_owned(), |text, (option, name)| text.replace(option, name))
}

/// `ScenarioError`: the scenario has mistakes.
pub fn scenario(py: Python<'_>, diagnostics: &Diagnostics) -> PyErr {
    let list = PyList::empty(py);
    for diagnostic in diagnostics.iter() {
        if let Err(error) = one(py, diagnostic).and_then(|one| list.append(one)) {
            return error;
        }
    }
    raise(py, "ScenarioError", (in_python(&diagnostics.to_string()), list))
}

fn one<'py>(py: Python<'py>, diagnostic: &Diagnostic) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("file", in_python(&diagnostic.path))?;
    dict.set_item("line", diagnostic.line)?;
    dict.set_item("column", diagnostic.column)?;
    dict.set_item("key", &diagnostic.key)?;
    dict.set_item("text", &diagnostic.text)?;
    dict.set_item("message", in_python(&diagnostic.message))?;
    dict.set_item("hint", diagnostic.hint.as_deref().map(in_python))?;
    Ok(dict)
}

/// `InputError`: an argument is not acceptable.
pub fn input(py: Python<'_>, message: impl Into<String>, hint: impl Into<String>) -> PyErr {
    raise(py, "InputError", (message.into(), hint.into()))
}

/// `InputError` for a mistake that the lab found.
pub fn mistake(py: Python<'_>, mistake: Mistake) -> PyErr {
    input(py, in_python(&mistake.message), in_python(&mistake.hint))
}

/// `StoreError`: a store of runs is unreadable, unwritable, or has other runs.
pub fn store(py: Python<'_>, mistake: Mistake) -> PyErr {
    raise(py, "StoreError", (in_python(&mistake.message), in_python(&mistake.hint)))
}

/// `VersionError`: data belongs to another version, or to another scenario.
pub fn version(py: Python<'_>, message: impl Into<String>, hint: impl Into<String>) -> PyErr {
    raise(py, "VersionError", (message.into(), hint.into()))
}

/// `Error` for an external cause, such as an unreadable or unwritable file.
pub fn external(py: Python<'_>, message: impl Into<String>) -> PyErr {
    raise(py, "Error", (message.into(),))
}

/// A failed run, as an entry of `RunError.failures`.
pub fn failure<'py>(
    py: Python<'py>,
    variant: &str,
    seed: u64,
    failure: &Failure,
) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("variant", variant)?;
    dict.set_item("seed", seed)?;
    dict.set_item("message", &failure.message)?;
    dict.set_item("hint", &failure.hint)?;
    Ok(dict)
}

/// `RunError`: runs failed. Its `result` has the successful ones.
pub fn run(
    py: Python<'_>,
    failures: Vec<Bound<'_, PyDict>>,
    result: Option<Bound<'_, PyAny>>,
) -> PyErr {
    let made = PyList::new(py, failures);
    match made {
        Ok(failures) => raise(py, "RunError", (failures, result)),
        Err(error) => error,
    }
}

/// `Interrupted`, a `KeyboardInterrupt` with the finished runs.
pub fn interrupted(py: Python<'_>, missing: usize, result: Option<Bound<'_, PyAny>>) -> PyErr {
    raise(py, "Interrupted", (missing, result))
}

/// The reason why `run_interruptibly` stopped: ^C becomes `Interrupted`, other exceptions are
/// unchanged.
pub fn stopped(
    py: Python<'_>,
    error: PyErr,
    missing: usize,
    result: Option<Bound<'_, PyAny>>,
) -> PyErr {
    match error.is_instance_of::<PyKeyboardInterrupt>(py) {
        true => interrupted(py, missing, result),
        false => error,
    }
}

/// An internal inconsistency, which is a bug.
pub fn bug(what: impl std::fmt::Display) -> PyErr {
    PyRuntimeError::new_err(format!("this is a bug in Pagetide: {what}"))
}
