//! Tests of [`ColumnStorage`].

use proptest::prelude::*;

use super::*;

fn text(text: &str) -> Value {
    Value::Text(text.to_owned())
}

fn decimal(digits: &str) -> Value {
    Value::Decimal(digits.to_owned())
}

fn storage(column_type: ColumnType, type_name: &str, dialect: Dialect) -> ColumnStorage {
    let mut column = Column::new("v".to_owned(), column_type);
    type_name.clone_into(&mut column.type_name);
    ColumnStorage::new(&column, dialect, &Names::default())
}

#[test]
fn columns_of_sqlite_have_the_storage_of_their_affinity() {
    let number = |is_real| ColumnStorage::SqliteNumber { is_real };
    for (type_name, expected) in [
        ("varchar(3)", ColumnStorage::SqliteText),
        ("bigint", number(false)),
        ("numeric(10, 2)", number(false)),
        ("datetime", number(false)),
        ("double precision", number(true)),
        ("blob", ColumnStorage::SqliteAny),
        ("", ColumnStorage::SqliteAny),
    ] {
        let found = storage(ColumnType::Any, type_name, Dialect::Sqlite);
        assert_eq!(found, expected, "{type_name}");
    }
}

#[test]
fn values_are_equal_or_refused() {
    let (change, kind) = (Err(Refusal::Change), Err(Refusal::Kind));
    let number = |is_real| ColumnStorage::SqliteNumber { is_real };
    let any = ColumnStorage::SqliteAny;
    let plain = ColumnStorage::Decimal { scale: None };
    let cents = ColumnStorage::Decimal { scale: Some(2) };
    for (column, value, expected) in [
        (number(false), text("12"), Ok(Value::I64(12))),
        (number(false), text("1.50"), Ok(Value::F64(1.5))),
        (number(false), text("1e3"), Ok(Value::I64(1000))),
        (number(false), text("007"), change.clone()),
        (number(false), text(" 7"), change.clone()),
        (number(false), text("abc"), Ok(text("abc"))),
        (number(false), text("nan"), Ok(text("nan"))),
        (number(false), text("2024-01-01"), Ok(text("2024-01-01"))),
        (number(false), decimal("19.990"), Ok(Value::F64(19.99))),
        (
            number(false),
            decimal("12345678901234567.5"),
            change.clone(),
        ),
        (
            number(true),
            Value::I64(1 << 53),
            Ok(Value::F64((1_u64 << 53) as f64)),
        ),
        (number(true), Value::I64((1 << 53) + 1), change.clone()),
        (number(true), Value::F64(f64::NAN), change.clone()),
        (any, Value::F64(f64::NAN), change.clone()),
        (any, text("007"), Ok(text("007"))),
        (
            ColumnStorage::SqliteText,
            Value::F64(0.1 + 0.2),
            Ok(text("0.30000000000000004")),
        ),
        (ColumnStorage::Integer, Value::F64(3.0), Ok(Value::I64(3))),
        (ColumnStorage::Integer, Value::F64(1.5), change.clone()),
        (
            ColumnStorage::Integer,
            Value::F64(f64::INFINITY),
            change.clone(),
        ),
        (
            ColumnStorage::Integer,
            decimal("1e20"),
            Ok(decimal("100000000000000000000")),
        ),
        (ColumnStorage::Integer, text("x"), kind.clone()),
        (ColumnStorage::Double, decimal("0.1"), Ok(Value::F64(0.1))),
        (
            ColumnStorage::Double,
            text("-Infinity"),
            Ok(Value::F64(f64::NEG_INFINITY)),
        ),
        (
            ColumnStorage::Double,
            decimal("0.12345678901234567890"),
            change.clone(),
        ),
        (ColumnStorage::Real, Value::F64(0.1), Ok(Value::F64(0.1))),
        (ColumnStorage::Real, Value::F64(0.1 + 0.2), change.clone()),
        (
            ColumnStorage::Real,
            Value::F64(f64::from(0.1_f32)),
            Ok(Value::F64(f64::from(0.1_f32))),
        ),
        (plain, Value::F64(1e-7), Ok(decimal("0.0000001"))),
        (plain, decimal("1.50"), Ok(decimal("1.50"))),
        (plain, text("NaN"), Ok(text("NaN"))),
        (cents, decimal("1.500"), Ok(decimal("1.500"))),
        (cents, decimal("1.005"), change.clone()),
        (cents, Value::Bool(true), kind.clone()),
        (ColumnStorage::Bool, Value::I64(2), kind.clone()),
        (ColumnStorage::Binary, text("x"), kind.clone()),
        (ColumnStorage::Parsed, Value::Bytes(vec![1]), kind),
        (
            ColumnStorage::Date,
            text("2024-01-01 10:00"),
            change.clone(),
        ),
        (
            ColumnStorage::Time { digits: 0 },
            text("10:00:00.5"),
            change,
        ),
        (ColumnStorage::Date, text("infinity"), Ok(text("infinity"))),
    ] {
        let shown = format!("{column:?} {value:?}");
        assert_eq!(column.convert(value), expected, "{shown}");
    }
}

#[test]
fn an_offset_is_neither_added_nor_removed() {
    let column = |with_offset| ColumnStorage::Timestamp {
        digits: 6,
        with_offset,
    };
    let (local, utc) = ("2024-01-01 10:00:00", "2024-01-01T10:00:00Z");
    assert!(matches!(
        column(false).convert(text(local)),
        Ok(Value::Timestamp(_))
    ));
    assert!(matches!(
        column(true).convert(text(utc)),
        Ok(Value::Timestamp(_))
    ));
    assert_eq!(column(true).convert(text(local)), Err(Refusal::Offset));
    assert_eq!(column(false).convert(text(utc)), Err(Refusal::Offset));
    let nanoseconds = text("2024-01-01 10:00:00.000000001");
    assert_eq!(column(false).convert(nanoseconds), Err(Refusal::Change));
}

proptest! {
    /// Tests that any text is either converted or refused, for each type of column. Also tests that
    /// a second conversion does not change a converted value.
    #[test]
    fn any_text_is_converted_or_refused(
        given in "[-+0-9.:eETZ ]{0,30}|\\PC{0,12}|NaN|-?(I|i)nfinity|[0-9]{4}-[0-9]{2}-[0-9]{2}",
        is_decimal in any::<bool>(), digits in 0_u8..7, flag in any::<bool>(),
    ) {
        for column in [
            ColumnStorage::SqliteText,
            ColumnStorage::SqliteNumber { is_real: flag },
            ColumnStorage::SqliteAny,
            ColumnStorage::Bool,
            ColumnStorage::Integer,
            ColumnStorage::Real,
            ColumnStorage::Double,
            ColumnStorage::Decimal { scale: flag.then_some(2) },
            ColumnStorage::Text { is_postgres: flag, most_chars: Some(3) },
            ColumnStorage::Binary,
            ColumnStorage::Date,
            ColumnStorage::Time { digits },
            ColumnStorage::Timestamp { digits, with_offset: flag },
            ColumnStorage::Uuid,
            ColumnStorage::Parsed,
        ] {
            let value = if is_decimal { decimal(&given) } else { text(&given) };
            if let Ok(converted) = column.convert(value) {
                let again = column.convert(converted.clone());
                let is_nan = matches!(converted, Value::F64(f) if f.is_nan());
                prop_assert!(is_nan || again == Ok(converted), "{:?} {:?}", column, given);
            }
        }
    }
}
