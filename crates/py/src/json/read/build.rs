//! `Build` creates Python objects from the events of the JSON reader.

use onecopy_text::convert::{Ascii, Kernels};
use onecopy_text::{Kind, Policy, Shape, Tally, Units, measure};
use onecopy_wire::json::read::{
    Escaped, EscapedPart, JsonEvents, Reason, Rejection, Text, malformed,
};
use pyo3::prelude::*;
use pyo3::types::PyBool;

use super::big;
use super::options::{BigIntType, JsonReadOptions};
use crate::raw::fresh::Blanks;
use crate::raw::function::call_one;
use crate::raw::number;
use crate::raw::objects::building::Building;
use crate::raw::objects::fresh_number::Numbers;
use crate::raw::objects::scalars::{self, InParts};
use crate::raw::objects::text_hash;
use crate::raw::text::MakeError;

/// The capacity of the buffer for unescaped strings. A longer string is unescaped twice, in parts.
const SCRATCH_BYTES: usize = 32 << 10;
const LEAST_SCRATCH_BYTES: usize = 1 << 10;

/// The maximum size of a key in the key cache.
const MOST_KEY_BYTES: usize = 64;

/// The event handler of the JSON reader.
pub(super) struct Build<'a, 'py, K> {
    kernels: K,
    building: Building<'py>,
    blanks: Blanks<'py>,
    numbers: Numbers<'py>,
    options: &'a JsonReadOptions<'py>,
    tally: Option<&'a mut Tally>,
    scratch: Vec<u8>,
    /// The Python exception of the last event, or `None`.
    pub(super) error: Option<PyErr>,
}

impl<'a, 'py, K: Kernels> Build<'a, 'py, K> {
    #[inline(always)]
    pub(super) fn new(
        py: Python<'py>,
        kernels: K,
        options: &'a JsonReadOptions<'py>,
        tally: Option<&'a mut Tally>,
    ) -> Self {
        Build {
            kernels,
            building: Building::new(py, options.is_alone()),
            blanks: Blanks::new(py),
            numbers: Numbers::new(py),
            options,
            tally,
            scratch: Vec::new(),
            error: None,
        }
    }

    /// Returns the Python object of the whole JSON text, after the last event.
    #[inline(always)]
    pub(super) fn finish(self) -> Bound<'py, PyAny> {
        self.building.finish()
    }

    #[cold]
    #[inline(never)]
    fn fail(&mut self, error: PyErr) -> Rejection {
        self.error = Some(error);
        Rejection::OWN
    }

    #[inline(always)]
    fn push(&mut self, value: PyResult<Bound<'py, PyAny>>) -> Result<(), Rejection> {
        match value {
            Ok(value) => {
                let pushed = self.building.push(value);
                pushed.map_err(|e| self.fail(e))
            }
            Err(e) => Err(self.fail(e)),
        }
    }

    #[inline(always)]
    fn text(&mut self, text: Text<'_>) -> Result<Bound<'py, PyAny>, Rejection> {
        let tally = self.tally.as_deref_mut();
        match text {
            Text::Ascii(text) => {
                let made = scalars::ascii(self.blanks, self.kernels, text, tally);
                made.map_err(|e| self.fail(e))
            }
            // Passed as a slice, which stays in registers: a `Units` in memory makes short texts
            // slower.
            Text::Units(Units::Utf8(bytes)) => {
                if tally.is_none()
                    && let Some(made) = scalars::short_utf8(self.blanks, self.kernels, bytes)
                {
                    return Ok(made);
                }
                self.other_utf8(bytes)
            }
            Text::Units(units) => {
                let made = scalars::text(self.blanks, self.kernels, units, tally);
                made.or_else(|e| self.malformed_text(units, e))
            }
        }
    }

    /// Creates the `str` of a key, and stores it in the key cache.
    #[cold]
    #[inline(never)]
    fn new_key(&mut self, at: u16, hash: u32, bytes: &[u8]) -> Result<(), Rejection> {
        let key = self.other_utf8(bytes)?;
        let kept = self.building.keep_key(at, hash, bytes, &key);
        kept.map_err(|e| self.fail(e))
    }

    /// Creates a `str` from UTF-8. The faster methods fall back to this method.
    #[inline(never)]
    fn other_utf8(&mut self, bytes: &[u8]) -> Result<Bound<'py, PyAny>, Rejection> {
        let units = Units::Utf8(bytes);
        let made = scalars::other_text(self.blanks.py(), units, self.tally.as_deref_mut());
        made.or_else(|e| self.malformed_text(units, e))
    }

    /// Converts a malformed string if the option `errors` permits it.
    #[cold]
    #[inline(never)]
    fn malformed_text(
        &mut self,
        units: Units<'_>,
        error: MakeError,
    ) -> Result<Bound<'py, PyAny>, Rejection> {
        if let MakeError::Python(e) = error {
            return Err(self.fail(e));
        }
        let refusal = malformed(units, 0);
        if refusal.reason != Reason::Surrogate || self.options.surrogates == Policy::Strict {
            return Err(refusal);
        }
        // Text without escapes contains no backslash.
        self.characters(Escaped::of(units))
    }

    fn characters(&mut self, text: Escaped<'_>) -> Result<Bound<'py, PyAny>, Rejection> {
        let (py, surrogates) = (self.building.py(), self.options.surrogates);
        match scalars::characters(py, || text.chars(surrogates)) {
            Ok(made) => {
                if let Some(tally) = self.tally.as_deref_mut() {
                    tally.converted(text.body().len_bytes());
                }
                Ok(made)
            }
            Err(scalars::StrFailure::Chars(refusal)) => Err(refusal),
            Err(scalars::StrFailure::Python(e)) => Err(self.fail(e)),
        }
    }

    #[inline(always)]
    fn escaped(&mut self, text: Escaped<'_>) -> Result<Bound<'py, PyAny>, Rejection> {
        let Units::Utf8(body) = text.body() else {
            return self.wide_escaped(text);
        };
        if body.len() > self.scratch.len() {
            self.grow_scratch(body.len());
            if body.len() > SCRATCH_BYTES {
                return self.long_escaped(text, body);
            }
        }
        let surrogates = self.options.surrogates;
        let part = text.unescape(self.kernels, 0, surrogates, &mut self.scratch)?;
        if part.has_surrogate {
            return self.characters(text);
        }
        let plain = &self.scratch[..part.n_written];
        if let Some(tally) = self.tally.as_deref_mut() {
            tally.converted(body.len());
        }
        let made = match Ascii::new(plain) {
            Some(plain) => {
                let made = scalars::ascii(self.blanks, self.kernels, plain, None);
                made.map_err(MakeError::Python)
            }
            None => scalars::text(self.blanks, self.kernels, Units::Utf8(plain), None),
        };
        made.map_err(|e| match e {
            MakeError::Python(e) => self.fail(e),
            MakeError::Malformed(_) => malformed(text.body(), 0),
        })
    }

    /// Creates a `str` from a string with escapes. The first pass finds the character width of the
    /// new `str`, and the second pass copies.
    #[inline(always)]
    fn wide_escaped(&mut self, text: Escaped<'_>) -> Result<Bound<'py, PyAny>, Rejection> {
        let surrogates = self.options.surrogates;
        let mut shape = Shape {
            kind: Kind::Ascii,
            n_chars: 0,
        };
        for piece in text.pieces(self.kernels, surrogates) {
            let (kind, n_chars) = match piece? {
                EscapedPart::Char(c) => (Kind::of(c), 1),
                EscapedPart::Run(run, at) => match measure(run, Policy::Strict) {
                    Ok(measured) => (measured.shape().kind, measured.shape().n_chars),
                    Err(_) if surrogates == Policy::Strict => return Err(malformed(run, at)),
                    Err(_) => return self.characters(text),
                },
            };
            shape.kind = shape.kind.max(kind);
            shape.n_chars += n_chars;
        }
        if shape.n_chars <= 1 {
            return self.characters(text);
        }
        let made = InParts::new(self.building.py(), shape);
        let mut made = made.map_err(|e| self.fail(e))?;
        for piece in text.pieces(self.kernels, surrogates) {
            match piece? {
                EscapedPart::Char(c) => made.put_char(c),
                EscapedPart::Run(run, _) => {
                    made.put(&measure(run, Policy::Strict).expect("measured before"));
                }
            }
        }
        if let Some(tally) = self.tally.as_deref_mut() {
            tally.converted(text.body().len_bytes());
        }
        Ok(made.finish())
    }

    #[cold]
    #[inline(never)]
    fn grow_scratch(&mut self, len: usize) {
        let len = len.clamp(LEAST_SCRATCH_BYTES, SCRATCH_BYTES);
        self.scratch.resize(len.next_power_of_two(), 0);
    }

    /// Creates a `str` from a string that is longer than the buffer. The first pass finds the
    /// character width of the new `str`, and the second pass copies.
    #[inline(never)]
    fn long_escaped(
        &mut self,
        text: Escaped<'_>,
        body: &[u8],
    ) -> Result<Bound<'py, PyAny>, Rejection> {
        let surrogates = self.options.surrogates;
        let mut shape = Shape {
            kind: Kind::Ascii,
            n_chars: 0,
        };
        let mut at = 0;
        while at < body.len() {
            let part = text.unescape(self.kernels, at, surrogates, &mut self.scratch)?;
            if part.has_surrogate {
                return self.characters(text);
            }
            let plain = Units::Utf8(&self.scratch[..part.n_written]);
            let measured = measure(plain, Policy::Strict);
            let part_shape = measured.map_err(|_| malformed(text.body(), 0))?.shape();
            shape.kind = shape.kind.max(part_shape.kind);
            shape.n_chars += part_shape.n_chars;
            at += part.n_read;
        }
        let made = InParts::new(self.building.py(), shape);
        let mut made = made.map_err(|e| self.fail(e))?;
        let mut at = 0;
        while at < body.len() {
            let part = text.unescape(self.kernels, at, surrogates, &mut self.scratch)?;
            let plain = Units::Utf8(&self.scratch[..part.n_written]);
            made.put(&measure(plain, Policy::Strict).expect("measured before"));
            at += part.n_read;
        }
        if let Some(tally) = self.tally.as_deref_mut() {
            tally.converted(body.len());
        }
        Ok(made.finish())
    }

    #[cold]
    #[inline(never)]
    fn hooked_float(&mut self, text: Units<'_>) -> Result<(), Rejection> {
        let made = match text {
            // `scalars::text` is slower, because it does not expect ASCII.
            Units::Utf8(digits) => {
                let digits = Ascii::new(digits).expect("numbers are ASCII");
                scalars::ascii(self.blanks, self.kernels, digits, None)
            }
            units => scalars::text(self.blanks, self.kernels, units, None).map_err(|e| match e {
                MakeError::Python(e) => e,
                MakeError::Malformed(_) => unreachable!("numbers are ASCII"),
            }),
        };
        let hook = self.options.parse_float.as_ref().expect("checked before");
        let made = made.and_then(|text| call_one(hook, &text));
        self.push(made)
    }
}

impl<K: Kernels> JsonEvents for Build<'_, '_, K> {
    #[inline(always)]
    fn null(&mut self) -> Result<(), Rejection> {
        let none = self.building.py().None().into_bound(self.building.py());
        self.push(Ok(none))
    }

    #[inline(always)]
    fn boolean(&mut self, value: bool) -> Result<(), Rejection> {
        let value = PyBool::new(self.building.py(), value).to_owned().into_any();
        self.push(Ok(value))
    }

    #[inline(always)]
    fn int(&mut self, value: i64) -> Result<(), Rejection> {
        let made = self.numbers.int(value);
        self.push(made)
    }

    #[cold]
    #[inline(never)]
    fn big_int(&mut self, digits: &[u8]) -> Result<(), Rejection> {
        let py = self.building.py();
        let made = match self.options.big_ints {
            BigIntType::Exact => big::int(py, digits),
            // The option `big_ints` does not apply to `u64` values.
            _ if str::from_utf8(digits).is_ok_and(|d| d.parse::<u64>().is_ok()) => {
                scalars::big_int(py, digits)
            }
            BigIntType::Error => return Err(Rejection::here(Reason::BigInt)),
            BigIntType::Float => {
                let value = onecopy_wire::json::read::float::of_text(digits);
                if value.is_infinite() {
                    return Err(Rejection::here(Reason::FloatRange));
                }
                number::float(py, value)
            }
        };
        self.push(made)
    }

    #[inline(always)]
    fn float(&mut self, value: f64, text: Units<'_>) -> Result<(), Rejection> {
        if self.options.parse_float.is_some() {
            return self.hooked_float(text);
        }
        if value.is_infinite() {
            return Err(Rejection::here(Reason::FloatRange));
        }
        let made = self.numbers.float(value);
        self.push(made)
    }

    #[cold]
    #[inline(never)]
    fn not_finite(&mut self, value: f64) -> Result<(), Rejection> {
        if !self.options.accept_nan {
            return Err(Rejection::here(Reason::NotFinite));
        }
        let made = number::float(self.building.py(), value);
        self.push(made)
    }

    #[inline(always)]
    fn string(&mut self, text: Text<'_>) -> Result<(), Rejection> {
        let made = self.text(text)?;
        self.push(Ok(made))
    }

    #[inline(always)]
    fn escaped_string(&mut self, text: Escaped<'_>) -> Result<(), Rejection> {
        let made = self.escaped(text)?;
        self.push(Ok(made))
    }

    #[inline(always)]
    fn key(&mut self, text: Text<'_>) -> Result<(), Rejection> {
        let bytes = match text {
            Text::Ascii(ascii) => Some(ascii.bytes()),
            Text::Units(Units::Utf8(bytes)) => Some(bytes),
            Text::Units(_) => None,
        };
        if let Some(bytes) = bytes
            && bytes.len() <= MOST_KEY_BYTES
        {
            let (kernels, hash) = (self.kernels, text_hash::hash(bytes));
            let is_it = |key: &[u8]| key.len() == bytes.len() && kernels.starts_with(bytes, key);
            let at = match self.building.find_key(hash, is_it) {
                Ok(at) => at,
                Err(at) => {
                    self.new_key(at, hash, bytes)?;
                    at
                }
            };
            return self.building.push_kept_key(at).map_err(|e| self.fail(e));
        }
        let made = self.text(text)?;
        let pushed = self.building.push_key(made);
        pushed.map_err(|e| self.fail(e))
    }

    #[inline(always)]
    fn escaped_key(&mut self, text: Escaped<'_>) -> Result<(), Rejection> {
        let made = self.escaped(text)?;
        let pushed = self.building.push_key(made);
        pushed.map_err(|e| self.fail(e))
    }

    #[inline(always)]
    fn begin_array(&mut self) -> Result<(), Rejection> {
        self.building.begin(false);
        Ok(())
    }

    #[inline(always)]
    fn end_array(&mut self) -> Result<(), Rejection> {
        let made = self.building.end_list();
        self.push(made)
    }

    #[inline(always)]
    fn empty_array(&mut self) -> Result<(), Rejection> {
        let made = self.building.empty_list();
        self.push(made)
    }

    #[inline(always)]
    fn empty_object(&mut self) -> Result<(), Rejection> {
        if self.options.object_hook.is_some() {
            self.begin_object()?;
            return self.end_object();
        }
        let made = self.building.empty_dict();
        self.push(made)
    }

    #[inline(always)]
    fn begin_object(&mut self) -> Result<(), Rejection> {
        self.building.begin(true);
        Ok(())
    }

    #[inline(always)]
    fn end_object(&mut self) -> Result<(), Rejection> {
        let (dict, has_twice) = match self.building.end_dict() {
            Ok(made) => made,
            Err(e) => return Err(self.fail(e)),
        };
        if has_twice && self.options.refuse_duplicates {
            return Err(Rejection::here(Reason::DuplicateKey));
        }
        match &self.options.object_hook {
            None => self.push(Ok(dict)),
            Some(hook) => {
                let made = call_one(hook, &dict);
                self.push(made)
            }
        }
    }

    #[inline(always)]
    fn guess(&self, is_utf8: bool) -> Option<&[u8]> {
        self.building.guess(is_utf8)
    }

    #[inline(always)]
    fn likely_key(&mut self) -> Result<(), Rejection> {
        let pushed = self.building.push_likely_key();
        pushed.map_err(|e| self.fail(e))
    }
}
