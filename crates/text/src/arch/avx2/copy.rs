//! Copies short texts with a few loads and stores of fixed sizes, which may overlap.

use std::arch::x86_64::*;

/// Copies `text` to `out`.
///
/// # Safety
/// `out` must be writable for as many bytes as `text` has, and must not overlap `text`.
#[inline]
#[target_feature(enable = "avx2")]
pub(in crate::arch) unsafe fn copy(text: &[u8], out: *mut u8) {
    let (p, n) = (text.as_ptr(), text.len());
    // SAFETY: each branch copies blocks of fixed sizes inside the `n` bytes of `text` and `out`.
    unsafe {
        if n >= 32 {
            let load = |at: usize| _mm256_loadu_si256(p.add(at).cast());
            let store = |at: usize, v| _mm256_storeu_si256(out.add(at).cast(), v);
            let last = load(n - 32);
            let mut at = 0;
            while at + 32 < n {
                store(at, load(at));
                at += 32;
            }
            store(n - 32, last);
        } else if n >= 16 {
            let (a, b) = (
                _mm_loadu_si128(p.cast()),
                _mm_loadu_si128(p.add(n - 16).cast()),
            );
            _mm_storeu_si128(out.cast(), a);
            _mm_storeu_si128(out.add(n - 16).cast(), b);
        } else if n >= 8 {
            let a = p.cast::<u64>().read_unaligned();
            let b = p.add(n - 8).cast::<u64>().read_unaligned();
            out.cast::<u64>().write_unaligned(a);
            out.add(n - 8).cast::<u64>().write_unaligned(b);
        } else if n >= 4 {
            let a = p.cast::<u32>().read_unaligned();
            let b = p.add(n - 4).cast::<u32>().read_unaligned();
            out.cast::<u32>().write_unaligned(a);
            out.add(n - 4).cast::<u32>().write_unaligned(b);
        } else if n > 0 {
            let (a, b, c) = (*p, *p.add(n / 2), *p.add(n - 1));
            *out = a;
            *out.add(n / 2) = b;
            *out.add(n - 1) = c;
        }
    }
}
