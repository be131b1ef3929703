//! Conversions of arbitrary bytes as UTF-8 and as Latin-1.
#![no_main]

use libfuzzer_sys::fuzz_target;
use onecopy_fuzz::{check, check_kernels, long};
use onecopy_text::Units;

fuzz_target!(|bytes: &[u8]| {
    check(Units::Utf8(bytes));
    check(Units::Latin1(bytes));
    let long = long(bytes);
    for bytes in [bytes, &long] {
        check_kernels(Units::Utf8(bytes));
        check_kernels(Units::Latin1(bytes));
    }
});
