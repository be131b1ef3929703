//! Values that take more than a few instructions.

use onecopy_text::convert::Kernels;
use onecopy_text::{ByteSink, Pen, Put};
use onecopy_wire::bson::{SUBTYPE_GENERIC, Tag};
use onecopy_wire::datetime::Date;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyString};
use pyo3::{Borrowed, ffi};

use super::super::frames::{self, Form};
use super::super::native::{self, Native, Zone};
use super::super::object::{self, Kind};
use super::super::{classes, dict};
use super::asked::Other;
use super::index::Index;
use super::step::{LENGTH_BYTES, step};
use super::texts::class_name;
use super::{ROOM, Stop, Walk};
use crate::bson::ObjectId;
use crate::raw::{ending, ndarray};

/// Milliseconds of the first and of the last moment of the years 1 to 9999.
pub(crate) const FIRST_MS: i64 = -62_135_596_800_000;
pub(crate) const LAST_MS: i64 = 253_402_300_799_999;

/// An empty document or array.
pub(super) const EMPTY: [u8; LENGTH_BYTES + 1] = [5, 0, 0, 0, 0];

impl<'py> Walk<'_, 'py> {
    /// As [`Walk::value`], of any kind.
    ///
    /// # Safety
    /// `value` is alive.
    pub(super) unsafe fn any_value<'s, K: Kernels>(
        &mut self,
        kernels: K,
        value: *mut ffi::PyObject,
        n_behind: usize,
        pen: Pen<'s>,
    ) -> Result<Pen<'s>, Stop> {
        // SAFETY: the duty of the caller.
        unsafe { self.value(kernels, value, object::kind(value), n_behind, pen) }
    }

    /// Writes any value, or goes inside of it; its tag stands `n_behind` bytes before the pen. Where that is 0 there is none, and the value
    /// is to be a document. Any Python code may run.
    ///
    /// # Safety
    /// `value` is alive, of this kind.
    #[inline(never)]
    pub(super) unsafe fn value<'s, K: Kernels>(
        &mut self,
        kernels: K,
        mut value: *mut ffi::PyObject,
        mut kind: Kind,
        mut n_behind: usize,
        mut pen: Pen<'s>,
    ) -> Result<Pen<'s>, Stop> {
        loop {
            pen = self.room(pen, ROOM)?;
            // SAFETY: alive, and of its kind, by the caller's word, or held by a frame.
            unsafe {
                match kind {
                    Kind::Dict => {
                        self.tag_of(Tag::Document, value, n_behind, &pen)?;
                        if dict::len(value) == 0 {
                            return self.empty(value, pen);
                        }
                        self.enter_dict(value, &mut pen)?;
                        return Ok(pen);
                    }
                    Kind::List | Kind::Tuple => {
                        self.tag_of(Tag::Array, value, n_behind, &pen)?;
                        if ffi::Py_SIZE(value) == 0 {
                            return self.empty(value, pen);
                        }
                        let form = if kind == Kind::List {
                            Form::List
                        } else {
                            Form::Tuple
                        };
                        self.enter(value, form, Index::FIRST as isize, &mut pen)?;
                        return Ok(pen);
                    }
                    Kind::Str => {
                        self.tag_of(Tag::String, value, n_behind, &pen)?;
                        return self.any_text(kernels, value, pen);
                    }
                    Kind::Float | Kind::Bool | Kind::None => {
                        let tag_at = self.offset(&pen) - n_behind;
                        let mut tag = 0;
                        let _ = step(kernels, self, value, &raw mut tag, &mut pen);
                        self.check_tag(tag, value, n_behind)?;
                        if n_behind != 0 {
                            self.tag_at(tag, tag_at);
                        }
                        return Ok(pen);
                    }
                    Kind::Int => {
                        if let Some(value_64) = object::int(value)
                            && let Ok(value_64) = i64::try_from(value_64)
                        {
                            self.int(value_64, value, n_behind, &mut pen)?;
                            return Ok(pen);
                        }
                    }
                    Kind::Other | Kind::Fields | Kind::Array => {
                        let is_done;
                        (pen, is_done) = self.without_code(value, n_behind, pen)?;
                        if is_done {
                            return Ok(pen);
                        }
                        if let Some(day) = native::date_of(value, &self.style.natives)
                            && let Ok(ms) = day.to_unix_ms()
                        {
                            self.tag_of(Tag::DateTime, value, n_behind, &pen)?;
                            pen.put(&ms.to_le_bytes());
                            return Ok(pen);
                        }
                        match native::read(value, &self.style.natives, &mut self.recent) {
                            Native::Short(short) => {
                                self.tag_of(short.tag, value, n_behind, &pen)?;
                                pen.put(short.bytes());
                                return Ok(pen);
                            }
                            Native::Contents(Kind::Float) => {
                                self.tag_of(Tag::Double, value, n_behind, &pen)?;
                                pen.put(&object::float(value).to_le_bytes());
                                return Ok(pen);
                            }
                            Native::Contents(contents) => {
                                kind = contents;
                                continue;
                            }
                            Native::Instead(instead) if object::kind(instead) != Kind::Other => {
                                value = instead;
                                kind = object::kind(value);
                                continue;
                            }
                            Native::NoFields => {
                                self.tag_of(Tag::Document, value, n_behind, &pen)?;
                                return self.empty(value, pen);
                            }
                            Native::Fields(class) => {
                                self.tag_of(Tag::Document, value, n_behind, &pen)?;
                                let class = classes::own(class);
                                let index = frames::index_of_class(&mut self.classes, class);
                                self.enter(value, Form::Fields, index, &mut pen)?;
                                return Ok(pen);
                            }
                            Native::Scalar(scalar) => {
                                self.scalar(scalar, value, n_behind, &mut pen)?;
                                return Ok(pen);
                            }
                            Native::Array => {
                                if let Some(view) =
                                    ndarray::view_of(value, self.style.natives.numpy)
                                {
                                    return self.array(kernels, value, &view, n_behind, pen);
                                }
                            }
                            Native::Uuid(bytes) => {
                                if let Some((subtype, bytes)) = self.style.uuid.binary(bytes) {
                                    self.tag_of(Tag::Binary, value, n_behind, &pen)?;
                                    pen.put_short(&[16, 0, 0, 0, subtype], 5);
                                    pen.put_short(&bytes, 16);
                                    return Ok(pen);
                                }
                            }
                            _ => {}
                        }
                    }
                }
                // Any Python code may run here.
                let tag_at = self.offset(&pen) - n_behind;
                self.close(&pen);
                self.before_code();
                let object = Bound::from_borrowed_ptr(self.py(), value);
                let py = self.py();
                let sink: &mut dyn ByteSink = self.target.sink;
                let made = ending::calls(py, || {
                    classes::learn(&object);
                    match self.others.other(&object, sink) {
                        Ok(None) => self.others.default(&object).map(Other::Instead),
                        Ok(Some(other)) => Ok(other),
                        Err(stop) => Err(stop),
                    }
                });
                let other = match made {
                    Ok(other) => other,
                    Err(stop) => return Err(self.no_form(object.as_ptr(), stop)),
                };
                pen = self.open(ROOM)?;
                if self.offset(&pen) - self.start > self.style.max_size {
                    return Err(Stop::TooLong);
                }
                match other {
                    Other::Put(tag) => {
                        self.check_tag(tag.byte(), value, n_behind)?;
                        if n_behind != 0 {
                            self.tag_at(tag.byte(), tag_at);
                        }
                        return Ok(pen);
                    }
                    Other::Text(tag, text) => {
                        self.tag_of(tag, value, n_behind, &pen)?;
                        return self.any_text(kernels, text.as_ptr(), pen);
                    }
                    Other::Code(text, scope) => {
                        self.tag_of(Tag::CodeWithScope, value, n_behind, &pen)?;
                        let start = self.offset(&pen);
                        pen.put_short(&[0; LENGTH_BYTES], LENGTH_BYTES);
                        pen = self.any_text(kernels, text.as_ptr(), pen)?;
                        value = scope.as_ptr();
                        self.hold(scope, true);
                        if let Some(frame) = self.frames.last_mut() {
                            frame.start = start + 1;
                        }
                        n_behind = 0;
                    }
                    Other::Memory(memory) => {
                        return self.array(kernels, value, &memory.view, n_behind, pen);
                    }
                    Other::Instead(instead) => {
                        self.check_held(value)?;
                        value = instead.as_ptr();
                        self.hold(instead, false);
                    }
                    Other::Unchecked(instead) => {
                        self.check_held(value)?;
                        value = instead.as_ptr();
                        self.hold(instead, true);
                    }
                    Other::Items => {
                        self.tag_of(Tag::Array, value, n_behind, &pen)?;
                        if ffi::Py_SIZE(value) == 0 {
                            return self.empty(value, pen);
                        }
                        let form = if object.is_instance_of::<PyList>() {
                            Form::List
                        } else {
                            Form::Tuple
                        };
                        self.check_depth(value)?;
                        self.frames.push_owned(object, form, Index::FIRST as isize);
                        self.begin(&mut pen);
                        return Ok(pen);
                    }
                    Other::Pairs(pairs) => {
                        self.tag_of(Tag::Document, value, n_behind, &pen)?;
                        let n = pairs.len() as isize;
                        if n == 0 {
                            return self.empty(value, pen);
                        }
                        self.check_depth(value)?;
                        self.frames.push_owned(pairs.into_any(), Form::Pairs, n);
                        self.begin(&mut pen);
                        return Ok(pen);
                    }
                }
                kind = object::kind(value);
            }
        }
    }

    /// The value of an attribute that is not in its usual position: any code may run. It is held by a frame.
    #[cold]
    pub(super) fn attribute<'s>(
        &mut self,
        object: *mut ffi::PyObject,
        name: *mut ffi::PyObject,
        pen: Pen<'s>,
    ) -> Result<(Pen<'s>, *mut ffi::PyObject), Stop> {
        self.close(&pen);
        self.before_code();
        // SAFETY: attached; the object of a frame, and the name of one of its fields: both are held.
        let (object, name) = unsafe {
            let name = Bound::from_borrowed_ptr(self.py(), name);
            (
                Bound::from_borrowed_ptr(self.py(), object),
                name.cast_into_unchecked::<PyString>(),
            )
        };
        let value = ending::calls(self.py(), || object.getattr(name))?;
        let borrowed = value.as_ptr();
        self.hold(value, false);
        Ok((self.open(ROOM)?, borrowed))
    }

    /// Puts a container without members.
    fn empty<'s>(&mut self, object: *mut ffi::PyObject, mut pen: Pen<'s>) -> Result<Pen<'s>, Stop> {
        self.check_depth(object)?;
        pen.put_short(&EMPTY, EMPTY.len());
        Ok(pen)
    }

    /// Puts an integer: 32 bits where they do.
    fn int(
        &mut self,
        value: i64,
        object: *mut ffi::PyObject,
        n_behind: usize,
        pen: &mut Pen<'_>,
    ) -> Result<(), Stop> {
        if let Ok(value) = i32::try_from(value) {
            self.tag_of(Tag::Int32, object, n_behind, pen)?;
            pen.put(&value.to_le_bytes());
        } else {
            self.tag_of(Tag::Int64, object, n_behind, pen)?;
            pen.put(&value.to_le_bytes());
        }
        Ok(())
    }

    /// Fails where a document is wanted, and the value is none.
    fn check_tag(
        &mut self,
        tag: u8,
        object: *mut ffi::PyObject,
        n_behind: usize,
    ) -> Result<(), Stop> {
        if n_behind != 0 || tag == Tag::Document.byte() {
            return Ok(());
        }
        self.before_code();
        // SAFETY: attached; alive, by the word of who called.
        unsafe {
            let class = class_name(&Bound::from_borrowed_ptr(self.py(), object));
            Err(self.no_form(object, Stop::NotADocument { class }))
        }
    }

    /// Writes the tag of a value.
    pub(super) fn tag_of(
        &mut self,
        tag: Tag,
        object: *mut ffi::PyObject,
        n_behind: usize,
        pen: &Pen<'_>,
    ) -> Result<(), Stop> {
        self.check_tag(tag.byte(), object, n_behind)?;
        self.tag_behind(tag.byte(), n_behind, pen);
        Ok(())
    }

    /// Writes objects of other types that no Python code has to run for; whether it was one.
    ///
    /// # Safety
    /// `value` is alive.
    unsafe fn without_code<'s>(
        &mut self,
        value: *mut ffi::PyObject,
        n_behind: usize,
        mut pen: Pen<'s>,
    ) -> Result<(Pen<'s>, bool), Stop> {
        // SAFETY: alive, by the caller's word, and read as what it is by its type.
        unsafe {
            if ffi::Py_TYPE(value) == &raw mut ffi::PyBytes_Type {
                self.tag_of(Tag::Binary, value, n_behind, &pen)?;
                let n = ffi::Py_SIZE(value).unsigned_abs();
                if n > self.style.max_size {
                    return Err(Stop::TooLong);
                }
                let data = ffi::PyBytes_AsString(value).cast::<u8>();
                pen = self.room(pen, n + ROOM)?;
                pen.put(&(n as u32).to_le_bytes());
                pen.put_byte(SUBTYPE_GENERIC);
                pen.put(std::slice::from_raw_parts(data, n));
                return Ok((pen, true));
            }
            let object = Borrowed::<PyAny>::from_ptr(self.py(), value);
            if let Ok(id) = object.cast_exact::<ObjectId>() {
                self.tag_of(Tag::ObjectId, value, n_behind, &pen)?;
                pen.put_short(id.get().bytes(), ObjectId::N_BYTES);
                return Ok((pen, true));
            }
            if let Some(ms) = unix_ms(value, &mut self.recent.zone) {
                self.tag_of(Tag::DateTime, value, n_behind, &pen)?;
                pen.put(&ms.to_le_bytes());
                return Ok((pen, true));
            }
        }
        Ok((pen, false))
    }
}

/// The milliseconds of a `datetime` whose offset is found without code, if they are in the years 1 to 9999; `None` of any other object.
///
/// # Safety
/// `object` is alive.
unsafe fn unix_ms(object: *mut ffi::PyObject, zone: &mut Zone) -> Option<i64> {
    // SAFETY: alive, by the caller's word; the C API of `datetime` was imported with the module. A `datetime` has these fields.
    unsafe {
        if ffi::PyDateTime_CheckExact(object) == 0 {
            return None;
        }
        let tzinfo = ffi::PyDateTime_DATE_GET_TZINFO(object);
        let offset = match tzinfo == ffi::Py_None() {
            true => 0,
            false => zone.offset(tzinfo, object)?.unwrap_or(0),
        };
        let day = Date {
            year: ffi::PyDateTime_GET_YEAR(object),
            month: ffi::PyDateTime_GET_MONTH(object) as u8,
            day: ffi::PyDateTime_GET_DAY(object) as u8,
        };
        let hour = i64::from(ffi::PyDateTime_DATE_GET_HOUR(object));
        let minute = hour * 60 + i64::from(ffi::PyDateTime_DATE_GET_MINUTE(object));
        let second = minute * 60 + i64::from(ffi::PyDateTime_DATE_GET_SECOND(object));
        let us = i64::from(ffi::PyDateTime_DATE_GET_MICROSECOND(object));
        let ms = day.to_unix_ms().ok()? + (second * 1_000_000 + us - offset).div_euclid(1000);
        // Another moment is for the option that says what to do with it.
        (FIRST_MS..=LAST_MS).contains(&ms).then_some(ms)
    }
}
