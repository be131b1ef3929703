//! Objects of what the reader tells.

use onecopy_text::convert::{Ascii, Kernels};
use onecopy_text::{Kind, Policy, Shape, Tally, Units, measure};
use onecopy_wire::json::read::{
    Escaped, Events, Piece, Reason, Refusal, Surrogates, Text, malformed,
};
use pyo3::prelude::*;
use pyo3::types::PyBool;

use super::big;
use super::options::{BigInts, Options};
use crate::raw::fresh::Blanks;
use crate::raw::method::call_one;
use crate::raw::number;
use crate::raw::objects::building::Building;
use crate::raw::objects::fresh_number::Numbers;
use crate::raw::objects::scalars::{self, InParts};
use crate::raw::objects::values;
use crate::raw::text::MakeError;

/// Room for strings without their escapes, at most and at least; longer ones go through it in parts, twice.
const SCRATCH_BYTES: usize = 32 << 10;
const LEAST_SCRATCH_BYTES: usize = 1 << 10;

/// Keys that are remembered have at most as many bytes.
const MOST_KEY_BYTES: usize = 64;

/// A value under construction.
pub(super) struct Build<'a, 'py, K> {
    kernels: K,
    building: Building<'py>,
    blanks: Blanks<'py>,
    numbers: Numbers<'py>,
    options: &'a Options<'py>,
    tally: Option<&'a mut Tally>,
    scratch: Vec<u8>,
    /// Why the last event was refused, where Python says so.
    pub(super) error: Option<PyErr>,
}

impl<'a, 'py, K: Kernels> Build<'a, 'py, K> {
    #[inline(always)]
    pub(super) fn new(
        py: Python<'py>,
        kernels: K,
        options: &'a Options<'py>,
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

    /// The value, once all was told.
    #[inline(always)]
    pub(super) fn finish(self) -> Bound<'py, PyAny> {
        self.building.finish()
    }

    #[cold]
    #[inline(never)]
    fn fail(&mut self, error: PyErr) -> Refusal {
        self.error = Some(error);
        Refusal::OWN
    }

    #[inline(always)]
    fn push(&mut self, value: PyResult<Bound<'py, PyAny>>) -> Result<(), Refusal> {
        match value {
            Ok(value) => {
                let pushed = self.building.push(value);
                pushed.map_err(|e| self.fail(e))
            }
            Err(e) => Err(self.fail(e)),
        }
    }

    #[inline(always)]
    fn text(&mut self, text: Text<'_>) -> Result<Bound<'py, PyAny>, Refusal> {
        let tally = self.tally.as_deref_mut();
        match text {
            Text::Ascii(text) => {
                let made = scalars::ascii(self.blanks, self.kernels, text, tally);
                made.map_err(|e| self.fail(e))
            }
            // Words in registers: as `Units` they would be put into memory, and a short text waits for that longer than it takes.
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

    /// Makes a key and keeps it in its place.
    #[cold]
    #[inline(never)]
    fn new_key(&mut self, at: u16, hash: u32, bytes: &[u8]) -> Result<(), Refusal> {
        let key = self.other_utf8(bytes)?;
        let kept = self.building.keep_key(at, hash, bytes, &key);
        kept.map_err(|e| self.fail(e))
    }

    /// UTF-8 by the way of any text.
    #[inline(never)]
    fn other_utf8(&mut self, bytes: &[u8]) -> Result<Bound<'py, PyAny>, Refusal> {
        let units = Units::Utf8(bytes);
        let made = scalars::other_text(self.blanks.py(), units, self.tally.as_deref_mut());
        made.or_else(|e| self.malformed_text(units, e))
    }

    /// A text that is malformed: refused, or taken with its surrogates where it is that of a `str`.
    #[cold]
    #[inline(never)]
    fn malformed_text(
        &mut self,
        units: Units<'_>,
        error: MakeError,
    ) -> Result<Bound<'py, PyAny>, Refusal> {
        if let MakeError::Python(e) = error {
            return Err(self.fail(e));
        }
        let refusal = malformed(units, 0);
        if refusal.reason != Reason::Surrogate || self.options.surrogates == Surrogates::Error {
            return Err(refusal);
        }
        // A backslash is in no plain text, so nothing is taken for an escape.
        self.characters(Escaped::of(units))
    }

    fn characters(&mut self, text: Escaped<'_>) -> Result<Bound<'py, PyAny>, Refusal> {
        let (py, surrogates) = (self.building.py(), self.options.surrogates);
        match scalars::characters(py, || text.chars(surrogates)) {
            Ok(made) => {
                if let Some(tally) = self.tally.as_deref_mut() {
                    tally.converted(text.body().len_bytes());
                }
                Ok(made)
            }
            Err(scalars::Failed::Chars(refusal)) => Err(refusal),
            Err(scalars::Failed::Python(e)) => Err(self.fail(e)),
        }
    }

    #[inline(always)]
    fn escaped(&mut self, text: Escaped<'_>) -> Result<Bound<'py, PyAny>, Refusal> {
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

    /// A string in the units of a `str`: looked at twice, first for its shape.
    #[inline(always)]
    fn wide_escaped(&mut self, text: Escaped<'_>) -> Result<Bound<'py, PyAny>, Refusal> {
        let surrogates = self.options.surrogates;
        let mut shape = Shape {
            kind: Kind::Ascii,
            n_chars: 0,
        };
        for piece in text.pieces(self.kernels, surrogates) {
            let (kind, n_chars) = match piece? {
                Piece::Char(c) => (Kind::of(c), 1),
                Piece::Run(run, at) => match measure(run, Policy::Strict) {
                    Ok(measured) => (measured.shape().kind, measured.shape().n_chars),
                    Err(_) if surrogates == Surrogates::Error => return Err(malformed(run, at)),
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
                Piece::Char(c) => made.put_char(c),
                Piece::Run(run, _) => {
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

    /// A string too long for the scratch: read twice, part by part, first for its shape.
    #[inline(never)]
    fn long_escaped(
        &mut self,
        text: Escaped<'_>,
        body: &[u8],
    ) -> Result<Bound<'py, PyAny>, Refusal> {
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
    fn hooked_float(&mut self, text: Units<'_>) -> Result<(), Refusal> {
        let made = match text {
            // As other UTF-8 it would be taken for text with more than ASCII.
            Units::Utf8(digits) => {
                let digits = Ascii::new(digits).expect("numbers are ASCII");
                scalars::ascii(self.blanks, self.kernels, digits, None)
            }
            units => scalars::text(self.blanks, self.kernels, units, None).map_err(|e| match e {
                MakeError::Python(e) => e,
                MakeError::Malformed(_) => unreachable!("numbers are ASCII"),
            }),
        };
        let hook = self.options.float_hook.as_ref().expect("asked before");
        let made = made.and_then(|text| call_one(hook, &text));
        self.push(made)
    }
}

impl<K: Kernels> Events for Build<'_, '_, K> {
    #[inline(always)]
    fn null(&mut self) -> Result<(), Refusal> {
        let none = self.building.py().None().into_bound(self.building.py());
        self.push(Ok(none))
    }

    #[inline(always)]
    fn boolean(&mut self, value: bool) -> Result<(), Refusal> {
        let value = PyBool::new(self.building.py(), value).to_owned().into_any();
        self.push(Ok(value))
    }

    #[inline(always)]
    fn int(&mut self, value: i64) -> Result<(), Refusal> {
        let made = self.numbers.int(value);
        self.push(made)
    }

    #[cold]
    #[inline(never)]
    fn big_int(&mut self, digits: &[u8]) -> Result<(), Refusal> {
        let py = self.building.py();
        let made = match self.options.big_ints {
            BigInts::Exact => big::int(py, digits),
            // 64 bits without a sign are not more than 64.
            _ if str::from_utf8(digits).is_ok_and(|d| d.parse::<u64>().is_ok()) => {
                scalars::big_int(py, digits)
            }
            BigInts::Error => return Err(Refusal::here(Reason::BigInt)),
            BigInts::Float => {
                let value = onecopy_wire::json::read::float::of_text(digits);
                if value.is_infinite() {
                    return Err(Refusal::here(Reason::FloatRange));
                }
                number::float(py, value)
            }
        };
        self.push(made)
    }

    #[inline(always)]
    fn float(&mut self, value: f64, text: Units<'_>) -> Result<(), Refusal> {
        if self.options.float_hook.is_some() {
            return self.hooked_float(text);
        }
        if value.is_infinite() {
            return Err(Refusal::here(Reason::FloatRange));
        }
        let made = self.numbers.float(value);
        self.push(made)
    }

    #[cold]
    #[inline(never)]
    fn not_finite(&mut self, value: f64) -> Result<(), Refusal> {
        if !self.options.accept_nan {
            return Err(Refusal::here(Reason::NotFinite));
        }
        let made = number::float(self.building.py(), value);
        self.push(made)
    }

    #[inline(always)]
    fn string(&mut self, text: Text<'_>) -> Result<(), Refusal> {
        let mut hash = None;
        if let Text::Ascii(ascii) = text
            && let bytes = ascii.bytes()
            && self.building.is_looking(bytes.len())
        {
            let kernels = self.kernels;
            let is_it =
                |known: &[u8]| known.len() == bytes.len() && kernels.starts_with(bytes, known);
            if let Some(found) = self.building.find_last(is_it) {
                return self.push(Ok(found));
            }
            let looked_for = values::hash(bytes);
            if let Some(found) = self.building.find(looked_for, is_it) {
                return self.push(Ok(found));
            }
            hash = Some(looked_for);
        }
        let made = self.text(text)?;
        if let Some(hash) = hash {
            self.building.remember(hash, &made);
        }
        self.push(Ok(made))
    }

    #[inline(always)]
    fn escaped_string(&mut self, text: Escaped<'_>) -> Result<(), Refusal> {
        let made = self.escaped(text)?;
        self.push(Ok(made))
    }

    #[inline(always)]
    fn key(&mut self, text: Text<'_>) -> Result<(), Refusal> {
        let bytes = match text {
            Text::Ascii(ascii) => Some(ascii.bytes()),
            Text::Units(Units::Utf8(bytes)) => Some(bytes),
            Text::Units(_) => None,
        };
        if let Some(bytes) = bytes
            && bytes.len() <= MOST_KEY_BYTES
        {
            let (kernels, hash) = (self.kernels, values::hash(bytes));
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
    fn escaped_key(&mut self, text: Escaped<'_>) -> Result<(), Refusal> {
        let made = self.escaped(text)?;
        let pushed = self.building.push_key(made);
        pushed.map_err(|e| self.fail(e))
    }

    #[inline(always)]
    fn begin_array(&mut self) -> Result<(), Refusal> {
        self.building.begin(false);
        Ok(())
    }

    #[inline(always)]
    fn end_array(&mut self) -> Result<(), Refusal> {
        let made = self.building.end_list();
        self.push(made)
    }

    #[inline(always)]
    fn empty_array(&mut self) -> Result<(), Refusal> {
        let made = self.building.empty_list();
        self.push(made)
    }

    #[inline(always)]
    fn empty_object(&mut self) -> Result<(), Refusal> {
        if self.options.object_hook.is_some() {
            self.begin_object()?;
            return self.end_object();
        }
        let made = self.building.empty_dict();
        self.push(made)
    }

    #[inline(always)]
    fn begin_object(&mut self) -> Result<(), Refusal> {
        self.building.begin(true);
        Ok(())
    }

    #[inline(always)]
    fn end_object(&mut self) -> Result<(), Refusal> {
        let (dict, has_twice) = match self.building.end_dict() {
            Ok(made) => made,
            Err(e) => return Err(self.fail(e)),
        };
        if has_twice && self.options.refuse_duplicates {
            return Err(Refusal::here(Reason::DuplicateKey));
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
    fn likely_key(&mut self) -> Result<(), Refusal> {
        let pushed = self.building.push_likely_key();
        pushed.map_err(|e| self.fail(e))
    }
}
