//! Reads a statement's rows: makes the buffers, binds them, and is the driver that the walk over a block asks.

use std::ffi::c_void;

use super::driver::Driver;
use super::ffi;
use super::quirks::FIRST_FETCH;
use super::registers::Registers;
use crate::error::{Error, ErrorKind};
use crate::odbc::block::CurrentBlock;
use crate::odbc::block::calls::{FetchCalls, RowsFetched};
use crate::odbc::block::long::RowsetReader;
use crate::odbc::block::piece::{Progress, piece_into};
use crate::odbc::block::rowset::{Access, Rowset};
use crate::odbc::column::{Kind, Planned};
use crate::source::{Budget, LongForm, LongPart, LongValues};

/// Rows that a driver with a server-side cursor is to ask for at most: more gains nothing.
const LARGEST_FETCH: usize = 1000;
/// And so many that they take about this much memory of the driver's.
const FETCH_BYTES: usize = 1 << 20;

/// How a statement's rows are bound, and where its reading stands. It fills one block or, where the next one is read while
/// another is emitted, two in turn.
pub(crate) struct Reader {
    columns: Vec<Planned>,
    /// What each rowset of the statement is made as; none before the first fetch.
    layout: Option<Layout>,
    /// Address of the rowset that the driver writes to.
    bound: usize,
    pub(crate) long_values: LongValues,
    /// Rows to be asked for at once, by the size of those seen.
    pub(crate) fetch_size: usize,
    walk: RowsetReader,
    /// What the driver writes to and reads from besides the rowset; boxed, since it keeps the addresses.
    registers: Registers,
    /// The tail of a long value can be fetched in any row of a block.
    tails: bool,
    /// `SQL_ATTR_ROW_ARRAY_SIZE` as it is set.
    array_size: usize,
    /// A column may hold values longer than its slot: the driver keeps all of them for as long as their block is current,
    /// so blocks have no more rows than it is to ask for at once.
    open: bool,
    /// Rows that a block need not have room for more of: the whole result, where the driver holds it and it is short.
    most_rows: usize,
    /// Columns (from 0) that are left out of rows, in order.
    deferred: Vec<usize>,
    /// The deferred column of the current row that was read last, and how far.
    reading: Option<usize>,
    progress: Progress,
}

/// What the rowsets of a statement have in common.
struct Layout {
    columns: Vec<(Planned, Access)>,
    capacity: usize,
    by_row: bool,
}

impl Reader {
    /// # Errors
    /// Without memory.
    pub(crate) fn new(columns: Vec<Planned>) -> Result<Reader, Error> {
        Ok(Reader {
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
            progress: Progress::default(),
        })
    }

    /// The columns, for the statement's next execution; this one reads no more.
    pub(super) fn take_columns(&mut self) -> Vec<Planned> {
        std::mem::take(&mut self.columns)
    }

    /// Makes room in a block for `most_rows` rows at most, before the first fetch: to make room for thousands takes longer than the
    /// driver's calls for one row.
    pub(super) fn expect(&mut self, most_rows: usize) {
        self.most_rows = most_rows;
    }

    /// Leaves the values of `columns` (from 0) out of rows, which then come one by one; before the first fetch.
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

    /// The next part of the deferred value in `column` of the current row, into `buffer`; `None` for NULL.
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
                "the driver gives long values in the order of their columns alone, and one behind it was read\n\
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
        // Whole units alone.
        let even = buffer.len() & !1;
        let piece = piece_into(
            &mut calls,
            column,
            spec.c_type,
            spec.terminator,
            &mut buffer[..even],
        );
        if begins {
            self.progress = Progress::default();
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

    /// Whether the next fetch begins with rows of the driver's, and needs nothing of the block before.
    pub(crate) fn is_between_blocks(&self) -> bool {
        self.deferred.is_empty() && self.walk.is_between_blocks()
    }

    /// Whether the driver, which has given so many rows, gave fewer than it was asked for: there are no more.
    pub(super) fn was_last(&self, n_rows: usize) -> bool {
        self.is_between_blocks() && n_rows < self.array_size
    }

    /// Brings the next rows into `block`; returns how many, 0 at the end.
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
            // The walk knows columns by number; their names are here.
            if let Some((index, name)) = &mut error.column {
                name.clone_from(&self.columns[*index].column.name);
            }
            blame(error, driver)
        })?;
        Ok(block.view.n_rows)
    }

    /// Whether rows can be bound one behind the other, with a moving offset; without, they come one a block.
    fn can_bind_by_row(&self, driver: &Driver<'_>, row_bytes: usize) -> bool {
        if !driver.shared.quirks.bind_offset {
            return false;
        }
        // SAFETY: integers in the pointer's place; the registers' memory does not move and outlives the statement handle
        // (see `Statement`'s drop).
        unsafe {
            if !driver.set_attribute(ffi::ATTR_ROW_BIND_TYPE, row_bytes as *mut c_void) {
                return false;
            }
            let offset = self.registers.bind_offset_ptr();
            driver.set_attribute(ffi::ATTR_ROW_BIND_OFFSET_PTR, offset)
                // Back to columns.
                || !driver.set_attribute(ffi::ATTR_ROW_BIND_TYPE, std::ptr::null_mut())
        }
    }

    /// Decides how rows are bound, in blocks sized by the budget, and tells the driver what is the same for all of them.
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
            && let Some(behind) = (first..self.columns.len()).find(|i| !is_deferred(*i))
        {
            return Err(Error::new(
                ErrorKind::NotSupported,
                "the driver gives a long value in parts only behind all other columns, and this one stands behind it\n\
                 Put the deferred columns last in the query.",
            )
            .at_column(behind, &self.columns[behind].column.name));
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
        // SAFETY: integers in the pointer's place, and pointers into the registers, which outlive the handle.
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

    /// Buffers for a block.
    fn make(&self, layout: &Layout, driver: &Driver<'_>) -> Result<Rowset, Error> {
        let spare = driver.shared.take_spare();
        Rowset::new(&layout.columns, layout.capacity, layout.by_row, spare)
    }

    /// Lets the driver write into `rowset`, unless it does so already.
    fn bind(&mut self, driver: &Driver<'_>, rowset: &Rowset) -> Result<(), Error> {
        if self.bound == rowset.address() {
            return Ok(());
        }
        for (index, slots) in rowset.columns.iter().enumerate() {
            if slots.access != Access::Bound {
                continue;
            }
            // SAFETY: the slots and indicators of `capacity` rows live in the rowset, whose memory does not move; a driver
            // writes there in SQLFetch alone, before each of which the rowset that it is to fill is bound; the length is
            // that of a slot.
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

/// Adds the driver to an error that is not one of its own diagnostics: one of its answers is at
/// fault.
fn blame(error: Error, driver: &Driver<'_>) -> Error {
    match error.kind {
        ErrorKind::Data | ErrorKind::Operational if error.sqlstate.is_empty() => {
            error.of_driver(Some(&driver.shared.facts.driver_label))
        }
        _ => error,
    }
}

/// The driver, as the walk over a block needs it.
struct HandleCalls<'a> {
    driver: &'a Driver<'a>,
    registers: &'a mut Registers,
    array_size: &'a mut usize,
    /// Rows that the next block is to have.
    n_rows: usize,
    tails: bool,
}

impl FetchCalls for HandleCalls<'_> {
    fn fetch_rows(&mut self, rowset: &Rowset, into: usize) -> RowsFetched {
        if let Err(error) = self.driver.check_cancelled() {
            return RowsFetched::failed(error);
        }
        if *self.array_size != self.n_rows {
            // SAFETY: an integer in the pointer's place, not above the rows that are bound.
            let set = unsafe {
                self.driver
                    .set_attribute(ffi::ATTR_ROW_ARRAY_SIZE, self.n_rows as *mut c_void)
            };
            if set {
                *self.array_size = self.n_rows;
            }
        }
        self.registers.arm(into * rowset.row_bytes);
        // SAFETY: a live statement inside its connection's lock; all that it writes to is bound for as many rows as
        // SQL_ATTR_ROW_ARRAY_SIZE says, `into` being below the rowset's capacity.
        let rc = unsafe { (self.driver.shared.manager.call.fetch)(self.driver.raw) };
        // By row it is one row a call, and some drivers leave the count as it is then.
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
            // An error in the last rows can come as the end (FreeTDS): nothing truncated may look complete.
            ffi::NO_DATA => (0, self.driver.check_information("SQLFetch").err()),
            // Mostly values that did not fit. A row in error is marked in its status, by most drivers; FreeTDS tells only in
            // the diagnostics that rows are missing behind those of the block.
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
                "a value is longer than its column was described, and the driver cannot fetch the rest of it in a block",
            ));
        }
        // SAFETY: a live statement positioned on a rowset that holds this row.
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
        // SAFETY: a live statement on a row; the window is alive and has the length given.
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
