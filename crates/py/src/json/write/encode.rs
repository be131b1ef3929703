//! Calls the JSON encoder, and counts bytes in `onecopy.ledger()`.

use onecopy_text::{Stage, Tally};
use pyo3::Borrowed;
use pyo3::prelude::*;

use super::error::to_py;
use super::options::JsonWriteOptions;
use crate::ledger;
use crate::raw::encode::json as encoder;
use crate::raw::encode::json::JsonTarget;
use crate::recent::RecentLength;

/// Appends the JSON of an object, and counts its bytes in the active `onecopy.ledger()`.
#[inline(always)]
pub(super) fn write<'py>(
    object: Borrowed<'_, 'py, PyAny>,
    shape: encoder::JsonShape<'_>,
    options: &JsonWriteOptions,
    target: JsonTarget<'_>,
) -> PyResult<()> {
    let py = object.py();
    let mut tally = ledger::is_kept().then(Tally::default);
    let done = encoder::write(
        object,
        shape,
        &options.style,
        options,
        target,
        tally.as_mut(),
    );
    if let Some(tally) = &mut tally {
        ledger::enter(py, tally, Stage::Encode)?;
    }
    done.map_err(|failed| to_py(py, failed, options.style.max_depth))
}

/// Adds bytes that a growing buffer copied to the active `onecopy.ledger()`.
pub(super) fn moved(py: Python<'_>, bytes: usize) -> PyResult<()> {
    let mut tally = Tally::default();
    tally.copied_again(bytes);
    ledger::enter(py, &mut tally, Stage::Encode)
}

/// Estimates the length of the next result from recent results.
pub(super) static RECENT_BYTES: RecentLength = RecentLength::new();
