//! [`WrapperKey`]: the keys that make a JSON object a type wrapper, which represents a value of a
//! BSON type. [`StringWrapper`]: the type wrappers with one key, whose value is a string.

use onecopy_text::{ByteSink, Put};

use super::error::Reason;
use super::instant;
use crate::bson::{self, Decimal128, Tag, VALUE_BYTES};

/// A key with a leading `$` that makes its JSON object a type wrapper.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WrapperKey {
    /// The key of a type wrapper that has only this key, with a string as its value.
    One(StringWrapper),
    /// A key of a type wrapper that has several keys, or whose value is not a string. At the end of
    /// the JSON object, the value that the wrapper represents replaces the object.
    Parts(&'static str),
    /// A key of a legacy type wrapper that is also a query operator of MongoDB, such as `$regex`.
    /// The object is a type wrapper only if all its keys and values are valid in the wrapper.
    /// Otherwise the object is a plain document.
    Perhaps,
}

/// The type wrappers with one key, whose value is a string, such as `{"$oid": "…"}`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StringWrapper {
    ObjectId,
    Symbol,
    Int32,
    Int64,
    Double,
    Decimal128,
    Uuid,
    /// A datetime, with the key `$date`. The value of this key may be a string, or an object such
    /// as `{"$numberLong": "…"}`.
    Date,
}

impl WrapperKey {
    /// Returns the kind of type wrapper that has the key `key`; `None` if no type wrapper has this
    /// key. No type wrapper has the keys `$ref`, `$id` and `$db`, which are only a convention and
    /// do not define a type.
    pub(super) fn of(key: &[u8]) -> Option<WrapperKey> {
        Some(match key {
            b"$oid" => WrapperKey::One(StringWrapper::ObjectId),
            b"$date" => WrapperKey::One(StringWrapper::Date),
            b"$numberInt" => WrapperKey::One(StringWrapper::Int32),
            b"$numberLong" => WrapperKey::One(StringWrapper::Int64),
            b"$numberDouble" => WrapperKey::One(StringWrapper::Double),
            b"$numberDecimal" => WrapperKey::One(StringWrapper::Decimal128),
            b"$uuid" => WrapperKey::One(StringWrapper::Uuid),
            b"$symbol" => WrapperKey::One(StringWrapper::Symbol),
            b"$binary" => WrapperKey::Parts("$binary"),
            b"$code" => WrapperKey::Parts("$code"),
            b"$scope" => WrapperKey::Parts("$scope"),
            b"$timestamp" => WrapperKey::Parts("$timestamp"),
            b"$regularExpression" => WrapperKey::Parts("$regularExpression"),
            b"$dbPointer" => WrapperKey::Parts("$dbPointer"),
            b"$minKey" => WrapperKey::Parts("$minKey"),
            b"$maxKey" => WrapperKey::Parts("$maxKey"),
            b"$undefined" => WrapperKey::Parts("$undefined"),
            b"$regex" | b"$options" | b"$type" => WrapperKey::Perhaps,
            _ => return None,
        })
    }

    /// Returns the name of this key if an object that contains it must be a valid type wrapper.
    /// Returns `None` if such an object may also be a plain document.
    pub(super) fn strict_name(self) -> Option<&'static str> {
        match self {
            WrapperKey::One(one) => Some(one.name()),
            WrapperKey::Parts(name) => Some(name),
            WrapperKey::Perhaps => None,
        }
    }
}

impl StringWrapper {
    pub(super) fn name(self) -> &'static str {
        match self {
            StringWrapper::ObjectId => "$oid",
            StringWrapper::Symbol => "$symbol",
            StringWrapper::Int32 => "$numberInt",
            StringWrapper::Int64 => "$numberLong",
            StringWrapper::Double => "$numberDouble",
            StringWrapper::Decimal128 => "$numberDecimal",
            StringWrapper::Uuid => "$uuid",
            StringWrapper::Date => "$date",
        }
    }

    pub(super) fn tag(self) -> Tag {
        match self {
            StringWrapper::ObjectId => Tag::ObjectId,
            StringWrapper::Symbol => Tag::Symbol,
            StringWrapper::Int32 => Tag::Int32,
            StringWrapper::Int64 => Tag::Int64,
            StringWrapper::Double => Tag::Double,
            StringWrapper::Decimal128 => Tag::Decimal128,
            StringWrapper::Uuid => Tag::Binary,
            StringWrapper::Date => Tag::DateTime,
        }
    }

    /// Returns a phrase for error messages that describes the string that this type wrapper
    /// requires.
    pub(super) fn expected(self) -> &'static str {
        match self {
            StringWrapper::ObjectId => "a string of 24 hexadecimal digits",
            StringWrapper::Symbol => "a string",
            StringWrapper::Int32 => "a string with an integer of 32 bits",
            StringWrapper::Int64 => "a string with an integer of 64 bits",
            StringWrapper::Double => "a string with a number, `Infinity`, `-Infinity` or `NaN`",
            StringWrapper::Decimal128 => "a string with a decimal that 34 digits hold",
            StringWrapper::Uuid => "a string with a UUID",
            StringWrapper::Date => "a string with a date and time (RFC 3339), or `$numberLong`",
        }
    }

    pub(super) fn wrong(self) -> Reason {
        Reason::Wrapper {
            key: self.name(),
            expected: self.expected(),
        }
    }

    /// Appends the BSON value that `text`, the string of the type wrapper, represents. This method
    /// must not be called for [`StringWrapper::Symbol`], whose value is a string of any length.
    pub(super) fn write<S: ByteSink>(self, text: &[u8], sink: &mut S) -> Result<(), Reason> {
        let mut window = sink.window(VALUE_BYTES)?;
        self.put(text, &mut window).ok_or_else(|| self.wrong())
    }

    fn put<P: Put>(self, text: &[u8], window: &mut P) -> Option<()> {
        match self {
            StringWrapper::ObjectId => bson::put_object_id(&hex(text)?, window),
            StringWrapper::Int32 => bson::put_i32(integer(text)?, window),
            StringWrapper::Int64 => bson::put_i64(integer(text)?, window),
            StringWrapper::Double => bson::put_f64(double(text)?, window),
            StringWrapper::Decimal128 => {
                bson::put_decimal128(Decimal128::of_digits(text).ok()?, window);
            }
            StringWrapper::Uuid => bson::put_uuid(&uuid(text)?, window),
            StringWrapper::Date => bson::put_i64(instant::parse(text)?, window),
            StringWrapper::Symbol => return None,
        }
        Some(())
    }
}

fn integer<I: std::str::FromStr>(text: &[u8]) -> Option<I> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

/// Parses the string of `$numberDouble`: a finite number, `NaN`, `Infinity` or `-Infinity`. Returns
/// `None` for any other text.
fn double(text: &[u8]) -> Option<f64> {
    match text {
        b"NaN" => return Some(f64::NAN),
        b"Infinity" => return Some(f64::INFINITY),
        b"-Infinity" => return Some(f64::NEG_INFINITY),
        _ => {}
    }
    // The parser of the standard library also accepts names such as `inf`, which Extended JSON does
    // not permit.
    let is_number = |b: &u8| matches!(b, b'0'..=b'9' | b'+' | b'-' | b'.' | b'e' | b'E');
    if !text.iter().all(is_number) {
        return None;
    }
    let value: f64 = integer(text)?;
    value.is_finite().then_some(value)
}

/// Parses exactly `2 * N` hexadecimal digits as `N` bytes. Returns `None` for any other text.
fn hex<const N: usize>(text: &[u8]) -> Option<[u8; N]> {
    if text.len() != 2 * N {
        return None;
    }
    let mut bytes = [0; N];
    for (byte, digits) in bytes.iter_mut().zip(text.chunks_exact(2)) {
        *byte = hex_digit(digits[0])? << 4 | hex_digit(digits[1])?;
    }
    Some(bytes)
}

#[inline]
fn hex_digit(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        b'A'..=b'F' => Some(digit - b'A' + 10),
        _ => None,
    }
}

/// Parses the subtype of a binary value, which has one or two hexadecimal digits. Returns `None`
/// for any other text.
pub(super) fn subtype(text: &[u8]) -> Option<u8> {
    match *text {
        [digit] => hex_digit(digit),
        [high, low] => Some(hex_digit(high)? << 4 | hex_digit(low)?),
        _ => None,
    }
}

/// Parses a UUID without hyphens, or with hyphens at the standard positions. Returns `None` for any
/// other text.
fn uuid(text: &[u8]) -> Option<[u8; 16]> {
    if text.len() != 36 {
        return hex(text);
    }
    let mut digits = [0; 32];
    let mut n = 0;
    for (i, &b) in text.iter().enumerate() {
        match (i, b) {
            (8 | 13 | 18 | 23, b'-') => {}
            (8 | 13 | 18 | 23, _) => return None,
            _ => {
                digits[n] = b;
                n += 1;
            }
        }
    }
    hex(&digits)
}
