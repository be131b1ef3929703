//! Texts and keys of any length and form.

use onecopy_text::convert::{Kernels, utf8_room};
use onecopy_text::{Pen, Put, Units, naive};
use pyo3::prelude::*;
use pyo3::{Borrowed, ffi};

use super::super::object;
use super::step::LENGTH_BYTES;
use super::{ROOM, Stop, Walk};
use crate::raw::ndarray::{self, Class};
use crate::raw::text;

/// Units of a long text that are written in one go.
pub(super) const BLOCK_UNITS: usize = 4096;

impl Walk<'_, '_> {
    /// The text of a `str`, of a class of its own too.
    ///
    /// # Safety
    /// `object` is a `str` that is alive as long as the text is used.
    unsafe fn units<'a>(&self, object: *mut ffi::PyObject) -> Result<Units<'a>, Stop> {
        // SAFETY: a `str`, by the caller's word; `units` brings it into the form of PEP 393 where it is not.
        unsafe {
            if let Some((units, is_ascii)) = object::text(object) {
                return Ok(match units {
                    Units::Latin1(u) if is_ascii => Units::Utf8(u),
                    units => units,
                });
            }
            let string = Borrowed::from_ptr(self.py(), object).cast_unchecked();
            Ok(text::units(string)?)
        }
    }

    /// Puts any text, with its length and its NUL.
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
        // SAFETY: the duty of the caller.
        let units = unsafe { self.units(object)? };
        self.count(units);
        pen = self.room(pen, ROOM)?;
        let start = self.offset(&pen);
        pen.put_short(&[0; LENGTH_BYTES], LENGTH_BYTES);
        // SAFETY: the duty of the caller.
        pen = unsafe { self.utf8(kernels, object, units, pen)? };
        pen = self.room(pen, ROOM)?;
        pen.put_byte(0);
        let n_bytes = self.offset(&pen) - start - LENGTH_BYTES;
        self.patch(start, n_bytes, &pen)?;
        Ok(pen)
    }

    /// Writes a key of any length and form, and its value. Any Python code may run.
    ///
    /// # Safety
    /// Both are alive.
    #[inline(never)]
    pub(super) unsafe fn any_member<'s, K: Kernels>(
        &mut self,
        kernels: K,
        key: *mut ffi::PyObject,
        value: *mut ffi::PyObject,
        is_kept: bool,
        mut pen: Pen<'s>,
    ) -> Result<Pen<'s>, Stop> {
        // SAFETY: alive, by the caller's word.
        let units = unsafe {
            if ffi::PyUnicode_Check(key) == 0 {
                self.before_code();
                let key = Bound::from_borrowed_ptr(self.py(), key);
                let class = class_name(&key);
                return Err(self.no_form(key.as_ptr(), Stop::Key { class }));
            }
            self.units(key)?
        };
        let is_checked = self.style.check_keys;
        let stop = if holds(units, 0) {
            Some(Stop::NulInKey)
        } else if is_checked && (begins_with_dollar(units) || holds(units, b'.')) {
            Some(Stop::KeyForm)
        } else {
            None
        };
        if let Some(stop) = stop {
            // SAFETY: alive, by the caller's word.
            return Err(unsafe { self.no_form(key, stop) });
        }
        self.count(units);
        let start = self.offset(&pen);
        pen.put_byte(0);
        // SAFETY: alive, by the caller's word.
        pen = unsafe { self.utf8(kernels, key, units, pen)? };
        pen = self.room(pen, ROOM)?;
        pen.put_byte(0);
        let n_behind = self.offset(&pen) - start;
        // SAFETY: the key stands in front of the pen where all since its start does. The value is alive: no code has run.
        unsafe {
            if start >= self.target.before {
                let at = pen.at().wrapping_sub(n_behind);
                self.keep(key, at, is_kept, &pen);
            }
            self.any_value(kernels, value, n_behind, pen)
        }
    }

    /// Puts the characters of a text.
    ///
    /// # Safety
    /// `object`, whose text it is, is alive.
    #[inline(always)]
    unsafe fn utf8<'s, K: Kernels>(
        &mut self,
        kernels: K,
        object: *mut ffi::PyObject,
        units: Units<'_>,
        mut pen: Pen<'s>,
    ) -> Result<Pen<'s>, Stop> {
        if units.len_units() > self.style.max_size {
            return Err(Stop::TooLong);
        }
        macro_rules! blocks {
            ($units:expr, $put:expr, $wide:expr) => {{
                let units = $units;
                let room = utf8_room(BLOCK_UNITS.min(units.len()));
                for (i, block) in units.chunks(BLOCK_UNITS).enumerate() {
                    pen = self.room(pen, room)?;
                    if !$put(block, &mut pen) {
                        let done = self.surrogates($wide(block), i * BLOCK_UNITS, pen);
                        // SAFETY: the duty of the caller.
                        pen = done.map_err(|stop| unsafe { self.no_form(object, stop) })?;
                    }
                }
            }};
        }
        match units {
            Units::Utf8(u) => {
                pen = self.room(pen, u.len() + ROOM)?;
                pen.put(u);
            }
            Units::Latin1(u) => blocks!(
                u,
                |u, pen: &mut Pen<'s>| {
                    kernels.put_utf8_latin1(u, pen);
                    true
                },
                Units::Latin1
            ),
            Units::Utf16(u) | Units::Ucs2(u) => {
                blocks!(
                    u,
                    |u, pen: &mut Pen<'s>| kernels.put_utf8_ucs2(u, pen),
                    Units::Ucs2
                );
            }
            Units::Utf32(u) => {
                blocks!(
                    u,
                    |u, pen: &mut Pen<'s>| kernels.put_utf8_ucs4(u, pen),
                    Units::Utf32
                );
            }
        }
        Ok(pen)
    }

    /// Puts units among which there are surrogates.
    #[cold]
    #[inline(never)]
    fn surrogates<'s>(
        &mut self,
        units: Units<'_>,
        before: usize,
        mut pen: Pen<'s>,
    ) -> Result<Pen<'s>, Stop> {
        pen = self.room(pen, utf8_room(units.len_units()))?;
        for c in naive::code_points(units) {
            let c = match c {
                Ok(c) => char::from_u32(c).unwrap_or(char::REPLACEMENT_CHARACTER),
                Err(_) if self.style.replace => char::REPLACEMENT_CHARACTER,
                Err(e) => {
                    let unit = match units {
                        Units::Utf32(u) => u[e.at_units],
                        Units::Utf16(u) | Units::Ucs2(u) => u32::from(u[e.at_units]),
                        Units::Latin1(u) | Units::Utf8(u) => u32::from(u[e.at_units]),
                    };
                    let at = before + e.at_units;
                    return Err(Stop::Surrogate { at, unit });
                }
            };
            pen.put(c.encode_utf8(&mut [0; 4]).as_bytes());
        }
        Ok(pen)
    }

    #[inline(always)]
    pub(super) fn count(&mut self, units: Units<'_>) {
        onecopy_text::planted::extra_work_on_text(units);
        if self.is_counted {
            self.tally.encoded(units);
        }
    }
}

/// Whether a text holds a character of ASCII, or NUL.
fn holds(units: Units<'_>, c: u8) -> bool {
    match units {
        Units::Latin1(u) | Units::Utf8(u) => u.contains(&c),
        Units::Utf16(u) | Units::Ucs2(u) => u.contains(&c.into()),
        Units::Utf32(u) => u.contains(&c.into()),
    }
}

fn begins_with_dollar(units: Units<'_>) -> bool {
    let first = match units {
        Units::Latin1(u) | Units::Utf8(u) => u.first().map(|&c| c.into()),
        Units::Utf16(u) | Units::Ucs2(u) => u.first().map(|&c| c.into()),
        Units::Utf32(u) => u.first().copied(),
    };
    first == Some(u32::from(b'$'))
}

/// The name of an object's class, with its module; of an array of NumPy's also the type of its items.
pub(crate) fn class_name(object: &Bound<'_, PyAny>) -> String {
    let class = object.get_type();
    let name = class.fully_qualified_name();
    let name = name.map_or_else(|_| "?".to_owned(), |name| name.to_string());
    match ndarray::class_of(&class) {
        Ok(Some(Class::Array | Class::DerivedArray)) => match object.getattr("dtype") {
            Ok(dtype) => format!("{name} of {dtype}"),
            Err(_) => name,
        },
        _ => name,
    }
}
