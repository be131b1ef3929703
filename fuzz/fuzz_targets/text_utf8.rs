//! Foreign bytes as UTF-8 and as Latin-1.
#![no_main]

use libfuzzer_sys::fuzz_target;
use onecopy_fuzz::check;
use onecopy_text::Units;

fuzz_target!(|bytes: &[u8]| {
    check(Units::Utf8(bytes));
    check(Units::Latin1(bytes));
});
