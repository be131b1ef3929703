//! `SplitRow`: the read position in a long row, which is a row of at least [`LONG_ROW_BYTES`]. The
//! long text and binary values of a long row are read in parts while the row arrives. Therefore
//! the memory in use does not grow with the length of the row.
//!
//! The connection and the statement's block of rows each have a `SplitRow` for the same row. The
//! connection uses its `SplitRow` to determine how many of the received bytes it can pass to the
//! block. The block uses the other `SplitRow` to divide these bytes into [`Piece`]s, one for each
//! fetch.

use std::ops::Range;
use std::sync::Arc;

use super::message::HEADER_BYTES;
use super::row_check::{COUNT_BYTES, check_count, check_value, value_len, wrong};
use super::types::Kind;
use crate::cell::LongKind;
use crate::error::Error;

/// The length in bytes from which a DataRow message is read in pieces. It does not depend on the
/// number of bytes that arrive at a time. Otherwise the CSV output could vary, because CSV quotes
/// each value that is written in parts.
pub(super) const LONG_ROW_BYTES: usize = 512 << 10;

/// Determines how the connection returns a long row of which it has received only a part.
#[derive(Clone, Copy, Debug)]
pub(super) enum LongRows<'a> {
    /// The row is returned after it was received completely.
    Whole,
    /// The row is not received yet, because the reader has not chosen between `Whole` and `Pieces`.
    Wait,
    /// The row is returned in pieces, as its bytes arrive. The long values that [`Parts`] selects
    /// are divided into parts.
    Pieces(&'a Parts),
}

/// Determines which values of a long row are read in parts. These are the text and binary values of
/// more than `part_bytes` bytes.
#[derive(Clone, Debug)]
pub(super) struct Parts {
    /// The kinds of all columns of the row.
    pub(super) kinds: Arc<[Kind]>,
    /// The index (from 0) of the first column whose values are read in parts.
    pub(super) first_column: usize,
    /// The largest size in bytes of one part of a value.
    pub(super) part_bytes: usize,
}

impl Parts {
    /// Determines whether a value of `len` bytes in `column` is read in parts. If so, returns the
    /// kind of the value: text or bytes. Returns `None` if the value is read as a whole.
    fn kind_of(&self, column: usize, len: usize) -> Option<LongKind> {
        if column < self.first_column || len <= self.part_bytes {
            return None;
        }
        match self.kinds[column] {
            Kind::Text => Some(LongKind::Text),
            Kind::Bytes => Some(LongKind::Bytes),
            _ => None,
        }
    }
}

/// A position in a row that is read in pieces.
#[derive(Clone, Debug)]
pub(super) struct SplitRow {
    parts: Parts,
    /// The number of bytes of the row's message that follow this position.
    row_left: usize,
    /// The index (from 0) of the column at this position. `None` at the start of the row, because
    /// a row starts with the number of its columns.
    column: Option<usize>,
    /// The number of bytes after this position that still belong to the value of `column`; 0
    /// between two values.
    value_left: usize,
}

/// A piece of a long row. It contains either complete values or a part of one value. All offsets
/// are relative to the first byte of the piece.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Piece {
    /// Complete values of consecutive columns.
    Cells {
        columns: Range<usize>,
        /// The offset of the length field before the first value.
        at: usize,
        /// The long value that follows these values: its column and its kind. `None` if these
        /// values are the last of the row.
        next: Option<(usize, LongKind)>,
    },
    /// A part of one long value, which belongs to the column with the index `column`.
    Part {
        column: usize,
        bytes: Range<usize>,
        is_text: bool,
        is_last: bool,
        /// `true` if the row has no bytes after this part.
        ends_row: bool,
    },
}

impl SplitRow {
    /// Creates a position at the start of a row: directly after the header of a DataRow message of
    /// `len` bytes.
    pub(super) fn new(len: usize, parts: Parts) -> SplitRow {
        SplitRow {
            parts,
            row_left: len - HEADER_BYTES,
            column: None,
            value_left: 0,
        }
    }

    /// Returns `true` if the position is at the start of the row.
    pub(super) fn is_at_start(&self) -> bool {
        self.column.is_none()
    }

    /// Returns `true` if the row was read completely.
    pub(super) fn is_at_end(&self) -> bool {
        self.row_left == 0 && self.column == Some(self.parts.kinds.len())
    }

    /// `received` contains the bytes that were received from the current position on. Returns the
    /// next piece of the row and its length in bytes, and moves the position to its end. Returns
    /// `None` if `received` does not contain the whole piece.
    ///
    /// # Errors
    /// The row does not have the columns that the server described, or the lengths of its values do
    /// not add up to its length.
    pub(super) fn next_piece(
        &mut self,
        received: &mut [u8],
    ) -> Result<Option<(Piece, usize)>, Error> {
        let n = received.len().min(self.row_left);
        let bytes = &mut received[..n];
        let piece = match (self.column, self.value_left) {
            (Some(column), 1..) => self.part(column, n),
            _ => self.cells(bytes)?,
        };
        match piece {
            Some((piece, n)) => {
                self.row_left -= n;
                Ok(Some((piece, n)))
            }
            None if n == self.row_left => Err(wrong("is shorter than its values")),
            None => Ok(None),
        }
    }

    /// `received` contains the bytes that were received from the current position on. Moves the
    /// position over all pieces that `received` contains completely, and returns their total length
    /// in bytes.
    pub(super) fn skip_pieces(&mut self, received: &mut [u8]) -> Result<usize, Error> {
        let mut at = 0;
        while !self.is_at_end() {
            match self.next_piece(&mut received[at..])? {
                Some((_, n)) => at += n,
                None => break,
            }
        }
        Ok(at)
    }

    fn part(&mut self, column: usize, n_received: usize) -> Option<(Piece, usize)> {
        let n = self.value_left.min(n_received).min(self.parts.part_bytes);
        if n == 0 {
            return None;
        }
        self.value_left -= n;
        let is_last = self.value_left == 0;
        if is_last {
            self.column = Some(column + 1);
        }
        let piece = Piece::Part {
            column,
            bytes: 0..n,
            is_text: self.parts.kinds[column] == Kind::Text,
            is_last,
            ends_row: is_last && column + 1 == self.parts.kinds.len() && self.row_left == n,
        };
        Some((piece, n))
    }

    fn cells(&mut self, bytes: &mut [u8]) -> Result<Option<(Piece, usize)>, Error> {
        let mut at = 0;
        let first = match self.column {
            Some(column) => column,
            None if bytes.len() < COUNT_BYTES => return Ok(None),
            None => {
                check_count(bytes, self.parts.kinds.len()).map_err(wrong)?;
                at = COUNT_BYTES;
                0
            }
        };
        let (start, mut column) = (at, first);
        while let Some(kind) = self.parts.kinds.get(column) {
            if bytes.len() - at < 4 {
                return Ok(None);
            }
            let len = value_len(bytes, at, self.row_left - at, *kind).map_err(wrong)?;
            let Some(len) = len else {
                at += 4;
                column += 1;
                continue;
            };
            if let Some(long) = self.parts.kind_of(column, len) {
                let piece = Piece::Cells {
                    columns: first..column,
                    at: start,
                    next: Some((column, long)),
                };
                (self.column, self.value_left) = (Some(column), len);
                return Ok(Some((piece, at + 4)));
            }
            if len > bytes.len() - at - 4 {
                return Ok(None);
            }
            at += 4;
            check_value(*kind, &mut bytes[at..at + len]).map_err(wrong)?;
            at += len;
            column += 1;
        }
        if at != self.row_left {
            return Err(wrong("is longer than its values"));
        }
        self.column = Some(column);
        let piece = Piece::Cells {
            columns: first..column,
            at: start,
            next: None,
        };
        Ok(Some((piece, at)))
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::option;
    use proptest::prelude::*;
    use proptest::sample::Index;

    use super::super::row_check::check;
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

    fn parts(kinds: &[Kind], first_column: usize) -> Parts {
        Parts {
            kinds: kinds.into(),
            first_column,
            part_bytes: 10,
        }
    }

    fn begin(body: &[u8], kinds: &[Kind]) -> SplitRow {
        SplitRow::new(body.len() + HEADER_BYTES, parts(kinds, 0))
    }

    /// Reads a row as if it were received in steps of `step` bytes. Joins the parts of each value,
    /// and returns the values.
    fn values(body: &[u8], kinds: &[Kind], step: usize) -> Result<Vec<Option<Vec<u8>>>, Error> {
        let (mut split, mut found) = (begin(body, kinds), Vec::new());
        let (mut at, mut received) = (0, 0);
        while !split.is_at_end() {
            let mut bytes = body[at..received].to_vec();
            match split.next_piece(&mut bytes)? {
                None => {
                    assert!(received < body.len(), "nothing more can be received");
                    received = (received + step).min(body.len());
                }
                Some((piece, n)) => {
                    match piece {
                        Piece::Cells {
                            columns,
                            at: mut offset,
                            next,
                        } => {
                            for _ in columns {
                                let len = i32::from_be_bytes(
                                    bytes[offset..offset + 4].try_into().unwrap(),
                                );
                                offset += 4;
                                found.push(usize::try_from(len).ok().map(|len| {
                                    offset += len;
                                    bytes[offset - len..offset].to_vec()
                                }));
                            }
                            found.extend(next.map(|_| Some(Vec::new())));
                        }
                        Piece::Part { bytes: range, .. } => {
                            let last = found.last_mut().and_then(Option::as_mut).unwrap();
                            last.extend_from_slice(&bytes[range]);
                        }
                    }
                    at += n;
                }
            }
        }
        assert_eq!(at, body.len());
        Ok(found)
    }

    #[test]
    fn the_pieces_are_the_row_however_it_arrives() {
        let long = [7; 95];
        let kinds = [Kind::Bytes, Kind::I32, Kind::Text, Kind::Bytes];
        for row_values in [
            [
                None,
                Some(&[0, 0, 0, 1][..]),
                Some(&b"short"[..]),
                Some(&long[..]),
            ],
            [Some(&long[..]), None, Some(&long[..40]), None],
            [
                Some(&long[..11]),
                Some(&[0; 4][..]),
                Some(&b""[..]),
                Some(&b"x"[..]),
            ],
            [None, None, None, None],
        ] {
            let body = row(&row_values);
            let expected: Vec<_> = row_values.iter().map(|v| v.map(<[u8]>::to_vec)).collect();
            for step in 1..=body.len() {
                assert_eq!(values(&body, &kinds, step).unwrap(), expected, "{step}");
            }
        }
    }

    #[test]
    fn rows_that_lie_are_errors() {
        let kinds = [Kind::Bytes, Kind::I32];
        let right = row(&[Some(&[7; 50]), Some(&[0; 4])]);
        for n in 0..right.len() {
            assert!(values(&right[..n], &kinds, 7).is_err(), "{n} bytes");
        }
        for wrong in [
            [&right[..], &[0]].concat(),
            row(&[Some(&[7; 50])]),
            row(&[Some(&[7; 50]), Some(&[0; 3])]),
            [&[0, 2][..], &[0x7f, 0xff, 0xff, 0xff], &[0; 60]].concat(),
            [&[0, 2][..], &[0xff, 0xff, 0xff, 0xfe], &[0; 60]].concat(),
        ] {
            for step in [1, 13, 100] {
                assert!(values(&wrong, &kinds, step).is_err(), "{wrong:x?}");
            }
        }
    }

    #[test]
    fn what_can_be_skipped_is_what_can_be_read() {
        let body = row(&[Some(&[7; 50]), Some(&[0; 4])]);
        let kinds = [Kind::Bytes, Kind::I32];
        for n in 0..body.len() {
            let mut skipped = begin(&body, &kinds);
            let at = skipped.skip_pieces(&mut body[..n].to_vec()).unwrap();
            let mut bytes = body[at..].to_vec();
            assert_eq!(at + skipped.skip_pieces(&mut bytes).unwrap(), body.len());
            assert!(skipped.is_at_end());
        }
    }

    proptest! {
        #[test]
        fn a_row_is_accepted_in_pieces_if_and_only_if_it_is_accepted_whole(
            row_values in vec(option::of(vec(any::<u8>(), 0..40)), 0..5),
            is_fixed in vec(any::<bool>(), 0..5),
            (position, byte) in (any::<Index>(), any::<u8>()),
            cut in 0usize..4,
            step in 1usize..64,
        ) {
            let kinds: Vec<_> = is_fixed
                .iter()
                .map(|is_fixed| if *is_fixed { Kind::Time(6) } else { Kind::Bytes })
                .collect();
            let row_values: Vec<_> = row_values.iter().map(Option::as_deref).collect();
            let mut body = row(&row_values);
            let at = position.index(body.len());
            body[at] = byte;
            body.truncate(body.len() - cut.min(body.len()));
            let whole = check(&mut body.clone(), &kinds);
            prop_assert_eq!(values(&body, &kinds, step).is_ok(), whole.is_ok());
        }
    }
}
