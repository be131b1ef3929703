//! A planted copy, to prove that the witness of the ledger is awake.
//!
//! The promise "at most one copy" is measured by the ledger and checked by a witness that counts copies on its own. A
//! witness that never turns red proves nothing, so every promised path calls [`extra_copy`] once on its payload. In a
//! normal build that is nothing. In a test build with the feature `planted-copy` it is one real copy that the ledger does
//! not know of, and the witness test of each path must fail. No release is built with the feature.

/// One more copy of `bytes` under the feature `planted-copy`; nothing otherwise.
///
/// Called once per payload and path (cell to `str`, cell to an outgoing chunk, `str` to JSON, heads), beside the
/// conversion, with the text as its owner holds it; for a text of wider units see [`extra_copy_units`].
///
/// Copies: none; one onto the heap under the feature, which is what it is for.
#[inline(always)]
pub fn extra_copy(bytes: &[u8]) {
    #[cfg(feature = "planted-copy")]
    drop(std::hint::black_box(bytes.to_vec()));
    #[cfg(not(feature = "planted-copy"))]
    let _ = bytes;
}

/// As [`extra_copy`], for text in any form.
#[inline(always)]
pub fn extra_copy_units(units: crate::Units<'_>) {
    #[cfg(feature = "planted-copy")]
    match units {
        crate::Units::Latin1(u) | crate::Units::Utf8(u) => extra_copy(u),
        crate::Units::Utf16(u) | crate::Units::Ucs2(u) => {
            drop(std::hint::black_box(u.to_vec()));
        }
        crate::Units::Utf32(u) => drop(std::hint::black_box(u.to_vec())),
    }
    #[cfg(not(feature = "planted-copy"))]
    let _ = units;
}

/// Whether this build has the planted copy: for the tests that expect red, and for `--version` to say so.
#[must_use]
pub const fn is_planted() -> bool {
    cfg!(feature = "planted-copy")
}
