//! `MemberEncoder`: the interface between the loop over members and an output format (JSON or
//! BSON).

use onecopy_text::Pen;
use onecopy_text::convert::Kernels;
use pyo3::ffi;

use super::builtin_types::ObjectKind;
use super::frames::{ContainerForm, ContainerFrame};
use super::members::ExitReason;
use super::state::EncoderState;

/// The result of an attempt to write a value by the fast path.
#[derive(Clone, Copy)]
pub(super) enum Step {
    /// The value was written.
    Done,
    /// The value was written, and is `None` or a `bool`.
    Constant,
    /// The value was not written: it is a long text, an `int` of more than two internal digits (60
    /// bits), or NaN.
    Slow(ObjectKind),
    /// The value was not written: it is a container, or not of a built-in type.
    Large(ObjectKind),
}

/// The methods of an encoder that the loop over members calls. The loop is compiled for each output
/// format, with all calls inlined.
///
/// The parameter `tag` is the address of the output byte at which the member begins.
pub(super) trait MemberEncoder<'py>: Sized {
    /// The type of the reason for which the encoder has failed.
    type Stop;
    /// The key of the next item of an array, for a format whose arrays have keys (BSON).
    type Index;

    /// `true` if the encoder prefetches a `dict` into the processor's cache: its table while an
    /// earlier member of the same container is written, and its values when the `dict` is entered.
    const FETCHES_DICTS: bool;

    fn shared(&mut self) -> &mut EncoderState<'py>;

    /// Returns `true` if there is space for a key, a short value, and `key_bytes` more bytes. The
    /// key is in a container. `levels` is the number of further levels of containers that can be
    /// entered inside of this container without pushing a frame.
    fn has_space(&self, levels: usize, key_bytes: usize, pen: &Pen<'_>) -> bool;

    /// Returns `true` if there is space for the end of a container; `levels` is as in
    /// [`MemberEncoder::has_space`].
    fn has_space_to_end(&self, levels: usize, pen: &Pen<'_>) -> bool;

    /// Reserves the space that [`MemberEncoder::has_space`] requires for the members of the
    /// innermost frame.
    ///
    /// # Errors
    /// The allocation has failed, or the output would be too large; exceptions of code that runs.
    fn grow<'s>(&mut self, pen: Pen<'s>) -> Result<Pen<'s>, Self::Stop>;

    /// Returns the number of levels of containers that may be entered from the innermost frame, at
    /// most [`LEVELS`](super::members::LEVELS).
    fn levels(&mut self) -> usize;

    /// Writes the bytes before a member, such as a line break.
    fn before_member(&mut self, is_first: bool, levels: usize, pen: &mut Pen<'_>);

    /// Writes the bytes after a member, after [`MemberEncoder::step`] or [`MemberEncoder::end`].
    fn after_member(&mut self, pen: &mut Pen<'_>);

    /// Returns the key of the array item at index `at`.
    fn index(at: isize) -> Self::Index;

    /// Writes the key of the array item at index `at`, and advances `index` to the next item.
    fn put_index(index: &mut Self::Index, at: isize, pen: &mut Pen<'_>);

    /// Writes a key by the fast path. Returns `false`, and writes nothing, if that is not possible.
    ///
    /// # Safety
    /// `key` must be alive, and there must be space as [`MemberEncoder::has_space`] defines it.
    unsafe fn short_key<K: Kernels>(
        &mut self,
        kernels: K,
        key: *mut ffi::PyObject,
        pen: &mut Pen<'_>,
    ) -> bool;

    /// Writes a value by the fast path if that is possible.
    ///
    /// # Safety
    /// As [`MemberEncoder::short_key`].
    unsafe fn step<K: Kernels>(
        &mut self,
        kernels: K,
        value: *mut ffi::PyObject,
        tag: *mut u8,
        pen: &mut Pen<'_>,
    ) -> Step;

    /// Writes the items at the start of `items` that are `None` or `bool`, and returns their
    /// number.
    ///
    /// # Safety
    /// The items must be alive.
    unsafe fn constants(&mut self, items: &[*mut ffi::PyObject], pen: &mut Pen<'_>) -> isize;

    /// Returns `true` if containers of this kind are entered without preparation, such as sorting.
    fn enters(&self, kind: ObjectKind) -> bool;

    fn writes_private_fields(&self) -> bool;

    /// Writes a container without members.
    ///
    /// # Safety
    /// `tag` must be where the member begins; there must be space as [`MemberEncoder::has_space`]
    /// defines it.
    unsafe fn put_empty(&mut self, form: ContainerForm, tag: *mut u8, pen: &mut Pen<'_>);

    /// Writes the beginning of a container with members, and returns its address in the output.
    ///
    /// # Safety
    /// As [`MemberEncoder::put_empty`].
    unsafe fn begin(&mut self, form: ContainerForm, tag: *mut u8, pen: &mut Pen<'_>) -> *mut u8;

    /// Writes the end of the container that begins at `start`. Between [`MemberEncoder::begin`] and
    /// this call, no space may be reserved, because `start` would then be invalid.
    ///
    /// # Safety
    /// A member must have been written last; `start` must be the result of
    /// [`MemberEncoder::begin`].
    unsafe fn end(&mut self, form: ContainerForm, start: *mut u8, levels: usize, pen: &mut Pen<'_>);

    /// Returns the offset of the address `start` in the whole output.
    fn offset_of(&self, start: *mut u8) -> usize;

    /// Writes a NumPy array with a limited number of dimensions, if there is space for all of it.
    /// Otherwise returns `false` and leaves the output unchanged.
    ///
    /// # Safety
    /// `value` must be alive and of an array class; `tag` must be where the member begins.
    unsafe fn small_array<K: Kernels>(
        &mut self,
        kernels: K,
        value: *mut ffi::PyObject,
        n_dims: usize,
        tag: *mut u8,
        pen: &mut Pen<'_>,
    ) -> bool;

    /// Writes the next key of the innermost frame, and the value of this key. The key may be an
    /// object of any type.
    ///
    /// # Errors
    /// The key or the value cannot be represented; exceptions of code that runs.
    ///
    /// # Safety
    /// The frame must have members with keys, and the next key must not be written.
    unsafe fn any_key<'s, K: Kernels>(
        &mut self,
        kernels: K,
        pen: Pen<'s>,
    ) -> Result<Pen<'s>, Self::Stop>;

    /// Writes a value of any type, or enters it. If the loop over its members is interrupted, a
    /// frame is pushed for each container with remaining members.
    ///
    /// # Errors
    /// As [`MemberEncoder::any_key`].
    ///
    /// # Safety
    /// `value` must be alive, of that kind, and without a frame. There must be space as
    /// [`MemberEncoder::has_space`] defines it.
    unsafe fn any_value<'s, K: Kernels>(
        &mut self,
        kernels: K,
        value: *mut ffi::PyObject,
        kind: ObjectKind,
        tag: *mut u8,
        pen: Pen<'s>,
    ) -> Result<Pen<'s>, Self::Stop>;

    /// Returns `true` if all members of a frame of the form `Rows`, `Row` or `Columns` were
    /// written.
    ///
    /// # Errors
    /// A row was changed.
    ///
    /// # Safety
    /// `frame` must be the innermost one.
    unsafe fn are_rows_written(&self, frame: *const ContainerFrame) -> Result<bool, Self::Stop>;

    /// Writes the remaining members of a frame of the form `Rows`, `Row` or `Columns`.
    ///
    /// # Errors
    /// As [`MemberEncoder::any_key`].
    ///
    /// # Safety
    /// `frame` must be the innermost one.
    unsafe fn resume_rows<'s, K: Kernels>(
        &mut self,
        kernels: K,
        frame: *mut ContainerFrame,
        pen: Pen<'s>,
    ) -> Result<Pen<'s>, Self::Stop>;

    /// Writes the end of the innermost container. `is_due` is `true` if space was reserved for
    /// another member after the last member was written.
    ///
    /// # Errors
    /// The allocation failed; exceptions of code that runs.
    fn leave<'s>(
        &mut self,
        frame: *const ContainerFrame,
        has_members: bool,
        is_due: bool,
        pen: Pen<'s>,
    ) -> Result<Pen<'s>, Self::Stop>;

    /// Returns the error for a container that was changed while it was written.
    fn changed() -> Self::Stop;

    /// Stores the reason why the loop over members was interrupted, and the position of the
    /// interruption.
    #[inline(always)]
    fn interrupt(
        &mut self,
        reason: ExitReason,
        value: *mut ffi::PyObject,
        at: isize,
        start: *mut u8,
    ) {
        self.shared().interruption.set(reason, value, at, start);
    }

    /// Pushes a frame for a container after the loop over its members was interrupted. `at` is the
    /// position of the next member in the parent of this container.
    ///
    /// # Safety
    /// As [`Frames::push`](super::frames::Frames::push).
    #[cold]
    #[inline(never)]
    unsafe fn push_interrupted(
        &mut self,
        container: *mut ffi::PyObject,
        form: ContainerForm,
        n: isize,
        start: *mut u8,
        at: isize,
    ) {
        let start = self.offset_of(start);
        let shared = self.shared();
        let at_inside = std::mem::replace(&mut shared.interruption.at, at);
        // SAFETY: the caller guarantees the requirements.
        unsafe {
            shared.frames.push_at(container, form, n, at_inside, start);
        }
    }
}
