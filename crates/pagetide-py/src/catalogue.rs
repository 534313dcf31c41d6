//! The meanings of names: `pagetide.metrics` and `pagetide.explain`.

use crate::errors;
use crate::table::Table;
use arrow_array::{ArrayRef, StringArray};
use pagetide_lab::csv::unit_name;
use pagetide_lab::{explain as lab, metrics as words};
use pagetide_scenario::load::PluginNames;
use pagetide_scenario::metric::catalogue;
use pagetide_scenario::names::near::nearest;
use pyo3::prelude::*;
use std::sync::Arc;

const WIDTH: usize = 100;

/// Every metric, or the metrics that match a name or a pattern with `*`.
///
/// Columns: name, unit, of (what it can belong to), source (the place in Linux), about.
///
/// Raises `InputError` if none matches; the hint has the nearest name.
#[pyfunction]
#[pyo3(signature = (pattern = None))]
pub fn metrics(py: Python<'_>, pattern: Option<&str>) -> PyResult<Table> {
    let all = catalogue::all();
    let found = words::find(&all, pattern);
    if let (true, Some(pattern)) = (found.is_empty(), pattern) {
        let hint = match nearest(pattern, all.iter().map(|entry| &*entry.name)) {
            Some(near) => format!("did you mean `{near}`?"),
            None => "`*` matches any characters".to_owned(),
        };
        return Err(errors::input(py, format!("there is no metric `{pattern}`"), hint));
    }
    let text = |of: &dyn Fn(&catalogue::MetricEntry) -> String| -> ArrayRef {
        let texts: Vec<String> = found.iter().map(|entry| of(entry)).collect();
        Arc::new(StringArray::from(texts))
    };
    let kinds = |entry: &catalogue::MetricEntry| {
        entry.of.iter().map(|kind| kind.word()).collect::<Vec<_>>().join(", ")
    };
    Table::new(vec![
        ("name", text(&|entry| entry.name.to_string())),
        ("unit", text(&|entry| unit_name(entry.unit).to_owned())),
        ("of", text(&kinds)),
        ("source", text(&|entry| entry.source.to_owned())),
        ("about", text(&|entry| entry.about.to_string())),
    ])
}

/// Explains a metric, a knob, a scenario key, a workload or a Linux function, with the text of
/// `pagetide explain`.
///
/// Raises `InputError` for an unknown name; the hint has the nearest name.
#[pyfunction]
pub fn explain(py: Python<'_>, name: &str) -> PyResult<String> {
    let all = lab::all(&PluginNames::default());
    let found = lab::find(&all, name);
    if found.is_empty() {
        let message =
            format!("there is no metric, knob, key or workload `{}`", name.escape_debug());
        return Err(errors::input(py, message, lab::unknown_name_hint(&all, name)));
    }
    Ok(lab::text(&found, name, WIDTH))
}
