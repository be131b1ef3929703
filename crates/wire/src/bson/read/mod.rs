//! The BSON reader (<https://bsonspec.org>): [`read`] converts a document to events
//! ([`BsonEvents`]), in one pass and without building a tree.
//!
//! | module | contents |
//! |---|---|
//! | [`events`] | [`BsonEvents`]: the event handler that receives a document |
//! | [`reader`] | [`read`]: the grammar, with validation of every length and terminator |
//! | [`elements`] | [`Elements`]: iterates over the elements of one document without parsing values |
//! | [`lengths`] | [`document_len`]: reads the length prefix of a document |
//! | `levels` | methods that enter and leave documents, arrays and scopes |
//! | `array_index`, `tags` | the expected keys of arrays, and the tags as constants |
//! | [`error`] | [`ReadError`]: an error with its position |
//!
//! The memory use does not depend on the size of the document: the reader needs only four bytes per
//! open document or array. The reference implementation is [`super::naive`]. Its
//! [`super::naive::Tree`] builds a tree from events.

mod array_index;
pub mod elements;
pub mod error;
pub mod events;
pub mod lengths;
mod levels;
pub mod reader;
mod tags;
#[cfg(test)]
mod tests;

pub use elements::{Element, Elements};
pub use error::{ReadError, Reason};
pub use events::{BsonEvents, EventResult, Rejection, malformed};
pub use lengths::{LEAST_BYTES, document_len};
pub use reader::{ArrayKeys, Rules, read, read_all, read_value};
