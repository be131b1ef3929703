//! Tests of row streams with the test source `planned`: blocks of any size, long values that are
//! divided at any position, and errors at any row.

mod planned;

use std::time::Instant;

use onecopy_rows::Format;
use onecopy_rows::row_stream::{StreamOptions, chunks, chunks_with};
use onecopy_rows::sink::byte_rows::SinkProgress;
use onecopy_rows::sink::format::ValueOptions;
use onecopy_rows::sink::{ByteRows, CsvRows, NdjsonRows, Turn};
use onecopy_rows::{Block, Budget, Emitted, Error, ErrorKind, Fetched, Source};
use onecopy_text::{Chunk, Ledger, Policy, Stage};
use onecopy_wire::csv::Dialect;
use onecopy_wire::{ChunkError, ChunkErrorKind, ChunkSource, Filled, NonFinite};
use planned::{Owned, Plan, RowPlan, pump};
use proptest::prelude::*;
use serde_json::{Value, json};

fn text_of(plan: Plan, format: Format, capacity: usize) -> String {
    let mut stream = chunks(plan.into_source(), format, &Ledger::off()).expect("fit");
    let (bytes, end) = pump(&mut *stream, capacity);
    end.expect("complete");
    String::from_utf8(bytes).expect("UTF-8")
}

fn error_of(end: Result<(), ChunkError>) -> (ChunkErrorKind, Error) {
    let error = end.expect_err("the stream fails");
    let whole = error.source.downcast::<Error>().expect("an error of rows");
    (error.kind, *whole)
}

fn small_table() -> Plan {
    Plan::new(&["id", "na\"me", "raw"])
        .row([
            Owned::I64(1),
            Owned::utf16("Zürich"),
            Owned::Bytes(vec![0, 255]),
        ])
        .row([Owned::I64(2), Owned::utf8(""), Owned::Null])
        .row([Owned::Null, Owned::utf8("a,b \"c\""), Owned::Bytes(vec![])])
}

#[test]
fn the_three_formats_of_a_small_table() {
    let json = "[{\"id\":1,\"na\\\"me\":\"Zürich\",\"raw\":\"AP8=\"},\n\
                {\"id\":2,\"na\\\"me\":\"\",\"raw\":null},\n\
                {\"id\":null,\"na\\\"me\":\"a,b \\\"c\\\"\",\"raw\":\"\"}]";
    assert_eq!(text_of(small_table(), Format::Json, 4096), json);
    let ndjson = json[1..json.len() - 1].replace(",\n", "\n") + "\n";
    assert_eq!(text_of(small_table(), Format::Ndjson, 4096), ndjson);
    let csv = "id,\"na\"\"me\",raw\n1,Zürich,AP8=\n2,\"\",\n,\"a,b \"\"c\"\"\",\"\"\n";
    assert_eq!(text_of(small_table(), Format::Csv, 4096), csv);
}

#[test]
fn no_rows_are_an_empty_array_no_lines_and_a_header() {
    let empty = || Plan::new(&["a", "b"]);
    assert_eq!(text_of(empty(), Format::Json, 64), "[]");
    assert_eq!(text_of(empty(), Format::Ndjson, 64), "");
    assert_eq!(text_of(empty(), Format::Csv, 64), "a,b\n");
}

#[test]
fn every_kind_of_cell_has_its_form() {
    use onecopy_rows::{Date, Time, Timestamp};
    let date = Date {
        year: 2024,
        month: 2,
        day: 29,
    };
    let time = Time {
        hour: 1,
        minute: 2,
        second: 3,
        nanosecond: 4_000_000,
    };
    let stamp = Timestamp {
        date,
        time,
        offset_minutes: Some(330),
    };
    let cells = [
        (Owned::Bool(true), "true", "true"),
        (
            Owned::U64(u64::MAX),
            "18446744073709551615",
            "18446744073709551615",
        ),
        (Owned::F32(0.1), "0.1", "0.1"),
        (Owned::F64(1e300), "1e+300", "1e+300"),
        (Owned::Decimal("-.500".into()), "-0.500", "-0.500"),
        (Owned::Date(date), "\"2024-02-29\"", "2024-02-29"),
        (Owned::Time(time, 3), "\"01:02:03.004\"", "01:02:03.004"),
        (
            Owned::Timestamp(stamp, 6),
            "\"2024-02-29T01:02:03.004000+05:30\"",
            "2024-02-29T01:02:03.004000+05:30",
        ),
        (
            Owned::Uuid([0xAB; 16]),
            "\"abababab-abab-abab-abab-abababababab\"",
            "abababab-abab-abab-abab-abababababab",
        ),
    ];
    for (cell, in_json, in_csv) in cells {
        let plan = || Plan::new(&["v"]).row([cell.clone()]);
        assert_eq!(
            text_of(plan(), Format::Json, 64),
            format!("[{{\"v\":{in_json}}}]")
        );
        assert_eq!(text_of(plan(), Format::Csv, 64), format!("v\n{in_csv}\n"));
    }
}

#[test]
fn object_formats_refuse_names_that_are_empty_or_stand_twice() {
    for format in [Format::Json, Format::Ndjson] {
        let source = Plan::new(&["a", "b", "a"]).into_source();
        let error = chunks(source, format, &Ledger::off()).err().expect("twice");
        assert_eq!(error.kind, ErrorKind::Programming);
        assert!(
            error.message.contains("columns 0 and 2 are both named `a`"),
            "{error}"
        );
        assert!(error.message.contains("select … as other_name"), "{error}");
        let source = Plan::new(&["a", ""]).into_source();
        let error = chunks(source, format, &Ledger::off()).err().expect("empty");
        assert!(error.message.contains("column 1 has no name"), "{error}");
    }
    assert_eq!(
        text_of(Plan::new(&["a", "", "a"]), Format::Csv, 64),
        "a,\"\",a\n"
    );
}

#[test]
fn a_statement_without_rows_cannot_be_streamed() {
    let error = chunks(Plan::new(&[]).into_source(), Format::Csv, &Ledger::off())
        .err()
        .expect("no columns");
    assert_eq!(error.kind, ErrorKind::Programming);
}

#[test]
fn an_error_in_the_middle_leaves_the_array_open_and_stays() {
    for rows_before in 0..4 {
        let mut plan = Plan::new(&["n"]).block_rows(1);
        for n in 0..rows_before {
            plan = plan.row([Owned::I64(n)]);
        }
        let plan = plan.fail(Error::new(ErrorKind::Operational, "the server went away"));
        let mut stream = chunks(plan.into_source(), Format::Json, &Ledger::off()).expect("fit");
        let (bytes, end) = pump(&mut *stream, 8);
        let (kind, error) = error_of(end);
        assert_eq!(
            (kind, error.kind),
            (ChunkErrorKind::Source, ErrorKind::Operational)
        );
        assert!(serde_json::from_slice::<Value>(&bytes).is_err());
        assert!(!bytes.ends_with(b"]"));
        assert_eq!(stream.n_rows(), rows_before as u64);
        let mut chunk = Chunk::with_capacity(64);
        let again = stream.fill(&mut chunk).expect_err("it stays failed");
        assert_eq!((again.kind, chunk.len()), (ChunkErrorKind::Source, 0));
    }
}

#[test]
fn a_stream_that_is_done_stays_done() {
    let mut stream =
        chunks(small_table().into_source(), Format::Json, &Ledger::off()).expect("fit");
    pump(&mut *stream, 4096).1.expect("complete");
    let mut chunk = Chunk::with_capacity(64);
    assert_eq!(stream.fill(&mut chunk).expect("done"), Filled::Done);
    assert!(chunk.is_empty());
    assert_eq!(stream.n_rows(), 3);
}

#[test]
fn a_malformed_cell_is_told_by_row_and_column_or_replaced() {
    let plan = || {
        Plan::new(&["id", "name"])
            .row([Owned::I64(0), Owned::utf8("fine")])
            .row([Owned::I64(1), Owned::Utf16(vec![0x61, 0xD800, 0x62])])
    };
    for (format, replaced) in [
        (
            Format::Json,
            "[{\"id\":0,\"name\":\"fine\"},\n{\"id\":1,\"name\":\"a\u{FFFD}b\"}]",
        ),
        (Format::Csv, "id,name\n0,fine\n1,a\u{FFFD}b\n"),
    ] {
        let mut stream = chunks(plan().into_source(), format, &Ledger::off()).expect("fit");
        let (bytes, end) = pump(&mut *stream, 4096);
        let (kind, error) = error_of(end);
        assert_eq!(
            (kind, error.kind),
            (ChunkErrorKind::Value, ErrorKind::Malformed)
        );
        assert_eq!(
            (error.row, error.column.clone()),
            (Some(1), Some(Box::new((1, "name".into()))))
        );
        let message = error.to_string();
        assert!(
            message.contains("lone surrogate at unit 1 (column 1 `name`, row 1)\n"),
            "{message}"
        );
        assert!(!bytes.ends_with(b"]"));
        let options = StreamOptions {
            policy: Policy::Replace,
            ..StreamOptions::new(format)
        };
        let mut stream = chunks_with(plan().into_source(), &options, &Ledger::off()).expect("fit");
        let (bytes, end) = pump(&mut *stream, 4096);
        end.expect("replaced");
        assert_eq!(String::from_utf8(bytes).expect("UTF-8"), replaced);
        // Without a policy in the options, the policy of the source's connection applies.
        assert_eq!(
            text_of(plan().policy(Policy::Replace), format, 4096),
            replaced
        );
    }
}

#[test]
fn a_long_text_that_ends_inside_a_character_is_malformed() {
    let long = Owned::long_utf16(&[&[0x61], &[0xD83D]]);
    let plan = Plan::new(&["t"]).row([long]);
    let mut stream = chunks(plan.into_source(), Format::Ndjson, &Ledger::off()).expect("fit");
    let (kind, error) = error_of(pump(&mut *stream, 64).1);
    assert_eq!(kind, ChunkErrorKind::Value);
    assert!(error.message.contains("at unit 1"), "{error}");
    assert_eq!(error.column.as_deref(), Some(&(0, "t".to_owned())));
}

#[test]
fn nan_is_an_error_unless_asked_for() {
    let plan = || Plan::new(&["x"]).row([Owned::F64(f64::NAN)]);
    let mut stream = chunks(plan().into_source(), Format::Json, &Ledger::off()).expect("fit");
    let (kind, error) = error_of(pump(&mut *stream, 64).1);
    assert_eq!((kind, error.kind), (ChunkErrorKind::Value, ErrorKind::Data));
    let options = StreamOptions {
        non_finite: NonFinite::Null,
        ..StreamOptions::new(Format::Json)
    };
    let mut stream = chunks_with(plan().into_source(), &options, &Ledger::off()).expect("fit");
    assert_eq!(pump(&mut *stream, 64).0, b"[{\"x\":null}]");
}

#[test]
fn a_cancelled_stream_fails_at_once_and_tells_its_source() {
    let source = small_table().block_rows(1).into_source();
    let cancelled = source.cancelled.clone();
    let mut stream = chunks(source, Format::Json, &Ledger::off()).expect("fit");
    let handle = stream.cancel_handle();
    let mut chunk = Chunk::with_capacity(8);
    assert_eq!(stream.fill(&mut chunk).expect("a row"), Filled::More);
    handle.cancel();
    handle.cancel();
    assert!(cancelled.load(std::sync::atomic::Ordering::Relaxed));
    for _ in 0..2 {
        chunk.clear();
        let error = stream.fill(&mut chunk).expect_err("cancelled");
        assert_eq!((error.kind, chunk.len()), (ChunkErrorKind::Cancelled, 0));
    }
}

#[test]
fn a_driver_that_stops_with_words_of_its_own_is_cancelled_all_the_same() {
    let source = small_table()
        .fail(Error::new(ErrorKind::Operational, "HY000: interrupted"))
        .into_source();
    let during_failure = source.during_failure.clone();
    let mut stream = chunks(source, Format::Csv, &Ledger::off()).expect("fit");
    *during_failure.lock().expect("no panic under it") = Some(stream.cancel_handle());
    let (kind, error) = error_of(pump(&mut *stream, 4096).1);
    assert_eq!(
        (kind, error.kind),
        (ChunkErrorKind::Cancelled, ErrorKind::Cancelled)
    );
    assert_eq!(error.message, "HY000: interrupted");
}

#[test]
fn each_text_is_converted_or_copied_once_and_nothing_besides() {
    let mut plan = Plan::new(&["a", "b"]);
    let (mut utf16, mut utf8) = (0, 0);
    for i in 0..500 {
        let (a, b) = (format!("Zürich {i}"), format!("say \"{i}\""));
        utf16 += a.encode_utf16().count() as u64 * 2;
        utf8 += b.len() as u64;
        plan = plan.row([Owned::utf16(&a), Owned::utf8(&b)]);
    }
    let long = Owned::long_utf16(&[&[0x61, 0xD83D], &[0xDE00], &[0x62; 40]]);
    utf16 += 43 * 2;
    let plan = plan.row([long, Owned::Null]);
    for format in [Format::Json, Format::Ndjson, Format::Csv] {
        let ledger = Ledger::within(&Ledger::off());
        let mut stream = chunks(plan.clone().into_source(), format, &ledger).expect("fit");
        pump(&mut *stream, 1000).1.expect("complete");
        let entry = ledger.stage(Stage::Encode);
        // UTF-8 is copied to CSV. Writing UTF-8 as JSON counts as a conversion, because each
        // character is checked for escapes.
        let copied = if format == Format::Csv { utf8 } else { 0 };
        assert_eq!(
            (entry.taken, entry.converted, entry.copied),
            (utf16 + utf8, utf16 + utf8 - copied, copied)
        );
        assert_eq!(ledger.total(), entry);
    }
}

#[test]
fn a_sink_past_its_deadline_pauses_after_the_first_row() {
    let mut source = small_table().into_source();
    assert_eq!(
        source.fetch(Budget::default()).expect("rows"),
        Fetched::Rows(3)
    );
    let mut format =
        NdjsonRows::new(&source.schema().clone(), ValueOptions::default()).expect("fit");
    let (mut progress, mut out) = (SinkProgress::default(), Vec::new());
    let turn = Turn {
        enough_bytes: 1 << 20,
        deadline: Some(Instant::now()),
    };
    let mut sink = ByteRows::new(&mut format, &mut out, &mut progress, turn);
    assert_eq!(
        source.block().emit(0, &mut sink),
        Ok(Emitted::Paused { next_row: 1 })
    );
    assert!(sink.is_late() && !sink.is_full());
    sink.forget_deadline();
    assert_eq!(source.block().emit(1, &mut sink), Ok(Emitted::All));
    assert_eq!(sink.n_rows(), 3);
}

#[test]
fn csv_takes_another_dialect() {
    use onecopy_wire::csv::LineEnd;
    let options = StreamOptions {
        dialect: Dialect::new(b';', LineEnd::CrLf).expect("fit"),
        ..StreamOptions::new(Format::Csv)
    };
    let plan = Plan::new(&["a", "b"]).row([Owned::utf8("x;y"), Owned::utf8("p,q")]);
    let mut stream = chunks_with(plan.into_source(), &options, &Ledger::off()).expect("fit");
    assert_eq!(pump(&mut *stream, 64).0, b"a;b\r\n\"x;y\";p,q\r\n");
    // The format can be created without a stream.
    let _ = CsvRows::new(
        &Plan::new(&["a"]).into_source().schema().clone(),
        Dialect::default(),
        ValueOptions::default(),
    );
}

/// Generates a row and the JSON object for it. The row consists of a number, a text in UTF-8 or
/// UTF-16, and a binary value; the text and the binary value may be divided into parts.
fn rows() -> impl Strategy<Value = (RowPlan, Value)> {
    let text = prop_oneof!["[a-z ,\"\r\n]{0,12}", any::<String>(), "(東|😀|é|a){0,9}"];
    let cuts = || prop::option::of(prop::collection::vec(0..40_usize, 0..5));
    (
        any::<i64>(),
        prop::option::of((text, cuts(), any::<bool>())),
        (prop::collection::vec(any::<u8>(), 0..30), cuts()),
    )
        .prop_map(|(n, text, (bytes, byte_cuts))| {
            use base64_oracle::encode;
            let value = json!({
                "n": n,
                "t": text.as_ref().map(|(t, ..)| t.clone()),
                "b": encode(&bytes),
            });
            let text = match text {
                None => Owned::Null,
                Some((t, cuts, true)) => Owned::utf16_in(&t, cuts),
                Some((t, cuts, false)) => Owned::utf8_in(&t, cuts),
            };
            (
                vec![Owned::I64(n), text, Owned::bytes_in(bytes, byte_cuts)],
                value,
            )
        })
}

/// A simple implementation of Base64, which converts one bit at a time.
mod base64_oracle {
    pub(super) fn encode(bytes: &[u8]) -> String {
        const ALPHABET: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        let bits: Vec<u8> = bytes
            .iter()
            .flat_map(|b| (0..8).rev().map(move |i| b >> i & 1))
            .collect();
        let mut out: String = bits
            .chunks(6)
            .map(|six| {
                let value = (0..6).fold(0, |v, i| v << 1 | six.get(i).copied().unwrap_or(0));
                char::from(ALPHABET[usize::from(value)])
            })
            .collect();
        while !out.len().is_multiple_of(4) {
            out.push('=');
        }
        out
    }
}

proptest! {
    #[test]
    fn streams_read_back_whatever_the_blocks_chunks_and_cuts(
        rows in prop::collection::vec(rows(), 0..12),
        block_rows in 1..5_usize,
        capacity in prop::sample::select(vec![0, 1, 16, 60, 200, 4096]),
    ) {
        let mut plan = Plan::new(&["n", "t", "b"]).block_rows(block_rows);
        for (row, _) in &rows {
            plan = plan.row(row.clone());
        }
        let expected = Value::Array(rows.iter().map(|(_, v)| v.clone()).collect());
        let json = text_of(plan.clone(), Format::Json, capacity);
        prop_assert_eq!(&serde_json::from_str::<Value>(&json).expect("JSON"), &expected);
        let ndjson = text_of(plan.clone(), Format::Ndjson, capacity);
        let lines: Vec<Value> = ndjson.lines().map(|l| serde_json::from_str(l).expect("JSON")).collect();
        prop_assert_eq!(&Value::Array(lines), &expected);
        // The CSV output does not depend on the size of the chunks.
        let csv = text_of(plan.clone(), Format::Csv, capacity);
        prop_assert_eq!(csv, text_of(plan, Format::Csv, 1 << 20));
    }
}
