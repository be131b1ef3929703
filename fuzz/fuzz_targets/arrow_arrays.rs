//! Arrow arrays of other libraries, with arbitrary types and buffers.
//!
//! Formats and names of types round-trip. A value is read from its buffers, whatever their lengths,
//! or refused; no read is out of bounds. An array with an offset has the values that the whole
//! array has at that offset. Values of fixed width are compared with a reference implementation.
#![no_main]

use libfuzzer_sys::arbitrary::{self, Arbitrary};
use libfuzzer_sys::fuzz_target;
use onecopy_rows::Value;
use onecopy_rows::arrow::{Array, DataType};
use onecopy_rows::arrow_c::Memory;

#[derive(Arbitrary, Debug)]
struct Given<'a> {
    /// The format of the array's type, and that of its dictionary's values.
    formats: [&'a str; 2],
    name: &'a str,
    offset: u8,
    len: u8,
    validity: Option<&'a [u8]>,
    buffers: [&'a [u8]; 4],
    values: [&'a [u8]; 3],
}

fuzz_target!(|given: Given| {
    let Some(data_type) = DataType::of_name(given.name).or_else(|| of_format(given.formats[0])) else {
        return;
    };
    named(&data_type);
    let array = array(&given, data_type);
    let whole = Array { offset: 0, ..array.clone() };
    for row in 0..array.len {
        let value = array.value(row);
        if let Ok(value) = &value {
            plain(&array, row, value);
        }
        // The same value, read from the array without an offset.
        let again = whole.value(array.offset + row);
        assert_eq!(format!("{again:?}"), format!("{value:?}"));
    }
});

/// Parses a format, and asserts that the type is written as the same or a shorter format.
fn of_format(format: &str) -> Option<DataType> {
    let data_type = DataType::of_format(format)?;
    let again = data_type.format();
    assert!(again.len() <= format.len(), "{format:?} {again:?}");
    assert_eq!(DataType::of_format(&again).as_ref(), Some(&data_type));
    Some(data_type)
}

/// Asserts that the name of a type, if it can be parsed, is parsed to the same type.
fn named(data_type: &DataType) {
    if let Some(again) = DataType::of_name(&data_type.to_string()) {
        assert_eq!(&again, data_type);
    }
}

fn memory(bytes: &[u8]) -> Memory {
    Memory::of(bytes.to_vec())
}

fn array(given: &Given, data_type: DataType) -> Array {
    let value = match &data_type {
        DataType::Int { .. } => of_format(given.formats[1]),
        _ => None,
    };
    let dictionary = value.clone().map(|data_type| {
        Box::new(Array {
            data_type,
            len: given.values[0].len(),
            offset: 0,
            validity: None,
            n_nulls: None,
            buffers: given.values.map(memory).to_vec(),
            dictionary: None,
            items: None,
        })
    });
    let data_type = match value {
        Some(value) => DataType::Dictionary { index: Box::new(data_type), value: Box::new(value) },
        None => data_type,
    };
    Array {
        data_type,
        len: usize::from(given.len),
        offset: usize::from(given.offset % 32),
        validity: given.validity.map(memory),
        n_nulls: None,
        buffers: given.buffers.map(memory).to_vec(),
        dictionary,
        items: None,
    }
}

/// Compares a value with the reference implementation, whose arithmetic cannot overflow.
fn plain(array: &Array, row: usize, value: &Value) {
    let at = array.offset + row;
    let is_null = array.validity.as_ref().is_some_and(|bits| {
        let byte = bits.bytes().get(at / 8).copied().unwrap_or(0);
        byte & (1 << (at % 8)) == 0
    });
    if is_null {
        assert_eq!(value, &Value::Null);
        return;
    }
    let nth = |width: usize| array.buffers[0].bytes().chunks_exact(width).nth(at).expect("read by them too");
    match &array.data_type {
        DataType::Int { bits, unsigned } => {
            let bytes = nth(usize::from(*bits) / 8);
            let is_negative = !unsigned && bytes[bytes.len() - 1] >= 0x80;
            let mut all = [if is_negative { 0xFF } else { 0 }; 16];
            all[..bytes.len()].copy_from_slice(bytes);
            let n = i128::from_le_bytes(all);
            let expected = i64::try_from(n).map_or_else(|_| Value::Decimal(n.to_string()), Value::I64);
            assert_eq!(value, &expected);
        }
        DataType::FixedBinary(n) if *n > 0 => assert_eq!(value, &Value::Bytes(nth(*n).to_vec())),
        DataType::Uuid => assert_eq!(value, &Value::Uuid(nth(16).try_into().expect("16 bytes"))),
        DataType::Float64 => {
            let Value::F64(n) = value else { panic!("{value:?}") };
            assert_eq!(n.to_bits().to_le_bytes(), nth(8));
        }
        DataType::Decimal { bits, scale, .. } => {
            let Value::Decimal(digits) = value else { panic!("{value:?}") };
            let (_, fraction) = digits.split_once('.').unwrap_or((digits, ""));
            assert_eq!(fraction.len(), usize::try_from(*scale).unwrap_or(0), "{digits}");
            let zero = nth(usize::from(*bits) / 8).iter().all(|b| *b == 0);
            assert_eq!(zero, digits.bytes().all(|b| matches!(b, b'0' | b'.')), "{digits}");
        }
        _ => {}
    }
}
