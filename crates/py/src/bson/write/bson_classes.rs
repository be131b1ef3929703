//! Writes instances of the BSON classes of onecopy and of pymongo.

use onecopy_text::ByteSink;
use onecopy_wire::bson::{SUBTYPE_GENERIC, SUBTYPE_OLD, Tag};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};

use crate::bson::regex::REGEX_FLAGS;
use crate::bson::{RawDocument, object_id};
use crate::raw::buffer::{self, BorrowedBytes};
use crate::raw::encode;
use crate::raw::encode::bson::{BsonStop, ObjectForm};
use crate::raw::{binary, text};

/// The `_type_marker` of `DBRef`.
const DB_REF: u8 = 100;
/// The `_type_marker` of pymongo's `RawBSONDocument`.
const RAW: u8 = 101;

/// Returns the error for a value without a BSON form. `kind` is an attribute of the exception.
fn wrong(kind: &'static str, reason: &str) -> BsonStop {
    BsonStop::Value {
        kind,
        reason: reason.to_owned(),
    }
}

/// Writes an object of a BSON class and returns its tag. For some classes, returns a replacement
/// object.
pub(super) fn write<'py>(
    object: &Bound<'py, PyAny>,
    out: &mut dyn ByteSink,
) -> Result<Option<ObjectForm<'py>>, BsonStop> {
    let py = object.py();
    let marker = encode::hints(object)?.marker;
    // A `RawDocument` of onecopy has no marker. With a marker, pymongo would require `bytes` data.
    let is_raw = marker.is_none() && object.is_exact_instance_of::<RawDocument>();
    let Some(marker) = marker.or(is_raw.then_some(RAW)) else {
        return Ok(None);
    };
    let attribute = |name: &Bound<'py, PyString>| object.getattr(name);
    match marker {
        RAW => {
            let raw = attribute(pyo3::intern!(py, "raw"))?;
            document(&raw, out)?;
            return Ok(Some(ObjectForm::Put(Tag::Document)));
        }
        DB_REF => {
            let doc = object.call_method0(pyo3::intern!(py, "as_doc"))?;
            return Ok(Some(ObjectForm::Unchecked(doc)));
        }
        _ => {}
    }
    let Some(tag) = Tag::of(marker) else {
        return Ok(None);
    };
    match tag {
        Tag::Binary => {
            let subtype = attribute(pyo3::intern!(py, "subtype"))?.extract()?;
            put_binary(subtype, binary::bytes_of(object), out)?;
        }
        Tag::ObjectId => {
            let bytes = object_id::bytes_of(object)?;
            let bytes = bytes.ok_or_else(|| wrong("type", "an ObjectId without 12 bytes"))?;
            out.put(&bytes)?;
        }
        Tag::DateTime => {
            let ms: i64 = object
                .call_method0(pyo3::intern!(py, "__int__"))?
                .extract()?;
            out.put(&ms.to_le_bytes())?;
        }
        Tag::Regex => put_regex(object, true, out)?,
        Tag::Code => {
            let code = text::exact(object)?;
            let scope = attribute(pyo3::intern!(py, "scope"))?;
            return Ok(Some(if scope.is_none() {
                ObjectForm::Text(tag, code)
            } else {
                ObjectForm::Code(code, scope)
            }));
        }
        Tag::Symbol => return Ok(Some(ObjectForm::Text(tag, text::exact(object)?))),
        Tag::Timestamp => {
            for name in [pyo3::intern!(py, "inc"), pyo3::intern!(py, "time")] {
                let value: u32 = attribute(name)?.extract()?;
                out.put(&value.to_le_bytes())?;
            }
        }
        Tag::Int64 => {
            let value: i64 = object.extract().map_err(|_| BsonStop::Int)?;
            out.put(&value.to_le_bytes())?;
        }
        Tag::Decimal128 => {
            let bid = attribute(pyo3::intern!(py, "bid"))?;
            let bid: [u8; 16] = binary::bytes_of(&bid)
                .try_into()
                .map_err(|_| wrong("decimal", "a Decimal128 without 16 bytes"))?;
            out.put(&bid)?;
        }
        Tag::DbPointer => {
            let collection = attribute(pyo3::intern!(py, "collection"))?;
            let id = object_id::bytes_of(&attribute(pyo3::intern!(py, "id"))?)?;
            let collection = utf8(&collection)?;
            let id = id.ok_or_else(|| wrong("type", "a DBPointer without an ObjectId"))?;
            out.put(&length(collection.len() + 1)?)?;
            out.put(collection.as_bytes())?;
            out.put_byte(0)?;
            out.put(&id)?;
        }
        Tag::MinKey | Tag::MaxKey | Tag::Undefined => {}
        _ => return Ok(None),
    }
    Ok(Some(ObjectForm::Put(tag)))
}

/// Encodes a length as a BSON `int32`.
fn length(n: usize) -> Result<[u8; 4], BsonStop> {
    let n = i32::try_from(n).map_err(|_| BsonStop::TooLong)?;
    Ok(n.to_le_bytes())
}

/// Writes a binary value with a subtype. Copies: the bytes are copied once, to `out`.
pub(super) fn put_binary(
    subtype: u8,
    bytes: &[u8],
    out: &mut dyn ByteSink,
) -> Result<(), BsonStop> {
    put_binary_head(subtype, bytes.len(), out)?;
    Ok(out.put(bytes)?)
}

fn put_binary_head(subtype: u8, n_bytes: usize, out: &mut dyn ByteSink) -> Result<(), BsonStop> {
    if subtype == SUBTYPE_OLD {
        out.put(&length(n_bytes + 4)?)?;
        out.put_byte(subtype)?;
        out.put(&length(n_bytes)?)?;
    } else {
        out.put(&length(n_bytes)?)?;
        out.put_byte(subtype)?;
    }
    Ok(())
}

/// Writes the bytes of any buffer as a binary value.
pub(super) fn put_buffer(
    object: &Bound<'_, PyAny>,
    out: &mut dyn ByteSink,
) -> Result<(), BsonStop> {
    buffer::with_source(object.as_borrowed(), |source| {
        Ok(match source {
            BorrowedBytes::Stable(bytes) => put_binary(SUBTYPE_GENERIC, bytes, out),
            BorrowedBytes::Volatile(bytes) => put_binary_head(SUBTYPE_GENERIC, bytes.len(), out)
                .and_then(|()| Ok(bytes.put_to(out)?)),
        })
    })?
}

/// Writes an encoded document. Checks only its length and its last byte.
fn document(raw: &Bound<'_, PyAny>, out: &mut dyn ByteSink) -> Result<(), BsonStop> {
    let bytes = buffer::BufferBytes::of(raw.as_borrowed())?;
    let bytes = bytes.as_slice();
    let is_whole = match (bytes.first_chunk(), bytes.last()) {
        (Some(first), Some(0)) => {
            usize::try_from(i32::from_le_bytes(*first)) == Ok(bytes.len()) && bytes.len() > 4
        }
        _ => false,
    };
    if !is_whole {
        return Err(wrong(
            "raw",
            "a raw document is not as long as it says, or has no end",
        ));
    }
    Ok(out.put(bytes)?)
}

/// Writes a regular expression such as `re.Pattern`. If `has_options` is `true`, the attribute
/// `options` replaces the flags.
pub(super) fn put_regex(
    object: &Bound<'_, PyAny>,
    has_options: bool,
    out: &mut dyn ByteSink,
) -> Result<(), BsonStop> {
    let py = object.py();
    let pattern = object.getattr(pyo3::intern!(py, "pattern"))?;
    if let Ok(bytes) = pattern.cast::<PyBytes>() {
        let bytes = bytes.as_bytes();
        let pattern = std::str::from_utf8(bytes);
        put_cstring(
            pattern.map_err(|_| wrong("text", "the pattern is not UTF-8"))?,
            out,
        )?;
    } else {
        put_cstring(&utf8(&pattern)?, out)?;
    }
    let options = match has_options {
        true => object.getattr_opt(pyo3::intern!(py, "options"))?,
        false => None,
    };
    match options {
        Some(options) => put_cstring(&utf8(&options)?, out),
        None => {
            let flags: u32 = object.getattr(pyo3::intern!(py, "flags"))?.extract()?;
            for (_, letter) in REGEX_FLAGS.iter().filter(|(flag, _)| flags & flag != 0) {
                out.put_byte(*letter)?;
            }
            Ok(out.put_byte(0)?)
        }
    }
}

/// Writes a BSON cstring: UTF-8 and a NUL.
fn put_cstring(text: &str, out: &mut dyn ByteSink) -> Result<(), BsonStop> {
    if text.contains('\0') {
        return Err(wrong(
            "regex",
            "a regex contains NUL, which ends it in BSON",
        ));
    }
    out.put(text.as_bytes())?;
    Ok(out.put_byte(0)?)
}

/// Returns the UTF-8 of a short `str`.
fn utf8(object: &Bound<'_, PyAny>) -> Result<String, BsonStop> {
    let string = object.cast::<PyString>().map_err(PyErr::from)?;
    let mut tally = onecopy_text::Tally::default();
    text::to_string(string.as_borrowed(), &mut tally).map_err(|e| match e {
        text::MakeError::Python(e) => BsonStop::Python(e),
        text::MakeError::Malformed(_) => wrong("text", "the str has a lone surrogate"),
    })
}
