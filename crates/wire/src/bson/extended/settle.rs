//! Type wrappers of several parts: an object that may be one is written as the document that it looks like, its parts in any
//! order, and when it ends it is looked at again where it lies.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use onecopy_text::{ByteSink, Policy, Units};

use super::error::Reason;
use super::wrapper::subtype;
use crate::bson::{
    self, Frame, SUBTYPE_OLD, SUBTYPE_OLD_UUID, SUBTYPE_UUID, Tag, UUID_BYTES, VALUE_BYTES,
};

/// Bytes of base64 that are decoded at a time: a multiple of 4.
const STEP_BYTES: usize = 1024;

/// A part of a wrapper.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part<'a> {
    /// Without its NUL.
    Text(&'a [u8]),
    /// The elements, without length and end.
    Document(&'a [u8]),
    Int32(i32),
    Int64(i64),
    ObjectId(&'a [u8]),
    Bool(bool),
    /// A value of a type that no wrapper has in it.
    Other,
}

impl Part<'_> {
    /// An integer of 32 bits without a sign.
    fn unsigned(self) -> Option<u32> {
        match self {
            Part::Int32(value) => value.try_into().ok(),
            Part::Int64(value) => value.try_into().ok(),
            _ => None,
        }
    }
}

/// The elements of a document that was written here: its lengths are right. It ends at the first value that no wrapper has.
struct Parts<'a> {
    rest: &'a [u8],
}

impl<'a> Parts<'a> {
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

impl<'a> Iterator for Parts<'a> {
    type Item = (&'a [u8], Part<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        let (&tag, rest) = self.rest.split_first()?;
        let end = rest.iter().position(|b| *b == 0)?;
        self.rest = &rest[end + 1..];
        let part = match Tag::of(tag) {
            Some(Tag::String) => {
                let length = self.length();
                Part::Text(&self.take(length)[..length - 1])
            }
            Some(Tag::Document) => {
                let length = self.length() - 4;
                Part::Document(&self.take(length)[..length - 1])
            }
            Some(Tag::Int32) => Part::Int32(i32::from_le_bytes(self.int())),
            Some(Tag::Int64) => Part::Int64(i64::from_le_bytes(self.int())),
            Some(Tag::ObjectId) => Part::ObjectId(self.take(12)),
            Some(Tag::Bool) => Part::Bool(self.take(1) == [1]),
            _ => {
                self.rest = &[];
                Part::Other
            }
        };
        Some((&rest[..end], part))
    }
}

/// The two values of these two keys, and no others, in either order. The second may be missing.
fn pair<'a>(
    elements: &'a [u8],
    first: &[u8],
    second: &[u8],
) -> Option<(Part<'a>, Option<Part<'a>>)> {
    let (mut a, mut b) = (None, None);
    for (key, part) in (Parts { rest: elements }) {
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

fn both<'a>(elements: &'a [u8], first: &[u8], second: &[u8]) -> Option<(Part<'a>, Part<'a>)> {
    let (a, b) = pair(elements, first, second)?;
    Some((a, b?))
}

/// Appends the value of the wrapper that has these elements, and gives its tag. `n_wrapped` counts the values in it that came
/// from wrappers of their own. `None` where it is none; then a part may stand in the sink.
///
/// # Errors
/// [`Reason`] where it has the parts of one, and they cannot be written.
pub(super) fn settle<S: ByteSink>(
    elements: &[u8],
    n_wrapped: u32,
    sink: &mut S,
) -> Result<Option<Tag>, Reason> {
    let Some((key, value)) = (Parts { rest: elements }).next() else {
        return Ok(None);
    };
    match key {
        b"$binary" | b"$type" => binary(elements, sink),
        b"$code" | b"$scope" => code(elements, sink),
        b"$regularExpression" => match one(elements, value) {
            Some(Part::Document(inner)) => regex(both(inner, b"pattern", b"options"), sink),
            _ => Ok(None),
        },
        b"$regex" | b"$options" => match pair(elements, b"$regex", b"$options") {
            Some((pattern, options)) => {
                regex(Some((pattern, options.unwrap_or(Part::Text(b"")))), sink)
            }
            None => Ok(None),
        },
        _ => put_short(key, one(elements, value), n_wrapped, sink),
    }
}

/// The value of an element that stands alone.
fn one<'a>(elements: &'a [u8], value: Part<'a>) -> Option<Part<'a>> {
    (Parts { rest: elements }.count() == 1).then_some(value)
}

/// The wrappers whose values fit into a window.
fn put_short<S: ByteSink>(
    key: &[u8],
    value: Option<Part<'_>>,
    n_wrapped: u32,
    sink: &mut S,
) -> Result<Option<Tag>, Reason> {
    let mut window = sink.window(VALUE_BYTES)?;
    Ok(match (key, value) {
        // A number that stands bare is of no date.
        (b"$date", Some(Part::Int64(unix_ms))) if n_wrapped == 1 => {
            bson::put_i64(unix_ms, &mut window);
            Some(Tag::DateTime)
        }
        (b"$timestamp", Some(Part::Document(inner))) if n_wrapped == 0 => {
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
        (b"$minKey", Some(Part::Int32(1))) if n_wrapped == 0 => Some(Tag::MinKey),
        (b"$maxKey", Some(Part::Int32(1))) if n_wrapped == 0 => Some(Tag::MaxKey),
        (b"$undefined", Some(Part::Bool(true))) => Some(Tag::Undefined),
        (b"$dbPointer", Some(Part::Document(inner))) => match both(inner, b"$ref", b"$id") {
            Some((Part::Text(name), Part::ObjectId(id))) => {
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

/// Text that is well-formed and has a length that fits.
fn text<S: ByteSink>(text: &[u8], sink: &mut S) -> Result<(), Reason> {
    let frame = Frame::begin(sink)?;
    sink.put(text)?;
    Ok(frame.end_text(sink)?)
}

/// `{"$binary": {"base64": "…", "subType": "00"}}`, and of old `{"$binary": "…", "$type": "00"}`.
fn binary<S: ByteSink>(elements: &[u8], sink: &mut S) -> Result<Option<Tag>, Reason> {
    let parts = match pair(elements, b"$binary", b"$type") {
        Some((Part::Document(inner), None)) => both(inner, b"base64", b"subType"),
        Some((data @ Part::Text(_), Some(kind))) => Some((data, kind)),
        _ => None,
    };
    let Some((Part::Text(data), Part::Text(kind))) = parts else {
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
            // Padding stands at the end alone.
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
        // Its own length counts its bytes alone.
        inner.end_bytes(sink)?;
    }
    frame.end_binary(sink)?;
    Ok(Some(Tag::Binary))
}

/// `{"$code": "…"}`, and with a scope `{"$code": "…", "$scope": {…}}`.
fn code<S: ByteSink>(elements: &[u8], sink: &mut S) -> Result<Option<Tag>, Reason> {
    match pair(elements, b"$code", b"$scope") {
        Some((Part::Text(code), None)) => {
            text(code, sink)?;
            Ok(Some(Tag::Code))
        }
        Some((Part::Text(code), Some(Part::Document(scope)))) => {
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

/// A pattern and its options, which BSON has in alphabetical order.
fn regex<S: ByteSink>(
    parts: Option<(Part<'_>, Part<'_>)>,
    sink: &mut S,
) -> Result<Option<Tag>, Reason> {
    let Some((Part::Text(pattern), Part::Text(options))) = parts else {
        return Ok(None);
    };
    let options = sorted(options);
    let (pattern, options) = (Units::Utf8(pattern), Units::Utf8(&options));
    bson::write_regex(pattern, options, Policy::Strict, sink)?;
    Ok(Some(Tag::Regex))
}

/// The options of a regular expression in alphabetical order.
pub(super) fn sorted(options: &[u8]) -> Vec<u8> {
    // Letters of ASCII, all that are known; others keep their bytes together.
    let mut chars: Vec<char> = String::from_utf8_lossy(options).chars().collect();
    chars.sort_unstable();
    chars.into_iter().collect::<String>().into_bytes()
}

/// What the wrappers of several parts want.
pub(super) fn wants(key: &str) -> &'static str {
    match key {
        "$binary" => "`base64` and `subType`, two strings, nothing else, and 16 bytes for a UUID",
        "$code" | "$scope" => "`$code`, a string, and perhaps `$scope`, an object",
        "$timestamp" => "`t` and `i`, two integers of 32 bits without a sign",
        "$regularExpression" => "`pattern` and `options`, two strings",
        "$dbPointer" => "`$ref`, a string, and `$id`, an object id",
        "$minKey" | "$maxKey" => "the number 1",
        "$undefined" => "true",
        "$date" => "a string with a date and time (RFC 3339), or `$numberLong`",
        _ => "nothing beside it",
    }
}
