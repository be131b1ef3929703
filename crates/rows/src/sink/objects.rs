//! `ObjectRows`: rows as JSON objects. The formats JSON and NDJSON share this code and differ only
//! in their separators.

use std::marker::PhantomData;

use onecopy_text::{ByteSink, Tally, Units, convert, planted};
use onecopy_wire::WriteError;
use onecopy_wire::json::{self, KeySegments, SCALAR_BYTES};

use super::format::{RowFormat, ValueOptions};
use super::long::OpenLongValue;
use crate::array::{ArrayError, ArrayVisitor};
use crate::cell::{Cell, LongKind};
use crate::error::{Error, ErrorKind};
use crate::schema::Schema;

/// The separators of a JSON format, between the objects of its rows.
pub trait Layout: Send + 'static {
    /// The bytes at the start of the output, before the JSON object of the first row.
    const BEGIN: &'static [u8];
    /// The bytes that separate two rows. They are written before each row except the first.
    const BETWEEN: &'static [u8];
    /// The closing brace of a row's object, and the bytes after it, such as a line break.
    const END_ROW: &'static [u8];
    /// The bytes at the end of the output, after the JSON object of the last row.
    const END: &'static [u8];
}

/// Writes each row as a JSON object. `L` defines the text before, between and after the rows.
#[derive(Debug)]
pub struct ObjectRows<L> {
    objects: Objects,
    layout: PhantomData<fn() -> L>,
}

impl<L: Layout> ObjectRows<L> {
    /// Creates the format for rows of this schema.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Programming`] if a column name is empty or occurs twice.
    pub fn new(schema: &Schema, options: ValueOptions) -> Result<ObjectRows<L>, Error> {
        Ok(ObjectRows {
            objects: Objects::new(schema, options)?,
            layout: PhantomData,
        })
    }
}

impl<L: Layout> RowFormat for ObjectRows<L> {
    fn begin<S: ByteSink>(&mut self, out: &mut S) -> Result<(), WriteError> {
        Ok(out.put(L::BEGIN)?)
    }

    #[inline]
    fn begin_row<S: ByteSink>(&mut self, is_first: bool, out: &mut S) -> Result<(), WriteError> {
        if !is_first && !L::BETWEEN.is_empty() {
            out.put(L::BETWEEN)?;
        }
        // The key of the first column includes the brace.
        if self.objects.is_empty {
            out.put_byte(b'{')?;
        }
        Ok(())
    }

    #[inline]
    fn cell<S: ByteSink>(
        &mut self,
        column: usize,
        cell: Cell<'_>,
        out: &mut S,
    ) -> Result<(), WriteError> {
        self.objects.cell(column, cell, out)
    }

    fn long_begin<S: ByteSink>(
        &mut self,
        column: usize,
        kind: LongKind,
        out: &mut S,
    ) -> Result<(), WriteError> {
        self.objects.long_begin(column, kind, out)
    }

    fn long_part<S: ByteSink>(&mut self, part: Cell<'_>, out: &mut S) -> Result<(), WriteError> {
        self.objects.long_part(part, out)
    }

    fn long_end<S: ByteSink>(&mut self, out: &mut S) -> Result<(), WriteError> {
        self.objects.long_end(out)
    }

    #[inline]
    fn end_row<S: ByteSink>(&mut self, out: &mut S) -> Result<(), WriteError> {
        Ok(out.put(L::END_ROW)?)
    }

    fn end<S: ByteSink>(&mut self, out: &mut S) -> Result<(), WriteError> {
        Ok(out.put(L::END)?)
    }

    #[inline]
    fn cell_room_bytes(&self) -> usize {
        self.objects.cell_room_bytes()
    }

    fn tally(&mut self) -> &mut Tally {
        &mut self.objects.tally
    }
}

/// Writes the cells of a row as the members of a JSON object.
#[derive(Debug)]
struct Objects {
    keys: KeySegments,
    /// `true` if the result has no columns, so that each row is written as `{}`.
    is_empty: bool,
    options: ValueOptions,
    tally: Tally,
    long: OpenLongValue,
}

impl Objects {
    /// Creates the writer for rows with these columns. The names of the columns become the keys of
    /// the JSON objects.
    ///
    /// # Errors
    /// [`ErrorKind::Programming`] if a column name is empty or occurs twice.
    fn new(schema: &Schema, options: ValueOptions) -> Result<Objects, Error> {
        if let Some((index, name)) = schema.unfit_name() {
            return Err(unfit(schema, index, name, "JSON object"));
        }
        Ok(Objects {
            keys: KeySegments::new(schema.columns.iter().map(|c| c.name.as_str())),
            is_empty: schema.columns.is_empty(),
            options,
            tally: Tally::default(),
            long: OpenLongValue::default(),
        })
    }

    #[inline]
    fn cell<S: ByteSink>(
        &mut self,
        column: usize,
        cell: Cell<'_>,
        out: &mut S,
    ) -> Result<(), WriteError> {
        self.value(Some(column), cell, out)
    }

    /// Writes the key of `column` and a value. For an element of an array, `column` is `None`, and
    /// only the value is written.
    #[inline]
    fn value<S: ByteSink>(
        &mut self,
        column: Option<usize>,
        cell: Cell<'_>,
        out: &mut S,
    ) -> Result<(), WriteError> {
        // One reservation covers the key and the value, unless the size of the value is unbounded.
        let mut w = out.window(self.cell_room_bytes())?;
        if let Some(column) = column {
            self.keys.put_into(column, &mut w);
        }
        match cell {
            Cell::Text(units) => {
                w.put_byte(b'"');
                drop(w);
                self.text(units, out)?;
                out.put_byte(b'"')?;
            }
            Cell::Null => json::put_null(&mut w),
            Cell::Bool(value) => json::put_bool(value, &mut w),
            Cell::I64(value) => json::put_i64(value, &mut w),
            Cell::U64(value) => json::put_u64(value, &mut w),
            Cell::F32(value) => json::put_f32(value, self.options.non_finite, &mut w)?,
            Cell::F64(value) => json::put_f64(value, self.options.non_finite, &mut w)?,
            Cell::Decimal(digits) => {
                drop(w);
                json::write_decimal(digits, self.options.non_finite, out)?;
                self.tally.converted(digits.len());
            }
            Cell::Bytes(bytes) => {
                drop(w);
                json::write_base64(bytes, out)?;
            }
            Cell::Date(date) => json::put_date(date, &mut w)?,
            Cell::Time(time, digits) => json::put_time(time, digits, &mut w)?,
            Cell::Timestamp(stamp, digits) => {
                json::put_timestamp(&stamp, digits, false, &mut w)?;
            }
            Cell::Uuid(uuid) => json::put_uuid(&uuid, &mut w),
            Cell::Json(Units::Utf8(text)) => {
                drop(w);
                json::write_value(text, out)?;
                self.tally.converted(text.len());
            }
            Cell::Json(_) | Cell::Interval { .. } | Cell::TimeTz { .. } | Cell::Range(_) => {
                drop(w);
                self.value(None, cell.or_text(), out)?;
            }
            Cell::Array(array) => {
                drop(w);
                let mut elements = ArrayElements {
                    objects: self,
                    out,
                    is_first: true,
                };
                array.visit(&mut elements).map_err(|error| match error {
                    ArrayError::Malformed => WriteError::NotAnArray,
                    ArrayError::Visitor(error) => error,
                })?;
            }
        }
        Ok(())
    }

    /// Returns the largest number of bytes that a key and its value occupy together, if the value
    /// is not text. (For example, the value is a number or a date.)
    #[inline]
    fn cell_room_bytes(&self) -> usize {
        self.keys.room_bytes() + SCALAR_BYTES
    }

    #[inline]
    fn text<S: ByteSink>(&mut self, units: Units<'_>, out: &mut S) -> Result<(), WriteError> {
        planted::extra_work_on_text(units);
        convert::to_json_body(units, self.options.policy, out)?;
        self.tally.converted(units.len_bytes());
        Ok(())
    }

    fn long_begin<S: ByteSink>(
        &mut self,
        column: usize,
        kind: LongKind,
        out: &mut S,
    ) -> Result<(), WriteError> {
        let mut w = out.window(self.keys.room_bytes() + 1)?;
        self.keys.put_into(column, &mut w);
        w.put_byte(b'"');
        self.long = OpenLongValue::of(kind);
        Ok(())
    }

    fn long_part<S: ByteSink>(&mut self, part: Cell<'_>, out: &mut S) -> Result<(), WriteError> {
        self.long.part(part, out, |carry, units, out| {
            carry.to_json_body(units, self.options.policy, out)?;
            self.tally.converted(units.len_bytes());
            Ok(())
        })
    }

    fn long_end<S: ByteSink>(&mut self, out: &mut S) -> Result<(), WriteError> {
        self.long.end(out, |carry, out| {
            carry.finish_json_body(self.options.policy, out)?;
            Ok(())
        })
    }
}

/// A visitor that writes the elements of an array as a JSON array.
struct ArrayElements<'a, S> {
    objects: &'a mut Objects,
    out: &'a mut S,
    is_first: bool,
}

impl<S: ByteSink> ArrayElements<'_, S> {
    fn separate(&mut self) -> Result<(), WriteError> {
        if !std::mem::take(&mut self.is_first) {
            self.out.put_byte(b',')?;
        }
        Ok(())
    }
}

impl<S: ByteSink> ArrayVisitor for ArrayElements<'_, S> {
    type Error = WriteError;

    fn begin(&mut self) -> Result<(), WriteError> {
        self.separate()?;
        self.is_first = true;
        Ok(self.out.put_byte(b'[')?)
    }

    fn element(&mut self, cell: Cell<'_>) -> Result<(), WriteError> {
        self.separate()?;
        self.objects.value(None, cell, self.out)
    }

    fn end(&mut self) -> Result<(), WriteError> {
        self.is_first = false;
        Ok(self.out.put_byte(b']')?)
    }
}

/// Creates the error for a column whose name cannot be a key, because the name is empty or an
/// earlier column has the same name. `object` is "JSON object" or "BSON document", for the message.
pub(super) fn unfit(schema: &Schema, index: usize, name: &str, object: &str) -> Error {
    let what = if name.is_empty() {
        format!("column {index} has no name, and a {object} needs one")
    } else {
        let first = schema.columns.iter().position(|c| c.name == name);
        let first = first.unwrap_or_default();
        format!(
            "columns {first} and {index} are both named `{name}`, and the keys of a {object} are distinct"
        )
    };
    Error::new(
        ErrorKind::Programming,
        format!("{what}\ngive the column a name of its own: `select … as other_name`"),
    )
    .at_column(index, name)
}
