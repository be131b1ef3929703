//! Determines how the encoders write the instances of a class.

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDate, PyDict, PyFloat, PyInt, PyList, PyString, PyTime, PyTuple, PyType};

use super::attributes::{self, Attribute};
use super::builtin_types::ObjectKind;
use super::classes::{ClassForm, Fields};
use super::{decimal, ordered_dict};
use crate::raw::ndarray::{self, ScalarClass};
use crate::raw::{number, uuid};

/// Determines how the instances of a class are written. Checks base classes in the order of the
/// JSON and BSON writers.
pub(super) fn form_of(class: &Bound<'_, PyType>) -> PyResult<ClassForm> {
    let py = class.py();
    // The `__class__` of a proxy object is another class.
    let own = attributes::of_class(class, pyo3::intern!(py, "__class__"))?;
    let plain = attributes::of_class(&py.get_type::<PyAny>(), pyo3::intern!(py, "__class__"))?;
    let is_itself = own.map(|own| own.as_ptr()) == plain.map(|plain| plain.as_ptr());
    if !is_itself || class.is_subclass_of::<PyDate>()? || class.is_subclass_of::<PyTime>()? {
        return Ok(ClassForm::Other);
    }
    let decimals = number::decimal_class(py)?;
    if class.is_subclass(decimals)? {
        return Ok(match class.is(decimals) && decimal::is_known(class)? {
            true => ClassForm::Decimal,
            false => ClassForm::Other,
        });
    }
    match ndarray::class_of(class)? {
        Some(ndarray::Class::Scalar) => {
            if let Some(scalar) = ScalarClass::find(class)? {
                return Ok(ClassForm::Scalar(scalar));
            }
        }
        Some(array) if ndarray::reads_arrays() => {
            let is_ndarray = array == ndarray::Class::Array;
            return Ok(ClassForm::Array { is_ndarray });
        }
        _ => {}
    }
    if class.is(uuid::class(py)?) {
        let number = Attribute::find(class, pyo3::intern!(py, "int"))?;
        return Ok(number.map_or(ClassForm::Other, ClassForm::Uuid));
    }
    let enumeration = enumeration(py)?;
    if class.is_subclass(enumeration)? {
        let value = pyo3::intern!(py, "value");
        let own = attributes::of_class(class, value)?;
        let plain = attributes::of_class(enumeration, value)?;
        if own.map(|own| own.as_ptr()) != plain.map(|plain| plain.as_ptr()) {
            return Ok(ClassForm::Other); // `value` is a property or a member
        }
        if let Some(kind) = contents_of_members(class)? {
            return Ok(ClassForm::EnumContents(kind));
        }
        let value = Attribute::find(class, pyo3::intern!(py, "_value_"))?;
        return Ok(value.map_or(ClassForm::Other, ClassForm::Enum));
    }
    if class.is_subclass_of::<PyDict>()? {
        let items = pyo3::intern!(py, "items");
        let own = attributes::of_class(class, items)?;
        let is_of = |base: &Bound<'_, PyType>| -> PyResult<bool> {
            let plain = attributes::of_class(base, items)?;
            Ok(own.as_ref().map(|own| own.as_ptr()) == plain.map(|plain| plain.as_ptr()))
        };
        if is_of(&py.get_type::<PyDict>())? {
            return Ok(ClassForm::Contents(ObjectKind::Dict));
        }
        let ordered = ordered_dict_class(py)?;
        let is_ordered = class.is_subclass(ordered)? && is_of(ordered)?;
        return Ok(match is_ordered && ordered_dict::is_known(ordered)? {
            true => ClassForm::OrderedDict,
            false => ClassForm::Other,
        });
    }
    Ok(if class.is_subclass_of::<PyString>()? {
        ClassForm::Contents(ObjectKind::Str)
    } else if class.is_subclass_of::<PyInt>()? {
        ClassForm::Contents(ObjectKind::Int)
    } else if class.is_subclass_of::<PyFloat>()? {
        ClassForm::Contents(ObjectKind::Float)
    } else if class.is_subclass_of::<PyList>()? {
        ClassForm::Contents(ObjectKind::List)
    } else if class.is_subclass_of::<PyTuple>()? {
        ClassForm::Contents(ObjectKind::Tuple)
    } else {
        fields_of(class)?.map_or(ClassForm::Uniform, ClassForm::Fields)
    })
}

/// Returns `int` for an `IntEnum`, and `str` for a `StrEnum`. `None` if a member differs from its
/// attribute `value`.
fn contents_of_members(class: &Bound<'_, PyType>) -> PyResult<Option<ObjectKind>> {
    let py = class.py();
    let (base, kind) = if class.is_subclass_of::<PyString>()? {
        (py.get_type::<PyString>(), ObjectKind::Str)
    } else if class.is_subclass_of::<PyInt>()? {
        (py.get_type::<PyInt>(), ObjectKind::Int)
    } else {
        return Ok(None);
    };
    let equals = base.getattr(pyo3::intern!(py, "__eq__"))?;
    let members = class.getattr(pyo3::intern!(py, "__members__"))?;
    for member in members
        .call_method0(pyo3::intern!(py, "values"))?
        .try_iter()?
    {
        let member = member?;
        let value = member.getattr(pyo3::intern!(py, "_value_"))?;
        if !value.get_type().is(&base) || !equals.call1((value, member))?.is_truthy()? {
            return Ok(None);
        }
    }
    Ok(Some(kind))
}

/// Returns `true` if orjson writes the instances in the same way. It recognizes enumerations by
/// their metaclass, and dataclasses only by their own decorator.
pub(super) fn is_of_orjson(class: &Bound<'_, PyType>, form: &ClassForm) -> PyResult<bool> {
    match form {
        ClassForm::Enum(_) | ClassForm::EnumContents(_) => {
            Ok(class.get_type().is(enumeration(class.py())?.get_type()))
        }
        ClassForm::Fields(_) => has_own(class, "__dataclass_fields__"),
        _ => Ok(true),
    }
}

/// Returns `true` if the class itself defines the attribute, and not a base class.
fn has_own(class: &Bound<'_, PyType>, name: &str) -> PyResult<bool> {
    class.getattr("__dict__")?.contains(name)
}

pub(crate) fn enumeration(py: Python<'_>) -> PyResult<&Bound<'_, PyType>> {
    static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    CLASS.import(py, "enum", "Enum")
}

fn ordered_dict_class(py: Python<'_>) -> PyResult<&Bound<'_, PyType>> {
    static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    CLASS.import(py, "collections", "OrderedDict")
}

/// Returns the fields of a dataclass. `None` if a field cannot be read without Python code.
fn fields_of(class: &Bound<'_, PyType>) -> PyResult<Option<Fields>> {
    let py = class.py();
    let name = pyo3::intern!(py, "__dataclass_fields__");
    let Some(members) = attributes::of_class(class, name)? else {
        return Ok(None);
    };
    // A metaclass may return another object.
    if !class.getattr(name)?.is(&members) {
        return Ok(None);
    }
    let Ok(members) = members.cast_into_exact::<PyDict>() else {
        return Ok(None);
    };
    let kind = py.import("dataclasses")?.getattr("_FIELD")?;
    let mut fields = Vec::with_capacity(members.len());
    for (name, field) in members {
        if !field.getattr(pyo3::intern!(py, "_field_type"))?.is(&kind) {
            continue; // a ClassVar or InitVar
        }
        let Ok(name) = name.cast_into_exact::<PyString>() else {
            return Ok(None);
        };
        let Some(attribute) = Attribute::find(class, &name)? else {
            return Ok(None);
        };
        let is_private = name
            .as_any()
            .call_method1("startswith", ("_",))?
            .is_truthy()?;
        fields.push((attribute, is_private));
    }
    let n_public = fields.iter().filter(|(_, is_private)| !is_private).count();
    Ok(Some(Fields {
        fields: fields.into(),
        n_public: n_public as isize,
        has_slots: has_own(class, "__slots__")?,
    }))
}
