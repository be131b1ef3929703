//! `Memory`: immutable bytes that several arrays share.

use std::any::Any;
use std::ptr::NonNull;
use std::sync::Arc;

/// A type without padding and without references, for which every bit pattern is a valid value.
///
/// # Safety
/// The implementor must ensure that the type has no padding, no references and no invalid bit
/// pattern.
pub unsafe trait Plain: Send + Sync + 'static {}

macro_rules! plain {
    ($($type:ty),*) => {
        $(
            // SAFETY: a number, or an array of numbers: no padding, no references, and any bytes
            // are a value.
            unsafe impl Plain for $type {}
        )*
    };
}
plain!(
    i8, i16, i32, i64, i128, u8, u16, u32, u64, f32, f64, [u8; 16], [u64; 4]
);

/// Immutable bytes, shared by all readers, and freed when the last reader is dropped.
#[derive(Clone)]
pub struct Memory {
    at: NonNull<u8>,
    len: usize,
    _owner: Option<Arc<dyn Any + Send + Sync>>,
}

// SAFETY: the bytes are only read, and their owner may be dropped by any thread.
unsafe impl Send for Memory {}
// SAFETY: the bytes are only read.
unsafe impl Sync for Memory {}

impl std::fmt::Debug for Memory {
    /// Prints only the size: a log must not contain values.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Memory")
            .field("len", &self.len)
            .finish_non_exhaustive()
    }
}

impl Memory {
    /// Creates an empty `Memory`.
    #[must_use]
    pub fn empty() -> Memory {
        Memory {
            // The address is aligned for every type, because some consumers check the alignment of
            // empty buffers too.
            at: NonNull::<u128>::dangling().cast(),
            len: 0,
            _owner: None,
        }
    }

    /// Takes over the allocation of a vector, without copying its values.
    pub fn of<T: Plain>(values: Vec<T>) -> Memory {
        let len = size_of_val(values.as_slice());
        if len == 0 {
            return Memory::empty();
        }
        let at = NonNull::from(values.as_slice()).cast();
        // The values keep their address, because a move of a vector does not move its allocation.
        Memory {
            at,
            len,
            _owner: Some(Arc::new(values)),
        }
    }

    /// Creates a `Memory` of the `len` bytes that begin at the address `at`, without copying them.
    /// `owner` keeps these bytes allocated.
    ///
    /// # Safety
    /// The caller must ensure that the bytes are readable and initialised, and that nothing writes
    /// to them while `owner` lives.
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

    /// Returns the bytes, without copying them.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: the `len` bytes are those of a vector, or bytes for which the caller of `foreign`
        // vouched; the owner keeps them allocated. Without an owner, `len` is 0.
        unsafe { std::slice::from_raw_parts(self.at.as_ptr(), self.len) }
    }

    /// Returns the address of the bytes, for a consumer in C.
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
