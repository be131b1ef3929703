//! [`ranges`]: the evaluation of a `Range` field (RFC 9110, section 14) for a representation of
//! known length.

use super::field::trim;

/// The largest number of ranges in one request. A response with many small ranges costs more than a
/// response with the complete file (RFC 9110, section 17.15).
pub const MOST_RANGES: usize = 16;

/// A range of bytes in a representation, which contains at least one byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ByteRange {
    /// The index of the first byte of the range in the representation.
    pub first: u64,
    /// The index of the last byte of the range; this byte is included.
    pub last: u64,
}

impl ByteRange {
    /// Returns the number of bytes in the range.
    #[must_use]
    pub fn len_bytes(&self) -> u64 {
        self.last - self.first + 1
    }

    fn overlaps(&self, other: &ByteRange) -> bool {
        self.first <= other.last && other.first <= self.last
    }

    /// Returns `true` if the two ranges overlap or are adjacent. Such ranges can be merged.
    fn joins(&self, other: &ByteRange) -> bool {
        self.first <= other.last.saturating_add(1) && other.first <= self.last.saturating_add(1)
    }

    fn with(&self, other: &ByteRange) -> ByteRange {
        ByteRange {
            first: self.first.min(other.first),
            last: self.last.max(other.last),
        }
    }
}

/// The contents of the response to a request with a `Range` field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ranges {
    /// The response contains the complete representation (status 200), because the `Range` field
    /// must be ignored. The reason is that its range unit is not `bytes`, that the field is
    /// syntactically invalid, or that it requests the last bytes of an empty representation.
    Whole,
    /// The response contains these parts of the representation (status 206), in the requested
    /// order. Parts that overlap or are adjacent are merged, and the merged part is at the position
    /// of the first of them.
    Parts(Vec<ByteRange>),
    /// The response contains no part of the representation (status 416). The reason is that none of
    /// the requested bytes exists, that there are more than [`MOST_RANGES`] ranges, or that more
    /// than two ranges overlap.
    Refused,
}

/// A range in one of the three notations of the `Range` field: `first-`, `first-last` and `-n` (the
/// last `n` bytes).
#[derive(Clone, Copy)]
enum Spec {
    From(u64),
    Between(u64, u64),
    Last(u64),
}

/// Evaluates the `Range` field `value` for a representation of `len_bytes` bytes. The positions in
/// the field may have any number of digits.
///
/// A syntactically invalid field is ignored (RFC 9110, section 14.2), so that the response contains
/// the complete representation.
#[must_use]
pub fn ranges(value: &[u8], len_bytes: u64) -> Ranges {
    let Some(specs) = specs(value) else {
        return Ranges::Whole;
    };
    let mut requested = [None; MOST_RANGES];
    let mut n_asked = 0;
    let mut is_suffix_of_nothing = false;
    for spec in specs.split(|b| *b == b',').map(trim) {
        if spec.is_empty() {
            continue; // empty element, RFC 9110, section 5.6.1.2
        }
        let Some(spec) = self::spec(spec) else {
            return Ranges::Whole;
        };
        if n_asked < MOST_RANGES {
            requested[n_asked] = resolved(spec, len_bytes);
        }
        is_suffix_of_nothing |= len_bytes == 0 && matches!(spec, Spec::Last(1..));
        n_asked += 1;
    }
    match n_asked {
        0 => Ranges::Whole,
        n if n > MOST_RANGES => Ranges::Refused,
        // RFC 9110, section 14.1.2, calls such a range satisfiable, but no `Content-Range` field
        // can describe an empty range.
        _ if is_suffix_of_nothing => Ranges::Whole,
        _ => joined(requested.into_iter().flatten()),
    }
}

/// Returns the list of ranges, which is the text after `bytes=`. Returns `None` if the field has
/// another range unit.
fn specs(value: &[u8]) -> Option<&[u8]> {
    let at = value.iter().position(|b| *b == b'=')?;
    value[..at]
        .eq_ignore_ascii_case(b"bytes")
        .then_some(&value[at + 1..])
}

fn spec(text: &[u8]) -> Option<Spec> {
    let at = text.iter().position(|b| *b == b'-')?;
    match (&text[..at], &text[at + 1..]) {
        (b"", last) => number(last).map(Spec::Last),
        (first, b"") => number(first).map(Spec::From),
        (first, last) => {
            let (first, last) = (number(first)?, number(last)?);
            (first <= last).then_some(Spec::Between(first, last))
        }
    }
}

/// Returns the value of the decimal digits in `digits`, or the largest `u64` if the value does not
/// fit into 64 bits. Returns `None` if `digits` is empty or contains another character.
fn number(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    Some(digits.iter().fold(0_u64, |n, d| {
        n.saturating_mul(10).saturating_add(u64::from(d - b'0'))
    }))
}

/// Returns the bytes of the requested range that exist in the representation. Returns `None` if
/// none of them exists.
fn resolved(spec: Spec, len_bytes: u64) -> Option<ByteRange> {
    let end = len_bytes.checked_sub(1)?;
    let (first, last) = match spec {
        Spec::From(first) => (first, end),
        Spec::Between(first, last) => (first, last.min(end)),
        Spec::Last(0) => return None,
        Spec::Last(n) => (len_bytes.saturating_sub(n), end),
    };
    (first <= end).then_some(ByteRange { first, last })
}

/// Merges the requested ranges that overlap or are adjacent. Returns [`Ranges::Refused`] if
/// `requested` is empty, or if more than two of the requested ranges overlap others.
fn joined(requested: impl Iterator<Item = ByteRange> + Clone) -> Ranges {
    let n_overlapping = requested
        .clone()
        .enumerate()
        .filter(|(i, a)| {
            requested
                .clone()
                .enumerate()
                .any(|(j, b)| *i != j && a.overlaps(&b))
        })
        .count();
    if n_overlapping > 2 {
        return Ranges::Refused;
    }
    let mut parts: Vec<ByteRange> = Vec::new();
    for mut range in requested {
        let mut place = parts.len();
        // A merged range may in turn overlap another part or be adjacent to it.
        while let Some(at) = parts.iter().position(|part| part.joins(&range)) {
            range = range.with(&parts.remove(at));
            place = place.min(at);
        }
        parts.insert(place.min(parts.len()), range);
    }
    match parts.is_empty() {
        true => Ranges::Refused,
        false => Ranges::Parts(parts),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(value: &str, len_bytes: u64) -> Vec<(u64, u64)> {
        match ranges(value.as_bytes(), len_bytes) {
            Ranges::Parts(parts) => parts.iter().map(|r| (r.first, r.last)).collect(),
            other => panic!("{value}: {other:?}"),
        }
    }

    #[test]
    fn one_range_is_cut_at_the_end() {
        assert_eq!(parts("bytes=0-0", 10), [(0, 0)]);
        assert_eq!(parts("bytes=2-5", 10), [(2, 5)]);
        assert_eq!(parts("bytes=2-", 10), [(2, 9)]);
        assert_eq!(parts("bytes=2-99", 10), [(2, 9)]);
        assert_eq!(parts("bytes=-3", 10), [(7, 9)]);
        assert_eq!(parts("bytes=-99", 10), [(0, 9)]);
        assert_eq!(parts("BYTES=007-0008", 10), [(7, 8)]);
        let huge = "9".repeat(400);
        assert_eq!(parts(&format!("bytes=3-{huge}"), 10), [(3, 9)]);
        assert_eq!(parts(&format!("bytes=-{huge}"), 10), [(0, 9)]);
        assert_eq!(parts("bytes=1-", u64::MAX), [(1, u64::MAX - 1)]);
    }

    #[test]
    fn several_stay_in_their_order_and_join_where_they_touch() {
        assert_eq!(parts("bytes=6-7, 0-1 ,\t4-4", 10), [(6, 7), (0, 1), (4, 4)]);
        assert_eq!(parts("bytes=,0-1,,5-6,", 10), [(0, 1), (5, 6)]);
        assert_eq!(parts("bytes=0-3,2-5", 10), [(0, 5)]);
        assert_eq!(parts("bytes=8-9,0-1,2-3,4-7", 10), [(0, 9)]);
        assert_eq!(parts("bytes=0-1,20-30,-1", 10), [(0, 1), (9, 9)]);
        assert_eq!(parts("bytes=0-9,3-4", 10), [(0, 9)]);
    }

    #[test]
    fn what_is_not_there_is_refused() {
        for value in [
            "bytes=10-",
            "bytes=10-20",
            "bytes=-0",
            "bytes=10-,-0,99-100",
        ] {
            assert_eq!(ranges(value.as_bytes(), 10), Ranges::Refused, "{value}");
        }
        let huge = format!("bytes={}-", "9".repeat(400));
        assert_eq!(ranges(huge.as_bytes(), 10), Ranges::Refused);
        assert_eq!(ranges(b"bytes=0-", 0), Ranges::Refused);
        assert_eq!(ranges(b"bytes=-0", 0), Ranges::Refused);
        assert_eq!(ranges(b"bytes=-1", 0), Ranges::Whole);
    }

    #[test]
    fn what_is_no_range_set_is_ignored() {
        for value in [
            "",
            "bytes",
            "bytes=",
            "bytes=,",
            "bytes=-",
            "bytes=--1",
            "bytes=1",
            "bytes=5-2",
            "bytes=0-1;2-3",
            "bytes=0 -1",
            "bytes= 0- 1",
            "bytes =0-1",
            "bytes=0-1,x",
            "bytes=0x0-1",
            "bytes=+1-2",
            "bytes=0-1-2",
            "bits=0-1",
            "lines=1-2",
            "bytes:0-1",
            "bytes=0-1\u{b}",
            "bytes=\u{661}-2",
            "bytes=1.0-2",
        ] {
            assert_eq!(ranges(value.as_bytes(), 10), Ranges::Whole, "{value:?}");
        }
    }

    #[test]
    fn too_many_and_more_than_two_overlapping_are_refused() {
        let many = |n: u64| {
            let each: Vec<String> = (0..n).map(|k| format!("{}-{}", 2 * k, 2 * k)).collect();
            format!("bytes={}", each.join(","))
        };
        assert_eq!(parts(&many(16), 100).len(), 16);
        assert_eq!(ranges(many(17).as_bytes(), 100), Ranges::Refused);
        assert_eq!(ranges(many(2000).as_bytes(), 100), Ranges::Refused);
        assert_eq!(ranges(b"bytes=0-,0-,0-", 100), Ranges::Refused);
        assert_eq!(ranges(b"bytes=0-3,2-5,4-7", 100), Ranges::Refused);
    }
}
