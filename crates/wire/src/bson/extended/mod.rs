//! MongoDB Extended JSON v2
//! (<https://github.com/mongodb/specifications/blob/master/source/extended-json/extended-json.md>):
//! converts documents to JSON text ([`to_json()`]) and back ([`from_json()`]), in one pass and
//! without building a tree.
//!
//! | module | contents |
//! |---|---|
//! | [`mod@to_json`] | [`to_json()`]: converts documents to text |
//! | `double` | writes floats in the notation of the specification |
//! | [`mod@from_json`] | [`from_json()`]: converts text to documents |
//! | `writer` | writes a document while its text is read |
//! | `wrapper` | the keys of type wrappers, and the wrappers whose value is one string |
//! | `resolve_wrapper` | replaces wrappers with several parts by their values |
//! | [`instant`] | converts dates and times to text and back |
//! | [`naive`] | the reference implementations: convert trees to text and back |
//! | [`error`] | [`FromJsonError`]: an error with its position |

mod double;
pub mod error;
pub mod from_json;
pub mod instant;
pub mod naive;
mod resolve_wrapper;
pub mod to_json;
mod wrapper;
mod writer;

pub use error::{FromJsonError, Reason};
pub use from_json::{BigInts, FromJson, from_json};
pub use to_json::{Form, ToJson, ToJsonError, to_json};
