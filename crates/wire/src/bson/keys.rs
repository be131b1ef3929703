//! The keys of a document, made once per statement and copied per cell.

use onecopy_text::Put;

use super::tag::Tag;
use crate::error::WriteError;
use crate::segments::Segments;

/// For each key of a document what stands between its tag and its value.
#[derive(Clone, Debug)]
pub struct KeySegments(Segments);

impl KeySegments {
    /// The segments for these keys, in their order. Whether they are distinct is for the caller to know.
    ///
    /// # Errors
    /// The index (from 0) of a key that holds NUL, and [`WriteError::NulInKey`].
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

    /// Number of keys.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes that a window needs for a tag and any one key.
    #[inline]
    #[must_use]
    pub fn room_bytes(&self) -> usize {
        1 + self.0.room_bytes()
    }

    /// Puts `tag` and key `index` (from 0) into a window that has [`KeySegments::room_bytes`] left.
    ///
    /// # Panics
    /// Where it has not, or there is no such key.
    #[inline]
    pub fn put_into<P: Put>(&self, index: usize, tag: Tag, window: &mut P) {
        window.put_byte(tag.byte());
        self.0.put_into(index, 0, window);
    }
}
