//! Text between encodings, with no I/O: the room that all others stand on.
//!
//! | module | what it holds |
//! |---|---|
//! | [`units`] | [`Units`]: borrowed text as 8, 16 or 32-bit units, in the encoding its owner holds it in |
//! | [`sink`] | [`ByteSink`]: the contiguous current chunk that bytes land in |
//! | [`chunk`] | [`Chunk`]: a sink in memory of its own or in an object of somebody else |
//! | [`policy`] | what to do with malformed text, and [`Malformed`], which tells where it stands |
//! | [`kind`] | the narrowest PEP 393 representation for a text: [`Kind`], [`Shape`] |
//! | [`convert`] | `Units` to UTF-8, to JSON string bodies, to the data area of a `str` |
//! | [`ledger`] | how many bytes of text were taken in, converted and copied, by stage |
//! | [`naive`] | the slow twin of every fast path, one code point at a time |
//!
//! `unsafe` lives in `sink`, `chunk` and `arch` alone.
#![deny(unsafe_code)]

#[allow(unsafe_code)] // Fence: chunk memory, owned or somebody else's.
pub mod chunk;
pub mod convert;
pub mod kind;
pub mod ledger;
pub mod naive;
pub mod policy;
#[allow(unsafe_code)] // Fence: windows into uninitialised chunk memory.
pub mod sink;
pub mod units;

pub use chunk::{Chunk, ChunkMemory};
pub use kind::{Kind, Shape};
pub use ledger::{Entry, Ledger, Stage, Tally};
pub use policy::{Malformed, MalformedKind, Policy};
pub use sink::{ByteSink, SinkFull, Window};
pub use units::Units;
