//! Writes strings and keys of any length as BSON.

use onecopy_text::convert::{Kernels, utf8_capacity};
use onecopy_text::{Pen, Policy, Put, Units, naive};
use pyo3::prelude::*;
use pyo3::{Borrowed, ffi};

use super::super::builtin_types;
use super::step::LENGTH_BYTES;
use super::{BsonEncoder, BsonStop, ROOM};
use crate::raw::ndarray::{self, Class};
use crate::raw::text;

/// The number of code units in a block of a long string.
pub(super) const BLOCK_UNITS: usize = 4096;

impl BsonEncoder<'_, '_> {
    /// Returns the characters of a `str`. ASCII becomes UTF-8.
    ///
    /// # Safety
    /// `object` must be a `str` that is alive as long as the text.
    unsafe fn units<'a>(&self, object: *mut ffi::PyObject) -> Result<Units<'a>, BsonStop> {
        // SAFETY: the caller guarantees a `str`; `units` converts it to the form of PEP 393.
        unsafe {
            if let Some((units, is_ascii)) = builtin_types::text(object) {
                return Ok(match units {
                    Units::Latin1(u) if is_ascii => Units::Utf8(u),
                    units => units,
                });
            }
            let string = Borrowed::from_ptr(self.py(), object).cast_unchecked();
            Ok(text::units(string)?)
        }
    }

    /// Writes a string as BSON: its length in bytes, its UTF-8 and a NUL.
    ///
    /// # Safety
    /// `object` must be a live `str`.
    #[inline(never)]
    pub(super) unsafe fn any_text<'s, K: Kernels>(
        &mut self,
        kernels: K,
        object: *mut ffi::PyObject,
        mut pen: Pen<'s>,
    ) -> Result<Pen<'s>, BsonStop> {
        // SAFETY: the caller guarantees the requirements.
        let units = unsafe { self.units(object)? };
        self.count(units);
        pen = self.ensure_space(pen, ROOM)?;
        let start = self.offset(&pen);
        pen.put_short(&[0; LENGTH_BYTES], LENGTH_BYTES);
        // SAFETY: the caller guarantees the requirements.
        pen = unsafe { self.utf8(kernels, object, units, pen)? };
        pen = self.ensure_space(pen, ROOM)?;
        pen.put_byte(0);
        let n_bytes = self.offset(&pen) - start - LENGTH_BYTES;
        self.patch(start, n_bytes, &pen)?;
        Ok(pen)
    }

    /// Writes a reserved tag byte and a key of any length with its NUL. Returns the pen and the
    /// number of written bytes. A key that is not a `str` is an error, and Python code may run.
    ///
    /// # Safety
    /// `key` must be alive.
    pub(super) unsafe fn any_key_text<'s, K: Kernels>(
        &mut self,
        kernels: K,
        key: *mut ffi::PyObject,
        mut pen: Pen<'s>,
    ) -> Result<(Pen<'s>, usize), BsonStop> {
        // SAFETY: alive, as the caller guarantees.
        let units = unsafe {
            if ffi::PyUnicode_Check(key) == 0 {
                self.before_code();
                let key = Bound::from_borrowed_ptr(self.py(), key);
                let class = class_name(&key);
                return Err(self.no_form(key.as_ptr(), BsonStop::Key { class }));
            }
            self.units(key)?
        };
        let stop = if holds(units, 0) {
            Some(BsonStop::NulInKey)
        } else if self.style.check_keys && (begins_with_dollar(units) || holds(units, b'.')) {
            Some(BsonStop::KeyForm)
        } else {
            None
        };
        if let Some(stop) = stop {
            // SAFETY: alive, as the caller guarantees.
            return Err(unsafe { self.no_form(key, stop) });
        }
        self.count(units);
        let start = self.offset(&pen);
        pen.put_byte(0);
        // SAFETY: alive, as the caller guarantees.
        pen = unsafe { self.utf8(kernels, key, units, pen)? };
        pen = self.ensure_space(pen, ROOM)?;
        pen.put_byte(0);
        let n_bytes = self.offset(&pen) - start;
        Ok((pen, n_bytes))
    }

    /// Writes characters as UTF-8, in blocks of [`BLOCK_UNITS`] code units.
    ///
    /// # Safety
    /// `object` must be the live owner of the characters.
    #[inline(always)]
    unsafe fn utf8<'s, K: Kernels>(
        &mut self,
        kernels: K,
        object: *mut ffi::PyObject,
        units: Units<'_>,
        mut pen: Pen<'s>,
    ) -> Result<Pen<'s>, BsonStop> {
        if units.len_units() > self.style.max_bytes {
            return Err(BsonStop::TooLong);
        }
        macro_rules! blocks {
            ($units:expr, $put:expr, $wide:expr) => {{
                let units = $units;
                let n_bytes = utf8_capacity(BLOCK_UNITS.min(units.len()));
                for (i, block) in units.chunks(BLOCK_UNITS).enumerate() {
                    pen = self.ensure_space(pen, n_bytes)?;
                    if !$put(block, &mut pen) {
                        let done = self.surrogates($wide(block), i * BLOCK_UNITS, pen);
                        // SAFETY: the caller guarantees the requirements.
                        pen = done.map_err(|stop| unsafe { self.no_form(object, stop) })?;
                    }
                }
            }};
        }
        match units {
            Units::Utf8(u) => {
                pen = self.ensure_space(pen, u.len() + ROOM)?;
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

    /// Writes a block with surrogates. `before` is the number of earlier code units.
    #[cold]
    #[inline(never)]
    fn surrogates<'s>(
        &mut self,
        units: Units<'_>,
        before: usize,
        mut pen: Pen<'s>,
    ) -> Result<Pen<'s>, BsonStop> {
        pen = self.ensure_space(pen, utf8_capacity(units.len_units()))?;
        for c in naive::code_points(units) {
            let c = match c {
                Ok(c) => char::from_u32(c).unwrap_or(char::REPLACEMENT_CHARACTER),
                Err(_) if self.style.surrogates == Policy::Replace => char::REPLACEMENT_CHARACTER,
                Err(e) => {
                    let unit = match units {
                        Units::Utf32(u) => u[e.at_units],
                        Units::Utf16(u) | Units::Ucs2(u) => u32::from(u[e.at_units]),
                        Units::Latin1(u) | Units::Utf8(u) => u32::from(u[e.at_units]),
                    };
                    let at = before + e.at_units;
                    return Err(BsonStop::Surrogate { at, unit });
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

/// Returns `true` if the text contains the ASCII character `c`.
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

/// Returns the name of an object's class with its module. A NumPy array adds its item type.
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
