//! The vector algorithms, each once, over a vector of any width.
//!
//! Every function wants at least one whole vector of text. The last vector is loaded so that it ends with the text
//! and may look at some units twice, which the algorithms are made to bear: no scalar tails, no reads past the end.

use super::{Scan8, Scan16};
use crate::Kind;

/// A vector of bytes.
///
/// # Safety
/// `BYTES` is the size that `load` and `store` touch. Every method may need a processor feature: the caller of any
/// function here stands in a function that has it enabled.
pub(super) unsafe trait Vector: Copy {
    /// Its size, at most 32.
    const BYTES: usize;
    /// # Safety
    /// `p` is readable for `BYTES`; the processor has the feature (so for all methods below).
    unsafe fn load(p: *const u8) -> Self;
    /// # Safety
    /// `p` is writable for `BYTES`.
    unsafe fn store(self, p: *mut u8);
    /// # Safety
    /// The feature is there.
    unsafe fn splat8(b: u8) -> Self;
    /// # Safety
    /// The feature is there.
    unsafe fn splat16(u: u16) -> Self;
    /// # Safety
    /// The feature is there.
    unsafe fn or(self, o: Self) -> Self;
    /// # Safety
    /// The feature is there.
    unsafe fn and(self, o: Self) -> Self;
    /// # Safety
    /// The feature is there.
    unsafe fn eq8(self, o: Self) -> Self;
    /// # Safety
    /// The feature is there.
    unsafe fn eq16(self, o: Self) -> Self;
    /// Signed comparison.
    /// # Safety
    /// The feature is there.
    unsafe fn gt8(self, o: Self) -> Self;
    /// # Safety
    /// The feature is there.
    unsafe fn min8(self, o: Self) -> Self;
    /// # Safety
    /// The feature is there.
    unsafe fn max8(self, o: Self) -> Self;
    /// # Safety
    /// The feature is there.
    unsafe fn sub8(self, o: Self) -> Self;
    /// Unsigned, and no lower than 0.
    /// # Safety
    /// The feature is there.
    unsafe fn subs16(self, o: Self) -> Self;
    /// The sum of all bytes.
    /// # Safety
    /// The feature is there.
    unsafe fn sum8(self) -> usize;
    /// The high bit of each byte, the first byte lowest.
    /// # Safety
    /// The feature is there.
    unsafe fn mask(self) -> u32;
    /// 16-bit units to bytes, in order; those above 0xFF become 0xFF (below 0x8000) or 0.
    /// # Safety
    /// The feature is there.
    unsafe fn narrow(lo: Self, hi: Self) -> Self;
    /// The units ORed to one.
    /// # Safety
    /// The feature is there.
    unsafe fn or_u16(self) -> u16;
    /// The largest byte.
    /// # Safety
    /// The feature is there.
    unsafe fn max_u8(self) -> u8;
}

/// What to look for. Types, not closures: a closure is a function of its own, without the caller's features.
pub(super) trait Wanted {
    /// Bytes of a unit.
    const SIZE: usize;
    /// Units that are wanted become all ones, others zeros.
    /// # Safety
    /// As [`Vector`].
    unsafe fn marks<V: Vector>(v: V) -> V;
}

/// Bytes that JSON escapes.
pub(super) struct EscapeU8;

impl Wanted for EscapeU8 {
    const SIZE: usize = 1;
    #[inline(always)]
    unsafe fn marks<V: Vector>(v: V) -> V {
        // SAFETY: the caller has the feature.
        unsafe {
            let control = v.min8(V::splat8(0x1F)).eq8(v);
            control
                .or(v.eq8(V::splat8(b'"')))
                .or(v.eq8(V::splat8(b'\\')))
        }
    }
}

/// 16-bit units that JSON escapes.
pub(super) struct EscapeU16;

impl Wanted for EscapeU16 {
    const SIZE: usize = 2;
    #[inline(always)]
    unsafe fn marks<V: Vector>(v: V) -> V {
        // SAFETY: the caller has the feature.
        unsafe {
            let control = v.subs16(V::splat16(0x1F)).eq16(V::splat16(0));
            control
                .or(v.eq16(V::splat16(0x22)))
                .or(v.eq16(V::splat16(0x5C)))
        }
    }
}

/// Bytes that are not ASCII.
pub(super) struct High;

impl Wanted for High {
    const SIZE: usize = 1;
    #[inline(always)]
    unsafe fn marks<V: Vector>(v: V) -> V {
        // SAFETY: the caller has the feature.
        unsafe { V::splat8(0).gt8(v) }
    }
}

/// 16-bit units that are surrogates.
pub(super) struct Surrogate;

impl Wanted for Surrogate {
    const SIZE: usize = 2;
    #[inline(always)]
    unsafe fn marks<V: Vector>(v: V) -> V {
        // SAFETY: the caller has the feature.
        unsafe { v.and(V::splat16(0xF800)).eq16(V::splat16(0xD800)) }
    }
}

/// Bytes (of units that `narrow` gave) that are ASCII and, where `JSON`, not escaped, are all ones.
/// # Safety
/// As [`Vector`].
#[inline(always)]
pub(super) unsafe fn plain<V: Vector, const JSON: bool>(v: V) -> V {
    // SAFETY: the caller has the feature.
    unsafe {
        if JSON {
            // Signed: bytes from 0x80 are below, and so are the zeros of units from 0x8000.
            let marked = v.eq8(V::splat8(b'"')).or(v.eq8(V::splat8(b'\\')));
            v.gt8(V::splat8(0x1F)).and(marked.eq8(V::splat8(0)))
        } else {
            // U+0000 looks like a unit from 0x8000 here, so it is left to the caller's slower path.
            v.gt8(V::splat8(0))
        }
    }
}

/// # Safety
/// `p` is readable for `len` bytes, at least one vector; the processor has V's feature.
#[inline(always)]
pub(super) unsafe fn is_ascii<V: Vector>(p: *const u8, len: usize) -> bool {
    // SAFETY: every load starts at most len - BYTES behind p; the rest is the caller's duty.
    unsafe {
        let mut at = 0;
        // Four at a time and out at the first byte that is not: text of other scripts pays for no whole scan.
        while at + 4 * V::BYTES <= len {
            let p = p.add(at);
            let a = V::load(p).or(V::load(p.add(V::BYTES)));
            let b = V::load(p.add(2 * V::BYTES)).or(V::load(p.add(3 * V::BYTES)));
            if a.or(b).mask() != 0 {
                return false;
            }
            at += 4 * V::BYTES;
        }
        let mut acc = V::load(p.add(len - V::BYTES));
        while at + V::BYTES <= len {
            acc = acc.or(V::load(p.add(at)));
            at += V::BYTES;
        }
        acc.mask() == 0
    }
}

/// Zeros, then ones: a load at the right place keeps the last lanes of a vector.
static KEEP_LAST: [u8; 64] = {
    let mut t = [0; 64];
    let mut i = 32;
    while i < 64 {
        t[i] = 0xFF;
        i += 1;
    }
    t
};

/// # Safety
/// As [`is_ascii`].
#[inline(always)]
pub(super) unsafe fn scan_utf8<V: Vector>(p: *const u8, len: usize) -> Scan8 {
    // SAFETY: every load of text starts at most len - BYTES behind p; the load of the mask starts between
    // 32 - BYTES and 32 in a table of 64, and BYTES is at most 32.
    unsafe {
        let continuation = V::splat8(0xBF);
        let mut max = V::splat8(0);
        let (mut at, mut n_chars) = (0, 0);
        while at + V::BYTES <= len {
            // 255 rounds at most, so that no counter of 8 bits runs over.
            let stop = len.min(at + 255 * V::BYTES);
            let mut counts = V::splat8(0);
            while at + V::BYTES <= stop {
                let v = V::load(p.add(at));
                max = max.max8(v);
                counts = counts.sub8(v.gt8(continuation));
                at += V::BYTES;
            }
            n_chars += counts.sum8();
        }
        if at < len {
            let fresh = len - at;
            let v = V::load(p.add(len - V::BYTES));
            let keep = V::load(KEEP_LAST.as_ptr().add(32 - (V::BYTES - fresh)));
            max = max.max8(v);
            n_chars += V::splat8(0).sub8(v.gt8(continuation).and(keep)).sum8();
        }
        Scan8 {
            max: max.max_u8(),
            n_chars,
        }
    }
}

/// # Safety
/// `p` is readable for `len` units of 2 bytes, at least one vector; the processor has V's feature.
#[inline(always)]
pub(super) unsafe fn scan_u16<V: Vector>(p: *const u16, len: usize) -> Scan16 {
    // SAFETY: every load starts at most len * 2 - BYTES bytes behind p.
    unsafe {
        let units = V::BYTES / 2;
        let last = V::load(p.add(len - units).cast());
        let (mut or, mut found) = (last, Surrogate::marks(last));
        let mut at = 0;
        while at + units <= len {
            let v = V::load(p.add(at).cast());
            or = or.or(v);
            found = found.or(Surrogate::marks(v));
            at += units;
        }
        Scan16 {
            kind: Kind::of(or.or_u16().into()),
            surrogate: found.mask() != 0,
        }
    }
}

/// Index of the first unit that is wanted, or `len`.
/// # Safety
/// `p` is readable for `len` units, at least one vector; the processor has V's feature.
#[inline(always)]
pub(super) unsafe fn find<V: Vector, W: Wanted>(p: *const u8, len: usize) -> usize {
    // SAFETY: every load starts at most len * W::SIZE - BYTES bytes behind p.
    unsafe {
        let units = V::BYTES / W::SIZE;
        let mut at = 0;
        while at + units <= len {
            let mask = W::marks(V::load(p.add(at * W::SIZE))).mask();
            if mask != 0 {
                return at + mask.trailing_zeros() as usize / W::SIZE;
            }
            at += units;
        }
        if at < len {
            at = len - units;
            let mask = W::marks(V::load(p.add(at * W::SIZE))).mask();
            if mask != 0 {
                return at + mask.trailing_zeros() as usize / W::SIZE;
            }
        }
        len
    }
}

/// One round of [`narrow_u16`].
/// # Safety
/// Two vectors are readable at `src`, one is writable at `dst`; the processor has V's feature.
#[inline(always)]
pub(super) unsafe fn narrow_step<V: Vector>(src: *const u16, dst: *mut u8) {
    // SAFETY: two vectors are read and one is written: the duties of the caller.
    unsafe {
        let low = V::splat16(0xFF);
        let lo = V::load(src.cast());
        let hi = V::load(src.add(V::BYTES / 2).cast());
        V::narrow(lo.and(low), hi.and(low)).store(dst);
    }
}

/// # Safety
/// `src` is readable for `len` units of 2 bytes, at least two vectors; `dst` writable for `len` bytes, apart from
/// `src`; the processor has V's feature.
#[inline(always)]
pub(super) unsafe fn narrow_u16<V: Vector>(src: *const u16, len: usize, dst: *mut u8) {
    // SAFETY: each round reads 2 vectors that end within len units and writes one that ends within len bytes.
    unsafe {
        let mut at = 0;
        while at + V::BYTES <= len {
            narrow_step::<V>(src.add(at), dst.add(at));
            at += V::BYTES;
        }
        if at < len {
            at = len - V::BYTES;
            narrow_step::<V>(src.add(at), dst.add(at));
        }
    }
}

/// One round of [`narrow_plain`]: bits of the units that are not plain.
/// # Safety
/// As [`narrow_step`].
#[inline(always)]
pub(super) unsafe fn plain_step<V: Vector, const JSON: bool>(src: *const u16, dst: *mut u8) -> u32 {
    // SAFETY: two vectors are read and one is written: the duties of the caller.
    unsafe {
        let lo = V::load(src.cast());
        let hi = V::load(src.add(V::BYTES / 2).cast());
        let v = V::narrow(lo, hi);
        v.store(dst);
        !plain::<V, JSON>(v).mask() & (u32::MAX >> (32 - V::BYTES))
    }
}

/// # Safety
/// As [`narrow_u16`].
#[inline(always)]
pub(super) unsafe fn narrow_plain<V: Vector, const JSON: bool>(
    src: *const u16,
    len: usize,
    dst: *mut u8,
) -> usize {
    // SAFETY: each round reads 2 vectors that end within len units and writes one that ends within len bytes.
    unsafe {
        let mut at = 0;
        while at + V::BYTES <= len {
            let stop = plain_step::<V, JSON>(src.add(at), dst.add(at));
            if stop != 0 {
                return at + stop.trailing_zeros() as usize;
            }
            at += V::BYTES;
        }
        if at < len {
            at = len - V::BYTES;
            let stop = plain_step::<V, JSON>(src.add(at), dst.add(at));
            if stop != 0 {
                return at + stop.trailing_zeros() as usize;
            }
        }
        len
    }
}

/// # Safety
/// `src` is readable for `len` bytes, at least one vector; `dst` writable for as many, apart from `src`; the
/// processor has V's feature.
#[inline(always)]
pub(super) unsafe fn copy_to_escape<V: Vector>(
    src: *const u8,
    len: usize,
    dst: *mut u8,
) -> (usize, bool) {
    // SAFETY: each round reads and writes one vector that ends within len bytes.
    unsafe {
        let mut high = V::splat8(0);
        let mut at = 0;
        while at + V::BYTES <= len {
            let v = V::load(src.add(at));
            v.store(dst.add(at));
            let stop = EscapeU8::marks(v).mask();
            if stop != 0 {
                let n = stop.trailing_zeros();
                let here = v.mask() & !(u32::MAX << n);
                return (at + n as usize, (high.mask() | here) != 0);
            }
            high = high.or(v);
            at += V::BYTES;
        }
        if at < len {
            at = len - V::BYTES;
            let v = V::load(src.add(at));
            v.store(dst.add(at));
            let stop = EscapeU8::marks(v).mask();
            if stop != 0 {
                let n = stop.trailing_zeros();
                let here = v.mask() & !(u32::MAX << n);
                return (at + n as usize, (high.mask() | here) != 0);
            }
            high = high.or(v);
        }
        (len, high.mask() != 0)
    }
}

/// # Safety
/// As [`copy_to_escape`].
#[inline(always)]
pub(super) unsafe fn copy_ascii<V: Vector>(src: *const u8, len: usize, dst: *mut u8) -> usize {
    // SAFETY: each round reads and writes vectors that end within len bytes.
    unsafe {
        let mut at = 0;
        while at + 2 * V::BYTES <= len {
            let a = V::load(src.add(at));
            let b = V::load(src.add(at + V::BYTES));
            if a.or(b).mask() != 0 {
                return at;
            }
            a.store(dst.add(at));
            b.store(dst.add(at + V::BYTES));
            at += 2 * V::BYTES;
        }
        while at < len {
            // The last vector ends with the text.
            let from = at.min(len - V::BYTES);
            let v = V::load(src.add(from));
            if v.mask() != 0 {
                return at;
            }
            v.store(dst.add(from));
            at = from + V::BYTES;
        }
        len
    }
}

/// # Safety
/// As [`narrow_u16`].
#[inline(always)]
pub(super) unsafe fn narrow_up_to<V: Vector, const MAX: u16>(
    src: *const u16,
    len: usize,
    dst: *mut u8,
) -> usize {
    // SAFETY: each round reads 2 vectors that end within len units and writes one that ends within len bytes.
    unsafe {
        let mut at = 0;
        while at < len {
            let from = at.min(len - V::BYTES);
            let lo = V::load(src.add(from).cast());
            let hi = V::load(src.add(from + V::BYTES / 2).cast());
            let over = lo.or(hi).subs16(V::splat16(MAX));
            if over.eq16(V::splat16(0)).mask() != V::splat8(0xFF).mask() {
                return at;
            }
            V::narrow(lo, hi).store(dst.add(from));
            at = from + V::BYTES;
        }
        len
    }
}

/// # Safety
/// `src` is readable and `dst` writable for `len` units of 2 bytes, at least two vectors, apart from each other; the
/// processor has V's feature.
#[inline(always)]
pub(super) unsafe fn copy_bmp<V: Vector>(src: *const u16, len: usize, dst: *mut u16) -> usize {
    // SAFETY: each round reads and writes vectors that end within len units.
    unsafe {
        let units = V::BYTES / 2;
        let mut at = 0;
        while at + 2 * units <= len {
            let a = V::load(src.add(at).cast());
            let b = V::load(src.add(at + units).cast());
            if Surrogate::marks(a).or(Surrogate::marks(b)).mask() != 0 {
                return at;
            }
            a.store(dst.add(at).cast());
            b.store(dst.add(at + units).cast());
            at += 2 * units;
        }
        while at < len {
            let from = at.min(len - units);
            let v = V::load(src.add(from).cast());
            if Surrogate::marks(v).mask() != 0 {
                return at;
            }
            v.store(dst.add(from).cast());
            at = from + units;
        }
        len
    }
}
