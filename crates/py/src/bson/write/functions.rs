//! `encode` and `encode_into`.

use onecopy_text::{ByteSink, Stage, Tally};
use pyo3::Borrowed;
use pyo3::exceptions::{PyBufferError, PyIndexError, PyMemoryError};
use pyo3::prelude::*;

use super::error::to_py;
use super::options::{Options, options_signature, with_options};
use crate::ledger;
use crate::raw::binary::{FreshBytes, ShortBuffer};
use crate::raw::buffer;
use crate::raw::method::{self, Args, Function};
use crate::raw::walk::Fixed;
use crate::raw::walk::bson::{self, Sink};
use crate::recent::Recent;

/// Writes a document behind what is in the sink.
#[inline]
pub(super) fn write<'py>(
    object: Borrowed<'_, 'py, PyAny>,
    options: &Options,
    sink: &mut dyn Sink,
) -> PyResult<()> {
    let py = object.py();
    let mut tally = ledger::is_kept().then(Tally::default);
    let done = bson::write(object, options.style, options, sink, tally.as_mut());
    if let Some(tally) = &mut tally {
        ledger::enter(py, tally, Stage::Encode)?;
    }
    done.map_err(|failed| to_py(py, failed, options))
}

/// Enters what was moved in vain.
pub(super) fn moved(py: Python<'_>, bytes: usize) -> PyResult<()> {
    let mut tally = Tally::default();
    tally.copied_again(bytes);
    ledger::enter(py, &mut tally, Stage::Encode)
}

static RECENT: Recent = Recent::new();

struct Encode;

impl Function for Encode {
    const NAME: &'static str = "bson_encode";
    const SIGNATURE: &'static str = options_signature!("doc, /, *");
    const DOC: &'static str = "\
A document as BSON 1.1 (https://bsonspec.org), in a fresh `bytes`.

`doc` is a `dict`, any other mapping, a dataclass, or a raw document (ours or pymongo's), which is put as it is. Values are `str`, `int` (32
bits where they do, else 64), `float`, `bool`, `None`, mappings, lists, tuples, and what is derived from them; `bytes`, `bytearray`, `memoryview`;
`datetime` (a naive one is in UTC; floored to milliseconds) and `date` (its midnight in UTC); `UUID`; `Decimal` (exactly); compiled
regexes; an `Enum` as its value; a dataclass as a document; arrays and scalars of NumPy by their type;
the types of this module and those of pymongo. Anything else is given to `default`. Keys are `str`,
in their order.

- default: a function that gives what is to be written in place of an object that has no form in BSON
- check_keys: keys that begin with a dollar or hold a dot are an error, as MongoDB's collections once wanted it
- uuid_representation: `'standard'` (subtype 4), `'python_legacy'`, `'java_legacy'`, `'csharp_legacy'` (subtype 3), or `'unspecified'`: an error
- surrogates: what lone surrogates become: `'error'` or `'replace'` (U+FFFD)
- datetime_range: moments outside of the years 1 to 9999 in UTC: `'error'`, `'clamp'` or `'raw'` (as they are). A `DatetimeMS` is always written
- max_depth: how many documents and arrays may be inside of each other
- max_size: bytes of the document at most, up to 2147483647
- passthrough: which of `'buffer'`, `'dataclass'`, `'date'`, `'decimal'`, `'enum'`, `'numpy'` are left to `default`

No UTF-8 cache is left on any `str`.

Copies: none besides the one conversion of each text and one copy of binary, into the result; a result below 2 KiB once more, as a whole.

Raises `BSONEncodeError` (a `ValueError`) for a value that has no form in BSON, and `BSONTypeError`, which is also a `TypeError`, for a type that
has none; both with the path to it.

>>> import onecopy.bson
>>> onecopy.bson.encode({\"n\": 1})
b'\\x0c\\x00\\x00\\x00\\x10n\\x00\\x01\\x00\\x00\\x00\\x00'
";
    const PARAMETERS: &'static [&'static str] = with_options!("doc");
    const REQUIRED: usize = 1;
    const POSITIONAL: usize = 1;

    #[inline]
    fn call<'py>(py: Python<'py>, args: &Args<'_, 'py>) -> PyResult<Bound<'py, PyAny>> {
        let mut options = Options::new();
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
As `encode`, into a writable contiguous buffer (`bytearray`, `memoryview`, `mmap`, `array`) from `offset` (in bytes) on.

Returns the number of bytes written.

Copies: none besides those of `encode`; near the end of the buffer some hundred bytes once more.

Raises `BufferError` where the buffer is read-only, in pieces or too small, `IndexError` for an offset outside of it. What stands
behind `offset` is of no meaning then.

>>> import onecopy.bson
>>> place = bytearray(16)
>>> onecopy.bson.encode_into({\"n\": 1}, place, 4), bytes(place[4:16])
(12, b'\\x0c\\x00\\x00\\x00\\x10n\\x00\\x01\\x00\\x00\\x00\\x00')
";
    const PARAMETERS: &'static [&'static str] = with_options!("doc", "buffer", "offset");
    const REQUIRED: usize = 2;
    const POSITIONAL: usize = 3;

    fn call<'py>(py: Python<'py>, args: &Args<'_, 'py>) -> PyResult<Bound<'py, PyAny>> {
        let mut options = Options::new();
        options.take(args, 3)?;
        let offset: isize = args.get(2).map_or(Ok(0), |object| object.extract())?;
        let n = buffer::with_place(args.required(1), |place| {
            let place = usize::try_from(offset)
                .ok()
                .and_then(|from| place.behind(from));
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
    method::add::<Encode>(module)?;
    method::add::<EncodeInto>(module)
}
