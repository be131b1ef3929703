//! Detects the encoding of bytes: by a byte order mark, by zero bytes, as UTF-8, and with the
//! library chardetng.

use std::fmt;

use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};

use crate::encoding::{Encoding, Legacy, Order};
use crate::{MalformedKind, Units, find_malformed};

/// The number of bytes at the start in which zero bytes are counted, to detect UTF-16 and UTF-32.
const PATTERN_BYTES: usize = 64 * 1024;

/// The most bytes that are passed to chardetng, from the first byte above 0x7F or ESC (0x1B) on.
const GUESSED_BYTES: usize = 256 * 1024;

/// The number of ASCII bytes before the first byte above 0x7F (or ESC) that chardetng receives.
const CONTEXT_BYTES: usize = 16;

/// How certain it is that a detected encoding is correct.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Certainty {
    /// The bytes are valid in several encodings. chardetng has chosen one by its frequent pairs of
    /// letters.
    Guess,
    /// The bytes have a pattern that is rare in other encodings.
    Likely,
    /// The bytes have a byte order mark. Or they are valid in this encoding, which is rare for
    /// other text.
    Certain,
}

impl Certainty {
    /// Returns the lower-case name: `guess`, `likely` or `certain`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Certainty::Guess => "guess",
            Certainty::Likely => "likely",
            Certainty::Certain => "certain",
        }
    }
}

/// A detected encoding and the reason for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Detection {
    /// The detected encoding; `None` if the bytes are not text. After a byte order mark, it is an
    /// encoding that drops the mark, such as `utf-8-sig`.
    pub encoding: Option<Encoding>,
    /// The reason for this encoding, as a phrase for messages.
    pub reason: String,
    /// How certain the encoding is.
    pub certainty: Certainty,
}

impl fmt::Display for Detection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.encoding.map_or("no text", Encoding::name);
        write!(f, "{name} ({}: {})", self.certainty.name(), self.reason)
    }
}

/// Detects the encoding of a stream part by part, in constant memory.
///
/// ```
/// use onecopy_text::Detector;
///
/// let mut detector = Detector::new();
/// detector.push("Zürich".as_bytes());
/// let found = detector.finish(true);
/// assert_eq!(found.to_string(), "utf-8 (certain: valid UTF-8 with characters beyond ASCII)");
/// ```
pub struct Detector {
    /// The first 64 KiB of the stream.
    first: Vec<u8>,
    n_bytes: u64,
    /// An incomplete UTF-8 sequence at the end of the last part.
    open: Vec<u8>,
    is_ascii: bool,
    /// The position of the first byte that is malformed as UTF-8.
    not_utf8_at: Option<u64>,
    /// `true` if the stream has the ESC character (0x1B), as in ISO-2022-JP.
    has_escape: bool,
    guesser: Box<EncodingDetector>,
    /// The last ASCII bytes (at most 16) before the first byte above 0x7F or ESC.
    before: Vec<u8>,
    n_guessed: usize,
}

impl Default for Detector {
    fn default() -> Detector {
        Detector::new()
    }
}

impl fmt::Debug for Detector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Detector of {} bytes", self.n_bytes)
    }
}

impl Detector {
    /// Creates a detector for a new stream.
    #[must_use]
    pub fn new() -> Detector {
        Detector {
            first: Vec::new(),
            n_bytes: 0,
            open: Vec::new(),
            is_ascii: true,
            not_utf8_at: None,
            has_escape: false,
            guesser: Box::new(EncodingDetector::new(Iso2022JpDetection::Allow)),
            before: Vec::new(),
            n_guessed: 0,
        }
    }

    /// Examines the next part of the stream.
    pub fn push(&mut self, part: &[u8]) {
        let missing = PATTERN_BYTES - self.first.len();
        self.first
            .extend_from_slice(&part[..part.len().min(missing)]);
        if self.not_utf8_at.is_none() {
            self.look_at_utf8(part);
        }
        self.guess(part);
        self.n_bytes += part.len() as u64;
    }

    /// Returns the detected encoding. `is_whole` is `true` if the whole text was examined.
    #[must_use]
    pub fn finish(mut self, is_whole: bool) -> Detection {
        if is_whole && self.not_utf8_at.is_none() && !self.open.is_empty() {
            self.not_utf8_at = Some(self.n_bytes - self.open.len() as u64);
        }
        by_mark(&self.first, self.n_bytes)
            .or_else(|| self.by_zeros(is_whole))
            .unwrap_or_else(|| self.by_bytes())
    }

    fn look_at_utf8(&mut self, part: &[u8]) {
        self.is_ascii &= part.is_ascii();
        let mut rest = part;
        let mut at = self.n_bytes;
        if !self.open.is_empty() {
            // At most 3 more bytes complete a sequence.
            let n_open = self.open.len();
            self.open.extend_from_slice(&part[..part.len().min(3)]);
            let first = find_malformed(Units::Utf8(&self.open));
            match first {
                Some(e) if e.at_units == 0 && e.kind == MalformedKind::UnexpectedEnd => return,
                Some(e) if e.at_units == 0 => {
                    self.not_utf8_at = Some(at - n_open as u64);
                    return;
                }
                _ => {}
            }
            let len = match self.open[0] {
                ..0xE0 => 2,
                0xE0..0xF0 => 3,
                0xF0.. => 4,
            };
            let used = len - n_open;
            self.open.clear();
            rest = &part[used..];
            at += used as u64;
        }
        if let Some(e) = find_malformed(Units::Utf8(rest)) {
            match e.kind {
                MalformedKind::UnexpectedEnd => self.open.extend_from_slice(&rest[e.at_units..]),
                _ => self.not_utf8_at = Some(at + e.at_units as u64),
            }
        }
    }

    /// Passes the bytes from the first byte above 0x7F or ESC (0x1B) on to chardetng. A few bytes
    /// before it are passed too.
    fn guess(&mut self, part: &[u8]) {
        if self.n_guessed >= GUESSED_BYTES {
            return;
        }
        let mut part = part;
        if self.n_guessed == 0 {
            let Some(at) = first_telling(part) else {
                self.before
                    .extend_from_slice(&part[part.len().saturating_sub(CONTEXT_BYTES)..]);
                let spare = self.before.len().saturating_sub(CONTEXT_BYTES);
                self.before.drain(..spare);
                return;
            };
            // The bytes before this byte show if it starts a word.
            let near = &part[at.saturating_sub(CONTEXT_BYTES)..at];
            let far = self.before.len().min(CONTEXT_BYTES - near.len());
            self.guesser
                .feed(&self.before[self.before.len() - far..], false);
            self.guesser.feed(near, false);
            part = &part[at..];
        }
        let part = &part[..part.len().min(GUESSED_BYTES - self.n_guessed)];
        self.has_escape |= part.contains(&0x1B);
        self.guesser.feed(part, false);
        self.n_guessed += part.len();
    }

    /// Detects UTF-16 and UTF-32 by the positions of zero bytes. Other zero bytes show binary data.
    fn by_zeros(&self, is_whole: bool) -> Option<Detection> {
        let mut n = [0_usize; 4];
        for (i, _) in self.first.iter().enumerate().filter(|(_, b)| **b == 0) {
            n[i % 4] += 1;
        }
        let n_zeros: usize = n.iter().sum();
        if n_zeros == 0 {
            return None;
        }
        let first = &self.first;
        let units = first.len() / 4;
        let is_all = is_whole && self.n_bytes == first.len() as u64;
        let likely = |encoding, reason: String| {
            Some(Detection {
                encoding: Some(encoding),
                reason,
                certainty: Certainty::Likely,
            })
        };
        if units > 0 && (!is_all || first.len().is_multiple_of(4)) {
            for (order, high, name) in [(Order::Little, 3, "last"), (Order::Big, 0, "first")] {
                let of = match order {
                    Order::Big => u32::from_be_bytes,
                    _ => u32::from_le_bytes,
                };
                let mut units_of = first.chunks_exact(4).map(|u| of([u[0], u[1], u[2], u[3]]));
                if n[high] >= units
                    && units_of.all(|u| char::from_u32(u).is_some_and(|c| c != '\0'))
                {
                    let reason = format!("the {name} of each 4 bytes is zero, as in UTF-32");
                    return likely(Encoding::Utf32(order), reason);
                }
            }
        }
        // In UTF-16, one of the two bytes of an ASCII character is zero: always the first or always
        // the second.
        let (even, odd) = (n[0] + n[2], n[1] + n[3]);
        for (order, here, there, name) in [
            (Order::Little, odd, even, "second"),
            (Order::Big, even, odd, "first"),
        ] {
            let whole = !is_all || first.len().is_multiple_of(2);
            if here > 4 * there && whole && is_utf16_text(first, order) {
                let reason = format!(
                    "{here} of the {name} of each 2 bytes are zero and {there} of the others, \
                     as in UTF-16"
                );
                return likely(Encoding::Utf16(order), reason);
            }
        }
        // East Asian text has few zero bytes. The share of frequent characters shows its byte
        // order.
        let usual = [Order::Little, Order::Big].map(|order| usual_share(first, order));
        for (order, here, there, name) in [
            (Order::Little, usual[0], usual[1], "little"),
            (Order::Big, usual[1], usual[0], "big"),
        ] {
            let whole = !is_all || first.len().is_multiple_of(2);
            if here > 0.95 && there < 0.8 && whole && is_utf16_text(first, order) {
                let reason = format!(
                    "as UTF-16, {name}-endian, {:.0} % of the characters are usual ones, and {:.0} % \
                     the other way",
                    here * 100.0,
                    there * 100.0
                );
                return likely(Encoding::Utf16(order), reason);
            }
        }
        Some(Detection {
            encoding: None,
            reason: format!("{n_zeros} bytes of zero, in no pattern of text"),
            certainty: Certainty::Likely,
        })
    }

    /// Detects ASCII and UTF-8. Other encodings are guessed by chardetng.
    fn by_bytes(&self) -> Detection {
        let certain = |encoding, reason: &str| Detection {
            encoding: Some(encoding),
            reason: reason.to_owned(),
            certainty: Certainty::Certain,
        };
        if self.n_bytes == 0 {
            return certain(Encoding::Utf8, "no bytes at all");
        }
        if self.is_ascii && self.not_utf8_at.is_none() && !self.has_escape {
            return certain(Encoding::Ascii, "every byte is ASCII");
        }
        let guessed = self.guesser.guess(None, Utf8Detection::Deny);
        match self.not_utf8_at {
            None if !self.is_ascii => {
                return certain(Encoding::Utf8, "valid UTF-8 with characters beyond ASCII");
            }
            None if guessed != encoding_rs::ISO_2022_JP => {
                return certain(Encoding::Ascii, "every byte is ASCII");
            }
            _ => {}
        }
        if guessed == encoding_rs::ISO_2022_JP {
            return Detection {
                encoding: Some(Encoding::Legacy(Legacy(guessed))),
                reason: "the escapes of ISO-2022-JP".to_owned(),
                certainty: Certainty::Likely,
            };
        }
        let at = self.not_utf8_at.unwrap_or_default();
        Detection {
            encoding: Some(Encoding::Legacy(Legacy(guessed))),
            reason: format!(
                "not UTF-8 (byte {at}); the sequence of letters is that of {} text",
                Legacy(guessed).name()
            ),
            certainty: Certainty::Guess,
        }
    }
}

fn by_mark(first: &[u8], n_bytes: u64) -> Option<Detection> {
    let utf32 = Encoding::Utf32(Order::Marked);
    let utf16 = Encoding::Utf16(Order::Marked);
    let found = match first {
        // UTF-16 text does not start with U+0000.
        [0xFF, 0xFE, 0, 0, ..] if n_bytes.is_multiple_of(4) => (utf32, "UTF-32, little-endian"),
        [0, 0, 0xFE, 0xFF, ..] => (utf32, "UTF-32, big-endian"),
        [0xEF, 0xBB, 0xBF, ..] => (Encoding::Utf8Marked, "UTF-8"),
        [0xFF, 0xFE, ..] => (utf16, "UTF-16, little-endian"),
        [0xFE, 0xFF, ..] => (utf16, "UTF-16, big-endian"),
        _ => return None,
    };
    Some(Detection {
        encoding: Some(found.0),
        reason: format!("the byte order mark of {}", found.1),
        certainty: Certainty::Certain,
    })
}

/// Returns the position of the first byte above 0x7F or ESC (0x1B).
fn first_telling(part: &[u8]) -> Option<usize> {
    // Blocks, because both searches are vectorized.
    let blocks = part.chunks(4096);
    let plain = |block: &&[u8]| block.is_ascii() && !block.contains(&0x1B);
    let n_plain = blocks.take_while(plain).count() * 4096;
    let rest = part.get(n_plain..)?;
    let at = rest.iter().position(|b| !b.is_ascii() || *b == 0x1B)?;
    Some(n_plain + at)
}

fn utf16_units(bytes: &[u8], order: Order) -> impl Iterator<Item = u16> + '_ {
    bytes.chunks_exact(2).map(move |u| match order {
        Order::Big => u16::from_be_bytes([u[0], u[1]]),
        _ => u16::from_le_bytes([u[0], u[1]]),
    })
}

/// Returns `true` for UTF-16 without U+0000. The end may be inside a surrogate pair.
fn is_utf16_text(bytes: &[u8], order: Order) -> bool {
    let units: Vec<u16> = utf16_units(bytes, order).collect();
    let good = match find_malformed(Units::Utf16(&units)) {
        None => true,
        // The bytes may end inside a surrogate pair.
        Some(e) => e.kind == MalformedKind::UnexpectedEnd,
    };
    good && !units.contains(&0)
}

/// Returns the share (0 to 1) of the UTF-16 units from common scripts. Random bytes have a low
/// share.
fn usual_share(bytes: &[u8], order: Order) -> f64 {
    let n_usual = utf16_units(bytes, order)
        .filter(|u| {
            matches!(
                u,
                0x09 | 0x0A | 0x0D | 0x20..0x7F | 0xA0..0x700 | 0x900..0xE80 | 0x2000..0x2070
            ) || matches!(u, 0x3000..0x3100 | 0x4E00..0xA000 | 0xAC00..0xD7A4 | 0xFF00..0xFFF0)
        })
        .count();
    n_usual as f64 / (bytes.len() / 2).max(1) as f64
}
