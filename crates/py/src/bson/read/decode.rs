//! `decode` and `decode_all` of `onecopy.bson`.

use onecopy_text::convert::{Kernels, Work, with_kernels};
use onecopy_text::{Stage, Tally};
use onecopy_wire::bson::read::{read, read_all};
use pyo3::prelude::*;

use super::build::Build;
use super::failure::{DecodeFailure, Extent};
use super::options::{Document, Given, options_signature, with_options};
use super::raw_document::RawDocument;
use crate::ledger;
use crate::raw::buffer::{BufferBytes, immutable};
use crate::raw::function::{self, Args, Function};

pub(super) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    function::add::<DecodeDocument>(module)?;
    function::add::<DecodeAll>(module)
}

struct DecodeDocument;

impl Function for DecodeDocument {
    const NAME: &'static str = "bson_decode";
    const SIGNATURE: &'static str = options_signature!("buffer");
    const DOC: &'static str = "\
The document of BSON 1.1 that a buffer holds, without further bytes: a dict.

``buffer`` is any buffer. If it is not ``bytes``, a private copy is read, because others may
write to it meanwhile.

With ``compat='pymongo'`` the types that Python does not have are the classes of PyMongo's ``bson``,
and the deprecated types are replaced: undefined by `None`, a symbol by a `str`, a DBPointer by a
`DBRef`. Datetimes are aware, in UTC; naive if ``tz_aware`` is false. ``datetime_range`` selects the
result for a date outside of the years 1 to 9999: ``'error'``, ``'clamp'`` or ``'auto'`` (a
`DatetimeMS`); with ``'raw'`` all dates are a `DatetimeMS`. ``uuid_representation`` selects the
binary that becomes a `UUID`: subtype 4 (``'standard'``), subtype 3 in the byte order of a legacy
driver (``'python_legacy'``, ``'java_legacy'``, ``'csharp_legacy'``), or none (``'unspecified'``).
``errors`` is the name of an error handler of :mod:`codecs`. ``decimals='decimal'`` makes
`decimal.Decimal`. ``array_keys='strict'`` refuses arrays whose keys are not 0, 1, 2 and so on.
``max_depth`` is the largest depth of nested documents and arrays, ``max_bytes`` the largest size of
the document in bytes. ``document_class`` is called with the items of each document, or is
`RawDocument`.

Raises `BSONDecodeError`, with the reason and the byte of the error; `TypeError` for an object
without a buffer; the exception of an error handler or a document class.

Copies: one, of each text into its `str`, of binary into its `bytes`. No UTF-8 cache is left on a
`str`. Memory: the objects, and up to 64 KiB.

>>> onecopy.bson.decode(b'\\x0c\\0\\0\\0\\x10a\\0\\x01\\0\\0\\0\\0')
{'a': 1}
";
    const PARAMETERS: &'static [&'static str] = with_options!("buffer");
    const REQUIRED: usize = 1;
    const POSITIONAL: usize = 1;

    #[inline]
    fn call<'py>(py: Python<'py>, args: &Args<'_, 'py>) -> PyResult<Bound<'py, PyAny>> {
        decode(py, args, Extent::One)
    }
}

struct DecodeAll;

impl Function for DecodeAll {
    const NAME: &'static str = "bson_decode_all";
    const SIGNATURE: &'static str = options_signature!("buffer");
    const DOC: &'static str = "\
A list of the concatenated documents that a buffer holds.

The options, errors and copies are those of :func:`decode`; offsets are those in the whole buffer.

>>> onecopy.bson.decode_all(b'\\x05\\0\\0\\0\\0' * 2)
[{}, {}]
";
    const PARAMETERS: &'static [&'static str] = with_options!("buffer");
    const REQUIRED: usize = 1;
    const POSITIONAL: usize = 1;

    #[inline]
    fn call<'py>(py: Python<'py>, args: &Args<'_, 'py>) -> PyResult<Bound<'py, PyAny>> {
        decode(py, args, Extent::All)
    }
}

#[inline]
fn decode<'py>(
    py: Python<'py>,
    args: &Args<'_, 'py>,
    extent: Extent,
) -> PyResult<Bound<'py, PyAny>> {
    let options = Given::of(args)?;
    if matches!(options.document, Document::Raw) {
        let owner = immutable(args.required(0))?;
        let bytes = BufferBytes::of(owner.as_borrowed())?;
        let made = RawDocument::of(&owner, bytes.as_slice(), extent, &options);
        return made.map_err(|e| e.into_py(py));
    }
    let bytes = BufferBytes::of(args.required(0))?;
    objects(py, bytes.as_slice(), extent, &options).map_err(|e| e.into_py(py))
}

/// Decodes the documents in `bytes` and counts their text in the active ledger.
#[inline]
pub(super) fn objects<'py>(
    py: Python<'py>,
    bytes: &[u8],
    extent: Extent,
    options: &Given<'py>,
) -> Result<Bound<'py, PyAny>, DecodeFailure> {
    let mut tally = Tally::default();
    let mut failed = None;
    let is_kept = ledger::is_kept();
    let made = with_kernels(Objects {
        py,
        bytes,
        extent,
        options,
        tally: is_kept.then_some(&mut tally),
        failed: &mut failed,
    });
    match made {
        Some(made) => {
            if is_kept {
                ledger::enter(py, &mut tally, Stage::Decode)?;
            }
            Ok(made)
        }
        None => Err(failed.expect("one of the two")),
    }
}

/// The arguments of a `decode` call. [`Work::run`] executes the call.
struct Objects<'a, 'py> {
    py: Python<'py>,
    bytes: &'a [u8],
    extent: Extent,
    options: &'a Given<'py>,
    tally: Option<&'a mut Tally>,
    failed: &'a mut Option<DecodeFailure>,
}

impl<'py> Work for Objects<'_, 'py> {
    type Output = Option<Bound<'py, PyAny>>;

    #[inline(always)]
    fn run<K: Kernels>(self, kernels: K) -> Self::Output {
        let mut build = Build::new(self.py, kernels, self.options, self.tally);
        let rules = self.options.rules;
        let read = match self.extent {
            Extent::One => read_all(kernels, self.bytes, rules, &mut build),
            Extent::All => {
                build.begin_all();
                let mut at = 0;
                loop {
                    let rest = &self.bytes[at..];
                    if rest.is_empty() {
                        break Ok(());
                    }
                    match read(kernels, rest, rules, &mut build) {
                        Ok(len) => at += len,
                        Err(e) => break Err(e.later_by(at)),
                    }
                }
            }
        };
        let ended = match (&read, self.extent) {
            (Ok(()), Extent::All) => build.end_all(),
            _ => Ok(()),
        };
        match (read, ended) {
            (Ok(()), Ok(())) => Some(build.finish()),
            (Ok(()), Err(e)) => {
                *self.failed = Some(DecodeFailure::Python(e));
                None
            }
            (Err(e), _) => {
                *self.failed = Some(match build.error.take() {
                    Some(e) => DecodeFailure::Python(e),
                    None => DecodeFailure::Read(e),
                });
                None
            }
        }
    }
}
