//! Texts of any length and form.

use onecopy_text::convert::{JSON_PLAIN_UNITS, Kernels, Work, json_room};
use onecopy_text::{Pen, Put, Units};
use pyo3::prelude::*;
use pyo3::{Borrowed, ffi};

use super::{Beside, ROOM, Stop, Surrogates, Walk, object};
use crate::raw::text;

/// Units of a long text that are written in one go.
pub(super) const BLOCK_UNITS: usize = 4096;

impl Walk<'_, '_> {
    /// Writes any text: in one go where it is short, else block by block.
    ///
    /// # Safety
    /// `object` is a `str` that is alive.
    #[inline(never)]
    pub(super) unsafe fn any_text<'s, K: Kernels>(
        &mut self,
        kernels: K,
        object: *mut ffi::PyObject,
        mut pen: Pen<'s>,
    ) -> Result<Pen<'s>, Stop> {
        // Code may run where room is made.
        // SAFETY: alive, by the caller's word; attached.
        let _held = unsafe { Bound::from_borrowed_ptr(self.py(), object) };
        // SAFETY: a `str`, by the caller's word; `units` brings it into the form of PEP 393 where it is not.
        let (mut units, is_ascii, string) = unsafe {
            let string = Borrowed::from_ptr(self.py(), object).cast_unchecked();
            match object::text(object) {
                Some((units, is_ascii)) => (units, is_ascii, string),
                None => (text::units(string).map_err(Stop::Python)?, false, string),
            }
        };
        if self.target.latin1.is_some() {
            // Not its UTF-8, which is written in parts that end inside of characters: each chunk is looked at for itself.
            units = text::own_units(string).map_err(Stop::Python)?;
            if let (Units::Ucs2(u), Some(beside)) = (units, self.target.beside)
                && !self.style.ensure_ascii
            {
                self.count(units);
                return self.wide_text(kernels, u, beside, pen);
            }
            if self.is_latin1 && !matches!(units, Units::Latin1(_)) {
                self.close(&pen);
                self.leave_latin1()?;
                pen = self.open(ROOM)?;
            }
        }
        self.count(units);
        pen = self.room(pen, ROOM)?;
        pen.put_byte(b'"');
        pen = if self.style.ensure_ascii && !is_ascii {
            self.by_characters(units, pen)?
        } else {
            Long {
                units,
                is_ascii,
                walk: self,
                pen,
            }
            .run(kernels)?
        };
        pen = self.room(pen, ROOM)?;
        pen.put_byte(b'"');
        Ok(pen)
    }

    /// Writes text past the chunk.
    #[inline(never)]
    fn wide_text<'s, K: Kernels>(
        &mut self,
        kernels: K,
        units: &[u16],
        beside: &Beside,
        mut pen: Pen<'s>,
    ) -> Result<Pen<'s>, Stop> {
        pen = self.room(pen, ROOM)?;
        pen.put_byte(b'"');
        for (i, block) in units.chunks(BLOCK_UNITS).enumerate() {
            let n_most = json_room(block.len());
            // SAFETY: the pen of the chunk.
            if !unsafe { beside.put_before(n_most, &pen) } {
                beside.want(n_most);
                self.close(&pen);
                pen = self.open(ROOM)?;
            }
            for (k, part) in block.chunks(JSON_PLAIN_UNITS).enumerate() {
                if beside.put_plain(kernels, part) {
                    continue;
                }
                for (j, &unit) in part.iter().enumerate() {
                    let at = i * BLOCK_UNITS + k * JSON_PLAIN_UNITS + j;
                    self.wide_unit(unit, at, beside)?;
                }
            }
        }
        pen.put_byte(b'"');
        Ok(pen)
    }

    /// Writes one unit past the chunk, as an escape where it is to be one.
    fn wide_unit(&self, unit: u16, at: usize, beside: &Beside) -> Result<(), Stop> {
        let mut place = [std::mem::MaybeUninit::uninit(); 8];
        let mut pen = Pen::new(&mut place);
        let start = pen.at();
        match (char::from_u32(unit.into()), self.style.surrogates) {
            (Some(c), _) if c >= ' ' && c != '"' && c != '\\' => beside.put(unit),
            (Some(c), _) => self.put_char(c, &mut pen),
            (None, Surrogates::Error) => {
                let unit = unit.into();
                return Err(Stop::Surrogate { at, unit });
            }
            (None, Surrogates::Replace) => beside.put(0xFFFD),
            (None, Surrogates::Escape) => put_escape(unit.into(), &mut pen),
        }
        let n = pen.at().addr() - start.addr();
        for &byte in &place[..n] {
            // SAFETY: the pen has written as many bytes.
            beside.put(unsafe { byte.assume_init() }.into());
        }
        Ok(())
    }

    /// Writes units among which there are surrogates, as the style says.
    #[cold]
    fn surrogates<'s, U: Copy + Into<u32>>(
        &mut self,
        units: &[U],
        at: usize,
        mut pen: Pen<'s>,
    ) -> Result<Pen<'s>, Stop> {
        for (i, &unit) in units.iter().enumerate() {
            let unit = unit.into();
            pen = self.room(pen, ROOM)?;
            let Some(c) = char::from_u32(unit) else {
                match self.style.surrogates {
                    Surrogates::Error => return Err(Stop::Surrogate { at: at + i, unit }),
                    Surrogates::Replace => self.put_char(char::REPLACEMENT_CHARACTER, &mut pen),
                    Surrogates::Escape => put_escape(unit, &mut pen),
                }
                continue;
            };
            self.put_char(c, &mut pen);
        }
        Ok(pen)
    }

    /// Writes a text character by character.
    fn by_characters<'s>(&mut self, units: Units<'_>, mut pen: Pen<'s>) -> Result<Pen<'s>, Stop> {
        for c in onecopy_text::naive::code_points(units) {
            pen = self.room(pen, ROOM)?;
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

    /// Puts a character as the style says.
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

/// Puts `\\uXXXX`.
fn put_escape(unit: u32, pen: &mut Pen<'_>) {
    let digit = |shift: u32| b"0123456789abcdef"[(unit >> shift) as usize & 15];
    pen.put(&[b'\\', b'u', digit(12), digit(8), digit(4), digit(0)]);
}

/// The rest of a text.
struct Long<'l, 'w, 'a, 'py, 's> {
    units: Units<'l>,
    is_ascii: bool,
    walk: &'w mut Walk<'a, 'py>,
    pen: Pen<'s>,
}

impl<'s> Work for Long<'_, '_, '_, '_, 's> {
    type Output = Result<Pen<'s>, Stop>;

    #[inline(always)]
    fn run<K: Kernels>(self, kernels: K) -> Result<Pen<'s>, Stop> {
        let (walk, mut pen) = (self.walk, self.pen);
        let is_plain = self.is_ascii || walk.is_latin1;
        macro_rules! blocks {
            ($units:expr, $put:expr) => {{
                let units = $units;
                let room = json_room(BLOCK_UNITS.min(units.len()));
                for (i, block) in units.chunks(BLOCK_UNITS).enumerate() {
                    pen = walk.room(pen, room)?;
                    if !$put(block, &mut pen) {
                        pen = walk.surrogates(block, i * BLOCK_UNITS, pen)?;
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
