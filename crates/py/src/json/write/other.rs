//! What stands for objects that are none of CPython's own types.

use num_bigint::BigUint;
use onecopy_text::ByteSink;
use onecopy_wire::datetime::{Date, Time, Timestamp};
use onecopy_wire::{WriteError, json};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{
    PyBool, PyBytes, PyDate, PyDateAccess, PyDateTime, PyDelta, PyDeltaAccess, PyDict, PyFloat,
    PyInt, PyList, PyString, PyTime, PyTimeAccess, PyTuple, PyType, PyTzInfoAccess,
};

use super::options::{BigInts, Options, Passed};
use crate::raw::walk::{Other, Others, Stop};
use crate::raw::{buffer, number, temporal, text, uuid};

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

fn class_name(object: &Bound<'_, PyAny>) -> String {
    let name = object.get_type().fully_qualified_name();
    name.map_or_else(|_| "?".to_owned(), |name| name.to_string())
}

/// A value of `wire` as text.
fn written(
    write: impl FnOnce(&mut onecopy_text::Window<'_, Vec<u8>>) -> Result<(), WriteError>,
) -> Result<Vec<u8>, Stop> {
    let mut text = Vec::with_capacity(json::SCALAR_BYTES);
    let mut window = text.window(json::SCALAR_BYTES).map_err(|_| Stop::Full)?;
    write(&mut window)?;
    drop(window);
    Ok(text)
}

impl Options {
    /// A date, time or datetime as a string.
    fn temporal<'py>(&self, object: &Bound<'py, PyAny>) -> Result<Option<Vec<u8>>, Stop> {
        let text = if let Ok(at) = object.cast::<PyDateTime>() {
            let at = self.datetime(at)?;
            written(|w| json::put_timestamp(&at, self.style.natives.utc_z, w))?
        } else if let Ok(day) = object.cast::<PyDate>() {
            written(|w| json::put_date(date(day), w))?
        } else if let Ok(at) = object.cast::<PyTime>() {
            if at.get_tzinfo().is_some() {
                return Err(Stop::Value(WriteError::NotADate));
            }
            written(|w| json::put_time(self.time(at), w))?
        } else {
            return Ok(None);
        };
        Ok(Some(text))
    }

    fn time(&self, at: &impl PyTimeAccess) -> Time {
        let micros = if self.style.natives.omit_microseconds {
            0
        } else {
            at.get_microsecond()
        };
        Time {
            hour: at.get_hour(),
            minute: at.get_minute(),
            second: at.get_second(),
            nanosecond: micros * 1000,
            digits: if micros == 0 { 0 } else { 6 },
        }
    }

    fn datetime<'py>(&self, at: &Bound<'py, PyDateTime>) -> Result<Timestamp, Stop> {
        let offset_minutes = match at.get_tzinfo() {
            None => self.style.natives.naive_utc.then_some(0),
            Some(zone) => {
                temporal::learn_zone(&zone);
                let offset = at.call_method0(pyo3::intern!(at.py(), "utcoffset"))?;
                match offset.cast::<PyDelta>() {
                    Ok(delta) => temporal::minutes(temporal::microseconds(
                        delta.get_days(),
                        delta.get_seconds(),
                        delta.get_microseconds(),
                    )),
                    Err(_) => None,
                }
            }
        };
        Ok(Timestamp {
            date: date(at),
            time: self.time(at),
            offset_minutes,
        })
    }

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
        } else if object.is_instance_of::<PyDict>() {
            let items = object.call_method0(pyo3::intern!(py, "items"))?;
            let mut members = Vec::new();
            for item in items.try_iter()? {
                let (key, value): (Bound<'py, PyAny>, Bound<'py, PyAny>) = item?.extract()?;
                members.push((self.key_text(&key)?, value));
            }
            if self.style.sort_keys {
                sort(&mut members)?;
            }
            Other::Pairs(pairs(py, members)?)
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
        let mut members = Vec::with_capacity(fields.len());
        for (name, field) in fields {
            if !field.getattr(pyo3::intern!(py, "_field_type"))?.is(&kind) {
                continue; // a ClassVar or InitVar
            }
            let Ok(name) = name.cast_into::<PyString>() else {
                continue;
            };
            if !self.style.natives.private_fields
                && name
                    .as_any()
                    .call_method1("startswith", ("_",))?
                    .is_truthy()?
            {
                continue;
            }
            let value = object.getattr(&name)?;
            members.push((name, value));
        }
        if self.style.sort_keys {
            sort(&mut members)?;
        }
        Ok(Some(Other::Pairs(pairs(py, members)?)))
    }

    /// What stands for a scalar or array of numpy.
    fn numpy<'py>(&self, object: &Bound<'py, PyAny>) -> Result<Option<Other<'py>>, Stop> {
        let class = object.get_type();
        let module = class.module()?;
        if text::ascii(module.as_any().as_borrowed()) != Some(b"numpy") {
            return Ok(None);
        }
        let name = class.name()?;
        match text::ascii(name.as_any().as_borrowed()) {
            // As short as it reads back in its own width.
            Some(b"float32" | b"float16") => {
                let value: f64 = object.call_method0("__float__")?.extract()?;
                let text = written(|w| json::put_f32(value as f32, self.style.nan, w))?;
                Ok(Some(Other::Text(text)))
            }
            Some(b"datetime64") => {
                let text = object.str()?;
                Ok(Some(Other::Instead(text.into_any())))
            }
            _ => match object.getattr_opt("tolist")? {
                Some(list) => Ok(Some(Other::Instead(list.call0()?))),
                None => Ok(None),
            },
        }
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
        if key.is_instance(classes.enumeration.bind(py))? {
            let value = key.getattr(pyo3::intern!(py, "value"))?;
            return self.key_text_again(&value, times.saturating_add(1));
        }
        if key.is_instance_of::<PyInt>() {
            return Ok(ascii(&digits(key)?));
        }
        if let Ok(float) = key.cast::<PyFloat>() {
            let text = written(|w| json::put_f64(float.value(), self.style.nan, w))?;
            return Ok(ascii(unquoted(&text)));
        }
        if let Some(text) = self.temporal(key)? {
            return Ok(ascii(unquoted(&text)));
        }
        if key.is_instance(classes.uuid.bind(py))? || key.is_instance(classes.decimal.bind(py))? {
            return Ok(key.str()?);
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

fn date(day: &impl PyDateAccess) -> Date {
    Date {
        year: day.get_year(),
        month: day.get_month(),
        day: day.get_day(),
    }
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

/// Sorts members by their keys, by code points as Python does.
fn sort<'py>(members: &mut [(Bound<'py, PyString>, Bound<'py, PyAny>)]) -> PyResult<()> {
    let mut error = None;
    members.sort_by(|(a, _), (b, _)| {
        a.compare(b).unwrap_or_else(|e| {
            error.get_or_insert(e);
            std::cmp::Ordering::Equal
        })
    });
    error.map_or(Ok(()), Err)
}

fn pairs<'py>(
    py: Python<'py>,
    members: Vec<(Bound<'py, PyString>, Bound<'py, PyAny>)>,
) -> PyResult<Bound<'py, PyList>> {
    let mut all = Vec::with_capacity(2 * members.len());
    for (name, value) in members {
        all.push(name.into_any());
        all.push(value);
    }
    PyList::new(py, all)
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
                Ok(())
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
        if !self.passes(Passed::Enum) && object.is_instance(classes.enumeration.bind(py))? {
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
        if !self.passes(Passed::Numpy)
            && let Some(other) = self.numpy(object)?
        {
            return Ok(Some(other));
        }
        Ok(None)
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
        let mut members = Vec::with_capacity(dict.len());
        // Each key may run Python code, so what is gone through is a copy.
        for item in dict.items() {
            let (key, value): (Bound<'py, PyAny>, Bound<'py, PyAny>) = item.extract()?;
            members.push((self.key_text(&key)?, value));
        }
        sort(&mut members)?;
        Ok(pairs(dict.py(), members)?)
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
