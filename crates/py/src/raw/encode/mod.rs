//! The encoder of Python objects, for JSON and BSON.
//!
//! | module | contents |
//! |---|---|
//! | `json`, `bson` | the formats: values, keys, texts, arrays of NumPy |
//! | `format` | the interface between the loops and an output format |
//! | `containers` | the loop over the open containers of an encoder |
//! | `members` | the loop over the members of one container, and of the containers in it |
//! | `python_members` | the members of lists, tuples, dicts and dataclasses |
//! | `state` | the state that encoders of all formats have |
//! | `frames` | the open containers of an encoder, and their references |
//! | `sorted` | the members of a `dict` in the order of their keys |
//! | `key_cache` | the encoded bytes of recent keys |
//! | `builtin_types`, `dict`, `attributes` | built-in objects, members of a `dict` and attributes,
//! read in place |
//! | `classes`, `class_forms`, `hints` | cached properties of classes: the form of their instances
//! |
//! | `standard_types` | dates, UUIDs, enumerations, dataclasses and subclasses, read in place |
//! | `decimal`, `bson_types` | `decimal.Decimal` and the BSON classes, read in place |
//! | `ordered_dict` | the order of an `OrderedDict` |
//! | `prefetch` | objects that are loaded into the processor's cache before they are read |
//! | `sinks` | destinations other than a new `bytes` |
//!
//! The encoder reads objects of built-in types directly from memory ("in place"), without reference
//! counting or Python code. A container is a list, tuple, `dict`, dataclass instance or array. Its
//! members are its items, entries or fields. The trait `ObjectForms` of the format handles all
//! other objects, and may run Python code. The encoder first acquires references to all open
//! containers.

mod attributes;
pub(crate) mod bson;
mod bson_types;
mod builtin_types;
mod class_forms;
mod classes;
mod containers;
mod decimal;
mod dict;
mod format;
mod frames;
mod hints;
pub(crate) mod json;
mod key_cache;
mod members;
mod ordered_dict;
mod prefetch;
mod python_members;
mod sinks;
mod sorted;
mod standard_types;
mod state;

use pyo3::exceptions::PyImportError;
use pyo3::prelude::*;

use crate::raw::str_header;
pub(crate) use class_forms::enumeration;
pub(crate) use classes::{has_no_form, note_no_form};
pub(crate) use hints::hints;
pub(crate) use sinks::{Fixed, Flushing};
pub(crate) use standard_types::Natives;

/// Returns an `ImportError` if Python objects have an unknown memory layout. The import of the
/// extension module calls this function.
pub(crate) fn check_layout(py: Python<'_>) -> PyResult<()> {
    if str_header::is_known(py)? && builtin_types::reads_ints(py) && dict::is_known(py)? {
        return attributes::check(py);
    }
    Err(PyImportError::new_err(
        "the object layout of this interpreter is not supported\n\
         install a wheel that was built for it",
    ))
}
