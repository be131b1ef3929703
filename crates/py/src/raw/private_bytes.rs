//! `PrivateBytes`: private copies of buffers. A new copy reuses the memory of a dropped one,
//! because a new allocation is slow.

use std::sync::{Mutex, TryLockError};

use onecopy_text::convert::VolatileBytes;
use pyo3::PyResult;
use pyo3::exceptions::PyMemoryError;

/// The maximum capacity in bytes of memory that is kept for reuse.
const KEPT_BYTES: usize = 512 << 10;
/// The minimum size in bytes of a new allocation.
const LEAST_BYTES: usize = 4 << 10;

/// The memory of a dropped `PrivateBytes` for the next one. A thread never waits for this mutex.
static KEPT: Mutex<Vec<u8>> = Mutex::new(Vec::new());

/// A private copy of the bytes of a buffer.
pub(crate) struct PrivateBytes(Vec<u8>);

impl PrivateBytes {
    /// Copies the bytes of a buffer. Copies: the bytes are copied once.
    ///
    /// # Errors
    /// `MemoryError` if the allocation fails.
    pub(crate) fn copy_of(bytes: VolatileBytes<'_>) -> PyResult<PrivateBytes> {
        let mut copy = PrivateBytes::empty(bytes.len())?;
        bytes.append_to(&mut copy.0);
        Ok(copy)
    }

    /// Returns an empty value with space for `capacity` bytes. Reuses the memory in [`KEPT`] if
    /// possible.
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
            Err(TryLockError::Poisoned(kept)) => kept.into_inner(),
            Err(TryLockError::WouldBlock) => return,
        };
        if kept.capacity() < self.0.capacity() {
            std::mem::swap(&mut *kept, &mut self.0);
        }
    }
}
