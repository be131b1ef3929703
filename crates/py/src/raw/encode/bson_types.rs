//! Writes the BSON classes of onecopy and of pymongo directly from memory.

use onecopy_text::{Pen, Put};
use onecopy_wire::bson::{SUBTYPE_OLD, Tag};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyString, PyType};

use super::attributes::Attribute;
use super::builtin_types::{self, ObjectKind};
use crate::bson::REGEX_FLAGS;

/// A BSON class: the kind and the attributes of its values.
#[derive(Debug)]
pub(super) struct BsonClass {
    kind: BsonKind,
    attributes: Vec<Attribute>,
}

/// The kind of the values of a BSON class, which determines what its attributes contain.
#[derive(Clone, Copy, Debug)]
enum BsonKind {
    /// No attribute. The instances are also `int` objects.
    Int64,
    /// No attribute. The class has only one value.
    Single(Tag),
    /// A `bytes` of this length.
    Bytes(Tag, usize),
    /// The low and the high 64 bits of a Decimal128, as `int`.
    Words,
    /// The milliseconds since 1970, as `int`.
    Moment,
    /// The increment and the seconds of a timestamp, as `int`.
    Timestamp,
    /// The subtype, as `int`. The instances are also `bytes` objects.
    Binary,
    /// The scope of JavaScript code, which must be `None`. A symbol has no attribute.
    Text(Tag),
    /// The pattern of a regular expression, as `str`, and its options: letters or the flags of
    /// `re`.
    Regex,
    /// An encoded document, as `bytes`.
    Document,
}

/// The BSON classes: module, class name, kind and attribute names. pymongo's `Decimal128` has two
/// entries, for different versions.
const CLASSES: [(&str, &str, BsonKind, &[&str]); 23] = {
    use BsonKind::{Binary, Bytes, Document, Int64, Moment, Regex, Single, Text, Timestamp, Words};
    const OWN: &str = "onecopy.bson._types";
    let decimal = Bytes(Tag::Decimal128, 16);
    [
        (OWN, "Int64", Int64, &[]),
        (OWN, "MinKey", Single(Tag::MinKey), &[]),
        (OWN, "MaxKey", Single(Tag::MaxKey), &[]),
        (OWN, "Undefined", Single(Tag::Undefined), &[]),
        (OWN, "DatetimeMS", Moment, &["_value"]),
        (OWN, "Timestamp", Timestamp, &["inc", "time"]),
        (OWN, "Binary", Binary, &["subtype"]),
        (OWN, "Code", Text(Tag::Code), &["scope"]),
        (OWN, "Symbol", Text(Tag::Symbol), &[]),
        (OWN, "Regex", Regex, &["pattern", "options"]),
        ("onecopy.bson._decimal128", "Decimal128", decimal, &["bid"]),
        ("bson.int64", "Int64", Int64, &[]),
        ("bson.min_key", "MinKey", Single(Tag::MinKey), &[]),
        ("bson.max_key", "MaxKey", Single(Tag::MaxKey), &[]),
        ("bson.datetime_ms", "DatetimeMS", Moment, &["_value"]),
        (
            "bson.timestamp",
            "Timestamp",
            Timestamp,
            &["_Timestamp__inc", "_Timestamp__time"],
        ),
        ("bson.binary", "Binary", Binary, &["_Binary__subtype"]),
        ("bson.code", "Code", Text(Tag::Code), &["_Code__scope"]),
        ("bson.regex", "Regex", Regex, &["pattern", "flags"]),
        (
            "bson.decimal128",
            "Decimal128",
            decimal,
            &["_Decimal128__bid"],
        ),
        (
            "bson.decimal128",
            "Decimal128",
            Words,
            &["_Decimal128__low", "_Decimal128__high"],
        ),
        (
            "bson.objectid",
            "ObjectId",
            Bytes(Tag::ObjectId, 12),
            &["_ObjectId__id"],
        ),
        (
            "bson.raw_bson",
            "RawBSONDocument",
            Document,
            &["_RawBSONDocument__raw"],
        ),
    ]
};

impl BsonClass {
    /// Returns the [`BsonClass`] of a class. `None` for derived classes too: they may store the
    /// value elsewhere.
    pub(super) fn of(class: &Bound<'_, PyType>) -> PyResult<Option<BsonClass>> {
        let py = class.py();
        let (module, name) = (class.module()?, class.name()?);
        for (of_module, of_name, kind, attributes) in CLASSES {
            if module != of_module
                || name != of_name
                || !py.import(of_module)?.getattr(of_name)?.is(class)
            {
                continue;
            }
            let found = attributes
                .iter()
                .map(|name| Attribute::find(class, &PyString::intern(py, name)))
                .collect::<PyResult<Option<Vec<_>>>>()?;
            if let Some(attributes) = found {
                return Ok(Some(BsonClass { kind, attributes }));
            }
        }
        Ok(None)
    }

    /// Returns the tag of an instance that is written as its text.
    ///
    /// # Safety
    /// The requirements of [`Attribute::read`] apply.
    #[inline]
    pub(super) unsafe fn text_tag(&self, object: *mut ffi::PyObject) -> Option<Tag> {
        let BsonKind::Text(tag) = self.kind else {
            return None;
        };
        // SAFETY: the caller guarantees the requirements; an address is compared.
        let has_scope = |scope: &Attribute| unsafe { scope.read(object) != Some(ffi::Py_None()) };
        (!self.attributes.iter().any(has_scope)).then_some(tag)
    }

    /// Writes a value without its tag, and returns the tag. `None` if Python code must run, if a
    /// part exceeds `most_bytes`, or for the kind [`BsonKind::Text`].
    ///
    /// # Safety
    /// The requirements of [`Attribute::read`]. `pen` must have space for 64 bytes.
    #[inline]
    pub(super) unsafe fn put(
        &self,
        object: *mut ffi::PyObject,
        most_bytes: usize,
        pen: &mut Pen<'_>,
    ) -> Option<Tag> {
        // SAFETY: the caller guarantees the requirements.
        let attribute = |index: usize| unsafe { self.attributes.get(index)?.read(object) };
        // SAFETY: an attribute is alive as long as its object is.
        let bytes_of = |index| unsafe { builtin_types::bytes(attribute(index)?) };
        // SAFETY: an attribute is alive as long as its object is, whatever its type.
        let number_of = |index| unsafe { builtin_types::int_or_derived(attribute(index)?) };
        Some(match self.kind {
            BsonKind::Int64 => {
                // SAFETY: instances of these classes are `int`.
                let value = i64::try_from(unsafe { builtin_types::int(object)? }).ok()?;
                pen.put_short(&value.to_le_bytes(), 8);
                Tag::Int64
            }
            BsonKind::Single(tag) => tag,
            BsonKind::Bytes(tag, len) => {
                let bytes = bytes_of(0).filter(|bytes| bytes.len() == len)?;
                pen.put(bytes);
                tag
            }
            BsonKind::Words => {
                // SAFETY: an attribute is alive as long as its object is.
                let word = |index| unsafe { builtin_types::u128(attribute(index)?) };
                let low = u64::try_from(word(0)?).ok()?;
                let high = u64::try_from(word(1)?).ok()?;
                pen.put_short(&low.to_le_bytes(), 8);
                pen.put_short(&high.to_le_bytes(), 8);
                Tag::Decimal128
            }
            BsonKind::Moment => {
                let ms = i64::try_from(number_of(0)?).ok()?;
                pen.put_short(&ms.to_le_bytes(), 8);
                Tag::DateTime
            }
            BsonKind::Timestamp => {
                let increment = u32::try_from(number_of(0)?).ok()?;
                let seconds = u32::try_from(number_of(1)?).ok()?;
                pen.put_short(&increment.to_le_bytes(), 4);
                pen.put_short(&seconds.to_le_bytes(), 4);
                Tag::Timestamp
            }
            BsonKind::Binary => {
                let subtype = u8::try_from(number_of(0)?).ok()?;
                // SAFETY: instances of these classes are `bytes`.
                let bytes = unsafe { builtin_types::bytes_of_derived(object) };
                if subtype == SUBTYPE_OLD || bytes.len() > most_bytes {
                    return None;
                }
                pen.put_short(&u32::try_from(bytes.len()).ok()?.to_le_bytes(), 4);
                pen.put_byte(subtype);
                pen.put(bytes);
                Tag::Binary
            }
            BsonKind::Text(_) => return None,
            BsonKind::Regex => {
                // SAFETY: an attribute is alive as long as its object is.
                let c_string = |object, most| unsafe { c_string(object, most) };
                let pattern = c_string(attribute(0)?, most_bytes)?;
                let (flags, letters) = match c_string(attribute(1)?, REGEX_FLAGS.len()) {
                    Some(letters) => (0, letters),
                    None => (u32::try_from(number_of(1)?).ok()?, &b""[..]),
                };
                pen.put(pattern);
                pen.put_byte(0);
                for (_, letter) in REGEX_FLAGS.iter().filter(|(flag, _)| flags & flag != 0) {
                    pen.put_byte(*letter);
                }
                pen.put(letters);
                pen.put_byte(0);
                Tag::Regex
            }
            BsonKind::Document => {
                let bytes = bytes_of(0).filter(|bytes| bytes.len() <= most_bytes)?;
                let len = bytes.first_chunk().map(|len| i32::from_le_bytes(*len));
                let is_whole = len.map(usize::try_from) == Some(Ok(bytes.len()));
                if !is_whole || bytes.len() < 5 || bytes.last() != Some(&0) {
                    return None;
                }
                pen.put(bytes);
                Tag::Document
            }
        })
    }
}

/// Returns the characters of an ASCII `str` of at most `most_bytes`. `None` if it contains a NUL.
///
/// # Safety
/// `object` must be alive as long as the result.
unsafe fn c_string<'a>(object: *mut ffi::PyObject, most_bytes: usize) -> Option<&'a [u8]> {
    // SAFETY: alive, as the caller guarantees; a `str`, by its type.
    let text = unsafe {
        match builtin_types::kind(object) {
            ObjectKind::Str => builtin_types::ascii(object)?,
            _ => return None,
        }
    };
    (text.len() <= most_bytes && !text.contains(&0)).then_some(text)
}
