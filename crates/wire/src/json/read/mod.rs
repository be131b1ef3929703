//! The JSON reader (RFC 8259): [`read`] converts text to events ([`JsonEvents`]), in one pass and
//! without building a tree.
//!
//! | module | contents |
//! |---|---|
//! | [`events`] | [`JsonEvents`]: the event handler that receives a value; [`Text`]: the text of a string |
//! | [`source_form`] | [`SourceForm`]: the type of the units of the input (UTF-8, or those of a `str`) |
//! | [`reader`] | [`read`]: the grammar |
//! | [`escape`] | [`Escaped`]: the body of a string with escapes |
//! | [`number`], [`float`] | convert numbers from their digits |
//! | [`error`] | [`ReadError`]: an error with its position |
//! | [`naive`] | the reference implementation, which builds a tree, one character at a time |
//!
//! The memory use does not depend on the length of the text: the reader needs only one bit per open
//! array or object.

pub mod error;
pub mod escape;
pub mod events;
pub mod float;
pub mod naive;
pub mod number;
pub mod reader;
pub mod source_form;
#[cfg(test)]
mod tests;

pub use error::{ReadError, Reason, TextPosition};
pub use escape::{Escaped, EscapedPart, LEAST_PART_BYTES, Unescaped, malformed};
pub use events::{EventResult, JsonEvents, Rejection, Text};
pub use reader::{Limits, blank, read, read_all};
pub use source_form::{Latin1, SourceForm, Ucs2, Ucs4, Utf8};
