//! Checks whether the driver reports its connection as lost.
//!
//! The driver's report is not sufficient to detect each loss. psqlodbc reports success for a
//! rollback on a lost connection. MariaDB's driver implements `SQL_ATTR_CONNECTION_DEAD` by a round
//! trip, which fails while a result is read. If the error of a statement reports that the
//! connection is lost, [`crate::health::ConnectionHealth`] therefore stores this.

use super::ffi::{self, Handle};
use super::manager::Manager;

/// Returns `true` if the driver reports the connection as dead; `false` for a driver without the
/// attribute `SQL_ATTR_CONNECTION_DEAD`.
///
/// # Safety
/// The caller must pass a live connection handle and hold its lock.
pub(super) unsafe fn is_dead(manager: &Manager, dbc: Handle) -> bool {
    let mut dead: usize = ffi::CD_FALSE;
    // SAFETY: a live handle, by the contract of this function; the attribute is an integer of 32
    // bit, and `dead` has space for 64.
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
