//! `Strings`: the offsets and bytes of a column of text or binary values under construction.

use std::collections::TryReserveError;

use onecopy_text::{ByteSink, Policy, Tally, Units, convert, find_malformed, is_utf8, planted};

use super::error::ValueError;
use crate::arrow_c::{Growing, Memory, Plain};

/// The integer type of the offsets of a text or binary column: `i32` or `i64`.
pub(crate) trait ArrowOffset: Plain + Copy {
    /// Converts a number of bytes to an offset; `None` if the number does not fit in the type.
    fn of(len_bytes: usize) -> Option<Self>;
    fn bytes(self) -> usize;
}

impl ArrowOffset for i32 {
    #[inline]
    fn of(len_bytes: usize) -> Option<i32> {
        i32::try_from(len_bytes).ok()
    }
    #[inline]
    fn bytes(self) -> usize {
        self as usize
    }
}

impl ArrowOffset for i64 {
    #[inline]
    fn of(len_bytes: usize) -> Option<i64> {
        i64::try_from(len_bytes).ok()
    }
    #[inline]
    fn bytes(self) -> usize {
        self as usize
    }
}

/// A column of texts or binary values under construction. `P` is the type of its offsets.
#[derive(Debug)]
pub(crate) struct Strings<P> {
    /// The offsets of the values in `bytes`: 0, then the end of each value.
    ends: Vec<P>,
    bytes: Growing,
    /// `true` if the column contains UTF-8 text that was copied without validation. It is validated
    /// when the batch is full.
    is_unseen: bool,
}

impl<P: ArrowOffset> Strings<P> {
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

    /// Reserves memory for the offsets of `n_values` more values.
    pub(crate) fn reserve(&mut self, n_values: usize) -> Result<(), TryReserveError> {
        self.ends.try_reserve(n_values)
    }

    /// Appends an empty value, as the entry of a NULL.
    #[inline]
    pub(crate) fn put_nothing(&mut self) {
        let end = *self.ends.last().expect("the first place is always there");
        self.ends.push(end);
    }

    /// Appends a binary value unchanged; returns its size in bytes.
    #[inline]
    pub(crate) fn put_bytes(&mut self, bytes: &[u8]) -> Result<usize, ValueError> {
        self.bytes.put(bytes).map_err(|_| ValueError::Long)?;
        self.end().map(|()| bytes.len())
    }

    /// Appends text as UTF-8. UTF-8 is copied once; text in another encoding is converted once.
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
            Units::Utf8(text) if policy != Policy::Replace => {
                // The UTF-8 of all values is validated once, when the batch is full.
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

    /// Returns the index (from 0) of the first value that is not valid UTF-8, and the error; `None`
    /// if all values are valid.
    pub(crate) fn malformed(&self) -> Option<(usize, ValueError)> {
        if !self.is_unseen {
            return None;
        }
        let bytes = self.bytes.committed();
        let inside = |end: &P| {
            let at = bytes.get(end.bytes());
            at.is_some_and(|b| b & 0xC0 == 0x80)
        };
        // If the text of all values together is well-formed and no offset is inside a character,
        // each value is well-formed.
        if is_utf8(bytes) && !self.ends.iter().any(inside) {
            return None;
        }
        self.ends.windows(2).enumerate().find_map(|(row, ends)| {
            let text = Units::Utf8(&bytes[ends[0].bytes()..ends[1].bytes()]);
            find_malformed(text).map(|e| (row, ValueError::Malformed(e, counted(text))))
        })
    }

    /// Returns the buffer of offsets and the buffer of bytes, in this order, and empties this
    /// builder.
    pub(crate) fn take(&mut self) -> Vec<Memory> {
        let done = std::mem::replace(self, Strings::new());
        // If this reservation fails, the next value that does not fit returns the error.
        let _ = self.ends.try_reserve(done.ends.len());
        vec![Memory::of(done.ends), done.bytes.into_memory()]
    }

    /// Returns an iterator over the values that were appended so far.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let bytes = self.bytes.committed();
        self.ends
            .windows(2)
            .map(|ends| &bytes[ends[0].bytes()..ends[1].bytes()])
    }
}

/// Returns the name of the code units of `units` (such as `byte`), for messages that report the
/// position of an error.
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
        // The bytes of the two values are well-formed together, but not separately.
        assert_eq!(
            of(&[b"ab", b"x\xC3", b"\xA9"]).malformed().map(|m| m.0),
            Some(1)
        );
    }
}
