//! Decodes text that another thread or process may change during the conversion. Examples are a
//! `bytearray`, and memory that is shared with another process.
//!
//! A first pass determines the shape of the `str`. The second pass writes nothing past the end of
//! the `str`. If the number of written units is wrong, the conversion fails. Otherwise the `str` is
//! checked, unless its kernel reads each unit once.

use std::marker::PhantomData;
use std::mem::MaybeUninit;

use super::{LARGE_BYTES, Tried, make, of, try_ascii};
use crate::arch::bytes::as_units;
use crate::arch::measured::is_canonical;
use crate::convert::make_ordered_one_to_one;
use crate::new_object::{MadeStr, NewStr, StrData};
use crate::{ByteSink, Encoding, Kind, Order, Shape, SinkFull, Units};

/// A shorter text is first copied to private memory.
const LEAST_BYTES: usize = 1024;

/// `true` if this machine must swap the bytes of little-endian units.
const SWAPS_LITTLE: bool = cfg!(target_endian = "big");

/// Borrowed memory that other threads or processes may change.
#[derive(Clone, Copy, Debug)]
pub struct VolatileBytes<'a> {
    at: *const u8,
    len: usize,
    borrowed: PhantomData<&'a [u8]>,
}

impl<'a> VolatileBytes<'a> {
    /// Borrows `len` bytes at `at`.
    ///
    /// # Safety
    /// `at` must not be NULL, and must be readable for `len` bytes as long as `'a` lasts.
    #[must_use]
    pub unsafe fn new(at: *const u8, len: usize) -> Self {
        VolatileBytes {
            at,
            len,
            borrowed: PhantomData,
        }
    }

    /// Returns the size in bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns `true` if the size is 0.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Fills `to` with the bytes from position `from` on.
    ///
    /// # Panics
    /// Panics if fewer than `to.len()` bytes remain after `from`.
    pub fn copy_to<'t>(&self, from: usize, to: &'t mut [MaybeUninit<u8>]) -> &'t [u8] {
        assert!(from <= self.len && to.len() <= self.len - from);
        // SAFETY: both ranges were checked above. Only `to` refers to its memory. During a
        // concurrent write, the old and the new value of a byte are both valid.
        unsafe {
            std::ptr::copy_nonoverlapping(self.at.add(from), to.as_mut_ptr().cast(), to.len());
            std::slice::from_raw_parts(to.as_ptr().cast(), to.len())
        }
    }

    /// Appends a copy of all bytes to `to`.
    ///
    /// # Panics Panics if the spare capacity of `to` is smaller than the number of bytes to append.
    pub fn append_to(&self, to: &mut Vec<u8>) {
        self.copy_to(0, &mut to.spare_capacity_mut()[..self.len]);
        // SAFETY: that many bytes of the spare capacity were just written.
        unsafe { to.set_len(to.len() + self.len) };
    }

    /// Appends all bytes to a sink, with one copy.
    ///
    /// # Errors
    /// Returns [`SinkFull`] if the sink has no space for the bytes.
    pub fn put_to(&self, sink: &mut dyn ByteSink) -> Result<(), SinkFull> {
        sink.put(self.unstable())
    }

    /// Returns the memory from position `from` on.
    ///
    /// # Panics
    /// Panics if `from` is past the end.
    #[must_use]
    pub fn after(&self, from: usize) -> Self {
        assert!(from <= self.len);
        VolatileBytes {
            // SAFETY: the address is inside the memory or at its end.
            at: unsafe { self.at.add(from) },
            len: self.len - from,
            ..*self
        }
    }

    /// Returns the bytes as a slice. Two reads of a byte may return different values.
    fn unstable(&self) -> &'a [u8] {
        // SAFETY: the memory is readable and not NULL. Rust does not permit changes of a slice. So
        // only kernels get this slice, and no value makes them write outside of their destination.
        unsafe { std::slice::from_raw_parts(self.at, self.len) }
    }
}

/// Makes a `str` of the narrowest kind from a text that may change.
///
/// Returns `None` if the text is short, malformed or changed, or if its encoding has no kernels.
/// The caller then decodes a private copy.
///
/// Copies: the text is copied once, by its conversion into the `str`.
///
/// # Errors
/// Returns the error that `new` returns.
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

/// Makes a `str` like [`make_large`](super::make_large), from a text that may change. If the text
/// was changed, returns `None`. The caller then uses
/// [`Measured::write_volatile`](crate::Measured::write_volatile).
///
/// # Errors
/// Returns the error that `new` returns.
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

/// Creates each `str` with `new`, and records the kind of the last one.
struct Recorded<'n, N> {
    new: &'n mut N,
    kind: Kind,
    /// `true` if the kernel checks the code points of a `str` of kind 4.
    is_ucs4_checked: bool,
    /// `true` if a `str` of kind ASCII must be checked after it was written. Some kernels load a
    /// vector twice: to test it, and to store it.
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

    /// Returns `made` if its kind is the narrowest, as CPython requires.
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
        // All kernels except those of UTF-32 write only code points.
        let is_good = is_checked || is_canonical::<true>(self.kind, self.data(&mut made.made));
        is_good.then_some(Ok(made))
    }
}
