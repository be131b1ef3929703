//! [`KeySegments`]: the keys of a JSON object, which are encoded once per SQL statement and copied
//! for each cell.

use onecopy_text::{Policy, Put, Units, convert};

use crate::segments::Segments;

/// The text before each value of an object: `{"id":` before the first value, and `,"name":` before
/// each other value.
#[derive(Clone, Debug)]
pub struct KeySegments(Segments);

impl KeySegments {
    /// Encodes `names` as keys in the given order. The names must be distinct.
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

    /// Returns `true` if the number of keys is 0.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the number of bytes of space that a window of a sink must have before a key is
    /// written. The number is sufficient for any of the keys with its quotes, comma, brace and
    /// colon.
    #[inline]
    #[must_use]
    pub fn room_bytes(&self) -> usize {
        self.0.room_bytes()
    }

    /// Writes the text before the value with the index `index` (from 0) to a window of a sink. The
    /// window must have [`KeySegments::room_bytes`] bytes of space.
    ///
    /// # Panics
    /// Panics if the window has less space, or if no key has this index.
    #[inline]
    pub fn put_into<P: Put>(&self, index: usize, window: &mut P) {
        self.0.put_into(index, 0, window);
    }

    /// Writes the same text as [`KeySegments::put_into`], but without the comma at its start, which
    /// the caller must already have written.
    ///
    /// # Panics
    /// Panics in the same cases as [`KeySegments::put_into`].
    #[inline]
    pub fn put_behind_comma<P: Put>(&self, index: usize, window: &mut P) {
        self.0.put_into(index, usize::from(index > 0), window);
    }
}
