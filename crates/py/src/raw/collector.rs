//! `HeldOff`: a guard that disables the cyclic garbage collector while rows are created.

use std::marker::PhantomData;

#[cfg(not(Py_GIL_DISABLED))]
use pyo3::ffi;
use pyo3::prelude::*;

/// Disables the cyclic garbage collector until this value is dropped. If the collector ran between
/// two cells, it could call a finalizer, and the finalizer could use the cursor that is being read.
/// Disabling the collector also saves time, because the collector would start 500 times while
/// 400,000 tuples are created.
///
/// This value must be dropped before the GIL is released, because the collector is disabled for the
/// whole interpreter and not for one thread. While this thread holds the GIL, no other thread is
/// affected. In a free-threaded interpreter, other threads would be affected, so this type does
/// nothing there, and is not needed: the collector of such an interpreter starts only between
/// bytecodes, not between two cells.
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
