//! `Hints`: the attributes of a Python class that the encoders use.

use pyo3::prelude::*;
use pyo3::types::PyType;

use super::classes;

/// The attributes of a Python class that the encoders use. This cache avoids Python code in the
/// metaclass.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hints {
    /// The attribute `_type_marker` of pymongo's classes, if it fits into 8 bits.
    pub(crate) marker: Option<u8>,
    /// `true` for a class with `__dataclass_fields__`.
    pub(crate) has_fields: bool,
}

/// Returns the cached [`Hints`] of an object's class, or reads them from the class.
///
/// # Errors
/// The exception of a metaclass.
pub(crate) fn hints(object: &Bound<'_, PyAny>) -> PyResult<Hints> {
    // SAFETY: alive.
    match unsafe { classes::of(object.as_ptr()) } {
        Some(known) => Ok(known.hints),
        None => Hints::of(&object.get_type()),
    }
}

impl Hints {
    pub(super) fn of(class: &Bound<'_, PyType>) -> PyResult<Hints> {
        let py = class.py();
        let marker = class.getattr_opt(pyo3::intern!(py, "_type_marker"))?;
        let fields = class.getattr_opt(pyo3::intern!(py, "__dataclass_fields__"))?;
        Ok(Hints {
            marker: marker.and_then(|marker| marker.extract().ok()),
            has_fields: fields.is_some(),
        })
    }
}
