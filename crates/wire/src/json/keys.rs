//! The keys of an object, made once per statement and copied per cell.

use onecopy_text::{Policy, Put, Units, convert};

/// Segments up to this size are copied by one copy of fixed size.
const SHORT_SEGMENT: usize = 32;

/// For each key of an object what stands before its value: `{"id":` for the first, `,"name":` for each other.
#[derive(Clone, Debug)]
pub struct KeySegments {
    /// All segments one behind the other, and [`SHORT_SEGMENT`] bytes more, so that a copy of fixed size stays inside.
    bytes: Vec<u8>,
    /// Start and length in bytes.
    spans: Vec<(usize, usize)>,
    longest: usize,
}

impl KeySegments {
    /// The segments for these keys, in their order. Whether they are distinct is for the caller to know.
    #[must_use]
    pub fn new<'n>(names: impl IntoIterator<Item = &'n str>) -> KeySegments {
        let mut bytes = Vec::new();
        let mut spans = Vec::new();
        for name in names {
            let start = bytes.len();
            bytes.extend_from_slice(if spans.is_empty() { b"{\"" } else { b",\"" });
            convert::to_json_body(Units::Utf8(name.as_bytes()), Policy::Replace, &mut bytes)
                .expect("a str is UTF-8, and a Vec grows");
            bytes.extend_from_slice(b"\":");
            spans.push((start, bytes.len() - start));
        }
        bytes.extend_from_slice(&[0; SHORT_SEGMENT]);
        let longest = spans.iter().map(|s| s.1).max().unwrap_or(0);
        KeySegments {
            bytes,
            spans,
            longest: longest.max(SHORT_SEGMENT),
        }
    }

    /// Number of keys.
    #[must_use]
    pub fn len(&self) -> usize {
        self.spans.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// Bytes that a window needs for any one segment.
    #[inline]
    #[must_use]
    pub fn room_bytes(&self) -> usize {
        self.longest
    }

    /// Puts the segment of key `index` (from 0) into a window that has [`KeySegments::room_bytes`] left.
    ///
    /// # Panics
    /// Where it has not, or there is no such key.
    #[inline]
    pub fn put_into<P: Put>(&self, index: usize, window: &mut P) {
        let (start, len) = self.spans[index];
        self.put_span(start, len, window);
    }

    /// As [`KeySegments::put_into`], where the comma in front is there already.
    ///
    /// # Panics
    /// As that.
    #[inline]
    pub fn put_behind_comma<P: Put>(&self, index: usize, window: &mut P) {
        let (start, len) = self.spans[index];
        let comma = usize::from(index > 0);
        self.put_span(start + comma, len - comma, window);
    }

    #[inline(always)]
    fn put_span<P: Put>(&self, start: usize, len: usize, window: &mut P) {
        let from = &self.bytes[start..];
        match from.first_chunk::<SHORT_SEGMENT>() {
            Some(padded) if len <= SHORT_SEGMENT => window.put_short(padded, len),
            _ => window.put(&from[..len]),
        }
    }
}
