//! Foreign units of 16 and 32 bits.
#![no_main]

use libfuzzer_sys::fuzz_target;
use onecopy_fuzz::{check, wide, wider};
use onecopy_text::Units;

fuzz_target!(|bytes: &[u8]| {
    let units = wide(bytes);
    check(Units::Utf16(&units));
    check(Units::Ucs2(&units));
    check(Units::Utf32(&wider(bytes)));
});
