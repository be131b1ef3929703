//! Functions that read length prefixes: [`document_len`] for a document, `length_at` for any value.

use super::error::{ReadError, Reason};

/// The length in bytes of the shortest document, which consists of its length prefix and a zero
/// byte.
pub const LEAST_BYTES: usize = 5;

/// The size in bytes of the length prefix of a document or string.
pub(super) const LENGTH_BYTES: usize = 4;

/// Returns the length prefix at position `at`. A negative length becomes a number of at least 2^31.
/// Returns `None` if fewer than four bytes are left.
#[inline(always)]
pub(super) fn length_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// Returns the length of a document in bytes. `start` must contain at least the first four bytes of
/// the document, which are its length prefix.
///
/// # Errors
/// Returns [`Reason::End`] if `start` has fewer than four bytes. Returns [`Reason::DocumentLength`]
/// if the length is too small for a document. Returns [`Reason::Size`] if it exceeds `max_bytes`.
/// The position of these errors is 0.
#[inline]
pub fn document_len(start: &[u8], max_bytes: usize) -> Result<usize, ReadError> {
    let no = |reason| ReadError {
        reason,
        offset_bytes: 0,
    };
    let length = length_at(start, 0).ok_or(no(Reason::End))?;
    let length = i32::from_le_bytes(length.to_le_bytes());
    match usize::try_from(length) {
        Ok(length) if length > max_bytes => Err(no(Reason::Size)),
        Ok(length) if length >= LEAST_BYTES => Ok(length),
        _ => Err(no(Reason::DocumentLength)),
    }
}
