//! `HeldOff`: disables the cyclic garbage collector while rows are created.

use std::marker::PhantomData;

#[cfg(not(Py_GIL_DISABLED))]
use pyo3::ffi;
use pyo3::prelude::*;

/// Disables the cyclic garbage collector until this value is dropped. Otherwise a finalizer could
/// use the cursor between two cells.
///
/// Drop this value before the GIL is released, because it affects the whole interpreter. In a
/// free-threaded interpreter, it does nothing.
pub(crate) struct HeldOff<'py> {
    #[cfg(not(Py_GIL_DISABLED))]
    was_on: bool,
    _attached: PhantomData<Python<'py>>,
}

impl<'py> HeldOff<'py> {
    /// Disables the garbage collector until the returned guard is dropped.
    #[inline]
    pub(crate) fn new(_py: Python<'py>) -> HeldOff<'py> {
        HeldOff {
            #[cfg(not(Py_GIL_DISABLED))]
            // SAFETY: attached, for as long as the guard lives (by its lifetime).
            was_on: unsafe { ffi::PyGC_Disable() } != 0,
            _attached: PhantomData,
        }
    }
}

impl Drop for HeldOff<'_> {
    #[inline]
    fn drop(&mut self) {
        #[cfg(not(Py_GIL_DISABLED))]
        if self.was_on {
            // SAFETY: attached, by the lifetime of the guard.
            unsafe { ffi::PyGC_Enable() };
        }
    }
}
