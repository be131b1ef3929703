//! `Rows`: a block of rows of PostgreSQL. The rows remain in the buffer into which the socket
//! received them, and each cell is a slice of this buffer. The position of a cell is computed from
//! the lengths of the values before it in the row.

use std::cell::Cell as MutCell;
use std::ops::Range;
use std::sync::Arc;

use onecopy_text::Units;

use super::buffer::Buffer;
use super::date_time;
use super::message::{HEADER_BYTES, violation};
use super::row_check::{COUNT_BYTES, check, four, wrong};
use super::split_row::{LONG_ROW_BYTES, Parts, Piece, SplitRow};
use super::types::Kind;
use super::value_cell::{as_text, cell};
use crate::cell::{ArrayText, Cell};
use crate::error::Error;
use crate::source::{Block, Emitted, RowSink};

/// The maximum size in bytes of one part of a deferred value (a value that is read only on
/// request). It is used for long rows if no other size of parts was set.
const DEFERRED_PART_BYTES: usize = 64 << 10;

/// The result of [`Rows::deferred_value`]: bytes of a value that was not emitted with its row,
/// because its column is deferred.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum DeferredValue<'a> {
    Null,
    /// Some bytes of the value, and `true` if they are the last bytes of the value.
    Bytes(&'a [u8], bool),
    /// The next bytes were not received yet.
    NotReceived,
}

/// A block of rows of a result. The rows remain in the format in which the PostgreSQL server sent
/// them.
#[derive(Debug, Default)]
pub struct Rows {
    /// The buffer with consecutive DataRow messages; only a long row may be incomplete. `None` if
    /// no rows were received.
    buffer: Option<Buffer>,
    kinds: Arc<[Kind]>,
    /// The end of this block in the buffer: the number of bytes of this block and of all earlier
    /// blocks in it.
    n_read: usize,
    /// For each row of this block, the offset in the buffer of its first value.
    rows: Vec<u32>,
    /// The index in this block of the row that was emitted most recently.
    last_emitted: MutCell<usize>,
    /// How far a long row was read. A long row is processed before all its bytes have arrived.
    /// `None` if no such row is being read.
    split: Option<SplitRow>,
    /// The [`Piece`] of a long row (some values, or a part of one value) that is the current block,
    /// and its offset in the buffer. `None` if the block consists of complete rows.
    piece: Option<(Piece, usize)>,
    /// If `piece` is a part of a value: the offset of its first byte in that value.
    part_offset: u64,
    /// If the reader is a row stream: the maximum size in bytes of the parts in which it reads long
    /// values; otherwise `None`.
    part_bytes: Option<usize>,
    /// The values of a long row that are read in parts; `None` if every row is read whole.
    parts: Option<Parts>,
    /// `true` for each deferred column, whose values are read only on request; empty if no column
    /// is deferred.
    deferred: Vec<bool>,
    far_dates_as_text: bool,
}

impl Rows {
    pub(super) fn new(kinds: Arc<[Kind]>, far_dates_as_text: bool) -> Rows {
        Rows {
            kinds,
            far_dates_as_text,
            ..Rows::default()
        }
    }

    /// Replaces the current buffer by `buffer`, so that the next block starts at the first row of
    /// `buffer`. Returns the previous buffer.
    pub(super) fn replace(&mut self, buffer: Buffer) -> Option<Buffer> {
        let old = self.take_buffer();
        self.buffer = Some(buffer);
        old
    }

    /// Removes the buffer, and with it all rows; returns the buffer.
    pub(super) fn take_buffer(&mut self) -> Option<Buffer> {
        self.rows.clear();
        self.piece = None;
        self.n_read = 0;
        self.buffer.take()
    }

    pub(super) fn kinds(&self) -> &Arc<[Kind]> {
        &self.kinds
    }

    /// Returns which values of long rows are read in parts; `None` if every row is read whole.
    pub(super) fn parts(&self) -> Option<&Parts> {
        self.parts.as_ref()
    }

    /// Sets the maximum size in bytes of one part of a value. Long values of all columns are read
    /// in parts of at most this size. With `None`, every value is read whole.
    pub(super) fn set_part_bytes(&mut self, part_bytes: Option<usize>) {
        self.part_bytes = part_bytes;
        self.update_parts();
    }

    /// Sets which columns are deferred. The values of a deferred column are not emitted with the
    /// rows. `deferred` has one item per column, which is `true` if the column is deferred. It is
    /// empty if no column is deferred. Deferred values are read in parts only if all columns after
    /// the first deferred column are deferred too.
    pub(super) fn set_deferred(&mut self, deferred: Vec<bool>) {
        self.deferred = deferred;
        self.update_parts();
    }

    fn update_parts(&mut self) {
        let first = self.deferred.iter().position(|is_deferred| *is_deferred);
        let first = first.filter(|first| self.deferred[*first..].iter().all(|d| *d));
        let parts = match self.part_bytes {
            Some(part_bytes) => Some((0, part_bytes.max(1))),
            None => first.map(|first| (first, DEFERRED_PART_BYTES)),
        };
        self.parts = parts.map(|(first_column, part_bytes)| Parts {
            kinds: Arc::clone(&self.kinds),
            first_column,
            part_bytes,
        });
    }

    /// Returns `true` if the result has deferred columns, whose values are read only on request.
    pub(super) fn has_deferred(&self) -> bool {
        !self.deferred.is_empty()
    }

    /// Returns `true` if the buffer contains rows after this block.
    pub(super) fn has_more(&self) -> bool {
        self.bytes().len() > self.n_read
    }

    fn bytes(&self) -> &[u8] {
        self.buffer.as_ref().map_or(&[], Buffer::bytes)
    }

    /// Makes the next rows of the buffer, at most `most_rows`, the current block, and returns their
    /// number. All lengths in these rows are checked here, so emitting the block cannot fail.
    ///
    /// # Errors
    /// A row does not have the columns that the server described, or the lengths of its values do
    /// not add up to its length.
    pub(super) fn advance(&mut self, most_rows: usize) -> Result<usize, Error> {
        self.rows.clear();
        self.piece = None;
        self.last_emitted.set(0);
        let Some(buffer) = &mut self.buffer else {
            return Ok(0);
        };
        let bytes = buffer.bytes_mut();
        if let Some(split) = &mut self.split
            && !self.deferred.is_empty()
            && !split.is_at_start()
        {
            // The caller may not have read all deferred values of the last row, so its remaining
            // bytes are skipped.
            self.n_read += split.skip_pieces(&mut bytes[self.n_read..])?;
            if !split.is_at_end() {
                return Ok(0);
            }
            self.split = None;
        }
        while self.split.is_none()
            && self.rows.len() < most_rows
            && bytes.len() - self.n_read >= HEADER_BYTES
        {
            let len = u32::from_be_bytes(four(bytes, self.n_read + 1)) as usize + 1;
            if let Some(parts) = self.parts.as_ref().filter(|_| len >= LONG_ROW_BYTES) {
                if self.rows.is_empty() {
                    self.split = Some(SplitRow::new(len, parts.clone()));
                    self.n_read += HEADER_BYTES;
                }
                break;
            }
            let row = &mut bytes[self.n_read..self.n_read + len];
            match check(&mut row[HEADER_BYTES..], &self.kinds) {
                Ok(()) => {}
                // The rows before the invalid row are returned first; the next call returns the
                // error.
                Err(_) if !self.rows.is_empty() => break,
                Err(fault) => return Err(wrong(fault)),
            }
            let first = self.n_read + HEADER_BYTES + COUNT_BYTES;
            self.rows
                .push(u32::try_from(first).map_err(|_| violation("too long a row"))?);
            self.n_read += len;
        }
        if self.split.is_some() {
            return self.next_piece().map(usize::from);
        }
        Ok(self.rows.len())
    }

    /// Returns the value (`None` for NULL) whose length field is at offset `at` of `bytes`, and the
    /// offset of the next value.
    #[inline]
    fn value(bytes: &[u8], at: usize) -> (Option<&[u8]>, usize) {
        let len = i32::from_be_bytes(four(bytes, at));
        let start = at + 4;
        match usize::try_from(len) {
            Ok(len) => (Some(&bytes[start..start + len]), start + len),
            Err(_) => (None, start),
        }
    }

    /// Makes the next [`Piece`] of the long row the current block. A piece consists of some values
    /// of the row, or of a part of one value. Returns `false` if the next piece is not yet in the
    /// buffer completely.
    fn next_piece(&mut self) -> Result<bool, Error> {
        match self.piece.take() {
            Some((Piece::Part { bytes, .. }, _)) => self.part_offset += bytes.len() as u64,
            Some((Piece::Cells { .. }, _)) => self.part_offset = 0,
            None => {}
        }
        let (Some(buffer), Some(split)) = (&mut self.buffer, &mut self.split) else {
            return Ok(false);
        };
        let Some((piece, n)) = split.next_piece(&mut buffer.bytes_mut()[self.n_read..])? else {
            return Ok(false);
        };
        self.piece = Some((piece, self.n_read));
        self.n_read += n;
        if split.is_at_end() {
            self.split = None;
        }
        Ok(true)
    }

    /// Returns received bytes of a deferred value (a value that is read only on request). The value
    /// is in `column` of the row that was emitted last, and its bytes are returned from byte
    /// `offset` on. In a long row, this call skips the values to the left of `column`. Returns
    /// `None` if an earlier call has skipped the requested value.
    ///
    /// # Errors
    /// The lengths of the row's values do not add up to the length of the row.
    pub(super) fn deferred_value(
        &mut self,
        column: usize,
        offset: u64,
    ) -> Result<Option<DeferredValue<'_>>, Error> {
        if let Some(first) = self.rows.get(self.last_emitted.get()) {
            return Ok(Some(self.complete_value(*first as usize, column, offset)));
        }
        loop {
            match &self.piece {
                Some((Piece::Cells { columns, at, .. }, start)) => {
                    if column < columns.start {
                        return Ok(None);
                    }
                    if columns.contains(&column) {
                        let n_before = column - columns.start;
                        return Ok(Some(self.complete_value(start + at, n_before, offset)));
                    }
                }
                Some((
                    Piece::Part {
                        column: current,
                        bytes,
                        is_last,
                        ..
                    },
                    start,
                )) => {
                    if column < *current {
                        return Ok(None);
                    }
                    let n_before = usize::try_from(offset - self.part_offset.min(offset));
                    let n_before = n_before.unwrap_or(usize::MAX).min(bytes.len());
                    if column == *current && (n_before < bytes.len() || *is_last) {
                        let rest = start + bytes.start + n_before..start + bytes.end;
                        let is_last = *is_last;
                        return Ok(Some(DeferredValue::Bytes(&self.bytes()[rest], is_last)));
                    }
                }
                None => {}
            }
            if !self.next_piece()? {
                return Ok(Some(DeferredValue::NotReceived));
            }
        }
    }

    /// Returns the bytes of a value from byte `offset` of the value on. The value must have been
    /// received completely. `at` is the position in the buffer of an earlier value's length field,
    /// and `n_before` is the number of values from that one up to the requested one.
    fn complete_value(&self, mut at: usize, n_before: usize, offset: u64) -> DeferredValue<'_> {
        let bytes = self.bytes();
        for _ in 0..n_before {
            at = Self::value(bytes, at).1;
        }
        let offset = usize::try_from(offset).unwrap_or(usize::MAX);
        match Self::value(bytes, at).0 {
            Some(value) => DeferredValue::Bytes(value.get(offset..).unwrap_or_default(), true),
            None => DeferredValue::Null,
        }
    }

    /// Returns the text of a date or timestamp outside the years 1 to 9999, or of a range with such
    /// a bound, if the option `far_dates_as_text` is set. Otherwise returns `None`.
    #[inline]
    fn far_date(&self, cell: Cell<'_>, value: &[u8], kind: Kind) -> Option<String> {
        match self.far_dates_as_text {
            true => date_time::far_text(cell).map(|text| match kind {
                // The cell may have another offset than the server's text.
                Kind::TimestampText(_) => String::from_utf8_lossy(value).into_owned(),
                _ => text,
            }),
            false => None,
        }
    }

    /// Returns the cell; if it is an array, with the option `far_dates_as_text` for its elements.
    #[inline]
    fn with_option<'c>(&self, cell: Cell<'c>) -> Cell<'c> {
        match cell {
            Cell::Array(array) if self.far_dates_as_text => Cell::Array(ArrayText {
                far_dates_as_text: true,
                ..array
            }),
            cell => cell,
        }
    }

    /// Emits the values of `columns` to `sink`. `bytes` are the contents of the buffer. The value
    /// of the first of these columns begins with its length field, at offset `at` of `bytes`.
    /// Deferred values are emitted as NULL.
    #[inline(always)]
    fn cells<S: RowSink>(
        &self,
        bytes: &[u8],
        columns: Range<usize>,
        mut at: usize,
        sink: &mut S,
    ) -> Result<(), S::Error> {
        let first = columns.start;
        for (index, kind) in self.kinds[columns].iter().enumerate() {
            let column = first + index;
            let (value, next) = Self::value(bytes, at);
            at = next;
            match value {
                Some(value) if !self.is_deferred(column) => {
                    let cell = cell(value, *kind);
                    match self.far_date(cell, value, *kind) {
                        None => sink.cell(column, self.with_option(cell))?,
                        Some(text) => sink.cell(column, as_text(&text))?,
                    }
                }
                _ => sink.cell(column, Cell::Null)?,
            }
        }
        Ok(())
    }

    fn emit_piece<S: RowSink>(
        &self,
        piece: &Piece,
        start: usize,
        sink: &mut S,
    ) -> Result<(), S::Error> {
        let ends_row = match piece {
            Piece::Cells { columns, at, next } => {
                if columns.start == 0 && *at > 0 {
                    sink.begin_row()?;
                }
                self.cells(self.bytes(), columns.clone(), start + at, sink)?;
                match next {
                    Some((first, _)) if self.has_deferred() => {
                        for column in *first..self.kinds.len() {
                            sink.cell(column, Cell::Null)?;
                        }
                    }
                    Some((column, kind)) => sink.long_begin(*column, *kind)?,
                    None => {}
                }
                next.is_none() || self.has_deferred()
            }
            Piece::Part {
                column,
                bytes,
                is_text,
                is_last,
                ends_row,
            } => {
                let part = &self.bytes()[start + bytes.start..start + bytes.end];
                let part = match is_text {
                    true => Cell::Text(Units::Utf8(part)),
                    false => Cell::Bytes(part),
                };
                sink.long_part(*column, part)?;
                if *is_last {
                    sink.long_end(*column)?;
                }
                *ends_row
            }
        };
        // The return value of `end_row` is not needed, because a piece is a whole block, which ends
        // here.
        if ends_row {
            sink.end_row()?;
        }
        Ok(())
    }

    fn is_deferred(&self, column: usize) -> bool {
        self.deferred.get(column).copied().unwrap_or(false)
    }
}

impl Block for Rows {
    fn n_rows(&self) -> usize {
        self.rows.len() + usize::from(self.piece.is_some())
    }

    fn emit<S: RowSink>(&self, first_row: usize, sink: &mut S) -> Result<Emitted, S::Error> {
        if let Some((piece, start)) = &self.piece {
            self.emit_piece(piece, *start, sink)?;
            return Ok(Emitted::All);
        }
        let bytes = self.bytes();
        for (row, start) in self.rows.iter().enumerate().skip(first_row) {
            sink.begin_row()?;
            self.last_emitted.set(row);
            self.cells(bytes, 0..self.kinds.len(), *start as usize, sink)?;
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
        let (mut places, n_received) = match &self.piece {
            // A row whose deferred values were not received yet.
            Some((Piece::Cells { columns, at, .. }, start)) => {
                // A row does not extend past the end of the buffer, whose offsets fit into `u32`.
                (vec![(start + at) as u32], columns.end)
            }
            _ => (
                self.rows[first_row..first_row + n_rows].to_vec(),
                self.kinds.len(),
            ),
        };
        for (column, kind) in self.kinds.iter().enumerate() {
            if column >= n_received {
                for row in 0..n_rows {
                    sink.column_cell(row, column, Cell::Null)?;
                }
                continue;
            }
            for (row, at) in places.iter_mut().enumerate() {
                let (value, next) = Self::value(bytes, *at as usize);
                // The offset fits into 32 bits: the length was checked before, and no row extends
                // past the end of the buffer.
                *at = next as u32;
                match value {
                    Some(value) if !self.is_deferred(column) => {
                        let cell = cell(value, *kind);
                        match self.far_date(cell, value, *kind) {
                            None => sink.column_cell(row, column, self.with_option(cell))?,
                            Some(text) => sink.column_cell(row, column, as_text(&text))?,
                        }
                    }
                    _ => sink.column_cell(row, column, Cell::Null)?,
                }
            }
        }
        sink.end_columns()
    }
}
