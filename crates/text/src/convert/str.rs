//! Text to the data area of a Python `str` (PEP 393).

use super::measure;
use crate::new_object::StrData;
use crate::{Malformed, Policy, Shape, Units};

/// Kind and length of the narrowest `str` that holds the text: what `PyUnicode_New` needs.
///
/// Who writes the text next takes [`measure`], whose result needs no second validation.
///
/// # Errors
/// [`Malformed`] under [`Policy::Strict`].
#[inline]
pub fn shape(units: Units<'_>, policy: Policy) -> Result<Shape, Malformed> {
    measure(units, policy).map(|m| m.shape())
}

/// Writes the text into the data area of a `str` that was made for `shape`: all of it, with the terminator left to
/// its maker. `units`, `policy` and `shape` are those of a successful [`shape`] call.
///
/// It measures the text again; [`Measured::write`](super::Measured::write) does not.
///
/// # Panics
/// Where `data` is not `shape.n_chars` long or of another kind: a bug of the caller.
#[inline]
pub fn write_str(units: Units<'_>, policy: Policy, shape: Shape, data: StrData<'_>) {
    let measured = measure(units, policy).expect("`shape` has accepted the text");
    assert_eq!(measured.shape(), shape, "the shape is another text's");
    measured.write(data);
}
