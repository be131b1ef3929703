//! Converts columns and Arrow batches to rows of parameters.

use onecopy_rows::Dialect;
use onecopy_rows::arrow::{Array, DataType, TimeUnit};
use onecopy_rows::arrow_c::Memory;
use onecopy_rows::{Error, TableInsert, Value};
use onecopy_text::{Ledger, Stage, Tally};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple};

use crate::raw::number_column::Column;
use crate::raw::{binary, buffer};
use crate::{errors, parameters};

/// The destination of inserted rows: an SQL statement or a table.
pub(crate) enum Destination {
    Statement(String),
    Table(TableInsert),
}

impl Destination {
    /// Parses the argument `into`. It is an SQL statement if it contains a `?`, otherwise a table
    /// name.
    pub(crate) fn of(
        into: &Bound<'_, PyString>,
        names: &[String],
        dialect: Dialect,
    ) -> PyResult<Destination> {
        let py = into.py();
        let text = parameters::utf8(py, into, "the statement", &mut Tally::default())?;
        if text.contains('?') {
            return Ok(Destination::Statement(text));
        }
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        // SQLite ignores the case of names and inserts only the first of equal columns.
        let equal = |a: &str, b: &str| match dialect {
            Dialect::Sqlite => a.eq_ignore_ascii_case(b),
            _ => a == b,
        };
        for (i, name) in names.iter().enumerate() {
            if names[..i].iter().any(|earlier| equal(earlier, name)) {
                return Err(errors::programming(
                    py,
                    &format!("two columns have the name `{name}`\nrename one of them"),
                ));
            }
        }
        Ok(Destination::Table(TableInsert::new(&text, &names, dialect)))
    }
}

/// The values of one parameter of `executemany`.
enum ColumnSource {
    /// An array in memory, such as a NumPy buffer.
    Array(Array),
    /// An iterator over converted values.
    Values(std::vec::IntoIter<Value>),
}

/// An iterator over rows of parameters. It ends after the first error.
pub(crate) struct ColumnRows {
    columns: Vec<ColumnSource>,
    row: usize,
    n_rows: usize,
}

impl ColumnRows {
    /// Parses the argument `columns` of `executemany`.
    ///
    /// # Errors
    /// `TypeError` for an unsupported buffer, `ValueError` for columns of different lengths.
    pub(crate) fn new(
        columns: &Bound<'_, PyAny>,
        adapters: Option<&Bound<'_, PyDict>>,
        dialect: Dialect,
        ledger: &Ledger,
    ) -> PyResult<ColumnRows> {
        let mut made = Vec::new();
        let mut tally = Tally::default();
        let mut n_rows = None;
        for (i, column) in columns.try_iter()?.enumerate() {
            let column = column?;
            let source = match array_of(&column)? {
                Some(array) => ColumnSource::Array(array),
                None => {
                    let values = parameters::column(&column, i, adapters, dialect, &mut tally)?;
                    ColumnSource::Values(values.into_iter())
                }
            };
            let len = match &source {
                ColumnSource::Array(array) => array.len,
                ColumnSource::Values(values) => values.len(),
            };
            if *n_rows.get_or_insert(len) != len {
                let first = n_rows.unwrap_or(0);
                return Err(PyValueError::new_err(format!(
                    "column {i} has {len} values and the first one {first}"
                )));
            }
            made.push(source);
        }
        tally.enter(ledger, Stage::Parameters);
        Ok(ColumnRows {
            columns: made,
            row: 0,
            n_rows: n_rows.unwrap_or(0),
        })
    }
}

impl Iterator for ColumnRows {
    type Item = Result<Vec<Value>, Error>;

    fn next(&mut self) -> Option<Result<Vec<Value>, Error>> {
        if self.row >= self.n_rows {
            return None;
        }
        let mut values = Vec::with_capacity(self.columns.len());
        for (i, column) in self.columns.iter_mut().enumerate() {
            values.push(match column {
                ColumnSource::Values(values) => values.next()?,
                ColumnSource::Array(array) => match array.value(self.row) {
                    Ok(value) => value,
                    Err(error) => {
                        let error = error.at_column(i, "").at_row(self.row as u64);
                        self.row = self.n_rows;
                        return Some(Err(error));
                    }
                },
            });
        }
        self.row += 1;
        Some(Ok(values))
    }
}

/// Copies the buffer of an object to an array. `None` for `bytes` and for objects without a buffer.
///
/// Copies: the buffer is copied once, because other threads may write to it during the insert.
fn array_of(column: &Bound<'_, PyAny>) -> PyResult<Option<Array>> {
    if let Ok(column) = column.cast::<Column>() {
        let (values, mask) = (column.as_any(), column.getattr("null_mask")?);
        let unit = column.get().timestamp();
        let nulls = (!mask.is_none()).then(|| mask_of(&mask)).transpose()?;
        return numbers(values, nulls, unit).map(Some);
    }
    if let Ok(pair) = column.cast::<PyTuple>()
        && pair.len() == 2
    {
        let (values, mask) = (pair.get_item(0)?, pair.get_item(1)?);
        if is_column(&values)? && is_column(&mask)? {
            return of_array(&values, Some(mask_of(&mask)?)).map(Some);
        }
    }
    if !is_column(column)? {
        return Ok(None);
    }
    of_array(column, None).map(Some)
}

/// Returns `true` for an object with a buffer, except `bytes`, and for a NumPy array of dates.
fn is_column(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    Ok(!binary::is_bytes(object)
        && (buffer::BufferBytes::is_buffer(object.as_borrowed()) || dates(object)?.is_some()))
}

/// Returns the type string of a NumPy array of dates, for example `<M8[us]`.
fn dates(object: &Bound<'_, PyAny>) -> PyResult<Option<String>> {
    let Some(dtype) = object.getattr_opt("dtype")? else {
        return Ok(None);
    };
    if dtype
        .getattr_opt("kind")?
        .is_none_or(|kind| !kind.eq("M").unwrap_or(false))
    {
        return Ok(None);
    }
    dtype.getattr("str")?.extract().map(Some)
}

fn of_array(object: &Bound<'_, PyAny>, mask: Option<Vec<u8>>) -> PyResult<Array> {
    let Some(dtype) = dates(object)? else {
        return numbers(object, mask, None);
    };
    let unit = match dtype.as_str() {
        "<M8[s]" => TimeUnit::Second,
        "<M8[ms]" => TimeUnit::Milli,
        "<M8[us]" => TimeUnit::Micro,
        "<M8[ns]" => TimeUnit::Nano,
        other => {
            return Err(PyTypeError::new_err(format!(
                "an array of `{other}` cannot be inserted, because no SQL type corresponds to it\n\
                 take `datetime64` in seconds, milliseconds, microseconds or nanoseconds"
            )));
        }
    };
    let integers = object.call_method1("view", ("int64",))?;
    let mut array = numbers(&integers, mask, Some((unit, false)))?;
    // NumPy represents `NaT` (not a time) by the smallest integer.
    let not_a_time = |bytes: &[u8]| bytes == i64::MIN.to_ne_bytes();
    let values = array.buffers[0].bytes().chunks_exact(8).enumerate();
    let valid: Vec<bool> = values
        .map(|(row, bytes)| !array.is_null(row) && !not_a_time(bytes))
        .collect();
    if !valid.iter().all(|valid| *valid) {
        array.validity = Some(bits(valid.into_iter()));
        array.n_nulls = None;
    }
    Ok(array)
}

/// Returns the NULL mask with one byte per value. A NULL has a byte other than 0.
fn mask_of(mask: &Bound<'_, PyAny>) -> PyResult<Vec<u8>> {
    let items = buffer::items_of(mask.as_borrowed())?;
    if items.n_dimensions != 1 || items.item_bytes != 1 {
        return Err(PyTypeError::new_err(
            "a null mask has one dimension, and one byte a value",
        ));
    }
    Ok(items.bytes)
}

fn bits(values: impl Iterator<Item = bool>) -> Memory {
    let mut bytes = Vec::new();
    for (at, value) in values.enumerate() {
        if at.is_multiple_of(8) {
            bytes.push(0);
        }
        if value && let Some(last) = bytes.last_mut() {
            *last |= 1_u8 << (at % 8);
        }
    }
    Memory::of(bytes)
}

/// Converts a buffer of numbers to an Arrow array. A NULL has a byte other than 0 in `mask`.
fn numbers(
    object: &Bound<'_, PyAny>,
    mask: Option<Vec<u8>>,
    timestamp: Option<(TimeUnit, bool)>,
) -> PyResult<Array> {
    let items = buffer::items_of(object.as_borrowed())?;
    let refused = |why: &str| PyTypeError::new_err(format!("a column is given as an array {why}"));
    if items.n_dimensions != 1 {
        return Err(refused(&format!("of {} dimensions", items.n_dimensions)));
    }
    let format = items.format.trim_start_matches(['@', '=', '<']);
    let bits_each = u8::try_from(items.item_bytes * 8).unwrap_or(0);
    let data_type = match (format, timestamp) {
        ("q" | "l", Some((unit, is_utc))) => DataType::Timestamp {
            unit,
            zone: is_utc.then(|| "UTC".to_owned()),
        },
        ("?", _) => DataType::Bool,
        ("b" | "h" | "i" | "l" | "q" | "n", _) => DataType::int(bits_each),
        ("B" | "H" | "I" | "L" | "Q" | "N", _) => DataType::uint(bits_each),
        ("f", _) => DataType::Float32,
        ("d", _) => DataType::Float64,
        (other, _) => {
            return Err(refused(&format!(
                "of format `{other}`\n\
                 pass integers, floats or booleans in native byte order, or a list"
            )));
        }
    };
    let len = items.bytes.len() / items.item_bytes.max(1);
    if let Some(mask) = &mask
        && mask.len() != len
    {
        let n = mask.len();
        return Err(PyValueError::new_err(format!(
            "a null mask has {n} values, and its column {len}"
        )));
    }
    let values = match data_type {
        DataType::Bool => bits(items.bytes.iter().map(|b| *b != 0)),
        _ => Memory::of(items.bytes),
    };
    Ok(Array {
        data_type,
        len,
        offset: 0,
        validity: mask.map(|mask| bits(mask.into_iter().map(|null| null == 0))),
        n_nulls: None,
        buffers: vec![values],
        dictionary: None,
        items: None,
    })
}
