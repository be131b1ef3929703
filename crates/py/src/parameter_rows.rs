//! The rows of parameters of `executemany`.

use onecopy_rows::{Declared, Dialect, Error, ErrorKind, Value};
use onecopy_text::Ledger;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyIterator, PyString};

use crate::parameters::BoundSql;
use crate::raw::gil;

/// The largest number of rows in a batch. The iterator acquires the GIL once per batch.
const ROWS_AHEAD: usize = 1024;
/// The approximate size of the text in a batch, in bytes.
const BYTES_AHEAD: usize = 1 << 20;

/// The rows of parameters of `executemany`. The driver reads them without the GIL.
pub(crate) struct ParameterRows {
    /// The first row. A mapping passes parameters by name.
    first: Option<Py<PyAny>>,
    iterator: Py<PyIterator>,
    statement: BoundSql,
    adapters: Option<Py<PyDict>>,
    ledger: Ledger,
    ahead: std::vec::IntoIter<Vec<Value>>,
    ended: bool,
    /// The exception of the row after those in `ahead`.
    failure: Option<PyErr>,
    /// `true` until the iterator has returned an error for `failure`.
    has_error: bool,
}

impl ParameterRows {
    pub(crate) fn new(
        sql: &Bound<'_, PyString>,
        rows: &Bound<'_, PyAny>,
        dialect: Dialect,
        names_in: impl FnOnce(&str) -> PyResult<Option<Vec<String>>>,
        adapters: Option<&Bound<'_, PyDict>>,
        ledger: &Ledger,
    ) -> PyResult<ParameterRows> {
        let mut iterator = rows.try_iter()?;
        let first = iterator.next().transpose()?;
        Ok(ParameterRows {
            statement: BoundSql::new(sql, first.as_ref(), dialect, names_in)?,
            first: first.map(Bound::unbind),
            iterator: iterator.unbind(),
            adapters: adapters.map(|a| a.clone().unbind()),
            ledger: ledger.clone(),
            ahead: Vec::new().into_iter(),
            ended: false,
            failure: None,
            has_error: false,
        })
    }

    /// Sets the parameter types from `setinputsizes`.
    pub(crate) fn declare(&mut self, declared: Vec<Option<Declared>>) {
        self.statement.declared = declared;
    }

    /// Returns the SQL for the driver.
    pub(crate) fn sql(&self) -> String {
        self.statement.sql.clone()
    }

    /// Returns the exception that ended the rows early.
    pub(crate) fn take_failure(&mut self) -> Option<PyErr> {
        self.failure.take()
    }

    fn read_ahead(&mut self) {
        gil::attach(|py| {
            let mut batch = Vec::new();
            let mut n_bytes = 0;
            let mut iterator = self.iterator.bind(py).clone();
            let adapters = self.adapters.as_ref().map(|a| a.bind(py));
            let mut first = self.first.take().map(|row| Ok(row.into_bound(py)));
            while batch.len() < ROWS_AHEAD && n_bytes < BYTES_AHEAD {
                let Some(row) = first.take().or_else(|| iterator.next()) else {
                    self.ended = true;
                    break;
                };
                match row.and_then(|row| self.statement.values(&row, adapters, &self.ledger)) {
                    Ok(values) => {
                        n_bytes += values.iter().map(Value::len_bytes).sum::<usize>();
                        batch.push(values);
                    }
                    Err(e) => {
                        self.ended = true;
                        self.failure = Some(e);
                        self.has_error = true;
                        break;
                    }
                }
            }
            self.ahead = batch.into_iter();
        });
    }
}

impl Iterator for ParameterRows {
    type Item = Result<Vec<Value>, Error>;

    fn next(&mut self) -> Option<Result<Vec<Value>, Error>> {
        if self.ahead.len() == 0 && !self.ended {
            self.read_ahead();
        }
        if let Some(row) = self.ahead.next() {
            return Some(Ok(row));
        }
        // The error makes the database roll back. The caller then raises the exception.
        std::mem::take(&mut self.has_error).then(|| {
            let message = "a Python exception ended the rows of parameters";
            Err(Error::new(ErrorKind::Interface, message))
        })
    }
}
