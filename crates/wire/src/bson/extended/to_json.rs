//! [`to_json`]: converts BSON to Extended JSON in one pass. Each event of the BSON reader is
//! written as text immediately. A comma is written after each value. At the end of an array or
//! object, the closing bracket replaces the last comma.

use std::fmt;

use onecopy_text::convert::{self, ConvertError, Kernels, Work, with_kernels};
use onecopy_text::{ByteSink, Policy, Put, SinkFull, Units, Window, is_utf8};

use super::resolve_wrapper::sorted;
use super::{double, instant};
use crate::base64;
use crate::bson::Decimal128;
use crate::bson::read::{self, BsonEvents, EventResult, ReadError, Rejection, Rules, malformed};
use crate::number;

/// The two formats of Extended JSON, which differ in the text of numbers and dates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Form {
    /// Integers and finite floats are written as JSON numbers. Dates of the years 1970 to 9999 are
    /// written as RFC 3339 text in a type wrapper. The text does not show whether an integer had 32
    /// or 64 bits.
    #[default]
    Relaxed,
    /// Each number and date is written as a type wrapper, such as `{"$numberInt": "1"}`. No
    /// information is lost, except the payload bits of a NaN.
    Canonical,
}

/// The options for writing Extended JSON.
#[derive(Clone, Copy, Debug, Default)]
pub struct ToJson {
    /// The format of the text of numbers and dates: canonical or relaxed.
    pub form: Form,
    /// The treatment of malformed text in the document.
    pub policy: Policy,
    /// The limits and other requirements that the document must meet, such as its depth and size.
    pub rules: Rules,
}

/// The reason why a document cannot be converted to text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ToJsonError {
    /// The bytes are not valid BSON, or exceed a limit that the caller has set.
    Read(ReadError),
    /// The sink is full, or no more memory is available.
    SinkFull(SinkFull),
}

impl fmt::Display for ToJsonError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ToJsonError::Read(e) => e.fmt(f),
            ToJsonError::SinkFull(e) => e.fmt(f),
        }
    }
}

impl std::error::Error for ToJsonError {}

/// Converts the document at the start of `bytes` to an object of Extended JSON v2 without white
/// space, and appends the text to the sink. Returns the length of the document in bytes.
///
/// Each string is copied once, in the same pass that searches for characters to escape.
///
/// # Errors
/// Returns a [`ToJsonError`]. The sink is then unchanged.
pub fn to_json<S: ByteSink>(
    bytes: &[u8],
    options: &ToJson,
    sink: &mut S,
) -> Result<usize, ToJsonError> {
    let begin = sink.mark();
    let done = match options.form {
        Form::Relaxed => with_kernels(ToJsonTask::<S, false> {
            bytes,
            options,
            sink,
        }),
        Form::Canonical => with_kernels(ToJsonTask::<S, true> {
            bytes,
            options,
            sink,
        }),
    };
    if done.is_err() {
        sink.rewind(begin);
    }
    done
}

struct ToJsonTask<'a, S, const CANONICAL: bool> {
    bytes: &'a [u8],
    options: &'a ToJson,
    sink: &'a mut S,
}

impl<S: ByteSink, const CANONICAL: bool> Work for ToJsonTask<'_, S, CANONICAL> {
    type Output = Result<usize, ToJsonError>;

    #[inline(always)]
    fn run<K: Kernels>(self, kernels: K) -> Self::Output {
        let mut writer = TextWriter::<S, CANONICAL> {
            sink: self.sink,
            policy: self.options.policy,
            full: None,
        };
        let done = read::read(kernels, self.bytes, self.options.rules, &mut writer);
        match (done, writer.full) {
            (Ok(n_bytes), _) => {
                // Removes the comma that was written after the complete document.
                let len = writer.sink.committed().len();
                writer.sink.cut(len - 1);
                Ok(n_bytes)
            }
            (Err(_), Some(full)) => Err(ToJsonError::SinkFull(full)),
            (Err(e), None) => Err(ToJsonError::Read(e)),
        }
    }
}

/// The number of bytes of space that a window of a sink must have before a value of a fixed size is
/// written. The number is sufficient for any such value with its type wrapper and a comma.
const ROOM: usize = 128;

struct TextWriter<'s, S, const CANONICAL: bool> {
    sink: &'s mut S,
    policy: Policy,
    full: Option<SinkFull>,
}

impl<S: ByteSink, const CANONICAL: bool> TextWriter<'_, S, CANONICAL> {
    #[cold]
    #[inline(never)]
    fn full(&mut self, e: SinkFull) -> Rejection {
        self.full = Some(e);
        Rejection::OWN
    }

    /// Calls `put`, which writes a value of a fixed size, and then writes a comma.
    #[inline(always)]
    fn short(&mut self, put: impl FnOnce(&mut Window<'_, S>)) -> EventResult {
        let written = self.sink.window(ROOM).map(|mut window| {
            put(&mut window);
            window.put_byte(b',');
        });
        written.map_err(|e| self.full(e))
    }

    #[inline(always)]
    fn put(&mut self, bytes: &[u8]) -> EventResult {
        self.sink.put(bytes).map_err(|e| self.full(e))
    }

    /// Writes `before`, then `text` as the contents of a JSON string, and then `after`.
    #[inline(always)]
    fn text(&mut self, before: &[u8], text: &[u8], after: &[u8]) -> EventResult {
        self.put(before)?;
        match convert::to_json_body(Units::Utf8(text), self.policy, self.sink) {
            Ok(_) => self.put(after),
            Err(ConvertError::SinkFull(e)) => Err(self.full(e)),
            Err(_) => Err(malformed(text)),
        }
    }

    /// Ends an array or object. Replaces the comma after its last value by `bracket`, the closing
    /// bracket, and writes a comma after the bracket.
    #[inline(always)]
    fn end(&mut self, bracket: u8) -> EventResult {
        match self.sink.committed_mut().last_mut() {
            Some(last @ b',') => {
                *last = bracket;
                self.put(b",")
            }
            _ => self.put(&[bracket, b',']),
        }
    }
}

/// Writes each of the 12 bytes of an object id as two hexadecimal digits.
#[inline(always)]
fn put_hex<P: Put>(bytes: &[u8; 12], window: &mut P) {
    let mut text = [0; 24];
    for (place, byte) in text.chunks_exact_mut(2).zip(bytes) {
        place.copy_from_slice(&HEX[usize::from(*byte)]);
    }
    window.put_short(&text, 24);
}

/// The two hexadecimal digits of each byte, as ASCII characters, indexed by the byte.
static HEX: [[u8; 2]; 256] = {
    let digits = b"0123456789abcdef";
    let mut all = [[0; 2]; 256];
    let mut i = 0;
    while i < 256 {
        all[i] = [digits[i >> 4], digits[i & 15]];
        i += 1;
    }
    all
};

#[inline(always)]
fn put_oid<P: Put>(id: &[u8; 12], window: &mut P) {
    window.put(b"{\"$oid\":\"");
    put_hex(id, window);
    window.put(b"\"}");
}

impl<S: ByteSink, const CANONICAL: bool> BsonEvents for TextWriter<'_, S, CANONICAL> {
    #[inline(always)]
    fn key(&mut self, key: &[u8]) -> EventResult {
        self.text(b"\"", key, b"\":")
    }

    #[inline(always)]
    fn other_array_key(&mut self, key: &[u8]) -> EventResult {
        match self.policy == Policy::Replace || key.is_ascii() || is_utf8(key) {
            true => Ok(()),
            false => Err(malformed(key)),
        }
    }

    #[inline(always)]
    fn begin_document(&mut self) -> EventResult {
        self.put(b"{")
    }

    #[inline(always)]
    fn end_document(&mut self) -> EventResult {
        self.end(b'}')
    }

    #[inline(always)]
    fn begin_array(&mut self) -> EventResult {
        self.put(b"[")
    }

    #[inline(always)]
    fn end_array(&mut self) -> EventResult {
        self.end(b']')
    }

    #[inline(always)]
    fn empty_document(&mut self) -> EventResult {
        self.put(b"{},")
    }

    #[inline(always)]
    fn empty_array(&mut self) -> EventResult {
        self.put(b"[],")
    }

    fn begin_code_with_scope(&mut self, code: &[u8]) -> EventResult {
        self.text(b"{\"$code\":\"", code, b"\",\"$scope\":{")
    }

    fn end_code_with_scope(&mut self) -> EventResult {
        self.end(b'}')?;
        self.end(b'}')
    }

    #[inline(always)]
    fn double(&mut self, value: f64) -> EventResult {
        self.short(|w| {
            if CANONICAL || !value.is_finite() {
                w.put(b"{\"$numberDouble\":\"");
                double::put(value, w);
                w.put(b"\"}");
            } else {
                double::put(value, w);
            }
        })
    }

    #[inline(always)]
    fn string(&mut self, text: &[u8]) -> EventResult {
        self.text(b"\"", text, b"\",")
    }

    #[inline(never)]
    fn binary(&mut self, subtype: u8, bytes: &[u8]) -> EventResult {
        self.put(b"{\"$binary\":{\"base64\":\"")?;
        base64::write(bytes, self.sink).map_err(|e| self.full(e))?;
        self.short(|w| {
            w.put(b"\",\"subType\":\"");
            w.put(&HEX[usize::from(subtype)]);
            w.put(b"\"}}");
        })
    }

    fn undefined(&mut self) -> EventResult {
        self.put(b"{\"$undefined\":true},")
    }

    #[inline(always)]
    fn object_id(&mut self, id: &[u8; 12]) -> EventResult {
        self.short(|w| put_oid(id, w))
    }

    #[inline(always)]
    fn boolean(&mut self, value: bool) -> EventResult {
        self.short(|w| number::put_bool(value, w))
    }

    #[inline(always)]
    fn datetime(&mut self, milliseconds: i64) -> EventResult {
        self.short(|w| {
            if CANONICAL || !instant::has_text(milliseconds) {
                w.put(b"{\"$date\":{\"$numberLong\":\"");
                number::put_i64(milliseconds, w);
                w.put(b"\"}}");
            } else {
                w.put(b"{\"$date\":\"");
                instant::put(milliseconds, w);
                w.put(b"\"}");
            }
        })
    }

    #[inline(always)]
    fn null(&mut self) -> EventResult {
        self.put(b"null,")
    }

    #[inline(never)]
    fn regex(&mut self, pattern: &[u8], options: &[u8]) -> EventResult {
        self.text(
            b"{\"$regularExpression\":{\"pattern\":\"",
            pattern,
            b"\",\"options\":\"",
        )?;
        let after = b"\"}},";
        // Malformed options are reported with their position before they are sorted, because
        // sorting would replace the malformed bytes.
        let done = match std::str::from_utf8(options) {
            Ok(_) => self.text(b"", &sorted(options), after),
            Err(_) => self.text(b"", options, after),
        };
        done.map_err(|e| match e {
            Rejection::OWN => e,
            e => e.later_by(pattern.len() + 1),
        })
    }

    fn db_pointer(&mut self, name: &[u8], id: &[u8; 12]) -> EventResult {
        self.text(b"{\"$dbPointer\":{\"$ref\":\"", name, b"\",\"$id\":")?;
        self.short(|w| {
            put_oid(id, w);
            w.put(b"}}");
        })
    }

    fn code(&mut self, text: &[u8]) -> EventResult {
        self.text(b"{\"$code\":\"", text, b"\"},")
    }

    fn symbol(&mut self, text: &[u8]) -> EventResult {
        self.text(b"{\"$symbol\":\"", text, b"\"},")
    }

    #[inline(always)]
    fn int32(&mut self, value: i32) -> EventResult {
        self.short(|w| {
            if CANONICAL {
                w.put(b"{\"$numberInt\":\"");
                number::put_i64(value.into(), w);
                w.put(b"\"}");
            } else {
                number::put_i64(value.into(), w);
            }
        })
    }

    fn timestamp(&mut self, seconds: u32, increment: u32) -> EventResult {
        self.short(|w| {
            w.put(b"{\"$timestamp\":{\"t\":");
            number::put_u64(seconds.into(), w);
            w.put(b",\"i\":");
            number::put_u64(increment.into(), w);
            w.put(b"}}");
        })
    }

    #[inline(always)]
    fn int64(&mut self, value: i64) -> EventResult {
        self.short(|w| {
            if CANONICAL {
                w.put(b"{\"$numberLong\":\"");
                number::put_i64(value, w);
                w.put(b"\"}");
            } else {
                number::put_i64(value, w);
            }
        })
    }

    #[inline(never)]
    fn decimal128(&mut self, bytes: &[u8; 16]) -> EventResult {
        let text = Decimal128::from_le_bytes(*bytes).to_text();
        self.short(|w| {
            w.put(b"{\"$numberDecimal\":\"");
            text.put_into(w);
            w.put(b"\"}");
        })
    }

    fn min_key(&mut self) -> EventResult {
        self.put(b"{\"$minKey\":1},")
    }

    fn max_key(&mut self) -> EventResult {
        self.put(b"{\"$maxKey\":1},")
    }
}
