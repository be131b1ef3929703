//! What the reader of JSON asks of the kernels, inlined into the reader's loop.

use super::family::{Ascii, Common, JsonSteps, Look, Plain, ShortNumber, UnescapedLength};
#[cfg(target_arch = "x86_64")]
use super::family::{Avx2, Avx512};
#[cfg(target_arch = "x86_64")]
use super::{avx2, avx512};
use super::{find_escape_u8, find_escape_u16, is_ascii, scalar};

mod common;
mod scan;
#[cfg(test)]
mod tests;

pub use scan::Scan;

#[cfg(target_arch = "x86_64")]
macro_rules! vectors {
    ($family:ident, $kernels:ident) => {
        impl JsonSteps for $family {
            #[inline(always)]
            fn plain_u8(self, rest: &[u8]) -> Plain<'_> {
                // SAFETY: a value of this type proves that its instructions are there.
                let (n, is_ascii) = unsafe { $kernels::json_read::plain_u8(rest) };
                let text = &rest[..n];
                if is_ascii {
                    Plain::Ascii(Ascii(text))
                } else {
                    Plain::Other(text)
                }
            }

            #[inline(always)]
            fn plain_u16(self, rest: &[u16]) -> (usize, bool) {
                // SAFETY: a value of this type proves that its instructions are there.
                unsafe { $kernels::json_read::plain_u16(rest) }
            }

            #[inline(always)]
            fn plain_u32(self, rest: &[u32]) -> (usize, bool) {
                // SAFETY: a value of this type proves that its instructions are there.
                unsafe { $kernels::json_read::plain_u32(rest) }
            }

            #[inline(always)]
            fn blank_u8(self, rest: &[u8]) -> usize {
                // SAFETY: a value of this type proves that its instructions are there.
                unsafe { $kernels::json_read::blank_u8(rest) }
            }

            const LOOKS: bool = true;

            #[inline(always)]
            fn look(self, rest: &[u8]) -> Look {
                // SAFETY: a value of this type proves that its instructions are there.
                unsafe { $kernels::json_read::look(rest) }
            }

            #[inline(always)]
            fn digits(self, text: &[u8], at: usize, n_before: u32, n_behind: u32) -> u64 {
                // SAFETY: a value of this type proves that its instructions are there.
                unsafe { $kernels::json_read::digits(text, at, n_before, n_behind) }
            }

            #[inline(always)]
            fn closing_quote_u8(self, rest: &[u8]) -> Option<usize> {
                // SAFETY: a value of this type proves that its instructions are there.
                unsafe { $kernels::json_read::closing_quote_u8(rest) }
            }

            #[inline(always)]
            fn unescape_u8(self, body: &[u8], out: &mut [u8]) -> UnescapedLength {
                assert!(out.len() >= body.len());
                // SAFETY: a value of this type proves that its instructions are there.
                unsafe { $kernels::json_read::unescape_u8(body, out) }
            }

            #[inline(always)]
            unsafe fn copy_half(self, text: &[u8], out: *mut u8) {
                // SAFETY: a value of this type proves that its instructions are there; the duty of the caller.
                unsafe { $kernels::json_read::copy_half(text, out) }
            }

            #[inline(always)]
            fn starts_with(self, rest: &[u8], text: &[u8]) -> bool {
                // SAFETY: a value of this type proves that its instructions are there.
                unsafe { $kernels::json_read::starts_with(rest, text) }
            }
        }
    };
}

#[cfg(target_arch = "x86_64")]
vectors!(Avx512, avx512);
#[cfg(target_arch = "x86_64")]
vectors!(Avx2, avx2);
