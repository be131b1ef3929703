//! Functions that each write one BSON value. All numbers are written little-endian.

use onecopy_text::{ByteSink, Policy, Put, Units, convert};

use super::decimal128::Decimal128;
use super::frame::Frame;
use super::tag::Tag;
use crate::error::WriteError;
use crate::inline_text::{InlineText, SHORT_BYTES};

/// The number of free bytes that a window of a sink must have before a `put_` function writes a
/// value to it. The longest such value is an [`InlineText`] with its length prefix and its NUL.
pub const VALUE_BYTES: usize = 4 + SHORT_BYTES + 1;

/// The binary subtype of plain bytes.
pub const SUBTYPE_GENERIC: u8 = 0;
/// The legacy binary subtype of plain bytes. A second length precedes the bytes.
pub const SUBTYPE_OLD: u8 = 2;
/// The binary subtype of a UUID in RFC 9562 byte order.
pub const SUBTYPE_UUID: u8 = 4;
/// The legacy binary subtype of a UUID. The byte order depends on the driver that wrote it.
pub const SUBTYPE_OLD_UUID: u8 = 3;
/// The size of a UUID in bytes.
pub const UUID_BYTES: usize = 16;

/// Writes a 64-bit float. Its bits are unchanged, including those of NaN and the infinities.
#[inline]
pub fn put_f64<P: Put>(value: f64, window: &mut P) {
    window.put_short(&value.to_le_bytes(), 8);
}

/// Writes a boolean.
#[inline]
pub fn put_bool<P: Put>(value: bool, window: &mut P) {
    window.put_byte(u8::from(value));
}

/// Writes a 32-bit integer.
#[inline]
pub fn put_i32<P: Put>(value: i32, window: &mut P) {
    window.put_short(&value.to_le_bytes(), 4);
}

/// Writes a 64-bit integer. The value of a [`Tag::DateTime`], in milliseconds since 1970, is also
/// written by this function.
#[inline]
pub fn put_i64<P: Put>(value: i64, window: &mut P) {
    window.put_short(&value.to_le_bytes(), 8);
}

/// Writes an object id.
#[inline]
pub fn put_object_id<P: Put>(id: &[u8; 12], window: &mut P) {
    window.put_short(id, 12);
}

/// Writes a MongoDB timestamp. This is an internal type of MongoDB; dates have the type
/// [`Tag::DateTime`].
#[inline]
pub fn put_timestamp<P: Put>(seconds: u32, increment: u32, window: &mut P) {
    window.put_short(&increment.to_le_bytes(), 4);
    window.put_short(&seconds.to_le_bytes(), 4);
}

/// Writes a decimal of 128 bits.
#[inline]
pub fn put_decimal128<P: Put>(value: Decimal128, window: &mut P) {
    window.put_short(&value.to_le_bytes(), 16);
}

/// Writes a UUID as a binary value of [`SUBTYPE_UUID`].
#[inline]
pub fn put_uuid<P: Put>(uuid: &[u8; 16], window: &mut P) {
    window.put_short(&[16, 0, 0, 0, SUBTYPE_UUID], 5);
    window.put_short(uuid, 16);
}

/// Writes a short text, such as a date or time ([`crate::datetime`]), as the value of a
/// [`Tag::String`].
#[inline]
pub fn put_short<P: Put>(text: &InlineText, window: &mut P) {
    put_i32(text.as_bytes().len() as i32 + 1, window);
    window.put(text.as_bytes());
    window.put_byte(0);
}

/// Appends text as the value of a [`Tag::String`], [`Tag::Code`] or [`Tag::Symbol`]. The text may
/// contain NUL.
///
/// The text is copied once: UTF-8 is validated and copied, and other encodings are converted.
///
/// # Errors
/// Returns [`WriteError::Malformed`], [`WriteError::TooLong`] or [`WriteError::SinkFull`].
#[inline]
pub fn write_text<S: ByteSink>(
    units: Units<'_>,
    policy: Policy,
    sink: &mut S,
) -> Result<(), WriteError> {
    let frame = Frame::begin(sink)?;
    convert::to_utf8(units, policy, sink)?;
    frame.end_text(sink)
}

/// Appends a binary value: its length, its subtype and `bytes`. For [`SUBTYPE_OLD`], a second
/// length is written before `bytes`.
///
/// The bytes are copied once, into the sink.
///
/// # Errors
/// Returns [`WriteError::TooLong`] or [`WriteError::SinkFull`].
#[inline]
pub fn write_binary<S: ByteSink>(
    subtype: u8,
    bytes: &[u8],
    sink: &mut S,
) -> Result<(), WriteError> {
    let frame = Frame::begin_binary(subtype, sink)?;
    if subtype == SUBTYPE_OLD {
        let length = i32::try_from(bytes.len());
        let length = length.map_err(|_| WriteError::TooLong(super::MOST_BYTES))?;
        sink.put(&length.to_le_bytes())?;
    }
    sink.put(bytes)?;
    frame.end_binary(sink)
}

/// Appends a tag and a key. Use this function for a key that is not in a [`super::KeySegments`].
///
/// # Errors
/// Returns [`WriteError::NulInKey`], [`WriteError::Malformed`] or [`WriteError::SinkFull`].
pub fn write_key<S: ByteSink>(
    tag: Tag,
    key: Units<'_>,
    policy: Policy,
    sink: &mut S,
) -> Result<(), WriteError> {
    sink.put_byte(tag.byte())?;
    write_cstring(key, policy, sink)
}

/// Appends the pattern and the options of a regular expression. The options must be in alphabetical
/// order, which BSON requires.
///
/// # Errors
/// Returns the same errors as [`write_key`].
pub fn write_regex<S: ByteSink>(
    pattern: Units<'_>,
    options: Units<'_>,
    policy: Policy,
    sink: &mut S,
) -> Result<(), WriteError> {
    write_cstring(pattern, policy, sink)?;
    write_cstring(options, policy, sink)
}

/// Appends `text` as UTF-8, and the NUL that terminates it.
fn write_cstring<S: ByteSink>(
    text: Units<'_>,
    policy: Policy,
    sink: &mut S,
) -> Result<(), WriteError> {
    let mark = sink.mark();
    convert::to_utf8(text, policy, sink)?;
    let n_bytes = sink.len_since(mark);
    let written = sink.committed();
    if written[written.len() - n_bytes..].contains(&0) {
        return Err(WriteError::NulInKey);
    }
    Ok(sink.put_byte(0)?)
}
