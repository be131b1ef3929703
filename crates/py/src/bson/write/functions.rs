//! `encode` and `encode_into` of `onecopy.bson`.

use onecopy_text::ByteSink;
use pyo3::exceptions::{PyBufferError, PyIndexError, PyMemoryError};
use pyo3::prelude::*;

use super::encode::{moved, write};
use super::options::{BsonWriteOptions, options_signature, with_options};
use crate::raw::binary::{FreshBytes, ShortBuffer};
use crate::raw::buffer;
use crate::raw::encode::Fixed;
use crate::raw::function::{self, Args, Function};
use crate::recent::RecentLength;

static RECENT: RecentLength = RecentLength::new();

struct EncodeDocument;

impl Function for EncodeDocument {
    const NAME: &'static str = "bson_encode";
    const SIGNATURE: &'static str = options_signature!("doc, /, *");
    const DOC: &'static str = "\
A document as BSON 1.1 (https://bsonspec.org), in a fresh `bytes`.

`doc` is a `dict`, any other mapping, a dataclass, or a raw document (onecopy's or pymongo's), whose
bytes are copied as they are. Values are `str`, `int` (32 bits if it fits, else 64), `float`,
`bool`, `None`, mappings, lists, tuples, and instances of derived classes; `bytes`, `bytearray`,
`memoryview`; `datetime` (a naive one is in UTC; rounded down to milliseconds) and `date` (its
midnight in UTC); `UUID`; `Decimal` (exactly); compiled regexes; an `Enum` as its value; a dataclass
as a document; arrays and scalars of NumPy by their type; the types of this module and those of
pymongo. Anything else is passed to `default`. Keys are `str`, in their order.

- default: a function that returns a replacement for an object that has no form in BSON
- check_keys: keys that begin with a dollar or contain a dot are an error, as old versions of MongoDB
  required
- uuid_representation: `'standard'` (subtype 4), `'python_legacy'`, `'java_legacy'`,
  `'csharp_legacy'` (subtype 3), or `'unspecified'`: an error
- errors: lone surrogates are an error (`'strict'`) or become U+FFFD (`'replace'`)
- datetime_range: moments outside of the years 1 to 9999 in UTC: `'error'`, `'clamp'` or `'raw'`
  (unchanged). A `DatetimeMS` is always written
- max_depth: the largest depth of nested documents and arrays
- max_bytes: the largest size of the document in bytes, up to 2147483647
- passthrough: which of `'buffer'`, `'dataclass'`, `'date'`, `'decimal'`, `'enum'`, `'numpy'` (also
  pandas' `NaT`) are passed to `default`

No UTF-8 cache is left on any `str`.

Copies: none besides the one conversion of each text and one copy of binary, into the result; a
result below 2 KiB once more, as a whole.

Raises `BSONEncodeError` (a `ValueError`) for a value that has no form in BSON, and `BSONTypeError`,
which is also a `TypeError`, for a type that has none; both with the path to it.

>>> import onecopy.bson
>>> onecopy.bson.encode({\"n\": 1})
b'\\x0c\\x00\\x00\\x00\\x10n\\x00\\x01\\x00\\x00\\x00\\x00'
";
    const PARAMETERS: &'static [&'static str] = with_options!("doc");
    const REQUIRED: usize = 1;
    const POSITIONAL: usize = 1;

    #[inline]
    fn call<'py>(py: Python<'py>, args: &Args<'_, 'py>) -> PyResult<Bound<'py, PyAny>> {
        let mut options = BsonWriteOptions::new();
        options.take(args, 1)?;
        let mut buffer = match RECENT.is_short() {
            true => ShortBuffer::lend(py),
            false => None,
        };
        let mut bytes = match &mut buffer {
            Some(buffer) => FreshBytes::short(py, buffer),
            None => FreshBytes::new(py, RECENT.likely())?,
        };
        write(args.required(0), &options, &mut bytes)?;
        RECENT.remember(bytes.committed().len());
        if bytes.moved_bytes() != 0 {
            moved(py, bytes.moved_bytes())?;
        }
        Ok(bytes.finish()?.into_any())
    }
}

struct EncodeInto;

impl Function for EncodeInto {
    const NAME: &'static str = "bson_encode_into";
    const SIGNATURE: &'static str = options_signature!("doc, buffer, offset=0, /, *");
    const DOC: &'static str = "\
As `encode`, into a writable contiguous buffer (`bytearray`, `memoryview`, `mmap`, `array`), from
`offset` (in bytes) on.

Returns the number of bytes written.

Copies: none besides those of `encode`; near the end of the buffer some hundred bytes once more.

Raises `BufferError` if the buffer is read-only, not contiguous or too small, `IndexError` for an
offset outside of it. The bytes from `offset` on are undefined then.

>>> import onecopy.bson
>>> place = bytearray(16)
>>> onecopy.bson.encode_into({\"n\": 1}, place, 4), bytes(place[4:16])
(12, b'\\x0c\\x00\\x00\\x00\\x10n\\x00\\x01\\x00\\x00\\x00\\x00')
";
    const PARAMETERS: &'static [&'static str] = with_options!("doc", "buffer", "offset");
    const REQUIRED: usize = 2;
    const POSITIONAL: usize = 3;

    fn call<'py>(py: Python<'py>, args: &Args<'_, 'py>) -> PyResult<Bound<'py, PyAny>> {
        let mut options = BsonWriteOptions::new();
        options.take(args, 3)?;
        let offset: isize = args.get(2).map_or(Ok(0), |object| object.extract())?;
        let n = buffer::with_place(args.required(1), |place| {
            let place = usize::try_from(offset)
                .ok()
                .and_then(|from| place.without_first(from));
            let Some(place) = place else {
                return Err(PyIndexError::new_err("`offset` is outside of the buffer"));
            };
            let mut sink = Fixed::new(place);
            let full = || PyBufferError::new_err("the buffer is too small for the document");
            match write(args.required(0), &options, &mut sink) {
                Ok(()) => {}
                Err(e) if e.is_instance_of::<PyMemoryError>(py) => return Err(full()),
                Err(e) => return Err(e),
            }
            let (n, copied) = sink.finish().ok_or_else(full)?;
            moved(py, copied)?;
            Ok(n)
        })?;
        Ok(n.into_pyobject(py)?.into_any())
    }
}

pub(super) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    function::add::<EncodeDocument>(module)?;
    function::add::<EncodeInto>(module)
}
