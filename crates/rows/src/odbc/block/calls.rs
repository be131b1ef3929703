//! `FetchCalls`: the driver calls that read rows and long values.

use super::rowset::Rowset;
use crate::error::Error;
use crate::odbc::ffi;

/// The driver calls of the block reader, as a trait, so that tests can replace the driver.
pub(crate) trait FetchCalls {
    /// Fetches rows into the rowset. In the layout by column, the driver fills as many rows as the
    /// rowset has slots for, from slot 0 on. In the layout by row, it fills one row, in slot
    /// `into`.
    fn fetch_rows(&mut self, rowset: &Rowset, into: usize) -> RowsFetched;

    /// Selects the row with the index `row` in the rowset, from which later calls to `get_data`
    /// read. The call is necessary only if each column is bound as one array for many rows.
    fn position(&mut self, row: usize) -> Result<(), Error>;

    /// Calls `SQLGetData` for `column` with the buffer `window`; returns the return code
    /// (`SUCCESS`, `SUCCESS_WITH_INFO`, `NO_DATA`) and the indicator.
    fn get_data(
        &mut self,
        column: usize,
        c_type: i16,
        window: &mut [u8],
    ) -> Result<(ffi::Return, isize), Error>;
}

/// The result of [`FetchCalls::fetch_rows`]: the number of fetched rows, and the failure (if any)
/// that occurred after these rows. If there are neither rows nor a failure, the result of the
/// statement has ended.
#[derive(Debug, Default)]
pub(crate) struct RowsFetched {
    pub(crate) n_rows: usize,
    pub(crate) failure: Option<Error>,
}

impl RowsFetched {
    /// Creates the result of a fetch that failed before it returned a row.
    pub(crate) fn failed(failure: Error) -> RowsFetched {
        RowsFetched {
            n_rows: 0,
            failure: Some(failure),
        }
    }
}
