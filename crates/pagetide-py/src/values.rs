//! Python's values as a scenario has them: tables of TOML, and the text of `--set`.
//!
//! Invariant: what has no form in TOML is refused with the key that it is at.

use crate::errors;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyMapping, PyString, PyTuple};
use toml::{Table, Value};

/// Tables in tables at most: none of a scenario is nearly as deep.
const DEPTH_MAX: usize = 32;

/// A value of a scenario: text, a number, a list, a mapping, or an object with a method `to_table()`. `None`: there
/// is no such key.
pub fn to_toml(value: &Bound<'_, PyAny>, key: &str) -> PyResult<Option<Value>> {
    convert(value, key, 0)
}

fn convert(value: &Bound<'_, PyAny>, key: &str, depth: usize) -> PyResult<Option<Value>> {
    let py = value.py();
    if depth > DEPTH_MAX {
        return Err(errors::input(py, format!("{key} has too many levels"), "is it in itself?"));
    }
    if value.is_none() {
        return Ok(None);
    }
    if value.is_instance_of::<PyBool>() {
        return Ok(Some(Value::Boolean(value.extract()?)));
    }
    if value.is_instance_of::<PyString>() {
        return Ok(Some(Value::String(value.extract()?)));
    }
    if value.is_instance_of::<PyFloat>() {
        return Ok(Some(Value::Float(value.extract()?)));
    }
    // Also numbers of numpy: whatever can be an index.
    if value.is_instance_of::<PyInt>() || value.hasattr("__index__")? {
        return match value.extract::<i64>() {
            Ok(integer) => Ok(Some(Value::Integer(integer))),
            Err(_) => Err(errors::input(
                py,
                format!("{key}: {value} is too large for a scenario"),
                "numbers have 63 bits; a limit that is none is \"max\"",
            )),
        };
    }
    if value.is_instance_of::<PyList>() || value.is_instance_of::<PyTuple>() {
        let mut list = Vec::new();
        for (at, item) in value.try_iter()?.enumerate() {
            let place = format!("{key}[{at}]");
            match convert(&item?, &place, depth + 1)? {
                Some(item) => list.push(item),
                None => return Err(unknown(&place, value)),
            }
        }
        return Ok(Some(Value::Array(list)));
    }
    if let Ok(to_table) = value.getattr("to_table") {
        return convert(&to_table.call0()?, key, depth + 1);
    }
    if let Ok(mapping) = value.cast::<PyMapping>() {
        return Ok(Some(Value::Table(table(mapping, key, depth)?)));
    }
    Err(unknown(key, value))
}

fn table(mapping: &Bound<'_, PyMapping>, key: &str, depth: usize) -> PyResult<Table> {
    let mut table = Table::new();
    for item in mapping.items()?.iter() {
        let (name, value): (Bound<'_, PyAny>, Bound<'_, PyAny>) = item.extract()?;
        let name: String = name.extract().map_err(|_| {
            PyTypeError::new_err(format!("{key}: keys are text, not {}", type_name(&name)))
        })?;
        let place = if key.is_empty() { name.clone() } else { format!("{key}.{name}") };
        if let Some(value) = convert(&value, &place, depth + 1)? {
            table.insert(name, value);
        }
    }
    Ok(table)
}

pub fn to_table(mapping: &Bound<'_, PyDict>, key: &str) -> PyResult<Table> {
    table(mapping.as_mapping(), key, 0)
}

fn unknown(key: &str, value: &Bound<'_, PyAny>) -> PyErr {
    PyTypeError::new_err(format!(
        "{key}: a scenario has text, numbers, true or false, lists and tables, not {}",
        type_name(value)
    ))
}

fn type_name(value: &Bound<'_, PyAny>) -> String {
    value.get_type().name().map_or_else(|_| "this".to_owned(), |name| name.to_string())
}

/// Changes as `--set` has them: the key, and the value as text.
pub fn sets(changes: &Bound<'_, PyDict>) -> PyResult<Vec<(String, String)>> {
    let mut sets = Vec::new();
    for (key, value) in changes.iter() {
        let key: String = key.extract().map_err(|_| {
            PyTypeError::new_err(format!("keys to set are text, not {}", type_name(&key)))
        })?;
        sets.push((key.clone(), to_text(&value, &key)?));
    }
    Ok(sets)
}

/// A value as `--set KEY=VALUE` has it.
pub fn to_text(value: &Bound<'_, PyAny>, key: &str) -> PyResult<String> {
    match to_toml(value, key)? {
        Some(Value::String(text)) => Ok(text),
        Some(value) => Ok(value.to_string()),
        None => Err(errors::input(
            value.py(),
            format!("{key} is set to nothing"),
            "give a value; a key that is not set keeps the scenario's",
        )),
    }
}
