//! The interface between the loop over members and a format.

use onecopy_text::Pen;
use onecopy_text::convert::Kernels;
use pyo3::ffi;

use super::frames::{Form, Frame};
use super::members::Reason;
use super::object::Kind;
use super::shared::Shared;
use super::step::Step;

/// An encoder, as the loop over members uses it. Compiled for each format, so that nothing of it is a call.
///
/// The functions that take a `tag` get the address of the byte at which the member begins.
pub(super) trait Format<'py>: Sized {
    /// Why the encoder ends early.
    type Stop;
    /// The key of the next item of an array, in formats that have such keys.
    type Index;

    fn shared(&mut self) -> &mut Shared<'py>;

    /// Returns whether there is space for a key, a value that takes a few instructions, and
    /// `key_bytes` more, so many levels above the innermost one.
    fn has_space(&self, levels: usize, key_bytes: usize, pen: &Pen<'_>) -> bool;

    /// Returns whether there is space for the end of a container.
    fn has_space_to_end(&self, levels: usize, pen: &Pen<'_>) -> bool;

    /// Makes as much space as [`Format::has_space`] wants for the members of the innermost frame.
    ///
    /// # Errors
    /// If there is no memory, or the output would be too long; and what code raises.
    fn grow<'s>(&mut self, pen: Pen<'s>) -> Result<Pen<'s>, Self::Stop>;

    /// The levels of containers that may be entered from the innermost frame, at most
    /// [`LEVELS`](super::members::LEVELS).
    fn levels(&mut self) -> usize;

    /// Puts what precedes a member.
    fn before_member(&mut self, is_first: bool, levels: usize, pen: &mut Pen<'_>);

    /// Puts what follows a member, after [`Format::step`] or [`Format::end`].
    fn after_member(&mut self, pen: &mut Pen<'_>);

    /// The index of the item at `at`.
    fn index(at: isize) -> Self::Index;

    /// Puts the key of the item at `at`, and goes on to the next.
    fn put_index(index: &mut Self::Index, at: isize, pen: &mut Pen<'_>);

    /// Puts a key; `false`, and nothing put, if that takes more than a few instructions.
    ///
    /// # Safety
    /// `key` is alive, and there is space as [`Format::has_space`] says.
    unsafe fn short_key<K: Kernels>(
        &mut self,
        kernels: K,
        key: *mut ffi::PyObject,
        pen: &mut Pen<'_>,
    ) -> bool;

    /// Puts a value, if that takes a few instructions.
    ///
    /// # Safety
    /// As [`Format::short_key`].
    unsafe fn step<K: Kernels>(
        &mut self,
        kernels: K,
        value: *mut ffi::PyObject,
        tag: *mut u8,
        pen: &mut Pen<'_>,
    ) -> Step;

    /// Puts the first items that are `None` or `bool`, and returns how many.
    ///
    /// # Safety
    /// The items are alive.
    unsafe fn constants(&mut self, items: &[*mut ffi::PyObject], pen: &mut Pen<'_>) -> isize;

    /// Returns whether containers of this kind are entered without any preparation.
    fn enters(&self, kind: Kind) -> bool;

    fn writes_private_fields(&self) -> bool;

    /// Puts a container without members.
    fn put_empty(&mut self, form: Form, tag: *mut u8, pen: &mut Pen<'_>);

    /// Puts the beginning of a container that has members; returns where it is.
    fn begin(&mut self, form: Form, tag: *mut u8, pen: &mut Pen<'_>) -> *mut u8;

    /// Puts the end of a container that begins at `start`, no space having been made since.
    ///
    /// # Safety
    /// A member was put last; `start` was returned by [`Format::begin`].
    unsafe fn end(&mut self, form: Form, start: *mut u8, levels: usize, pen: &mut Pen<'_>);

    /// The place of `start` in all that is written.
    fn offset_of(&self, start: *mut u8) -> usize;

    /// Puts an array of NumPy's of at most so many dimensions, if there is space for all of it; else nothing.
    ///
    /// # Safety
    /// `value` is alive, and an array by its class.
    unsafe fn small_array<K: Kernels>(
        &mut self,
        kernels: K,
        value: *mut ffi::PyObject,
        n_dims: usize,
        pen: &mut Pen<'_>,
    ) -> bool;

    /// Writes any key of the innermost frame, the next one, and its value.
    ///
    /// # Errors
    /// If the key or the value has no form, and what code raises.
    ///
    /// # Safety
    /// The frame has members with keys, and the key is not written.
    unsafe fn any_key<'s, K: Kernels>(
        &mut self,
        kernels: K,
        pen: Pen<'s>,
    ) -> Result<Pen<'s>, Self::Stop>;

    /// Writes any value, or goes inside of it, which may be interrupted.
    ///
    /// # Errors
    /// As [`Format::any_key`].
    ///
    /// # Safety
    /// `value` is alive and of that kind; it has no frame. There is space as [`Format::has_space`] says.
    unsafe fn any_value<'s, K: Kernels>(
        &mut self,
        kernels: K,
        value: *mut ffi::PyObject,
        kind: Kind,
        tag: *mut u8,
        pen: Pen<'s>,
    ) -> Result<Pen<'s>, Self::Stop>;

    /// Returns whether all members of a frame of rows are written.
    ///
    /// # Errors
    /// If a row was changed.
    ///
    /// # Safety
    /// `frame` is the innermost one.
    unsafe fn are_rows_written(&self, frame: *const Frame) -> Result<bool, Self::Stop>;

    /// Goes on with a frame of rows.
    ///
    /// # Errors
    /// As [`Format::any_key`].
    ///
    /// # Safety
    /// `frame` is the innermost one.
    unsafe fn resume_rows<'s, K: Kernels>(
        &mut self,
        kernels: K,
        frame: *mut Frame,
        pen: Pen<'s>,
    ) -> Result<Pen<'s>, Self::Stop>;

    /// Puts the end of the innermost container. `is_due`: space was made for a member since the last one was put.
    ///
    /// # Errors
    /// If there is no memory, and what code raises.
    fn leave<'s>(
        &mut self,
        frame: *const Frame,
        has_members: bool,
        is_due: bool,
        pen: Pen<'s>,
    ) -> Result<Pen<'s>, Self::Stop>;

    /// The error of a container that was changed.
    fn changed() -> Self::Stop;

    /// Notes why the loop over members is left.
    #[inline(always)]
    fn interrupt(&mut self, reason: Reason, value: *mut ffi::PyObject, at: isize, start: *mut u8) {
        self.shared().interruption.set(reason, value, at, start);
    }

    /// Gives a container in which the loop was interrupted its frame; the one that it is a member
    /// of is gone through up to `at`.
    ///
    /// # Safety
    /// As [`Frames::push`](super::frames::Frames::push).
    #[cold]
    #[inline(never)]
    unsafe fn push_interrupted(
        &mut self,
        container: *mut ffi::PyObject,
        form: Form,
        n: isize,
        start: *mut u8,
        at: isize,
    ) {
        let start = self.offset_of(start);
        let shared = self.shared();
        let at_inside = std::mem::replace(&mut shared.interruption.at, at);
        // SAFETY: the duty of the caller.
        unsafe {
            shared.frames.push_at(container, form, n, at_inside, start);
        }
    }
}
