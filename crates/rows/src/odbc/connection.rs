//! `Connection`: an ODBC connection with its lock and its transactions. The module `statement`
//! executes its statements.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize};
use std::sync::{Arc, Mutex};

use super::connection_string::ConnectionString;
use super::ffi::Handle;
use super::handle::RawHandle;
use super::installation::Portrait;
use super::manager::Manager;
use super::quirks::{Quirks, Width};
use super::shared::{DriverFacts, SessionState, SharedConnection};
use super::statement_cache::{self, CachePolicy, StatementCache};
use crate::database::{ConnectOptions, ZeroDates};
use crate::error::{Error, ErrorKind};
use crate::fork;
use crate::health::ConnectionHealth;
use crate::sql::dialect::Dialect;

/// A connection through an ODBC driver.
pub struct Connection {
    pub(crate) shared: Arc<SharedConnection>,
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection")
            .field("target", &self.shared.facts.target)
            .field("driver", &self.shared.facts.driver)
            .finish_non_exhaustive()
    }
}

impl Connection {
    /// Creates a connection from an open handle, which is in autocommit mode, the initial mode of
    /// ODBC.
    pub(crate) fn new(
        raw: Handle,
        manager: &'static Manager,
        quirks: &'static Quirks,
        width: Width,
        string: &ConnectionString,
        facts: DriverFacts,
        options: &ConnectOptions,
    ) -> Connection {
        Connection {
            shared: Arc::new(SharedConnection {
                manager,
                quirks,
                width,
                secrets: string.secrets(),
                facts,
                fetch_size: quirks
                    .fetch_size
                    .filter(|f| {
                        string
                            .get(f.keyword)
                            .is_none_or(|n| n == f.first.to_string())
                    })
                    .map(|f| AtomicUsize::new(f.first)),
                off_for_arrays: quirks
                    .off_for_arrays
                    .filter(|switch| string.get(switch.keyword).is_none())
                    .map(|switch| switch.attribute),
                cache_policy: CachePolicy::of(quirks, string, options),
                cursor_switch: statement_cache::cursor_switch(quirks, string),
                read_only: options.read_only,
                local_infile: options.local_infile,
                text_policy: options.text_policy,
                // Only MariaDB and MySQL have zero dates.
                zero_dates: match quirks.dialect {
                    Dialect::MySql => options.zero_dates,
                    _ => ZeroDates::Null,
                },
                fork_generation: fork::generation(),
                health: ConnectionHealth::default(),
                state: Mutex::new(SessionState {
                    raw: RawHandle(raw),
                    autocommit: true,
                    statements: Vec::new(),
                    cache: StatementCache::default(),
                }),
                spare: Mutex::new(None),
                ended: AtomicU64::new(0),
                has_miscounted: AtomicBool::new(false),
                caller: Arc::default(),
                active: Arc::default(),
            }),
        }
    }

    /// Returns an error if `sql` must not be executed because it is one of the following:
    /// - a COPY whose data the client would have to transfer, because ODBC has no calls for this;
    /// - a LOAD DATA LOCAL if the option `local_infile` is off, because the statement sends a file
    ///   of the client to the server;
    /// - for MariaDB, a statement that is not an INSERT and has parameters in a `VALUES` list,
    ///   because the server reads these parameters as empty;
    /// - several statements in one string on a read-only connection, because one of them could end
    ///   the read-only transaction.
    pub(super) fn check_single(&self, sql: &str) -> Result<(), Error> {
        let dialect = self.shared.quirks.dialect;
        if dialect == Dialect::Postgres && crate::sql::copy_statement::copies_through_client(sql) {
            return Err(Error::new(
                ErrorKind::NotSupported,
                "ODBC has no `COPY … TO STDOUT` and no `COPY … FROM STDIN`: the driver would wait without an end\n\
                 Stream a SELECT with `csv()`, and write rows with `executemany` or `insert_arrow`.",
            ));
        }
        if dialect == Dialect::MySql
            && !self.shared.local_infile
            && crate::sql::statements::loads_local_file(sql)
        {
            return Err(Error::new(
                ErrorKind::NotSupported,
                "`LOAD DATA LOCAL` sends a file of this machine to the server, and is off\n\
                 Connect with `local_infile=True` to allow it.",
            ));
        }
        if dialect == Dialect::MySql && crate::sql::statements::binds_values_list(sql) {
            return Err(Error::new(
                ErrorKind::NotSupported,
                "MariaDB reads the parameters of a `VALUES` list that is not an INSERT's as empty\n\
                 Write `SELECT ?, ? UNION ALL SELECT ?, ?`.",
            ));
        }
        if self.shared.read_only
            && crate::sql::statements::has_second(sql, self.shared.quirks.dialect)
        {
            return Err(Error::new(
                ErrorKind::Programming,
                "more than one statement in one `execute` on a read-only connection\n\
                 Run them one by one.",
            ));
        }
        Ok(())
    }

    /// Returns the names and versions of the database and the driver, with the driver's known
    /// faults, for the command `doctor`.
    #[must_use]
    pub fn portrait(&self) -> Portrait {
        Portrait::of(&self.shared)
    }
}
