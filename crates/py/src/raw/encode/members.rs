//! The loop over the members of a container, for any container type and output format.
//!
//! The loop stops if it needs space, Python code or a slow path. Each open container then gets a
//! frame with the position of its next member, and [`containers`](super::containers) continues
//! there.

use onecopy_text::Pen;
use onecopy_text::convert::{Kernels, Work};
use pyo3::ffi;

use super::builtin_types::{self, ObjectKind};
use super::classes::{self, Class, Fields};
use super::dict;
use super::format::MemberEncoder;
use super::format::Step;
use super::frames::ContainerForm;
use super::python_members::{DictMembers, FieldMembers, Pairs, SequenceItems};
use super::sorted::SortedMembers;

/// The maximum recursion depth, which limits the use of the C stack. Deeper containers get frames.
pub(super) const LEVELS: usize = 16;

/// The reason why the loop has returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ExitReason {
    Done,
    /// The next member may need more space.
    Space,
    /// The fast path does not support the next key, or cannot read the next attribute. Nothing of
    /// the member is written.
    Key,
    /// The fast path does not write this value of a built-in type.
    Slow(ObjectKind),
    /// The value is not of a built-in type, or is a container that needs a frame.
    Large(ObjectKind),
}

/// The position and reason of an interruption.
pub(super) struct Interruption {
    pub(super) reason: ExitReason,
    /// The next value. Unused if `reason` is `Space` or `Key`.
    pub(super) value: *mut ffi::PyObject,
    /// The position in the innermost container that already had a frame. Containers inside it have
    /// their position in their new frames.
    pub(super) at: isize,
    /// The address of the member in the output. In BSON, a member begins with its tag.
    pub(super) start: *mut u8,
}

impl Interruption {
    pub(super) const NONE: Interruption = Interruption {
        reason: ExitReason::Done,
        value: std::ptr::null_mut(),
        at: 0,
        start: std::ptr::null_mut(),
    };

    #[cold]
    #[inline(never)]
    pub(super) fn set(
        &mut self,
        reason: ExitReason,
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

/// The members of a container: items, entries of a `dict`, or fields of a dataclass instance. No
/// Python code runs meanwhile, so the container does not change. A null value must be looked up by
/// its key.
pub(super) trait Members: Copy {
    /// Returns the key and value at position `at`, and advances `at`. The key is null for items.
    ///
    /// # Safety
    /// The container must be alive, and unchanged since this value was created.
    unsafe fn next(&self, at: &mut isize) -> Option<(*mut ffi::PyObject, *mut ffi::PyObject)>;

    /// Writes the key at position `at`. Returns `false` if the fast path does not support the key.
    /// The caller then discards the output.
    ///
    /// # Safety
    /// Same as [`Members::next`], which must have returned the key. The output must have the space
    /// of [`MemberEncoder::has_space`].
    unsafe fn put_key<'py, K: Kernels, F: MemberEncoder<'py>>(
        &self,
        kernels: K,
        encoder: &mut F,
        key: *mut ffi::PyObject,
        at: isize,
        index: &mut F::Index,
        pen: &mut Pen<'_>,
    ) -> bool;

    /// Returns the extra space in bytes for the longest key of this container.
    #[inline(always)]
    fn key_bytes(&self) -> usize {
        0
    }

    /// Prefetches the value of a later member.
    #[inline(always)]
    fn prefetch(&self, _at: isize) {}

    /// Prefetches the contents of the next members.
    ///
    /// # Safety
    /// Same as [`Members::next`].
    #[inline(always)]
    unsafe fn prefetch_contents(&self, _at: isize) {}

    /// Returns the items from index `at` on. Empty unless the container is a list or tuple.
    #[inline(always)]
    fn items_from(&self, _at: isize) -> &[*mut ffi::PyObject] {
        &[]
    }
}

/// Writes the members from position `at` on. [`Interruption::reason`] is `Done` after the last one.
///
/// # Safety
/// The container must be alive, and no Python code may run during this call.
#[inline(always)]
pub(super) unsafe fn write<'py, 's, K: Kernels, F: MemberEncoder<'py>, M: Members>(
    kernels: K,
    encoder: &mut F,
    members: M,
    mut at: isize,
    levels: usize,
    mut pen: Pen<'s>,
) -> Pen<'s> {
    let mut index = F::index(at);
    loop {
        let before = at;
        // SAFETY: alive, as the caller guarantees, and unchanged, because no code runs.
        let Some((key, value)) = (unsafe { members.next(&mut at) }) else {
            break;
        };
        if !encoder.has_space(levels, members.key_bytes(), &pen) {
            encoder.interrupt(ExitReason::Space, value, before, pen.at());
            return pen;
        }
        members.prefetch(before);
        let start = pen.at();
        encoder.before_member(before == 0, levels, &mut pen);
        let tag = pen.at();
        // Not a closure, which would not use the instructions of the kernels.
        let is_put = !value.is_null()
            // SAFETY: the key was found just now, and there is space.
            && unsafe { members.put_key(kernels, encoder, key, before, &mut index, &mut pen) };
        if !is_put {
            // SAFETY: an earlier position of the pen.
            unsafe { pen.set_at(start) };
            encoder.interrupt(ExitReason::Key, value, before, start);
            return pen;
        }
        // SAFETY: the value was found just now, and there is space.
        match unsafe { encoder.step(kernels, value, tag, &mut pen) } {
            Step::Done => {}
            Step::Constant => {
                // SAFETY: the items are alive.
                at += unsafe { encoder.constants(members.items_from(at), &mut pen) };
            }
            Step::Slow(kind) => {
                encoder.interrupt(ExitReason::Slow(kind), value, at, tag);
                return pen;
            }
            Step::Large(kind) => {
                // SAFETY: the value is alive, and its member begins at `tag`.
                unsafe {
                    members.prefetch_contents(at);
                    pen = container(kernels, encoder, value, kind, tag, at, levels, pen);
                }
                if encoder.shared().interruption.reason != ExitReason::Done {
                    return pen;
                }
            }
        }
        encoder.after_member(&mut pen);
    }
    if !encoder.has_space_to_end(levels, &pen) {
        encoder.interrupt(ExitReason::Space, std::ptr::null_mut(), at, pen.at());
    }
    pen
}

/// The arguments for the members of a list, tuple, `dict` or list of pairs. [`Work`] compiles `run`
/// for each instruction set.
struct WriteMembers<'w, 's, F, const FORM: u8> {
    encoder: &'w mut F,
    container: *mut ffi::PyObject,
    at: isize,
    levels: usize,
    pen: Pen<'s>,
}

impl<'py, 's, F: MemberEncoder<'py>, const FORM: u8> Work for WriteMembers<'_, 's, F, FORM> {
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
        // SAFETY: alive and of that form, as the caller of `write_form` guarantees.
        unsafe {
            if FORM == ContainerForm::Dict as u8 {
                let members = DictMembers(dict::entries(container), container);
                write(kernels, encoder, members, at, levels, pen)
            } else if FORM == ContainerForm::SortedDict as u8 {
                let recent = &mut encoder.shared().recent_order;
                let Some(members) = SortedMembers::of(container, recent) else {
                    // Python code has changed the `dict`.
                    encoder.interrupt(ExitReason::Key, std::ptr::null_mut(), at, pen.at());
                    return pen;
                };
                write(kernels, encoder, members, at, levels, pen)
            } else if FORM == ContainerForm::Pairs as u8 {
                let members = Pairs(builtin_types::items(container, true));
                write(kernels, encoder, members, at, levels, pen)
            } else {
                let items = builtin_types::items(container, FORM == ContainerForm::List as u8);
                write(kernels, encoder, SequenceItems(items), at, levels, pen)
            }
        }
    }
}

/// Writes the members of a container of the form `FORM`, from position `at` on.
///
/// # Safety
/// Same as [`write()`]. `container` must be of that form.
#[inline(always)]
unsafe fn write_form<'py, 's, K: Kernels, F: MemberEncoder<'py>, const FORM: u8>(
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

/// Writes the members of a list, tuple, `dict` or list of pairs, from position `at` on.
///
/// # Safety
/// Same as [`write_form`].
#[inline(always)]
pub(super) unsafe fn write_members<'py, 's, K: Kernels, F: MemberEncoder<'py>>(
    kernels: K,
    encoder: &mut F,
    container: *mut ffi::PyObject,
    form: ContainerForm,
    at: isize,
    levels: usize,
    pen: Pen<'s>,
) -> Pen<'s> {
    const LIST: u8 = ContainerForm::List as u8;
    const TUPLE: u8 = ContainerForm::Tuple as u8;
    const DICT: u8 = ContainerForm::Dict as u8;
    const SORTED: u8 = ContainerForm::SortedDict as u8;
    const PAIRS: u8 = ContainerForm::Pairs as u8;
    // SAFETY: as the caller guarantees.
    unsafe {
        match form {
            ContainerForm::List => {
                write_form::<K, F, LIST>(kernels, encoder, container, at, levels, pen)
            }
            ContainerForm::Dict => {
                write_form::<K, F, DICT>(kernels, encoder, container, at, levels, pen)
            }
            ContainerForm::SortedDict => {
                write_form::<K, F, SORTED>(kernels, encoder, container, at, levels, pen)
            }
            ContainerForm::Pairs => {
                write_form::<K, F, PAIRS>(kernels, encoder, container, at, levels, pen)
            }
            _ => write_form::<K, F, TUPLE>(kernels, encoder, container, at, levels, pen),
        }
    }
}

/// Writes a container inside another container. `at` is the next position in the outer container.
///
/// # Safety
/// Same as [`write()`]. The output must have the space of [`MemberEncoder::has_space`], and `tag`
/// must be the address of the member.
#[inline(always)]
#[expect(clippy::too_many_arguments)]
pub(super) unsafe fn container<'py, 's, K: Kernels, F: MemberEncoder<'py>>(
    kernels: K,
    encoder: &mut F,
    value: *mut ffi::PyObject,
    kind: ObjectKind,
    tag: *mut u8,
    at: isize,
    levels: usize,
    mut pen: Pen<'s>,
) -> Pen<'s> {
    let mut form = match kind {
        ObjectKind::List => ContainerForm::List,
        ObjectKind::Tuple => ContainerForm::Tuple,
        ObjectKind::Dict => ContainerForm::Dict,
        _ => ContainerForm::Held,
    };
    if levels == 0 || form == ContainerForm::Held {
        // SAFETY: as the caller guarantees.
        return unsafe { other_container(kernels, encoder, value, kind, tag, at, levels, pen) };
    }
    // SAFETY: alive, as the caller guarantees. The space that the last member leaves is enough for
    // the end of each level.
    unsafe {
        let n = match form {
            ContainerForm::Dict => dict::len(value),
            _ => ffi::Py_SIZE(value),
        };
        if n == 0 {
            encoder.put_empty(form, tag, &mut pen);
            return pen;
        }
        if form == ContainerForm::Dict && encoder.sorts_in_place(value) {
            form = ContainerForm::SortedDict;
        } else if !encoder.enters(kind) {
            return other_container(kernels, encoder, value, kind, tag, at, levels, pen);
        }
        let start = encoder.begin(form, tag, &mut pen);
        pen = write_members(kernels, encoder, value, form, 0, levels - 1, pen);
        if encoder.shared().interruption.reason == ExitReason::Done {
            encoder.end(form, start, levels - 1, &mut pen);
        } else {
            encoder.push_interrupted(value, form, n, start, at);
        }
    }
    pen
}

/// Implements [`container`] for other objects, and for containers that need a frame.
///
/// # Safety
/// Same as [`container`].
#[inline(never)]
#[expect(clippy::too_many_arguments)]
unsafe fn other_container<'py, 's, K: Kernels, F: MemberEncoder<'py>>(
    kernels: K,
    encoder: &mut F,
    value: *mut ffi::PyObject,
    kind: ObjectKind,
    tag: *mut u8,
    at: isize,
    levels: usize,
    mut pen: Pen<'s>,
) -> Pen<'s> {
    let is_entered = levels > 0 && encoder.enters(kind);
    if is_entered && kind == ObjectKind::Fields {
        let class = encoder.shared().found;
        // SAFETY: found just before, and valid because no code has run.
        if let Some(fields) = unsafe { (*class).fields() } {
            // SAFETY: as the caller guarantees. The object is of the class of the fields.
            return unsafe {
                fields_of(kernels, encoder, value, class, fields, tag, at, levels, pen)
            };
        }
    }
    let is_array = is_entered && kind == ObjectKind::Array;
    // SAFETY: as the caller guarantees. An array, by its class.
    let is_put = is_array && unsafe { encoder.small_array(kernels, value, levels, tag, &mut pen) };
    if !is_put {
        encoder.interrupt(ExitReason::Large(kind), value, at, tag);
    }
    pen
}

/// Implements [`container`] for an instance of a dataclass.
///
/// # Safety
/// Same as [`container`]. `object` must be an instance of `class`, with the fields `fields`.
#[inline(always)]
#[expect(clippy::too_many_arguments)]
unsafe fn fields_of<'py, 's, K: Kernels, F: MemberEncoder<'py>>(
    kernels: K,
    encoder: &mut F,
    object: *mut ffi::PyObject,
    class: *const Class,
    fields: &Fields,
    tag: *mut u8,
    at: isize,
    levels: usize,
    mut pen: Pen<'s>,
) -> Pen<'s> {
    // SAFETY: as the caller guarantees.
    unsafe {
        if fields.count(encoder.writes_private_fields()) == 0 {
            encoder.put_empty(ContainerForm::Fields, tag, &mut pen);
            return pen;
        }
        let start = encoder.begin(ContainerForm::Fields, tag, &mut pen);
        pen = write_fields(kernels, encoder, object, fields, 0, levels - 1, pen);
        if encoder.shared().interruption.reason == ExitReason::Done {
            encoder.end(ContainerForm::Fields, start, levels - 1, &mut pen);
        } else {
            let index = encoder.shared().index_of_class(classes::own(class));
            encoder.push_interrupted(object, ContainerForm::Fields, index, start, at);
        }
    }
    pen
}

/// The arguments for the fields of a dataclass instance. [`Work`] compiles `run` for each
/// instruction set.
struct WriteFields<'w, 'f, 's, F> {
    encoder: &'w mut F,
    object: *mut ffi::PyObject,
    fields: &'f Fields,
    at: isize,
    levels: usize,
    pen: Pen<'s>,
}

impl<'py, 's, F: MemberEncoder<'py>> Work for WriteFields<'_, '_, 's, F> {
    type Output = Pen<'s>;

    #[inline(always)]
    fn run<K: Kernels>(self, kernels: K) -> Pen<'s> {
        let members = FieldMembers {
            object: self.object,
            fields: self.fields,
            private: self.encoder.writes_private_fields(),
        };
        // SAFETY: alive, and of the class of these fields, as the caller of `write_fields`
        // guarantees.
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

/// Writes the fields of a dataclass instance, from position `at` on.
///
/// # Safety
/// Same as [`write()`]. `object` must be of the class of these fields.
#[inline(always)]
pub(super) unsafe fn write_fields<'py, 's, K: Kernels, F: MemberEncoder<'py>>(
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
