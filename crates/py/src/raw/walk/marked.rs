//! Values of BSON's own types, ours and pymongo's, read in place.

use onecopy_wire::bson::Tag;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyString, PyType};

use super::attributes::Attribute;
use super::object;

/// The longest of the values that are read here.
const MOST_BYTES: usize = 16;

/// A value of a few bytes, with its tag.
#[derive(Clone, Copy, Debug)]
pub(super) struct ShortValue {
    pub(super) tag: Tag,
    bytes: [u8; MOST_BYTES],
    len: usize,
}

impl ShortValue {
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

/// How the instances of a class are read.
#[derive(Debug)]
pub(super) enum Marked {
    /// As an `int`.
    Int64,
    /// By the `bytes` in an attribute: their tag, and how many they are.
    Bytes(Tag, usize, Attribute),
}

/// Modules and names of classes, and the slot that has their bytes.
const IN_SLOTS: [(&str, &str, &str, Tag, usize); 3] = [
    (
        "onecopy.bson._decimal128",
        "Decimal128",
        "bid",
        Tag::Decimal128,
        16,
    ),
    (
        "bson.decimal128",
        "Decimal128",
        "_Decimal128__bid",
        Tag::Decimal128,
        16,
    ),
    (
        "bson.objectid",
        "ObjectId",
        "_ObjectId__id",
        Tag::ObjectId,
        12,
    ),
];
/// Modules and names of the classes of 64-bit integers.
const INTEGERS: [(&str, &str); 2] = [("onecopy.bson._types", "Int64"), ("bson.int64", "Int64")];

impl Marked {
    /// How a class is read: one of these itself, not one that derives from it.
    pub(super) fn of(class: &Bound<'_, PyType>) -> PyResult<Option<Marked>> {
        let py = class.py();
        let (module, name) = (class.module()?, class.name()?);
        let is = |of_module: &str, of_name: &str| -> PyResult<bool> {
            Ok(module == of_module
                && name == of_name
                && py.import(of_module)?.getattr(of_name)?.is(class))
        };
        for (of_module, of_name) in INTEGERS {
            if is(of_module, of_name)? {
                return Ok(Some(Marked::Int64));
            }
        }
        for (of_module, of_name, slot, tag, len) in IN_SLOTS {
            if is(of_module, of_name)? {
                let found = Attribute::find(class, &PyString::intern(py, slot))?;
                return Ok(found.map(|attribute| Marked::Bytes(tag, len, attribute)));
            }
        }
        Ok(None)
    }

    /// The value of an instance; `None` where code has to run for it, or to refuse it.
    ///
    /// # Safety
    /// As [`Attribute::read`].
    #[inline]
    pub(super) unsafe fn read(&self, object: *mut ffi::PyObject) -> Option<ShortValue> {
        let mut bytes = [0; MOST_BYTES];
        // SAFETY: the duty of the caller. Instances of these classes of integers are `int`; the attribute is alive with its object.
        unsafe {
            match self {
                Marked::Int64 => {
                    let value = i64::try_from(object::int(object)?).ok()?;
                    bytes[..8].copy_from_slice(&value.to_le_bytes());
                    Some(ShortValue {
                        tag: Tag::Int64,
                        bytes,
                        len: 8,
                    })
                }
                Marked::Bytes(tag, len, attribute) => {
                    let held = attribute.read(object)?;
                    if ffi::PyBytes_CheckExact(held) == 0
                        || ffi::Py_SIZE(held).unsigned_abs() != *len
                    {
                        return None;
                    }
                    let data = ffi::PyBytes_AsString(held).cast::<u8>();
                    bytes[..*len].copy_from_slice(std::slice::from_raw_parts(data, *len));
                    Some(ShortValue {
                        tag: *tag,
                        bytes,
                        len: *len,
                    })
                }
            }
        }
    }
}
