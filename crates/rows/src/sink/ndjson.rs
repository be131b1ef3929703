//! One JSON object a line.

use onecopy_text::{ByteSink, Tally};
use onecopy_wire::WriteError;

use super::format::{RowFormat, ValueOptions};
use super::objects::Objects;
use crate::cell::{Cell, LongKind};
use crate::error::Error;
use crate::schema::Schema;

/// `{"id":1,"name":"a"}` and LF, for each row; no rows are no bytes.
#[derive(Debug)]
pub struct NdjsonRows(Objects);

impl NdjsonRows {
    /// Rows of this schema.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Programming`] where a column has no name, or the name of one before it.
    pub fn new(schema: &Schema, options: ValueOptions) -> Result<NdjsonRows, Error> {
        Objects::new(schema, options).map(NdjsonRows)
    }
}

impl RowFormat for NdjsonRows {
    fn begin<S: ByteSink>(&mut self, _: &mut S) -> Result<(), WriteError> {
        Ok(())
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
        Ok(out.put(b"}\n")?)
    }

    fn end<S: ByteSink>(&mut self, _: &mut S) -> Result<(), WriteError> {
        Ok(())
    }

    #[inline]
    fn cell_room_bytes(&self) -> usize {
        self.0.cell_room_bytes()
    }

    fn tally(&mut self) -> &mut Tally {
        &mut self.0.tally
    }
}
