//! Type wrappers: the keys that make an object a value of another type, and the values that are one string.

use onecopy_text::{ByteSink, Put};

use super::error::Reason;
use super::instant;
use crate::bson::{self, Decimal128, Tag, VALUE_BYTES};

/// What a key that begins with `$` makes of its object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Key {
    /// A value that is one string, and nothing stands beside it.
    One(One),
    /// A wrapper of other parts: what it is, is decided when its object ends.
    Parts(&'static str),
    /// One where all its parts are as they should be, else a document: forms of old, whose keys are operators of queries too.
    Perhaps,
}

/// The wrappers of one string.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum One {
    ObjectId,
    Symbol,
    Int32,
    Int64,
    Double,
    Decimal128,
    Uuid,
    /// Also one of parts, where an object stands in place of the string.
    Date,
}

impl Key {
    /// What this key is; `None` of others. (`$ref`, `$id` and `$db` are a convention and make no type.)
    pub(super) fn of(key: &[u8]) -> Option<Key> {
        Some(match key {
            b"$oid" => Key::One(One::ObjectId),
            b"$date" => Key::One(One::Date),
            b"$numberInt" => Key::One(One::Int32),
            b"$numberLong" => Key::One(One::Int64),
            b"$numberDouble" => Key::One(One::Double),
            b"$numberDecimal" => Key::One(One::Decimal128),
            b"$uuid" => Key::One(One::Uuid),
            b"$symbol" => Key::One(One::Symbol),
            b"$binary" => Key::Parts("$binary"),
            b"$code" => Key::Parts("$code"),
            b"$scope" => Key::Parts("$scope"),
            b"$timestamp" => Key::Parts("$timestamp"),
            b"$regularExpression" => Key::Parts("$regularExpression"),
            b"$dbPointer" => Key::Parts("$dbPointer"),
            b"$minKey" => Key::Parts("$minKey"),
            b"$maxKey" => Key::Parts("$maxKey"),
            b"$undefined" => Key::Parts("$undefined"),
            b"$regex" | b"$options" | b"$type" => Key::Perhaps,
            _ => return None,
        })
    }

    /// The key itself, where nothing else may stand beside it.
    pub(super) fn strict_name(self) -> Option<&'static str> {
        match self {
            Key::One(one) => Some(one.name()),
            Key::Parts(name) => Some(name),
            Key::Perhaps => None,
        }
    }
}

impl One {
    pub(super) fn name(self) -> &'static str {
        match self {
            One::ObjectId => "$oid",
            One::Symbol => "$symbol",
            One::Int32 => "$numberInt",
            One::Int64 => "$numberLong",
            One::Double => "$numberDouble",
            One::Decimal128 => "$numberDecimal",
            One::Uuid => "$uuid",
            One::Date => "$date",
        }
    }

    pub(super) fn tag(self) -> Tag {
        match self {
            One::ObjectId => Tag::ObjectId,
            One::Symbol => Tag::Symbol,
            One::Int32 => Tag::Int32,
            One::Int64 => Tag::Int64,
            One::Double => Tag::Double,
            One::Decimal128 => Tag::Decimal128,
            One::Uuid => Tag::Binary,
            One::Date => Tag::DateTime,
        }
    }

    /// What its string has to be.
    pub(super) fn wants(self) -> &'static str {
        match self {
            One::ObjectId => "a string of 24 hexadecimal digits",
            One::Symbol => "a string",
            One::Int32 => "a string with an integer of 32 bits",
            One::Int64 => "a string with an integer of 64 bits",
            One::Double => "a string with a number, `Infinity`, `-Infinity` or `NaN`",
            One::Decimal128 => "a string with a decimal that 34 digits hold",
            One::Uuid => "a string with a UUID",
            One::Date => "a string with a date and time (RFC 3339), or `$numberLong`",
        }
    }

    pub(super) fn wrong(self) -> Reason {
        Reason::Wrapper {
            key: self.name(),
            wants: self.wants(),
        }
    }

    /// Appends the value that the string says; a [`One::Symbol`] is text and none of these.
    pub(super) fn write<S: ByteSink>(self, text: &[u8], sink: &mut S) -> Result<(), Reason> {
        let mut window = sink.window(VALUE_BYTES)?;
        self.put(text, &mut window).ok_or_else(|| self.wrong())
    }

    fn put<P: Put>(self, text: &[u8], window: &mut P) -> Option<()> {
        match self {
            One::ObjectId => bson::put_object_id(&hex(text)?, window),
            One::Int32 => bson::put_i32(integer(text)?, window),
            One::Int64 => bson::put_i64(integer(text)?, window),
            One::Double => bson::put_f64(double(text)?, window),
            One::Decimal128 => {
                bson::put_decimal128(Decimal128::of_digits(text).ok()?, window);
            }
            One::Uuid => bson::put_uuid(&uuid(text)?, window),
            One::Date => bson::put_i64(instant::parse(text)?, window),
            One::Symbol => return None,
        }
        Some(())
    }
}

fn integer<I: std::str::FromStr>(text: &[u8]) -> Option<I> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

/// A number that is finite, or one of the three that are none by their names.
fn double(text: &[u8]) -> Option<f64> {
    match text {
        b"NaN" => return Some(f64::NAN),
        b"Infinity" => return Some(f64::INFINITY),
        b"-Infinity" => return Some(f64::NEG_INFINITY),
        _ => {}
    }
    // The library knows further names.
    let is_number = |b: &u8| matches!(b, b'0'..=b'9' | b'+' | b'-' | b'.' | b'e' | b'E');
    if !text.iter().all(is_number) {
        return None;
    }
    let value: f64 = integer(text)?;
    value.is_finite().then_some(value)
}

/// Bytes from twice as many hexadecimal digits.
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

/// The number of one or two hexadecimal digits: a subtype.
pub(super) fn subtype(text: &[u8]) -> Option<u8> {
    match *text {
        [digit] => hex_digit(digit),
        [high, low] => Some(hex_digit(high)? << 4 | hex_digit(low)?),
        _ => None,
    }
}

/// A UUID with its hyphens in their places, or with none.
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
