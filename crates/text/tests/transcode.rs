//! Compares the streaming transcoder with its reference implementation: every encoding and policy,
//! with the stream divided at any position.
#![allow(clippy::unwrap_used)] // Helper functions of tests too.

use onecopy_text::transcode::naive;
use onecopy_text::{
    Bom, Encoding, Eol, LineCount, Order, Place, Policy, TranscodeError, TranscodeOptions,
    Transcoder,
};
use proptest::prelude::*;

fn encodings() -> Vec<Encoding> {
    Encoding::all().map(|(encoding, _)| encoding).collect()
}

/// Returns the output for a stream that is pushed in these parts, and the result of the transcoder.
fn streamed<'a>(
    parts: impl IntoIterator<Item = &'a [u8]>,
    from: Encoding,
    to: Encoding,
    options: TranscodeOptions,
) -> (Vec<u8>, Result<(), TranscodeError>) {
    let mut transcoder = Transcoder::new(from, to, options);
    let mut out = Vec::new();
    for part in parts {
        if let Err(e) = transcoder.push(part, &mut out) {
            return (out, Err(e));
        }
    }
    let ended = transcoder.finish(&mut out);
    (out, ended)
}

/// Texts of each script, with line ends, marks and characters that need conversion.
const TEXTS: [&str; 6] = [
    "plain ASCII\r\nin two lines\n",
    "\u{FEFF}Zürich, São Paulo: 10 €, “quoted”\r",
    "Санкт-Петербург\nи Нижний",
    "東京都・ｱｲｳ\r\n北京市 서울 香港",
    "😀 and 👩‍👧\u{10FFFF}",
    "",
];

/// Returns a text in an encoding, without the characters that the encoding lacks.
fn written(text: &str, encoding: Encoding) -> Vec<u8> {
    let options = TranscodeOptions {
        on_unencodable: Policy::Ignore,
        ..TranscodeOptions::default()
    };
    naive::transcode(text.as_bytes(), Encoding::Utf8, encoding, options).0
}

/// Returns bytes that are nearly a text in an encoding; many of them have an error.
fn nearly(encoding: Encoding) -> Vec<Vec<u8>> {
    let mut cases: Vec<Vec<u8>> = TEXTS.iter().map(|text| written(text, encoding)).collect();
    let wrong: [&[u8]; 9] = [
        b"\xff",
        b"\x00\xd8",
        b"\xd8\x00\xdc",
        b"\xed\xa0\x80",
        b"\xe4\xb8",
        b"\x81\x30\x81",
        b"\x1b$B\x21",
        b"\x80\xa0\xfe\xfd",
        b"\x00\x00\x11\x00\xff",
    ];
    for (i, wrong) in wrong.into_iter().enumerate() {
        let mut text = written(TEXTS[i % TEXTS.len()], encoding);
        let at = text.len() * i / 9;
        text.splice(at..at, wrong.iter().copied());
        cases.push(text);
        cases.push(wrong.to_vec());
    }
    cases
}

#[test]
fn every_split_in_two_matches_naive_for_every_encoding() {
    for from in encodings() {
        let to = if from.is_unicode() {
            Encoding::Ascii
        } else {
            Encoding::Utf8
        };
        for (i, bytes) in nearly(from).iter().enumerate() {
            for to in [Encoding::Utf8, Encoding::Utf16(Order::Marked), to] {
                let options = TranscodeOptions {
                    on_malformed: Policy::ALL[i % 5],
                    on_unencodable: Policy::ALL[i % 6],
                    ..TranscodeOptions::default()
                };
                let expected = naive::transcode(bytes, from, to, options);
                for at in 0..=bytes.len() {
                    let (a, b) = bytes.split_at(at);
                    let got = streamed([a, b], from, to, options);
                    assert_eq!(
                        got, expected,
                        "{from:?} to {to:?} {options:?} {bytes:02x?} at {at}"
                    );
                }
                let got = streamed(bytes.chunks(1), from, to, options);
                assert_eq!(
                    got, expected,
                    "{from:?} to {to:?} {options:?} {bytes:02x?} by bytes"
                );
            }
        }
    }
}

fn encoding() -> impl Strategy<Value = Encoding> {
    proptest::sample::select(encodings())
}

fn options() -> impl Strategy<Value = TranscodeOptions> {
    let boms = vec![Bom::ByName, Bom::Add, Bom::Strip, Bom::Keep];
    (
        proptest::sample::select(Policy::ALL.to_vec()),
        proptest::sample::select(Policy::ALL.to_vec()),
        proptest::sample::select(boms),
        proptest::sample::select(vec![Eol::Keep, Eol::Lf, Eol::Crlf]),
    )
        .prop_map(
            |(on_malformed, on_unencodable, bom, eol)| TranscodeOptions {
                on_malformed,
                on_unencodable,
                bom,
                eol,
                counts_lines: false,
            },
        )
}

/// Generates bytes that are nearly a text in an encoding, long enough for several steps of the
/// transcoder.
fn bytes(encoding: Encoding) -> impl Strategy<Value = Vec<u8>> {
    let times = prop_oneof![4 => 1..4_usize, 1 => 300..900_usize];
    let harm = proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4);
    let texts = proptest::collection::vec(proptest::sample::select(TEXTS.to_vec()), 1..4);
    (texts, times, harm).prop_map(move |(texts, times, harm)| {
        let mut bytes = written(&texts.concat().repeat(times), encoding);
        for (at, byte) in harm {
            let at = at.index(bytes.len() + 1);
            bytes.insert(at, byte);
        }
        bytes
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, ..ProptestConfig::default() })]

    #[test]
    fn parts_cut_anywhere_matches_naive(
        (bytes, from) in encoding()
            .prop_flat_map(|e| (bytes(e), prop_oneof![9 => Just(e), 1 => encoding()])),
        to in encoding(),
        options in options(),
        cuts in proptest::collection::vec(any::<prop::sample::Index>(), 0..6),
    ) {
        let mut cuts: Vec<usize> = cuts.iter().map(|c| c.index(bytes.len() + 1)).collect();
        cuts.extend([0, bytes.len()]);
        cuts.sort_unstable();
        let parts = cuts.windows(2).map(|c| &bytes[c[0]..c[1]]);
        let got = streamed(parts, from, to, options);
        prop_assert_eq!(got, naive::transcode(&bytes, from, to, options));
    }
}

#[test]
fn a_failure_reports_line_and_column() {
    for (from, to) in [
        ("utf-16-le", "utf-8"),
        ("utf-16-le", "koi8-r"),
        ("utf-8", "utf-16"),
    ] {
        let (from, to) = (
            Encoding::by_name(from).unwrap(),
            Encoding::by_name(to).unwrap(),
        );
        let mut bytes = written("один\nдва\nтр", from);
        let at_bytes = bytes.len() as u64;
        bytes.extend(if from == Encoding::Utf8 {
            &b"\xffz"[..]
        } else {
            b"\x00\xdcz\0"
        });
        let options = TranscodeOptions {
            counts_lines: true,
            ..TranscodeOptions::default()
        };
        for n in 1..=bytes.len() {
            let mut transcoder = Transcoder::new(from, to, options);
            let mut out = Vec::new();
            let failed = bytes
                .chunks(n)
                .find_map(|part| transcoder.push(part, &mut out).err());
            assert_eq!(failed.map(|e| e.at_bytes()), Some(at_bytes), "{n}");
            assert_eq!(
                transcoder.place(),
                Some(Place { line: 3, column: 3 }),
                "{n}"
            );
        }
    }
}

#[test]
fn a_character_that_cannot_be_written_reports_line_and_column() {
    let (from, to) = (Encoding::by_name("shift_jis").unwrap(), Encoding::Latin1);
    let bytes = written("ab\r\ncd東", from);
    for eol in [Eol::Keep, Eol::Lf, Eol::Crlf] {
        let options = TranscodeOptions {
            counts_lines: true,
            eol,
            ..TranscodeOptions::default()
        };
        let mut transcoder = Transcoder::new(from, to, options);
        let failed = transcoder.push(&bytes, &mut Vec::new());
        let expected = TranscodeError::Unencodable {
            at_bytes: 6,
            code_point: '東'.into(),
        };
        assert_eq!(failed, Err(expected));
        assert_eq!(transcoder.place(), Some(Place { line: 2, column: 3 }));
    }
}

#[test]
fn an_escape_that_cannot_be_written_is_reported_as_itself() {
    // Found by the fuzz target `text_codec`: encoding_rs reports it as U+FFFD, which is longer.
    let to = Encoding::by_name("iso-2022-jp").unwrap();
    let options = TranscodeOptions::default();
    let (out, ended) = streamed([&b"\x1b$B"[..]], Encoding::Utf8, to, options);
    let expected = TranscodeError::Unencodable {
        at_bytes: 0,
        code_point: 0x1B,
    };
    assert_eq!((out, ended), (vec![], Err(expected)));
}

#[test]
fn the_position_is_exact_after_a_part_that_ends_inside_a_character() {
    // Found by `parts_cut_anywhere_matches_naive`: the second decoder treated an incomplete
    // character as complete.
    let from = Encoding::by_name("shift_jis").unwrap();
    let parts = [&b" "[..], b"and\x93", b"\x8c "];
    let expected = TranscodeError::Unencodable {
        at_bytes: 4,
        code_point: '東'.into(),
    };
    let got = streamed(parts, from, Encoding::Latin1, TranscodeOptions::default());
    assert_eq!(got, (b" and".to_vec(), Err(expected)));
}

#[test]
fn a_character_after_an_omitted_one_is_reported_at_its_own_position() {
    let options = TranscodeOptions {
        on_malformed: Policy::Ignore,
        ..TranscodeOptions::default()
    };
    for (from, bytes, at_bytes) in [
        ("utf-16-le", &b"a\0\0\xd8\x71\x67"[..], 4),
        ("utf-8", b"a\xe4\xe6\x9d\xb1", 2),
        ("shift_jis", b"a\x81\xff\x93\x8c", 3),
    ] {
        let from = Encoding::by_name(from).unwrap();
        for n in 1..=bytes.len() {
            let (_, ended) = streamed(bytes.chunks(n), from, Encoding::Latin1, options);
            assert_eq!(
                ended.map_err(|e| e.at_bytes()),
                Err(at_bytes),
                "{from:?} by {n}"
            );
        }
    }
}

#[test]
fn columns_are_counted_from_the_text_as_it_is_read() {
    let mut count = LineCount::default();
    count.push("zwölf\n東京".as_bytes());
    assert_eq!(count.place(), Place { line: 2, column: 3 });
}
