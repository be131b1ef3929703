//! The keys of an object, made once per statement and copied per cell.

use onecopy_text::{Policy, Put, Units, convert};

use crate::segments::Segments;

/// For each key of an object what stands before its value: `{"id":` for the first, `,"name":` for each other.
#[derive(Clone, Debug)]
pub struct KeySegments(Segments);

impl KeySegments {
    /// The segments for these keys, in their order. Whether they are distinct is for the caller to know.
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

    /// Bytes that a window needs for any one segment.
    #[inline]
    #[must_use]
    pub fn room_bytes(&self) -> usize {
        self.0.room_bytes()
    }

    /// Puts the segment of key `index` (from 0) into a window that has [`KeySegments::room_bytes`] left.
    ///
    /// # Panics
    /// Where it has not, or there is no such key.
    #[inline]
    pub fn put_into<P: Put>(&self, index: usize, window: &mut P) {
        self.0.put_into(index, 0, window);
    }

    /// As [`KeySegments::put_into`], where the comma in front is there already.
    ///
    /// # Panics
    /// As that.
    #[inline]
    pub fn put_behind_comma<P: Put>(&self, index: usize, window: &mut P) {
        self.0.put_into(index, usize::from(index > 0), window);
    }
}
