//! A block of rows: the receive buffer itself. A cell is a slice of it, found by walking over the lengths of its row.

use std::cell::Cell as MutCell;
use std::sync::Arc;

use onecopy_text::Units;

use super::buffer::Buffer;
use super::message::{HEADER_BYTES, violation};
use super::moments;
use super::types::Kind;
use crate::cell::Cell;
use crate::error::Error;
use crate::interval;
use crate::source::{Block, Emitted, RowSink};

/// Bytes of the count of columns, before the first column.
const COUNT_BYTES: usize = 2;

/// Rows of a result, as the server sent them.
#[derive(Debug, Default)]
pub struct Rows {
    /// Complete DataRow messages, back to back.
    buffer: Option<Buffer>,
    kinds: Arc<[Kind]>,
    /// Bytes of the buffer whose rows were shown in this block or an earlier one.
    n_read: usize,
    /// The offset of the first column of each row of this block.
    rows: Vec<u32>,
    /// The row that was emitted last.
    last_emitted: MutCell<usize>,
    /// Columns that are left out of rows; empty where none is.
    pub(super) deferred: Vec<bool>,
}

/// Four bytes of a length or a number.
#[inline]
fn four(bytes: &[u8], at: usize) -> [u8; 4] {
    let mut four = [0; 4];
    four.copy_from_slice(&bytes[at..at + 4]);
    four
}

fn eight(value: &[u8]) -> [u8; 8] {
    let mut eight = [0; 8];
    eight.copy_from_slice(value);
    eight
}

impl Rows {
    pub(super) fn new(kinds: Arc<[Kind]>) -> Rows {
        Rows {
            kinds,
            ..Rows::default()
        }
    }

    /// Replaces the rows by those of `buffer`; returns the buffer that is free now.
    pub(super) fn replace(&mut self, buffer: Buffer) -> Option<Buffer> {
        self.rows.clear();
        self.n_read = 0;
        self.buffer.replace(buffer)
    }

    /// Takes the buffer out: there are no rows any more.
    pub(super) fn take_buffer(&mut self) -> Option<Buffer> {
        self.rows.clear();
        self.n_read = 0;
        self.buffer.take()
    }

    pub(super) fn kinds(&self) -> &[Kind] {
        &self.kinds
    }

    /// The row of the block that was emitted last.
    pub(super) fn last_emitted(&self) -> usize {
        self.last_emitted.get()
    }

    /// Returns whether the buffer has rows that were not shown yet.
    pub(super) fn has_more(&self) -> bool {
        self.bytes().len() > self.n_read
    }

    fn bytes(&self) -> &[u8] {
        self.buffer.as_ref().map_or(&[], Buffer::bytes)
    }

    /// Makes the next rows of the buffer the block, at most so many; how many there are. Each
    /// length is checked here, so that emitting cannot fail.
    ///
    /// # Errors
    /// A row that does not have the described columns, or whose lengths do not fill it.
    pub(super) fn advance(&mut self, most_rows: usize) -> Result<usize, Error> {
        self.rows.clear();
        let Some(buffer) = &mut self.buffer else {
            return Ok(0);
        };
        let bytes = buffer.bytes_mut();
        while self.rows.len() < most_rows && bytes.len() - self.n_read >= HEADER_BYTES {
            // The message is complete: its length was read before.
            let len = u32::from_be_bytes(four(bytes, self.n_read + 1)) as usize + 1;
            let row = &mut bytes[self.n_read..self.n_read + len];
            match check(&mut row[HEADER_BYTES..], &self.kinds) {
                Ok(()) => {}
                // It is reported after the rows before it.
                Err(_) if !self.rows.is_empty() => break,
                Err(error) => return Err(error),
            }
            let first = self.n_read + HEADER_BYTES + COUNT_BYTES;
            self.rows
                .push(u32::try_from(first).map_err(|_| violation("too long a row"))?);
            self.n_read += len;
        }
        Ok(self.rows.len())
    }

    /// The value at `at`, and where the next one begins.
    #[inline]
    fn value(bytes: &[u8], at: usize) -> (Option<&[u8]>, usize) {
        let len = i32::from_be_bytes(four(bytes, at));
        let start = at + 4;
        match usize::try_from(len) {
            Ok(len) => (Some(&bytes[start..start + len]), start + len),
            Err(_) => (None, start),
        }
    }

    /// The bytes of a value of this block, and whether they are text; `None` for NULL.
    pub(super) fn raw_value(&self, row: usize, column: usize) -> Option<(&[u8], Kind)> {
        let bytes = self.bytes();
        let mut at = *self.rows.get(row)? as usize;
        for _ in 0..column {
            at = Self::value(bytes, at).1;
        }
        Some((Self::value(bytes, at).0?, *self.kinds.get(column)?))
    }

    fn is_deferred(&self, column: usize) -> bool {
        self.deferred.get(column).copied().unwrap_or(false)
    }
}

/// Checks that the body of a row has a value of the right size for each column, and nothing else.
fn check(body: &mut [u8], kinds: &[Kind]) -> Result<(), Error> {
    let wrong = |what: &str| violation(format_args!("a row {what}"));
    if body.len() < COUNT_BYTES
        || usize::from(u16::from_be_bytes([body[0], body[1]])) != kinds.len()
    {
        return Err(wrong("has not as many columns as were described"));
    }
    let mut at = COUNT_BYTES;
    for kind in kinds {
        let rest = body.len() - at;
        if rest < 4 {
            return Err(wrong("is shorter than its values"));
        }
        let len = i32::from_be_bytes(four(body, at));
        at += 4;
        if len == -1 {
            continue;
        }
        let len = usize::try_from(len).map_err(|_| wrong("has a negative length"))?;
        if len > rest - 4 {
            return Err(wrong("is shorter than its values"));
        }
        let width = usize::from(kind.width());
        if width != 0 && width != len {
            return Err(wrong("has a value of the wrong size for its type"));
        }
        match kind {
            Kind::Time(_) => {
                let micros = i64::from_be_bytes(eight(&body[at..at + 8]));
                if !(0..=moments::DAY).contains(&micros) {
                    return Err(wrong("has a time that is not within a day"));
                }
            }
            Kind::Money => plain_money(&mut body[at..at + len]),
            _ => {}
        }
        at += len;
    }
    match at == body.len() {
        true => Ok(()),
        false => Err(wrong("is longer than its values")),
    }
}

/// Rewrites an amount such as `-$1,234.50` to its digits, in place and after as many spaces as it
/// became shorter. An amount in another form, which `lc_monetary` decides, stays as it is.
fn plain_money(amount: &mut [u8]) {
    let is_expected = |b: &u8| b.is_ascii_digit() || matches!(b, b'-' | b'$' | b',' | b'.');
    let n_points = amount.iter().filter(|b| **b == b'.').count();
    let has_cents = amount.len() > 3 && amount[amount.len() - 3] == b'.';
    if !amount.iter().all(is_expected) || n_points != 1 || !has_cents {
        return;
    }
    let mut to = amount.len();
    for from in (0..amount.len()).rev() {
        let b = amount[from];
        if !matches!(b, b'$' | b',') {
            to -= 1;
            amount[to] = b;
        }
    }
    amount[..to].fill(b' ');
}

#[inline]
fn cell(value: &[u8], kind: Kind) -> Cell<'_> {
    let infinite = |is_positive| {
        let text: &[u8] = if is_positive {
            b"infinity"
        } else {
            b"-infinity"
        };
        Cell::Text(Units::Utf8(text))
    };
    match kind {
        Kind::Text => Cell::Text(Units::Utf8(value)),
        Kind::Bool => Cell::Bool(value[0] != 0),
        Kind::I16 => Cell::I64(i64::from(i16::from_be_bytes([value[0], value[1]]))),
        Kind::I32 => Cell::I64(i64::from(i32::from_be_bytes(four(value, 0)))),
        Kind::U32 => Cell::I64(i64::from(u32::from_be_bytes(four(value, 0)))),
        Kind::I64 => Cell::I64(i64::from_be_bytes(eight(value))),
        Kind::F32 => Cell::F32(f32::from_be_bytes(four(value, 0))),
        Kind::F64 => Cell::F64(f64::from_be_bytes(eight(value))),
        Kind::Bytes => Cell::Bytes(value),
        Kind::Uuid => {
            let mut uuid = [0; 16];
            uuid.copy_from_slice(value);
            Cell::Uuid(uuid)
        }
        Kind::Date => match i32::from_be_bytes(four(value, 0)) {
            days @ (i32::MAX | i32::MIN) => infinite(days > 0),
            days => Cell::Date(moments::date_of_days(days)),
        },
        Kind::Time(digits) => Cell::Time(
            moments::time_of_micros(i64::from_be_bytes(eight(value))),
            digits,
        ),
        Kind::Timestamp(digits) | Kind::TimestampUtc(digits) => {
            let offset = matches!(kind, Kind::TimestampUtc(_)).then_some(0);
            match i64::from_be_bytes(eight(value)) {
                micros @ (i64::MAX | i64::MIN) => infinite(micros > 0),
                micros => Cell::Timestamp(moments::timestamp_of_micros(micros, offset), digits),
            }
        }
        Kind::TimestampText(digits) => match moments::parse_timestamptz(value) {
            Some(stamp) => Cell::Timestamp(stamp, digits),
            None => Cell::Text(Units::Utf8(value)),
        },
        Kind::Decimal => decimal(value),
        Kind::Money => match value.iter().position(|b| *b != b' ').map(|at| &value[at..]) {
            Some(digits)
                if digits
                    .iter()
                    .all(|b| b.is_ascii_digit() || matches!(b, b'-' | b'.')) =>
            {
                Cell::Decimal(digits)
            }
            _ => Cell::Text(Units::Utf8(value)),
        },
        Kind::Interval => interval::cell(value),
    }
}

/// A numeric in text form: digits, or one of the three that are none.
#[inline]
fn decimal(value: &[u8]) -> Cell<'_> {
    match value {
        b"NaN" => Cell::F64(f64::NAN),
        b"Infinity" => Cell::F64(f64::INFINITY),
        b"-Infinity" => Cell::F64(f64::NEG_INFINITY),
        digits => Cell::Decimal(digits),
    }
}

impl Block for Rows {
    fn n_rows(&self) -> usize {
        self.rows.len()
    }

    fn emit<S: RowSink>(&self, first_row: usize, sink: &mut S) -> Result<Emitted, S::Error> {
        let bytes = self.bytes();
        for (row, start) in self.rows.iter().enumerate().skip(first_row) {
            sink.begin_row()?;
            self.last_emitted.set(row);
            let mut at = *start as usize;
            for (column, kind) in self.kinds.iter().enumerate() {
                let (value, next) = Self::value(bytes, at);
                at = next;
                match value {
                    Some(value) if !self.is_deferred(column) => {
                        sink.cell(column, cell(value, *kind))?;
                    }
                    _ => sink.cell(column, Cell::Null)?,
                }
            }
            if !sink.end_row()? && row + 1 < self.rows.len() {
                return Ok(Emitted::Paused { next_row: row + 1 });
            }
        }
        Ok(Emitted::All)
    }

    fn emit_columns<S: RowSink>(
        &self,
        first_row: usize,
        n_rows: usize,
        sink: &mut S,
    ) -> Result<(), S::Error> {
        let bytes = self.bytes();
        sink.begin_columns(n_rows)?;
        let mut places: Vec<u32> = self.rows[first_row..first_row + n_rows].to_vec();
        for (column, kind) in self.kinds.iter().enumerate() {
            for (row, at) in places.iter_mut().enumerate() {
                let (value, next) = Self::value(bytes, *at as usize);
                // It was one of 32 bits when the row was checked, and rows only lie before the end.
                *at = next as u32;
                match value {
                    Some(value) if !self.is_deferred(column) => {
                        sink.column_cell(row, column, cell(value, *kind))?;
                    }
                    _ => sink.column_cell(row, column, Cell::Null)?,
                }
            }
        }
        sink.end_columns()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(values: &[Option<&[u8]>]) -> Vec<u8> {
        let mut body = u16::try_from(values.len()).unwrap().to_be_bytes().to_vec();
        for value in values {
            let len = value.map_or(-1, |v| i32::try_from(v.len()).unwrap());
            body.extend_from_slice(&len.to_be_bytes());
            body.extend_from_slice(value.unwrap_or_default());
        }
        body
    }

    #[test]
    fn values_are_cells_of_their_kind() {
        let date = crate::cell::Date {
            year: 2000,
            month: 1,
            day: 2,
        };
        let text = |t| Cell::Text(Units::Utf8(t));
        for (kind, value, expected) in [
            (Kind::Bool, &[1][..], Cell::Bool(true)),
            (Kind::I16, &[0xff, 0xfe], Cell::I64(-2)),
            (Kind::U32, &[0xff, 0xff, 0xff, 0xff], Cell::I64(0xffff_ffff)),
            (Kind::F64, &1.5f64.to_be_bytes(), Cell::F64(1.5)),
            (Kind::Date, &[0, 0, 0, 1], Cell::Date(date)),
            (
                Kind::Date,
                &[0x7f, 0xff, 0xff, 0xff],
                text(&b"infinity"[..]),
            ),
            (
                Kind::Timestamp(6),
                &i64::MIN.to_be_bytes(),
                text(b"-infinity"),
            ),
            (Kind::TimestampText(6), b"infinity", text(b"infinity")),
            (Kind::Decimal, b"-1.50", Cell::Decimal(b"-1.50")),
            (Kind::Decimal, b"Infinity", Cell::F64(f64::INFINITY)),
            (Kind::Text, b"{1,2}", text(b"{1,2}")),
        ] {
            assert_eq!(cell(value, kind), expected, "{kind:?}");
        }
    }

    #[test]
    fn money_is_its_digits_where_its_form_is_known() {
        for (amount, expected) in [
            ("$1,234.50", Some("1234.50")),
            ("-$0.05", Some("-0.05")),
            ("$92,233,720,368,547,758.07", Some("92233720368547758.07")),
            ("1.234,50 €", None),
            ("¥5", None),
        ] {
            let mut bytes = amount.as_bytes().to_vec();
            plain_money(&mut bytes);
            match (cell(&bytes, Kind::Money), expected) {
                (Cell::Decimal(digits), Some(expected)) => assert_eq!(digits, expected.as_bytes()),
                (Cell::Text(Units::Utf8(text)), None) => assert_eq!(text, amount.as_bytes()),
                (cell, _) => panic!("{amount} is {cell:?}"),
            }
        }
    }

    #[test]
    fn rows_that_lie_are_errors() {
        let kinds = [Kind::I32, Kind::Text];
        let right = row(&[Some(&[0, 0, 0, 1]), None]);
        assert!(check(&mut right.clone(), &kinds).is_ok());
        for n in 0..right.len() {
            assert!(
                check(&mut right[..n].to_vec(), &kinds).is_err(),
                "{n} bytes"
            );
        }
        for wrong in [
            row(&[Some(&[0, 0, 0, 1])]),
            row(&[Some(&[0, 0, 1]), None]),
            [&right[..], &[0]].concat(),
            [&[0, 2][..], &[0xff, 0xff, 0xff, 0xfe], &[0, 0, 0, 0]].concat(),
            [&[0, 2][..], &[0x7f, 0xff, 0xff, 0xff], &[0, 0, 0, 0]].concat(),
        ] {
            assert!(check(&mut wrong.clone(), &kinds).is_err(), "{wrong:x?}");
        }
        let late = row(&[Some(&(moments::DAY + 1).to_be_bytes())]);
        assert!(check(&mut late.clone(), &[Kind::Time(6)]).is_err());
    }
}
