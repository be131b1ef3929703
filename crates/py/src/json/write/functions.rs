//! `dumps`, `dumps_str`, `dumps_into`, `dump` and `dumps_lines` of `onecopy.json`.

use std::cell::Cell;
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering::Relaxed};

use onecopy_text::{ByteSink, Kind, Shape};
use pyo3::exceptions::{PyBufferError, PyIndexError, PyMemoryError, PyValueError};
use pyo3::prelude::*;

use super::encode::{RECENT_BYTES, moved, write};
use super::options::{JsonWriteOptions, options_signature, with_options};
use crate::raw::binary::{FreshBytes, ShortBuffer};
use crate::raw::buffer;
use crate::raw::encode::json as encoder;
use crate::raw::encode::json::{JsonTarget, Ucs2Text};
use crate::raw::encode::{Fixed, Flushing};
use crate::raw::function::{self, Args, Function};
use crate::raw::growing_str::GrowingStr;
use crate::raw::text::MakeError;
use crate::recent::{LEAST_BYTES, MOST_BYTES};
use crate::stream_output::FlushTo;

/// An estimate of the length of the next `str`, in characters. It is computed like
/// [`RECENT_BYTES`].
/// `RECENT_KIND` is the character width of the last result.
static RECENT_CHARS: AtomicUsize = AtomicUsize::new(0);
static RECENT_KIND: AtomicU8 = AtomicU8::new(0);

const KINDS: [Kind; 4] = [Kind::Ascii, Kind::Latin1, Kind::Ucs2, Kind::Ucs4];

fn remember_shape(shape: Shape) {
    let recent = RECENT_CHARS.load(Relaxed);
    let shorter = recent - recent.saturating_sub(shape.n_chars).div_ceil(4);
    RECENT_CHARS.store(shape.n_chars.max(shorter), Relaxed);
    RECENT_KIND.store(shape.kind as u8, Relaxed);
}

fn likely_shape() -> Shape {
    let recent = RECENT_CHARS.load(Relaxed);
    Shape {
        kind: KINDS[usize::from(RECENT_KIND.load(Relaxed)) % KINDS.len()],
        n_chars: (recent + recent / 32 + LEAST_BYTES).min(MOST_BYTES),
    }
}

struct Dumps;

impl Function for Dumps {
    const NAME: &'static str = "dumps";
    const SIGNATURE: &'static str = options_signature!("obj, /, *");
    const DOC: &'static str = "\
An object as JSON, in a fresh `bytes` of UTF-8 (RFC 8259).

`str`, `int` of any size, `float`, `bool`, `None`, `dict`, `list`, `tuple`, and instances of derived
classes; `Decimal` with all its digits; `datetime`, `date` and `time` in RFC 3339, whose offsets are
whole minutes: the closest one is written; `UUID`; an `Enum` as its value; a dataclass as an object;
arrays and scalars of NumPy, read from their memory: numbers, booleans, text, objects, and
`datetime64` (a date if its unit is a day or more, else a date and time; null if it is not a time);
a `Fragment` unchanged. Anything else is passed to `default`.

- default: a function that returns a replacement for an object (or a key) that has no form in JSON
- sort_keys: objects with their keys in the order of their code points, those of dataclasses too
- indent: line breaks, and each level indented by this number of blanks, or by this str of blanks and
  tabs
- ensure_ascii: all other characters as escapes
- nan: the form of NaN and the infinities: `'error'`, `'null'`, `'text'` (a string), or `'literal'`:
  `NaN` and `Infinity`, which RFC 8259 does not allow
- errors: the form of lone surrogates: `'strict'` (an error), `'replace'` (U+FFFD), or
  `'backslashreplace'` (the escape `\\ud800`)
- big_ints: `'exact'`: all digits; `'error'`: an error past 64 bits; `'error53'`: an error past 53
  bits; `'text53'`: a string past 53 bits
- non_str_keys: keys that are `int`, `float`, `bool`, `None`, `Enum`, `UUID`, `Decimal`, dates, times
  and scalars of NumPy are written as strings
- max_depth: the largest depth of nested containers
- naive_utc: a `datetime` without a zone is one in UTC
- utc_z: `Z` for `+00:00`
- omit_microseconds: times end with their seconds
- passthrough: which of `'dataclass'`, `'datetime'`, `'decimal'`, `'enum'`, `'float'`, `'numpy'`,
  `'subclass'`, `'tuple'`, `'uuid'` are passed to `default` (`'float'`, `'tuple'`: classes derived
  from these; `'subclass'`: from any of CPython's own)
- private_fields: whether fields of a dataclass are written whose names begin with an underscore
- compat: `'orjson'`: the behaviour of orjson without options: only the classes that it writes have a
  form, zones and dataclasses are treated as by it, NaN is null; `'ujson'`: the behaviour of ujson:
  keys are written as `str()` returns them, dates and dataclasses are passed to `default`

No UTF-8 cache is left on any `str`.

Copies: none besides the one conversion of each text, into the result; a result below 2 KiB once more,
as a whole; each text of an array once more.

Raises `JSONEncodeError` (a `ValueError`) for a value that has no form in JSON, `TypeError` for a
type that has none, both with the path to it.

>>> import onecopy
>>> onecopy.json.dumps({\"name\": \"Zürich\", \"at\": [47.37, 8.54]})
b'{\"name\":\"Z\\xc3\\xbcrich\",\"at\":[47.37,8.54]}'
";
    const PARAMETERS: &'static [&'static str] = with_options!("obj");
    const REQUIRED: usize = 1;
    const POSITIONAL: usize = 1;

    #[inline]
    fn call<'py>(py: Python<'py>, args: &Args<'_, 'py>) -> PyResult<Bound<'py, PyAny>> {
        let mut options = JsonWriteOptions::new();
        options.take(args, 1)?;
        let mut buffer = match RECENT_BYTES.is_short() {
            true => ShortBuffer::lend(py),
            false => None,
        };
        let mut bytes = match &mut buffer {
            Some(buffer) => FreshBytes::short(py, buffer),
            None => FreshBytes::new(py, RECENT_BYTES.likely())?,
        };
        write(
            args.required(0),
            encoder::JsonShape::Value,
            &options,
            JsonTarget::new(&mut bytes),
        )?;
        RECENT_BYTES.remember(bytes.committed().len());
        if bytes.moved_bytes() != 0 {
            moved(py, bytes.moved_bytes())?;
        }
        Ok(bytes.finish()?.into_any())
    }
}

struct DumpsStr;

impl Function for DumpsStr {
    const NAME: &'static str = "dumps_str";
    const SIGNATURE: &'static str = options_signature!("obj, /, *");
    const DOC: &'static str = "\
As `dumps`, in a fresh `str`, whatever its kind (PEP 393).

Copies: one more than `dumps`, in blocks of 16 KiB, but none of 16-bit text into a `str` of 16-bit
units; the text so far once more if it becomes wider or longer than the result of the call before.

>>> import onecopy
>>> onecopy.json.dumps_str([\"Zürich\", None])
'[\"Zürich\",null]'
";
    const PARAMETERS: &'static [&'static str] = with_options!("obj");
    const REQUIRED: usize = 1;
    const POSITIONAL: usize = 1;

    fn call<'py>(py: Python<'py>, args: &Args<'_, 'py>) -> PyResult<Bound<'py, PyAny>> {
        let mut options = JsonWriteOptions::new();
        options.take(args, 1)?;
        let (is_latin1, ucs2) = (Cell::new(true), Ucs2Text::new());
        let mut string = GrowingStr::new(py, likely_shape(), &is_latin1, &ucs2);
        let target = JsonTarget {
            latin1: Some(&is_latin1),
            ucs2: string.takes_wide().then_some(&ucs2),
            ..JsonTarget::new(&mut string)
        };
        let written = write(
            args.required(0),
            encoder::JsonShape::Value,
            &options,
            target,
        );
        if !string.is_malformed() {
            written?;
        }
        let (made, shape, copied) = string.finish().map_err(|e| match e {
            MakeError::Python(e) => e,
            MakeError::Malformed(e) => {
                PyValueError::new_err(format!("a Fragment is not UTF-8: {e}"))
            }
        })?;
        remember_shape(shape);
        moved(py, copied)?;
        Ok(made)
    }
}

struct DumpsInto;

impl Function for DumpsInto {
    const NAME: &'static str = "dumps_into";
    const SIGNATURE: &'static str = options_signature!("obj, buffer, offset=0, /, *");
    const DOC: &'static str = "\
As `dumps`, into a writable contiguous buffer (`bytearray`, `memoryview`, `mmap`, `array`), from
`offset` (in bytes) on.

Returns the number of bytes written.

Copies: none besides the one conversion of each text; near the end of the buffer some hundred bytes
once more.

Raises `BufferError` if the buffer is read-only, not contiguous or too small, `IndexError` for an
offset outside of it. The bytes from `offset` on are undefined then.

>>> import onecopy
>>> place = bytearray(16)
>>> onecopy.json.dumps_into([1, 2], place, 4), bytes(place[4:9])
(5, b'[1,2]')
";
    const PARAMETERS: &'static [&'static str] = with_options!("obj", "buffer", "offset");
    const REQUIRED: usize = 2;
    const POSITIONAL: usize = 3;

    fn call<'py>(py: Python<'py>, args: &Args<'_, 'py>) -> PyResult<Bound<'py, PyAny>> {
        let mut options = JsonWriteOptions::new();
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
            let full = || PyBufferError::new_err("the buffer is too small for the JSON");
            match write(
                args.required(0),
                encoder::JsonShape::Value,
                &options,
                JsonTarget::new(&mut sink),
            ) {
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

/// The size of a chunk for a file or iterator, in bytes.
const CHUNK_BYTES: usize = 64 << 10;

struct Dump;

impl Function for Dump {
    const NAME: &'static str = "dump";
    const SIGNATURE: &'static str = options_signature!("obj, file, /, *");
    const DOC: &'static str = "\
As `dumps`, to a binary file, a socket, or any object with `write`, in chunks of 64 KiB: memory holds
one chunk, however large the object is.

Returns the number of bytes written. Other threads run while a plain file or socket is written to; an
object that they change meanwhile gives an error or a mix of both states.

Copies: none besides the one conversion of each text.

Raises as `dumps`, the errors of the file (`OSError`), and `RuntimeError` if the file gives an array
of NumPy other memory. Text that was written before remains.

>>> import io, onecopy
>>> file = io.BytesIO()
>>> onecopy.json.dump({\"a\": 1}, file), file.getvalue()
(7, b'{\"a\":1}')
";
    const PARAMETERS: &'static [&'static str] = with_options!("obj", "file");
    const REQUIRED: usize = 2;
    const POSITIONAL: usize = 2;

    fn call<'py>(py: Python<'py>, args: &Args<'_, 'py>) -> PyResult<Bound<'py, PyAny>> {
        let mut options = JsonWriteOptions::new();
        options.take(args, 2)?;
        let mut output = FlushTo::of(&args.required(1))?;
        let mut failed = None;
        let mut sink = Flushing::new(CHUNK_BYTES, |chunk| match output.write(py, chunk) {
            Ok(()) => true,
            Err(e) => {
                failed = Some(e);
                false
            }
        });
        let target = JsonTarget {
            runs_python: true,
            ..JsonTarget::new(&mut sink)
        };
        let done = write(
            args.required(0),
            encoder::JsonShape::Value,
            &options,
            target,
        );
        let n = match done {
            Ok(()) => sink.finish(),
            Err(_) => {
                drop(sink);
                None
            }
        };
        match (n, failed, done) {
            (_, Some(e), _) | (None, None, Err(e)) => Err(e),
            (Some(n), None, _) => Ok(n.into_pyobject(py)?.into_any()),
            (None, None, Ok(())) => Err(PyMemoryError::new_err(())),
        }
    }
}

struct DumpsLines;

impl Function for DumpsLines {
    const NAME: &'static str = "dumps_lines";
    const SIGNATURE: &'static str = options_signature!("iterable, /, *");
    const DOC: &'static str = "\
Each item of an iterable as a line of JSON (NDJSON), all in a fresh `bytes`; each line ends with a
line feed.

`iter_chunks(iterable, lines=True)` returns the same in chunks.

Copies and errors: as `dumps`; `ValueError` for `indent`.

>>> import onecopy
>>> onecopy.json.dumps_lines([{\"a\": 1}, [2]])
b'{\"a\":1}\\n[2]\\n'
";
    const PARAMETERS: &'static [&'static str] = with_options!("iterable");
    const REQUIRED: usize = 1;
    const POSITIONAL: usize = 1;

    fn call<'py>(py: Python<'py>, args: &Args<'_, 'py>) -> PyResult<Bound<'py, PyAny>> {
        let mut options = JsonWriteOptions::new();
        options.take_for_items(args, 1)?;
        let mut bytes = FreshBytes::new(py, RECENT_BYTES.likely())?;
        for item in args.required(0).try_iter()? {
            write(
                item?.as_borrowed(),
                encoder::JsonShape::Value,
                &options,
                JsonTarget::new(&mut bytes),
            )?;
            bytes
                .put_byte(b'\n')
                .map_err(|_| PyMemoryError::new_err(()))?;
        }
        RECENT_BYTES.remember(bytes.committed().len());
        moved(py, bytes.moved_bytes())?;
        Ok(bytes.finish()?.into_any())
    }
}

pub(super) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    function::add::<Dumps>(module)?;
    function::add::<DumpsStr>(module)?;
    function::add::<DumpsInto>(module)?;
    function::add::<Dump>(module)?;
    function::add::<DumpsLines>(module)
}
