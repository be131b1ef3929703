//! Conversions of arbitrary units of 16 and 32 bits.
#![no_main]

use libfuzzer_sys::fuzz_target;
use onecopy_fuzz::{check, check_kernels, long, wide, wider};
use onecopy_text::Units;

fuzz_target!(|bytes: &[u8]| {
    let (units, wider) = (wide(bytes), wider(bytes));
    check(Units::Utf16(&units));
    check(Units::Ucs2(&units));
    check(Units::Utf32(&wider));
    let (many, many_wider) = (long(&units), long(&wider));
    for (units, wider) in [(&units, &wider), (&many, &many_wider)] {
        check_kernels(Units::Utf16(units));
        check_kernels(Units::Ucs2(units));
        check_kernels(Units::Utf32(wider));
    }
});
