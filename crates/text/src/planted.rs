//! Deliberate faults in test builds, which prove that the independent counter detects an extra
//! copy.
//!
//! The project promises that text is converted once and copied at most once. The ledger counts
//! conversions and copies, and an independent counter in the tests checks the ledger. To prove that
//! this counter detects an extra copy, a test build can make extra copies. Code that converts text
//! calls [`extra_work_on_text`] with this text, and code that sends a chunk calls
//! [`extra_work_on_chunk`]. Without the feature `planted-copy` both functions do nothing. With it,
//! they do the extra work that the environment variable `ONECOPY_PLANTED` names, which the ledger
//! does not count, and each test that counts copies must fail. The profile `quick`, in which CI
//! builds, has this feature; no release has it.
//!
//! | `ONECOPY_PLANTED` | fault |
//! |---|---|
//! | `none`, or not set | no fault |
//! | `copy` | the text is copied to the heap unchanged |
//! | `conversion` | the text is converted to UTF-8 on the heap, by kernels that do not call the C library |
//! | `send` | a finished chunk is copied before it is sent |

/// In a build with the feature `planted-copy`, copies or converts `units` once more if
/// `ONECOPY_PLANTED` is `copy` or `conversion`. In any other build, does nothing.
///
/// The copy or converted text is allocated on the heap.
#[inline(always)]
pub fn extra_work_on_text(units: crate::Units<'_>) {
    #[cfg(feature = "planted-copy")]
    planted::text(units);
    #[cfg(not(feature = "planted-copy"))]
    let _ = units;
}

/// In a build with the feature `planted-copy`, copies a chunk once more before it is sent if
/// `ONECOPY_PLANTED` is `send`. In any other build, does nothing.
///
/// The copy is allocated on the heap.
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
                // The capacity suffices for the longest result, so that the buffer does not grow
                // and the conversion is the only extra work.
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
