//! The lengths that stand in front of things.

use super::error::{ReadError, Reason};

/// The shortest document: a length and a zero byte.
pub const LEAST_BYTES: usize = 5;

/// Bytes of a length.
pub(super) const LENGTH_BYTES: usize = 4;

/// The length at a place, negative ones as huge ones; `None` where the bytes end before.
#[inline(always)]
pub(super) fn length_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// Bytes of the document that starts with these, of which the first four are enough.
///
/// # Errors
/// [`Reason::End`] where there are fewer than four, [`Reason::DocumentLength`], [`Reason::Size`]; all at byte 0.
#[inline]
pub fn document_len(start: &[u8], max_size: usize) -> Result<usize, ReadError> {
    let no = |reason| ReadError {
        reason,
        offset_bytes: 0,
    };
    let length = length_at(start, 0).ok_or(no(Reason::End))?;
    let length = i32::from_le_bytes(length.to_le_bytes());
    match usize::try_from(length) {
        Ok(length) if length > max_size => Err(no(Reason::Size)),
        Ok(length) if length >= LEAST_BYTES => Ok(length),
        _ => Err(no(Reason::DocumentLength)),
    }
}
