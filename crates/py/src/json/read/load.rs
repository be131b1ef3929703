//! `loads` and `load`.

use std::ops::Range;

use onecopy_text::convert::{Kernels, Work, with_kernels};
use onecopy_text::{Stage, Tally, Units};
use onecopy_wire::json::read::{Form, Latin1, ReadError, Ucs2, Ucs4, Utf8, read_all};
use pyo3::Borrowed;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyString;

use super::build::Build;
use super::error;
use super::options::{FILE_PARAMETERS, Options, PARAMETERS};
use crate::ledger;
use crate::raw::buffer::{self, Bytes};
use crate::raw::method::{self, Args, Function};
use crate::raw::text::{known_ascii, own_units};

pub(super) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    method::add::<Loads>(module)?;
    method::add::<Load>(module)
}

struct Loads;

impl Function for Loads {
    const NAME: &'static str = "loads";
    const SIGNATURE: &'static str = "(data, /, *, big_ints='exact', duplicate_keys='last', surrogates='error', nan='error', \
         object_hook=None, float_hook=None, max_depth=1000)";
    const DOC: &'static str = "\
The value of a JSON text (RFC 8259): dict, list, str, int, float, bool or None.

``data`` is any buffer of UTF-8, or a `str`. What the RFC does not allow is refused: comments, trailing commas, zeros in front
of numbers, control characters in strings, malformed UTF-8, a byte order mark, anything behind the value.

``big_ints`` is what becomes of integers of more than 64 bits: ``'exact'`` (an int with all digits, however
many: `sys.set_int_max_str_digits` is not asked, the time grows with less than the square), ``'float'`` or ``'error'``.
``duplicate_keys='error'`` refuses an object with a key twice; else the last one counts. ``surrogates`` is what becomes of a
lone surrogate (``\"\\ud800\"``): ``'error'``, ``'replace'`` (by U+FFFD) or ``'pass'``. ``nan='accept'`` takes ``NaN``,
``Infinity`` and ``-Infinity``. ``object_hook`` is called with each dict and ``float_hook`` with the text of each number that is
no integer; what they return stands in their place. ``max_depth`` is how deep arrays and objects may stand in each other.

Raises `JSONDecodeError`, with line, column, character and byte of what is wrong; `TypeError` for data without a buffer; what
the hooks raise.

Copies: one, of each text into its `str`. No UTF-8 cache is left behind a `str`. Memory: the objects, and up to 64 KiB.

>>> onecopy.json.loads(b'{\"a\": [1, 2.5, null]}')
{'a': [1, 2.5, None]}
";
    const PARAMETERS: &'static [&'static str] = PARAMETERS;
    const REQUIRED: usize = 1;
    const POSITIONAL: usize = 1;

    #[inline]
    fn call<'py>(py: Python<'py>, args: &Args<'_, 'py>) -> PyResult<Bound<'py, PyAny>> {
        let options = Options::of(args)?;
        loads(py, args.required(0), &options)
    }
}

struct Load;

impl Function for Load {
    const NAME: &'static str = "load";
    const SIGNATURE: &'static str = "(file, /, *, big_ints='exact', duplicate_keys='last', surrogates='error', nan='error', \
         object_hook=None, float_hook=None, max_depth=1000)";
    const DOC: &'static str = "\
The value of a JSON text that a file holds, from where it stands to its end: ``file.read()`` is called once.

The options, what is raised and what is copied are those of :func:`loads`.

>>> import io
>>> onecopy.json.load(io.BytesIO(b'[1, 2]'))
[1, 2]
";
    const PARAMETERS: &'static [&'static str] = FILE_PARAMETERS;
    const REQUIRED: usize = 1;
    const POSITIONAL: usize = 1;

    fn call<'py>(py: Python<'py>, args: &Args<'_, 'py>) -> PyResult<Bound<'py, PyAny>> {
        let options = Options::of(args)?;
        let data = args.required(0).call_method0("read")?;
        loads(py, data.as_borrowed(), &options)
    }
}

#[inline]
fn loads<'py>(
    py: Python<'py>,
    data: Borrowed<'_, 'py, PyAny>,
    options: &Options<'py>,
) -> PyResult<Bound<'py, PyAny>> {
    if let Some(bytes) = buffer::of_bytes(data) {
        return value::<Utf8>(py, data, bytes, 0..bytes.len(), options);
    }
    loads_other(py, data, options)
}

/// Neither a `str` nor a buffer was given.
#[cold]
pub(super) fn no_data(data: Borrowed<'_, '_, PyAny>) -> PyErr {
    match data.get_type().name() {
        Ok(kind) => PyTypeError::new_err(format!(
            "the data must be a str or a bytes-like object, not '{kind}'"
        )),
        Err(e) => e,
    }
}

/// Of what is no `bytes`.
#[inline(never)]
fn loads_other<'py>(
    py: Python<'py>,
    data: Borrowed<'_, 'py, PyAny>,
    options: &Options<'py>,
) -> PyResult<Bound<'py, PyAny>> {
    let Ok(string) = data.cast::<PyString>() else {
        if !Bytes::is_buffer(data) {
            return Err(no_data(data));
        }
        let bytes = Bytes::of(data)?;
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

/// The value of a part of the text.
#[inline]
pub(super) fn value<'py, F: Form>(
    py: Python<'py>,
    data: Borrowed<'_, 'py, PyAny>,
    all: &[F::Unit],
    part: Range<usize>,
    options: &Options<'py>,
) -> PyResult<Bound<'py, PyAny>> {
    let text = &all[part.clone()];
    let mut tally = Tally::default();
    let mut failed = None;
    let is_kept = ledger::is_kept();
    let made = with_kernels(Value::<F> {
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
        Failed::Python(e) => e,
        Failed::Read(e) => {
            let at_units = part.start + e.at_units;
            error::to_py(&data, F::units(all), ReadError { at_units, ..e })
        }
    })
}

/// Why no value could be made.
pub(super) enum Failed {
    Read(ReadError),
    Python(PyErr),
}

/// A value to be read.
pub(super) struct Value<'a, 'py, F: Form> {
    pub(super) py: Python<'py>,
    pub(super) text: &'a [F::Unit],
    pub(super) options: &'a Options<'py>,
    pub(super) tally: Option<&'a mut Tally>,
    pub(super) failed: &'a mut Option<Failed>,
}

impl<'py, F: Form> Work for Value<'_, 'py, F> {
    type Output = Option<Bound<'py, PyAny>>;

    #[inline(always)]
    fn run<K: Kernels>(self, kernels: K) -> Self::Output {
        let mut build = Build::new(self.py, kernels, self.options, self.tally);
        match read_all::<F, K, _>(kernels, self.text, self.options.limits, &mut build) {
            Ok(()) => Some(build.finish()),
            Err(e) => {
                *self.failed = Some(match build.error.take() {
                    Some(e) => Failed::Python(e),
                    None => Failed::Read(e),
                });
                None
            }
        }
    }
}
