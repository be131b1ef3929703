//! Text in memory that others may write to while it is decoded: a `bytearray` that another thread reads a file into, memory
//! shared with another process.
//!
//! A kernel that writes as many units as an earlier pass has counted must see the text that was counted. Such kernels are given
//! blocks that were copied to private memory. Kernels that write one unit for each unit they read stay inside the destination
//! whatever they read; they read the volatile memory itself, and the `str` is checked when it is written.

use std::marker::PhantomData;
use std::mem::MaybeUninit;

use super::{LOOK_UNITS, Made, NewStr, Tried, bulk, kind_of, looks, of, try_kind};
use crate::arch::{copy_ascii, copy_bmp, is_ascii, narrow_up_to, scan_utf8};
use crate::convert::{StrData, make_ordered_one_to_one};
use crate::{Encoding, Kind, Order, Shape};

/// Texts up to this length are copied to private memory as a whole and decoded like others.
const LEAST_BYTES: usize = 1024;

/// Bytes that are copied to private memory at a time: they stay in the first cache until they are decoded.
const BLOCK_BYTES: usize = 4096;

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
        // loads are vector intrinsics and whose stores are bounded by lengths that come from the slice, not from its contents.
        unsafe { std::slice::from_raw_parts(self.at, self.len) }
    }
}

/// Makes a `str` of a text that may change meanwhile, with the narrowest kind that holds what was read.
///
/// `None` for a text that is short, malformed or was changed, and for encodings without kernels: a private copy decides then.
///
/// Copies: the conversion, into the `str`; UTF-8 that is not ASCII and pairs of UTF-16 are also copied through a block that
/// stays in the first cache.
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
    };
    let bytes = text.unstable();
    let made = match encoding {
        Encoding::Utf8 => make_utf8(text, true, new),
        Encoding::Ascii => make_ascii(text, new),
        Encoding::Latin1 => make_latin1(text, new),
        Encoding::Utf16(Order::Little) => match as_units(bytes) {
            Some(units) => make_utf16(text, units, new),
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
    new.is_canonical(&mut made.made).then_some(Ok(made))
}

fn made_of<S, E>(made: Option<Result<Made<S>, E>>) -> Result<Option<Made<S>>, E> {
    made.transpose()
}

/// Makes `str`s, and remembers the kind of the last one.
struct Recorded<'n, N> {
    new: &'n mut N,
    kind: Kind,
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
            StrData::One(data) => is_ascii(written(data)) == (self.kind == Kind::Ascii),
            StrData::Two(data) => written(data).iter().any(|&u| u > 0xFF),
            StrData::Four(data) => {
                // No branch inside: the compiler makes vectors of it.
                let max = written(data).iter().fold(0, |max, &c| c.max(max));
                (0x1_0000..=0x10_FFFF).contains(&max)
            }
        }
    }
}

/// What became of a text: `None` if it does not fit the attempt.
type Attempt<N> = Result<Option<Made<<N as NewStr>::Str>>, <N as NewStr>::Error>;

/// ASCII into a `str`, as long as it is: `None` from the first other byte on.
fn make_ascii<N: NewStr>(text: VolatileBytes<'_>, new: &mut N) -> Attempt<N> {
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
        Tried::Made(made) => Some(of(made, true, 0)),
        Tried::UpTo(_) => None,
    })
}

fn make_latin1<N: NewStr>(text: VolatileBytes<'_>, new: &mut N) -> Attempt<N> {
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

fn make_utf8<N: NewStr>(text: VolatileBytes<'_>, or_other: bool, new: &mut N) -> Attempt<N> {
    if let Some(made) = make_ascii(text, new)? {
        return Ok(Some(made));
    }
    if !or_other || !bulk::checks_while_decoding() {
        return Ok(None);
    }
    // The shape that the text had when it was counted. Its blocks are checked against it.
    let scan = scan_utf8(text.unstable());
    let (kind, n_chars) = (Kind::of_utf8(scan.max), scan.n_chars);
    if n_chars < 2 {
        return Ok(None);
    }
    // SAFETY: each block is private, a part of it has at most `max` as its largest byte and takes as many units as it has
    // bytes that continue nothing: `by_blocks` checks both (so for all three).
    let tried = match kind {
        Kind::Ascii | Kind::Latin1 => try_kind(new, Kind::Latin1, n_chars, |data| {
            by_blocks(text, 0xC3, data, |block, out| unsafe {
                bulk::utf8_to_latin1_checked(block, out)
            })
        }),
        Kind::Ucs2 => try_kind(new, kind, n_chars, |data| {
            by_blocks(text, 0xEF, data, |block, out| unsafe {
                bulk::utf8_to_ucs2_checked(block, out)
            })
        }),
        Kind::Ucs4 => try_kind(new, kind, n_chars, |data| {
            by_blocks(text, 0xFF, data, |block, out| unsafe {
                bulk::utf8_to_ucs4_checked(block, out)
            })
        }),
    };
    Ok(match tried? {
        Tried::Made(made) => Some(of(made, false, 0)),
        Tried::UpTo(_) => None,
    })
}

/// Decodes UTF-8 through private blocks; the number of units, or `usize::MAX` where a block does not fit what was counted.
fn by_blocks<U>(
    text: VolatileBytes<'_>,
    max: u8,
    out: &mut [MaybeUninit<U>],
    decode: impl Fn(&[u8], &mut [MaybeUninit<U>]) -> bool,
) -> usize {
    let mut place = [const { MaybeUninit::<u8>::uninit() }; BLOCK_BYTES];
    let (mut at, mut n) = (0, 0);
    while at < text.len() {
        let len = BLOCK_BYTES.min(text.len() - at);
        let mut block = text.copy_to(at, &mut place[..len]);
        if at + len < text.len() {
            // Up to where a character starts, if the text is well-formed.
            let start = block.iter().rposition(|&b| b & 0xC0 != 0x80).unwrap_or(0);
            if start == 0 || len - start > 4 {
                return usize::MAX;
            }
            block = &block[..start];
        }
        let scan = scan_utf8(block);
        if scan.max > max || scan.n_chars > out.len() - n {
            return usize::MAX;
        }
        if !decode(block, &mut out[n..n + scan.n_chars]) {
            return usize::MAX;
        }
        at += block.len();
        n += scan.n_chars;
    }
    n
}

fn make_utf16<N: NewStr>(text: VolatileBytes<'_>, units: &[u16], new: &mut N) -> Attempt<N> {
    let mut kind = looks(units).map(kind_of).max().unwrap_or(Kind::Ascii);
    let mut in_vain_bytes = 0;
    loop {
        // SAFETY: `try_kind` has checked that data takes a unit for each unit, and it is borrowed mutably (so for all).
        let tried = match kind {
            Kind::Ascii => try_kind(
                new,
                kind,
                units.len(),
                |data: &mut [MaybeUninit<u8>]| unsafe {
                    narrow_up_to::<0x7F>(units, data.as_mut_ptr().cast::<u8>())
                },
            ),
            Kind::Latin1 => try_kind(
                new,
                kind,
                units.len(),
                |data: &mut [MaybeUninit<u8>]| unsafe {
                    narrow_up_to::<0xFF>(units, data.as_mut_ptr().cast::<u8>())
                },
            ),
            Kind::Ucs2 => try_kind(
                new,
                kind,
                units.len(),
                |data: &mut [MaybeUninit<u16>]| unsafe {
                    copy_bmp(units, data.as_mut_ptr().cast::<u16>())
                },
            ),
            Kind::Ucs4 => {
                let n_chars = bulk::count_utf16(units);
                try_kind(new, kind, n_chars, |data| pairs_by_blocks(text, data))
            }
        };
        match tried? {
            Tried::Made(made) => {
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

/// As [`by_blocks`], of UTF-16 with pairs.
fn pairs_by_blocks(text: VolatileBytes<'_>, out: &mut [MaybeUninit<u32>]) -> usize {
    let mut place = [const { MaybeUninit::<u16>::uninit() }; BLOCK_BYTES / 2];
    let (mut at, mut n) = (0, 0);
    while at < text.len() {
        let len = BLOCK_BYTES.min(text.len() - at);
        let place = &mut place[..len / 2];
        // SAFETY: the same bytes, of no alignment; MaybeUninit asks nothing of its contents.
        let bytes = unsafe { std::slice::from_raw_parts_mut(place.as_mut_ptr().cast(), len) };
        text.copy_to(at, bytes);
        // SAFETY: all of its bytes were just written, and any bits are a good u16.
        let mut block =
            unsafe { std::slice::from_raw_parts(place.as_ptr().cast::<u16>(), place.len()) };
        if at + len < text.len()
            && let [rest @ .., last] = block
            && last & 0xFC00 == 0xD800
        {
            block = rest;
        }
        let n_chars = bulk::count_utf16(block);
        let Some(to) = out.get_mut(n..n + n_chars) else {
            return usize::MAX;
        };
        // SAFETY: the block is private, and `to` takes the characters just counted.
        if !unsafe { bulk::utf16_to_ucs4_checked(block, to) } {
            return usize::MAX;
        }
        at += 2 * block.len();
        n += n_chars;
    }
    n
}

/// The bytes as units of 16 bits, where they lie as such in memory.
fn as_units(bytes: &[u8]) -> Option<&[u16]> {
    if bytes.len() % 2 != 0
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
