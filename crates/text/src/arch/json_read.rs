//! The kernels of the JSON reader.

use super::dispatch::{find_escape_u8, find_escape_u16, is_ascii};
use super::family::{Ascii, Common, JsonSteps, Look, Plain, ShortNumber, UnescapedLength};
#[cfg(target_arch = "x86_64")]
use super::family::{Avx2, Avx512, steps};
use super::scalar;
#[cfg(target_arch = "x86_64")]
use super::{avx2, avx512};

mod common;
mod scan;
#[cfg(test)]
mod tests;

pub use scan::Scan;

impl<'a> Ascii<'a> {
    /// Returns the text if it is ASCII, otherwise `None`.
    #[must_use]
    pub fn new(text: &'a [u8]) -> Option<Ascii<'a>> {
        is_ascii(text).then_some(Ascii(text))
    }
}

#[cfg(target_arch = "x86_64")]
macro_rules! vectors {
    ($family:ident, $kernels:ident) => {
        impl JsonSteps for $family {
            const LOOKS: bool = true;

            #[inline(always)]
            fn plain_u8(self, rest: &[u8]) -> Plain<'_> {
                // SAFETY: a value of this type proves that its instructions are available.
                let (n, is_ascii) = unsafe { $kernels::json_read::plain_u8(rest) };
                let text = &rest[..n];
                if is_ascii {
                    Plain::Ascii(Ascii(text))
                } else {
                    Plain::Other(text)
                }
            }

            #[inline(always)]
            fn unescape_u8(self, body: &[u8], out: &mut [u8]) -> UnescapedLength {
                assert!(out.len() >= body.len());
                // SAFETY: a value of this type proves that its instructions are available.
                unsafe { $kernels::json_read::unescape_u8(body, out) }
            }

            steps! {
                fn plain_u16(rest: &[u16]) -> (usize, bool) = $kernels::json_read::plain_u16;
                fn plain_u32(rest: &[u32]) -> (usize, bool) = $kernels::json_read::plain_u32;
                fn blank_u8(rest: &[u8]) -> usize = $kernels::json_read::blank_u8;
                fn look(rest: &[u8]) -> Look = $kernels::json_read::look;
                fn digits(text: &[u8], at: usize, n_before: u32, n_after: u32) -> u64
                    = $kernels::json_read::digits;
                fn closing_quote_u8(rest: &[u8]) -> Option<usize>
                    = $kernels::json_read::closing_quote_u8;
                !unsafe fn copy_half(text: &[u8], out: *mut u8) = $kernels::json_read::copy_half;
                fn starts_with(rest: &[u8], text: &[u8]) -> bool = $kernels::json_read::starts_with;
            }
        }
    };
}

#[cfg(target_arch = "x86_64")]
vectors!(Avx512, avx512);
#[cfg(target_arch = "x86_64")]
vectors!(Avx2, avx2);
