//! The commands that are sent before a statement: BEGIN, and once per session the query that
//! detects a pooler.

use postgres_protocol::message::frontend;

use super::message::violation;
use super::server::TransactionStatus;
use super::wire::Wire;
use crate::error::Error;

/// The query that returns the process id of the session.
const BACKEND_PID: &str = "select pg_catalog.pg_backend_pid()";

/// The commands that were sent to the server immediately before a statement, together with it. The
/// fields have the order in which the server answers the commands.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Preamble {
    checks_pooler: bool,
    begins: bool,
}

impl Wire {
    /// Writes BEGIN to the output buffer if `begins` is `true`, otherwise nothing. Before the
    /// session's first BEGIN, also writes the query that detects a pooler. That query precedes
    /// BEGIN, because an error of that query would abort the transaction.
    pub(super) fn write_preamble(&mut self, begins: bool) -> Result<Preamble, Error> {
        let checks_pooler = begins && self.cache.is_unchecked();
        let mut write = |sql| {
            let written = frontend::query(sql, &mut self.out);
            written.map_err(|e| violation(e.to_string()))
        };
        if checks_pooler {
            write(BACKEND_PID)?;
        }
        if begins {
            write("BEGIN")?;
        }
        Ok(Preamble {
            checks_pooler,
            begins,
        })
    }

    /// Reads the server's responses to the commands that were sent before a statement: the query
    /// that detects a pooler, and BEGIN.
    ///
    /// # Errors
    /// The connection was lost, or BEGIN failed.
    pub(super) fn read_preamble(&mut self, preamble: Preamble) -> Result<(), Error> {
        if preamble.checks_pooler {
            let found = self.read_value(BACKEND_PID);
            self.note_process(found)?;
        }
        match preamble.begins {
            true => self.read_to_ready("BEGIN").map(drop),
            false => Ok(()),
        }
    }

    /// Detects a pooler between this client and the server. A pooler that shares a session between
    /// clients generates its own cancel keys, and the process id in such a key is not the one that
    /// the session reports. The connection uses named prepared statements only if both are equal.
    ///
    /// # Errors
    /// The connection was lost.
    pub(super) fn check_for_pooler(&mut self) -> Result<(), Error> {
        if !self.cache.is_unchecked() || self.server.status() != TransactionStatus::Idle {
            return Ok(());
        }
        let found = self.value(BACKEND_PID);
        self.note_process(found)
    }

    fn note_process(&mut self, found: Result<Option<String>, Error>) -> Result<(), Error> {
        let process = match found {
            Ok(process) => process,
            Err(error) if self.is_lost || error.sqlstate == "57014" => return Err(error),
            Err(_) => None,
        };
        let of_key = self.server.key().map(|(process, _)| process.to_string());
        match process.is_some() && process == of_key {
            true => self.cache.turn_on(),
            false => self.cache.turn_off(),
        }
        Ok(())
    }
}
