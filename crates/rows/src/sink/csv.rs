//! CSV with a header line.

use onecopy_text::{ByteSink, Tally, Units, planted};
use onecopy_wire::csv::{self, Dialect, SCALAR_BYTES};
use onecopy_wire::{WriteError, base64};

use super::format::{RowFormat, ValueOptions, time, timestamp};
use super::long::Long;
use crate::cell::{Cell, LongKind};
use crate::schema::Schema;

/// A delimiter and a value whose size is known.
const CELL_ROOM: usize = 1 + SCALAR_BYTES;

/// A line of names, then a line for each row ([`onecopy_wire::csv`] says what is quoted and how lines end).
#[derive(Debug)]
pub struct CsvRows {
    schema: Schema,
    dialect: Dialect,
    options: ValueOptions,
    tally: Tally,
    long: Long,
}

impl CsvRows {
    /// Rows of this schema; names may be empty or stand twice.
    #[must_use]
    pub fn new(schema: &Schema, dialect: Dialect, options: ValueOptions) -> CsvRows {
        CsvRows {
            schema: schema.clone(),
            dialect,
            options,
            tally: Tally::default(),
            long: Long::default(),
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
                planted::extra_work_on_text(units);
                csv::write_text(units, self.options.policy, &self.dialect, out)?;
                // UTF-8 is looked through for quotes and then goes out as it is: a copy.
                self.tally.encoded(units);
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
                // No bytes are not NULL, as with text.
                if bytes.is_empty() {
                    out.put(b"\"\"")?;
                }
                base64::write(bytes, out)?;
            }
            Cell::Date(value) => onecopy_wire::datetime::Date::from(value).put(&mut w)?,
            Cell::Time(value, digits) => time(value, digits).put(&mut w)?,
            Cell::Timestamp(value, digits) => timestamp(value, digits).put(&mut w)?,
            Cell::Interval { text, .. } => {
                drop(w);
                let units = Units::Utf8(text);
                csv::write_text(units, self.options.policy, &self.dialect, out)?;
                self.tally.encoded(units);
            }
            Cell::Uuid(uuid) => csv::put_uuid(&uuid, &mut w),
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
        self.long = Long::of(kind);
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
