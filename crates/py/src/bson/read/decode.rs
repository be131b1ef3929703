//! `decode` and `decode_all`.

use onecopy_text::convert::{Kernels, Work, with_kernels};
use onecopy_text::{Stage, Tally};
use onecopy_wire::bson::read::{ReadError, read, read_all};
use pyo3::prelude::*;

use super::build::Build;
use super::document::RawDocument;
use super::error;
use super::options::{Document, Given, options_signature, with_options};
use crate::ledger;
use crate::raw::buffer::{Bytes, immutable};
use crate::raw::method::{self, Args, Function};

pub(super) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    method::add::<Decode>(module)?;
    method::add::<DecodeAll>(module)
}

struct Decode;

impl Function for Decode {
    const NAME: &'static str = "bson_decode";
    const SIGNATURE: &'static str = options_signature!("buffer");
    const DOC: &'static str = "\
The document of BSON 1.1 that a buffer holds, with nothing behind it: a dict.

``buffer`` is any buffer. If it is not ``bytes``, a private copy is read, because others may
write to it meanwhile.

``types`` is whose classes the values have that Python has no type for: ``'onecopy'`` or ``'pymongo'``, which reads the deprecated types
as others: undefined as `None`, a symbol as a `str`, a DBPointer as a `DBRef`. Datetimes are aware, in UTC;
naive where ``tz_aware`` is false. ``datetime_range`` is what becomes of a date outside of the years 1 to 9999: ``'error'``,
``'clamp'`` or ``'auto'`` (a `DatetimeMS`); with ``'raw'`` all dates are a `DatetimeMS`. ``uuid_representation`` is which binary becomes a
`UUID`: subtype 4 (``'standard'``), subtype 3 in the order of a driver of before (``'python_legacy'``, ``'java_legacy'``,
``'csharp_legacy'``), or none (``'unspecified'``). ``on_invalid_utf8`` is the name of an error handler of :mod:`codecs`.
``decimals='decimal'`` gives `decimal.Decimal`. ``array_keys='strict'`` refuses arrays whose keys are not 0, 1, 2 and so on.
``max_depth`` is how deep documents and arrays may stand in each other, ``max_size`` how many bytes the document may have.
``document_class`` is called for each document and given its items, or is `RawDocument`.

Raises `BSONDecodeError`, with the reason and the byte of what is wrong; `TypeError` for what has no buffer; what an error handler or
a document class raises.

Copies: one, of each text into its `str`, of binary into its `bytes`. No UTF-8 cache is left behind a `str`. Memory: the
objects, and up to 64 KiB.

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
A list of the documents that a buffer holds, one behind the other.

The options, what is raised and what is copied are those of :func:`decode`; offsets are those in the whole buffer.

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
        let bytes = Bytes::of(owner.as_borrowed())?;
        let made = RawDocument::of(&owner, bytes.as_slice(), extent, &options);
        return made.map_err(|e| e.into_py(py));
    }
    let bytes = Bytes::of(args.required(0))?;
    objects(py, bytes.as_slice(), extent, &options).map_err(|e| e.into_py(py))
}

/// What of the bytes is to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Extent {
    /// One document, which is all of them.
    One,
    /// Documents up to their end, as a list.
    All,
}

/// Why no objects could be made.
pub(super) enum Failed {
    Read(ReadError),
    Python(PyErr),
}

impl Failed {
    /// The same, of bytes with others before them.
    pub(super) fn later_by(self, n_bytes: usize) -> Failed {
        match self {
            Failed::Read(e) => Failed::Read(e.later_by(n_bytes)),
            Failed::Python(e) => Failed::Python(e),
        }
    }

    #[cold]
    pub(super) fn into_py(self, py: Python<'_>) -> PyErr {
        match self {
            Failed::Read(e) => error::to_py(py, e),
            Failed::Python(e) => e,
        }
    }
}

impl From<PyErr> for Failed {
    fn from(e: PyErr) -> Failed {
        Failed::Python(e)
    }
}

/// The objects of these bytes, entered into the ledger.
#[inline]
pub(super) fn objects<'py>(
    py: Python<'py>,
    bytes: &[u8],
    extent: Extent,
    options: &Given<'py>,
) -> Result<Bound<'py, PyAny>, Failed> {
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

/// Objects to be read.
struct Objects<'a, 'py> {
    py: Python<'py>,
    bytes: &'a [u8],
    extent: Extent,
    options: &'a Given<'py>,
    tally: Option<&'a mut Tally>,
    failed: &'a mut Option<Failed>,
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
                *self.failed = Some(Failed::Python(e));
                None
            }
            (Err(e), _) => {
                *self.failed = Some(match build.error.take() {
                    Some(e) => Failed::Python(e),
                    None => Failed::Read(e),
                });
                None
            }
        }
    }
}
