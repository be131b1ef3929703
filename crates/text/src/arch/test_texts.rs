//! Helpers of the kernel tests. They make texts with lengths near one to four vectors, and buffers
//! between canaries.

const CANARY: u8 = 0xA5;

/// Calls `f` with a buffer of `len` bytes. Returns the result of `f` and the contents of the
/// buffer.
pub(super) fn into_buffer<R>(len: usize, f: impl FnOnce(*mut u8) -> R) -> (R, Vec<u8>) {
    let align = if len == 0 {
        4
    } else {
        1 << len.trailing_zeros().min(2)
    };
    let mut buffer = vec![CANARY; len + 256];
    let shift = buffer.as_ptr().align_offset(4) + align * (1 + len * 7 % 15);
    // SAFETY: the buffer has at least `len` bytes after `shift`.
    let result = f(unsafe { buffer.as_mut_ptr().add(shift) });
    assert!(buffer[..shift].iter().all(|&b| b == CANARY), "before");
    assert!(buffer[shift + len..].iter().all(|&b| b == CANARY), "after");
    (result, buffer[shift..shift + len].to_vec())
}

/// Returns several texts of `n` characters, each with its own set of characters.
pub(super) fn texts(n: usize) -> impl Iterator<Item = String> {
    let mixes: [&[char]; 13] = [
        &['a', 'z', '\0'],
        &['é'],
        &['a', 'b', 'é', 'ÿ', '\u{80}'],
        &['Ж'],
        &['Ж', 'я', ' ', '\u{7FF}', '\u{100}'],
        &['東'],
        &[
            '東', '\u{800}', '\u{FFFD}', '\u{FFFF}', '\u{D7FF}', '\u{E000}',
        ],
        &['東', 'a', 'é', 'Ж', 'b'],
        &['😀'],
        &['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i', 'j', '😀'],
        &['😀', 'a', 'Ж', '東', '\u{10FFFF}', '\u{10000}'],
        &['é', '東', '😀'],
        &[
            '\u{1F600}',
            '\u{2F81A}',
            '\u{5A5A5}',
            '\u{A5A5A}',
            '\u{EDCBA}',
            '\u{F1234}',
            '\u{10ABCD}',
        ],
    ];
    mixes.into_iter().map(move |mix| {
        let mut state = n as u64 * 0x9E37_79B9 + mix.len() as u64;
        let next = |state: &mut u64| {
            *state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (*state >> 33) as usize
        };
        (0..n).map(|_| mix[next(&mut state) % mix.len()]).collect()
    })
}

/// Calls `check` with UTF-16 texts of many lengths and scripts. Also calls `check` with shortened
/// texts, with replaced units, and with separated surrogate halves.
pub(super) fn each_utf16(mut check: impl FnMut(&[u16])) {
    let harm = [
        0x41, 0xE9, 0x416, 0x6771, 0xD800, 0xDBFF, 0xDC00, 0xDFFF, 0xE000,
    ];
    for n in lengths() {
        for text in texts(n) {
            let mut wide: Vec<u16> = text.encode_utf16().collect();
            for at in 0..3.min(wide.len() + 1) {
                check(&wide[at..]);
            }
            for at in
                (0..wide.len()).filter(|at| n < 70 && (at % 13 == 0 || at % 32 < 2 || at % 32 > 29))
            {
                let kept = wide[at];
                for u in harm {
                    wide[at] = u;
                    check(&wide);
                }
                wide[at] = kept;
                check(&wide[..at]);
            }
            // These halves would form a pair without the text between them.
            for gap in [2, 16, 17, 33, 65] {
                for at in (0..wide.len().saturating_sub(gap)).filter(|at| n < 110 && at % 16 > 13) {
                    let kept = (wide[at], wide[at + gap]);
                    (wide[at], wide[at + gap]) = (0xD83D, 0xDE00);
                    check(&wide);
                    (wide[at], wide[at + gap]) = kept;
                }
            }
        }
    }
}

pub(super) fn lengths() -> impl Iterator<Item = usize> {
    (0..=140).chain([191, 192, 193, 255, 256, 257, 300, 1000])
}

pub(super) fn starts(src: &[u8]) -> usize {
    src.iter().filter(|&&b| b & 0xC0 != 0x80).count()
}

pub(super) fn units<const N: usize, U>(bytes: &[u8], of: fn([u8; N]) -> U) -> Vec<U> {
    let parts = bytes.chunks_exact(N);
    parts.map(|b| of(b.try_into().expect("a chunk"))).collect()
}
