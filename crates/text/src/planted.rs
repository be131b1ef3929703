//! Deliberate extra copies in test builds, which test the copy counters.
//!
//! The ledger counts conversions and copies of text. An independent counter in the tests checks the
//! ledger. [`extra_work_on_text`] and [`extra_work_on_chunk`] do extra work that the ledger does
//! not count, so each test that counts copies must fail. They do nothing without the feature
//! `planted-copy`. The profile `quick`, in which CI builds, has this feature. No release has it.
//!
//! | `ONECOPY_PLANTED` | fault |
//! |---|---|
//! | `none`, or not set | no fault |
//! | `copy` | the text is copied to the heap unchanged |
//! | `conversion` | the text is converted to UTF-8 on the heap, by kernels that do not call the C library |
//! | `send` | a finished chunk is copied before it is sent |

/// Copies or converts `units` once more, if `ONECOPY_PLANTED` is `copy` or `conversion`.
///
/// Without the feature `planted-copy`, does nothing.
#[inline(always)]
pub fn extra_work_on_text(units: crate::Units<'_>) {
    #[cfg(feature = "planted-copy")]
    planted::text(units);
    #[cfg(not(feature = "planted-copy"))]
    let _ = units;
}

/// Copies a chunk once more, if `ONECOPY_PLANTED` is `send`.
///
/// Without the feature `planted-copy`, does nothing.
#[inline(always)]
pub fn extra_work_on_chunk(bytes: &[u8]) {
    #[cfg(feature = "planted-copy")]
    planted::chunk(bytes);
    #[cfg(not(feature = "planted-copy"))]
    let _ = bytes;
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
                "copy" => Fault::Copy,
                "conversion" => Fault::Conversion,
                "send" => Fault::Send,
                "" | "none" => Fault::None,
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
                // The capacity suffices for the longest text, so the buffer does not grow.
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
