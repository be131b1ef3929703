//! Attributes of classes that decide how an instance is written.

use pyo3::prelude::*;
use pyo3::types::PyType;

use super::classes;

/// Attributes of a class, as they are without a metaclass being called for each instance.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hints {
    /// Its `_type_marker`, where that is a small number.
    pub(crate) marker: Option<u8>,
    /// Whether it has `__dataclass_fields__`.
    pub(crate) has_fields: bool,
}

/// The hints of the class of an object, read anew where the class is not known.
///
/// # Errors
/// What a metaclass raises.
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
