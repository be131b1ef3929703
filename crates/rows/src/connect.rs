//! The databases: one line each, and the only code that matches on which one a connection or statement is of.
//!
//! A target is a `sqlite:` URL, an ODBC connection string, `DSN=name`, or a `postgresql://`, `mysql://` or `mssql://` URL,
//! for which a driver is looked for on this machine.

use onecopy_text::{Ledger, Policy};
use onecopy_wire::{CancelHandle, ChunkSource};

use crate::database::{
    ConnectCancel, ConnectOptions, DatabaseConnection, DatabaseStatement, Names, Prepared,
};
use crate::error::{Error, ErrorKind, Message};
use crate::row_stream::{self, Format};
use crate::schema::Schema;
use crate::source::{
    BlockPosition, Budget, LongPart, LongValues, PumpError, Pumped, RowSink, Source,
};
use crate::sql::dialect::Dialect;
use crate::stored;
use crate::value::Value;

/// Declares the enums of all databases and `each!`, the static dispatch over them. The first that accepts a target opens it.
macro_rules! databases {
    ($dollar:tt $($(#[doc = $doc:literal])* $(#[cfg($cfg:meta)])? $variant:ident => $module:ident,)*) => {
        /// A connection to a database: see [`DatabaseConnection`] for what each method does.
        #[derive(Debug)]
        #[non_exhaustive]
        pub enum Connection {
            $($(#[doc = $doc])* $(#[cfg($cfg)])? $variant(crate::$module::Connection),)*
        }

        /// A statement that was executed: see [`DatabaseStatement`] and [`Source`] for what each method does.
        #[derive(Debug)]
        #[non_exhaustive]
        pub enum Statement {
            $($(#[doc = $doc])* $(#[cfg($cfg)])? $variant(crate::$module::Statement),)*
            /// Results of any database, kept in memory.
            Stored(stored::Statement),
        }

        /// Calls `$body` for the connection or statement of whichever database.
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

        /// Calls `$body` with `$type` the connection's type of the database that accepts `$target`.
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
            /// Opens `target`.
            ///
            /// # Errors
            /// [`ErrorKind::Connect`] with what was tried and what to install; never with a password.
            pub fn open(target: &str, options: &ConnectOptions) -> Result<Connection, Error> {
                Connection::open_with(target, options, &ConnectCancel::default())
            }

            /// As [`Connection::open`], until `cancel` is used.
            ///
            /// # Errors
            /// As there; [`ErrorKind::Cancelled`] after a cancel.
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

            /// See [`DatabaseConnection::execute`].
            ///
            /// # Errors
            /// As there.
            pub fn execute(&self, sql: &str, parameters: &[Value]) -> Result<Statement, Error> {
                Ok(match self {
                    $($(#[cfg($cfg)])? Connection::$variant(c) => {
                        Statement::$variant(c.execute(sql, parameters)?)
                    })*
                })
            }

            /// See [`DatabaseConnection::execute_row_by_row`].
            ///
            /// # Errors
            /// As there.
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
    /// The embedded database.
    Sqlite => sqlite,
    /// PostgreSQL by its own protocol.
    Postgres => postgres,
    /// The database of the tests.
    #[cfg(feature = "memory-database")] Memory => memory,
    /// Any ODBC driver; it accepts every target that is left.
    Odbc => odbc,
}

#[allow(missing_docs)] // Documented in the trait.
#[allow(clippy::missing_errors_doc)]
impl Connection {
    /// The dialect of a target, as far as its text shows it.
    #[must_use]
    pub fn dialect_of(target: &str) -> Dialect {
        accepting!(target, C => C::dialect_of(target));
        Dialect::Generic
    }

    /// The foreign driver that `target` loads into this process, which can crash it; `None` for code of ours.
    #[must_use]
    pub fn foreign_driver(target: &str) -> Option<String> {
        accepting!(target, C => C::foreign_driver(target));
        None
    }

    /// Whether `sql` would create the database of `target`, if that does not exist (a SQLite file).
    #[must_use]
    pub fn creates_database(target: &str, sql: &str) -> bool {
        accepting!(target, C => C::creates_database(target, sql));
        false
    }

    pub fn execute_many(
        &self,
        sql: &str,
        rows: &mut dyn Iterator<Item = Vec<Value>>,
    ) -> Result<Option<u64>, Error> {
        each!(Connection, self, c => c.execute_many(sql, rows))
    }

    /// Runs a statement that returns rows for each row of parameters. Each has a result of its own, in their order, which
    /// [`Statement::next_set`] goes through; all of them are kept in memory. With autocommit on, all of it is one transaction:
    /// nothing of it stays where a row fails.
    ///
    /// # Errors
    /// As [`Connection::execute_many`].
    pub fn execute_many_returning(
        &self,
        sql: &str,
        rows: &mut dyn Iterator<Item = Vec<Value>>,
    ) -> Result<Statement, Error> {
        let is_one_transaction = self.autocommit();
        if is_one_transaction {
            self.set_autocommit(false)?;
        }
        let stored = each!(Connection, self, c => stored::Statement::execute(c, sql, rows))
            .map(Statement::Stored);
        if is_one_transaction {
            let ended = match &stored {
                Ok(_) => self.commit(),
                Err(_) => self.rollback(),
            };
            self.set_autocommit(true)?;
            // The error of the statement goes before that of the rollback.
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

    pub fn parameter_names(&self, sql: &str) -> Result<Vec<String>, Error> {
        each!(Connection, self, c => c.parameter_names(sql))
    }

    /// The connection as one to the embedded database, for its own functions.
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

/// Code that is compiled once for each kind of statement ([`Statement::visit`]).
pub trait StatementVisitor {
    /// What it returns.
    type Output;

    /// Is called with the statement of the database.
    fn visit<S: DatabaseStatement>(self, statement: &mut S) -> Self::Output;
}

#[allow(missing_docs)] // Documented in the traits.
#[allow(clippy::missing_errors_doc)]
impl Statement {
    /// Calls `visitor` with the statement itself.
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
        sink: &mut S,
    ) -> Result<Pumped, PumpError<S::Error>> {
        each!(Statement, self, s => s.pump_columns(position, budget, sink))
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

    /// The rows as a stream of bytes: converted once, into the outgoing chunk. Long values are written in parts.
    ///
    /// # Errors
    /// [`ErrorKind::Programming`] where the format needs distinct column names and these are not.
    pub fn into_chunks(
        mut self,
        format: Format,
        ledger: &Ledger,
    ) -> Result<Box<dyn ChunkSource>, Error> {
        self.set_long_values(LongValues::Parts {
            part_bytes: row_stream::PART_BYTES,
        });
        self.defer(Vec::new())?;
        self.set_takes_more(false);
        each!(Statement, self, s => row_stream::chunks(s, format, ledger))
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
