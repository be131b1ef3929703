//! Decodes and encodes streams in the encodings of the WHATWG Encoding Standard.

use onecopy_text::{Encoding, Iso2022JpState, Legacy, Stage, Tally, TranscodeError, Transcoder};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyString};

use super::legacy;
use super::named::Named;
use crate::ledger;
use crate::raw::binary;

/// The maximum number of bytes of a character.
const CHAR_BYTES: usize = 4;

/// A decoder that keeps its state between two parts.
pub(super) struct LegacyDecoder {
    encoding: Legacy,
    transcoder: Transcoder,
    /// The number of bytes that `transcoder` has received.
    n_given: u64,
    /// Bytes of `setstate`, which the next `decode` decodes first.
    before: Vec<u8>,
    /// The escape sequence state of ISO-2022-JP.
    shift: Option<Iso2022JpState>,
}

impl LegacyDecoder {
    pub(super) fn new(encoding: Legacy, named: &Named) -> LegacyDecoder {
        let policy = legacy::policy_of_handler(&named.errors_name).unwrap_or_default();
        LegacyDecoder {
            encoding,
            transcoder: legacy::decoder(encoding, policy),
            n_given: 0,
            before: Vec::new(),
            shift: has_states(encoding).then(Iso2022JpState::default),
        }
    }

    /// Returns the undecoded bytes and the state number, for [`LegacyDecoder::resumed`].
    pub(super) fn state(&self) -> (Vec<u8>, u8) {
        let number = self.shift.map_or(0, |shift| shift.number());
        let pending = match &self.shift {
            _ if !self.before.is_empty() => &self.before,
            Some(shift) => shift.pending(),
            None => self.transcoder.pending_bytes().unwrap_or_default(),
        };
        (pending.to_vec(), number)
    }

    /// Creates a decoder from a saved state. `None` if the number is not valid for the encoding.
    pub(super) fn resumed(
        encoding: Legacy,
        named: &Named,
        (before, number): (Vec<u8>, u8),
    ) -> Option<LegacyDecoder> {
        let mut made = LegacyDecoder::new(encoding, named);
        made.before = before;
        match &mut made.shift {
            Some(shift) => {
                *shift = Iso2022JpState::of_number(number)?;
                // The prelude is an escape sequence that selects the character set. Its output is
                // not part of the text.
                made.transcoder
                    .push(shift.prelude(), &mut Vec::new())
                    .ok()?;
                made.n_given = shift.prelude().len() as u64;
            }
            None if number != 0 => return None,
            None => {}
        }
        Some(made)
    }

    /// Decodes the next part. The decoder must not be used after an error, or after the last part.
    pub(super) fn decode<'py>(
        &mut self,
        py: Python<'py>,
        named: &Named,
        part: &[u8],
        last: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        let joined;
        let (mut waiting, _) = self.state();
        let part = match self.before.is_empty() {
            true => part,
            false => {
                joined = [&std::mem::take(&mut waiting), part].concat();
                self.before.clear();
                &joined
            }
        };
        let n_before_part = self.n_given;
        self.n_given += part.len() as u64;
        let mut utf8 = Vec::with_capacity(part.len() + part.len() / 2);
        let mut tally = Tally::default();
        let parts = PyList::empty(py);
        let mut from = 0;
        loop {
            let error = match self.push(&part[from..], last, &mut utf8) {
                Ok(()) => break,
                Err(TranscodeError::Malformed(error)) => error,
                Err(e) => return Err(legacy::no_memory(e)),
            };
            // If two escape sequences of ISO-2022-JP follow each other, the error is in the first,
            // which is no longer among the pending bytes.
            let n_before_object = n_before_part - waiting.len() as u64;
            let n_earlier = n_before_object.saturating_sub(error.at_bytes) as usize;
            let object = [&error.bytes()[..n_earlier], &waiting, part].concat();
            let start = (error.at_bytes + n_earlier as u64 - n_before_object) as usize;
            let end = start + error.bytes().len();
            let raised = legacy::decode_error(
                py,
                self.encoding.name(),
                &binary::make(py, &object)?,
                start,
                end,
                &error.reason.to_string(),
            )?;
            if named.errors_name == "strict" {
                return Err(PyErr::from_value(raised));
            }
            let handler = legacy::handler(py, &named.errors_name)?;
            let (instead, at) = legacy::ask(&handler, &raised, object.len())?;
            if at != end {
                return Err(PyValueError::new_err(format!(
                    "the error handler `{}` goes on at {at}, not after the malformed bytes ({end})\n\
                     decode the whole text at once, or use another handler",
                    named.errors_name
                )));
            }
            parts.append(legacy::str_of(py, &utf8, &mut tally)?)?;
            parts.append(instead)?;
            utf8.clear();
            from = (self.transcoder.taken_bytes().unwrap_or_default() - n_before_part) as usize;
        }
        if let Some(shift) = &mut self.shift {
            shift.push(part);
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

    fn push(&mut self, part: &[u8], last: bool, out: &mut Vec<u8>) -> Result<(), TranscodeError> {
        let n_tail = match self.encoding.is_single_byte() || self.shift.is_some() {
            true => 0,
            // One byte at a time, so that the transcoder records the start of an incomplete
            // character.
            false => part.len().min(CHAR_BYTES),
        };
        let (head, tail) = part.split_at(part.len() - n_tail);
        self.transcoder.push(head, out)?;
        for byte in tail.chunks(1) {
            self.transcoder.push(byte, out)?;
        }
        match last {
            true => self.transcoder.finish(out),
            false => Ok(()),
        }
    }
}

/// An encoder of ISO-2022-JP. `number` identifies the character set: 1 plus its index in
/// [`SHIFTS`], or [`UNKNOWN_SET`].
pub(super) struct ShiftingEncoder {
    encoding: Legacy,
    transcoder: Transcoder,
    number: u8,
}

/// The character sets of ISO-2022-JP in the order of the state numbers. Each has its escape
/// sequence and a sample character (none for ASCII).
const SHIFTS: [(&[u8], &str); 3] = [(b"\x1b(B", ""), (b"\x1b(J", "¥"), (b"\x1b$B", "あ")];

/// The character set is unknown: the next bytes begin with an escape sequence. `io.TextIOWrapper`
/// sets this state before it writes at a position other than the start of a file.
const UNKNOWN_SET: u8 = 0;
const ASCII: u8 = 1;

impl ShiftingEncoder {
    /// Creates an encoder. `None` for an encoding without escape sequences, and for an error
    /// handler in Python.
    pub(super) fn new(encoding: Legacy, named: &Named) -> Option<ShiftingEncoder> {
        let policy = legacy::policy_of_handler(&named.errors_name)?;
        has_states(encoding).then(|| ShiftingEncoder {
            encoding,
            transcoder: legacy::encoder(Encoding::Legacy(encoding), policy),
            number: ASCII,
        })
    }

    pub(super) fn number(&self) -> u8 {
        self.number
    }

    /// Same as [`ShiftingEncoder::new`], with a state number. Also `None` if the number is not
    /// valid.
    pub(super) fn resumed(encoding: Legacy, named: &Named, number: u8) -> Option<ShiftingEncoder> {
        let mut made = ShiftingEncoder::new(encoding, named)?;
        let (_, character) = SHIFTS.get(usize::from(number.max(ASCII) - ASCII))?;
        let pushed = made.transcoder.push(character.as_bytes(), &mut Vec::new());
        made.number = number;
        pushed.ok().map(|()| made)
    }

    /// Encodes the next part. The encoder must not be used after an error, or after the last part.
    pub(super) fn encode<'py>(
        &mut self,
        string: &Bound<'py, PyString>,
        last: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = string.py();
        let utf8 = legacy::utf8_of(string.as_borrowed())?;
        let mut out = Vec::new();
        let pushed = self.transcoder.push(&utf8, &mut out);
        let ended = pushed.and_then(|()| match last {
            true => self.transcoder.finish(&mut out),
            false => Ok(()),
        });
        match ended {
            Ok(()) => {
                let lacks_set = !out.starts_with(b"\x1b") && (last || !out.is_empty());
                if self.number == UNKNOWN_SET && lacks_set {
                    out.splice(..0, SHIFTS[0].0.iter().copied());
                }
                let shift = out
                    .windows(3)
                    .rev()
                    .find_map(|bytes| SHIFTS.iter().position(|(escape, _)| *escape == bytes));
                self.number = shift.map_or(self.number, |i| ASCII + i as u8);
                binary::make(py, &out)
            }
            // Encoded once more for the exception, whose position counts from the start of this
            // part.
            Err(TranscodeError::Unencodable { .. }) => {
                let codec = super::codec::Codec::Legacy(self.encoding);
                legacy::encode_or(string.as_borrowed(), codec, None)
            }
            Err(e) => Err(legacy::no_memory(e)),
        }
    }
}

/// Returns `true` for ISO-2022-JP, the only encoding with escape sequences.
fn has_states(encoding: Legacy) -> bool {
    encoding.name() == "iso-2022-jp"
}
