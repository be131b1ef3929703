//! Conversion of text between encodings, without I/O.
//!
//! | module | contents |
//! |---|---|
//! | [`units`] | [`Units`]: borrowed text in 8, 16 or 32-bit units |
//! | [`sink`] | [`ByteSink`]: memory to which conversions append bytes |
//! | [`chunk`] | [`Chunk`]: a sink on the heap or in memory of another owner |
//! | [`policy`] | the handling of malformed text, and the error [`Malformed`] |
//! | [`kind`] | [`Kind`], [`Shape`]: the narrowest `str` (PEP 393) for a text |
//! | [`validate`] | validates text, finds malformed sequences, computes the length in UTF-8 |
//! | [`convert`] | converts `Units` to UTF-8, UTF-16, bodies of JSON strings, and the data of a `str` |
//! | `decimal` | the shortest decimal of a float |
//! | `new_object` | traits that allocate the `str` or `bytes` of a conversion |
//! | [`encoding`] | [`Encoding`]: the encodings by name |
//! | [`transcode`] | [`Transcoder`]: converts a stream between any two encodings |
//! | `legacy` | the encodings of the WHATWG Encoding Standard, with encoding_rs |
//! | `iso2022jp` | the state of an ISO-2022-JP decoder between two parts |
//! | [`detect`] | [`Detector`]: detects the encoding of bytes |
//! | [`stream`] | [`Carry`]: converts a long text in parts |
//! | `arch` | the vector kernels, and the table that chooses one of them |
//! | [`ledger`] | counts of the bytes received, converted and copied |
//! | [`planted`] | an extra copy or conversion in test builds, to test the counters |
//! | [`naive`] | the reference implementation of every fast path |
//!
//! `unsafe` is used only in `sink`, `chunk` and `arch`.
#![deny(unsafe_code)]

#[allow(unsafe_code)] // Unsafe boundary: vector kernels, simdutf, code that relies on their checks.
mod arch;
#[allow(unsafe_code)] // Unsafe boundary: memory of chunks, on the heap or of another owner.
pub mod chunk;
pub mod convert;
mod decimal;
pub mod detect;
pub mod encoding;
mod iso2022jp;
pub mod kind;
pub mod ledger;
mod legacy;
pub mod naive;
mod new_object;
pub mod planted;
pub mod policy;
#[allow(unsafe_code)] // Unsafe boundary: windows into uninitialised memory of chunks.
pub mod sink;
pub mod stream;
pub mod transcode;
pub mod units;
pub mod validate;

pub use arch::{Kernel, kernel};
pub use chunk::{Chunk, ChunkMemory, MOVED_BY_PAGES_BYTES};
pub use convert::{ConvertError, Measured, measure};
pub use detect::{Certainty, Detection, Detector};
pub use encoding::{Encoding, Legacy, Order};
pub use iso2022jp::Iso2022JpState;
pub use kind::{Kind, Shape};
pub use ledger::{Entry, Ledger, Stage, Tally};
pub use legacy::{ByteTable, PairTable};
pub use policy::{Malformed, MalformedKind, Policy, UnsupportedPolicy};
pub use sink::{ByteSink, Pen, Put, SinkFull, Window};
pub use stream::Carry;
pub use transcode::{
    Bom, Eol, LineCount, MalformedBytes, Place, Reason, TranscodeError, TranscodeOptions,
    Transcoder,
};
pub use units::Units;
pub use validate::{find_malformed, is_utf8, utf8_len};
