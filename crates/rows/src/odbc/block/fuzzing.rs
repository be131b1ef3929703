//! A fake driver that returns arbitrary bytes, for the fuzz target of the block reader.

use std::sync::Arc;

use onecopy_wire::CancelHandle;

use super::CurrentBlock;
use super::calls::{FetchCalls, RowsFetched};
use super::long::RowsetReader;
use super::rowset::{Access, Rowset};
use crate::error::{Error, ErrorKind};
use crate::odbc::column::{Described, plan};
use crate::odbc::ffi::{self, sql};
use crate::odbc::quirks::{UNKNOWN, Width};
use crate::schema::Schema;
use crate::source::{Budget, Fetched, LongValues, Source};

/// The SQL types and sizes of the columns of the fake driver. The size determines the buffer of a
/// column: either every value fits into the buffer, or only short values fit.
const TYPES: [(i16, usize); 18] = [
    (sql::VARCHAR, 5),
    (sql::LONGVARCHAR, 0),
    (sql::VARBINARY, 7),
    (sql::LONGVARBINARY, 0),
    (sql::DECIMAL, 10),
    (sql::INTEGER, 10),
    (sql::BIGINT, 19),
    (sql::REAL, 7),
    (sql::DOUBLE, 15),
    (sql::BIT, 1),
    (sql::TYPE_DATE, 10),
    (sql::TYPE_TIME, 8),
    (sql::TYPE_TIMESTAMP, 26),
    (sql::SS_TIME2, 16),
    (sql::SS_TIMESTAMPOFFSET, 34),
    (sql::GUID, 36),
    (sql::INTERVAL_LAST, 20),
    (0, usize::MAX),
];

/// Indicators for the fake driver to report: special values of ODBC and of the module `rowset`, and
/// lengths that are short, too large or negative.
const INDICATORS: [isize; 14] = [
    ffi::NULL_DATA,
    ffi::NO_TOTAL,
    0,
    3,
    8,
    5000,
    100 << 30,
    isize::MAX,
    isize::MIN,
    -2,
    -1_000_000,
    -1_000_001,
    -1_000_002,
    -100,
];

/// The input bytes of a fuzz target. The fake driver reads the next bytes at each of its calls, and
/// they determine the result of the call.
struct Answers {
    bytes: Vec<u8>,
    at: usize,
}

impl Answers {
    fn byte(&mut self) -> Option<usize> {
        let byte = self.bytes.get(self.at).copied();
        self.at += 1;
        byte.map(usize::from)
    }

    fn take(&mut self, n: usize) -> &[u8] {
        let from = self.at.min(self.bytes.len());
        let to = (from + n).min(self.bytes.len());
        self.at = to;
        &self.bytes[from..to]
    }

    /// Returns an ODBC length indicator: one of [`INDICATORS`] or an arbitrary number. The number
    /// for a binary value is small, because the reader copies as many bytes as the indicator
    /// specifies, and a large number would make the fuzz target slow.
    fn indicator(&mut self, is_binary: bool) -> isize {
        let chosen = self.byte().unwrap_or_default();
        let indicator = match INDICATORS.get(chosen) {
            Some(indicator) => *indicator,
            None if chosen < 128 => chosen.cast_signed(),
            None => {
                let mut bytes = [0xFF; 8];
                let given = self.take(chosen % 9);
                bytes[..given.len()].copy_from_slice(given);
                isize::from_le_bytes(bytes)
            }
        };
        match is_binary {
            true => indicator.min(100_000),
            false => indicator,
        }
    }
}

impl FetchCalls for Answers {
    fn fetch_rows(&mut self, rowset: &Rowset, into: usize) -> RowsFetched {
        let most = if rowset.row_bytes > 0 {
            1
        } else {
            rowset.capacity
        };
        let n_rows = self.byte().map_or(0, |n| n % (most + 1));
        for slot in into..into + n_rows {
            for (column, slots) in rowset.columns.iter().enumerate() {
                if slots.access != Access::Bound {
                    continue;
                }
                let indicator = self.indicator(slots.spec.variable && slots.spec.terminator == 0);
                let n = self.byte().unwrap_or_default().min(slots.spec.bytes);
                let value = self.take(n);
                // SAFETY: as a driver does, it writes at most the slot's bytes, and the slot's
                // indicator; `slot` is below the capacity, because a block has `most` rows, and
                // `into` is below the capacity.
                unsafe {
                    let to = rowset.slot_ptr(column, slot);
                    std::ptr::copy_nonoverlapping(value.as_ptr(), to, value.len());
                    *rowset.indicator_ptr(column, slot) = indicator;
                }
            }
        }
        RowsFetched {
            n_rows,
            failure: None,
        }
    }

    fn position(&mut self, _row: usize) -> Result<(), Error> {
        Ok(())
    }

    fn get_data(
        &mut self,
        _column: usize,
        c_type: i16,
        window: &mut [u8],
    ) -> Result<(ffi::Return, isize), Error> {
        let Some(chosen) = self.byte() else {
            return Ok((ffi::NO_DATA, 0));
        };
        let code = [ffi::SUCCESS, ffi::SUCCESS_WITH_INFO, ffi::NO_DATA][chosen % 3];
        if chosen == 255 {
            return Err(Error::new(ErrorKind::Operational, "the driver failed"));
        }
        let indicator = self.indicator(c_type == ffi::c::BINARY);
        let n = self.byte().unwrap_or_default();
        let value = self.take(n.min(window.len()));
        window[..value.len()].copy_from_slice(value);
        if chosen & 64 != 0 {
            // The whole window is filled, and its last two bytes are a terminator.
            window.fill(b'x');
            let end = window.len().saturating_sub(2);
            window[end..].fill(0);
        }
        Ok((code, indicator))
    }
}

/// The rows of a fake driver, which the block reader reads. The fuzz target iterates over them.
pub struct AnsweredRows {
    schema: Schema,
    walk: RowsetReader,
    block: CurrentBlock,
    answers: Answers,
    long_values: LongValues,
}

impl AnsweredRows {
    /// Creates a fake ODBC driver for a fuzz target, and a block reader that reads its rows. The
    /// input `bytes` determine the columns and the results of the driver's calls.
    ///
    /// # Panics
    /// If the allocation of a few small rows fails.
    #[must_use]
    pub fn new(bytes: &[u8]) -> AnsweredRows {
        let mut answers = Answers {
            bytes: bytes.to_vec(),
            at: 0,
        };
        let mut next = || answers.byte().unwrap_or_default();
        let (manner, n_columns, capacity) = (next(), 1 + next() % 4, 1 + next() % 5);
        let width = [Width::Narrow, Width::Wide][manner & 1];
        let columns: Vec<_> = (0..n_columns)
            .map(|index| {
                let chosen = next();
                let (sql_type, size) = TYPES[chosen % TYPES.len()];
                let described = Described {
                    name: format!("c{index}"),
                    sql_type,
                    size,
                    ..Described::default()
                };
                let access = match chosen & 128 {
                    0 => Access::Bound,
                    _ => Access::GetData,
                };
                (plan(&described, width, &UNKNOWN), access)
            })
            .collect();
        let described = columns.iter().map(|(planned, _)| planned.column.clone());
        let schema = Schema::of_driver(described.collect(), &Arc::from("driver"));
        let rowset = Rowset::new(&columns, capacity, manner & 2 != 0, None);
        let block = CurrentBlock {
            rowset: Some(rowset.expect("a few rows of a few KiB")),
            ..CurrentBlock::default()
        };
        AnsweredRows {
            schema,
            walk: RowsetReader::new(),
            block,
            answers,
            long_values: match manner & 4 {
                0 => LongValues::Whole,
                _ => LongValues::Parts {
                    part_bytes: 64 + 8 * (manner >> 3),
                },
            },
        }
    }
}

impl Source for AnsweredRows {
    type Block = CurrentBlock;

    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn fetch(&mut self, budget: Budget) -> Result<Fetched, Error> {
        let mut rowset = self.block.rowset.take().expect("it is put back below");
        let view = self.walk.advance(
            &mut rowset,
            &mut self.block.arena,
            &mut self.answers,
            self.long_values,
            budget,
        );
        self.block.rowset = Some(rowset);
        self.block.view = view?;
        Ok(match self.block.view.n_rows {
            0 => Fetched::End,
            n_rows => Fetched::Rows(n_rows),
        })
    }

    fn block(&self) -> &CurrentBlock {
        &self.block
    }

    fn cancel_handle(&self) -> CancelHandle {
        CancelHandle::new(|| ())
    }
}
