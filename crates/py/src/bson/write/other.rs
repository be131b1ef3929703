//! What stands for objects that are none of CPython's own types.

use onecopy_text::ByteSink;
use onecopy_wire::WriteError;
use onecopy_wire::bson::{Decimal128, SUBTYPE_GENERIC, Tag};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{
    PyByteArray, PyBytes, PyDate, PyDateTime, PyDict, PyFloat, PyInt, PyList, PyMapping,
    PyMemoryView, PyString, PyTuple, PyType,
};

use super::marked::{self, put_binary, put_buffer, put_regex};
use super::options::{Options, Passed, Range};
use crate::bson::moments;
use crate::raw::ndarray::{self, Described};
use crate::raw::walk;
use crate::raw::walk::bson::{FIRST_MS, LAST_MS, Other, Others, Stop, class_name};
use crate::raw::{number, text, uuid};

/// Classes that are looked for, imported once.
struct Classes {
    decimal: Py<PyType>,
    uuid: Py<PyType>,
    enumeration: Py<PyType>,
    pattern: Py<PyType>,
}

fn classes(py: Python<'_>) -> PyResult<&Classes> {
    static CLASSES: PyOnceLock<Classes> = PyOnceLock::new();
    CLASSES.get_or_try_init(py, || {
        let class = |module: &str, name: &str| -> PyResult<Py<PyType>> {
            let class = py.import(module)?.getattr(name)?;
            Ok(class.cast_into::<PyType>()?.unbind())
        };
        Ok(Classes {
            decimal: number::decimal_class(py)?.clone().unbind(),
            uuid: uuid::class(py)?.clone().unbind(),
            enumeration: class("enum", "Enum")?,
            pattern: class("re", "Pattern")?,
        })
    })
}

/// A value that has no form, of this kind.
fn wrong(kind: &'static str, reason: impl Into<String>) -> Stop {
    Stop::Value {
        kind,
        reason: reason.into(),
    }
}

impl Options {
    /// A moment, where it is in the range that was asked for.
    fn ranged(&self, ms: i64) -> Result<i64, Stop> {
        match self.range {
            Range::Error if !(FIRST_MS..=LAST_MS).contains(&ms) => Err(wrong(
                "datetime",
                "the moment is outside of the years 1 to 9999 in UTC\nask for `datetime_range=\"clamp\"` or `\"raw\"`",
            )),
            Range::Error | Range::Raw => Ok(ms),
            Range::Clamp => Ok(ms.clamp(FIRST_MS, LAST_MS)),
        }
    }

    /// A date or datetime.
    fn moment(&self, object: &Bound<'_, PyAny>) -> Result<Option<i64>, Stop> {
        if let Ok(at) = object.cast::<PyDateTime>() {
            return self.ranged(moments::unix_ms(at)?).map(Some);
        }
        match object.cast::<PyDate>() {
            Ok(day) if !self.passes(Passed::Date) => Ok(Some(moments::unix_ms_of_date(day)?)),
            _ => Ok(None),
        }
    }

    /// Puts a UUID.
    fn uuid(&self, object: &Bound<'_, PyAny>, out: &mut dyn ByteSink) -> Result<(), Stop> {
        let value: u128 = object
            .getattr(pyo3::intern!(object.py(), "int"))?
            .extract()?;
        let binary = self.style.uuid.binary(value.to_be_bytes());
        let (subtype, bytes) = binary.ok_or_else(|| {
            wrong(
                "uuid",
                "a UUID has no form where its representation is unspecified\nname one with `uuid_representation=`, or use `Binary.from_uuid`",
            )
        })?;
        put_binary(subtype, &bytes, out)
    }

    /// The form of an object of a class that has one of CPython's own types as its base. An `int`
    /// past 64 bits is left to `default`.
    fn subclass<'py>(
        &self,
        object: &Bound<'py, PyAny>,
        out: &mut dyn ByteSink,
    ) -> Result<Option<Other<'py>>, Stop> {
        let py = object.py();
        Ok(Some(if object.is_instance_of::<PyString>() {
            Other::Text(Tag::String, text::exact(object)?)
        } else if object.is_instance_of::<PyInt>() {
            if object.extract::<i64>().is_err() {
                return match &self.default {
                    Some(_) => Ok(None),
                    None => Err(Stop::Int),
                };
            }
            let plain = py.get_type::<PyInt>().call_method1("__int__", (object,))?;
            Other::Instead(plain)
        } else if let Ok(float) = object.cast::<PyFloat>() {
            out.put(&float.value().to_le_bytes())?;
            Other::Put(Tag::Double)
        } else if let Ok(bytes) = object.cast::<PyBytes>() {
            put_binary(SUBTYPE_GENERIC, bytes.as_bytes(), out)?;
            Other::Put(Tag::Binary)
        } else if object.is_instance_of::<PyList>() || object.is_instance_of::<PyTuple>() {
            Other::Items
        } else if object.is_instance_of::<PyDict>() {
            Other::Pairs(members(object)?)
        } else {
            return Ok(None);
        }))
    }

    fn dataclass<'py>(&self, object: &Bound<'py, PyAny>) -> Result<Option<Other<'py>>, Stop> {
        let py = object.py();
        let fields = pyo3::intern!(py, "__dataclass_fields__");
        let Some(fields) = object.get_type().getattr_opt(fields)? else {
            return Ok(None);
        };
        let Ok(fields) = fields.cast_into::<PyDict>() else {
            return Ok(None);
        };
        let kind = py.import("dataclasses")?.getattr("_FIELD")?;
        let members = PyList::empty(py);
        for (name, field) in fields {
            if !field.getattr(pyo3::intern!(py, "_field_type"))?.is(&kind) {
                continue; // a ClassVar or InitVar
            }
            let Ok(name) = name.cast_into::<PyString>() else {
                continue;
            };
            let value = object.getattr(&name)?;
            members.append(name)?;
            members.append(value)?;
        }
        Ok(Some(Other::Pairs(members)))
    }

    /// The form of a scalar or array of NumPy's.
    fn numpy<'py>(&self, object: &Bound<'py, PyAny>) -> Result<Option<Other<'py>>, Stop> {
        let described = ndarray::describe(object, self.style.natives.numpy)?;
        Ok(match described {
            Some(Described::Memory(memory)) => Some(Other::Memory(memory)),
            Some(Described::List(list)) => Some(Other::Instead(list)),
            Some(Described::Swapped) | None => None,
        })
    }
}

/// The keys and values of a mapping, in turn.
fn members<'py>(mapping: &Bound<'py, PyAny>) -> Result<Bound<'py, PyList>, Stop> {
    let py = mapping.py();
    let members = PyList::empty(py);
    let items = mapping.call_method0(pyo3::intern!(py, "items"))?;
    for item in items.try_iter()? {
        let (key, value): (Bound<'py, PyAny>, Bound<'py, PyAny>) = item?.extract()?;
        members.append(key)?;
        members.append(value)?;
    }
    Ok(members)
}

/// The bytes of a `Decimal`.
fn decimal(object: &Bound<'_, PyAny>) -> Result<[u8; 16], Stop> {
    let digits = object.str()?;
    let digits = text::ascii(digits.as_any().as_borrowed()).unwrap_or_default();
    let (sign, unsigned) = match digits.strip_prefix(b"-") {
        Some(unsigned) => (0x80, unsigned),
        None => (0, digits),
    };
    let special = match unsigned {
        b"NaN" => 0x7C,
        b"sNaN" => 0x7E,
        _ => 0,
    };
    if special != 0 {
        let mut bytes = [0; 16];
        bytes[15] = special | sign;
        return Ok(bytes);
    }
    match Decimal128::of_digits(digits) {
        Ok(decimal) => Ok(decimal.to_le_bytes()),
        Err(WriteError::DecimalTooLong) => Err(wrong(
            "decimal",
            "the Decimal has more than the 34 digits of decimal128, or too large an exponent\nround it, or write it as a str",
        )),
        Err(_) => Err(wrong("decimal", "the Decimal has no form in decimal128")),
    }
}

impl<'py> Others<'py> for Options {
    fn other(
        &self,
        object: &Bound<'py, PyAny>,
        out: &mut dyn ByteSink,
    ) -> Result<Option<Other<'py>>, Stop> {
        let py = object.py();
        if let Some(ms) = self.moment(object)? {
            out.put(&ms.to_le_bytes())?;
            return Ok(Some(Other::Put(Tag::DateTime)));
        }
        let classes = classes(py)?;
        if object.is_instance(classes.uuid.bind(py))? {
            self.uuid(object, out)?;
            return Ok(Some(Other::Put(Tag::Binary)));
        }
        if !self.passes(Passed::Decimal) && object.is_instance(classes.decimal.bind(py))? {
            out.put(&decimal(object)?)?;
            return Ok(Some(Other::Put(Tag::Decimal128)));
        }
        if let Some(other) = marked::write(object, out)? {
            return Ok(Some(other));
        }
        if !self.passes(Passed::Enum) && object.is_instance(classes.enumeration.bind(py))? {
            return Ok(Some(Other::Instead(
                object.getattr(pyo3::intern!(py, "value"))?,
            )));
        }
        if let Some(other) = self.subclass(object, out)? {
            return Ok(Some(other));
        }
        if object.is_instance(classes.pattern.bind(py))? {
            put_regex(object, out)?;
            return Ok(Some(Other::Put(Tag::Regex)));
        }
        if object.cast::<PyMapping>().is_ok() {
            return Ok(Some(Other::Pairs(members(object)?)));
        }
        let is_buffer =
            object.is_instance_of::<PyByteArray>() || object.is_instance_of::<PyMemoryView>();
        if is_buffer && !self.passes(Passed::Buffer) {
            put_buffer(object, out)?;
            return Ok(Some(Other::Put(Tag::Binary)));
        }
        if !self.passes(Passed::Dataclass)
            && walk::hints(object)?.has_fields
            && let Some(other) = self.dataclass(object)?
        {
            return Ok(Some(other));
        }
        self.numpy(object)
    }

    fn ranged(&self, ms: i64) -> Result<i64, Stop> {
        Options::ranged(self, ms)
    }

    fn default(&self, object: &Bound<'py, PyAny>) -> Result<Bound<'py, PyAny>, Stop> {
        match &self.default {
            Some(default) => Ok(default.call(object)?),
            None => Err(Stop::Unknown {
                class: class_name(object),
            }),
        }
    }
}
