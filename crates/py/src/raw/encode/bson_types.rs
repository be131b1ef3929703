//! Reads values of the BSON classes of onecopy and of pymongo directly from memory.

use onecopy_wire::bson::Tag;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyString, PyType};

use super::attributes::Attribute;
use super::builtin_types;

/// The maximum size in bytes of a value that this module reads.
const MOST_BYTES: usize = 16;

/// A short BSON value and its tag. The value has at most [`MOST_BYTES`] bytes.
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

/// The type of the value that an instance of a BSON class represents, and the place in the instance
/// at which this value is stored.
#[derive(Debug)]
pub(super) enum BsonClass {
    /// The class is `Int64`. Its instances are also `int` objects, and are read as such.
    Int64,
    /// The value is a `bytes` in an attribute. The fields are the BSON tag, the length of the
    /// `bytes`, and the attribute that contains it.
    Bytes(Tag, usize, Attribute),
    /// The value is a Decimal128, in two `int` attributes: its low and its high 64 bits.
    Words([Attribute; 2]),
}

/// The classes whose instances store their value as a `bytes` in an attribute of `__slots__`. Each
/// entry has the module and the name of the class, the name of the attribute, the BSON tag of the
/// value, and the number of its bytes.
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
/// The classes that represent 64-bit integers: module and name.
const INTEGERS: [(&str, &str); 2] = [("onecopy.bson._types", "Int64"), ("bson.int64", "Int64")];

impl BsonClass {
    /// Returns the [`BsonClass`] of a BSON class. Returns `None` for a class that is not a BSON
    /// class. Also returns `None` for a class derived from a BSON class, because its instances may
    /// store the value in another place.
    pub(super) fn of(class: &Bound<'_, PyType>) -> PyResult<Option<BsonClass>> {
        let py = class.py();
        let (module, name) = (class.module()?, class.name()?);
        let is = |of_module: &str, of_name: &str| -> PyResult<bool> {
            Ok(module == of_module
                && name == of_name
                && py.import(of_module)?.getattr(of_name)?.is(class))
        };
        for (of_module, of_name) in INTEGERS {
            if is(of_module, of_name)? {
                return Ok(Some(BsonClass::Int64));
            }
        }
        for (of_module, of_name, slot, tag, len) in IN_SLOTS {
            if is(of_module, of_name)? {
                let found = Attribute::find(class, &PyString::intern(py, slot))?;
                return match found {
                    Some(attribute) => Ok(Some(BsonClass::Bytes(tag, len, attribute))),
                    None => BsonClass::words_of(class),
                };
            }
        }
        Ok(None)
    }

    /// Returns the two private attributes in which a `Decimal128` of pymongo stores the halves of
    /// its value. Its public attribute `bid` is a property, and a property cannot be read without
    /// running Python code.
    fn words_of(class: &Bound<'_, PyType>) -> PyResult<Option<BsonClass>> {
        let find = |name| Attribute::find(class, &PyString::intern(class.py(), name));
        let words = find("_Decimal128__low")?.zip(find("_Decimal128__high")?);
        Ok(words.map(|(low, high)| BsonClass::Words([low, high])))
    }

    /// Returns the value of `object`, an instance of this class. Returns `None` if the value cannot
    /// be read without running Python code, or if it is invalid, so that Python code must raise an
    /// exception.
    ///
    /// # Safety
    /// The same requirements as for [`Attribute::read`].
    #[inline]
    pub(super) unsafe fn read(&self, object: *mut ffi::PyObject) -> Option<ShortValue> {
        let mut bytes = [0; MOST_BYTES];
        let (tag, len) = match self {
            BsonClass::Int64 => {
                // SAFETY: instances of these classes are `int`.
                let value = i64::try_from(unsafe { builtin_types::int(object)? }).ok()?;
                bytes[..8].copy_from_slice(&value.to_le_bytes());
                (Tag::Int64, 8)
            }
            BsonClass::Words(words) => {
                for (word, out) in words.iter().zip(bytes.chunks_exact_mut(8)) {
                    // SAFETY: the caller guarantees the requirements; the attribute is alive with
                    // its object.
                    let word = unsafe { builtin_types::u128(word.read(object)?)? };
                    out.copy_from_slice(&u64::try_from(word).ok()?.to_le_bytes());
                }
                (Tag::Decimal128, MOST_BYTES)
            }
            BsonClass::Bytes(tag, len, attribute) => {
                // SAFETY: an instance of the class, as the caller guarantees.
                let held = unsafe { builtin_types::bytes(attribute.read(object)?)? };
                if held.len() != *len {
                    return None;
                }
                bytes[..*len].copy_from_slice(held);
                (*tag, *len)
            }
        };
        Some(ShortValue { tag, bytes, len })
    }
}
