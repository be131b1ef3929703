//! Calls the JSON encoder, counts the converted bytes in the active ledger, and converts the
//! encoder's errors to exceptions.

use onecopy_text::{Stage, Tally};
use pyo3::Borrowed;
use pyo3::prelude::*;

use super::error::to_py;
use super::options::JsonWriteOptions;
use crate::ledger;
use crate::raw::encode::json as encoder;
use crate::raw::encode::json::JsonTarget;
use crate::recent::RecentLength;

/// Appends the JSON of an object to the sink, and adds the number of converted bytes to the active
/// `onecopy.ledger()`.
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

/// Adds `bytes` to the counts of the active `onecopy.ledger()`. `bytes` is the number of bytes that
/// were copied again because a buffer had to grow.
pub(super) fn moved(py: Python<'_>, bytes: usize) -> PyResult<()> {
    let mut tally = Tally::default();
    tally.copied_again(bytes);
    ledger::enter(py, &mut tally, Stage::Encode)
}

/// Estimates the length in bytes of the next result, from the recent results of functions that
/// return `bytes`.
pub(super) static RECENT_BYTES: RecentLength = RecentLength::new();
