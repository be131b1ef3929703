//! Writes values of any type as BSON, also with Python code.

use onecopy_text::convert::Kernels;
use onecopy_text::{ByteSink, Pen, Put};
use onecopy_wire::bson::Tag;
use pyo3::ffi;
use pyo3::prelude::*;

use super::super::builtin_types::{self, ObjectKind};
use super::super::format::Step;
use super::super::frames::ContainerForm;
use super::super::standard_types::{self, Zone};
use super::super::{classes, containers};
use super::options::ObjectForm;
use super::step::{LENGTH_BYTES, step};
use super::texts::class_name;
use super::{BsonEncoder, BsonStop, ROOM};
use crate::raw::{gil, ndarray};

/// The first millisecond of the year 1, counted from 1970.
pub(crate) const FIRST_MS: i64 = -62_135_596_800_000;
pub(crate) const LAST_MS: i64 = 253_402_300_799_999;

/// The bytes of an empty document or array.
pub(super) const EMPTY: [u8; LENGTH_BYTES + 1] = [5, 0, 0, 0, 0];

/// The encoder's next action for an object without a built-in type.
enum BsonNext<'s> {
    /// The object was written, or a frame contains its members.
    Done(Pen<'s>),
    /// Write the object in the first field. The second field is the number of bytes after its tag.
    Value(*mut ffi::PyObject, usize, Pen<'s>),
}

impl<'py> BsonEncoder<'_, 'py> {
    /// Writes a value of any type, or pushes a frame for its members. Its reserved tag byte is
    /// `n_from_tag` bytes before the write position. The root has an `n_from_tag` of 0 and must be
    /// a document. Python code may run.
    ///
    /// # Safety
    /// `value` must be alive and of the type `kind`.
    #[inline(never)]
    pub(super) unsafe fn value<'s, K: Kernels>(
        &mut self,
        kernels: K,
        mut value: *mut ffi::PyObject,
        mut kind: ObjectKind,
        mut n_from_tag: usize,
        mut pen: Pen<'s>,
    ) -> Result<Pen<'s>, BsonStop> {
        loop {
            pen = self.ensure_space(pen, ROOM)?;
            match kind {
                ObjectKind::Str => {
                    self.tag_of(Tag::String, value, n_from_tag, &pen)?;
                    // SAFETY: alive, and of its kind, as the caller guarantees, or held by a frame.
                    return unsafe { self.any_text(kernels, value, pen) };
                }
                ObjectKind::Int => {
                    // SAFETY: an `int` that is alive, as the caller guarantees, or held.
                    let long = unsafe { builtin_types::int(value) };
                    if let Some(Ok(long)) = long.map(i64::try_from) {
                        return self.int(long, value, n_from_tag, pen);
                    }
                }
                ObjectKind::List | ObjectKind::Tuple | ObjectKind::Dict => {
                    // SAFETY: alive, as the caller guarantees, or held by a frame.
                    return unsafe { self.enter(kernels, value, kind, n_from_tag, pen) };
                }
                _ => {
                    let step;
                    // SAFETY: alive, as the caller guarantees, or held by a frame.
                    (pen, step) = unsafe { self.in_place(kernels, value, kind, n_from_tag, pen)? };
                    match step {
                        Step::Done | Step::Constant => return Ok(pen),
                        Step::Slow(ObjectKind::Other) | Step::Large(ObjectKind::Other) => {}
                        Step::Large(ObjectKind::Fields) => {
                            // SAFETY: alive, and its class was found in this step.
                            return unsafe {
                                self.enter(kernels, value, ObjectKind::Fields, n_from_tag, pen)
                            };
                        }
                        Step::Large(ObjectKind::Array) => {
                            let numpy = self.style.natives.numpy;
                            // SAFETY: an array by its class, alive; no code has run.
                            unsafe {
                                if let Some(view) = ndarray::view_of(value, numpy) {
                                    return self.array(kernels, value, &view, n_from_tag, pen);
                                }
                            }
                        }
                        Step::Slow(contents) | Step::Large(contents) => {
                            kind = contents;
                            continue;
                        }
                    }
                }
            }
            // SAFETY: alive, as the caller guarantees, or held by a frame.
            match unsafe { self.by_code(kernels, value, n_from_tag, pen)? } {
                BsonNext::Done(pen) => return Ok(pen),
                BsonNext::Value(instead, n, after) => {
                    (value, n_from_tag, pen) = (instead, n, after)
                }
            }
            // SAFETY: held by a frame.
            kind = unsafe { builtin_types::kind(value) };
        }
    }

    /// Calls [`step`], and then writes the tag. The sink may already have the reserved tag byte.
    ///
    /// # Safety
    /// The requirements of [`BsonEncoder::value`] apply.
    unsafe fn in_place<'s, K: Kernels>(
        &mut self,
        kernels: K,
        value: *mut ffi::PyObject,
        kind: ObjectKind,
        n_from_tag: usize,
        mut pen: Pen<'s>,
    ) -> Result<(Pen<'s>, Step), BsonStop> {
        // SAFETY: alive, as the caller guarantees.
        let n_bytes = unsafe { builtin_types::bytes(value) }.map_or(0, <[u8]>::len);
        if n_bytes > self.style.max_bytes {
            return Err(BsonStop::TooLong);
        }
        pen = self.ensure_space(pen, n_bytes + ROOM)?;
        let tag_at = self.offset(&pen) - n_from_tag;
        let mut tag = 0;
        // SAFETY: the caller guarantees the requirements.
        let step = unsafe { step(kernels, self, value, kind, &raw mut tag, &mut pen) };
        if let Step::Done | Step::Constant = step {
            self.check_tag(tag, value, n_from_tag)?;
            if n_from_tag != 0 {
                self.tag_at(tag, tag_at);
            }
        }
        Ok((pen, step))
    }

    /// Writes a container. If the loop over its members stops early, pushes a frame for the rest.
    ///
    /// # Safety
    /// The requirements of [`BsonEncoder::value`] apply.
    unsafe fn enter<'s, K: Kernels>(
        &mut self,
        kernels: K,
        value: *mut ffi::PyObject,
        kind: ObjectKind,
        n_from_tag: usize,
        pen: Pen<'s>,
    ) -> Result<Pen<'s>, BsonStop> {
        let tag = match kind {
            ObjectKind::List | ObjectKind::Tuple => Tag::Array,
            _ => Tag::Document,
        };
        self.tag_of(tag, value, n_from_tag, &pen)?;
        self.check_depth(value)?;
        self.is_nested |= n_from_tag != 0;
        // The tag is written. The loop writes a second one, so it gets the address before the
        // length.
        let tag = pen.at();
        // SAFETY: the caller guarantees the requirements.
        Ok(unsafe { containers::enter(kernels, self, value, kind, tag, pen) })
    }

    pub(super) fn check_depth(&self, object: *mut ffi::PyObject) -> Result<(), BsonStop> {
        Ok(self.shared.check_depth(object, self.style.max_depth)?)
    }

    /// Writes an object with Python code, or returns a replacement object.
    ///
    /// # Safety
    /// The requirements of [`BsonEncoder::value`] apply.
    unsafe fn by_code<'s, K: Kernels>(
        &mut self,
        kernels: K,
        value: *mut ffi::PyObject,
        n_from_tag: usize,
        mut pen: Pen<'s>,
    ) -> Result<BsonNext<'s>, BsonStop> {
        let tag_at = self.offset(&pen) - n_from_tag;
        self.close(&pen);
        self.before_code();
        let py = self.py();
        // SAFETY: alive, as the caller guarantees; attached.
        let object = unsafe { Bound::from_borrowed_ptr(py, value) };
        let sink: &mut dyn ByteSink = self.target.sink;
        let made = gil::calls(py, || {
            classes::learn(&object);
            match self.forms.other(&object, sink) {
                Ok(None) => self.forms.default(&object).map(ObjectForm::Instead),
                Ok(Some(other)) => Ok(other),
                Err(stop) => Err(stop),
            }
        });
        let other = match made {
            Ok(other) => other,
            // SAFETY: held.
            Err(stop) => return Err(unsafe { self.no_form(value, stop) }),
        };
        pen = self.open(ROOM)?;
        if self.offset(&pen) - self.start > self.style.max_bytes {
            return Err(BsonStop::TooLong);
        }
        match other {
            ObjectForm::Put(tag) => {
                self.check_tag(tag.byte(), value, n_from_tag)?;
                if n_from_tag != 0 {
                    self.tag_at(tag.byte(), tag_at);
                }
            }
            ObjectForm::Text(tag, text) => {
                self.tag_of(tag, value, n_from_tag, &pen)?;
                // SAFETY: a `str`, which is held.
                pen = unsafe { self.any_text(kernels, text.as_ptr(), pen)? };
            }
            ObjectForm::Code(text, scope) => {
                self.tag_of(Tag::CodeWithScope, value, n_from_tag, &pen)?;
                let start = self.offset(&pen);
                pen.put_short(&[0; LENGTH_BYTES], LENGTH_BYTES);
                // SAFETY: a `str`, which is held.
                pen = unsafe { self.any_text(kernels, text.as_ptr(), pen)? };
                let scope = self.hold(scope, true);
                if let Some(frame) = self.frames.last_mut() {
                    frame.start = start + 1;
                }
                return Ok(BsonNext::Value(scope, 0, pen));
            }
            ObjectForm::Memory(memory) => {
                // SAFETY: alive, and the owner of the view.
                pen = unsafe { self.array(kernels, value, &memory.view, n_from_tag, pen)? };
            }
            ObjectForm::Instead(instead) => {
                self.shared.check_held(value, self.style.max_depth)?;
                return Ok(BsonNext::Value(self.hold(instead, false), n_from_tag, pen));
            }
            ObjectForm::Unchecked(instead) => {
                self.shared.check_held(value, self.style.max_depth)?;
                return Ok(BsonNext::Value(self.hold(instead, true), n_from_tag, pen));
            }
            ObjectForm::Items => {
                self.tag_of(Tag::Array, value, n_from_tag, &pen)?;
                self.check_depth(value)?;
                let has_items = self.push_items(object);
                self.begin_frame(has_items, &mut pen);
            }
            ObjectForm::Pairs(pairs) => {
                self.tag_of(Tag::Document, value, n_from_tag, &pen)?;
                self.check_depth(value)?;
                let n = pairs.len() as isize;
                if n != 0 {
                    self.frames
                        .push_owned(pairs.into_any(), ContainerForm::Pairs, n);
                }
                self.begin_frame(n != 0, &mut pen);
            }
        }
        Ok(BsonNext::Done(pen))
    }

    /// Begins a container: reserves the bytes of its length, or writes an empty container.
    fn begin_frame(&mut self, has_members: bool, pen: &mut Pen<'_>) {
        if !has_members {
            return pen.put_short(&EMPTY, EMPTY.len());
        }
        let start = self.offset(pen);
        if let Some(frame) = self.frames.last_mut() {
            frame.start = start;
        }
        pen.put_short(&[0; LENGTH_BYTES], LENGTH_BYTES);
    }

    /// Keeps a replacement `object` alive. If `is_unchecked` is `true`, `check_keys` ignores its
    /// keys.
    fn hold(&mut self, object: Bound<'py, PyAny>, is_unchecked: bool) -> *mut ffi::PyObject {
        let n = isize::from(is_unchecked && self.style.check_keys);
        self.style.check_keys &= !is_unchecked;
        let borrowed = object.as_ptr();
        self.frames.push_owned(object, ContainerForm::Held, n);
        borrowed
    }

    /// Writes an `int32` if the integer fits, otherwise an `int64`.
    fn int<'s>(
        &mut self,
        value: i64,
        object: *mut ffi::PyObject,
        n_from_tag: usize,
        mut pen: Pen<'s>,
    ) -> Result<Pen<'s>, BsonStop> {
        let (tag, n_bytes) = match i32::try_from(value) {
            Ok(_) => (Tag::Int32, 4),
            Err(_) => (Tag::Int64, 8),
        };
        self.tag_of(tag, object, n_from_tag, &pen)?;
        pen.put_short(&value.to_le_bytes(), n_bytes);
        Ok(pen)
    }

    /// Returns an error if the root is not a document.
    fn check_tag(
        &mut self,
        tag: u8,
        object: *mut ffi::PyObject,
        n_from_tag: usize,
    ) -> Result<(), BsonStop> {
        if n_from_tag != 0 || tag == Tag::Document.byte() {
            return Ok(());
        }
        self.before_code();
        // SAFETY: attached; alive, as the caller guarantees.
        unsafe {
            let class = class_name(&Bound::from_borrowed_ptr(self.py(), object));
            Err(self.no_form(object, BsonStop::NotADocument { class }))
        }
    }

    /// Writes the tag of a value. Returns an error if the root is not a document.
    pub(super) fn tag_of(
        &mut self,
        tag: Tag,
        object: *mut ffi::PyObject,
        n_from_tag: usize,
        pen: &Pen<'_>,
    ) -> Result<(), BsonStop> {
        self.check_tag(tag.byte(), object, n_from_tag)?;
        self.tag_before(tag.byte(), n_from_tag, pen);
        Ok(())
    }
}

/// Returns the milliseconds since 1970 of a `datetime`. `None` outside of the years 1 to 9999, and
/// if Python code must compute the UTC offset.
///
/// # Safety
/// `object` must be alive.
#[inline(always)]
pub(super) unsafe fn unix_ms(object: *mut ffi::PyObject, zone: &mut Zone) -> Option<i64> {
    // SAFETY: alive, as the caller guarantees; the C API of `datetime` was imported before.
    let (offset, naive_us) = unsafe {
        if ffi::PyDateTime_CheckExact(object) == 0 {
            return None;
        }
        let tzinfo = ffi::PyDateTime_DATE_GET_TZINFO(object);
        let offset = match tzinfo == ffi::Py_None() {
            true => 0,
            false => zone.offset(tzinfo, object)?.unwrap_or(0),
        };
        (offset, us_of_day(object))
    };
    // SAFETY: a `datetime` is a `date`.
    let day = unsafe { standard_types::date(object) };
    let ms = day.to_unix_ms().ok()? + (naive_us - offset).div_euclid(1000);
    // The option `datetime_range` handles a datetime outside of this range.
    (FIRST_MS..=LAST_MS).contains(&ms).then_some(ms)
}

/// Returns the microseconds since midnight of a `datetime`.
///
/// # Safety
/// The object must be a live `datetime`.
#[inline(always)]
unsafe fn us_of_day(object: *mut ffi::PyObject) -> i64 {
    // SAFETY: a `datetime` has these fields.
    let (hour, minute, second, us) = unsafe {
        (
            ffi::PyDateTime_DATE_GET_HOUR(object),
            ffi::PyDateTime_DATE_GET_MINUTE(object),
            ffi::PyDateTime_DATE_GET_SECOND(object),
            ffi::PyDateTime_DATE_GET_MICROSECOND(object),
        )
    };
    let minutes = i64::from(hour) * 60 + i64::from(minute);
    (minutes * 60 + i64::from(second)) * 1_000_000 + i64::from(us)
}
