//! [`BsonEvents`]: the event handler that receives the contents of a document from the reader.

use onecopy_text::{Units, find_malformed};

use super::error::Reason;

/// The reason why an event handler rejects a value, and the position in the value.
///
/// If the handler keeps an error of its own, the reason is [`Reason::Events`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rejection {
    /// The reason why the value is rejected.
    pub reason: Reason,
    /// The offset in bytes from the start of the value. For a text, the start is the first byte of
    /// the text, after its length.
    pub at_bytes: usize,
}

impl Rejection {
    /// The rejection by a handler that keeps the error itself; the reader then ends with
    /// [`Reason::Events`].
    pub const OWN: Rejection = Rejection::here(Reason::Events);

    /// Returns a rejection with this reason, at the start of the value.
    #[must_use]
    pub const fn here(reason: Reason) -> Rejection {
        Rejection {
            reason,
            at_bytes: 0,
        }
    }

    /// Adds `n_bytes` to the position of this rejection.
    #[must_use]
    pub const fn later_by(self, n_bytes: usize) -> Rejection {
        Rejection {
            reason: self.reason,
            at_bytes: self.at_bytes + n_bytes,
        }
    }
}

/// Returns the error for a text that is not valid UTF-8.
#[cold]
#[must_use]
pub fn malformed(text: &[u8]) -> Rejection {
    match find_malformed(Units::Utf8(text)) {
        Some(found) => Rejection {
            reason: Reason::Malformed(found.kind),
            at_bytes: found.at_units,
        },
        // The text was malformed when the handler examined it, so it has changed since.
        None => Rejection::here(Reason::Changed),
    }
}

/// The result of a method of an event handler: an error stops the reader.
pub type EventResult = Result<(), Rejection>;

/// Receives a document as events, in the order of its bytes.
///
/// The outermost document has the events [`BsonEvents::begin_document`], then for each element its
/// key and its value, then [`BsonEvents::end_document`]. By default, items of arrays have no key
/// event. A handler that needs their keys implements [`BsonEvents::array_key`]; a handler that
/// validates keys implements [`BsonEvents::other_array_key`], which receives each array key that is
/// not the index of its item. Texts and keys are borrowed from the buffer and **not validated**:
/// the handler converts and validates them in one pass, and rejects malformed text with
/// [`malformed`]. Before it emits an event, the reader validates lengths, terminators, tags,
/// booleans, and the lengths inside legacy binaries.
///
/// Short methods should be `#[inline(always)]`, because the reader's loop contains them. The loop is
/// compiled once for each set of CPU instructions (AVX-512, AVX2, SSE2).
pub trait BsonEvents {
    /// Receives a key of a document, or of the scope of a value of type code with scope.
    fn key(&mut self, key: &[u8]) -> EventResult;
    /// Receives the key of an array item, as it is written in the document.
    #[inline(always)]
    fn array_key(&mut self, _key: &[u8]) -> EventResult {
        Ok(())
    }
    /// Receives an array key that is not the index of its item, or that the reader could not
    /// compare with this index. A handler that rejects malformed keys of documents must reject
    /// malformed keys here too. The event [`BsonEvents::array_key`] follows.
    fn other_array_key(&mut self, key: &[u8]) -> EventResult;

    /// Called when a document begins: the outermost one, or one inside a document or array.
    fn begin_document(&mut self) -> EventResult;
    /// Called when the innermost document ends.
    fn end_document(&mut self) -> EventResult;
    /// Called when an array begins.
    fn begin_array(&mut self) -> EventResult;
    /// Called when the innermost array ends.
    fn end_array(&mut self) -> EventResult;
    /// Receives the code of a value of type code with scope. The elements of the scope follow.
    fn begin_code_with_scope(&mut self, code: &[u8]) -> EventResult;
    /// Called when the scope ends, and therefore the whole value of type code with scope.
    fn end_code_with_scope(&mut self) -> EventResult;
    /// Called for a document without elements.
    #[inline(always)]
    fn empty_document(&mut self) -> EventResult {
        self.begin_document()?;
        self.end_document()
    }
    /// Called for an array without items.
    #[inline(always)]
    fn empty_array(&mut self) -> EventResult {
        self.begin_array()?;
        self.end_array()
    }

    /// Receives a 64-bit float.
    fn double(&mut self, value: f64) -> EventResult;
    /// Receives a text, which may contain NUL.
    fn string(&mut self, text: &[u8]) -> EventResult;
    /// Receives a binary value: its subtype and its bytes, without the second length of the legacy
    /// subtype 2.
    fn binary(&mut self, subtype: u8, bytes: &[u8]) -> EventResult;
    /// Receives the value `undefined`, whose type is deprecated.
    fn undefined(&mut self) -> EventResult;
    /// Receives an object id.
    fn object_id(&mut self, id: &[u8; 12]) -> EventResult;
    /// Receives a boolean.
    fn boolean(&mut self, value: bool) -> EventResult;
    /// Receives a datetime, in milliseconds since 1970 in UTC.
    fn datetime(&mut self, milliseconds: i64) -> EventResult;
    /// Receives the value `null`.
    fn null(&mut self) -> EventResult;
    /// Receives a regular expression: its pattern and its options. The options begin one byte after
    /// the end of the pattern.
    fn regex(&mut self, pattern: &[u8], options: &[u8]) -> EventResult;
    /// Receives a DBPointer, a deprecated type: the name of a collection and an object id.
    fn db_pointer(&mut self, name: &[u8], id: &[u8; 12]) -> EventResult;
    /// Receives JavaScript code.
    fn code(&mut self, text: &[u8]) -> EventResult;
    /// Receives a symbol, a deprecated type: a text.
    fn symbol(&mut self, text: &[u8]) -> EventResult;
    /// Receives a 32-bit integer.
    fn int32(&mut self, value: i32) -> EventResult;
    /// Receives a MongoDB timestamp.
    fn timestamp(&mut self, seconds: u32, increment: u32) -> EventResult;
    /// Receives a 64-bit integer.
    fn int64(&mut self, value: i64) -> EventResult;
    /// Receives the bytes of a decimal of 128 bits.
    fn decimal128(&mut self, bytes: &[u8; 16]) -> EventResult;
    /// Receives the value MinKey, which sorts before all other values.
    fn min_key(&mut self) -> EventResult;
    /// Receives the value MaxKey, which sorts after all other values.
    fn max_key(&mut self) -> EventResult;

    /// Returns `true` to receive the embedded document, which starts at offset `at`, as raw bytes.
    /// The reader then emits no events for its contents and does not validate them.
    #[inline(always)]
    fn takes_raw(&mut self, _document: &[u8], _at: usize) -> Result<bool, Rejection> {
        Ok(false)
    }

    /// Returns the key that the handler expects next; `None` if it expects no particular key. If
    /// the document has this key, the reader calls `likely_key` instead of `key`.
    #[inline(always)]
    fn guess(&self) -> Option<&[u8]> {
        None
    }
    /// Called instead of [`BsonEvents::key`] if the next key is the one that [`BsonEvents::guess`]
    /// returned.
    fn likely_key(&mut self) -> EventResult {
        unreachable!("no key was guessed")
    }
}
