//! One JSON array of objects.

use onecopy_text::{ByteSink, Tally};
use onecopy_wire::WriteError;

use super::format::{RowFormat, ValueOptions};
use super::objects::Objects;
use crate::cell::{Cell, LongKind};
use crate::error::Error;
use crate::schema::Schema;

/// `[{"id":1,"name":"a"},` and each further object on a line of its own, then `]`; no rows are `[]`.
///
/// One row a line costs a byte a row and lets line tools look into a large answer. The `]` is written by
/// [`RowFormat::end`] alone: an array that broke off does not parse.
#[derive(Debug)]
pub struct JsonRows(Objects);

impl JsonRows {
    /// Rows of this schema.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Programming`] where a column has no name, or the name of one before it.
    pub fn new(schema: &Schema, options: ValueOptions) -> Result<JsonRows, Error> {
        Objects::new(schema, options).map(JsonRows)
    }
}

impl RowFormat for JsonRows {
    fn begin<S: ByteSink>(&mut self, out: &mut S) -> Result<(), WriteError> {
        Ok(out.put_byte(b'[')?)
    }

    #[inline]
    fn begin_row<S: ByteSink>(&mut self, is_first: bool, out: &mut S) -> Result<(), WriteError> {
        if !is_first {
            out.put(b",\n")?;
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
        self.0.cell(column, cell, out)
    }

    fn long_begin<S: ByteSink>(
        &mut self,
        column: usize,
        kind: LongKind,
        out: &mut S,
    ) -> Result<(), WriteError> {
        self.0.long_begin(column, kind, out)
    }

    fn long_part<S: ByteSink>(&mut self, part: Cell<'_>, out: &mut S) -> Result<(), WriteError> {
        self.0.long_part(part, out)
    }

    fn long_end<S: ByteSink>(&mut self, out: &mut S) -> Result<(), WriteError> {
        self.0.long_end(out)
    }

    #[inline]
    fn end_row<S: ByteSink>(&mut self, out: &mut S) -> Result<(), WriteError> {
        Ok(out.put_byte(b'}')?)
    }

    fn end<S: ByteSink>(&mut self, out: &mut S) -> Result<(), WriteError> {
        Ok(out.put_byte(b']')?)
    }

    #[inline]
    fn cell_room_bytes(&self) -> usize {
        self.0.cell_room_bytes()
    }

    fn tally(&mut self) -> &mut Tally {
        &mut self.0.tally
    }
}
