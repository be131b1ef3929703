//! The trait `CellSteps`: conversions of short texts, such as table cells.

use crate::arch::new_cell::{MaybeBytes, MaybeStr};
use crate::new_object::{NewBytes, NewStr};

/// Conversions of cells of at most 128 bytes in UTF-16. A method returns `None` if the family does
/// not convert a text.
pub trait CellSteps: Copy {
    fn make_utf16<const SWAPPED: bool, N: NewStr>(self, text: &[u8], new: &mut N) -> MaybeStr<N>;
    fn make_utf8<N: NewStr>(self, text: &[u8], new: &mut N) -> MaybeStr<N>;
    fn is_ascii(self, text: &[u8]) -> bool;
    /// Copies a text of at most 128 bytes to `out`.
    ///
    /// # Safety
    /// `out` must be writable for `text.len()` bytes, and must not overlap `text`.
    unsafe fn copy(self, text: &[u8], out: *mut u8);
    fn latin1_to_utf16<const SWAPPED: bool, B: NewBytes>(
        self,
        u: &[u8],
        new: &mut B,
    ) -> MaybeBytes<B>;
    fn ucs2_to_utf16<const SWAPPED: bool, B: NewBytes>(
        self,
        u: &[u16],
        new: &mut B,
    ) -> MaybeBytes<B>;
    fn ucs4_to_utf16<const SWAPPED: bool, B: NewBytes>(
        self,
        u: &[u32],
        new: &mut B,
    ) -> MaybeBytes<B>;
    fn latin1_to_utf8<B: NewBytes>(self, u: &[u8], new: &mut B) -> MaybeBytes<B>;
    fn ucs2_to_utf8<B: NewBytes>(self, u: &[u16], new: &mut B) -> MaybeBytes<B>;
    fn ucs4_to_utf8<B: NewBytes>(self, u: &[u32], new: &mut B) -> MaybeBytes<B>;
}
