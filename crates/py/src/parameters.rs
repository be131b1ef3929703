//! Converts Python objects to parameter values.

use std::fmt;

use onecopy_rows::named::{self, Named};
use onecopy_rows::{Date, Declared, Dialect, Error, ErrorKind, Time, Timestamp, Value};
use onecopy_text::{Ledger, Stage, Tally};
use pyo3::Borrowed;
use pyo3::exceptions::{PyKeyError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{
    PyBool, PyDate, PyDateAccess, PyDateTime, PyDelta, PyDeltaAccess, PyDict, PyFloat, PyFrozenSet,
    PyInt, PyList, PySet, PyString, PyTime, PyTimeAccess, PyTuple, PyTzInfoAccess,
};

use crate::numpy_scalar::{self, Converted};
use crate::raw::function::call_one;
use crate::raw::{binary, buffer, ndarray, number, temporal, text, uuid};
use crate::{array, errors};

/// Converts a `str` to UTF-8. `what` is its name in error messages.
pub(crate) fn utf8(
    py: Python<'_>,
    string: &Bound<'_, PyString>,
    what: impl fmt::Display,
    tally: &mut Tally,
) -> PyResult<String> {
    text::to_string(Borrowed::from(string), tally).map_err(|e| match e {
        text::MakeError::Malformed(e) => errors::to_py(
            py,
            &Error::new(
                ErrorKind::Malformed,
                format!("{what} has a {} at character {}", e.kind, e.at_units),
            ),
        ),
        text::MakeError::Python(e) => e,
    })
}

/// A SQL statement with `?` for parameters. `names` contains the names that `?` replaced, in order.
pub(crate) struct BoundSql {
    pub(crate) sql: String,
    names: Option<Vec<String>>,
    dialect: Dialect,
    /// The parameter types from `setinputsizes`.
    pub(crate) declared: Vec<Option<Declared>>,
}

impl BoundSql {
    /// Creates a statement. If `parameters` is a mapping, replaces each `:name` and `%(name)s` with
    /// `?`. `names_in` returns the names in the SQL.
    pub(crate) fn new(
        sql: &Bound<'_, PyString>,
        parameters: Option<&Bound<'_, PyAny>>,
        dialect: Dialect,
        names_in: impl FnOnce(&str) -> PyResult<Option<Vec<String>>>,
    ) -> PyResult<BoundSql> {
        let py = sql.py();
        let sql = utf8(py, sql, "the statement", &mut Tally::default())?;
        let Some(parameters) = parameters.filter(|p| is_mapping(p)) else {
            return Ok(BoundSql {
                sql,
                names: None,
                dialect,
                declared: Vec::new(),
            });
        };
        let own = match sql.contains("%(") {
            true => None,
            false => names_in(&sql)?,
        };
        let named = match own {
            Some(names) => Named {
                sql,
                names,
                n_statements: 1,
            },
            None => named::by_name(&sql, dialect).map_err(|e| errors::to_py(py, &e))?,
        };
        if named.names.is_empty() && parameters.len()? > 0 {
            return Err(errors::programming(
                py,
                "the parameters are passed by name, and the statement has no named ones\n\
                 write `:name` or `%(name)s`, or pass a sequence for `?`",
            ));
        }
        Ok(BoundSql {
            sql: named.sql,
            names: Some(named.names),
            dialect,
            declared: Vec::new(),
        })
    }

    /// Converts the parameters of one execution, and adds their bytes to `ledger`.
    pub(crate) fn values(
        &self,
        parameters: &Bound<'_, PyAny>,
        adapters: Option<&Bound<'_, PyDict>>,
        ledger: &Ledger,
    ) -> PyResult<Vec<Value>> {
        let adapters = adapters.filter(|a| !a.is_empty());
        let mut tally = Tally::default();
        let mut values = Vec::with_capacity(likely_len(parameters));
        match &self.names {
            None => {
                let has_no_order = parameters.is_instance_of::<PySet>()
                    || parameters.is_instance_of::<PyFrozenSet>();
                if parameters.is_instance_of::<PyString>() || has_no_order || is_mapping(parameters)
                {
                    return Err(PyTypeError::new_err(format!(
                        "parameters must be a sequence with one item for each `?`, not `{}`",
                        type_name(parameters)
                    )));
                }
                for (i, item) in parameters.try_iter()?.enumerate() {
                    values.push(value(&item?, i, adapters, self.dialect, &mut tally)?);
                }
            }
            Some(names) => {
                if !is_mapping(parameters) {
                    return Err(PyTypeError::new_err(format!(
                        "the first row of parameters is a mapping, this one is a `{}`: pass mappings only",
                        type_name(parameters)
                    )));
                }
                for (i, name) in names.iter().enumerate() {
                    let item = parameters
                        .get_item(name)
                        .map_err(|e| missing(e, name, parameters))?;
                    values.push(value(&item, i, adapters, self.dialect, &mut tally)?);
                }
            }
        }
        for (value, declared) in values.iter_mut().zip(&self.declared) {
            if let Some(declared) = declared {
                let inner = std::mem::replace(value, Value::Null);
                *value = Value::Declared(Box::new(inner), *declared);
            }
        }
        tally.enter(ledger, Stage::Parameters);
        Ok(values)
    }
}

/// Converts one column of values. `position` is the index of its parameter (from 0).
pub(crate) fn column(
    values: &Bound<'_, PyAny>,
    position: usize,
    adapters: Option<&Bound<'_, PyDict>>,
    dialect: Dialect,
    tally: &mut Tally,
) -> PyResult<Vec<Value>> {
    let is_one = values.is_instance_of::<PyString>() || is_mapping(values);
    if is_one || binary::is_bytes(values) {
        return Err(PyTypeError::new_err(format!(
            "a column must be an array or a sequence of values, not `{}`",
            type_name(values)
        )));
    }
    let adapters = adapters.filter(|a| !a.is_empty());
    let mut made = Vec::with_capacity(likely_len(values));
    for item in values.try_iter()? {
        made.push(value(&item?, position, adapters, dialect, tally)?);
    }
    Ok(made)
}

/// Returns `__len__`, but at most 1024, because it may be wrong.
fn likely_len(items: &Bound<'_, PyAny>) -> usize {
    items.len().unwrap_or(0).min(1024)
}

fn is_mapping(parameters: &Bound<'_, PyAny>) -> bool {
    parameters.is_instance_of::<PyDict>()
        || (!parameters.is_instance_of::<PyList>()
            && !parameters.is_instance_of::<PyTuple>()
            && parameters.hasattr("keys").unwrap_or(false))
}

/// Replaces a `KeyError` with an error that names the missing parameter.
fn missing(error: PyErr, name: &str, parameters: &Bound<'_, PyAny>) -> PyErr {
    let py = parameters.py();
    if parameters.is_instance_of::<PyDict>() || error.is_instance_of::<PyKeyError>(py) {
        return errors::programming(py, &format!("there is no value for the parameter `{name}`"));
    }
    error
}

/// Converts one parameter. `position` is its index in errors (from 0).
fn value(
    item: &Bound<'_, PyAny>,
    position: usize,
    adapters: Option<&Bound<'_, PyDict>>,
    dialect: Dialect,
    tally: &mut Tally,
) -> PyResult<Value> {
    if let Some(adapters) = adapters {
        // The nearest class in the MRO with an adapter applies.
        for class in item.get_type().mro() {
            if let Some(adapt) = adapters.get_item(class)? {
                let adapted = call_one(&adapt, item)?;
                return plain_value(&adapted, position, dialect, tally);
            }
        }
    }
    plain_value(item, position, dialect, tally)
}

/// Converts the result of a SQL function in Python.
pub(crate) fn result_of_function(item: &Bound<'_, PyAny>) -> PyResult<Value> {
    plain_value(item, 0, Dialect::Sqlite, &mut Tally::default())
}

/// Same as [`value`], but calls no adapter.
pub(crate) fn plain_value(
    item: &Bound<'_, PyAny>,
    position: usize,
    dialect: Dialect,
    tally: &mut Tally,
) -> PyResult<Value> {
    let py = item.py();
    if item.is_none() {
        return Ok(Value::Null);
    }
    if let Ok(string) = item.cast::<PyString>() {
        let what = format_args!("parameter {}", position + 1);
        return utf8(py, string, what, tally).map(Value::Text);
    }
    if let Ok(v) = item.cast::<PyBool>() {
        return Ok(Value::Bool(v.is_true()));
    }
    if item.is_instance_of::<PyInt>() {
        return match item.extract::<i64>() {
            Ok(v) => Ok(Value::I64(v)),
            Err(_) => Ok(Value::Decimal(ascii(
                &item.call_method0("__int__")?.str()?,
            )?)),
        };
    }
    if let Ok(v) = item.cast::<PyFloat>() {
        return Ok(Value::F64(v.value()));
    }
    if let Ok(v) = item.cast::<PyDateTime>() {
        if temporal::is_nat(v)? {
            return Ok(Value::Null);
        }
        return timestamp(v).map(Value::Timestamp);
    }
    if let Ok(v) = item.cast::<PyDate>() {
        return Ok(Value::Date(date(v)));
    }
    if let Ok(v) = item.cast::<PyTime>() {
        if v.get_tzinfo().is_none() {
            return Ok(Value::Time(time(v)));
        }
        if dialect == Dialect::Postgres && !item.call_method0("utcoffset")?.is_none() {
            let text = ascii(item.call_method0("isoformat")?.cast()?)?;
            return Ok(Value::Cast(text, "time with time zone"));
        }
        return Err(refused(
            item,
            position,
            "a time with a zone that has a fixed offset has a type in PostgreSQL only",
        ));
    }
    if item.is_instance(number::decimal_class(py)?)? {
        return decimal(item, position, dialect);
    }
    if item.is_instance(uuid::class(py)?)? {
        let value: u128 = item.getattr(pyo3::intern!(py, "int"))?.extract()?;
        return Ok(Value::Uuid(value.to_be_bytes()));
    }
    if let Ok(v) = item.cast::<PyDelta>() {
        return delta(v, position, dialect);
    }
    // A scalar of NumPy is a buffer too.
    if !binary::is_bytes(item) && ndarray::is_generic(item)? {
        return match numpy_scalar::convert(item)? {
            Some(Converted::Value(value)) => Ok(value),
            Some(Converted::Delta(v)) => delta(&v, position, dialect),
            None => Err(refused(
                item,
                position,
                "no type of the database corresponds to this type or unit of NumPy",
            )),
        };
    }
    if let Some(bytes) = buffer::copy_of(item.as_borrowed())? {
        return Ok(Value::Bytes(bytes));
    }
    let made = array::structured(item, position, dialect, tally)?;
    made.ok_or_else(|| refused(
        item,
        position,
        "take one of None, bool, int, float, str, bytes, Decimal, date, time, datetime, timedelta, UUID",
    ))
}

fn delta(v: &Bound<'_, PyDelta>, position: usize, dialect: Dialect) -> PyResult<Value> {
    match dialect {
        Dialect::Postgres => Ok(Value::Cast(interval(micros(v)), "interval")),
        Dialect::MySql => Ok(Value::Text(clock(micros(v)))),
        _ => Err(refused(
            v,
            position,
            "this database has no type for a span of time",
        )),
    }
}

fn refused(item: &Bound<'_, PyAny>, position: usize, remedy: &str) -> PyErr {
    PyTypeError::new_err(format!(
        "parameter {} is a `{}`\n{remedy}",
        position + 1,
        type_name(item)
    ))
}

fn type_name(item: &Bound<'_, PyAny>) -> String {
    item.get_type()
        .name()
        .map_or_else(|_| "?".to_owned(), |n| n.to_string())
}

/// Converts a `Decimal` to its exact text without an exponent. Only PostgreSQL accepts NaN and the
/// infinities.
fn decimal(item: &Bound<'_, PyAny>, position: usize, dialect: Dialect) -> PyResult<Value> {
    let py = item.py();
    if item.get_type().is(number::decimal_class(py)?) {
        // `str` is three times as fast as `format`. The results differ only with an exponent.
        let digits = ascii(&item.str()?)?;
        let is_plain = |b: u8| b.is_ascii_digit() || matches!(b, b'-' | b'.');
        if digits.bytes().all(is_plain) {
            return Ok(Value::Decimal(digits));
        }
    }
    if !item.call_method0("is_finite")?.is_truthy()? {
        if dialect == Dialect::Postgres {
            let text = if item.call_method0("is_nan")?.is_truthy()? {
                "NaN"
            } else if item.call_method0("is_signed")?.is_truthy()? {
                "-Infinity"
            } else {
                "Infinity"
            };
            // The ODBC driver cannot derive a precision from text without digits.
            return Ok(Value::Cast(text.to_owned(), "numeric"));
        }
        return Err(errors::to_py(
            py,
            &Error::new(
                ErrorKind::Data,
                format!(
                    "parameter {} is `{}`, which an SQL decimal cannot represent",
                    position + 1,
                    item.str()?
                ),
            ),
        ));
    }
    let digits = item.call_method1("__format__", ("f",))?;
    Ok(Value::Decimal(ascii(digits.cast()?)?))
}

/// Converts the `str` of a number, which is ASCII.
fn ascii(string: &Bound<'_, PyString>) -> PyResult<String> {
    utf8(string.py(), string, "a number", &mut Tally::default())
}

fn date(v: &impl PyDateAccess) -> Date {
    Date {
        year: v.get_year(),
        month: v.get_month(),
        day: v.get_day(),
    }
}

fn time(v: &impl PyTimeAccess) -> Time {
    Time {
        hour: v.get_hour(),
        minute: v.get_minute(),
        second: v.get_second(),
        nanosecond: v.get_microsecond() * 1000,
    }
}

const DAY: i128 = 86_400_000_000;

fn micros(v: &Bound<'_, PyDelta>) -> i128 {
    let seconds = i64::from(v.get_days()) * 86_400 + i64::from(v.get_seconds());
    i128::from(seconds) * 1_000_000 + i128::from(v.get_microseconds())
}

/// Formats microseconds for MariaDB's `time`, for example `-26:00:00.000001`.
fn clock(micros: i128) -> String {
    let sign = if micros < 0 { "-" } else { "" };
    let (seconds, micros) = (
        micros.unsigned_abs() / 1_000_000,
        micros.unsigned_abs() % 1_000_000,
    );
    let (minutes, hours) = (seconds / 60 % 60, seconds / 3600);
    format!(
        "{sign}{hours:02}:{minutes:02}:{:02}.{micros:06}",
        seconds % 60
    )
}

/// Formats microseconds for PostgreSQL's `interval`, for example `-1 days -02:00:00`.
fn interval(micros: i128) -> String {
    let (days, rest) = (micros / DAY, micros % DAY);
    let time = clock(rest);
    let (seconds, fraction) = time.split_once('.').unwrap_or((&time, ""));
    let time = match fraction.trim_end_matches('0') {
        "" => seconds.to_owned(),
        fraction => format!("{seconds}.{fraction}"),
    };
    match (days, rest) {
        (0, _) => time,
        (1, 0) => "1 day".to_owned(),
        (1, _) => format!("1 day {time}"),
        (_, 0) => format!("{days} days"),
        _ => format!("{days} days {time}"),
    }
}

fn timestamp(v: &Bound<'_, PyDateTime>) -> PyResult<Timestamp> {
    let (date, time) = (date(v), time(v));
    if v.get_tzinfo().is_some()
        && let Ok(offset) = v.call_method0("utcoffset")?.cast::<PyDelta>()
    {
        let seconds = i64::from(offset.get_days()) * 86_400 + i64::from(offset.get_seconds());
        let offset_us = seconds * 1_000_000 + i64::from(offset.get_microseconds());
        if let Some(stamp) = Timestamp::with_offset(date, time, offset_us) {
            return Ok(stamp);
        }
    }
    // The datetime is naive.
    Ok(Timestamp {
        date,
        time,
        offset_minutes: None,
    })
}
