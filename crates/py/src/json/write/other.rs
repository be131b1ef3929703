//! What stands for objects that are none of CPython's own types.

use num_bigint::BigUint;
use onecopy_text::ByteSink;
use onecopy_wire::{WriteError, json};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBool, PyBytes, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple, PyType};

use super::options::{BigInts, Options, Passed};
use crate::raw::ndarray::{self, Choice, Described, ItemType};
pub(super) use crate::raw::walk::bson::class_name;
use crate::raw::walk::{Other, Others, Stop, put_scalar};
use crate::raw::{buffer, number, text, uuid};

/// JSON that is encoded already: it is put as it is, between what is around it.
///
/// `Fragment(data)` takes `data`, a `bytes`, any other object with a buffer, or a `str`, that holds one JSON value in UTF-8. It
/// is not looked at: what is no JSON makes what is around it none.
///
/// Copies: one of a buffer that may change or of a `str`; one more where it is written.
///
/// Raises `TypeError` for any other object.
///
/// >>> import onecopy
/// >>> onecopy.json.dumps({"a": onecopy.json.Fragment(b"[1,2]")})
/// b'{"a":[1,2]}'
#[pyclass(frozen, module = "onecopy.json")]
pub(crate) struct Fragment {
    contents: Py<PyAny>,
    bytes: Vec<u8>,
}

#[pymethods]
impl Fragment {
    #[new]
    #[pyo3(signature = (data, /))]
    fn new(data: Bound<'_, PyAny>) -> PyResult<Fragment> {
        let bytes = if let Ok(string) = data.cast::<PyString>() {
            let made = text::to_string(string.as_borrowed(), &mut onecopy_text::Tally::default());
            made.map_err(|e| match e {
                text::MakeError::Python(e) => e,
                text::MakeError::Malformed(e) => {
                    pyo3::exceptions::PyValueError::new_err(format!("the str is no text: {e}"))
                }
            })?
            .into_bytes()
        } else {
            buffer::copy_of(data.as_borrowed())?.ok_or_else(|| {
                PyTypeError::new_err("a Fragment takes a str or an object with a buffer")
            })?
        };
        Ok(Fragment {
            contents: data.unbind(),
            bytes,
        })
    }

    /// What it was made of.
    #[getter]
    fn contents(&self, py: Python<'_>) -> Py<PyAny> {
        self.contents.clone_ref(py)
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        Ok(format!("Fragment({})", self.contents.bind(py).repr()?))
    }
}

/// Classes that are looked for, imported once.
struct Classes {
    decimal: Py<PyType>,
    uuid: Py<PyType>,
    enumeration: Py<PyType>,
}

fn classes(py: Python<'_>) -> PyResult<&Classes> {
    static CLASSES: PyOnceLock<Classes> = PyOnceLock::new();
    CLASSES.get_or_try_init(py, || {
        Ok(Classes {
            decimal: number::decimal_class(py)?.clone().unbind(),
            uuid: uuid::class(py)?.clone().unbind(),
            enumeration: py
                .import("enum")?
                .getattr("Enum")?
                .cast_into::<PyType>()?
                .unbind(),
        })
    })
}

impl From<PyErr> for Stop {
    fn from(error: PyErr) -> Stop {
        Stop::Python(error)
    }
}

impl From<WriteError> for Stop {
    fn from(error: WriteError) -> Stop {
        match error {
            WriteError::NonFinite => Stop::NonFinite,
            WriteError::SinkFull(_) => Stop::Full,
            error => Stop::Value(error),
        }
    }
}

/// A value of `wire` as text.
pub(super) fn written<E: Into<Stop>>(
    write: impl FnOnce(&mut onecopy_text::Window<'_, Vec<u8>>) -> Result<(), E>,
) -> Result<Vec<u8>, Stop> {
    let mut text = Vec::with_capacity(json::SCALAR_BYTES);
    let mut window = text.window(json::SCALAR_BYTES).map_err(|_| Stop::Full)?;
    write(&mut window).map_err(Into::into)?;
    drop(window);
    Ok(text)
}

impl Options {
    /// What stands for an object of a class that has one of CPython's own types as its base.
    fn subclass<'py>(&self, object: &Bound<'py, PyAny>) -> Result<Option<Other<'py>>, Stop> {
        let py = object.py();
        Ok(Some(if object.is_instance_of::<PyString>() {
            Other::Instead(text::exact(object)?.into_any())
        } else if object.is_instance_of::<PyInt>() {
            let plain = py.get_type::<PyInt>().call_method1("__int__", (object,))?;
            Other::Instead(plain)
        } else if let Ok(float) = object.cast::<PyFloat>() {
            if self.passes(Passed::Float) {
                return Ok(None);
            }
            Other::Instead(PyFloat::new(py, float.value()).into_any())
        } else if object.is_instance_of::<PyTuple>() && self.passes(Passed::Tuple) {
            return Ok(None);
        } else if object.is_instance_of::<PyList>() || object.is_instance_of::<PyTuple>() {
            Other::Items
        } else if let Ok(dict) = object.cast::<PyDict>() {
            self.derived_dict(dict)?
        } else {
            return Ok(None);
        }))
    }

    /// What stands for a scalar or array of NumPy's.
    fn numpy<'py>(&self, object: &Bound<'py, PyAny>) -> Result<Option<Other<'py>>, Stop> {
        let choice = self.style.natives.numpy;
        Ok(match ndarray::describe(object, choice)? {
            // JSON has no binary.
            Some(Described::Memory(memory))
                if matches!(memory.view.dtype().of, ItemType::Binary(_)) =>
            {
                None
            }
            Some(Described::Memory(memory)) => Some(Other::Memory(memory)),
            Some(Described::List(list)) => Some(Other::Instead(list)),
            Some(Described::Swapped) => {
                let class = class_name(object);
                return Err(Stop::Unknown { class });
            }
            None => None,
        })
    }

    /// True for a member of an enumeration, which orjson recognizes by the metaclass.
    fn is_enum(&self, object: &Bound<'_, PyAny>, classes: &Classes) -> PyResult<bool> {
        let base = classes.enumeration.bind(object.py());
        Ok(match self.style.natives.orjson {
            true => object.get_type().get_type().is(base.get_type()),
            false => object.is_instance(base)?,
        })
    }

    /// A key as text.
    pub(super) fn key_text<'py>(
        &self,
        key: &Bound<'py, PyAny>,
    ) -> Result<Bound<'py, PyString>, Stop> {
        self.key_text_again(key, 0)
    }

    /// As [`Options::key_text`], of what stands for a key for the so manieth time.
    fn key_text_again<'py>(
        &self,
        key: &Bound<'py, PyAny>,
        times: u8,
    ) -> Result<Bound<'py, PyString>, Stop> {
        if let Ok(text) = key.cast::<PyString>() {
            return Ok(text::exact(text.as_any())?);
        }
        if !self.non_str_keys {
            return Err(Stop::Key {
                class: class_name(key),
            });
        }
        let py = key.py();
        let classes = classes(py)?;
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
        if self.is_enum(key, classes)? {
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
        if key.is_instance(classes.uuid.bind(py))? || key.is_instance(classes.decimal.bind(py))? {
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
            _ => Err(Stop::Key {
                class: class_name(key),
            }),
        }
    }
}

/// What stands for a key is asked for as often, where it is no key either.
const MOST_TIMES: u8 = 16;

fn unquoted(text: &[u8]) -> &[u8] {
    text.strip_prefix(b"\"")
        .and_then(|t| t.strip_suffix(b"\""))
        .unwrap_or(text)
}

/// All digits of an `int`, whatever `sys.set_int_max_str_digits` says: that limit guards against what this does not do, time
/// that grows with the square of the size.
fn digits(value: &Bound<'_, PyAny>) -> PyResult<Vec<u8>> {
    let py = value.py();
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

impl<'py> Others<'py> for Options {
    fn other(&self, object: &Bound<'py, PyAny>) -> Result<Option<Other<'py>>, Stop> {
        let py = object.py();
        if !self.passes(Passed::Datetime)
            && let Some(text) = self.temporal(object)?
        {
            return Ok(Some(Other::Text(text)));
        }
        let classes = classes(py)?;
        if !self.passes(Passed::Uuid) && object.is_exact_instance(classes.uuid.bind(py)) {
            let value: u128 = object.getattr(pyo3::intern!(py, "int"))?.extract()?;
            return Ok(Some(Other::Text(written(|w| {
                json::put_uuid(&value.to_be_bytes(), w);
                Ok::<_, WriteError>(())
            })?)));
        }
        if !self.passes(Passed::Decimal) && object.is_instance(classes.decimal.bind(py))? {
            let digits = object.str()?;
            let mut text = Vec::new();
            let digits = text::ascii(digits.as_any().as_borrowed()).unwrap_or_default();
            json::write_decimal(named(digits), self.style.nan, &mut text)?;
            return Ok(Some(Other::Text(text)));
        }
        if let Ok(fragment) = object.cast::<Fragment>() {
            return Ok(Some(Other::Text(fragment.get().bytes.clone())));
        }
        if !self.passes(Passed::Enum) && self.is_enum(object, classes)? {
            return Ok(Some(Other::Instead(
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

    fn default(&self, object: &Bound<'py, PyAny>) -> Result<Bound<'py, PyAny>, Stop> {
        match &self.default {
            Some(default) => Ok(default.call(object)?),
            None => Err(Stop::Unknown {
                class: class_name(object),
            }),
        }
    }

    fn big_int(&self, object: &Bound<'py, PyAny>) -> Result<Vec<u8>, Stop> {
        match self.big_ints {
            BigInts::Exact => Ok(digits(object)?),
            BigInts::Text => {
                let mut text = vec![b'"'];
                text.extend_from_slice(&digits(object)?);
                text.push(b'"');
                Ok(text)
            }
            BigInts::Error | BigInts::Strict => Err(Stop::BigInt),
        }
    }

    fn key(&self, object: &Bound<'py, PyAny>) -> Result<Bound<'py, PyString>, Stop> {
        self.key_text(object)
    }

    fn sorted(&self, dict: &Bound<'py, PyAny>) -> Result<Bound<'py, PyList>, Stop> {
        let dict = dict.cast::<PyDict>().map_err(PyErr::from)?;
        // Each key may run Python code, so what is gone through is a copy.
        self.members(dict.items().as_any())
    }
}

/// A decimal's name where it is no number, as `write_decimal` knows it: NaN has no sign there, does not signal, and says no more
/// in digits behind its name.
fn named(digits: &[u8]) -> &[u8] {
    let unsigned = digits.strip_prefix(b"-").unwrap_or(digits);
    let quiet = unsigned.strip_prefix(b"s").unwrap_or(unsigned);
    if quiet.starts_with(b"NaN") {
        return b"NaN";
    }
    digits
}
