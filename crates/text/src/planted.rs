//! Planted faults, to prove that the witness of the ledger is awake.
//!
//! The promise "converted once, copied at most once" is measured by the ledger and checked by a witness that counts on its
//! own. A witness that never turns red proves nothing, so every promised path calls [`extra_work_on_text`] on its payload,
//! beside the conversion, and every path that sends a chunk calls [`extra_work_on_chunk`]. In a normal build both are
//! nothing. In a test build with the feature `planted-copy` they do once more what the ledger does not know of, and the
//! witness test of each path must fail. No release is built with the feature.
//!
//! `ONECOPY_PLANTED` says which fault such a build has:
//!
//! | value | fault |
//! |---|---|
//! | `copy`, or not set | the text is copied to the heap as it is |
//! | `conversion` | the text is converted to UTF-8 on the heap, by vector kernels that call no routine of the C library |
//! | `send` | a finished chunk is copied before it is sent |
//! | `none` | none: the build itself is right, and red comes from the fault alone |

/// One more copy or conversion of `units` in a planted build; nothing otherwise.
///
/// Copies: none; one onto the heap in a planted build, which is what it is for.
#[inline(always)]
pub fn extra_work_on_text(units: crate::Units<'_>) {
    #[cfg(feature = "planted-copy")]
    planted::text(units);
    #[cfg(not(feature = "planted-copy"))]
    let _ = units;
}

/// One more copy of a chunk that is about to be sent, in a planted build; nothing otherwise.
///
/// Copies: as [`extra_work_on_text`].
#[inline(always)]
pub fn extra_work_on_chunk(bytes: &[u8]) {
    #[cfg(feature = "planted-copy")]
    planted::chunk(bytes);
    #[cfg(not(feature = "planted-copy"))]
    let _ = bytes;
}

/// Whether this build has planted faults: for the tests that expect red, and for `--version` to say so.
#[must_use]
pub const fn is_planted() -> bool {
    cfg!(feature = "planted-copy")
}

#[cfg(feature = "planted-copy")]
mod planted {
    use std::hint::black_box;
    use std::sync::OnceLock;

    use crate::{Policy, Units, convert};

    #[derive(Clone, Copy, PartialEq, Eq)]
    enum Fault {
        Copy,
        Conversion,
        Send,
        None,
    }

    fn fault() -> Fault {
        static FAULT: OnceLock<Fault> = OnceLock::new();
        *FAULT.get_or_init(|| {
            match std::env::var("ONECOPY_PLANTED")
                .unwrap_or_default()
                .as_str()
            {
                "" | "copy" => Fault::Copy,
                "conversion" => Fault::Conversion,
                "send" => Fault::Send,
                "none" => Fault::None,
                other => panic!("no such fault: ONECOPY_PLANTED={other}"),
            }
        })
    }

    pub(super) fn text(units: Units<'_>) {
        match fault() {
            Fault::Copy => match units {
                Units::Latin1(u) | Units::Utf8(u) => drop(black_box(u.to_vec())),
                Units::Utf16(u) | Units::Ucs2(u) => drop(black_box(u.to_vec())),
                Units::Utf32(u) => drop(black_box(u.to_vec())),
            },
            Fault::Conversion => {
                // Room for the longest result at once, so that nothing grows and moves: only the conversion is one too
                // many.
                let mut out = Vec::with_capacity(3 * units.len_units());
                let _ = convert::to_json_body(units, Policy::Replace, &mut out);
                black_box(out);
            }
            Fault::Send | Fault::None => {}
        }
    }

    pub(super) fn chunk(bytes: &[u8]) {
        if fault() == Fault::Send {
            drop(black_box(bytes.to_vec()));
        }
    }
}
