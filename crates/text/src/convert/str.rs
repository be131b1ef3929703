//! Conversion of text to the data area of a Python `str` (PEP 393).

use super::measure;
use crate::new_object::StrData;
use crate::{Malformed, Policy, Shape, Units};

/// Returns the kind and length of the narrowest `str` that holds the text. They determine the
/// arguments of `PyUnicode_New`.
///
/// A caller that writes the text next should use [`measure`], whose result needs no second
/// validation.
///
/// # Errors
/// Returns [`Malformed`] for malformed text under [`Policy::Strict`].
#[inline]
pub fn shape(units: Units<'_>, policy: Policy) -> Result<Shape, Malformed> {
    measure(units, policy).map(|m| m.shape())
}

/// Writes the text `units` into `data`, the characters of a new `str`, and fills `data` completely.
/// `data` does not include the terminating NUL. `shape` is the shape with which the `str` was
/// created. It must be the result of a [`shape`] call with the same `units` and `policy`.
///
/// The text is measured again; [`Measured::write`](super::Measured::write) avoids this second pass.
///
/// # Panics Panics if `data` has another kind or number of characters than `shape`, which is a bug
/// in the caller.
#[inline]
pub fn write_str(units: Units<'_>, policy: Policy, shape: Shape, data: StrData<'_>) {
    let measured = measure(units, policy).expect("`shape` has accepted the text");
    assert_eq!(measured.shape(), shape, "the shape is that of another text");
    measured.write(data);
}
