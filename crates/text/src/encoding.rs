//! The encodings of text as bytes, by name.
//!
//! Names have their meaning in the WHATWG Encoding Standard, with one exception. `iso-8859-1`,
//! `latin-1`, `ascii` and their aliases are the real ISO 8859-1 and ASCII, as in CPython and iconv.
//! `utf-16` and `utf-32` have a byte order mark, as in CPython. Case, `-`, `_` and blanks are
//! ignored.

use std::collections::HashMap;
use std::fmt;
use std::sync::OnceLock;

use encoding_rs as whatwg;

/// The byte order of 16-bit or 32-bit units.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Order {
    /// Little-endian: the least significant byte is the first.
    Little,
    /// Big-endian: the most significant byte is the first.
    Big,
    /// The byte order mark of the input determines the order. Without a mark, the input is
    /// little-endian. Output is little-endian with a mark.
    Marked,
}

/// An encoding of text as bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Encoding {
    /// UTF-8 (RFC 3629) without a byte order mark.
    Utf8,
    /// UTF-8 with a byte order mark. The mark is dropped from input, and always written to output.
    Utf8Marked,
    /// UTF-16 (RFC 2781) in this byte order.
    Utf16(Order),
    /// UTF-32 in this byte order.
    Utf32(Order),
    /// ISO 8859-1: each byte is a code point.
    Latin1,
    /// ASCII: each byte is a code point below 0x80.
    Ascii,
    /// Any other encoding of the WHATWG Encoding Standard.
    Legacy(Legacy),
}

/// An encoding of the WHATWG Encoding Standard that is neither UTF-8 nor UTF-16.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Legacy(pub(crate) &'static whatwg::Encoding);

impl fmt::Debug for Legacy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.name())
    }
}

impl Legacy {
    /// Returns the name of the encoding in lower case.
    #[must_use]
    pub fn name(self) -> &'static str {
        LEGACY
            .iter()
            .find(|(encoding, ..)| *encoding == self.0)
            .map_or("unknown", |(_, name, _)| name)
    }

    /// Returns the index of the encoding in `LEGACY`.
    pub(crate) fn number(self) -> usize {
        let is_it = |(encoding, ..): &(&whatwg::Encoding, &str, &str)| *encoding == self.0;
        LEGACY.iter().position(is_it).unwrap_or(LEGACY.len())
    }

    /// Returns `true` if each byte is one character.
    #[must_use]
    pub fn is_single_byte(self) -> bool {
        self.0.is_single_byte()
    }
}

/// The encodings that encoding_rs decodes, with their name in this crate and their best-known
/// labels.
#[rustfmt::skip]
static LEGACY: &[(&whatwg::Encoding, &str, &str)] = &[
    (whatwg::BIG5, "big5", "big5-hkscs"),
    (whatwg::EUC_JP, "euc-jp", "x-euc-jp"),
    (whatwg::EUC_KR, "euc-kr", "windows-949 ks_c_5601-1987 korean"),
    (whatwg::GB18030, "gb18030", ""),
    (whatwg::GBK, "gbk", "gb2312 chinese x-gbk"),
    (whatwg::IBM866, "ibm866", "cp866"),
    (whatwg::ISO_2022_JP, "iso-2022-jp", "csiso2022jp"),
    (whatwg::ISO_8859_2, "iso-8859-2", "latin2"),
    (whatwg::ISO_8859_3, "iso-8859-3", "latin3"),
    (whatwg::ISO_8859_4, "iso-8859-4", "latin4"),
    (whatwg::ISO_8859_5, "iso-8859-5", "cyrillic"),
    (whatwg::ISO_8859_6, "iso-8859-6", "arabic"),
    (whatwg::ISO_8859_7, "iso-8859-7", "greek"),
    (whatwg::ISO_8859_8, "iso-8859-8", "hebrew visual"),
    (whatwg::ISO_8859_8_I, "iso-8859-8-i", "logical"),
    (whatwg::ISO_8859_10, "iso-8859-10", "latin6"),
    (whatwg::ISO_8859_13, "iso-8859-13", ""),
    (whatwg::ISO_8859_14, "iso-8859-14", ""),
    (whatwg::ISO_8859_15, "iso-8859-15", "latin9"),
    (whatwg::ISO_8859_16, "iso-8859-16", ""),
    (whatwg::KOI8_R, "koi8-r", "koi"),
    (whatwg::KOI8_U, "koi8-u", "koi8-ru"),
    (whatwg::MACINTOSH, "macintosh", "mac-roman"),
    (whatwg::SHIFT_JIS, "shift_jis", "sjis cp932 windows-31j"),
    (whatwg::WINDOWS_1250, "windows-1250", "cp1250"),
    (whatwg::WINDOWS_1251, "windows-1251", "cp1251"),
    (whatwg::WINDOWS_1252, "windows-1252", "cp1252"),
    (whatwg::WINDOWS_1253, "windows-1253", "cp1253"),
    (whatwg::WINDOWS_1254, "windows-1254", "cp1254 iso-8859-9 latin5"),
    (whatwg::WINDOWS_1255, "windows-1255", "cp1255"),
    (whatwg::WINDOWS_1256, "windows-1256", "cp1256"),
    (whatwg::WINDOWS_1257, "windows-1257", "cp1257"),
    (whatwg::WINDOWS_1258, "windows-1258", "cp1258"),
    (whatwg::WINDOWS_874, "windows-874", "dos-874 iso-8859-11 tis-620"),
    (whatwg::X_MAC_CYRILLIC, "x-mac-cyrillic", "mac-cyrillic"),
    (whatwg::X_USER_DEFINED, "x-user-defined", ""),
];

/// The encodings that this crate converts itself, with their other names, separated by blanks.
#[rustfmt::skip]
static OWN: &[(Encoding, &str)] = &[
    (Encoding::Utf8, "utf8 u8 utf cp65001"),
    (Encoding::Utf8Marked, "utf-8-bom"),
    (Encoding::Utf16(Order::Marked), "u16"),
    (Encoding::Utf16(Order::Little), "utf-16le"),
    (Encoding::Utf16(Order::Big), "utf-16be"),
    (Encoding::Utf32(Order::Marked), "u32"),
    (Encoding::Utf32(Order::Little), "utf-32le"),
    (Encoding::Utf32(Order::Big), "utf-32be"),
        (
            Encoding::Latin1,
            "iso-8859-1 iso-8859-1:1987 iso-ir-100 latin latin1 l1 cp819 ibm819 csisolatin1 8859 \
             iso-8859",
        ),
        (
            Encoding::Ascii,
            "us-ascii us 646 ansi_x3.4-1968 ansi_x3.4-1986 cp367 ibm367 csascii iso646-us \
             iso_646.irv:1991 iso-ir-6",
        ),
];

/// Further names of encodings, which no rule derives from a WHATWG label.
#[rustfmt::skip]
static MORE: &[(&str, &str)] = &[
    ("ms932", "shift_jis"), ("mskanji", "shift_jis"), ("cp949", "euc-kr"), ("uhc", "euc-kr"),
    ("ms949", "euc-kr"),
    ("cp936", "gbk"), ("ms936", "gbk"), ("ujis", "euc-jp"), ("cp874", "windows-874"),
];

impl Encoding {
    /// Returns the encoding with this name; `None` for an unknown name. The WHATWG labels
    /// `iso-2022-kr`, `hz-gb-2312` and `replacement` are unknown, because they must not be decoded.
    ///
    /// ```
    /// use onecopy_text::{Encoding, Order};
    ///
    /// assert_eq!(Encoding::by_name("UTF-16LE"), Some(Encoding::Utf16(Order::Little)));
    /// assert_eq!(Encoding::by_name("iso_8859_1"), Some(Encoding::Latin1));
    /// assert_eq!(Encoding::by_name("cp1252").map(Encoding::name), Some("windows-1252"));
    /// assert_eq!(Encoding::by_name("ebcdic"), None);
    /// ```
    #[must_use]
    pub fn by_name(name: &str) -> Option<Encoding> {
        let name = name.trim();
        // Most names are found here, without an allocation.
        let (mut buffer, mut n) = ([0; 40], 0);
        for &byte in name.as_bytes().iter().filter(|b| !b"-_ ".contains(b)) {
            *buffer.get_mut(n)? = byte.to_ascii_lowercase();
            n += 1;
        }
        let plain = &buffer[..n];
        if let Some(known) = known().get(plain) {
            return Some(*known);
        }
        let label = |name: &[u8]| whatwg::Encoding::for_label_no_replacement(name);
        let found = label(name.as_bytes())
            .or_else(|| label(name.replace('_', "-").as_bytes()))
            .or_else(|| label(plain))?;
        Some(match found {
            e if e == whatwg::UTF_8 => Encoding::Utf8,
            e if e == whatwg::UTF_16LE => Encoding::Utf16(Order::Little),
            e if e == whatwg::UTF_16BE => Encoding::Utf16(Order::Big),
            // The labels of the real ISO 8859-1 and ASCII were found above.
            e => Encoding::Legacy(Legacy(e)),
        })
    }

    /// Returns the name of the encoding. [`Encoding::by_name`] accepts the name. CPython's `codecs`
    /// accepts most names.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Encoding::Utf8 => "utf-8",
            Encoding::Utf8Marked => "utf-8-sig",
            Encoding::Utf16(Order::Little) => "utf-16-le",
            Encoding::Utf16(Order::Big) => "utf-16-be",
            Encoding::Utf16(Order::Marked) => "utf-16",
            Encoding::Utf32(Order::Little) => "utf-32-le",
            Encoding::Utf32(Order::Big) => "utf-32-be",
            Encoding::Utf32(Order::Marked) => "utf-32",
            Encoding::Latin1 => "latin-1",
            Encoding::Ascii => "ascii",
            Encoding::Legacy(legacy) => legacy.name(),
        }
    }

    /// Returns every encoding with its best-known names, without [`Encoding::name`].
    pub fn all() -> impl Iterator<Item = (Encoding, Vec<&'static str>)> {
        let own = OWN.iter().map(|(encoding, more)| (*encoding, *more));
        let legacy = LEGACY
            .iter()
            .map(|(encoding, _, more)| (Encoding::Legacy(Legacy(encoding)), *more));
        own.chain(legacy)
            .map(|(encoding, more)| (encoding, more.split_whitespace().collect()))
    }

    /// Returns `true` if the encoding has every Unicode character (UTF-8, UTF-16 and UTF-32).
    #[must_use]
    pub fn is_unicode(self) -> bool {
        matches!(
            self,
            Encoding::Utf8 | Encoding::Utf8Marked | Encoding::Utf16(_) | Encoding::Utf32(_)
        )
    }

    /// Returns U+FEFF in this encoding; no bytes if the encoding has no mark.
    #[must_use]
    pub fn mark(self) -> &'static [u8] {
        match self {
            Encoding::Utf8 | Encoding::Utf8Marked => b"\xEF\xBB\xBF",
            Encoding::Utf16(Order::Little | Order::Marked) => b"\xFF\xFE",
            Encoding::Utf16(Order::Big) => b"\xFE\xFF",
            Encoding::Utf32(Order::Little | Order::Marked) => b"\xFF\xFE\0\0",
            Encoding::Utf32(Order::Big) => b"\0\0\xFE\xFF",
            Encoding::Latin1 | Encoding::Ascii | Encoding::Legacy(_) => b"",
        }
    }

    /// Returns `true` if the name of the encoding implies a byte order mark.
    #[must_use]
    pub fn is_marked(self) -> bool {
        matches!(
            self,
            Encoding::Utf8Marked | Encoding::Utf16(Order::Marked) | Encoding::Utf32(Order::Marked)
        )
    }
}

/// Returns the map from normalized names to encodings.
fn known() -> &'static HashMap<Vec<u8>, Encoding> {
    static KNOWN: OnceLock<HashMap<Vec<u8>, Encoding>> = OnceLock::new();
    KNOWN.get_or_init(|| {
        let mut known = HashMap::new();
        for (encoding, more) in Encoding::all() {
            for name in [encoding.name()].into_iter().chain(more) {
                known.insert(squashed(name), encoding);
            }
        }
        for (name, of) in MORE {
            if let Some(encoding) = known.get(&squashed(of)).copied() {
                known.insert(squashed(name), encoding);
            }
        }
        known
    })
}

/// Returns a name in lower case, without `-`, `_` and blanks.
fn squashed(name: &str) -> Vec<u8> {
    let bytes = name.bytes().filter(|b| !b"-_ ".contains(b));
    bytes.map(|b| b.to_ascii_lowercase()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_listed_name_is_accepted() {
        let mut n = 0;
        for (encoding, more) in Encoding::all() {
            for name in [encoding.name()].into_iter().chain(more) {
                assert_eq!(Encoding::by_name(name), Some(encoding), "{name}");
                let loud = name.to_uppercase().replace('-', "_");
                assert_eq!(Encoding::by_name(&loud), Some(encoding), "{loud}");
            }
            n += 1;
        }
        assert_eq!(n, 46);
    }

    #[test]
    fn the_names_of_latin_1_and_ascii_are_the_real_ones() {
        for name in [
            "ISO-8859-1",
            "iso8859-1",
            "latin1",
            "l1",
            "iso_8859-1:1987",
            "cp819",
        ] {
            assert_eq!(Encoding::by_name(name), Some(Encoding::Latin1), "{name}");
        }
        for name in ["ascii", "US-ASCII", "ANSI_X3.4-1968", "iso-ir-6", "646"] {
            let found = Encoding::by_name(name);
            assert_eq!(found, Some(Encoding::Ascii), "{name}");
        }
        let found = Encoding::by_name("x-cp1252").map(Encoding::name);
        assert_eq!(found, Some("windows-1252"));
    }

    #[test]
    fn labels_of_the_replacement_encoding_are_unknown() {
        for name in [
            "replacement",
            "iso-2022-kr",
            "hz-gb-2312",
            "utf-7",
            "ebcdic",
            "",
            "-",
        ] {
            assert_eq!(Encoding::by_name(name), None, "{name}");
        }
    }
}
