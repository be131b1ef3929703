//! The loop over the members of a container, whatever the container and the format are.
//!
//! A container that is written from its first member to its last has no frame. Where more space,
//! Python code or a longer step is needed, the loop is interrupted: each container that it is
//! inside of is given its frame, and [`containers`](super::containers) goes on from there.

use onecopy_text::Pen;
use onecopy_text::convert::{Kernels, Work};
use pyo3::ffi;

use super::classes::{self, Fields};
use super::dict;
use super::format::Format;
use super::frames::Form;
use super::object::{self, Kind};
use super::python_members::{DictMembers, FieldMembers, Items, Pairs};
use super::step::Step;

/// Levels of containers that have no frame; each takes stack.
pub(super) const LEVELS: usize = 16;

/// Why the loop over the members was left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reason {
    /// All members are written.
    Done,
    /// There is no space for the next member.
    Space,
    /// The next key is long, or no `str`; or the instance does not have this attribute. Nothing of
    /// the member is written.
    Key,
    /// The value takes more than a few instructions.
    Slow(Kind),
    /// The value is a container that is yet to be entered, or of another type.
    Large(Kind),
}

/// The point at which the loop over the members was left.
pub(super) struct Interruption {
    pub(super) reason: Reason,
    /// The value that is yet to be written, where it is for one.
    pub(super) value: *mut ffi::PyObject,
    /// How far the outermost of the containers is gone through, as of a frame; those inside of it have frames.
    pub(super) at: isize,
    /// The start of the member of that value: of its tag, in formats that have tags.
    pub(super) start: *mut u8,
}

impl Interruption {
    pub(super) const NONE: Interruption = Interruption {
        reason: Reason::Done,
        value: std::ptr::null_mut(),
        at: 0,
        start: std::ptr::null_mut(),
    };

    #[cold]
    #[inline(never)]
    pub(super) fn set(
        &mut self,
        reason: Reason,
        value: *mut ffi::PyObject,
        at: isize,
        start: *mut u8,
    ) {
        *self = Interruption {
            reason,
            value,
            at,
            start,
        };
    }
}

/// The members of one container that is alive, as long as no code runs. A member may have a key,
/// and has no value where that has to be looked up by its key.
pub(super) trait Members: Copy {
    /// The first member at `at` or after it, and moves `at` after it. The key is null if the members have none.
    ///
    /// # Safety
    /// The container is alive and was not changed.
    unsafe fn next(&self, at: &mut isize) -> Option<(*mut ffi::PyObject, *mut ffi::PyObject)>;

    /// Puts the key of the member at `at`; `false`, and nothing put, if that takes more than a few instructions.
    ///
    /// # Safety
    /// As [`Members::next`], which has returned the key; there is space as [`Format::has_space`] says.
    unsafe fn put_key<'py, K: Kernels, F: Format<'py>>(
        &self,
        kernels: K,
        encoder: &mut F,
        key: *mut ffi::PyObject,
        at: isize,
        index: &mut F::Index,
        pen: &mut Pen<'_>,
    ) -> bool;

    /// Space that the keys need besides.
    #[inline(always)]
    fn key_bytes(&self) -> usize {
        0
    }

    /// Fetches objects after the one at `at`, which are written soon.
    #[inline(always)]
    fn prefetch(&self, _at: isize) {}

    /// Fetches the contents of containers after the one before `at`.
    ///
    /// # Safety
    /// As [`Members::next`].
    #[inline(always)]
    unsafe fn prefetch_contents(&self, _at: isize) {}

    /// The items from `at` on, of members that are items of a list or tuple.
    #[inline(always)]
    fn items_from(&self, _at: isize) -> &[*mut ffi::PyObject] {
        &[]
    }
}

/// Writes the members from `at` on; [`Interruption::reason`] says whether all.
///
/// # Safety
/// The container is alive, and no code runs before all is done.
#[inline(always)]
pub(super) unsafe fn write<'py, 's, K: Kernels, F: Format<'py>, M: Members>(
    kernels: K,
    encoder: &mut F,
    members: M,
    mut at: isize,
    levels: usize,
    mut pen: Pen<'s>,
) -> Pen<'s> {
    let mut index = F::index(at);
    // SAFETY: alive, by the caller's word. What was put ends where the pen was before.
    unsafe {
        loop {
            let before = at;
            let Some((key, value)) = members.next(&mut at) else {
                break;
            };
            if !encoder.has_space(levels, members.key_bytes(), &pen) {
                encoder.interrupt(Reason::Space, value, before, pen.at());
                return pen;
            }
            members.prefetch(before);
            let start = pen.at();
            encoder.before_member(before == 0, levels, &mut pen);
            let tag = pen.at();
            if value.is_null()
                || !members.put_key(kernels, encoder, key, before, &mut index, &mut pen)
            {
                pen.set_at(start);
                encoder.interrupt(Reason::Key, value, before, start);
                return pen;
            }
            match encoder.step(kernels, value, tag, &mut pen) {
                Step::Done => {}
                Step::Constant => {
                    at += encoder.constants(members.items_from(at), &mut pen);
                }
                Step::Slow(kind) => {
                    encoder.interrupt(Reason::Slow(kind), value, at, tag);
                    return pen;
                }
                Step::Large(kind) => {
                    members.prefetch_contents(at);
                    pen = container(kernels, encoder, value, kind, tag, at, levels, pen);
                    if encoder.shared().interruption.reason != Reason::Done {
                        return pen;
                    }
                }
            }
            encoder.after_member(&mut pen);
        }
    }
    if !encoder.has_space_to_end(levels, &pen) {
        encoder.interrupt(Reason::Space, std::ptr::null_mut(), at, pen.at());
    }
    pen
}

/// The members of a list or tuple, a `dict`, or of a list of pairs, from `at` on. As work they are
/// written, by a function of its own.
struct WriteMembers<'w, 's, F, const FORM: u8> {
    encoder: &'w mut F,
    container: *mut ffi::PyObject,
    at: isize,
    levels: usize,
    pen: Pen<'s>,
}

impl<'py, 's, F: Format<'py>, const FORM: u8> Work for WriteMembers<'_, 's, F, FORM> {
    type Output = Pen<'s>;

    #[inline(always)]
    fn run<K: Kernels>(self, kernels: K) -> Pen<'s> {
        let WriteMembers {
            encoder,
            container,
            at,
            levels,
            pen,
        } = self;
        // SAFETY: alive and of that form, by the word of `write_form`.
        unsafe {
            if FORM == Form::Dict as u8 {
                let members = DictMembers(dict::entries(container), container);
                write(kernels, encoder, members, at, levels, pen)
            } else if FORM == Form::Pairs as u8 {
                let members = Pairs(object::items(container, true));
                write(kernels, encoder, members, at, levels, pen)
            } else {
                let items = object::items(container, FORM == Form::List as u8);
                write(kernels, encoder, Items(items), at, levels, pen)
            }
        }
    }
}

/// Writes the members of a container of this form from `at` on.
///
/// # Safety
/// As [`write()`]; `container` is of that form.
#[inline(always)]
unsafe fn write_form<'py, 's, K: Kernels, F: Format<'py>, const FORM: u8>(
    kernels: K,
    encoder: &mut F,
    container: *mut ffi::PyObject,
    at: isize,
    levels: usize,
    pen: Pen<'s>,
) -> Pen<'s> {
    kernels.call(WriteMembers::<F, FORM> {
        encoder,
        container,
        at,
        levels,
        pen,
    })
}

/// Writes the members of a list, tuple, `dict` or list of pairs from `at` on.
///
/// # Safety
/// As [`write_form`].
#[inline(always)]
pub(super) unsafe fn write_members<'py, 's, K: Kernels, F: Format<'py>>(
    kernels: K,
    encoder: &mut F,
    container: *mut ffi::PyObject,
    form: Form,
    at: isize,
    levels: usize,
    pen: Pen<'s>,
) -> Pen<'s> {
    const LIST: u8 = Form::List as u8;
    const TUPLE: u8 = Form::Tuple as u8;
    const DICT: u8 = Form::Dict as u8;
    const PAIRS: u8 = Form::Pairs as u8;
    // SAFETY: the duty of the caller.
    unsafe {
        match form {
            Form::List => write_form::<K, F, LIST>(kernels, encoder, container, at, levels, pen),
            Form::Dict => write_form::<K, F, DICT>(kernels, encoder, container, at, levels, pen),
            Form::Pairs => write_form::<K, F, PAIRS>(kernels, encoder, container, at, levels, pen),
            _ => write_form::<K, F, TUPLE>(kernels, encoder, container, at, levels, pen),
        }
    }
}

/// Writes a container that is a member of another one, which is gone through up to `at`, or an array of NumPy's.
///
/// # Safety
/// As [`write()`]; there is space as [`Format::has_space`] says; `tag` is where the member begins.
#[inline(always)]
#[expect(clippy::too_many_arguments)]
pub(super) unsafe fn container<'py, 's, K: Kernels, F: Format<'py>>(
    kernels: K,
    encoder: &mut F,
    value: *mut ffi::PyObject,
    kind: Kind,
    tag: *mut u8,
    at: isize,
    levels: usize,
    mut pen: Pen<'s>,
) -> Pen<'s> {
    let form = match kind {
        Kind::List => Form::List,
        Kind::Tuple => Form::Tuple,
        Kind::Dict => Form::Dict,
        _ => Form::Held,
    };
    if levels == 0 || form == Form::Held {
        // SAFETY: the duties are the caller's.
        return unsafe { other_container(kernels, encoder, value, kind, tag, at, levels, pen) };
    }
    // SAFETY: alive, by the caller's word. Each level takes what ends it besides its members, of
    // the space that the last of them has left.
    unsafe {
        let n = match form {
            Form::Dict => dict::len(value),
            _ => ffi::Py_SIZE(value),
        };
        if n == 0 {
            encoder.put_empty(form, tag, &mut pen);
            return pen;
        }
        if !encoder.enters(kind) {
            return other_container(kernels, encoder, value, kind, tag, at, levels, pen);
        }
        let start = encoder.begin(form, tag, &mut pen);
        pen = write_members(kernels, encoder, value, form, 0, levels - 1, pen);
        if encoder.shared().interruption.reason == Reason::Done {
            encoder.end(form, start, levels - 1, &mut pen);
        } else {
            encoder.push_interrupted(value, form, n, start, at);
        }
    }
    pen
}

/// As [`container`], of what is no list, tuple or `dict`, or is not to be entered.
///
/// # Safety
/// As there.
#[inline(never)]
#[expect(clippy::too_many_arguments)]
unsafe fn other_container<'py, 's, K: Kernels, F: Format<'py>>(
    kernels: K,
    encoder: &mut F,
    value: *mut ffi::PyObject,
    kind: Kind,
    tag: *mut u8,
    at: isize,
    levels: usize,
    mut pen: Pen<'s>,
) -> Pen<'s> {
    // SAFETY: the duties are the caller's. The class was found just before, and is borrowed as long as no code runs.
    unsafe {
        let is_entered = levels > 0 && encoder.enters(kind);
        if is_entered && kind == Kind::Fields {
            let class = &*encoder.shared().found;
            if let Some(fields) = class.fields() {
                let start = encoder.begin(Form::Fields, tag, &mut pen);
                pen = write_fields(kernels, encoder, value, fields, 0, levels - 1, pen);
                if encoder.shared().interruption.reason == Reason::Done {
                    encoder.end(Form::Fields, start, levels - 1, &mut pen);
                } else {
                    let index = encoder.shared().index_of_class(classes::own(class));
                    encoder.push_interrupted(value, Form::Fields, index, start, at);
                }
                return pen;
            }
        }
        if !(is_entered
            && kind == Kind::Array
            && encoder.small_array(kernels, value, levels, &mut pen))
        {
            encoder.interrupt(Reason::Large(kind), value, at, tag);
        }
    }
    pen
}

/// The fields of an instance of a dataclass from `at` on. As work they are written.
struct WriteFields<'w, 'f, 's, F> {
    encoder: &'w mut F,
    object: *mut ffi::PyObject,
    fields: &'f Fields,
    at: isize,
    levels: usize,
    pen: Pen<'s>,
}

impl<'py, 's, F: Format<'py>> Work for WriteFields<'_, '_, 's, F> {
    type Output = Pen<'s>;

    #[inline(always)]
    fn run<K: Kernels>(self, kernels: K) -> Pen<'s> {
        let members = FieldMembers {
            object: self.object,
            fields: self.fields,
            private: self.encoder.writes_private_fields(),
        };
        // SAFETY: alive, and of the class that has these fields, by the word of `write_fields`.
        unsafe {
            write(
                kernels,
                self.encoder,
                members,
                self.at,
                self.levels,
                self.pen,
            )
        }
    }
}

/// Writes the fields of an instance of a dataclass from `at` on.
///
/// # Safety
/// As [`write()`]; `object` is of the class that has these fields.
#[inline(always)]
pub(super) unsafe fn write_fields<'py, 's, K: Kernels, F: Format<'py>>(
    kernels: K,
    encoder: &mut F,
    object: *mut ffi::PyObject,
    fields: &Fields,
    at: isize,
    levels: usize,
    pen: Pen<'s>,
) -> Pen<'s> {
    kernels.call(WriteFields {
        encoder,
        object,
        fields,
        at,
        levels,
        pen,
    })
}
