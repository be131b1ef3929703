//! Each vector kernel against its scalar twin: all lengths around the vector sizes, all alignments, every place for a
//! unit that stops it, canaries behind the output.

use super::*;

/// Lengths below, at and above one, two and four vectors of each size, and some longer.
fn lengths() -> impl Iterator<Item = usize> {
    // Miri runs the 16-byte kernels too, a thousand times slower.
    (0..=160)
        .chain([255, 256, 257, 1000, 8161, 9000])
        .filter(|len| !cfg!(miri) || [0, 1, 3, 4, 7, 8, 15, 16, 17, 33].contains(len))
}

/// Runs `f` for each text of `len` plain units with one of `odd` at each place that matters, at shifting alignments.
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

const CANARY: u8 = 0xA5;

/// Runs a kernel into a place with canaries on both sides, at an alignment that shifts with the length.
fn into_place<R>(len: usize, kernel: impl FnOnce(*mut u8) -> R) -> (R, Vec<u8>) {
    let shift = 2 * (1 + len * 7 % 32);
    let mut place = vec![CANARY; shift + len + 64];
    // SAFETY: the place goes on for len bytes and more behind shift.
    let result = kernel(unsafe { place.as_mut_ptr().add(shift) });
    assert!(place[..shift].iter().all(|&b| b == CANARY));
    assert!(place[shift + len..].iter().all(|&b| b == CANARY));
    (result, place[shift..shift + len].to_vec())
}

/// Asserts that both vector families give what the twin gives; AVX2 where the text is as long as it wants.
macro_rules! same {
    ($len_bytes:expr, $name:ident($($arg:expr),*)) => {{
        let expected = scalar::$name($($arg),*);
        assert_eq!(sse2::$name($($arg),*), expected);
        if $len_bytes > SHORT_BYTES && is_x86_feature_detected!("avx2") {
            // SAFETY: AVX2 is there and the text is long enough, checked above.
            assert_eq!(unsafe { avx2::$name($($arg),*) }, expected);
        }
    }};
}

#[test]
fn bytes_are_ascii_scanned_and_searched_as_by_the_scalar_twin() {
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
fn wide_units_are_scanned_and_searched_as_by_the_scalar_twin() {
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
            // SAFETY: the place takes u.len() bytes.
            let ((), got) = into_place(u.len(), |dst| unsafe { sse2::narrow_u16(u, dst) });
            assert_eq!(got, expected);
            if u.len() * 2 > SHORT_BYTES && is_x86_feature_detected!("avx2") {
                // SAFETY: the place takes u.len() bytes; AVX2 is there and the text long enough.
                let ((), got) = into_place(u.len(), |dst| unsafe { avx2::narrow_u16(u, dst) });
                assert_eq!(got, expected);
            }
        },
    );
}

#[test]
fn copying_stops_at_the_escape_and_tells_of_other_bytes_before_it() {
    let odd = [b'"', b'\\', 0, 0x1F, 0x20, 0x7F, 0x80, 0xFF];
    let check = |u: &[u8]| {
        let (expected, bytes) =
            // SAFETY: the place takes u.len() bytes.
            into_place(u.len(), |dst| unsafe { scalar::copy_to_escape(u, dst) });
        let n = expected.0;
        // SAFETY: the place takes u.len() bytes.
        let (got, copied) = into_place(u.len(), |dst| unsafe { sse2::copy_to_escape(u, dst) });
        assert_eq!((got, &copied[..n]), (expected, &bytes[..n]));
        if u.len() > SHORT_BYTES && is_x86_feature_detected!("avx2") {
            // SAFETY: the place takes u.len() bytes; AVX2 is there and the text long enough.
            let (got, copied) = into_place(u.len(), |dst| unsafe { avx2::copy_to_escape(u, dst) });
            assert_eq!((got, &copied[..n]), (expected, &bytes[..n]));
        }
    };
    texts(|i| b'a' + (i % 25) as u8, &odd, check);
    // Other bytes right before and right behind the escape.
    texts(|_| 0xC3, &odd, check);
}

#[test]
fn plain_units_are_narrowed_up_to_the_first_other_one() {
    fn check<const JSON: bool>(u: &[u16]) {
        // SAFETY: the place takes u.len() bytes.
        let (n, bytes) = into_place(u.len(), |dst| unsafe {
            scalar::narrow_plain::<JSON>(u, dst)
        });
        let same = |got: usize, copied: Vec<u8>| {
            // Without JSON the vectors may stop at U+0000.
            let nul = !JSON && u.get(got) == Some(&0);
            assert!(got == n || nul, "{got} is not {n}");
            assert_eq!(copied[..got], bytes[..got]);
        };
        let (got, copied) =
            // SAFETY: the place takes u.len() bytes.
            into_place(u.len(), |dst| unsafe { sse2::narrow_plain::<JSON>(u, dst) });
        same(got, copied);
        if u.len() * 2 > SHORT_BYTES && is_x86_feature_detected!("avx2") {
            let (got, copied) =
                // SAFETY: the place takes u.len() bytes; AVX2 is there and the text long enough.
                into_place(u.len(), |dst| unsafe { avx2::narrow_plain::<JSON>(u, dst) });
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
fn copies_stop_before_what_they_were_not_made_for_and_nowhere_else() {
    /// `n` is where the twin stops; a vector kernel may stop somewhat earlier, but is through where the twin is.
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
            // SAFETY: the places take a unit for each unit (so below).
            unsafe {
                let expected = || into_place(len, |p| scalar::copy_ascii(&bytes, p));
                check::<1>(
                    len,
                    expected(),
                    into_place(len, |p| sse2::copy_ascii(&bytes, p)),
                );
                let ascii = || into_place(len, |p| scalar::narrow_up_to::<0x7F>(u, p));
                check::<1>(
                    len,
                    ascii(),
                    into_place(len, |p| sse2::narrow_up_to::<0x7F>(u, p)),
                );
                let latin1 = || into_place(len, |p| scalar::narrow_up_to::<0xFF>(u, p));
                check::<1>(
                    len,
                    latin1(),
                    into_place(len, |p| sse2::narrow_up_to::<0xFF>(u, p)),
                );
                let bmp = || into_place(2 * len, |p| scalar::copy_bmp(u, p.cast::<u16>()));
                check::<2>(
                    len,
                    bmp(),
                    into_place(2 * len, |p| sse2::copy_bmp(u, p.cast())),
                );
                if !is_x86_feature_detected!("avx2") || len <= SHORT_BYTES {
                    return;
                }
                check::<1>(
                    len,
                    expected(),
                    into_place(len, |p| avx2::copy_ascii(&bytes, p)),
                );
                check::<1>(
                    len,
                    ascii(),
                    into_place(len, |p| avx2::narrow_up_to::<0x7F>(u, p)),
                );
                check::<1>(
                    len,
                    latin1(),
                    into_place(len, |p| avx2::narrow_up_to::<0xFF>(u, p)),
                );
                check::<2>(
                    len,
                    bmp(),
                    into_place(2 * len, |p| avx2::copy_bmp(u, p.cast())),
                );
            }
        },
    );
}
