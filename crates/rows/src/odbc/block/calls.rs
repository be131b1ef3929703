//! The driver calls that read rows and long values.

use super::rowset::Rowset;
use crate::error::Error;
use crate::odbc::ffi;

/// The driver calls that the state machine makes; a trait so that it can be tested without a driver.
pub(crate) trait FetchCalls {
    /// Brings rows into the rowset from slot 0 on (by column: as many as fit; by row: one, into slot `into`).
    fn fetch_rows(&mut self, rowset: &Rowset, into: usize) -> RowsFetched;

    /// Makes `row` (slot number, by column) the row that `get_data` reads.
    fn position(&mut self, row: usize) -> Result<(), Error>;

    /// `SQLGetData` of `column` into `window`: its return code (`SUCCESS`, `SUCCESS_WITH_INFO`, `NO_DATA`) and indicator.
    fn get_data(
        &mut self,
        column: usize,
        c_type: i16,
        window: &mut [u8],
    ) -> Result<(ffi::Return, isize), Error>;
}

/// What a call of [`FetchCalls::fetch_rows`] brought: good rows, then perhaps a failure. No rows and no failure is the end.
#[derive(Debug, Default)]
pub(crate) struct RowsFetched {
    pub(crate) n_rows: usize,
    pub(crate) failure: Option<Error>,
}

impl RowsFetched {
    /// A failure before any row.
    pub(crate) fn failed(failure: Error) -> RowsFetched {
        RowsFetched {
            n_rows: 0,
            failure: Some(failure),
        }
    }
}
