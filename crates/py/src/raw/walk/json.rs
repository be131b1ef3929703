//! JSON as a format of the loop over members.

use std::ops::{Deref, DerefMut};

use onecopy_text::convert::Kernels;
use onecopy_text::{Pen, Put};
use onecopy_wire::json;
use pyo3::ffi;

use super::format::Format;
use super::frames::{Form, Frame};
use super::members::{LEVELS, Reason, container};
use super::native::{self, Native};
use super::object::{self, Kind};
use super::rows::end_object;
use super::shared::Shared;
use super::step::{self, Step};
use super::{Next, ROOM, Stop, Walk, dict};

/// An encoder of JSON: with all options as they are by default, or with any (`STYLED`).
#[repr(transparent)]
pub(super) struct Json<'a, 'py, const STYLED: bool>(Walk<'a, 'py>);

impl<'a, 'py, const STYLED: bool> Json<'a, 'py, STYLED> {
    #[inline(always)]
    pub(super) fn of<'w>(walk: &'w mut Walk<'a, 'py>) -> &'w mut Self {
        // SAFETY: of the same layout, which holds nothing else.
        unsafe { &mut *std::ptr::from_mut(walk).cast::<Self>() }
    }
}

impl<'a, 'py, const STYLED: bool> Deref for Json<'a, 'py, STYLED> {
    type Target = Walk<'a, 'py>;

    #[inline(always)]
    fn deref(&self) -> &Walk<'a, 'py> {
        &self.0
    }
}

impl<const STYLED: bool> DerefMut for Json<'_, '_, STYLED> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.0
    }
}

/// The bytes around the members of a container.
fn ends(form: Form) -> [u8; 2] {
    match form {
        Form::List | Form::Tuple | Form::Rows | Form::Columns => *b"[]",
        _ => *b"{}",
    }
}

impl<'py, const STYLED: bool> Format<'py> for Json<'_, 'py, STYLED> {
    type Stop = Stop;
    type Index = ();

    #[inline(always)]
    fn shared(&mut self) -> &mut Shared<'py> {
        &mut self.0.shared
    }

    #[inline(always)]
    fn has_space(&self, levels: usize, key_bytes: usize, pen: &Pen<'_>) -> bool {
        let line_bytes = if STYLED { self.line_bytes(levels) } else { 0 };
        pen.room() >= ROOM + key_bytes + line_bytes
    }

    #[inline(always)]
    fn has_space_to_end(&self, levels: usize, pen: &Pen<'_>) -> bool {
        !STYLED || pen.room() >= ROOM + self.line_bytes(levels)
    }

    fn grow<'s>(&mut self, pen: Pen<'s>) -> Result<Pen<'s>, Stop> {
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
        // SAFETY: the duty of the caller.
        let is_put = unsafe { step::short_key::<K, STYLED>(kernels, &mut self.0, key, pen) };
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
        // SAFETY: the duty of the caller.
        unsafe { step::step::<K, STYLED>(kernels, &mut self.0, value, pen) }
    }

    #[inline(always)]
    unsafe fn constants(&mut self, items: &[*mut ffi::PyObject], pen: &mut Pen<'_>) -> isize {
        if STYLED {
            return 0;
        }
        // SAFETY: the duty of the caller.
        unsafe { step::constants(items, pen) as isize }
    }

    #[inline(always)]
    fn enters(&self, kind: Kind) -> bool {
        !STYLED
            || match kind {
                Kind::Dict | Kind::Fields => !self.style.sort_keys,
                Kind::Array => self.style.indent.is_none(),
                _ => true,
            }
    }

    #[inline(always)]
    fn writes_private_fields(&self) -> bool {
        self.style.natives.private_fields
    }

    #[inline(always)]
    fn put_empty(&mut self, form: Form, _tag: *mut u8, pen: &mut Pen<'_>) {
        let [start, end] = ends(form);
        pen.put_short(&[start, end, b','], 3);
    }

    #[inline(always)]
    fn begin(&mut self, form: Form, _tag: *mut u8, pen: &mut Pen<'_>) -> *mut u8 {
        pen.put_byte(ends(form)[0]);
        std::ptr::null_mut()
    }

    #[inline(always)]
    unsafe fn end(&mut self, form: Form, _start: *mut u8, levels: usize, pen: &mut Pen<'_>) {
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
        pen: &mut Pen<'_>,
    ) -> bool {
        // SAFETY: the duty of the caller.
        unsafe { self.0.small_array(kernels, value, n_dims, pen) }
    }

    #[inline(never)]
    unsafe fn any_key<'s, K: Kernels>(
        &mut self,
        kernels: K,
        mut pen: Pen<'s>,
    ) -> Result<Pen<'s>, Stop> {
        let Some(frame) = self.frames.last_mut() else {
            return Err(Stop::Changed);
        };
        let frame: *mut Frame = frame;
        // SAFETY: the frame stays where it is until one is pushed; its object is alive. Code may
        // run where space is made: the key is looked at after that.
        unsafe {
            let (container, at) = ((*frame).object, (*frame).at);
            let levels = self.levels();
            let line_bytes = if STYLED { self.line_bytes(levels) } else { 0 };
            pen = self.0.room(pen, ROOM + line_bytes)?;
            self.before_member(at == 0, levels, &mut pen);
            let value = match (*frame).form {
                Form::Dict => {
                    let mut next = at;
                    let found = dict::entries(container).next(container, &mut next);
                    let (key, _) = found.ok_or(Stop::Changed)?;
                    (*frame).at = next;
                    let value;
                    (pen, value) = self.0.key(kernels, frame, at, key, pen)?;
                    pen = self.colon(pen);
                    value
                }
                Form::Pairs => {
                    let from = at.cast_unsigned();
                    let &[key, value] = object::items(container, true)
                        .get(from..from + 2)
                        .ok_or(Stop::Changed)?
                    else {
                        return Err(Stop::Changed);
                    };
                    (*frame).at += 2;
                    pen = self.any_text(kernels, key, pen)?;
                    pen = self.colon(pen);
                    value
                }
                Form::Fields => {
                    let value;
                    (pen, value) = self.0.field(kernels, frame, pen)?;
                    value
                }
                Form::Columns => {
                    let index = at.cast_unsigned() / object::items(container, false).len();
                    return Err(Stop::Row { index });
                }
                _ => return Err(Stop::Changed),
            };
            let tag = pen.at();
            self.any_value(kernels, value, object::kind(value), tag, pen)
        }
    }

    #[inline(never)]
    unsafe fn any_value<'s, K: Kernels>(
        &mut self,
        kernels: K,
        mut value: *mut ffi::PyObject,
        mut kind: Kind,
        _tag: *mut u8,
        mut pen: Pen<'s>,
    ) -> Result<Pen<'s>, Stop> {
        let style = self.style;
        // SAFETY: alive, and of its kind, by the caller's word, or held by a frame.
        unsafe {
            loop {
                match kind {
                    Kind::List | Kind::Tuple | Kind::Dict => {
                        return self.enter(kernels, value, kind, pen);
                    }
                    Kind::Str => pen = self.any_text(kernels, value, pen)?,
                    Kind::Int => match object::small_int(value) {
                        Some(value) if style.exact_ints || value.unsigned_abs() < 1 << 53 => {
                            json::put_i64(value, &mut pen);
                        }
                        _ => (pen, _) = self.other(value, pen)?,
                    },
                    Kind::None => pen.put_short(b"null", 4),
                    Kind::Bool => json::put_bool(value == ffi::Py_True(), &mut pen),
                    Kind::Float => {
                        let value = object::float(value);
                        json::put_f64(value, style.nan, &mut pen).map_err(|_| Stop::NonFinite)?;
                    }
                    Kind::Other | Kind::Fields | Kind::Array => {
                        let recent = &mut self.0.shared.recent;
                        if native::put_temporal(value, &style.natives, recent, &mut pen) {
                            break;
                        }
                        match native::read(value, &style.natives, recent) {
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
                                self.check_depth(value)?;
                                pen.put_short(b"{}", 2);
                            }
                            Native::Fields(class) if !(STYLED && style.sort_keys) => {
                                self.0.shared.found = class;
                                return self.enter(kernels, value, Kind::Fields, pen);
                            }
                            native if native::put_scalar(&native, style, &mut pen) => {}
                            native => {
                                let next;
                                (pen, next) = self.large(kernels, &native, value, pen)?;
                                match next {
                                    Next::Done => {}
                                    Next::Members | Next::Memory(_) => return Ok(pen),
                                    Next::Instead(instead) => {
                                        value = instead;
                                        kind = object::kind(value);
                                        continue;
                                    }
                                }
                            }
                        }
                    }
                }
                break;
            }
        }
        if !STYLED {
            pen = self.0.room(pen, ROOM)?;
            pen.put_byte(b',');
        }
        Ok(pen)
    }

    #[inline(always)]
    unsafe fn are_rows_written(&self, frame: *const Frame) -> Result<bool, Stop> {
        // SAFETY: the duty of the caller.
        unsafe { self.0.are_rows_written(frame) }
    }

    #[inline(always)]
    unsafe fn resume_rows<'s, K: Kernels>(
        &mut self,
        kernels: K,
        frame: *mut Frame,
        pen: Pen<'s>,
    ) -> Result<Pen<'s>, Stop> {
        if STYLED {
            return Err(Stop::Changed); // rows have been made objects before
        }
        // SAFETY: the duty of the caller.
        unsafe { Json::of(&mut self.0).write_rows(kernels, frame, pen) }
    }

    #[inline(always)]
    fn leave<'s>(
        &mut self,
        frame: *const Frame,
        has_members: bool,
        is_due: bool,
        mut pen: Pen<'s>,
    ) -> Result<Pen<'s>, Stop> {
        // SAFETY: the innermost frame, by the word of who called.
        let form = unsafe { (*frame).form };
        if form == Form::Held {
            return Ok(pen);
        }
        if STYLED {
            return self.0.end_styled(has_members, ends(form)[1], pen);
        }
        if is_due {
            return Err(Stop::Changed); // there was a member before the space was made
        }
        if form == Form::Columns {
            end_object(&mut pen);
        }
        // SAFETY: a comma was put after each member, and no space was made since.
        unsafe { pen.set_at(pen.at().sub(1)) };
        pen = self.0.room(pen, 2)?;
        pen.put_short(&[ends(form)[1], b','], 2);
        Ok(pen)
    }

    fn changed() -> Stop {
        Stop::Changed
    }
}

impl<'py, const STYLED: bool> Json<'_, 'py, STYLED> {
    /// Goes inside of a list, tuple, `dict` or dataclass, where the depth allows it.
    ///
    /// # Errors
    /// If it does not, and what code raises.
    ///
    /// # Safety
    /// As [`Format::any_value`].
    #[inline(always)]
    pub(super) unsafe fn enter<'s, K: Kernels>(
        &mut self,
        kernels: K,
        value: *mut ffi::PyObject,
        kind: Kind,
        mut pen: Pen<'s>,
    ) -> Result<Pen<'s>, Stop> {
        self.check_depth(value)?;
        // SAFETY: the duties are the caller's.
        unsafe {
            if !self.enters(kind) && dict::len(value) != 0 {
                pen = self.enter_sorted(value, pen)?;
                pen.put_byte(b'{');
                return Ok(pen);
            }
            let levels = self.levels();
            let at = self.frames.last_mut().map_or(0, |frame| frame.at);
            let n_frames = self.frames.len();
            let start = pen.at();
            pen = container(kernels, self, value, kind, start, at, levels, pen);
            self.shared().settle(n_frames);
        }
        if self.interruption.reason == Reason::Done {
            self.after_member(&mut pen);
        }
        Ok(pen)
    }
}
