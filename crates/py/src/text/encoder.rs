//! A text to bytes, part by part.

use onecopy_text::{Encoding, OnUnencodable, TranscodeError, Transcoder};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyString;

use super::codec::{Codec, Order};
use super::legacy;
use super::named::Named;
use crate::raw::binary;

/// Encodes a text in parts.
///
/// The parts give the same bytes as the whole: a mark once, and states (ISO-2022-JP) kept. ``errors`` is the name of an error
/// handler of :mod:`codecs`.
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
    at_start: bool,
    /// Where the encoding has states, and we know the handler.
    legacy: Option<Transcoder>,
}

impl EncoderState {
    fn new(named: &Named) -> EncoderState {
        let codec = named.codec;
        let policy = match legacy::on_unencodable(&named.errors_name) {
            Some(OnUnencodable::SurrogatePass) => Some(OnUnencodable::Strict),
            policy => policy,
        };
        let has_states = Encoding::from(codec).name() == "iso-2022-jp";
        EncoderState {
            at_start: true,
            legacy: match policy {
                Some(policy) if has_states => Some(legacy::encoder(codec.into(), policy)),
                _ => None,
            },
        }
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

    /// The bytes of the next part; ``final`` ends the text, and the encoder is as new.
    ///
    /// Raises `UnicodeEncodeError`; the encoder is then as it was (as new, for ISO-2022-JP).
    #[pyo3(signature = (string, r#final=false))]
    fn encode<'py>(
        &mut self,
        py: Python<'py>,
        string: &Bound<'py, PyString>,
        r#final: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (named, state) = (&self.named, &mut self.state);
        let made = match &mut state.legacy {
            Some(transcoder) => named.encode_states(transcoder, string, r#final),
            None => named.encode_units(py, state, string),
        };
        if r#final && made.is_ok() || made.is_err() && state.legacy.is_some() {
            self.state = EncoderState::new(&self.named);
        } else if made.is_ok() {
            state.at_start = false;
        }
        made
    }

    /// The encoder is as new.
    fn reset(&mut self) {
        self.state = EncoderState::new(&self.named);
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

    fn encode_states<'py>(
        &self,
        transcoder: &mut Transcoder,
        string: &Bound<'py, PyString>,
        last: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = string.py();
        let Codec::Legacy(encoding) = self.codec else {
            return Err(PyValueError::new_err("the encoder is of another encoding"));
        };
        let utf8 = legacy::utf8_of(string.as_borrowed())?;
        let mut out = Vec::new();
        let pushed = transcoder.push(&utf8, &mut out);
        let ended = pushed.and_then(|()| match last {
            true => transcoder.finish(&mut out),
            false => Ok(()),
        });
        match ended {
            Ok(()) => binary::make(py, &out),
            // For its error: the part alone fails in the same place.
            Err(TranscodeError::Unencodable { .. }) => {
                legacy::encode_or(string.as_borrowed(), Codec::Legacy(encoding), None)
            }
            Err(e) => Err(legacy::no_memory(e)),
        }
    }
}

/// Adds the class to the module.
pub(super) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Encoder>()
}
