//! Converts Python values to TOML and to the text of `--set`.
//!
//! Invariant: a value without a form in TOML is rejected, with its key in the message.

use crate::errors;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyMapping, PyString, PyTuple};
use toml::{Table, Value};

/// Maximum nesting of tables, far above that of any scenario.
const DEPTH_MAX: usize = 32;

/// Converts text, a number, a list, a mapping, or an object with a method `to_table()`. `None`
/// leaves the key out.
pub fn to_toml(value: &Bound<'_, PyAny>, key: &str) -> PyResult<Option<Value>> {
    convert(value, key, 0)
}

fn convert(value: &Bound<'_, PyAny>, key: &str, depth: usize) -> PyResult<Option<Value>> {
    let py = value.py();
    if depth > DEPTH_MAX {
        return Err(errors::input(
            py,
            format!("{key} is nested too deeply"),
            "check whether the table contains itself",
        ));
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
    // Includes numpy integers: all types with `__index__`.
    if value.is_instance_of::<PyInt>() || value.hasattr("__index__")? {
        return match value.extract::<i64>() {
            Ok(integer) => Ok(Some(Value::Integer(integer))),
            Err(_) => Err(errors::input(
                py,
                format!("{key}: {value} is too large for a scenario"),
                "numbers have at most 63 bits; write \"max\" for no limit",
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
            PyTypeError::new_err(format!("{key}: keys must be text, not {}", type_name(&name)))
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
        "{key}: a value must be text, a number, a boolean, a list or a table, not {}",
        type_name(value)
    ))
}

fn type_name(value: &Bound<'_, PyAny>) -> String {
    value.get_type().name().map_or_else(|_| "this".to_owned(), |name| name.to_string())
}

/// Converts changes to the pairs of `--set`: keys and values as text.
pub fn sets(changes: &Bound<'_, PyDict>) -> PyResult<Vec<(String, String)>> {
    let mut sets = Vec::new();
    for (key, value) in changes.iter() {
        let key: String = key.extract().map_err(|_| {
            PyTypeError::new_err(format!("keys to set must be text, not {}", type_name(&key)))
        })?;
        sets.push((key.clone(), to_text(&value, &key)?));
    }
    Ok(sets)
}

/// Converts a value to the text of `--set KEY=VALUE`.
pub fn to_text(value: &Bound<'_, PyAny>, key: &str) -> PyResult<String> {
    match to_toml(value, key)? {
        Some(Value::String(text)) => Ok(text),
        Some(value) => Ok(value.to_string()),
        None => Err(errors::input(
            value.py(),
            format!("{key} has the value None"),
            "give a value, or leave out the key to keep the scenario's value",
        )),
    }
}
