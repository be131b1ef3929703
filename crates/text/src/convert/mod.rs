//! Conversions of [`Units`] to UTF-8, bodies of JSON strings, the data of a `str`, and UTF-16.
//!
//! Each conversion writes directly to its destination and returns the length written. If a
//! conversion into a sink fails, the sink is unchanged.
//!
//! Short ASCII cells take an inlined fast path. Other text is converted in blocks.

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

/// The reason why a conversion failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ConvertError {
    /// The text is malformed, and the policy does not replace errors.
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

/// The maximum length in units of a text whose leading ASCII is written in one step.
const SHORT_UNITS: usize = 128;

/// The number of units in a block of a long text. A block must fit into the L1 cache.
const BLOCK_UNITS: usize = 4096;

/// The replacement character U+FFFD in UTF-8.
const REPLACEMENT_UTF8: &[u8] = "\u{FFFD}".as_bytes();

/// The reason why a block was not written.
enum WriteStop {
    /// The text is malformed. The caller finds the position.
    Malformed,
    SinkFull(SinkFull),
}

impl From<SinkFull> for WriteStop {
    fn from(e: SinkFull) -> Self {
        WriteStop::SinkFull(e)
    }
}

/// An output format: UTF-8 or the body of a JSON string.
trait OutputForm {
    /// Appends a block of text. After an error, the appended bytes are unspecified.
    fn block<S: ByteSink>(units: Units<'_>, sink: &mut S) -> Result<(), WriteStop>;
}

/// Appends text of any length in the format `F`. The sink is unchanged after an error.
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
        // Reserves the space once. A later write returns the error for a full sink.
        let _ = sink.spare(likely_len(units));
    }
    let mut at = 0;
    while at < units.len_units() {
        let rest = units.skip(at);
        let block = rest.take(block_end(rest));
        F::block(block, sink).map_err(|stop| match stop {
            WriteStop::SinkFull(e) => ConvertError::SinkFull(e),
            WriteStop::Malformed => {
                // Searches past the block: the end of a block is not the end of the text.
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

/// Returns the UTF-8 length of well-formed text. The text is not validated.
fn likely_len(units: Units<'_>) -> usize {
    match units {
        Units::Utf8(u) => u.len(),
        Units::Latin1(u) => utf8_len_from_latin1(u),
        Units::Utf16(u) | Units::Ucs2(u) => utf8_len_from_units(u).0,
        Units::Utf32(u) => encode::utf8_len_from_utf32(u),
    }
}

/// Returns the number of units of the next block. Well-formed text is not divided inside a
/// character.
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

/// Returns a window of `worst` bytes if the sink has the space, otherwise of `exact()` bytes.
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
