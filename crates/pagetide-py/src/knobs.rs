//! Converts knobs and their values: to points of a grid, and to columns of tables.
//!
//! Invariant: values are texts, as `pagetide run --set` accepts them.

use crate::errors;
use crate::values;
use arrow_array::{ArrayRef, Float64Array, Int64Array, StringArray};
use pagetide_lab::knob::Knob;
use pagetide_lab::sweep::grid;
use pagetide_scenario::metric::quantity::Quantity;
use pagetide_scenario::model::{self, PageSize};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyFloat, PyIterator, PyMapping, PyString};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The settings of a point, in the order of the caller.
pub type KnobPoint = Vec<(String, String)>;
/// The same by name.
pub type KnobSettings = BTreeMap<String, String>;

/// The points of a grid, without duplicates: all combinations of the values in a dict of lists and
/// ranges (`"LOW..HIGH/N"`), or a list of points.
pub fn points(grid: &Bound<'_, PyAny>, setup: &model::Setup) -> PyResult<Vec<KnobPoint>> {
    let py = grid.py();
    let mut points = if let Ok(grid) = grid.cast::<PyMapping>() {
        let mut knobs = Vec::new();
        for item in grid.items()?.iter() {
            let (path, values): (String, Bound<'_, PyAny>) = item.extract()?;
            let texts: Vec<String> = if values.is_instance_of::<PyString>() {
                let knob = knob(&path, &values, setup, true)?;
                knob.values.into_iter().map(|value| value.text).collect()
            } else {
                let form = "a grid needs a list of values or a range for each knob";
                let text = |value: PyResult<Bound<'_, PyAny>>| text(&value?, &path);
                list(&values, &format!("{path}: {form}"))?.map(text).collect::<PyResult<_>>()?
            };
            if texts.is_empty() {
                return Err(errors::input(py, format!("{path} has no values"), "give one or more"));
            }
            knobs.push((bare(&path), texts));
        }
        grid::points(&knobs).map_err(|it| errors::mistake(py, it))?
    } else {
        let points = list(grid, "a grid must be a dict of lists, or a list of dicts")?;
        points.map(|given| point(&given?)).collect::<PyResult<Vec<KnobPoint>>>()?
    };
    if points.is_empty() {
        return Err(errors::input(py, "the grid has no points", "give at least one"));
    }
    let mut seen = BTreeSet::new();
    points.retain(|point| seen.insert(point.iter().cloned().collect::<KnobSettings>()));
    Ok(points)
}

/// The items of a list; a text is none.
fn list<'py>(value: &Bound<'py, PyAny>, form: &str) -> PyResult<Bound<'py, PyIterator>> {
    let is_text = value.is_instance_of::<PyString>() || value.is_instance_of::<PyBytes>();
    match value.try_iter() {
        Ok(items) if !is_text => Ok(items),
        _ => Err(PyTypeError::new_err(format!("{form}, not {}", value.repr()?))),
    }
}

/// A point from a mapping.
pub fn point(given: &Bound<'_, PyAny>) -> PyResult<KnobPoint> {
    let items = given.cast::<PyMapping>()?.items()?;
    let pair = |item: Bound<'_, PyAny>| {
        let (path, value): (String, Bound<'_, PyAny>) = item.extract()?;
        Ok((bare(&path), text(&value, &path)?))
    };
    items.iter().map(pair).collect()
}

/// The name of a knob in a store.
fn bare(path: &str) -> String {
    path.strip_prefix("sysctl.").unwrap_or(path).to_owned()
}

/// A value as text: a float that is whole as an integer, a path and the like by `str`.
fn text(value: &Bound<'_, PyAny>, path: &str) -> PyResult<String> {
    match value.cast::<PyFloat>() {
        Ok(float) if float.value().fract() == 0.0 => Ok(format!("{:.0}", float.value())),
        _ => values::to_text(value, path).or_else(|error| {
            match error.is_instance_of::<PyTypeError>(value.py()) {
                true => Ok(value.str()?.to_string()),
                false => Err(error),
            }
        }),
    }
}

/// The columns of knobs in a table with rows of these settings. A column has numbers if all its
/// values are plain numbers, else text. A knob of sizes has a second column with the bytes.
pub fn columns(knobs: &[String], rows: &[&KnobSettings]) -> Vec<(String, ArrayRef)> {
    let mut columns = Vec::new();
    for knob in knobs {
        let texts = || rows.iter().map(|row| row.get(knob).map(String::as_str));
        let values: BTreeSet<&str> = texts().flatten().collect();
        let column: ArrayRef = if values.iter().all(|value| whole(value).is_some()) {
            Arc::new(Int64Array::from_iter(texts().map(|it| it.and_then(whole))))
        } else if values.iter().all(|value| number(value).is_some()) {
            Arc::new(Float64Array::from_iter(texts().map(|it| it.and_then(number))))
        } else {
            Arc::new(StringArray::from_iter(texts()))
        };
        columns.push((knob.clone(), column));
        let read = |text: &str| Quantity::read(text, PageSize::Kib4);
        let has_unit = |text: &&str| matches!(read(text), Ok(Quantity::Bytes(_)));
        let are_sizes = |text: &&str| bytes(text).is_some() || read(text).is_err();
        if values.iter().any(has_unit) && values.iter().all(are_sizes) {
            let column = Int64Array::from_iter(texts().map(|it| it.and_then(bytes)));
            columns.push((format!("{knob}.bytes"), Arc::new(column) as ArrayRef));
        }
    }
    columns
}

fn whole(text: &str) -> Option<i64> {
    text.parse::<i64>().ok().filter(|number| number.to_string() == text)
}

fn number(text: &str) -> Option<f64> {
    // An integer that does not fit into a column of integers stays text.
    let is_integer = text.parse::<i128>().is_ok() && whole(text).is_none();
    text.parse().ok().filter(|number: &f64| !is_integer && number.is_finite())
}

/// The bytes of a size; a number alone is bytes.
fn bytes(text: &str) -> Option<i64> {
    match Quantity::read(text, PageSize::Kib4).ok()? {
        Quantity::Integer(bytes) => i64::try_from(bytes).ok(),
        Quantity::Bytes(bytes) => i64::try_from(bytes).ok(),
        Quantity::Decimal(bytes) => Some(bytes.round() as i64),
        Quantity::Nanoseconds(_) | Quantity::Percent(_) | Quantity::BytesPerSecond(_) => None,
    }
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
