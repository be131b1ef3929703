//! The BSON reader (<https://bsonspec.org>): documents in, events out, in one pass and without a tree.
//!
//! | module | what it holds |
//! |---|---|
//! | [`events`] | [`BsonEvents`]: what a document is told to |
//! | [`reader`] | [`read`]: the grammar, every length and terminator |
//! | [`elements`] | [`Elements`]: the elements of one document, found without reading what stands in them |
//! | [`lengths`] | [`document_len`]: the length in front of a document, for who gathers one |
//! | `levels` | documents inside of each other: gone into, and left again |
//! | `index`, `tags` | the keys of arrays, and the bytes of tags |
//! | [`error`] | [`ReadError`]: what is wrong, and at which byte |
//!
//! Nothing here grows with a document; with its depth, four bytes for each level do. The slow twin is that of the writer
//! ([`super::naive`]); its [`super::naive::Tree`] is a tree of events.

pub mod elements;
pub mod error;
pub mod events;
mod index;
pub mod lengths;
mod levels;
pub mod reader;
mod tags;
#[cfg(test)]
mod tests;

pub use elements::{Element, Elements};
pub use error::{ReadError, Reason};
pub use events::{BsonEvents, Refusal, Told, malformed};
pub use lengths::{LEAST_BYTES, document_len};
pub use reader::{ArrayKeys, Rules, read, read_all, read_value};
