//! `Decoder`: decodes a stream of bytes in parts.

use onecopy_text::{Encoding, MalformedKind, Stage, Tally, Units, find_malformed};
use pyo3::exceptions::{PyUnicodeDecodeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};

use super::codec::{Codec, Order};
use super::decode::decode_bytes;
use super::legacy_stream::LegacyDecoder;
use super::named::Named;
use crate::ledger;
use crate::raw::binary;
use crate::raw::buffer::BufferBytes;

/// Decodes a stream of bytes in parts, like a `codecs.IncrementalDecoder`. The parts may end at any
/// byte.
///
/// The concatenated results are equal to the decoded stream. An incomplete character at the end of
/// a part is decoded with the next part. It has at most 4 bytes, plus an escape sequence in
/// ISO-2022-JP. ``errors`` is the name of an error handler of :mod:`codecs`. If a part causes an
/// error, the decoder does not change.
///
/// Copies: none except for the conversion. A part that completes an earlier character is copied
/// once.
///
/// >>> decoder = onecopy.text.Decoder('utf-8')
/// >>> decoder.decode(b'Z\xc3'), decoder.decode(b'\xbcrich', final=True)
/// ('Z', 'ürich')
#[pyclass(module = "onecopy.text")]
pub(crate) struct Decoder {
    named: Named,
    state: DecoderState,
}

/// The state of a decoder between two parts.
enum DecoderState {
    Units(UnitState),
    Legacy(Box<LegacyDecoder>),
}

struct UnitState {
    /// The codec of the stream. A byte order mark replaces it.
    codec: Codec,
    /// `true` if a byte order mark may follow.
    at_start: bool,
    pending: Vec<u8>,
}

/// The bytes that have not been decoded, and a state number.
type SavedState = (Vec<u8>, u8);

/// The byte order in a saved state: the processor's, the opposite one, or unknown. CPython's
/// decoders use the same numbers.
const NATIVE_ORDER: u8 = 0;
const OTHER_ORDER: u8 = 1;
const ORDER_UNKNOWN: u8 = 2;

impl DecoderState {
    fn new(named: &Named) -> DecoderState {
        match named.codec {
            Codec::Legacy(encoding) => {
                DecoderState::Legacy(Box::new(LegacyDecoder::new(encoding, named)))
            }
            codec => DecoderState::Units(UnitState {
                codec,
                at_start: Encoding::from(codec).is_marked(),
                pending: Vec::new(),
            }),
        }
    }

    fn get(&self, named: &Named) -> SavedState {
        let units = match self {
            DecoderState::Legacy(legacy) => return legacy.state(),
            DecoderState::Units(units) => units,
        };
        let number = match (named.codec, units.codec) {
            (Codec::Utf8Marked, _) => u8::from(units.at_start),
            (Codec::Utf16(Order::Marked) | Codec::Utf32(Order::Marked), _) if units.at_start => {
                ORDER_UNKNOWN
            }
            (Codec::Utf16(Order::Marked), codec) if codec != Codec::Utf16(NATIVE) => OTHER_ORDER,
            (Codec::Utf32(Order::Marked), codec) if codec != Codec::Utf32(NATIVE) => OTHER_ORDER,
            _ => NATIVE_ORDER,
        };
        (units.pending.clone(), number)
    }

    /// Restores a state of `getstate`. `None` if `number` is not valid for the encoding.
    fn resumed(named: &Named, (pending, number): SavedState) -> Option<DecoderState> {
        let order = match number {
            NATIVE_ORDER => NATIVE,
            OTHER_ORDER => OTHER,
            _ => Order::Marked,
        };
        let (codec, at_start) = match named.codec {
            Codec::Legacy(encoding) => {
                let legacy = LegacyDecoder::resumed(encoding, named, (pending, number))?;
                return Some(DecoderState::Legacy(Box::new(legacy)));
            }
            Codec::Utf16(Order::Marked) if number <= ORDER_UNKNOWN => {
                (Codec::Utf16(order), number == ORDER_UNKNOWN)
            }
            Codec::Utf32(Order::Marked) if number <= ORDER_UNKNOWN => {
                (Codec::Utf32(order), number == ORDER_UNKNOWN)
            }
            Codec::Utf8Marked if number == 0 => (Codec::Utf8, false),
            Codec::Utf8Marked if number == 1 => (Codec::Utf8Marked, true),
            codec if number == 0 => (codec, false),
            _ => return None,
        };
        Some(DecoderState::Units(UnitState {
            codec,
            at_start,
            pending,
        }))
    }
}

const NATIVE: Order = if cfg!(target_endian = "big") {
    Order::Big
} else {
    Order::Little
};
const OTHER: Order = if cfg!(target_endian = "big") {
    Order::Little
} else {
    Order::Big
};

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

    /// Decodes the next part and returns its text. With ``final``, an incomplete character at the
    /// end is an error.
    ///
    /// The decoder keeps the byte order or character set, even after ``final``, until `reset`.
    /// CPython's decoders do the same, because a file may grow after its end was read.
    ///
    /// Raises `UnicodeDecodeError`. Its attribute ``object`` contains the undecoded bytes of
    /// earlier parts, then this part.
    #[pyo3(signature = (buffer, r#final=false))]
    fn decode<'py>(
        &mut self,
        py: Python<'py>,
        buffer: &Bound<'py, PyAny>,
        r#final: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        let bytes = BufferBytes::of(buffer.as_borrowed())?;
        let named = &self.named;
        let legacy = match &mut self.state {
            DecoderState::Units(units) => {
                return named.decode_units(py, units, bytes.as_slice(), r#final);
            }
            DecoderState::Legacy(legacy) => legacy,
        };
        let before = legacy.state();
        let made = legacy.decode(py, named, bytes.as_slice(), r#final);
        if r#final || made.is_err() {
            let state = match &made {
                Ok(_) => (Vec::new(), legacy.state().1),
                Err(_) => before,
            };
            if let Some(resumed) = DecoderState::resumed(named, state) {
                self.state = resumed;
            }
        }
        made
    }

    /// Resets the decoder to its initial state.
    fn reset(&mut self) {
        self.state = DecoderState::new(&self.named);
    }

    /// Returns the state of the decoder: the undecoded bytes, and a state number.
    ///
    /// With a byte order mark, the number is that of CPython's decoder. For ISO-2022-JP, it
    /// identifies the character set. For all other encodings, it is 0.
    fn getstate<'py>(&self, py: Python<'py>) -> (Bound<'py, PyBytes>, u8) {
        let (pending, number) = self.state.get(&self.named);
        (PyBytes::new(py, &pending), number)
    }

    /// Restores a state that `getstate` has returned.
    ///
    /// Raises `ValueError` if the number is not valid for the encoding.
    #[pyo3(signature = (state, /))]
    fn setstate(&mut self, state: (Bound<'_, PyBytes>, u64)) -> PyResult<()> {
        let (pending, number) = state;
        let resumed = u8::try_from(number).ok().and_then(|number| {
            DecoderState::resumed(&self.named, (pending.as_bytes().to_vec(), number))
        });
        self.state = resumed.ok_or_else(|| {
            PyValueError::new_err(format!(
                "a decoder of {} has no state {number}",
                self.named.encoding_name()
            ))
        })?;
        Ok(())
    }

    fn __repr__(&self) -> String {
        self.named.repr("Decoder")
    }
}

impl Named {
    fn decode_units<'py>(
        &self,
        py: Python<'py>,
        state: &mut UnitState,
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
            if bytes.is_empty() {
                return Ok(PyString::new(py, "").into_any()); // a mark may follow
            }
            match codec_of_mark(state.codec, bytes, last) {
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
        // Decoded with its mark, which counts in the positions of errors.
        let with = if state.at_start { state.codec } else { codec };
        let (made, used) = match decode_bytes(py, &bytes[..whole], with, None) {
            Ok(made) => (made, whole),
            Err(e) if !e.is_instance_of::<PyUnicodeDecodeError>(py) => return Err(e),
            Err(_) => self.ask_cpython(py, with, bytes, last)?,
        };
        state.pending = bytes[used..].to_vec();
        // As in CPython, the byte order is undetermined until the first unit was decoded. An error
        // handler may have replaced a part of a unit.
        let n_unit = match codec {
            Codec::Utf16(_) => 2,
            Codec::Utf32(_) => 4,
            _ => 0,
        };
        if used >= n_unit {
            state.codec = codec;
            state.at_start = false;
        }
        Ok(made)
    }

    /// Decodes malformed bytes with CPython's codec. It raises an exception, or calls the error
    /// handler. Returns the text and the number of decoded bytes.
    fn ask_cpython<'py>(
        &self,
        py: Python<'py>,
        codec: Codec,
        bytes: &[u8],
        last: bool,
    ) -> PyResult<(Bound<'py, PyAny>, usize)> {
        // After the mark, `utf-8-sig` is UTF-8. As in CPython, positions start after the mark.
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
        // With `surrogatepass`, CPython refuses the first two bytes of a surrogate, but waits after
        // one byte.
        let is_half = matches!(codec, Codec::Utf8 | Codec::Utf8Marked)
            && !last
            && self.errors_name == "surrogatepass"
            && ends_in_half_surrogate(bytes);
        let n_seen = bytes.len() - usize::from(is_half);
        let data = binary::make(py, &bytes[n_mark..n_seen])?;
        let codecs = py.import("codecs")?;
        let made = match codec {
            Codec::Latin1 | Codec::Ascii => codecs.call_method1(name, (data, &self.errors_name)),
            _ => codecs.call_method1(name, (data, &self.errors_name, last)),
        };
        let made = match made {
            Err(e) if is_half && e.is_instance_of::<PyUnicodeDecodeError>(py) => {
                e.value(py)
                    .setattr("object", binary::make(py, &bytes[n_mark..])?)?;
                return Err(e);
            }
            made => made?,
        };
        let (made, used): (Bound<'py, PyAny>, usize) = made.extract()?;
        Ok((made, n_mark + used))
    }
}

/// Returns the codec that the byte order mark determines. `None` if more bytes are needed.
fn codec_of_mark(codec: Codec, bytes: &[u8], last: bool) -> Option<Codec> {
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

/// Returns the length in bytes of the complete characters in `bytes`.
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
            let half = surrogates_pass && ends_in_half_surrogate(tail);
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

/// Returns `true` if the last two bytes begin a surrogate in UTF-8.
fn ends_in_half_surrogate(bytes: &[u8]) -> bool {
    matches!(bytes, [.., 0xED, 0xA0..=0xBF])
}

pub(super) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Decoder>()
}
