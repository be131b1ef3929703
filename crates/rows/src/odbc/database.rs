//! Implements the traits of [`crate::database`] for ODBC.

use std::sync::Arc;

use onecopy_wire::lock::lock;

use onecopy_wire::CancelHandle;

use super::connection::Connection;
use super::open_within::Opening;
use super::quirks::{FIRST_FETCH, Width};
use super::statement::Statement;
use super::{drivers, execute, execute_many, ffi, statement};
use crate::database::{ConnectCancel, ConnectOptions, DatabaseConnection, Names, Prepared};
use crate::error::{Error, ErrorKind};
use crate::sql::dialect::Dialect;
use crate::value::Value;

impl Connection {
    /// Opens a target with the given text width (UTF-8 or UTF-16) instead of the driver's preferred
    /// width. The command `doctor` uses this function to show the effect of the width.
    ///
    /// # Errors
    /// The errors of [`DatabaseConnection::open`].
    pub fn open_in(
        target: &str,
        options: &ConnectOptions,
        width: Width,
    ) -> Result<Connection, Error> {
        Opening::default().open(target, options, Some(width))
    }
}

impl DatabaseConnection for Connection {
    type Statement = Statement;

    /// Returns `true` for every target, because ODBC is tried last, after all built-in databases.
    fn accepts(_target: &str) -> bool {
        true
    }

    fn dialect_of(target: &str) -> Dialect {
        drivers::quirks_of(target).map_or(Dialect::Generic, |quirks| quirks.dialect)
    }

    fn foreign_driver(target: &str) -> Option<String> {
        Some(drivers::named_in(target))
    }

    fn open(
        target: &str,
        options: &ConnectOptions,
        cancel: &ConnectCancel,
    ) -> Result<Connection, Error> {
        let opening = Opening::default();
        cancel.begin(opening.cancel_handle());
        opening.open(target, options, None)
    }

    fn execute(&self, sql: &str, parameters: &[Value]) -> Result<Statement, Error> {
        self.check_single(sql)?;
        statement::execute(&self.shared, sql, parameters, FIRST_FETCH)
    }

    fn execute_row_by_row(&self, sql: &str, parameters: &[Value]) -> Result<Statement, Error> {
        self.check_single(sql)?;
        statement::execute(&self.shared, sql, parameters, 1)
    }

    fn execute_many(
        &self,
        sql: &str,
        rows: &mut dyn Iterator<Item = Result<Vec<Value>, Error>>,
    ) -> Result<Option<u64>, Error> {
        self.check_single(sql)?;
        execute_many::execute_many(&self.shared, sql, rows)
    }

    fn prepare_check(&self, sql: &str) -> Result<Prepared, Error> {
        self.check_single(sql)?;
        execute::prepare_check(&self.shared, sql)
    }

    fn cancel_handle(&self) -> CancelHandle {
        let (active, caller) = (
            Arc::clone(&self.shared.active),
            Arc::clone(&self.shared.caller),
        );
        CancelHandle::new(move || {
            let handle = lock(&active).clone();
            match handle {
                Some(handle) => handle.cancel(),
                // The connection is in a commit or a rollback, which ODBC cannot cancel.
                None => caller.insist(),
            }
        })
    }

    fn commit(&self) -> Result<(), Error> {
        let how = if self.shared.read_only {
            // A read-only connection must not commit: a change that the database permitted
            // nevertheless is undone.
            ffi::ROLLBACK
        } else {
            ffi::COMMIT
        };
        self.shared.enter()?.end(how)
    }

    fn rollback(&self) -> Result<(), Error> {
        self.shared.enter()?.end(ffi::ROLLBACK)
    }

    fn set_autocommit(&self, on: bool) -> Result<(), Error> {
        if on && self.shared.read_only {
            return Err(Error::new(
                ErrorKind::NotSupported,
                "a read-only connection has no autocommit: its transaction is always rolled back",
            ));
        }
        self.shared.enter()?.set_autocommit(on)
    }

    fn autocommit(&self) -> bool {
        lock(&self.shared.state).autocommit
    }

    fn close(&self) -> Result<(), Error> {
        self.shared.close()
    }

    fn is_closed(&self) -> bool {
        self.shared.health.is_closed()
    }

    fn is_usable(&self) -> bool {
        self.shared.health.is_usable() && !self.shared.is_foreign()
    }

    fn notices(&self) -> Vec<String> {
        self.shared.facts.notices.clone()
    }

    fn dialect(&self) -> Dialect {
        self.shared.quirks.dialect
    }

    fn names(&self) -> Names {
        let facts = &self.shared.facts;
        Names {
            dbms: facts.dbms.clone(),
            dbms_version: facts.dbms_version.clone(),
            driver: facts.driver.clone(),
            driver_version: facts.driver_version.clone(),
        }
    }

    fn describe(&self) -> String {
        let f = &self.shared.facts;
        let width = match self.shared.width {
            Width::Narrow => "UTF-8",
            Width::Wide => "UTF-16",
        };
        format!(
            "{} {} through {} {} ({}, text as {width}, driver manager `{}`)",
            f.dbms,
            f.dbms_version,
            f.driver,
            f.driver_version,
            self.shared.quirks.name,
            self.shared.manager.file
        )
    }
}
