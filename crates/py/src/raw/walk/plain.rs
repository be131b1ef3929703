//! The loop where all options are as they are by default.

use onecopy_text::convert::Kernels;
use onecopy_text::{Pen, Put};
use pyo3::ffi;

use super::ahead;
use super::frames::Form;
use super::inner::{self, LEVELS, Why};
use super::native::{self, Native};
use super::object::{self, Kind};
use super::step::{Step, constants, scalar, short_key, slow, step};
use super::{Next, ROOM, Shape, Stop, Walk};
use super::{classes, dict};

/// Walks and writes.
///
/// # Safety
/// Attached as long as the walk lives; the caller holds `root`.
#[inline(always)]
pub(super) unsafe fn run<K: Kernels>(
    kernels: K,
    walk: &mut Walk<'_, '_>,
    root: *mut ffi::PyObject,
) -> Result<(), Stop> {
    let mut pen = walk.open(ROOM)?;
    let mut value = root;
    // SAFETY: the root is alive, and what is reached from it as long as no Python code runs; where some does, the walk takes
    // references to all that it is inside of, and each container is read anew.
    unsafe {
        let mut kind = object::kind(value);
        // Whether room was made for a member that is yet to be read.
        let mut is_due = false;
        let mut is_value = begin(walk, value, &mut pen);
        'value: loop {
            // As much as a value takes was left where it was looked at: no code runs before it is held, or written.
            match kind {
                _ if !is_value => is_value = true,
                Kind::List | Kind::Tuple => {
                    if ffi::Py_SIZE(value) == 0 {
                        walk.check_depth(value)?;
                        pen.put_short(b"[],", 3);
                    } else {
                        let form = if kind == Kind::List {
                            Form::List
                        } else {
                            Form::Tuple
                        };
                        walk.enter(value, form)?;
                        pen.put_byte(b'[');
                    }
                }
                Kind::Dict => {
                    if dict::len(value) == 0 {
                        walk.check_depth(value)?;
                        pen.put_short(b"{},", 3);
                    } else {
                        walk.enter(value, Form::Dict)?;
                        pen.put_byte(b'{');
                    }
                }
                Kind::Other
                    if native::put_temporal(
                        value,
                        &walk.style.natives,
                        &mut walk.recent,
                        &mut pen,
                    ) =>
                {
                    pen.put_byte(b',');
                }
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
                            pen.put_short(b"{},", 3);
                        }
                        Native::Fields(class) => {
                            walk.enter_fields(value, classes::own(class))?;
                            pen.put_byte(b'{');
                        }
                        native if native::put_scalar(&native, walk.style, &mut pen) => {
                            pen.put_byte(b',');
                        }
                        native => {
                            let next;
                            (pen, next) = walk.large(kernels, &native, value, pen)?;
                            match next {
                                Next::Done => pen.put_byte(b','),
                                Next::Members | Next::Memory(_) => {}
                                Next::Instead(instead) => {
                                    value = instead;
                                    kind = object::kind(value);
                                    continue 'value;
                                }
                            }
                        }
                    }
                }
                _ => match scalar(kernels, walk, kind, value, &mut pen) {
                    Step::Done | Step::Constant => {}
                    Step::Slow(kind) | Step::Large(kind) => {
                        pen = slow(kernels, walk, kind, value, pen)?;
                    }
                },
            }
            // The rest of the innermost container, and of those around it. More room is made before a member is looked at: Python
            // code may run for it, and then all is read anew.
            'members: loop {
                let Some(frame) = walk.frames.last_mut() else {
                    // The last comma.
                    pen.set_at(pen.at().sub(1));
                    walk.close(&pen);
                    return Ok(());
                };
                let frame: *mut _ = frame;
                let (container, form) = ((*frame).object, (*frame).form);
                match form {
                    Form::List | Form::Tuple => {
                        let items = object::items(container, form == Form::List);
                        let mut at = (*frame).at.unsigned_abs();
                        while at < items.len() {
                            if pen.room() < ROOM {
                                pen = walk.grow(pen, ROOM)?;
                                is_due = true;
                                continue 'members;
                            }
                            is_due = false;
                            let member = items[at];
                            ahead::fetch_object(items, at);
                            at += 1;
                            (*frame).at = at as isize;
                            match step(kernels, walk, member, &mut pen) {
                                Step::Done => {}
                                Step::Constant => {
                                    at += constants(&items[at..], &mut pen);
                                    (*frame).at = at as isize;
                                }
                                Step::Slow(kind) => {
                                    pen = slow(kernels, walk, kind, member, pen)?;
                                    continue 'members;
                                }
                                Step::Large(found) => {
                                    ahead::fetch_rows(items, at);
                                    let base = walk.frames.len();
                                    let levels =
                                        LEVELS.min(walk.style.max_depth.saturating_sub(base));
                                    pen = inner::inside(
                                        kernels,
                                        walk,
                                        member,
                                        found,
                                        at as isize,
                                        levels,
                                        pen,
                                    );
                                    match walk.stopped_at(base) {
                                        Why::Done => {}
                                        Why::Room | Why::Key => continue 'members,
                                        Why::Slow(kind) => {
                                            pen = slow(kernels, walk, kind, walk.rest.value, pen)?;
                                            continue 'members;
                                        }
                                        Why::Large(found) => {
                                            (value, kind) = (walk.rest.value, found);
                                            continue 'value;
                                        }
                                    }
                                }
                            }
                        }
                        pen = leave(walk, is_due, pen, b']')?;
                    }
                    Form::Dict => {
                        if dict::len(container) != (*frame).n {
                            return Err(Stop::Changed);
                        }
                        let entries = dict::entries(container);
                        loop {
                            let before = (*frame).at;
                            let mut at = before;
                            let Some((key, mut member)) = entries.next(container, &mut at) else {
                                break;
                            };
                            if pen.room() < ROOM {
                                pen = walk.grow(pen, ROOM)?;
                                is_due = true;
                                continue 'members;
                            }
                            is_due = false;
                            (*frame).at = at;
                            let is_short = short_key(kernels, walk, key, &mut pen);
                            if !is_short {
                                (pen, member) = walk.key(kernels, frame, before, key, pen)?;
                                pen.put_byte(b':');
                            }
                            match step(kernels, walk, member, &mut pen) {
                                Step::Done | Step::Constant if is_short => {}
                                Step::Done | Step::Constant => continue 'members,
                                Step::Slow(kind) => {
                                    pen = slow(kernels, walk, kind, member, pen)?;
                                    continue 'members;
                                }
                                Step::Large(found) => {
                                    let base = walk.frames.len();
                                    let levels =
                                        LEVELS.min(walk.style.max_depth.saturating_sub(base));
                                    pen = inner::inside(
                                        kernels, walk, member, found, at, levels, pen,
                                    );
                                    match walk.stopped_at(base) {
                                        Why::Done if is_short => {}
                                        Why::Done | Why::Room | Why::Key => continue 'members,
                                        Why::Slow(kind) => {
                                            pen = slow(kernels, walk, kind, walk.rest.value, pen)?;
                                            continue 'members;
                                        }
                                        Why::Large(found) => {
                                            (value, kind) = (walk.rest.value, found);
                                            continue 'value;
                                        }
                                    }
                                }
                            }
                        }
                        pen = leave(walk, is_due, pen, b'}')?;
                    }
                    Form::Fields => {
                        let class = walk.classes[(*frame).n.unsigned_abs()].clone();
                        let base = walk.frames.len();
                        let levels = LEVELS.min(walk.style.max_depth.saturating_sub(base));
                        let at = (*frame).at;
                        pen = inner::fields(kernels, walk, container, &class, at, levels, pen);
                        match walk.stopped_at(base) {
                            Why::Done => pen = leave(walk, false, pen, b'}')?,
                            Why::Room => {
                                pen = walk.grow(pen, ROOM)?;
                                continue 'members;
                            }
                            // The key is one of a container inside of the instance.
                            Why::Key if walk.frames.len() > base => continue 'members,
                            Why::Key => {
                                let found;
                                (pen, found) = walk.field(kernels, frame, pen)?;
                                match found {
                                    Some(found) => {
                                        value = found;
                                        kind = object::kind(value);
                                        continue 'value;
                                    }
                                    None => pen = leave(walk, false, pen, b'}')?,
                                }
                            }
                            Why::Slow(kind) => {
                                pen = slow(kernels, walk, kind, walk.rest.value, pen)?;
                                continue 'members;
                            }
                            Why::Large(found) => {
                                (value, kind) = (walk.rest.value, found);
                                continue 'value;
                            }
                        }
                    }
                    Form::Pairs => {
                        let at = (*frame).at.unsigned_abs();
                        // The list is ours alone: it and its items stay, whatever runs.
                        if let Some(&[key, member]) = object::items(container, true).get(at..at + 2)
                        {
                            (*frame).at += 2;
                            pen = walk.any_text(kernels, key, pen)?;
                            pen.put_byte(b':');
                            value = member;
                            kind = object::kind(value);
                            continue 'value;
                        }
                        pen = leave(walk, is_due, pen, b'}')?;
                    }
                    Form::Rows => {
                        let items = object::items(container, (*frame).n != 0);
                        let at = (*frame).at.unsigned_abs();
                        if at < items.len() {
                            if pen.room() < ROOM {
                                pen = walk.grow(pen, ROOM)?;
                                is_due = true;
                                continue 'members;
                            }
                            is_due = false;
                            ahead::fetch_object(items, at);
                            ahead::fetch_rows(items, at);
                            (*frame).at += 1;
                            walk.enter_row(items[at], at)?;
                            continue 'members;
                        }
                        pen = leave(walk, is_due, pen, b']')?;
                    }
                    Form::Row => {
                        let (Shape::Row(keys) | Shape::Rows(keys) | Shape::Columns(keys)) =
                            walk.shape
                        else {
                            return Err(Stop::Changed);
                        };
                        let items = object::items(container, (*frame).n != 0);
                        if items.len() != keys.len() {
                            return Err(Stop::Changed);
                        }
                        let mut at = (*frame).at.unsigned_abs();
                        let room = ROOM + keys.room_bytes();
                        while at < items.len() {
                            if pen.room() < room {
                                pen = walk.grow(pen, room)?;
                                is_due = true;
                                continue 'members;
                            }
                            is_due = false;
                            let member = items[at];
                            keys.put_behind_comma(at, &mut pen);
                            at += 1;
                            (*frame).at = at as isize;
                            match step(kernels, walk, member, &mut pen) {
                                Step::Done | Step::Constant => {}
                                Step::Slow(kind) => {
                                    pen = slow(kernels, walk, kind, member, pen)?;
                                    continue 'members;
                                }
                                Step::Large(found) => {
                                    (value, kind) = (member, found);
                                    continue 'value;
                                }
                            }
                        }
                        pen = leave(walk, is_due, pen, b'}')?;
                    }
                    Form::Columns => {
                        let Shape::Columns(keys) = walk.shape else {
                            return Err(Stop::Changed);
                        };
                        let at = (*frame).at.unsigned_abs();
                        let columns = object::items(container, false);
                        let (row, column) = (at / columns.len(), at % columns.len());
                        if row < (*frame).n.unsigned_abs() {
                            if column == 0 && at > 0 {
                                end_object(&mut pen);
                            }
                            // The caller holds the columns, whatever runs.
                            pen = walk.room(pen, ROOM + keys.room_bytes())?;
                            let of = columns[column];
                            let items = object::items(of, object::kind(of) == Kind::List);
                            value = *items.get(row).ok_or(Stop::Row { index: row })?;
                            keys.put_behind_comma(column, &mut pen);
                            (*frame).at += 1;
                            kind = object::kind(value);
                            continue 'value;
                        }
                        end_object(&mut pen);
                        pen = leave(walk, false, pen, b']')?;
                    }
                    Form::Held => {}
                }
                if walk.frames.pop() {
                    walk.keys.forget();
                }
            }
        }
    }
}

/// Goes inside of what is no value itself, as the shape says; whether there is a value to write.
///
/// # Safety
/// `root` is alive, and of the shape.
unsafe fn begin(walk: &mut Walk<'_, '_>, root: *mut ffi::PyObject, pen: &mut Pen<'_>) -> bool {
    // SAFETY: a list or tuple where the shape says so, held by the caller.
    unsafe {
        let is_list = ffi::PyList_Check(root) != 0;
        match walk.shape {
            Shape::Value => return true,
            Shape::Row(_) => walk.frames.push(root, Form::Row, isize::from(is_list)),
            Shape::Rows(_) => {
                pen.put_byte(b'[');
                walk.frames.push(root, Form::Rows, isize::from(is_list));
            }
            Shape::Columns(_) => {
                pen.put_byte(b'[');
                let first = object::items(root, false)[0];
                walk.frames.push(root, Form::Columns, ffi::Py_SIZE(first));
            }
        }
    }
    false
}

/// The end of an object, in the place of the last comma, and the comma behind it.
#[inline(always)]
fn end_object(pen: &mut Pen<'_>) {
    // SAFETY: behind each member a comma was put, and no room was made since.
    unsafe { pen.set_at(pen.at().sub(1)) };
    pen.put_short(b"},", 2);
}

/// The end of a container of at least one member, in the place of the last comma, and the comma behind it.
#[inline(always)]
fn leave<'s>(
    walk: &mut Walk<'_, '_>,
    is_due: bool,
    mut pen: Pen<'s>,
    end: u8,
) -> Result<Pen<'s>, Stop> {
    if is_due {
        return Err(Stop::Changed); // there was a member before the room was made
    }
    // SAFETY: behind each member a comma was put, and no room was made since.
    unsafe { pen.set_at(pen.at().sub(1)) };
    pen = walk.room(pen, 2)?;
    pen.put_short(&[end, b','], 2);
    Ok(pen)
}
