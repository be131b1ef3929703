//! Creates values of the BSON types that have no equivalent in Python.

use onecopy_wire::bson::SUBTYPE_UUID;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyDict, PyInt, PyString, PyType, PyTzInfo};

use super::options::{Types, Uuids};
use crate::bson::ObjectId;
use crate::bson::regex::REGEX_FLAGS;
use crate::raw::instance;
use crate::raw::objects::fresh_number::Integers;

/// The classes for BSON types that have no equivalent in Python.
pub(super) struct BsonClasses {
    types: Types,
    int64: Integers,
    binary: Py<PyAny>,
    object_id: Py<PyType>,
    decimal128: Py<PyType>,
    datetime_ms: Py<PyType>,
    timestamp: Py<PyType>,
    regex: Py<PyType>,
    code: Py<PyAny>,
    db_ref: Option<Py<PyAny>>,
    /// `None` for pymongo, which returns a `str` for this type.
    symbol: Option<Py<PyAny>>,
    /// `DBPointer` of onecopy, or `DBRef` of pymongo.
    db_pointer: Py<PyAny>,
    /// `Undefined` of onecopy, or `None` for pymongo.
    undefined: Py<PyAny>,
    min_key: Py<PyAny>,
    max_key: Py<PyAny>,
    utc: Py<PyTzInfo>,
    /// The function `bytes.__new__`.
    new_bytes: Py<PyAny>,
}

/// Returns the classes of the library `types`. The first call imports the library.
///
/// # Errors
/// `ImportError` if `types` is pymongo and pymongo is not installed.
pub(super) fn classes(py: Python<'_>, types: Types) -> PyResult<&'static BsonClasses> {
    static ONECOPY: PyOnceLock<BsonClasses> = PyOnceLock::new();
    static PYMONGO: PyOnceLock<BsonClasses> = PyOnceLock::new();
    match types {
        Types::Onecopy => ONECOPY.get_or_try_init(py, || BsonClasses::import(py, types)),
        Types::Pymongo => PYMONGO.get_or_try_init(py, || BsonClasses::import(py, types)),
    }
}

impl BsonClasses {
    fn import(py: Python<'_>, types: Types) -> PyResult<BsonClasses> {
        let own = py.import("onecopy.bson")?;
        let of_own = |name: &str| own.getattr(name).map(Bound::unbind);
        let is_own = types == Types::Onecopy;
        let class = |module: &str, name: &str| {
            if is_own {
                of_own(name)
            } else {
                py.import(module)?.getattr(name).map(Bound::unbind)
            }
        };
        let kind = |module: &str, name: &str| -> PyResult<Py<PyType>> {
            Ok(class(module, name)?.into_bound(py).cast_into()?.unbind())
        };
        let made = |class: Py<PyAny>| class.call0(py);
        let utc = if is_own {
            PyTzInfo::utc(py)?.to_owned()
        } else {
            py.import("bson.tz_util")?.getattr("utc")?.cast_into()?
        };
        Ok(BsonClasses {
            types,
            int64: Integers::new(class("bson.int64", "Int64")?.into_bound(py).cast_into()?),
            binary: class("bson.binary", "Binary")?,
            object_id: kind("bson.objectid", "ObjectId")?,
            decimal128: kind("bson.decimal128", "Decimal128")?,
            datetime_ms: kind("bson.datetime_ms", "DatetimeMS")?,
            timestamp: kind("bson.timestamp", "Timestamp")?,
            regex: kind("bson.regex", "Regex")?,
            code: class("bson.code", "Code")?,
            db_ref: match is_own {
                true => None,
                false => Some(class("bson.dbref", "DBRef")?),
            },
            symbol: match is_own {
                true => Some(of_own("Symbol")?),
                false => None,
            },
            db_pointer: match is_own {
                true => of_own("DBPointer")?,
                false => class("bson.dbref", "DBRef")?,
            },
            undefined: match is_own {
                true => made(of_own("Undefined")?)?,
                false => py.None(),
            },
            min_key: made(class("bson.min_key", "MinKey")?)?,
            max_key: made(class("bson.max_key", "MaxKey")?)?,
            utc: utc.unbind(),
            new_bytes: py.get_type::<PyBytes>().getattr("__new__")?.unbind(),
        })
    }

    pub(super) fn utc<'py>(&self, py: Python<'py>) -> &Bound<'py, PyTzInfo> {
        self.utc.bind(py)
    }

    /// Creates an `Int64`. No Python code of the user runs.
    #[inline]
    pub(super) fn int64<'py>(&self, py: Python<'py>, value: i64) -> PyResult<Bound<'py, PyAny>> {
        self.int64.make(py, value)
    }

    /// Creates an `ObjectId`. No Python code of the user runs.
    pub(super) fn object_id<'py>(
        &self,
        py: Python<'py>,
        id: &[u8; 12],
    ) -> PyResult<Bound<'py, PyAny>> {
        if self.types == Types::Onecopy {
            return Ok(Bound::new(py, ObjectId::of(*id))?.into_any());
        }
        let bytes = PyBytes::new(py, id).into_any();
        with_attributes(&self.object_id, [(intern!(py, "_ObjectId__id"), &bytes)])
    }

    /// Creates a `Binary`.
    pub(super) fn binary<'py>(
        &self,
        bytes: Bound<'py, PyAny>,
        subtype: u8,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = bytes.py();
        if self.types == Types::Pymongo {
            return self.binary.bind(py).call1((bytes, subtype));
        }
        let made = self.new_bytes.bind(py).call1((&self.binary, bytes))?;
        made.setattr(intern!(py, "subtype"), subtype)?;
        Ok(made)
    }

    pub(super) fn decimal128<'py>(
        &self,
        py: Python<'py>,
        bid: &[u8; 16],
    ) -> PyResult<Bound<'py, PyAny>> {
        let bid = PyBytes::new(py, bid).into_any();
        if self.types == Types::Pymongo {
            let class = self.decimal128.bind(py);
            return class.call_method1(intern!(py, "from_bid"), (bid,));
        }
        with_attributes(&self.decimal128, [(intern!(py, "bid"), &bid)])
    }

    pub(super) fn datetime_ms<'py>(
        &self,
        py: Python<'py>,
        milliseconds: i64,
    ) -> PyResult<Bound<'py, PyAny>> {
        let value = PyInt::new(py, milliseconds).into_any();
        with_attributes(&self.datetime_ms, [(intern!(py, "_value"), &value)])
    }

    pub(super) fn timestamp<'py>(
        &self,
        py: Python<'py>,
        seconds: u32,
        increment: u32,
    ) -> PyResult<Bound<'py, PyAny>> {
        if self.types == Types::Pymongo {
            return self.timestamp.bind(py).call1((seconds, increment));
        }
        let (time, inc) = (seconds.into_pyobject(py)?, increment.into_pyobject(py)?);
        let values = [
            (intern!(py, "time"), time.as_any()),
            (intern!(py, "inc"), inc.as_any()),
        ];
        with_attributes(&self.timestamp, values)
    }

    /// Creates a regular expression.
    pub(super) fn regex<'py>(
        &self,
        pattern: Bound<'py, PyAny>,
        options: Bound<'py, PyAny>,
        letters: &[u8],
    ) -> PyResult<Bound<'py, PyAny>> {
        let class = self.regex.bind(pattern.py());
        // onecopy's class has the letters in alphabetical order, as BSON requires.
        if self.types == Types::Onecopy && letters.is_sorted() {
            let py = pattern.py();
            let values = [
                (intern!(py, "pattern"), &pattern),
                (intern!(py, "options"), &options),
            ];
            return with_attributes(&self.regex, values);
        }
        if self.types == Types::Onecopy {
            return class.call1((pattern, options));
        }
        let known = REGEX_FLAGS.iter().filter(|(_, l)| letters.contains(l));
        class.call1((pattern, known.map(|(flag, _)| flag).sum::<u32>()))
    }

    /// Creates a `Code`, which contains JavaScript.
    pub(super) fn code<'py>(
        &self,
        code: Bound<'py, PyAny>,
        scope: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.code.bind(code.py()).call1((code, scope))
    }

    pub(super) fn symbol<'py>(&self, text: Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        match &self.symbol {
            Some(class) => class.bind(text.py()).call1((text,)),
            None => Ok(text),
        }
    }

    pub(super) fn db_pointer<'py>(
        &self,
        name: Bound<'py, PyAny>,
        id: &[u8; 12],
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = name.py();
        let id = self.object_id(py, id)?;
        self.db_pointer.bind(py).call1((name, id))
    }

    pub(super) fn undefined<'py>(&self, py: Python<'py>) -> Bound<'py, PyAny> {
        self.undefined.bind(py).clone()
    }

    pub(super) fn min_key<'py>(&self, py: Python<'py>) -> Bound<'py, PyAny> {
        self.min_key.bind(py).clone()
    }

    pub(super) fn max_key<'py>(&self, py: Python<'py>) -> Bound<'py, PyAny> {
        self.max_key.bind(py).clone()
    }

    /// Converts a nested document to a `DBRef` of pymongo. `None` if the document is not a
    /// reference.
    pub(super) fn db_ref<'py>(
        &self,
        document: &Bound<'py, PyDict>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let py = document.py();
        let Some(class) = &self.db_ref else {
            return Ok(None);
        };
        let (of_name, of_id, of_database) =
            (intern!(py, "$ref"), intern!(py, "$id"), intern!(py, "$db"));
        let Some(name) = document.get_item(of_name)? else {
            return Ok(None);
        };
        let Some(id) = document.get_item(of_id)? else {
            return Ok(None);
        };
        let database = document.get_item(of_database)?;
        let is_text = |value: &Bound<'py, PyAny>| value.is_instance_of::<PyString>();
        let is_database = |value: &Bound<'py, PyAny>| value.is_none() || is_text(value);
        if !is_text(&name) || !database.as_ref().is_none_or(is_database) {
            return Ok(None);
        }
        let rest = document.copy()?;
        for taken in [of_name, of_id, of_database] {
            if rest.contains(taken)? {
                rest.del_item(taken)?;
            }
        }
        class.bind(py).call1((name, id, database, rest)).map(Some)
    }
}

/// Creates an instance of `class` without a call of `__init__`.
#[inline]
fn with_attributes<'py, const N: usize>(
    class: &Py<PyType>,
    attributes: [(&Bound<'py, PyString>, &Bound<'py, PyAny>); N],
) -> PyResult<Bound<'py, PyAny>> {
    let made = instance::new(class.bind(attributes[0].0.py()))?;
    for (name, value) in attributes {
        instance::set(&made, name, value)?;
    }
    Ok(made)
}

/// Reorders the bytes of a UUID to the order of RFC 9562. `None` if the option `uuids` leaves this
/// subtype unchanged.
pub(super) fn uuid_order(uuids: Uuids, subtype: u8, bytes: [u8; 16]) -> Option<[u8; 16]> {
    let mut bytes = bytes;
    match (uuids, subtype) {
        (Uuids::Unspecified, _) => return None,
        (Uuids::Standard, SUBTYPE_UUID) => {}
        (Uuids::Standard, _) | (_, SUBTYPE_UUID) => return None,
        (Uuids::PythonLegacy, _) => {}
        (Uuids::JavaLegacy, _) => {
            bytes[..8].reverse();
            bytes[8..].reverse();
        }
        (Uuids::CsharpLegacy, _) => {
            bytes[..4].reverse();
            bytes[4..6].reverse();
            bytes[6..8].reverse();
        }
    }
    Some(bytes)
}
