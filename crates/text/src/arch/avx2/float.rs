//! The twin, compiled for these instructions.

use crate::arch::float;

/// As `put` of the twin.
///
/// # Safety
/// As there.
#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt")]
pub(in crate::arch) unsafe fn put(value: f64, out: *mut u8) -> *mut u8 {
    // SAFETY: the duty of the caller.
    unsafe { float::put(value, out) }.unwrap_or(std::ptr::null_mut())
}
