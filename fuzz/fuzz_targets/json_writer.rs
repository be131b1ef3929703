//! The JSON writer: serde_json reads the written text as the same value.
#![no_main]

use libfuzzer_sys::arbitrary::{self, Arbitrary};
use libfuzzer_sys::fuzz_target;
use onecopy_text::{ByteSink, Policy, Units};
use onecopy_wire::json::{self, KeySegments, SCALAR_BYTES};
use onecopy_wire::{NonFinite, WriteError};
use serde_json::Value;

#[derive(Arbitrary, Debug)]
enum Cell {
    Null,
    Bool(bool),
    I64(i64),
    U64(u64),
    F32(f32),
    F64(f64),
    Decimal(Vec<u8>),
    Utf8(Vec<u8>),
    Utf16(Vec<u16>),
    Latin1(Vec<u8>),
    Utf32(Vec<u32>),
    Bytes(Vec<u8>),
}

fuzz_target!(|row: Vec<(String, Cell)>| {
    if row.is_empty() {
        return;
    }
    // Names are made distinct, since serde_json keeps only the last of equal ones.
    let names: Vec<String> = row
        .iter()
        .enumerate()
        .map(|(i, (n, _))| format!("{i}:{n}"))
        .collect();
    let keys = KeySegments::new(names.iter().map(String::as_str));
    let mut out = Vec::new();
    for (i, (_, cell)) in row.iter().enumerate() {
        let mut w = out.window(keys.room_bytes()).expect("memory");
        keys.put_into(i, &mut w);
        drop(w);
        let mark = out.mark();
        if write(cell, &mut out).is_err() {
            out.rewind(mark);
            json::put_null(&mut out.window(SCALAR_BYTES).expect("memory"));
        }
    }
    out.push(b'}');
    let read: Value = match serde_json::from_slice(&out) {
        Ok(read) => read,
        // A decimal may exceed the range of f64, the type of serde_json's numbers.
        Err(error) if error.to_string().contains("number out of range") => return,
        Err(error) => panic!("{error}: {}", out.escape_ascii()),
    };
    for (name, (_, cell)) in names.iter().zip(&row) {
        assert!(
            is_same(cell, &read[name]),
            "{cell:?} was read as {}",
            read[name]
        );
    }
});

fn write(cell: &Cell, out: &mut Vec<u8>) -> Result<(), WriteError> {
    let text = |units, out: &mut Vec<u8>| json::write_text(units, Policy::Replace, out);
    match cell {
        Cell::Decimal(digits) => return json::write_decimal(digits, NonFinite::Error, out),
        Cell::Utf8(u) => return text(Units::Utf8(u), out),
        Cell::Utf16(u) => return text(Units::Utf16(u), out),
        Cell::Latin1(u) => return text(Units::Latin1(u), out),
        Cell::Utf32(u) => return text(Units::Utf32(u), out),
        Cell::Bytes(bytes) => return json::write_base64(bytes, out),
        _ => {}
    }
    let mut w = out.window(SCALAR_BYTES)?;
    match cell {
        Cell::Bool(value) => json::put_bool(*value, &mut w),
        Cell::I64(value) => json::put_i64(*value, &mut w),
        Cell::U64(value) => json::put_u64(*value, &mut w),
        Cell::F32(value) => json::put_f32(*value, NonFinite::Error, &mut w)?,
        Cell::F64(value) => json::put_f64(*value, NonFinite::Error, &mut w)?,
        _ => json::put_null(&mut w),
    }
    Ok(())
}

fn is_same(cell: &Cell, read: &Value) -> bool {
    let text = |code_points: Vec<char>| read.as_str() == Some(&String::from_iter(code_points));
    let scalar = |c: u32| char::from_u32(c).unwrap_or(char::REPLACEMENT_CHARACTER);
    match cell {
        Cell::Null => read.is_null(),
        Cell::Bool(value) => read.as_bool() == Some(*value),
        Cell::I64(value) => read.as_i64() == Some(*value),
        Cell::U64(value) => read.as_u64() == Some(*value),
        Cell::F32(value) if !value.is_finite() => read.is_null(),
        Cell::F64(value) if !value.is_finite() => read.is_null(),
        Cell::F32(value) => read.as_f64().is_some_and(|v| v as f32 == *value),
        Cell::F64(value) => read.as_f64() == Some(*value),
        // The tests of the crate compare the digits. This target checks only that the text is
        // a number, or that the value was refused.
        Cell::Decimal(_) => read.is_number() || read.is_null(),
        Cell::Utf8(u) => read.as_str() == Some(&String::from_utf8_lossy(u)),
        Cell::Utf16(u) => read.as_str() == Some(&String::from_utf16_lossy(u)),
        Cell::Latin1(u) => text(u.iter().map(|b| char::from(*b)).collect()),
        Cell::Utf32(u) => text(u.iter().map(|c| scalar(*c)).collect()),
        Cell::Bytes(bytes) => read
            .as_str()
            .is_some_and(|s| s.len() == bytes.len().div_ceil(3) * 4),
    }
}
