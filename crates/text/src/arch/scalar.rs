//! The functions of the vector kernels and of simdutf, in plain Rust. They are used under Miri,
//! without vector kernels, and if `ONECOPY_KERNEL` is `scalar`.

use std::mem::MaybeUninit;

use super::family::{Look, ShortNumber, UnescapedLength};
use super::kernel::{Scan8, Scan16};
use super::memory::uninit;
use crate::Kind;

mod convert;
pub(crate) use convert::*;

/// Returns `true` if the code point needs a JSON escape (RFC 8259, section 7).
#[inline(always)]
pub(crate) fn is_escape(c: u32) -> bool {
    c < 0x20 || c == 0x22 || c == 0x5C
}

/// A character in the body of a JSON string, in eight bytes. The first bytes, at most six, are the
/// character, and the last byte is their number. A writer stores all eight bytes without a branch.
#[derive(Clone, Copy)]
pub(crate) struct JsonForm([u8; 8]);

impl JsonForm {
    const fn new(bytes: &[u8]) -> Self {
        let mut form = [0; 8];
        let mut i = 0;
        while i < bytes.len() {
            form[i] = bytes[i];
            i += 1;
        }
        form[7] = bytes.len() as u8;
        JsonForm(form)
    }

    #[inline(always)]
    pub(crate) fn len(self) -> usize {
        usize::from(self.0[7])
    }

    #[inline(always)]
    pub(crate) fn as_slice(&self) -> &[u8] {
        &self.0[..self.len()]
    }

    /// Writes the bytes and their padding. Returns the address after the character.
    ///
    /// # Safety
    /// `out` must be writable for 8 bytes.
    #[inline(always)]
    pub(super) unsafe fn write(self, out: *mut u8) -> *mut u8 {
        // SAFETY: 8 bytes are writable.
        unsafe {
            out.cast::<[u8; 8]>().write_unaligned(self.0);
            out.add(self.len())
        }
    }
}

/// Returns the [`JsonForm`] of each byte. If `as_is` is `true`, the text is UTF-8, and non-ASCII
/// bytes stay unchanged. Otherwise the text is Latin-1, and non-ASCII bytes are converted to UTF-8.
const fn json_forms(as_is: bool) -> [JsonForm; 256] {
    let mut all = [JsonForm([0; 8]); 256];
    let mut c = 0;
    while c < all.len() {
        let byte = c as u8;
        all[c] = match byte {
            0..0x20 => {
                let digit = b"0123456789abcdef"[c & 0xF];
                JsonForm::new(&[b'\\', b'u', b'0', b'0', b'0' + (byte >> 4), digit])
            }
            0x80.. if !as_is => JsonForm::new(&[0xC0 | byte >> 6, 0x80 | byte & 0x3F]),
            _ => JsonForm::new(&[byte]),
        };
        c += 1;
    }
    let short = *b"\"\"\\\\\x08b\x09t\x0An\x0Cf\x0Dr";
    let mut i = 0;
    while i < short.len() {
        all[short[i] as usize] = JsonForm::new(&[b'\\', short[i + 1]]);
        i += 2;
    }
    all
}

/// The JSON form of each byte of ASCII or UTF-8.
pub(super) static JSON_FORMS: [JsonForm; 256] = json_forms(true);
/// The JSON form of each Latin-1 character.
static JSON_FORMS_LATIN1: [JsonForm; 256] = json_forms(false);

/// Returns the JSON escape of `"`, `\` or a control character. The escape is a backslash and a
/// letter, or `\u` and four digits.
#[inline(always)]
pub(crate) fn escape(c: u8) -> JsonForm {
    JSON_FORMS[usize::from(c)]
}

/// Writes characters one by one as the body of a JSON string.
///
/// # Safety
/// `out` must be writable for 6 bytes for each character, and 2 more. The characters must be
/// Unicode scalar values.
#[inline(never)]
pub(super) unsafe fn json_one_by_one(
    units: impl Iterator<Item = u32>,
    mut out: *mut u8,
) -> *mut u8 {
    // SAFETY: a `JsonForm` has at most 6 bytes and is stored as 8, and UTF-8 has at most 4 bytes.
    unsafe {
        for c in units {
            out = match JSON_FORMS_LATIN1.get(c as usize) {
                Some(form) => form.write(out),
                None => out.add(write_utf8(c, out)),
            };
        }
    }
    out
}

/// Writes text as the body of a JSON string, byte by byte. If `as_is` is `true`, the text is UTF-8,
/// and non-ASCII bytes are copied. Otherwise the text is Latin-1.
///
/// # Safety
/// `out` must be writable for `6 * u.len() + 2` bytes.
#[inline(never)]
pub(super) unsafe fn json_bytes_one_by_one(u: &[u8], as_is: bool, mut out: *mut u8) -> *mut u8 {
    let forms = if as_is {
        &JSON_FORMS
    } else {
        &JSON_FORMS_LATIN1
    };
    // SAFETY: an entry of the table has at most 6 bytes and is stored as 8.
    unsafe {
        for &byte in u {
            out = forms[usize::from(byte)].write(out);
        }
    }
    out
}

/// Returns the number of 32-bit units before the first JSON escape. Also returns `true` if all
/// these units are ASCII.
pub(crate) fn plain_u32(rest: &[u32]) -> (usize, bool) {
    let end = rest.iter().position(|&c| is_escape(c));
    let n = end.unwrap_or(rest.len());
    (n, rest[..n].iter().all(|&c| c < 0x80))
}

/// Returns the number of white-space bytes at the start of `rest`.
#[inline(always)]
pub(crate) fn blank_u8(rest: &[u8]) -> usize {
    let is_blank = |b: &&u8| matches!(b, b' ' | b'\n' | b'\r' | b'\t');
    rest.iter().take_while(is_blank).count()
}

/// The scalar implementation of [`JsonSteps::look`](super::family::JsonSteps::look).
pub(crate) fn look(rest: &[u8]) -> Look {
    let mut look = Look::default();
    for i in 0..64 {
        let byte = rest.get(i).copied().unwrap_or(0);
        look.special |= u64::from(is_escape(u32::from(byte))) << i;
        look.high |= u64::from(byte >= 0x80) << i;
        look.digit |= u64::from(byte.is_ascii_digit()) << i;
        look.blank |= u64::from(matches!(byte, b' ' | b'\n' | b'\r' | b'\t')) << i;
    }
    look
}

/// The scalar implementation of [`Scan::short_number`](super::json_read::Scan::short_number).
#[inline(always)]
pub(crate) fn short_number(rest: &[u8]) -> Option<ShortNumber> {
    let mut digits = 0_u64;
    let mut run = |from: usize, most: usize| {
        let mut n = 0;
        while let Some(d) = rest.get(from + n).map(|b| b.wrapping_sub(b'0'))
            && d <= 9
        {
            if n == most {
                return None;
            }
            digits = digits * 10 + u64::from(d);
            n += 1;
        }
        (n > 0).then_some(n)
    };
    let n_before = run(0, 19)?;
    if n_before > 1 && rest[0] == b'0' {
        return None;
    }
    let (mut len, mut n_after) = (n_before, 0);
    if *rest.get(len)? == b'.' {
        n_after = run(len + 1, 19 - n_before)?;
        len += 1 + n_after;
    }
    (*rest.get(len)? | 0x20 != b'e').then_some(ShortNumber {
        len,
        digits,
        n_after,
    })
}

/// Returns the integer of the digits at the start of `rest`. `n_before` digits precede the decimal
/// point, and `n_after` digits follow it. Without a point, `n_after` is 0.
pub(crate) fn digits(rest: &[u8], n_before: u32, n_after: u32) -> u64 {
    let n = (n_before + n_after + u32::from(n_after > 0)) as usize;
    let digits = rest[..n].iter().filter(|&&b| b != b'.');
    digits.fold(0, |n, &b| n * 10 + u64::from(b - b'0'))
}

/// The scalar implementation of [`JsonSteps::unescape_u8`](super::family::JsonSteps::unescape_u8).
pub(crate) fn unescape_u8(body: &[u8], out: &mut [u8]) -> UnescapedLength {
    let (mut n_read, mut n_written) = (0, 0);
    while let Some(&byte) = body.get(n_read) {
        let (byte, len) = if byte == b'\\' {
            let Some(byte) = body.get(n_read + 1).and_then(|&b| letter(b)) else {
                break;
            };
            (byte, 2)
        } else {
            (byte, 1)
        };
        out[n_written] = byte;
        n_read += len;
        n_written += 1;
    }
    UnescapedLength { n_read, n_written }
}

/// Returns the character of a JSON escape letter (a line feed for `n`).
#[inline(always)]
pub(crate) fn letter(byte: u8) -> Option<u8> {
    Some(match byte {
        b'"' | b'\\' | b'/' => byte,
        b'b' => 8,
        b'f' => 12,
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        _ => return None,
    })
}

pub(super) fn is_ascii(src: &[u8]) -> bool {
    src.is_ascii()
}

pub(super) fn scan_utf8(src: &[u8]) -> Scan8 {
    Scan8 {
        max: src.iter().fold(0, |max, &b| max.max(b)),
        n_chars: src.iter().filter(|&&b| b & 0xC0 != 0x80).count(),
    }
}

pub(super) fn scan_u16(src: &[u16]) -> Scan16 {
    Scan16 {
        kind: Kind::of(src.iter().fold(0, |or, &u| or | u32::from(u))),
        surrogate: src.iter().fold(false, |any, &u| any | is_surrogate(u)),
    }
}

/// Returns the bitwise OR of the units. Also returns `true` if any unit is a surrogate or past
/// U+10FFFF.
#[inline]
pub(crate) fn scan_u32(src: &[u32]) -> (u32, bool) {
    src.iter().fold((0, false), |(or, bad), &c| {
        (or | c, bad | (c & 0xFFFF_F800 == 0xD800) | (c > 0x10_FFFF))
    })
}

pub(super) fn find_surrogate(src: &[u16]) -> usize {
    src.iter()
        .position(|&u| is_surrogate(u))
        .unwrap_or(src.len())
}

pub(super) fn find_high(src: &[u8]) -> usize {
    src.iter().position(|b| !b.is_ascii()).unwrap_or(src.len())
}

pub(super) fn find_escape_u8(src: &[u8]) -> usize {
    src.iter()
        .position(|&b| is_escape(b.into()))
        .unwrap_or(src.len())
}

pub(super) fn find_escape_u16(src: &[u16]) -> usize {
    src.iter()
        .position(|&u| is_escape(u.into()))
        .unwrap_or(src.len())
}

pub(super) fn narrow_u16(src: &[u16], out: &mut [MaybeUninit<u8>]) {
    for (to, &u) in out.iter_mut().zip(src) {
        to.write(u as u8);
    }
}

pub(super) fn copy_to_escape(src: &[u8], out: &mut [MaybeUninit<u8>]) -> (usize, bool) {
    let n = find_escape_u8(src);
    out[..n].copy_from_slice(uninit(&src[..n]));
    (n, !src[..n].is_ascii())
}

pub(super) fn narrow_plain<const JSON: bool>(src: &[u16], out: &mut [MaybeUninit<u8>]) -> usize {
    let is_plain = |u: u16| u < 0x80 && !(JSON && is_escape(u.into()));
    for (i, (&u, to)) in src.iter().zip(out).enumerate() {
        if !is_plain(u) {
            return i;
        }
        to.write(u as u8);
    }
    src.len()
}

/// Copies units up to the first one for which `fit` returns `false`. Returns their number. Each
/// unit is read only once, because another thread may change it.
#[inline(always)]
fn copy_while<T: Copy, U>(
    src: &[T],
    out: &mut [MaybeUninit<U>],
    fit: impl Fn(T) -> bool,
    convert: impl Fn(T) -> U,
) -> usize {
    const UNITS: usize = 16;
    let mut n = 0;
    for (part, out) in src.chunks(UNITS).zip(out.chunks_mut(UNITS)) {
        let mut units = [part[0]; UNITS];
        units[..part.len()].copy_from_slice(part);
        // This loop has no branch for each unit.
        let all_fit = units.iter().fold(true, |all, &u| all & fit(u));
        let first_other = || units.iter().position(|&u| !fit(u));
        let n_fit = if all_fit { None } else { first_other() }.unwrap_or(part.len());
        for (to, &u) in out.iter_mut().zip(&units[..n_fit]) {
            to.write(convert(u));
        }
        n += n_fit;
        if n_fit < part.len() {
            break;
        }
    }
    n
}

pub(super) fn copy_ascii(src: &[u8], out: &mut [MaybeUninit<u8>]) -> usize {
    copy_while(src, out, |b| b.is_ascii(), |b| b)
}

pub(super) fn narrow_up_to<const MAX: u16>(src: &[u16], out: &mut [MaybeUninit<u8>]) -> usize {
    copy_while(src, out, |u| u <= MAX, |u| u as u8)
}

pub(super) fn copy_bmp(src: &[u16], out: &mut [MaybeUninit<u16>]) -> usize {
    copy_while(src, out, |u| !is_surrogate(u), |u| u)
}

/// Copies 16-bit units. Returns `false` if a unit is a surrogate or needs a JSON escape.
///
/// # Safety
/// `out` must be writable for as many units as `u` has, and must not overlap `u`.
#[inline(always)]
pub(crate) unsafe fn copy_ucs2(u: &[u16], out: *mut u16) -> bool {
    let mut is_plain = true;
    for (i, &unit) in u.iter().enumerate() {
        is_plain &= (unit >= 0x20) & (unit != 0x22) & (unit != 0x5C) & (unit & 0xF800 != 0xD800);
        // SAFETY: guaranteed by the caller of this function.
        unsafe { out.add(i).write(unit) };
    }
    is_plain
}
