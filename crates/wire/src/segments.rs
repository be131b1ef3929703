//! Short texts that are made once and copied per cell: what stands before the values of an object or a document.

use onecopy_text::Put;

/// Segments up to this size are copied by one copy of fixed size.
const SHORT_BYTES: usize = 32;

/// Segments one behind the other, found by their number.
#[derive(Clone, Debug)]
pub(crate) struct Segments {
    /// All of them, and [`SHORT_BYTES`] bytes more, so that a copy of fixed size stays inside.
    bytes: Vec<u8>,
    /// Start and length in bytes.
    spans: Vec<(usize, usize)>,
    longest: usize,
}

impl Segments {
    /// Segments of these lengths, which stand one behind the other in `bytes`.
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

    /// Bytes that a window needs for any one segment.
    #[inline]
    pub(crate) fn room_bytes(&self) -> usize {
        self.longest
    }

    /// Puts segment `index` (from 0) without its first `n_skipped` bytes into a window that has [`Segments::room_bytes`] left.
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
