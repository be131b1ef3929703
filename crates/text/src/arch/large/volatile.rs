//! Text in memory that others may write to while it is decoded: a `bytearray` that another thread reads a file into, memory
//! shared with another process.
//!
//! The shape of the `str` comes from a first pass. The kernels of the second one write nothing past the destination and return
//! how much they wrote, so a text that was changed in between is noticed. A unit that a kernel reads twice may have two values:
//! the `str` is checked when it is written, unless the kernel checks the very vector that it stores.

use std::marker::PhantomData;
use std::mem::MaybeUninit;

use super::{LOOK_UNITS, Made, NewStr, Tried, bulk, kind_of, looks, of, try_kind};
use crate::arch::cell::{Kernels, Work, with_kernels};
use crate::arch::{copy_ascii, copy_bmp, find_high, is_ascii, narrow_up_to, scan_utf8};
use crate::convert::{StrData, make_ordered_one_to_one};
use crate::{Encoding, Kind, Order, Shape};

/// Texts up to this length are copied to private memory as a whole and decoded like others.
const LEAST_BYTES: usize = 1024;

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

    /// A private copy of all bytes; `None` without memory for it.
    #[must_use]
    pub fn to_vec(&self) -> Option<Vec<u8>> {
        let mut bytes = Vec::new();
        bytes.try_reserve_exact(self.len).ok()?;
        self.copy_to(0, &mut bytes.spare_capacity_mut()[..self.len]);
        // SAFETY: that many bytes were just written.
        unsafe { bytes.set_len(self.len) };
        Some(bytes)
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
) -> Option<Result<Made<N::Str>, N::Error>> {
    let unit_bytes = match encoding {
        Encoding::Utf16(_) => 2,
        Encoding::Utf32(_) => 4,
        _ => 1,
    };
    if text.len() < LEAST_BYTES || !text.len().is_multiple_of(unit_bytes) {
        return None;
    }
    let new = &mut Recorded {
        new,
        kind: Kind::Ascii,
        is_checked: false,
    };
    let bytes = text.unstable();
    let made = match encoding {
        Encoding::Utf8 => make_utf8(text, new),
        Encoding::Ascii => make_ascii(text, new),
        Encoding::Latin1 => make_latin1(text, new),
        Encoding::Utf16(Order::Little) => match as_units(bytes) {
            Some(units) => make_utf16(units, new),
            None => made_of(make_ordered_one_to_one::<2, false, _>(
                bytes.as_chunks().0,
                new,
            )),
        },
        Encoding::Utf16(Order::Big) => made_of(make_ordered_one_to_one::<2, true, _>(
            bytes.as_chunks().0,
            new,
        )),
        Encoding::Utf32(Order::Little) => made_of(make_ordered_one_to_one::<4, false, _>(
            bytes.as_chunks().0,
            new,
        )),
        Encoding::Utf32(Order::Big) => made_of(make_ordered_one_to_one::<4, true, _>(
            bytes.as_chunks().0,
            new,
        )),
        _ => Ok(None),
    };
    let mut made = match made {
        Ok(made) => made?,
        Err(e) => return Some(Err(e)),
    };
    (new.is_checked || new.is_canonical(&mut made.made)).then_some(Ok(made))
}

fn made_of<S, E>(made: Option<Result<Made<S>, E>>) -> Result<Option<Made<S>>, E> {
    made.transpose()
}

/// Makes `str`s, and remembers the kind of the last one.
struct Recorded<'n, N> {
    new: &'n mut N,
    kind: Kind,
    /// Whether the kernel that wrote it has checked the vectors that it stored.
    is_checked: bool,
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

impl<N: NewStr> Recorded<'_, N> {
    /// Whether the last `str`, all of which was written, holds what its kind says. It does not if a unit was read twice and
    /// had changed.
    fn is_canonical(&self, made: &mut N::Str) -> bool {
        match self.data(made) {
            StrData::One(data) if self.kind == Kind::Ascii => is_ascii(written(data)),
            StrData::One(data) => {
                let data = written(data);
                find_high(data) < data.len()
            }
            StrData::Two(data) => written(data).iter().any(|&u| u > 0xFF),
            StrData::Four(data) => {
                (0x1_0000..=0x10_FFFF).contains(&with_kernels(Largest(written(data))))
            }
        }
    }
}

/// The largest of the units.
struct Largest<'a>(&'a [u32]);

impl Work for Largest<'_> {
    type Output = u32;

    #[inline(always)]
    fn run<K: Kernels>(self, _: K) -> u32 {
        // No branch inside: the compiler makes vectors of it.
        self.0.iter().fold(0, |max, &c| c.max(max))
    }
}

/// What became of a text: `None` if it does not fit the attempt.
type Attempt<N> = Result<Option<Made<<N as NewStr>::Str>>, <N as NewStr>::Error>;

/// ASCII into a `str`, as long as it is: `None` from the first other byte on.
fn make_ascii<N: NewStr>(text: VolatileBytes<'_>, new: &mut Recorded<'_, N>) -> Attempt<N> {
    let source = text.unstable();
    if !looks(source).all(is_ascii) {
        return Ok(None);
    }
    let tried = try_kind(
        new,
        Kind::Ascii,
        text.len(),
        |data: &mut [MaybeUninit<u8>]| {
            // SAFETY: `try_kind` has checked that data takes a byte for each byte, and it is borrowed mutably. The bytes that the
            // kernel stores are those that it has found to be ASCII.
            unsafe { copy_ascii(source, data.as_mut_ptr().cast::<u8>()) }
        },
    )?;
    Ok(match tried {
        Tried::Made(made) => {
            new.is_checked = true;
            Some(of(made, true, 0))
        }
        Tried::UpTo(_) => None,
    })
}

fn make_latin1<N: NewStr>(text: VolatileBytes<'_>, new: &mut Recorded<'_, N>) -> Attempt<N> {
    if let Some(made) = make_ascii(text, new)? {
        return Ok(Some(made));
    }
    let tried = try_kind(new, Kind::Latin1, text.len(), |data| {
        text.copy_to(0, data);
        text.len()
    })?;
    Ok(match tried {
        Tried::Made(made) => Some(of(made, true, 0)),
        Tried::UpTo(_) => None,
    })
}

fn make_utf8<N: NewStr>(text: VolatileBytes<'_>, new: &mut Recorded<'_, N>) -> Attempt<N> {
    if let Some(made) = make_ascii(text, new)? {
        return Ok(Some(made));
    }
    if !bulk::checks_while_decoding() {
        return Ok(None);
    }
    // The shape that the text had when it was counted. Its blocks are checked against it.
    let scan = scan_utf8(text.unstable());
    let (kind, n_chars) = (Kind::of_utf8(scan.max), scan.n_chars);
    if n_chars < 2 {
        return Ok(None);
    }
    // All or nothing: a private copy finds what is malformed, if it is.
    let all = |is_whole| if is_whole { n_chars } else { usize::MAX };
    let bytes = text.unstable();
    let tried = match kind {
        Kind::Ascii | Kind::Latin1 => try_kind(new, Kind::Latin1, n_chars, |data| {
            // SAFETY: the kernel writes no more units than data takes.
            all(unsafe { bulk::utf8_to_latin1_checked(bytes, data) })
        }),
        Kind::Ucs2 => try_kind(new, kind, n_chars, |data| {
            // SAFETY: the kernel writes no more units than data takes.
            all(unsafe { bulk::utf8_to_ucs2_checked(bytes, data) })
        }),
        Kind::Ucs4 => try_kind(new, kind, n_chars, |data| {
            // SAFETY: the kernel writes no more units than data takes.
            all(unsafe { bulk::utf8_to_ucs4_checked(bytes, data) })
        }),
    };
    Ok(match tried? {
        Tried::Made(made) => Some(of(made, false, 0)),
        Tried::UpTo(_) => None,
    })
}

fn make_utf16<N: NewStr>(units: &[u16], new: &mut Recorded<'_, N>) -> Attempt<N> {
    let mut kind = looks(units).map(kind_of).max().unwrap_or(Kind::Ascii);
    let mut in_vain_bytes = 0;
    loop {
        let tried = match kind {
            Kind::Ascii => try_kind(new, kind, units.len(), |data: &mut [MaybeUninit<u8>]| {
                // SAFETY: data takes a unit for each unit, which `try_kind` has checked.
                unsafe { narrow_up_to::<0x7F>(units, data.as_mut_ptr().cast::<u8>()) }
            }),
            Kind::Latin1 => try_kind(new, kind, units.len(), |data: &mut [MaybeUninit<u8>]| {
                // SAFETY: data takes a unit for each unit, which `try_kind` has checked.
                unsafe { narrow_up_to::<0xFF>(units, data.as_mut_ptr().cast::<u8>()) }
            }),
            Kind::Ucs2 => try_kind(new, kind, units.len(), |data: &mut [MaybeUninit<u16>]| {
                // SAFETY: data takes a unit for each unit, which `try_kind` has checked.
                unsafe { copy_bmp(units, data.as_mut_ptr().cast::<u16>()) }
            }),
            Kind::Ucs4 => {
                let n_chars = bulk::count_utf16(units);
                try_kind(new, kind, n_chars, |data| {
                    // SAFETY: the kernel writes no more units than data takes.
                    match unsafe { bulk::utf16_to_ucs4_checked(units, data) } {
                        true => n_chars,
                        false => usize::MAX,
                    }
                })
            }
        };
        match tried? {
            Tried::Made(made) => {
                new.is_checked = kind == Kind::Ascii;
                return Ok(Some(of(made, kind == Kind::Ucs2, in_vain_bytes)));
            }
            Tried::UpTo(_) if kind == Kind::Ucs4 => return Ok(None),
            Tried::UpTo(n) => {
                in_vain_bytes += 2 * n;
                let mut rest = units[n..].chunks(LOOK_UNITS).map(kind_of);
                match rest.find(|&found| found > kind) {
                    Some(found) => kind = found,
                    None => return Ok(None),
                }
            }
        }
    }
}

/// The bytes as units of 16 bits, where they lie as such in memory.
fn as_units(bytes: &[u8]) -> Option<&[u16]> {
    if !bytes.len().is_multiple_of(2)
        || !bytes.as_ptr().cast::<u16>().is_aligned()
        || cfg!(target_endian = "big")
    {
        return None;
    }
    // SAFETY: aligned and whole, checked above; any bits are a good unit.
    Some(unsafe { std::slice::from_raw_parts(bytes.as_ptr().cast(), bytes.len() / 2) })
}

/// Units that were all written.
fn written<U>(data: &mut [MaybeUninit<U>]) -> &[U] {
    // SAFETY: the maker of the `str` has written each of its units: `try_kind` compares their number, and
    // `make_ordered_one_to_one` writes as many as it reads.
    unsafe { std::slice::from_raw_parts(data.as_ptr().cast(), data.len()) }
}
