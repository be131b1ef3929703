//! What a document is told to.

use onecopy_text::{Units, find_malformed};

use super::error::Reason;

/// Why a value, or anything else, was not taken: the reason, and how many bytes behind the start of what was told.
///
/// An error of the reader's own is kept by it, and told as [`Reason::Events`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Why.
    pub reason: Reason,
    /// How many bytes behind the start of what was told (of a text: its first byte, not its length).
    pub at_bytes: usize,
}

impl Refusal {
    /// An error of the reader's own.
    pub const OWN: Refusal = Refusal::here(Reason::Events);

    /// One at the start of what was told.
    #[must_use]
    pub const fn here(reason: Reason) -> Refusal {
        Refusal {
            reason,
            at_bytes: 0,
        }
    }

    /// The same, `n_bytes` later.
    #[must_use]
    pub const fn later_by(self, n_bytes: usize) -> Refusal {
        Refusal {
            reason: self.reason,
            at_bytes: self.at_bytes + n_bytes,
        }
    }
}

/// What is wrong with a text that was found to be no UTF-8.
#[cold]
#[must_use]
pub fn malformed(text: &[u8]) -> Refusal {
    match find_malformed(Units::Utf8(text)) {
        Some(found) => Refusal {
            reason: Reason::Malformed(found.kind),
            at_bytes: found.at_units,
        },
        // It was, a moment ago.
        None => Refusal::here(Reason::Changed),
    }
}

/// What became of an event.
pub type Told = Result<(), Refusal>;

/// What a document is told to, part by part, in the order of its bytes.
///
/// The outermost document is told as any: [`BsonEvents::begin_document`], then for each element its key and its value, then
/// [`BsonEvents::end_document`]. Items of arrays have no key; [`BsonEvents::array_key`] is for who wants it all the same, and
/// [`BsonEvents::other_array_key`] for the check of those that are not digits.
/// Texts and keys are borrowed from the buffer and **not validated**: who takes one does both in one go, and refuses what is
/// malformed by [`malformed`]. Lengths, terminators, tags, booleans, and the lengths inside of old binaries are checked before
/// anything is told.
///
/// All functions should be `#[inline(always)]` where they are short: they are compiled into the reader's loop, for the
/// kernels that run.
pub trait BsonEvents {
    /// A key of a document, or of the scope of code.
    fn key(&mut self, key: &[u8]) -> Told;
    /// A key of an array, as it stands there.
    #[inline(always)]
    fn array_key(&mut self, _key: &[u8]) -> Told {
        Ok(())
    }
    /// A key of an array that is not the index of its item, or not known to be. It is text as any other key: an implementor
    /// that refuses malformed keys of documents refuses malformed ones here. [`BsonEvents::array_key`] follows.
    fn other_array_key(&mut self, key: &[u8]) -> Told;

    /// A document begins.
    fn begin_document(&mut self) -> Told;
    /// It ends.
    fn end_document(&mut self) -> Told;
    /// An array begins.
    fn begin_array(&mut self) -> Told;
    /// It ends.
    fn end_array(&mut self) -> Told;
    /// Code with a scope: its code. What comes then are the elements of the scope.
    fn begin_code_with_scope(&mut self, code: &[u8]) -> Told;
    /// The scope ends, and with it the value.
    fn end_code_with_scope(&mut self) -> Told;
    /// A document without elements.
    #[inline(always)]
    fn empty_document(&mut self) -> Told {
        self.begin_document()?;
        self.end_document()
    }
    /// An array without items.
    #[inline(always)]
    fn empty_array(&mut self) -> Told {
        self.begin_array()?;
        self.end_array()
    }

    /// A 64-bit float.
    fn double(&mut self, value: f64) -> Told;
    /// Text. It may hold NUL.
    fn string(&mut self, text: &[u8]) -> Told;
    /// Bytes of a subtype: of the old one (2) without their second length.
    fn binary(&mut self, subtype: u8, bytes: &[u8]) -> Told;
    /// Nothing; deprecated.
    fn undefined(&mut self) -> Told;
    /// An object id.
    fn object_id(&mut self, id: &[u8; 12]) -> Told;
    /// `false` or `true`.
    fn boolean(&mut self, value: bool) -> Told;
    /// Milliseconds since 1970 in UTC.
    fn datetime(&mut self, milliseconds: i64) -> Told;
    /// Nothing.
    fn null(&mut self) -> Told;
    /// A pattern and its options. The options begin one byte behind the end of the pattern.
    fn regex(&mut self, pattern: &[u8], options: &[u8]) -> Told;
    /// The name of a collection and an object id; deprecated.
    fn db_pointer(&mut self, name: &[u8], id: &[u8; 12]) -> Told;
    /// JavaScript.
    fn code(&mut self, text: &[u8]) -> Told;
    /// Text; deprecated.
    fn symbol(&mut self, text: &[u8]) -> Told;
    /// A 32-bit integer.
    fn int32(&mut self, value: i32) -> Told;
    /// A timestamp of MongoDB's own.
    fn timestamp(&mut self, seconds: u32, increment: u32) -> Told;
    /// A 64-bit integer.
    fn int64(&mut self, value: i64) -> Told;
    /// The bytes of a decimal.
    fn decimal128(&mut self, bytes: &[u8; 16]) -> Told;
    /// Less than all other values.
    fn min_key(&mut self) -> Told;
    /// More than all other values.
    fn max_key(&mut self) -> Told;

    /// Whether a document inside of another, `at` bytes behind the start, is taken as it stands: nothing of it is told then, and
    /// nothing inside of it was looked at.
    #[inline(always)]
    fn takes_raw(&mut self, _document: &[u8], _at: usize) -> Result<bool, Refusal> {
        Ok(false)
    }

    /// A key that is likely to come next, where one is known. Where the document has it, `likely_key` is told, not `key`.
    #[inline(always)]
    fn guess(&self) -> Option<&[u8]> {
        None
    }
    /// The key of [`BsonEvents::guess`].
    fn likely_key(&mut self) -> Told {
        unreachable!("no key was guessed")
    }
}
