//! The members of lists, tuples and dicts, and of those inside of them, some levels deep: what most of any object is.
//!
//! A container that is written from its first member to its last has no frame. Where more room, any code or a longer step is
//! wanted, all stops: each container that the stop is inside of is given its frame, and the loop in `plain` goes on from there.
//! (That loop has the same steps once more: a list of a hundred thousand numbers or texts is fastest there.)

use onecopy_text::convert::{Kernels, Work};
use onecopy_text::{Pen, Put};
use pyo3::ffi;
use std::rc::Rc;

use super::ahead;
use super::classes::{Class, Fields};
use super::frames::Form;
use super::object::{self, Kind};
use super::step::{Step, short_key, step};
use super::{ROOM, Walk, dict};

/// Levels that are gone into from one frame; each takes stack.
pub(super) const LEVELS: usize = 8;

/// Why the members are not all written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Why {
    /// They are.
    Done,
    /// There is no room for the next.
    Room,
    /// The next key is long, or no `str`.
    Key,
    /// The value takes more than a few instructions.
    Slow(Kind),
    /// The value is a container that is yet to be entered, or of another type.
    Large(Kind),
}

/// Where a container was left.
pub(super) struct Rest {
    pub(super) why: Why,
    /// The value that is yet to be written, where it is for one.
    pub(super) value: *mut ffi::PyObject,
    /// How far the outermost of the containers is gone through, as of a frame; those inside of it have frames.
    pub(super) at: isize,
}

impl Rest {
    pub(super) const fn new() -> Rest {
        Rest {
            why: Why::Done,
            value: std::ptr::null_mut(),
            at: 0,
        }
    }

    #[cold]
    #[inline(never)]
    fn stop(&mut self, why: Why, value: *mut ffi::PyObject, at: isize) {
        *self = Rest { why, value, at };
    }
}

/// The members of a container from `at` on. As work they are written, a comma behind each; [`Walk::rest`] says whether all.
struct Members<'w, 'a, 'py, 's, const IS_DICT: bool> {
    walk: &'w mut Walk<'a, 'py>,
    container: *mut ffi::PyObject,
    form: Form,
    at: isize,
    levels: usize,
    pen: Pen<'s>,
}

impl<'w, 'a, 'py, 's, const IS_DICT: bool> Members<'w, 'a, 'py, 's, IS_DICT> {
    /// # Safety
    /// `container` is alive and of that form, and no code runs before the work is done.
    #[inline(always)]
    unsafe fn new(
        walk: &'w mut Walk<'a, 'py>,
        container: *mut ffi::PyObject,
        form: Form,
        at: isize,
        levels: usize,
        pen: Pen<'s>,
    ) -> Self {
        debug_assert_eq!(IS_DICT, form == Form::Dict);
        Members {
            walk,
            container,
            form,
            at,
            levels,
            pen,
        }
    }

    #[inline(always)]
    fn list<K: Kernels>(self, kernels: K) -> Pen<'s> {
        let Members {
            walk,
            container,
            form,
            at,
            levels,
            mut pen,
        } = self;
        // SAFETY: alive, by the word of who made this, as is all that it holds.
        unsafe {
            let items = object::items(container, form == Form::List);
            let mut at = at.unsigned_abs();
            while at < items.len() {
                if pen.room() < ROOM {
                    walk.rest.stop(Why::Room, std::ptr::null_mut(), at as isize);
                    break;
                }
                let value = items[at];
                ahead::fetch_object(items, at);
                at += 1;
                match step(kernels, walk, value, &mut pen) {
                    Step::Done => {}
                    Step::Slow(kind) => {
                        walk.rest.stop(Why::Slow(kind), value, at as isize);
                        break;
                    }
                    Step::Large(kind) => {
                        ahead::fetch_rows(items, at);
                        pen = inside(kernels, walk, value, kind, at as isize, levels, pen);
                        if walk.rest.why != Why::Done {
                            break;
                        }
                    }
                }
            }
        }
        pen
    }

    #[inline(always)]
    fn dict<K: Kernels>(self, kernels: K) -> Pen<'s> {
        let Members {
            walk,
            container,
            mut at,
            levels,
            pen,
            ..
        } = self;
        // SAFETY: as for lists.
        unsafe {
            let entries = dict::entries(container);
            let next = |at: &mut isize| entries.next(container, at);
            pairs(kernels, walk, &mut at, levels, pen, next)
        }
    }
}

/// Writes keys and values, a comma after each.
///
/// # Safety
/// As [`members`]; `next` returns a key and its value, which is null where there is none, and moves the position that it gets.
#[inline(always)]
unsafe fn pairs<'s, K: Kernels>(
    kernels: K,
    walk: &mut Walk<'_, '_>,
    at: &mut isize,
    levels: usize,
    mut pen: Pen<'s>,
    next: impl Fn(&mut isize) -> Option<(*mut ffi::PyObject, *mut ffi::PyObject)>,
) -> Pen<'s> {
    // SAFETY: alive, by the caller's word.
    unsafe {
        loop {
            let before = *at;
            let Some((key, value)) = next(at) else {
                break;
            };
            if pen.room() < ROOM {
                walk.rest.stop(Why::Room, std::ptr::null_mut(), before);
                break;
            }
            if value.is_null() || !short_key(kernels, walk, key, &mut pen) {
                walk.rest.stop(Why::Key, std::ptr::null_mut(), before);
                break;
            }
            match step(kernels, walk, value, &mut pen) {
                Step::Done => {}
                Step::Slow(kind) => {
                    walk.rest.stop(Why::Slow(kind), value, *at);
                    break;
                }
                Step::Large(kind) => {
                    pen = inside(kernels, walk, value, kind, *at, levels, pen);
                    if walk.rest.why != Why::Done {
                        break;
                    }
                }
            }
        }
    }
    pen
}

impl<'s, const IS_DICT: bool> Work for Members<'_, '_, '_, 's, IS_DICT> {
    type Output = Pen<'s>;

    #[inline(always)]
    fn run<K: Kernels>(self, kernels: K) -> Pen<'s> {
        if IS_DICT {
            self.dict(kernels)
        } else {
            self.list(kernels)
        }
    }
}

impl Walk<'_, '_> {
    /// Why a member of the innermost of `n` frames was left, and no more since; brings the frames in order.
    #[inline(always)]
    pub(super) fn stopped_at(&mut self, n: usize) -> Why {
        let why = std::mem::replace(&mut self.rest.why, Why::Done);
        if why != Why::Done {
            self.frames.left_at(n, self.rest.at);
        }
        why
    }
}

/// Writes the members.
///
/// # Safety
/// As [`Members::new`].
#[inline(always)]
unsafe fn members<'s, K: Kernels>(
    kernels: K,
    walk: &mut Walk<'_, '_>,
    container: *mut ffi::PyObject,
    form: Form,
    at: isize,
    levels: usize,
    pen: Pen<'s>,
) -> Pen<'s> {
    // SAFETY: the duty of the caller.
    unsafe {
        if form == Form::Dict {
            kernels.call(Members::<true>::new(walk, container, form, at, levels, pen))
        } else {
            kernels.call(Members::<false>::new(
                walk, container, form, at, levels, pen,
            ))
        }
    }
}

/// Writes a container that is a member of another one, which is gone through up to `at`.
///
/// # Safety
/// As [`members`]; the pen has a third of [`ROOM`].
#[inline(always)]
pub(super) unsafe fn inside<'s, K: Kernels>(
    kernels: K,
    walk: &mut Walk<'_, '_>,
    value: *mut ffi::PyObject,
    kind: Kind,
    at: isize,
    levels: usize,
    mut pen: Pen<'s>,
) -> Pen<'s> {
    let form = match kind {
        Kind::List => Form::List,
        Kind::Tuple => Form::Tuple,
        Kind::Dict => Form::Dict,
        // SAFETY: the duties are the caller's.
        Kind::Fields => return unsafe { inside_fields(kernels, walk, value, at, levels, pen) },
        // SAFETY: the duties are the caller's.
        Kind::Array => return unsafe { inside_array(kernels, walk, value, at, levels, pen) },
        _ => Form::Held,
    };
    if levels == 0 || form == Form::Held {
        walk.rest.stop(Why::Large(kind), value, at);
        return pen;
    }
    // SAFETY: alive, by the caller's word. Behind each member a comma was put; each level takes one byte more than its members, of
    // the room that the last of them has left.
    unsafe {
        let (n, ends) = match form {
            Form::Dict => (dict::len(value), *b"{},"),
            _ => (ffi::Py_SIZE(value), *b"[],"),
        };
        if n == 0 {
            pen.put_short(&ends, 3);
            return pen;
        }
        pen.put_byte(ends[0]);
        pen = members(kernels, walk, value, form, 0, levels - 1, pen);
        if walk.rest.why != Why::Done {
            walk.frames.push_at(value, form, n, walk.rest.at);
            walk.rest.at = at;
            return pen;
        }
        pen.set_at(pen.at().sub(1));
        pen.put_short(&[ends[1], b','], 2);
    }
    pen
}

/// The fields of an instance of a dataclass from `at` on. As work they are written, as the members of [`Members`].
struct FieldMembers<'w, 'a, 'py, 's> {
    walk: &'w mut Walk<'a, 'py>,
    object: *mut ffi::PyObject,
    fields: &'w Fields,
    at: isize,
    levels: usize,
    pen: Pen<'s>,
}

impl<'s> Work for FieldMembers<'_, '_, '_, 's> {
    type Output = Pen<'s>;

    #[inline(always)]
    fn run<K: Kernels>(self, kernels: K) -> Pen<'s> {
        let FieldMembers {
            walk,
            object,
            fields,
            mut at,
            levels,
            pen,
        } = self;
        let private = walk.style.natives.private_fields;
        // SAFETY: alive, and of the class that has these fields, by the word of who made this.
        unsafe {
            let next = |at: &mut isize| fields.next(object, private, at);
            pairs(kernels, walk, &mut at, levels, pen, next)
        }
    }
}

/// Writes the fields of an instance of a dataclass from `at` on; [`Walk::rest`] says whether all. Where it is not of that class any more,
/// none is written.
///
/// # Safety
/// `object` is alive, and no code runs before all is done.
pub(super) unsafe fn fields<'s, K: Kernels>(
    kernels: K,
    walk: &mut Walk<'_, '_>,
    object: *mut ffi::PyObject,
    class: &Rc<Class>,
    at: isize,
    levels: usize,
    pen: Pen<'s>,
) -> Pen<'s> {
    // SAFETY: alive, by the caller's word.
    let is_of_it = unsafe { class.is_of(object) };
    let Some(fields) = class.fields().filter(|_| is_of_it) else {
        walk.rest.stop(Why::Key, std::ptr::null_mut(), at);
        return pen;
    };
    kernels.call(FieldMembers {
        walk,
        object,
        fields,
        at,
        levels,
        pen,
    })
}

/// As [`inside`], of an array of NumPy's, which is written if there is space for all of it.
///
/// # Safety
/// As [`inside`].
#[inline(never)]
unsafe fn inside_array<'s, K: Kernels>(
    kernels: K,
    walk: &mut Walk<'_, '_>,
    value: *mut ffi::PyObject,
    at: isize,
    levels: usize,
    mut pen: Pen<'s>,
) -> Pen<'s> {
    // SAFETY: alive, by the caller's word, and found to be an array.
    if unsafe { !walk.small_array(kernels, value, levels, &mut pen) } {
        walk.rest.stop(Why::Large(Kind::Array), value, at);
    }
    pen
}

/// As [`inside`], of the instance of a dataclass that was found last.
///
/// # Safety
/// As [`inside`].
#[inline(never)]
unsafe fn inside_fields<'s, K: Kernels>(
    kernels: K,
    walk: &mut Walk<'_, '_>,
    value: *mut ffi::PyObject,
    at: isize,
    levels: usize,
    mut pen: Pen<'s>,
) -> Pen<'s> {
    let Some((class, n)) = walk.found.take().filter(|_| levels > 0) else {
        walk.rest.stop(Why::Large(Kind::Fields), value, at);
        return pen;
    };
    if n == 0 {
        pen.put_short(b"{},", 3);
        return pen;
    }
    pen.put_byte(b'{');
    // SAFETY: alive, by the caller's word, and found to be of this class; the ends are put as in `inside`.
    unsafe {
        let Some(fields) = class.fields() else {
            return pen;
        };
        pen = kernels.call(FieldMembers {
            walk,
            object: value,
            fields,
            at: 0,
            levels: levels - 1,
            pen,
        });
        if walk.rest.why != Why::Done {
            let index = walk.index_of_class(class);
            walk.frames
                .push_at(value, Form::Fields, index, walk.rest.at);
            walk.rest.at = at;
            return pen;
        }
        pen.set_at(pen.at().sub(1));
        pen.put_short(b"},", 2);
    }
    pen
}
