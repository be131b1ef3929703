//! `Hints`: the attributes of a class that determine how its instances are written.

use pyo3::prelude::*;
use pyo3::types::PyType;

use super::classes;

/// Attributes of a class, cached so that a metaclass is not called for each instance.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hints {
    /// The class's `_type_marker`, if it is a small number.
    pub(crate) marker: Option<u8>,
    /// `true` if the class has `__dataclass_fields__`.
    pub(crate) has_fields: bool,
}

/// Returns the [`Hints`] for the class of an object: from the cache if it contains the class,
/// otherwise from the class itself.
///
/// # Errors
/// An exception that a method of the metaclass raises.
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
