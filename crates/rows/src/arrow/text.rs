//! Texts and bytes of one column, one behind the other.

use onecopy_text::{
    MOVED_BY_PAGES_BYTES, Policy, Tally, Units, convert, find_malformed, is_utf8, planted,
};

use super::builder::Why;
use crate::arrow_c::{Memory, Plain};

/// Room that a column begins with.
const FIRST_BYTES: usize = 64 << 10;

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
    bytes: Vec<u8>,
    /// Room to begin with.
    first_bytes: usize,
    /// What the column grows to at once when its first room is used up.
    usual_bytes: usize,
    /// UTF-8 was taken as it came, and is looked at when the batch is full.
    is_unseen: bool,
}

impl<P: Place> Strings<P> {
    pub(crate) fn new(usual_bytes: usize) -> Strings<P> {
        Strings {
            ends: P::of(0).into_iter().collect(),
            bytes: Vec::new(),
            first_bytes: FIRST_BYTES,
            usual_bytes,
            is_unseen: false,
        }
    }

    /// Makes room for `n` bytes; what that moves is noted.
    #[inline]
    fn reserve(&mut self, n: usize, tally: &mut Tally) {
        if self.bytes.capacity() - self.bytes.len() < n {
            self.grow(n, tally);
        }
    }

    #[cold]
    fn grow(&mut self, n: usize, tally: &mut Tally) {
        let (at, capacity) = (self.bytes.as_ptr(), self.bytes.capacity());
        let wanted = match capacity {
            0 => self.first_bytes,
            _ => self.usual_bytes.max(2 * capacity),
        };
        let len = self.bytes.len();
        self.bytes.reserve_exact(n.max(wanted.saturating_sub(len)));
        if self.bytes.as_ptr() != at && capacity < MOVED_BY_PAGES_BYTES {
            tally.copied_again(len);
        }
    }

    #[inline]
    fn end(&mut self) -> Result<(), Why> {
        let end = P::of(self.bytes.len()).ok_or(Why::Long)?;
        self.ends.push(end);
        Ok(())
    }

    /// A value of no bytes: what stands in a NULL's place.
    #[inline]
    pub(crate) fn put_nothing(&mut self) {
        let end = *self.ends.last().expect("the first place is always there");
        self.ends.push(end);
    }

    /// Bytes as they are.
    #[inline]
    pub(crate) fn put_bytes(&mut self, bytes: &[u8]) -> Result<usize, Why> {
        self.reserve(bytes.len(), &mut Tally::default());
        self.bytes.extend_from_slice(bytes);
        self.end().map(|()| bytes.len())
    }

    /// Text as UTF-8: a copy where it is UTF-8, else one conversion.
    #[inline]
    pub(crate) fn put_text(
        &mut self,
        units: Units<'_>,
        policy: Policy,
        tally: &mut Tally,
    ) -> Result<usize, Why> {
        planted::extra_work_on_text(units);
        let before = self.bytes.len();
        match units {
            Units::Utf8(text) if policy == Policy::Strict => {
                // Whether it is well-formed is asked once for all of a batch.
                self.reserve(text.len(), tally);
                self.bytes.extend_from_slice(text);
                self.is_unseen = true;
                tally.copied(text.len());
            }
            units => {
                // Three bytes for two, where the script asks for the most.
                self.reserve(units.len_bytes() / 2 * 3 + 16, tally);
                convert::to_utf8(units, policy, &mut self.bytes).map_err(|e| match e {
                    convert::ConvertError::Malformed(e) => Why::Malformed(e, counted(units)),
                    _ => Why::Long,
                })?;
                tally.encoded(units);
            }
        }
        self.end().map(|()| self.bytes.len() - before)
    }

    /// The first value (from 0) that is no UTF-8, and why.
    pub(crate) fn malformed(&self) -> Option<(usize, Why)> {
        if !self.is_unseen {
            return None;
        }
        let inside = |end: &P| {
            let at = self.bytes.get(end.bytes());
            at.is_some_and(|b| b & 0xC0 == 0x80)
        };
        // Well-formed in one piece, and cut at no place inside of a character: then each of them is.
        if is_utf8(&self.bytes) && !self.ends.iter().any(inside) {
            return None;
        }
        self.ends.windows(2).enumerate().find_map(|(row, ends)| {
            let text = Units::Utf8(&self.bytes[ends[0].bytes()..ends[1].bytes()]);
            find_malformed(text).map(|e| (row, Why::Malformed(e, counted(text))))
        })
    }

    /// The buffers, places first; starts anew.
    pub(crate) fn take(&mut self) -> Vec<Memory> {
        let next = Strings::new(self.usual_bytes);
        let mut done = std::mem::replace(self, next);
        self.ends.reserve(done.ends.len());
        // The next batch is likely as large: then nothing moves.
        self.first_bytes = FIRST_BYTES.max(done.bytes.len() + done.bytes.len() / 8);
        if done.bytes.capacity() - done.bytes.len() > done.bytes.len() / 4 {
            done.bytes.shrink_to_fit();
        }
        vec![Memory::of(done.ends), Memory::of(done.bytes)]
    }

    /// The values so far.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &[u8]> {
        self.ends
            .windows(2)
            .map(|ends| &self.bytes[ends[0].bytes()..ends[1].bytes()])
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
        let mut strings = Strings::new(1 << 20);
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

    #[test]
    fn what_moves_is_noted() {
        let mut strings = Strings::<i32>::new(1 << 20);
        let mut tally = Tally::default();
        let text = [b'x'; 1000];
        for _ in 0..1000 {
            strings
                .put_text(Units::Utf8(&text), Policy::Strict, &mut tally)
                .unwrap();
        }
        let moved = tally.entry().copied - tally.entry().taken;
        assert!(moved <= FIRST_BYTES as u64, "{moved}");
    }
}
