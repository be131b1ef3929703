//! Bytes that arrays share.

use std::any::Any;
use std::ptr::NonNull;
use std::sync::Arc;

/// A type whose values are all bytes and any bytes a value: no padding, no references.
///
/// # Safety
/// The implementor promises just that.
pub unsafe trait Plain: Send + Sync + 'static {}

macro_rules! plain {
    ($($type:ty),*) => {
        $(
            // SAFETY: a number, or an array of numbers: no padding, and any bytes are one.
            unsafe impl Plain for $type {}
        )*
    };
}
plain!(
    i8, i16, i32, i64, i128, u8, u16, u32, u64, f32, f64, [u8; 16], [u64; 4]
);

/// Bytes that nobody writes to, shared by all that read them, and freed by their owner when the last of these is gone.
#[derive(Clone)]
pub struct Memory {
    at: NonNull<u8>,
    len: usize,
    _owner: Option<Arc<dyn Any + Send + Sync>>,
}

// SAFETY: it is read alone, and its owner may be dropped by any thread.
unsafe impl Send for Memory {}
// SAFETY: it is read alone.
unsafe impl Sync for Memory {}

impl std::fmt::Debug for Memory {
    /// Its size alone: the values are nobody's business in a log.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Memory")
            .field("len", &self.len)
            .finish_non_exhaustive()
    }
}

impl Memory {
    /// No bytes.
    #[must_use]
    pub fn empty() -> Memory {
        Memory {
            // Aligned for what it may be looked at as: some readers ask even where there is nothing to read.
            at: NonNull::<u128>::dangling().cast(),
            len: 0,
            _owner: None,
        }
    }

    /// The values of `values`. Copies: none.
    pub fn of<T: Plain>(values: Vec<T>) -> Memory {
        let len = size_of_val(values.as_slice());
        if len == 0 {
            return Memory::empty();
        }
        let at = NonNull::from(values.as_slice()).cast();
        // The vector's allocation stays where it is when the vector moves.
        Memory {
            at,
            len,
            _owner: Some(Arc::new(values)),
        }
    }

    /// `len` bytes at `at`, which `owner` keeps.
    ///
    /// # Safety
    /// They are readable, initialised, and not written to for as long as `owner` lives.
    pub unsafe fn foreign(at: *const u8, len: usize, owner: Arc<dyn Any + Send + Sync>) -> Memory {
        match NonNull::new(at.cast_mut()) {
            Some(at) if len > 0 => Memory {
                at,
                len,
                _owner: Some(owner),
            },
            _ => Memory::empty(),
        }
    }

    /// The bytes. Copies: none.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: `len` bytes of a vector, or those that `foreign` was promised, kept by the owner; none where `len` is 0.
        unsafe { std::slice::from_raw_parts(self.at.as_ptr(), self.len) }
    }

    /// Where they are, for a reader in C.
    pub(super) fn ptr(&self) -> *const std::ffi::c_void {
        self.at.as_ptr().cast()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_outlives_the_vector_it_was_made_of() {
        let memory = Memory::of(vec![1_i32, 2, 3]);
        let other = memory.clone();
        drop(memory);
        assert_eq!(other.bytes()[4..8], 2_i32.to_ne_bytes());
        assert!(Memory::of(Vec::<i64>::new()).bytes().is_empty());
    }
}
