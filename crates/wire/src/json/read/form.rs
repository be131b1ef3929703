//! The units that a text is read in.

use std::marker::PhantomData;

use onecopy_text::Units;
use onecopy_text::convert::{Kernels, Plain, Scan, ShortNumber};

use super::events::Text;

/// A text under the reader's eyes.
pub trait Scanner<'a> {
    /// The text from `at` on before the first unit that ends a string or its plain part: `"`, `\`, or below U+0020; and its
    /// length.
    fn plain(&mut self, at: usize) -> (Text<'a>, usize);
    /// Units of white space at `at`.
    fn blank(&mut self, at: usize) -> usize;
    /// See [`Scan::short_number`].
    fn short_number(&mut self, at: usize) -> Option<ShortNumber>;
}

/// A form of text: what a unit is, and what the kernels do with it.
pub trait Form {
    /// Whether it is UTF-8.
    const IS_UTF8: bool = false;
    /// A unit.
    type Unit: Copy + Into<u32>;
    /// A text with what was seen of it.
    type Scanner<'a, K: Kernels>: Scanner<'a>;

    /// A text of which nothing was seen yet.
    fn scanner<K: Kernels>(kernels: K, text: &[Self::Unit]) -> Self::Scanner<'_, K>;

    /// The units by their form.
    fn units(text: &[Self::Unit]) -> Units<'_>;
    /// Where a string has its closing quote; `rest` starts outside of any escape.
    fn closing_quote<K: Kernels>(kernels: K, rest: &[Self::Unit]) -> Option<usize>;
    /// Whether this text, of ASCII unless the form is UTF-8, and a closing quote stand at the start.
    fn has_key<K: Kernels>(kernels: K, rest: &[Self::Unit], key: &[u8]) -> bool;
    /// ASCII as it is, or copied into `place`.
    fn ascii<'a>(text: &'a [Self::Unit], place: &'a mut Vec<u8>) -> &'a [u8];
}

/// UTF-8, not yet validated.
#[derive(Debug)]
pub enum Utf8 {}
/// Each byte is a character: PEP 393 kind 1.
#[derive(Debug)]
pub enum Latin1 {}
/// Each unit of 16 bits is a character: PEP 393 kind 2.
#[derive(Debug)]
pub enum Ucs2 {}
/// Each unit of 32 bits is a character: PEP 393 kind 4.
#[derive(Debug)]
pub enum Ucs4 {}

/// A text of bytes.
#[derive(Debug)]
pub struct Bytes<'a, K, F>(Scan<'a, K>, PhantomData<F>);

/// A text of wider units: each is looked at for itself.
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

        impl Form for $form {
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
                // ASCII in wide units is no text of bytes: it is measured like any other.
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
                    // What is no byte is no part of a number either.
                    *to = u8::try_from(from).unwrap_or(0);
                }
                Scan::new(self.0, &bytes[..n]).short_number(0)
            }
        }

        impl Form for $form {
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
