//! Reads the length prefix of a document ([`document_len`]) and of other values.

use super::error::{ReadError, Reason};

/// The length in bytes of the shortest document, which has only a length prefix and a zero byte.
pub const LEAST_BYTES: usize = 5;

/// The number of bytes of a length prefix.
pub(super) const LENGTH_BYTES: usize = 4;

/// Returns the length prefix at position `at`; a negative length is returned as a large number.
/// Returns `None` if fewer than four bytes are left.
#[inline(always)]
pub(super) fn length_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// Returns the length in bytes of a document. `start` must begin with the first four bytes of the
/// document, which contain the length.
///
/// # Errors
/// [`Reason::End`] for fewer than four bytes, [`Reason::DocumentLength`], [`Reason::Size`]; all at
/// byte 0.
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
