//! `Driver`: makes the ODBC calls on a statement handle while the connection's lock is held, and
//! returns the driver's diagnostics as errors.

use std::borrow::Cow;
use std::cell::RefCell;
use std::ffi::c_void;

use super::ffi::{self, Handle};
use super::handle::StatementHandle;
use super::parameters::{self, Parameters};
use super::quirks::Width;
use super::shared::SharedConnection;
use super::{describe, diag};
use crate::error::{Error, ErrorKind, Message};
use crate::odbc::column::{self, Planned};
use crate::sql::dialect::Dialect;
use crate::sql::named::count_marks;
use crate::sql::statements;
use crate::value::{Value, sqlite_number};

/// A statement handle on which driver calls may be made, because the connection's lock is held.
pub(crate) struct Driver<'a> {
    pub(crate) shared: &'a SharedConnection,
    pub(crate) handle: &'a StatementHandle,
    pub(crate) raw: Handle,
    /// The warnings and notices that the driver reported for this statement.
    pub(crate) messages: RefCell<Vec<Message>>,
}

/// The largest number of messages that are stored for a statement. A statement may print messages
/// in a loop.
const MOST_MESSAGES: usize = 1000;

/// The largest number of consecutive results without rows that are skipped. A faulty driver may
/// report such results endlessly.
const MOST_COUNTS: u32 = 1 << 22;

/// A further result of the same execution that has rows. The first field is the number of rows that
/// its statement changed (INSERT … RETURNING), if the driver reports it. The second field contains
/// the columns of the result.
pub(crate) type Further = (Option<u64>, Vec<Planned>);

/// The type of an ODBC function whose parameters are a statement handle, a SQL string, and the
/// length of the string.
type OfText<U> = unsafe extern "system" fn(Handle, *const U, i32) -> ffi::Return;

impl<'a> Driver<'a> {
    pub(crate) fn new(shared: &'a SharedConnection, handle: &'a StatementHandle) -> Driver<'a> {
        Driver {
            shared,
            handle,
            raw: handle.get(),
            messages: RefCell::default(),
        }
    }

    /// Stores the messages of a call that returned `SQL_SUCCESS_WITH_INFO`, and returns `true`. If
    /// one of them is an error of the server, stores none and returns `false`. (Some drivers report
    /// errors as warnings, see [`Quirks`](super::quirks::Quirks)`::errors_as_warnings`.)
    fn listen(&self) -> bool {
        let shared = self.shared;
        let records = diag::records(shared.manager, ffi::HANDLE_STMT, self.raw, shared.width);
        let is_error = |record: &diag::Record| record.sqlstate == "01000" && record.native != 0;
        if shared.quirks.errors_as_warnings && records.iter().any(is_error) {
            return false;
        }
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
        true
    }

    /// `status` is the status that the driver reported for one row of parameters. Returns `true` if
    /// it means that this row was not executed because of an error.
    pub(super) fn is_refused(&self, status: u16) -> bool {
        let is_warning = status == ffi::PARAM_SUCCESS_WITH_INFO;
        status == ffi::PARAM_ERROR || (is_warning && self.shared.quirks.errors_as_warnings)
    }

    /// Creates an error from the messages that the driver reports after the failure of `call`. The
    /// kind of the error is `Cancelled` if the statement was cancelled, whatever the messages are.
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

    /// Returns an error if the first diagnostic record after `SQL_SUCCESS_WITH_INFO` is an error.
    /// By the ODBC reference, the first record is the most severe.
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

    /// Returns an error if the statement was cancelled. Must be called before each driver call, and
    /// also after each driver call that may take long.
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
                if rc == ffi::SUCCESS_WITH_INFO && !self.listen() {
                    return Err(self.error(call));
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

    /// Executes a statement without parameters. Returns `true` if the driver reports that no row
    /// was changed.
    pub(super) fn exec_direct(&self, sql: &str) -> Result<bool, Error> {
        let call = &self.shared.manager.call;
        self.with_text(sql, "SQLExecDirect", call.exec_direct, call.exec_direct_w)
    }

    pub(super) fn prepare(&self, sql: &str) -> Result<(), Error> {
        let call = &self.shared.manager.call;
        self.with_text(sql, "SQLPrepare", call.prepare, call.prepare_w)
            .map(drop)
    }

    /// Passes the SQL string to an ODBC function. If the connection uses 8-bit text, this function
    /// is `narrow`, and the string is in UTF-8. If the connection uses 16-bit text, it is `wide`,
    /// and the string is in UTF-16. Returns `true` if the driver reports that no row was changed.
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

    /// Returns the number of parameter markers; `None` if the driver does not count them.
    pub(super) fn n_parameters(&self) -> Option<usize> {
        let mut n = 0i16;
        // SAFETY: a live, prepared statement; the out pointer is a live local.
        let rc = unsafe { (self.shared.manager.call.num_params)(self.raw, &raw mut n) };
        (rc == ffi::SUCCESS || rc == ffi::SUCCESS_WITH_INFO)
            .then(|| usize::try_from(n).ok())
            .flatten()
    }

    /// Returns the SQL type of a parameter (from 0) of the prepared statement; `None` if the server
    /// does not report it.
    pub(super) fn parameter_type(&self, index: usize) -> Option<i16> {
        let number = u16::try_from(index + 1).ok()?;
        // SAFETY: a live, prepared statement.
        let described = unsafe { parameters::described(self.raw, number, self.shared) };
        described.map(|(sql_type, ..)| sql_type)
    }

    /// Binds `values` and executes the prepared statement. Returns `true` if no row was changed.
    pub(super) fn execute(&self, sql: &str, values: &[Value]) -> Result<bool, Error> {
        let ours = || count_marks(sql, self.shared.quirks.dialect);
        let n_wanted = self.n_parameters().or_else(ours);
        if let Some(n) = n_wanted.filter(|n| *n != values.len()) {
            return Err(Error::wrong_count(n, values.len()));
        }
        if !self.carries(values) {
            let message = "this driver cannot pass a text with NUL: it would truncate it there\n\
                        Pass it as bytes, or without the NUL.";
            let mut error = Error::new(ErrorKind::Data, message);
            // SQLSTATE 22021, "character not in repertoire", as PostgreSQL reports it for NUL.
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

    /// Returns `true` if the driver sends all of these parameter values without truncating one.
    pub(super) fn carries(&self, values: &[Value]) -> bool {
        let has_nul = |v: &Value| matches!(v, Value::Text(text) if text.contains('\0'));
        !self.shared.quirks.cuts_at_nul || !values.iter().any(has_nul)
    }

    /// Executes the prepared statement with `parameters`. Returns `true` if the driver reports that
    /// no row was changed.
    pub(super) fn execute_with(&self, parameters: &mut Parameters) -> Result<bool, Error> {
        // SAFETY: the statement is alive; `parameters` lives until after the execution and the
        // reset below.
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
        // SAFETY: a live statement; the call removes its pointers into `parameters`.
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

    /// Returns the number of columns of the current result. The number is 0 if the statement is of
    /// a kind that returns no rows (such as UPDATE).
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

    /// Moves to the next result; returns `true` if there is one. If the driver executes the
    /// statements of a SQL string one after another, this call executes the next one. The unread
    /// rows of the current result are lost.
    fn next_result(&self) -> Result<bool, Error> {
        self.check_cancelled()?;
        // SAFETY: a live, executed statement.
        let rc = unsafe { (self.shared.manager.call.more_results)(self.raw) };
        match rc {
            ffi::NO_DATA => Ok(false),
            ffi::SUCCESS => Ok(true),
            // As in a fetch, the diagnostic record may be an error.
            ffi::SUCCESS_WITH_INFO => {
                if !self.listen() {
                    return Err(self.error("SQLMoreResults"));
                }
                self.check_information("SQLMoreResults").map(|()| true)
            }
            _ => match self.error("SQLMoreResults") {
                // The driver supports only one result per statement.
                error if matches!(error.sqlstate.as_str(), "IM001" | "HYC00") => Ok(false),
                error => Err(error),
            },
        }
    }

    /// Moves to the next result that has columns. Returns the row count that the driver reports for
    /// this result (`None` if it reports none), and its number of columns. If no such result is
    /// left, returns the sum of the row counts of the skipped results, and 0 columns.
    pub(super) fn pass_counts(&self) -> Result<(Option<u64>, usize), Error> {
        let mut total = None;
        for _ in 0..MOST_COUNTS {
            let n_columns = self.n_columns()?;
            let n = self.row_count();
            if n_columns > 0 {
                let is_known = |n: &u64| *n > 0 || self.shared.quirks.counts_queries;
                return Ok((n.filter(is_known), n_columns));
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

    /// Creates the error for an invalid response of the driver.
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

    /// Returns the total number of rows that all statements of the SQL string changed; `None` if
    /// the driver reports no number. Rows that the statements return (INSERT … RETURNING) are
    /// discarded.
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

    /// Called after the last row of the current result, or when its rows are discarded. Executes
    /// the statements that follow in the SQL string, up to the next one that returns rows, so that
    /// their errors are reported.
    ///
    /// Returns the number of changed rows and the columns of that next statement. If no further
    /// statement returns rows, closes the cursor and returns `None`.
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

    /// Unbinds the buffers of a result from the statement handle, and resets the handle to binding
    /// by column.
    pub(super) fn unbind(&self) {
        // SAFETY: a live statement; the calls clear addresses, and restore the initial state of
        // every statement: one row per fetch, bound by column.
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

    /// Closes the cursor, so that the connection can execute other statements.
    pub(crate) fn close_cursor(&self) {
        // SAFETY: a live statement. An error is ignored: this crate has no other way to close a
        // cursor.
        unsafe { (self.shared.manager.call.free_stmt)(self.raw, ffi::CLOSE) };
    }

    /// Restores the initial state of the statement handle for the next execution: no cursor, no
    /// bindings, default attributes.
    pub(super) fn reset(&self) {
        self.close_cursor();
        self.unbind();
        // SAFETY: a live statement; the call removes the pointers of its parameters; the
        // attribute's value is an integer.
        unsafe {
            (self.shared.manager.call.free_stmt)(self.raw, ffi::RESET_PARAMS);
            self.set_attribute(
                ffi::ATTR_ROW_ARRAY_SIZE,
                std::ptr::without_provenance_mut(1),
            );
        }
    }

    /// Sets a statement attribute whose value is an integer or a pointer; returns `true` if the
    /// driver accepts it.
    ///
    /// # Safety
    /// If `value` is a pointer, the caller must ensure that it is valid for as long as the driver
    /// may use the attribute.
    pub(crate) unsafe fn set_attribute(&self, attribute: i32, value: *mut c_void) -> bool {
        // SAFETY: a live statement; the caller vouches for the value.
        let rc = unsafe { (self.shared.manager.call.set_stmt_attr)(self.raw, attribute, value, 0) };
        rc == ffi::SUCCESS || rc == ffi::SUCCESS_WITH_INFO
    }
}

/// The SQL text of a statement in the encoding of the connection's text width (UTF-8 or UTF-16),
/// with a terminator.
enum SqlText {
    Narrow(Vec<u8>),
    Wide(Vec<u16>),
}

impl SqlText {
    fn new(sql: &str, width: Width) -> Result<SqlText, Error> {
        if sql.contains('\0') || i32::try_from(sql.len()).is_err() {
            return Err(Error::new(
                ErrorKind::Programming,
                "a statement's text has no NUL and less than 2 GiB\n\
                 Pass such values as parameters.",
            ));
        }
        Ok(match width {
            Width::Narrow => SqlText::Narrow(sql.bytes().chain([0]).collect()),
            Width::Wide => SqlText::Wide(sql.encode_utf16().chain([0]).collect()),
        })
    }

    /// Returns the length of the text without its terminator: in bytes for UTF-8, in 16-bit units
    /// for UTF-16.
    fn len(&self) -> i32 {
        let len = match self {
            SqlText::Narrow(t) => t.len(),
            SqlText::Wide(t) => t.len(),
        };
        i32::try_from(len - 1).expect("checked when it was made")
    }
}
