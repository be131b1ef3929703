//! `BatchRows`: reads the values of Arrow arrays as parameters of a statement, row by row.

use onecopy_text::Tally;
use onecopy_wire::float16::Half;

use super::array::{Array, Batch, bit};
use super::date_time;
use super::decimal;
use super::types::{DataType, TimeUnit};
use crate::arrow_c::Memory;
use crate::cell::Date;
use crate::error::{Error, ErrorKind};
use crate::value::Value;

/// An iterator over the rows of consecutive batches, as rows of parameters. It ends after the first
/// error.
pub struct BatchRows<F> {
    next_batch: F,
    names: Vec<String>,
    batch: Batch,
    row: usize,
    n_done: u64,
    /// The numbers of text bytes that were converted and copied; the caller adds them to a
    /// `Ledger`.
    pub tally: Tally,
    is_done: bool,
}

impl<F: FnMut() -> Result<Option<Batch>, Error>> BatchRows<F> {
    /// Creates an iterator over the rows of the batches that `next_batch` returns. `names` are the
    /// column names, for error messages.
    pub fn new(names: Vec<String>, next_batch: F) -> BatchRows<F> {
        BatchRows {
            next_batch,
            names,
            tally: Tally::default(),
            batch: Batch::default(),
            row: 0,
            n_done: 0,
            is_done: false,
        }
    }

    fn row_values(&mut self) -> Result<Vec<Value>, Error> {
        let (row, n_done, names) = (self.row, self.n_done, &self.names);
        let columns = self.batch.columns.iter().enumerate();
        let values = columns.map(|(i, column)| {
            let value = column.value(row).map_err(|e| {
                let name = names.get(i).map_or("", String::as_str);
                e.at_column(i, name).at_row(n_done)
            });
            if let Ok(Value::Text(text)) = &value {
                self.tally.copied(text.len());
            }
            value
        });
        values.collect()
    }
}

impl<F: FnMut() -> Result<Option<Batch>, Error>> Iterator for BatchRows<F> {
    type Item = Result<Vec<Value>, Error>;

    fn next(&mut self) -> Option<Result<Vec<Value>, Error>> {
        while self.row >= self.batch.n_rows {
            if self.is_done {
                return None;
            }
            self.row = 0;
            self.batch = Batch::default();
            match (self.next_batch)() {
                Ok(Some(batch)) => self.batch = batch,
                Ok(None) => self.is_done = true,
                Err(error) => {
                    self.is_done = true;
                    return Some(Err(error));
                }
            }
        }
        let values = self.row_values();
        if values.is_ok() {
            self.row += 1;
            self.n_done += 1;
        } else {
            self.is_done = true;
            self.batch = Batch::default();
        }
        Some(values)
    }
}

fn wrong(what: &str) -> Error {
    Error::new(ErrorKind::Data, what)
}

impl Array {
    /// Returns the value of `row` (from 0) as a parameter. Copies each text and each binary value
    /// once.
    ///
    /// # Errors
    /// [`ErrorKind::Data`] or [`ErrorKind::Malformed`] for a value that cannot be a parameter;
    /// [`ErrorKind::Interface`] if a buffer is shorter than the array's type and length require.
    pub fn value(&self, row: usize) -> Result<Value, Error> {
        if self.is_null(row) {
            return Ok(Value::Null);
        }
        let at = self.offset + row;
        Ok(match &self.data_type {
            DataType::Null => Value::Null,
            DataType::Bool => Value::Bool(bit(self.buffer(0)?.bytes(), at)),
            DataType::Int { bits, unsigned } => {
                let n = self.integer(at, *bits, *unsigned)?;
                match i64::try_from(n) {
                    Ok(n) => Value::I64(n),
                    // An integer above `i64::MAX` becomes a decimal, because no driver accepts it
                    // as an integer.
                    Err(_) => Value::Decimal(n.to_string()),
                }
            }
            DataType::Float16 => {
                let half = Half(u16::from_ne_bytes(self.fixed(at)?));
                Value::F64(half.widen_parameter())
            }
            DataType::Float32 => {
                let n = f32::from_ne_bytes(self.fixed(at)?);
                Value::F64(onecopy_wire::number::widen_parameter(n))
            }
            DataType::Float64 => Value::F64(f64::from_ne_bytes(self.fixed(at)?)),
            DataType::Decimal { bits, scale, .. } => Value::Decimal(match bits {
                32 => decimal::digits_of_i128(i32::from_ne_bytes(self.fixed(at)?).into(), *scale),
                64 => decimal::digits_of_i128(i64::from_ne_bytes(self.fixed(at)?).into(), *scale),
                128 => decimal::digits_of_i128(i128::from_ne_bytes(self.fixed(at)?), *scale),
                _ => {
                    let bytes: [u8; 32] = self.fixed(at)?;
                    let mut words = [0; 4];
                    for (word, bytes) in words.iter_mut().zip(bytes.chunks_exact(8)) {
                        *word = u64::from_ne_bytes(bytes.try_into().unwrap_or([0; 8]));
                    }
                    decimal::digits_of_wide(words, *scale)
                }
            }),
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => {
                // The text is copied before it is validated, because other code may write to the
                // array.
                let text = String::from_utf8(copied(self.bytes(at)?)?);
                Value::Text(text.map_err(|e| {
                    let at = e.utf8_error().valid_up_to();
                    let message = format!("malformed text: not UTF-8 from byte {at} on");
                    Error::new(ErrorKind::Malformed, message)
                })?)
            }
            DataType::Binary | DataType::LargeBinary | DataType::BinaryView => {
                Value::Bytes(copied(self.bytes(at)?)?)
            }
            DataType::FixedBinary(n) => {
                Value::Bytes(copied(nth(self.buffer(0)?.bytes(), at, *n)?)?)
            }
            DataType::Uuid => Value::Uuid(self.fixed(at)?),
            DataType::Date32 => {
                let days = i32::from_ne_bytes(self.fixed(at)?);
                Value::Date(Date::of_unix_days_in_any_year(days.into()).ok_or_else(no_date)?)
            }
            DataType::Date64 => {
                let n = i64::from_ne_bytes(self.fixed(at)?);
                Value::Date(
                    Date::of_unix_days_in_any_year(n.div_euclid(86_400_000)).ok_or_else(no_date)?,
                )
            }
            DataType::Time(unit) => {
                let n = match unit {
                    TimeUnit::Second | TimeUnit::Milli => {
                        i32::from_ne_bytes(self.fixed(at)?).into()
                    }
                    _ => i64::from_ne_bytes(self.fixed(at)?),
                };
                let time = date_time::time(n, *unit);
                Value::Time(time.ok_or_else(|| wrong("a time is outside of its day"))?)
            }
            DataType::Timestamp { unit, zone } => {
                let n = i64::from_ne_bytes(self.fixed(at)?);
                let timestamp = date_time::timestamp(n, *unit, zone.is_some());
                Value::Timestamp(timestamp.ok_or_else(no_date)?)
            }
            DataType::Dictionary { index, .. } => {
                let DataType::Int { bits, unsigned } = **index else {
                    return Err(wrong("a dictionary is not numbered by integers"));
                };
                let n = self.integer(at, bits, unsigned)?;
                let values = self.dictionary.as_deref().ok_or_else(too_short)?;
                match usize::try_from(n) {
                    Ok(n) if n < values.len => values.value(n)?,
                    _ => return Err(wrong("a number has no value in the dictionary")),
                }
            }
            // Streams with these types are refused when the stream is opened.
            DataType::List(_) => return Err(wrong("a list is not a parameter")),
        })
    }

    fn buffer(&self, i: usize) -> Result<&Memory, Error> {
        self.buffers.get(i).ok_or_else(too_short)
    }

    /// Returns the `N` bytes of value `at` (from 0) of an array whose values have a fixed size.
    fn fixed<const N: usize>(&self, at: usize) -> Result<[u8; N], Error> {
        let bytes = nth(self.buffer(0)?.bytes(), at, N)?;
        bytes.try_into().map_err(|_| too_short())
    }

    fn integer(&self, at: usize, bits: u8, unsigned: bool) -> Result<i128, Error> {
        Ok(match (bits, unsigned) {
            (8, false) => i8::from_ne_bytes(self.fixed(at)?).into(),
            (16, false) => i16::from_ne_bytes(self.fixed(at)?).into(),
            (32, false) => i32::from_ne_bytes(self.fixed(at)?).into(),
            (_, false) => i64::from_ne_bytes(self.fixed(at)?).into(),
            (8, true) => u8::from_ne_bytes(self.fixed(at)?).into(),
            (16, true) => u16::from_ne_bytes(self.fixed(at)?).into(),
            (32, true) => u32::from_ne_bytes(self.fixed(at)?).into(),
            (_, true) => u64::from_ne_bytes(self.fixed(at)?).into(),
        })
    }

    /// Returns the bytes of value `at` (from 0) of an array whose values have different lengths.
    fn bytes(&self, at: usize) -> Result<&[u8], Error> {
        let place = |i: usize| -> Result<usize, Error> {
            let n = match self.data_type {
                DataType::Utf8 | DataType::Binary => i32::from_ne_bytes(self.fixed(i)?).into(),
                _ => i64::from_ne_bytes(self.fixed(i)?),
            };
            usize::try_from(n).map_err(|_| too_short())
        };
        if matches!(self.data_type, DataType::Utf8View | DataType::BinaryView) {
            return self.view(at);
        }
        // Each offset is read once and then checked, because other code may write to the array.
        let (from, to) = (place(at)?, place(at + 1)?);
        self.buffer(1)?.bytes().get(from..to).ok_or_else(too_short)
    }

    /// Returns the bytes of value `at` (from 0) of an array in Arrow's view layout. Up to 12 bytes
    /// are in the view itself; the bytes of a longer value are in one of the data buffers.
    fn view(&self, at: usize) -> Result<&[u8], Error> {
        let view = nth(self.buffer(0)?.bytes(), at, 16)?;
        // Each number is read once, because other code may write to the array.
        let number = |from: usize| {
            let bytes = view[from..from + 4].try_into().unwrap_or([0; 4]);
            usize::try_from(i32::from_ne_bytes(bytes)).map_err(|_| too_short())
        };
        let len = number(0)?;
        if len <= 12 {
            return Ok(&view[4..4 + len]);
        }
        let (buffer, from) = (number(8)?, number(12)?);
        let bytes = self.buffer(1 + buffer)?.bytes();
        bytes.get(from..from + len).ok_or_else(too_short)
    }
}

/// Returns the value with the index `at` (from 0) in a buffer of values that have `width` bytes
/// each.
fn nth(bytes: &[u8], at: usize, width: usize) -> Result<&[u8], Error> {
    let from = at.checked_mul(width);
    let to = from.and_then(|from| from.checked_add(width));
    let place = from.zip(to).and_then(|(from, to)| bytes.get(from..to));
    place.ok_or_else(too_short)
}

/// Copies a value that another library exported. The allocation is fallible, because that library
/// determines its size.
fn copied(bytes: &[u8]) -> Result<Vec<u8>, Error> {
    let mut copy = Vec::new();
    let reserved = copy.try_reserve_exact(bytes.len());
    reserved.map_err(|_| Error::no_memory(bytes.len()))?;
    copy.extend_from_slice(bytes);
    Ok(copy)
}

fn too_short() -> Error {
    Error::new(
        ErrorKind::Interface,
        "an array is shorter than its declared length",
    )
}

fn no_date() -> Error {
    wrong("a date is outside of the calendar")
}
