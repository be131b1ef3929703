//! [`Observer`]: receives the progress of an export, and can stop it.

use onecopy_wire::CancelHandle;

/// The receiver of an export's progress.
pub trait Observer {
    /// Called with a handle that cancels the statement from any thread, before its rows are
    /// fetched.
    fn cancels(&mut self, _cancel: CancelHandle) {}

    /// Called after each chunk or batch with the numbers of rows and bytes that were written so
    /// far.
    fn progress(&mut self, _n_rows: u64, _n_bytes: u64) {}

    /// Returns `true` if the export must stop. It is called after each chunk or batch, because a
    /// driver may respond to a cancel with a result.
    fn stops(&self) -> bool {
        false
    }
}

/// An observer that ignores the progress and never stops.
impl Observer for () {}
