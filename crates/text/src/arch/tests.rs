//! Tests each vector kernel against the scalar implementation, with all lengths near vector sizes
//! and all alignments.

use std::sync::OnceLock;

use super::memory::destination;
use super::skips::can_test;
use super::test_texts::into_buffer;
use super::{Kernel, avx2, kernel, scalar, sse2};

/// AVX2 kernels convert only texts of more bytes.
const SHORT_BYTES: usize = 128;

/// Returns `true` if the processor supports AVX2; otherwise reports the skipped tests.
fn has_avx2() -> bool {
    static HAS_AVX2: OnceLock<bool> = OnceLock::new();
    *HAS_AVX2.get_or_init(|| can_test("avx2", kernel() >= Kernel::Avx2))
}

/// Returns lengths around one, two and four vectors of each size, and some longer ones.
fn lengths() -> impl Iterator<Item = usize> {
    // Miri runs the SSE2 kernels a thousand times slower.
    (0..=160)
        .chain([255, 256, 257, 1000, 8161, 9000])
        .filter(|len| !cfg!(miri) || [0, 1, 3, 4, 7, 8, 15, 16, 17, 33].contains(len))
}

/// Calls `f` with a text of each length. Then replaces single units by the units of `odd`.
fn texts<U: Copy>(plain: impl Fn(usize) -> U, odd: &[U], mut f: impl FnMut(&[U])) {
    for len in lengths() {
        let shift = len % 64;
        let mut text: Vec<U> = (0..shift + len).map(&plain).collect();
        f(&text[shift..]);
        for at in (0..len).filter(|at| len <= 160 || at % 97 == 0 || at + 40 > len) {
            for &o in odd {
                let kept = text[shift + at];
                text[shift + at] = o;
                f(&text[shift..]);
                text[shift + at] = kept;
            }
        }
    }
}

/// Asserts that the SSE2 and AVX2 kernels return the scalar result. The AVX2 kernel needs a long
/// text.
macro_rules! same {
    ($len_bytes:expr, $name:ident($($arg:expr),*)) => {{
        let expected = scalar::$name($($arg),*);
        assert_eq!(sse2::$name($($arg),*), expected);
        if $len_bytes > SHORT_BYTES && has_avx2() {
            // SAFETY: AVX2 is available and the text is long enough, checked above.
            assert_eq!(unsafe { avx2::$name($($arg),*) }, expected);
        }
    }};
}

#[test]
fn bytes_are_scanned_and_searched_as_by_the_scalar_implementation() {
    let odd = [
        0x7F, 0x80, 0xC3, 0xE4, 0xF0, 0xFF, b'"', b'\\', 0x1F, 0, 0x20,
    ];
    texts(
        |i| b'a' + (i % 25) as u8,
        &odd,
        |u| {
            same!(u.len(), is_ascii(u));
            same!(u.len(), scan_utf8(u));
            same!(u.len(), find_high(u));
            same!(u.len(), find_escape_u8(u));
        },
    );
}

#[test]
fn continuation_bytes_are_not_counted_whatever_the_length() {
    texts(
        |i| {
            if i % 2 == 0 {
                0xD0
            } else {
                0x80 + (i % 64) as u8
            }
        },
        &[0xBF, 0xC0, b'x'],
        |u| same!(u.len(), scan_utf8(u)),
    );
}

#[test]
fn wide_units_are_scanned_and_searched_as_by_the_scalar_implementation() {
    let odd = [
        0x7F, 0x80, 0xFF, 0x100, 0x3042, 0x8000, 0xD7FF, 0xD800, 0xDBFF, 0xDC00, 0xDFFF, 0xE000,
        0xFFFF, 0x22, 0x5C, 0x1F, 0x20, 0, 0x2222, 0x5C00, 0x1F00,
    ];
    texts(
        |i| 0x61 + (i % 25) as u16,
        &odd,
        |u| {
            same!(u.len() * 2, scan_u16(u));
            same!(u.len() * 2, find_surrogate(u));
            same!(u.len() * 2, find_escape_u16(u));
        },
    );
}

#[test]
fn narrowing_writes_each_low_byte_and_no_further() {
    texts(
        |i| (i % 256) as u16,
        &[0xFF, 0x80, 0],
        |u| {
            let expected: Vec<u8> = u.iter().map(|&c| c as u8).collect();
            // SAFETY: the buffer has `u.len()` bytes.
            let ((), got) = into_buffer(u.len(), |dst| unsafe {
                sse2::narrow_u16(u, destination(dst, u.len()))
            });
            assert_eq!(got, expected);
            if u.len() * 2 > SHORT_BYTES && has_avx2() {
                // SAFETY: the buffer has `u.len()` bytes. AVX2 is available, and the text is long
                // enough.
                let ((), got) = into_buffer(u.len(), |dst| unsafe {
                    avx2::narrow_u16(u, destination(dst, u.len()))
                });
                assert_eq!(got, expected);
            }
        },
    );
}

#[test]
fn copying_stops_at_the_escape_and_reports_other_bytes_before_it() {
    let odd = [b'"', b'\\', 0, 0x1F, 0x20, 0x7F, 0x80, 0xFF];
    let check = |u: &[u8]| {
        let (expected, bytes) =
            // SAFETY: the buffer has `u.len()` bytes.
            into_buffer(u.len(), |dst| unsafe { scalar::copy_to_escape(u, destination(dst, u.len())) });
        let n = expected.0;
        // SAFETY: the buffer has `u.len()` bytes.
        let (got, copied) = into_buffer(u.len(), |dst| unsafe {
            sse2::copy_to_escape(u, destination(dst, u.len()))
        });
        assert_eq!((got, &copied[..n]), (expected, &bytes[..n]));
        if u.len() > SHORT_BYTES && has_avx2() {
            // SAFETY: the buffer has `u.len()` bytes. AVX2 is available, and the text is long
            // enough.
            let (got, copied) = into_buffer(u.len(), |dst| unsafe {
                avx2::copy_to_escape(u, destination(dst, u.len()))
            });
            assert_eq!((got, &copied[..n]), (expected, &bytes[..n]));
        }
    };
    texts(|i| b'a' + (i % 25) as u8, &odd, check);
    // Non-ASCII bytes next to the escape.
    texts(|_| 0xC3, &odd, check);
}

#[test]
fn plain_units_are_narrowed_up_to_the_first_other_one() {
    fn check<const JSON: bool>(u: &[u16]) {
        // SAFETY: the buffer has `u.len()` bytes.
        let (n, bytes) = into_buffer(u.len(), |dst| unsafe {
            scalar::narrow_plain::<JSON>(u, destination(dst, u.len()))
        });
        let same = |got: usize, copied: Vec<u8>| {
            // Without `JSON`, the vector kernels may stop at U+0000.
            let nul = !JSON && u.get(got) == Some(&0);
            assert!(got == n || nul, "{got} is not {n}");
            assert_eq!(copied[..got], bytes[..got]);
        };
        let (got, copied) =
            // SAFETY: the buffer has `u.len()` bytes.
            into_buffer(u.len(), |dst| unsafe { sse2::narrow_plain::<JSON>(u, destination(dst, u.len())) });
        same(got, copied);
        if u.len() * 2 > SHORT_BYTES && has_avx2() {
            let (got, copied) =
                // SAFETY: the buffer has `u.len()` bytes. AVX2 is available, and the text is long
                // enough.
                into_buffer(u.len(), |dst| unsafe { avx2::narrow_plain::<JSON>(u, destination(dst, u.len())) });
            same(got, copied);
        }
    }
    let odd = [
        0x22, 0x5C, 0, 0x1F, 0x20, 0x7F, 0x80, 0xFF, 0x100, 0x122, 0x7FFF, 0x8000, 0x8061, 0xD800,
        0xFF61, 0xFFFF,
    ];
    texts(|i| 0x61 + (i % 25) as u16, &odd, check::<true>);
    texts(|i| 0x61 + (i % 25) as u16, &odd, check::<false>);
}

#[test]
fn copies_stop_before_the_first_unit_out_of_range_and_nowhere_else() {
    /// Compares a vector kernel with the scalar implementation. The kernel may copy up to 255 fewer
    /// units.
    fn check<const N: usize>(
        len: usize,
        (n, expected): (usize, Vec<u8>),
        (got, copied): (usize, Vec<u8>),
    ) {
        assert_eq!(got == len, n == len);
        assert!(got <= n && n - got < 256, "{got} of {n}");
        assert_eq!(copied[..N * got], expected[..N * got]);
    }
    let odd = [
        0x7F, 0x80, 0xFF, 0x100, 0x3042, 0x8000, 0xD7FF, 0xD800, 0xDFFF, 0xE000, 0xFFFF, 0,
    ];
    texts(
        |i| 0x61 + (i % 25) as u16,
        &odd,
        |u| {
            let len = u.len();
            let bytes: Vec<u8> = u.iter().map(|&u| u.min(0xFF) as u8).collect();
            // SAFETY: the buffer has as many units as the text.
            unsafe {
                let expected =
                    || into_buffer(len, |p| scalar::copy_ascii(&bytes, destination(p, len)));
                check::<1>(
                    len,
                    expected(),
                    into_buffer(len, |p| sse2::copy_ascii(&bytes, destination(p, len))),
                );
                let ascii = || {
                    into_buffer(len, |p| {
                        scalar::narrow_up_to::<0x7F>(u, destination(p, len))
                    })
                };
                check::<1>(
                    len,
                    ascii(),
                    into_buffer(len, |p| sse2::narrow_up_to::<0x7F>(u, destination(p, len))),
                );
                let latin1 = || {
                    into_buffer(len, |p| {
                        scalar::narrow_up_to::<0xFF>(u, destination(p, len))
                    })
                };
                check::<1>(
                    len,
                    latin1(),
                    into_buffer(len, |p| sse2::narrow_up_to::<0xFF>(u, destination(p, len))),
                );
                let bmp =
                    || into_buffer(2 * len, |p| scalar::copy_bmp(u, destination(p.cast(), len)));
                check::<2>(
                    len,
                    bmp(),
                    into_buffer(2 * len, |p| sse2::copy_bmp(u, destination(p.cast(), len))),
                );
                if !has_avx2() || len <= SHORT_BYTES {
                    return;
                }
                check::<1>(
                    len,
                    expected(),
                    into_buffer(len, |p| avx2::copy_ascii(&bytes, destination(p, len))),
                );
                check::<1>(
                    len,
                    ascii(),
                    into_buffer(len, |p| avx2::narrow_up_to::<0x7F>(u, destination(p, len))),
                );
                check::<1>(
                    len,
                    latin1(),
                    into_buffer(len, |p| avx2::narrow_up_to::<0xFF>(u, destination(p, len))),
                );
                check::<2>(
                    len,
                    bmp(),
                    into_buffer(2 * len, |p| avx2::copy_bmp(u, destination(p.cast(), len))),
                );
            }
        },
    );
}
