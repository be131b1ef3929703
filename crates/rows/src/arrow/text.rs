//! Texts and bytes of one column, one behind the other.

use std::collections::TryReserveError;

use onecopy_text::{ByteSink, Policy, Tally, Units, convert, find_malformed, is_utf8, planted};

use super::error::ValueError;
use crate::arrow_c::{Growing, Memory, Plain};

/// Where values end: in 32 or 64 bits.
pub(crate) trait Place: Plain + Copy {
    /// Of a number of bytes; `None` where it has no room in it.
    fn of(len_bytes: usize) -> Option<Self>;
    /// As a number of bytes.
    fn bytes(self) -> usize;
}

impl Place for i32 {
    #[inline]
    fn of(len_bytes: usize) -> Option<i32> {
        i32::try_from(len_bytes).ok()
    }
    #[inline]
    fn bytes(self) -> usize {
        self as usize
    }
}

impl Place for i64 {
    #[inline]
    fn of(len_bytes: usize) -> Option<i64> {
        i64::try_from(len_bytes).ok()
    }
    #[inline]
    fn bytes(self) -> usize {
        self as usize
    }
}

/// Values of different lengths under construction.
#[derive(Debug)]
pub(crate) struct Strings<P> {
    /// Where each value ends; the first place is 0.
    ends: Vec<P>,
    bytes: Growing,
    /// UTF-8 was taken as it came, and is looked at when the batch is full.
    is_unseen: bool,
}

impl<P: Place> Strings<P> {
    pub(crate) fn new() -> Strings<P> {
        Strings {
            ends: P::of(0).into_iter().collect(),
            bytes: Growing::default(),
            is_unseen: false,
        }
    }

    #[inline]
    fn end(&mut self) -> Result<(), ValueError> {
        let end = P::of(self.bytes.committed().len()).ok_or(ValueError::Long)?;
        self.ends.push(end);
        Ok(())
    }

    /// Memory for the ends of so many more.
    pub(crate) fn reserve(&mut self, n_values: usize) -> Result<(), TryReserveError> {
        self.ends.try_reserve(n_values)
    }

    /// A value of no bytes: what stands in a NULL's place.
    #[inline]
    pub(crate) fn put_nothing(&mut self) {
        let end = *self.ends.last().expect("the first place is always there");
        self.ends.push(end);
    }

    /// Bytes as they are.
    #[inline]
    pub(crate) fn put_bytes(&mut self, bytes: &[u8]) -> Result<usize, ValueError> {
        self.bytes.put(bytes).map_err(|_| ValueError::Long)?;
        self.end().map(|()| bytes.len())
    }

    /// Text as UTF-8: a copy where it is UTF-8, else one conversion.
    #[inline]
    pub(crate) fn put_text(
        &mut self,
        units: Units<'_>,
        policy: Policy,
        tally: &mut Tally,
    ) -> Result<usize, ValueError> {
        planted::extra_work_on_text(units);
        let before = self.bytes.committed().len();
        match units {
            Units::Utf8(text) if policy == Policy::Strict => {
                // Whether it is well-formed is asked once for all of a batch.
                self.bytes.put(text).map_err(|_| ValueError::Long)?;
                self.is_unseen = true;
                tally.copied(text.len());
            }
            units => {
                convert::to_utf8(units, policy, &mut self.bytes).map_err(|e| match e {
                    convert::ConvertError::Malformed(e) => ValueError::Malformed(e, counted(units)),
                    _ => ValueError::Long,
                })?;
                tally.encoded(units);
            }
        }
        self.end().map(|()| self.bytes.committed().len() - before)
    }

    /// The first value (from 0) that is no UTF-8, and why.
    pub(crate) fn malformed(&self) -> Option<(usize, ValueError)> {
        if !self.is_unseen {
            return None;
        }
        let bytes = self.bytes.committed();
        let inside = |end: &P| {
            let at = bytes.get(end.bytes());
            at.is_some_and(|b| b & 0xC0 == 0x80)
        };
        // Well-formed in one piece, and cut at no place inside of a character: then each of them is.
        if is_utf8(bytes) && !self.ends.iter().any(inside) {
            return None;
        }
        self.ends.windows(2).enumerate().find_map(|(row, ends)| {
            let text = Units::Utf8(&bytes[ends[0].bytes()..ends[1].bytes()]);
            find_malformed(text).map(|e| (row, ValueError::Malformed(e, counted(text))))
        })
    }

    /// The buffers, places first; starts anew.
    pub(crate) fn take(&mut self) -> Vec<Memory> {
        let done = std::mem::replace(self, Strings::new());
        // Where there is no memory for as many again, the next value finds that out.
        let _ = self.ends.try_reserve(done.ends.len());
        vec![Memory::of(done.ends), done.bytes.into_memory()]
    }

    /// The values so far.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let bytes = self.bytes.committed();
        self.ends
            .windows(2)
            .map(|ends| &bytes[ends[0].bytes()..ends[1].bytes()])
    }
}

/// What a position in malformed text counts.
fn counted(units: Units<'_>) -> &'static str {
    match units {
        Units::Latin1(_) | Units::Utf8(_) => "byte",
        Units::Utf16(_) | Units::Ucs2(_) => "16-bit unit",
        Units::Utf32(_) => "32-bit unit",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(texts: &[&[u8]]) -> Strings<i32> {
        let mut strings = Strings::new();
        for text in texts {
            let mut tally = Tally::default();
            let put = strings.put_text(Units::Utf8(text), Policy::Strict, &mut tally);
            assert_eq!(put, Ok(text.len()));
        }
        strings
    }

    #[test]
    fn text_is_looked_at_once_a_batch_and_its_fault_is_found() {
        assert_eq!(of(&[b"a", "東京".as_bytes(), b""]).malformed(), None);
        assert_eq!(of(&[b"a", b"\xFF"]).malformed().map(|m| m.0), Some(1));
        // Well-formed together, and neither of them alone.
        assert_eq!(
            of(&[b"ab", b"x\xC3", b"\xA9"]).malformed().map(|m| m.0),
            Some(1)
        );
    }
}
