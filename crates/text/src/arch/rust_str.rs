//! Converts validated UTF-8 to a Rust `&str`.

use super::dispatch::is_utf8;

/// Returns the bytes as a `str` if they are well-formed UTF-8. Nothing may write to the bytes while
/// the `str` exists.
#[inline]
pub(crate) fn as_str(src: &[u8]) -> Option<&str> {
    // SAFETY: `is_utf8` has validated the bytes by the same rules as core (RFC 3629).
    is_utf8(src).then(|| unsafe { std::str::from_utf8_unchecked(src) })
}
