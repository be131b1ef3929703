//! Parameters of statements: converts `?` to `$1`, chooses types, and encodes values for Bind.

use bytes::{BufMut, BytesMut};
use postgres_protocol::IsNull;

use super::date_time;
use super::type_table::oid;
use super::types::oid_of_name;
use super::value_text::text_of_value;
use crate::error::{Error, ErrorKind};
use crate::sql::dialect::Dialect;
use crate::sql::lexer::{Lexer, TokenKind};
use crate::sql::statements;
use crate::value::{DeclaredKind, Value};

/// The largest number of parameters of a statement: the protocol counts them in 16 bits.
const MOST: usize = 65_535;

/// A SQL string in which the parameters are `$1`, `$2`, … instead of `?`, as the server requires.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Translated {
    pub(super) sql: String,
    pub(super) n_parameters: usize,
    /// The statements of the SQL string, as the caller wrote them; empty if there is only one
    /// statement.
    pub(super) pieces: Vec<String>,
}

/// Replaces the parameters of a SQL string by `$1`, `$2`, …. Each `?` outside strings, quoted names
/// and comments is a parameter. `??` is replaced by `?`, for operators that contain this character.
pub(super) fn translate(sql: &str) -> Translated {
    let mut translated = Translated {
        sql: String::with_capacity(sql.len() + 16),
        n_parameters: 0,
        pieces: Vec::new(),
    };
    if sql.contains(';') {
        let pieces = statements::split(sql);
        if pieces.len() > 1 {
            translated.pieces = pieces.into_iter().map(str::to_owned).collect();
        }
    }
    let mut tokens = Lexer::of_statement(sql, Dialect::Postgres).peekable();
    while let Some(token) = tokens.next() {
        if token.kind != TokenKind::QuestionMark {
            // The lexer returns `??` as a part of an operator token.
            match token.kind {
                TokenKind::Other => translated.sql.push_str(&token.text.replace("??", "?")),
                _ => translated.sql.push_str(token.text),
            }
        } else if tokens
            .next_if(|next| next.kind == TokenKind::QuestionMark)
            .is_some()
        {
            translated.sql.push('?');
        } else {
            translated.n_parameters += 1;
            translated.sql.push('$');
            translated
                .sql
                .push_str(&translated.n_parameters.to_string());
        }
    }
    translated
}

/// Checks the values of the parameters of a statement.
///
/// # Errors
/// [`ErrorKind::Programming`] if the number of values is not `n_parameters`, or exceeds [`MOST`].
/// [`ErrorKind::Data`] if a text value contains a NUL, which PostgreSQL cannot store.
pub(super) fn check(n_parameters: usize, values: &[Value]) -> Result<(), Error> {
    if values.len() != n_parameters {
        return Err(Error::wrong_count(n_parameters, values.len()));
    }
    if values.len() > MOST {
        let message = format!("a statement has at most {MOST} parameters in PostgreSQL");
        return Err(Error::new(ErrorKind::Programming, message));
    }
    for (i, value) in values.iter().enumerate() {
        if let Value::Text(text) | Value::Cast(text, _) | Value::Decimal(text) = own(value)
            && text.contains('\0')
        {
            let mut error = Error::new(
                ErrorKind::Data,
                format!(
                    "parameter {} contains a NUL character, which PostgreSQL cannot store in text",
                    i + 1
                ),
            );
            "22021".clone_into(&mut error.sqlstate);
            return Err(error);
        }
    }
    Ok(())
}

/// Returns the value inside a [`Value::Declared`], without the declared type. Any other value is
/// returned unchanged.
pub(super) fn own(value: &Value) -> &Value {
    match value {
        Value::Declared(inner, _) => own(inner),
        value => value,
    }
}

/// Returns the object identifier of the PostgreSQL type of a parameter with this value, for the
/// protocol message Parse. Returns 0 if the server infers the type from the statement, as it infers
/// the type of a quoted literal.
pub(super) fn type_of(value: &Value) -> u32 {
    match value {
        Value::Null | Value::Text(_) => 0,
        Value::Bool(_) => oid::BOOL,
        // An integer gets the type that PostgreSQL gives to an integer literal: `int4` if it fits,
        // otherwise `int8`.
        Value::I64(n) if i32::try_from(*n).is_ok() => oid::INT4,
        Value::I64(_) => oid::INT8,
        Value::F64(_) => oid::FLOAT8,
        Value::Decimal(_) => oid::NUMERIC,
        Value::Bytes(_) => oid::BYTEA,
        Value::Date(_) => oid::DATE,
        Value::Time(_) => oid::TIME,
        Value::Timestamp(stamp) => match stamp.offset_minutes {
            Some(_) => oid::TIMESTAMPTZ,
            None => oid::TIMESTAMP,
        },
        Value::Uuid(_) => oid::UUID,
        Value::Cast(_, name) => oid_of_name(name),
        Value::Declared(inner, declared) => match declared.kind {
            DeclaredKind::Sized => type_of(inner),
            DeclaredKind::Number if **inner == Value::Null => oid::INT8,
            DeclaredKind::Moment if **inner == Value::Null => oid::TIMESTAMP,
            DeclaredKind::Number | DeclaredKind::Moment => type_of(inner),
            DeclaredKind::Bool => oid::BOOL,
            DeclaredKind::Integer => oid::INT8,
            DeclaredKind::Double => oid::FLOAT8,
            DeclaredKind::Decimal => oid::NUMERIC,
            DeclaredKind::Text => oid::TEXT,
            DeclaredKind::Binary => oid::BYTEA,
            DeclaredKind::Date => oid::DATE,
            DeclaredKind::Time => oid::TIME,
            DeclaredKind::Timestamp => match own(inner) {
                Value::Timestamp(stamp) if stamp.offset_minutes.is_some() => oid::TIMESTAMPTZ,
                _ => oid::TIMESTAMP,
            },
            DeclaredKind::Uuid => oid::UUID,
        },
    }
}

/// Returns `true` if the value is a NULL without a declared type. Such a NULL may be sent with the
/// parameter type of any other value.
fn is_untyped_null(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Declared(inner, declared) => {
            let of_value = [
                DeclaredKind::Sized,
                DeclaredKind::Number,
                DeclaredKind::Moment,
            ];
            **inner == Value::Null && of_value.contains(&declared.kind)
        }
        _ => false,
    }
}

/// Rows of parameters whose values have the same types, apart from NULLs.
pub(super) struct UniformRows<'r> {
    pub(super) rows: &'r [Vec<Value>],
    /// The type of each parameter (object identifier; 0 to let the server infer the type).
    pub(super) types: Vec<u32>,
}

impl UniformRows<'_> {
    /// Returns the longest sequence of rows at the start of `rows` in which the values of each
    /// parameter have the same type. If a parameter has values of two types, `merge` is called with
    /// the index (from 0) of the parameter and both types. It returns the type to use for both, or
    /// `None` if the second value must begin a new sequence.
    pub(super) fn first(
        rows: &[Vec<Value>],
        merge: impl Fn(usize, u32, u32) -> Option<u32>,
    ) -> UniformRows<'_> {
        let first = rows.first().map(Vec::as_slice).unwrap_or_default();
        let mut types: Vec<Option<u32>> = vec![None; first.len()];
        let merged = |i, known: Option<u32>, value: &Value| match (known, type_of(value)) {
            _ if is_untyped_null(value) => Some(known),
            (None, of_value) => Some(Some(of_value)),
            (Some(known), of_value) if known == of_value => Some(Some(known)),
            (Some(known), of_value) => merge(i, known, of_value).map(Some),
        };
        let mut n_rows = 0;
        'rows: for row in rows {
            let mut is_changed = false;
            for (i, (known, value)) in types.iter().zip(row).enumerate() {
                match merged(i, *known, value) {
                    Some(now) => is_changed |= now != *known,
                    None => break 'rows,
                }
            }
            if is_changed {
                for (i, (known, value)) in types.iter_mut().zip(row).enumerate() {
                    *known = merged(i, *known, value).unwrap_or(*known);
                }
            }
            n_rows += 1;
        }
        // A parameter without a type is NULL in all rows.
        let types = types.into_iter().zip(first);
        let types = types.map(|(known, null)| known.unwrap_or_else(|| type_of(null)));
        UniformRows {
            rows: &rows[..n_rows],
            types: types.collect(),
        }
    }
}

/// Returns `true` if a value is sent in binary format for a parameter of the type `as_oid` (an
/// object identifier); `false` if it is sent as text.
pub(super) fn is_binary(value: &Value, as_oid: u32) -> bool {
    match (own(value), as_oid) {
        (Value::Bool(_), oid::BOOL)
        | (Value::F64(_), oid::FLOAT8)
        | (Value::Bytes(_), oid::BYTEA)
        | (Value::Uuid(_), oid::UUID)
        | (Value::I64(_), oid::INT8 | oid::FLOAT8)
        | (Value::Time(_), oid::TIME) => true,
        (Value::I64(n), oid::INT4) => i32::try_from(*n).is_ok(),
        (Value::Date(date), oid::DATE) => date_time::days_of_date(*date).is_some(),
        (Value::Timestamp(stamp), oid::TIMESTAMP) if stamp.offset_minutes.is_none() => {
            date_time::micros_of_timestamp(stamp).is_some()
        }
        (Value::Timestamp(stamp), oid::TIMESTAMPTZ) if stamp.offset_minutes.is_some() => {
            date_time::micros_of_timestamp(stamp).is_some()
        }
        _ => false,
    }
}

/// Writes a value to `out`, in the format that [`is_binary`] selects for the type `as_oid`. Writes
/// nothing for NULL.
pub(super) fn encode(value: &Value, as_oid: u32, out: &mut BytesMut) -> IsNull {
    let value = own(value);
    if *value == Value::Null {
        return IsNull::Yes;
    }
    if !is_binary(value, as_oid) {
        put_text(value, out);
        return IsNull::No;
    }
    match value {
        Value::Bool(b) => out.put_u8(u8::from(*b)),
        Value::I64(n) if as_oid == oid::FLOAT8 => out.put_f64(*n as f64),
        Value::I64(n) if as_oid == oid::INT4 => out.put_i32(i32::try_from(*n).unwrap_or_default()),
        Value::I64(n) => out.put_i64(*n),
        Value::F64(f) => out.put_f64(*f),
        Value::Bytes(bytes) => out.put_slice(bytes),
        Value::Uuid(uuid) => out.put_slice(uuid),
        Value::Date(date) => out.put_i32(date_time::days_of_date(*date).unwrap_or_default()),
        Value::Time(time) => out.put_i64(date_time::micros_of_time(time)),
        Value::Timestamp(stamp) => {
            out.put_i64(date_time::micros_of_timestamp(stamp).unwrap_or_default());
        }
        _ => put_text(value, out),
    }
    IsNull::No
}

fn put_text(value: &Value, out: &mut BytesMut) {
    if let Some(text) = text_of_value(value) {
        out.put_slice(text.as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cell::{Date, Time, Timestamp};
    use crate::value::Declared;

    #[test]
    fn question_marks_are_numbered_outside_of_strings() {
        for (sql, expected, n) in [
            (
                "select ?, '?', \"?\", ? -- ?",
                "select $1, '?', \"?\", $2 -- ?",
                2,
            ),
            ("select '{}'::jsonb ?? 'a'", "select '{}'::jsonb ? 'a'", 0),
            ("select j ??| ?, j ??& ?", "select j ?| $1, j ?& $2", 2),
            (
                "select $$?$$, e'\\'?', /* ? /* ? */ ? */ ?",
                "select $$?$$, e'\\'?', /* ? /* ? */ ? */ $1",
                1,
            ),
            ("select a[1:2], x::text", "select a[1:2], x::text", 0),
        ] {
            let translated = translate(sql);
            assert_eq!(
                (translated.sql.as_str(), translated.n_parameters),
                (expected, n),
                "{sql}"
            );
        }
    }

    fn encoded(value: &Value, oid: u32) -> Vec<u8> {
        let mut out = BytesMut::new();
        encode(value, oid, &mut out);
        out.to_vec()
    }

    #[test]
    fn values_are_binary_where_their_type_is_that_of_the_parameter() {
        let date = Date {
            year: 2000,
            month: 1,
            day: 2,
        };
        let time = Time {
            second: 1,
            nanosecond: 1_999,
            ..Time::default()
        };
        let stamp = Timestamp {
            date,
            time,
            offset_minutes: Some(1),
        };
        for (value, expected) in [
            (Value::I64(-2), vec![0xff, 0xff, 0xff, 0xfe]),
            (Value::I64(1 << 32), vec![0, 0, 0, 1, 0, 0, 0, 0]),
            (Value::Bool(true), vec![1]),
            (Value::Date(date), vec![0, 0, 0, 1]),
            (
                Value::Timestamp(stamp),
                (86_400_000_000i64 + 1_000_001 - 60_000_000)
                    .to_be_bytes()
                    .to_vec(),
            ),
            (Value::Text("é".to_owned()), "é".as_bytes().to_vec()),
        ] {
            assert_eq!(encoded(&value, type_of(&value)), expected, "{value:?}");
        }
    }

    #[test]
    fn values_of_another_type_are_text() {
        let date = Date {
            year: -43,
            month: 3,
            day: 15,
        };
        let declared = |value, kind| {
            Value::Declared(
                Box::new(value),
                Declared {
                    kind,
                    size: 0,
                    digits: 0,
                },
            )
        };
        for (value, oid, expected) in [
            (Value::I64(7), oid::TEXT, "7"),
            (Value::I64(1 << 40), oid::INT4, "1099511627776"),
            (Value::Bytes(vec![0xab, 0]), 0, "\\xab00"),
            (Value::Date(date), 0, "0044-03-15 BC"),
            (Value::Date(Date::INFINITY), oid::DATE, "infinity"),
            (
                Value::Date(Date {
                    year: 2023,
                    month: 2,
                    day: 30,
                }),
                oid::DATE,
                "2023-02-30",
            ),
            (
                declared(Value::F64(1.5), DeclaredKind::Decimal),
                oid::NUMERIC,
                "1.5",
            ),
        ] {
            assert_eq!(encoded(&value, oid), expected.as_bytes(), "{value:?}");
        }
    }

    #[test]
    fn uniform_rows_end_where_a_type_changes() {
        let int = Value::I64;
        let text = |t: &str| Value::Text(t.to_owned());
        let rows = [
            vec![Value::Null, Value::Null, int(1)],
            vec![int(1), Value::Null, Value::Null],
            vec![int(1 << 40), Value::Null, Value::Null],
            vec![Value::Null, text("b"), int(2)],
            vec![int(2), int(3), int(2)],
        ];
        let exact = |_, _, _| None;
        let lengths_and_types = |rows, merge: fn(usize, u32, u32) -> Option<u32>| {
            let first = UniformRows::first(rows, merge);
            (first.rows.len(), first.types)
        };
        assert_eq!(
            lengths_and_types(&rows, exact),
            (2, vec![oid::INT4, 0, oid::INT4])
        );
        assert_eq!(
            lengths_and_types(&rows[2..], exact),
            (2, vec![oid::INT8, 0, oid::INT4])
        );
        assert_eq!(
            lengths_and_types(&rows, |_, _, _| Some(oid::INT8)),
            (5, vec![oid::INT8, oid::INT8, oid::INT4])
        );
        let declared = |kind| {
            let declared = Declared {
                kind,
                size: 0,
                digits: 0,
            };
            Value::Declared(Box::new(Value::Null), declared)
        };
        let nulls = vec![declared(DeclaredKind::Uuid), declared(DeclaredKind::Number)];
        let rows = [nulls, vec![Value::Uuid([0; 16]), int(7)]];
        assert_eq!(
            lengths_and_types(&rows, exact),
            (2, vec![oid::UUID, oid::INT4])
        );
        assert_eq!(
            lengths_and_types(&rows[..1], exact),
            (1, vec![oid::UUID, oid::INT8])
        );
    }

    #[test]
    fn a_wrong_count_and_nul_are_refused() {
        assert_eq!(check(1, &[]).unwrap_err().sqlstate, "07002");
        let nul = Value::Text("a\0b".to_owned());
        assert_eq!(check(1, &[nul]).unwrap_err().kind, ErrorKind::Data);
    }
}
