//! The conversion kernels, and the table that chooses one of them.
//!
//! A module uses only the modules above it in the table.
//!
//! | module | contents |
//! |---|---|
//! | `kernel` | the kernel family of this process ([`kernel()`]), and results of scans |
//! | `memory` | conversions between units and possibly uninitialised memory |
//! | `new_cell` | makes the `str` or `bytes` of a cell |
//! | `family` | one type for each kernel family, and the operations of each |
//! | `scalar` | the scalar implementation of every kernel, and the only one for Miri |
//! | `generic` | vector algorithms for any type that implements [`generic::Vector`] |
//! | `sse2` | kernels with 16-byte vectors for every x86-64 processor |
//! | `avx2` | kernels with 32-byte vectors |
//! | `avx512` | kernels with 64-byte vectors |
//! | `private` | converts text that other threads may write to |
//! | `by_simdutf` | simdutf's kernels |
//! | `bulk` | operations that are composed of other operations of the table |
//! | `dispatch` | the table of kernels |
//! | `rust_str` | converts validated bytes to a Rust `&str` |
//! | `decode` | converts UTF-8 to UTF-16 and Latin-1 |
//! | `encode` | computes the lengths of text in UTF-8 and UTF-16 |
//! | `float` | writes floats as their shortest decimals |
//! | `json` | writes short texts as bodies of JSON strings |
//! | `utf8` | writes short texts as UTF-8 |
//! | `json_read` | the operations of the JSON reader |
//! | `cell` | converts short texts to a `str` or `bytes` |
//! | `measured` | validated and measured text |
//! | `large` | converts long text to a `str`, in one pass |
//! | `bytes` | conversions between bytes and the units of UTF-16 and UTF-32 |
//! | `put` | conversions into a [`Window`](crate::Window) |
//!
//! `ONECOPY_KERNEL` = `scalar`, `sse2`, `avx2` or `avx512` limits the choice of the kernel family.
//! `scalar` excludes simdutf too. `best`, the default, sets no limit.
//! `SIMDUTF_FORCE_IMPLEMENTATION` (`icelake`, `haswell`, `westmere`, `fallback`) selects simdutf's
//! own kernels.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod bulk;
#[cfg(target_arch = "x86_64")]
mod by_simdutf;
pub(crate) mod bytes;
pub(crate) mod cell;
pub(crate) mod decode;
pub(crate) mod dispatch;
pub(crate) mod encode;
pub(crate) mod family;
pub(crate) mod float;
#[cfg(target_arch = "x86_64")]
mod generic;
pub(crate) mod json;
pub(crate) mod json_read;
mod kernel;
pub(crate) mod large;
pub(crate) mod measured;
pub(crate) mod memory;
pub(crate) mod new_cell;
mod private;
pub(crate) mod put;
pub(crate) mod rust_str;
pub(crate) mod scalar;
#[cfg(target_arch = "x86_64")]
mod sse2;
pub(crate) mod utf8;

#[cfg(test)]
mod changing_tests;
#[cfg(test)]
#[path = "../../tests/support/skips.rs"]
mod skips;
#[cfg(test)]
mod test_texts;
#[cfg(all(test, target_arch = "x86_64"))]
mod tests;

pub use kernel::{Kernel, kernel};
