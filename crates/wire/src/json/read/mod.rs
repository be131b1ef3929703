//! The JSON reader (RFC 8259): text in, events out, in one pass and without a tree.
//!
//! | module | what it holds |
//! |---|---|
//! | [`events`] | [`Events`]: what a value is told to; [`Text`] of its strings |
//! | [`form`] | [`Form`]: the units that text is read in: UTF-8 of a buffer, or those of a `str` |
//! | [`reader`] | [`read`]: the grammar |
//! | [`escape`] | [`Escaped`]: strings with escapes |
//! | [`number`], [`float`] | numbers by their digits |
//! | [`error`] | [`ReadError`]: what is wrong, and where |
//! | [`naive`] | the slow twin: a value as a tree, one character at a time |
//!
//! Nothing here grows with the text; with its depth, a bit for each level does.

pub mod error;
pub mod escape;
pub mod events;
pub mod float;
pub mod form;
pub mod naive;
pub mod number;
pub mod reader;
#[cfg(test)]
mod tests;

pub use error::{Place, ReadError, Reason};
pub use escape::{Escaped, LEAST_PART_BYTES, Part, Piece, Surrogates, malformed};
pub use events::{Events, Refusal, Text};
pub use form::{Form, Latin1, Ucs2, Ucs4, Utf8};
pub use reader::{Limits, blank, read, read_all};
