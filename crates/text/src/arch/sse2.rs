//! The kernels for SSE2 (16-byte vectors), which every x86-64 processor supports. Texts shorter
//! than a vector have a separate path.
#![allow(unused_unsafe)] // Newer compilers treat SSE2 intrinsics as safe on x86-64.

use std::arch::x86_64::*;
use std::mem::MaybeUninit;

use super::generic::{self, EscapeU8, EscapeU16, High, Surrogate, UnitClass, Vector};
use super::kernel::{Scan8, Scan16};
use super::scalar;
use crate::Kind;

#[derive(Clone, Copy)]
pub(super) struct V128(pub(super) __m128i);

macro_rules! op {
    ($name:ident($($arg:ident: $t:ty),*) -> $ret:ty = $body:expr) => {
        #[inline(always)]
        unsafe fn $name($($arg: $t),*) -> $ret {
            // SAFETY: SSE2 is part of x86-64. The pointer is valid (contract of `Vector`).
            unsafe { $body }
        }
    };
    // Combines two vectors into one.
    ($name:ident = $intrinsic:ident) => {
        #[inline(always)]
        unsafe fn $name(self, o: Self) -> Self {
            // SAFETY: SSE2 is part of x86-64; no pointer is passed.
            V128(unsafe { $intrinsic(self.0, o.0) })
        }
    };
}

// SAFETY: `load` and `store` access 16 bytes, and all intrinsics below belong to SSE2.
unsafe impl Vector for V128 {
    const BYTES: usize = 16;
    op!(load(p: *const u8) -> Self = V128(_mm_loadu_si128(p.cast())));
    op!(splat8(b: u8) -> Self = V128(_mm_set1_epi8(b as i8)));
    op!(splat16(u: u16) -> Self = V128(_mm_set1_epi16(u as i16)));
    op!(narrow(lo: Self, hi: Self) -> Self = V128(_mm_packus_epi16(lo.0, hi.0)));
    op!(or = _mm_or_si128);
    op!(and = _mm_and_si128);
    op!(eq8 = _mm_cmpeq_epi8);
    op!(eq16 = _mm_cmpeq_epi16);
    op!(gt8 = _mm_cmpgt_epi8);
    op!(min8 = _mm_min_epu8);
    op!(max8 = _mm_max_epu8);
    op!(sub8 = _mm_sub_epi8);
    op!(subs16 = _mm_subs_epu16);
    #[inline(always)]
    unsafe fn store(self, p: *mut u8) {
        // SAFETY: SSE2 is part of x86-64. The pointer is valid (contract of `Vector`).
        unsafe { _mm_storeu_si128(p.cast(), self.0) }
    }
    #[inline(always)]
    unsafe fn mask(self) -> u32 {
        // SAFETY: SSE2 is part of x86-64; no pointer is passed.
        unsafe { _mm_movemask_epi8(self.0) as u32 }
    }
    #[inline(always)]
    unsafe fn sum8(self) -> usize {
        // SAFETY: SSE2 is part of x86-64; no pointer is passed.
        unsafe {
            let v = _mm_sad_epu8(self.0, _mm_setzero_si128());
            (_mm_cvtsi128_si64(v) + _mm_cvtsi128_si64(_mm_unpackhi_epi64(v, v))) as usize
        }
    }
    #[inline(always)]
    unsafe fn or_u16(self) -> u16 {
        // SAFETY: SSE2 is part of x86-64; no pointer is passed.
        unsafe {
            let v = _mm_or_si128(self.0, _mm_unpackhi_epi64(self.0, self.0));
            let v = _mm_cvtsi128_si64(v) as u64;
            let v = (v | v >> 32) as u32;
            (v | v >> 16) as u16
        }
    }
    #[inline(always)]
    unsafe fn max_u8(self) -> u8 {
        // SAFETY: SSE2 is part of x86-64; no pointer is passed.
        unsafe {
            let v = _mm_max_epu8(self.0, _mm_unpackhi_epi64(self.0, self.0));
            let v = _mm_max_epu8(v, _mm_srli_epi64::<32>(v));
            let v = _mm_max_epu8(v, _mm_srli_epi64::<16>(v));
            let v = _mm_max_epu8(v, _mm_srli_epi64::<8>(v));
            _mm_cvtsi128_si32(v) as u8
        }
    }
}

/// Loads a text of 1 to 15 bytes into a vector, some bytes more than once. Use the vector only to
/// test if any byte has a property.
///
/// # Safety
/// `p` must be readable for `len` bytes, 1 to 15.
#[inline(always)]
unsafe fn load_repeated(p: *const u8, len: usize) -> V128 {
    // SAFETY: each arm reads a block at the start and one at the end, inside `len` bytes.
    unsafe {
        V128(if len >= 8 {
            let a = _mm_loadl_epi64(p.cast());
            let b = _mm_loadl_epi64(p.add(len - 8).cast());
            _mm_unpacklo_epi64(a, b)
        } else if len >= 4 {
            let a = p.cast::<u32>().read_unaligned();
            let b = p.add(len - 4).cast::<u32>().read_unaligned();
            _mm_set1_epi64x((u64::from(a) | u64::from(b) << 32) as i64)
        } else {
            let (a, b, c) = (*p, *p.add(len / 2), *p.add(len - 1));
            _mm_set1_epi32(i32::from_le_bytes([a, b, c, a]))
        })
    }
}

/// Loads 1 to 7 16-bit units into a vector, some more than once. Use the vector only to test if any
/// unit has a property.
///
/// # Safety
/// `p` must be readable for `len` units, 1 to 7.
#[inline(always)]
unsafe fn load_repeated_u16(p: *const u16, len: usize) -> V128 {
    // SAFETY: each arm reads a block at the start and one at the end, inside `len` units.
    unsafe {
        V128(if len >= 4 {
            let a = _mm_loadl_epi64(p.cast());
            let b = _mm_loadl_epi64(p.add(len - 4).cast());
            _mm_unpacklo_epi64(a, b)
        } else if len >= 2 {
            let a = p.cast::<u32>().read_unaligned();
            let b = p.add(len - 2).cast::<u32>().read_unaligned();
            _mm_set1_epi64x((u64::from(a) | u64::from(b) << 32) as i64)
        } else {
            _mm_set1_epi16(*p as i16)
        })
    }
}

/// Loads a text of 1 to 15 bytes into a vector, followed by zeros.
///
/// # Safety
/// `p` must be readable for `len` bytes, 1 to 15.
#[inline(always)]
pub(super) unsafe fn load_padded(p: *const u8, len: usize) -> V128 {
    // SAFETY: each arm reads a block at the start and one at the end, inside `len` bytes.
    unsafe {
        let (lo, hi) = if len >= 8 {
            let b = p.add(len - 8).cast::<u64>().read_unaligned();
            // There are two shifts, because the total may be 64 bits, which one shift does not
            // permit.
            let hi = b >> (8 * (15 - len)) >> 8;
            (p.cast::<u64>().read_unaligned(), hi)
        } else if len >= 4 {
            let a = p.cast::<u32>().read_unaligned();
            let b = p.add(len - 4).cast::<u32>().read_unaligned();
            (u64::from(a) | u64::from(b) << (8 * (len - 4)), 0)
        } else {
            let (a, b, c) = (*p, *p.add(len / 2), *p.add(len - 1));
            let v =
                u64::from(a) | u64::from(b) << (8 * (len / 2)) | u64::from(c) << (8 * (len - 1));
            (v, 0)
        };
        V128(_mm_set_epi64x(hi as i64, lo as i64))
    }
}

/// Copies 0 to 15 bytes.
///
/// # Safety
/// `src` must be readable and `dst` writable for `len` bytes, at most 15. They must not overlap.
#[inline(always)]
unsafe fn copy_short(src: *const u8, dst: *mut u8, len: usize) {
    // SAFETY: each arm copies blocks of fixed sizes inside `len` bytes.
    unsafe {
        if len >= 8 {
            let a = src.cast::<u64>().read_unaligned();
            let b = src.add(len - 8).cast::<u64>().read_unaligned();
            dst.cast::<u64>().write_unaligned(a);
            dst.add(len - 8).cast::<u64>().write_unaligned(b);
        } else if len >= 4 {
            let a = src.cast::<u32>().read_unaligned();
            let b = src.add(len - 4).cast::<u32>().read_unaligned();
            dst.cast::<u32>().write_unaligned(a);
            dst.add(len - 4).cast::<u32>().write_unaligned(b);
        } else if len > 0 {
            let (a, b, c) = (*src, *src.add(len / 2), *src.add(len - 1));
            *dst = a;
            *dst.add(len / 2) = b;
            *dst.add(len - 1) = c;
        }
    }
}

#[inline(always)]
pub(super) fn is_ascii(src: &[u8]) -> bool {
    // SAFETY: the slice is readable, and each arm has the length that its function requires.
    unsafe {
        match src.len() {
            0 => true,
            len @ 1..16 => load_repeated(src.as_ptr(), len).mask() == 0,
            len => generic::is_ascii::<V128>(src.as_ptr(), len),
        }
    }
}

#[inline(always)]
pub(super) fn scan_utf8(src: &[u8]) -> Scan8 {
    // SAFETY: the slice is readable, and each arm has the length that its function requires.
    unsafe {
        match src.len() {
            0 => Scan8 { max: 0, n_chars: 0 },
            len @ 1..16 => {
                let v = load_padded(src.as_ptr(), len);
                let n = V128::splat8(0).sub8(v.gt8(V128::splat8(0xBF))).sum8();
                Scan8 {
                    max: v.max_u8(),
                    // The zeros after the text were counted too, and are subtracted.
                    n_chars: n - (16 - len),
                }
            }
            len => generic::scan_utf8::<V128>(src.as_ptr(), len),
        }
    }
}

#[inline(always)]
pub(super) fn scan_u16(src: &[u16]) -> Scan16 {
    // SAFETY: the slice is readable, and each arm has the length that its function requires.
    unsafe {
        match src.len() {
            0 => Scan16 {
                kind: Kind::Ascii,
                surrogate: false,
            },
            len @ 1..8 => {
                let v = load_repeated_u16(src.as_ptr(), len);
                Scan16 {
                    kind: Kind::of(v.or_u16().into()),
                    surrogate: Surrogate::marks(v).mask() != 0,
                }
            }
            len => generic::scan_u16::<V128>(src.as_ptr(), len),
        }
    }
}

#[inline(always)]
pub(super) fn find_surrogate(src: &[u16]) -> usize {
    if src.len() < 8 {
        return scalar::find_surrogate(src);
    }
    // SAFETY: the slice is readable and has a vector or more.
    unsafe { generic::find::<V128, Surrogate>(src.as_ptr().cast(), src.len()) }
}

#[inline(always)]
pub(super) fn find_high(src: &[u8]) -> usize {
    // SAFETY: the slice is readable, and each arm has the length that its function requires.
    unsafe {
        match src.len() {
            0 => 0,
            len @ 1..16 => {
                // The bit after the text ends the search.
                let mask = load_padded(src.as_ptr(), len).mask() | 1 << len;
                mask.trailing_zeros() as usize
            }
            len => generic::find::<V128, High>(src.as_ptr(), len),
        }
    }
}

#[inline(always)]
pub(super) fn find_escape_u8(src: &[u8]) -> usize {
    // SAFETY: the slice is readable, and each arm has the length that its function requires.
    unsafe {
        match src.len() {
            0 => 0,
            len @ 1..16 => {
                // The zeros after the text are control characters, which end the search.
                let mask = EscapeU8::marks(load_padded(src.as_ptr(), len)).mask();
                mask.trailing_zeros() as usize
            }
            len => generic::find::<V128, EscapeU8>(src.as_ptr(), len),
        }
    }
}

#[inline(always)]
pub(super) fn find_escape_u16(src: &[u16]) -> usize {
    if src.len() < 8 {
        return scalar::find_escape_u16(src);
    }
    // SAFETY: the slice is readable and has a vector or more.
    unsafe { generic::find::<V128, EscapeU16>(src.as_ptr().cast(), src.len()) }
}

/// Narrows at most 15 16-bit units to bytes.
///
/// # Safety
/// `src` must be readable for `len` units, at most 15. `dst` must be writable for `len` bytes. They
/// must not overlap.
#[inline(always)]
unsafe fn narrow_short(src: *const u16, len: usize, dst: *mut u8) {
    // SAFETY: each arm copies units at the start and at the end, inside `len` units.
    unsafe {
        let low = V128::splat16(0xFF);
        if len >= 8 {
            let a = V128::load(src.cast()).and(low);
            let b = V128::load(src.add(len - 8).cast()).and(low);
            let v = V128::narrow(a, b).0;
            _mm_storel_epi64(dst.cast(), v);
            _mm_storel_epi64(dst.add(len - 8).cast(), _mm_unpackhi_epi64(v, v));
        } else if len >= 4 {
            let a = V128(_mm_loadl_epi64(src.cast()));
            let b = V128(_mm_loadl_epi64(src.add(len - 4).cast()));
            let v = V128(_mm_unpacklo_epi64(a.0, b.0)).and(low);
            let v = _mm_cvtsi128_si64(V128::narrow(v, v).0) as u64;
            dst.cast::<u32>().write_unaligned(v as u32);
            dst.add(len - 4)
                .cast::<u32>()
                .write_unaligned((v >> 32) as u32);
        } else {
            for i in 0..len {
                dst.add(i).write(*src.add(i) as u8);
            }
        }
    }
}

/// Copies the low byte of each 16-bit unit.
///
/// # Safety
/// `out` must have at least as many units as `src`.
#[inline(always)]
pub(super) unsafe fn narrow_u16(src: &[u16], out: &mut [MaybeUninit<u8>]) {
    let dst = out.as_mut_ptr().cast::<u8>();
    // SAFETY: `out` is at least as long as `src`, and each arm has a permitted length.
    unsafe {
        if src.len() < 16 {
            narrow_short(src.as_ptr(), src.len(), dst);
        } else {
            generic::narrow_u16::<V128>(src.as_ptr(), src.len(), dst);
        }
    }
}

/// Copies bytes up to the first JSON escape. Returns their number, and `true` if a copied byte is
/// not ASCII.
///
/// # Safety
/// `out` must have at least as many bytes as `src`.
#[inline(always)]
pub(super) unsafe fn copy_to_escape(src: &[u8], out: &mut [MaybeUninit<u8>]) -> (usize, bool) {
    let dst = out.as_mut_ptr().cast::<u8>();
    // SAFETY: `out` is at least as long as `src`, and each arm has a permitted length.
    unsafe {
        match src.len() {
            0 => (0, false),
            len @ 1..16 => {
                copy_short(src.as_ptr(), dst, len);
                let v = load_padded(src.as_ptr(), len);
                // The zeros after the text are control characters, so `n` is at most `len`.
                let n = EscapeU8::marks(v).mask().trailing_zeros();
                (n as usize, v.mask() & !(u32::MAX << n) != 0)
            }
            len => generic::copy_to_escape::<V128>(src.as_ptr(), len, dst),
        }
    }
}

/// Copies 16-bit units as bytes. Stops at the first non-ASCII unit, or earlier. If `JSON` is
/// `true`, also stops at a JSON escape. Returns the number of copied units.
///
/// # Safety
/// `out` must have at least as many units as `src`.
#[inline(always)]
pub(super) unsafe fn narrow_plain<const JSON: bool>(
    src: &[u16],
    out: &mut [MaybeUninit<u8>],
) -> usize {
    let dst = out.as_mut_ptr().cast::<u8>();
    // SAFETY: `out` is at least as long as `src`, and each arm has a permitted length.
    unsafe {
        let (p, len) = (src.as_ptr(), src.len());
        if len >= 16 {
            return generic::narrow_plain::<V128, JSON>(p, len, dst);
        }
        if len < 4 {
            return scalar::narrow_plain::<JSON>(src, out);
        }
        // This kernel copies all units or none.
        let v = if len >= 8 {
            V128::narrow(V128::load(p.cast()), V128::load(p.add(len - 8).cast()))
        } else {
            let v = load_repeated_u16(p, len);
            V128::narrow(v, v)
        };
        if generic::plain::<V128, JSON>(v).mask() != 0xFFFF {
            return scalar::narrow_plain::<JSON>(src, out);
        }
        narrow_short(p, len, dst);
        len
    }
}

/// Copies ASCII bytes. Stops at the first non-ASCII byte, or earlier. Returns the number of copied
/// bytes.
///
/// # Safety
/// `out` must have at least as many bytes as `src`.
pub(super) unsafe fn copy_ascii(src: &[u8], out: &mut [MaybeUninit<u8>]) -> usize {
    let dst = out.as_mut_ptr().cast::<u8>();
    // SAFETY: `out` is at least as long as `src`, and the first arm has a permitted length.
    unsafe {
        match src.len() {
            16.. => generic::copy_ascii::<V128>(src.as_ptr(), src.len(), dst),
            _ => scalar::copy_ascii(src, out),
        }
    }
}

/// Copies 16-bit units as bytes. Stops at the first unit above `MAX`, or earlier. Returns the
/// number of copied units.
///
/// # Safety
/// `out` must have at least as many units as `src`.
pub(super) unsafe fn narrow_up_to<const MAX: u16>(
    src: &[u16],
    out: &mut [MaybeUninit<u8>],
) -> usize {
    let dst = out.as_mut_ptr().cast::<u8>();
    // SAFETY: `out` is at least as long as `src`, and the first arm has a permitted length.
    unsafe {
        match src.len() {
            16.. => generic::narrow_up_to::<V128, MAX>(src.as_ptr(), src.len(), dst),
            _ => scalar::narrow_up_to::<MAX>(src, out),
        }
    }
}

/// Copies 16-bit units. Stops at the first surrogate, or earlier. Returns the number of copied
/// units.
///
/// # Safety
/// `out` must have at least as many units as `src`.
pub(super) unsafe fn copy_bmp(src: &[u16], out: &mut [MaybeUninit<u16>]) -> usize {
    let dst = out.as_mut_ptr().cast::<u16>();
    // SAFETY: `out` is at least as long as `src`, and the first arm has a permitted length.
    unsafe {
        match src.len() {
            16.. => generic::copy_bmp::<V128>(src.as_ptr(), src.len(), dst),
            _ => scalar::copy_bmp(src, out),
        }
    }
}
