//! Tests that export rows as Arrow batches through the C interface and import them again, in one
//! process and without Python.

#![allow(clippy::unwrap_used)]

use onecopy_rows::ConnectOptions;
use onecopy_rows::arrow::{ArrowOptions, ArrowStream, BatchRows, DataType};
use onecopy_rows::arrow_c::{Batches, ForeignStream, stream_of};
use onecopy_rows::connect::Connection;
use onecopy_rows::{
    BlockPosition, Budget, Cell, ErrorKind, LongKind, Pumped, RowSink, TableInsert, Value,
};
use onecopy_text::{Ledger, Stage};
use proptest::prelude::*;

fn memory() -> Connection {
    Connection::open("sqlite::memory:", &ConnectOptions::default()).unwrap()
}

fn stream(con: &Connection, sql: &str, options: &ArrowOptions) -> ArrowStream {
    let statement = con.execute(sql, &[]).unwrap();
    ArrowStream::new(statement, options, &Ledger::off()).unwrap()
}

fn foreign(stream: ArrowStream) -> ForeignStream {
    let mut given = stream_of(Box::new(stream));
    // SAFETY: this test has created the stream, which is not released and has no other user.
    unsafe { ForeignStream::take(&raw mut given) }.unwrap()
}

/// A sink that stores each row as a string: the `Debug` forms of its cells, each followed by a
/// comma.
#[derive(Default)]
struct Texts(Vec<String>);

impl RowSink for Texts {
    type Error = ();

    fn begin_row(&mut self) -> Result<(), ()> {
        self.0.push(String::new());
        Ok(())
    }
    fn cell(&mut self, _column: usize, cell: Cell<'_>) -> Result<(), ()> {
        let text = format!("{cell:?},");
        self.0.last_mut().unwrap().push_str(&text);
        Ok(())
    }
    fn long_begin(&mut self, _column: usize, _kind: LongKind) -> Result<(), ()> {
        Err(())
    }
    fn long_part(&mut self, _column: usize, _part: Cell<'_>) -> Result<(), ()> {
        Err(())
    }
    fn long_end(&mut self, _column: usize) -> Result<(), ()> {
        Err(())
    }
    fn end_row(&mut self) -> Result<bool, ()> {
        Ok(true)
    }
}

fn texts(con: &Connection, sql: &str) -> Vec<String> {
    let mut statement = con.execute(sql, &[]).unwrap();
    let (mut position, mut sink) = (BlockPosition::default(), Texts::default());
    while statement
        .pump(&mut position, Budget::default(), &mut sink)
        .unwrap()
        == Pumped::More
    {}
    sink.0
}

fn value() -> impl Strategy<Value = (Value, Value, Value, Value)> {
    let or_null = |value: BoxedStrategy<Value>| prop_oneof![1 => Just(Value::Null), 4 => value];
    (
        or_null(any::<i64>().prop_map(Value::I64).boxed()),
        or_null(any::<String>().prop_map(Value::Text).boxed()),
        or_null(prop::num::f64::NORMAL.prop_map(Value::F64).boxed()),
        or_null(
            prop::collection::vec(any::<u8>(), 0..40)
                .prop_map(Value::Bytes)
                .boxed(),
        ),
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn what_goes_through_the_interface_comes_back(
        rows in prop::collection::vec(value(), 0..60),
        batch_bytes in 1_usize..2000,
    ) {
        let con = memory();
        con.execute("create table a (i integer, t text, f real, b blob)", &[]).unwrap();
        con.execute("create table b (i integer, t text, f real, b blob)", &[]).unwrap();
        let values = rows.into_iter().map(|(i, t, f, b)| vec![i, t, f, b]);
        con.execute_many("insert into a values (?, ?, ?, ?)", &mut values.map(Ok)).unwrap();
        let options = ArrowOptions { batch_bytes, ..ArrowOptions::default() };
        let mut taken = foreign(stream(&con, "select * from a", &options));
        let names: Vec<String> = taken.fields().iter().map(|f| f.name.clone()).collect();
        let columns: Vec<&str> = names.iter().map(String::as_str).collect();
        let insert = TableInsert::new("b", &columns, con.dialect());
        let mut rows = BatchRows::new(names.clone(), || taken.next_batch());
        con.insert_rows(&insert, &mut rows).unwrap();
        prop_assert_eq!(texts(&con, "select * from a"), texts(&con, "select * from b"));
    }
}

#[test]
fn a_stream_that_was_taken_is_marked_as_released() {
    let con = memory();
    let mut given = stream_of(Box::new(stream(
        &con,
        "select 1 as x",
        &ArrowOptions::default(),
    )));
    // SAFETY: this test has created the stream, which is not released and has no other user.
    let mut taken = unsafe { ForeignStream::take(&raw mut given) }.unwrap();
    // SAFETY: the pointer is still valid; the stream is now marked as released, so `take` returns
    // an error.
    let again = unsafe { ForeignStream::take(&raw mut given) };
    assert_eq!(again.unwrap_err().kind, ErrorKind::Interface);
    assert_eq!(taken.fields()[0].data_type, DataType::int(64));
    let batch = taken.next_batch().unwrap().unwrap();
    drop(taken);
    drop(con);
    // A batch can be read after its stream was dropped.
    assert_eq!(batch.columns[0].value(0).unwrap(), Value::I64(1));
}

#[test]
fn an_error_passes_with_its_words_and_no_end_behind_it() {
    let con = memory();
    let sql = "select 1 as x union all select 'b'";
    let mut taken_fails = {
        let mut made = stream(&con, sql, &ArrowOptions::default());
        let error = made.fields().unwrap_err();
        assert_eq!((error.kind, error.row), (ErrorKind::Data, Some(1)));
        assert_eq!(error.column.as_deref(), Some(&(0, "x".to_owned())));
        made
    };
    assert!(taken_fails.next_batch().is_err());
    assert!(taken_fails.next_batch().is_err());
    con.execute("create table t (x integer)", &[]).unwrap();
    con.execute("insert into t values (1), ('b')", &[]).unwrap();
    let mut taken = foreign(stream(&con, "select x from t", &ArrowOptions::default()));
    let error = taken.next_batch().unwrap_err();
    assert!(
        error
            .message
            .contains("text does not go into a column of `int64` (column 0 `x`, row 1)")
    );
    assert!(taken.next_batch().is_err());
}

#[test]
fn cancelled_it_says_so() {
    let con = memory();
    let sql = "with recursive c(i) as (select 1 union all select i + 1 from c) select i from c";
    let options = ArrowOptions {
        batch_bytes: 10_000,
        ..ArrowOptions::default()
    };
    let mut made = stream(&con, sql, &options);
    assert!(made.next_batch().unwrap().is_some());
    made.cancel_handle().cancel();
    for _ in 0..2 {
        assert_eq!(made.next_batch().unwrap_err().kind, ErrorKind::Cancelled);
    }
}

#[test]
fn each_text_is_counted_once() {
    let con = memory();
    let ledger = Ledger::within(&Ledger::off());
    let statement = con
        .execute("select 'abc' as a, '東京' as b, 1 as c", &[])
        .unwrap();
    let mut made = ArrowStream::new(statement, &ArrowOptions::default(), &ledger).unwrap();
    made.next_batch().unwrap().unwrap();
    let counted = ledger.stage(Stage::Encode);
    assert_eq!(
        (counted.taken, counted.copied, counted.converted),
        (9, 9, 0)
    );
}
