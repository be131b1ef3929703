//! MongoDB Extended JSON v2
//! (<https://github.com/mongodb/specifications/blob/master/source/extended-json/extended-json.md>): documents as JSON text and
//! back, in one pass and with no tree.
//!
//! | module | what it holds |
//! |---|---|
//! | [`mod@to_json`] | [`to_json()`]: documents to text |
//! | `double` | floats as the specification writes them |
//! | [`mod@from_json`] | [`from_json()`]: text to documents |
//! | `writer` | the document that it writes |
//! | `wrapper` | the keys of type wrappers, and values that are one string |
//! | `settle` | wrappers of several parts, once their object is whole |
//! | [`instant`] | dates and times as text |
//! | [`naive`] | the slow twins: trees to text and back |
//! | [`error`] | what is wrong with a text, and where |

mod double;
pub mod error;
pub mod from_json;
pub mod instant;
pub mod naive;
mod settle;
pub mod to_json;
mod wrapper;
mod writer;

pub use error::{FromJsonError, Reason};
pub use from_json::{BigInts, FromJson, from_json};
pub use to_json::{Form, ToJson, ToJsonError, to_json};
