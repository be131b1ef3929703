//! The conversions of the path: `Units` to UTF-8, to JSON string bodies, and to the data area of a `str`.
//!
//! Each writes straight into its final place and returns how much it wrote. On an error nothing is committed.

use std::fmt;
use std::mem::MaybeUninit;

use crate::{ByteSink, Malformed, Policy, Shape, SinkFull, Units, naive};

/// Why a conversion into a sink stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ConvertError {
    /// The text is malformed and the policy is strict.
    Malformed(Malformed),
    /// The sink has no room.
    SinkFull(SinkFull),
}

impl fmt::Display for ConvertError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ConvertError::Malformed(e) => e.fmt(f),
            ConvertError::SinkFull(e) => e.fmt(f),
        }
    }
}

impl std::error::Error for ConvertError {}

impl From<Malformed> for ConvertError {
    fn from(e: Malformed) -> Self {
        ConvertError::Malformed(e)
    }
}

impl From<SinkFull> for ConvertError {
    fn from(e: SinkFull) -> Self {
        ConvertError::SinkFull(e)
    }
}

/// Appends the text as UTF-8 and returns the bytes written.
///
/// Copies: none besides the conversion (for UTF-8 input one validated copy).
///
/// # Errors
/// [`ConvertError`]; the sink is then as it was.
pub fn to_utf8<S: ByteSink>(
    units: Units<'_>,
    policy: Policy,
    sink: &mut S,
) -> Result<usize, ConvertError> {
    let out = naive::to_utf8(units, policy)?;
    sink.put(&out)?;
    Ok(out.len())
}

/// Appends the text as the body of a JSON string (RFC 8259, section 7), without its quotes: UTF-8, with `"`, `\` and
/// controls escaped, in one go. Returns the bytes written.
///
/// # Errors
/// [`ConvertError`]; the sink is then as it was.
pub fn to_json_body<S: ByteSink>(
    units: Units<'_>,
    policy: Policy,
    sink: &mut S,
) -> Result<usize, ConvertError> {
    let out = naive::to_json_body(units, policy)?;
    sink.put(&out)?;
    Ok(out.len())
}

/// Kind and length of the narrowest `str` that holds the text: what `PyUnicode_New` needs.
///
/// # Errors
/// [`Malformed`] under [`Policy::Strict`].
pub fn shape(units: Units<'_>, policy: Policy) -> Result<Shape, Malformed> {
    naive::shape(units, policy)
}

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

/// Writes the text into the data area of a `str` that was made for `shape`: all of it, with the terminator left to
/// its maker. `units`, `policy` and `shape` are those of a successful [`shape`] call.
///
/// # Panics
/// Where `data` is not `shape.n_chars` long or of another kind: a bug of the caller.
pub fn write_str(units: Units<'_>, policy: Policy, shape: Shape, data: StrData<'_>) {
    let code_points = naive::decode(units, policy).expect("`shape` has accepted the text");
    assert_eq!(code_points.len(), shape.n_chars);
    match data {
        StrData::One(data) => {
            assert_eq!(data.len(), shape.n_chars);
            for (to, c) in data.iter_mut().zip(code_points) {
                to.write(u8::try_from(c).expect("kind 1 was measured"));
            }
        }
        StrData::Two(data) => {
            assert_eq!(data.len(), shape.n_chars);
            for (to, c) in data.iter_mut().zip(code_points) {
                to.write(u16::try_from(c).expect("kind 2 was measured"));
            }
        }
        StrData::Four(data) => {
            assert_eq!(data.len(), shape.n_chars);
            for (to, c) in data.iter_mut().zip(code_points) {
                to.write(c);
            }
        }
    }
}
