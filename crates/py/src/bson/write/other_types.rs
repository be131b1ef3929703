//! Writes types that are not built into CPython: datetimes, UUIDs, decimals, enums, dataclasses,
//! NumPy objects, mappings.

use onecopy_text::ByteSink;
use onecopy_wire::WriteError;
use onecopy_wire::bson::{Decimal128, SUBTYPE_GENERIC, Tag};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{
    PyByteArray, PyBytes, PyDate, PyDateTime, PyDict, PyFloat, PyInt, PyList, PyMapping,
    PyMemoryView, PyString, PyTuple, PyType,
};

use super::bson_classes::{self, put_binary, put_buffer, put_regex};
use super::options::{BsonWriteOptions, Passed, Range};
use crate::bson::date_time;
use crate::raw::encode;
use crate::raw::encode::bson::{BsonStop, FIRST_MS, LAST_MS, ObjectForm, ObjectForms, class_name};
use crate::raw::ndarray::{self, Described};
use crate::raw::{number, temporal, text, uuid};

fn pattern_class(py: Python<'_>) -> PyResult<&Bound<'_, PyType>> {
    static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    CLASS.import(py, "re", "Pattern")
}

/// Returns the error for a value that BSON cannot represent. `kind` is an attribute of the
/// exception.
fn wrong(kind: &'static str, reason: impl Into<String>) -> BsonStop {
    BsonStop::Value {
        kind,
        reason: reason.into(),
    }
}

impl BsonWriteOptions {
    /// Applies the option `datetime_range` to `ms`, in milliseconds since 1970.
    fn ranged(&self, ms: i64) -> Result<i64, BsonStop> {
        match self.range {
            Range::Error if !(FIRST_MS..=LAST_MS).contains(&ms) => Err(wrong(
                "datetime",
                "the moment is outside of the years 1 to 9999 in UTC\n\
                 pass `datetime_range=\"clamp\"` or `\"raw\"`",
            )),
            Range::Error | Range::Raw => Ok(ms),
            Range::Clamp => Ok(ms.clamp(FIRST_MS, LAST_MS)),
        }
    }

    /// Converts a `date` or `datetime` to milliseconds since 1970. Returns `None` for other
    /// objects, and for dates that `passthrough` excludes.
    fn moment(&self, object: &Bound<'_, PyAny>) -> Result<Option<i64>, BsonStop> {
        if let Ok(at) = object.cast::<PyDateTime>() {
            return self.ranged(date_time::unix_ms(at)?).map(Some);
        }
        match object.cast::<PyDate>() {
            Ok(day) if !self.passes(Passed::Date) => Ok(Some(date_time::unix_ms_of_date(day)?)),
            _ => Ok(None),
        }
    }

    fn uuid(&self, object: &Bound<'_, PyAny>, out: &mut dyn ByteSink) -> Result<(), BsonStop> {
        let value: u128 = object
            .getattr(pyo3::intern!(object.py(), "int"))?
            .extract()?;
        let binary = self.style.uuid.binary(value.to_be_bytes());
        let (subtype, bytes) = binary.ok_or_else(|| {
            wrong(
                "uuid",
                "a UUID cannot be written while its representation is unspecified\n\
                 name one with `uuid_representation=`, or use `Binary.from_uuid`",
            )
        })?;
        put_binary(subtype, &bytes, out)
    }

    /// Chooses how to write an instance of a class derived from a built-in type.
    fn subclass<'py>(
        &self,
        object: &Bound<'py, PyAny>,
        out: &mut dyn ByteSink,
    ) -> Result<Option<ObjectForm<'py>>, BsonStop> {
        let py = object.py();
        Ok(Some(if object.is_instance_of::<PyString>() {
            ObjectForm::Text(Tag::String, text::exact(object)?)
        } else if object.is_instance_of::<PyInt>() {
            if object.extract::<i64>().is_err() {
                return match &self.default {
                    Some(_) => Ok(None),
                    None => Err(BsonStop::Int),
                };
            }
            let plain = py.get_type::<PyInt>().call_method1("__int__", (object,))?;
            ObjectForm::Instead(plain)
        } else if let Ok(float) = object.cast::<PyFloat>() {
            out.put(&float.value().to_le_bytes())?;
            ObjectForm::Put(Tag::Double)
        } else if let Ok(bytes) = object.cast::<PyBytes>() {
            put_binary(SUBTYPE_GENERIC, bytes.as_bytes(), out)?;
            ObjectForm::Put(Tag::Binary)
        } else if object.is_instance_of::<PyList>() || object.is_instance_of::<PyTuple>() {
            ObjectForm::Items
        } else if object.is_instance_of::<PyDict>() {
            ObjectForm::Pairs(members(object)?)
        } else {
            return Ok(None);
        }))
    }

    fn dataclass<'py>(
        &self,
        object: &Bound<'py, PyAny>,
    ) -> Result<Option<ObjectForm<'py>>, BsonStop> {
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
        Ok(Some(ObjectForm::Pairs(members)))
    }

    /// Converts a NumPy scalar or array to a form for the encoder. Returns `None` for other
    /// objects, and for types that BSON does not have.
    fn numpy<'py>(&self, object: &Bound<'py, PyAny>) -> Result<Option<ObjectForm<'py>>, BsonStop> {
        let described = ndarray::describe(object, self.style.natives.numpy)?;
        Ok(match described {
            Some(Described::Memory(memory)) => Some(ObjectForm::Memory(Box::new(memory))),
            Some(Described::List(list)) => Some(ObjectForm::Instead(list)),
            Some(Described::Swapped) | None => None,
        })
    }
}

/// Returns the items of a mapping as a list: key, value, key, value, …
fn members<'py>(mapping: &Bound<'py, PyAny>) -> Result<Bound<'py, PyList>, BsonStop> {
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

fn decimal(object: &Bound<'_, PyAny>) -> Result<[u8; 16], BsonStop> {
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
            "the Decimal has more than the 34 digits of decimal128, or too large an exponent\n\
             round it, or write it as a str",
        )),
        Err(_) => Err(wrong("decimal", "the Decimal has no form in decimal128")),
    }
}

impl BsonWriteOptions {
    /// Writes an object, or returns a form that the encoder can write. Returns `None` for a type
    /// that BSON does not have.
    fn form<'py>(
        &self,
        object: &Bound<'py, PyAny>,
        out: &mut dyn ByteSink,
    ) -> Result<Option<ObjectForm<'py>>, BsonStop> {
        let py = object.py();
        if let Some(other) = bson_classes::write(object, out)? {
            return Ok(Some(other));
        }
        if let Ok(at) = object.cast::<PyDateTime>()
            && temporal::is_nat(at)?
        {
            // pymongo refuses it; `onecopy.compat.bson` passes it to `default`.
            let is_passed = self.passes(Passed::Numpy);
            return Ok((!is_passed).then_some(ObjectForm::Put(Tag::Null)));
        }
        if let Some(ms) = self.moment(object)? {
            out.put(&ms.to_le_bytes())?;
            return Ok(Some(ObjectForm::Put(Tag::DateTime)));
        }
        if object.is_instance(uuid::class(py)?)? {
            self.uuid(object, out)?;
            return Ok(Some(ObjectForm::Put(Tag::Binary)));
        }
        if !self.passes(Passed::Decimal) && object.is_instance(number::decimal_class(py)?)? {
            out.put(&decimal(object)?)?;
            return Ok(Some(ObjectForm::Put(Tag::Decimal128)));
        }
        if !self.passes(Passed::Enum) && object.is_instance(encode::enumeration(py)?)? {
            return Ok(Some(ObjectForm::Instead(
                object.getattr(pyo3::intern!(py, "value"))?,
            )));
        }
        if let Some(other) = self.subclass(object, out)? {
            return Ok(Some(other));
        }
        if object.is_instance(pattern_class(py)?)? {
            put_regex(object, false, out)?;
            return Ok(Some(ObjectForm::Put(Tag::Regex)));
        }
        if object.cast::<PyMapping>().is_ok() {
            return Ok(Some(ObjectForm::Pairs(members(object)?)));
        }
        let is_buffer =
            object.is_instance_of::<PyByteArray>() || object.is_instance_of::<PyMemoryView>();
        if is_buffer && !self.passes(Passed::Buffer) {
            put_buffer(object, out)?;
            return Ok(Some(ObjectForm::Put(Tag::Binary)));
        }
        if !self.passes(Passed::Dataclass)
            && encode::hints(object)?.has_fields
            && let Some(other) = self.dataclass(object)?
        {
            return Ok(Some(other));
        }
        self.numpy(object)
    }
}

impl<'py> ObjectForms<'py> for BsonWriteOptions {
    fn other(
        &self,
        object: &Bound<'py, PyAny>,
        out: &mut dyn ByteSink,
    ) -> Result<Option<ObjectForm<'py>>, BsonStop> {
        let options = 1 << 31 | u32::from(self.passed);
        if encode::has_no_form(object, options) {
            return Ok(None);
        }
        let form = self.form(object, out)?;
        if form.is_none() {
            encode::note_no_form(object, options);
        }
        Ok(form)
    }

    fn ranged(&self, ms: i64) -> Result<i64, BsonStop> {
        BsonWriteOptions::ranged(self, ms)
    }

    fn default(&self, object: &Bound<'py, PyAny>) -> Result<Bound<'py, PyAny>, BsonStop> {
        match &self.default {
            Some(default) => Ok(default.call(object)?),
            None => Err(BsonStop::Unknown {
                class: class_name(object),
            }),
        }
    }
}
