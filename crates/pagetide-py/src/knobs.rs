//! Converts knobs and their values.
//!
//! Invariant: values are texts, as `pagetide run --set` accepts them.

use crate::errors;
use crate::scenario::Scenario;
use crate::values;
use pagetide_lab::knob::Knob;
use pagetide_scenario::model;
use pyo3::prelude::*;
use pyo3::types::PyString;

/// The values of a knob of a grid in a range: `"LOW..HIGH/N"`, or `"A,B,C"`.
///
/// Raises `InputError` for unknown knobs and invalid values.
#[pyfunction]
pub fn knob_values(
    scenario: &Scenario,
    path: &str,
    range: &Bound<'_, PyString>,
) -> PyResult<Vec<String>> {
    let setup = &scenario.0.model(range.py())?.variants[0].setup;
    let knob = knob(path, range, setup, true)?;
    Ok(knob.values.into_iter().map(|value| value.text).collect())
}

/// A knob with a list of values, a range as text (`"10..3000/7"`), or `None`.
pub fn knob(
    path: &str,
    range: &Bound<'_, PyAny>,
    setup: &model::Setup,
    coarse: bool,
) -> PyResult<Knob> {
    let text = match range_text(range, path)? {
        Some(range) => format!("{path}={range}"),
        None => path.to_owned(),
    };
    Knob::parse(&text, setup, coarse).map_err(|it| errors::mistake(range.py(), it))
}

/// The range in the syntax of the command.
fn range_text(range: &Bound<'_, PyAny>, path: &str) -> PyResult<Option<String>> {
    if range.is_none() {
        return Ok(None);
    }
    if range.is_instance_of::<PyString>() {
        return range.extract().map(Some);
    }
    let mut list = Vec::new();
    for value in range.try_iter()? {
        list.push(values::to_text(&value?, path)?);
    }
    if list.is_empty() {
        return Err(errors::input(range.py(), format!("{path} has no values"), "give one or more"));
    }
    Ok(Some(list.join(",")))
}
