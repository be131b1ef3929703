//! The units that a text is read in.

use onecopy_text::Units;
use onecopy_text::convert::{Ascii, Kernels, Plain, ShortNumber};

use super::events::Text;

/// A form of text: what a unit is, and what the kernels do with it.
pub trait Form {
    /// A unit.
    type Unit: Copy + Into<u32>;

    /// The units by their form.
    fn units(text: &[Self::Unit]) -> Units<'_>;
    /// The text before the first unit that ends a string or its plain part: `"`, `\`, or below U+0020; and its length.
    fn plain<K: Kernels>(kernels: K, rest: &[Self::Unit]) -> (Text<'_>, usize);
    /// Units of white space at the start.
    fn blank<K: Kernels>(kernels: K, rest: &[Self::Unit]) -> usize;
    /// See [`onecopy_text::convert::JsonSteps::short_number`].
    fn short_number<K: Kernels>(kernels: K, rest: &[Self::Unit]) -> Option<ShortNumber>;
    /// Where a string has its closing quote; `rest` starts outside of any escape.
    fn closing_quote<K: Kernels>(kernels: K, rest: &[Self::Unit]) -> Option<usize>;
    /// Whether this text, of ASCII, and a closing quote stand at the start.
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

macro_rules! bytes {
    ($form:ty, $variant:ident) => {
        impl Form for $form {
            type Unit = u8;

            #[inline(always)]
            fn units(text: &[u8]) -> Units<'_> {
                Units::$variant(text)
            }

            #[inline(always)]
            fn plain<K: Kernels>(kernels: K, rest: &[u8]) -> (Text<'_>, usize) {
                match kernels.plain_u8(rest) {
                    Plain::Ascii(text) => (Text::Ascii(text), text.bytes().len()),
                    Plain::Other(text) => (Text::Units(Units::$variant(text)), text.len()),
                }
            }

            #[inline(always)]
            fn blank<K: Kernels>(kernels: K, rest: &[u8]) -> usize {
                kernels.blank_u8(rest)
            }

            #[inline(always)]
            fn short_number<K: Kernels>(kernels: K, rest: &[u8]) -> Option<ShortNumber> {
                kernels.short_number(rest)
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

bytes!(Utf8, Utf8);
bytes!(Latin1, Latin1);

macro_rules! wide {
    ($form:ty, $unit:ty, $variant:ident, $plain:ident) => {
        impl Form for $form {
            type Unit = $unit;

            #[inline(always)]
            fn units(text: &[$unit]) -> Units<'_> {
                Units::$variant(text)
            }

            #[inline(always)]
            fn plain<K: Kernels>(kernels: K, rest: &[$unit]) -> (Text<'_>, usize) {
                // ASCII in wide units is no text of bytes: it is measured like any other.
                let (n, _) = kernels.$plain(rest);
                (Text::Units(Units::$variant(&rest[..n])), n)
            }

            #[inline(always)]
            fn blank<K: Kernels>(_: K, rest: &[$unit]) -> usize {
                let is_blank = |u: &&$unit| matches!(**u, 0x20 | 0x0A | 0x0D | 0x09);
                rest.iter().take_while(is_blank).count()
            }

            #[inline(always)]
            fn short_number<K: Kernels>(kernels: K, rest: &[$unit]) -> Option<ShortNumber> {
                let mut bytes = [0; 24];
                let n = rest.len().min(bytes.len());
                for (to, &from) in bytes.iter_mut().zip(&rest[..n]) {
                    // What is no byte is no part of a number either.
                    *to = u8::try_from(from).unwrap_or(0);
                }
                kernels.short_number(&bytes[..n])
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

/// The ASCII text, where one is.
#[must_use]
pub fn ascii(text: &[u8]) -> Option<Ascii<'_>> {
    Ascii::new(text)
}
