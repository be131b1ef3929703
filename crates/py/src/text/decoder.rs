//! A stream to `str`, part by part.

use onecopy_text::{
    Encoding, Legacy, MalformedKind, OnMalformed, Stage, Tally, TranscodeError, Transcoder, Units,
    find_malformed,
};
use pyo3::exceptions::{PyUnicodeDecodeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyList, PyString};

use super::codec::{Codec, Order};
use super::decode::decode_bytes;
use super::legacy;
use super::named::Named;
use crate::ledger;
use crate::raw::binary;
use crate::raw::buffer::Bytes;

/// Decodes a stream of bytes in parts cut anywhere.
///
/// The parts give the same text as the whole. A character that is begun at the end of a part, at most 4 bytes (an escape more
/// in ISO-2022-JP), waits for the next one. ``errors`` is the name of an error handler of :mod:`codecs`. After an
/// error the decoder is as it was before the part (as new, for the encodings of the WHATWG Encoding Standard).
///
/// Copies: none besides the conversion; one of a part that completes a character begun before.
///
/// >>> decoder = onecopy.text.Decoder('utf-8')
/// >>> decoder.decode(b'Z\xc3'), decoder.decode(b'\xbcrich', final=True)
/// ('Z', 'ürich')
#[pyclass(module = "onecopy.text")]
pub(crate) struct Decoder {
    named: Named,
    state: DecoderState,
}

/// What is remembered between two parts.
struct DecoderState {
    /// The codec behind the mark.
    codec: Codec,
    /// Whether the stream may still begin with a mark.
    at_start: bool,
    pending: Vec<u8>,
    legacy: Option<Transcoder>,
    /// Bytes given to `legacy`.
    n_given: u64,
}

impl DecoderState {
    fn new(named: &Named) -> DecoderState {
        let codec = named.codec;
        DecoderState {
            codec,
            at_start: Encoding::from(codec).is_marked(),
            pending: Vec::new(),
            legacy: match codec {
                Codec::Legacy(encoding) => Some(legacy_decoder(encoding, &named.errors_name)),
                _ => None,
            },
            n_given: 0,
        }
    }
}

fn legacy_decoder(encoding: Legacy, errors: &str) -> Transcoder {
    let policy = match legacy::on_malformed(errors) {
        Some(OnMalformed::SurrogatePass) | None => OnMalformed::Strict,
        Some(policy) => policy,
    };
    legacy::decoder(encoding, policy)
}

#[pymethods]
impl Decoder {
    #[new]
    #[pyo3(signature = (encoding, errors=None))]
    fn new(encoding: &Bound<'_, PyAny>, errors: Option<&Bound<'_, PyAny>>) -> PyResult<Decoder> {
        let named = Named::parse(encoding, errors)?;
        let state = DecoderState::new(&named);
        Ok(Decoder { named, state })
    }

    /// The name of the encoding.
    #[getter]
    fn encoding(&self) -> &'static str {
        self.named.encoding_name()
    }

    /// The name of the error handler.
    #[getter]
    fn errors(&self) -> &str {
        &self.named.errors_name
    }

    /// The text of the next part; ``final`` ends the stream, and the decoder is as new.
    ///
    /// Raises `UnicodeDecodeError`, whose ``object`` is the part with what was waiting before it.
    #[pyo3(signature = (data, r#final=false))]
    fn decode<'py>(
        &mut self,
        py: Python<'py>,
        data: &Bound<'py, PyAny>,
        r#final: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        let bytes = Bytes::of(data.as_borrowed())?;
        let (named, state) = (&self.named, &mut self.state);
        let made = match named.codec {
            Codec::Legacy(encoding) => {
                named.decode_legacy(py, state, encoding, bytes.as_slice(), r#final)
            }
            _ => named.decode_units(py, state, bytes.as_slice(), r#final),
        };
        if r#final && made.is_ok() || made.is_err() && state.legacy.is_some() {
            self.state = DecoderState::new(&self.named);
        }
        made
    }

    /// Forgets what was begun: the decoder is as new.
    fn reset(&mut self) {
        self.state = DecoderState::new(&self.named);
    }

    fn __repr__(&self) -> String {
        self.named.repr("Decoder")
    }
}

impl Named {
    fn decode_units<'py>(
        &self,
        py: Python<'py>,
        state: &mut DecoderState,
        part: &[u8],
        last: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        let joined;
        let bytes = match state.pending.is_empty() {
            true => part,
            false => {
                let mut tally = Tally::default();
                tally.copied_again(part.len());
                ledger::enter(py, &mut tally, Stage::Decode)?;
                joined = [&state.pending, part].concat();
                &joined
            }
        };
        let mut codec = state.codec;
        if state.at_start {
            match behind_mark(state.codec, bytes, last) {
                Some(found) => codec = found,
                None => {
                    state.pending = bytes.to_vec();
                    return Ok(PyString::new(py, "").into_any());
                }
            }
        }
        let passes = self.errors_name == "surrogatepass";
        let whole = if last {
            bytes.len()
        } else {
            whole_bytes(codec, bytes, passes)
        };
        // The first part goes with its mark: then places are counted with it.
        let with = if state.at_start { state.codec } else { codec };
        let (made, used) = match decode_bytes(py, &bytes[..whole], with, None) {
            Ok(made) => (made, whole),
            Err(e) if !e.is_instance_of::<PyUnicodeDecodeError>(py) => return Err(e),
            // Half a surrogate that passes is no text to CPython before it is whole.
            Err(_) if passes && matches!(codec, Codec::Utf8) => {
                self.ask_cpython(py, with, &bytes[..whole], last)?
            }
            Err(_) => self.ask_cpython(py, with, bytes, last)?,
        };
        state.pending = bytes[used..].to_vec();
        state.codec = codec;
        state.at_start = false;
        Ok(made)
    }

    /// What is malformed: CPython's codec raises, or asks the handler, which may go on in the middle of a unit. The text, and
    /// the bytes used.
    fn ask_cpython<'py>(
        &self,
        py: Python<'py>,
        codec: Codec,
        bytes: &[u8],
        last: bool,
    ) -> PyResult<(Bound<'py, PyAny>, usize)> {
        // Behind its mark `utf-8-sig` is UTF-8, and places are counted from there: so does CPython.
        let n_mark = match codec {
            Codec::Utf8Marked if bytes.starts_with(b"\xEF\xBB\xBF") => 3,
            _ => 0,
        };
        let name = match codec {
            Codec::Utf8 | Codec::Utf8Marked => "utf_8_decode",
            Codec::Utf16(Order::Little) => "utf_16_le_decode",
            Codec::Utf16(Order::Big) => "utf_16_be_decode",
            Codec::Utf16(Order::Marked) => "utf_16_decode",
            Codec::Utf32(Order::Little) => "utf_32_le_decode",
            Codec::Utf32(Order::Big) => "utf_32_be_decode",
            Codec::Utf32(Order::Marked) => "utf_32_decode",
            Codec::Latin1 => "latin_1_decode",
            Codec::Ascii | Codec::Legacy(_) => "ascii_decode",
        };
        let data = binary::make(py, &bytes[n_mark..])?;
        let codecs = py.import("codecs")?;
        let made = match codec {
            Codec::Latin1 | Codec::Ascii => codecs.call_method1(name, (data, &self.errors_name))?,
            _ => codecs.call_method1(name, (data, &self.errors_name, last))?,
        };
        let (made, used): (Bound<'py, PyAny>, usize) = made.extract()?;
        Ok((made, n_mark + used))
    }

    fn decode_legacy<'py>(
        &self,
        py: Python<'py>,
        state: &mut DecoderState,
        encoding: Legacy,
        part: &[u8],
        last: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        let Some(transcoder) = &mut state.legacy else {
            return Err(PyValueError::new_err("the decoder is of another encoding"));
        };
        let before = state.n_given;
        state.n_given += part.len() as u64;
        let mut utf8 = Vec::new();
        let mut tally = Tally::default();
        let parts = PyList::empty(py);
        let mut from = 0;
        loop {
            let pushed = transcoder.push(&part[from..], &mut utf8);
            let ended = pushed.and_then(|()| match last {
                true => transcoder.finish(&mut utf8),
                false => Ok(()),
            });
            let error = match ended {
                Ok(()) => break,
                Err(TranscodeError::Malformed(error)) => error,
                Err(e) => return Err(legacy::no_memory(e)),
            };
            // Bytes of it that came before this part.
            let n_before = before.saturating_sub(error.at_bytes) as usize;
            let object = [&error.bytes()[..n_before.min(error.bytes().len())], part].concat();
            let start = (error.at_bytes + n_before as u64 - before) as usize;
            let end = start + error.bytes().len();
            let raised = legacy::decode_error(
                py,
                encoding.name(),
                &binary::make(py, &object)?,
                start,
                end,
                &error.reason.to_string(),
            )?;
            if self.errors_name == "strict" {
                return Err(PyErr::from_value(raised));
            }
            let handler = legacy::handler(py, &self.errors_name)?;
            let (instead, at) = legacy::ask(&handler, &raised, object.len())?;
            if at != end {
                return Err(PyValueError::new_err(format!(
                    "the error handler `{}` goes on at {at}, not behind what is malformed ({end})\n\
                     decode the whole at once, or by another handler",
                    self.errors_name
                )));
            }
            parts.append(legacy::str_of(py, &utf8, &mut tally)?)?;
            parts.append(instead)?;
            utf8.clear();
            from = (transcoder.taken_bytes().unwrap_or_default() - before) as usize;
        }
        tally.copied_again(utf8.len());
        let made = legacy::str_of(py, &utf8, &mut tally)?;
        ledger::enter(py, &mut tally, Stage::Decode)?;
        if parts.is_empty() {
            return Ok(made);
        }
        parts.append(made)?;
        PyString::new(py, "").call_method1("join", (parts,))
    }
}

/// The codec behind a mark at the start of the bytes; `None` where too few came to tell.
fn behind_mark(codec: Codec, bytes: &[u8], last: bool) -> Option<Codec> {
    let candidates: &[Codec] = match codec {
        Codec::Utf16(_) => &[Codec::Utf16(Order::Little), Codec::Utf16(Order::Big)],
        Codec::Utf32(_) => &[Codec::Utf32(Order::Little), Codec::Utf32(Order::Big)],
        _ => &[Codec::Utf8],
    };
    let mark = |c: Codec| Encoding::from(c).mark();
    if let Some(found) = candidates.iter().find(|c| bytes.starts_with(mark(**c))) {
        return Some(*found);
    }
    let may_come = candidates.iter().any(|c| mark(*c).starts_with(bytes));
    (last || !may_come).then_some(candidates[0])
}

/// Bytes up to a character that is begun at the end.
fn whole_bytes(codec: Codec, bytes: &[u8], surrogates_pass: bool) -> usize {
    match codec {
        Codec::Utf8 | Codec::Utf8Marked => {
            let tail = &bytes[bytes.len().saturating_sub(3)..];
            let Some(lead) = tail.iter().rposition(|b| b & 0xC0 != 0x80) else {
                return bytes.len();
            };
            let tail = &tail[lead..];
            let found = find_malformed(Units::Utf8(tail));
            let open = found.is_some_and(|e| e.kind == MalformedKind::UnexpectedEnd);
            let half = surrogates_pass && matches!(tail, [0xED, 0xA0..=0xBF]);
            bytes.len() - if open || half { tail.len() } else { 0 }
        }
        Codec::Utf16(order) => {
            let whole = bytes.len() & !1;
            let last = bytes[..whole].last_chunk::<2>();
            let last = last.map_or(0, |unit| match order {
                Order::Big => u16::from_be_bytes(*unit),
                _ => u16::from_le_bytes(*unit),
            });
            whole
                - if (0xD800..0xDC00).contains(&last) {
                    2
                } else {
                    0
                }
        }
        Codec::Utf32(_) => bytes.len() & !3,
        Codec::Latin1 | Codec::Ascii | Codec::Legacy(_) => bytes.len(),
    }
}

/// Adds the class to the module.
pub(super) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Decoder>()
}
