//! The scalar twins of the vector kernels, and of simdutf's bulk conversions: what runs under Miri, on processors we
//! have no vectors for, and under `ONECOPY_KERNEL=scalar`.
//!
//! They are written to be read; the compiler vectorises those that only reduce.

use super::family::{Look, ShortNumber, UnescapedLength};
use super::{Scan8, Scan16};
use crate::Kind;

mod convert;
pub(crate) use convert::*;

/// Whether JSON escapes the code point (RFC 8259, section 7).
#[inline(always)]
pub(crate) fn is_escape(c: u32) -> bool {
    c < 0x20 || c == 0x22 || c == 0x5C
}

/// The bytes of a character in the body of a JSON string, at most six of them; the last byte is their number.
///
/// Eight bytes, so that a writer stores them whole and advances by the number, without a branch.
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

    /// Writes the form and returns the end of it.
    ///
    /// # Safety
    /// `out` is writable for 8 bytes.
    #[inline(always)]
    pub(super) unsafe fn write(self, out: *mut u8) -> *mut u8 {
        // SAFETY: 8 bytes are writable, of which the form has at most 6.
        unsafe {
            out.cast::<[u8; 8]>().write_unaligned(self.0);
            out.add(self.len())
        }
    }
}

/// The forms of bytes; of those past ASCII as they are (UTF-8), or as characters of Latin-1.
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

/// The forms of the bytes of ASCII and UTF-8.
pub(super) static JSON_FORMS: [JsonForm; 256] = json_forms(true);
/// The forms of the characters of Latin-1.
static JSON_FORMS_LATIN1: [JsonForm; 256] = json_forms(false);

/// The escape of `"`, `\` or a control character: the short form if there is one.
#[inline(always)]
pub(crate) fn escape(c: u8) -> JsonForm {
    JSON_FORMS[usize::from(c)]
}

/// Writes characters as the body of a JSON string, one by one: for vectors with a control character that has no short form.
///
/// # Safety
/// `out` takes 6 bytes for each, and 2 more. None is a surrogate or past U+10FFFF.
#[inline(never)]
pub(super) unsafe fn json_one_by_one(
    units: impl Iterator<Item = u32>,
    mut out: *mut u8,
) -> *mut u8 {
    // SAFETY: a form has at most 6 bytes and is stored as 8, UTF-8 has at most 4; the rest is the duty of the caller.
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

/// As [`json_one_by_one`], of bytes, those past ASCII `as_is` or as Latin-1.
///
/// # Safety
/// As [`json_one_by_one`].
#[inline(never)]
pub(super) unsafe fn json_bytes_one_by_one(u: &[u8], as_is: bool, mut out: *mut u8) -> *mut u8 {
    let forms = if as_is {
        &JSON_FORMS
    } else {
        &JSON_FORMS_LATIN1
    };
    // SAFETY: as in `json_one_by_one`.
    unsafe {
        for &byte in u {
            out = forms[usize::from(byte)].write(out);
        }
    }
    out
}

/// How many units a string of JSON goes on with before its end or an escape, and whether all are ASCII.
pub(crate) fn plain_u32(rest: &[u32]) -> (usize, bool) {
    let end = rest.iter().position(|&c| is_escape(c));
    let n = end.unwrap_or(rest.len());
    (n, rest[..n].iter().all(|&c| c < 0x80))
}

/// How many bytes of white space of JSON stand at the start.
#[inline(always)]
pub(crate) fn blank_u8(rest: &[u8]) -> usize {
    let is_blank = |b: &&u8| matches!(b, b' ' | b'\n' | b'\r' | b'\t');
    rest.iter().take_while(is_blank).count()
}

/// See [`JsonSteps::look`](super::family::JsonSteps::look).
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

/// See [`Scan::short_number`](super::json_read::Scan::short_number).
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
    let (mut len, mut n_behind) = (n_before, 0);
    if *rest.get(len)? == b'.' {
        n_behind = run(len + 1, 19 - n_before)?;
        len += 1 + n_behind;
    }
    (*rest.get(len)? | 0x20 != b'e').then_some(ShortNumber {
        len,
        digits,
        n_behind,
    })
}

/// The number of `n_before` digits, a point if there are others behind it, and these.
pub(crate) fn digits(rest: &[u8], n_before: u32, n_behind: u32) -> u64 {
    let n = (n_before + n_behind + u32::from(n_behind > 0)) as usize;
    let digits = rest[..n].iter().filter(|&&b| b != b'.');
    digits.fold(0, |n, &b| n * 10 + u64::from(b - b'0'))
}

/// See [`JsonSteps::unescape_u8`](super::family::JsonSteps::unescape_u8).
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

/// What a letter behind a backslash stands for.
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

/// Union of the units, and whether one is not a scalar value.
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

/// # Safety
/// As `arch::narrow_u16`.
pub(super) unsafe fn narrow_u16(src: &[u16], dst: *mut u8) {
    for (i, &u) in src.iter().enumerate() {
        // SAFETY: dst takes src.len() bytes (duty of the caller), and i is below it.
        unsafe { dst.add(i).write(u as u8) };
    }
}

/// # Safety
/// As `arch::copy_to_escape`.
pub(super) unsafe fn copy_to_escape(src: &[u8], dst: *mut u8) -> (usize, bool) {
    let n = find_escape_u8(src);
    // SAFETY: n is at most src.len(), which dst takes, and they do not overlap (duties of the caller).
    unsafe { std::ptr::copy_nonoverlapping(src.as_ptr(), dst, n) };
    (n, !src[..n].is_ascii())
}

/// # Safety
/// As `arch::narrow_plain`.
pub(super) unsafe fn narrow_plain<const JSON: bool>(src: &[u16], dst: *mut u8) -> usize {
    for (i, &u) in src.iter().enumerate() {
        if u >= 0x80 || (JSON && is_escape(u.into())) {
            return i;
        }
        // SAFETY: dst takes src.len() bytes (duty of the caller), and i is below it.
        unsafe { dst.add(i).write(u as u8) };
    }
    src.len()
}

/// Copies units, each converted, up to the first that is not `fit`; returns how many. Each is read
/// once, so that what was looked at is what is written.
///
/// # Safety
/// `dst` takes `src.len()` units, apart from `src`.
#[inline(always)]
unsafe fn copy_while<T: Copy, U>(
    src: &[T],
    dst: *mut U,
    fit: impl Fn(T) -> bool,
    convert: impl Fn(T) -> U,
) -> usize {
    const UNITS: usize = 16;
    let mut n = 0;
    for part in src.chunks(UNITS) {
        let mut units = [part[0]; UNITS];
        units[..part.len()].copy_from_slice(part);
        // Without a branch for each.
        let all_fit = units.iter().fold(true, |all, &u| all & fit(u));
        let first_other = || units.iter().position(|&u| !fit(u));
        let n_fit = if all_fit { None } else { first_other() }.unwrap_or(part.len());
        for &u in &units[..n_fit] {
            // SAFETY: n is below src.len(), which dst takes (duty of the caller).
            unsafe { dst.add(n).write(convert(u)) };
            n += 1;
        }
        if n_fit < part.len() {
            break;
        }
    }
    n
}

/// # Safety
/// As `arch::copy_ascii`.
pub(super) unsafe fn copy_ascii(src: &[u8], dst: *mut u8) -> usize {
    // SAFETY: the duty of the caller.
    unsafe { copy_while(src, dst, |b| b.is_ascii(), |b| b) }
}

/// # Safety
/// As `arch::narrow_up_to`.
pub(super) unsafe fn narrow_up_to<const MAX: u16>(src: &[u16], dst: *mut u8) -> usize {
    // SAFETY: the duty of the caller.
    unsafe { copy_while(src, dst, |u| u <= MAX, |u| u as u8) }
}

/// # Safety
/// As `arch::copy_bmp`.
pub(super) unsafe fn copy_bmp(src: &[u16], dst: *mut u16) -> usize {
    // SAFETY: the duty of the caller.
    unsafe { copy_while(src, dst, |u| !is_surrogate(u), |u| u) }
}

/// Copies 16-bit units, where none is escaped in JSON and none half of a pair.
///
/// # Safety
/// `out` is writable for as many units, apart from `u`.
#[inline(always)]
pub(crate) unsafe fn copy_ucs2(u: &[u16], out: *mut u16) -> bool {
    let mut is_plain = true;
    for (i, &unit) in u.iter().enumerate() {
        // Without a branch for each.
        is_plain &= (unit >= 0x20) & (unit != 0x22) & (unit != 0x5C) & (unit & 0xF800 != 0xD800);
        // SAFETY: the duty of the caller.
        unsafe { out.add(i).write(unit) };
    }
    is_plain
}
