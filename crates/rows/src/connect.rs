//! `Connection` and `Statement`: enums with one variant per database, with static dispatch. The
//! macro call `databases!` below lists the databases, one per line.
//!
//! A target is a `sqlite:` or `postgresql://` URL, an ODBC connection string, or `DSN=name`. An
//! installed ODBC driver opens a URL with `odbc+postgresql://`, `mysql://` or `mssql://`.

use onecopy_text::{Ledger, Policy};
use onecopy_wire::{CancelHandle, ChunkSource};

use crate::database::{
    ConnectCancel, ConnectOptions, DatabaseConnection, DatabaseStatement, Names, Prepared,
};
use crate::error::{Error, ErrorKind, Message};
use crate::row_stream::{self, Format, StreamOptions};
use crate::schema::Schema;
use crate::source::{
    BlockPosition, Budget, LongPart, LongValues, PumpError, Pumped, RowSink, Source,
};
use crate::sql::dialect::Dialect;
use crate::sql::insert::TableInsert;
use crate::stored_results;
use crate::value::Value;

/// Declares the enums [`Connection`] and [`Statement`], and the macro `each!`, which dispatches a
/// call to the variant. A target is opened by the first database in the list that accepts it.
macro_rules! databases {
    ($dollar:tt $($(#[doc = $doc:literal])* $(#[cfg($cfg:meta)])? $variant:ident => $module:ident,)*) => {
        /// A connection to a database. [`DatabaseConnection`] documents its methods.
        #[derive(Debug)]
        #[non_exhaustive]
        pub enum Connection {
            $($(#[doc = $doc])* $(#[cfg($cfg)])? $variant(crate::$module::Connection),)*
        }

        /// A statement that was executed. [`DatabaseStatement`] and [`Source`] document its
        /// methods.
        #[derive(Debug)]
        #[non_exhaustive]
        pub enum Statement {
            $($(#[doc = $doc])* $(#[cfg($cfg)])? $variant(crate::$module::Statement),)*
            /// The results of one statement that was executed for many rows of parameters. All
            /// results are in memory.
            Stored(stored_results::StoredResults),
        }

        /// Evaluates `$body` with `$x` bound to the connection or statement in the enum variant.
        macro_rules! each {
            (Connection, $dollar self:expr, $dollar x:ident => $dollar body:expr) => {
                match $dollar self {
                    $($(#[cfg($cfg)])? Connection::$variant($dollar x) => $dollar body,)*
                }
            };
            (Statement, $dollar self:expr, $dollar x:ident => $dollar body:expr) => {
                match $dollar self {
                    $($(#[cfg($cfg)])? Statement::$variant($dollar x) => $dollar body,)*
                    Statement::Stored($dollar x) => $dollar body,
                }
            };
        }

        /// Evaluates `$body` with `$type` as the connection type of the first database in the list
        /// that accepts `$target`.
        macro_rules! accepting {
            ($dollar target:expr, $dollar type:ident => $dollar body:expr) => {{
                $($(#[cfg($cfg)])? {
                    use crate::$module::Connection as $dollar type;
                    if $dollar type::accepts($dollar target) {
                        return $dollar body;
                    }
                })*
            }};
        }

        impl Connection {
            /// Opens a connection to `target`.
            ///
            /// # Errors
            /// [`ErrorKind::Connect`]; its message lists the failed attempts and the software to
            /// install, and contains no password.
            pub fn open(target: &str, options: &ConnectOptions) -> Result<Connection, Error> {
                Connection::open_with(target, options, &ConnectCancel::default())
            }

            /// Opens a connection as [`Connection::open`] does; `cancel` can end the attempt early.
            ///
            /// # Errors
            /// The errors of [`Connection::open`]; [`ErrorKind::Cancelled`] after cancellation.
            pub fn open_with(
                target: &str,
                options: &ConnectOptions,
                cancel: &ConnectCancel,
            ) -> Result<Connection, Error> {
                $($(#[cfg($cfg)])? {
                    if crate::$module::Connection::accepts(target) {
                        return crate::$module::Connection::open(target, options, cancel)
                            .map(Connection::$variant);
                    }
                })*
                Err(Error::new(ErrorKind::Connect, "no database has targets of this form"))
            }

            /// Executes a statement; see [`DatabaseConnection::execute`].
            ///
            /// # Errors
            /// The errors of [`DatabaseConnection::execute`].
            pub fn execute(&self, sql: &str, parameters: &[Value]) -> Result<Statement, Error> {
                Ok(match self {
                    $($(#[cfg($cfg)])? Connection::$variant(c) => {
                        Statement::$variant(c.execute(sql, parameters)?)
                    })*
                })
            }

            /// Executes a statement whose rows are large; see
            /// [`DatabaseConnection::execute_row_by_row`].
            ///
            /// # Errors
            /// The errors of [`DatabaseConnection::execute_row_by_row`].
            pub fn execute_row_by_row(
                &self,
                sql: &str,
                parameters: &[Value],
            ) -> Result<Statement, Error> {
                Ok(match self {
                    $($(#[cfg($cfg)])? Connection::$variant(c) => {
                        Statement::$variant(c.execute_row_by_row(sql, parameters)?)
                    })*
                })
            }
        }
    };
}

databases! {$
    /// SQLite, whose C library is linked into this library.
    Sqlite => sqlite,
    /// PostgreSQL. This crate implements the network protocol itself, and needs no driver.
    Postgres => postgres,
    /// A database in memory, which is compiled only for tests.
    #[cfg(feature = "memory-database")] Memory => memory,
    /// Any ODBC driver. It accepts every target that no database above accepts.
    Odbc => odbc,
}

#[allow(missing_docs)] // Documented in the trait.
#[allow(clippy::missing_errors_doc)]
impl Connection {
    /// Returns the SQL dialect that the text of `target` implies, without connecting.
    #[must_use]
    pub fn dialect_of(target: &str) -> Dialect {
        accepting!(target, C => C::dialect_of(target));
        Dialect::Generic
    }

    /// Returns `true` if calls to a connection to `target` suspend within a task instead of
    /// blocking: see [`Connection::suspends`].
    #[must_use]
    pub fn suspends_at(target: &str) -> bool {
        accepting!(target, C => C::SUSPENDS);
        false
    }

    /// Returns the name of the third-party driver that `target` loads into this process; `None` if
    /// no driver is loaded. Such a driver can crash the process.
    #[must_use]
    pub fn foreign_driver(target: &str) -> Option<String> {
        accepting!(target, C => C::foreign_driver(target));
        None
    }

    /// Returns `true` if executing `sql` may create the database that `target` names, in case it
    /// does not exist. Only SQLite creates a database (a file) in this way.
    #[must_use]
    pub fn creates_database(target: &str, sql: &str) -> bool {
        accepting!(target, C => C::creates_database(target, sql));
        false
    }

    pub fn execute_many(
        &self,
        sql: &str,
        rows: &mut dyn Iterator<Item = Result<Vec<Value>, Error>>,
    ) -> Result<Option<u64>, Error> {
        each!(Connection, self, c => c.execute_many(sql, rows))
    }

    /// Inserts rows of values into a table; see [`DatabaseConnection::insert_rows`].
    ///
    /// # Errors
    /// The errors of [`DatabaseConnection::execute_many`].
    pub fn insert_rows(
        &self,
        insert: &TableInsert,
        rows: &mut dyn Iterator<Item = Result<Vec<Value>, Error>>,
    ) -> Result<Option<u64>, Error> {
        each!(Connection, self, c => c.insert_rows(insert, rows))
    }

    /// Executes a statement that returns rows, once for each row of parameters. The results are
    /// stored in memory, in order; [`Statement::next_set`] moves from one result to the next. With
    /// autocommit on, all executions are one transaction, which is rolled back if a row of
    /// parameters fails.
    ///
    /// # Errors
    /// The errors of [`DatabaseConnection::execute_many`].
    pub fn execute_many_returning(
        &self,
        sql: &str,
        rows: &mut dyn Iterator<Item = Result<Vec<Value>, Error>>,
    ) -> Result<Statement, Error> {
        let is_one_transaction = self.autocommit();
        if is_one_transaction {
            self.set_autocommit(false)?;
        }
        let stored =
            each!(Connection, self, c => stored_results::StoredResults::execute(c, sql, rows))
                .map(Statement::Stored);
        if is_one_transaction {
            let ended = match &stored {
                Ok(_) => self.commit(),
                Err(_) => self.rollback(),
            };
            self.set_autocommit(true)?;
            // If a statement and the rollback have failed, the error of the statement is returned.
            return stored.and_then(|stored| ended.map(|()| stored));
        }
        stored
    }

    pub fn prepare_check(&self, sql: &str) -> Result<Prepared, Error> {
        each!(Connection, self, c => c.prepare_check(sql))
    }

    #[must_use]
    pub fn reads_parameter_names(&self) -> bool {
        fn of<C: DatabaseConnection>(_: &C) -> bool {
            C::READS_PARAMETER_NAMES
        }
        each!(Connection, self, c => of(c))
    }

    #[must_use]
    pub fn suspends(&self) -> bool {
        fn of<C: DatabaseConnection>(_: &C) -> bool {
            C::SUSPENDS
        }
        each!(Connection, self, c => of(c))
    }

    pub fn parameter_names(&self, sql: &str) -> Result<Vec<String>, Error> {
        each!(Connection, self, c => c.parameter_names(sql))
    }

    /// Returns the PostgreSQL connection in this enum, for functions that only PostgreSQL has.
    ///
    /// # Errors
    /// [`ErrorKind::NotSupported`] for another database or driver.
    pub fn postgres(&self) -> Result<&crate::postgres::Connection, Error> {
        match self {
            Connection::Postgres(c) => Ok(c),
            _ => Err(Error::new(
                ErrorKind::NotSupported,
                "only a connection to `postgresql://` has this",
            )),
        }
    }

    /// Returns the SQLite connection in this enum, for functions that only SQLite has.
    ///
    /// # Errors
    /// [`ErrorKind::NotSupported`] for another database.
    pub fn sqlite(&self) -> Result<&crate::sqlite::Connection, Error> {
        match self {
            Connection::Sqlite(c) => Ok(c),
            _ => Err(Error::new(
                ErrorKind::NotSupported,
                "only a connection to `sqlite:` has this",
            )),
        }
    }

    #[must_use]
    pub fn cancel_handle(&self) -> CancelHandle {
        each!(Connection, self, c => c.cancel_handle())
    }

    pub fn commit(&self) -> Result<(), Error> {
        each!(Connection, self, c => c.commit())
    }

    pub fn rollback(&self) -> Result<(), Error> {
        each!(Connection, self, c => c.rollback())
    }

    pub fn set_autocommit(&self, on: bool) -> Result<(), Error> {
        each!(Connection, self, c => c.set_autocommit(on))
    }

    #[must_use]
    pub fn autocommit(&self) -> bool {
        each!(Connection, self, c => c.autocommit())
    }

    pub fn close(&self) -> Result<(), Error> {
        each!(Connection, self, c => c.close())
    }

    #[must_use]
    pub fn is_closed(&self) -> bool {
        each!(Connection, self, c => c.is_closed())
    }

    #[must_use]
    pub fn is_usable(&self) -> bool {
        each!(Connection, self, c => c.is_usable())
    }

    #[must_use]
    pub fn dialect(&self) -> Dialect {
        each!(Connection, self, c => c.dialect())
    }

    #[must_use]
    pub fn notices(&self) -> Vec<String> {
        each!(Connection, self, c => c.notices())
    }

    #[must_use]
    pub fn names(&self) -> Names {
        each!(Connection, self, c => c.names())
    }

    #[must_use]
    pub fn describe(&self) -> String {
        each!(Connection, self, c => c.describe())
    }
}

/// A generic function over the statement types of all databases, passed to [`Statement::visit`].
pub trait StatementVisitor {
    /// The type of the value that [`Statement::visit`] returns.
    type Output;

    /// Called once by [`Statement::visit`], with the statement in the type of its database.
    fn visit<S: DatabaseStatement>(self, statement: &mut S) -> Self::Output;
}

#[allow(missing_docs)] // Documented in the traits.
#[allow(clippy::missing_errors_doc)]
impl Statement {
    /// Calls `visitor` with the statement inside this enum, and returns the visitor's result.
    pub fn visit<V: StatementVisitor>(&mut self, visitor: V) -> V::Output {
        each!(Statement, self, s => visitor.visit(s))
    }

    #[must_use]
    pub fn schema(&self) -> &Schema {
        each!(Statement, self, s => s.schema())
    }

    #[must_use]
    pub fn row_count(&self) -> Option<u64> {
        each!(Statement, self, s => s.row_count())
    }

    #[must_use]
    pub fn last_row_id(&self) -> Option<i64> {
        each!(Statement, self, s => s.last_row_id())
    }

    pub fn next_set(&mut self) -> Result<bool, Error> {
        each!(Statement, self, s => s.next_set())
    }

    #[must_use]
    pub fn is_ready(&mut self) -> bool {
        each!(Statement, self, s => s.is_ready())
    }

    pub fn receive(&mut self) -> Result<(), Error> {
        each!(Statement, self, s => s.receive())
    }

    #[must_use]
    pub fn has_further(&self) -> bool {
        each!(Statement, self, s => s.has_further())
    }

    pub fn set_takes_more(&mut self, takes_more: bool) {
        each!(Statement, self, s => s.set_takes_more(takes_more));
    }

    #[must_use]
    pub fn take_messages(&mut self) -> Vec<Message> {
        each!(Statement, self, s => s.take_messages())
    }

    pub fn set_long_values(&mut self, long_values: LongValues) {
        each!(Statement, self, s => s.set_long_values(long_values));
    }

    pub fn defer(&mut self, columns: Vec<usize>) -> Result<(), Error> {
        each!(Statement, self, s => s.defer(columns))
    }

    pub fn read_part(
        &mut self,
        column: usize,
        offset: u64,
        buffer: &mut [u8],
    ) -> Result<Option<LongPart>, Error> {
        each!(Statement, self, s => s.read_part(column, offset, buffer))
    }

    pub fn pump<S: RowSink>(
        &mut self,
        position: &mut BlockPosition,
        budget: Budget,
        sink: &mut S,
    ) -> Result<Pumped, PumpError<S::Error>> {
        each!(Statement, self, s => s.pump(position, budget, sink))
    }

    pub fn pump_columns<S: RowSink>(
        &mut self,
        position: &mut BlockPosition,
        budget: Budget,
        most_rows: usize,
        sink: &mut S,
    ) -> Result<Pumped, PumpError<S::Error>> {
        each!(Statement, self, s => s.pump_columns(position, budget, most_rows, sink))
    }

    #[must_use]
    pub fn take_moved_bytes(&mut self) -> usize {
        each!(Statement, self, s => s.take_moved_bytes())
    }

    #[must_use]
    pub fn text_policy(&self) -> Policy {
        each!(Statement, self, s => s.text_policy())
    }

    #[must_use]
    pub fn cancel_handle(&self) -> CancelHandle {
        each!(Statement, self, s => s.cancel_handle())
    }

    /// Converts the rows to a stream of bytes; each cell is converted once, into the chunk to send.
    ///
    /// # Errors
    /// [`ErrorKind::Programming`] if the format requires distinct column names, and two are equal.
    pub fn into_chunks(
        self,
        format: Format,
        ledger: &Ledger,
    ) -> Result<Box<dyn ChunkSource>, Error> {
        let options = StreamOptions::with_policy(format, self.text_policy());
        self.into_chunks_with(&options, ledger)
    }

    /// Converts the rows as [`Statement::into_chunks`] does, with all options of a row stream.
    pub fn into_chunks_with(
        mut self,
        options: &StreamOptions,
        ledger: &Ledger,
    ) -> Result<Box<dyn ChunkSource>, Error> {
        self.set_long_values(LongValues::Parts {
            part_bytes: row_stream::PART_BYTES,
        });
        self.defer(Vec::new())?;
        self.set_takes_more(false);
        each!(Statement, self, s => row_stream::chunks_with(s, options, ledger))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_dialect_is_known_by_url_and_driver() {
        for (target, dialect) in [
            ("sqlite:a.db", Dialect::Sqlite),
            ("postgresql://u:p@h/d", Dialect::Postgres),
            ("odbc+postgresql://u@h/d", Dialect::Postgres),
            ("mysql://u@h/d", Dialect::MySql),
            ("mssql://u@h/d", Dialect::SqlServer),
            ("Driver=psqlodbcw.so;Server=h", Dialect::Postgres),
            (
                "Server=h;DRIVER={ODBC Driver 18 for SQL Server}",
                Dialect::SqlServer,
            ),
            ("Driver=/x/libmaodbc.so", Dialect::MySql),
            ("DSN=mysql", Dialect::Generic),
        ] {
            assert_eq!(Connection::dialect_of(target), dialect, "{target}");
        }
    }
}
