//! Which encoding bytes are in, and why: by mark, pattern, validity, and last by chardetng.

use std::fmt;

use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};

use crate::encoding::{Encoding, Legacy, Order};
use crate::{MalformedKind, Units, find_malformed};

/// Bytes in which the pattern of zeros is looked for.
const PATTERN_BYTES: usize = 64 * 1024;

/// Bytes that chardetng is given, counted from where the first one above 0x7F stands.
const GUESSED_BYTES: usize = 256 * 1024;

/// ASCII that it is given before that.
const CONTEXT_BYTES: usize = 16;

/// How much a detection is worth.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Certainty {
    /// A choice among encodings that would all read the bytes: chardetng's, by what letters stand side by side.
    Guess,
    /// A pattern that other text hardly has.
    Likely,
    /// A byte order mark, or bytes that could not be so by chance.
    Certain,
}

impl Certainty {
    /// `guess`, `likely` or `certain`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Certainty::Guess => "guess",
            Certainty::Likely => "likely",
            Certainty::Certain => "certain",
        }
    }
}

/// Which encoding, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Detection {
    /// The encoding; `None` of what is no text at all. With a mark it is the one that drops it.
    pub encoding: Option<Encoding>,
    /// Why, for people.
    pub reason: String,
    /// How much it is worth.
    pub certainty: Certainty,
}

impl fmt::Display for Detection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.encoding.map_or("no text", Encoding::name);
        write!(f, "{name} ({}: {})", self.certainty.name(), self.reason)
    }
}

/// Looks at a stream part by part, in constant memory.
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
    /// The first bytes.
    first: Vec<u8>,
    n_bytes: u64,
    /// The bytes at the end of a part that may go on: a sequence that was begun.
    open: Vec<u8>,
    is_ascii: bool,
    /// Where UTF-8 was malformed first.
    not_utf8_at: Option<u64>,
    /// Whether an escape stands in it, as ISO-2022-JP has them.
    has_escape: bool,
    guesser: Box<EncodingDetector>,
    /// The last ASCII before it was given anything.
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
    /// A detector for a new stream.
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

    /// Looks at the next part. Copies: of the first 64 KiB, one.
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

    /// What it is; `is_whole` says whether the text ends here, or only what was looked at.
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
            // With the next 3 bytes what was begun is whole or malformed.
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

    /// Feeds chardetng, from the first byte on that tells something: ASCII alone tells it nothing, and it is slow.
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
            // What stands before it: whether it begins a word.
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

    /// UTF-16 and UTF-32 without a mark, by where bytes of zero stand; binary data, where they stand anywhere.
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
        // Text has ASCII among it, if only blanks and line ends: zeros stand on one side.
        let (even, odd) = (n[0] + n[2], n[1] + n[3]);
        for (order, here, there, name) in [
            (Order::Little, odd, even, "second"),
            (Order::Big, even, odd, "first"),
        ] {
            let whole = !is_all || first.len().is_multiple_of(2);
            if here > 4 * there && whole && is_utf16_text(first, order) {
                let reason = format!(
                    "{here} of the {name} of each 2 bytes are zero and {there} of the others, as in UTF-16"
                );
                return likely(Encoding::Utf16(order), reason);
            }
        }
        // East Asian text has few zeros, on both sides: then it is told by where its characters stand.
        let usual = [Order::Little, Order::Big].map(|order| usual_share(first, order));
        for (order, here, there, name) in [
            (Order::Little, usual[0], usual[1], "little"),
            (Order::Big, usual[1], usual[0], "big"),
        ] {
            let whole = !is_all || first.len().is_multiple_of(2);
            if here > 0.95 && there < 0.8 && whole && is_utf16_text(first, order) {
                let reason = format!(
                    "as UTF-16, {name}-endian, {:.0} % of the characters are usual ones, and {:.0} % the other way",
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

    /// ASCII, UTF-8, or what chardetng says.
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
                "not UTF-8 (byte {at}); the letters stand side by side as they do in {} text",
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
        // The same bytes begin UTF-16 with U+0000, which no text does.
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

/// The first byte that is not ASCII, or an escape.
fn first_telling(part: &[u8]) -> Option<usize> {
    // Block by block, since these two looks are made by vectors.
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

/// Whether the bytes are well-formed UTF-16 without U+0000.
fn is_utf16_text(bytes: &[u8], order: Order) -> bool {
    let units: Vec<u16> = utf16_units(bytes, order).collect();
    let good = match find_malformed(Units::Utf16(&units)) {
        None => true,
        // What was looked at may end inside a pair.
        Some(e) => e.kind == MalformedKind::UnexpectedEnd,
    };
    good && !units.contains(&0)
}

/// The share of characters of the scripts that most text is written in.
fn usual_share(bytes: &[u8], order: Order) -> f64 {
    let n_usual = utf16_units(bytes, order)
        .filter(|u| {
            matches!(u, 0x09 | 0x0A | 0x0D | 0x20..0x7F | 0xA0..0x700 | 0x900..0xE80 | 0x2000..0x2070)
                || matches!(u, 0x3000..0x3100 | 0x4E00..0xA000 | 0xAC00..0xD7A4 | 0xFF00..0xFFF0)
        })
        .count();
    n_usual as f64 / (bytes.len() / 2).max(1) as f64
}
