//! Text between encodings, with no I/O: the room that all others stand on.
//!
//! | module | what it holds |
//! |---|---|
//! | [`units`] | [`Units`]: borrowed text as 8, 16 or 32-bit units, in the encoding its owner holds it in |
//! | [`sink`] | [`ByteSink`]: the contiguous current chunk that bytes land in |
//! | [`chunk`] | [`Chunk`]: a sink in memory of its own or in an object of somebody else |
//! | [`policy`] | what to do with malformed text, and [`Malformed`], which tells where it stands |
//! | [`kind`] | the narrowest PEP 393 representation for a text: [`Kind`], [`Shape`] |
//! | [`validate`] | whether text is well-formed, where it is not, how long it is in UTF-8 |
//! | [`convert`] | `Units` to UTF-8, to JSON string bodies, to the data area of a `str`, to UTF-16 |
//! | `decimal` | the shortest decimal of a float |
//! | `new_object` | fresh `str` and `bytes` that conversions write into |
//! | [`encoding`] | the encodings of bytes by their names: [`Encoding`] |
//! | [`transcode`] | any encoding to any other, in parts: [`Transcoder`] |
//! | `legacy` | the encodings of the WHATWG Encoding Standard, by encoding_rs |
//! | `iso2022jp` | the state of a decoder of ISO-2022-JP between two parts |
//! | [`detect`] | which encoding bytes are in, and why: [`Detector`] |
//! | [`stream`] | [`Carry`]: joins the parts of a long text |
//! | `arch` | the kernels, and the one place that chooses between them: [`kernel`] |
//! | [`ledger`] | how many bytes of text were taken in, converted and copied, by stage |
//! | [`planted`] | a copy or conversion too many, in test builds only: it must turn the ledger's witness red |
//! | [`naive`] | the slow twin of every fast path, one code point at a time |
//!
//! `unsafe` lives in `sink`, `chunk` and `arch` alone.
#![deny(unsafe_code)]

#[allow(unsafe_code)] // Fence: vector kernels, simdutf, and what relies on what they have checked.
mod arch;
#[allow(unsafe_code)] // Fence: chunk memory, owned or somebody else's.
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
#[allow(unsafe_code)] // Fence: windows into uninitialised chunk memory.
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
pub use policy::{Malformed, MalformedKind, Policy};
pub use sink::{ByteSink, Pen, Put, SinkFull, Window};
pub use stream::Carry;
pub use transcode::{
    Bom, Eol, LineCount, MalformedBytes, OnMalformed, OnUnencodable, Place, Reason, TranscodeError,
    TranscodeOptions, Transcoder,
};
pub use units::Units;
pub use validate::{find_malformed, is_utf8, utf8_len};
