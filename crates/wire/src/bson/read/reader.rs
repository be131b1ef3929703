//! [`read`] and [`Rules`]: the BSON reader, which is one loop over the elements without recursion.

use onecopy_text::convert::Kernels;

use super::array_index::Index;
use super::elements::Element;
use super::error::{ReadError, Reason};
use super::events::{BsonEvents, EventResult, Rejection};
use super::lengths::{LEAST_BYTES, LENGTH_BYTES, document_len};
use super::tags;
use crate::bson::{MOST_BYTES, SUBTYPE_OLD, SUBTYPE_OLD_UUID, SUBTYPE_UUID, UUID_BYTES};

/// The requirement that the keys of array items must meet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ArrayKeys {
    /// Any key is accepted and ignored: the index of an item is its position in the array. (All
    /// known BSON readers accept any key, because some BSON writers write empty keys.)
    #[default]
    Any,
    /// The keys must be `0`, `1`, `2`…, as the BSON specification requires.
    Strict,
}

/// The limits and requirements that a document must meet in addition to the BSON grammar.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// The largest permitted nesting depth of documents and arrays. The outermost document has the
    /// depth 1.
    pub max_depth: usize,
    /// The largest size of the outermost document in bytes.
    pub max_bytes: usize,
    /// The requirements on the keys of arrays.
    pub array_keys: ArrayKeys,
}

impl Default for Rules {
    fn default() -> Rules {
        Rules {
            max_depth: 1000,
            max_bytes: MOST_BYTES,
            array_keys: ArrayKeys::Any,
        }
    }
}

/// Reads the document at the start of `bytes`, emits its events, and returns its length in bytes.
///
/// Nothing is copied. The reader needs four bytes of memory for each open document or array.
///
/// # Errors
/// Returns a [`ReadError`]. The events before the error were emitted for valid data.
#[inline(always)]
pub fn read<K: Kernels, E: BsonEvents>(
    kernels: K,
    bytes: &[u8],
    rules: Rules,
    events: &mut E,
) -> Result<usize, ReadError> {
    let len = document_len(bytes, rules.max_bytes)?;
    let Some(document) = bytes.get(..len) else {
        return Err(error(Reason::End, 0));
    };
    Reader::new(kernels, document, LENGTH_BYTES, rules).document(events)?;
    Ok(len)
}

/// Reads the value of one element of `document`, which [`super::Elements`] has returned. Emits the
/// events of the value, but no event for its key. The positions of errors are counted from the
/// start of `document`.
///
/// # Errors
/// Returns the same errors as [`read`].
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

/// Reads `bytes`, which must be exactly one document. Bytes after the document are an error.
///
/// # Errors
/// Returns the errors of [`read`], and [`Reason::TrailingData`] with the position after the
/// document.
#[inline(always)]
pub fn read_all<K: Kernels, E: BsonEvents>(
    kernels: K,
    bytes: &[u8],
    rules: Rules,
    events: &mut E,
) -> Result<(), ReadError> {
    let len = read(kernels, bytes, rules, events)?;
    if len < bytes.len() {
        return Err(error(Reason::TrailingData, len));
    }
    Ok(())
}

/// A value of the BSON type "code with scope" whose scope (a document) is being read.
pub(super) struct Scope {
    /// The number of documents and arrays that enclose the value.
    pub(super) n_outer: usize,
    /// The position of the zero byte that ends the key of the value.
    pub(super) key_end: usize,
}

pub(super) struct Reader<'a, K> {
    pub(super) kernels: K,
    /// All bytes of the outermost document.
    pub(super) bytes: &'a [u8],
    /// The bytes from the start of the outermost document up to the terminator of the innermost
    /// open document (without the terminator). The reader reads no byte outside of this slice.
    pub(super) body: &'a [u8],
    /// The position of the next byte to read, which is at most the length of `body`.
    pub(super) at: usize,
    /// The position in the input at which the innermost open document starts.
    pub(super) start: u32,
    pub(super) is_array: bool,
    /// The key that the next item must have (its index as text), if the innermost open document is
    /// the array that starts at position `index_of`.
    pub(super) index: Index,
    pub(super) index_of: u32,
    /// The open documents and arrays that enclose the innermost one, the outermost first. Each
    /// number is twice the start position, plus 1 for an array.
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
            return located(events.empty_document(), 0);
        }
        located(events.begin_document(), 0)?;
        self.elements(false, events)
    }

    /// Reads the elements of a document up to its end. If `is_inner` is `false`, this is the
    /// outermost document. If `is_inner` is `true`, it is an embedded document whose beginning the
    /// caller has already read.
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

    /// Reads the value of type `tag` that starts at the next byte. If the value is a document or an
    /// array, reads only its beginning; the caller then reads its elements.
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
                located(events.double(value), start)?;
            }
            tags::STRING => {
                let text = self.text()?;
                located(events.string(text), start + LENGTH_BYTES)?;
            }
            tags::DOCUMENT => self.enter(false, events)?,
            tags::ARRAY => self.enter(true, events)?,
            tags::BINARY => self.binary(events)?,
            tags::UNDEFINED => located(events.undefined(), start)?,
            tags::OBJECT_ID => {
                let id = self.fixed()?;
                located(events.object_id(id), start)?;
            }
            tags::BOOL => match self.fixed()? {
                [byte @ (0 | 1)] => located(events.boolean(*byte == 1), start)?,
                [byte] => return Err(error(Reason::Boolean(*byte), start)),
            },
            tags::DATE_TIME => {
                let value = i64::from_le_bytes(*self.fixed()?);
                located(events.datetime(value), start)?;
            }
            tags::NULL => located(events.null(), start)?,
            tags::REGEX => {
                let pattern = self.cstring()?;
                let options = self.cstring()?;
                located(events.regex(pattern, options), start)?;
            }
            tags::DB_POINTER => {
                let name = self.text()?;
                let id = self.fixed()?;
                located(events.db_pointer(name, id), start + LENGTH_BYTES)?;
            }
            tags::CODE => {
                let text = self.text()?;
                located(events.code(text), start + LENGTH_BYTES)?;
            }
            tags::SYMBOL => {
                let text = self.text()?;
                located(events.symbol(text), start + LENGTH_BYTES)?;
            }
            tags::CODE_WITH_SCOPE => self.code_with_scope(events)?,
            tags::INT32 => {
                let value = i32::from_le_bytes(*self.fixed()?);
                located(events.int32(value), start)?;
            }
            tags::TIMESTAMP => {
                let increment = u32::from_le_bytes(*self.fixed()?);
                let seconds = u32::from_le_bytes(*self.fixed()?);
                located(events.timestamp(seconds, increment), start)?;
            }
            tags::INT64 => {
                let value = i64::from_le_bytes(*self.fixed()?);
                located(events.int64(value), start)?;
            }
            tags::DECIMAL128 => {
                let bytes = self.fixed()?;
                located(events.decimal128(bytes), start)?;
            }
            tags::MIN_KEY => located(events.min_key(), start)?,
            tags::MAX_KEY => located(events.max_key(), start)?,
            other => return Err(error(Reason::Tag(other), tag_at)),
        }
        Ok(())
    }

    /// Returns the bytes of the innermost open document that were not read yet, without its
    /// terminator.
    #[inline(always)]
    pub(super) fn rest(&self) -> &'a [u8] {
        self.body.get(self.at..).unwrap_or_default()
    }

    /// Reads the key that starts at the next byte, and emits its event.
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
            return located(events.array_key(&rest[..len - 1]), start);
        }
        if let Some(guess) = events.guess()
            && rest.get(guess.len()) == Some(&0)
            && self.kernels.starts_with(rest, guess)
        {
            self.at += guess.len() + 1;
            return located(events.likely_key(), start);
        }
        let key = self.cstring()?;
        located(events.key(key), start)
    }

    /// Reads an array key that differs from the expected key. Returns the length of the key in
    /// bytes, including its zero byte.
    #[inline(always)]
    fn other_array_key<E: BsonEvents>(&mut self, events: &mut E) -> Result<usize, ReadError> {
        let (rest, start) = (self.rest(), self.at);
        let len = zero_at(rest).ok_or(error(Reason::OpenText, start))?;
        if self.rules.array_keys == ArrayKeys::Strict {
            return Err(error(Reason::ArrayKey, start));
        }
        located(events.other_array_key(&rest[..len]), start)?;
        Ok(len + 1)
    }

    /// Returns the bytes before the next zero byte, and skips these bytes and the zero byte.
    #[inline(always)]
    fn cstring(&mut self) -> Result<&'a [u8], ReadError> {
        let rest = self.rest();
        let len = zero_at(rest).ok_or(error(Reason::OpenText, self.at))?;
        self.at += len + 1;
        Ok(&rest[..len])
    }

    /// Reads a value of the fixed size `N` in bytes, and returns its bytes.
    #[inline(always)]
    pub(super) fn fixed<const N: usize>(&mut self) -> Result<&'a [u8; N], ReadError> {
        let Some(value) = self.rest().first_chunk() else {
            return Err(error(Reason::Value, self.at));
        };
        self.at += N;
        Ok(value)
    }

    /// Reads a BSON string (a length prefix, the text and a NUL), and returns the text.
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
                    located(events.binary(subtype, bytes), start + LENGTH_BYTES)
                }
                _ => Err(error(Reason::OldBinary, start)),
            },
            SUBTYPE_OLD_UUID | SUBTYPE_UUID if length != UUID_BYTES => {
                Err(error(Reason::Uuid, start))
            }
            _ => located(events.binary(subtype, bytes), start),
        }
    }
}

/// Returns the position of the first zero byte; `None` if there is no zero byte. The search
/// examines eight bytes at a time, because keys are too short for larger vectors.
#[inline(always)]
pub(super) fn zero_at(rest: &[u8]) -> Option<usize> {
    const ONES: u64 = u64::MAX / 255;
    let (words, tail) = rest.as_chunks::<8>();
    for (i, word) in words.iter().enumerate() {
        let word = u64::from_le_bytes(*word);
        // The lowest bit that is set belongs to the first zero byte. Higher bits may belong to
        // bytes that are not zero.
        let zeros = word.wrapping_sub(ONES) & !word & (ONES << 7);
        if zeros != 0 {
            return Some(8 * i + zeros.trailing_zeros() as usize / 8);
        }
    }
    let following = tail.iter().position(|&byte| byte == 0)?;
    Some(8 * words.len() + following)
}

#[inline(always)]
pub(super) const fn error(reason: Reason, offset_bytes: usize) -> ReadError {
    ReadError {
        reason,
        offset_bytes,
    }
}

/// Converts an error that an event handler has returned to a [`ReadError`]. The handler counts
/// positions from `start`, so `start` is added to the position of the error.
#[inline(always)]
pub(super) fn located(result: EventResult, start: usize) -> Result<(), ReadError> {
    result.map_err(|refusal| refused(refusal, start))
}

#[cold]
pub(super) fn refused(refusal: Rejection, start: usize) -> ReadError {
    error(refusal.reason, start + refusal.at_bytes)
}
