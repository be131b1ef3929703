//! `Connection`: opens a session, executes statements, ends transactions, closes the session.

use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;

use onecopy_wire::CancelHandle;
use postgres_protocol::message::frontend;

use super::connect_defaults::OfProcess;
use super::copy::end_copy_out;
use super::copy_rows::insert_rows;
use super::dial::Breaker;
use super::execute::{describe, execute, prepare};
use super::execute_many::execute_many;
use super::message::is_copying;
use super::parameters::translate;
use super::preamble::Preamble;
use super::server::TransactionStatus;
use super::settings::Settings;
use super::shared::{Shared, error_of_state};
use super::statement::Statement;
use super::statement_cache::StatementCache;
use super::wire::Wire;
use crate::database::{ConnectCancel, ConnectOptions, DatabaseConnection, Names, Prepared};
use crate::error::{Error, ErrorKind};
use crate::sql::copy_statement::CopyDirection;
use crate::sql::dialect::Dialect;
use crate::sql::insert::TableInsert;
use crate::value::Value;

/// The prefixes of a connection string for PostgreSQL. After the prefix, the string has either the
/// rest of a URL (from `//` on), or pairs of the form `key=value`.
const SCHEMES: [&str; 2] = ["postgresql:", "postgres:"];

/// A connection to PostgreSQL.
#[derive(Debug)]
pub struct Connection {
    shared: Arc<Shared>,
}

impl Connection {
    pub(super) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }
}

fn without_scheme(target: &str) -> Option<&str> {
    SCHEMES
        .iter()
        .find_map(|scheme| target.strip_prefix(scheme))
}

/// Cancels the statement whose result is being received, and discards its remaining rows. It is
/// called before a rollback, after which the rows are not needed. The next fetch of the statement
/// then returns an error.
fn stop_reader(shared: &Shared, wire: &mut Wire) -> Result<(), Error> {
    let Some(reader) = wire.reader.clone() else {
        return Ok(());
    };
    let _ = shared.activity.request();
    wire.settle()?;
    let mut delivered = reader.state();
    if let Some(Err(error)) = &mut delivered.end
        && error.sqlstate == "57014"
    {
        *error = Error::new(
            ErrorKind::Interface,
            "the cursor was ended by a commit or rollback of its connection\n\
             Read all rows before it, or use a second connection.",
        );
        delivered.rows.clear();
    }
    Ok(())
}

impl DatabaseConnection for Connection {
    type Statement = Statement;

    const SUSPENDS: bool = true;

    fn accepts(target: &str) -> bool {
        without_scheme(target).is_some()
    }

    fn dialect_of(_target: &str) -> Dialect {
        Dialect::Postgres
    }

    fn open(
        target: &str,
        options: &ConnectOptions,
        cancel: &ConnectCancel,
    ) -> Result<Connection, Error> {
        let settings = Settings::read(
            without_scheme(target).unwrap_or(target),
            options,
            &OfProcess,
        )?;
        let breaker = Arc::new(Breaker::default());
        let cancelled = Arc::clone(&breaker);
        cancel.begin(CancelHandle::new(move || cancelled.break_off()));
        let mut wire = super::open::open(&settings, options.read_only, &breaker)?;
        let version = wire
            .server
            .parameter("server_version")
            .unwrap_or_default()
            .to_owned();
        let names = Names {
            dbms: "PostgreSQL".to_owned(),
            dbms_version: version,
            driver: "onecopy".to_owned(),
            driver_version: env!("CARGO_PKG_VERSION").to_owned(),
        };
        wire.cache = StatementCache::new(options.prepare);
        let shared = Shared::new(wire, options, names);
        Ok(Connection {
            shared: Arc::new(shared),
        })
    }

    fn execute(&self, sql: &str, parameters: &[Value]) -> Result<Statement, Error> {
        execute(&self.shared, sql, parameters)
    }

    fn execute_many(
        &self,
        sql: &str,
        rows: &mut dyn Iterator<Item = Result<Vec<Value>, Error>>,
    ) -> Result<Option<u64>, Error> {
        execute_many(&self.shared, sql, rows)
    }

    fn insert_rows(
        &self,
        insert: &TableInsert,
        rows: &mut dyn Iterator<Item = Result<Vec<Value>, Error>>,
    ) -> Result<Option<u64>, Error> {
        insert_rows(&self.shared, insert, rows)
    }

    fn prepare_check(&self, sql: &str) -> Result<Prepared, Error> {
        self.shared.call(|wire| {
            let translated = translate(sql);
            let prepared = prepare(
                wire,
                &translated.sql,
                String::new(),
                &[],
                Preamble::default(),
            )?;
            frontend::sync(&mut wire.out);
            wire.send()?;
            wire.read_to_ready(sql)?;
            Ok(Prepared {
                schema: Some(describe(&prepared, wire).1),
                n_parameters: Some(prepared.parameters.len()),
                read_only: None,
            })
        })
    }

    fn cancel_handle(&self) -> CancelHandle {
        let activity = Arc::clone(&self.shared.activity);
        CancelHandle::new(move || activity.cancel(None))
    }

    /// Commits the transaction; has no effect if no transaction is open. If a result is being
    /// received, its remaining rows are received first and stored.
    ///
    /// # Errors
    /// The error of the server. If a statement in the transaction has failed, the transaction is
    /// rolled back, and the error has the SQLSTATE 25P02.
    fn commit(&self) -> Result<(), Error> {
        self.shared.call(|wire| match wire.server.status() {
            TransactionStatus::Idle => Ok(()),
            TransactionStatus::Open if self.shared.read_only => {
                self.shared.command(wire, "ROLLBACK")
            }
            TransactionStatus::Open => self.shared.command(wire, "COMMIT"),
            TransactionStatus::Failed => {
                self.shared.command(wire, "ROLLBACK")?;
                let message = "the transaction was rolled back, since a statement in it failed";
                Err(error_of_state("25P02", message))
            }
        })
    }

    fn rollback(&self) -> Result<(), Error> {
        self.shared.with(|wire| {
            if let Some(waiting) = wire.further.take() {
                waiting.clear();
            }
            match wire.copying {
                Some((CopyDirection::FromClient, _)) => return Err(is_copying()),
                Some((CopyDirection::ToClient, _)) => {
                    let _ = self.shared.activity.request();
                    end_copy_out(&self.shared, wire)?;
                }
                None => {}
            }
            stop_reader(&self.shared, wire)?;
            match wire.server.status() {
                TransactionStatus::Idle => Ok(()),
                _ => self.shared.command(wire, "ROLLBACK"),
            }
        })
    }

    fn set_autocommit(&self, on: bool) -> Result<(), Error> {
        if on {
            self.commit()?;
        }
        self.shared.autocommit.store(on, SeqCst);
        Ok(())
    }

    fn autocommit(&self) -> bool {
        self.shared.autocommit()
    }

    fn close(&self) -> Result<(), Error> {
        self.shared.close();
        Ok(())
    }

    fn is_closed(&self) -> bool {
        self.shared.health.is_closed()
    }

    fn is_usable(&self) -> bool {
        self.shared.health.is_usable() && self.shared.is_ours()
    }

    fn dialect(&self) -> Dialect {
        Dialect::Postgres
    }

    fn names(&self) -> Names {
        self.shared.names.clone()
    }

    fn describe(&self) -> String {
        let Names {
            dbms,
            dbms_version,
            driver,
            driver_version,
        } = &self.shared.names;
        format!("{dbms} {dbms_version} by {driver} {driver_version}")
    }
}
