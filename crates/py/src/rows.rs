//! `PyRows`: a row sink that creates a Python object for each cell.

use onecopy_rows::{
    ArrayError, ArrayText, ArrayVisitor, Cell, Date, Error, ErrorKind, LongKind, RangeText,
    RowSink, Schema,
};
use onecopy_text::{Malformed, Policy, Tally, Units};
use onecopy_wire::WriteError;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyList, PyTuple, PyType, PyTzInfo};

use crate::errors;
use crate::range::Range;
use crate::raw::collector::HeldOff;
use crate::raw::text_cache::TextCache;
use crate::raw::tuple_builder::TupleBuilder;
use crate::raw::{binary, number, temporal, text, uuid};

/// The error of a cell.
#[derive(Debug)]
pub(crate) struct CellError {
    column: usize,
    why: Why,
}

#[derive(Debug)]
enum Why {
    /// Malformed text. The second field is the unit of the error position.
    Malformed(Malformed, &'static str),
    /// The driver returned an invalid value for the column's type.
    Invalid(WriteError),
    /// A Python exception, for example for a date that Python cannot represent.
    Python(PyErr),
    /// A part of a long value. The sink requires whole values.
    Parts,
}

impl CellError {
    /// Creates the error of a sink that requires whole values.
    pub(crate) fn in_parts(column: usize) -> CellError {
        let why = Why::Parts;
        CellError { column, why }
    }

    /// Converts the error to a `DataError` with the column and the row (from 0). A failed
    /// allocation keeps Python's exception.
    pub(crate) fn into_py(self, py: Python<'_>, schema: &Schema, row: u64) -> PyErr {
        let (kind, message) = match self.why {
            Why::Malformed(e, units) => (
                ErrorKind::Malformed,
                format!(
                    "malformed text: {} at {units} {}\nfix it in the database",
                    e.kind, e.at_units
                ),
            ),
            Why::Invalid(e) => {
                return errors::to_py(py, &schema.invalid_value(&e.to_string(), self.column, row));
            }
            Why::Python(e) if e.is_instance_of::<PyValueError>(py) => {
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
                "a long value arrived in parts, but this fetch requires the whole value".to_owned(),
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

/// A row sink that creates a tuple for each row. SQLite passes single rows; databases that fetch
/// blocks pass whole columns.
pub(crate) struct PyRows<'py> {
    py: Python<'py>,
    policy: Policy,
    decimal: Bound<'py, PyType>,
    /// The last time zone and its offset in minutes, for reuse.
    zone: Option<(i16, Bound<'py, PyTzInfo>)>,
    rows: TupleBuilder<'py>,
    /// The cache of strings for each column. Empty if strings are not shared.
    seen: Vec<TextCache>,
    /// The number of rows for a full sink. It does not apply to whole columns.
    limit: usize,
    /// The counts of converted text, for a ledger.
    pub(crate) tally: Tally,
    /// The counts of text that the source moved in memory, for a ledger.
    pub(crate) fetched: Tally,
    held_off: Option<HeldOff<'py>>,
}

impl<'py> PyRows<'py> {
    /// Creates a row sink for `n_columns` columns.
    pub(crate) fn new(py: Python<'py>, n_columns: usize, policy: Policy) -> PyResult<PyRows<'py>> {
        Ok(PyRows {
            py,
            policy,
            decimal: number::decimal_class(py)?.clone(),
            zone: None,
            rows: TupleBuilder::new(py, n_columns),
            seen: Vec::new(),
            limit: usize::MAX,
            tally: Tally::default(),
            fetched: Tally::default(),
            held_off: None,
        })
    }

    /// Makes equal short strings of a column share one `str`. `seen` contains the caches, or is
    /// empty.
    #[inline]
    pub(crate) fn remember(&mut self, n_columns: usize, seen: &mut Vec<TextCache>) {
        self.seen = std::mem::take(seen);
        if self.seen.is_empty() {
            self.seen.resize_with(n_columns, TextCache::new);
        }
    }

    /// Returns the caches of strings for the next sink.
    #[inline]
    pub(crate) fn seen(&mut self) -> Vec<TextCache> {
        std::mem::take(&mut self.seen)
    }

    /// Sets the number of rows for a full sink. It does not apply to whole columns.
    pub(crate) fn set_limit(&mut self, limit: usize) {
        self.limit = limit;
    }

    /// Returns the builder with the received rows. [`TupleBuilder::take`] returns the complete
    /// ones.
    pub(crate) fn rows(&mut self) -> &mut TupleBuilder<'py> {
        &mut self.rows
    }

    /// Replaces the values of `columns` with `...` in all complete rows.
    pub(crate) fn leave_out(&mut self, columns: &[usize]) {
        for &column in columns {
            for row in 0..self.rows.n_complete() {
                let left_out = self.py.Ellipsis().into_bound(self.py);
                self.rows.set(row, column, left_out);
            }
        }
    }

    /// Drops all received rows. The caller can then process the block again, row by row.
    pub(crate) fn clear(&mut self) {
        self.rows.clear();
        self.held_off = None;
        self.tally = Tally::default();
    }

    /// Creates the object of a cell, for sinks that do not build tuples.
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
            Cell::Timestamp(t, _) => {
                let made = match t.offset_minutes {
                    None => temporal::datetime(py, &t, None),
                    Some(offset) => {
                        let zone = self.zone(offset).map_err(Why::Python)?;
                        temporal::datetime(py, &t, Some(zone))
                    }
                };
                made.map_err(|e| far(t.date, e))
            }
            other => self.rare(other),
        }
    }

    /// Converts a cell of a rare type. Separate, so that the code for frequent types remains small.
    #[cold]
    #[inline(never)]
    fn rare(&mut self, cell: Cell<'_>) -> Result<Bound<'py, PyAny>, Why> {
        let py = self.py;
        match cell {
            Cell::Bool(v) => Ok(PyBool::new(py, v).to_owned().into_any()),
            Cell::U64(v) => Ok(v.into_pyobject(py).map_err(|e| match e {})?.into_any()),
            // The shortest decimal that identifies a 32-bit float, as in other drivers.
            Cell::F32(v) => number::float(py, onecopy_wire::number::widen(v)).map_err(Why::Python),
            Cell::Bytes(v) => binary::make(py, v).map_err(Why::Python),
            Cell::Date(v) => temporal::date(py, v).map_err(|e| far(v, e)),
            Cell::Time(v, _) => temporal::time(py, v, None).map_err(Why::Python),
            Cell::TimeTz {
                time,
                offset_seconds,
                ..
            } => {
                let made = temporal::zone_of_seconds(py, offset_seconds)
                    .and_then(|zone| temporal::time(py, time, Some(&zone)));
                made.map_err(Why::Python)
            }
            Cell::Interval {
                days, microseconds, ..
            } => temporal::delta(py, days, microseconds).map_err(Why::Python),
            Cell::Uuid(v) => uuid::make(py, v).map_err(Why::Python),
            Cell::Json(units) => {
                let made = text::make_of_cell(py, units, self.policy, &mut self.tally);
                made.map_err(|e| self.why(e, "byte"))
            }
            Cell::Array(array) => self.list(array),
            Cell::Range(range) => self.range(range),
            _ => Err(Why::Parts),
        }
    }

    /// Converts a database array to a list, nested for several dimensions.
    fn list(&mut self, array: ArrayText<'_>) -> Result<Bound<'py, PyAny>, Why> {
        self.rows.track();
        let mut lists = Lists {
            sink: self,
            open: Vec::new(),
            done: None,
        };
        array.visit(&mut lists).map_err(|error| match error {
            ArrayError::Malformed => Why::Invalid(WriteError::NotAnArray),
            ArrayError::Visitor(why) => why,
        })?;
        lists.done.ok_or(Why::Invalid(WriteError::NotAnArray))
    }

    /// Converts a range to a `Range`, and a multirange to a tuple of ranges.
    fn range(&mut self, range: RangeText<'_>) -> Result<Bound<'py, PyAny>, Why> {
        let py = self.py;
        let Some(parsed) = range.parse() else {
            // The type of the bounds is not built-in, so the result is text.
            return self.object(usize::MAX, Cell::Range(range).or_text());
        };
        let mut made = Vec::with_capacity(parsed.len());
        for range in parsed {
            let lower = self.object(usize::MAX, range.lower)?;
            let upper = self.object(usize::MAX, range.upper)?;
            let includes = (range.includes_lower, range.includes_upper);
            let range = Range::of(lower, upper, includes, range.is_empty);
            made.push(Bound::new(py, range).map_err(Why::Python)?.into_any());
        }
        match (made.pop(), range.is_multi) {
            (Some(range), false) => Ok(range),
            (last, _) => {
                made.extend(last);
                let ranges = PyTuple::new(py, made).map_err(Why::Python)?;
                self.rows.track();
                Ok(ranges.into_any())
            }
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

/// Creates nested lists from the elements of an array.
struct Lists<'a, 'py> {
    sink: &'a mut PyRows<'py>,
    open: Vec<Bound<'py, PyList>>,
    done: Option<Bound<'py, PyAny>>,
}

impl Lists<'_, '_> {
    fn append(&mut self, object: Bound<'_, PyAny>) -> Result<(), Why> {
        match self.open.last() {
            Some(list) => list.append(object).map_err(Why::Python),
            None => Err(Why::Invalid(WriteError::NotAnArray)),
        }
    }
}

impl ArrayVisitor for Lists<'_, '_> {
    type Error = Why;

    fn begin(&mut self) -> Result<(), Why> {
        self.open.push(PyList::empty(self.sink.py));
        Ok(())
    }

    fn element(&mut self, cell: Cell<'_>) -> Result<(), Why> {
        // This index belongs to no column, so no cache applies.
        let object = self.sink.object(usize::MAX, cell)?;
        self.append(object)
    }

    fn end(&mut self) -> Result<(), Why> {
        let list = self.open.pop().map(Bound::into_any);
        match (list, self.open.is_empty()) {
            (Some(list), false) => self.append(list),
            (list, _) => {
                self.done = list;
                Ok(())
            }
        }
    }
}

/// Returns the error for a date that Python cannot represent.
#[cold]
fn far(date: Date, error: PyErr) -> Why {
    match date.infinity() {
        Some(name) => Why::Python(PyValueError::new_err(format!("`{name}`"))),
        None if date == Date::OTHER_STYLE => Why::Invalid(WriteError::YearOutOfRange(date.year)),
        None => Why::Python(error),
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
