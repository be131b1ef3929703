//! The vector algorithms, written once for vectors of any width. A text must have at least one
//! vector. The last vector ends at the end of the text, so some units are processed twice.

use super::kernel::{Scan8, Scan16};
use crate::Kind;

/// The vector type of an instruction set, with its operations.
///
/// # Safety
/// `load` and `store` must access `BYTES` bytes. A caller of a method must be compiled with the
/// processor features of the vector type.
pub(super) unsafe trait Vector: Copy {
    /// The size of the vector in bytes, at most 32.
    const BYTES: usize;
    /// Loads a vector from an address of any alignment.
    /// # Safety: `p` must be readable for `BYTES`; the processor must support the vector type.
    unsafe fn load(p: *const u8) -> Self;
    /// Stores the vector at an address of any alignment.
    /// # Safety: `p` must be writable for `BYTES`; the processor must support the vector type.
    unsafe fn store(self, p: *mut u8);
    /// Returns a vector in which each byte is `b`.
    /// # Safety: the processor must support the vector type.
    unsafe fn splat8(b: u8) -> Self;
    /// Returns a vector in which each 16-bit unit is `u`.
    /// # Safety: the processor must support the vector type.
    unsafe fn splat16(u: u16) -> Self;
    /// Returns the bitwise OR of the two vectors.
    /// # Safety: the processor must support the vector type.
    unsafe fn or(self, o: Self) -> Self;
    /// Returns the bitwise AND of the two vectors.
    /// # Safety: the processor must support the vector type.
    unsafe fn and(self, o: Self) -> Self;
    /// Compares bytes: all ones for equal bytes, otherwise zero.
    /// # Safety: the processor must support the vector type.
    unsafe fn eq8(self, o: Self) -> Self;
    /// Compares 16-bit units: all ones for equal units, otherwise zero.
    /// # Safety: the processor must support the vector type.
    unsafe fn eq16(self, o: Self) -> Self;
    /// Compares signed bytes: all ones where `self` is greater, otherwise zero.
    /// # Safety
    /// The processor must support the feature of the vector type.
    unsafe fn gt8(self, o: Self) -> Self;
    /// Returns the smaller unsigned value of each pair of bytes.
    /// # Safety: the processor must support the vector type.
    unsafe fn min8(self, o: Self) -> Self;
    /// Returns the larger unsigned value of each pair of bytes.
    /// # Safety: the processor must support the vector type.
    unsafe fn max8(self, o: Self) -> Self;
    /// Subtracts the bytes, wrapping around.
    /// # Safety: the processor must support the vector type.
    unsafe fn sub8(self, o: Self) -> Self;
    /// Subtracts 16-bit units. A negative result becomes 0.
    /// # Safety
    /// The processor must support the feature of the vector type.
    unsafe fn subs16(self, o: Self) -> Self;
    /// Returns the sum of all bytes.
    /// # Safety
    /// The processor must support the feature of the vector type.
    unsafe fn sum8(self) -> usize;
    /// Returns the highest bit of each byte as a mask. The first byte has the lowest bit.
    /// # Safety
    /// The processor must support the feature of the vector type.
    unsafe fn mask(self) -> u32;
    /// Converts 16-bit units to bytes. 0x100..=0x7FFF become 0xFF, and 0x8000..=0xFFFF become 0.
    /// # Safety
    /// The processor must support the feature of the vector type.
    unsafe fn narrow(lo: Self, hi: Self) -> Self;
    /// Returns the bitwise OR of all units.
    /// # Safety
    /// The processor must support the feature of the vector type.
    unsafe fn or_u16(self) -> u16;
    /// Returns the largest byte.
    /// # Safety
    /// The processor must support the feature of the vector type.
    unsafe fn max_u8(self) -> u8;
}

/// A class of units to search for. A closure would not get the CPU features of its caller.
pub(super) trait UnitClass {
    /// The size of a unit in bytes.
    const SIZE: usize;
    /// Returns all ones for each unit of this class, and zero for other units.
    /// # Safety
    /// The processor must support the feature of the vector type.
    unsafe fn marks<V: Vector>(v: V) -> V;
}

/// The bytes that need a JSON escape.
pub(super) struct EscapeU8;

impl UnitClass for EscapeU8 {
    const SIZE: usize = 1;
    #[inline(always)]
    unsafe fn marks<V: Vector>(v: V) -> V {
        // SAFETY: the caller is compiled for the feature of `V`.
        unsafe {
            let control = v.min8(V::splat8(0x1F)).eq8(v);
            control
                .or(v.eq8(V::splat8(b'"')))
                .or(v.eq8(V::splat8(b'\\')))
        }
    }
}

/// The 16-bit units that need a JSON escape.
pub(super) struct EscapeU16;

impl UnitClass for EscapeU16 {
    const SIZE: usize = 2;
    #[inline(always)]
    unsafe fn marks<V: Vector>(v: V) -> V {
        // SAFETY: the caller is compiled for the feature of `V`.
        unsafe {
            let control = v.subs16(V::splat16(0x1F)).eq16(V::splat16(0));
            control
                .or(v.eq16(V::splat16(0x22)))
                .or(v.eq16(V::splat16(0x5C)))
        }
    }
}

/// The bytes that are not ASCII.
pub(super) struct High;

impl UnitClass for High {
    const SIZE: usize = 1;
    #[inline(always)]
    unsafe fn marks<V: Vector>(v: V) -> V {
        // SAFETY: the caller is compiled for the feature of `V`.
        unsafe { V::splat8(0).gt8(v) }
    }
}

/// The 16-bit units that are surrogates.
pub(super) struct Surrogate;

impl UnitClass for Surrogate {
    const SIZE: usize = 2;
    #[inline(always)]
    unsafe fn marks<V: Vector>(v: V) -> V {
        // SAFETY: the caller is compiled for the feature of `V`.
        unsafe { v.and(V::splat16(0xF800)).eq16(V::splat16(0xD800)) }
    }
}

/// Returns ones for ASCII bytes except NUL and, if `JSON`, except JSON escapes.
/// # Safety
/// The processor must support the feature of `V`.
#[inline(always)]
pub(super) unsafe fn plain<V: Vector, const JSON: bool>(v: V) -> V {
    // SAFETY: the caller is compiled for the feature of `V`.
    unsafe {
        if JSON {
            // As signed bytes, values from 0x80 on are below.
            let marked = v.eq8(V::splat8(b'"')).or(v.eq8(V::splat8(b'\\')));
            v.gt8(V::splat8(0x1F)).and(marked.eq8(V::splat8(0)))
        } else {
            // NUL is excluded, because `narrow` converts units from 0x8000 on to 0.
            v.gt8(V::splat8(0))
        }
    }
}

/// Returns `true` if all bytes are ASCII.
/// # Safety
/// `p` must be readable for `len` bytes, at least one vector. The processor must support `V`.
#[inline(always)]
pub(super) unsafe fn is_ascii<V: Vector>(p: *const u8, len: usize) -> bool {
    // SAFETY: every load starts at most `len - BYTES` bytes after `p`.
    unsafe {
        let mut at = 0;
        // Four vectors per iteration. The loop ends at the first non-ASCII byte.
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

/// A table of masks. At offset `32 - n`, `n` bytes 0x00 precede bytes 0xFF.
static KEEP_LAST: [u8; 64] = {
    let mut t = [0; 64];
    let mut i = 32;
    while i < 64 {
        t[i] = 0xFF;
        i += 1;
    }
    t
};

/// Returns the largest byte and the number of characters of a valid UTF-8 text.
/// # Safety
/// `p` must be readable for `len` bytes, at least one vector. The processor must support `V`.
#[inline(always)]
pub(super) unsafe fn scan_utf8<V: Vector>(p: *const u8, len: usize) -> Scan8 {
    // SAFETY: every text load ends inside `len` bytes. The mask load is inside its table.
    unsafe {
        let continuation = V::splat8(0xBF);
        let mut max = V::splat8(0);
        let (mut at, mut n_chars) = (0, 0);
        while at + V::BYTES <= len {
            // After 255 vectors, an 8-bit counter could overflow.
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

/// Returns the narrowest kind for the units, and `true` if any unit is a surrogate.
/// # Safety
/// `p` must be readable for `len` units, at least one vector. The processor must support `V`.
#[inline(always)]
pub(super) unsafe fn scan_u16<V: Vector>(p: *const u16, len: usize) -> Scan16 {
    // SAFETY: every load starts at most `len * 2 - BYTES` bytes after `p`.
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

/// Returns the index of the first unit in the class `W`, or `len`.
/// # Safety
/// `p` must be readable for `len` units, at least one vector. The processor must support `V`.
#[inline(always)]
pub(super) unsafe fn find<V: Vector, W: UnitClass>(p: *const u8, len: usize) -> usize {
    // SAFETY: every load starts at most `len * W::SIZE - BYTES` bytes after `p`.
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

/// Reads two vectors of 16-bit units and writes their low bytes as one vector.
/// # Safety
/// Two vectors are readable at `src`, and one is writable at `dst`. The processor supports `V`.
#[inline(always)]
pub(super) unsafe fn narrow_step<V: Vector>(src: *const u16, dst: *mut u8) {
    // SAFETY: this function's contract.
    unsafe {
        let low = V::splat16(0xFF);
        let lo = V::load(src.cast());
        let hi = V::load(src.add(V::BYTES / 2).cast());
        V::narrow(lo.and(low), hi.and(low)).store(dst);
    }
}

/// Copies the low byte of each 16-bit unit.
/// # Safety
/// `src` must be readable for `len` units, at least two vectors, and `dst` writable for `len`
/// bytes. The two must not overlap. The processor must support `V`.
#[inline(always)]
pub(super) unsafe fn narrow_u16<V: Vector>(src: *const u16, len: usize, dst: *mut u8) {
    // SAFETY: each round reads 2 vectors inside `len` units and writes one inside `len` bytes.
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

/// Converts two vectors of units to bytes. Returns a mask of the units that stop [`narrow_plain`].
/// # Safety
/// The requirements of [`narrow_step`] must be met.
#[inline(always)]
pub(super) unsafe fn plain_step<V: Vector, const JSON: bool>(src: *const u16, dst: *mut u8) -> u32 {
    // SAFETY: this function's contract.
    unsafe {
        let lo = V::load(src.cast());
        let hi = V::load(src.add(V::BYTES / 2).cast());
        let v = V::narrow(lo, hi);
        v.store(dst);
        !plain::<V, JSON>(v).mask() & (u32::MAX >> (32 - V::BYTES))
    }
}

/// Copies units as bytes up to the first non-ASCII unit or, if `JSON`, the first JSON escape.
/// # Safety
/// The requirements of [`narrow_u16`] must be met.
#[inline(always)]
pub(super) unsafe fn narrow_plain<V: Vector, const JSON: bool>(
    src: *const u16,
    len: usize,
    dst: *mut u8,
) -> usize {
    // SAFETY: each round reads 2 vectors inside `len` units and writes one inside `len` bytes.
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

/// Copies bytes up to the first JSON escape. Returns their number, and `true` for non-ASCII bytes.
/// # Safety
/// `src` must be readable and `dst` writable for `len` bytes, at least one vector. The two must
/// not overlap. The processor must support `V`.
#[inline(always)]
pub(super) unsafe fn copy_to_escape<V: Vector>(
    src: *const u8,
    len: usize,
    dst: *mut u8,
) -> (usize, bool) {
    // SAFETY: each round reads and writes one vector inside `len` bytes.
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

/// Copies ASCII bytes up to the first vector with another byte. Returns their number.
/// # Safety
/// The requirements of [`copy_to_escape`] must be met.
#[inline(always)]
pub(super) unsafe fn copy_ascii<V: Vector>(src: *const u8, len: usize, dst: *mut u8) -> usize {
    // SAFETY: each round reads and writes vectors inside `len` bytes.
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

/// Converts units to bytes up to the first vector with a unit above `MAX`. Returns their number.
/// # Safety
/// The requirements of [`narrow_u16`] must be met.
#[inline(always)]
pub(super) unsafe fn narrow_up_to<V: Vector, const MAX: u16>(
    src: *const u16,
    len: usize,
    dst: *mut u8,
) -> usize {
    // SAFETY: each round reads 2 vectors inside `len` units and writes one inside `len` bytes.
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

/// Copies 16-bit units up to the first vector with a surrogate. Returns their number.
/// # Safety
/// `src` must be readable and `dst` writable for `len` units, at least two vectors. The two must
/// not overlap. The processor must support `V`.
#[inline(always)]
pub(super) unsafe fn copy_bmp<V: Vector>(src: *const u16, len: usize, dst: *mut u16) -> usize {
    // SAFETY: each round reads and writes vectors inside `len` units.
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
