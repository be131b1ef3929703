//! The types through which the AVX2 kernels write their output: a write position in a buffer, with
//! methods that never write past the end of the buffer.

use std::arch::x86_64::*;
use std::mem::MaybeUninit;

use super::copy::copy;

/// For each mask of eight lanes, the indexes of a byte shuffle for a vector of eight 16-bit lanes.
/// The shuffle moves the lanes whose bits are set in the mask to the start of the vector.
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

/// For each mask of eight lanes, the numbers of the lanes whose bits are set, in ascending order.
/// [`SQUEEZE_U16`] contains the same as byte numbers. Lane numbers can be used for any lane size.
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

/// Indexes for a byte shuffle that shifts a vector by `n` bytes to higher positions and fills its
/// first `n` bytes with zeros. For a shift by `n`, the indexes are the 16 bytes of this array that
/// begin at index `16 - n`.
static SLIDE: [u8; 32] = {
    let mut all = [0x80; 32];
    let mut i = 0;
    while i < 16 {
        all[16 + i] = i as u8;
        i += 1;
    }
    all
};

/// A destination for decoded units. It writes no unit past its end; units that do not fit are
/// dropped.
pub(super) struct Out<U> {
    pub(super) at: *mut U,
    end: *mut U,
    /// `true` if the destination has space for at least 8 units, including those already written.
    has_eight: bool,
    /// `true` if a unit did not fit into the destination.
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
            // SAFETY: the caller guarantees that the destination is writable up to this end.
            end: unsafe { at.add(len) },
            has_eight: len >= 8,
            is_over: false,
        }
    }

    /// Returns the number of units written to a destination of `len` units; `None` if a unit did
    /// not fit.
    #[inline(always)]
    pub(super) fn written(&self, len: usize) -> Option<usize> {
        (!self.is_over).then(|| len - self.remaining())
    }

    /// Returns how many of the next `n` units fit into the destination, and sets `is_over` if some
    /// of them do not.
    #[inline(always)]
    fn fitting(&mut self, n: usize) -> usize {
        self.is_over |= n > self.remaining();
        n.min(self.remaining())
    }

    /// Returns the number of units for which the destination still has space.
    #[inline(always)]
    pub(super) fn remaining(&self) -> usize {
        (self.end as usize - self.at as usize) / size_of::<U>()
    }
}

/// A type of the code units of a `str` or of UTF-16 text. The kernels compute units in 16-bit
/// lanes; the methods of this trait convert the lanes to units of this type and store them.
pub(super) trait StrUnit: Copy {
    /// `true` if the unit can hold characters above U+07FF.
    const WIDE: bool;
    /// Converts eight 16-bit lanes to eight units of this type. Returns a vector with the units in
    /// its low bytes.
    /// # Safety
    /// The processor must support SSE2.
    unsafe fn pack(v: __m128i) -> __m128i;
    /// Stores 32 bytes of ASCII as 32 units.
    /// # Safety
    /// The processor must support AVX2; `to` must have space for 32 units.
    unsafe fn put_ascii(v: __m256i, to: *mut Self);
    /// Stores 16 lanes of 16 bits as 16-bit units; must not be called for other unit types.
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
    /// Writes the 16-bit lanes of `v` that `mask` selects to the destination, without gaps. Bit `i`
    /// of `mask` selects lane `i`. If `ROOMY` is `true`, does not check that the units fit.
    ///
    /// # Safety
    /// The processor must support AVX2. If `ROOMY` is `true`, the destination must have space for 8
    /// units.
    #[inline(always)]
    pub(super) unsafe fn put<const ROOMY: bool>(&mut self, v: __m128i, mask: u8) {
        // SAFETY: 8 units are stored if they fit, otherwise only those in the mask.
        unsafe {
            let order = _mm_loadu_si128(SQUEEZE_U16[usize::from(mask)].as_ptr().cast());
            let v = U::pack(_mm_shuffle_epi8(v, order));
            let mut n = mask.count_ones() as usize;
            debug_assert!(!ROOMY || self.remaining() >= 8);
            if ROOMY || self.remaining() >= 8 {
                store_eight::<U>(v, self.at);
            } else if self.has_eight {
                n = self.fitting(n);
                // The last 8 units of the destination, which include units written before, are
                // loaded and stored again together with the new units: no branch depends on their
                // number.
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

/// Stores the 8 units of type `U` (1 or 2 bytes each) in the low bytes of `v`.
///
/// # Safety
/// `to` must be writable for 8 units.
#[inline(always)]
unsafe fn store_eight<U>(v: __m128i, to: *mut U) {
    // SAFETY: the caller guarantees the space for 8 units.
    unsafe {
        if size_of::<U>() == 2 {
            _mm_storeu_si128(to.cast(), v);
        } else {
            _mm_storel_epi64(to.cast(), v);
        }
    }
}

/// Loads 8 units of 1 or 2 bytes. The memory of the units may be uninitialised.
///
/// # Safety
/// `from` must be readable for 8 units.
#[inline(always)]
unsafe fn load_eight<U>(from: *const U) -> __m128i {
    // SAFETY: `from` is readable for 8 units. Units that are not initialised yet are not used: they
    // are overwritten by the units written now, or by a later call.
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
    // SAFETY: each arm stores a block at the start and one at the end, both inside `n_bytes`.
    unsafe {
        let low = _mm_cvtsi128_si64(v) as u64;
        if n_bytes >= 8 {
            let high = _mm_cvtsi128_si64(_mm_unpackhi_epi64(v, v)) as u64;
            to.cast::<u64>().write_unaligned(low);
            if n_bytes > 8 {
                // The last 8 bytes consist of some bytes of the low half and all remaining ones of
                // the high half.
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
    /// Writes the 32-bit lanes of `v` that `mask` selects, without gaps. Bit `i` of `mask` selects
    /// lane `i`.
    ///
    /// # Safety
    /// The processor must support AVX2.
    #[inline(always)]
    pub(super) unsafe fn put_wide(&mut self, v: __m256i, mask: u8) {
        // SAFETY: 8 units are stored if they fit, otherwise only those in the mask.
        unsafe {
            let order = _mm_loadl_epi64(SQUEEZE[usize::from(mask)].as_ptr().cast());
            let v = _mm256_permutevar8x32_epi32(v, _mm256_cvtepu8_epi32(order));
            let mut n = mask.count_ones() as usize;
            if self.remaining() >= 8 {
                _mm256_storeu_si256(self.at.cast(), v);
            } else {
                n = self.fitting(n);
                // The sign bit of each of the first `n` lanes is set.
                let lanes = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
                let kept = _mm256_cmpgt_epi32(_mm256_set1_epi32(n as i32), lanes);
                _mm256_maskstore_epi32(self.at.cast(), kept, v);
            }
            self.at = self.at.add(n);
        }
    }
}

/// The largest number of bytes that the argument `step` of [`Bounded::put_if_it_fits`] may write.
pub(super) const STEP: usize = 64;

/// A destination of bytes for writers that do not know the length of their result in advance. Bytes
/// that do not fit are dropped, and [`Bounded::written`] then returns `None`.
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
            // SAFETY: the caller guarantees that the destination is writable up to this end.
            end: unsafe { p.add(n_bytes) },
            full: false,
        }
    }

    /// Returns `true` if at least `n_bytes` more bytes fit.
    #[inline(always)]
    pub(super) fn takes(&self, n_bytes: usize) -> bool {
        self.left() >= n_bytes
    }

    #[inline(always)]
    fn left(&self) -> usize {
        self.end as usize - self.at as usize
    }

    /// Calls `step` with the write position in the destination. `step` writes the bytes of its
    /// result there, possibly followed by meaningless bytes, and returns the number of bytes of the
    /// result.
    ///
    /// # Safety
    /// The destination must have space for all bytes that `step` writes.
    #[inline(always)]
    pub(super) unsafe fn put(&mut self, step: impl FnOnce(*mut u8) -> usize) {
        let n = step(self.at);
        debug_assert!(self.takes(n));
        // SAFETY: the result has space in the destination, by this function's contract.
        self.at = unsafe { self.at.add(n) };
    }

    /// Does the same as [`Bounded::put`], but can be called if the destination has little space:
    /// `step` writes to a separate buffer of [`STEP`] bytes. Then its result is copied to the
    /// destination, if the result fits.
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
        // SAFETY: `step` has written `n` bytes, which fit, as checked above.
        unsafe {
            copy(std::slice::from_raw_parts(start, n), self.at);
            self.at = self.at.add(n);
        }
    }

    /// Returns the number of bytes written from `start`, the start of the destination; `None` if
    /// some bytes did not fit.
    pub(super) fn written(self, start: *mut u8) -> Option<usize> {
        (!self.full).then(|| self.at as usize - start as usize)
    }
}
