//! Converts text to the data area of a Python `str` (PEP 393).

use super::measure;
use crate::new_object::StrData;
use crate::{Malformed, Policy, Shape, Units};

/// Returns the kind and length of the narrowest `str` for the text, for `PyUnicode_New`.
///
/// To write the text next, use [`measure`]: it avoids a second validation.
///
/// # Errors
/// Returns [`Malformed`] for malformed text under [`Policy::Strict`].
#[inline]
pub fn shape(units: Units<'_>, policy: Policy) -> Result<Shape, Malformed> {
    measure(units, policy).map(|m| m.shape())
}

/// Fills `data`, the characters of a new `str`, with the text. `data` excludes the terminating NUL.
/// `shape` must be the result of [`shape`] for the same `units` and `policy`.
///
/// The text is measured again. [`Measured::write`](super::Measured::write) avoids this second pass.
///
/// # Panics
/// Panics if `data` has another kind or number of characters than `shape`.
#[inline]
pub fn write_str(units: Units<'_>, policy: Policy, shape: Shape, data: StrData<'_>) {
    let measured = measure(units, policy).expect("`shape` has accepted the text");
    assert_eq!(measured.shape(), shape, "the shape is that of another text");
    measured.write(data);
}
