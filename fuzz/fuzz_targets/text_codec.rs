//! The streaming transcoder, compared with its reference implementation. The first bytes of the
//! input select encodings, policies and the division into parts; the others are the text.
#![no_main]

use libfuzzer_sys::{arbitrary, arbitrary::Arbitrary, fuzz_target};
use onecopy_text::transcode::naive;
use onecopy_text::{
    Bom, Detector, Encoding, Eol, Policy, TranscodeError, TranscodeOptions, Transcoder,
};

const BOMS: [Bom; 4] = [Bom::ByName, Bom::Add, Bom::Strip, Bom::Keep];
const EOLS: [Eol; 3] = [Eol::Keep, Eol::Lf, Eol::Crlf];

#[derive(Arbitrary, Debug)]
struct Case<'a> {
    from: u8,
    to: u8,
    policies: [u8; 4],
    /// True if the text is UTF-8 that is first converted to the encoding `from`, so that most of it
    /// is well-formed in this encoding.
    is_written: bool,
    /// Values above 250 repeat the text, so that it is longer than the transcoder's parts of 16
    /// KiB; odd values enable the count of lines.
    times: u8,
    cuts: [u16; 5],
    text: &'a [u8],
}

fuzz_target!(|case: Case<'_>| {
    let encodings: Vec<Encoding> = Encoding::all().map(|(encoding, _)| encoding).collect();
    let pick = |n: u8| encodings[usize::from(n) % encodings.len()];
    let (from, to) = (pick(case.from), pick(case.to));
    let options = TranscodeOptions {
        on_malformed: Policy::ALL[usize::from(case.policies[0]) % 6],
        on_unencodable: Policy::ALL[usize::from(case.policies[1]) % 6],
        bom: BOMS[usize::from(case.policies[2]) % 4],
        eol: EOLS[usize::from(case.policies[3]) % 3],
        counts_lines: case.times % 2 == 1,
    };
    let mut text = case.text.to_vec();
    if case.is_written {
        let lenient = TranscodeOptions {
            on_malformed: Policy::Replace,
            on_unencodable: Policy::Ignore,
            ..TranscodeOptions::default()
        };
        text = naive::transcode(&text, Encoding::Utf8, from, lenient).0;
    }
    // Long texts are rare, since they are slow.
    if case.times > 250 {
        text = text.repeat((20_000 / text.len().max(1)).min(400));
    }
    let mut cuts: Vec<usize> = case.cuts.iter().map(|&c| usize::from(c) % (text.len() + 1)).collect();
    cuts.extend([0, text.len()]);
    cuts.sort_unstable();
    let expected = naive::transcode(&text, from, to, options);
    let parts = cuts.windows(2).map(|c| &text[c[0]..c[1]]);
    assert_eq!(streamed(parts, from, to, options), expected, "{from:?} to {to:?}, {options:?}, {cuts:?}");
    if text.len() < 2_000 {
        let bytes = streamed(text.chunks(1), from, to, options);
        assert_eq!(bytes, expected, "{from:?} to {to:?}, {options:?}, by bytes");
    }
    let mut whole = Detector::new();
    whole.push(&text);
    let mut parts = Detector::new();
    cuts.windows(2).for_each(|c| parts.push(&text[c[0]..c[1]]));
    let is_whole = case.from % 2 == 0;
    assert_eq!(parts.finish(is_whole), whole.finish(is_whole), "{cuts:?}");
});

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
