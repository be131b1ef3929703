//! MongoDB Extended JSON v2
//! (<https://github.com/mongodb/specifications/blob/master/source/extended-json/extended-json.md>): documents as JSON text and
//! back, in one pass and with no tree.
//!
//! | module | what it holds |
//! |---|---|
//! | [`mod@from_json`] | [`from_json()`]: text to documents |
//! | `wrapper` | the keys of type wrappers, and values that are one string |
//! | `settle` | wrappers of several parts, once their object is whole |
//! | [`instant`] | dates and times as text |
//! | [`error`] | what is wrong with a text, and where |

pub mod error;
pub mod from_json;
pub mod instant;
mod settle;
mod wrapper;

pub use error::{FromJsonError, Reason};
pub use from_json::{BigInts, FromJson, from_json};
