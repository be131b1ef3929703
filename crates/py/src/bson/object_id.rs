//! `ObjectId`: a unique identifier of twelve bytes.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::{SystemTime, UNIX_EPOCH};

use pyo3::basic::CompareOp;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDateTime, PyString, PyType, PyTzInfo};

use super::date_time;
use crate::raw::{process, text};

/// The number of bytes of an `ObjectId` (fixed by BSON).
pub(crate) const ID_BYTES: usize = 12;

/// A unique identifier of twelve bytes: seconds since 1970, five random bytes of the process, and a
/// counter.
///
/// `ObjectId()` makes a new one; `ObjectId(oid)` accepts 12 bytes, 24 hexadecimal digits, or
/// another `ObjectId`, including pymongo's. Raises `ValueError` for other values, `TypeError` for
/// other types.
///
/// Equality and order are those of pymongo's `ObjectId`, also between the two classes. All ids of a
/// process use one counter, so no two ids are equal. A forked child draws new random bytes.
///
/// >>> from onecopy.bson import ObjectId
/// >>> ObjectId("0123456789ab0123456789ab").generation_time.year
/// 1970
#[pyclass(frozen, module = "onecopy.bson", name = "ObjectId")]
pub(crate) struct ObjectId([u8; ID_BYTES]);

impl ObjectId {
    /// The number of bytes of an `ObjectId`.
    pub(crate) const N_BYTES: usize = ID_BYTES;

    /// Returns the twelve bytes of the id.
    #[inline]
    pub(crate) fn bytes(&self) -> &[u8; ID_BYTES] {
        &self.0
    }

    /// Creates an `ObjectId` from its twelve bytes.
    #[inline]
    pub(crate) fn of(bytes: [u8; ID_BYTES]) -> ObjectId {
        ObjectId(bytes)
    }

    fn generate(py: Python<'_>) -> PyResult<ObjectId> {
        let seconds = SystemTime::now().duration_since(UNIX_EPOCH);
        let seconds = seconds.map_or(0, |since| since.as_secs() as u32);
        let (random, count) = own_bytes(py)?;
        let mut bytes = [0; ID_BYTES];
        bytes[..4].copy_from_slice(&seconds.to_be_bytes());
        bytes[4..9].copy_from_slice(&random);
        bytes[9..].copy_from_slice(&count.to_be_bytes()[1..]);
        Ok(ObjectId(bytes))
    }
}

/// Returns the random bytes of this process and the next number of the counter.
fn own_bytes(py: Python<'_>) -> PyResult<([u8; 5], u32)> {
    /// The random bytes, and the generation of the process that made them. A forked child makes new
    /// bytes.
    static RANDOM: Mutex<Option<(u32, [u8; 5])>> = Mutex::new(None);
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let this = process::generation();
    // This thread holds the GIL, so it must not wait for the lock. New random bytes are used
    // instead.
    let known = RANDOM.try_lock().ok().and_then(|random| *random);
    let random = match known {
        Some((process, random)) if process == this => random,
        _ => {
            let drawn = py.import("os")?.call_method1("urandom", (9,))?;
            let drawn: [u8; 9] = drawn.extract()?;
            let [a, b, c, d, e, count @ ..] = drawn;
            let random = [a, b, c, d, e];
            if let Ok(mut kept) = RANDOM.try_lock() {
                *kept = Some((this, random));
            }
            COUNT.store(u32::from_be_bytes(count), Relaxed);
            random
        }
    };
    Ok((random, COUNT.fetch_add(1, Relaxed)))
}

/// Returns the bytes of an object with pymongo's `ObjectId` marker.
pub(crate) fn bytes_of(object: &Bound<'_, PyAny>) -> PyResult<Option<[u8; ID_BYTES]>> {
    if let Ok(id) = object.cast_exact::<ObjectId>() {
        return Ok(Some(id.get().0));
    }
    let py = object.py();
    let marker = object
        .get_type()
        .getattr_opt(pyo3::intern!(py, "_type_marker"))?;
    if marker.and_then(|marker| marker.extract::<u8>().ok()) != Some(7) {
        return Ok(None);
    }
    let bytes = object.getattr(pyo3::intern!(py, "binary"))?;
    Ok(bytes
        .cast::<PyBytes>()
        .ok()
        .and_then(|bytes| bytes.as_bytes().try_into().ok()))
}

/// Parses 24 hexadecimal digits as an object id.
fn of_digits(digits: &[u8]) -> Option<[u8; ID_BYTES]> {
    let digits: &[u8; 2 * ID_BYTES] = digits.try_into().ok()?;
    let mut bytes = [0; ID_BYTES];
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks(2)) {
        let digit = |d: u8| char::from(d).to_digit(16);
        *byte = (digit(pair[0])? << 4 | digit(pair[1])?) as u8;
    }
    Some(bytes)
}

#[pymethods]
impl ObjectId {
    /// The marker by which pymongo's encoder recognizes an `ObjectId`.
    #[classattr]
    #[pyo3(name = "_type_marker")]
    const TYPE_MARKER: u8 = 7;

    #[new]
    #[pyo3(signature = (oid=None))]
    fn new(py: Python<'_>, oid: Option<&Bound<'_, PyAny>>) -> PyResult<ObjectId> {
        let Some(oid) = oid else {
            return ObjectId::generate(py);
        };
        let bytes = if let Ok(bytes) = oid.cast::<PyBytes>() {
            bytes.as_bytes().try_into().ok()
        } else if oid.is_instance_of::<PyString>() {
            text::ascii(oid.as_borrowed()).and_then(of_digits)
        } else {
            let bytes = bytes_of(oid)?;
            if bytes.is_none() {
                return Err(PyTypeError::new_err(
                    "`oid` must be bytes, a str or an ObjectId",
                ));
            }
            bytes
        };
        let bytes = bytes.ok_or_else(|| {
            PyValueError::new_err("`oid` must be 12 bytes, or 24 hexadecimal digits")
        })?;
        Ok(ObjectId(bytes))
    }

    /// Returns an id for range queries. Ids created before `generation_time` are smaller, other ids
    /// are greater. A naive `datetime` is treated as UTC. Raises `ValueError` if the year is
    /// outside of 1970 to 2106.
    #[classmethod]
    fn from_datetime(
        _class: &Bound<'_, PyType>,
        generation_time: &Bound<'_, PyDateTime>,
    ) -> PyResult<ObjectId> {
        let ms = date_time::unix_ms(generation_time)?;
        let seconds = u32::try_from(ms.div_euclid(1000)).map_err(|_| {
            PyValueError::new_err("`generation_time` must be in the years 1970 to 2106")
        })?;
        let mut bytes = [0; ID_BYTES];
        bytes[..4].copy_from_slice(&seconds.to_be_bytes());
        Ok(ObjectId(bytes))
    }

    /// Returns `True` if the constructor accepts ``oid``, and `False` otherwise. The value `None`
    /// is not accepted.
    #[classmethod]
    fn is_valid(class: &Bound<'_, PyType>, oid: &Bound<'_, PyAny>) -> bool {
        !oid.is_none() && ObjectId::new(class.py(), Some(oid)).is_ok()
    }

    /// The twelve bytes of the id.
    #[getter]
    fn binary<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.0)
    }

    /// The time at which the id was created, as a `datetime` in UTC with a resolution of one
    /// second.
    #[getter]
    fn generation_time<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDateTime>> {
        let [a, b, c, d, ..] = self.0;
        let seconds = u32::from_be_bytes([a, b, c, d]);
        let utc = PyTzInfo::utc(py)?;
        PyDateTime::from_timestamp(py, seconds.into(), Some(&utc))
    }

    fn __richcmp__<'py>(
        &self,
        other: &Bound<'py, PyAny>,
        op: CompareOp,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = other.py();
        Ok(match bytes_of(other)? {
            Some(other) => {
                let is_so = op.matches(self.0.cmp(&other));
                is_so.into_pyobject(py)?.to_owned().into_any()
            }
            None => py.NotImplemented().into_bound(py),
        })
    }

    /// The hash of the twelve bytes. It is equal to the hash of an equal `ObjectId` of pymongo.
    fn __hash__(&self, py: Python<'_>) -> PyResult<isize> {
        self.binary(py).hash()
    }

    fn __str__(&self) -> String {
        self.0.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    fn __repr__(&self) -> String {
        format!("ObjectId('{}')", self.__str__())
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> (Bound<'py, PyType>, (Bound<'py, PyBytes>,)) {
        (slf.get_type(), (slf.get().binary(slf.py()),))
    }
}
