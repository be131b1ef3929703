//! Conversion of a text in parts: the first bytes of the input are the positions at which the text
//! is divided, the others are the text.
#![no_main]

use libfuzzer_sys::fuzz_target;
use onecopy_fuzz::{POLICIES, same, wide};
use onecopy_text::{Carry, ConvertError, Policy, Units, naive};

fuzz_target!(|bytes: &[u8]| {
    let Some((cuts, text)) = bytes.split_first_chunk::<6>() else {
        return;
    };
    check(Units::Utf8(text), cuts);
    check(Units::Utf16(&wide(text)), cuts);
});

fn check(units: Units<'_>, cuts: &[u8]) {
    let len = units.len_units();
    let mut cuts: Vec<usize> = cuts.iter().map(|&c| usize::from(c) % (len + 1)).collect();
    cuts.extend([0, len]);
    cuts.sort_unstable();
    for policy in POLICIES {
        let mut sink = Vec::new();
        let got = convert(units, &cuts, policy, &mut sink);
        let expected = naive::to_json_body(units, policy);
        if expected.is_err() {
            // The parts before the error were written already.
            sink.clear();
        }
        same(got, &sink, expected);
    }
}

fn convert(
    units: Units<'_>,
    cuts: &[usize],
    policy: Policy,
    sink: &mut Vec<u8>,
) -> Result<usize, ConvertError> {
    let mut carry = Carry::new();
    let mut n = 0;
    for cut in cuts.windows(2) {
        n += carry.to_json_body(units.take(cut[1]).skip(cut[0]), policy, sink)?;
    }
    Ok(n + carry.finish_json_body(policy, sink)?)
}
