//! Rows as JSON objects: what the array and the lines have in common, which is all but what stands between objects.

use std::marker::PhantomData;

use onecopy_text::{ByteSink, Tally, Units, convert, planted};
use onecopy_wire::WriteError;
use onecopy_wire::json::{self, KeySegments, SCALAR_BYTES};

use super::format::{RowFormat, ValueOptions, time, timestamp};
use super::long::Long;
use crate::cell::{Cell, LongKind};
use crate::error::{Error, ErrorKind};
use crate::schema::Schema;

/// What stands around the objects of a layout.
pub trait Layout: Send + 'static {
    /// Before the first.
    const BEGIN: &'static [u8];
    /// Before each but the first.
    const BETWEEN: &'static [u8];
    /// The brace that ends an object, and what stands behind each.
    const END_ROW: &'static [u8];
    /// Behind the last.
    const END: &'static [u8];
}

/// Rows as objects in the layout `L`.
#[derive(Debug)]
pub struct ObjectRows<L> {
    objects: Objects,
    layout: PhantomData<fn() -> L>,
}

impl<L: Layout> ObjectRows<L> {
    /// Rows of this schema.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Programming`] where a column has no name, or the name of one before it.
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

/// Writes the cells of a row as the members of an object.
#[derive(Debug)]
struct Objects {
    keys: KeySegments,
    options: ValueOptions,
    tally: Tally,
    long: Long,
}

impl Objects {
    /// # Errors
    /// [`ErrorKind::Programming`] where a column has no name, or the name of one before it.
    fn new(schema: &Schema, options: ValueOptions) -> Result<Objects, Error> {
        if let Some((index, name)) = schema.unfit_name() {
            return Err(unfit(schema, index, name, "JSON object"));
        }
        Ok(Objects {
            keys: KeySegments::new(schema.columns.iter().map(|c| c.name.as_str())),
            options,
            tally: Tally::default(),
            long: Long::default(),
        })
    }

    #[inline]
    fn cell<S: ByteSink>(
        &mut self,
        column: usize,
        cell: Cell<'_>,
        out: &mut S,
    ) -> Result<(), WriteError> {
        // One reservation for a key and its value, unless the value's size is not known.
        let mut w = out.window(self.cell_room_bytes())?;
        self.keys.put_into(column, &mut w);
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
            Cell::Date(value) => json::put_date(value.into(), &mut w)?,
            Cell::Time(value, digits) => json::put_time(time(value, digits), &mut w)?,
            Cell::Timestamp(value, digits) => {
                json::put_timestamp(&timestamp(value, digits), false, &mut w)?;
            }
            Cell::Interval { text, .. } => {
                w.put_byte(b'"');
                drop(w);
                self.text(Units::Utf8(text), out)?;
                out.put_byte(b'"')?;
            }
            Cell::Uuid(uuid) => json::put_uuid(&uuid, &mut w),
        }
        Ok(())
    }

    /// A key and a value whose size is known.
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
        self.long = Long::of(kind);
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

/// The error that names a column which cannot be a key of `object`, in words.
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
