//! `dumps_rows`: writes row tuples with one list of keys.

use onecopy_text::{ByteSink, Tally};
use onecopy_wire::json::KeySegments;
use pyo3::Borrowed;
use pyo3::exceptions::{PyMemoryError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString, PyTuple};

use super::encode::{RECENT_BYTES, moved, write};
use super::options::{JsonWriteOptions, options_signature, with_options};
use crate::raw::binary::FreshBytes;
use crate::raw::encode::json::{JsonShape, JsonTarget};
use crate::raw::function::{Args, Function};
use crate::raw::text;

pub(super) struct DumpsRows;

impl Function for DumpsRows {
    const NAME: &'static str = "dumps_rows";
    const SIGNATURE: &'static str = options_signature!("names, rows, /, *, columns=False");
    const DOC: &'static str = "\
Rows with one header as a JSON array of objects, in a fresh `bytes`; no dict is made.

- names: the keys, each a `str`, all different
- rows: an iterable of lists or tuples, each with a value for each name
- columns: `rows` holds columns instead: a list or tuple (or another iterable) of values for each
  name, all of the same length

The other keywords, copies and errors are those of `dumps`; `ValueError` for names that are missing
or not distinct.

>>> import onecopy
>>> onecopy.json.dumps_rows([\"id\", \"name\"], [(1, \"Basel\"), (2, \"Chur\")])
b'[{\"id\":1,\"name\":\"Basel\"},{\"id\":2,\"name\":\"Chur\"}]'
>>> onecopy.json.dumps_rows([\"id\", \"name\"], [[1, 2], [\"Basel\", \"Chur\"]], columns=True)
b'[{\"id\":1,\"name\":\"Basel\"},{\"id\":2,\"name\":\"Chur\"}]'
";
    const PARAMETERS: &'static [&'static str] = with_options!("names", "rows", "columns");
    const REQUIRED: usize = 2;
    const POSITIONAL: usize = 2;

    fn call<'py>(py: Python<'py>, args: &Args<'_, 'py>) -> PyResult<Bound<'py, PyAny>> {
        let mut options = JsonWriteOptions::new();
        options.take(args, 3)?;
        let by_columns = args.get(2).map_or(Ok(false), |object| object.is_truthy())?;
        let names = names(args.required(0))?;
        let rows = args.required(1);
        let mut bytes = FreshBytes::new(py, RECENT_BYTES.likely())?;
        if !options.style.is_plain() {
            let objects = objects(py, &names, rows, by_columns)?;
            write(
                objects.as_any().as_borrowed(),
                JsonShape::Value,
                &options,
                JsonTarget::new(&mut bytes),
            )?;
        } else {
            let keys: Vec<String> = names.iter().map(of_name).collect::<PyResult<_>>()?;
            let keys = KeySegments::new(keys.iter().map(String::as_str));
            if by_columns {
                let columns = columns(py, rows, names.len())?;
                let n = columns.get_item(0)?.len()?;
                for column in &columns {
                    if column.len()? != n {
                        return Err(PyValueError::new_err(
                            "the columns are not of the same length",
                        ));
                    }
                }
                if n == 0 {
                    put(&mut bytes, b"[]")?;
                } else {
                    let columns = columns.as_any().as_borrowed();
                    write(
                        columns,
                        JsonShape::Columns(&keys),
                        &options,
                        JsonTarget::new(&mut bytes),
                    )?;
                }
            } else if rows.is_instance_of::<PyList>() || rows.is_instance_of::<PyTuple>() {
                if rows.len()? == 0 {
                    put(&mut bytes, b"[]")?;
                } else {
                    write(
                        rows,
                        JsonShape::Rows(&keys),
                        &options,
                        JsonTarget::new(&mut bytes),
                    )?;
                }
            } else {
                each(rows, names.len(), &keys, &options, &mut bytes)?;
            }
        }
        RECENT_BYTES.remember(bytes.committed().len());
        moved(py, bytes.moved_bytes())?;
        Ok(bytes.finish()?.into_any())
    }
}

fn put(bytes: &mut FreshBytes<'_, '_>, what: &[u8]) -> PyResult<()> {
    bytes.put(what).map_err(|_| PyMemoryError::new_err(()))
}

/// Writes each row of `rows` as a JSON object.
fn each<'py>(
    rows: Borrowed<'_, 'py, PyAny>,
    n_names: usize,
    keys: &KeySegments,
    options: &JsonWriteOptions,
    bytes: &mut FreshBytes<'_, 'py>,
) -> PyResult<()> {
    for (i, row) in rows.try_iter()?.enumerate() {
        let row = row?;
        let is_row = row.is_instance_of::<PyList>() || row.is_instance_of::<PyTuple>();
        if !is_row || row.len()? != n_names {
            return Err(PyValueError::new_err(format!(
                "row {i} is not a list or tuple with one value for each name"
            )));
        }
        put(bytes, if i == 0 { b"[" } else { b"," })?;
        write(
            row.as_borrowed(),
            JsonShape::Row(keys),
            options,
            JsonTarget::new(bytes),
        )?;
    }
    let is_empty = bytes.committed().is_empty();
    put(bytes, if is_empty { b"[]" } else { b"]" })
}

fn names<'py>(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Vec<Bound<'py, PyString>>> {
    if object.is_instance_of::<PyString>() {
        return Err(PyTypeError::new_err(
            "`names` must be several: a list of str",
        ));
    }
    let seen = PyDict::new(object.py());
    let mut names = Vec::new();
    for name in object.try_iter()? {
        let name = name?.cast_into::<PyString>()?;
        seen.set_item(&name, ())?;
        names.push(name);
        if seen.len() != names.len() {
            return Err(PyValueError::new_err("`names` has a name twice"));
        }
    }
    if names.is_empty() {
        return Err(PyValueError::new_err("`names` is empty"));
    }
    Ok(names)
}

fn of_name(name: &Bound<'_, PyString>) -> PyResult<String> {
    let made = text::to_string(name.as_borrowed(), &mut Tally::default());
    made.map_err(|e| match e {
        text::MakeError::Python(e) => e,
        text::MakeError::Malformed(e) => PyValueError::new_err(format!(
            "a name has a lone surrogate at character {}",
            e.at_units
        )),
    })
}

/// Returns a tuple of `n_names` columns. Copies each column that is not a list or tuple.
fn columns<'py>(
    py: Python<'py>,
    object: Borrowed<'_, 'py, PyAny>,
    n_names: usize,
) -> PyResult<Bound<'py, PyTuple>> {
    let mut columns = Vec::new();
    for column in object.try_iter()? {
        let column = column?;
        // The iterator of a derived class may be different.
        if column.is_exact_instance_of::<PyList>() || column.is_exact_instance_of::<PyTuple>() {
            columns.push(column);
        } else {
            let items: Vec<Bound<'py, PyAny>> = column.try_iter()?.collect::<PyResult<_>>()?;
            columns.push(PyList::new(py, items)?.into_any());
        }
    }
    if columns.len() != n_names {
        return Err(PyValueError::new_err(format!(
            "there are {n_names} names and {} columns",
            columns.len()
        )));
    }
    PyTuple::new(py, columns)
}

/// Converts the rows to dicts, for options that apply to whole objects.
fn objects<'py>(
    py: Python<'py>,
    names: &[Bound<'py, PyString>],
    rows: Borrowed<'_, 'py, PyAny>,
    by_columns: bool,
) -> PyResult<Bound<'py, PyList>> {
    let rows: Vec<Bound<'py, PyAny>> = if by_columns {
        let columns = columns(py, rows, names.len())?;
        let strict = PyDict::new(py);
        strict.set_item("strict", true)?;
        let zip = py.import("builtins")?.getattr("zip")?;
        let zipped = zip.call(columns, Some(&strict))?;
        zipped.try_iter()?.collect::<PyResult<_>>()?
    } else {
        rows.try_iter()?.collect::<PyResult<_>>()?
    };
    let objects = PyList::empty(py);
    for (i, row) in rows.iter().enumerate() {
        let values: Vec<Bound<'py, PyAny>> = row.try_iter()?.collect::<PyResult<_>>()?;
        if values.len() != names.len() {
            return Err(PyValueError::new_err(format!(
                "row {i} is not a list or tuple with one value for each name"
            )));
        }
        let object = PyDict::new(py);
        for (name, value) in names.iter().zip(values) {
            object.set_item(name, value)?;
        }
        objects.append(object)?;
    }
    Ok(objects)
}
