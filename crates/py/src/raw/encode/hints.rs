//! `Hints`: attributes of a Python class that determine how the encoders write its instances.

use pyo3::prelude::*;
use pyo3::types::PyType;

use super::classes;

/// The attributes of a Python class that determine how its instances are encoded. They are cached
/// because each lookup calls the class's metaclass, which may run Python code.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hints {
    /// The attribute `_type_marker`, with which pymongo marks its BSON classes. `None` if the class
    /// does not have the attribute, or if its value does not fit into 8 bits.
    pub(crate) marker: Option<u8>,
    /// `true` if the class has the attribute `__dataclass_fields__`.
    pub(crate) has_fields: bool,
}

/// Returns the [`Hints`] for the class of an object, from the cache or from the attributes of the
/// class.
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
