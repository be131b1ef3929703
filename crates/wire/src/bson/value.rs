//! One BSON value at a time. All numbers are little-endian.

use onecopy_text::{ByteSink, Policy, Put, Units, convert};

use super::decimal128::Decimal128;
use super::frame::Frame;
use super::tag::Tag;
use crate::error::WriteError;
use crate::short::{SHORT_BYTES, Short};

/// Bytes that a window needs for any value that a `put_` function writes: a [`Short`] with its length and NUL.
pub const VALUE_BYTES: usize = 4 + SHORT_BYTES + 1;

/// Subtype of plain bytes.
pub const SUBTYPE_GENERIC: u8 = 0;
/// Subtype of plain bytes, as old writers had it: its bytes begin with their length.
pub const SUBTYPE_OLD: u8 = 2;
/// Subtype of a UUID in RFC 9562 byte order.
pub const SUBTYPE_UUID: u8 = 4;
/// Subtype of a UUID as drivers wrote it before there was [`SUBTYPE_UUID`], each with its own order of the bytes.
pub const SUBTYPE_OLD_UUID: u8 = 3;
/// Bytes of a UUID: binary of either subtype has as many.
pub const UUID_BYTES: usize = 16;

/// Puts a double, NaN and infinities too: its bits as they are.
#[inline]
pub fn put_f64<P: Put>(value: f64, window: &mut P) {
    window.put_short(&value.to_le_bytes(), 8);
}

/// Puts a boolean.
#[inline]
pub fn put_bool<P: Put>(value: bool, window: &mut P) {
    window.put_byte(u8::from(value));
}

/// Puts a 32-bit integer.
#[inline]
pub fn put_i32<P: Put>(value: i32, window: &mut P) {
    window.put_short(&value.to_le_bytes(), 4);
}

/// Puts a 64-bit integer: also a [`Tag::DateTime`], in milliseconds.
#[inline]
pub fn put_i64<P: Put>(value: i64, window: &mut P) {
    window.put_short(&value.to_le_bytes(), 8);
}

/// Puts an object id.
#[inline]
pub fn put_object_id<P: Put>(id: &[u8; 12], window: &mut P) {
    window.put_short(id, 12);
}

/// Puts a MongoDB timestamp (no time of people: that is a [`Tag::DateTime`]).
#[inline]
pub fn put_timestamp<P: Put>(seconds: u32, increment: u32, window: &mut P) {
    window.put_short(&increment.to_le_bytes(), 4);
    window.put_short(&seconds.to_le_bytes(), 4);
}

/// Puts a decimal.
#[inline]
pub fn put_decimal128<P: Put>(value: Decimal128, window: &mut P) {
    window.put_short(&value.to_le_bytes(), 16);
}

/// Puts a UUID as binary of [`SUBTYPE_UUID`].
#[inline]
pub fn put_uuid<P: Put>(uuid: &[u8; 16], window: &mut P) {
    window.put_short(&[16, 0, 0, 0, SUBTYPE_UUID], 5);
    window.put_short(uuid, 16);
}

/// Puts a date or time as text ([`crate::datetime`]).
#[inline]
pub fn put_short<P: Put>(text: &Short, window: &mut P) {
    put_i32(text.as_bytes().len() as i32 + 1, window);
    window.put(text.as_bytes());
    window.put_byte(0);
}

/// Appends text: the value of [`Tag::String`], [`Tag::Code`] and [`Tag::Symbol`]. It may hold NUL.
///
/// Copies: none besides the conversion (for UTF-8 one validated copy).
///
/// # Errors
/// [`WriteError::Malformed`], [`WriteError::TooLong`], [`WriteError::SinkFull`].
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

/// Appends binary of a subtype, [`SUBTYPE_OLD`] with its second length.
///
/// Copies: one, into the sink.
///
/// # Errors
/// [`WriteError::TooLong`], [`WriteError::SinkFull`].
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

/// Appends a tag and a key that is not known beforehand.
///
/// # Errors
/// [`WriteError::NulInKey`], [`WriteError::Malformed`], [`WriteError::SinkFull`].
pub fn write_key<S: ByteSink>(
    tag: Tag,
    key: Units<'_>,
    policy: Policy,
    sink: &mut S,
) -> Result<(), WriteError> {
    sink.put_byte(tag.byte())?;
    write_cstring(key, policy, sink)
}

/// Appends the pattern and the options of a regex; BSON wants the options in alphabetical order, as the caller gives them.
///
/// # Errors
/// As [`write_key`].
pub fn write_regex<S: ByteSink>(
    pattern: Units<'_>,
    options: Units<'_>,
    policy: Policy,
    sink: &mut S,
) -> Result<(), WriteError> {
    write_cstring(pattern, policy, sink)?;
    write_cstring(options, policy, sink)
}

/// Appends text that ends with NUL.
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
