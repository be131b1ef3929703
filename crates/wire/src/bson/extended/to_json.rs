//! BSON to Extended JSON: what the reader of BSON tells is written as it comes, a comma behind each value.

use std::fmt;

use onecopy_text::convert::{self, ConvertError, Kernels, Work, with_kernels};
use onecopy_text::{ByteSink, Policy, Put, SinkFull, Units, Window, is_utf8};

use super::settle::sorted;
use super::{double, instant};
use crate::base64;
use crate::bson::Decimal128;
use crate::bson::read::{self, BsonEvents, ReadError, Refusal, Rules, Told, malformed};
use crate::number;

/// How much of the types the text keeps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Form {
    /// Numbers and dates as people and other readers of JSON know them. The width of an integer is lost.
    #[default]
    Relaxed,
    /// A type wrapper for each number: nothing is lost but the bits of a NaN.
    Canonical,
}

/// How documents become text.
#[derive(Clone, Copy, Debug, Default)]
pub struct ToJson {
    /// How much of the types it keeps.
    pub form: Form,
    /// What becomes of malformed text.
    pub policy: Policy,
    /// What is asked of documents.
    pub rules: Rules,
}

/// Why a document did not become text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ToJsonError {
    /// It is no BSON, or not for who reads it.
    Read(ReadError),
    /// There is no memory for the text, or no room.
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

/// Appends the document that `bytes` starts with as an object of Extended JSON v2, with no blanks in it; returns how many
/// bytes of `bytes` it has.
///
/// Copies: one, of each text with the look at its escapes.
///
/// # Errors
/// [`ToJsonError`]; the sink is then as it was.
pub fn to_json<S: ByteSink>(
    bytes: &[u8],
    options: &ToJson,
    sink: &mut S,
) -> Result<usize, ToJsonError> {
    let begin = sink.mark();
    let done = match options.form {
        Form::Relaxed => with_kernels(Run::<S, false> {
            bytes,
            options,
            sink,
        }),
        Form::Canonical => with_kernels(Run::<S, true> {
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

struct Run<'a, S, const CANONICAL: bool> {
    bytes: &'a [u8],
    options: &'a ToJson,
    sink: &'a mut S,
}

impl<S: ByteSink, const CANONICAL: bool> Work for Run<'_, S, CANONICAL> {
    type Output = Result<usize, ToJsonError>;

    #[inline(always)]
    fn run<K: Kernels>(self, kernels: K) -> Self::Output {
        let mut writer = Writer::<S, CANONICAL> {
            sink: self.sink,
            policy: self.options.policy,
            full: None,
        };
        let done = read::read(kernels, self.bytes, self.options.rules, &mut writer);
        match (done, writer.full) {
            (Ok(n_bytes), _) => {
                // The comma behind the document.
                let len = writer.sink.committed().len();
                writer.sink.cut(len - 1);
                Ok(n_bytes)
            }
            (Err(_), Some(full)) => Err(ToJsonError::SinkFull(full)),
            (Err(e), None) => Err(ToJsonError::Read(e)),
        }
    }
}

/// Bytes that a window needs for any value of a fixed size in its wrapper, and a comma.
const ROOM: usize = 128;

struct Writer<'s, S, const CANONICAL: bool> {
    sink: &'s mut S,
    policy: Policy,
    full: Option<SinkFull>,
}

impl<S: ByteSink, const CANONICAL: bool> Writer<'_, S, CANONICAL> {
    #[cold]
    #[inline(never)]
    fn full(&mut self, e: SinkFull) -> Refusal {
        self.full = Some(e);
        Refusal::OWN
    }

    /// A value of a fixed size, and a comma.
    #[inline(always)]
    fn short(&mut self, put: impl FnOnce(&mut Window<'_, S>)) -> Told {
        let written = self.sink.window(ROOM).map(|mut window| {
            put(&mut window);
            window.put_byte(b',');
        });
        written.map_err(|e| self.full(e))
    }

    #[inline(always)]
    fn put(&mut self, bytes: &[u8]) -> Told {
        self.sink.put(bytes).map_err(|e| self.full(e))
    }

    /// What stands around a text, and the text as the body of a string.
    #[inline(always)]
    fn text(&mut self, before: &[u8], text: &[u8], behind: &[u8]) -> Told {
        self.put(before)?;
        match convert::to_json_body(Units::Utf8(text), self.policy, self.sink) {
            Ok(_) => self.put(behind),
            Err(ConvertError::SinkFull(e)) => Err(self.full(e)),
            Err(_) => Err(malformed(text)),
        }
    }

    /// The bracket at the end of what holds values: it takes the place of the last comma.
    #[inline(always)]
    fn end(&mut self, bracket: u8) -> Told {
        match self.sink.committed_mut().last_mut() {
            Some(last @ b',') => {
                *last = bracket;
                self.put(b",")
            }
            _ => self.put(&[bracket, b',']),
        }
    }
}

/// Puts two hexadecimal digits for each byte.
#[inline(always)]
fn put_hex<P: Put>(bytes: &[u8; 12], window: &mut P) {
    let mut text = [0; 24];
    for (place, byte) in text.chunks_exact_mut(2).zip(bytes) {
        place.copy_from_slice(&HEX[usize::from(*byte)]);
    }
    window.put_short(&text, 24);
}

/// The two digits of each byte.
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

impl<S: ByteSink, const CANONICAL: bool> BsonEvents for Writer<'_, S, CANONICAL> {
    #[inline(always)]
    fn key(&mut self, key: &[u8]) -> Told {
        self.text(b"\"", key, b"\":")
    }

    #[inline(always)]
    fn other_array_key(&mut self, key: &[u8]) -> Told {
        match self.policy == Policy::Replace || key.is_ascii() || is_utf8(key) {
            true => Ok(()),
            false => Err(malformed(key)),
        }
    }

    #[inline(always)]
    fn begin_document(&mut self) -> Told {
        self.put(b"{")
    }

    #[inline(always)]
    fn end_document(&mut self) -> Told {
        self.end(b'}')
    }

    #[inline(always)]
    fn begin_array(&mut self) -> Told {
        self.put(b"[")
    }

    #[inline(always)]
    fn end_array(&mut self) -> Told {
        self.end(b']')
    }

    #[inline(always)]
    fn empty_document(&mut self) -> Told {
        self.put(b"{},")
    }

    #[inline(always)]
    fn empty_array(&mut self) -> Told {
        self.put(b"[],")
    }

    fn begin_code_with_scope(&mut self, code: &[u8]) -> Told {
        self.text(b"{\"$code\":\"", code, b"\",\"$scope\":{")
    }

    fn end_code_with_scope(&mut self) -> Told {
        self.end(b'}')?;
        self.end(b'}')
    }

    #[inline(always)]
    fn double(&mut self, value: f64) -> Told {
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
    fn string(&mut self, text: &[u8]) -> Told {
        self.text(b"\"", text, b"\",")
    }

    #[inline(never)]
    fn binary(&mut self, subtype: u8, bytes: &[u8]) -> Told {
        self.put(b"{\"$binary\":{\"base64\":\"")?;
        base64::write(bytes, self.sink).map_err(|e| self.full(e))?;
        self.short(|w| {
            w.put(b"\",\"subType\":\"");
            w.put(&HEX[usize::from(subtype)]);
            w.put(b"\"}}");
        })
    }

    fn undefined(&mut self) -> Told {
        self.put(b"{\"$undefined\":true},")
    }

    #[inline(always)]
    fn object_id(&mut self, id: &[u8; 12]) -> Told {
        self.short(|w| put_oid(id, w))
    }

    #[inline(always)]
    fn boolean(&mut self, value: bool) -> Told {
        self.short(|w| number::put_bool(value, w))
    }

    #[inline(always)]
    fn datetime(&mut self, milliseconds: i64) -> Told {
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
    fn null(&mut self) -> Told {
        self.put(b"null,")
    }

    #[inline(never)]
    fn regex(&mut self, pattern: &[u8], options: &[u8]) -> Told {
        self.text(
            b"{\"$regularExpression\":{\"pattern\":\"",
            pattern,
            b"\",\"options\":\"",
        )?;
        let behind = b"\"}},";
        // Sorting would mend what is malformed.
        let done = match std::str::from_utf8(options) {
            Ok(_) => self.text(b"", &sorted(options), behind),
            Err(_) => self.text(b"", options, behind),
        };
        done.map_err(|e| match e {
            Refusal::OWN => e,
            e => e.later_by(pattern.len() + 1),
        })
    }

    fn db_pointer(&mut self, name: &[u8], id: &[u8; 12]) -> Told {
        self.text(b"{\"$dbPointer\":{\"$ref\":\"", name, b"\",\"$id\":")?;
        self.short(|w| {
            put_oid(id, w);
            w.put(b"}}");
        })
    }

    fn code(&mut self, text: &[u8]) -> Told {
        self.text(b"{\"$code\":\"", text, b"\"},")
    }

    fn symbol(&mut self, text: &[u8]) -> Told {
        self.text(b"{\"$symbol\":\"", text, b"\"},")
    }

    #[inline(always)]
    fn int32(&mut self, value: i32) -> Told {
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

    fn timestamp(&mut self, seconds: u32, increment: u32) -> Told {
        self.short(|w| {
            w.put(b"{\"$timestamp\":{\"t\":");
            number::put_u64(seconds.into(), w);
            w.put(b",\"i\":");
            number::put_u64(increment.into(), w);
            w.put(b"}}");
        })
    }

    #[inline(always)]
    fn int64(&mut self, value: i64) -> Told {
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
    fn decimal128(&mut self, bytes: &[u8; 16]) -> Told {
        let text = Decimal128::from_le_bytes(*bytes).to_text();
        self.short(|w| {
            w.put(b"{\"$numberDecimal\":\"");
            text.put_into(w);
            w.put(b"\"}");
        })
    }

    fn min_key(&mut self) -> Told {
        self.put(b"{\"$minKey\":1},")
    }

    fn max_key(&mut self) -> Told {
        self.put(b"{\"$maxKey\":1},")
    }
}
