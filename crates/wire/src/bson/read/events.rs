//! [`BsonEvents`]: the trait of event handlers, which receive the contents of a document from the
//! reader.

use onecopy_text::{Units, find_malformed};

use super::error::Reason;

/// The reason why an event handler rejects a value, and the position of the error in the value.
///
/// If the handler stores its own error, the reason is [`Reason::Events`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rejection {
    /// The reason why the value is rejected.
    pub reason: Reason,
    /// The offset of the error in bytes from the start of the value. The start of a text is its
    /// first byte after the length prefix.
    pub at_bytes: usize,
}

impl Rejection {
    /// The rejection that a handler returns if it has stored its own error. The error of the reader
    /// then has the reason [`Reason::Events`].
    pub const OWN: Rejection = Rejection::here(Reason::Events);

    /// Creates a rejection for `reason`, with the start of the value as its position.
    #[must_use]
    pub const fn here(reason: Reason) -> Rejection {
        Rejection {
            reason,
            at_bytes: 0,
        }
    }

    /// Returns this rejection with `n_bytes` added to the position of the error.
    #[must_use]
    pub const fn later_by(self, n_bytes: usize) -> Rejection {
        Rejection {
            reason: self.reason,
            at_bytes: self.at_bytes + n_bytes,
        }
    }
}

/// Returns the error for `text`, which is not valid UTF-8.
#[cold]
#[must_use]
pub fn malformed(text: &[u8]) -> Rejection {
    match find_malformed(Units::Utf8(text)) {
        Some(found) => Rejection {
            reason: Reason::Malformed(found.kind),
            at_bytes: found.at_units,
        },
        // The text was malformed when the handler examined it, so another thread must have changed
        // it.
        None => Rejection::here(Reason::Changed),
    }
}

/// The result of an event handler method. If it is an error, the reader stops.
pub type EventResult = Result<(), Rejection>;

/// An event handler, which receives a document as events in the order of its bytes.
///
/// The outermost document causes the event [`BsonEvents::begin_document`], then for each element an
/// event for its key and one for its value, and then [`BsonEvents::end_document`]. A handler that
/// needs the keys of array items implements [`BsonEvents::array_key`], which ignores them by
/// default. [`BsonEvents::other_array_key`] receives each array key that is not the index of its
/// item.
///
/// Texts and keys are borrowed from the buffer and **not validated**. The handler converts and
/// validates them in one pass, and rejects malformed text with [`malformed`]. Before an event, the
/// reader has validated lengths, terminators, tags, booleans, and the inner lengths of legacy
/// binary values.
///
/// Short methods should be `#[inline(always)]`, because the reader's loop contains them. The
/// compiler generates this loop once for each set of CPU instructions (AVX-512, AVX2, SSE2).
pub trait BsonEvents {
    /// Receives the key of an element in a document, or in the scope of a value of type "code with
    /// scope".
    fn key(&mut self, key: &[u8]) -> EventResult;
    /// Receives the key of an array item, as the document contains it.
    #[inline(always)]
    fn array_key(&mut self, _key: &[u8]) -> EventResult {
        Ok(())
    }
    /// Receives an array key that is not the index of its item, or that the reader could not
    /// compare with this index. A handler that rejects malformed keys in [`BsonEvents::key`] must
    /// also reject them here. The event [`BsonEvents::array_key`] follows.
    fn other_array_key(&mut self, key: &[u8]) -> EventResult;

    /// Called at the start of each document: the outermost one, or one inside a document or array.
    fn begin_document(&mut self) -> EventResult;
    /// Called at the end of the innermost open document.
    fn end_document(&mut self) -> EventResult;
    /// Called at the start of an array.
    fn begin_array(&mut self) -> EventResult;
    /// Called at the end of the innermost open array.
    fn end_array(&mut self) -> EventResult;
    /// Receives the code of a value of type "code with scope". The elements of the scope follow.
    fn begin_code_with_scope(&mut self, code: &[u8]) -> EventResult;
    /// Called at the end of the scope of a value of type "code with scope". The value ends there
    /// too.
    fn end_code_with_scope(&mut self) -> EventResult;
    /// Called for a document without elements, instead of the events for its start and end.
    #[inline(always)]
    fn empty_document(&mut self) -> EventResult {
        self.begin_document()?;
        self.end_document()
    }
    /// Called for an array without items, instead of the events for its start and end.
    #[inline(always)]
    fn empty_array(&mut self) -> EventResult {
        self.begin_array()?;
        self.end_array()
    }

    /// Receives a 64-bit float.
    fn double(&mut self, value: f64) -> EventResult;
    /// Receives a string as UTF-8 bytes without their NUL terminator. The string itself may contain
    /// NUL.
    fn string(&mut self, text: &[u8]) -> EventResult;
    /// Receives a binary value: its subtype and its bytes. The inner length of the legacy subtype 2
    /// is not part of the bytes.
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
    /// Receives a regular expression: its pattern and its options. In the document, a NUL byte
    /// separates the pattern from the options.
    fn regex(&mut self, pattern: &[u8], options: &[u8]) -> EventResult;
    /// Receives a DBPointer, a deprecated type: the name of a collection and an object id.
    fn db_pointer(&mut self, name: &[u8], id: &[u8; 12]) -> EventResult;
    /// Receives JavaScript code.
    fn code(&mut self, text: &[u8]) -> EventResult;
    /// Receives a symbol, which is a string of a deprecated type.
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

    /// Receives `_document`, the embedded document at offset `_at`, as raw bytes. If the handler
    /// returns `true`, the reader emits no events for the contents of the document, and does not
    /// validate them.
    #[inline(always)]
    fn takes_raw(&mut self, _document: &[u8], _at: usize) -> Result<bool, Rejection> {
        Ok(false)
    }

    /// Returns the key that the handler expects next, or `None` if it expects no particular key. If
    /// the document has this key, the reader calls `likely_key` instead of `key`, which saves a
    /// search for the key.
    #[inline(always)]
    fn guess(&self) -> Option<&[u8]> {
        None
    }
    /// Called for the next key if it is equal to the key that [`BsonEvents::guess`] returned.
    /// [`BsonEvents::key`] is then not called.
    fn likely_key(&mut self) -> EventResult {
        unreachable!("no key was guessed")
    }
}
