//! `JSONLines`: the iterator that `loads_lines` returns.

use std::io::BufRead;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use onecopy_text::Units;
use onecopy_wire::json::read::{Latin1, SourceForm, Ucs2, Ucs4, Utf8};
use pyo3::Borrowed;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyString;

use super::load::{no_data, value};
use super::options::{JsonReadOptions, OwnedJsonReadOptions, PARAMETERS};
use crate::raw::buffer::{self, BufferBytes};
use crate::raw::function::{self, Args, Function};
use crate::raw::stack;
use crate::raw::text::{known_ascii, own_units};

pub(super) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<JSONLines>()?;
    function::add::<LoadsLines>(module)
}

struct LoadsLines;

impl Function for LoadsLines {
    const NAME: &'static str = "loads_lines";
    const SIGNATURE: &'static str = "(data, /, *, big_ints='exact', duplicate_keys='last', errors='strict', \
         nan='error', object_hook=None, parse_float=None, max_depth=1000)";
    const DOC: &'static str = "\
An iterator over the values of lines of JSON (NDJSON, JSON Lines), each decoded when it is requested.

``data`` is any buffer of UTF-8 (a copy of it is read if it is not ``bytes``), or a `str`. Each
line holds one value; lines of white space are skipped. Lines end with a line feed, with or without
a carriage return before it.

The options and errors are those of :func:`loads`; positions are those in the whole text. Iteration
can continue after a line that raised.

Copies: one, of each text into its `str`.

>>> list(onecopy.json.loads_lines(b'{\"a\": 1}\\n[2]\\n'))
[{'a': 1}, [2]]
";
    const PARAMETERS: &'static [&'static str] = PARAMETERS;
    const REQUIRED: usize = 1;
    const POSITIONAL: usize = 1;

    fn call<'py>(py: Python<'py>, args: &Args<'_, 'py>) -> PyResult<Bound<'py, PyAny>> {
        let options = JsonReadOptions::of(args)?.unbind();
        let data = args.required(0);
        let data = if data.cast::<PyString>().is_ok() {
            data.to_owned()
        } else if BufferBytes::is_buffer(data) {
            buffer::immutable(data)?
        } else {
            return Err(no_data(data));
        };
        let lines = JSONLines {
            data: data.unbind(),
            options,
            at: AtomicUsize::new(0),
        };
        Ok(Bound::new(py, lines)?.into_any())
    }
}

/// The value of [`JSONLines::at`] during parsing.
const BUSY: usize = usize::MAX;

/// An iterator over the values in lines of JSON. Each line is parsed when its value is requested.
#[pyclass(frozen, module = "onecopy.json")]
struct JSONLines {
    /// The lines: a `bytes`, a memoryview of a `bytes`, or a `str`.
    data: Py<PyAny>,
    options: OwnedJsonReadOptions,
    /// The offset of the next line, in bytes (in characters for a `str`); [`BUSY`] during parsing.
    at: AtomicUsize,
}

#[pymethods]
impl JSONLines {
    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        stack::check(py)?;
        let mut at = self.at.swap(BUSY, Relaxed);
        if at == BUSY {
            return Err(PyValueError::new_err("the lines are being read already"));
        }
        let made = self.next(py, &mut at);
        self.at.store(at, Relaxed);
        made
    }
}

impl JSONLines {
    fn next<'py>(&self, py: Python<'py>, at: &mut usize) -> PyResult<Option<Bound<'py, PyAny>>> {
        let data = self.data.bind_borrowed(py);
        let options = self.options.bind(py);
        if let Some(bytes) = buffer::of_bytes(data) {
            return line::<Utf8>(py, data, bytes, find_in_bytes, at, &options);
        }
        let Ok(string) = data.cast::<PyString>() else {
            let bytes = BufferBytes::of(data)?;
            return line::<Utf8>(py, data, bytes.as_slice(), find_in_bytes, at, &options);
        };
        if let Some(ascii) = known_ascii(string)? {
            return line::<Utf8>(py, data, ascii, find_in_bytes, at, &options);
        }
        match own_units(string)? {
            Units::Latin1(u) => line::<Latin1>(py, data, u, find_in_bytes, at, &options),
            Units::Ucs2(u) => line::<Ucs2>(py, data, u, find_in_units, at, &options),
            Units::Utf32(u) => line::<Ucs4>(py, data, u, find_in_units, at, &options),
            _ => unreachable!("the own form of a str is none of those"),
        }
    }
}

/// Returns the length of the first line in bytes, with its line feed.
fn find_in_bytes(mut rest: &[u8]) -> usize {
    rest.skip_until(b'\n').unwrap_or(0)
}

fn find_in_units<U: Copy + Into<u32>>(rest: &[U]) -> usize {
    let end = rest.iter().position(|&unit| unit.into() == 0x0A);
    end.map_or(rest.len(), |end| end + 1)
}

/// Parses the next line that is not blank. Sets `at` to the start of the line after it.
fn line<'py, F: SourceForm>(
    py: Python<'py>,
    data: Borrowed<'_, 'py, PyAny>,
    text: &[F::Unit],
    find: impl Fn(&[F::Unit]) -> usize,
    at: &mut usize,
    options: &JsonReadOptions<'py>,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    while let Some(rest) = text.get(*at..)
        && !rest.is_empty()
    {
        let start = *at;
        let len = find(rest);
        *at += len;
        let is_blank = |&unit: &F::Unit| matches!(unit.into(), 0x20 | 0x09 | 0x0A | 0x0D);
        if !rest[..len].iter().all(is_blank) {
            return value::<F>(py, data, text, start..start + len, options).map(Some);
        }
    }
    Ok(None)
}
