//! The cyclic garbage collector, held off while rows are built.

use std::marker::PhantomData;

#[cfg(not(Py_GIL_DISABLED))]
use pyo3::ffi;
use pyo3::prelude::*;

/// While it stands, no collection starts in this thread: no finalizer can run between two cells and come back to the
/// cursor that is being read, and building 400,000 tuples does not walk them 500 times.
///
/// It is not to be held across a detach: the switch is the interpreter's, not the thread's. With the GIL held nobody
/// can see that it was turned. On a free-threaded interpreter others could, so it does nothing there (and a
/// collection there only starts between bytecodes).
pub(crate) struct HeldOff<'py> {
    #[cfg(not(Py_GIL_DISABLED))]
    was_on: bool,
    _attached: PhantomData<Python<'py>>,
}

impl<'py> HeldOff<'py> {
    /// Holds it off until the guard is dropped.
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
