//! [`KeySegments`]: the keys of a document, which are encoded once per SQL statement and copied for
//! each cell.

use onecopy_text::Put;

use super::tag::Tag;
use crate::error::WriteError;
use crate::segments::Segments;

/// The encoded keys of a document. An encoded key is the name and a NUL, which BSON stores after
/// the tag and before the value.
#[derive(Clone, Debug)]
pub struct KeySegments(Segments);

impl KeySegments {
    /// Encodes `names` as keys in the given order. The names must be distinct.
    ///
    /// # Errors
    /// Returns [`WriteError::NulInKey`] if a key contains NUL, with the index of this key (from 0).
    pub fn new<'n>(
        names: impl IntoIterator<Item = &'n str>,
    ) -> Result<KeySegments, (usize, WriteError)> {
        let (mut bytes, mut lengths) = (Vec::new(), Vec::new());
        for name in names {
            if name.contains('\0') {
                return Err((lengths.len(), WriteError::NulInKey));
            }
            bytes.extend_from_slice(name.as_bytes());
            bytes.push(0);
            lengths.push(name.len() + 1);
        }
        Ok(KeySegments(Segments::new(bytes, lengths)))
    }

    /// Returns the number of keys.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns `true` if this list of keys is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the number of free bytes that a sink must have when a tag and one of the keys are
    /// written to it. It is sufficient for each of the keys.
    #[inline]
    #[must_use]
    pub fn room_bytes(&self) -> usize {
        1 + self.0.room_bytes()
    }

    /// Writes `tag` and the key with the index `index` (from 0) to a window of a sink. The window
    /// must have [`KeySegments::room_bytes`] bytes of space.
    ///
    /// # Panics
    /// Panics if the window has less space, or if no key has this index.
    #[inline]
    pub fn put_into<P: Put>(&self, index: usize, tag: Tag, window: &mut P) {
        window.put_byte(tag.byte());
        self.0.put_into(index, 0, window);
    }
}
