//! `MemberEncoder`: the interface between the loop over members and an output format.

use onecopy_text::Pen;
use onecopy_text::convert::Kernels;
use pyo3::ffi;

use super::builtin_types::ObjectKind;
use super::frames::{ContainerForm, ContainerFrame};
use super::members::ExitReason;
use super::sorted::SortedMembers;
use super::state::EncoderState;

/// The result of the fast path for a value.
#[derive(Clone, Copy)]
pub(super) enum Step {
    /// The value was written.
    Done,
    /// The value was written. It is `None` or a `bool`.
    Constant,
    /// The fast path does not support this value of a built-in type, such as a long string.
    Slow(ObjectKind),
    /// The value was not written. It is a container or has no built-in type.
    Large(ObjectKind),
}

/// The encoder methods that the loop over a container's members calls.
///
/// The parameter `tag` is the address of the member's first output byte.
pub(super) trait MemberEncoder<'py>: Sized {
    /// The reason for a failure.
    type Stop;
    /// The key of the next array item (BSON).
    type Index;

    fn shared(&mut self) -> &mut EncoderState<'py>;

    /// Returns `true` if the output has space for a key, a short value, and `key_bytes` more bytes.
    /// Recursion can enter `levels` more containers.
    fn has_space(&self, levels: usize, key_bytes: usize, pen: &Pen<'_>) -> bool;

    /// Returns `true` if the output has space for the end of a container. Recursion can enter
    /// `levels` more containers.
    fn has_space_to_end(&self, levels: usize, pen: &Pen<'_>) -> bool;

    /// Reserves the space of [`MemberEncoder::has_space`] for a member of the innermost frame.
    ///
    /// # Errors
    /// If the allocation fails, the output is too large, or Python code raises an exception.
    fn grow<'s>(&mut self, pen: Pen<'s>) -> Result<Pen<'s>, Self::Stop>;

    /// Returns the number of container levels for recursion, at most
    /// [`LEVELS`](super::members::LEVELS). The option `max_depth` limits it too.
    fn levels(&mut self) -> usize;

    /// Writes the bytes before a member, such as a line break.
    fn before_member(&mut self, is_first: bool, levels: usize, pen: &mut Pen<'_>);

    /// Completes a member after its value. The indented JSON encoder removes the comma after the
    /// value.
    fn after_member(&mut self, pen: &mut Pen<'_>);

    /// Returns the key of the array item at index `at`.
    fn index(at: isize) -> Self::Index;

    /// Writes the key of the array item at index `at`, and advances `index`.
    fn put_index(index: &mut Self::Index, at: isize, pen: &mut Pen<'_>);

    /// Writes a key with the fast path. If the result is `false`, the caller must discard the
    /// written bytes.
    ///
    /// # Safety
    /// `key` must be alive. The output must have the space of [`MemberEncoder::has_space`].
    unsafe fn short_key<K: Kernels>(
        &mut self,
        kernels: K,
        key: *mut ffi::PyObject,
        pen: &mut Pen<'_>,
    ) -> bool;

    /// Writes a value with the fast path.
    ///
    /// # Safety
    /// The requirements of [`MemberEncoder::short_key`] apply.
    unsafe fn step<K: Kernels>(
        &mut self,
        kernels: K,
        value: *mut ffi::PyObject,
        tag: *mut u8,
        pen: &mut Pen<'_>,
    ) -> Step;

    /// Writes the leading `None` and `bool` items, and returns their number.
    ///
    /// # Safety
    /// The items must be alive.
    unsafe fn constants(&mut self, items: &[*mut ffi::PyObject], pen: &mut Pen<'_>) -> isize;

    /// Returns `true` if a container of this kind needs no preparation, such as sorting.
    fn enters(&self, kind: ObjectKind) -> bool;

    /// Returns `true` if the keys of this `dict` can be sorted in place.
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
    /// `tag` must be the address of the member. The output must have the space of
    /// [`MemberEncoder::has_space`].
    unsafe fn put_empty(&mut self, form: ContainerForm, tag: *mut u8, pen: &mut Pen<'_>);

    /// Writes the beginning of a container, such as a bracket. Returns the container's address in
    /// the output.
    ///
    /// # Safety
    /// The requirements of [`MemberEncoder::put_empty`] apply.
    unsafe fn begin(&mut self, form: ContainerForm, tag: *mut u8, pen: &mut Pen<'_>) -> *mut u8;

    /// Writes the end of the container at `start`. The output must not move after
    /// [`MemberEncoder::begin`].
    ///
    /// # Safety
    /// The last written bytes must be a member of the container. `start` must be the result of
    /// [`MemberEncoder::begin`].
    unsafe fn end(&mut self, form: ContainerForm, start: *mut u8, levels: usize, pen: &mut Pen<'_>);

    /// Returns the output offset of the address `start`.
    fn offset_of(&self, start: *mut u8) -> usize;

    /// Writes a NumPy array of few dimensions if it fits. Otherwise returns `false` and leaves the
    /// output unchanged.
    ///
    /// # Safety
    /// `value` must be alive and of an array class. `tag` must be the address of the member.
    unsafe fn small_array<K: Kernels>(
        &mut self,
        kernels: K,
        value: *mut ffi::PyObject,
        n_dims: usize,
        tag: *mut u8,
        pen: &mut Pen<'_>,
    ) -> bool;

    /// Writes the next key and value of the innermost frame. The key may have any type.
    ///
    /// # Errors
    /// If the format cannot represent the key or the value, or if Python code raises an exception.
    ///
    /// # Safety
    /// The container must have keys, and the next key must not have been written.
    unsafe fn any_key<'s, K: Kernels>(
        &mut self,
        kernels: K,
        pen: Pen<'s>,
    ) -> Result<Pen<'s>, Self::Stop>;

    /// Writes a value of any type. After an interruption, pushes a frame for each unfinished
    /// container.
    ///
    /// # Errors
    /// The errors of [`MemberEncoder::any_key`].
    ///
    /// # Safety
    /// `value` must be alive and of the given kind, and must have no frame. The output must have
    /// the space of [`MemberEncoder::has_space`].
    unsafe fn any_value<'s, K: Kernels>(
        &mut self,
        kernels: K,
        value: *mut ffi::PyObject,
        kind: ObjectKind,
        tag: *mut u8,
        pen: Pen<'s>,
    ) -> Result<Pen<'s>, Self::Stop>;

    /// Returns `true` if all members of `frame` were written. The form of `frame` must be `Rows`,
    /// `Row` or `Columns`.
    ///
    /// # Errors
    /// If Python code has changed the number of values in a row.
    ///
    /// # Safety
    /// `frame` must be the innermost frame.
    unsafe fn are_rows_written(&self, frame: *const ContainerFrame) -> Result<bool, Self::Stop>;

    /// Writes the remaining members of `frame`. The form of `frame` must be `Rows`, `Row` or
    /// `Columns`.
    ///
    /// # Errors
    /// The errors of [`MemberEncoder::any_key`].
    ///
    /// # Safety
    /// `frame` must be the innermost frame.
    unsafe fn resume_rows<'s, K: Kernels>(
        &mut self,
        kernels: K,
        frame: *mut ContainerFrame,
        pen: Pen<'s>,
    ) -> Result<Pen<'s>, Self::Stop>;

    /// Writes the end of the innermost frame's container. `is_due` is `true` if unused space was
    /// reserved for another member.
    ///
    /// # Errors
    /// If the allocation fails, or if Python code raises an exception.
    fn leave<'s>(
        &mut self,
        frame: *const ContainerFrame,
        has_members: bool,
        is_due: bool,
        pen: Pen<'s>,
    ) -> Result<Pen<'s>, Self::Stop>;

    /// Returns the error for a container that Python code has changed.
    fn changed() -> Self::Stop;

    /// Records the reason and the position of an interruption.
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

    /// Pushes a frame for the interrupted `container`. `at` is the next position in the parent
    /// container.
    ///
    /// # Safety
    /// The requirements of [`Frames::push`](super::frames::Frames::push) apply.
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
        let mut start = self.offset_of(start);
        let shared = self.shared();
        if form == ContainerForm::SortedDict {
            // SAFETY: alive, as the caller guarantees; no code has run since the sort.
            let members = unsafe { SortedMembers::of(container, &mut shared.recent_order) };
            // SAFETY: the `dict` is unchanged.
            start = members.map_or(0, |members| unsafe { members.fingerprint() });
        }
        let at_inside = std::mem::replace(&mut shared.interruption.at, at);
        // SAFETY: the caller guarantees the requirements.
        unsafe {
            shared.frames.push_at(container, form, n, at_inside, start);
        }
    }
}
