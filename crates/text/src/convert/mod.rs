//! The conversions of the path: `Units` to UTF-8, to JSON string bodies, to the data area of a `str`, to UTF-16.
//!
//! Each writes straight into its final place and returns how much it wrote. On an error nothing is committed.
//!
//! Every function starts with the short way, inlined where it is called: a cell of plain ASCII is one look and one
//! store per vector. Longer or wider text goes on in blocks that stay in the first cache.

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
pub(crate) use self::ordered::{Unit as OrderedUnit, make_ordered_one_to_one};
pub use self::ordered::{
    make_ordered_utf16, make_ordered_utf32, ordered_utf16, ordered_utf32, utf32_len_exact,
};
pub use self::str::{shape, write_str};
pub use self::utf8::to_utf8;
pub use self::utf16::{string_from_utf16, to_utf16};
pub use crate::arch::cell::{
    CellBytes, CellEncoding, CellOther, CellUtf8, CellUtf16, make_ascii, make_other_utf8,
};
use crate::arch::encode;
pub use crate::arch::family::{
    Ascii, JSON_PLAIN_BYTES, JSON_PLAIN_UNITS, JsonKernels, JsonSteps, Kernels, Look, Plain,
    ShortNumber, UTF8_SHORT_BYTES, UnescapedLength as Unescaped, Utf8Kernels, Work, json_room,
    utf8_room, with_kernels,
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

/// Past this many units the first try at a plain ASCII text is made block by block.
const SHORT_UNITS: usize = 128;

/// Units converted at a time: input and output of a block stay in the first cache while they are looked at more than
/// once, and the room asked for ahead is bounded.
const BLOCK_UNITS: usize = 4096;

/// U+FFFD in UTF-8.
const REPLACEMENT_UTF8: &[u8] = "\u{FFFD}".as_bytes();

/// Why a writer of well-formed text stopped.
enum Stop {
    /// It is not: who called finds out where.
    Malformed,
    SinkFull(SinkFull),
}

impl From<SinkFull> for Stop {
    fn from(e: SinkFull) -> Self {
        Stop::SinkFull(e)
    }
}

/// How a block of text is written.
trait Form {
    /// Appends a block. Where it is malformed it says so, whatever it has written by then.
    fn block<S: ByteSink>(units: Units<'_>, sink: &mut S) -> Result<(), Stop>;
}

/// Appends text of any length under `policy`; the sink is as it was on an error.
fn write<F: Form, S: ByteSink>(
    units: Units<'_>,
    policy: Policy,
    sink: &mut S,
) -> Result<usize, ConvertError> {
    let start = sink.mark();
    let before = sink.committed().len();
    let result = match policy {
        Policy::Strict => write_strict::<F, S>(units, sink),
        Policy::Replace => write_replacing::<F, S>(units, sink),
    };
    match result {
        Ok(()) => Ok(sink.committed().len() - before),
        Err(e) => {
            sink.rewind(start);
            Err(e)
        }
    }
}

fn write_strict<F: Form, S: ByteSink>(units: Units<'_>, sink: &mut S) -> Result<(), ConvertError> {
    if units.len_units() > 4 * BLOCK_UNITS {
        // Once, so that a growing sink does not move what it has time and again. Only a hint: a sink that has less
        // room says so when it is used up, or the text turns out malformed before.
        let _ = sink.spare(likely_len(units));
    }
    let mut at = 0;
    while at < units.len_units() {
        let rest = units.skip(at);
        let block = rest.take(block_end(rest));
        F::block(block, sink).map_err(|stop| match stop {
            Stop::SinkFull(e) => ConvertError::SinkFull(e),
            Stop::Malformed => {
                // Looked at with what follows the block: its end must not look like the end of the text.
                let found = find_malformed(rest).unwrap_or(Malformed::CHANGED);
                ConvertError::Malformed(found.later_by(at))
            }
        })?;
        at += block.len_units();
    }
    Ok(())
}

fn write_replacing<F: Form, S: ByteSink>(
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

/// Bytes of the text as UTF-8 if it is well-formed, which nobody knows yet.
fn likely_len(units: Units<'_>) -> usize {
    match units {
        Units::Utf8(u) => u.len(),
        Units::Latin1(u) => encode::utf8_len_from_latin1(u),
        Units::Utf16(u) | Units::Ucs2(u) => encode::utf8_len_from_utf16(u),
        Units::Utf32(u) => encode::utf8_len_from_utf32(u),
    }
}

/// Units of the next block, which ends where a character does if the text is well-formed.
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

/// A window of `worst` bytes where the sink has them at hand, else of as many as `exact` says: near the end of a chunk
/// it is better to measure than to grow.
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
