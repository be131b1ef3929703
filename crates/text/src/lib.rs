//! Conversion of text between encodings, without I/O: the crate that all others build on.
//!
//! | module | contents |
//! |---|---|
//! | [`units`] | [`Units`]: borrowed text as 8, 16 or 32-bit units, in the encoding of its owner |
//! | [`sink`] | [`ByteSink`]: contiguous memory to which conversions append bytes |
//! | [`chunk`] | [`Chunk`]: a sink on the heap or in memory of another owner |
//! | [`policy`] | the handling of malformed text, and [`Malformed`]: its kind and position |
//! | [`kind`] | [`Kind`], [`Shape`]: the narrowest `str` (PEP 393) for a text |
//! | [`validate`] | validates text, finds malformed sequences, computes the length in UTF-8 |
//! | [`convert`] | converts `Units` to UTF-8, UTF-16, bodies of JSON strings, and the data of a `str` |
//! | `decimal` | the shortest decimal of a float |
//! | `new_object` | traits that allocate the `str` or `bytes` into which a conversion writes |
//! | [`encoding`] | the encodings of bytes by their names: [`Encoding`] |
//! | [`transcode`] | [`Transcoder`]: converts a stream from any encoding to any other, part by part |
//! | `legacy` | the encodings of the WHATWG Encoding Standard, converted by encoding_rs |
//! | `iso2022jp` | the state of an ISO-2022-JP decoder between two parts |
//! | [`detect`] | [`Detector`]: detects the encoding of bytes, and reports the reason |
//! | [`stream`] | [`Carry`]: converts a long text in parts, which may end inside a character |
//! | `arch` | the vector kernels, and the table that chooses one for each operation |
//! | [`ledger`] | counts of the bytes of text that were received, converted and copied, by stage |
//! | [`planted`] | an extra copy or conversion, in test builds only, which the independent counter must detect |
//! | [`naive`] | the reference implementation of every fast path, one code point at a time |
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
