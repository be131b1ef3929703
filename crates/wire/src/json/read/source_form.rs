//! [`SourceForm`]: the trait for the encodings of JSON input. Each encoding has its own type of
//! code units.

use std::marker::PhantomData;

use onecopy_text::Units;
use onecopy_text::convert::{Kernels, Plain, Scan, ShortNumber};

use super::events::Text;

/// A scanner, which finds the ends of strings, white space and numbers in a text. A scanner may
/// keep the results of its last scan, so that it does not have to examine the same units again.
pub trait Scanner<'a> {
    /// Returns the text from `at` to the first `"`, `\` or unit below U+0020, and the number of
    /// units of this text.
    fn plain(&mut self, at: usize) -> (Text<'a>, usize);
    /// Returns the number of units of white space from position `at` on.
    fn blank(&mut self, at: usize) -> usize;
    /// Returns the JSON number that starts at position `at`. The number must not have a sign.
    /// Returns `None` if [`Scan::short_number`] cannot parse the number.
    fn short_number(&mut self, at: usize) -> Option<ShortNumber>;
}

/// An encoding of input text. It determines the type of the units and the kernels that scan the
/// text.
pub trait SourceForm {
    /// `true` if the input is UTF-8.
    const IS_UTF8: bool = false;
    /// The type of the text's units: `u8`, `u16` or `u32`.
    type Unit: Copy + Into<u32>;
    /// The type of the scanner for text in this encoding.
    type Scanner<'a, K: Kernels>: Scanner<'a>;

    /// Creates a scanner for `text`.
    fn scanner<K: Kernels>(kernels: K, text: &[Self::Unit]) -> Self::Scanner<'_, K>;

    /// Returns `text` as the variant of [`Units`] for this encoding.
    fn units(text: &[Self::Unit]) -> Units<'_>;
    /// Returns the offset of the closing quote of a string in `rest`; `None` if there is no closing
    /// quote. `rest` must start inside the string and not inside an escape.
    fn closing_quote<K: Kernels>(kernels: K, rest: &[Self::Unit]) -> Option<usize>;
    /// Returns `true` if `rest` starts with `key` and a closing quote. Unless the encoding is
    /// UTF-8, `key` must be ASCII.
    fn has_key<K: Kernels>(kernels: K, rest: &[Self::Unit], key: &[u8]) -> bool;
    /// Returns `text` as bytes. All units of `text` must be ASCII. If the units have 16 or 32 bits,
    /// the bytes are written to `place`, and a slice of `place` is returned.
    fn ascii<'a>(text: &'a [Self::Unit], place: &'a mut Vec<u8>) -> &'a [u8];
}

/// UTF-8 that was not validated.
#[derive(Debug)]
pub enum Utf8 {}
/// Units of 8 bits, each of which is one character (kind 1 of PEP 393).
#[derive(Debug)]
pub enum Latin1 {}
/// Units of 16 bits, each of which is one character (kind 2 of PEP 393).
#[derive(Debug)]
pub enum Ucs2 {}
/// Units of 32 bits, each of which is one character (kind 4 of PEP 393).
#[derive(Debug)]
pub enum Ucs4 {}

/// The scanner for text in 8-bit units. It keeps the results of its last scan.
#[derive(Debug)]
pub struct Bytes<'a, K, F>(Scan<'a, K>, PhantomData<F>);

/// The scanner for text in 16-bit or 32-bit units. It does not keep the results of its scans.
#[derive(Debug)]
pub struct Wide<'a, K, U>(K, &'a [U]);

macro_rules! bytes {
    ($form:ty, $variant:ident, $is_utf8:literal) => {
        impl<'a, K: Kernels> Scanner<'a> for Bytes<'a, K, $form> {
            #[inline(always)]
            fn plain(&mut self, at: usize) -> (Text<'a>, usize) {
                match self.0.plain(at) {
                    Plain::Ascii(text) => (Text::Ascii(text), text.bytes().len()),
                    Plain::Other(text) => (Text::Units(Units::$variant(text)), text.len()),
                }
            }

            #[inline(always)]
            fn blank(&mut self, at: usize) -> usize {
                self.0.blank(at)
            }

            #[inline(always)]
            fn short_number(&mut self, at: usize) -> Option<ShortNumber> {
                self.0.short_number(at)
            }
        }

        impl SourceForm for $form {
            const IS_UTF8: bool = $is_utf8;
            type Unit = u8;
            type Scanner<'a, K: Kernels> = Bytes<'a, K, $form>;

            #[inline(always)]
            fn scanner<K: Kernels>(kernels: K, text: &[u8]) -> Self::Scanner<'_, K> {
                Bytes(Scan::new(kernels, text), PhantomData)
            }

            #[inline(always)]
            fn units(text: &[u8]) -> Units<'_> {
                Units::$variant(text)
            }

            #[inline(always)]
            fn closing_quote<K: Kernels>(kernels: K, rest: &[u8]) -> Option<usize> {
                kernels.closing_quote_u8(rest)
            }

            #[inline(always)]
            fn has_key<K: Kernels>(kernels: K, rest: &[u8], key: &[u8]) -> bool {
                rest.get(key.len()) == Some(&b'"') && kernels.starts_with(rest, key)
            }

            #[inline(always)]
            fn ascii<'a>(text: &'a [u8], _: &'a mut Vec<u8>) -> &'a [u8] {
                text
            }
        }
    };
}

bytes!(Utf8, Utf8, true);
bytes!(Latin1, Latin1, false);

macro_rules! wide {
    ($form:ty, $unit:ty, $variant:ident, $plain:ident) => {
        impl<'a, K: Kernels> Scanner<'a> for Wide<'a, K, $unit> {
            #[inline(always)]
            fn plain(&mut self, at: usize) -> (Text<'a>, usize) {
                let rest = &self.1[at..];
                // Wide units are not a slice of bytes, even if they are ASCII, so they are returned
                // as [`Text::Units`].
                let (n, _) = self.0.$plain(rest);
                (Text::Units(Units::$variant(&rest[..n])), n)
            }

            #[inline(always)]
            fn blank(&mut self, at: usize) -> usize {
                let is_blank = |u: &&$unit| matches!(**u, 0x20 | 0x0A | 0x0D | 0x09);
                self.1[at..].iter().take_while(is_blank).count()
            }

            #[inline(always)]
            fn short_number(&mut self, at: usize) -> Option<ShortNumber> {
                let rest = &self.1[at..];
                let mut bytes = [0; 24];
                let n = rest.len().min(bytes.len());
                for (to, &from) in bytes.iter_mut().zip(&rest[..n]) {
                    // A unit above 0xFF does not belong to a number. It is replaced by 0, which
                    // does not belong to a number either.
                    *to = u8::try_from(from).unwrap_or(0);
                }
                Scan::new(self.0, &bytes[..n]).short_number(0)
            }
        }

        impl SourceForm for $form {
            type Unit = $unit;
            type Scanner<'a, K: Kernels> = Wide<'a, K, $unit>;

            #[inline(always)]
            fn scanner<K: Kernels>(kernels: K, text: &[$unit]) -> Self::Scanner<'_, K> {
                Wide(kernels, text)
            }

            #[inline(always)]
            fn units(text: &[$unit]) -> Units<'_> {
                Units::$variant(text)
            }

            #[inline(always)]
            fn closing_quote<K: Kernels>(kernels: K, rest: &[$unit]) -> Option<usize> {
                let mut at = 0;
                loop {
                    at += kernels.$plain(&rest[at..]).0;
                    match rest.get(at)? {
                        0x22 => return Some(at),
                        0x5C if *rest.get(at + 1)? >= 0x20 => at += 2,
                        _ => return None,
                    }
                }
            }

            #[inline(always)]
            fn has_key<K: Kernels>(_: K, rest: &[$unit], key: &[u8]) -> bool {
                rest.get(key.len()) == Some(&0x22)
                    && rest.iter().zip(key).all(|(&a, &b)| a == <$unit>::from(b))
            }

            fn ascii<'a>(text: &'a [$unit], place: &'a mut Vec<u8>) -> &'a [u8] {
                place.clear();
                place.extend(text.iter().map(|&u| u as u8));
                place
            }
        }
    };
}

wide!(Ucs2, u16, Ucs2, plain_u16);
wide!(Ucs4, u32, Utf32, plain_u32);
