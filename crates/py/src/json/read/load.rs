//! `loads` and `load` of `onecopy.json`.

use std::ops::Range;

use onecopy_text::convert::{Kernels, Work, with_kernels};
use onecopy_text::{Stage, Tally, Units};
use onecopy_wire::json::read::{Latin1, ReadError, SourceForm, Ucs2, Ucs4, Utf8, read_all};
use pyo3::Borrowed;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyString;

use super::build::Build;
use super::error;
use super::options::{FILE_PARAMETERS, JsonReadOptions, PARAMETERS};
use crate::ledger;
use crate::raw::buffer::{self, BufferBytes};
use crate::raw::function::{self, Args, Function};
use crate::raw::text::{known_ascii, own_units};

pub(super) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    function::add::<Loads>(module)?;
    function::add::<Load>(module)
}

struct Loads;

impl Function for Loads {
    const NAME: &'static str = "loads";
    const SIGNATURE: &'static str = "(data, /, *, big_ints='exact', duplicate_keys='last', errors='strict', \
         nan='error', object_hook=None, parse_float=None, max_depth=1000)";
    const DOC: &'static str = "\
The value of a JSON text (RFC 8259): dict, list, str, int, float, bool or None.

``data`` is any buffer of UTF-8, or a `str`. Anything that the RFC does not allow is refused:
comments, trailing commas, leading zeros, control characters in strings, malformed UTF-8, a byte
order mark, trailing data.

``big_ints`` selects the type of integers of more than 64 bits: ``'exact'`` (an int with all
digits, however many: `sys.set_int_max_str_digits` has no effect, the time grows with less than the
square), ``'float'`` or ``'error'``. ``duplicate_keys='error'`` refuses an object with a key twice;
by default the last one counts. ``errors`` selects the treatment of a lone surrogate
(``\"\\ud800\"``): ``'strict'`` refuses it, ``'replace'`` replaces it by U+FFFD, ``'surrogatepass'``
keeps it. ``nan='literal'`` accepts
``NaN``, ``Infinity`` and ``-Infinity``. ``object_hook`` is called with each dict and
``parse_float`` with the text of each number that is not an integer; their results replace these.
``max_depth`` is the largest depth of nested arrays and objects.

Raises `JSONDecodeError`, with line, column, character and byte of the error; `TypeError` for data
without a buffer; the exceptions of the hooks.

Copies: one, of each text into its `str`. No UTF-8 cache is left on a `str`. Memory: the objects,
and up to 64 KiB.

>>> onecopy.json.loads(b'{\"a\": [1, 2.5, null]}')
{'a': [1, 2.5, None]}
";
    const PARAMETERS: &'static [&'static str] = PARAMETERS;
    const REQUIRED: usize = 1;
    const POSITIONAL: usize = 1;

    #[inline]
    fn call<'py>(py: Python<'py>, args: &Args<'_, 'py>) -> PyResult<Bound<'py, PyAny>> {
        let options = JsonReadOptions::of(args)?;
        loads(py, args.required(0), &options)
    }
}

struct Load;

impl Function for Load {
    const NAME: &'static str = "load";
    const SIGNATURE: &'static str = "(file, /, *, big_ints='exact', duplicate_keys='last', errors='strict', \
         nan='error', object_hook=None, parse_float=None, max_depth=1000)";
    const DOC: &'static str = "\
The value of a JSON text in a file, from its current position to its end: ``file.read()`` is called
once.

The options, errors and copies are those of :func:`loads`.

>>> import io
>>> onecopy.json.load(io.BytesIO(b'[1, 2]'))
[1, 2]
";
    const PARAMETERS: &'static [&'static str] = FILE_PARAMETERS;
    const REQUIRED: usize = 1;
    const POSITIONAL: usize = 1;

    fn call<'py>(py: Python<'py>, args: &Args<'_, 'py>) -> PyResult<Bound<'py, PyAny>> {
        let options = JsonReadOptions::of(args)?;
        let data = args.required(0).call_method0("read")?;
        loads(py, data.as_borrowed(), &options)
    }
}

#[inline]
fn loads<'py>(
    py: Python<'py>,
    data: Borrowed<'_, 'py, PyAny>,
    options: &JsonReadOptions<'py>,
) -> PyResult<Bound<'py, PyAny>> {
    if let Some(bytes) = buffer::of_bytes(data) {
        return value::<Utf8>(py, data, bytes, 0..bytes.len(), options);
    }
    loads_other(py, data, options)
}

/// Returns the exception for an argument of an unsupported type.
#[cold]
pub(super) fn no_data(data: Borrowed<'_, '_, PyAny>) -> PyErr {
    match data.get_type().name() {
        Ok(kind) => PyTypeError::new_err(format!(
            "the data must be a str or a bytes-like object, not '{kind}'"
        )),
        Err(e) => e,
    }
}

/// Implements `loads` for other arguments than `bytes`.
#[inline(never)]
fn loads_other<'py>(
    py: Python<'py>,
    data: Borrowed<'_, 'py, PyAny>,
    options: &JsonReadOptions<'py>,
) -> PyResult<Bound<'py, PyAny>> {
    let Ok(string) = data.cast::<PyString>() else {
        if !BufferBytes::is_buffer(data) {
            return Err(no_data(data));
        }
        let bytes = BufferBytes::of(data)?;
        let bytes = bytes.as_slice();
        return value::<Utf8>(py, data, bytes, 0..bytes.len(), options);
    };
    if let Some(ascii) = known_ascii(string)? {
        return value::<Utf8>(py, data, ascii, 0..ascii.len(), options);
    }
    match own_units(string)? {
        Units::Latin1(u) => value::<Latin1>(py, data, u, 0..u.len(), options),
        Units::Ucs2(u) => value::<Ucs2>(py, data, u, 0..u.len(), options),
        Units::Utf32(u) => value::<Ucs4>(py, data, u, 0..u.len(), options),
        _ => unreachable!("the own form of a str is none of those"),
    }
}

/// Parses the range `part` of the text `all`. Error positions are relative to `all`.
#[inline]
pub(super) fn value<'py, F: SourceForm>(
    py: Python<'py>,
    data: Borrowed<'_, 'py, PyAny>,
    all: &[F::Unit],
    part: Range<usize>,
    options: &JsonReadOptions<'py>,
) -> PyResult<Bound<'py, PyAny>> {
    let text = &all[part.clone()];
    let mut tally = Tally::default();
    let mut failed = None;
    let is_kept = ledger::is_kept();
    let made = with_kernels(ValueInput::<F> {
        py,
        text,
        options,
        tally: is_kept.then_some(&mut tally),
        failed: &mut failed,
    });
    if let Some(made) = made {
        if is_kept {
            ledger::enter(py, &mut tally, Stage::Decode)?;
        }
        return Ok(made);
    }
    Err(match failed.expect("one of the two") {
        LoadFailure::Python(e) => e,
        LoadFailure::Read(e) => {
            let at_units = part.start + e.at_units;
            error::to_py(&data, F::units(all), ReadError { at_units, ..e })
        }
    })
}

pub(super) enum LoadFailure {
    Read(ReadError),
    Python(PyErr),
}

/// A call of the parser. [`Work::run`] is compiled once for each instruction set.
pub(super) struct ValueInput<'a, 'py, F: SourceForm> {
    pub(super) py: Python<'py>,
    pub(super) text: &'a [F::Unit],
    pub(super) options: &'a JsonReadOptions<'py>,
    pub(super) tally: Option<&'a mut Tally>,
    pub(super) failed: &'a mut Option<LoadFailure>,
}

impl<'py, F: SourceForm> Work for ValueInput<'_, 'py, F> {
    type Output = Option<Bound<'py, PyAny>>;

    #[inline(always)]
    fn run<K: Kernels>(self, kernels: K) -> Self::Output {
        let mut build = Build::new(self.py, kernels, self.options, self.tally);
        match read_all::<F, K, _>(kernels, self.text, self.options.limits, &mut build) {
            Ok(()) => Some(build.finish()),
            Err(e) => {
                *self.failed = Some(match build.error.take() {
                    Some(e) => LoadFailure::Python(e),
                    None => LoadFailure::Read(e),
                });
                None
            }
        }
    }
}
