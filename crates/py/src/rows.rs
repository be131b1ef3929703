//! The Python rows sink: each cell becomes an object once, straight in its row's tuple.

use onecopy_rows::{Cell, Error, ErrorKind, LongKind, RowSink, Schema};
use onecopy_text::{Malformed, Policy, Tally, Units};
use onecopy_wire::WriteError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyType, PyTzInfo};

use crate::errors;
use crate::raw::collector::HeldOff;
use crate::raw::row::Rows;
use crate::raw::seen::Seen;
use crate::raw::{binary, number, temporal, text, uuid};

/// Why a cell could not become an object.
#[derive(Debug)]
pub(crate) struct CellError {
    column: usize,
    why: Why,
}

#[derive(Debug)]
enum Why {
    /// Malformed text under the strict policy; `Units` tell what the position counts.
    Malformed(Malformed, &'static str),
    /// The driver gives it for a value of the column's type, and it is none.
    Invalid(WriteError),
    /// Python refused the value: `ValueError` for a date it does not have, `MemoryError`.
    Python(PyErr),
    /// A long value in parts was sent to a sink that asked for whole ones.
    Parts,
}

impl CellError {
    /// A long value of `column` came in parts.
    pub(crate) fn in_parts(column: usize) -> CellError {
        let why = Why::Parts;
        CellError { column, why }
    }

    /// The exception: `DataError` with column and row (from 0), or Python's own where memory ran out.
    pub(crate) fn into_py(self, py: Python<'_>, schema: &Schema, row: u64) -> PyErr {
        let (kind, message) = match self.why {
            Why::Malformed(e, units) => (
                ErrorKind::Malformed,
                format!(
                    "malformed text: {} at {units} {}\nmend it in the database",
                    e.kind, e.at_units
                ),
            ),
            Why::Invalid(e) => {
                return errors::to_py(py, &schema.invalid_value(&e.to_string(), self.column, row));
            }
            Why::Python(e) if e.is_instance_of::<pyo3::exceptions::PyValueError>(py) => {
                let message = format!(
                    "Python has no such value: {}\nselect it as text, with a cast in the query",
                    e.value(py)
                );
                let error = errors::to_py(py, &schema.invalid_value(&message, self.column, row));
                error.set_cause(py, Some(e));
                return error;
            }
            Why::Python(e) => return e,
            Why::Parts => (
                ErrorKind::Internal,
                "a long value came in parts where it was asked for whole".to_owned(),
            ),
        };
        let name = schema
            .columns
            .get(self.column)
            .map_or("", |c| c.name.as_str());
        let error = Error::new(kind, message)
            .at_column(self.column, name)
            .at_row(row);
        errors::to_py(py, &error)
    }
}

/// The sink. Row order for SQLite, column order for blocks.
pub(crate) struct PyRows<'py> {
    py: Python<'py>,
    policy: Policy,
    decimal: Bound<'py, PyType>,
    /// Offsets of one result are few: the last one is kept.
    zone: Option<(i16, Bound<'py, PyTzInfo>)>,
    rows: Rows<'py>,
    /// Texts that stood in each column before; none where they are not to be shared.
    seen: Vec<Seen>,
    /// Row order: stop at this many rows.
    limit: usize,
    /// Text handled, to be entered into a ledger by the caller.
    pub(crate) tally: Tally,
    /// Text that fetching has moved, likewise.
    pub(crate) fetched: Tally,
    held_off: Option<HeldOff<'py>>,
}

impl<'py> PyRows<'py> {
    /// A sink for rows of `n_columns` columns.
    pub(crate) fn new(py: Python<'py>, n_columns: usize, policy: Policy) -> PyResult<PyRows<'py>> {
        Ok(PyRows {
            py,
            policy,
            decimal: number::decimal_class(py)?.clone(),
            zone: None,
            rows: Rows::new(py, n_columns),
            seen: Vec::new(),
            limit: usize::MAX,
            tally: Tally::default(),
            fetched: Tally::default(),
            held_off: None,
        })
    }

    /// Lets equal short texts of a column be one `str`, with what was seen of these `n_columns` columns before, where it was.
    #[inline]
    pub(crate) fn remember(&mut self, n_columns: usize, seen: &mut Vec<Seen>) {
        self.seen = std::mem::take(seen);
        if self.seen.is_empty() {
            self.seen.resize_with(n_columns, Seen::new);
        }
    }

    /// Gives what was seen back.
    #[inline]
    pub(crate) fn seen(&mut self) -> Vec<Seen> {
        std::mem::take(&mut self.seen)
    }

    /// Row order: takes no more rows when this many stand here.
    pub(crate) fn set_limit(&mut self, limit: usize) {
        self.limit = limit;
    }

    /// The rows made so far, complete ones first; those that failed are dropped by taking.
    pub(crate) fn rows(&mut self) -> &mut Rows<'py> {
        &mut self.rows
    }

    /// Puts `...` into these columns of the complete rows.
    pub(crate) fn leave_out(&mut self, columns: &[usize]) {
        for &column in columns {
            for row in 0..self.rows.n_complete() {
                let left_out = self.py.Ellipsis().into_bound(self.py);
                self.rows.set(row, column, left_out);
            }
        }
    }

    /// Forgets all rows, complete or not: for a second try in row order.
    pub(crate) fn clear(&mut self) {
        self.rows.clear();
        self.held_off = None;
        self.tally = Tally::default();
    }

    /// The object of a cell, for who puts it elsewhere.
    #[inline]
    pub(crate) fn object_of(
        &mut self,
        column: usize,
        cell: Cell<'_>,
    ) -> Result<Bound<'py, PyAny>, CellError> {
        self.object(column, cell)
            .map_err(|why| CellError { column, why })
    }

    #[inline]
    fn object(&mut self, column: usize, cell: Cell<'_>) -> Result<Bound<'py, PyAny>, Why> {
        let py = self.py;
        match cell {
            Cell::Null => Ok(py.None().into_bound(py)),
            Cell::Text(units) => self.text(column, units),
            Cell::I64(v) => number::int(py, v).map_err(Why::Python),
            Cell::F64(v) => number::float(py, v).map_err(Why::Python),
            Cell::Decimal(digits) => {
                if !onecopy_wire::is_decimal(digits) {
                    return Err(Why::Invalid(WriteError::NotADecimal));
                }
                let digits = text::make_of_cell(
                    py,
                    Units::Latin1(digits),
                    self.policy,
                    &mut Tally::default(),
                );
                let digits = digits.map_err(|e| self.why(e, "byte"))?;
                number::decimal(&self.decimal, digits).map_err(Why::Python)
            }
            Cell::Timestamp(t, _) => match t.offset_minutes {
                None => temporal::datetime(py, &t, None).map_err(Why::Python),
                Some(offset) => {
                    let zone = self.zone(offset).map_err(Why::Python)?;
                    temporal::datetime(py, &t, Some(zone)).map_err(Why::Python)
                }
            },
            other => self.rare(other),
        }
    }

    /// The kinds that are not worth a place in the hot path.
    #[cold]
    #[inline(never)]
    fn rare(&mut self, cell: Cell<'_>) -> Result<Bound<'py, PyAny>, Why> {
        let py = self.py;
        match cell {
            Cell::Bool(v) => Ok(PyBool::new(py, v).to_owned().into_any()),
            Cell::U64(v) => Ok(v.into_pyobject(py).map_err(|e| match e {})?.into_any()),
            // The value of a 32-bit float, widened: what every driver of Python gives.
            Cell::F32(v) => number::float(py, onecopy_wire::number::widen(v)).map_err(Why::Python),
            Cell::Bytes(v) => binary::make(py, v).map_err(Why::Python),
            Cell::Date(v) => temporal::date(py, v).map_err(Why::Python),
            Cell::Time(v, _) => temporal::time(py, v).map_err(Why::Python),
            Cell::Interval { microseconds, .. } => {
                temporal::delta(py, microseconds).map_err(Why::Python)
            }
            Cell::Uuid(v) => uuid::make(py, v).map_err(Why::Python),
            _ => Err(Why::Parts),
        }
    }

    #[inline]
    fn text(&mut self, column: usize, units: Units<'_>) -> Result<Bound<'py, PyAny>, Why> {
        let (py, policy, tally) = (self.py, self.policy, &mut self.tally);
        let made = match self.seen.get_mut(column) {
            Some(seen) => seen.make(py, units, policy, tally),
            None => text::make_of_cell(py, units, policy, tally),
        };
        made.map_err(|e| {
            let counted = match units {
                Units::Latin1(_) | Units::Utf8(_) => "byte",
                Units::Utf16(_) | Units::Ucs2(_) => "16-bit unit",
                Units::Utf32(_) => "32-bit unit",
            };
            self.why(e, counted)
        })
    }

    fn why(&self, error: text::MakeError, counted: &'static str) -> Why {
        match error {
            text::MakeError::Malformed(e) => Why::Malformed(e, counted),
            text::MakeError::Python(e) => Why::Python(e),
        }
    }

    fn zone(&mut self, offset_minutes: i16) -> PyResult<&Bound<'py, PyTzInfo>> {
        if self.zone.as_ref().is_none_or(|(o, _)| *o != offset_minutes) {
            self.zone = Some((offset_minutes, temporal::zone(self.py, offset_minutes)?));
        }
        Ok(&self.zone.as_ref().expect("it was set on the lines above").1)
    }

    #[inline]
    fn put(&mut self, row: usize, column: usize, cell: Cell<'_>) -> Result<(), CellError> {
        match self.object(column, cell) {
            Ok(object) => {
                self.rows.set(row, column, object);
                Ok(())
            }
            Err(why) => Err(CellError { column, why }),
        }
    }
}

impl RowSink for PyRows<'_> {
    type Error = CellError;

    const COLUMNS: bool = true;

    #[inline]
    fn begin_row(&mut self) -> Result<(), CellError> {
        self.held_off = Some(HeldOff::new(self.py));
        self.rows.grow(1).map_err(|e| CellError {
            column: 0,
            why: Why::Python(e),
        })
    }

    #[inline]
    fn cell(&mut self, column: usize, cell: Cell<'_>) -> Result<(), CellError> {
        self.put(self.rows.len() - 1, column, cell)
    }

    fn long_begin(&mut self, column: usize, _kind: LongKind) -> Result<(), CellError> {
        Err(CellError::in_parts(column))
    }

    fn long_part(&mut self, column: usize, _part: Cell<'_>) -> Result<(), CellError> {
        Err(CellError::in_parts(column))
    }

    fn long_end(&mut self, column: usize) -> Result<(), CellError> {
        Err(CellError::in_parts(column))
    }

    #[inline]
    fn end_row(&mut self) -> Result<bool, CellError> {
        self.rows.complete();
        self.held_off = None;
        Ok(self.rows.len() < self.limit)
    }

    fn begin_columns(&mut self, n_rows: usize) -> Result<(), CellError> {
        self.held_off = Some(HeldOff::new(self.py));
        self.rows.grow(n_rows).map_err(|e| CellError {
            column: 0,
            why: Why::Python(e),
        })
    }

    #[inline]
    fn column_cell(&mut self, row: usize, column: usize, cell: Cell<'_>) -> Result<(), CellError> {
        self.put(row, column, cell)
    }

    fn end_columns(&mut self) -> Result<(), CellError> {
        self.rows.complete();
        self.held_off = None;
        Ok(())
    }
}
