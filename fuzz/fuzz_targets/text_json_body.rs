//! Conversion of arbitrary text, in each encoding, to the body of a JSON string.
#![no_main]

use libfuzzer_sys::fuzz_target;
use onecopy_fuzz::{check_json, wide, wider};
use onecopy_text::Units;

fuzz_target!(|bytes: &[u8]| {
    check_json(Units::Utf8(bytes));
    check_json(Units::Latin1(bytes));
    let units = wide(bytes);
    check_json(Units::Utf16(&units));
    check_json(Units::Ucs2(&units));
    check_json(Units::Utf32(&wider(bytes)));
});
