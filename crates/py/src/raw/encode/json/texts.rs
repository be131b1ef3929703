//! Writes strings of any length as JSON.

use onecopy_text::convert::{JSON_PLAIN_UNITS, Kernels, Work, json_capacity};
use onecopy_text::{Pen, Policy, Put, Units};
use onecopy_wire::json;
use pyo3::prelude::*;
use pyo3::{Borrowed, ffi};

use super::step::{scalar, short_text};
use super::{JsonEncoder, JsonStop, ROOM, Ucs2Text, put_standard};
use crate::raw::encode::builtin_types::{self, ObjectKind};
use crate::raw::encode::format::Step;
use crate::raw::encode::standard_types::{self, Native};
use crate::raw::text;

/// The number of code units in a block of a long string.
pub(super) const BLOCK_UNITS: usize = 4096;

impl JsonEncoder<'_, '_> {
    /// Writes a string with its quotes, in blocks of [`BLOCK_UNITS`] code units.
    ///
    /// # Safety
    /// `object` must be a live `str`.
    #[inline(never)]
    pub(super) unsafe fn any_text<'s, K: Kernels>(
        &mut self,
        kernels: K,
        object: *mut ffi::PyObject,
        mut pen: Pen<'s>,
    ) -> Result<Pen<'s>, JsonStop> {
        // Reserving space may run Python code that releases the caller's reference. SAFETY: alive,
        // by the contract of this function; attached.
        let _held = unsafe { Bound::from_borrowed_ptr(self.py(), object) };
        // SAFETY: the caller guarantees a `str`; `units` converts it to the form of PEP 393.
        let (mut units, is_ascii, string) = unsafe {
            let string = Borrowed::from_ptr(self.py(), object).cast_unchecked();
            match builtin_types::text(object) {
                Some((units, is_ascii)) => (units, is_ascii, string),
                None => (
                    text::units(string).map_err(JsonStop::Python)?,
                    false,
                    string,
                ),
            }
        };
        if self.target.latin1.is_some() {
            // The cached UTF-8 is unsuitable: a block of UTF-8 could end inside a character.
            units = text::own_units(string).map_err(JsonStop::Python)?;
            if let (Units::Ucs2(u), Some(ucs2)) = (units, self.target.ucs2)
                && !self.style.ensure_ascii
            {
                self.count(units);
                return self.wide_text(kernels, u, ucs2, pen);
            }
            if self.is_latin1 && !matches!(units, Units::Latin1(_)) {
                self.close(&pen);
                self.leave_latin1()?;
                pen = self.open(ROOM)?;
            }
        }
        self.count(units);
        pen = self.ensure_space(pen, ROOM)?;
        pen.put_byte(b'"');
        pen = if self.style.ensure_ascii && !is_ascii {
            self.by_characters(units, pen)?
        } else {
            LongText {
                units,
                is_ascii,
                encoder: self,
                pen,
            }
            .run(kernels)?
        };
        pen = self.ensure_space(pen, ROOM)?;
        pen.put_byte(b'"');
        Ok(pen)
    }

    /// Writes UCS-2 characters directly into the resulting `str`. The chunk receives the quotes.
    #[inline(never)]
    fn wide_text<'s, K: Kernels>(
        &mut self,
        kernels: K,
        units: &[u16],
        ucs2: &Ucs2Text,
        mut pen: Pen<'s>,
    ) -> Result<Pen<'s>, JsonStop> {
        pen = self.ensure_space(pen, ROOM)?;
        pen.put_byte(b'"');
        for (i, block) in units.chunks(BLOCK_UNITS).enumerate() {
            let n_most = json_capacity(block.len());
            // SAFETY: the pen of the chunk.
            if !unsafe { ucs2.put_before(n_most, &pen) } {
                ucs2.want(n_most);
                self.close(&pen);
                pen = self.open(ROOM)?;
            }
            for (k, part) in block.chunks(JSON_PLAIN_UNITS).enumerate() {
                if ucs2.put_plain(kernels, part) {
                    continue;
                }
                for (j, &unit) in part.iter().enumerate() {
                    let at = i * BLOCK_UNITS + k * JSON_PLAIN_UNITS + j;
                    self.wide_unit(unit, at, ucs2)?;
                }
            }
        }
        pen.put_byte(b'"');
        Ok(pen)
    }

    /// Writes one code unit or its escape into the resulting `str`. `at` is its index for errors.
    fn wide_unit(&self, unit: u16, at: usize, ucs2: &Ucs2Text) -> Result<(), JsonStop> {
        let mut place = [std::mem::MaybeUninit::uninit(); 8];
        let mut pen = Pen::new(&mut place);
        let start = pen.at();
        match (char::from_u32(unit.into()), self.style.surrogates) {
            (Some(c), _) if c >= ' ' && c != '"' && c != '\\' => ucs2.put(unit),
            (Some(c), _) => self.put_char(c, &mut pen),
            (None, Policy::Replace) => ucs2.put(0xFFFD),
            (None, Policy::BackslashReplace) => put_escape(unit.into(), &mut pen),
            (None, _) => {
                let unit = unit.into();
                return Err(JsonStop::Surrogate { at, unit });
            }
        }
        let n = pen.at().addr() - start.addr();
        for &byte in &place[..n] {
            // SAFETY: the pen has written these bytes.
            ucs2.put(unsafe { byte.assume_init() }.into());
        }
        Ok(())
    }

    /// Writes a part of a string with lone surrogates. `at` is the index of the part in the string.
    #[cold]
    fn surrogates<'s, U: Copy + Into<u32>>(
        &mut self,
        units: &[U],
        at: usize,
        mut pen: Pen<'s>,
    ) -> Result<Pen<'s>, JsonStop> {
        for (i, &unit) in units.iter().enumerate() {
            let unit = unit.into();
            pen = self.ensure_space(pen, ROOM)?;
            let Some(c) = char::from_u32(unit) else {
                match self.style.surrogates {
                    Policy::Replace => self.put_char(char::REPLACEMENT_CHARACTER, &mut pen),
                    Policy::BackslashReplace => put_escape(unit, &mut pen),
                    _ => return Err(JsonStop::Surrogate { at: at + i, unit }),
                }
                continue;
            };
            self.put_char(c, &mut pen);
        }
        Ok(pen)
    }

    /// Writes a string one character at a time, for the option `ensure_ascii`.
    fn by_characters<'s>(
        &mut self,
        units: Units<'_>,
        mut pen: Pen<'s>,
    ) -> Result<Pen<'s>, JsonStop> {
        for c in onecopy_text::naive::code_points(units) {
            pen = self.ensure_space(pen, ROOM)?;
            match (c, units) {
                (Ok(c), _) => self.put_char(
                    char::from_u32(c).unwrap_or(char::REPLACEMENT_CHARACTER),
                    &mut pen,
                ),
                (Err(e), Units::Ucs2(u)) => {
                    pen = self.surrogates(&u[e.at_units..=e.at_units], e.at_units, pen)?;
                }
                (Err(e), Units::Utf32(u)) => {
                    pen = self.surrogates(&u[e.at_units..=e.at_units], e.at_units, pen)?;
                }
                (Err(_), _) => {}
            }
        }
        Ok(pen)
    }

    /// Writes a character or its escape.
    fn put_char(&self, c: char, pen: &mut Pen<'_>) {
        match c {
            '"' => pen.put(b"\\\""),
            '\\' => pen.put(b"\\\\"),
            '\u{8}' => pen.put(b"\\b"),
            '\t' => pen.put(b"\\t"),
            '\n' => pen.put(b"\\n"),
            '\u{C}' => pen.put(b"\\f"),
            '\r' => pen.put(b"\\r"),
            '\0'..='\u{1F}' => put_escape(c.into(), pen),
            _ if self.style.ensure_ascii && !c.is_ascii() => {
                for &unit in c.encode_utf16(&mut [0; 2]).iter() {
                    put_escape(unit.into(), pen);
                }
            }
            _ => pen.put(c.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }

    #[inline(always)]
    pub(super) fn count(&mut self, units: Units<'_>) {
        onecopy_text::planted::extra_work_on_text(units);
        if self.is_counted {
            self.n_texts += 1;
            self.text_bytes += units.len_bytes() as u64;
        }
    }
}

/// Writes the code unit `unit` as the escape `\uXXXX`.
fn put_escape(unit: u32, pen: &mut Pen<'_>) {
    let digit = |shift: u32| b"0123456789abcdef"[(unit >> shift) as usize & 15];
    pen.put(&[b'\\', b'u', digit(12), digit(8), digit(4), digit(0)]);
}

/// The arguments for writing a long string. [`Work::run`] writes it in blocks.
struct LongText<'l, 'w, 'a, 'py, 's> {
    units: Units<'l>,
    is_ascii: bool,
    encoder: &'w mut JsonEncoder<'a, 'py>,
    pen: Pen<'s>,
}

impl<'s> Work for LongText<'_, '_, '_, '_, 's> {
    type Output = Result<Pen<'s>, JsonStop>;

    #[inline(always)]
    fn run<K: Kernels>(self, kernels: K) -> Result<Pen<'s>, JsonStop> {
        let (encoder, mut pen) = (self.encoder, self.pen);
        let is_plain = self.is_ascii || encoder.is_latin1;
        macro_rules! blocks {
            ($units:expr, $put:expr) => {{
                let units = $units;
                let n_bytes = json_capacity(BLOCK_UNITS.min(units.len()));
                for (i, block) in units.chunks(BLOCK_UNITS).enumerate() {
                    pen = encoder.ensure_space(pen, n_bytes)?;
                    if !$put(block, &mut pen) {
                        pen = encoder.surrogates(block, i * BLOCK_UNITS, pen)?;
                    }
                }
            }};
        }
        match self.units {
            Units::Latin1(u) => blocks!(u, |u, pen: &mut Pen<'s>| {
                kernels.put_json_latin1(u, is_plain, pen);
                true
            }),
            Units::Utf8(u) => blocks!(u, |u, pen: &mut Pen<'s>| {
                kernels.put_json_utf8(u, pen);
                true
            }),
            Units::Utf16(u) | Units::Ucs2(u) => {
                blocks!(u, |u, pen: &mut Pen<'s>| kernels.put_json_ucs2(u, pen))
            }
            Units::Utf32(u) => blocks!(u, |u, pen: &mut Pen<'s>| kernels.put_json_ucs4(u, pen)),
        }
        Ok(pen)
    }
}

/// Writes a short `str` key in quotes and a colon. If the key cache contains the key, its cached
/// text is copied. Returns `false` if the key is long, is not a `str`, or requires the slow path.
///
/// # Safety
/// `key` must be alive, and the destination of `pen` must have space for `ROOM / 2` bytes.
#[inline(always)]
pub(super) unsafe fn short_key<K: Kernels, const STYLED: bool>(
    kernels: K,
    encoder: &mut JsonEncoder<'_, '_>,
    key: *mut ffi::PyObject,
    pen: &mut Pen<'_>,
) -> bool {
    // A key in the cache is identified by its address; the object is not accessed.
    if let Some((text, len)) = encoder.keys.get(key) {
        pen.put_short(text, len);
        return true;
    }
    let start = pen.at();
    // SAFETY: guaranteed by the caller; the written bytes are between the two positions.
    unsafe {
        if builtin_types::kind(key) != ObjectKind::Str {
            return encoder.style.scalar_keys
                && scalar_key::<K, STYLED>(kernels, encoder, key, pen);
        }
        if !short_text::<K, STYLED>(kernels, encoder, key, pen, *b"\":") {
            return false;
        }
        let len = pen.at() as usize - start as usize;
        // Texts are counted when they are converted, so a cached key would not be counted. Text
        // that was written to the `str` is not in this chunk.
        let is_in_chunk = encoder.target.ucs2.is_none_or(|b| b.from() <= start);
        if !encoder.is_counted && is_in_chunk {
            encoder
                .keys
                .keep(key, std::slice::from_raw_parts(start, len));
        }
    }
    true
}

/// Writes a key that is a number, a boolean, `None`, a date, a time, a UUID or a member of an
/// enumeration: the text of its JSON value in quotes, and a colon. Returns `false` if the key is of
/// another type, or requires the slow path.
///
/// # Safety
/// The same requirements as for [`short_key`].
#[inline(never)]
unsafe fn scalar_key<K: Kernels, const STYLED: bool>(
    kernels: K,
    encoder: &mut JsonEncoder<'_, '_>,
    key: *mut ffi::PyObject,
    pen: &mut Pen<'_>,
) -> bool {
    let start = pen.at();
    // SAFETY: alive, as the caller guarantees; no code has run since `recent` was none. The pen has
    // half of ROOM, which is more than any of these values with two quotes and a comma.
    unsafe {
        let (natives, recent) = (&encoder.style.natives, &mut encoder.shared.recent);
        let kind = builtin_types::kind(key);
        let native = match kind {
            ObjectKind::Other if put_standard::put_temporal(key, natives, recent, pen) => {
                pen.put_byte(b':'); // The value has quotes.
                return true;
            }
            ObjectKind::Other => standard_types::read(key, natives, recent),
            _ => Native::Other,
        };
        let (value, kind) = match native {
            Native::Uuid(bytes) => {
                json::put_uuid(&bytes, pen);
                pen.put_byte(b':');
                return true;
            }
            Native::Instead(value) => (value, builtin_types::kind(value)),
            _ => (key, kind),
        };
        if kind == ObjectKind::Str {
            return short_text::<K, STYLED>(kernels, encoder, value, pen, *b"\":");
        }
        if !kind.is_scalar() {
            return false;
        }
        pen.put_byte(b'"');
        match scalar::<K, STYLED>(kernels, encoder, kind, value, pen) {
            Step::Done | Step::Constant => {
                pen.set_at(pen.at().sub(1)); // A comma was put last.
                pen.put_short(b"\":", 2);
                true
            }
            _ => {
                pen.set_at(start);
                false
            }
        }
    }
}
