//! Text to the data area of a Python `str` (PEP 393).

use std::mem::MaybeUninit;

use super::measure;
use crate::{Malformed, Policy, Shape, Units};

/// The data area of a fresh `str`.
#[derive(Debug)]
pub enum StrData<'a> {
    /// Kind 1, ASCII or Latin-1.
    One(&'a mut [MaybeUninit<u8>]),
    /// Kind 2.
    Two(&'a mut [MaybeUninit<u16>]),
    /// Kind 4.
    Four(&'a mut [MaybeUninit<u32>]),
}

impl StrData<'_> {
    /// The same data, borrowed again.
    pub(crate) fn reborrow(&mut self) -> StrData<'_> {
        match self {
            StrData::One(data) => StrData::One(data),
            StrData::Two(data) => StrData::Two(data),
            StrData::Four(data) => StrData::Four(data),
        }
    }
}

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
