//! One value for each line.

use std::io::BufRead;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use onecopy_text::Units;
use onecopy_wire::json::read::{Form, Latin1, Ucs2, Ucs4, Utf8};
use pyo3::Borrowed;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyString;

use super::load::{no_data, value};
use super::options::{Kept, Options, PARAMETERS};
use crate::raw::buffer::{self, Bytes};
use crate::raw::method::{self, Args, Function};
use crate::raw::stack;
use crate::raw::text::{known_ascii, own_units};

pub(super) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<JSONLines>()?;
    method::add::<LoadsLines>(module)
}

struct LoadsLines;

impl Function for LoadsLines {
    const NAME: &'static str = "loads_lines";
    const SIGNATURE: &'static str = "(data, /, *, big_ints='exact', duplicate_keys='last', surrogates='error', nan='error', \
         object_hook=None, float_hook=None, max_depth=1000)";
    const DOC: &'static str = "\
An iterator over the values of lines of JSON (NDJSON, JSON Lines), each read when it is asked for.

``data`` is any buffer of UTF-8 (a copy of it is read if it is not ``bytes``), or a `str`. Each
line holds one value; lines of white space are skipped. Line feeds part the lines, with or without a carriage return before them.

The options, and what is raised, are those of :func:`loads`; places are those in the whole text. The line behind one that was
wrong may be asked for.

Copies: one, of each text into its `str`.

>>> list(onecopy.json.loads_lines(b'{\"a\": 1}\\n[2]\\n'))
[{'a': 1}, [2]]
";
    const PARAMETERS: &'static [&'static str] = PARAMETERS;
    const REQUIRED: usize = 1;
    const POSITIONAL: usize = 1;

    fn call<'py>(py: Python<'py>, args: &Args<'_, 'py>) -> PyResult<Bound<'py, PyAny>> {
        let options = Options::of(args)?.unbind();
        let data = args.required(0);
        let data = if data.cast::<PyString>().is_ok() {
            data.to_owned()
        } else if Bytes::is_buffer(data) {
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

/// The next line is being read.
const BUSY: usize = usize::MAX;

/// The values of lines of JSON.
#[pyclass(frozen, module = "onecopy.json")]
struct JSONLines {
    /// A `bytes`, a view of one, or a `str`.
    data: Py<PyAny>,
    options: Kept,
    /// Unit where the next line starts, or [`BUSY`].
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
            let bytes = Bytes::of(data)?;
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

/// Units up to a line feed and with it, or all.
fn find_in_bytes(mut rest: &[u8]) -> usize {
    rest.skip_until(b'\n').unwrap_or(0)
}

fn find_in_units<U: Copy + Into<u32>>(rest: &[U]) -> usize {
    let end = rest.iter().position(|&unit| unit.into() == 0x0A);
    end.map_or(rest.len(), |end| end + 1)
}

/// The value of the next line that has one.
fn line<'py, F: Form>(
    py: Python<'py>,
    data: Borrowed<'_, 'py, PyAny>,
    text: &[F::Unit],
    find: impl Fn(&[F::Unit]) -> usize,
    at: &mut usize,
    options: &Options<'py>,
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
