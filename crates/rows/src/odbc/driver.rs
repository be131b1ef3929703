//! A statement handle inside its connection's lock: the calls on it, and the errors that they give.

use std::borrow::Cow;
use std::cell::RefCell;
use std::ffi::c_void;

use super::ffi::{self, Handle};
use super::handle::StatementHandle;
use super::parameters::{self, Parameters};
use super::quirks::Width;
use super::shared::Shared;
use super::{describe, diag};
use crate::error::{Error, ErrorKind, Message};
use crate::odbc::column::{self, Planned};
use crate::sql::dialect::Dialect;
use crate::sql::named::count_marks;
use crate::sql::statements;
use crate::value::{Value, sqlite_number};

/// A statement handle inside its connection's lock.
pub(crate) struct Driver<'a> {
    pub(crate) shared: &'a Shared,
    pub(crate) handle: &'a StatementHandle,
    pub(crate) raw: Handle,
    /// What it said beside results.
    pub(crate) messages: RefCell<Vec<Message>>,
}

/// Messages that are kept of a statement: one that prints in a loop must not fill the memory.
const MOST_MESSAGES: usize = 1000;

/// Results of one statement at most, one after another, that give no rows: a driver may report them
/// without an end.
const MOST_COUNTS: u32 = 1 << 22;

/// A further result with rows: rows changed, where that is told, and its columns.
pub(crate) type Further = (Option<u64>, Vec<Planned>);

/// A function of a statement and its text.
type OfText<U> = unsafe extern "system" fn(Handle, *const U, i32) -> ffi::Return;

impl<'a> Driver<'a> {
    pub(crate) fn new(shared: &'a Shared, handle: &'a StatementHandle) -> Driver<'a> {
        Driver {
            shared,
            handle,
            raw: handle.get(),
            messages: RefCell::default(),
        }
    }

    /// Keeps what the driver says of a call that succeeded "with information".
    fn listen(&self) {
        let shared = self.shared;
        let records = diag::records(shared.manager, ffi::HANDLE_STMT, self.raw, shared.width);
        let mut messages = self.messages.borrow_mut();
        for record in records {
            if messages.len() < MOST_MESSAGES {
                messages.push(Message {
                    text: shared.secrets.scrub(record.message.trim_end()),
                    sqlstate: record.sqlstate,
                    native: record.native,
                });
            }
        }
    }

    /// What the driver says of a failed `call`; a cancelled statement's error is of that kind whatever the driver says.
    pub(crate) fn error(&self, call: &str) -> Error {
        let mut error = diag::error(
            self.shared.manager,
            ffi::HANDLE_STMT,
            self.raw,
            self.shared.width,
            self.shared.quirks.dialect,
            &self.shared.secrets,
            call,
        );
        if self.handle.is_cancelled() {
            error.kind = ErrorKind::Cancelled;
        }
        match error.sqlstate.is_empty() {
            true => error.of_driver(Some(&self.shared.facts.driver_label)),
            false => error,
        }
    }

    /// After a call that succeeded "with information": an error if that is what the information is. One look at the first
    /// record, which by the ODBC reference is the gravest.
    pub(crate) fn check_information(&self, call: &str) -> Result<(), Error> {
        let first = diag::first_state(
            self.shared.manager,
            ffi::HANDLE_STMT,
            self.raw,
            self.shared.width,
        );
        match first {
            Some(state) if !state.starts_with("01") && !state.starts_with("00") => {
                Err(self.error(call))
            }
            _ => Ok(()),
        }
    }

    /// Refuses to go on with a cancelled statement; stands before each call and after those that are long.
    pub(crate) fn check_cancelled(&self) -> Result<(), Error> {
        self.handle.next_call();
        if self.handle.is_cancelled() {
            return Err(Error::new(
                ErrorKind::Cancelled,
                "the statement was cancelled",
            ));
        }
        Ok(())
    }

    fn check(&self, rc: ffi::Return, call: &str) -> Result<ffi::Return, Error> {
        match rc {
            ffi::SUCCESS | ffi::SUCCESS_WITH_INFO | ffi::NO_DATA => {
                if rc == ffi::SUCCESS_WITH_INFO {
                    self.listen();
                }
                self.check_cancelled()?;
                Ok(rc)
            }
            ffi::INVALID_HANDLE => Err(Error::new(
                ErrorKind::Operational,
                format!("the driver finds no such statement in `{call}`"),
            )
            .of_driver(Some(&self.shared.facts.driver_label))),
            _ => Err(self.error(call)),
        }
    }

    /// Executes a text without parameters. Returns whether it changed no row, as some drivers report.
    pub(super) fn exec_direct(&self, sql: &str) -> Result<bool, Error> {
        let call = &self.shared.manager.call;
        self.with_text(sql, "SQLExecDirect", call.exec_direct, call.exec_direct_w)
    }

    pub(super) fn prepare(&self, sql: &str) -> Result<(), Error> {
        let call = &self.shared.manager.call;
        self.with_text(sql, "SQLPrepare", call.prepare, call.prepare_w)
            .map(drop)
    }

    /// Calls the one of two functions that takes the statement's text in the connection's width.
    fn with_text(
        &self,
        sql: &str,
        name: &str,
        narrow: OfText<u8>,
        wide: OfText<u16>,
    ) -> Result<bool, Error> {
        let escaped = match self.shared.quirks.dialect {
            Dialect::Postgres => statements::with_question_operators(sql),
            _ => Cow::Borrowed(sql),
        };
        let text = SqlText::new(&escaped, self.shared.width)?;
        let len = match self.shared.quirks.statement_by_terminator {
            true => ffi::NTS,
            false => text.len(),
        };
        // SAFETY: a live statement inside its connection's lock; the text is alive, has the length
        // given, and ends with a terminator.
        let rc = unsafe {
            match &text {
                SqlText::Narrow(t) => narrow(self.raw, t.as_ptr(), len),
                SqlText::Wide(t) => wide(self.raw, t.as_ptr(), len),
            }
        };
        self.check(rc, name).map(|rc| rc == ffi::NO_DATA)
    }

    /// Number of parameter markers, where the driver counts them.
    pub(super) fn n_parameters(&self) -> Option<usize> {
        let mut n = 0i16;
        // SAFETY: a live, prepared statement; the out pointer is a live local.
        let rc = unsafe { (self.shared.manager.call.num_params)(self.raw, &raw mut n) };
        (rc == ffi::SUCCESS || rc == ffi::SUCCESS_WITH_INFO)
            .then(|| usize::try_from(n).ok())
            .flatten()
    }

    /// The SQL type that the server takes a parameter (from 0) of what was prepared for, where it tells.
    pub(super) fn parameter_type(&self, index: usize) -> Option<i16> {
        let number = u16::try_from(index + 1).ok()?;
        // SAFETY: a live, prepared statement.
        let told = unsafe { parameters::described(self.raw, number, self.shared) };
        told.map(|(sql_type, ..)| sql_type)
    }

    /// Binds `values` and executes what was prepared. Returns as [`Driver::exec_direct`].
    pub(super) fn execute(&self, sql: &str, values: &[Value]) -> Result<bool, Error> {
        let ours = || count_marks(sql, self.shared.quirks.dialect);
        let n_wanted = self.n_parameters().or_else(ours);
        if let Some(n) = n_wanted.filter(|n| *n != values.len()) {
            return Err(Error::wrong_count(n, values.len()));
        }
        if !self.carries(values) {
            let told = "a text with NUL is none that this driver carries: it would cut it there\n\
                        Pass it as bytes, or without the NUL.";
            let mut error = Error::new(ErrorKind::Data, told);
            // "Character not in repertoire", as PostgreSQL says it.
            "22021".clone_into(&mut error.sqlstate);
            return Err(error);
        }
        if self.shared.quirks.dialect == Dialect::Sqlite {
            let numbers = values.iter().enumerate().map(|(i, value)| match value {
                Value::Decimal(digits) => sqlite_number(digits, i),
                value => Ok(value.clone()),
            });
            let numbers = numbers.collect::<Result<Vec<_>, _>>()?;
            return self.execute_with(&mut Parameters::new(&numbers, self.shared)?);
        }
        self.execute_with(&mut Parameters::new(values, self.shared)?)
    }

    /// Whether the driver takes these values whole.
    pub(super) fn carries(&self, values: &[Value]) -> bool {
        let has_nul = |v: &Value| matches!(v, Value::Text(text) if text.contains('\0'));
        !self.shared.quirks.cuts_at_nul || !values.iter().any(has_nul)
    }

    /// Executes what was prepared with these parameters. Returns as [`Driver::exec_direct`].
    pub(super) fn execute_with(&self, parameters: &mut Parameters) -> Result<bool, Error> {
        // SAFETY: the statement is alive; `parameters` lives until after the execution and the reset below.
        let bound = unsafe { parameters.bind_to(self.raw, self.shared) };
        let result = match bound {
            Err(index) => {
                let mut error = self.error("SQLBindParameter");
                error
                    .message
                    .push_str(&format!("\nbinding parameter {index} (from 0)"));
                Err(error)
            }
            Ok(()) => {
                // SAFETY: a live, prepared statement whose parameters are bound.
                let rc = unsafe { (self.shared.manager.call.execute)(self.raw) };
                self.check(rc, "SQLExecute")
            }
        };
        // SAFETY: a live statement; it forgets the pointers into `parameters`.
        unsafe { (self.shared.manager.call.free_stmt)(self.raw, ffi::RESET_PARAMS) };
        result.map(|rc| rc == ffi::NO_DATA)
    }

    pub(super) fn row_count(&self) -> Option<u64> {
        let mut n: ffi::Len = -1;
        // SAFETY: a live, executed statement; the out pointer is a live local.
        let rc = unsafe { (self.shared.manager.call.row_count)(self.raw, &raw mut n) };
        (rc == ffi::SUCCESS || rc == ffi::SUCCESS_WITH_INFO)
            .then(|| u64::try_from(n).ok())
            .flatten()
    }

    /// Columns of the current result; 0 where it has no rows.
    pub(super) fn n_columns(&self) -> Result<usize, Error> {
        let mut n = 0i16;
        // SAFETY: a live statement; the out pointer is a live local.
        let rc = unsafe { (self.shared.manager.call.num_result_cols)(self.raw, &raw mut n) };
        self.check(rc, "SQLNumResultCols")?;
        usize::try_from(n).map_err(|_| {
            let message = format!("the driver reports a result of {n} columns");
            self.fault(message)
        })
    }

    /// Goes to the next result, which runs the statement behind it where the driver has not run all at once. Returns whether
    /// there was one. What is left of the current one is lost.
    fn next_result(&self) -> Result<bool, Error> {
        self.check_cancelled()?;
        // SAFETY: a live, executed statement.
        let rc = unsafe { (self.shared.manager.call.more_results)(self.raw) };
        match rc {
            ffi::NO_DATA => Ok(false),
            ffi::SUCCESS => Ok(true),
            // As in a fetch, information can be an error.
            ffi::SUCCESS_WITH_INFO => {
                self.listen();
                self.check_information("SQLMoreResults").map(|()| true)
            }
            _ => match self.error("SQLMoreResults") {
                // A driver that knows one result a statement.
                error if matches!(error.sqlstate.as_str(), "IM001" | "HYC00") => Ok(false),
                error => Err(error),
            },
        }
    }

    /// Passes results without rows, whose statements have run; their rows changed are added up. The first result with rows
    /// is left to be read. Returns the sum, where any of them was counted, and its columns.
    pub(super) fn pass_counts(&self) -> Result<(Option<u64>, usize), Error> {
        let mut total = None;
        for _ in 0..MOST_COUNTS {
            let n_columns = self.n_columns()?;
            let n = self.row_count();
            if n_columns > 0 {
                return Ok((n, n_columns));
            }
            total = match (total, n) {
                (Some(total), Some(n)) => Some(n.saturating_add(total)),
                (total, n) => total.or(n),
            };
            if !self.next_result()? {
                return Ok((total, 0));
            }
        }
        Err(self.without_end())
    }

    /// The error of an answer that cannot be right.
    fn fault(&self, message: String) -> Error {
        Error::new(ErrorKind::Operational, message).of_driver(Some(&self.shared.facts.driver_label))
    }

    #[cold]
    fn without_end(&self) -> Error {
        self.fault(format!(
            "the driver reports more than {MOST_COUNTS} results of one statement\n\
             Where the statement is a loop, let it count by itself (`SET NOCOUNT ON`)."
        ))
    }

    /// Rows changed by all results of an execution, whose rows (INSERT … RETURNING) nobody reads.
    pub(super) fn changed(&self) -> Result<Option<u64>, Error> {
        let mut changed = None;
        for _ in 0..MOST_COUNTS {
            let (n, n_columns) = self.pass_counts()?;
            changed = match (changed, n) {
                (Some(changed), Some(n)) => Some(n.saturating_add(changed)),
                (changed, n) => changed.or(n),
            };
            if n_columns == 0 || !self.next_result()? {
                return Ok(changed);
            }
        }
        Err(self.without_end())
    }

    /// After the last row of a result, or with its rows given up: runs the statements behind it, so that their errors are seen,
    /// up to one that gives rows. Rows changed, and columns of that one.
    /// Where there is none the cursor is closed.
    pub(super) fn further_rows(&self) -> Result<Option<Further>, Error> {
        let further = self.next_rows();
        if !matches!(further, Ok(Some(_))) {
            self.close_cursor();
        }
        further
    }

    fn next_rows(&self) -> Result<Option<Further>, Error> {
        if !self.next_result()? {
            return Ok(None);
        }
        match self.pass_counts()? {
            (_, 0) => Ok(None),
            (row_count, n_columns) => Ok(Some((row_count, self.columns(n_columns)?))),
        }
    }

    /// Forgets the buffers that a result was bound to, and how.
    pub(super) fn unbind(&self) {
        // SAFETY: a live statement; it forgets addresses, and goes back to what each statement begins with: one row, by column.
        unsafe {
            (self.shared.manager.call.free_stmt)(self.raw, ffi::UNBIND);
            for attribute in [
                ffi::ATTR_ROWS_FETCHED_PTR,
                ffi::ATTR_ROW_STATUS_PTR,
                ffi::ATTR_ROW_BIND_OFFSET_PTR,
                ffi::ATTR_ROW_BIND_TYPE,
            ] {
                self.set_attribute(attribute, std::ptr::null_mut());
            }
        }
    }

    pub(super) fn columns(&self, n: usize) -> Result<Vec<Planned>, Error> {
        (0..n)
            .map(|index| {
                let described = describe::column(self.shared, self.raw, index)
                    .ok_or_else(|| self.error("SQLDescribeCol"))?;
                let planned = column::plan(&described, self.shared.width, self.shared.quirks);
                Ok(planned.with_zero_dates(self.shared.zero_dates))
            })
            .collect()
    }

    /// Ends the cursor, so that the connection is free for other statements.
    pub(crate) fn close_cursor(&self) {
        // SAFETY: a live statement. There is nothing to be done about a driver that cannot close a cursor.
        unsafe { (self.shared.manager.call.free_stmt)(self.raw, ffi::CLOSE) };
    }

    /// Makes a statement ready to be executed again: no cursor, nothing bound, and all as a statement begins.
    pub(super) fn reset(&self) {
        self.close_cursor();
        self.unbind();
        // SAFETY: a live statement, which forgets the pointers of its parameters; the attribute's value is an integer.
        unsafe {
            (self.shared.manager.call.free_stmt)(self.raw, ffi::RESET_PARAMS);
            self.set_attribute(
                ffi::ATTR_ROW_ARRAY_SIZE,
                std::ptr::without_provenance_mut(1),
            );
        }
    }

    /// Sets a statement attribute whose value is an integer or a pointer.
    ///
    /// # Safety
    /// A pointer must stay valid for as long as the driver may use the attribute.
    pub(crate) unsafe fn set_attribute(&self, attribute: i32, value: *mut c_void) -> bool {
        // SAFETY: a live statement; the caller vouches for the value.
        let rc = unsafe { (self.shared.manager.call.set_stmt_attr)(self.raw, attribute, value, 0) };
        rc == ffi::SUCCESS || rc == ffi::SUCCESS_WITH_INFO
    }
}

/// A statement's text in the connection's width, terminated as well as counted.
enum SqlText {
    Narrow(Vec<u8>),
    Wide(Vec<u16>),
}

impl SqlText {
    fn new(sql: &str, width: Width) -> Result<SqlText, Error> {
        if sql.contains('\0') || i32::try_from(sql.len()).is_err() {
            return Err(Error::new(
                ErrorKind::Programming,
                "a statement's text has no NUL and less than 2 GiB\nPass such values as parameters.",
            ));
        }
        Ok(match width {
            Width::Narrow => SqlText::Narrow(sql.bytes().chain([0]).collect()),
            Width::Wide => SqlText::Wide(sql.encode_utf16().chain([0]).collect()),
        })
    }

    /// In bytes or 16-bit units, without the terminator.
    fn len(&self) -> i32 {
        let len = match self {
            SqlText::Narrow(t) => t.len(),
            SqlText::Wide(t) => t.len(),
        };
        i32::try_from(len - 1).expect("checked when it was made")
    }
}
