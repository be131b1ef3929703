//! Rows with every kind of cell as CSV, with long values in parts: the `csv` crate reads the same
//! values, and a reference reader of RFC 4180 finds the same NULLs.
#![no_main]

use std::borrow::Cow;

use libfuzzer_sys::arbitrary::{self, Arbitrary};
use libfuzzer_sys::fuzz_target;
use onecopy_rows::sink::{CsvRows, RowFormat};
use onecopy_rows::{Cell, Column, ColumnType, LongKind, Schema};
use onecopy_text::{Policy, Units};
use onecopy_wire::NonFinite;
use onecopy_wire::csv::{Dialect, LineEnd};

#[derive(Arbitrary, Debug)]
enum Item<'a> {
    Null,
    Bool(bool),
    I64(i64),
    F64(f64),
    Utf8(&'a [u8]),
    Text(&'a str),
    Utf16(Vec<u16>),
    Latin1(&'a [u8]),
    Bytes(&'a [u8]),
    LongUtf8(Vec<&'a [u8]>),
    LongUtf16(Vec<Vec<u16>>),
    LongBytes(Vec<&'a [u8]>),
}

#[derive(Arbitrary, Debug)]
struct Table<'a> {
    delimiter: u8,
    crlf: bool,
    names: [&'a str; 3],
    n_columns: u8,
    items: Vec<Item<'a>>,
}

fuzz_target!(|table: Table<'_>| {
    let delimiter = b",;|\t"[usize::from(table.delimiter) % 4];
    let line_end = if table.crlf { LineEnd::CrLf } else { LineEnd::Lf };
    let dialect = Dialect::new(delimiter, line_end).expect("one of four");
    let n_columns = 1 + usize::from(table.n_columns) % table.names.len();
    let names = &table.names[..n_columns];
    let rows: Vec<&[Item<'_>]> = table.items.chunks_exact(n_columns).collect();
    let out = write(names, &rows, dialect);

    let mut expected = vec![names.iter().map(|n| Some((*n).to_owned())).collect::<Vec<_>>()];
    expected.extend(rows.iter().map(|row| row.iter().map(text).collect::<Vec<_>>()));
    assert_eq!(plain(&out, delimiter, dialect.line_end()), expected);

    // The crate `csv` skips empty lines, which are rows of one NULL, and has no NULL.
    let mut reader = csv::ReaderBuilder::new()
        .has_headers(false)
        .delimiter(delimiter)
        .from_reader(&out[..]);
    let read: Vec<Vec<String>> =
        reader.records().map(|r| r.expect("readable").iter().map(str::to_owned).collect()).collect();
    let expected: Vec<Vec<String>> = expected
        .into_iter()
        .filter(|row| row != &[None])
        .map(|row| row.into_iter().map(Option::unwrap_or_default).collect())
        .collect();
    assert_eq!(read, expected);
});

fn write(names: &[&str], rows: &[&[Item<'_>]], dialect: Dialect) -> Vec<u8> {
    let columns = names.iter().map(|name| Column {
        name: (*name).to_owned(),
        column_type: ColumnType::Any,
        size: 0,
        nullable: None,
        type_name: String::new(),
    });
    let options = onecopy_rows::sink::format::ValueOptions {
        policy: Policy::Replace,
        non_finite: NonFinite::Text,
    };
    let mut format = CsvRows::new(&Schema::new(columns.collect()), dialect, options);
    let mut out = Vec::new();
    format.begin(&mut out).expect("memory");
    for (i, row) in rows.iter().enumerate() {
        format.begin_row(i == 0, &mut out).expect("memory");
        for (column, item) in row.iter().enumerate() {
            put(item, column, &mut format, &mut out);
        }
        format.end_row(&mut out).expect("memory");
    }
    format.end(&mut out).expect("memory");
    out
}

fn put(item: &Item<'_>, column: usize, format: &mut CsvRows, out: &mut Vec<u8>) {
    let cell = match item {
        Item::Null => Cell::Null,
        Item::Bool(b) => Cell::Bool(*b),
        Item::I64(n) => Cell::I64(*n),
        Item::F64(f) => Cell::F64(*f),
        Item::Utf8(u) => Cell::Text(Units::Utf8(u)),
        Item::Text(s) => Cell::Text(Units::Utf8(s.as_bytes())),
        Item::Utf16(u) => Cell::Text(Units::Utf16(u)),
        Item::Latin1(u) => Cell::Text(Units::Latin1(u)),
        Item::Bytes(b) => Cell::Bytes(b),
        Item::LongUtf8(parts) => {
            let cells = parts.iter().map(|p| Cell::Text(Units::Utf8(p)));
            return long(LongKind::Text, cells, column, format, out);
        }
        Item::LongUtf16(parts) => {
            let cells = parts.iter().map(|p| Cell::Text(Units::Utf16(p)));
            return long(LongKind::Text, cells, column, format, out);
        }
        Item::LongBytes(parts) => {
            let cells = parts.iter().map(|p| Cell::Bytes(p));
            return long(LongKind::Bytes, cells, column, format, out);
        }
    };
    format.cell(column, cell, out).expect("every value has a form");
}

fn long<'a>(
    kind: LongKind,
    parts: impl Iterator<Item = Cell<'a>>,
    column: usize,
    format: &mut CsvRows,
    out: &mut Vec<u8>,
) {
    format.long_begin(column, kind, out).expect("memory");
    for part in parts {
        format.long_part(part, out).expect("every part has a form");
    }
    format.long_end(out).expect("memory");
}

/// Returns the expected text of a field; `None` for NULL.
fn text(item: &Item<'_>) -> Option<String> {
    let utf8 = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Some(match item {
        Item::Null => return None,
        Item::Bool(b) => b.to_string(),
        Item::I64(n) => n.to_string(),
        Item::F64(f) if f.is_nan() => "NaN".to_owned(),
        Item::F64(f) if f.is_infinite() => if *f > 0.0 { "Infinity" } else { "-Infinity" }.to_owned(),
        // The target `scalars` checks the format of floats.
        Item::F64(f) => written(*f),
        Item::Utf8(u) => utf8(u),
        Item::Text(s) => (*s).to_owned(),
        Item::Utf16(u) => String::from_utf16_lossy(u),
        Item::Latin1(u) => u.iter().map(|b| char::from(*b)).collect(),
        Item::Bytes(b) => base64(b),
        Item::LongUtf8(parts) => utf8(&parts.concat()),
        Item::LongUtf16(parts) => String::from_utf16_lossy(&parts.concat()),
        Item::LongBytes(parts) => base64(&parts.concat()),
    })
}

fn written(value: f64) -> String {
    use onecopy_text::ByteSink;
    let mut out = Vec::new();
    let mut window = out.window(onecopy_wire::json::SCALAR_BYTES).expect("memory");
    onecopy_wire::json::put_f64(value, NonFinite::Error, &mut window).expect("finite");
    drop(window);
    String::from_utf8(out).expect("ASCII")
}

fn base64(bytes: &[u8]) -> String {
    let mut out = Vec::new();
    onecopy_wire::base64::write(bytes, &mut out).expect("memory");
    String::from_utf8(out).expect("ASCII")
}

/// Reads CSV: returns the fields of each line. An empty field without quotes is NULL.
fn plain(bytes: &[u8], delimiter: u8, line_end: &[u8]) -> Vec<Vec<Option<String>>> {
    let (mut rows, mut row, mut rest) = (Vec::new(), Vec::new(), bytes);
    while !rest.is_empty() {
        let (field, after): (Option<Cow<'_, [u8]>>, &[u8]) = match rest.strip_prefix(b"\"") {
            Some(quoted) => {
                let (mut field, mut after) = (Vec::new(), quoted);
                loop {
                    let end = after.iter().position(|b| *b == b'"').expect("a closing quote");
                    field.extend_from_slice(&after[..end]);
                    after = &after[end + 1..];
                    let Some(next) = after.strip_prefix(b"\"") else { break };
                    field.push(b'"');
                    after = next;
                }
                (Some(field.into()), after)
            }
            None => {
                let end = rest.iter().position(|b| matches!(b, b'\r' | b'\n') || *b == delimiter);
                let (field, after) = rest.split_at(end.expect("a line has an end"));
                assert!(!field.contains(&b'"'));
                ((!field.is_empty()).then_some(field.into()), after)
            }
        };
        row.push(field.map(|f| String::from_utf8(f.into_owned()).expect("UTF-8")));
        rest = match after.strip_prefix(&[delimiter]) {
            Some(next) => next,
            None => {
                rows.push(std::mem::take(&mut row));
                after.strip_prefix(line_end).expect("an end of line")
            }
        };
    }
    assert!(row.is_empty());
    rows
}
