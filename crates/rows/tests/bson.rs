//! Tests of rows as BSON. A test source (`planned`) returns the rows, and the simple reference
//! implementation `naive` decodes the output. The tests cover all kinds of cells, chunks that
//! contain only complete documents, and the size limits.

mod planned;

use onecopy_rows::Format;
use onecopy_rows::row_stream::{StreamOptions, chunks, chunks_with};
use onecopy_rows::sink::BsonOptions;
use onecopy_rows::sink::bson::{DateTimes, Decimals};
use onecopy_rows::{Date, Error, ErrorKind, LongKind, Time, Timestamp};
use onecopy_text::{Chunk, Ledger, Policy, Stage};
use onecopy_wire::bson::naive::{self, Document, Value};
use onecopy_wire::{ChunkErrorKind, ChunkSource, Filled};
use planned::{Owned, Plan, pump};
use proptest::prelude::*;

const BSON: Format = Format::Bson(BsonOptions {
    decimals: Decimals::Decimal128,
    datetimes: DateTimes::DateTime,
    max_bytes: i32::MAX as usize,
});

fn at_most(max_bytes: usize) -> Format {
    Format::Bson(BsonOptions {
        max_bytes,
        ..BsonOptions::default()
    })
}

fn stream(plan: Plan, format: Format) -> Box<dyn ChunkSource> {
    chunks(plan.into_source(), format, &Ledger::off()).expect("fit")
}

/// Returns the documents of a stream. Each chunk must contain only complete documents.
fn documents(plan: Plan, format: Format, capacity: usize) -> Vec<Document> {
    let mut stream = stream(plan, format);
    let mut all = Vec::new();
    let mut chunk = Chunk::with_capacity(capacity);
    loop {
        chunk.clear();
        let filled = stream.fill(&mut chunk).expect("rows");
        all.extend(naive::documents(&chunk).expect("whole documents"));
        if filled == Filled::Done {
            assert_eq!(stream.n_rows(), all.len() as u64);
            return all;
        }
    }
}

fn value(cell: Owned, format: Format) -> Value {
    let mut rows = documents(Plan::new(&["v"]).row([cell]), format, 64);
    let (key, value) = rows.remove(0).remove(0);
    assert_eq!(key, "v");
    value
}

/// Streams rows whose last value cannot be written. Returns the bytes before this value, the kind
/// of the chunk error, and the error itself.
fn refused(plan: Plan, format: Format) -> (Vec<u8>, ChunkErrorKind, Error) {
    let (bytes, end) = pump(&mut *stream(plan, format), 64);
    let error = end.expect_err("it is refused");
    let whole = error.source.downcast::<Error>().expect("an error of rows");
    (bytes, error.kind, *whole)
}

fn decimal(text: &str) -> Value {
    Value::Decimal128(naive::decimal128(text).expect("it fits"))
}

const DATE: Date = Date {
    year: 2024,
    month: 2,
    day: 29,
};
const TIME: Time = Time {
    hour: 1,
    minute: 2,
    second: 3,
    nanosecond: 4_999_999,
};

fn stamp(offset_minutes: Option<i16>) -> Owned {
    let stamp = Timestamp {
        date: DATE,
        time: TIME,
        offset_minutes,
    };
    Owned::Timestamp(stamp, 6)
}

#[test]
fn every_kind_of_cell_has_its_type() {
    let utf8 = |text: &str| Value::String(text.to_owned());
    let midnight = 1_709_164_800_000;
    for (cell, expected) in [
        (Owned::Null, Value::Null),
        (Owned::Bool(true), Value::Bool(true)),
        (Owned::I64(-1), Value::Int32(-1)),
        (Owned::I64(i32::MAX.into()), Value::Int32(i32::MAX)),
        (Owned::I64(1 << 31), Value::Int64(1 << 31)),
        (Owned::I64(i64::MIN), Value::Int64(i64::MIN)),
        (Owned::U64(7), Value::Int32(7)),
        (Owned::U64(1 << 40), Value::Int64(1 << 40)),
        (Owned::U64(u64::MAX), decimal("18446744073709551615")),
        (Owned::F32(0.1), Value::Double(0.1_f64.to_bits())),
        (Owned::F64(-0.0), Value::Double((-0.0_f64).to_bits())),
        (
            Owned::F64(f64::INFINITY),
            Value::Double(f64::INFINITY.to_bits()),
        ),
        (Owned::F64(f64::NAN), Value::Double(f64::NAN.to_bits())),
        (Owned::Decimal("-.500".into()), decimal("-0.500")),
        (Owned::utf8("Zo\0ë"), utf8("Zo\0ë")),
        (Owned::utf16("東京 😀"), utf8("東京 😀")),
        (Owned::Bytes(vec![0, 255]), Value::Binary(0, vec![0, 255])),
        (Owned::Bytes(vec![]), Value::Binary(0, vec![])),
        (Owned::Date(DATE), Value::DateTime(midnight)),
        (Owned::Time(TIME, 6), utf8("01:02:03.004999999")),
        (stamp(None), Value::DateTime(midnight + 3_723_004)),
        (
            stamp(Some(330)),
            Value::DateTime(midnight + 3_723_004 - 19_800_000),
        ),
        (Owned::Uuid([0xAB; 16]), Value::Binary(4, vec![0xAB; 16])),
    ] {
        assert_eq!(value(cell.clone(), BSON), expected, "{cell:?}");
    }
}

#[test]
fn decimals_and_datetimes_are_text_where_asked_for() {
    let text = Format::Bson(BsonOptions {
        decimals: Decimals::Text,
        datetimes: DateTimes::Text,
        ..BsonOptions::default()
    });
    let digits = "9".repeat(60);
    for (cell, expected) in [
        (Owned::Decimal(digits.clone()), &*digits),
        (Owned::Decimal("-.500".into()), "-0.500"),
        (Owned::U64(u64::MAX), "18446744073709551615"),
        (Owned::Date(DATE), "2024-02-29"),
        (stamp(None), "2024-02-29T01:02:03.004999999"),
        (stamp(Some(330)), "2024-02-29T01:02:03.004999999+05:30"),
    ] {
        assert_eq!(value(cell, text), Value::String(expected.to_owned()));
    }
    assert_eq!(value(Owned::U64(7), text), Value::Int32(7));
}

#[test]
fn what_has_no_form_is_told_by_row_and_column_behind_the_rows_before_it() {
    let year = Date {
        year: 10_000,
        ..DATE
    };
    for (cell, kind, words) in [
        (Owned::Decimal("1".repeat(35)), ErrorKind::Data, "34 digits"),
        (Owned::Date(year), ErrorKind::Data, "year `10000`"),
        (
            Owned::Utf16(vec![0xD800, 0x61]),
            ErrorKind::Malformed,
            "lone surrogate",
        ),
    ] {
        let plan = Plan::new(&["id", "x"])
            .row([Owned::I64(0), Owned::Null])
            .row([Owned::I64(1), cell]);
        let (bytes, chunk_kind, error) = refused(plan, BSON);
        assert_eq!((chunk_kind, error.kind), (ChunkErrorKind::Value, kind));
        assert_eq!(
            (error.row, error.column.clone()),
            (Some(1), Some(Box::new((1, "x".into()))))
        );
        assert!(error.message.contains(words), "{error}");
        assert_eq!(naive::documents(&bytes).expect("whole documents").len(), 1);
    }
    let plan = Plan::new(&["x"])
        .row([Owned::Utf16(vec![0x61, 0xD800, 0x61])])
        .policy(Policy::Replace);
    let replaced = vec![("x".to_owned(), Value::String("a\u{FFFD}a".into()))];
    assert_eq!(documents(plan, BSON, 64), [replaced]);
}

#[test]
fn names_are_distinct_and_hold_no_nul() {
    for (names, words) in [
        (
            &["a", "b", "a"][..],
            "columns 0 and 2 are both named `a`, and the keys of a BSON document",
        ),
        (
            &["a", ""][..],
            "column 1 has no name, and a BSON document needs one",
        ),
        (&["a", "b\0"][..], "NUL"),
    ] {
        let error = chunks(Plan::new(names).into_source(), BSON, &Ledger::off());
        let error = error.err().expect("unfit");
        assert_eq!(error.kind, ErrorKind::Programming);
        assert!(error.message.contains(words), "{error}");
    }
    assert_eq!(
        documents(Plan::new(&["a"]), BSON, 64),
        Vec::<Document>::new()
    );
}

#[test]
fn a_document_is_as_long_as_allowed_and_no_longer() {
    // Besides the text, a document has 13 bytes: its length (4), the tag, the key (2), the length
    // of the text (4), the NUL after the text, and the NUL at the end.
    for cell in [
        Owned::utf8("0123456"),
        Owned::Long(
            LongKind::Text,
            vec![Owned::utf8("0123"), Owned::utf8("456")],
        ),
    ] {
        let plan = |cell: &Owned| Plan::new(&["x"]).row([Owned::Null]).row([cell.clone()]);
        assert_eq!(documents(plan(&cell), at_most(20), 64).len(), 2);
        let (bytes, kind, error) = refused(plan(&cell), at_most(19));
        assert_eq!((kind, error.kind), (ChunkErrorKind::Value, ErrorKind::Data));
        assert_eq!(
            (error.row, error.column.clone()),
            (Some(1), Some(Box::new((0, "x".into()))))
        );
        assert!(error.message.contains("longer than 19 bytes"), "{error}");
        assert_eq!(naive::documents(&bytes).expect("whole documents").len(), 1);
    }
    for cell in [
        Owned::Bytes(vec![1; 8]),
        Owned::Long(LongKind::Bytes, vec![Owned::Bytes(vec![1; 8])]),
    ] {
        let plan = || Plan::new(&["x"]).row([cell.clone()]);
        assert_eq!(documents(plan(), at_most(21), 64).len(), 1);
        assert!(
            refused(plan(), at_most(20))
                .2
                .message
                .contains("longer than 20")
        );
    }
    let two = || Plan::new(&["a", "b"]).row([Owned::I64(1), Owned::I64(2)]);
    assert_eq!(documents(two(), at_most(19), 64).len(), 1);
    assert_eq!(
        refused(two(), at_most(18)).2.column.as_deref(),
        Some(&(1, "b".to_owned()))
    );
}

#[test]
fn a_long_value_moves_what_stands_before_it_once_and_nothing_else() {
    let part = vec![0x6771_u16; 1000];
    let parts: Vec<&[u16]> = (0..2000).map(|_| &part[..]).collect();
    let long = Owned::long_utf16(&parts);
    let plan = Plan::new(&["t", "n", "u"]).row([long.clone(), Owned::I64(1), long]);
    let ledger = Ledger::within(&Ledger::off());
    let mut stream = chunks(plan.into_source(), BSON, &ledger).expect("fit");
    let mut chunk = Chunk::with_capacity(8192);
    assert_eq!(stream.fill(&mut chunk).expect("a row"), Filled::More);
    let row = naive::documents(&chunk).expect("a document").remove(0);
    let text = Value::String("東".repeat(2_000_000));
    let expected = [("t", text.clone()), ("n", Value::Int32(1)), ("u", text)];
    assert!(
        row.into_iter()
            .eq(expected.map(|(key, value)| (key.to_owned(), value)))
    );
    let entry = ledger.stage(Stage::Encode);
    assert_eq!((entry.taken, entry.converted), (8_000_000, 8_000_000));
    assert!(entry.copied < 8192, "{entry:?}");
}

#[test]
fn rows_half_as_long_as_a_chunk_never_move() {
    let mut plan = Plan::new(&["t"]).block_rows(3);
    for _ in 0..40 {
        plan = plan.row([Owned::utf8(&"x".repeat(40_000))]);
    }
    let ledger = Ledger::within(&Ledger::off());
    let mut stream = chunks(plan.into_source(), BSON, &ledger).expect("fit");
    loop {
        let mut chunk = Chunk::with_capacity(64 << 10);
        let filled = stream.fill(&mut chunk).expect("rows");
        assert_eq!(chunk.take_moved_bytes(), 0);
        if filled == Filled::Done {
            break;
        }
    }
    // The other copied bytes were moved, because a chunk was too small and grew. This happens only
    // for the second row, before the size of the rows is known.
    let moved = ledger.stage(Stage::Encode).copied - 40 * 40_000;
    assert!(moved <= 40_100, "{moved}");
}

/// Generates a cell, and the BSON value that is decoded from its output.
fn any_cell() -> impl Strategy<Value = (Owned, Value)> {
    let cuts = || prop::option::of(prop::collection::vec(0..60_usize, 0..4));
    prop_oneof![
        Just((Owned::Null, Value::Null)),
        any::<i32>().prop_map(|n| (Owned::I64(n.into()), Value::Int32(n))),
        (any::<String>(), cuts())
            .prop_map(|(s, cuts)| (Owned::utf8_in(&s, cuts), Value::String(s))),
        (any::<String>(), cuts())
            .prop_map(|(s, cuts)| (Owned::utf16_in(&s, cuts), Value::String(s))),
        (prop::collection::vec(any::<u8>(), 0..80), cuts())
            .prop_map(|(b, cuts)| (Owned::bytes_in(b.clone(), cuts), Value::Binary(0, b))),
    ]
}

proptest! {
    #[test]
    fn rows_read_back_from_chunks_of_any_size(
        rows in prop::collection::vec([any_cell(), any_cell(), any_cell()], 0..20),
        block_rows in 1..8_usize,
        capacity in 0..600_usize,
    ) {
        let names = ["a", "bé", "a key that is longer than thirty-two bytes"];
        let mut plan = Plan::new(&names).block_rows(block_rows);
        let mut expected = Vec::new();
        for row in rows {
            plan = plan.row(row.clone().map(|(cell, _)| cell));
            expected.push(names.map(str::to_owned).into_iter().zip(row.map(|(_, value)| value)).collect::<Document>());
        }
        prop_assert_eq!(&documents(plan.clone(), BSON, capacity), &expected);
        // Each fill appends to the same chunk, as in Python's `RowStream.read`.
        let options = StreamOptions::new(BSON);
        let mut stream = chunks_with(plan.into_source(), &options, &Ledger::off()).expect("fit");
        let mut all = Chunk::with_capacity(capacity);
        while stream.fill(&mut all).expect("rows") != Filled::Done {}
        prop_assert_eq!(naive::documents(&all).expect("documents"), expected);
    }
}
