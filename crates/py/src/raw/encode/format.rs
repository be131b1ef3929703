//! `MemberEncoder`: the interface between the loop over a container's members and an output format
//! (JSON or BSON).

use onecopy_text::Pen;
use onecopy_text::convert::Kernels;
use pyo3::ffi;

use super::builtin_types::ObjectKind;
use super::frames::{ContainerForm, ContainerFrame};
use super::members::ExitReason;
use super::state::EncoderState;

/// The result of trying to write a value with the fast path.
#[derive(Clone, Copy)]
pub(super) enum Step {
    /// The value was written.
    Done,
    /// The value was written, and is `None` or a `bool`.
    Constant,
    /// The value was not written, although it is of a built-in type. It is a string that is long or
    /// contains surrogates, an `int` of more than two internal digits (60 bits), or (in JSON) NaN
    /// or an infinity.
    Slow(ObjectKind),
    /// The value was not written, because it is a container or an object that is not of a built-in
    /// type.
    Large(ObjectKind),
}

/// The methods of an encoder that the loop over a container's members calls. The loop is compiled
/// separately for each output format, with all calls inlined.
///
/// The parameter `tag` of these methods is the address of the output byte at which the member
/// begins.
pub(super) trait MemberEncoder<'py>: Sized {
    /// The reason why an encoder has failed.
    type Stop;
    /// The key of the next item of an array, for a format whose arrays have keys (BSON).
    type Index;

    fn shared(&mut self) -> &mut EncoderState<'py>;

    /// Returns `true` if the output has space for a key, a short value, and `key_bytes` more bytes.
    /// `levels` is the number of nested containers that can still be entered by recursion, below
    /// the container that has this key.
    fn has_space(&self, levels: usize, key_bytes: usize, pen: &Pen<'_>) -> bool;

    /// Returns `true` if the output has space for the end of a container, such as a closing bracket
    /// and the line break before it. `levels` is the number of nested containers that can still be
    /// entered by recursion.
    fn has_space_to_end(&self, levels: usize, pen: &Pen<'_>) -> bool;

    /// Reserves the space that [`MemberEncoder::has_space`] requires for a member of the container
    /// in the innermost frame.
    ///
    /// # Errors
    /// Returns an error if the allocation fails, if the output would be too large, or if Python
    /// code that runs raises an exception.
    fn grow<'s>(&mut self, pen: Pen<'s>) -> Result<Pen<'s>, Self::Stop>;

    /// Returns how many levels of nested containers may be entered by recursion, below the
    /// container in the innermost frame. The result is at most [`LEVELS`](super::members::LEVELS),
    /// and is also limited by the option for the maximum depth.
    fn levels(&mut self) -> usize;

    /// Writes the bytes that the format requires before a member, such as a line break.
    fn before_member(&mut self, is_first: bool, levels: usize, pen: &mut Pen<'_>);

    /// Completes a member after [`MemberEncoder::step`] or [`MemberEncoder::end`] has written its
    /// value. The JSON encoder for output with line breaks removes the comma after the value.
    fn after_member(&mut self, pen: &mut Pen<'_>);

    /// Returns the key of the array item at index `at`, for [`MemberEncoder::put_index`].
    fn index(at: isize) -> Self::Index;

    /// Writes the key of the array item at index `at`, and sets `index` to the next item.
    fn put_index(index: &mut Self::Index, at: isize, pen: &mut Pen<'_>);

    /// Writes a key with the fast path. Returns `false` if the fast path does not support this key.
    /// The caller must then discard the bytes that were written.
    ///
    /// # Safety
    /// `key` must be alive, and there must be space as [`MemberEncoder::has_space`] defines it.
    unsafe fn short_key<K: Kernels>(
        &mut self,
        kernels: K,
        key: *mut ffi::PyObject,
        pen: &mut Pen<'_>,
    ) -> bool;

    /// Writes a value with the fast path. The returned [`Step`] reports that the value was written,
    /// or the reason why it was not.
    ///
    /// # Safety
    /// The same requirements as for [`MemberEncoder::short_key`].
    unsafe fn step<K: Kernels>(
        &mut self,
        kernels: K,
        value: *mut ffi::PyObject,
        tag: *mut u8,
        pen: &mut Pen<'_>,
    ) -> Step;

    /// Writes the leading items of `items` that are `None` or `bool`, and returns the number of
    /// these items.
    ///
    /// # Safety
    /// The items must be alive.
    unsafe fn constants(&mut self, items: &[*mut ffi::PyObject], pen: &mut Pen<'_>) -> isize;

    /// Returns `true` if the loop over members may begin a container of this kind without
    /// preparation. Returns `false` if preparation is required, for example if the keys of dicts
    /// have to be sorted.
    fn enters(&self, kind: ObjectKind) -> bool;

    /// Returns `true` if the members of this `dict` are written in the order of their keys, and can
    /// be sorted in place.
    ///
    /// # Safety
    /// `dict` must be a live `dict`.
    #[inline(always)]
    unsafe fn sorts_in_place(&mut self, _dict: *mut ffi::PyObject) -> bool {
        false
    }

    fn writes_private_fields(&self) -> bool;

    /// Writes a container without members.
    ///
    /// # Safety
    /// `tag` must be the address at which the member begins. There must be space as
    /// [`MemberEncoder::has_space`] defines it.
    unsafe fn put_empty(&mut self, form: ContainerForm, tag: *mut u8, pen: &mut Pen<'_>);

    /// Writes the beginning of a container that has members, such as a bracket. Returns the address
    /// in the output at which the container begins.
    ///
    /// # Safety
    /// The same requirements as for [`MemberEncoder::put_empty`].
    unsafe fn begin(&mut self, form: ContainerForm, tag: *mut u8, pen: &mut Pen<'_>) -> *mut u8;

    /// Writes the end of the container that begins at `start`. Between [`MemberEncoder::begin`] and
    /// this call, the caller must not reserve space: the output might move, which would invalidate
    /// `start`.
    ///
    /// # Safety
    /// The last thing written must be a member of the container, and `start` must be the result of
    /// [`MemberEncoder::begin`].
    unsafe fn end(&mut self, form: ContainerForm, start: *mut u8, levels: usize, pen: &mut Pen<'_>);

    /// Returns the offset in bytes of the address `start` in the output.
    fn offset_of(&self, start: *mut u8) -> usize;

    /// Writes a NumPy array with few dimensions if there is space for all of it. Otherwise returns
    /// `false` and leaves the output unchanged.
    ///
    /// # Safety
    /// `value` must be alive and of an array class. `tag` must be the address at which the member
    /// begins.
    unsafe fn small_array<K: Kernels>(
        &mut self,
        kernels: K,
        value: *mut ffi::PyObject,
        n_dims: usize,
        tag: *mut u8,
        pen: &mut Pen<'_>,
    ) -> bool;

    /// Writes the next key of the container in the innermost frame, and the value of this key. The
    /// key may be an object of any type.
    ///
    /// # Errors
    /// Returns an error if the format cannot represent the key or the value, or if Python code that
    /// runs raises an exception.
    ///
    /// # Safety
    /// The container must have members with keys, and the next key must not have been written.
    unsafe fn any_key<'s, K: Kernels>(
        &mut self,
        kernels: K,
        pen: Pen<'s>,
    ) -> Result<Pen<'s>, Self::Stop>;

    /// Writes a value of any type. The value may be a container. If writing its members is
    /// interrupted, pushes a frame for each container that has members left to write.
    ///
    /// # Errors
    /// The same errors as [`MemberEncoder::any_key`].
    ///
    /// # Safety
    /// `value` must be alive and of the given kind, and must not have a frame. There must be space
    /// as [`MemberEncoder::has_space`] defines it.
    unsafe fn any_value<'s, K: Kernels>(
        &mut self,
        kernels: K,
        value: *mut ffi::PyObject,
        kind: ObjectKind,
        tag: *mut u8,
        pen: Pen<'s>,
    ) -> Result<Pen<'s>, Self::Stop>;

    /// Returns `true` if all members of the container in `frame` have been written. The form of
    /// `frame` must be `Rows`, `Row` or `Columns`.
    ///
    /// # Errors
    /// Returns an error if Python code has changed the number of values in a row.
    ///
    /// # Safety
    /// `frame` must be the innermost frame.
    unsafe fn are_rows_written(&self, frame: *const ContainerFrame) -> Result<bool, Self::Stop>;

    /// Writes the remaining members of the container in `frame`. The form of `frame` must be
    /// `Rows`, `Row` or `Columns`.
    ///
    /// # Errors
    /// The same errors as [`MemberEncoder::any_key`].
    ///
    /// # Safety
    /// `frame` must be the innermost frame.
    unsafe fn resume_rows<'s, K: Kernels>(
        &mut self,
        kernels: K,
        frame: *mut ContainerFrame,
        pen: Pen<'s>,
    ) -> Result<Pen<'s>, Self::Stop>;

    /// Writes the end of the container in the innermost frame. `is_due` is `true` if space was
    /// reserved for another member, but the container had none left.
    ///
    /// # Errors
    /// Returns an error if the allocation fails, or if Python code that runs raises an exception.
    fn leave<'s>(
        &mut self,
        frame: *const ContainerFrame,
        has_members: bool,
        is_due: bool,
        pen: Pen<'s>,
    ) -> Result<Pen<'s>, Self::Stop>;

    /// Returns the error for a container that Python code has changed while it was being written.
    fn changed() -> Self::Stop;

    /// Records the reason and the position of an interruption of the loop over a container's
    /// members.
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

    /// Pushes a frame for `container`, after the loop over its members was interrupted. `at` is the
    /// position of the next member in the parent container.
    ///
    /// # Safety
    /// The same requirements as for [`Frames::push`](super::frames::Frames::push).
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
