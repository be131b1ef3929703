//! [`resolve`] converts type wrappers with several keys, or with a value that is not a string. A
//! type wrapper is a JSON object that represents one BSON value, such as `{"$code": "…", "$scope":
//! {…}}`. The keys of such an object may be in any order. Therefore, the object is first written as
//! a plain document. At the end of the object, [`resolve`] replaces this document by the value that
//! it represents.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use onecopy_text::{ByteSink, Policy, Units};

use super::error::Reason;
use super::wrapper::subtype;
use crate::bson::{
    self, Frame, SUBTYPE_OLD, SUBTYPE_OLD_UUID, SUBTYPE_UUID, Tag, UUID_BYTES, VALUE_BYTES,
};

/// The number of base64 characters that are decoded per step. It is a multiple of 4, because 4
/// characters encode a group of 3 bytes.
const STEP_BYTES: usize = 1024;

/// The value of one key of a type wrapper, such as the value of `$regex` or of `$options`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WrapperPart<'a> {
    /// A text, without the NUL that terminates it in BSON.
    Text(&'a [u8]),
    /// The elements of a document, without its length and its terminator.
    Document(&'a [u8]),
    Int32(i32),
    Int64(i64),
    ObjectId(&'a [u8]),
    Bool(bool),
    /// A value of a type that does not occur in any type wrapper.
    Other,
}

impl WrapperPart<'_> {
    /// Returns the value as an unsigned 32-bit integer; `None` if it is not an integer in this
    /// range.
    fn unsigned(self) -> Option<u32> {
        match self {
            WrapperPart::Int32(value) => value.try_into().ok(),
            WrapperPart::Int64(value) => value.try_into().ok(),
            _ => None,
        }
    }
}

/// Iterates over the elements of a BSON document. The lengths in the document are not checked,
/// because this crate has written the document. The iteration ends after the first value of a type
/// that no type wrapper contains ([`WrapperPart::Other`]).
struct WrapperElements<'a> {
    rest: &'a [u8],
}

impl<'a> WrapperElements<'a> {
    fn take(&mut self, n: usize) -> &'a [u8] {
        let (taken, rest) = self.rest.split_at(n);
        self.rest = rest;
        taken
    }

    fn int<const N: usize>(&mut self) -> [u8; N] {
        self.take(N).try_into().expect("as many bytes were taken")
    }

    fn length(&mut self) -> usize {
        i32::from_le_bytes(self.int()) as usize
    }
}

impl<'a> Iterator for WrapperElements<'a> {
    type Item = (&'a [u8], WrapperPart<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        let (&tag, rest) = self.rest.split_first()?;
        let end = rest.iter().position(|b| *b == 0)?;
        self.rest = &rest[end + 1..];
        let part = match Tag::of(tag) {
            Some(Tag::String) => {
                let length = self.length();
                WrapperPart::Text(&self.take(length)[..length - 1])
            }
            Some(Tag::Document) => {
                let length = self.length() - 4;
                WrapperPart::Document(&self.take(length)[..length - 1])
            }
            Some(Tag::Int32) => WrapperPart::Int32(i32::from_le_bytes(self.int())),
            Some(Tag::Int64) => WrapperPart::Int64(i64::from_le_bytes(self.int())),
            Some(Tag::ObjectId) => WrapperPart::ObjectId(self.take(12)),
            Some(Tag::Bool) => WrapperPart::Bool(self.take(1) == [1]),
            _ => {
                self.rest = &[];
                WrapperPart::Other
            }
        };
        Some((&rest[..end], part))
    }
}

/// Returns the values of the key `first` and of the optional key `second`, in any order. The second
/// value is `None` if `second` is absent. The whole result is `None` if `first` is absent, if a key
/// occurs twice, or if there is any other key.
fn pair<'a>(
    elements: &'a [u8],
    first: &[u8],
    second: &[u8],
) -> Option<(WrapperPart<'a>, Option<WrapperPart<'a>>)> {
    let (mut a, mut b) = (None, None);
    for (key, part) in (WrapperElements { rest: elements }) {
        let place = match key {
            key if key == first => &mut a,
            key if key == second => &mut b,
            _ => return None,
        };
        if place.replace(part).is_some() {
            return None;
        }
    }
    Some((a?, b))
}

fn both<'a>(
    elements: &'a [u8],
    first: &[u8],
    second: &[u8],
) -> Option<(WrapperPart<'a>, WrapperPart<'a>)> {
    let (a, b) = pair(elements, first, second)?;
    Some((a, b?))
}

/// Converts a type wrapper to the BSON value that it represents, appends the value to the sink, and
/// returns the tag of its BSON type. `elements` are the elements of the wrapper. `n_wrapped` is the
/// number of these elements whose values were type wrappers too. Returns `None` if `elements` are
/// not a type wrapper; the sink may then contain incomplete output.
///
/// # Errors
/// Returns [`Reason`] if the elements have the keys of a type wrapper, but values that are not
/// valid in it.
pub(super) fn resolve<S: ByteSink>(
    elements: &[u8],
    n_wrapped: u32,
    sink: &mut S,
) -> Result<Option<Tag>, Reason> {
    let Some((key, value)) = (WrapperElements { rest: elements }).next() else {
        return Ok(None);
    };
    match key {
        b"$binary" | b"$type" => binary(elements, sink),
        b"$code" | b"$scope" => code(elements, sink),
        b"$regularExpression" => match one(elements, value) {
            Some(WrapperPart::Document(inner)) => regex(both(inner, b"pattern", b"options"), sink),
            _ => Ok(None),
        },
        b"$regex" | b"$options" => match pair(elements, b"$regex", b"$options") {
            Some((pattern, options)) => regex(
                Some((pattern, options.unwrap_or(WrapperPart::Text(b"")))),
                sink,
            ),
            None => Ok(None),
        },
        _ => put_short(key, one(elements, value), n_wrapped, sink),
    }
}

/// Returns `value`, the value of the first element, if there is only one element; otherwise `None`.
fn one<'a>(elements: &'a [u8], value: WrapperPart<'a>) -> Option<WrapperPart<'a>> {
    (WrapperElements { rest: elements }.count() == 1).then_some(value)
}

/// Appends the BSON value of a type wrapper with exactly one key, such as `{"$timestamp": …}` or
/// `{"$date": …}`. Returns `None` if the object is not such a type wrapper.
fn put_short<S: ByteSink>(
    key: &[u8],
    value: Option<WrapperPart<'_>>,
    n_wrapped: u32,
    sink: &mut S,
) -> Result<Option<Tag>, Reason> {
    let mut window = sink.window(VALUE_BYTES)?;
    Ok(match (key, value) {
        // A plain number is not a valid value of `$date`. The integer must come from an inner
        // wrapper, `{"$numberLong": …}`.
        (b"$date", Some(WrapperPart::Int64(unix_ms))) if n_wrapped == 1 => {
            bson::put_i64(unix_ms, &mut window);
            Some(Tag::DateTime)
        }
        (b"$timestamp", Some(WrapperPart::Document(inner))) if n_wrapped == 0 => {
            match both(inner, b"t", b"i") {
                Some((seconds, increment)) => match (seconds.unsigned(), increment.unsigned()) {
                    (Some(seconds), Some(increment)) => {
                        bson::put_timestamp(seconds, increment, &mut window);
                        Some(Tag::Timestamp)
                    }
                    _ => None,
                },
                None => None,
            }
        }
        (b"$minKey", Some(WrapperPart::Int32(1))) if n_wrapped == 0 => Some(Tag::MinKey),
        (b"$maxKey", Some(WrapperPart::Int32(1))) if n_wrapped == 0 => Some(Tag::MaxKey),
        (b"$undefined", Some(WrapperPart::Bool(true))) => Some(Tag::Undefined),
        (b"$dbPointer", Some(WrapperPart::Document(inner))) => match both(inner, b"$ref", b"$id") {
            Some((WrapperPart::Text(name), WrapperPart::ObjectId(id))) => {
                drop(window);
                text(name, sink)?;
                sink.put(id)?;
                Some(Tag::DbPointer)
            }
            _ => None,
        },
        _ => None,
    })
}

/// Appends a BSON string: its length, its bytes and NUL. The bytes must be well-formed UTF-8.
fn text<S: ByteSink>(text: &[u8], sink: &mut S) -> Result<(), Reason> {
    let frame = Frame::begin(sink)?;
    sink.put(text)?;
    Ok(frame.end_text(sink)?)
}

/// Appends the binary value of a `$binary` wrapper:
/// `{"$binary": {"base64": "…", "subType": "00"}}`, or in legacy syntax
/// `{"$binary": "…", "$type": "00"}`.
fn binary<S: ByteSink>(elements: &[u8], sink: &mut S) -> Result<Option<Tag>, Reason> {
    let parts = match pair(elements, b"$binary", b"$type") {
        Some((WrapperPart::Document(inner), None)) => both(inner, b"base64", b"subType"),
        Some((data @ WrapperPart::Text(_), Some(kind))) => Some((data, kind)),
        _ => None,
    };
    let Some((WrapperPart::Text(data), WrapperPart::Text(kind))) = parts else {
        return Ok(None);
    };
    let Some(subtype) = subtype(kind) else {
        return Ok(None);
    };
    let frame = Frame::begin_binary(subtype, sink)?;
    let inner = match subtype {
        SUBTYPE_OLD => Some(Frame::begin(sink)?),
        _ => None,
    };
    let mut n_bytes = 0;
    let mut decoded = [0; STEP_BYTES / 4 * 3];
    let mut steps = data.chunks(STEP_BYTES).peekable();
    while let Some(step) = steps.next() {
        match STANDARD.decode_slice(step, &mut decoded) {
            // Padding may occur only at the end of the text.
            Ok(n) if n == decoded.len() || steps.peek().is_none() => {
                sink.put(&decoded[..n])?;
                n_bytes += n;
            }
            _ => return Ok(None),
        }
    }
    if matches!(subtype, SUBTYPE_OLD_UUID | SUBTYPE_UUID) && n_bytes != UUID_BYTES {
        return Ok(None);
    }
    if let Some(inner) = inner {
        // The inner length of the old binary subtype counts only the bytes after it.
        inner.end_bytes(sink)?;
    }
    frame.end_binary(sink)?;
    Ok(Some(Tag::Binary))
}

/// Appends the code value of a `$code` wrapper: `{"$code": "…"}`, or with a scope,
/// `{"$code": "…", "$scope": {…}}`.
fn code<S: ByteSink>(elements: &[u8], sink: &mut S) -> Result<Option<Tag>, Reason> {
    match pair(elements, b"$code", b"$scope") {
        Some((WrapperPart::Text(code), None)) => {
            text(code, sink)?;
            Ok(Some(Tag::Code))
        }
        Some((WrapperPart::Text(code), Some(WrapperPart::Document(scope)))) => {
            let frame = Frame::begin(sink)?;
            text(code, sink)?;
            let inner = Frame::begin(sink)?;
            sink.put(scope)?;
            inner.end_document(sink)?;
            frame.end_whole(sink)?;
            Ok(Some(Tag::CodeWithScope))
        }
        _ => Ok(None),
    }
}

/// Appends a regular expression: its pattern, and its options in alphabetical order, as BSON
/// requires.
fn regex<S: ByteSink>(
    parts: Option<(WrapperPart<'_>, WrapperPart<'_>)>,
    sink: &mut S,
) -> Result<Option<Tag>, Reason> {
    let Some((WrapperPart::Text(pattern), WrapperPart::Text(options))) = parts else {
        return Ok(None);
    };
    let options = sorted(options);
    let (pattern, options) = (Units::Utf8(pattern), Units::Utf8(&options));
    bson::write_regex(pattern, options, Policy::Strict, sink)?;
    Ok(Some(Tag::Regex))
}

/// Returns the options of a regular expression in alphabetical order.
pub(super) fn sorted(options: &[u8]) -> Vec<u8> {
    // The known options are ASCII letters. The text is sorted by characters, so that the bytes of
    // any other character are not separated.
    let mut chars: Vec<char> = String::from_utf8_lossy(options).chars().collect();
    chars.sort_unstable();
    chars.into_iter().collect::<String>().into_bytes()
}

/// Returns a phrase for error messages that describes the contents that the wrapper with the key
/// `key` requires.
pub(super) fn expected(key: &str) -> &'static str {
    match key {
        "$binary" => "`base64` and `subType`, two strings, nothing else, and 16 bytes for a UUID",
        "$code" | "$scope" => "`$code`, a string, and perhaps `$scope`, an object",
        "$timestamp" => "`t` and `i`, two integers of 32 bits without a sign",
        "$regularExpression" => "`pattern` and `options`, two strings",
        "$dbPointer" => "`$ref`, a string, and `$id`, an object id",
        "$minKey" | "$maxKey" => "the number 1",
        "$undefined" => "true",
        "$date" => "a string with a date and time (RFC 3339), or `$numberLong`",
        _ => "the only key",
    }
}
