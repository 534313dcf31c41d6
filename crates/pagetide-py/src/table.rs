//! Tables: columns that polars, pandas, pyarrow and duckdb read without a copy through the Arrow
//! PyCapsule interface, and that plain Python reads as dictionaries.
//!
//! Invariant: a table never changes, so other libraries can share its memory.

use crate::errors;
use arrow_array::cast::AsArray;
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::types::{Float64Type, Int64Type, UInt64Type};
use arrow_array::{Array, ArrayRef, RecordBatch, RecordBatchIterator};
use arrow_schema::{DataType, Field, Schema};
use pyo3::exceptions::{PyIndexError, PyKeyError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict, PyIterator, PyList};
use pyo3::IntoPyObjectExt;
use std::sync::Arc;

/// Maximum number of rows in the text or HTML of a table.
const ROWS_SHOWN: usize = 20;

/// Named columns of equal length.
///
/// `polars.DataFrame(t)`, `pyarrow.table(t)`, `pandas.DataFrame.from_arrow(t)` and duckdb read it
/// without a copy; `to_dicts()` and `to_dict()` need no library. `len(t)` is the number of rows,
/// `t["name"]` a column as a list, `t[3]` a row as a dict. Iteration gives the rows.
#[pyclass(frozen, module = "pagetide")]
pub struct Table {
    batch: RecordBatch,
}

impl Table {
    /// A table of columns, which must have equal lengths.
    pub fn new<S: AsRef<str>>(columns: Vec<(S, ArrayRef)>) -> PyResult<Table> {
        let field = |(name, array): &(S, ArrayRef)| {
            Field::new(name.as_ref(), array.data_type().clone(), true)
        };
        let schema = Arc::new(Schema::new(columns.iter().map(field).collect::<Vec<_>>()));
        let arrays = columns.into_iter().map(|(_, array)| array).collect();
        let batch = RecordBatch::try_new(schema, arrays).map_err(errors::bug)?;
        Ok(Table { batch })
    }

    fn row<'py>(&self, py: Python<'py>, row: usize) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        for (field, array) in self.batch.schema().fields().iter().zip(self.batch.columns()) {
            dict.set_item(field.name(), cell(py, array, row)?)?;
        }
        Ok(dict)
    }

    fn names(&self) -> Vec<String> {
        self.batch.schema().fields().iter().map(|field| field.name().clone()).collect()
    }

    /// The first rows as text, below the names of the columns.
    fn shown(&self) -> Vec<Vec<String>> {
        let mut rows = vec![self.names()];
        for row in 0..self.batch.num_rows().min(ROWS_SHOWN) {
            rows.push(self.batch.columns().iter().map(|array| text(array, row)).collect());
        }
        rows
    }

    fn shape_words(&self) -> String {
        format!("{} rows x {} columns", self.batch.num_rows(), self.batch.num_columns())
    }
}

#[pymethods]
impl Table {
    /// Names of the columns.
    #[getter]
    fn columns(&self) -> Vec<String> {
        self.names()
    }

    /// The number of rows and of columns.
    #[getter]
    fn shape(&self) -> (usize, usize) {
        (self.batch.num_rows(), self.batch.num_columns())
    }

    /// All rows, each a dict by the names of the columns. Missing values are `None`.
    fn to_dicts<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let list = PyList::empty(py);
        for row in 0..self.batch.num_rows() {
            list.append(self.row(py, row)?)?;
        }
        Ok(list)
    }

    /// All columns by name, each a list.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        for (name, array) in self.names().iter().zip(self.batch.columns()) {
            dict.set_item(name, column(py, array)?)?;
        }
        Ok(dict)
    }

    /// The Arrow PyCapsule interface: one batch. Ignores `requested_schema`, as the interface
    /// allows.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let _ = requested_schema;
        let batches = vec![Ok(self.batch.clone())];
        let reader = RecordBatchIterator::new(batches, self.batch.schema());
        let stream = FFI_ArrowArrayStream::new(Box::new(reader));
        PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
    }

    fn __len__(&self) -> usize {
        self.batch.num_rows()
    }

    fn __getitem__<'py>(
        &self,
        py: Python<'py>,
        key: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        if let Ok(name) = key.extract::<String>() {
            return match self.batch.column_by_name(&name) {
                Some(array) => column(py, array).map(Bound::into_any),
                None => Err(PyKeyError::new_err(format!(
                    "{name}: the columns are {}",
                    self.names().join(", ")
                ))),
            };
        }
        let Ok(place) = key.extract::<isize>() else {
            return Err(PyTypeError::new_err(
                "index a table by the name of a column or the number of a row",
            ));
        };
        let rows = self.batch.num_rows();
        let from_end = if place < 0 { place.checked_add_unsigned(rows) } else { Some(place) };
        match from_end.and_then(|place| usize::try_from(place).ok()).filter(|it| *it < rows) {
            Some(row) => self.row(py, row).map(Bound::into_any),
            None => Err(PyIndexError::new_err(format!("the table has {rows} rows"))),
        }
    }

    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyIterator>> {
        self.to_dicts(py)?.try_iter()
    }

    fn __repr__(&self) -> String {
        let rows = self.shown();
        let widths: Vec<usize> = (0..self.batch.num_columns())
            .map(|at| rows.iter().map(|row| row[at].chars().count()).max().unwrap_or(0))
            .collect();
        let mut out = format!("<pagetide.Table {}>\n", self.shape_words());
        for row in &rows {
            let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}"));
            out += cells.collect::<Vec<_>>().join("  ").trim_end();
            out.push('\n');
        }
        if self.batch.num_rows() > ROWS_SHOWN {
            out += "...\n";
        }
        out.truncate(out.trim_end().len());
        out
    }

    fn _repr_html_(&self) -> String {
        let line = |row: &Vec<String>, tag: &str| {
            let cells = row.iter().map(|cell| format!("<{tag}>{}</{tag}>", escaped(cell)));
            format!("<tr>{}</tr>\n", cells.collect::<String>())
        };
        let rows = self.shown();
        let (head, body) = (line(&rows[0], "th"), rows[1..].iter().map(|row| line(row, "td")));
        let (body, shape) = (body.collect::<String>(), self.shape_words());
        format!("<table>\n<thead>{head}</thead>\n<tbody>\n{body}</tbody>\n</table>\n<p>{shape}</p>")
    }
}

/// The text, escaped for HTML.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// Aligned text as HTML, with a fixed-width font even if the page gives `pre` another one.
pub fn preformatted(text: &str) -> String {
    format!("<pre style=\"font-family: monospace\">{}</pre>", escaped(text))
}

fn column<'py>(py: Python<'py>, array: &ArrayRef) -> PyResult<Bound<'py, PyList>> {
    let list = PyList::empty(py);
    for row in 0..array.len() {
        list.append(cell(py, array, row)?)?;
    }
    Ok(list)
}

fn cell<'py>(py: Python<'py>, array: &ArrayRef, row: usize) -> PyResult<Bound<'py, PyAny>> {
    if array.is_null(row) {
        return Ok(py.None().into_bound(py));
    }
    match array.data_type() {
        DataType::Utf8 => array.as_string::<i32>().value(row).into_bound_py_any(py),
        DataType::UInt64 => array.as_primitive::<UInt64Type>().value(row).into_bound_py_any(py),
        DataType::Int64 => array.as_primitive::<Int64Type>().value(row).into_bound_py_any(py),
        DataType::Float64 => array.as_primitive::<Float64Type>().value(row).into_bound_py_any(py),
        DataType::Boolean => array.as_boolean().value(row).into_bound_py_any(py),
        other => Err(errors::bug(format!("a column of {other}"))),
    }
}

fn text(array: &ArrayRef, row: usize) -> String {
    if array.is_null(row) {
        return String::new();
    }
    match array.data_type() {
        DataType::Utf8 => array.as_string::<i32>().value(row).to_owned(),
        DataType::UInt64 => array.as_primitive::<UInt64Type>().value(row).to_string(),
        DataType::Int64 => array.as_primitive::<Int64Type>().value(row).to_string(),
        DataType::Float64 => array.as_primitive::<Float64Type>().value(row).to_string(),
        DataType::Boolean => array.as_boolean().value(row).to_string(),
        _ => String::new(),
    }
}
