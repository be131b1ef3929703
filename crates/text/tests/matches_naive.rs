//! Every conversion against its slow twin: texts of each width, mixed and corrupted, lengths around the vector and block
//! sizes, all alignments.

use std::mem::MaybeUninit;
use std::process::Command;

use onecopy_text::convert::{
    NewStr, StrData, make_large, shape, string_from_utf16, to_json_body, to_utf8, to_utf16,
};
use onecopy_text::{
    ByteSink, Carry, ConvertError, Kind, Malformed, Policy, Shape, SinkFull, Units, find_malformed,
    is_utf8, kernel, measure, naive, utf8_len,
};
use proptest::prelude::*;

/// A text in every form, to be looked at from an offset.
#[derive(Clone, Debug)]
struct Case {
    latin1: Vec<u8>,
    utf8: Vec<u8>,
    utf16: Vec<u16>,
    utf32: Vec<u32>,
    offset: usize,
}

impl Case {
    fn forms(&self) -> [Units<'_>; 5] {
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

/// Characters of one script, some with others among them, so that each width and each mix turns up.
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
        // Around one block and past four of them; Miri would take an hour.
        1 => if cfg!(miri) { 0..80_usize } else { 4000..4200 },
        1 => if cfg!(miri) { 0..80_usize } else { 15_000..18_000 },
        1 => if cfg!(miri) { 0..80_usize } else { 65_000..70_000 },
    ];
    // A short text of one script, repeated to its length: shrinks well, and runs longer than a block are cheap.
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

/// Well-formed, or with up to 3 units overwritten, or cut off at any unit.
fn case() -> impl Strategy<Value = Case> {
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
            // The offset moves the start of the text, not the text: pads of 'p' come before it.
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
            for (place, value) in places.iter().zip(values).take(harm) {
                let at = |len: usize| offset + place.index(len - offset);
                // Bytes and units that break something: leads, continuations, surrogates, what lies past the end.
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

const POLICIES: [Policy; 2] = [Policy::Strict, Policy::Replace];

/// A sink of a fixed size with canaries behind: what a Python `bytes` of measured length is.
#[derive(Debug)]
struct Fixed {
    place: Vec<u8>,
    len: usize,
    room: usize,
}

impl Fixed {
    fn new(room: usize) -> Fixed {
        Fixed {
            place: vec![0xA5; room + 64],
            len: 0,
            room,
        }
    }

    fn check(&self) {
        assert!(self.place[self.room..].iter().all(|&b| b == 0xA5), "canary");
    }
}

// SAFETY: spare is what follows the committed bytes in the same Vec; commit only moves the end.
unsafe impl ByteSink for Fixed {
    fn committed(&self) -> &[u8] {
        &self.place[..self.len]
    }
    fn committed_mut(&mut self) -> &mut [u8] {
        &mut self.place[..self.len]
    }
    fn spare(&mut self, n_bytes: usize) -> Result<&mut [MaybeUninit<u8>], SinkFull> {
        if n_bytes > self.room - self.len {
            return Err(SinkFull {
                asked_bytes: n_bytes,
            });
        }
        let rest = &mut self.place[self.len..self.room];
        let n = rest.len();
        // SAFETY: initialised bytes are fine as MaybeUninit, and no one writes uninitialised ones through it.
        Ok(unsafe { std::slice::from_raw_parts_mut(rest.as_mut_ptr().cast(), n) })
    }
    unsafe fn commit(&mut self, n_bytes: usize) {
        self.len += n_bytes;
    }
    fn cut(&mut self, len_bytes: usize) {
        self.len = self.len.min(len_bytes);
    }
}

/// Checks a conversion into a growing sink, a roomy fixed one, an exact one, and one that is a byte too small.
fn check_sink(
    units: Units<'_>,
    expected: Result<Vec<u8>, Malformed>,
    convert: impl Fn(&mut Vec<u8>) -> Result<usize, ConvertError>,
    fixed: impl Fn(&mut Fixed) -> Result<usize, ConvertError>,
) {
    let mut grown = b"before".to_vec();
    let got = convert(&mut grown);
    match expected {
        Ok(expected) => {
            assert_eq!(got, Ok(expected.len()), "{units:?}");
            assert_eq!(&grown[..6], b"before");
            assert_eq!(grown[6..], expected, "{units:?}");
            for room in [expected.len(), expected.len() * 4 + 64] {
                let mut exact = Fixed::new(room);
                assert_eq!(fixed(&mut exact), Ok(expected.len()), "{units:?}");
                assert_eq!(exact.committed(), expected, "{units:?}");
                exact.check();
            }
            if let Some(room) = expected.len().checked_sub(1) {
                let mut small = Fixed::new(room);
                let got = fixed(&mut small);
                assert!(matches!(got, Err(ConvertError::SinkFull(_))), "{got:?}");
                assert_eq!(small.committed(), b"", "nothing is committed on an error");
                small.check();
            }
        }
        Err(malformed) => {
            assert_eq!(got, Err(ConvertError::Malformed(malformed)), "{units:?}");
            assert_eq!(grown, b"before", "nothing is committed on an error");
        }
    }
}

/// Writes a `str` of each kind that is wide enough, with canaries, and reads it back as code points.
/// A `str` that was made: its shape and its data.
#[derive(Debug)]
struct Fresh(Shape, Vec<u8>, Vec<u16>, Vec<u32>);

struct Vecs;

impl NewStr for Vecs {
    type Str = Fresh;
    type Error = ();

    fn new_str(&mut self, shape: Shape) -> Result<Fresh, ()> {
        let n = |kinds: [Kind; 2]| {
            if kinds.contains(&shape.kind) {
                shape.n_chars
            } else {
                0
            }
        };
        let one = vec![0xA5; n([Kind::Ascii, Kind::Latin1])];
        let two = vec![0xA5A5; n([Kind::Ucs2; 2])];
        Ok(Fresh(
            shape,
            one,
            two,
            vec![0xA5A5_A5A5; n([Kind::Ucs4; 2])],
        ))
    }

    fn data<'a>(&self, made: &'a mut Fresh) -> StrData<'a> {
        match made.0.kind {
            Kind::Ascii | Kind::Latin1 => StrData::One(uninit(&mut made.1)),
            Kind::Ucs2 => StrData::Two(uninit(&mut made.2)),
            Kind::Ucs4 => StrData::Four(uninit(&mut made.3)),
        }
    }
}

fn uninit<U>(units: &mut [U]) -> &mut [MaybeUninit<U>] {
    // SAFETY: the same layout, and the kernels write good units there and nothing else.
    unsafe { &mut *(std::ptr::from_mut(units) as *mut [MaybeUninit<U>]) }
}

/// In one pass, or not at all: where the text is short or malformed.
fn check_large(units: Units<'_>) {
    let expected = naive::decode(units, Policy::Strict);
    let Some(made) = make_large(units, &mut Vecs) else {
        let in_one_pass = matches!(units, Units::Latin1(_) | Units::Utf16(_));
        assert!(units.len_bytes() < 64 * 1024 || expected.is_err() || !in_one_pass);
        return;
    };
    let Fresh(shape, one, two, four) = made.expect("there is memory").made;
    let got: Vec<u32> = one
        .into_iter()
        .map(u32::from)
        .chain(two.into_iter().map(u32::from))
        .chain(four)
        .collect();
    assert_eq!(Ok(shape), naive::shape(units, Policy::Strict));
    assert_eq!(Ok(got), expected);
}

fn check_str(units: Units<'_>, policy: Policy) {
    let expected = naive::shape(units, policy);
    assert_eq!(shape(units, policy), expected, "{units:?}");
    let measured = measure(units, policy);
    assert_eq!(measured.map(|m| m.shape()), expected);
    let (Ok(measured), Ok(shape)) = (measured, expected) else {
        return;
    };
    let code_points = naive::decode(units, policy).expect("shape was found");
    let n = shape.n_chars;
    macro_rules! read_back {
        ($unit:ty, $data:path) => {{
            let canary = <$unit>::MAX ^ 0x5A;
            let mut place = vec![MaybeUninit::new(canary); n + 40];
            measured.write($data(&mut place[3..n + 3]));
            // SAFETY: every unit was initialised two lines above.
            let got: Vec<$unit> = place.iter().map(|u| unsafe { u.assume_init() }).collect();
            assert!(got[..3].iter().chain(&got[n + 3..]).all(|&u| u == canary));
            assert!(
                got[3..n + 3]
                    .iter()
                    .map(|&u| u32::from(u))
                    .eq(code_points.iter().copied()),
                "{units:?}"
            );
        }};
    }
    if shape.kind <= Kind::Latin1 {
        read_back!(u8, StrData::One);
    }
    if shape.kind <= Kind::Ucs2 {
        read_back!(u16, StrData::Two);
    }
    read_back!(u32, StrData::Four);
}

/// Converts the text in parts from cut to cut; the result is that of the whole, error positions included.
fn check_parts(units: Units<'_>, cuts: &[usize]) {
    for policy in POLICIES {
        for json in [false, true] {
            let expected = if json {
                naive::to_json_body(units, policy)
            } else {
                naive::to_utf8(units, policy)
            };
            let mut sink = b"before".to_vec();
            let mut carry = Carry::new();
            let mut convert = |sink: &mut Vec<u8>| -> Result<usize, ConvertError> {
                let mut n = 0;
                for cut in cuts.windows(2) {
                    let part = units.take(cut[1]).skip(cut[0]);
                    let start = sink.len();
                    let written = if json {
                        carry.to_json_body(part, policy, sink)
                    } else {
                        carry.to_utf8(part, policy, sink)
                    };
                    if written.is_err() {
                        assert_eq!(sink.len(), start, "nothing is committed on an error");
                    }
                    n += written?;
                }
                Ok(n + if json {
                    carry.finish_json_body(policy, sink)?
                } else {
                    carry.finish_utf8(policy, sink)?
                })
            };
            match (convert(&mut sink), expected) {
                (Ok(n), Ok(expected)) => {
                    assert_eq!(n, expected.len());
                    assert_eq!(sink[6..], expected, "{units:?} cut at {cuts:?}");
                }
                (Err(got), Err(expected)) => {
                    let expected = ConvertError::Malformed(expected);
                    assert_eq!(got, expected, "{units:?} cut at {cuts:?}");
                }
                (got, expected) => panic!("{got:?} is not {expected:?}: {units:?} cut at {cuts:?}"),
            }
        }
    }
}

/// PROPTEST_CASES asks for more. What fails becomes a unit test, not a file of seeds.
fn config() -> ProptestConfig {
    let mut config = ProptestConfig::default();
    if cfg!(miri) {
        config.cases = 4;
    }
    config.failure_persistence = None;
    config
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn utf8_matches_naive(case in case()) {
        for units in case.forms() {
            for policy in POLICIES {
                check_sink(units, naive::to_utf8(units, policy),
                    |sink| to_utf8(units, policy, sink), |sink| to_utf8(units, policy, sink));
            }
        }
    }

    #[test]
    fn json_body_matches_naive(case in case()) {
        for units in case.forms() {
            for policy in POLICIES {
                check_sink(units, naive::to_json_body(units, policy),
                    |sink| to_json_body(units, policy, sink), |sink| to_json_body(units, policy, sink));
            }
        }
    }

    #[test]
    fn str_matches_naive(case in case()) {
        for units in case.forms() {
            for policy in POLICIES {
                check_str(units, policy);
            }
        }
    }

    #[test]
    fn large_str_matches_naive(case in case()) {
        for units in case.forms() {
            check_large(units);
        }
    }

    #[test]
    fn utf16_matches_naive(case in case()) {
        for units in case.forms() {
            for policy in POLICIES {
                let expected = naive::to_utf16(units, policy);
                let mut out = vec![7_u16];
                match (to_utf16(units, policy, &mut out), expected) {
                    (Ok(n), Ok(expected)) => {
                        prop_assert_eq!(n, expected.len());
                        prop_assert_eq!(&out[1..], &expected[..]);
                    }
                    (Err(got), Err(expected)) => {
                        prop_assert_eq!(got, ConvertError::Malformed(expected));
                        prop_assert_eq!(out, vec![7]);
                    }
                    (got, expected) => prop_assert!(false, "{:?} is not {:?}", got, expected),
                }
            }
        }
    }

    #[test]
    fn validation_and_length_matches_naive(case in case()) {
        for units in case.forms() {
            prop_assert_eq!(find_malformed(units), naive::find_malformed(units), "{:?}", units);
            let len = naive::to_utf8(units, Policy::Replace).map(|out| out.len());
            prop_assert_eq!(Ok(utf8_len(units)), len, "{:?}", units);
            if let Units::Utf8(u) = units {
                prop_assert_eq!(is_utf8(u), std::str::from_utf8(u).is_ok());
            }
            if let Units::Utf16(u) = units {
                prop_assert_eq!(string_from_utf16(u), String::from_utf16_lossy(u));
            }
        }
    }

    #[test]
    fn parts_of_a_text_matches_naive(case in case(), cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..6)) {
        for units in case.forms() {
            let len = units.len_units();
            let mut cuts: Vec<usize> = cuts.iter().map(|i| i.index(len + 1)).collect();
            cuts.extend([0, len]);
            cuts.sort_unstable();
            check_parts(units, &cuts);
        }
    }

    #[test]
    fn units_one_by_one_matches_naive(bytes in prop::collection::vec(prop::sample::select(
        &[0x41_u8, 0x22, 0x80, 0xBF, 0xC3, 0xE0, 0xA0, 0xE4, 0xB8, 0xED, 0x9F, 0xF0, 0x9F, 0x98, 0xF4, 0x8F, 0xFF][..]), 0..24))
    {
        let cuts: Vec<usize> = (0..=bytes.len()).collect();
        check_parts(Units::Utf8(&bytes), &cuts);
        let wide: Vec<u16> = bytes.iter().map(|&b| if b & 0x80 == 0 { b.into() } else { 0xD700 + u16::from(b) * 8 }).collect();
        check_parts(Units::Utf16(&wide), &cuts);
    }

    #[test]
    fn random_bytes_matches_naive(bytes in prop::collection::vec(any::<u8>(), 0..200), offset in 0..16_usize) {
        let units = Units::Utf8(&bytes[offset.min(bytes.len())..]);
        prop_assert_eq!(find_malformed(units), naive::find_malformed(units));
        for policy in POLICIES {
            check_str(units, policy);
            check_sink(units, naive::to_json_body(units, policy),
                |sink| to_json_body(units, policy, sink), |sink| to_json_body(units, policy, sink));
        }
    }
}

#[test]
fn utf8_reports_the_maximal_subpart_as_unicode_section_3_9_cuts_it() {
    // Table 3-11 of Unicode 16: each of these is one subpart, then a plain byte.
    let cases: [(&[u8], usize); 6] = [
        (b"\xE1\x80A", 2),
        (b"\xF0\x91\x92A", 3),
        (b"\xF1\xBF\xBFA", 3),
        (b"\xC0A", 1),
        (b"\xED\xA0A", 1),
        (b"\xF4\x90A", 1),
    ];
    for (bytes, len_units) in cases {
        let found = find_malformed(Units::Utf8(bytes)).expect("malformed");
        assert_eq!(
            (found.at_units, found.len_units),
            (0, len_units),
            "{bytes:x?}"
        );
    }
}

#[test]
fn a_sequence_cut_by_the_end_of_a_block_is_not_mistaken_for_the_end_of_the_text() {
    // Blocks have 4096 units: a lone lead, or half a pair, is put around that place, and text follows.
    for at in 4090..4100 {
        let mut utf8 = vec![b'a'; 9000];
        utf8[at] = 0xE4;
        let mut utf16 = vec![0x61_u16; 9000];
        utf16[at] = 0xD83D;
        for units in [Units::Utf8(&utf8), Units::Utf16(&utf16)] {
            let expected = naive::find_malformed(units).expect("malformed");
            let got = to_utf8(units, Policy::Strict, &mut Vec::new());
            assert_eq!(got, Err(ConvertError::Malformed(expected)));
        }
    }
}

#[test]
fn ucs2_takes_two_surrogates_for_two_malformed_units_even_where_they_look_like_a_pair() {
    let pair = [0xD83D_u16, 0xDE00];
    assert_eq!(
        naive::to_utf8(Units::Utf16(&pair), Policy::Strict).map(|u| u.len()),
        Ok(4)
    );
    let error = to_utf8(Units::Ucs2(&pair), Policy::Strict, &mut Vec::new());
    let expected = naive::find_malformed(Units::Ucs2(&pair)).expect("malformed");
    assert_eq!(error, Err(ConvertError::Malformed(expected)));
    let mut out = Vec::new();
    to_utf8(Units::Ucs2(&pair), Policy::Replace, &mut out).expect("memory");
    assert_eq!(out, "\u{FFFD}\u{FFFD}".as_bytes());
}

#[test]
#[should_panic(expected = "another shape")]
fn writing_into_a_place_of_another_length_panics() {
    let measured = measure(Units::Utf8(b"abc"), Policy::Strict).expect("ASCII");
    measured.write(StrData::One(&mut [MaybeUninit::uninit(); 4]));
}

#[test]
#[should_panic(expected = "wider than the shape says")]
fn writing_wide_text_into_narrow_units_panics() {
    let measured = measure(Units::Utf16(&[0x416, 0xD83D, 0xDE00]), Policy::Strict).expect("text");
    measured.write(StrData::Two(&mut [MaybeUninit::uninit(); 2]));
}

// The properties again under every kernel: each in a process of its own, because the choice is made once.

/// What a child process is asked to print.
const ASK: &str = "ONECOPY_TEST_TELL_KERNEL";

#[test]
#[cfg_attr(miri, ignore = "Miri starts no processes, and knows one kernel")]
fn every_kernel_passes_the_properties() {
    for (ours, theirs) in [
        ("scalar", "fallback"),
        ("sse2", "fallback"),
        ("avx2", "haswell"),
        ("avx512", "icelake"),
    ] {
        let out = Command::new(std::env::current_exe().expect("a test has a path"))
            // Exactly the properties: their names end so, and this test's does not.
            .arg("matches_naive")
            .env("ONECOPY_KERNEL", ours)
            .env("SIMDUTF_FORCE_IMPLEMENTATION", theirs)
            .output()
            .expect("the test program runs");
        let told = String::from_utf8_lossy(&out.stdout);
        assert!(out.status.success(), "kernel {ours}:\n{told}");
        assert!(
            told.contains("utf8_matches_naive ... ok"),
            "kernel {ours}:\n{told}"
        );
    }
}

#[test]
#[cfg_attr(miri, ignore = "Miri starts no processes, and knows one kernel")]
fn the_environment_forces_a_kernel_and_never_a_better_one_than_there_is() {
    if std::env::var_os(ASK).is_some() {
        println!("kernel={}", kernel().name());
        return;
    }
    let best = kernel();
    for asked in ["scalar", "sse2", "avx2", "avx512", "nonsense"] {
        let out = Command::new(std::env::current_exe().expect("a test has a path"))
            .args(["--exact", "--nocapture"])
            .arg("the_environment_forces_a_kernel_and_never_a_better_one_than_there_is")
            .env(ASK, "1")
            .env("ONECOPY_KERNEL", asked)
            .output()
            .expect("the test program runs");
        let told = String::from_utf8_lossy(&out.stdout).into_owned();
        let told = told.split("kernel=").nth(1).and_then(|t| t.lines().next());
        let told = told.expect("the child tells its kernel");
        match asked {
            "nonsense" => assert_eq!(told, best.name()),
            "scalar" => assert_eq!(told, "scalar"),
            // A processor without it has less.
            asked => assert!(told == asked || told == best.name(), "{asked} gave {told}"),
        }
    }
}
