//! Implements the trait `Members` for lists, tuples, dicts and dataclass instances.

use onecopy_text::Pen;
use onecopy_text::convert::Kernels;
use pyo3::ffi;

use super::classes::Fields;
use super::dict::Entries;
use super::format::MemberEncoder;
use super::members::Members;
use super::prefetch;
use super::sorted::SortedMembers;

/// The items of a list or tuple, written as an array.
#[derive(Clone, Copy)]
pub(super) struct SequenceItems<'i>(pub(super) &'i [*mut ffi::PyObject]);

impl Members for SequenceItems<'_> {
    #[inline(always)]
    unsafe fn next(&self, at: &mut isize) -> Option<(*mut ffi::PyObject, *mut ffi::PyObject)> {
        let item = *self.0.get(at.cast_unsigned())?;
        *at += 1;
        Some((std::ptr::null_mut(), item))
    }

    #[inline(always)]
    unsafe fn put_key<'py, K: Kernels, F: MemberEncoder<'py>>(
        &self,
        _kernels: K,
        _encoder: &mut F,
        _key: *mut ffi::PyObject,
        at: isize,
        index: &mut F::Index,
        pen: &mut Pen<'_>,
    ) -> bool {
        F::put_index(index, at, pen);
        true
    }

    #[inline(always)]
    fn prefetch(&self, at: isize) {
        prefetch::fetch_object(self.0, at.cast_unsigned());
    }

    #[inline(always)]
    unsafe fn prefetch_contents(&self, at: isize) {
        // SAFETY: the items are alive.
        unsafe { prefetch::fetch_rows(self.0, at.cast_unsigned()) };
    }

    #[inline(always)]
    fn items_from(&self, at: isize) -> &[*mut ffi::PyObject] {
        self.0.get(at.cast_unsigned()..).unwrap_or_default()
    }
}

/// Implements [`Members::put_key`] for members whose keys are Python objects.
macro_rules! put_key_object {
    () => {
        #[inline(always)]
        unsafe fn put_key<'py, K: Kernels, F: MemberEncoder<'py>>(
            &self,
            kernels: K,
            encoder: &mut F,
            key: *mut ffi::PyObject,
            _at: isize,
            _index: &mut F::Index,
            pen: &mut Pen<'_>,
        ) -> bool {
            // SAFETY: the key is alive, and there is space, as the caller guarantees.
            unsafe { encoder.short_key(kernels, key, pen) }
        }
    };
}

/// The members of a `dict`, written as an object or document.
#[derive(Clone, Copy)]
pub(super) struct DictMembers(pub(super) Entries, pub(super) *mut ffi::PyObject);

impl Members for DictMembers {
    #[inline(always)]
    unsafe fn next(&self, at: &mut isize) -> Option<(*mut ffi::PyObject, *mut ffi::PyObject)> {
        // SAFETY: the entries of this `dict`, which was not changed, as the caller guarantees.
        unsafe { self.0.next(self.1, at) }
    }

    put_key_object!();
}

impl Members for SortedMembers {
    #[inline(always)]
    unsafe fn next(&self, at: &mut isize) -> Option<(*mut ffi::PyObject, *mut ffi::PyObject)> {
        // SAFETY: the `dict` was not changed, as the caller guarantees.
        unsafe { SortedMembers::next(self, at) }
    }

    put_key_object!();
}

/// A list of alternating keys and values. The encoder writes them as members.
#[derive(Clone, Copy)]
pub(super) struct Pairs<'i>(pub(super) &'i [*mut ffi::PyObject]);

impl Members for Pairs<'_> {
    #[inline(always)]
    unsafe fn next(&self, at: &mut isize) -> Option<(*mut ffi::PyObject, *mut ffi::PyObject)> {
        let from = at.cast_unsigned();
        let &[key, value] = self.0.get(from..from + 2)? else {
            return None;
        };
        *at += 2;
        Some((key, value))
    }

    put_key_object!();
}

/// The fields of a dataclass instance, written as an object or document.
#[derive(Clone, Copy)]
pub(super) struct FieldMembers<'f> {
    pub(super) object: *mut ffi::PyObject,
    pub(super) fields: &'f Fields,
    pub(super) private: bool,
}

impl Members for FieldMembers<'_> {
    #[inline(always)]
    unsafe fn next(&self, at: &mut isize) -> Option<(*mut ffi::PyObject, *mut ffi::PyObject)> {
        // SAFETY: an instance of the class that has these fields, as the caller guarantees.
        unsafe { self.fields.next(self.object, self.private, at) }
    }

    put_key_object!();
}
