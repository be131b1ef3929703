//! Where the kernels put what they made: nothing is written outside of the place.

use std::arch::x86_64::*;
use std::mem::MaybeUninit;

use super::copy::copy;

/// For each mask of 8 lanes, the order of bytes that brings the lanes of its bits to the front, 2 bytes a lane.
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

/// As [`SQUEEZE_U16`], the numbers of the lanes, for lanes of any size.
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

/// Orders of bytes that move a vector up by as many bytes as a load starts before the middle, zeros from below.
static SLIDE: [u8; 32] = {
    let mut all = [0x80; 32];
    let mut i = 0;
    while i < 16 {
        all[16 + i] = i as u8;
        i += 1;
    }
    all
};

/// Where decoded units go: nothing is written outside of the place.
pub(super) struct Out<U> {
    pub(super) at: *mut U,
    end: *mut U,
    /// Whether the place takes 8 units in all.
    has_eight: bool,
    /// Whether something did not fit.
    is_over: bool,
}

impl<U> Out<U> {
    /// # Safety
    /// `at` is writable for `len` units.
    pub(super) unsafe fn new(at: *mut U, len: usize) -> Out<U> {
        Out {
            at,
            // SAFETY: the end of the place that the caller grants.
            end: unsafe { at.add(len) },
            has_eight: len >= 8,
            is_over: false,
        }
    }

    /// Of `len` units those that were written; `None` if something did not fit.
    #[inline(always)]
    pub(super) fn written(&self, len: usize) -> Option<usize> {
        (!self.is_over).then(|| len - self.room())
    }

    /// How many of `n` units fit.
    #[inline(always)]
    fn fitting(&mut self, n: usize) -> usize {
        self.is_over |= n > self.room();
        n.min(self.room())
    }

    /// Units that there is room for.
    #[inline(always)]
    pub(super) fn room(&self) -> usize {
        (self.end as usize - self.at as usize) / size_of::<U>()
    }
}

/// Units of a `str` made of 8 lanes of 16 bits.
pub(super) trait Unit: Copy {
    /// Whether characters above U+07FF fit.
    const WIDE: bool;
    /// The lanes as units, in the low bytes.
    /// # Safety
    /// SSE2.
    unsafe fn pack(v: __m128i) -> __m128i;
    /// Stores 32 bytes as units.
    /// # Safety
    /// AVX2; `to` takes 32 units.
    unsafe fn put_ascii(v: __m256i, to: *mut Self);
    /// Stores 16 lanes of 16 bits, where these are the units.
    /// # Safety
    /// AVX2; `to` takes 16 units.
    unsafe fn put_wide(v: __m256i, to: *mut Self);
}

impl Unit for u8 {
    const WIDE: bool = false;
    #[inline(always)]
    unsafe fn pack(v: __m128i) -> __m128i {
        // SAFETY: SSE2 is part of x86-64.
        unsafe { _mm_packus_epi16(v, v) }
    }
    #[inline(always)]
    unsafe fn put_ascii(v: __m256i, to: *mut u8) {
        // SAFETY: the duty of the caller.
        unsafe { _mm256_storeu_si256(to.cast(), v) }
    }
    unsafe fn put_wide(_: __m256i, _: *mut u8) {
        unreachable!("units of 8 bits are not wide");
    }
}

impl Unit for u16 {
    const WIDE: bool = true;
    #[inline(always)]
    unsafe fn pack(v: __m128i) -> __m128i {
        v
    }
    #[inline(always)]
    unsafe fn put_ascii(v: __m256i, to: *mut u16) {
        // SAFETY: the duty of the caller.
        unsafe {
            let (lower, upper) = (_mm256_castsi256_si128(v), _mm256_extracti128_si256::<1>(v));
            _mm256_storeu_si256(to.cast(), _mm256_cvtepu8_epi16(lower));
            _mm256_storeu_si256(to.add(16).cast(), _mm256_cvtepu8_epi16(upper));
        }
    }
    #[inline(always)]
    unsafe fn put_wide(v: __m256i, to: *mut u16) {
        // SAFETY: the duty of the caller.
        unsafe { _mm256_storeu_si256(to.cast(), v) }
    }
}

impl<U: Unit> Out<U> {
    /// Puts the lanes of `mask`.
    ///
    /// # Safety
    /// AVX2; where `ROOMY` the place has room for 8 units.
    #[inline(always)]
    pub(super) unsafe fn put<const ROOMY: bool>(&mut self, v: __m128i, mask: u8) {
        // SAFETY: the store of 8 units is made where as many fit, and else just those of the mask.
        unsafe {
            let order = _mm_loadu_si128(SQUEEZE_U16[usize::from(mask)].as_ptr().cast());
            let v = U::pack(_mm_shuffle_epi8(v, order));
            let mut n = mask.count_ones() as usize;
            debug_assert!(!ROOMY || self.room() >= 8);
            if ROOMY || self.room() >= 8 {
                store_eight::<U>(v, self.at);
            } else if self.has_eight {
                n = self.fitting(n);
                // The last 8 units of the place at once, those written before taken from where they are: no branch on
                // how many there are.
                let before = 8 - self.room();
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

/// # Safety
/// `to` takes 8 units of 1 or 2 bytes.
#[inline(always)]
unsafe fn store_eight<U>(v: __m128i, to: *mut U) {
    // SAFETY: 8 units, as the caller grants.
    unsafe {
        if size_of::<U>() == 2 {
            _mm_storeu_si128(to.cast(), v);
        } else {
            _mm_storel_epi64(to.cast(), v);
        }
    }
}

/// # Safety
/// `from` has 8 units of 1 or 2 bytes to read; they need not be initialised.
#[inline(always)]
unsafe fn load_eight<U>(from: *const U) -> __m128i {
    // SAFETY: 8 units, as the caller grants. What is not initialised yet is replaced before anybody looks at it: the
    // lanes past those that were written before are written now, or in a later step.
    unsafe {
        if size_of::<U>() == 2 {
            _mm_loadu_si128(from.cast())
        } else {
            _mm_loadl_epi64(from.cast())
        }
    }
}

/// Stores the first 0 to 15 bytes of a vector.
///
/// # Safety
/// `to` takes them.
#[inline(always)]
unsafe fn store_first(v: __m128i, to: *mut u8, n_bytes: usize) {
    // SAFETY: each arm stores its size at the start and up to the end, both inside n_bytes.
    unsafe {
        let low = _mm_cvtsi128_si64(v) as u64;
        if n_bytes >= 8 {
            let high = _mm_cvtsi128_si64(_mm_unpackhi_epi64(v, v)) as u64;
            to.cast::<u64>().write_unaligned(low);
            if n_bytes > 8 {
                // The last 8 bytes: some of the low half and the rest of the high one.
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
    /// Puts the lanes of `mask`.
    ///
    /// # Safety
    /// AVX2.
    #[inline(always)]
    pub(super) unsafe fn put_wide(&mut self, v: __m256i, mask: u8) {
        // SAFETY: the store of 8 units is made where as many fit, and else just those of the mask.
        unsafe {
            let order = _mm_loadl_epi64(SQUEEZE[usize::from(mask)].as_ptr().cast());
            let v = _mm256_permutevar8x32_epi32(v, _mm256_cvtepu8_epi32(order));
            let mut n = mask.count_ones() as usize;
            if self.room() >= 8 {
                _mm256_storeu_si256(self.at.cast(), v);
            } else {
                n = self.fitting(n);
                // The lanes below n, by their sign bits.
                let lanes = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
                let kept = _mm256_cmpgt_epi32(_mm256_set1_epi32(n as i32), lanes);
                _mm256_maskstore_epi32(self.at.cast(), kept, v);
            }
            self.at = self.at.add(n);
        }
    }
}

/// The bytes that a step of a writer may write.
pub(super) const STEP: usize = 64;

/// A place for bytes, for writers that do not know how long their text becomes: what does not fit is left out, and the
/// result with it.
pub(super) struct Bounded {
    at: *mut u8,
    end: *mut u8,
    full: bool,
}

impl Bounded {
    /// # Safety
    /// `p` is writable for `n_bytes`.
    pub(super) unsafe fn new(p: *mut u8, n_bytes: usize) -> Bounded {
        Bounded {
            at: p,
            // SAFETY: the end of the place that the caller grants.
            end: unsafe { p.add(n_bytes) },
            full: false,
        }
    }

    /// Whether so many bytes more may be written.
    #[inline(always)]
    pub(super) fn takes(&self, n_bytes: usize) -> bool {
        self.left() >= n_bytes
    }

    #[inline(always)]
    fn left(&self) -> usize {
        self.end as usize - self.at as usize
    }

    /// Puts what a step writes, which is told where to, and tells how many of the bytes there it needed.
    ///
    /// # Safety
    /// There is room for all that it writes, of which the first so many count.
    #[inline(always)]
    pub(super) unsafe fn put(&mut self, step: impl FnOnce(*mut u8) -> usize) {
        let n = step(self.at);
        debug_assert!(self.takes(n));
        // SAFETY: no more than there is room for.
        self.at = unsafe { self.at.add(n) };
    }

    /// As [`Bounded::put`] where there may be less room: the step writes elsewhere, [`STEP`] bytes at most, and what counts is copied if it
    /// fits.
    ///
    /// # Safety
    /// AVX2; as there but for the room.
    #[inline(always)]
    pub(super) unsafe fn put_if_it_fits(&mut self, step: impl FnOnce(*mut u8) -> usize) {
        let mut place = [const { MaybeUninit::<u8>::uninit() }; STEP];
        let start = place.as_mut_ptr().cast();
        let n = step(start);
        if n > self.left() {
            self.full = true;
            return;
        }
        // SAFETY: the step wrote n bytes, and as many are left.
        unsafe {
            copy(std::slice::from_raw_parts(start, n), self.at);
            self.at = self.at.add(n);
        }
    }

    /// Bytes written since `start`, the start of the place; `None` where something did not fit.
    pub(super) fn written(self, start: *mut u8) -> Option<usize> {
        (!self.full).then(|| self.at as usize - start as usize)
    }
}
