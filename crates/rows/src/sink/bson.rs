//! `BsonRows`: the BSON output format, one document per row, concatenated.

use onecopy_text::{ByteSink, Carry, MOVED_BY_PAGES_BYTES, Policy, Tally, Units, planted};
use onecopy_wire::bson::{self, Decimal128, Frame, KeySegments, MOST_BYTES, Tag, VALUE_BYTES};
use onecopy_wire::{NonFinite, WriteError, csv, number};

use super::format::RowFormat;
use super::objects::unfit;
use crate::array::{ArrayError, ArrayVisitor};
use crate::cell::{Cell, LongKind};
use crate::error::{Error, ErrorKind};
use crate::schema::Schema;

/// The options of BSON output: the BSON types of values without an exact BSON type, and a size
/// limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BsonOptions {
    /// The BSON type of decimals, of amounts of money, and of unsigned integers from 2^63 on.
    pub decimals: Decimals,
    /// The BSON type of dates and timestamps.
    pub datetimes: DateTimes,
    /// The largest size of a document in bytes, at most [`MOST_BYTES`]. A larger document is an
    /// error. The limit bounds the memory, because each document is built in memory.
    pub max_bytes: usize,
}

/// The BSON type of decimals.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Decimals {
    /// Decimal128, which is exact. A decimal of more than 34 digits is an error.
    #[default]
    Decimal128,
    /// A string with all digits of the decimal.
    Text,
}

/// The BSON type of dates and timestamps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DateTimes {
    /// Datetime: milliseconds since 1970 in UTC. A date is converted to its midnight. A timestamp
    /// without an offset is interpreted as UTC. A fraction finer than a millisecond is rounded
    /// down.
    #[default]
    DateTime,
    /// A string, as in the JSON format. The precision and the offset of the value are kept.
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

/// The spare capacity in bytes that a chunk gets if a part of a long value does not fit into it. A
/// chunk of this capacity grows further by remapping its pages, without copying its bytes. Capacity
/// that was never written uses address space, but no memory.
const LONG_ROOM_BYTES: usize = 2 * MOVED_BY_PAGES_BYTES;

/// Writes one document for each row, as mongodump does. The output of a result without rows is
/// empty.
///
/// A BSON document begins with its length, which is not known until the end of the document. The
/// whole row therefore stays in one chunk, even if its values are long.
#[derive(Debug)]
pub struct BsonRows {
    keys: KeySegments,
    /// The encoded array keys `0`, `1`, …, up to the largest index that an array had so far.
    indices: KeySegments,
    options: BsonOptions,
    policy: Policy,
    tally: Tally,
    row: Option<Frame>,
    long: Option<OpenBsonValue>,
}

/// The state of a long value that is being written to BSON in parts.
#[derive(Debug)]
enum OpenBsonValue {
    Text(Frame, Carry),
    Bytes(Frame),
}

impl BsonRows {
    /// Creates the format for rows of this schema.
    ///
    /// # Errors
    /// [`ErrorKind::Programming`] if a column name is empty, occurs twice, or contains NUL.
    pub fn new(schema: &Schema, options: BsonOptions, policy: Policy) -> Result<BsonRows, Error> {
        if let Some((index, name)) = schema.unfit_name() {
            return Err(unfit(schema, index, name, "BSON document"));
        }
        let names = schema.columns.iter().map(|c| c.name.as_str());
        let keys = KeySegments::new(names).map_err(|(index, error)| {
            Error::new(ErrorKind::Programming, error.to_string())
                .at_column(index, &schema.columns[index].name)
        })?;
        let indices = KeySegments::new([""; 0]);
        let indices = indices.map_err(|(_, e)| Error::new(ErrorKind::Internal, e.to_string()))?;
        Ok(BsonRows {
            keys,
            indices,
            options,
            policy,
            tally: Tally::default(),
            row: None,
            long: None,
        })
    }

    /// Returns an error if the current document would exceed the size limit with `n_more` further
    /// bytes and the byte that ends the document.
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
        // Each code unit becomes at least one byte, so a text that exceeds the limit is refused
        // before it is converted.
        self.check(units.len_units(), out)?;
        planted::extra_work_on_text(units);
        bson::write_text(units, self.policy, out)?;
        self.tally.encoded(units);
        Ok(())
    }

    /// Writes the key and the value of a cell of a common kind, such as an integer or text.
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
            // The 32-bit float is written as the double nearest to its shortest decimal text, as
            // Python returns it.
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

    /// Writes the key and the value of a cell that is not on the hot path: an unsigned integer,
    /// binary data, a date or time, a UUID, a JSON value, a duration, a range or an array.
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
            Cell::Date(date) => {
                if as_text {
                    keys.put_into(column, Tag::String, &mut w);
                    bson::put_short(&date.to_short()?, &mut w);
                } else {
                    keys.put_into(column, Tag::DateTime, &mut w);
                    bson::put_i64(date.to_unix_ms()?, &mut w);
                }
            }
            Cell::Timestamp(stamp, digits) => {
                if as_text {
                    keys.put_into(column, Tag::String, &mut w);
                    bson::put_short(&stamp.to_short(digits)?, &mut w);
                } else {
                    keys.put_into(column, Tag::DateTime, &mut w);
                    bson::put_i64(stamp.to_unix_ms()?, &mut w);
                }
            }
            Cell::Time(time, digits) => {
                keys.put_into(column, Tag::String, &mut w);
                bson::put_short(&time.to_short(digits)?, &mut w);
            }
            Cell::Uuid(uuid) => {
                keys.put_into(column, Tag::Binary, &mut w);
                bson::put_uuid(&uuid, &mut w);
            }
            Cell::Json(_) | Cell::Interval { .. } | Cell::TimeTz { .. } | Cell::Range(_) => {
                drop(w);
                self.element(column, cell.or_text(), out)?;
            }
            Cell::Array(array) => {
                drop(w);
                let mut elements = BsonElements {
                    rows: self,
                    out,
                    column,
                    open: Vec::new(),
                };
                array.visit(&mut elements).map_err(|error| match error {
                    ArrayError::Malformed => WriteError::NotAnArray,
                    ArrayError::Visitor(error) => error,
                })?;
            }
            _ => unreachable!("`element` writes the others"),
        }
        Ok(())
    }
}

/// A visitor that writes an array of the database as a BSON array, whose keys are the indices of
/// the elements.
struct BsonElements<'a, S> {
    rows: &'a mut BsonRows,
    out: &'a mut S,
    column: usize,
    /// The arrays that have begun and have not ended, each with the number of its elements so far.
    /// The outermost array is the first.
    open: Vec<(Frame, usize)>,
}

impl<S: ByteSink> BsonElements<'_, S> {
    /// Returns the index of the next key. Within an array, it is the index of the next element.
    /// Otherwise it is the index of the column.
    fn next_key(&mut self) -> usize {
        let Some((_, n_elements)) = self.open.last_mut() else {
            return self.column;
        };
        *n_elements += 1;
        *n_elements - 1
    }

    fn swap_keys(&mut self, index: usize) -> Result<(), WriteError> {
        if self.rows.indices.len() <= index {
            let names: Vec<String> = (0..(index + 1).next_power_of_two())
                .map(|i| i.to_string())
                .collect();
            let indices = KeySegments::new(names.iter().map(String::as_str));
            self.rows.indices = indices.map_err(|(_, error)| error)?;
        }
        std::mem::swap(&mut self.rows.keys, &mut self.rows.indices);
        Ok(())
    }
}

impl<S: ByteSink> ArrayVisitor for BsonElements<'_, S> {
    type Error = WriteError;

    fn begin(&mut self) -> Result<(), WriteError> {
        let is_inner = !self.open.is_empty();
        let key = self.next_key();
        if is_inner {
            self.swap_keys(key)?;
        }
        let mut w = self.out.window(self.rows.keys.room_bytes())?;
        self.rows.keys.put_into(key, Tag::Array, &mut w);
        drop(w);
        if is_inner {
            std::mem::swap(&mut self.rows.keys, &mut self.rows.indices);
        }
        self.open.push((Frame::begin(self.out)?, 0));
        Ok(())
    }

    fn element(&mut self, cell: Cell<'_>) -> Result<(), WriteError> {
        let key = self.next_key();
        self.swap_keys(key)?;
        let written = self.rows.element(key, cell, self.out);
        std::mem::swap(&mut self.rows.keys, &mut self.rows.indices);
        written
    }

    fn end(&mut self) -> Result<(), WriteError> {
        let Some((frame, _)) = self.open.pop() else {
            return Err(WriteError::NotAnArray);
        };
        self.rows.check(0, self.out)?;
        frame.end_document(self.out)
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
        // The size is checked after each cell instead of at the end of the row, so that the error
        // names the column.
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
            None => OpenBsonValue::Text(Frame::begin(out)?, Carry::default()),
            Some(subtype) => OpenBsonValue::Bytes(Frame::begin_binary(subtype, out)?),
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
            (Some(OpenBsonValue::Text(_, carry)), Cell::Text(units)) => {
                planted::extra_work_on_text(units);
                carry.to_utf8(units, self.policy, out)?;
                self.tally.encoded(units);
            }
            (Some(OpenBsonValue::Bytes(_)), Cell::Bytes(bytes)) => out.put(bytes)?,
            _ => unreachable!("parts have the kind that `long_begin` was called with"),
        }
        Ok(())
    }

    fn long_end<S: ByteSink>(&mut self, out: &mut S) -> Result<(), WriteError> {
        match self.long.take() {
            Some(OpenBsonValue::Text(frame, mut carry)) => {
                carry.finish_utf8(self.policy, out)?;
                frame.end_text(out)?;
            }
            Some(OpenBsonValue::Bytes(frame)) => frame.end_binary(out)?,
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

/// Returns the largest number of UTF-8 bytes that the conversion of `units`, one part of a long
/// text, can write. The number includes the bytes of a character that began in the previous part.
fn widest(units: Units<'_>) -> usize {
    let per_unit = match units {
        Units::Latin1(_) => 2,
        // One malformed byte becomes U+FFFD, which has three bytes in UTF-8.
        Units::Utf8(_) | Units::Utf16(_) | Units::Ucs2(_) => 3,
        Units::Utf32(_) => 4,
    };
    per_unit * (units.len_units() + 4)
}

/// Ensures that `out` has capacity for `n_bytes` more bytes. If the capacity is insufficient,
/// reserves [`LONG_ROOM_BYTES`], so that the bytes of a long row are moved only once.
fn make_room<S: ByteSink>(n_bytes: usize, out: &mut S) -> Result<(), WriteError> {
    if out.spare(0)?.len() >= n_bytes {
        return Ok(());
    }
    let len = out.committed().len();
    let Err(error) = out.spare(LONG_ROOM_BYTES).map(|_| ()) else {
        return Ok(());
    };
    // If this reservation fails, the chunk can still grow when the bytes are written.
    match out.committed().len() == len {
        true => Ok(()),
        false => Err(error.into()),
    }
}
