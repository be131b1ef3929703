//! `LongValue`: a string or binary value that is read in parts.

use onecopy_rows::{Error, ErrorKind, LongForm, LongPart};
use onecopy_text::{Stage, Tally, Units};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyInt, PyString, PyTuple};

use super::Cursor;
use crate::guard::Guarded;
use crate::parameters::utf8;
use crate::raw::{buffer, text};
use crate::{errors, ledger};

/// The number of bytes per call to the driver.
const PART_BYTES: usize = 64 << 10;

/// The position of a row: the number of the result, and the row in this result from 1.
#[derive(Clone, Copy, PartialEq, Eq)]
struct RowPosition {
    result: u64,
    n_taken: usize,
}

/// A value of a deferred column that is being read. The file objects of `onecopy._long_values` are
/// based on it.
#[pyclass(frozen, module = "onecopy._core")]
pub(crate) struct LongValue {
    cursor: Py<Cursor>,
    column: usize,
    place: RowPosition,
    reading: Guarded<Reading>,
}

/// The buffer of a value that is read in parts.
struct Reading {
    window: Vec<u8>,
    /// The start of the unread bytes in `window`; they end at `to`.
    from: usize,
    to: usize,
    form: LongForm,
    /// The number of bytes read from the driver.
    offset: u64,
    is_at_end: bool,
}

impl Cursor {
    /// Returns the index of a column, given by its name or index from 0.
    fn column(&self, py: Python<'_>, column: &Bound<'_, PyAny>) -> PyResult<usize> {
        let state = self.with_rows(py)?;
        let columns = &state.schema.columns;
        if column.is_instance_of::<PyInt>() {
            let found = column
                .extract::<usize>()
                .ok()
                .filter(|i| *i < columns.len());
            let refused = || {
                format!(
                    "there is no column {column}: the first of {} is 0",
                    columns.len()
                )
            };
            return found.ok_or_else(|| errors::programming(py, &refused()));
        }
        let name = column.cast::<PyString>().map_err(|_| {
            PyTypeError::new_err("a column is given by its name or by its index from 0")
        })?;
        let name = &utf8(py, name, "a column's name", &mut Tally::default())?;
        let mut alike = (0..columns.len()).filter(|i| columns[*i].name == *name);
        match (alike.next(), alike.next()) {
            (Some(found), None) => Ok(found),
            (None, _) => Err(errors::programming(
                py,
                &format!("there is no column `{name}`"),
            )),
            _ => Err(errors::programming(
                py,
                &format!("two columns are named `{name}`\ntell the one that is meant by its index"),
            )),
        }
    }

    /// Omits `columns` from the rows. It is an error if rows have been fetched.
    pub(super) fn leave_out(&self, py: Python<'_>, columns: &[Bound<'_, PyAny>]) -> PyResult<()> {
        let mut found = Vec::with_capacity(columns.len());
        for column in columns {
            found.push(self.column(py, column)?);
        }
        found.sort_unstable();
        found.dedup();
        let mut state = self.with_rows(py)?;
        if let Some(active) = &mut state.active {
            active.defer(py, found.clone())?;
        }
        state.deferred = found;
        Ok(())
    }

    /// Checks that the value of a deferred column can be opened, and marks it as opened.
    fn note_opened(&self, py: Python<'_>, column: usize) -> PyResult<RowPosition> {
        let mut state = self.with_rows(py)?;
        let n_taken = state.n_taken;
        let name = &state.schema.columns[column].name;
        let refused = if !state.deferred.contains(&column) {
            Some(format!(
                "`{name}` is not deferred\ncall `defer(\"{name}\")` before rows are fetched"
            ))
        } else if n_taken == 0 {
            Some("no row was fetched yet".to_owned())
        } else if state.opened.0 == n_taken && state.opened.1.contains(&column) {
            Some(format!(
                "`{name}` of this row was opened before: it is read once"
            ))
        } else {
            None
        };
        if let Some(refused) = refused {
            return Err(errors::programming(py, &refused));
        }
        if state.opened.0 != n_taken {
            state.opened = (n_taken, Vec::new());
        }
        state.opened.1.push(column);
        Ok(RowPosition {
            result: state.result,
            n_taken,
        })
    }

    /// Reads the next part of a deferred value. It is an error if the row at `place` is no longer
    /// current.
    fn read_part(
        &self,
        py: Python<'_>,
        place: RowPosition,
        column: usize,
        offset: u64,
        buffer: &mut [u8],
    ) -> PyResult<Option<LongPart>> {
        let mut state = self.open(py)?;
        let current = RowPosition {
            result: state.result,
            n_taken: state.n_taken,
        };
        if current != place || state.active.is_none() {
            return Err(errors::interface(
                py,
                "the row of this value has passed: the cursor was used since\n\
                 read a value before the next row is fetched",
            ));
        }
        if state.opened.1.last() != Some(&column) {
            return Err(errors::interface(
                py,
                "another value of the same row was opened since\n\
                 read one to its end before the next",
            ));
        }
        let active = state.active.as_mut().expect("looked at above");
        let part = active.read_part(py, column, offset, buffer)?;
        if let Some(part) = part.filter(|p| p.is_copied && p.form != LongForm::Bytes) {
            let mut tally = Tally::default();
            tally.copied_again(part.n_bytes);
            tally.enter(&ledger::current(py)?, Stage::Fetch);
        }
        Ok(part)
    }
}

impl LongValue {
    /// Opens a deferred value in the last fetched row. Returns `None` for NULL.
    pub(super) fn open(
        cursor: &Bound<'_, Cursor>,
        column: &Bound<'_, PyAny>,
        wants_text: bool,
    ) -> PyResult<Py<PyAny>> {
        let py = cursor.py();
        let index = cursor.get().column(py, column)?;
        let place = cursor.get().note_opened(py, index)?;
        let mut reading = Reading {
            window: vec![0; PART_BYTES],
            from: 0,
            to: 0,
            form: LongForm::Bytes,
            offset: 0,
            is_at_end: false,
        };
        // The first part shows the type of the value, or NULL.
        let first = cursor
            .get()
            .read_part(py, place, index, 0, &mut reading.window)?;
        let Some(first) = first else {
            return Ok(py.None());
        };
        reading.took(first);
        let is_text = first.form != LongForm::Bytes;
        if is_text != wants_text {
            let other = if is_text {
                "text\nread it with `open_text`"
            } else {
                "bytes\nread it with `open_binary`"
            };
            return Err(errors::programming(py, &format!("the value is {other}")));
        }
        let value = LongValue {
            cursor: cursor.clone().unbind(),
            column: index,
            place,
            reading: Guarded::new("value", reading),
        };
        let files = py.import("onecopy._long_values")?;
        let made =
            files.call_method1(if is_text { "open_text" } else { "open_binary" }, (value,))?;
        Ok(made.unbind())
    }

    /// Moves the unread bytes to the start of the buffer, and fills the rest.
    fn fill(&self, py: Python<'_>, reading: &mut Reading) -> PyResult<()> {
        reading.window.copy_within(reading.from..reading.to, 0);
        (reading.from, reading.to) = (0, reading.to - reading.from);
        if reading.is_at_end {
            return Ok(());
        }
        let place = &mut reading.window[reading.to..];
        let part =
            self.cursor
                .get()
                .read_part(py, self.place, self.column, reading.offset, place)?;
        match part {
            Some(part) => reading.took(part),
            None => reading.is_at_end = true,
        }
        Ok(())
    }
}

impl Reading {
    fn took(&mut self, part: LongPart) {
        (self.form, self.is_at_end) = (part.form, part.is_last);
        self.to += part.n_bytes;
        self.offset += part.n_bytes as u64;
    }

    fn waiting(&self) -> &[u8] {
        &self.window[self.from..self.to]
    }

    /// Returns the number of unread bytes that form complete characters. At the end of the value,
    /// every byte counts.
    fn whole_characters(&self) -> usize {
        let bytes = self.waiting();
        let len = bytes.len();
        if self.is_at_end {
            return len;
        }
        match self.form {
            LongForm::Bytes => len,
            LongForm::Utf16 => {
                let even = len & !1;
                let last = bytes[..even]
                    .last_chunk::<2>()
                    .map(|b| u16::from_ne_bytes(*b));
                let is_cut = last.is_some_and(|unit| (0xD800..0xDC00).contains(&unit));
                even - if is_cut { 2 } else { 0 }
            }
            LongForm::Utf8 => {
                // A UTF-8 sequence has at most four bytes. Its first byte determines its length.
                let start = (len.saturating_sub(4)..len)
                    .rev()
                    .find(|i| bytes[*i] & 0xC0 != 0x80);
                let Some(start) = start else { return len };
                let wanted = match bytes[start] {
                    0xF0.. => 4,
                    0xE0.. => 3,
                    0xC0.. => 2,
                    _ => 1,
                };
                if start + wanted > len { start } else { len }
            }
        }
    }
}

#[pymethods]
impl LongValue {
    /// Returns the next characters of the value, from up to 64 KiB. Returns an empty `str` at the
    /// end.
    fn read_text<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let mut reading = self.reading.lock(py)?;
        let mut n = reading.whole_characters();
        while n == 0 && !(reading.is_at_end && reading.waiting().is_empty()) {
            self.fill(py, &mut reading)?;
            n = reading.whole_characters();
        }
        let bytes = &reading.waiting()[..n];
        let units = match reading.form {
            LongForm::Utf16 => buffer::as_units(bytes).map(Units::Utf16),
            _ => Some(Units::Utf8(bytes)),
        };
        let connection = self.cursor.get().connection.get();
        let mut tally = Tally::default();
        let made = match units {
            Some(units) => text::make_of_cell(py, units, connection.policy(), &mut tally),
            None => {
                return Err(errors::interface(
                    py,
                    "the driver gave half a unit of UTF-16",
                ));
            }
        };
        let made = made.map_err(|e| match e {
            text::MakeError::Python(e) => e,
            text::MakeError::Malformed(e) => {
                let before = reading.offset - reading.waiting().len() as u64;
                let what = match reading.form {
                    LongForm::Utf16 => format!("16-bit unit {}", before / 2 + e.at_units as u64),
                    _ => format!("byte {}", before + e.at_units as u64),
                };
                let message = format!(
                    "malformed text: {} at {what}\nfix it in the database",
                    e.kind
                );
                let error = Error::new(ErrorKind::Malformed, message);
                errors::to_py(py, &error.at_row(self.place.n_taken as u64 - 1))
            }
        })?;
        tally.enter(&ledger::current(py)?, Stage::Decode);
        reading.from += n;
        Ok(made)
    }

    /// Reads bytes of the value into a writable buffer. Returns the number of bytes: 0 at the end.
    fn read_into(&self, py: Python<'_>, buffer: &Bound<'_, PyAny>) -> PyResult<usize> {
        let mut reading = self.reading.lock(py)?;
        if reading.waiting().is_empty() {
            self.fill(py, &mut reading)?;
        }
        let n = buffer::with_writable(buffer.as_borrowed(), |place| {
            let waiting = reading.waiting();
            let n = waiting.len().min(place.len());
            buffer::put(&mut place[..n], &waiting[..n]);
            Ok(n)
        })?;
        reading.from += n;
        Ok(n)
    }
}

#[pymethods]
impl Cursor {
    /// Defers columns of long strings or bytes, and returns the cursor. In the rows, ``...``
    /// replaces their values. `open_text` and `open_binary` read the values of the current row in
    /// parts.
    ///
    /// Args:
    ///     columns: the names of columns, or their indices from 0.
    ///
    /// Raises:
    ///     ProgrammingError: rows were fetched already, there is no such column, or the column
    ///         contains neither text nor bytes.
    ///
    /// >>> cur = onecopy.connect("sqlite::memory:").execute("select 7 as id, 'a long story' as body").defer("body")
    /// >>> cur.fetchone()
    /// (7, Ellipsis)
    /// >>> cur.open_text("body").read(6)
    /// 'a long'
    #[pyo3(signature = (*columns))]
    fn defer<'py>(
        slf: Bound<'py, Self>,
        columns: &Bound<'py, PyTuple>,
    ) -> PyResult<Bound<'py, Self>> {
        let columns: Vec<_> = columns.iter().collect();
        slf.get().leave_out(slf.py(), &columns)?;
        Ok(slf)
    }

    /// Opens the text in a deferred column of the last fetched row as an `io.TextIOBase`; ``None``
    /// for NULL. The file is readable until the next row is fetched or another value is opened.
    /// Each value can be opened once.
    ///
    /// Args:
    ///     column: the name of a column, or its index from 0.
    ///
    /// Raises:
    ///     ProgrammingError: the column was not deferred or contains bytes, there is no current
    ///         row, or the value was opened before.
    ///
    /// Copies: none except for the conversion to ``str``; SQLite's text is also copied once.
    /// Memory: one buffer of 64 KiB, and the buffers of the driver.
    fn open_text(slf: &Bound<'_, Self>, column: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        LongValue::open(slf, column, true)
    }

    /// Opens the bytes in a deferred column of the last fetched row as an `io.BufferedReader`;
    /// ``None`` for NULL. The file is readable until the next row is fetched or another value is
    /// opened.
    ///
    /// >>> cur = onecopy.connect("sqlite::memory:").execute("select zeroblob(100000) as picture").defer("picture")
    /// >>> for _ in cur:
    /// ...     with cur.open_binary("picture") as file:
    /// ...         print(len(file.read(8)), len(file.read()))
    /// 8 99992
    fn open_binary(slf: &Bound<'_, Self>, column: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        LongValue::open(slf, column, false)
    }
}
