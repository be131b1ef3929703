//! `Encoder`: encodes text in parts.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyString;

use super::codec::{Codec, Order};
use super::legacy_stream::ShiftingEncoder;
use super::named::Named;

/// Encodes text in parts, like a `codecs.IncrementalEncoder`.
///
/// The concatenated results are equal to the encoded whole text. Only the first result begins with
/// a byte order mark. In ISO-2022-JP, the character set at the end of a part also applies to the
/// next part. ``errors`` is the name of an error handler of :mod:`codecs`.
///
/// >>> encoder = onecopy.text.Encoder('utf-16')
/// >>> encoder.encode('a'), encoder.encode('b', final=True)
/// (b'\xff\xfea\x00', b'b\x00')
#[pyclass(module = "onecopy.text")]
pub(crate) struct Encoder {
    named: Named,
    state: EncoderState,
}

struct EncoderState {
    /// `true` before the first part. The encoder then writes the byte order mark, if any.
    at_start: bool,
    /// The encoder of ISO-2022-JP, if the error handler is not in Python.
    shifting: Option<ShiftingEncoder>,
}

/// The state numbers of an encoder before its byte order mark. `NO_MARK` is for UTF-16 and UTF-32.
/// CPython's encoders use the same numbers.
const NO_MARK_OF_UTF8: u8 = 1;
const NO_MARK: u8 = 2;

impl EncoderState {
    fn new(named: &Named) -> EncoderState {
        EncoderState {
            at_start: true,
            shifting: match named.codec {
                Codec::Legacy(encoding) => ShiftingEncoder::new(encoding, named),
                _ => None,
            },
        }
    }

    fn get(&self, named: &Named) -> u8 {
        match (&self.shifting, named.codec) {
            (Some(shifting), _) => shifting.number(),
            (None, Codec::Utf8Marked) if self.at_start => NO_MARK_OF_UTF8,
            (None, Codec::Utf16(Order::Marked) | Codec::Utf32(Order::Marked)) if self.at_start => {
                NO_MARK
            }
            _ => 0,
        }
    }

    /// Restores a state of `getstate`. `None` if the number is not valid for the encoding.
    fn resumed(named: &Named, number: u8) -> Option<EncoderState> {
        let new = EncoderState::new(named);
        let (mut at_start, mut shifting) = (false, None);
        match (named.codec, new.shifting) {
            (Codec::Legacy(encoding), Some(_)) => {
                shifting = Some(ShiftingEncoder::resumed(encoding, named, number)?);
            }
            _ if number == 0 => {}
            (Codec::Utf8Marked, _) if number == NO_MARK_OF_UTF8 => at_start = true,
            (Codec::Utf16(Order::Marked) | Codec::Utf32(Order::Marked), _) if number == NO_MARK => {
                at_start = true;
            }
            _ => return None,
        }
        Some(EncoderState { at_start, shifting })
    }
}

#[pymethods]
impl Encoder {
    #[new]
    #[pyo3(signature = (encoding, errors=None))]
    fn new(encoding: &Bound<'_, PyAny>, errors: Option<&Bound<'_, PyAny>>) -> PyResult<Encoder> {
        let named = Named::parse(encoding, errors)?;
        let state = EncoderState::new(&named);
        Ok(Encoder { named, state })
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

    /// Encodes the next part of a text and returns its bytes. If ``final`` is true, ISO-2022-JP
    /// ends with the switch back to ASCII. A byte order mark is written only before the first part
    /// after the creation or after `reset`.
    ///
    /// Raises `UnicodeEncodeError`. The encoder is then unchanged.
    #[pyo3(signature = (string, r#final=false))]
    fn encode<'py>(
        &mut self,
        py: Python<'py>,
        string: &Bound<'py, PyString>,
        r#final: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        let named = &self.named;
        let Some(shifting) = &mut self.state.shifting else {
            let made = named.encode_units(py, &self.state, string)?;
            self.state.at_start = false;
            return Ok(made);
        };
        let before = shifting.number();
        let made = shifting.encode(string, r#final);
        if made.is_err() {
            self.setstate(before.into())?;
        } else if r#final {
            self.reset();
        }
        made
    }

    /// Resets the encoder to its initial state.
    fn reset(&mut self) {
        self.state = EncoderState::new(&self.named);
    }

    /// Returns the state of the encoder as a number. Before a byte order mark, it is the number of
    /// CPython's encoder. With ISO-2022-JP, it identifies the character set. In all other cases it
    /// is 0.
    fn getstate(&self) -> u8 {
        self.state.get(&self.named)
    }

    /// Restores a state that `getstate` returned. The number 0 means that the byte order mark, if
    /// any, was already written. With ISO-2022-JP, 0 means that the character set is unknown. The
    /// next part then begins with an escape sequence.
    ///
    /// Raises `ValueError` if the number is not valid for the encoding.
    #[pyo3(signature = (state, /))]
    fn setstate(&mut self, state: u64) -> PyResult<()> {
        let resumed = u8::try_from(state)
            .ok()
            .and_then(|number| EncoderState::resumed(&self.named, number));
        self.state = resumed.ok_or_else(|| {
            PyValueError::new_err(format!(
                "an encoder of {} has no state {state}",
                self.named.encoding_name()
            ))
        })?;
        Ok(())
    }

    fn __repr__(&self) -> String {
        self.named.repr("Encoder")
    }
}

impl Named {
    fn encode_units<'py>(
        &self,
        py: Python<'py>,
        state: &EncoderState,
        string: &Bound<'py, PyString>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let codec = match (state.at_start, self.codec) {
            (false, Codec::Utf8Marked) => Codec::Utf8,
            (false, Codec::Utf16(Order::Marked)) => Codec::Utf16(Order::Little),
            (false, Codec::Utf32(Order::Marked)) => Codec::Utf32(Order::Little),
            (_, codec) => codec,
        };
        let errors = self.errors.as_ref().map(|e| e.bind_borrowed(py));
        super::encode::encode(py, string.as_any().as_borrowed(), codec, errors)
    }
}

pub(super) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Encoder>()
}
