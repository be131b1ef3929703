//! Destinations of the AVX2 kernels. They never write past the end of their buffer.

use std::arch::x86_64::*;
use std::mem::MaybeUninit;

use super::copy::copy;

/// Byte shuffles that move the lanes in a mask to the start of a vector, indexed by the mask.
pub(super) static SQUEEZE_U16: [[u8; 16]; 256] = {
    let mut all = [[0x80; 16]; 256];
    let mut mask = 0;
    while mask < 256 {
        let (mut lane, mut to) = (0, 0);
        while lane < 8 {
            if mask >> lane & 1 == 1 {
                all[mask][to] = 2 * lane as u8;
                all[mask][to + 1] = 2 * lane as u8 + 1;
                to += 2;
            }
            lane += 1;
        }
        mask += 1;
    }
    all
};

/// The numbers of the lanes that a mask selects, in ascending order. Indexed by the mask.
pub(super) static SQUEEZE: [[u8; 8]; 256] = {
    let mut all = [[0; 8]; 256];
    let mut mask = 0;
    while mask < 256 {
        let (mut lane, mut to) = (0, 0);
        while lane < 8 {
            if mask >> lane & 1 == 1 {
                all[mask][to] = lane as u8;
                to += 1;
            }
            lane += 1;
        }
        mask += 1;
    }
    all
};

/// Indexes for byte shuffles. The 16 indexes from index `16 - n` on shift a vector up by `n` bytes.
static SLIDE: [u8; 32] = {
    let mut all = [0x80; 32];
    let mut i = 0;
    while i < 16 {
        all[16 + i] = i as u8;
        i += 1;
    }
    all
};

/// A destination for decoded units. Units that do not fit are dropped.
pub(super) struct Out<U> {
    pub(super) at: *mut U,
    end: *mut U,
    /// `true` if the whole destination has space for 8 units.
    has_eight: bool,
    /// `true` if units were dropped.
    is_over: bool,
}

impl<U> Out<U> {
    /// Creates a destination of `len` units that starts at `at`.
    ///
    /// # Safety
    /// `at` must be writable for `len` units.
    pub(super) unsafe fn new(at: *mut U, len: usize) -> Out<U> {
        Out {
            at,
            // SAFETY: the destination is writable up to its end.
            end: unsafe { at.add(len) },
            has_eight: len >= 8,
            is_over: false,
        }
    }

    /// Returns the number of units written. `None` if units were dropped.
    #[inline(always)]
    pub(super) fn written(&self, len: usize) -> Option<usize> {
        (!self.is_over).then(|| len - self.remaining())
    }

    /// Returns how many of `n` units fit. Sets `is_over` if some do not.
    #[inline(always)]
    fn fitting(&mut self, n: usize) -> usize {
        self.is_over |= n > self.remaining();
        n.min(self.remaining())
    }

    /// Returns the free space in units.
    #[inline(always)]
    pub(super) fn remaining(&self) -> usize {
        (self.end as usize - self.at as usize) / size_of::<U>()
    }
}

/// A code unit of a `str` or of UTF-16.
pub(super) trait StrUnit: Copy {
    const WIDE: bool;
    /// Converts eight 16-bit lanes to units, in the low bytes of the result.
    /// # Safety
    /// The processor must support SSE2.
    unsafe fn pack(v: __m128i) -> __m128i;
    /// Stores 32 bytes of ASCII as 32 units.
    /// # Safety
    /// The processor must support AVX2; `to` must have space for 32 units.
    unsafe fn put_ascii(v: __m256i, to: *mut Self);
    /// Stores 16 lanes as units. `Self` must have 16 bits.
    /// # Safety
    /// The processor must support AVX2; `to` must have space for 16 units.
    unsafe fn put_wide(v: __m256i, to: *mut Self);
}

impl StrUnit for u8 {
    const WIDE: bool = false;
    #[inline(always)]
    unsafe fn pack(v: __m128i) -> __m128i {
        // SAFETY: SSE2 is part of x86-64.
        unsafe { _mm_packus_epi16(v, v) }
    }
    #[inline(always)]
    unsafe fn put_ascii(v: __m256i, to: *mut u8) {
        // SAFETY: guaranteed by the caller of this function.
        unsafe { _mm256_storeu_si256(to.cast(), v) }
    }
    unsafe fn put_wide(_: __m256i, _: *mut u8) {
        unreachable!("units of 8 bits are not wide");
    }
}

impl StrUnit for u16 {
    const WIDE: bool = true;
    #[inline(always)]
    unsafe fn pack(v: __m128i) -> __m128i {
        v
    }
    #[inline(always)]
    unsafe fn put_ascii(v: __m256i, to: *mut u16) {
        // SAFETY: guaranteed by the caller of this function.
        unsafe {
            let (lower, upper) = (_mm256_castsi256_si128(v), _mm256_extracti128_si256::<1>(v));
            _mm256_storeu_si256(to.cast(), _mm256_cvtepu8_epi16(lower));
            _mm256_storeu_si256(to.add(16).cast(), _mm256_cvtepu8_epi16(upper));
        }
    }
    #[inline(always)]
    unsafe fn put_wide(v: __m256i, to: *mut u16) {
        // SAFETY: guaranteed by the caller of this function.
        unsafe { _mm256_storeu_si256(to.cast(), v) }
    }
}

impl<U: StrUnit> Out<U> {
    /// Writes the 16-bit lanes that `mask` selects, without gaps. If `ROOMY` is `true`, does not
    /// check the space.
    ///
    /// # Safety
    /// The processor must support AVX2. If `ROOMY` is `true`, 8 units must fit.
    #[inline(always)]
    pub(super) unsafe fn put<const ROOMY: bool>(&mut self, v: __m128i, mask: u8) {
        // SAFETY: all 8 units are stored if they fit, otherwise only the selected ones.
        unsafe {
            let order = _mm_loadu_si128(SQUEEZE_U16[usize::from(mask)].as_ptr().cast());
            let v = U::pack(_mm_shuffle_epi8(v, order));
            let mut n = mask.count_ones() as usize;
            debug_assert!(!ROOMY || self.remaining() >= 8);
            if ROOMY || self.remaining() >= 8 {
                store_eight::<U>(v, self.at);
            } else if self.has_eight {
                n = self.fitting(n);
                // The last 8 units are loaded, completed with the new units and stored again,
                // without a branch.
                let before = 8 - self.remaining();
                let end = self.at.sub(before);
                let kept = before * size_of::<U>();
                let slide = _mm_loadu_si128(SLIDE.as_ptr().add(16 - kept).cast());
                let old = load_eight::<U>(end);
                let below = _mm_cmplt_epi8(slide, _mm_setzero_si128());
                let v = _mm_blendv_epi8(_mm_shuffle_epi8(v, slide), old, below);
                store_eight::<U>(v, end);
            } else {
                n = self.fitting(n);
                store_first(v, self.at.cast(), n * size_of::<U>());
            }
            self.at = self.at.add(n);
        }
    }
}

/// Stores 8 units of 1 or 2 bytes from the low bytes of `v`.
///
/// # Safety
/// `to` must be writable for 8 units.
#[inline(always)]
unsafe fn store_eight<U>(v: __m128i, to: *mut U) {
    // SAFETY: guaranteed by the caller.
    unsafe {
        if size_of::<U>() == 2 {
            _mm_storeu_si128(to.cast(), v);
        } else {
            _mm_storel_epi64(to.cast(), v);
        }
    }
}

/// Loads 8 units of 1 or 2 bytes, which may be uninitialised.
///
/// # Safety
/// `from` must be readable for 8 units.
#[inline(always)]
unsafe fn load_eight<U>(from: *const U) -> __m128i {
    // SAFETY: `from` is readable for 8 units. Uninitialised units are overwritten before use.
    unsafe {
        if size_of::<U>() == 2 {
            _mm_loadu_si128(from.cast())
        } else {
            _mm_loadl_epi64(from.cast())
        }
    }
}

/// Stores the first `n_bytes` bytes (0 to 15) of a vector.
///
/// # Safety
/// `to` must be writable for `n_bytes` bytes.
#[inline(always)]
unsafe fn store_first(v: __m128i, to: *mut u8, n_bytes: usize) {
    // SAFETY: each arm stores one block at the start and one at the end of `n_bytes`.
    unsafe {
        let low = _mm_cvtsi128_si64(v) as u64;
        if n_bytes >= 8 {
            let high = _mm_cvtsi128_si64(_mm_unpackhi_epi64(v, v)) as u64;
            to.cast::<u64>().write_unaligned(low);
            if n_bytes > 8 {
                // The last 8 bytes have some bytes of the low half and all others of the high half.
                let shift = 8 * (n_bytes - 8) as u32;
                let last = low >> shift | high << (64 - shift);
                to.add(n_bytes - 8).cast::<u64>().write_unaligned(last);
            }
        } else if n_bytes >= 4 {
            to.cast::<u32>().write_unaligned(low as u32);
            let last = (low >> (8 * (n_bytes - 4))) as u32;
            to.add(n_bytes - 4).cast::<u32>().write_unaligned(last);
        } else {
            for i in 0..n_bytes {
                to.add(i).write((low >> (8 * i)) as u8);
            }
        }
    }
}

impl Out<u32> {
    /// Writes the 32-bit lanes that `mask` selects, without gaps.
    ///
    /// # Safety
    /// The processor must support AVX2.
    #[inline(always)]
    pub(super) unsafe fn put_wide(&mut self, v: __m256i, mask: u8) {
        // SAFETY: all 8 units are stored if they fit, otherwise only the selected ones.
        unsafe {
            let order = _mm_loadl_epi64(SQUEEZE[usize::from(mask)].as_ptr().cast());
            let v = _mm256_permutevar8x32_epi32(v, _mm256_cvtepu8_epi32(order));
            let mut n = mask.count_ones() as usize;
            if self.remaining() >= 8 {
                _mm256_storeu_si256(self.at.cast(), v);
            } else {
                n = self.fitting(n);
                // The first `n` lanes are negative.
                let lanes = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
                let kept = _mm256_cmpgt_epi32(_mm256_set1_epi32(n as i32), lanes);
                _mm256_maskstore_epi32(self.at.cast(), kept, v);
            }
            self.at = self.at.add(n);
        }
    }
}

/// The most bytes that the `step` of [`Bounded::put_if_it_fits`] may write.
pub(super) const STEP: usize = 64;

/// A destination for bytes. Bytes that do not fit are dropped; [`Bounded::written`] is then `None`.
pub(super) struct Bounded {
    at: *mut u8,
    end: *mut u8,
    full: bool,
}

impl Bounded {
    /// Creates a destination of `n_bytes` bytes that starts at `p`.
    ///
    /// # Safety
    /// `p` must be writable for `n_bytes` bytes.
    pub(super) unsafe fn new(p: *mut u8, n_bytes: usize) -> Bounded {
        Bounded {
            at: p,
            // SAFETY: the destination is writable up to its end.
            end: unsafe { p.add(n_bytes) },
            full: false,
        }
    }

    /// Returns `true` if `n_bytes` more bytes fit.
    #[inline(always)]
    pub(super) fn takes(&self, n_bytes: usize) -> bool {
        self.left() >= n_bytes
    }

    #[inline(always)]
    fn left(&self) -> usize {
        self.end as usize - self.at as usize
    }

    /// Calls `step` with the write position. `step` returns the number of valid bytes it wrote.
    ///
    /// # Safety
    /// The destination must have space for all bytes that `step` writes.
    #[inline(always)]
    pub(super) unsafe fn put(&mut self, step: impl FnOnce(*mut u8) -> usize) {
        let n = step(self.at);
        debug_assert!(self.takes(n));
        // SAFETY: the result fits.
        self.at = unsafe { self.at.add(n) };
    }

    /// Like [`Bounded::put`], but `step` writes to a separate buffer. The result is copied if it
    /// fits.
    ///
    /// # Safety
    /// The processor must support AVX2. `step` must write at most [`STEP`] bytes.
    #[inline(always)]
    pub(super) unsafe fn put_if_it_fits(&mut self, step: impl FnOnce(*mut u8) -> usize) {
        let mut buffer = [const { MaybeUninit::<u8>::uninit() }; STEP];
        let start = buffer.as_mut_ptr().cast();
        let n = step(start);
        if n > self.left() {
            self.full = true;
            return;
        }
        // SAFETY: the `n` bytes were written, and they fit.
        unsafe {
            copy(std::slice::from_raw_parts(start, n), self.at);
            self.at = self.at.add(n);
        }
    }

    /// Returns the number of bytes written from `start` on. `None` if bytes were dropped.
    pub(super) fn written(self, start: *mut u8) -> Option<usize> {
        (!self.full).then(|| self.at as usize - start as usize)
    }
}
