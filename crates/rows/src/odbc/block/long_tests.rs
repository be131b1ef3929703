//! Tests of the block reader with a fake driver that imitates the real drivers.

use proptest::prelude::*;

use super::*;
use crate::cell::{Cell, LongKind};
use crate::odbc::block::CurrentBlock;
use crate::odbc::block::calls::RowsFetched;
use crate::odbc::column::{Described, Planned, plan};
use crate::odbc::ffi::sql;
use crate::odbc::quirks::{Width, known};
use crate::source::{Block, Emitted, RowSink};
use onecopy_text::Units;

/// Settings of the fake driver: how it reports lengths, and how it fills the buffers of
/// `SQLGetData`.
#[derive(Clone, Copy, Debug)]
struct Manner {
    by_row: bool,
    /// `true` if the text columns of the fake driver are not bound, so that `SQLGetData` reads
    /// them.
    get_data: bool,
    /// `true` if the driver reports `SQL_NO_TOTAL` instead of the number of bytes that remain of a
    /// value.
    no_total: bool,
    /// The number of bytes that the fake driver leaves unwritten at the end of a buffer. Real
    /// drivers leave bytes unwritten if they do not split characters.
    short: usize,
    /// `true` if the driver returns `SQL_NO_DATA` at the next call after a value has ended exactly
    /// at the end of the buffer.
    no_data: bool,
}

/// The call for which the fake driver returns an error.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fault {
    /// The fetch of the row with this index, counted from 0, fails. The rows before it are
    /// returned.
    Fetch(usize),
    /// `SQLGetData` fails in the row with this index, counted from 0.
    GetData(usize),
}

/// A fake driver whose result has three columns: text, numbers and text.
struct Fake {
    rows: Vec<Row>,
    manner: Manner,
    fault: Option<Fault>,
    fetched: usize,
    first: usize,
    row: usize,
    /// The column that is being read in parts, and the number of its bytes that were read; `None`
    /// if no column is being read.
    reading: Option<(usize, usize)>,
}

impl Fake {
    fn value(&self, row: usize, column: usize) -> Option<&Vec<u8>> {
        match column {
            0 => self.rows[row].0.as_ref(),
            _ => self.rows[row].2.as_ref(),
        }
    }

    fn write(&self, rowset: &Rowset, slot: usize, row: usize) {
        for column in [0, 2] {
            let slots = &rowset.columns[column];
            if slots.access == Access::GetData {
                continue;
            }
            let (to, indicator) = (
                rowset.slot_ptr(column, slot),
                rowset.indicator_ptr(column, slot),
            );
            // SAFETY: as a driver does, it writes at most the slot's bytes, and the slot's
            // indicator.
            unsafe {
                let Some(value) = self.value(row, column) else {
                    *indicator = ffi::NULL_DATA;
                    continue;
                };
                let n = value.len().min(slots.spec.bytes - 1);
                std::ptr::copy_nonoverlapping(value.as_ptr(), to, n);
                *to.add(n) = 0;
                *indicator = if n < value.len() && self.manner.no_total {
                    ffi::NO_TOTAL
                } else {
                    value.len() as isize
                };
            }
        }
        // SAFETY: `slot` is below the number of slots, and the slots of the second column have
        // eight bytes.
        unsafe {
            *rowset.slot_ptr(1, slot).cast::<i64>() = self.rows[row].1;
            *rowset.indicator_ptr(1, slot) = 8;
        }
    }
}

impl FetchCalls for Fake {
    fn fetch_rows(&mut self, rowset: &Rowset, into: usize) -> RowsFetched {
        let n = if rowset.row_bytes > 0 {
            1
        } else {
            rowset.capacity
        };
        let mut n = n.min(self.rows.len() - self.fetched);
        let mut failure = None;
        if let Some(Fault::Fetch(row)) = self.fault
            && self.fetched + n >= row
        {
            n = row - self.fetched;
            failure = Some(Error::new(ErrorKind::Data, "planted"));
        }
        for i in 0..n {
            self.write(rowset, into + i, self.fetched + i);
        }
        (self.first, self.row, self.reading) = (self.fetched, self.fetched, None);
        self.fetched += n;
        RowsFetched { n_rows: n, failure }
    }

    fn position(&mut self, row: usize) -> Result<(), Error> {
        self.row = self.first + row;
        self.reading = None;
        Ok(())
    }

    fn get_data(
        &mut self,
        column: usize,
        _: i16,
        window: &mut [u8],
    ) -> Result<(ffi::Return, isize), Error> {
        if self.fault == Some(Fault::GetData(self.row)) {
            return Err(Error::new(ErrorKind::Data, "planted"));
        }
        let from = match self.reading {
            Some((reading, from)) if reading == column => from,
            _ => 0,
        };
        let Some(value) = self.value(self.row, column).cloned() else {
            return Ok((ffi::SUCCESS, ffi::NULL_DATA));
        };
        let rest = &value[from..];
        if rest.is_empty() && from > 0 {
            return Ok((ffi::NO_DATA, 0));
        }
        let space = window.len() - 1;
        let ends = rest.len() < space || (rest.len() == space && !self.manner.no_data);
        if ends {
            window[..rest.len()].copy_from_slice(rest);
            window[rest.len()] = 0;
            self.reading = Some((column, value.len()));
            return Ok((ffi::SUCCESS, rest.len() as isize));
        }
        let n = (space - self.manner.short.min(space - 1)).min(rest.len());
        window[..n].copy_from_slice(&rest[..n]);
        window[n] = 0;
        self.reading = Some((column, from + n));
        let left = if self.manner.no_total {
            ffi::NO_TOTAL
        } else {
            // With `no_data`, the value has filled the window exactly, and the driver does not know
            // yet that the value has ended.
            (rest.len() as isize).max(space as isize + 1)
        };
        Ok((ffi::SUCCESS_WITH_INFO, left))
    }
}

type Row = (Option<Vec<u8>>, i64, Option<Vec<u8>>);

/// A row sink that joins the parts of long values.
#[derive(Default)]
struct Together {
    rows: Vec<Row>,
    row: Vec<Option<Vec<u8>>>,
    long: Option<Vec<u8>>,
    largest: usize,
}

impl RowSink for Together {
    type Error = std::convert::Infallible;
    fn begin_row(&mut self) -> Result<(), Self::Error> {
        assert!(self.row.is_empty());
        Ok(())
    }
    fn cell(&mut self, column: usize, cell: Cell<'_>) -> Result<(), Self::Error> {
        assert_eq!(column, self.row.len());
        self.row.push(match cell {
            Cell::Null => None,
            Cell::Text(Units::Utf8(t)) => Some(t.to_vec()),
            Cell::I64(n) => Some(n.to_ne_bytes().to_vec()),
            other => panic!("{other:?}"),
        });
        Ok(())
    }
    fn long_begin(&mut self, _: usize, kind: LongKind) -> Result<(), Self::Error> {
        assert_eq!(kind, LongKind::Text);
        self.long = Some(Vec::new());
        Ok(())
    }
    fn long_part(&mut self, _: usize, part: Cell<'_>) -> Result<(), Self::Error> {
        let Cell::Text(Units::Utf8(part)) = part else {
            panic!("{part:?}")
        };
        self.largest = self.largest.max(part.len());
        self.long.as_mut().unwrap().extend_from_slice(part);
        Ok(())
    }
    fn long_end(&mut self, _: usize) -> Result<(), Self::Error> {
        self.row.push(Some(self.long.take().unwrap()));
        Ok(())
    }
    fn end_row(&mut self) -> Result<bool, Self::Error> {
        let mut row = std::mem::take(&mut self.row).into_iter();
        let mut next = || row.next().unwrap();
        let (a, n, b) = (next(), next().unwrap(), next());
        self.rows
            .push((a, i64::from_ne_bytes(n.try_into().unwrap()), b));
        Ok(!self.rows.len().is_multiple_of(3))
    }
}

fn column(sql_type: i16) -> Planned {
    let d = Described {
        sql_type,
        ..Described::default()
    };
    plan(&d, Width::Narrow, known("libmaodbc.so").unwrap())
}

fn read(
    rows: &[Row],
    manner: Manner,
    capacity: usize,
    mode: LongValues,
    budget: Budget,
    fault: Option<Fault>,
) -> (Together, Option<Error>) {
    let text_access = if manner.get_data {
        Access::GetData
    } else {
        Access::Bound
    };
    let columns = [
        (column(sql::LONGVARCHAR), text_access),
        (column(sql::BIGINT), Access::Bound),
        (column(sql::LONGVARCHAR), text_access),
    ];
    let mut rowset = Rowset::new(&columns, capacity, manner.by_row, None).unwrap();
    let mut fake = Fake {
        rows: rows.to_vec(),
        manner,
        fault,
        fetched: 0,
        first: 0,
        row: 0,
        reading: None,
    };
    let mut block = CurrentBlock::default();
    let mut walk = RowsetReader::new();
    let mut together = Together::default();
    loop {
        let view = walk.advance(&mut rowset, &mut block.arena, &mut fake, mode, budget);
        block.view = match view {
            Ok(view) => view,
            Err(error) => return (together, Some(error)),
        };
        if block.view.n_rows == 0 {
            return (together, None);
        }
        block.rowset = Some(rowset);
        let mut next = 0;
        while next < block.n_rows() {
            next = match block.emit(next, &mut together).unwrap() {
                Emitted::All => block.n_rows(),
                Emitted::Paused { next_row } => next_row,
            };
        }
        rowset = block.rowset.take().unwrap();
    }
}

fn value() -> impl Strategy<Value = Option<Vec<u8>>> {
    // Lengths near the size of a slot (1,024), the sizes of parts, and the first window (16 KiB).
    let length = prop_oneof![
        0usize..40,
        1000usize..1100,
        3000usize..5000,
        16_300usize..16_500,
        40_000usize..40_010,
    ];
    proptest::option::weighted(
        0.8,
        (length, any::<u8>()).prop_map(|(n, seed)| {
            (0..n)
                .map(|i| b'a' + ((i * 31 + i / 97 + usize::from(seed)) % 26) as u8)
                .collect()
        }),
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn rows_come_together_again_whatever_the_driver_does(
        rows in proptest::collection::vec((value(), any::<i64>(), value()), 0..12),
        (by_row, get_data, no_total, no_data) in any::<(bool, bool, bool, bool)>(),
        short in 0usize..4,
        capacity in 1usize..6,
        part_bytes in prop_oneof![Just(None), (64usize..9000).prop_map(Some)],
        block_bytes in prop_oneof![Just(1usize), Just(5000), Just(1 << 20)],
        block_rows in 1usize..9,
    ) {
        let manner = Manner { by_row, get_data, no_total, short, no_data };
        let mode = match part_bytes {
            Some(part_bytes) => LongValues::Parts { part_bytes },
            None => LongValues::Whole,
        };
        let budget = Budget { block_bytes, block_rows };
        let (together, error) = read(&rows, manner, capacity, mode, budget, None);
        prop_assert!(error.is_none());
        prop_assert!(together.rows == rows);
        prop_assert!(together.largest <= part_bytes.unwrap_or(0));
    }

    #[test]
    fn rows_before_a_failure_come_first_whatever_the_driver_does(
        rows in proptest::collection::vec((value(), any::<i64>(), value()), 1..12),
        (by_row, no_total, in_fetch) in any::<(bool, bool, bool)>(),
        at in 0usize..12,
        capacity in 1usize..6,
        part_bytes in prop_oneof![Just(None), (64usize..9000).prop_map(Some)],
        block_bytes in prop_oneof![Just(1usize), Just(5000), Just(1 << 20)],
        block_rows in 1usize..9,
    ) {
        let at = at % rows.len();
        // Text columns are not bound, so each row reads its text by `SQLGetData`.
        let manner = Manner { by_row, get_data: true, no_total, short: 0, no_data: false };
        let mode = match part_bytes {
            Some(part_bytes) => LongValues::Parts { part_bytes },
            None => LongValues::Whole,
        };
        let budget = Budget { block_bytes, block_rows };
        let fault = if in_fetch { Fault::Fetch(at) } else { Fault::GetData(at) };
        let (together, error) = read(&rows, manner, capacity, mode, budget, Some(fault));
        prop_assert!(together.rows == rows[..at]);
        let error = error.unwrap();
        prop_assert_eq!(&error.message, "planted");
        prop_assert_eq!(error.row, (!in_fetch).then_some(at as u64));
    }
}
