//! `ConnectionHealth`: records that a connection to a server was lost. It detects the loss from the
//! errors of calls, and sends no statement to check the connection.

use std::sync::atomic::{AtomicU8, Ordering};

use crate::error::{Error, ErrorKind};
use crate::sql::dialect::Dialect;

const OPEN: u8 = 0;
const LOST: u8 = 1;
const CLOSED: u8 = 2;

/// The state of a connection to a server: open, closed or lost.
#[derive(Debug, Default)]
pub(crate) struct ConnectionHealth(AtomicU8);

impl ConnectionHealth {
    /// Returns `true` if the connection was closed by `close`.
    pub(crate) fn is_closed(&self) -> bool {
        self.0.load(Ordering::SeqCst) == CLOSED
    }

    /// Returns `false` if the connection was closed, or if an earlier call found that it was lost;
    /// otherwise `true`.
    pub(crate) fn is_usable(&self) -> bool {
        self.0.load(Ordering::SeqCst) == OPEN
    }

    pub(crate) fn close(&self) {
        self.0.store(CLOSED, Ordering::SeqCst);
    }

    pub(crate) fn lose(&self) {
        let _ = self
            .0
            .compare_exchange(OPEN, LOST, Ordering::SeqCst, Ordering::SeqCst);
    }

    /// Returns an error if an earlier call found that the connection was lost.
    ///
    /// # Errors
    /// [`ErrorKind::Operational`], SQLSTATE 08003 ("connection not open").
    pub(crate) fn check(&self) -> Result<(), Error> {
        if self.0.load(Ordering::SeqCst) == LOST {
            return Err(lost());
        }
        Ok(())
    }
}

/// Creates the error for a call on a connection that was lost before.
pub(crate) fn lost() -> Error {
    let mut error = Error::new(
        ErrorKind::Operational,
        "the connection was lost, and what was not committed with it\nOpen a new one.",
    )
    .transient();
    "08003".clone_into(&mut error.sqlstate);
    error
}

/// Returns `true` if an error means that the connection is lost.
///
/// Source: ISO/IEC 9075-2 and the ODBC reference (class 08), PostgreSQL's appendix A (class 57,
/// 25P03), MariaDB's list of error codes.
pub(crate) fn says_lost(error: &Error, dialect: Dialect) -> bool {
    let by_code = dialect == Dialect::MySql
        // ER_SERVER_SHUTDOWN, ER_CONNECTION_KILLED, CR_SERVER_GONE_ERROR, CR_SERVER_LOST,
        // CR_SERVER_LOST_EXTENDED, ER_CLIENT_INTERACTION_TIMEOUT; "Read error" and "Write
        // error" of the socket in MariaDB Connector/C.
        && matches!(
            error.native,
            1053 | 1927 | 2006 | 2013 | 2055 | 4031 | 5013 | 5014
        );
    by_code
        || matches!(
            error.sqlstate.as_str(),
            "08003" | "08006" | "08007" | "08S01" | "57P01" | "57P02" | "57P05" | "25P03" | "25P04"
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(sqlstate: &str, native: i32) -> Error {
        let mut error = Error::new(ErrorKind::Operational, "");
        sqlstate.clone_into(&mut error.sqlstate);
        error.native = native;
        error
    }

    #[test]
    fn a_loss_is_known_by_its_state_or_its_code() {
        for state in ["08S01", "57P01", "08007"] {
            assert!(says_lost(&error(state, 0), Dialect::Generic), "{state}");
        }
        for state in ["", "HY000", "40001", "57014", "08001", "42000"] {
            assert!(!says_lost(&error(state, 0), Dialect::Postgres), "{state}");
        }
        for code in [2013, 5014] {
            assert!(says_lost(&error("HY000", code), Dialect::MySql), "{code}");
        }
        assert!(
            !says_lost(&error("HY000", 2013), Dialect::SqlServer),
            "another database's codes mean other things"
        );
    }

    #[test]
    fn a_lost_connection_refuses_and_a_closed_one_stays_closed() {
        let life = ConnectionHealth::default();
        assert!(life.is_usable() && life.check().is_ok());
        life.lose();
        assert!(!life.is_usable() && !life.is_closed());
        assert_eq!(
            life.check().map_err(|e| e.sqlstate),
            Err("08003".to_owned())
        );
        life.close();
        life.lose();
        assert!(life.is_closed() && !life.is_usable());
    }
}
