//! A source and a sink as a chunk source.

use onecopy_text::Ledger;
use onecopy_wire::ChunkSource;

use crate::connect::Format;
use crate::error::{Error, ErrorKind};
use crate::source::Source;

/// Largest part of a long value that a row stream asks its source for, in bytes: half of a usual chunk of 64 KiB, so
/// that a part converted from UTF-16 (three bytes for two at most, but for escapes) still fits one.
pub const PART_BYTES: usize = 32 << 10;

/// The rows of `source` as a stream of bytes in `format`.
///
/// # Errors
/// [`ErrorKind::Programming`] where the format needs distinct column names and these are not.
pub fn chunks<S: Source>(
    _source: S,
    _format: Format,
    _ledger: &Ledger,
) -> Result<Box<dyn ChunkSource>, Error> {
    Err(Error::new(
        ErrorKind::NotSupported,
        "row streams are not built yet",
    ))
}
