//! [`Observer`]: receives the progress of an export, and can stop it.

use onecopy_wire::CancelHandle;

/// The receiver of an export's progress, which can also stop the export.
pub trait Observer {
    /// Called before the rows are fetched. `_cancel` cancels the statement; it can be used by any
    /// thread.
    fn cancels(&mut self, _cancel: CancelHandle) {}

    /// Called after each chunk or batch with the numbers of rows and bytes that were written so
    /// far.
    fn progress(&mut self, _n_rows: u64, _n_bytes: u64) {}

    /// Returns `true` if the export must stop. It is called after each chunk or batch. Cancelling
    /// the statement is not sufficient to stop an export, because a driver may respond to a cancel
    /// with a normal result.
    fn stops(&self) -> bool {
        false
    }
}

/// An observer that ignores the progress and never stops.
impl Observer for () {}
