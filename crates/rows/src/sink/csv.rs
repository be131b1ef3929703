//! `CsvRows`: the CSV output format, with a header line.

use onecopy_text::{ByteSink, Tally, Units, planted};
use onecopy_wire::csv::{self, Dialect, SCALAR_BYTES};
use onecopy_wire::{WriteError, base64};

use super::format::{RowFormat, ValueOptions};
use super::long::OpenLongValue;
use crate::cell::{Cell, LongKind};
use crate::schema::Schema;

/// The largest number of bytes that a delimiter and a value that is not text (such as a number or a
/// date) occupy.
const CELL_ROOM: usize = 1 + SCALAR_BYTES;

/// Writes a line of column names, then a line for each row. [`onecopy_wire::csv`] defines the
/// quoting and the line ends.
#[derive(Debug)]
pub struct CsvRows {
    schema: Schema,
    dialect: Dialect,
    options: ValueOptions,
    tally: Tally,
    long: OpenLongValue,
}

impl CsvRows {
    /// Creates the format for rows of this schema. Unlike in other formats, column names may be
    /// empty or equal.
    #[must_use]
    pub fn new(schema: &Schema, dialect: Dialect, options: ValueOptions) -> CsvRows {
        CsvRows {
            schema: schema.clone(),
            dialect,
            options,
            tally: Tally::default(),
            long: OpenLongValue::default(),
        }
    }

    #[inline(always)]
    fn text<S: ByteSink>(&mut self, units: Units<'_>, out: &mut S) -> Result<(), WriteError> {
        planted::extra_work_on_text(units);
        csv::write_text(units, self.options.policy, &self.dialect, out)?;
        // UTF-8 is scanned for quotes and then copied unchanged; the ledger counts the copy.
        self.tally.encoded(units);
        Ok(())
    }

    /// Writes a JSON value, an array, a range, a duration or a time with an offset as the text that
    /// the database sent. The function is separate from `text`, so that the compiler can inline
    /// `text`.
    #[inline(never)]
    fn as_text<S: ByteSink>(&mut self, cell: Cell<'_>, out: &mut S) -> Result<(), WriteError> {
        match cell.or_text() {
            Cell::Text(units) => self.text(units, out),
            _ => Ok(()),
        }
    }
}

impl RowFormat for CsvRows {
    fn begin<S: ByteSink>(&mut self, out: &mut S) -> Result<(), WriteError> {
        let names = self.schema.columns.iter().map(|c| c.name.as_str());
        csv::write_header(names, &self.dialect, out)
    }

    #[inline]
    fn begin_row<S: ByteSink>(&mut self, _: bool, _: &mut S) -> Result<(), WriteError> {
        Ok(())
    }

    #[inline]
    fn cell<S: ByteSink>(
        &mut self,
        column: usize,
        cell: Cell<'_>,
        out: &mut S,
    ) -> Result<(), WriteError> {
        let mut w = out.window(CELL_ROOM)?;
        if column > 0 {
            w.put_byte(self.dialect.delimiter());
        }
        match cell {
            Cell::Text(units) => {
                drop(w);
                self.text(units, out)?;
            }
            Cell::Null => {}
            Cell::Bool(value) => csv::put_bool(value, &mut w),
            Cell::I64(value) => csv::put_i64(value, &mut w),
            Cell::U64(value) => csv::put_u64(value, &mut w),
            Cell::F32(value) => csv::put_f32(value, self.options.non_finite, &mut w)?,
            Cell::F64(value) => csv::put_f64(value, self.options.non_finite, &mut w)?,
            Cell::Decimal(digits) => {
                drop(w);
                csv::write_decimal(digits, self.options.non_finite, out)?;
                self.tally.converted(digits.len());
            }
            Cell::Bytes(bytes) => {
                drop(w);
                // An empty binary value is written as `""`, as an empty text is, so that it differs
                // from NULL.
                if bytes.is_empty() {
                    out.put(b"\"\"")?;
                }
                base64::write(bytes, out)?;
            }
            Cell::Date(date) => date.put(&mut w)?,
            Cell::Time(time, digits) => time.put(digits, &mut w)?,
            Cell::Timestamp(stamp, digits) => stamp.put(digits, &mut w)?,
            Cell::Uuid(uuid) => csv::put_uuid(&uuid, &mut w),
            Cell::Json(_)
            | Cell::Array(_)
            | Cell::Range(_)
            | Cell::Interval { .. }
            | Cell::TimeTz { .. } => {
                drop(w);
                self.as_text(cell, out)?;
            }
        }
        Ok(())
    }

    fn long_begin<S: ByteSink>(
        &mut self,
        column: usize,
        kind: LongKind,
        out: &mut S,
    ) -> Result<(), WriteError> {
        if column > 0 {
            out.put_byte(self.dialect.delimiter())?;
        }
        self.long = OpenLongValue::of(kind);
        Ok(out.put_byte(b'"')?)
    }

    fn long_part<S: ByteSink>(&mut self, part: Cell<'_>, out: &mut S) -> Result<(), WriteError> {
        self.long.part(part, out, |carry, units, out| {
            csv::write_quoted_part(units, self.options.policy, carry, out)?;
            self.tally.encoded(units);
            Ok(())
        })
    }

    fn long_end<S: ByteSink>(&mut self, out: &mut S) -> Result<(), WriteError> {
        self.long.end(out, |carry, out| {
            carry.finish_utf8(self.options.policy, out)?;
            Ok(())
        })
    }

    #[inline]
    fn end_row<S: ByteSink>(&mut self, out: &mut S) -> Result<(), WriteError> {
        Ok(out.put(self.dialect.line_end())?)
    }

    fn end<S: ByteSink>(&mut self, _: &mut S) -> Result<(), WriteError> {
        Ok(())
    }

    #[inline]
    fn cell_room_bytes(&self) -> usize {
        CELL_ROOM
    }

    fn tally(&mut self) -> &mut Tally {
        &mut self.tally
    }
}
