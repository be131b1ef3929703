//! The loop that knows all options: sorted keys, indentation, ASCII alone.

use onecopy_text::convert::Kernels;
use onecopy_text::{Pen, Put};
use onecopy_wire::json;
use pyo3::ffi;
use pyo3::prelude::*;

use super::frames::Form;
use super::native::{self, Native};
use super::object::{self, Kind};
use super::{Next, ROOM, Stop, Walk};
use super::{classes, dict};
use crate::raw::ending;

/// Walks and writes.
///
/// # Safety
/// Attached as long as the walk lives; the caller holds `root`.
#[inline(never)]
pub(super) unsafe fn run<K: Kernels>(
    kernels: K,
    walk: &mut Walk<'_, '_>,
    root: *mut ffi::PyObject,
) -> Result<(), Stop> {
    let mut pen = walk.open(ROOM)?;
    let mut value = root;
    // SAFETY: as in the plain loop.
    unsafe {
        let mut kind = object::kind(value);
        'value: loop {
            match kind {
                Kind::Str => pen = walk.any_text(kernels, value, pen)?,
                Kind::Int => match object::small_int(value) {
                    Some(value) if walk.style.exact_ints || value.unsigned_abs() < 1 << 53 => {
                        json::put_i64(value, &mut pen);
                    }
                    _ => (pen, _) = walk.other(value, pen)?,
                },
                Kind::None => pen.put_short(b"null", 4),
                Kind::Bool => json::put_bool(value == ffi::Py_True(), &mut pen),
                Kind::Float => {
                    let value = object::float(value);
                    json::put_f64(value, walk.style.nan, &mut pen).map_err(|_| Stop::NonFinite)?;
                }
                Kind::List | Kind::Tuple if ffi::Py_SIZE(value) == 0 => {
                    walk.check_depth(value)?;
                    pen.put_short(b"[]", 2);
                }
                Kind::Dict if dict::len(value) == 0 => {
                    walk.check_depth(value)?;
                    pen.put_short(b"{}", 2);
                }
                kind @ (Kind::List | Kind::Tuple) => {
                    let form = if kind == Kind::List {
                        Form::List
                    } else {
                        Form::Tuple
                    };
                    walk.enter(value, form)?;
                    pen.put_byte(b'[');
                }
                Kind::Dict if walk.style.sort_keys => {
                    pen = walk.enter_sorted(value, pen)?;
                    pen.put_byte(b'{');
                }
                Kind::Dict => {
                    walk.enter(value, Form::Dict)?;
                    pen.put_byte(b'{');
                }
                Kind::Other
                    if native::put_temporal(
                        value,
                        &walk.style.natives,
                        &mut walk.recent,
                        &mut pen,
                    ) => {}
                Kind::Other | Kind::Fields | Kind::Array => {
                    let natives = &walk.style.natives;
                    match native::read(value, natives, &mut walk.recent) {
                        Native::Contents(contents) => {
                            kind = contents;
                            continue 'value;
                        }
                        Native::Instead(instead) if object::kind(instead) != Kind::Other => {
                            value = instead;
                            kind = object::kind(value);
                            continue 'value;
                        }
                        Native::NoFields => {
                            walk.check_depth(value)?;
                            pen.put_short(b"{}", 2);
                        }
                        Native::Fields(class) if !walk.style.sort_keys => {
                            walk.enter_fields(value, classes::own(class))?;
                            pen.put_byte(b'{');
                        }
                        native if native::put_scalar(&native, walk.style, &mut pen) => {}
                        native => {
                            let next;
                            (pen, next) = walk.large(kernels, &native, value, pen)?;
                            match next {
                                Next::Done | Next::Members | Next::Memory(_) => {}
                                Next::Instead(instead) => {
                                    value = instead;
                                    kind = object::kind(value);
                                    continue 'value;
                                }
                            }
                        }
                    }
                }
            }
            loop {
                let Some(frame) = walk.frames.last_mut() else {
                    walk.close(&pen);
                    return Ok(());
                };
                let frame: *mut _ = frame;
                let (container, form, at) = ((*frame).object, (*frame).form, (*frame).at);
                // What comes before a member may make room, for which any code may run: the member is looked at behind it.
                match form {
                    Form::List | Form::Tuple => {
                        let is_list = form == Form::List;
                        if at < ffi::Py_SIZE(container) {
                            pen = walk.before_member(at > 0, pen)?;
                            let items = object::items(container, is_list);
                            value = *items.get(at.unsigned_abs()).ok_or(Stop::Changed)?;
                            (*frame).at += 1;
                            kind = object::kind(value);
                            continue 'value;
                        }
                        pen = walk.end(at > 0, b']', pen)?;
                    }
                    Form::Dict => {
                        let mut next = at;
                        let found = dict::entries(container).next(container, &mut next);
                        if dict::len(container) != (*frame).n {
                            return Err(Stop::Changed);
                        }
                        if found.is_some() {
                            pen = walk.before_member(at > 0, pen)?;
                            let mut next = at;
                            let found = dict::entries(container).next(container, &mut next);
                            let (key, _) = found.ok_or(Stop::Changed)?;
                            (*frame).at = next;
                            (pen, value) = walk.key(kernels, frame, at, key, pen)?;
                            pen = walk.colon(pen);
                            kind = object::kind(value);
                            continue 'value;
                        }
                        pen = walk.end(at > 0, b'}', pen)?;
                    }
                    Form::Fields => {
                        let found;
                        (pen, found) = walk.field(kernels, frame, pen)?;
                        if let Some(found) = found {
                            value = found;
                            kind = object::kind(value);
                            continue 'value;
                        }
                        pen = walk.end(at > 0, b'}', pen)?;
                    }
                    Form::Pairs => {
                        let from = at.unsigned_abs();
                        if let Some(&[key, member]) =
                            object::items(container, true).get(from..from + 2)
                        {
                            (*frame).at += 2;
                            pen = walk.before_member(at > 0, pen)?;
                            pen = walk.any_text(kernels, key, pen)?;
                            pen = walk.colon(pen);
                            value = member;
                            kind = object::kind(value);
                            continue 'value;
                        }
                        pen = walk.end(at > 0, b'}', pen)?;
                    }
                    // Rows have been made objects before.
                    Form::Rows | Form::Row | Form::Columns => return Err(Stop::Changed),
                    Form::Held => {}
                }
                if walk.frames.pop() {
                    walk.keys.forget();
                }
            }
        }
    }
}

impl Walk<'_, '_> {
    /// Goes inside of a `dict` whose keys are sorted first.
    ///
    /// # Safety
    /// It is one, and alive.
    unsafe fn enter_sorted<'s>(
        &mut self,
        dict: *mut ffi::PyObject,
        pen: Pen<'s>,
    ) -> Result<Pen<'s>, Stop> {
        self.check_depth(dict)?;
        // SAFETY: alive, by the caller's word; attached.
        let dict = unsafe { Bound::from_borrowed_ptr(self.py(), dict) };
        self.close(&pen);
        self.before_code();
        let pairs = ending::calls(self.py(), || self.others.sorted(&dict))?;
        let n = pairs.len() as isize;
        self.frames.push_owned(pairs.into_any(), Form::Pairs, n);
        self.open(ROOM)
    }

    /// What stands between members, or before the first.
    pub(super) fn before_member<'s>(
        &mut self,
        any: bool,
        mut pen: Pen<'s>,
    ) -> Result<Pen<'s>, Stop> {
        pen = self.room(pen, ROOM)?;
        if any {
            pen.put_byte(b',');
        }
        self.new_line(self.frames.depth(), pen)
    }

    /// The end of a container.
    fn end<'s>(&mut self, any: bool, end: u8, mut pen: Pen<'s>) -> Result<Pen<'s>, Stop> {
        pen = self.room(pen, ROOM)?;
        if any {
            pen = self.new_line(self.frames.depth() - 1, pen)?;
        }
        pen.put_byte(end);
        Ok(pen)
    }

    pub(super) fn colon<'s>(&self, mut pen: Pen<'s>) -> Pen<'s> {
        pen.put_byte(b':');
        if self.style.indent.is_some() {
            pen.put_byte(b' ');
        }
        pen
    }

    fn new_line<'s>(&mut self, depth: usize, mut pen: Pen<'s>) -> Result<Pen<'s>, Stop> {
        let Some(indent) = &self.style.indent else {
            return Ok(pen);
        };
        let style = self.style;
        pen = self.room(pen, depth * indent.len() + 1 + ROOM)?;
        pen.put_byte(b'\n');
        for _ in 0..depth {
            pen.put(style.indent.as_deref().unwrap_or_default());
        }
        Ok(pen)
    }
}
