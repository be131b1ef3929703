//! Whether the driver reports its connection as dead.
//!
//! Its report is not enough: psqlodbc calls a rollback on a lost connection a success, and
//! MariaDB's answer to `SQL_ATTR_CONNECTION_DEAD` is a round trip that fails while an answer is
//! under way. So a loss that an error reported is kept in [`crate::health::ConnectionHealth`].

use super::ffi::{self, Handle};
use super::manager::Manager;

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
