//! [`Elements`] iterates over the elements of one document. It locates values without parsing them,
//! so that a caller can read single fields.

use super::error::{ReadError, Reason};
use super::lengths::{LEAST_BYTES, LENGTH_BYTES, document_len, length_at};
use super::reader::{error, zero_at};
use super::tags;
use crate::bson::{MOST_BYTES, SUBTYPE_OLD};

/// An element of a document: its tag, its key and its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Element<'a> {
    /// The tag of the element: one of the tags that BSON 1.1 defines.
    pub tag: u8,
    /// The bytes of the key, which were not validated as UTF-8.
    pub key: &'a [u8],
    /// The encoded bytes of the value, including a length prefix. The length and the terminator of
    /// the value were validated. Values inside an embedded document were not validated.
    pub value: &'a [u8],
    /// The position of the element's tag byte in the document.
    pub at: usize,
    /// The position of the value's first byte in the document.
    pub value_at: usize,
}

/// An iterator over the elements of a document or array.
#[derive(Clone, Copy, Debug)]
pub struct Elements<'a> {
    /// The bytes of the document that precede its terminator.
    body: &'a [u8],
    at: usize,
}

impl<'a> Elements<'a> {
    /// Creates an iterator over the elements of `bytes`, which must be exactly one document.
    ///
    /// # Errors
    /// Returns [`Reason::End`], [`Reason::DocumentLength`], [`Reason::TrailingData`] or
    /// [`Reason::NoTerminator`].
    #[inline]
    pub fn of(bytes: &'a [u8]) -> Result<Elements<'a>, ReadError> {
        let len = document_len(bytes, MOST_BYTES)?;
        match bytes.split_last() {
            _ if len > bytes.len() => Err(error(Reason::End, 0)),
            _ if len < bytes.len() => Err(error(Reason::TrailingData, len)),
            Some((0, body)) => Ok(Elements {
                body,
                at: LENGTH_BYTES,
            }),
            _ => Err(error(Reason::NoTerminator, len - 1)),
        }
    }

    /// Returns the next element, or `None` at the end of the document.
    ///
    /// # Errors
    /// Returns the errors of [`super::read`] for the bytes before the end of the returned element.
    /// Positions count from the start of the document.
    #[inline(always)]
    pub fn next_element(&mut self) -> Result<Option<Element<'a>>, ReadError> {
        let at = self.at;
        let Some(&tag) = self.body.get(at) else {
            return Ok(None);
        };
        if tag == 0 {
            return Err(error(Reason::EarlyEnd, at));
        }
        let rest = &self.body[at + 1..];
        let key_len = zero_at(rest).ok_or(error(Reason::OpenText, at + 1))?;
        let (key, value) = (&rest[..key_len], &rest[key_len + 1..]);
        let value_at = at + 1 + key_len + 1;
        let len = match FIXED[usize::from(tag)] {
            len if len != VARIABLE => {
                let len = usize::from(len);
                if len > value.len() {
                    return Err(error(Reason::Value, value_at));
                }
                len
            }
            _ => variable_len(tag, at, value, value_at)?,
        };
        self.at = value_at + len;
        Ok(Some(Element {
            tag,
            key,
            value: &value[..len],
            at,
            value_at,
        }))
    }
}

/// The entry in [`FIXED`] for a tag whose values have no fixed size, and for an invalid tag.
const VARIABLE: u8 = 0xFF;

/// For each tag (the byte that identifies a BSON type), the size of its values in bytes.
/// [`VARIABLE`] if the values of the type have no fixed size.
static FIXED: [u8; 256] = {
    let mut all = [VARIABLE; 256];
    all[tags::DOUBLE as usize] = 8;
    all[tags::UNDEFINED as usize] = 0;
    all[tags::OBJECT_ID as usize] = 12;
    all[tags::DATE_TIME as usize] = 8;
    all[tags::NULL as usize] = 0;
    all[tags::INT32 as usize] = 4;
    all[tags::TIMESTAMP as usize] = 8;
    all[tags::INT64 as usize] = 8;
    all[tags::DECIMAL128 as usize] = 16;
    all[tags::MIN_KEY as usize] = 0;
    all[tags::MAX_KEY as usize] = 0;
    all
};

/// Returns the size in bytes of the value at the start of `rest`. The value has the type `tag`,
/// whose values have no fixed size. For errors, `tag_at` and `at` are the positions of the tag and
/// of the value in the document.
fn variable_len(tag: u8, tag_at: usize, rest: &[u8], at: usize) -> Result<usize, ReadError> {
    let length = |from: usize| {
        let length = length_at(rest, from).ok_or(error(Reason::Value, at + from))?;
        Ok(length as usize)
    };
    match tag {
        tags::STRING | tags::CODE | tags::SYMBOL => text_len(rest, at),
        tags::DOCUMENT | tags::ARRAY => document_inside(rest, at),
        tags::BOOL => match rest.first() {
            Some(0 | 1) => Ok(1),
            Some(&byte) => Err(error(Reason::Boolean(byte), at)),
            None => Err(error(Reason::Value, at)),
        },
        tags::BINARY => {
            let len = length(0)?;
            if i32::try_from(len).is_err() {
                return Err(error(Reason::BinaryLength, at));
            }
            let Some((subtype, bytes)) = rest[LENGTH_BYTES..].split_first() else {
                return Err(error(Reason::Value, at + LENGTH_BYTES));
            };
            if len > bytes.len() {
                return Err(error(Reason::Length, at));
            }
            let head = LENGTH_BYTES + 1;
            if *subtype == SUBTYPE_OLD {
                let inner = length_at(&bytes[..len], 0).map(|inner| inner as usize + LENGTH_BYTES);
                if inner != Some(len) {
                    return Err(error(Reason::OldBinary, at + head));
                }
            }
            Ok(head + len)
        }
        tags::REGEX => {
            let pattern = zero_at(rest).ok_or(error(Reason::OpenText, at))? + 1;
            let options = zero_at(&rest[pattern..]);
            Ok(pattern + options.ok_or(error(Reason::OpenText, at + pattern))? + 1)
        }
        tags::DB_POINTER => {
            let len = text_len(rest, at)?;
            if rest.len() - len < 12 {
                return Err(error(Reason::Value, at + len));
            }
            Ok(len + 12)
        }
        tags::CODE_WITH_SCOPE => {
            let len = length(0)?;
            let Some(whole) = rest.get(..len) else {
                return Err(match i32::try_from(len) {
                    Ok(_) => error(Reason::Length, at),
                    Err(_) => error(Reason::ScopeLength, at),
                });
            };
            let Some(inner) = whole.get(LENGTH_BYTES..) else {
                return Err(error(Reason::ScopeLength, at));
            };
            let code = LENGTH_BYTES + text_len(inner, at + LENGTH_BYTES)?;
            let scope = length_at(whole, code).map(|scope| scope as usize + code);
            if scope != Some(len) || len - code < LEAST_BYTES {
                return Err(error(Reason::ScopeLength, at + code));
            }
            match whole.last() {
                Some(0) => Ok(len),
                _ => Err(error(Reason::NoTerminator, at + len - 1)),
            }
        }
        _ => Err(error(Reason::Tag(tag), tag_at)),
    }
}

/// Returns the size in bytes of the text at the start of `rest`, including its length prefix and
/// its NUL. `at` is the position of the text in the document. An error contains this position.
#[inline]
fn text_len(rest: &[u8], at: usize) -> Result<usize, ReadError> {
    let length = length_at(rest, 0).ok_or(error(Reason::Value, at))? as usize;
    match (
        i32::try_from(length),
        rest[LENGTH_BYTES..].get(length.wrapping_sub(1)),
    ) {
        (Ok(1..), Some(0)) => Ok(LENGTH_BYTES + length),
        (Ok(1..), Some(_)) => Err(error(Reason::TextEnd, at + LENGTH_BYTES + length - 1)),
        (Ok(1..), None) => Err(error(Reason::Length, at)),
        _ => Err(error(Reason::TextLength, at)),
    }
}

/// Returns the size in bytes of the embedded document at the start of `rest`. `at` is the position
/// of the embedded document in the outer document. An error contains this position.
#[inline]
fn document_inside(rest: &[u8], at: usize) -> Result<usize, ReadError> {
    let length = length_at(rest, 0).ok_or(error(Reason::Value, at))? as usize;
    match (i32::try_from(length), rest.get(length.wrapping_sub(1))) {
        (Ok(length), _) if (length as usize) < LEAST_BYTES => {
            Err(error(Reason::DocumentLength, at))
        }
        (Err(_), _) => Err(error(Reason::DocumentLength, at)),
        (_, Some(0)) => Ok(length),
        (_, Some(_)) => Err(error(Reason::NoTerminator, at + length - 1)),
        (_, None) => Err(error(Reason::Length, at)),
    }
}
