//! Reference implementations for tests and fuzzing: a recursive reader of BSON that builds a tree,
//! and decimals of 128 bits by long arithmetic. [`Tree`] builds a tree from the events of the fast
//! reader.

use super::tag::Tag;

pub mod tree;

pub use tree::{Tree, has_index_keys, write};

/// A BSON value as a tree, which contains all information of the encoded bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Value {
    /// A 64-bit float, as its bits.
    Double(u64),
    String(String),
    Document(Document),
    /// An array, as its items with their keys.
    Array(Document),
    Binary(u8, Vec<u8>),
    Undefined,
    ObjectId([u8; 12]),
    Bool(bool),
    DateTime(i64),
    Null,
    Regex(String, String),
    DbPointer(String, [u8; 12]),
    Code(String),
    Symbol(String),
    CodeWithScope(String, Document),
    Int32(i32),
    /// The seconds and the increment of a MongoDB timestamp, in this order.
    Timestamp(u32, u32),
    Int64(i64),
    Decimal128([u8; 16]),
    MinKey,
    MaxKey,
}

/// The keys and values of a document, in the order of the document. The same key may occur several
/// times.
pub type Document = Vec<(String, Value)>;

/// Parses `bytes` as concatenated documents; returns `None` if the bytes are invalid.
#[must_use]
pub fn documents(bytes: &[u8]) -> Option<Vec<Document>> {
    let mut reader = NaiveReader { rest: bytes };
    let mut all = Vec::new();
    while !reader.rest.is_empty() {
        all.push(reader.document()?);
    }
    Some(all)
}

struct NaiveReader<'a> {
    rest: &'a [u8],
}

impl<'a> NaiveReader<'a> {
    fn take(&mut self, n: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(n)?;
        self.rest = rest;
        Some(taken)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.try_into().ok()
    }

    fn length(&mut self) -> Option<usize> {
        usize::try_from(i32::from_le_bytes(self.array()?)).ok()
    }

    /// Reads the length prefix of a document, which counts its own four bytes. Returns a reader of
    /// the remaining bytes of the document.
    fn framed(&mut self) -> Option<NaiveReader<'a>> {
        let rest = self.length()?.checked_sub(4)?;
        Some(NaiveReader {
            rest: self.take(rest)?,
        })
    }

    fn document(&mut self) -> Option<Document> {
        let mut inner = self.framed()?;
        let mut all = Vec::new();
        loop {
            match inner.array::<1>()? {
                [0] if inner.rest.is_empty() => return Some(all),
                [byte] => {
                    let tag = Tag::of(byte)?;
                    all.push((inner.cstring()?, inner.value(tag)?));
                }
            }
        }
    }

    fn cstring(&mut self) -> Option<String> {
        let end = self.rest.iter().position(|b| *b == 0)?;
        let text = self.take(end)?.to_vec();
        self.take(1)?;
        String::from_utf8(text).ok()
    }

    fn text(&mut self) -> Option<String> {
        let length = self.length()?;
        let (last, text) = self.take(length)?.split_last()?;
        (*last == 0).then_some(())?;
        String::from_utf8(text.to_vec()).ok()
    }

    fn value(&mut self, tag: Tag) -> Option<Value> {
        Some(match tag {
            Tag::Double => Value::Double(u64::from_le_bytes(self.array()?)),
            Tag::String => Value::String(self.text()?),
            Tag::Document => Value::Document(self.document()?),
            Tag::Array => Value::Array(self.document()?),
            Tag::Binary => {
                let length = self.length()?;
                let [subtype] = self.array()?;
                let mut bytes = NaiveReader {
                    rest: self.take(length)?,
                };
                match subtype {
                    2 => (bytes.length()? == bytes.rest.len()).then_some(())?,
                    3 | 4 => (length == 16).then_some(())?,
                    _ => {}
                }
                Value::Binary(subtype, bytes.rest.to_vec())
            }
            Tag::Undefined => Value::Undefined,
            Tag::ObjectId => Value::ObjectId(self.array()?),
            Tag::Bool => match self.array()? {
                [0] => Value::Bool(false),
                [1] => Value::Bool(true),
                _ => return None,
            },
            Tag::DateTime => Value::DateTime(i64::from_le_bytes(self.array()?)),
            Tag::Null => Value::Null,
            Tag::Regex => Value::Regex(self.cstring()?, self.cstring()?),
            Tag::DbPointer => Value::DbPointer(self.text()?, self.array()?),
            Tag::Code => Value::Code(self.text()?),
            Tag::Symbol => Value::Symbol(self.text()?),
            Tag::CodeWithScope => {
                let mut inner = self.framed()?;
                let whole = Value::CodeWithScope(inner.text()?, inner.document()?);
                inner.rest.is_empty().then_some(whole)?
            }
            Tag::Int32 => Value::Int32(i32::from_le_bytes(self.array()?)),
            Tag::Timestamp => {
                let increment = u32::from_le_bytes(self.array()?);
                Value::Timestamp(u32::from_le_bytes(self.array()?), increment)
            }
            Tag::Int64 => Value::Int64(i64::from_le_bytes(self.array()?)),
            Tag::Decimal128 => Value::Decimal128(self.array()?),
            Tag::MinKey => Value::MinKey,
            Tag::MaxKey => Value::MaxKey,
        })
    }
}

/// Returns the encoded bytes of a decimal. `None` if the text is not a decimal, or if 128 bits
/// cannot represent it exactly.
#[must_use]
pub fn decimal128(text: &str) -> Option<[u8; 16]> {
    let (negative, rest) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let (number, exponent) = match rest.split_once(['e', 'E']) {
        Some((number, exponent)) => (number, exponent.parse::<i128>().ok()?),
        None => (rest, 0),
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let mut digits: Vec<u8> = format!("{whole}{fraction}").into_bytes();
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let mut exponent = exponent - fraction.len() as i128;
    let leading = digits.iter().take_while(|d| **d == b'0').count();
    digits.drain(..leading);
    if digits.is_empty() {
        exponent = exponent.clamp(-6176, 6111);
    }
    while (digits.len() > 34 || (exponent < -6176 && !digits.is_empty()))
        && digits.last() == Some(&b'0')
    {
        digits.pop();
        exponent += 1;
    }
    while exponent > 6111 && digits.len() < 34 {
        digits.push(b'0');
        exponent -= 1;
    }
    if digits.len() > 34 || !(-6176..=6111).contains(&exponent) {
        return None;
    }
    let mut bits = [false; 128];
    for bit in &mut bits[..113] {
        *bit = halve(&mut digits);
    }
    for (i, bit) in bits[113..127].iter_mut().enumerate() {
        *bit = (exponent + 6176) >> i & 1 == 1;
    }
    bits[127] = negative;
    let mut bytes = [0; 16];
    for (i, bit) in bits.iter().enumerate() {
        bytes[i / 8] |= u8::from(*bit) << (i % 8);
    }
    Some(bytes)
}

/// Divides the number with the decimal digits `digits` by two, and returns `true` if the remainder
/// is 1.
fn halve(digits: &mut [u8]) -> bool {
    let mut left = 0;
    for digit in digits {
        let value = left * 10 + (*digit - b'0');
        *digit = b'0' + value / 2;
        left = value % 2;
    }
    left == 1
}

/// Returns a decimal as text: sign, digits, `E` and exponent, or the name of NaN or an infinity.
/// The digits are calculated bit by bit, by doubling a decimal number.
#[must_use]
pub fn decimal128_text(bytes: &[u8; 16]) -> String {
    let bit = |i: usize| bytes[i / 8] >> (i % 8) & 1;
    let sign = if bit(127) == 1 { "-" } else { "" };
    if bytes[15] & 0x7C == 0x7C {
        return "NaN".to_owned();
    }
    if bytes[15] & 0x7C == 0x78 {
        return format!("{sign}Infinity");
    }
    assert!(bytes[15] & 0x60 != 0x60, "the other form is never written");
    let mut digits = vec![0_u8];
    for i in (0..113).rev() {
        let mut carry = bit(i);
        for digit in digits.iter_mut().rev() {
            let value = *digit * 2 + carry;
            *digit = value % 10;
            carry = value / 10;
        }
        if carry > 0 {
            digits.insert(0, carry);
        }
    }
    let exponent: i32 = (0..14).map(|i| i32::from(bit(113 + i)) << i).sum();
    let digits: String = digits.iter().map(|d| char::from(b'0' + d)).collect();
    format!("{sign}{digits}E{}", exponent - 6176)
}
