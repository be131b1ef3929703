//! Implements `MemberEncoder`, the interface of the loop over members, for BSON.

use onecopy_text::convert::Kernels;
use onecopy_text::{Pen, Put};
use onecopy_wire::bson::Tag;
use pyo3::ffi;

use super::super::builtin_types::{self, ObjectKind};
use super::super::format::MemberEncoder;
use super::super::format::Step;
use super::super::frames::{ContainerForm, ContainerFrame};
use super::super::members::LEVELS;
use super::super::state::EncoderState;
use super::index::Index;
use super::step::{self, LENGTH_BYTES};
use super::value::EMPTY;
use super::{BsonEncoder, BsonStop, ROOM};

/// Returns the BSON tag of an array or document.
pub(super) fn tag_of_form(form: ContainerForm) -> Tag {
    match form {
        ContainerForm::List | ContainerForm::Tuple => Tag::Array,
        _ => Tag::Document,
    }
}

impl<'py> MemberEncoder<'py> for BsonEncoder<'_, 'py> {
    type Stop = BsonStop;
    type Index = Index;

    #[inline(always)]
    fn shared(&mut self) -> &mut EncoderState<'py> {
        &mut self.shared
    }

    #[inline(always)]
    fn has_space(&self, _levels: usize, _key_bytes: usize, pen: &Pen<'_>) -> bool {
        pen.remaining() >= ROOM
    }

    #[inline(always)]
    fn has_space_to_end(&self, _levels: usize, _pen: &Pen<'_>) -> bool {
        true
    }

    fn grow<'s>(&mut self, pen: Pen<'s>) -> Result<Pen<'s>, BsonStop> {
        self.reserve(pen, ROOM)
    }

    #[inline(always)]
    fn levels(&mut self) -> usize {
        LEVELS.min(self.style.max_depth.saturating_sub(self.frames.depth()))
    }

    #[inline(always)]
    fn before_member(&mut self, _is_first: bool, _levels: usize, _pen: &mut Pen<'_>) {}

    #[inline(always)]
    fn after_member(&mut self, _pen: &mut Pen<'_>) {}

    #[inline(always)]
    fn index(at: isize) -> Index {
        Index::at(at.cast_unsigned())
    }

    #[inline(always)]
    fn put_index(index: &mut Index, at: isize, pen: &mut Pen<'_>) {
        index.put(at.cast_unsigned(), pen);
    }

    #[inline(always)]
    unsafe fn short_key<K: Kernels>(
        &mut self,
        kernels: K,
        key: *mut ffi::PyObject,
        pen: &mut Pen<'_>,
    ) -> bool {
        // SAFETY: the caller guarantees what `short_key` requires.
        unsafe { step::short_key(kernels, self, key, pen) }
    }

    #[inline(always)]
    unsafe fn step<K: Kernels>(
        &mut self,
        kernels: K,
        value: *mut ffi::PyObject,
        tag: *mut u8,
        pen: &mut Pen<'_>,
    ) -> Step {
        // SAFETY: the caller guarantees what `step` requires.
        unsafe { step::step(kernels, self, value, builtin_types::kind(value), tag, pen) }
    }

    #[inline(always)]
    unsafe fn constants(&mut self, _items: &[*mut ffi::PyObject], _pen: &mut Pen<'_>) -> isize {
        0
    }

    #[inline(always)]
    fn enters(&self, _kind: ObjectKind) -> bool {
        true
    }

    #[inline(always)]
    fn writes_private_fields(&self) -> bool {
        true
    }

    #[inline(always)]
    unsafe fn put_empty(&mut self, form: ContainerForm, tag: *mut u8, pen: &mut Pen<'_>) {
        // SAFETY: the byte that was reserved for the tag.
        unsafe { tag.write(tag_of_form(form).byte()) };
        pen.put_short(&EMPTY, EMPTY.len());
    }

    #[inline(always)]
    unsafe fn begin(&mut self, form: ContainerForm, tag: *mut u8, pen: &mut Pen<'_>) -> *mut u8 {
        // SAFETY: the byte that was reserved for the tag; for the root, the first byte of its
        // length.
        unsafe { tag.write(tag_of_form(form).byte()) };
        self.is_nested |= tag != pen.at();
        let start = pen.at();
        pen.put_short(&[0; LENGTH_BYTES], LENGTH_BYTES);
        start
    }

    #[inline(always)]
    unsafe fn end(
        &mut self,
        _form: ContainerForm,
        start: *mut u8,
        _levels: usize,
        pen: &mut Pen<'_>,
    ) {
        pen.put_byte(0);
        // Truncation is harmless: the end of the root refuses a document of more than 2^31 bytes.
        let n_bytes = (pen.at().addr() - start.addr()) as u32;
        // SAFETY: `begin` has reserved bytes for the length at the start of the document.
        unsafe {
            let length = start.cast::<[u8; LENGTH_BYTES]>();
            length.write_unaligned(n_bytes.to_le_bytes());
        }
    }

    #[inline(always)]
    fn offset_of(&self, start: *mut u8) -> usize {
        start.addr().wrapping_sub(self.target.base.addr())
    }

    #[inline(always)]
    unsafe fn small_array<K: Kernels>(
        &mut self,
        kernels: K,
        value: *mut ffi::PyObject,
        _n_dims: usize,
        tag: *mut u8,
        pen: &mut Pen<'_>,
    ) -> bool {
        // SAFETY: the caller guarantees what `short_array` requires.
        unsafe { self.short_array(kernels, value, tag, pen) }
    }

    #[inline(never)]
    unsafe fn any_key<'s, K: Kernels>(
        &mut self,
        kernels: K,
        mut pen: Pen<'s>,
    ) -> Result<Pen<'s>, BsonStop> {
        pen = self.ensure_space(pen, ROOM)?;
        let Some(frame) = self.frames.last_mut() else {
            return Err(BsonStop::Changed);
        };
        let frame: *mut ContainerFrame = frame;
        // SAFETY: the frame does not move until the next push; its object is alive. No code runs
        // before the value is found or its attribute is read.
        unsafe {
            let key = self.shared.next_key(frame, true).ok_or(BsonStop::Changed)?;
            let n_from_tag;
            let value = match self.shared.value_of_key(frame) {
                Some(value) => {
                    (pen, n_from_tag) = self.any_key_text(kernels, key, pen)?;
                    value
                }
                None if (*frame).form == ContainerForm::Fields => {
                    self.close(&pen);
                    let value = self.attribute((*frame).object, key)?;
                    pen = self.open(ROOM)?;
                    (pen, n_from_tag) = self.any_key_text(kernels, key, pen)?;
                    value
                }
                None => return Err(BsonStop::Changed),
            };
            self.value(kernels, value, builtin_types::kind(value), n_from_tag, pen)
        }
    }

    #[inline(always)]
    unsafe fn any_value<'s, K: Kernels>(
        &mut self,
        kernels: K,
        value: *mut ffi::PyObject,
        kind: ObjectKind,
        tag: *mut u8,
        pen: Pen<'s>,
    ) -> Result<Pen<'s>, BsonStop> {
        let n_from_tag = pen.at().addr() - tag.addr();
        // SAFETY: the caller guarantees what `value` requires.
        unsafe { self.value(kernels, value, kind, n_from_tag, pen) }
    }

    unsafe fn are_rows_written(&self, _frame: *const ContainerFrame) -> Result<bool, BsonStop> {
        Err(BsonStop::Changed) // BSON has no frames of rows
    }

    unsafe fn resume_rows<'s, K: Kernels>(
        &mut self,
        _kernels: K,
        _frame: *mut ContainerFrame,
        _pen: Pen<'s>,
    ) -> Result<Pen<'s>, BsonStop> {
        Err(BsonStop::Changed) // BSON has no frames of rows
    }

    #[inline(always)]
    fn leave<'s>(
        &mut self,
        frame: *const ContainerFrame,
        _has_members: bool,
        _is_due: bool,
        mut pen: Pen<'s>,
    ) -> Result<Pen<'s>, BsonStop> {
        // SAFETY: the caller guarantees that it is the innermost frame.
        let (form, start, n) = unsafe { ((*frame).form, (*frame).start, (*frame).n) };
        if form != ContainerForm::Held {
            pen = self.ensure_space(pen, ROOM)?;
            pen.put_byte(0);
            let n_bytes = self.offset(&pen) - start;
            self.patch(start, n_bytes, &pen)?;
            return Ok(pen);
        }
        // A "code with scope" begins with its total length.
        if let Some(start) = start.checked_sub(1) {
            let n_bytes = self.offset(&pen) - start;
            self.patch(start, n_bytes, &pen)?;
        }
        self.style.check_keys |= n != 0;
        Ok(pen)
    }

    fn changed() -> BsonStop {
        BsonStop::Changed
    }
}
