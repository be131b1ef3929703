//! BSON: one document a row, one behind the other.

use onecopy_text::{ByteSink, Carry, MOVED_BY_PAGES_BYTES, Policy, Tally, Units, planted};
use onecopy_wire::bson::{self, Decimal128, Frame, KeySegments, MOST_BYTES, Tag, VALUE_BYTES};
use onecopy_wire::{NonFinite, WriteError, csv, datetime, number};

use super::format::{RowFormat, time, timestamp};
use super::objects::unfit;
use crate::cell::{Cell, LongKind};
use crate::error::{Error, ErrorKind};
use crate::schema::Schema;

/// What values that BSON has a type for, with a limit, are written as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BsonOptions {
    /// Decimals, money, and unsigned integers from 2^63 on.
    pub decimals: Decimals,
    /// Dates and timestamps.
    pub datetimes: DateTimes,
    /// The longest document, in bytes: at most [`MOST_BYTES`]. It has to be in memory whole.
    pub max_bytes: usize,
}

/// What decimals are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Decimals {
    /// Decimal128, exact: one of more than 34 digits is an error.
    #[default]
    Decimal128,
    /// Text, every digit.
    Text,
}

/// What dates and timestamps are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DateTimes {
    /// Datetimes: milliseconds in UTC. A date is its midnight, a timestamp without an offset is taken for UTC, and what is
    /// finer is cut towards the past.
    #[default]
    DateTime,
    /// Text as JSON has it, with the stored precision and offset.
    Text,
}

impl Default for BsonOptions {
    fn default() -> BsonOptions {
        BsonOptions {
            decimals: Decimals::Decimal128,
            datetimes: DateTimes::DateTime,
            max_bytes: MOST_BYTES,
        }
    }
}

/// Room that is asked for where a part of a long value does not fit: past the size from which growing moves pages and not
/// bytes. It is address space until it is written to.
const LONG_ROOM_BYTES: usize = 2 * MOVED_BY_PAGES_BYTES;

/// A document for each row, as mongodump has them: no rows are no bytes.
///
/// The length of a document stands in front of it, so a row has to stay in one chunk, however long its values are.
#[derive(Debug)]
pub struct BsonRows {
    keys: KeySegments,
    options: BsonOptions,
    policy: Policy,
    tally: Tally,
    row: Option<Frame>,
    long: Option<Long>,
}

/// The value that is under way.
#[derive(Debug)]
enum Long {
    Text(Frame, Carry),
    Bytes(Frame),
}

impl BsonRows {
    /// Rows of this schema.
    ///
    /// # Errors
    /// [`ErrorKind::Programming`] where a column has no name, the name of one before it, or one that holds NUL.
    pub fn new(schema: &Schema, options: BsonOptions, policy: Policy) -> Result<BsonRows, Error> {
        if let Some((index, name)) = schema.unfit_name() {
            return Err(unfit(schema, index, name, "BSON document"));
        }
        let names = schema.columns.iter().map(|c| c.name.as_str());
        let keys = KeySegments::new(names).map_err(|(index, error)| {
            Error::new(ErrorKind::Programming, error.to_string())
                .at_column(index, &schema.columns[index].name)
        })?;
        Ok(BsonRows {
            keys,
            options,
            policy,
            tally: Tally::default(),
            row: None,
            long: None,
        })
    }

    /// Whether `n_more` bytes and the end of the document fit into it.
    #[inline]
    fn check<S: ByteSink>(&self, n_more: usize, out: &S) -> Result<(), WriteError> {
        let so_far = self.row.map_or(0, |row| row.len_bytes(out));
        if so_far.saturating_add(n_more) >= self.options.max_bytes {
            return Err(WriteError::TooLong(self.options.max_bytes));
        }
        Ok(())
    }

    #[inline]
    fn text<S: ByteSink>(&mut self, units: Units<'_>, out: &mut S) -> Result<(), WriteError> {
        // Each unit is a byte at least: what cannot fit is not converted first.
        self.check(units.len_units(), out)?;
        planted::extra_work_on_text(units);
        bson::write_text(units, self.policy, out)?;
        self.tally.encoded(units);
        Ok(())
    }

    /// A cell of these kinds and its key.
    #[inline]
    fn element<S: ByteSink>(
        &mut self,
        column: usize,
        cell: Cell<'_>,
        out: &mut S,
    ) -> Result<(), WriteError> {
        let mut w = out.window(self.keys.room_bytes() + VALUE_BYTES)?;
        let keys = &self.keys;
        match cell {
            Cell::Text(units) => {
                keys.put_into(column, Tag::String, &mut w);
                drop(w);
                self.text(units, out)?;
            }
            Cell::Null => keys.put_into(column, Tag::Null, &mut w),
            Cell::Bool(value) => {
                keys.put_into(column, Tag::Bool, &mut w);
                bson::put_bool(value, &mut w);
            }
            Cell::I64(value) => match i32::try_from(value) {
                Ok(value) => {
                    keys.put_into(column, Tag::Int32, &mut w);
                    bson::put_i32(value, &mut w);
                }
                Err(_) => {
                    keys.put_into(column, Tag::Int64, &mut w);
                    bson::put_i64(value, &mut w);
                }
            },
            Cell::F64(value) => {
                keys.put_into(column, Tag::Double, &mut w);
                bson::put_f64(value, &mut w);
            }
            // As in Python: the double of its shortest decimal.
            Cell::F32(value) => {
                keys.put_into(column, Tag::Double, &mut w);
                bson::put_f64(number::widen(value), &mut w);
            }
            Cell::Decimal(digits) => {
                match self.options.decimals {
                    Decimals::Decimal128 => {
                        keys.put_into(column, Tag::Decimal128, &mut w);
                        bson::put_decimal128(Decimal128::of_digits(digits)?, &mut w);
                    }
                    Decimals::Text => {
                        keys.put_into(column, Tag::String, &mut w);
                        drop(w);
                        decimal_text(digits, out)?;
                    }
                }
                self.tally.converted(digits.len());
            }
            other => {
                drop(w);
                self.rare(column, other, out)?;
            }
        }
        Ok(())
    }

    /// The kinds that are not worth a place in the hot path.
    #[inline(never)]
    fn rare<S: ByteSink>(
        &mut self,
        column: usize,
        cell: Cell<'_>,
        out: &mut S,
    ) -> Result<(), WriteError> {
        let mut w = out.window(self.keys.room_bytes() + VALUE_BYTES)?;
        let keys = &self.keys;
        let as_text = self.options.datetimes == DateTimes::Text;
        match cell {
            Cell::U64(value) => match i64::try_from(value) {
                Ok(value) => {
                    drop(w);
                    self.element(column, Cell::I64(value), out)?;
                }
                Err(_) if self.options.decimals == Decimals::Text => {
                    keys.put_into(column, Tag::String, &mut w);
                    drop(w);
                    let frame = Frame::begin(out)?;
                    number::put_u64(value, &mut out.window(csv::SCALAR_BYTES)?);
                    frame.end_text(out)?;
                }
                Err(_) => {
                    keys.put_into(column, Tag::Decimal128, &mut w);
                    bson::put_decimal128(Decimal128::of_u64(value), &mut w);
                }
            },
            Cell::Bytes(bytes) => {
                keys.put_into(column, Tag::Binary, &mut w);
                drop(w);
                self.check(bytes.len(), out)?;
                bson::write_binary(bson::SUBTYPE_GENERIC, bytes, out)?;
            }
            Cell::Date(value) => {
                let date = datetime::Date::from(value);
                if as_text {
                    keys.put_into(column, Tag::String, &mut w);
                    bson::put_short(&date.to_short()?, &mut w);
                } else {
                    keys.put_into(column, Tag::DateTime, &mut w);
                    bson::put_i64(date.to_unix_ms()?, &mut w);
                }
            }
            Cell::Timestamp(value, digits) => {
                let stamp = timestamp(value, digits);
                if as_text {
                    keys.put_into(column, Tag::String, &mut w);
                    bson::put_short(&stamp.to_short()?, &mut w);
                } else {
                    keys.put_into(column, Tag::DateTime, &mut w);
                    bson::put_i64(stamp.to_unix_ms()?, &mut w);
                }
            }
            Cell::Time(value, digits) => {
                keys.put_into(column, Tag::String, &mut w);
                bson::put_short(&time(value, digits).to_short()?, &mut w);
            }
            Cell::Interval { text, .. } => {
                keys.put_into(column, Tag::String, &mut w);
                drop(w);
                self.text(Units::Utf8(text), out)?;
            }
            Cell::Uuid(uuid) => {
                keys.put_into(column, Tag::Binary, &mut w);
                bson::put_uuid(&uuid, &mut w);
            }
            _ => unreachable!("`element` writes the others"),
        }
        Ok(())
    }
}

impl RowFormat for BsonRows {
    const WHOLE_ROWS: bool = true;

    fn begin<S: ByteSink>(&mut self, _: &mut S) -> Result<(), WriteError> {
        Ok(())
    }

    #[inline]
    fn begin_row<S: ByteSink>(&mut self, _: bool, out: &mut S) -> Result<(), WriteError> {
        self.row = Some(Frame::begin(out)?);
        Ok(())
    }

    #[inline]
    fn cell<S: ByteSink>(
        &mut self,
        column: usize,
        cell: Cell<'_>,
        out: &mut S,
    ) -> Result<(), WriteError> {
        self.element(column, cell, out)?;
        // Here, where the column is known, and not at the end of the row.
        self.check(0, out)
    }

    fn long_begin<S: ByteSink>(
        &mut self,
        column: usize,
        kind: LongKind,
        out: &mut S,
    ) -> Result<(), WriteError> {
        let (tag, subtype) = match kind {
            LongKind::Text => (Tag::String, None),
            LongKind::Bytes => (Tag::Binary, Some(bson::SUBTYPE_GENERIC)),
        };
        let mut w = out.window(self.keys.room_bytes())?;
        self.keys.put_into(column, tag, &mut w);
        drop(w);
        self.long = Some(match subtype {
            None => Long::Text(Frame::begin(out)?, Carry::default()),
            Some(subtype) => Long::Bytes(Frame::begin_binary(subtype, out)?),
        });
        Ok(())
    }

    fn long_part<S: ByteSink>(&mut self, part: Cell<'_>, out: &mut S) -> Result<(), WriteError> {
        let (n_units, most_bytes) = match part {
            Cell::Text(units) => (units.len_units(), widest(units)),
            Cell::Bytes(bytes) => (bytes.len(), bytes.len()),
            _ => (0, 0),
        };
        self.check(n_units, out)?;
        make_room(most_bytes, out)?;
        match (&mut self.long, part) {
            (Some(Long::Text(_, carry)), Cell::Text(units)) => {
                planted::extra_work_on_text(units);
                carry.to_utf8(units, self.policy, out)?;
                self.tally.encoded(units);
            }
            (Some(Long::Bytes(_)), Cell::Bytes(bytes)) => out.put(bytes)?,
            _ => unreachable!("parts are of the kind that `long_begin` told"),
        }
        Ok(())
    }

    fn long_end<S: ByteSink>(&mut self, out: &mut S) -> Result<(), WriteError> {
        match self.long.take() {
            Some(Long::Text(frame, mut carry)) => {
                carry.finish_utf8(self.policy, out)?;
                frame.end_text(out)?;
            }
            Some(Long::Bytes(frame)) => frame.end_binary(out)?,
            None => unreachable!("`long_begin` came before"),
        }
        self.check(0, out)
    }

    #[inline]
    fn end_row<S: ByteSink>(&mut self, out: &mut S) -> Result<(), WriteError> {
        match self.row.take() {
            Some(row) => row.end_document(out),
            None => unreachable!("`begin_row` came before"),
        }
    }

    fn end<S: ByteSink>(&mut self, _: &mut S) -> Result<(), WriteError> {
        Ok(())
    }

    #[inline]
    fn cell_room_bytes(&self) -> usize {
        self.keys.room_bytes() + VALUE_BYTES
    }

    fn tally(&mut self) -> &mut Tally {
        &mut self.tally
    }
}

fn decimal_text<S: ByteSink>(digits: &[u8], out: &mut S) -> Result<(), WriteError> {
    let frame = Frame::begin(out)?;
    csv::write_decimal(digits, NonFinite::Text, out)?;
    frame.end_text(out)
}

/// Bytes that a part may become in UTF-8, with what was carried over from the part before it.
fn widest(units: Units<'_>) -> usize {
    let per_unit = match units {
        Units::Latin1(_) => 2,
        // U+FFFD for one byte that is malformed.
        Units::Utf8(_) | Units::Utf16(_) | Units::Ucs2(_) => 3,
        Units::Utf32(_) => 4,
    };
    per_unit * (units.len_units() + 4)
}

/// Sees that the part of a row that is too long for its chunk moves once, into a place that grows by its pages.
fn make_room<S: ByteSink>(n_bytes: usize, out: &mut S) -> Result<(), WriteError> {
    if out.spare(0)?.len() >= n_bytes {
        return Ok(());
    }
    let len = out.committed().len();
    let Err(error) = out.spare(LONG_ROOM_BYTES).map(|_| ()) else {
        return Ok(());
    };
    // Where address space is short, what the part asks for has to do.
    match out.committed().len() == len {
        true => Ok(()),
        false => Err(error.into()),
    }
}
