//! `onecopy.bson`: Python objects to BSON and back.
//!
//! | module | contents |
//! |---|---|
//! | `object_id` | `ObjectId` |
//! | `extended` | BSON to Extended JSON and back, and validation |
//! | `date_time` | dates and times as BSON's milliseconds |
//! | `regex` | the options of regular expressions |
//! | `read` | BSON to objects |
//! | `write` | objects to BSON |
//!
//! The other BSON types are Python classes (`python/onecopy/bson/_types.py`).

mod date_time;
mod extended;
mod object_id;
mod read;
mod regex;
mod write;

use pyo3::prelude::*;

pub(crate) use self::regex::REGEX_FLAGS;
pub(crate) use object_id::ObjectId;
pub(crate) use read::RawDocument;

pub(crate) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<ObjectId>()?;
    read::add(module)?;
    write::add(module)?;
    extended::add(module)
}
