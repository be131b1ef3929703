//! [`Segments`]: short byte strings that are encoded once and copied for each cell, such as the key
//! and the colon before each value of a JSON object.

use onecopy_text::Put;

/// A segment of at most this length in bytes is written by a copy of exactly [`SHORT_BYTES`] bytes.
/// A copy of fixed size is faster than a copy of variable size.
const SHORT_BYTES: usize = 32;

/// Byte strings (segments) that are stored in one vector and selected by their index.
#[derive(Clone, Debug)]
pub(crate) struct Segments {
    /// The bytes of all segments, followed by [`SHORT_BYTES`] bytes of padding. Because of the
    /// padding, a copy of fixed size never reads past the end of the vector.
    bytes: Vec<u8>,
    /// The start in `bytes` and the length of each segment.
    spans: Vec<(usize, usize)>,
    longest: usize,
}

impl Segments {
    /// Creates segments from `bytes`, which contains them without gaps. `lengths` are their lengths
    /// in bytes.
    pub(crate) fn new(mut bytes: Vec<u8>, lengths: impl IntoIterator<Item = usize>) -> Segments {
        let mut start = 0;
        let spans: Vec<(usize, usize)> = lengths
            .into_iter()
            .map(|len| {
                start += len;
                (start - len, len)
            })
            .collect();
        debug_assert_eq!(start, bytes.len());
        bytes.extend_from_slice(&[0; SHORT_BYTES]);
        let longest = spans.iter().map(|s| s.1).max().unwrap_or(0);
        Segments {
            bytes,
            spans,
            longest: longest.max(SHORT_BYTES),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.spans.len()
    }

    /// Returns the number of bytes of space that a window of a sink must have before a segment is
    /// written. The number is sufficient for any of the segments.
    #[inline]
    pub(crate) fn room_bytes(&self) -> usize {
        self.longest
    }

    /// Writes the segment with the index `index` (from 0), without its first `n_skipped` bytes, to
    /// the memory `window` of a sink. The window must have at least [`Segments::room_bytes`] free
    /// bytes.
    #[inline(always)]
    pub(crate) fn put_into<P: Put>(&self, index: usize, n_skipped: usize, window: &mut P) {
        let (start, len) = self.spans[index];
        let (from, len) = (&self.bytes[start + n_skipped..], len - n_skipped);
        match from.first_chunk::<SHORT_BYTES>() {
            Some(padded) if len <= SHORT_BYTES => window.put_short(padded, len),
            _ => window.put(&from[..len]),
        }
    }
}
