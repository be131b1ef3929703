//! Calls the BSON encoder, counts its bytes and converts its errors.

use onecopy_text::{Stage, Tally};
use pyo3::Borrowed;
use pyo3::prelude::*;

use super::error::to_py;
use super::options::BsonWriteOptions;
use crate::ledger;
use crate::raw::encode::bson::{self, Sink};

/// Appends an encoded document to the sink. Counts its text in the active ledger.
#[inline]
pub(super) fn write<'py>(
    object: Borrowed<'_, 'py, PyAny>,
    options: &BsonWriteOptions,
    sink: &mut dyn Sink,
) -> PyResult<()> {
    let py = object.py();
    let mut tally = ledger::is_kept().then(Tally::default);
    let done = bson::write(object, options.style, options, sink, tally.as_mut());
    if let Some(tally) = &mut tally {
        ledger::enter(py, tally, Stage::Encode)?;
    }
    done.map_err(|failed| to_py(py, failed, options))
}

/// Counts `bytes` in the active ledger: the bytes that a growing buffer copied again.
pub(super) fn moved(py: Python<'_>, bytes: usize) -> PyResult<()> {
    let mut tally = Tally::default();
    tally.copied_again(bytes);
    ledger::enter(py, &mut tally, Stage::Encode)
}
