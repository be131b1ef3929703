//! The kernels of the JSON reader without vector instructions.

use super::{
    Ascii, Common, JsonSteps, Look, Plain, UnescapedLength, find_escape_u8, find_escape_u16,
    is_ascii, scalar,
};

impl JsonSteps for Common {
    #[inline(always)]
    fn plain_u8(self, rest: &[u8]) -> Plain<'_> {
        let text = &rest[..find_escape_u8(rest)];
        if is_ascii(text) {
            Plain::Ascii(Ascii(text))
        } else {
            Plain::Other(text)
        }
    }

    #[inline(always)]
    fn plain_u16(self, rest: &[u16]) -> (usize, bool) {
        let n = find_escape_u16(rest);
        (n, rest[..n].iter().all(|&u| u < 0x80))
    }

    #[inline(always)]
    fn plain_u32(self, rest: &[u32]) -> (usize, bool) {
        scalar::plain_u32(rest)
    }

    #[inline(always)]
    fn blank_u8(self, rest: &[u8]) -> usize {
        scalar::blank_u8(rest)
    }

    const LOOKS: bool = false;

    #[inline(always)]
    fn look(self, rest: &[u8]) -> Look {
        scalar::look(rest)
    }

    #[inline(always)]
    fn digits(self, text: &[u8], at: usize, n_before: u32, n_after: u32) -> u64 {
        scalar::digits(&text[at..], n_before, n_after)
    }

    #[inline(always)]
    fn closing_quote_u8(self, rest: &[u8]) -> Option<usize> {
        let mut at = 0;
        loop {
            at += find_escape_u8(&rest[at..]);
            match rest.get(at)? {
                b'"' => return Some(at),
                b'\\' if *rest.get(at + 1)? >= 0x20 => at += 2,
                _ => return None,
            }
        }
    }

    #[inline(always)]
    fn unescape_u8(self, body: &[u8], out: &mut [u8]) -> UnescapedLength {
        assert!(out.len() >= body.len());
        scalar::unescape_u8(body, out)
    }

    #[inline(always)]
    unsafe fn copy_half(self, text: &[u8], out: *mut u8) {
        // SAFETY: guaranteed by the caller.
        unsafe { std::ptr::copy_nonoverlapping(text.as_ptr(), out, text.len()) }
    }

    #[inline(always)]
    fn starts_with(self, rest: &[u8], text: &[u8]) -> bool {
        rest.starts_with(text)
    }
}
