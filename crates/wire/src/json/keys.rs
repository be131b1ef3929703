//! [`KeySegments`]: the keys of an object, encoded once per statement and copied for each cell.

use onecopy_text::{Policy, Put, Units, convert};

use crate::segments::Segments;

/// For each key, the bytes that precede its value: `{"id":` for the first key, `,"name":` for each
/// other key.
#[derive(Clone, Debug)]
pub struct KeySegments(Segments);

impl KeySegments {
    /// Encodes the keys in the given order. The keys must be distinct.
    #[must_use]
    pub fn new<'n>(names: impl IntoIterator<Item = &'n str>) -> KeySegments {
        let (mut bytes, mut lengths) = (Vec::new(), Vec::new());
        for name in names {
            let start = bytes.len();
            bytes.extend_from_slice(if lengths.is_empty() { b"{\"" } else { b",\"" });
            convert::to_json_body(Units::Utf8(name.as_bytes()), Policy::Replace, &mut bytes)
                .expect("a str is UTF-8, and a Vec grows");
            bytes.extend_from_slice(b"\":");
            lengths.push(bytes.len() - start);
        }
        KeySegments(Segments::new(bytes, lengths))
    }

    /// Returns the number of keys.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns `true` if there are no keys.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the number of bytes of space that a window needs for any of the keys with its
    /// punctuation.
    #[inline]
    #[must_use]
    pub fn room_bytes(&self) -> usize {
        self.0.room_bytes()
    }

    /// Writes the segment of the key with this index (from 0) to a window, which must have
    /// [`KeySegments::room_bytes`] bytes of space.
    ///
    /// # Panics
    /// If the window has fewer bytes left, or there is no such key.
    #[inline]
    pub fn put_into<P: Put>(&self, index: usize, window: &mut P) {
        self.0.put_into(index, 0, window);
    }

    /// Writes the segment of a key without the comma before the key, which the caller must have
    /// written.
    ///
    /// # Panics
    /// As [`KeySegments::put_into`].
    #[inline]
    pub fn put_behind_comma<P: Put>(&self, index: usize, window: &mut P) {
        self.0.put_into(index, usize::from(index > 0), window);
    }
}
