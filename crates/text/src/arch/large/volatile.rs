//! Text in memory that others may write to while it is decoded: a `bytearray` that another thread reads a file into, memory
//! shared with another process.
//!
//! The shape of the `str` comes from a first pass. The kernels of the second one write nothing past
//! the destination and return how much they wrote, so a text that was changed in between is
//! noticed. A unit that is read twice may have two values: the `str` is checked when it is written,
//! unless the kernel checks the very vector that it stores.

use std::marker::PhantomData;
use std::mem::MaybeUninit;

use super::{LARGE_BYTES, Tried, make, of, try_ascii};
use crate::arch::bytes::as_units;
use crate::arch::measured::is_canonical;
use crate::convert::make_ordered_one_to_one;
use crate::new_object::{MadeStr, NewStr, StrData};
use crate::{ByteSink, Encoding, Kind, Order, Shape, SinkFull, Units};

/// Texts up to this length are copied to private memory as a whole and decoded like others.
const LEAST_BYTES: usize = 1024;

/// Little-endian units are in the other order of bytes than this machine's.
const SWAPS_LITTLE: bool = cfg!(target_endian = "big");

/// Borrowed memory that is readable, and that anybody may write to meanwhile.
#[derive(Clone, Copy, Debug)]
pub struct VolatileBytes<'a> {
    at: *const u8,
    len: usize,
    borrowed: PhantomData<&'a [u8]>,
}

impl<'a> VolatileBytes<'a> {
    /// # Safety
    /// `at` is readable for `len` bytes as long as `'a` lasts, and not NULL.
    #[must_use]
    pub unsafe fn new(at: *const u8, len: usize) -> Self {
        VolatileBytes {
            at,
            len,
            borrowed: PhantomData,
        }
    }

    /// Bytes in it.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no bytes in it.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Copies bytes from `from` on: as many as `to` has.
    ///
    /// # Panics
    /// If there are not as many.
    pub fn copy_to<'t>(&self, from: usize, to: &'t mut [MaybeUninit<u8>]) -> &'t [u8] {
        assert!(from <= self.len && to.len() <= self.len - from);
        // SAFETY: both ranges were checked above; `to` is borrowed mutably, so nothing else is there. Every byte is a good u8,
        // whichever of two values a concurrent write leaves.
        unsafe {
            std::ptr::copy_nonoverlapping(self.at.add(from), to.as_mut_ptr().cast(), to.len());
            std::slice::from_raw_parts(to.as_ptr().cast(), to.len())
        }
    }

    /// Appends a private copy of all bytes.
    ///
    /// # Panics
    /// If `to` has not as much spare capacity.
    pub fn append_to(&self, to: &mut Vec<u8>) {
        self.copy_to(0, &mut to.spare_capacity_mut()[..self.len]);
        // SAFETY: that many bytes of the spare capacity were just written.
        unsafe { to.set_len(to.len() + self.len) };
    }

    /// Puts all bytes to a sink, which copies them. Copies: one.
    ///
    /// # Errors
    /// [`SinkFull`].
    pub fn put_to(&self, sink: &mut dyn ByteSink) -> Result<(), SinkFull> {
        // A sink stores as many bytes as the slice is long, whatever they are.
        sink.put(self.unstable())
    }

    /// The bytes from `from` on.
    ///
    /// # Panics
    /// If it is past the end.
    #[must_use]
    pub fn after(&self, from: usize) -> Self {
        assert!(from <= self.len);
        VolatileBytes {
            // SAFETY: inside of the memory or at its end, checked above.
            at: unsafe { self.at.add(from) },
            len: self.len - from,
            ..*self
        }
    }

    /// The bytes as a slice. Each read of a byte may give another value: only for kernels that rely on no two reads being equal.
    fn unstable(&self) -> &'a [u8] {
        // SAFETY: readable, not NULL. The memory may change, which a slice does not allow: it is passed only to kernels whose
        // stores are bounded by the length of the slice or of the destination, whatever they read.
        unsafe { std::slice::from_raw_parts(self.at, self.len) }
    }
}

/// Makes a `str` of a text that may change meanwhile, with the narrowest kind that holds what was read.
///
/// `None` for a text that is short, malformed or was changed, and for encodings without kernels: a private copy decides then.
///
/// Copies: one, the conversion, into the `str`.
///
/// # Errors
/// Those of `new`.
pub fn make_volatile<N: NewStr>(
    text: VolatileBytes<'_>,
    encoding: Encoding,
    new: &mut N,
) -> Option<Result<MadeStr<N::Str>, N::Error>> {
    let unit_bytes = match encoding {
        Encoding::Utf16(_) => 2,
        Encoding::Utf32(_) => 4,
        _ => 1,
    };
    if text.len() < LEAST_BYTES || !text.len().is_multiple_of(unit_bytes) {
        return None;
    }
    let new = &mut Recorded::new(new);
    let bytes = text.unstable();
    let made = match encoding {
        Encoding::Utf8 => make::<_, true>(Units::Utf8(bytes), new)?,
        Encoding::Latin1 => make::<_, true>(Units::Latin1(bytes), new)?,
        Encoding::Ascii => match try_ascii::<_, true>(bytes, new) {
            Ok(Tried::Made(made)) => Ok(of(made, true, 0)),
            Ok(Tried::UpTo(_)) => return None,
            Err(e) => Err(e),
        },
        Encoding::Utf16(Order::Little) => match as_units(bytes) {
            Some(units) if !SWAPS_LITTLE => make::<_, true>(Units::Utf16(units), new)?,
            _ => new.ordered::<2, SWAPS_LITTLE>(bytes)?,
        },
        Encoding::Utf16(Order::Big) => new.ordered::<2, { !SWAPS_LITTLE }>(bytes)?,
        Encoding::Utf32(Order::Little) => new.ordered::<4, SWAPS_LITTLE>(bytes)?,
        Encoding::Utf32(Order::Big) => new.ordered::<4, { !SWAPS_LITTLE }>(bytes)?,
        _ => return None,
    };
    new.checked(made)
}

/// As [`make_large`](super::make_large), of a text that may change meanwhile. `None` also if it was
/// changed: [`Measured::write_volatile`](crate::Measured::write_volatile) decides then.
///
/// # Errors
/// Those of `new`.
pub fn make_large_volatile<N: NewStr>(
    units: Units<'_>,
    new: &mut N,
) -> Option<Result<MadeStr<N::Str>, N::Error>> {
    if units.len_bytes() < LARGE_BYTES {
        return None;
    }
    let new = &mut Recorded::new(new);
    let made = make::<_, true>(units, new)?;
    new.checked(made)
}

/// Makes `str`s, and remembers the kind of the last one.
struct Recorded<'n, N> {
    new: &'n mut N,
    kind: Kind,
    /// The units of a `str` of 32-bit units were checked when they were written.
    is_ucs4_checked: bool,
    /// A `str` of ASCII is to be checked too: it is not if the kernels have checked the vectors
    /// that they stored.
    checks_ascii: bool,
}

impl<N: NewStr> NewStr for Recorded<'_, N> {
    type Str = N::Str;
    type Error = N::Error;

    fn new_str(&mut self, shape: Shape) -> Result<N::Str, N::Error> {
        self.kind = shape.kind;
        self.new.new_str(shape)
    }

    fn data<'a>(&self, made: &'a mut N::Str) -> StrData<'a> {
        self.new.data(made)
    }
}

impl<'n, N: NewStr> Recorded<'n, N> {
    fn new(new: &'n mut N) -> Self {
        Recorded {
            new,
            kind: Kind::Ascii,
            is_ucs4_checked: false,
            checks_ascii: false,
        }
    }

    fn ordered<const BYTES: usize, const SWAPPED: bool>(
        &mut self,
        bytes: &[u8],
    ) -> Option<Result<MadeStr<N::Str>, N::Error>>
    where
        [u8; BYTES]: crate::convert::OrderedUnit,
    {
        self.checks_ascii = true;
        self.is_ucs4_checked = BYTES == 4;
        make_ordered_one_to_one::<BYTES, SWAPPED, _>(bytes.as_chunks().0, self)
    }

    /// The `str`, if it is canonical.
    fn checked(
        &mut self,
        made: Result<MadeStr<N::Str>, N::Error>,
    ) -> Option<Result<MadeStr<N::Str>, N::Error>> {
        let mut made = match made {
            Ok(made) => made,
            Err(e) => return Some(Err(e)),
        };
        let is_checked = match self.kind {
            Kind::Ascii => !self.checks_ascii,
            Kind::Ucs4 => self.is_ucs4_checked,
            Kind::Latin1 | Kind::Ucs2 => false,
        };
        // All kernels but those of UTF-32 write code points only, whatever happens to the text.
        let is_good = is_checked || is_canonical::<true>(self.kind, self.data(&mut made.made));
        is_good.then_some(Ok(made))
    }
}
