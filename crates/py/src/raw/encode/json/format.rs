//! Implements `MemberEncoder` for JSON. The loop over a container's members calls its methods.

use std::ops::{Deref, DerefMut};

use onecopy_text::convert::Kernels;
use onecopy_text::{Pen, Put};
use onecopy_wire::json;
use pyo3::ffi;

use super::rows::end_object;
use super::{JsonEncoder, JsonNext, JsonStop, ROOM};
use super::{put_standard, step, texts};
use crate::raw::encode::builtin_types::{self, ObjectKind};
use crate::raw::encode::format::{MemberEncoder, Step};
use crate::raw::encode::frames::{ContainerForm, ContainerFrame};
use crate::raw::encode::members::LEVELS;
use crate::raw::encode::sorted::SortedMembers;
use crate::raw::encode::standard_types::{self, Native};
use crate::raw::encode::state::EncoderState;
use crate::raw::encode::{containers, dict};

/// The JSON encoder as a [`MemberEncoder`]. With `STYLED`, all options are supported. Without
/// `STYLED`, the options must be [plain](super::Style::is_plain).
#[repr(transparent)]
pub(super) struct JsonFormat<'a, 'py, const STYLED: bool>(JsonEncoder<'a, 'py>);

impl<'a, 'py, const STYLED: bool> JsonFormat<'a, 'py, STYLED> {
    #[inline(always)]
    pub(super) fn of<'w>(encoder: &'w mut JsonEncoder<'a, 'py>) -> &'w mut Self {
        // SAFETY: of the same layout, which holds nothing else.
        unsafe { &mut *std::ptr::from_mut(encoder).cast::<Self>() }
    }
}

impl<'a, 'py, const STYLED: bool> Deref for JsonFormat<'a, 'py, STYLED> {
    type Target = JsonEncoder<'a, 'py>;

    #[inline(always)]
    fn deref(&self) -> &JsonEncoder<'a, 'py> {
        &self.0
    }
}

impl<const STYLED: bool> DerefMut for JsonFormat<'_, '_, STYLED> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.0
    }
}

/// Returns the opening and closing bracket of a container.
fn ends(form: ContainerForm) -> [u8; 2] {
    match form {
        ContainerForm::List
        | ContainerForm::Tuple
        | ContainerForm::Rows
        | ContainerForm::Columns => *b"[]",
        _ => *b"{}",
    }
}

impl<'py, const STYLED: bool> MemberEncoder<'py> for JsonFormat<'_, 'py, STYLED> {
    type Stop = JsonStop;
    type Index = ();

    #[inline(always)]
    fn shared(&mut self) -> &mut EncoderState<'py> {
        &mut self.0.shared
    }

    #[inline(always)]
    fn has_space(&self, levels: usize, key_bytes: usize, pen: &Pen<'_>) -> bool {
        let line_bytes = if STYLED { self.line_bytes(levels) } else { 0 };
        pen.remaining() >= ROOM + key_bytes + line_bytes
    }

    #[inline(always)]
    fn has_space_to_end(&self, levels: usize, pen: &Pen<'_>) -> bool {
        !STYLED || pen.remaining() >= ROOM + self.line_bytes(levels)
    }

    fn grow<'s>(&mut self, pen: Pen<'s>) -> Result<Pen<'s>, JsonStop> {
        let line_bytes = if STYLED { self.line_bytes(0) } else { 0 };
        let key_bytes = self.row_key_bytes();
        self.0.grow(pen, ROOM + line_bytes + key_bytes)
    }

    #[inline(always)]
    fn levels(&mut self) -> usize {
        let depth = self.frames.depth();
        let levels = LEVELS.min(self.style.max_depth.saturating_sub(depth));
        if STYLED {
            self.make_lines(depth + levels);
        }
        levels
    }

    #[inline(always)]
    fn before_member(&mut self, is_first: bool, levels: usize, pen: &mut Pen<'_>) {
        if STYLED {
            if !is_first {
                pen.put_byte(b',');
            }
            self.put_line(levels, pen);
        }
    }

    #[inline(always)]
    fn after_member(&mut self, pen: &mut Pen<'_>) {
        if STYLED {
            // SAFETY: a comma was put last.
            unsafe { pen.set_at(pen.at().sub(1)) };
        }
    }

    #[inline(always)]
    fn index(_at: isize) {}

    #[inline(always)]
    fn put_index(_index: &mut (), _at: isize, _pen: &mut Pen<'_>) {}

    #[inline(always)]
    unsafe fn short_key<K: Kernels>(
        &mut self,
        kernels: K,
        key: *mut ffi::PyObject,
        pen: &mut Pen<'_>,
    ) -> bool {
        // SAFETY: the caller guarantees the requirements.
        let is_put = unsafe { texts::short_key::<K, STYLED>(kernels, &mut self.0, key, pen) };
        if STYLED && is_put && self.style.indent.is_some() {
            pen.put_byte(b' ');
        }
        is_put
    }

    #[inline(always)]
    unsafe fn step<K: Kernels>(
        &mut self,
        kernels: K,
        value: *mut ffi::PyObject,
        _tag: *mut u8,
        pen: &mut Pen<'_>,
    ) -> Step {
        // SAFETY: the caller guarantees the requirements.
        unsafe { step::step::<K, STYLED>(kernels, &mut self.0, value, pen) }
    }

    #[inline(always)]
    unsafe fn constants(&mut self, items: &[*mut ffi::PyObject], pen: &mut Pen<'_>) -> isize {
        if STYLED {
            return 0;
        }
        // SAFETY: the caller guarantees the requirements.
        unsafe { step::constants(items, pen) as isize }
    }

    #[inline(always)]
    fn enters(&self, kind: ObjectKind) -> bool {
        !STYLED
            || match kind {
                ObjectKind::Dict | ObjectKind::Fields => !self.style.sort_keys,
                ObjectKind::Array => self.style.indent.is_none(),
                _ => true,
            }
    }

    #[inline(always)]
    unsafe fn sorts_in_place(&mut self, dict: *mut ffi::PyObject) -> bool {
        STYLED
            && self.style.sort_keys
            // SAFETY: alive, as the caller guarantees; no code has run since the order was used.
            && unsafe { SortedMembers::of(dict, &mut self.shared.recent_order) }.is_some()
    }

    #[inline(always)]
    fn writes_private_fields(&self) -> bool {
        self.style.natives.private_fields
    }

    #[inline(always)]
    unsafe fn put_empty(&mut self, form: ContainerForm, _tag: *mut u8, pen: &mut Pen<'_>) {
        let [start, end] = ends(form);
        pen.put_short(&[start, end, b','], 3);
    }

    #[inline(always)]
    unsafe fn begin(&mut self, form: ContainerForm, _tag: *mut u8, pen: &mut Pen<'_>) -> *mut u8 {
        pen.put_byte(ends(form)[0]);
        std::ptr::null_mut()
    }

    #[inline(always)]
    unsafe fn end(
        &mut self,
        form: ContainerForm,
        _start: *mut u8,
        levels: usize,
        pen: &mut Pen<'_>,
    ) {
        if STYLED {
            self.put_line(levels + 1, pen);
        } else {
            // SAFETY: a comma was put after each member, and no space was made since.
            unsafe { pen.set_at(pen.at().sub(1)) };
        }
        pen.put_short(&[ends(form)[1], b','], 2);
    }

    #[inline(always)]
    fn offset_of(&self, _start: *mut u8) -> usize {
        0
    }

    #[inline(always)]
    unsafe fn small_array<K: Kernels>(
        &mut self,
        kernels: K,
        value: *mut ffi::PyObject,
        n_dims: usize,
        _tag: *mut u8,
        pen: &mut Pen<'_>,
    ) -> bool {
        // SAFETY: the caller guarantees the requirements.
        unsafe { self.0.small_array(kernels, value, n_dims, pen) }
    }

    #[inline(never)]
    unsafe fn any_key<'s, K: Kernels>(
        &mut self,
        kernels: K,
        mut pen: Pen<'s>,
    ) -> Result<Pen<'s>, JsonStop> {
        let Some(frame) = self.frames.last_mut() else {
            return Err(JsonStop::Changed);
        };
        let frame: *mut ContainerFrame = frame;
        // SAFETY: the frame does not move until one is pushed.
        let (container, form, at) = unsafe { ((*frame).object, (*frame).form, (*frame).at) };
        let levels = self.levels();
        let line_bytes = if STYLED { self.line_bytes(levels) } else { 0 };
        pen = self.0.ensure_space(pen, ROOM + line_bytes)?;
        self.before_member(at == 0, levels, &mut pen);
        if form == ContainerForm::Columns {
            // SAFETY: alive, a tuple.
            let n_columns = unsafe { builtin_types::items(container, false) }.len();
            let index = at.cast_unsigned() / n_columns;
            return Err(JsonStop::Row { index });
        }
        let private = self.style.natives.private_fields;
        // SAFETY: the innermost frame; code may have run where space was made, before the key is
        // read.
        let key = unsafe { self.shared.next_key(frame, private) }.ok_or(JsonStop::Changed)?;
        // SAFETY: alive; a name of a field as long as its class is.
        pen = unsafe { self.0.key(kernels, key, pen)? };
        pen = self.colon(pen);
        // Python code may have changed the container since the key was read. SAFETY: the innermost
        // frame, whose key was read.
        let value = match unsafe { self.shared.value_of_key(frame) } {
            Some(value) => value,
            None if form == ContainerForm::Fields => {
                self.close(&pen);
                // SAFETY: the frame holds the object, and its class the name.
                let value = unsafe { self.attribute(container, key)? };
                pen = self.open(ROOM)?;
                value
            }
            None => return Err(JsonStop::Changed),
        };
        let tag = pen.at();
        // SAFETY: alive, as no code has run since it was read, or held by a frame.
        unsafe { self.any_value(kernels, value, builtin_types::kind(value), tag, pen) }
    }

    #[inline(never)]
    unsafe fn any_value<'s, K: Kernels>(
        &mut self,
        kernels: K,
        mut value: *mut ffi::PyObject,
        mut kind: ObjectKind,
        _tag: *mut u8,
        mut pen: Pen<'s>,
    ) -> Result<Pen<'s>, JsonStop> {
        let style = self.style;
        // The object that replaces `value`, until it is written.
        let mut _held = None;
        loop {
            match kind {
                ObjectKind::List | ObjectKind::Tuple | ObjectKind::Dict => {
                    // SAFETY: alive, and of its kind, as the caller guarantees, or held by a frame.
                    return unsafe { self.enter(kernels, value, kind, pen) };
                }
                // SAFETY: a `str` that is alive, as the caller guarantees, or held.
                ObjectKind::Str => pen = unsafe { self.any_text(kernels, value, pen)? },
                // SAFETY: an `int` that is alive, as the caller guarantees, or held.
                ObjectKind::Int => match unsafe { builtin_types::small_int(value) } {
                    Some(value) if style.exact_ints || value.unsigned_abs() < 1 << 53 => {
                        json::put_i64(value, &mut pen);
                    }
                    // SAFETY: an `int` that is alive, or held.
                    _ => match unsafe { builtin_types::int(value) } {
                        Some(value) if style.exact_ints || value.unsigned_abs() < 1 << 53 => {
                            put_long(value, &mut pen);
                        }
                        // SAFETY: alive, as the caller guarantees, or held.
                        _ => (pen, _) = unsafe { self.other(value, pen)? },
                    },
                },
                ObjectKind::None => pen.put_short(b"null", 4),
                // SAFETY: an address is compared.
                ObjectKind::Bool => json::put_bool(value == unsafe { ffi::Py_True() }, &mut pen),
                ObjectKind::Float => {
                    // SAFETY: a `float` that is alive, as the caller guarantees, or held.
                    let value = unsafe { builtin_types::float(value) };
                    json::put_f64(value, style.nan, &mut pen).map_err(|_| JsonStop::NonFinite)?;
                }
                ObjectKind::Other | ObjectKind::Fields | ObjectKind::Array => {
                    let next;
                    // SAFETY: alive, as the caller guarantees, or held by a frame.
                    (pen, next) = unsafe { self.value_of_class(kernels, value, pen)? };
                    match next {
                        JsonNext::Done => {}
                        JsonNext::Members => return Ok(pen),
                        JsonNext::Memory(memory) => pen = self.memory(kernels, &memory, pen)?,
                        JsonNext::Contents(contents) => {
                            kind = contents;
                            continue;
                        }
                        JsonNext::Scalar(scalar) => {
                            value = scalar.as_ptr();
                            // SAFETY: held by the variable.
                            kind = unsafe { builtin_types::kind(value) };
                            _held = Some(scalar);
                            continue;
                        }
                        JsonNext::Instead(instead) => {
                            value = instead;
                            // SAFETY: held by a frame, or by the member of an enumeration.
                            kind = unsafe { builtin_types::kind(value) };
                            continue;
                        }
                    }
                }
            }
            break;
        }
        if !STYLED {
            pen = self.0.ensure_space(pen, ROOM)?;
            pen.put_byte(b',');
        }
        Ok(pen)
    }

    #[inline(always)]
    unsafe fn are_rows_written(&self, frame: *const ContainerFrame) -> Result<bool, JsonStop> {
        // SAFETY: the caller guarantees the requirements.
        unsafe { self.0.are_rows_written(frame) }
    }

    #[inline(always)]
    unsafe fn resume_rows<'s, K: Kernels>(
        &mut self,
        kernels: K,
        frame: *mut ContainerFrame,
        pen: Pen<'s>,
    ) -> Result<Pen<'s>, JsonStop> {
        if STYLED {
            return Err(JsonStop::Changed); // rows were converted to dicts
        }
        // SAFETY: the caller guarantees the requirements.
        unsafe { JsonFormat::of(&mut self.0).write_rows(kernels, frame, pen) }
    }

    #[inline(always)]
    fn leave<'s>(
        &mut self,
        frame: *const ContainerFrame,
        has_members: bool,
        is_due: bool,
        mut pen: Pen<'s>,
    ) -> Result<Pen<'s>, JsonStop> {
        // SAFETY: the innermost frame, as the caller guarantees.
        let form = unsafe { (*frame).form };
        if form == ContainerForm::Held {
            return Ok(pen);
        }
        if STYLED {
            return self.0.end_styled(has_members, ends(form)[1], pen);
        }
        if is_due {
            return Err(JsonStop::Changed); // a member was removed while space was reserved
        }
        if form == ContainerForm::Columns {
            end_object(&mut pen);
        }
        // SAFETY: a comma was put after each member, and no space was made since.
        unsafe { pen.set_at(pen.at().sub(1)) };
        pen = self.0.ensure_space(pen, 2)?;
        pen.put_short(&[ends(form)[1], b','], 2);
        Ok(pen)
    }

    fn changed() -> JsonStop {
        JsonStop::Changed
    }
}

fn put_long(value: i128, pen: &mut Pen<'_>) {
    if value < 0 {
        json::put_i64(value as i64, pen);
    } else {
        json::put_u64(value as u64, pen);
    }
}

impl<'py, const STYLED: bool> JsonFormat<'_, 'py, STYLED> {
    /// Writes a value that is not of a built-in type. Returns the next step for the caller. Python
    /// code may run.
    ///
    /// # Errors
    /// The same errors as [`MemberEncoder::any_value`].
    ///
    /// # Safety
    /// `value` must be alive.
    #[inline(always)]
    unsafe fn value_of_class<'s, K: Kernels>(
        &mut self,
        kernels: K,
        value: *mut ffi::PyObject,
        mut pen: Pen<'s>,
    ) -> Result<(Pen<'s>, JsonNext<'py>), JsonStop> {
        let style = self.style;
        let recent = &mut self.0.shared.recent;
        // SAFETY: alive, as the caller guarantees; no code has run since `recent` was none.
        let native = unsafe {
            if put_standard::put_temporal(value, &style.natives, recent, &mut pen) {
                return Ok((pen, JsonNext::Done));
            }
            standard_types::read(value, &style.natives, recent)
        };
        match native {
            Native::Contents(contents) => return Ok((pen, JsonNext::Contents(contents))),
            Native::Instead(instead)
                // SAFETY: alive as long as the member of the enumeration that has it.
                if unsafe { builtin_types::kind(instead) } != ObjectKind::Other =>
            {
                return Ok((pen, JsonNext::Instead(instead)));
            }
            Native::Fields(class) if !(STYLED && style.sort_keys) => {
                self.0.shared.found = class;
                // SAFETY: an instance of that class.
                pen = unsafe { self.enter(kernels, value, ObjectKind::Fields, pen)? };
                return Ok((pen, JsonNext::Members));
            }
            _ => {}
        }
        if put_standard::put_scalar(&native, style, &mut pen) {
            return Ok((pen, JsonNext::Done));
        }
        // SAFETY: alive, as the caller guarantees; an array, by its class.
        unsafe {
            match native {
                Native::Array => self.large(kernels, value, pen),
                _ => self.other(value, pen),
            }
        }
    }

    /// Writes a list, tuple, `dict` or dataclass instance. Pushes frames for members that remain.
    ///
    /// # Errors
    /// [`JsonStop::TooDeep`] above the maximum depth, or an exception of Python code.
    ///
    /// # Safety
    /// The same requirements as for [`MemberEncoder::any_value`].
    #[inline(always)]
    pub(super) unsafe fn enter<'s, K: Kernels>(
        &mut self,
        kernels: K,
        value: *mut ffi::PyObject,
        kind: ObjectKind,
        mut pen: Pen<'s>,
    ) -> Result<Pen<'s>, JsonStop> {
        self.check_depth(value)?;
        // SAFETY: the caller guarantees the requirements.
        unsafe {
            let is_sorted_in_list = !self.enters(kind)
                && dict::len(value) != 0
                && !(kind == ObjectKind::Dict && self.sorts_in_place(value));
            if is_sorted_in_list {
                pen = self.enter_sorted(value, pen)?;
                pen.put_byte(b'{');
                return Ok(pen);
            }
            let tag = pen.at();
            Ok(containers::enter(kernels, self, value, kind, tag, pen))
        }
    }
}
