//! Encodes objects whose types are not built into CPython. Each object becomes JSON or another
//! object.

use num_bigint::BigUint;
use onecopy_text::ByteSink;
use onecopy_wire::{WriteError, json};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple};

use super::options::{BigIntPolicy, JsonWriteOptions, Passed};
pub(super) use crate::raw::encode::bson::class_name;
use crate::raw::encode::json::{JsonStop, ObjectForm, ObjectForms, put_scalar};
use crate::raw::ndarray::{self, Choice, Described, ItemType};
use crate::raw::{encode, number, text, uuid};

impl From<PyErr> for JsonStop {
    fn from(error: PyErr) -> JsonStop {
        JsonStop::Python(error)
    }
}

impl From<WriteError> for JsonStop {
    fn from(error: WriteError) -> JsonStop {
        match error {
            WriteError::NonFinite => JsonStop::NonFinite,
            WriteError::SinkFull(_) => JsonStop::Full,
            error => JsonStop::Value(error),
        }
    }
}

/// Returns the bytes that `write` writes: at most [`json::SCALAR_BYTES`] bytes of JSON.
pub(super) fn written<E: Into<JsonStop>>(
    write: impl FnOnce(&mut onecopy_text::Window<'_, Vec<u8>>) -> Result<(), E>,
) -> Result<Vec<u8>, JsonStop> {
    let mut text = Vec::with_capacity(json::SCALAR_BYTES);
    let mut window = text
        .window(json::SCALAR_BYTES)
        .map_err(|_| JsonStop::Full)?;
    write(&mut window).map_err(Into::into)?;
    drop(window);
    Ok(text)
}

impl JsonWriteOptions {
    /// Chooses how to write an instance of a class derived from a built-in type.
    fn subclass<'py>(
        &self,
        object: &Bound<'py, PyAny>,
    ) -> Result<Option<ObjectForm<'py>>, JsonStop> {
        let py = object.py();
        Ok(Some(if object.is_instance_of::<PyString>() {
            ObjectForm::Instead(text::exact(object)?.into_any())
        } else if object.is_instance_of::<PyInt>() {
            let plain = py.get_type::<PyInt>().call_method1("__int__", (object,))?;
            ObjectForm::Instead(plain)
        } else if let Ok(float) = object.cast::<PyFloat>() {
            if self.passes(Passed::Float) {
                return Ok(None);
            }
            ObjectForm::Instead(PyFloat::new(py, float.value()).into_any())
        } else if object.is_instance_of::<PyTuple>() && self.passes(Passed::Tuple) {
            return Ok(None);
        } else if object.is_instance_of::<PyList>() || object.is_instance_of::<PyTuple>() {
            ObjectForm::Items
        } else if let Ok(dict) = object.cast::<PyDict>() {
            self.derived_dict(dict)?
        } else {
            return Ok(None);
        }))
    }

    /// Converts a NumPy scalar or array to a form for the encoder. Returns `None` if JSON cannot
    /// represent the object.
    fn numpy<'py>(&self, object: &Bound<'py, PyAny>) -> Result<Option<ObjectForm<'py>>, JsonStop> {
        let choice = self.style.natives.numpy;
        Ok(match ndarray::describe(object, choice)? {
            // JSON cannot represent binary items.
            Some(Described::Memory(memory))
                if matches!(memory.view.dtype().of, ItemType::Binary(_)) =>
            {
                None
            }
            Some(Described::Memory(memory)) => Some(ObjectForm::Memory(Box::new(memory))),
            Some(Described::List(list)) => Some(ObjectForm::Instead(list)),
            Some(Described::Swapped) => {
                let class = class_name(object);
                return Err(JsonStop::Unknown { class });
            }
            None => None,
        })
    }

    /// Returns `true` if the object is a member of an enumeration. With `compat="orjson"`, the
    /// metaclass must be the one of `Enum`.
    fn is_enum(&self, object: &Bound<'_, PyAny>) -> PyResult<bool> {
        let base = encode::enumeration(object.py())?;
        Ok(match self.style.natives.orjson {
            true => object.get_type().get_type().is(base.get_type()),
            false => object.is_instance(base)?,
        })
    }

    /// Converts a key to a `str`, if the options allow its type.
    pub(super) fn key_text<'py>(
        &self,
        key: &Bound<'py, PyAny>,
    ) -> Result<Bound<'py, PyString>, JsonStop> {
        self.key_text_again(key, 0)
    }

    /// Converts a replaced key to a `str`. The new key is the value of an enumeration member or the
    /// result of `default`. `times` counts the replacements.
    fn key_text_again<'py>(
        &self,
        key: &Bound<'py, PyAny>,
        times: u8,
    ) -> Result<Bound<'py, PyString>, JsonStop> {
        if let Ok(text) = key.cast::<PyString>() {
            return Ok(text::exact(text.as_any())?);
        }
        if !self.non_str_keys {
            return Err(JsonStop::Key {
                class: class_name(key),
            });
        }
        let py = key.py();
        let ascii = |bytes: &[u8]| PyString::new(py, &String::from_utf8_lossy(bytes));
        if key.is_none() {
            return Ok(ascii(b"null"));
        }
        if let Ok(flag) = key.cast::<PyBool>() {
            return Ok(ascii(if flag.is_true() { b"true" } else { b"false" }));
        }
        if self.keys_by_str {
            return Ok(match key.cast::<PyBytes>() {
                Ok(bytes) => bytes
                    .call_method0(pyo3::intern!(py, "decode"))?
                    .cast_into()
                    .map_err(PyErr::from)?,
                Err(_) => key.str()?,
            });
        }
        if self.is_enum(key)? {
            let value = key.getattr(pyo3::intern!(py, "value"))?;
            return self.key_text_again(&value, times.saturating_add(1));
        }
        if key.is_instance_of::<PyInt>() {
            return Ok(ascii(&digits(key)?));
        }
        let is_left = self.numpy == Choice::Orjson && ndarray::is_scalar(key)?;
        if let Ok(float) = key.cast::<PyFloat>()
            && !is_left
        {
            let text = written(|w| json::put_f64(float.value(), self.style.nan, w))?;
            return Ok(ascii(unquoted(&text)));
        }
        if let Some(text) = self.temporal(key)? {
            return Ok(ascii(unquoted(&text)));
        }
        if key.is_instance(uuid::class(py)?)? || key.is_instance(number::decimal_class(py)?)? {
            return Ok(key.str()?);
        }
        if !is_left
            && let Some(Described::Memory(memory)) =
                ndarray::describe(key, self.style.natives.numpy)?
            && let Some(scalar) = memory.view.item().and_then(|item| item.scalar())
        {
            let text = written(|w| put_scalar(scalar, &self.style, w))?;
            return Ok(ascii(unquoted(&text)));
        }
        match &self.default {
            Some(default) if times < MOST_TIMES => {
                let instead = default.call(key)?;
                self.key_text_again(&instead, times + 1)
            }
            _ => Err(JsonStop::Key {
                class: class_name(key),
            }),
        }
    }
}

/// The maximum number of replacements of one key by another object.
const MOST_TIMES: u8 = 16;

fn unquoted(text: &[u8]) -> &[u8] {
    text.strip_prefix(b"\"")
        .and_then(|t| t.strip_suffix(b"\""))
        .unwrap_or(text)
}

/// Returns all decimal digits of an `int`. `sys.set_int_max_str_digits` does not apply: the
/// conversion takes less than quadratic time.
fn digits(value: &Bound<'_, PyAny>) -> PyResult<Vec<u8>> {
    let py = value.py();
    if let Ok(int) = value.cast::<PyInt>()
        && let Some(small) = number::to_i64(int)
    {
        return Ok(small.to_string().into_bytes());
    }
    let is_negative = value.lt(0)?;
    let magnitude = value.abs()?;
    let bits: usize = magnitude.call_method0("bit_length")?.extract()?;
    let bytes =
        magnitude.call_method1("to_bytes", (bits.div_ceil(8), pyo3::intern!(py, "little")))?;
    let magnitude = BigUint::from_bytes_le(bytes.cast::<PyBytes>()?.as_bytes());
    let mut digits = Vec::new();
    if is_negative {
        digits.push(b'-');
    }
    digits.extend_from_slice(magnitude.to_str_radix(10).as_bytes());
    Ok(digits)
}

impl JsonWriteOptions {
    /// Converts the object to JSON text or to another object. Returns `None` for a type that JSON
    /// does not have.
    fn form<'py>(&self, object: &Bound<'py, PyAny>) -> Result<Option<ObjectForm<'py>>, JsonStop> {
        let py = object.py();
        if !self.passes(Passed::Datetime)
            && let Some(text) = self.temporal(object)?
        {
            return Ok(Some(ObjectForm::Text(text)));
        }
        if !self.passes(Passed::Uuid) && object.is_exact_instance(uuid::class(py)?) {
            let value: u128 = object.getattr(pyo3::intern!(py, "int"))?.extract()?;
            return Ok(Some(ObjectForm::Text(written(|w| {
                json::put_uuid(&value.to_be_bytes(), w);
                Ok::<_, WriteError>(())
            })?)));
        }
        if !self.passes(Passed::Decimal) && object.is_instance(number::decimal_class(py)?)? {
            let digits = object.str()?;
            let mut text = Vec::new();
            let digits = text::ascii(digits.as_any().as_borrowed()).unwrap_or_default();
            json::write_decimal(named(digits), self.style.nan, &mut text)?;
            return Ok(Some(ObjectForm::Text(text)));
        }
        if !self.passes(Passed::Enum) && self.is_enum(object)? {
            return Ok(Some(ObjectForm::Instead(
                object.getattr(pyo3::intern!(py, "value"))?,
            )));
        }
        if !self.passes(Passed::Subclass)
            && let Some(other) = self.subclass(object)?
        {
            return Ok(Some(other));
        }
        if !self.passes(Passed::Dataclass)
            && let Some(other) = self.dataclass(object)?
        {
            return Ok(Some(other));
        }
        self.numpy(object)
    }
}

impl<'py> ObjectForms<'py> for JsonWriteOptions {
    fn other(&self, object: &Bound<'py, PyAny>) -> Result<Option<ObjectForm<'py>>, JsonStop> {
        let natives = &self.style.natives;
        let choices = (natives.numpy as u32) << 1 | u32::from(natives.orjson);
        let options = 1 << 30 | choices << 16 | u32::from(self.passed);
        if encode::has_no_form(object, options) {
            return Ok(None);
        }
        let form = self.form(object)?;
        if form.is_none() {
            encode::note_no_form(object, options);
        }
        Ok(form)
    }

    fn default(&self, object: &Bound<'py, PyAny>) -> Result<Bound<'py, PyAny>, JsonStop> {
        match &self.default {
            Some(default) => Ok(default.call(object)?),
            None => Err(JsonStop::Unknown {
                class: class_name(object),
            }),
        }
    }

    fn big_int(&self, object: &Bound<'py, PyAny>) -> Result<Vec<u8>, JsonStop> {
        match self.big_ints {
            BigIntPolicy::Exact => Ok(digits(object)?),
            BigIntPolicy::Text53 => {
                let mut text = vec![b'"'];
                text.extend_from_slice(&digits(object)?);
                text.push(b'"');
                Ok(text)
            }
            BigIntPolicy::Error | BigIntPolicy::Error53 => Err(JsonStop::BigInt),
        }
    }

    fn key(&self, object: &Bound<'py, PyAny>) -> Result<Bound<'py, PyString>, JsonStop> {
        self.key_text(object)
    }

    fn sorted(&self, dict: &Bound<'py, PyAny>) -> Result<Bound<'py, PyList>, JsonStop> {
        let dict = dict.cast::<PyDict>().map_err(PyErr::from)?;
        // The conversion of a key may run Python code, so the items are copied first.
        self.members(dict.items().as_any())
    }
}

/// Changes the text of a `Decimal` for `write_decimal`. Every NaN (`-NaN`, `sNaN`, `NaN123`)
/// becomes `NaN`.
fn named(digits: &[u8]) -> &[u8] {
    let unsigned = digits.strip_prefix(b"-").unwrap_or(digits);
    let quiet = unsigned.strip_prefix(b"s").unwrap_or(unsigned);
    if quiet.starts_with(b"NaN") {
        return b"NaN";
    }
    digits
}
