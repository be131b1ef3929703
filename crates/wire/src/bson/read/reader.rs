//! The grammar of BSON, as one loop.

use onecopy_text::convert::Kernels;

use super::elements::Element;
use super::error::{ReadError, Reason};
use super::events::{BsonEvents, Refusal, Told};
use super::index::Index;
use super::lengths::{LEAST_BYTES, LENGTH_BYTES, document_len};
use super::tags;
use crate::bson::{MOST_BYTES, SUBTYPE_OLD, SUBTYPE_OLD_UUID, SUBTYPE_UUID, UUID_BYTES};

/// What is asked of the keys of arrays.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ArrayKeys {
    /// Any will do: an item is where it stands. So every reader that we know has it, and there are writers that leave
    /// the keys empty.
    #[default]
    Any,
    /// `0`, `1`, `2`…, as the specification says.
    Strict,
}

/// What is asked of a document beyond the grammar.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// How deep documents and arrays may stand in each other; the outermost is the first level.
    pub max_depth: usize,
    /// How many bytes the outermost may have.
    pub max_size: usize,
    /// The keys of arrays.
    pub array_keys: ArrayKeys,
}

impl Default for Rules {
    fn default() -> Rules {
        Rules {
            max_depth: 1000,
            max_size: MOST_BYTES,
            array_keys: ArrayKeys::Any,
        }
    }
}

/// Tells the document that `bytes` starts with, and returns how many bytes it has.
///
/// Copies: none. Memory: four bytes for each level that is open.
///
/// # Errors
/// [`ReadError`]; what was told until then was right.
#[inline(always)]
pub fn read<K: Kernels, E: BsonEvents>(
    kernels: K,
    bytes: &[u8],
    rules: Rules,
    events: &mut E,
) -> Result<usize, ReadError> {
    let len = document_len(bytes, rules.max_size)?;
    let Some(document) = bytes.get(..len) else {
        return Err(error(Reason::End, 0));
    };
    Reader::new(kernels, document, LENGTH_BYTES, rules).document(events)?;
    Ok(len)
}

/// Tells the value of an element that [`super::Elements`] has found: no key, and nothing behind it. Places are those in the
/// whole document.
///
/// # Errors
/// As [`read`].
#[inline(always)]
pub fn read_value<K: Kernels, E: BsonEvents>(
    kernels: K,
    document: &[u8],
    element: &Element<'_>,
    rules: Rules,
    events: &mut E,
) -> Result<(), ReadError> {
    let mut reader = Reader::new(kernels, document, element.value_at, rules);
    reader.value(element.tag, element.at, events)?;
    if reader.outer.is_empty() {
        return Ok(());
    }
    reader.elements(true, events)
}

/// As [`read`], of one document with nothing behind it.
///
/// # Errors
/// As [`read`], and [`Reason::Behind`] with the place behind the document.
#[inline(always)]
pub fn read_all<K: Kernels, E: BsonEvents>(
    kernels: K,
    bytes: &[u8],
    rules: Rules,
    events: &mut E,
) -> Result<(), ReadError> {
    let len = read(kernels, bytes, rules, events)?;
    if len < bytes.len() {
        return Err(error(Reason::Behind, len));
    }
    Ok(())
}

/// Code with a scope that is open.
pub(super) struct Scope {
    /// Levels around it.
    pub(super) n_outer: usize,
    /// Where the key of the element ends.
    pub(super) key_end: usize,
}

pub(super) struct Reader<'a, K> {
    pub(super) kernels: K,
    /// The outermost document.
    pub(super) bytes: &'a [u8],
    /// The same up to the zero byte that ends the innermost one.
    pub(super) body: &'a [u8],
    /// The next byte, at most the end of the body.
    pub(super) at: usize,
    /// Where the innermost document starts.
    pub(super) start: u32,
    pub(super) is_array: bool,
    /// The key that is to come in the array at `index_of`.
    pub(super) index: Index,
    pub(super) index_of: u32,
    /// The levels around it, the outermost first: twice the start, and 1 more for an array.
    pub(super) outer: Vec<u32>,
    pub(super) scopes: Vec<Scope>,
    pub(super) rules: Rules,
}

impl<'a, K: Kernels> Reader<'a, K> {
    #[inline(always)]
    fn new(kernels: K, document: &'a [u8], at: usize, rules: Rules) -> Reader<'a, K> {
        Reader {
            kernels,
            bytes: document,
            body: document.split_last().map_or(&[], |(_, body)| body),
            at,
            start: 0,
            is_array: false,
            index: Index::FIRST,
            index_of: 0,
            outer: Vec::new(),
            scopes: Vec::new(),
            rules,
        }
    }

    #[inline(always)]
    fn document<E: BsonEvents>(&mut self, events: &mut E) -> Result<(), ReadError> {
        if self.rules.max_depth == 0 {
            return Err(error(Reason::Depth, 0));
        }
        if self.bytes.last() != Some(&0) {
            return Err(error(Reason::NoTerminator, self.bytes.len() - 1));
        }
        if self.bytes.len() == LEAST_BYTES {
            return told(events.empty_document(), 0);
        }
        told(events.begin_document(), 0)?;
        self.elements(false, events)
    }

    /// Elements up to the end of the outermost document, or to that of the outermost but one.
    #[inline(always)]
    fn elements<E: BsonEvents>(&mut self, is_inner: bool, events: &mut E) -> Result<(), ReadError> {
        loop {
            let Some(&tag) = self.body.get(self.at) else {
                if self.leave(events)? || is_inner && self.outer.is_empty() {
                    return Ok(());
                }
                continue;
            };
            if tag == 0 {
                return Err(error(Reason::EarlyEnd, self.at));
            }
            let tag_at = self.at;
            self.at += 1;
            self.key(events)?;
            self.value(tag, tag_at, events)?;
        }
    }

    /// The value at the next byte; documents and arrays are gone into.
    #[inline(always)]
    fn value<E: BsonEvents>(
        &mut self,
        tag: u8,
        tag_at: usize,
        events: &mut E,
    ) -> Result<(), ReadError> {
        let start = self.at;
        match tag {
            tags::DOUBLE => {
                let value = f64::from_le_bytes(*self.fixed()?);
                told(events.double(value), start)?;
            }
            tags::STRING => {
                let text = self.text()?;
                told(events.string(text), start + LENGTH_BYTES)?;
            }
            tags::DOCUMENT => self.enter(false, events)?,
            tags::ARRAY => self.enter(true, events)?,
            tags::BINARY => self.binary(events)?,
            tags::UNDEFINED => told(events.undefined(), start)?,
            tags::OBJECT_ID => {
                let id = self.fixed()?;
                told(events.object_id(id), start)?;
            }
            tags::BOOL => match self.fixed()? {
                [byte @ (0 | 1)] => told(events.boolean(*byte == 1), start)?,
                [byte] => return Err(error(Reason::Boolean(*byte), start)),
            },
            tags::DATE_TIME => {
                let value = i64::from_le_bytes(*self.fixed()?);
                told(events.datetime(value), start)?;
            }
            tags::NULL => told(events.null(), start)?,
            tags::REGEX => {
                let pattern = self.cstring()?;
                let options = self.cstring()?;
                told(events.regex(pattern, options), start)?;
            }
            tags::DB_POINTER => {
                let name = self.text()?;
                let id = self.fixed()?;
                told(events.db_pointer(name, id), start + LENGTH_BYTES)?;
            }
            tags::CODE => {
                let text = self.text()?;
                told(events.code(text), start + LENGTH_BYTES)?;
            }
            tags::SYMBOL => {
                let text = self.text()?;
                told(events.symbol(text), start + LENGTH_BYTES)?;
            }
            tags::CODE_WITH_SCOPE => self.code_with_scope(events)?,
            tags::INT32 => {
                let value = i32::from_le_bytes(*self.fixed()?);
                told(events.int32(value), start)?;
            }
            tags::TIMESTAMP => {
                let increment = u32::from_le_bytes(*self.fixed()?);
                let seconds = u32::from_le_bytes(*self.fixed()?);
                told(events.timestamp(seconds, increment), start)?;
            }
            tags::INT64 => {
                let value = i64::from_le_bytes(*self.fixed()?);
                told(events.int64(value), start)?;
            }
            tags::DECIMAL128 => {
                let bytes = self.fixed()?;
                told(events.decimal128(bytes), start)?;
            }
            tags::MIN_KEY => told(events.min_key(), start)?,
            tags::MAX_KEY => told(events.max_key(), start)?,
            other => return Err(error(Reason::Tag(other), tag_at)),
        }
        Ok(())
    }

    /// What is left of the innermost document.
    #[inline(always)]
    pub(super) fn rest(&self) -> &'a [u8] {
        self.body.get(self.at..).unwrap_or_default()
    }

    /// The key at the next byte.
    #[inline(always)]
    fn key<E: BsonEvents>(&mut self, events: &mut E) -> Result<(), ReadError> {
        let (rest, start) = (self.rest(), self.at);
        if self.is_array {
            let len = match self.index.matches(rest) {
                Some(len) => len,
                None => self.other_array_key(events)?,
            };
            self.index.step();
            self.at += len;
            return told(events.array_key(&rest[..len - 1]), start);
        }
        if let Some(guess) = events.guess()
            && rest.get(guess.len()) == Some(&0)
            && self.kernels.starts_with(rest, guess)
        {
            self.at += guess.len() + 1;
            return told(events.likely_key(), start);
        }
        let key = self.cstring()?;
        told(events.key(key), start)
    }

    /// Bytes of a key of an array that is not its index, its zero byte among them.
    #[inline(always)]
    fn other_array_key<E: BsonEvents>(&mut self, events: &mut E) -> Result<usize, ReadError> {
        let (rest, start) = (self.rest(), self.at);
        let len = zero_at(rest).ok_or(error(Reason::OpenText, start))?;
        if self.rules.array_keys == ArrayKeys::Strict {
            return Err(error(Reason::ArrayKey, start));
        }
        told(events.other_array_key(&rest[..len]), start)?;
        Ok(len + 1)
    }

    /// Bytes up to a zero byte.
    #[inline(always)]
    fn cstring(&mut self) -> Result<&'a [u8], ReadError> {
        let rest = self.rest();
        let len = zero_at(rest).ok_or(error(Reason::OpenText, self.at))?;
        self.at += len + 1;
        Ok(&rest[..len])
    }

    /// A value of a fixed size.
    #[inline(always)]
    pub(super) fn fixed<const N: usize>(&mut self) -> Result<&'a [u8; N], ReadError> {
        let Some(value) = self.rest().first_chunk() else {
            return Err(error(Reason::Value, self.at));
        };
        self.at += N;
        Ok(value)
    }

    /// A text with its length.
    #[inline(always)]
    pub(super) fn text(&mut self) -> Result<&'a [u8], ReadError> {
        let at = self.at;
        let length = u32::from_le_bytes(*self.fixed()?) as usize;
        match self.rest().get(..length).and_then(<[u8]>::split_last) {
            Some((0, text)) => {
                self.at += length;
                Ok(text)
            }
            other => Err(match i32::try_from(length) {
                Ok(1..) if other.is_some() => error(Reason::TextEnd, self.at + length - 1),
                Ok(1..) => error(Reason::Length, at),
                _ => error(Reason::TextLength, at),
            }),
        }
    }

    #[inline(always)]
    fn binary<E: BsonEvents>(&mut self, events: &mut E) -> Result<(), ReadError> {
        let at = self.at;
        let length = u32::from_le_bytes(*self.fixed()?) as usize;
        let [subtype] = *self.fixed()?;
        let Some(bytes) = self.rest().get(..length) else {
            return Err(match i32::try_from(length) {
                Ok(_) => error(Reason::Length, at),
                Err(_) => error(Reason::BinaryLength, at),
            });
        };
        let start = self.at;
        self.at += length;
        match subtype {
            SUBTYPE_OLD => match bytes.split_first_chunk() {
                Some((inner, bytes)) if u32::from_le_bytes(*inner) as usize == bytes.len() => {
                    told(events.binary(subtype, bytes), start + LENGTH_BYTES)
                }
                _ => Err(error(Reason::OldBinary, start)),
            },
            SUBTYPE_OLD_UUID | SUBTYPE_UUID if length != UUID_BYTES => {
                Err(error(Reason::Uuid, start))
            }
            _ => told(events.binary(subtype, bytes), start),
        }
    }
}

/// Where the first zero byte is, eight bytes at a time: keys are short.
#[inline(always)]
pub(super) fn zero_at(rest: &[u8]) -> Option<usize> {
    const ONES: u64 = u64::MAX / 255;
    let (words, tail) = rest.as_chunks::<8>();
    for (i, word) in words.iter().enumerate() {
        let word = u64::from_le_bytes(*word);
        // The lowest bit that is set is that of the first zero byte; those above it may be wrong.
        let zeros = word.wrapping_sub(ONES) & !word & (ONES << 7);
        if zeros != 0 {
            return Some(8 * i + zeros.trailing_zeros() as usize / 8);
        }
    }
    let behind = tail.iter().position(|&byte| byte == 0)?;
    Some(8 * words.len() + behind)
}

#[inline(always)]
pub(super) const fn error(reason: Reason, offset_bytes: usize) -> ReadError {
    ReadError {
        reason,
        offset_bytes,
    }
}

/// What was told, with the place where its start is.
#[inline(always)]
pub(super) fn told(is_told: Told, start: usize) -> Result<(), ReadError> {
    is_told.map_err(|refusal| refused(refusal, start))
}

#[cold]
pub(super) fn refused(refusal: Refusal, start: usize) -> ReadError {
    error(refusal.reason, start + refusal.at_bytes)
}
