//! Any bytes as those of a PostgreSQL server, and as connection strings.
//!
//! Messages do not depend on how the bytes are divided, or are an error. Rows with columns of any
//! types are read by each writer up to the end or an error, in a bounded number of steps. A row is
//! accepted in parts if and only if it is accepted whole. Errors of connection strings never
//! contain their values.
#![no_main]

use libfuzzer_sys::fuzz_target;
use onecopy_rows::arrow::{ArrowOptions, ArrowRows};
use onecopy_rows::postgres::fuzzing::{ReceivedRows, accepts_row, messages, target};
use onecopy_rows::row_stream::{StreamOptions, chunks_with};
use onecopy_rows::sink::BsonOptions;
use onecopy_rows::{BlockPosition, Budget, Format, Pumped, Source};
use onecopy_text::{Chunk, Ledger, Policy};
use onecopy_wire::Filled;

/// OIDs of types of each kind: bool, bytea, "char", int8, int2, int4, text, oid, float4, float8,
/// money, date, time, timestamp, timestamptz, interval, timetz, numeric, uuid, jsonb, an unknown
/// type; arrays of text, int4, bytea, numeric, timetz, uuid, timestamptz, int4range and
/// datemultirange; int4range, tstzrange, daterange and nummultirange.
const TYPES: [u32; 34] = [
    16, 17, 18, 20, 21, 23, 25, 26, 700, 701, 790, 1082, 1083, 1114, 1184, 1186, 1266, 1700, 2950,
    3802, 99_999, 1009, 1007, 1001, 1231, 1270, 2951, 1185, 3905, 6155, 3904, 3910, 3912, 4532,
];
const MODIFIERS: [i32; 5] = [-1, 0, 3, 0x0005_0006, i32::MAX];

fuzz_target!(|bytes: &[u8]| {
    let Some((&[writer, n_columns, first, step, modifier], bytes)) = bytes.split_first_chunk::<5>() else {
        return;
    };
    all_messages(bytes, usize::from(step));
    if let Ok(text) = std::str::from_utf8(bytes) {
        connection_string(text);
    }
    let types: Vec<(u32, i32)> = (0..usize::from(n_columns % 5))
        .map(|k| {
            let at = usize::from(first) + k * usize::from(step);
            (TYPES[at % TYPES.len()], MODIFIERS[usize::from(modifier) % MODIFIERS.len()])
        })
        .collect();
    let (whole, in_pieces) = accepts_row(&types, bytes, 1 + usize::from(writer), usize::from(step));
    assert_eq!(whole, in_pieces, "a row that is accepted whole and in pieces");
    let Ok(rows) = ReceivedRows::new(&types, modifier % 2 == 0, modifier % 4 < 2, bytes) else {
        return;
    };
    write(rows, writer, bytes.len());
});

fn all_messages(bytes: &[u8], step: usize) {
    let (all, error) = messages(bytes);
    for at in (0..bytes.len()).step_by(step + 1) {
        let (some, cut) = messages(&bytes[..at]);
        assert!(all.starts_with(&some), "{at} bytes are other messages");
        // If a prefix is malformed, all bytes are malformed at the same position.
        assert!(cut.is_none() || (cut == error && some.len() == all.len()), "{at} bytes: {cut:?}");
    }
}

fn connection_string(text: &str) {
    let Err(error) = target(text) else { return };
    let shown = error.to_string();
    for (key, value) in text.split(' ').filter_map(|pair| pair.split_once('=')) {
        // A long value is in a message by chance only if an unknown keyword contains it.
        let is_chance = value.len() < 24 || key.contains(value);
        assert!(is_chance || !shown.contains(value), "{shown}");
    }
}

fn write(rows: ReceivedRows, writer: u8, n_bytes: usize) {
    let most_steps = 16 * n_bytes + 64;
    let format = match writer % 5 {
        0 => Format::Json,
        1 => Format::Ndjson,
        2 => Format::Csv,
        3 => Format::Bson(BsonOptions::default()),
        _ => return columns(rows, most_steps),
    };
    let Ok(mut stream) = chunks_with(rows, &StreamOptions::new(format), &Ledger::default()) else {
        return;
    };
    for _ in 0..most_steps {
        let mut chunk = Chunk::with_capacity(4096);
        if matches!(stream.fill(&mut chunk), Ok(Filled::Done) | Err(_)) {
            return;
        }
    }
    panic!("more than {most_steps} chunks of {n_bytes} bytes");
}

fn columns(mut rows: ReceivedRows, most_steps: usize) {
    let made = ArrowRows::new(rows.schema(), &ArrowOptions::default(), Policy::Strict);
    let Ok(mut columns) = made else { return };
    let mut position = BlockPosition::default();
    for _ in 0..most_steps {
        let pumped = rows.pump_columns(&mut position, Budget::default(), usize::MAX, &mut columns);
        if matches!(pumped, Ok(Pumped::End) | Err(_)) {
            return;
        }
    }
    panic!("more than {most_steps} blocks");
}
