//! Converts mappings of knobs and their values.
//!
//! Invariant: values are texts, as `pagetide run --set` accepts them.

use crate::errors;
use crate::scenario::Scenario;
use crate::values;
use pagetide_lab::knob::Knob;
use pagetide_scenario::model;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};

/// The values of each knob of a grid: a list, or `"LOW..HIGH/N"`.
///
/// Raises `InputError` for unknown knobs and invalid values.
#[pyfunction]
pub fn knob_values<'py>(
    py: Python<'py>,
    scenario: &Scenario,
    grid: &Bound<'py, PyDict>,
) -> PyResult<Vec<(String, Vec<String>)>> {
    let setup = &scenario.0.model(py)?.variants[0].setup;
    let knobs = knobs(py, grid, setup, true)?;
    let texts = |knob: Knob| {
        let values = knob.values.into_iter().map(|value| value.text).collect();
        (knob.path, values)
    };
    Ok(knobs.into_iter().map(texts).collect())
}

/// The knobs of a mapping: path -> a list of values, or a range as text (`"10..3000/7"`).
pub fn knobs(
    py: Python<'_>,
    grid: &Bound<'_, PyDict>,
    setup: &model::Setup,
    coarse: bool,
) -> PyResult<Vec<Knob>> {
    let mut knobs = Vec::new();
    for (path, range) in grid.iter() {
        let path: String = path.extract()?;
        let text = match range_text(&range, &path)? {
            Some(range) => format!("{path}={range}"),
            None => path,
        };
        knobs.push(Knob::parse(&text, setup, coarse).map_err(|it| errors::mistake(py, it))?);
    }
    Ok(knobs)
}

/// The range in the syntax of the command.
pub fn range_text(range: &Bound<'_, PyAny>, path: &str) -> PyResult<Option<String>> {
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
