//! Open, execute, transactions, close.

use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;

use onecopy_wire::CancelHandle;
use postgres_protocol::message::frontend;

use super::dial::Breaker;
use super::execute::{describe, execute, execute_many, prepare};
use super::parameters::translate;
use super::server::TransactionStatus;
use super::settings::Settings;
use super::shared::{Shared, error_of_state};
use super::statement::Statement;
use super::surroundings::OfProcess;
use super::wire::Wire;
use crate::database::{ConnectCancel, ConnectOptions, DatabaseConnection, Names, Prepared};
use crate::error::Error;
use crate::sql::dialect::Dialect;
use crate::value::Value;

/// The prefix of a target; a URL's `//` or `key=value` pairs follow.
const SCHEMES: [&str; 2] = ["postgresql+native:", "postgres+native:"];

/// A connection to PostgreSQL.
#[derive(Debug)]
pub struct Connection {
    shared: Arc<Shared>,
}

fn without_scheme(target: &str) -> Option<&str> {
    SCHEMES
        .iter()
        .find_map(|scheme| target.strip_prefix(scheme))
}

/// Ends a result that is under way before a rollback: what it would still send is of no use.
fn stop_reader(shared: &Shared, wire: &mut Wire) {
    if wire.reader.is_some() {
        let _ = shared.activity.request();
    }
}

impl DatabaseConnection for Connection {
    type Statement = Statement;

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
        let wire = super::open::open(&settings, options.read_only, &breaker)?;
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
        let (autocommit, read_only) = (options.autocommit, options.read_only);
        let shared = Shared::new(wire, autocommit, read_only, options.text_policy, names);
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
        rows: &mut dyn Iterator<Item = Vec<Value>>,
    ) -> Result<Option<u64>, Error> {
        execute_many(&self.shared, sql, rows)
    }

    fn prepare_check(&self, sql: &str) -> Result<Prepared, Error> {
        self.shared.call(|wire| {
            let translated = translate(sql);
            let prepared = prepare(wire, &translated.sql, String::new(), &[], false)?;
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

    /// Commits the transaction; no effect if none is open. The rest of a result under way is kept in memory.
    ///
    /// # Errors
    /// As the server reports; SQLSTATE 25P02 for a transaction in which a statement failed, which is rolled back.
    fn commit(&self) -> Result<(), Error> {
        self.shared.call(|wire| match wire.server.status() {
            TransactionStatus::Idle => Ok(()),
            TransactionStatus::Open if self.shared.read_only => {
                wire.command("ROLLBACK").map(|_| ())
            }
            TransactionStatus::Open => wire.command("COMMIT").map(|_| ()),
            TransactionStatus::Failed => {
                wire.command("ROLLBACK")?;
                let message = "the transaction was rolled back, since a statement in it failed";
                Err(error_of_state("25P02", message))
            }
        })
    }

    fn rollback(&self) -> Result<(), Error> {
        self.shared.with(|wire| {
            stop_reader(&self.shared, wire);
            wire.settle()?;
            match wire.server.status() {
                TransactionStatus::Idle => Ok(()),
                _ => wire.command("ROLLBACK").map(|_| ()),
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
}
