//! Private copies of buffers, whose memory is kept from one call to the next: a fresh allocation
//! costs more than the copy of a short buffer, and the pages of a long one more than that.

use std::sync::{Mutex, PoisonError, TryLockError};

use onecopy_text::convert::VolatileBytes;
use pyo3::PyResult;
use pyo3::exceptions::PyMemoryError;

/// The largest memory that is kept.
const KEPT_BYTES: usize = 512 << 10;
/// The least that is allocated.
const LEAST_BYTES: usize = 4 << 10;

/// The memory of the last copy. No thread waits for it: it allocates its own.
static KEPT: Mutex<Vec<u8>> = Mutex::new(Vec::new());

/// A copy of a buffer as it was at one moment.
pub(crate) struct PrivateBytes(Vec<u8>);

impl PrivateBytes {
    /// Copies: one.
    ///
    /// # Errors
    /// `MemoryError`.
    pub(crate) fn copy_of(bytes: VolatileBytes<'_>) -> PyResult<PrivateBytes> {
        let mut copy = PrivateBytes::empty(bytes.len())?;
        bytes.append_to(&mut copy.0);
        Ok(copy)
    }

    /// Memory for `capacity` bytes.
    fn empty(capacity: usize) -> PyResult<PrivateBytes> {
        let mut memory = match KEPT.try_lock() {
            Ok(mut kept) => std::mem::take(&mut *kept),
            Err(TryLockError::Poisoned(kept)) => std::mem::take(&mut *kept.into_inner()),
            Err(TryLockError::WouldBlock) => Vec::new(),
        };
        memory.clear();
        memory
            .try_reserve(capacity.max(LEAST_BYTES))
            .map_err(|_| PyMemoryError::new_err(()))?;
        Ok(PrivateBytes(memory))
    }

    pub(super) fn of(bytes: Vec<u8>) -> PrivateBytes {
        PrivateBytes(bytes)
    }

    #[inline(always)]
    pub(crate) fn as_slice(&self) -> &[u8] {
        &self.0
    }
}

impl Drop for PrivateBytes {
    fn drop(&mut self) {
        if self.0.capacity() > KEPT_BYTES {
            return;
        }
        let mut kept = match KEPT.try_lock() {
            Ok(kept) => kept,
            Err(TryLockError::Poisoned(kept)) => PoisonError::into_inner(kept),
            Err(TryLockError::WouldBlock) => return,
        };
        if kept.capacity() < self.0.capacity() {
            std::mem::swap(&mut *kept, &mut self.0);
        }
    }
}
