//! Whether a connection still works, by what errors say and by what the driver says of itself. No statement is sent to ask.
//!
//! A driver's own word is not enough: psqlodbc calls a rollback on a lost connection a success, and MariaDB's answer to
//! `SQL_ATTR_CONNECTION_DEAD` is a round trip that fails while an answer is under way. So a loss that an error told is kept.

use std::sync::atomic::{AtomicU8, Ordering};

use super::ffi::{self, Handle};
use super::manager::Manager;
use crate::error::{Error, ErrorKind};
use crate::sql::dialect::Dialect;

const OPEN: u8 = 0;
const LOST: u8 = 1;
const CLOSED: u8 = 2;

/// What is known of a connection.
#[derive(Debug, Default)]
pub(super) struct ConnectionHealth(AtomicU8);

impl ConnectionHealth {
    /// Whether it was closed by `close`.
    pub(super) fn is_closed(&self) -> bool {
        self.0.load(Ordering::SeqCst) == CLOSED
    }

    /// Whether it was neither closed nor found lost.
    pub(super) fn is_usable(&self) -> bool {
        self.0.load(Ordering::SeqCst) == OPEN
    }

    pub(super) fn close(&self) {
        self.0.store(CLOSED, Ordering::SeqCst);
    }

    pub(super) fn lose(&self) {
        let _ = self
            .0
            .compare_exchange(OPEN, LOST, Ordering::SeqCst, Ordering::SeqCst);
    }

    /// Refuses a connection that was found lost.
    ///
    /// # Errors
    /// [`ErrorKind::Operational`], SQLSTATE 08003 ("connection not open").
    pub(super) fn check(&self) -> Result<(), Error> {
        if self.0.load(Ordering::SeqCst) == LOST {
            return Err(lost());
        }
        Ok(())
    }
}

/// The error of each call on a connection that was lost.
pub(super) fn lost() -> Error {
    let mut error = Error::new(
        ErrorKind::Operational,
        "the connection was lost, and what was not committed with it\nOpen a new one.",
    )
    .transient();
    "08003".clone_into(&mut error.sqlstate);
    error
}

/// Whether an error says that the connection is gone.
///
/// Source: ISO/IEC 9075-2 and the ODBC reference (class 08), PostgreSQL's appendix A (class 57, 25P03), MariaDB's list of
/// error codes.
pub(super) fn says_lost(error: &Error, dialect: Dialect) -> bool {
    let by_code = dialect == Dialect::MySql
        // ER_SERVER_SHUTDOWN, ER_CONNECTION_KILLED, CR_SERVER_GONE_ERROR, CR_SERVER_LOST, CR_SERVER_LOST_EXTENDED, the
        // server's time limit for a client that is silent.
        && matches!(error.native, 1053 | 1927 | 2006 | 2013 | 2055 | 4031);
    by_code
        || matches!(
            error.sqlstate.as_str(),
            "08003" | "08006" | "08007" | "08S01" | "57P01" | "57P02" | "57P05" | "25P03" | "25P04"
        )
}

/// Whether the driver says that the connection is dead; a driver that does not know the question says nothing.
///
/// # Safety
/// `dbc` is a live connection handle whose lock is held.
pub(super) unsafe fn is_dead(manager: &Manager, dbc: Handle) -> bool {
    let mut dead: usize = ffi::CD_FALSE;
    // SAFETY: a live handle by the caller's word; the attribute is an integer of 32 bit, and `dead` has room for 64.
    let rc = unsafe {
        (manager.call.get_connect_attr)(
            dbc,
            ffi::ATTR_CONNECTION_DEAD,
            (&raw mut dead).cast(),
            ffi::IS_UINTEGER,
            std::ptr::null_mut(),
        )
    };
    (rc == ffi::SUCCESS || rc == ffi::SUCCESS_WITH_INFO) && dead == ffi::CD_TRUE
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
        assert!(says_lost(&error("HY000", 2013), Dialect::MySql));
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
