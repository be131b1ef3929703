//! The C interface: text in UTF-16, UTF-8 and Latin-1 is converted into buffers of every size, with
//! and without a replacement. Each buffer is a box of exactly the stated size, so that the
//! sanitizer detects a write past its end.
#![no_main]

use libfuzzer_sys::fuzz_target;
use onecopy::abi::*;
use onecopy::result_code::{ONECOPY_INVALID_ARGUMENT, ONECOPY_NO_ROOM};
use onecopy_fuzz::{long, wide};
use onecopy_text::{Units, naive};

/// The expected result of a call: the units written, or the error number.
type Answer<T> = Result<Vec<T>, i64>;

/// Returns the text, in which `replacement` replaces malformed sequences. If `replacement` is 0,
/// such a sequence is an error, whose value is `-1 - position`.
fn decoded(units: Units<'_>, replacement: u32) -> Result<String, i64> {
    if replacement != 0 && char::from_u32(replacement).is_none() {
        return Err(ONECOPY_INVALID_ARGUMENT);
    }
    naive::code_points(units)
        .map(|item| match item {
            Err(e) if replacement == 0 => Err(-1 - e.at_units as i64),
            item => Ok(char::from_u32(item.unwrap_or(replacement)).expect("a scalar value, looked at above")),
        })
        .collect()
}

/// Calls a function with this capacity, and compares its result with the expected one.
fn call<T: Copy + Default + PartialEq + std::fmt::Debug>(
    expected: &Answer<T>,
    capacity: usize,
    call: impl Fn(*mut T, usize) -> i64,
) {
    let mut place = vec![T::default(); capacity].into_boxed_slice();
    let result = call(place.as_mut_ptr(), capacity);
    match expected {
        Err(code) => assert_eq!(result, *code),
        Ok(units) if units.len() > capacity => assert_eq!(result, ONECOPY_NO_ROOM),
        Ok(units) => {
            assert_eq!(result, units.len() as i64);
            assert_eq!(place[..units.len()], units[..]);
        }
    }
}

/// Calls a function with the required capacity, one less, a capacity that always suffices, and one
/// from the input.
fn calls<T: Copy + Default + PartialEq + std::fmt::Debug>(
    expected: Answer<T>,
    worst: usize,
    some: usize,
    function: impl Fn(*mut T, usize) -> i64,
) {
    let needed = expected.as_ref().map_or(worst / 2, Vec::len);
    for capacity in [needed, needed.saturating_sub(1), worst, some % (worst + 2)] {
        call(&expected, capacity, &function);
    }
}

fn length<T>(answer: &Answer<T>) -> i64 {
    answer.as_ref().map_or_else(|code| *code, |units| units.len() as i64)
}

/// Returns the text after one other unit, for functions that receive an offset.
fn behind_one<T: Copy + Default>(src: &[T]) -> Vec<T> {
    [&[T::default()], src].concat()
}

fn from_utf16(src: &[u16], replacement: u32, some: usize) {
    let (p, n) = (src.as_ptr(), src.len());
    let text = decoded(Units::Utf16(src), replacement).map(String::into_bytes);
    // SAFETY: the source is a slice, the places are as long as they are said to be (so for all
    // below).
    unsafe {
        assert_eq!(onecopy_utf8_len_from_utf16(p, n, replacement), length(&text));
        let bson = text.clone().map(|u| [&(u.len() as i32 + 1).to_le_bytes()[..], &u, &[0]].concat());
        calls(text.clone(), 3 * n, some, |dst, capacity| onecopy_utf16_to_utf8(p, n, dst, capacity, replacement));
        let array = behind_one(src);
        let (q, at) = (array.as_ptr(), 1);
        calls(text, 3 * n, some, |dst, capacity| onecopy_utf16_to_utf8_at(q, at, n, dst, 0, capacity, replacement));
        calls(bson, 3 * n + 5, some, |dst, capacity| onecopy_bson_string(p, n, dst, capacity, replacement));
    }
}

fn from_utf8(src: &[u8], replacement: u32, some: usize) {
    let (p, n) = (src.as_ptr(), src.len());
    let text: Answer<u16> = decoded(Units::Utf8(src), replacement).map(|t| t.encode_utf16().collect());
    let mut at = 0;
    let latin1: Answer<u8> = naive::code_points(Units::Utf8(src))
        .map(|item| {
            let (here, c) = (at, item.map_err(|e| -1 - e.at_units as i64)?);
            at += char::from_u32(c).map_or(1, char::len_utf8);
            u8::try_from(c).map_err(|_| -1 - here as i64)
        })
        .collect();
    let malformed = naive::find_malformed(Units::Utf8(src)).map_or(n, |e| e.at_units);
    let encoded: String = src.iter().map(|&b| char::from(b)).collect();
    // SAFETY: as of UTF-16: slices, and places of the size that is said.
    unsafe {
        assert_eq!(onecopy_utf16_len_from_utf8(p, n, replacement), length(&text));
        let encoded: Answer<u8> = Ok(encoded.into_bytes());
        calls(text.clone(), n, some, |dst, capacity| onecopy_utf8_to_utf16(p, n, dst, capacity, replacement));
        calls(latin1.clone(), n, some, |dst, capacity| onecopy_utf8_to_latin1(p, n, dst, capacity));
        calls(encoded.clone(), 2 * n, some, |dst, capacity| onecopy_latin1_to_utf8(p, n, dst, capacity));
        let array = behind_one(src);
        let (q, at) = (array.as_ptr(), 1);
        calls(text, n, some, |dst, capacity| onecopy_utf8_to_utf16_at(q, at, n, dst, 0, capacity, replacement));
        calls(latin1, n, some, |dst, capacity| onecopy_utf8_to_latin1_at(q, at, n, dst, 0, capacity));
        calls(encoded, 2 * n, some, |dst, capacity| onecopy_latin1_to_utf8_at(q, at, n, dst, 0, capacity));
        assert_eq!(onecopy_utf8_find_malformed(p, n), malformed as i64);
        let ascii = src.iter().take_while(|b| b.is_ascii()).count();
        assert_eq!(onecopy_utf8_ascii_prefix(p, n), ascii as i64);
    }
}

fuzz_target!(|bytes: &[u8]| {
    // The replacement, the capacity, and if the text is repeated.
    let [which, low, high, text @ ..] = bytes else { return };
    let replacement = [0, 0x3F, 0xE9, 0xFFFD, 0x1_F600, 0xD800, 0x11_0000, 0][usize::from(which & 7)];
    let some = usize::from(u16::from_le_bytes([*low, *high]));
    let units = wide(text);
    from_utf16(&units, replacement, some);
    from_utf8(text, replacement, some);
    if which & 8 != 0 {
        from_utf16(&long(&units), replacement, some);
        from_utf8(&long(text), replacement, some);
    }
});
