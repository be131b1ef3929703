//! Generates texts of each width, mixed and corrupted, with lengths around the vector and block
//! sizes, at all alignments.

use onecopy_text::Units;
use proptest::prelude::*;

/// A text in every form, from an offset in its buffer on.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    latin1: Vec<u8>,
    utf8: Vec<u8>,
    utf16: Vec<u16>,
    utf32: Vec<u32>,
    offset: usize,
}

impl Case {
    pub(crate) fn forms(&self) -> [Units<'_>; 5] {
        let o = self.offset;
        [
            Units::Latin1(&self.latin1[o.min(self.latin1.len())..]),
            Units::Utf8(&self.utf8[o.min(self.utf8.len())..]),
            Units::Utf16(&self.utf16[o.min(self.utf16.len())..]),
            Units::Ucs2(&self.utf16[o.min(self.utf16.len())..]),
            Units::Utf32(&self.utf32[o.min(self.utf32.len())..]),
        ]
    }
}

/// Generates characters of one script, sometimes mixed with characters of other scripts, so that
/// each width and each mix occurs.
fn script() -> impl Strategy<Value = Vec<(u32, char, char)>> {
    let ascii = (8, 'a', 'z');
    let escapes = (1, '\0', '#');
    let backslash = (1, '\\', '\\');
    let latin = (6, '\u{80}', '\u{FF}');
    let cyrillic = (6, '\u{400}', '\u{4FF}');
    let edges = (2, '\u{7FE}', '\u{802}');
    let cjk = (6, '\u{4E00}', '\u{9FFF}');
    let top = (1, '\u{E000}', '\u{FFFF}');
    let emoji = (4, '\u{1F300}', '\u{1F6FF}');
    prop_oneof![
        Just(vec![ascii]),
        Just(vec![ascii, escapes, backslash]),
        Just(vec![ascii, latin]),
        Just(vec![latin, escapes]),
        Just(vec![cyrillic, ascii]),
        Just(vec![cyrillic, backslash, (1, '\u{7F}', '\u{81}')]),
        Just(vec![cjk, edges, top]),
        Just(vec![cjk, ascii, escapes]),
        Just(vec![emoji, ascii]),
        Just(vec![emoji]),
        Just(vec![
            ascii, escapes, backslash, latin, cyrillic, edges, cjk, top, emoji
        ]),
    ]
}

fn char_of(ranges: Vec<(u32, char, char)>) -> impl Strategy<Value = char> + Clone {
    proptest::strategy::Union::new_weighted(
        ranges
            .into_iter()
            .map(|(weight, a, b)| (weight, proptest::char::range(a, b).boxed()))
            .collect(),
    )
    .boxed()
}

fn text() -> impl Strategy<Value = String> {
    let len = prop_oneof![
        10 => 0..40_usize,
        10 => 40..200_usize,
        // Around one block and past four of them; under Miri that would take an hour.
        1 => if cfg!(miri) { 0..80_usize } else { 4000..4200 },
        1 => if cfg!(miri) { 0..80_usize } else { 15_000..18_000 },
        1 => if cfg!(miri) { 0..80_usize } else { 65_000..70_000 },
    ];
    // A short text of one script is repeated up to the length. Such a text shrinks well, and texts
    // longer than a block are generated quickly.
    (
        script().prop_flat_map(|s| prop::collection::vec(char_of(s), 1..60)),
        len,
        any::<bool>(),
    )
        .prop_map(|(seed, len, ascii_first)| {
            let head = if ascii_first { len / 2 } else { 0 };
            std::iter::repeat_n('x', head)
                .chain(seed.iter().copied().cycle())
                .take(len)
                .collect()
        })
}

/// Generates a text that is well-formed, has up to 3 units overwritten, or is truncated at any
/// unit.
pub(crate) fn case() -> impl Strategy<Value = Case> {
    let harm = prop_oneof![
        3 => Just(0_usize),
        2 => 1..4_usize,
    ];
    (
        text(),
        0..64_usize,
        harm,
        any::<[prop::sample::Index; 3]>(),
        any::<[u32; 3]>(),
        any::<bool>(),
    )
        .prop_map(|(text, offset, harm, places, values, cut)| {
            // The offset moves the start of the text, not the text: padding of 'p' comes before it.
            let padded: String = "p".repeat(offset) + &text;
            let mut case = Case {
                latin1: padded.chars().map(|c| c as u32 as u8).collect(),
                utf8: padded.bytes().collect(),
                utf16: padded.encode_utf16().collect(),
                utf32: padded.chars().map(u32::from).collect(),
                offset,
            };
            if text.is_empty() {
                return case;
            }
            for (buffer, value) in places.iter().zip(values).take(harm) {
                let at = |len: usize| offset + buffer.index(len - offset);
                // Bytes and units that make text malformed: lead and continuation bytes,
                // surrogates, and values past U+10FFFF.
                let byte = [
                    0x80, 0xBF, 0xC0, 0xC2, 0xE0, 0xED, 0xF0, 0xF4, 0xF5, 0xFF, 0x41,
                ];
                let unit = [0xD800, 0xDBFF, 0xDC00, 0xDFFF, 0xD83D, 0xDE00, 0x41];
                let wide = [0xD800, 0xDFFF, 0x11_0000, 0xFFFF_FFFF, 0x8000_0041, 0x41];
                let pick = value as usize;
                let i = at(case.utf8.len());
                case.utf8[i] = byte[pick % byte.len()];
                let i = at(case.utf16.len());
                case.utf16[i] = unit[pick % unit.len()];
                let i = at(case.utf32.len());
                case.utf32[i] = wide[pick % wide.len()];
            }
            if cut && harm > 0 {
                case.utf8
                    .truncate(offset + places[0].index(case.utf8.len() - offset));
                case.utf16
                    .truncate(offset + places[0].index(case.utf16.len() - offset));
            }
            case
        })
}
