//! Conversions of [`Units`] to UTF-8, to bodies of JSON strings, to the data area of
//! a `str`, and to UTF-16.
//!
//! Each conversion writes directly to its destination and returns the length written. If a
//! conversion into a sink fails, the sink is unchanged.
//!
//! The public conversions start with a fast path that is inlined into their callers: a cell of
//! ASCII without escapes needs one test and one store per vector. Longer and non-ASCII text is
//! converted in blocks that stay in the L1 cache.

mod exact;
mod json;
mod ordered;
mod str;
mod utf16;
mod utf8;
pub mod within;

use std::fmt;

pub use self::exact::{utf8_exact, utf8_len_exact, utf16_len_exact};
pub use self::json::to_json_body;
pub(crate) use self::ordered::{OrderedUnit, make_ordered_one_to_one};
pub use self::ordered::{
    make_ordered_utf16, make_ordered_utf32, ordered_utf16, ordered_utf32, utf32_len_exact,
};
pub use self::str::{shape, write_str};
pub use self::utf8::to_utf8;
pub use self::utf16::{string_from_utf16, to_utf16};
pub use crate::arch::cell::{
    CellBytes, CellEncoding, CellOther, CellUtf8, CellUtf16, make_ascii, make_other_utf8,
};
pub use crate::arch::dispatch::with_kernels;
use crate::arch::dispatch::{utf8_len_from_latin1, utf8_len_from_units};
use crate::arch::encode;
pub use crate::arch::family::{
    Ascii, JSON_PLAIN_BYTES, JSON_PLAIN_UNITS, JsonKernels, JsonSteps, Kernels, Look, Plain,
    ShortNumber, UTF8_SHORT_BYTES, UnescapedLength as Unescaped, Utf8Kernels, Work, json_capacity,
    utf8_capacity,
};
pub use crate::arch::float::{FLOAT_BYTES, eight_digits, put_float, put_float32};
pub use crate::arch::json_read::Scan;
pub use crate::arch::large::make_large;
pub use crate::arch::large::volatile::{VolatileBytes, make_large_volatile, make_volatile};
pub use crate::arch::measured::{Measured, measure};
pub use crate::arch::new_cell::MOST_CELL_BYTES;
pub use crate::decimal::EIGHT_DIGITS;
pub use crate::new_object::{MadeStr as Made, NewBytes, NewStr, StrData};
use crate::validate::find_malformed;
use crate::{ByteSink, Malformed, Policy, SinkFull, Units, Window};

/// The reason why a conversion into a sink stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ConvertError {
    /// The text is malformed, and the policy does not replace malformed sequences.
    Malformed(Malformed),
    /// The sink has no space for the result.
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

/// In a text of at most this number of units, all leading ASCII units are written in one step. In a
/// longer text, they are written block by block.
const SHORT_UNITS: usize = 128;

/// The number of code units in a block, the part of a long text that is converted at a time. The
/// input and the output of a block are read more than once, so the block is short enough to stay in
/// the L1 cache. Only the space for one block is reserved in advance.
const BLOCK_UNITS: usize = 4096;

/// The replacement character U+FFFD in UTF-8.
const REPLACEMENT_UTF8: &[u8] = "\u{FFFD}".as_bytes();

/// The reason why [`OutputForm::block`] could not write a block of text.
enum WriteStop {
    /// The text is malformed; the caller must determine the position of the error.
    Malformed,
    SinkFull(SinkFull),
}

impl From<SinkFull> for WriteStop {
    fn from(e: SinkFull) -> Self {
        WriteStop::SinkFull(e)
    }
}

/// An output format (UTF-8 or the body of a JSON string), to which text is converted block by
/// block.
trait OutputForm {
    /// Appends a block of text. Returns an error if the text is malformed or the sink is full; the
    /// appended bytes are then unspecified.
    fn block<S: ByteSink>(units: Units<'_>, sink: &mut S) -> Result<(), WriteStop>;
}

/// Appends text of any length in the format `F`. Malformed text is handled as `policy` specifies.
/// If the function fails, the sink is unchanged.
fn write<F: OutputForm, S: ByteSink>(
    units: Units<'_>,
    policy: Policy,
    sink: &mut S,
) -> Result<usize, ConvertError> {
    let start = sink.mark();
    let before = sink.committed().len();
    let result = match policy {
        Policy::Replace => write_replacing::<F, S>(units, sink),
        _ => write_strict::<F, S>(units, sink),
    };
    match result {
        Ok(()) => Ok(sink.committed().len() - before),
        Err(e) => {
            sink.rewind(start);
            Err(e)
        }
    }
}

fn write_strict<F: OutputForm, S: ByteSink>(
    units: Units<'_>,
    sink: &mut S,
) -> Result<(), ConvertError> {
    if units.len_units() > 4 * BLOCK_UNITS {
        // The space is reserved once, so that a growing sink does not move its contents repeatedly.
        // An error is ignored here: if the sink is too small, a later write returns the error,
        // unless the text turns out to be malformed first.
        let _ = sink.spare(likely_len(units));
    }
    let mut at = 0;
    while at < units.len_units() {
        let rest = units.skip(at);
        let block = rest.take(block_end(rest));
        F::block(block, sink).map_err(|stop| match stop {
            WriteStop::SinkFull(e) => ConvertError::SinkFull(e),
            WriteStop::Malformed => {
                // The search continues past the block, because the end of the block must not be
                // treated as the end of the text.
                let found = find_malformed(rest).unwrap_or(Malformed::CHANGED);
                ConvertError::Malformed(found.later_by(at))
            }
        })?;
        at += block.len_units();
    }
    Ok(())
}

fn write_replacing<F: OutputForm, S: ByteSink>(
    mut units: Units<'_>,
    sink: &mut S,
) -> Result<(), ConvertError> {
    while let Some(found) = find_malformed(units) {
        write_strict::<F, S>(units.take(found.at_units), sink)?;
        sink.put(REPLACEMENT_UTF8)?;
        units = units.skip(found.at_units + found.len_units);
    }
    write_strict::<F, S>(units, sink)
}

/// Returns the number of bytes of the text converted to UTF-8. The number is exact only for
/// well-formed text; the text is not validated.
fn likely_len(units: Units<'_>) -> usize {
    match units {
        Units::Utf8(u) => u.len(),
        Units::Latin1(u) => utf8_len_from_latin1(u),
        Units::Utf16(u) | Units::Ucs2(u) => utf8_len_from_units(u).0,
        Units::Utf32(u) => encode::utf8_len_from_utf32(u),
    }
}

/// Returns the number of units of the next block, which ends at a character boundary if the text is
/// well-formed.
fn block_end(units: Units<'_>) -> usize {
    let len = units.len_units();
    if len <= BLOCK_UNITS {
        return len;
    }
    let end = BLOCK_UNITS;
    match units {
        Units::Utf8(u) => {
            let continues = |i: usize| u[i] & 0xC0 == 0x80;
            (end - 3..=end)
                .rev()
                .find(|&i| !continues(i))
                .unwrap_or(end)
        }
        Units::Utf16(u) => end - usize::from((0xDC00..0xE000).contains(&u[end])),
        Units::Latin1(_) | Units::Ucs2(_) | Units::Utf32(_) => end,
    }
}

/// Returns a window into the sink. The window has space for `worst` bytes if the sink has that much
/// spare capacity, otherwise for the number of bytes that `exact` computes. `exact` is called only
/// near the end of a chunk, where measuring the text is cheaper than growing the chunk.
fn window_for<S: ByteSink>(
    sink: &mut S,
    worst: usize,
    exact: impl FnOnce() -> usize,
) -> Result<Window<'_, S>, SinkFull> {
    let n_bytes = if sink.spare(0)?.len() >= worst {
        worst
    } else {
        exact()
    };
    sink.window(n_bytes)
}
