//! `BlockReader`: allocates and binds the buffers for the rows of a statement, and makes the driver
//! calls for [`RowsetReader`](super::block).

use std::ffi::c_void;

use super::driver::Driver;
use super::ffi;
use super::quirks::FIRST_FETCH;
use super::registers::Registers;
use crate::error::{Error, ErrorKind};
use crate::odbc::block::CurrentBlock;
use crate::odbc::block::calls::{FetchCalls, RowsFetched};
use crate::odbc::block::long::RowsetReader;
use crate::odbc::block::piece::{ValueProgress, piece_into};
use crate::odbc::block::rowset::{Access, Rowset};
use crate::odbc::column::{Kind, Planned};
use crate::source::{Budget, LongForm, LongPart, LongValues};

/// The largest number of rows that a driver requests from a server-side cursor at a time. A larger
/// number would not be faster.
const LARGEST_FETCH: usize = 1000;
/// The approximate number of bytes that the rows of one request may occupy in the driver's memory.
const FETCH_BYTES: usize = 1 << 20;

/// Reads the rows of a statement into bound buffers, block by block. If the rows of a block are
/// emitted while the next block is fetched, the reader uses two blocks in turn, otherwise one.
pub(crate) struct BlockReader {
    columns: Vec<Planned>,
    /// The layout of all rowsets of the statement; `None` before the first fetch.
    layout: Option<Layout>,
    /// The address of the rowset that is bound now, to which the driver writes; 0 if none is bound.
    bound: usize,
    pub(crate) long_values: LongValues,
    /// The number of rows that the driver requests at a time; depends on the size of earlier rows.
    pub(crate) fetch_size: usize,
    walk: RowsetReader,
    /// Memory to which the driver writes in addition to the rowset, such as the row statuses.
    registers: Registers,
    /// `true` if the driver's `SQLGetData` can read the rest of a long value in any row of a block.
    tails: bool,
    /// The current value of `SQL_ATTR_ROW_ARRAY_SIZE`.
    array_size: usize,
    /// `true` if a column may have values longer than its slot. The driver keeps these values in
    /// memory until the next fetch. A block then has at most the rows of one request to the server.
    open: bool,
    /// The largest number of rows of a block. The method `expect` reduces it for a statement whose
    /// result is short and completely in the driver's memory.
    most_rows: usize,
    /// The indices (from 0) of the deferred columns, in order.
    deferred: Vec<usize>,
    /// The index (from 0) of the deferred column last read in this row; `None` if none was read.
    reading: Option<usize>,
    progress: ValueProgress,
}

/// The properties that all rowsets of a statement have in common: their columns and their capacity.
struct Layout {
    columns: Vec<(Planned, Access)>,
    capacity: usize,
    by_row: bool,
}

impl BlockReader {
    /// Creates a reader for the rows of these columns.
    ///
    /// # Errors
    /// An allocation failed.
    pub(crate) fn new(columns: Vec<Planned>) -> Result<BlockReader, Error> {
        Ok(BlockReader {
            columns,
            layout: None,
            bound: 0,
            long_values: LongValues::Whole,
            fetch_size: FIRST_FETCH,
            walk: RowsetReader::new(),
            registers: Registers::new(0)?,
            tails: false,
            array_size: 0,
            open: false,
            most_rows: usize::MAX,
            deferred: Vec::new(),
            reading: None,
            progress: ValueProgress::default(),
        })
    }

    /// Moves the columns out of the reader, so that the next execution of the statement can use
    /// them. The reader must not be used afterwards.
    pub(super) fn take_columns(&mut self) -> Vec<Planned> {
        std::mem::take(&mut self.columns)
    }

    /// Sets the largest number of rows of a block. A caller that needs few rows calls this method
    /// before the first fetch, because the memory for thousands of rows takes long to allocate.
    pub(super) fn expect(&mut self, most_rows: usize) {
        self.most_rows = most_rows;
    }

    /// Defers the columns with these indices (from 0). Their values are not read with the row, but
    /// later in parts; rows are then fetched one by one. Must be called before the first fetch.
    pub(crate) fn defer(&mut self, mut columns: Vec<usize>) -> Result<(), Error> {
        columns.sort_unstable();
        for &index in &columns {
            let planned = &self.columns[index];
            if !planned.kind.streams() {
                return Err(Error::new(
                    ErrorKind::Programming,
                    "only columns of text and bytes can be deferred",
                )
                .at_column(index, &planned.column.name));
            }
        }
        if !columns.is_empty() {
            self.fetch_size = 1;
        }
        self.deferred = columns;
        Ok(())
    }

    /// Reads the next part of the value in the deferred column `column` of the current row into
    /// `buffer`; returns `None` if the value is NULL.
    pub(crate) fn read_part(
        &mut self,
        driver: &Driver<'_>,
        column: usize,
        begins: bool,
        buffer: &mut [u8],
    ) -> Result<Option<LongPart>, Error> {
        let planned = &self.columns[column];
        let any_order = driver.shared.facts.get_data & ffi::GD_ANY_ORDER != 0;
        if begins && self.reading.is_some_and(|last| column < last) && !any_order {
            return Err(Error::new(
                ErrorKind::NotSupported,
                "the driver returns long values only in the order of their columns, and a later one was read\n\
                 Open them from left to right.",
            )
            .at_column(column, &planned.column.name));
        }
        self.reading = Some(column);
        let spec = planned.spec;
        let form = match planned.kind {
            Kind::Binary(_) => LongForm::Bytes,
            Kind::Wide(_) => LongForm::Utf16,
            _ => LongForm::Utf8,
        };
        let mut calls = HandleCalls {
            driver,
            registers: &mut self.registers,
            array_size: &mut self.array_size,
            n_rows: 1,
            tails: self.tails,
        };
        // The window has an even size, so that it contains only whole 16-bit units.
        let even = buffer.len() & !1;
        let piece = piece_into(
            &mut calls,
            column,
            spec.c_type,
            spec.terminator,
            &mut buffer[..even],
        );
        if begins {
            self.progress = ValueProgress::default();
        }
        let piece = piece.and_then(|piece| self.progress.add(&piece).map(|()| piece));
        let piece = piece.map_err(|e| blame(e, driver).at_column(column, &planned.column.name))?;
        Ok((!piece.null).then_some(LongPart {
            form,
            n_bytes: piece.len,
            is_last: piece.last,
            is_copied: false,
        }))
    }

    /// Returns `true` if all fetched rows were returned. The next fetch then reads new rows, and
    /// the previous block is no longer needed.
    pub(crate) fn is_between_blocks(&self) -> bool {
        self.deferred.is_empty() && self.walk.is_between_blocks()
    }

    /// Returns `true` if the driver returned fewer rows than were requested, so that no rows are
    /// left.
    pub(super) fn was_last(&self, n_rows: usize) -> bool {
        self.is_between_blocks() && n_rows < self.array_size
    }

    /// Fetches the next rows into `block`. Returns the number of rows; 0 if no rows are left.
    pub(crate) fn advance(
        &mut self,
        driver: &Driver<'_>,
        block: &mut CurrentBlock,
        budget: Budget,
    ) -> Result<usize, Error> {
        self.reading = None;
        let layout = match self.layout.take() {
            Some(layout) => layout,
            None => self.lay_out(driver, budget)?,
        };
        let mut rowset = match block.rowset.take() {
            Some(rowset) => rowset,
            None => self.make(&layout, driver)?,
        };
        self.layout = Some(layout);
        self.bind(driver, &rowset)?;
        let n_rows = if self.open && rowset.row_bytes == 0 {
            rowset.capacity.min(self.fetch_size)
        } else {
            self.array_size
        };
        let mut calls = HandleCalls {
            driver,
            registers: &mut self.registers,
            array_size: &mut self.array_size,
            n_rows,
            tails: self.tails,
        };
        let view = self.walk.advance(
            &mut rowset,
            &mut block.arena,
            &mut calls,
            self.long_values,
            budget,
        );
        if let (Ok(view), true) = (&view, self.open) {
            let largest = rowset.largest_row(view.first_slot, view.n_rows, &block.arena);
            if let Some(largest) = largest {
                self.fetch_size = (FETCH_BYTES / largest).clamp(1, LARGEST_FETCH);
            }
        }
        block.rowset = Some(rowset);
        block.view = view.map_err(|mut error| {
            // The block code reports only the index of a column; the column's name is added here.
            if let Some((index, name)) = error.column.as_deref_mut() {
                name.clone_from(&self.columns[*index].column.name);
            }
            blame(error, driver)
        })?;
        Ok(block.view.n_rows)
    }

    /// Sets the statement handle to row-wise binding: each row of a rowset starts `row_bytes` after
    /// the row before it. Returns `false` if the driver cannot do so; a block then has one row.
    fn can_bind_by_row(&self, driver: &Driver<'_>, row_bytes: usize) -> bool {
        if !driver.shared.quirks.bind_offset {
            return false;
        }
        // SAFETY: integers passed as pointers, and a pointer to the registers, whose memory does
        // not move and outlives the statement handle (see `Statement`'s drop).
        unsafe {
            if !driver.set_attribute(ffi::ATTR_ROW_BIND_TYPE, row_bytes as *mut c_void) {
                return false;
            }
            let offset = self.registers.bind_offset_ptr();
            driver.set_attribute(ffi::ATTR_ROW_BIND_OFFSET_PTR, offset)
                // The statement is reset to binding by column.
                || !driver.set_attribute(ffi::ATTR_ROW_BIND_TYPE, std::ptr::null_mut())
        }
    }

    /// Chooses the layout that all rowsets of the statement have, within the limit `budget` of
    /// their size. Sets the statement attributes that follow from this layout.
    fn lay_out(&mut self, driver: &Driver<'_>, budget: Budget) -> Result<Layout, Error> {
        let extensions = driver.shared.facts.get_data;
        let broken = driver.shared.quirks.block_tails_broken;
        let any_column =
            extensions & ffi::GD_ANY_COLUMN != 0 && !driver.shared.quirks.any_column_broken;
        let bound = extensions & ffi::GD_BOUND != 0;
        self.tails = bound && extensions & ffi::GD_BLOCK != 0 && !broken;
        let is_deferred = |index: usize| self.deferred.contains(&index);
        if let Some(&first) = self.deferred.first()
            && !any_column
            && let Some(after) = (first..self.columns.len()).find(|i| !is_deferred(*i))
        {
            return Err(Error::new(
                ErrorKind::NotSupported,
                "the driver returns a long value in parts only after all other columns, and this one follows it\n\
                 Put the deferred columns last in the query.",
            )
            .at_column(after, &self.columns[after].column.name));
        }
        let is_open = |(i, p): (usize, &Planned)| p.spec.open && !is_deferred(i);
        let first_open = self.columns.iter().enumerate().position(is_open);
        let mut by_row = first_open.is_some() && !self.tails;
        let access = |(index, planned): (usize, &Planned)| {
            let after_open = first_open.is_some_and(|first| index >= first);
            let get_data = by_row && !bound && (planned.spec.open || (after_open && !any_column));
            if is_deferred(index) {
                Access::Deferred
            } else if get_data {
                Access::GetData
            } else {
                Access::Bound
            }
        };
        let columns: Vec<(Planned, Access)> = self
            .columns
            .iter()
            .enumerate()
            .map(|c| (c.1.clone(), access(c)))
            .collect();
        let row_bytes = Rowset::bytes_per_row(&self.columns);
        let most_rows = budget.block_rows.min(self.most_rows).max(1);
        let mut capacity = (budget.block_bytes / row_bytes).clamp(1, most_rows);
        if !self.deferred.is_empty() {
            (by_row, capacity) = (false, 1);
        }
        self.registers = Registers::new(capacity)?;
        if by_row && !self.can_bind_by_row(driver, Rowset::bytes_per_row(&self.columns)) {
            (by_row, capacity) = (false, 1);
        }
        let array_size = if by_row { 1 } else { capacity };
        (self.array_size, self.open) = (array_size, first_open.is_some());
        // SAFETY: integers passed as pointers, and pointers to the registers, which outlive the
        // statement handle.
        let set = unsafe {
            driver.set_attribute(ffi::ATTR_ROW_ARRAY_SIZE, array_size as *mut c_void)
                && driver.set_attribute(
                    ffi::ATTR_ROWS_FETCHED_PTR,
                    self.registers.rows_fetched_ptr(),
                )
                && driver.set_attribute(ffi::ATTR_ROW_STATUS_PTR, self.registers.statuses_ptr())
        };
        if !set {
            return Err(driver.error("SQLSetStmtAttr"));
        }
        Ok(Layout {
            columns,
            capacity,
            by_row,
        })
    }

    /// Creates the buffers of a block, if possible in memory that an earlier statement has left.
    fn make(&self, layout: &Layout, driver: &Driver<'_>) -> Result<Rowset, Error> {
        let spare = driver.shared.take_spare();
        Rowset::new(&layout.columns, layout.capacity, layout.by_row, spare)
    }

    /// Binds the buffers of `rowset`, unless they are bound already.
    fn bind(&mut self, driver: &Driver<'_>, rowset: &Rowset) -> Result<(), Error> {
        if self.bound == rowset.address() {
            return Ok(());
        }
        for (index, slots) in rowset.columns.iter().enumerate() {
            if slots.access != Access::Bound {
                continue;
            }
            // SAFETY: the rowset owns the slots and indicators of `capacity` rows, and its memory
            // does not move. A driver writes there only in SQLFetch, and the rowset to fill is
            // bound before each SQLFetch. The length passed is that of a slot.
            let rc = unsafe {
                (driver.shared.manager.call.bind_col)(
                    driver.raw,
                    u16::try_from(index + 1).unwrap_or(u16::MAX),
                    slots.spec.c_type,
                    rowset.slot_ptr(index, 0).cast(),
                    slots.spec.bytes as ffi::Len,
                    rowset.indicator_ptr(index, 0),
                )
            };
            if rc != ffi::SUCCESS && rc != ffi::SUCCESS_WITH_INFO {
                return Err(driver
                    .error("SQLBindCol")
                    .at_column(index, &self.columns[index].column.name));
            }
        }
        self.bound = rowset.address();
        Ok(())
    }
}

/// Adds the driver's name to an error of this crate about an invalid result of the driver.
fn blame(error: Error, driver: &Driver<'_>) -> Error {
    match error.kind {
        ErrorKind::Data | ErrorKind::Operational if error.sqlstate.is_empty() => {
            error.of_driver(Some(&driver.shared.facts.driver_label))
        }
        _ => error,
    }
}

/// The implementation of the trait `FetchCalls` by calls of the ODBC driver.
struct HandleCalls<'a> {
    driver: &'a Driver<'a>,
    registers: &'a mut Registers,
    array_size: &'a mut usize,
    /// The number of rows that the next call to `SQLFetch` may return.
    n_rows: usize,
    tails: bool,
}

impl FetchCalls for HandleCalls<'_> {
    fn fetch_rows(&mut self, rowset: &Rowset, into: usize) -> RowsFetched {
        if let Err(error) = self.driver.check_cancelled() {
            return RowsFetched::failed(error);
        }
        if *self.array_size != self.n_rows {
            // SAFETY: an integer passed as the pointer; it is not above the number of bound rows.
            let set = unsafe {
                self.driver
                    .set_attribute(ffi::ATTR_ROW_ARRAY_SIZE, self.n_rows as *mut c_void)
            };
            if set {
                *self.array_size = self.n_rows;
            }
        }
        self.registers.arm(into * rowset.row_bytes);
        // SAFETY: a live statement inside its connection's lock; all memory to which it writes is
        // bound for as many rows as SQL_ATTR_ROW_ARRAY_SIZE states, and `into` is below the
        // rowset's capacity.
        let rc = unsafe { (self.driver.shared.manager.call.fetch)(self.driver.raw) };
        // In the layout by row each call returns one row, and some drivers do not report the
        // number.
        let reported = self.registers.rows_fetched();
        let (n_rows, most) = match rowset.row_bytes {
            0 => (reported, (*self.array_size).min(rowset.capacity)),
            _ => (1, 1),
        };
        if n_rows.max(reported) > most && rc != ffi::NO_DATA {
            let message = format!("the driver reports {reported} rows in a block of {most}");
            return RowsFetched::failed(Error::new(ErrorKind::Operational, message));
        }
        let (n_rows, failure) = match rc {
            ffi::SUCCESS if n_rows == 0 => {
                let message = "the driver reports neither rows nor their end";
                return RowsFetched::failed(Error::new(ErrorKind::Operational, message));
            }
            ffi::SUCCESS => match self.registers.row_error(n_rows) {
                Some(good) => (good, Some(self.driver.error("SQLFetch"))),
                None => (n_rows, None),
            },
            // FreeTDS may report an error in the last rows as the end of the rows. A truncated
            // result must not look complete.
            ffi::NO_DATA => (0, self.driver.check_information("SQLFetch").err()),
            // Usually the records report values that did not fit. Most drivers mark a failed row in
            // its status. FreeTDS reports missing rows after the block's rows only in its
            // diagnostics.
            ffi::SUCCESS_WITH_INFO => match self.registers.row_error(n_rows) {
                Some(good) => (good, Some(self.driver.error("SQLFetch"))),
                None => (n_rows, self.driver.check_information("SQLFetch").err()),
            },
            _ => {
                let error = self.driver.error("SQLFetch");
                (self.registers.good_rows(n_rows), Some(error))
            }
        };
        match self.driver.check_cancelled() {
            Ok(()) => RowsFetched { n_rows, failure },
            Err(cancelled) => RowsFetched::failed(failure.unwrap_or(cancelled)),
        }
    }

    fn position(&mut self, row: usize) -> Result<(), Error> {
        if !self.tails {
            return Err(Error::new(
                ErrorKind::Data,
                "a value is longer than the description of its column, and the driver cannot fetch its rest",
            ));
        }
        // SAFETY: a live statement whose current rowset contains this row.
        let rc = unsafe {
            (self.driver.shared.manager.call.set_pos)(
                self.driver.raw,
                row + 1,
                ffi::POSITION,
                ffi::LOCK_NO_CHANGE,
            )
        };
        if rc != ffi::SUCCESS && rc != ffi::SUCCESS_WITH_INFO {
            return Err(self.driver.error("SQLSetPos"));
        }
        Ok(())
    }

    fn get_data(
        &mut self,
        column: usize,
        c_type: i16,
        window: &mut [u8],
    ) -> Result<(ffi::Return, isize), Error> {
        self.driver.check_cancelled()?;
        let mut indicator: ffi::Len = 0;
        // SAFETY: a live statement with a current row; the window is alive and has the length
        // given.
        let rc = unsafe {
            (self.driver.shared.manager.call.get_data)(
                self.driver.raw,
                u16::try_from(column + 1).unwrap_or(u16::MAX),
                c_type,
                window.as_mut_ptr().cast(),
                window.len() as ffi::Len,
                &raw mut indicator,
            )
        };
        match rc {
            ffi::SUCCESS | ffi::SUCCESS_WITH_INFO | ffi::NO_DATA => Ok((rc, indicator)),
            _ => Err(self.driver.error("SQLGetData")),
        }
    }
}
