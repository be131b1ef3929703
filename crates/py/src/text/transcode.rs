//! `transcode` converts bytes from one encoding to another. `detect` guesses an encoding.

use onecopy_text::{
    Detector, Encoding, Policy, Stage, Tally, TranscodeError, TranscodeOptions, Transcoder,
};
use pyo3::Borrowed;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyString;

use super::codec::Codec;
use super::legacy;
use crate::ledger;
use crate::raw::binary;
use crate::raw::buffer::{BufferBytes, put, with_writable};
use crate::raw::function::{self, Args, Function};

/// The number of bytes per step of a conversion.
const PIECE_BYTES: usize = 256 * 1024;

struct Transcode;

impl Function for Transcode {
    const NAME: &'static str = "transcode";
    const SIGNATURE: &'static str = "(src, dst, from_encoding, to_encoding, errors='strict')";
    const DOC: &'static str = "\
Convert text from one encoding to another; the number of bytes written.

``src`` is any buffer or a binary file (an object with ``read``), ``dst`` a writable buffer or a
binary file (with ``write``). Between files memory is constant. ``errors`` applies to both
directions: strict, replace (U+FFFD, or a question mark for characters that cannot be encoded),
ignore, surrogatepass, backslashreplace, xmlcharrefreplace.

Raises `UnicodeDecodeError` and `UnicodeEncodeError`: in a buffer with the position in ``src``, in a
file with the byte in the reason. Raises `ValueError` if the text does not fit into ``dst``. A
buffer is unchanged then; a file has the bytes before the error.

Copies: one conversion to UTF-8 and one more to other encodings; one copy into a buffer.

>>> place = bytearray(6)
>>> onecopy.text.transcode(b'Z\\xfc', place, 'latin-1', 'utf-16-le')
4
>>> place
bytearray(b'Z\\x00\\xfc\\x00\\x00\\x00')
";
    const PARAMETERS: &'static [&'static str] =
        &["src", "dst", "from_encoding", "to_encoding", "errors"];
    const REQUIRED: usize = 4;

    fn call<'py>(py: Python<'py>, args: &Args<'_, 'py>) -> PyResult<Bound<'py, PyAny>> {
        let from = Encoding::from(Codec::of(args.required(2))?);
        let to = Encoding::from(Codec::of(args.required(3))?);
        let transcoder = Transcoder::new(from, to, options(args.get(4))?);
        let mut run = Transcoding {
            py,
            transcoder,
            tally: Tally::default(),
            from,
            to,
        };
        let source = InputBytes::of(args.required(0))?;
        let n_written = match method_of(args.required(1), "write")? {
            Some(write) => run.file(&source, &write)?,
            None => run.buffer(&source, args.required(1))?,
        };
        ledger::enter(py, &mut run.tally, Stage::Encode)?;
        Ok(n_written.into_pyobject(py)?.into_any())
    }
}

/// Converts an error handler's name to options for decoding and encoding.
fn options(errors: Option<Borrowed<'_, '_, PyAny>>) -> PyResult<TranscodeOptions> {
    let name = legacy::handler_name(errors)?;
    let policy =
        Policy::of_name(&name, &Policy::ALL).map_err(|e| PyValueError::new_err(e.to_string()))?;
    Ok(TranscodeOptions {
        on_malformed: policy,
        on_unencodable: policy,
        ..TranscodeOptions::default()
    })
}

/// Returns the method `name` of an object, if any. Returns `None` for an object with a buffer,
/// whose bytes are used instead.
fn method_of<'py>(
    object: Borrowed<'_, 'py, PyAny>,
    name: &str,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    // A `mmap` is both a buffer and a file; its buffer is used.
    if BufferBytes::is_buffer(object) {
        return Ok(None);
    }
    object.getattr_opt(name)
}

/// The source of the bytes that are converted.
enum InputBytes<'a, 'py> {
    Buffer(BufferBytes<'a, 'py>),
    /// The `read` method of the file that contains the input.
    File(Bound<'py, PyAny>),
}

impl<'a, 'py> InputBytes<'a, 'py> {
    fn of(object: Borrowed<'a, 'py, PyAny>) -> PyResult<InputBytes<'a, 'py>> {
        match method_of(object, "read")? {
            Some(read) => Ok(InputBytes::File(read)),
            None => BufferBytes::of(object).map(InputBytes::Buffer),
        }
    }

    /// Passes the input to `take` in parts. An empty slice marks the end.
    fn pieces(&self, py: Python<'py>, mut take: impl FnMut(&[u8]) -> PyResult<()>) -> PyResult<()> {
        match self {
            InputBytes::Buffer(bytes) => {
                for piece in bytes.as_slice().chunks(PIECE_BYTES) {
                    take(piece)?;
                }
            }
            InputBytes::File(read) => loop {
                let piece = read.call1((PIECE_BYTES,))?;
                if piece.is_none() {
                    return Err(pyo3::exceptions::PyBlockingIOError::new_err(
                        "reading from the file would block\nuse a blocking file",
                    ));
                }
                if piece.is_instance_of::<PyString>() {
                    return Err(PyTypeError::new_err(
                        "a text file returns str, not bytes\n\
                         open it in binary mode: `open(path, \"rb\")`",
                    ));
                }
                let bytes = BufferBytes::of(piece.as_borrowed())?;
                if bytes.as_slice().is_empty() {
                    break;
                }
                take(bytes.as_slice())?;
                py.check_signals()?;
            },
        }
        take(&[])
    }
}

struct Transcoding<'py> {
    py: Python<'py>,
    transcoder: Transcoder,
    tally: Tally,
    from: Encoding,
    to: Encoding,
}

impl<'py> Transcoding<'py> {
    /// Converts one part of the input to `out`. An empty part marks the end.
    fn piece(
        &mut self,
        piece: &[u8],
        source: &InputBytes<'_, 'py>,
        out: &mut Vec<u8>,
    ) -> PyResult<()> {
        self.tally.converted(piece.len());
        let done = match piece {
            [] => self.transcoder.finish(out),
            piece => self.transcoder.push(piece, out),
        };
        done.map_err(|e| self.error(e, source).unwrap_or_else(|e| e))
    }

    fn buffer(
        &mut self,
        source: &InputBytes<'_, 'py>,
        dst: Borrowed<'_, 'py, PyAny>,
    ) -> PyResult<usize> {
        let py = self.py;
        // A destination that is not writable is an error before the conversion.
        let capacity = with_writable(dst, |buffer| Ok(buffer.len()))?;
        let (mut out, mut n_dropped) = (Vec::new(), 0);
        source.pieces(py, |piece| {
            self.piece(piece, source, &mut out)?;
            // The bytes that do not fit are counted for the error message.
            if n_dropped + out.len() > capacity {
                n_dropped += out.len();
                out.clear();
            }
            Ok(())
        })?;
        if n_dropped > 0 {
            return Err(PyValueError::new_err(format!(
                "the text is {} bytes long in {}, and the destination has {capacity}\n\
                 pass a longer one, or a file",
                n_dropped + out.len(),
                self.to.name()
            )));
        }
        with_writable(dst, |buffer| {
            let Some(buffer) = buffer.get_mut(..out.len()) else {
                return Err(PyValueError::new_err(
                    "the destination has become shorter meanwhile",
                ));
            };
            put(buffer, &out);
            Ok(())
        })?;
        self.tally.copied_again(out.len());
        Ok(out.len())
    }

    fn file(&mut self, source: &InputBytes<'_, 'py>, write: &Bound<'py, PyAny>) -> PyResult<usize> {
        let py = self.py;
        let mut out = Vec::new();
        let mut n_written = 0;
        source.pieces(py, |piece| {
            out.clear();
            let done = self.piece(piece, source, &mut out);
            write_all(py, write, &out)?;
            n_written += out.len();
            done
        })?;
        Ok(n_written)
    }

    /// Returns the exception for an error of the transcoder.
    fn error(&self, error: TranscodeError, source: &InputBytes<'_, 'py>) -> PyResult<PyErr> {
        let py = self.py;
        let whole = match source {
            InputBytes::Buffer(bytes) => Some(bytes.as_slice()),
            InputBytes::File(_) => None,
        };
        let made = match error {
            TranscodeError::Malformed(e) => {
                let name = self.from.name();
                let n = e.bytes().len();
                match whole {
                    Some(whole) => {
                        let object = binary::make(py, whole)?;
                        let start = e.at_bytes as usize;
                        let reason = e.reason.to_string();
                        legacy::decode_error(py, name, &object, start, start + n, &reason)?
                    }
                    None => {
                        let object = binary::make(py, e.bytes())?;
                        let reason = format!("{} at byte {} of the file", e.reason, e.at_bytes);
                        legacy::decode_error(py, name, &object, 0, n, &reason)?
                    }
                }
            }
            TranscodeError::Unencodable {
                at_bytes,
                code_point,
            } => {
                let object = py
                    .import("builtins")?
                    .call_method1("chr", (code_point,))?
                    .cast_into::<PyString>()?;
                let place = match whole {
                    Some(_) => "src",
                    None => "the file",
                };
                let reason = match self.to {
                    Encoding::Legacy(to) => legacy::reason(to),
                    Encoding::Latin1 => "ordinal not in range(256)",
                    Encoding::Ascii => "ordinal not in range(128)",
                    _ => "surrogates not allowed",
                };
                let reason = format!("{reason} at byte {at_bytes} of {place}");
                legacy::encode_error(py, self.to.name(), &object, 0, 1, &reason)?
            }
            e => return Ok(legacy::no_memory(e)),
        };
        Ok(PyErr::from_value(made))
    }
}

/// Passes all bytes to `write`, in several calls if necessary.
fn write_all(py: Python<'_>, write: &Bound<'_, PyAny>, mut bytes: &[u8]) -> PyResult<()> {
    while !bytes.is_empty() {
        let n = write.call1((binary::make(py, bytes)?,))?;
        // If `write` returns None, it has accepted all bytes.
        let n = n.extract::<usize>().unwrap_or(bytes.len());
        if n == 0 {
            return Err(pyo3::exceptions::PyBlockingIOError::new_err(
                "writing to the file would block\nuse a blocking file",
            ));
        }
        bytes = &bytes[n.min(bytes.len())..];
    }
    Ok(())
}

struct Detect;

impl Function for Detect {
    const NAME: &'static str = "detect";
    const SIGNATURE: &'static str = "(buffer)";
    const DOC: &'static str = "\
As :func:`onecopy.text.detect`, as a plain tuple: the name of the encoding or None, the reason, and
the certainty.
";
    const PARAMETERS: &'static [&'static str] = &["buffer"];
    const REQUIRED: usize = 1;

    fn call<'py>(py: Python<'py>, args: &Args<'_, 'py>) -> PyResult<Bound<'py, PyAny>> {
        let bytes = BufferBytes::of(args.required(0))?;
        let mut detector = Detector::new();
        detector.push(bytes.as_slice());
        let found = detector.finish(true);
        let name = found.encoding.map(Encoding::name);
        let made = (name, found.reason, found.certainty.name()).into_pyobject(py)?;
        Ok(made.into_any())
    }
}

pub(super) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    function::add::<Transcode>(module)?;
    function::add::<Detect>(module)
}
